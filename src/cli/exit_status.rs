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

/// True for the exit statuses of verdicts: others are those of runs that failed or are not complete.
pub(super) fn is_of_outcome(status: u8) -> bool {
    matches!(status, 0 | 3..=5)
}
