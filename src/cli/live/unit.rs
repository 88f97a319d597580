//! Figures in the live view: short, and of constant width while they change.

use rigel_analyse::quantity;

/// From this I/O size in bytes on, throughput is shown in bytes per second instead of operations.
const LARGE: u32 = 128 * 1024;

/// Unit of a class's throughput.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli) enum ThroughputUnit {
    /// I/Os per second.
    #[default]
    Iops,
    /// Database operations per second.
    Operations,
    /// MB per second, for I/Os of this size in bytes.
    Bytes(u32),
}

impl ThroughputUnit {
    /// The unit for database operations, or for I/Os of `length` bytes.
    pub(in crate::cli) fn of(is_sql: bool, length: u32) -> Self {
        match length {
            _ if is_sql => Self::Operations,
            LARGE.. => Self::Bytes(length),
            _ => Self::Iops,
        }
    }

    /// Its name.
    pub(in crate::cli) fn name(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::Operations => "op/s",
            Self::Bytes(_) => "MB/s",
        }
    }

    /// The number without its unit, for a rate in operations per second.
    pub(in crate::cli) fn number(self, rate: f64) -> String {
        match self {
            Self::Bytes(length) => {
                let megabytes = rate * f64::from(length) / 1e6;
                if megabytes < 99.5 {
                    format!("{megabytes:.1}")
                } else {
                    format!("{megabytes:.0}")
                }
            }
            Self::Iops | Self::Operations if rate < 9.95 => format!("{rate:.1}"),
            // Seven digits with commas would not fit beside a chart.
            Self::Iops | Self::Operations if rate < 999_999.5 => quantity::count(rate.round()),
            Self::Iops | Self::Operations => format!("{rate:.0}"),
        }
    }

    /// Number and unit.
    pub(in crate::cli) fn rate(self, rate: f64) -> String {
        format!("{} {}", self.number(rate), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_unit_and_no_more_digits_than_they_need() {
        assert_eq!(
            ThroughputUnit::of(false, 8192).rate(12_345.6),
            "12,346 IOPS"
        );
        assert_eq!(ThroughputUnit::of(false, 8192).rate(3.21), "3.2 IOPS");
        assert_eq!(ThroughputUnit::of(false, 1 << 20).rate(512.0), "537 MB/s");
        assert_eq!(ThroughputUnit::of(false, 1 << 20).rate(12.0), "12.6 MB/s");
        assert_eq!(ThroughputUnit::of(true, 1 << 20).rate(99.0), "99 op/s");
    }
}
