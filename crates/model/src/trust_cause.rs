//! Why figures may mislead: the causes that findings are grouped by, in order of damage.

use serde::Serialize;

/// What a finding has in common with others: one cause shows in many of them. In order of damage.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TrustCause {
    /// Operations failed, or the target broke.
    Failures,
    /// Memory or a cache answered instead of the storage.
    Cache,
    /// Figures contradict each other.
    Contradiction,
    /// Something that belongs to the answer is missing.
    Incomplete,
    /// All operations stalled, or one took far longer than the others.
    Stall,
    /// Others used the device.
    OtherLoad,
    /// Others used the CPUs, or Rigel had too few of them.
    BusyMachine,
    /// The storage changed during the run.
    Drift,
    /// A limit or a throttle decides.
    Limit,
    /// It was measured for too short a time, or too few loads were.
    TooShort,
    /// Hosts that measure together differ.
    Hosts,
    /// A demand is known only in part.
    Demand,
    /// How target, host or server are set up.
    Setup,
}

impl TrustCause {
    /// Every cause, the most damaging first.
    pub const ALL: [Self; 13] = [
        Self::Failures,
        Self::Cache,
        Self::Contradiction,
        Self::Incomplete,
        Self::Stall,
        Self::OtherLoad,
        Self::BusyMachine,
        Self::Drift,
        Self::Limit,
        Self::TooShort,
        Self::Hosts,
        Self::Demand,
        Self::Setup,
    ];

    /// The cause in a word or two.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::Cache => "cache",
            Self::Contradiction => "contradiction",
            Self::Incomplete => "incomplete",
            Self::Stall => "stall",
            Self::OtherLoad => "other load",
            Self::BusyMachine => "busy machine",
            Self::Drift => "drift",
            Self::Limit => "limit",
            Self::TooShort => "too short",
            Self::Hosts => "hosts",
            Self::Demand => "demand",
            Self::Setup => "setup",
        }
    }

    /// What happened, as a clause that `in 3 of 40 points` may follow.
    pub const fn clause(self) -> &'static str {
        match self {
            Self::Failures => "operations failed",
            Self::Cache => "memory or a cache answered",
            Self::Contradiction => "figures contradict each other",
            Self::Incomplete => "a part is missing",
            Self::Stall => "operations stalled",
            Self::OtherLoad => "others used the disk",
            Self::BusyMachine => "the CPUs were busy",
            Self::Drift => "the storage changed its pace",
            Self::Limit => "a limit decides",
            Self::TooShort => "too little was measured",
            Self::Hosts => "the hosts differ",
            Self::Demand => "the demand is known in part",
            Self::Setup => "the setup may mislead",
        }
    }

    /// What follows for the figures; empty if that depends.
    pub const fn consequence(self) -> &'static str {
        match self {
            Self::Cache => "the storage may do less",
            Self::OtherLoad | Self::BusyMachine => "it may do more",
            Self::Demand => "it may be more",
            Self::Limit => "for longer, it may do less",
            _ => "",
        }
    }
}

/// What a warning of a kind does to the trust in the figures of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Nothing: it changes no decision.
    Aside,
    /// They need care.
    Doubt,
    /// They are of no use.
    Spoil,
}
