//! The memory of a run is bounded, whatever the depth and however long it is.

use crate::common::{Place, peak_of, scratch_file, text};
use rigel::model::MIB;
use std::process::{Command, Stdio};

/// For any run, beside its buffers.
const MOST: u64 = 64 * MIB;

#[test]
fn a_run_needs_little_memory_beside_its_buffers() {
    let place = Place::new("truth-memory");
    let file = scratch_file("truth-memory", 256 * MIB);
    for (name, small, large) in [("uring", 256, 16), ("libaio", 256, 16), ("psync", 64, 16)] {
        let out = place.0.join(name);
        let mut child = Command::new(env!("CARGO_BIN_EXE_rigel"))
            .args(["orion", "-run", "advanced", "-matrix", "point", "-duration", "3", "--no-progress"])
            .args(["-num_small", &small.to_string(), "-num_large", &large.to_string()])
            .args(["--engine", name, "--target", text(&file.path), "--out", text(&out)])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (status, peak) = peak_of(&mut child);
        assert!(status.success(), "{name}");
        let buffers = small * 8192 + large * MIB;
        assert!(peak > buffers, "{name}: the buffers at least were seen: {peak}");
        assert!(peak < MOST + buffers, "{name}: {} MiB beside the buffers", (peak - buffers) / MIB);
    }
}
