//! Whatever stands in a LUN file, it is a list of targets or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_verbs::orion::lun;

fuzz_target!(|text: &str| {
    if let Ok(members) = lun::parse(text, std::path::Path::new("t.lun"), |_| false) {
        assert!(!members.is_empty());
    }
});
