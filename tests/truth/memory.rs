//! The memory of a run is bounded, whatever its depth and duration.

use crate::common::{Place, peak_of, peak_so_far, scratch_file, signal, text, wait, wait_until};
use rigel_model::MIB;
use std::process::{Command, Stdio};

/// Limit for any run, besides its buffers.
const MOST: u64 = 64 * MIB;

#[test]
fn a_run_needs_little_memory_beside_its_buffers() {
    let place = Place::new("truth-memory");
    let file = scratch_file("truth-memory", 64 * MIB);
    for (name, small, large) in [("uring", 256, 16), ("libaio", 256, 16), ("psync", 64, 16)] {
        let out = place.0.join(name);
        let mut child = Command::new(env!("CARGO_BIN_EXE_rigel"))
            .args([
                "orion",
                "-run",
                "advanced",
                "-matrix",
                "point",
                "-duration",
                "60",
                "--no-progress",
            ])
            .args(["-cache_size", "0"])
            .args([
                "-num_small",
                &small.to_string(),
                "-num_large",
                &large.to_string(),
            ])
            .args([
                "--engine",
                name,
                "--target",
                text(&file.path),
                "--out",
                text(&out),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let buffers = small * 8192 + large * MIB;
        wait_until("all buffers are in use", || peak_so_far(&child) > buffers);
        // Some time of work with all of them.
        wait(1000);
        signal(child.id(), "INT");
        let (status, peak) = peak_of(&mut child);
        assert_eq!(status.code(), Some(1), "{name} was interrupted");
        assert!(
            peak < MOST + buffers,
            "{name}: {} MiB beside the buffers",
            (peak - buffers) / MIB
        );
    }
}
