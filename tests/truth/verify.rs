//! `--verify`: every lie of a device is found and named, by every engine, and no device is accused that is honest.
//!
//! The device knows which of its blocks are wrong, and how.

use super::liar::{BLOCK, Liar, Lie};
use super::{LENGTH, engine_names, measure, reads};
use crate::common::{Missing, Place, scratch_file, test};
use rigel_device::engine::layout::VolumeMap;
use rigel_device::engine::opened::Opened;
use rigel_device::engine::volume::Volume;
use rigel_device::engine::{self, Engine, guard};
use rigel_model::record::{PointRecord, Verified};
use rigel_model::workload::content::Sectors;
use rigel_model::{Cause, GIB, Layout, MIB, Mix, Pattern, Point, Ratio, Until, WarmUp, WrongBytes};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const SIZE: u64 = 16 * MIB;
const BLOCKS: u64 = SIZE / BLOCK;

fn liar(place: &Place, bytes: u64, lie: Lie) -> Result<Liar, Missing> {
    Liar::mount(&place.0, bytes, lie).map_err(|error| Missing(error.to_string()))
}

/// The engine `name` on a file, for operations of `length` bytes; it looks at every block.
fn looking(name: &str, path: &Path, (bytes, length): (u64, u32), writes: bool) -> Box<dyn Engine> {
    let map = VolumeMap::new(&[bytes], Layout::Concat, length.into()).unwrap();
    let opened = Opened::open(path).unwrap();
    let mut volume = if writes {
        let permit = guard::permit(opened, &[path.to_path_buf()]).unwrap();
        Volume::to_write(&[permit], map, true).unwrap()
    } else {
        Volume::to_read(&[opened], map, true).unwrap()
    };
    volume.verify(length.into()).unwrap();
    engine::choose(name, volume, &[length; 16]).unwrap().0
}

/// Reads every block of the device once, by however many threads.
fn all_blocks() -> Point {
    let all = Pattern::Permutation { start: 0 };
    reads(all, LENGTH, 4, WarmUp::NONE, Until::Ops(BLOCKS))
}

/// Reads and writes at `depth` by `pattern`.
fn changes(pattern: Pattern, depth: u32, ops: u64) -> Point {
    let mut point = reads(pattern, LENGTH, depth, WarmUp::NONE, Until::Ops(ops));
    point.streams[0].mix = Mix {
        writes: Ratio::try_from(0.6).unwrap(),
        durable: false,
    };
    point
}

fn found(record: &PointRecord) -> &Verified {
    record.verified.as_ref().expect("it was verified")
}

/// The failed reads of a record by how they were wrong.
fn failures(record: &PointRecord) -> BTreeMap<WrongBytes, u64> {
    let by_cause = |how: WrongBytes| {
        let total = record.streams[0].total();
        let count = total.failed.get(&Cause::Wrong(how).name()).copied();
        count.map(|count| (how, count))
    };
    WrongBytes::ALL.into_iter().filter_map(by_cause).collect()
}

#[test]
fn every_wrong_block_is_found_and_told_apart() {
    test("every_wrong_block_is_found_and_told_apart", || {
        for name in engine_names() {
            for lie in [Lie::Lose, Lie::Tear, Lie::Misdirect] {
                let place = Place::new("truth-verify-lies");
                let liar = liar(&place, SIZE, lie)?;
                let engine = looking(name, &liar.path, (SIZE, LENGTH), true);
                // One at a time: of writes that overlap, either may be the last.
                measure(&*engine, &changes(Pattern::Uniform, 1, 2000));
                let record = measure(&*engine, &all_blocks());
                let mut truth: BTreeMap<WrongBytes, u64> = BTreeMap::new();
                liar.wrong()
                    .values()
                    .for_each(|how| *truth.entry(*how).or_default() += 1);
                let (found, count) = (found(&record), truth.values().sum::<u64>());
                assert!(count > 50, "{name} {lie:?}: {count}");
                assert_eq!(failures(&record), truth, "{name} {lie:?}");
                assert_eq!(
                    (found.blocks, found.wrong_blocks),
                    (BLOCKS, count),
                    "{name} {lie:?}"
                );
                assert_eq!(found.wrong.len(), Verified::WRONG_MOST);
                for wrong in &found.wrong {
                    assert_eq!(
                        liar.wrong().get(&(wrong.offset / BLOCK)),
                        Some(&wrong.how),
                        "{name}: {wrong:?}"
                    );
                }
            }
        }
        Ok(())
    });
}

