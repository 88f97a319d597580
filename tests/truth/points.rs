//! Points of plain reads on files and devices. The benchmark `against_fio` includes this file.

use rigel_device::engine::layout::VolumeMap;
use rigel_device::engine::opened::Opened;
use rigel_device::engine::volume::Volume;
use rigel_device::engine::{self, Engine};
use rigel_model::{Coordinates, Layout, Load, Mix, Pattern, Point, Stream, Until, WarmUp};
use std::fs;
use std::path::PathBuf;

/// Size of a small read in bytes.
pub(crate) const LENGTH: u32 = 8192;

/// Names of the engines for files and devices.
pub(crate) fn engine_names() -> impl Iterator<Item = &'static str> {
    engine::ENGINES.iter().map(|engine| engine.info.name)
}

/// The engine `name` on the volume of `paths`, for reads of `length` bytes at `depth`.
pub(crate) fn engine(
    name: &str,
    paths: &[PathBuf],
    layout: Layout,
    length: u32,
    depth: u32,
) -> Box<dyn Engine> {
    let size = |path: &PathBuf| {
        use std::io::{Seek, SeekFrom};
        fs::File::open(path)
            .unwrap()
            .seek(SeekFrom::End(0))
            .unwrap()
    };
    let sizes: Vec<u64> = paths.iter().map(size).collect();
    let map = VolumeMap::new(&sizes, layout, length.into()).unwrap();
    let members: Vec<_> = paths
        .iter()
        .map(|path| Opened::open(path).unwrap())
        .collect();
    let volume = Volume::to_read(&members, map, true).unwrap();
    engine::choose(name, volume, &vec![length; depth as usize])
        .unwrap()
        .0
}

/// A closed loop of reads.
pub(crate) fn reads(
    pattern: Pattern,
    length: u32,
    depth: u32,
    warm_up: WarmUp,
    until: Until,
) -> Point {
    let stream = Stream {
        objective: None,
        sql: None,
        name: "small".into(),
        load: Load::Closed { depth },
        mix: Mix::READS,
        pattern,
        length,
        rank: None,
        log: None,
    };
    Point {
        coordinates: Coordinates::cell(depth, 0),
        streams: vec![stream],
        warm_up,
        until,
        seed: 5,
        window: Point::second(),
    }
}

pub(crate) use super::common::run as measure;
