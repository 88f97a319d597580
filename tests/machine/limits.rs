//! A process whose limits are too low for Rigel: the limit is raised, or named with what to do.

use crate::common::{Place, stderr};
use std::process::{Command, Output};

/// Runs a search on a model below this `ulimit` of a shell.
fn limited(place: &Place, limit: &str) -> Output {
    Command::new("sh")
        .args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_rigel"))
        .args("curve sim:8,100us --depth 1,2 --seed 1 --no-progress --out run".split(' '))
        .current_dir(&place.0)
        .output()
        .unwrap()
}

#[test]
fn where_no_more_files_may_be_open_the_limit_is_the_hint() {
    let place = Place::new("limits-files");
    let mut refused = 0;
    // With as few the loader of libraries fails; with as many the run succeeds.
    for count in 3..16 {
        let output = limited(&place, &format!("-n {count}"));
        let said = stderr(&output);
        if said.starts_with("rigel: ") && said.contains("(os error 24)") {
            assert_eq!(
                said.matches("\n  hint: allow more open files: ulimit -n 1024\n")
                    .count(),
                1,
                "{said}"
            );
            refused += 1;
        }
    }
    assert!(refused > 0);
}

#[test]
fn a_stack_that_is_too_small_is_raised_or_refused() {
    let place = Place::new("limits-stack");
    let refused = limited(&place, "-s 128");
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("Rigel needs 2 MiB: the hard limit is 131072\n  hint: "),
        "{said}"
    );
    assert!(said.contains("ulimit -s 2048"), "{said}");
    assert!(!place.0.join("run").exists());
    let raised = limited(&place, "-S -s 128");
    assert!(raised.status.success(), "{raised:?}");
}
