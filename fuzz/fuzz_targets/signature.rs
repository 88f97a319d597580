//! Whatever a device holds, looking for the signs of data on it ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_device::engine::signature;

fuzz_target!(|bytes: &[u8]| {
    let (head, tail) = bytes.split_at(bytes.len() / 2);
    let _ = signature::signature(head, tail, bytes.len() as u64);
});
