//! Whatever is typed after `orion`, it is a request, a help text or a refusal with exit status 2.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel::cli::orion_args::{self, Parsed};

fuzz_target!(|text: &str| {
    match orion_args::parse(text.split('\n').map(Into::into)) {
        Ok(Parsed::Measure(args)) => {
            if let Err(error) = args.resolve(|| Ok(vec!["/dev/a".into(), "/dev/b".into()]), |_| false) {
                assert_eq!(error.exit_status(), 2);
            }
        }
        Ok(Parsed::Help(_)) => {}
        Err(error) => assert_eq!(error.exit_status(), 2),
    }
});
