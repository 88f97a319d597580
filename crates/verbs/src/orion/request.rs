//! The request of `rigel orion`: Orion's options with their defaults filled in.

use rigel_model::{Layout, file_name, read_file_name};
use serde::de::IntoDeserializer;
use serde::{Deserialize, Deserializer, Serialize};

/// The range of loads: `-run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunLevel {
    /// Small random I/O alone, up to 20 per disk.
    Oltp,
    /// Large I/O alone, up to 15 per disk.
    Dss,
    /// Small alone, then large alone.
    Simple,
    /// Every combination of small and large.
    Normal,
    /// As given by the other options.
    Advanced,
}

impl RunLevel {
    /// Every level, in the order of the help.
    pub const ALL: [Self; 5] = [
        Self::Oltp,
        Self::Dss,
        Self::Simple,
        Self::Normal,
        Self::Advanced,
    ];

    /// The word after `-run`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Oltp => "oltp",
            Self::Dss => "dss",
            Self::Simple => "simple",
            Self::Normal => "normal",
            Self::Advanced => "advanced",
        }
    }
}

/// The cells of the matrix that are run: `-matrix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Matrix {
    /// The first row and the first column: small alone, then large alone.
    Basic,
    /// The whole rectangle.
    Detailed,
    /// The one cell at `-num_small`, `-num_large`.
    Point,
    /// All small loads with the one large load `-num_large`.
    Row,
    /// All large loads with the one small load `-num_small`.
    Col,
    /// The one cell at `-num_small`, `-num_large`.
    Max,
}

impl Matrix {
    /// Every matrix, in the order of the help.
    pub const ALL: [Self; 6] = [
        Self::Basic,
        Self::Detailed,
        Self::Point,
        Self::Row,
        Self::Col,
        Self::Max,
    ];

    /// The word after `-matrix`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Detailed => "detailed",
            Self::Point => "point",
            Self::Row => "row",
            Self::Col => "col",
            Self::Max => "max",
        }
    }
}

/// How large I/Os are placed: `-type`. Small ones are always random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LargeType {
    /// Uniformly random.
    Rand,
    /// Sequential streams.
    Seq,
}

impl LargeType {
    /// Every type, in the order of the help.
    pub const ALL: [Self; 2] = [Self::Rand, Self::Seq];

    /// The word after `-type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rand => "rand",
            Self::Seq => "seq",
        }
    }
}

/// Reads the name of a test, which names files that are written.
fn read_testname<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    read_file_name(IntoDeserializer::<D::Error>::into_deserializer(file_name(
        &text,
    )))
}

/// The options of Orion with their defaults filled in. Kept in the journal's header, so that
/// reports can be made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrionRequest {
    /// `-run`.
    pub run: RunLevel,
    /// `-testname`: prefix of every written file; with `.lun`, the name of the file that lists the
    /// targets. Read from a journal without the path that it was given with.
    #[serde(deserialize_with = "read_testname")]
    pub testname: String,
    /// `-num_disks`: scales the range of loads, and nothing else.
    pub num_disks: u32,
    /// `-size_small`, in bytes.
    pub size_small: u32,
    /// `-size_large`, in bytes.
    pub size_large: u32,
    /// `-type`.
    pub large_type: LargeType,
    /// `-num_streamIO`: outstanding I/Os of each sequential stream.
    pub num_stream_io: u32,
    /// `-simulate` and `-stripe`: how the targets form one volume.
    pub simulate: Layout,
    /// `-write`: percent of I/Os that are writes.
    pub write: u32,
    /// `-cache_size`, in MiB: how much is read to warm caches before each data point; `None` if
    /// not given.
    pub cache_size: Option<u32>,
    /// `-duration`: seconds that each data point is measured.
    pub duration: u32,
    /// `-matrix`; `None` means the run level's default.
    pub matrix: Option<Matrix>,
    /// `-num_small`.
    pub num_small: Option<u32>,
    /// `-num_large`: I/Os, or sequential streams.
    pub num_large: Option<u32>,
    /// `-verbose`.
    pub verbose: bool,
    /// The options that the user gave, without their dashes.
    pub given: Vec<String>,
}
