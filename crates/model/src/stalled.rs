//! Outstanding I/O of which nothing completes.

use super::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// From this time without a completion on, storage or a server counts as stalled.
pub const STALLED: Nanos = Nanos::from_secs(10);

/// Outstanding operations while nothing completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StalledIo {
    /// Time since the last completion, or since the first of them started.
    pub silent: Nanos,
    /// Number of outstanding operations.
    pub outstanding: u64,
    /// Time since the oldest of them started.
    pub oldest: Nanos,
}

impl fmt::Display for StalledIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "nothing has completed for {:.0} s ({} outstanding, oldest {:.1} s)",
            self.silent.as_secs_f64(),
            self.outstanding,
            self.oldest.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_described_with_its_numbers() {
        let stalled = StalledIo {
            silent: Nanos::from_secs(10),
            outstanding: 32,
            oldest: Nanos::from_millis(10_200),
        };
        let expected = "nothing has completed for 10 s (32 outstanding, oldest 10.2 s)";
        assert_eq!(stalled.to_string(), expected);
    }
}
