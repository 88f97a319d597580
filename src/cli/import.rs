//! `rigel import`: other tools' figures as a run for reports and comparisons.

use super::page;
use super::results::Results;
use crate::clock;
use crate::files;
use crate::import::{self, ImportFormat, Source, table::Columns};
use crate::model::{Bytes, Error, Host, ImportRequest, Invocation, Layout, Request, Target, TargetFacts};
use crate::record::Imported;
use crate::record::journal::{self, EngineChoice, Header, Journal};
use crate::report;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Maximum size of a file: a tool's output of weeks is far smaller.
const BYTES_MAX: Bytes = Bytes(1 << 30);

/// Reads other tools' results, for the same reports and comparisons: fio, Orion, iostat, csv
///
/// The format is recognised by what a file holds. What a tool does not tell stays unknown: nothing is made up.
#[derive(Debug, Args)]
#[command(
    after_help = "Read are: fio's JSON (--output-format=json or json+), Orion's _iops.csv, _mbps.csv, _lat.csv and \
                        _summary.txt, iostat -x -t (text or -o JSON), and csv of a time and values, as SQL pulls them \
                        out of AWR.\n\nExit status: 0 read, 1 failed, or a file is damaged, 2 wrong usage."
)]
pub(super) struct ImportArgs {
    /// Files of results; those of one Orion run become one
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Directory for the run [default: `import_<date>_<time>.rigel`]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The tool that wrote the files, where their content does not tell
    #[arg(long, value_name = "TOOL", value_enum)]
    format: Option<ImportFormat>,
    /// Of a csv: the column of times, by name or by number from 1
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// Of a csv: a column of values; may be given several times
    #[arg(long, value_name = "COLUMN")]
    value: Vec<String>,
    /// Of a csv: the column of how many were counted
    #[arg(long, value_name = "COLUMN")]
    count: Option<String>,
    /// Of a csv: the column of how long each sample took, in seconds
    #[arg(long, value_name = "COLUMN")]
    seconds: Option<String>,
    /// Of a csv: the unit of the values, such as /s or ms
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,
    /// Prints the results as JSON, and nothing else to stdout
    #[arg(long)]
    json: bool,
}

impl ValueEnum for ImportFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            ImportFormat::Fio => "JSON of fio 3",
            ImportFormat::Orion => "csv files and summary of Oracle's Orion, or of rigel orion",
            ImportFormat::Iostat => "iostat -x -t, text or JSON",
            ImportFormat::Csv => "Lines of a time and values",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

/// Reads the files, writes the run, and shows its content.
pub(super) fn run(args: &ImportArgs) -> Result<u8, Error> {
    args.out.as_deref().map_or(Ok(()), refuse_occupied)?;
    let mut results = Results::begin(args.out.as_deref(), "import")?;
    let texts = args.files.iter().map(|path| read(path)).collect::<Result<Vec<String>, Error>>()?;
    let names: Vec<String> = args.files.iter().map(|path| path.display().to_string()).collect();
    refuse_duplicates(&names)?;
    let sources: Vec<Source> = names.iter().zip(&texts).map(|(name, text)| Source { name, text }).collect();
    let columns = Columns {
        time: args.time.clone(),
        values: args.value.clone(),
        count: args.count.clone(),
        seconds: args.seconds.clone(),
        unit: args.unit.clone(),
    };
    let found = import::read(&sources, args.format, &columns)?;
    refuse_idle_columns(&columns, &found)?;
    results.claim()?;
    let directory = results.path();
    let mut journal = Journal::create(directory, &header(args, &names, &found))?;
    found.iter().try_for_each(|one| journal.imported(one))?;
    let run = journal::read(directory)?;
    page::show(&run, &report::result(&run), directory, args.json, "`rigel report` and `compare`");
    Ok(0)
}

/// Refuses a directory that is not empty. Unlike a measurement, an import cannot be resumed.
fn refuse_occupied(directory: &Path) -> Result<(), Error> {
    let is_occupied = std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
    if !is_occupied {
        return Ok(());
    }
    Err(Error::usage(
        format!("the result directory '{}' exists and is not empty", directory.display()),
        "name another with --out DIR, or remove it",
    ))
}

/// Reads the text of a file.
fn read(path: &Path) -> Result<String, Error> {
    let bytes = files::read(path, BYTES_MAX).map_err(|error| {
        Error::usage(format!("cannot read '{}': {error}", path.display()), "name a file with a tool's results")
    })?;
    import::text(&path.display().to_string(), &bytes)
}

fn refuse_duplicates(names: &[String]) -> Result<(), Error> {
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, name)) => Err(Error::usage(format!("'{name}' is given twice"), "name every file once")),
        None => Ok(()),
    }
}

/// Refuses column options if no file is CSV, because they would be ignored.
fn refuse_idle_columns(columns: &Columns, found: &[Imported]) -> Result<(), Error> {
    if *columns == Columns::default() || found.iter().any(|one| one.tool == ImportFormat::Csv.name()) {
        return Ok(());
    }
    Err(Error::usage(
        "--time, --value, --count, --seconds and --unit are for csv, and no file is one",
        "leave them out, or say --format csv",
    ))
}

fn header(args: &ImportArgs, names: &[String], found: &[Imported]) -> Header {
    let mut tools: Vec<&str> = found.iter().map(|one| one.tool.as_str()).collect();
    tools.dedup();
    let title = |name: &String| name.rsplit('/').next().unwrap_or(name).to_string();
    Header {
        format: journal::FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        started: clock::wall_time(),
        command: std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect(),
        target: Target::Paths { members: args.files.clone(), layout: Layout::Concat },
        engine: EngineChoice { name: tools.join(" and "), buffered: false },
        engine_about: String::new(),
        points: Vec::new(),
        invocation: Invocation::of(Request::Import(ImportRequest { files: names.to_vec() })),
        // The machine that reads the files is not the measured one.
        host: Host::default(),
        facts: TargetFacts { name: names.iter().map(title).collect::<Vec<_>>().join(", "), ..TargetFacts::default() },
        findings: Vec::new(),
    }
}