#[test]
fn an_honest_device_is_not_accused_however_writes_and_reads_overlap() {
    test(
        "an_honest_device_is_not_accused_however_writes_and_reads_overlap",
        || {
            for name in engine_names() {
                let place = Place::new("truth-verify-honest");
                let liar = liar(&place, SIZE, Lie::None)?;
                let engine = looking(name, &liar.path, (SIZE, LENGTH), true);
                // Sixteen at once on a few blocks.
                let few = Pattern::Hotspot {
                    space: Ratio::try_from(0.002).unwrap(),
                    share: Ratio::ONE,
                };
                let record = measure(&*engine, &changes(few, 16, 20_000));
                assert_eq!(found(&record).wrong, [], "{name}");
                assert!(
                    failures(&record).is_empty() && found(&record).blocks > 5000,
                    "{name}"
                );
                let record = measure(&*engine, &all_blocks());
                assert_eq!(
                    (found(&record).blocks, &found(&record).wrong[..]),
                    (BLOCKS, &[][..]),
                    "{name}"
                );
            }
            Ok(())
        },
    );
}

#[test]
fn what_nobody_has_written_is_unknown_and_not_wrong() {
    for name in engine_names() {
        let file = scratch_file(&format!("truth-verify-{name}"), SIZE);
        let engine = looking(name, &file.path, (SIZE, LENGTH), true);
        let record = measure(&*engine, &changes(Pattern::Uniform, 4, 6000));
        let read = record.streams[0].total().done;
        let looked = found(&record).blocks + found(&record).unknown;
        assert!((1..read).contains(&looked), "{name}: {looked} of {read}");
        let record = measure(&*engine, &all_blocks());
        let found = found(&record);
        assert!(
            found.blocks > 500 && found.unknown > 50,
            "{name}: {found:?}"
        );
        assert_eq!(
            (found.blocks + found.unknown, &found.wrong[..]),
            (BLOCKS, &[][..]),
            "{name}"
        );
    }
}

#[test]
fn zeros_where_the_run_has_read_what_was_written_are_wrong() {
    for name in engine_names() {
        let file = scratch_file(&format!("truth-verify-gone-{name}"), SIZE);
        let mut whole = vec![0; usize::try_from(SIZE).unwrap()];
        Sectors::of_file(77).write(&mut whole, 0, 0);
        std::fs::write(&file.path, &whole).unwrap();
        let engine = looking(name, &file.path, (SIZE, LENGTH), false);
        let record = measure(&*engine, &all_blocks());
        let found_before = found(&record);
        assert_eq!(
            (found_before.blocks, found_before.wrong_blocks),
            (BLOCKS, 0),
            "{name}"
        );

        let lost: Vec<u64> = (0..10).map(|at| (37 * at + 5) * BLOCK).collect();
        let blocks = File::options().write(true).open(&file.path).unwrap();
        for offset in &lost {
            let zeros = vec![0; usize::try_from(BLOCK).unwrap()];
            blocks.write_all_at(&zeros, *offset).unwrap();
        }
        blocks.sync_all().unwrap();
        let record = measure(&*engine, &all_blocks());
        assert_eq!(
            failures(&record),
            BTreeMap::from([(WrongBytes::Gone, 10)]),
            "{name}"
        );
        let mut named: Vec<u64> = found(&record).wrong.iter().map(|one| one.offset).collect();
        named.sort_unstable();
        assert_eq!(named, lost, "{name}");

        // Who has not read them before cannot know it.
        let engine = looking(name, &file.path, (SIZE, LENGTH), false);
        let record = measure(&*engine, &all_blocks());
        assert_eq!(
            (found(&record).unknown, found(&record).wrong_blocks),
            (10, 0),
            "{name}"
        );
    }
}

#[test]
fn one_flipped_bit_in_a_million_blocks_is_found_and_named() {
    test(
        "one_flipped_bit_in_a_million_blocks_is_found_and_named",
        || {
            const LARGE: u32 = 1 << 18;
            let place = Place::new("truth-verify-flip");
            let at = 5 * GIB + 123_456_789;
            let liar = liar(&place, 8 * GIB, Lie::Flip(at))?;
            let engine = looking("auto", &liar.path, (8 * GIB, LARGE), false);
            let all = Until::Ops(8 * GIB / u64::from(LARGE));
            let record = measure(
                &*engine,
                &reads(
                    Pattern::Sequential { start: 0 },
                    LARGE,
                    8,
                    WarmUp::NONE,
                    all,
                ),
            );
            let found = found(&record);
            assert_eq!((found.bytes, found.wrong_blocks), (8 * GIB, 1));
            let [wrong] = &found.wrong[..] else {
                panic!("{:?}", found.wrong)
            };
            assert_eq!(
                (wrong.offset, wrong.how),
                (at / 512 * 512, WrongBytes::Rotten)
            );
            assert_eq!(
                wrong.held,
                format!("1 bit differs, in its byte {}", at % 512)
            );
            Ok(())
        },
    );
}
