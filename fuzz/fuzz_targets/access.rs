//! Whatever is typed as the URL of a database, it is read or refused with exit status 2; what was read prints as a URL that is
//! read as the same; and a refusal repeats nothing that stands before an `@`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_database::Address;
use rigel_database::access::{may_hold_password, shown};

const SECRET: &str = "Zq7vXk9";

fuzz_target!(|text: &str| {
    let read = |url: &str| Address::parse(url, &|_| None);
    for url in [text.to_string(), format!("postgres://ana:{text}@h/d")] {
        match read(&url) {
            Ok(address) => assert_eq!(read(&address.to_string()).as_ref(), Ok(&address), "{url}"),
            Err(error) => assert_eq!(error.exit_status(), 2),
        }
    }
    // The fuzzer learns the password from the comparisons below, and a host of that name may be shown.
    if text.contains(SECRET) {
        return;
    }
    // A password in the middle of whatever was typed, with whatever follows the host.
    let (before, after) = text.split_at(text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at));
    let url = format!("postgres://ana:{before}{SECRET}@{after}");
    assert!(may_hold_password(&url) && !shown(&url).contains(SECRET), "{url}");
    if let Err(error) = read(&url) {
        assert!(!error.to_string().contains(SECRET), "{url}: {error}");
    }
});
