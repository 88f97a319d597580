//! Whatever stands in a slob.conf or pgio.conf, it is settings that are printed as the same, or refused with status 2.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel::cli::conf;

fuzz_target!(|text: &str| {
    match conf::parse(text) {
        Ok(read) => {
            let printed = read.settings.print(read.dialect);
            assert_eq!(conf::parse(&printed).unwrap().settings, read.settings);
        }
        Err(error) => assert_eq!(error.exit_status(), 2),
    }
});
