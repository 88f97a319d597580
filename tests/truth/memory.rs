//! The memory of a run is bounded, whatever the depth and however long it is.

use crate::common::{Place, scratch_file, text};
use rigel::model::MIB;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

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
        let mut peak = 0;
        let status = loop {
            // The kernel keeps the peak; looking often is only not to miss the last of it.
            peak = peak.max(peak_of(child.id()).unwrap_or(0));
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(status.success(), "{name}");
        let buffers = small * 8192 + large * MIB;
        assert!(peak > buffers, "{name}: the buffers at least were seen: {peak}");
        assert!(peak < MOST + buffers, "{name}: {} MiB beside the buffers", (peak - buffers) / MIB);
    }
}

/// Most bytes that the process had resident so far.
fn peak_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}
