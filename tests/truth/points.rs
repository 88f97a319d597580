//! Points of plain reads on files and devices. The benchmark `against_fio` includes this file.

use rigel::clock::Clock;
use rigel::drive::Terms;
use rigel::engine::Engine;
use rigel::engine::layout::VolumeMap;
use rigel::engine::libaio::Libaio;
use rigel::engine::opened::Opened;
use rigel::engine::psync::Psync;
use rigel::engine::uring::Uring;
use rigel::engine::volume::Volume;
use rigel::model::{Coordinates, Layout, Load, Mix, Pattern, Point, Stream, Until, WarmUp};
use rigel::record::PointRecord;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Engines for files and devices.
pub(crate) const ENGINES: [&str; 3] = ["uring", "libaio", "psync"];
/// Size of a small read in bytes.
pub(crate) const LENGTH: u32 = 8192;

/// The engine `name` on the volume of `paths`, for reads of `length` bytes at `depth`.
pub(crate) fn engine(name: &str, paths: &[PathBuf], layout: Layout, length: u32, depth: u32) -> Box<dyn Engine> {
    let size = |path: &PathBuf| {
        use std::io::{Seek, SeekFrom};
        fs::File::open(path).unwrap().seek(SeekFrom::End(0)).unwrap()
    };
    let sizes: Vec<u64> = paths.iter().map(size).collect();
    let map = VolumeMap::new(&sizes, layout, length.into()).unwrap();
    let members: Vec<_> = paths.iter().map(|path| Opened::open(path).unwrap()).collect();
    let volume = Volume::to_read(&members, map, true).unwrap();
    match name {
        "psync" => Box::new(Psync::new(Clock::real(), volume)),
        "libaio" => Box::new(Libaio::new(Clock::real(), volume)),
        "uring" => Box::new(Uring::new(Clock::real(), volume, &vec![length; depth as usize]).unwrap()),
        _ => panic!("no engine {name}"),
    }
}

/// A closed loop of reads.
pub(crate) fn reads(pattern: Pattern, length: u32, depth: u32, warm_up: WarmUp, until: Until) -> Point {
    let stream =
        Stream { sql: None, name: "small".into(), load: Load::Closed { depth }, mix: Mix::READS, pattern, length };
    Point {
        coordinates: Coordinates::cell(depth, 0),
        streams: vec![stream],
        warm_up,
        until,
        seed: 5,
        window: Point::second(),
    }
}

pub(crate) fn measure(engine: &dyn Engine, point: &Point) -> PointRecord {
    let terms = Terms { workers: 1, stop: &AtomicBool::new(false), enough: &|_| false };
    rigel::drive::point(engine, point, &terms, &mut |_| ()).unwrap()
}
