//! The exit status of a run that was asked whether a limit is kept.

use rigel_analyse::BoundVerdict;

/// The exit status for a verdict, the same for every verb.
pub(super) fn exit_status(verdict: BoundVerdict) -> u8 {
    match verdict {
        BoundVerdict::Kept => 0,
        BoundVerdict::Broken => 3,
        BoundVerdict::Undecided => 4,
        BoundVerdict::NotMeasured => 5,
    }
}

/// The exit status of a run with two answers: that of the worse one.
pub(super) fn worse(one: u8, other: u8) -> u8 {
    let ranked = [
        BoundVerdict::Broken,
        BoundVerdict::NotMeasured,
        BoundVerdict::Undecided,
    ];
    let worst = ranked.map(exit_status).into_iter();
    let mut worst = worst.filter(|status| [one, other].contains(status));
    worst.next().unwrap_or(one)
}
