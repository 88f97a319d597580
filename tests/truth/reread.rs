//! Reading again after the sweep: what had just been read comes from a cache where there is one, and
//! other parts do not.
//!
//! A loop device that reads through the page cache has a cache below it, and one with direct I/O has
//! none. The log of the device below both says which reads came through.

use super::device::{Behaviour, Device};
use super::faulty::mount;
use super::{LENGTH, engine, measure};
use crate::common::{Loop, Missing, Place, need, test, text, wait_until};
use rigel_analyse::plan::Plan;
use rigel_model::{Coordinates, Layout};
use rigel_verbs::calibrate::CalibrateRequest;
use std::time::Duration;

/// Blocks in a part.
const BLOCKS: u64 = 64;

/// The reads that came through to the device while a part was measured: one that had just been
/// read, and another.
fn came_through(programmed: &Device, option: &str) -> Result<[usize; 2], Missing> {
    let device = need(
        "losetup",
        &[
            "--find",
            "--show",
            "--read-only",
            option,
            text(&programmed.path),
        ],
    )?;
    let device = Loop(device.into());
    wait_until("nothing else reads the device", || {
        programmed.take();
        std::thread::sleep(Duration::from_millis(100));
        programmed.take().is_empty()
    });
    let engine = engine(
        "uring",
        std::slice::from_ref(&device.0),
        Layout::Concat,
        LENGTH,
        1,
    );
    let request = CalibrateRequest::DEFAULT;
    let of = |just_read| {
        let at = Coordinates::Reread {
            pair: 1,
            bytes: BLOCKS * u64::from(LENGTH),
            just_read,
        };
        let usable = engine.usable();
        let before = request
            .warming(at, usable, 3)
            .expect("something is read before");
        measure(engine.as_ref(), &before);
        programmed.take();
        let record = measure(engine.as_ref(), &request.point(at, usable, 3));
        let done = record.streams[0].total().done;
        assert!((1..=BLOCKS).contains(&done), "{done} reads");
        let through = programmed.take().len();
        // Without a cache each read comes through.
        assert!(
            option == "--direct-io=off" || through as u64 == done,
            "{through} of {done}"
        );
        through
    };
    Ok([of(true), of(false)])
}

#[test]
fn a_part_that_was_just_read_comes_from_the_cache_and_another_does_not() {
    test(
        "a_part_that_was_just_read_comes_from_the_cache_and_another_does_not",
        || {
            let place = Place::new("truth-reread-cache");
            let programmed = mount(&place, Behaviour::fixed(Duration::from_micros(100)))?;
            let [again, other] = came_through(&programmed, "--direct-io=off")?;
            assert_eq!(again, 0, "reads of the part that had just been read");
            assert!(other > 0, "another part was in the cache, too");
            Ok(())
        },
    );
}

#[test]
fn without_a_cache_both_parts_come_from_the_device() {
    test("without_a_cache_both_parts_come_from_the_device", || {
        let place = Place::new("truth-reread-direct");
        let programmed = mount(&place, Behaviour::fixed(Duration::from_micros(100)))?;
        let through = came_through(&programmed, "--direct-io=on")?;
        assert!(through.iter().all(|reads| *reads > 0), "{through:?}");
        Ok(())
    });
}
