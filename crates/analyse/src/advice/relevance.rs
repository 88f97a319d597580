//! Whether a setting matters for a demand.
//!
//! Input: the advice on a setting, and a demand beside the calibration. Output: yes, no or
//! undecided, and why.
//!
//! A setting changes how I/O of certain kinds is done. Where these need almost none of the storage's
//! time, it cannot change much; where they need a good part of it, it can. A limit on background
//! writes is compared with the rate that the database needs, since below it the limit does nothing.
//! Both are means of an interval, and the limits of their ranges decide.

use super::decision::Decision;
use super::default::ProductDefault;
use super::setting::{Advice, Relevance};
use crate::demand::{Answer, DemandAgainst, Usage};
use crate::figures::quantity::{per_second, rounded_percent};
use rigel_model::DemandKind;

/// A stream that needs at least this part of the storage's time matters. A choice.
const MATTERS_FROM: f64 = 0.1;

/// A stream that needs at most this part of the storage's time does not matter: all that a setting
/// could save is as little. A choice.
const MATTERS_NOT_UP_TO: f64 = 0.01;

/// What is said of a setting that the table below does not have.
const UNKNOWN: &str = "it is not known which I/O this setting acts on";

/// What a setting acts on.
enum ActsOn {
    /// I/O of these kinds.
    Streams(&'static [DemandKind]),
    /// Page writes per second, which it limits.
    WriteLimit,
    /// I/O that no demand distinguishes from other I/O.
    Unknown(&'static str),
}

impl ActsOn {
    fn of(setting: &str) -> Self {
        use DemandKind::{
            DirectReads, DirectWrites, LogWrites, MultiblockReads, PageWrites, RandomReads,
            SmartScans,
        };
        match setting {
            "maintenance_io_concurrency" => Self::Unknown(
                "a demand does not distinguish the reads of VACUUM from those of queries",
            ),
            "innodb_io_capacity" | "innodb_io_capacity_max" => Self::WriteLimit,
            "random_page_cost" => Self::Streams(&[RandomReads, MultiblockReads]),
            "io_combine_limit" | "innodb_read_io_threads" | "MREADTIM" | "MBRC" | "IOTFRSPEED" => {
                Self::Streams(&[MultiblockReads])
            }
            // The row decides how many processes a query gets that reads past the buffer cache.
            "MAX_IOPS" | "MAX_MBPS" | "MAX_PMBPS" | "LATENCY" | "NUM_PHYSICAL_DISKS" => {
                Self::Streams(&[DirectReads, SmartScans])
            }
            "read_bandwidth" | "rbps" | "rseqiops" => {
                Self::Streams(&[MultiblockReads, DirectReads])
            }
            "innodb_write_io_threads"
            | "write_iops"
            | "wrandiops"
            | "full_page_writes"
            | "innodb_doublewrite" => Self::Streams(&[PageWrites]),
            "write_bandwidth" | "wbps" | "provisioned_bandwidth" => {
                Self::Streams(&[PageWrites, DirectWrites])
            }
            "wseqiops"
            | "wal_init_zero"
            | "wal_sync_method"
            | "commit_delay"
            | "innodb_flush_log_at_trx_commit"
            | "innodb_log_file_write_through"
            | "heartbeat-interval"
            | "election-timeout" => Self::Streams(&[LogWrites]),
            "effective_io_concurrency"
            | "io_workers"
            | "SREADTIM"
            | "IOSEEKTIM"
            | "read_iops"
            | "rrandiops" => Self::Streams(&[RandomReads]),
            _ => Self::Unknown(UNKNOWN),
        }
    }
}

/// Whether the setting matters for the demand.
pub(super) fn relevance(advice: &Advice, demand: &DemandAgainst) -> Relevance {
    // A number of threads is left only if the storage needs no more of them.
    if advice.setting.ends_with("_io_threads") && matches!(advice.decision, Decision::Leave { .. })
    {
        return Relevance {
            matters: Answer::No,
            why: "the default is as good on this storage, whatever the demand".into(),
        };
    }
    match ActsOn::of(advice.setting) {
        ActsOn::Streams(kinds) => by_time(kinds, demand),
        ActsOn::WriteLimit => by_writes(advice, demand),
        ActsOn::Unknown(why) => Relevance {
            matters: Answer::Undecided,
            why: why.into(),
        },
    }
}

/// By the part of the storage's time that I/O of these kinds needs.
fn by_time(kinds: &[DemandKind], demand: &DemandAgainst) -> Relevance {
    let usage = kinds
        .iter()
        .map(|kind| used_by(*kind, demand))
        .fold(Usage::NONE, Usage::plus);
    let words: Vec<&str> = kinds.iter().map(|kind| kind.words()).collect();
    let words = words.join(" and ");
    let low = rounded_percent(usage.low);
    let (matters, needs) = match usage.high {
        _ if usage == Usage::default() => (Answer::Undecided, "an unknown part".into()),
        _ if usage.low >= MATTERS_FROM => (Answer::Yes, format!("at least {low}")),
        Some(high) if high <= MATTERS_NOT_UP_TO => {
            (Answer::No, format!("at most {}", rounded_percent(high)))
        }
        Some(high) => (
            Answer::Undecided,
            format!("{low} to {}", rounded_percent(high)),
        ),
        None => (Answer::Undecided, format!("{low} or more")),
    };
    let why = if usage == Usage::NONE {
        format!("the demand has no {words}")
    } else {
        format!("{words} need {needs} of this storage's time")
    };
    Relevance { matters, why }
}

/// The part of the storage's time that one kind needs. Where the source does not distinguish page
/// writes from direct writes, either may be all of them.
fn used_by(kind: DemandKind, demand: &DemandAgainst) -> Usage {
    let of = |kind| demand.streams.iter().find(|one| one.kind == kind);
    let is_part_of_both = matches!(kind, DemandKind::PageWrites | DemandKind::DirectWrites);
    let both = of(DemandKind::PageAndDirectWrites).filter(|_| is_part_of_both);
    match (of(kind), both) {
        (Some(stream), _) => stream.usage,
        (None, Some(both)) => Usage {
            low: 0.0,
            ..both.usage
        },
        // Only Exadata has smart scans.
        (None, None) if kind == DemandKind::SmartScans || demand.idle.contains(&kind) => {
            Usage::NONE
        }
        (None, None) => Usage::default(),
    }
}

/// By the page writes beside the defaults of a limit.
fn by_writes(advice: &Advice, demand: &DemandAgainst) -> Relevance {
    let own = advice.default.as_ref();
    let newest = own.and_then(ProductDefault::number).unwrap_or(0.0);
    let older = own
        .and_then(ProductDefault::number_before)
        .unwrap_or(newest);
    let (least, greatest) = (newest.min(older), newest.max(older));
    let of = |kind| demand.streams.iter().find(|one| one.kind == kind);
    let both = of(DemandKind::PageAndDirectWrites);
    let range = match (of(DemandKind::PageWrites), both) {
        (Some(pages), _) => Some([pages.per_s; 2]),
        (None, Some(both)) => Some([0.0, both.per_s]),
        (None, None) if demand.idle.contains(&DemandKind::PageWrites) => Some([0.0; 2]),
        (None, None) => None,
    };
    let defaults = if least < greatest {
        format!("the defaults, {least} to {greatest} by version")
    } else {
        format!("the default, {least}")
    };
    let (matters, why) = match range {
        None => (
            Answer::Undecided,
            "the demand does not say how much of it is page writes".into(),
        ),
        Some([_, high]) if high <= least => (
            Answer::No,
            format!(
                "{} page writes on average are not above {defaults}",
                per_second(high)
            ),
        ),
        Some([low, _]) if low > greatest => (
            Answer::Yes,
            format!(
                "{} page writes on average are above {defaults}",
                per_second(low)
            ),
        ),
        Some([low, high]) => {
            let rate = if low < high { "up to " } else { "" };
            let rate = format!("{rate}{}", per_second(high));
            (
                Answer::Undecided,
                format!("{rate} page writes on average, beside {defaults}"),
            )
        }
    };
    Relevance { matters, why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::{AdviceTerms, Product, advise};
    use crate::examples::{self, against as against_example};
    use rigel_model::examples::stream;

    /// Whether `setting` matters for a demand of `per_s` I/Os of 8 KiB of this kind.
    fn matters(setting: &str, product: Product, kind: DemandKind, per_s: f64) -> Relevance {
        // Something must have a rate, or there is no demand.
        let other = if kind == DemandKind::LogWrites {
            DemandKind::RandomReads
        } else {
            DemandKind::LogWrites
        };
        let demand = against_example(vec![
            stream(kind, per_s, Some(8192.0)),
            stream(other, 1.0, Some(4096.0)),
        ]);
        let terms = AdviceTerms {
            demand: Some(&demand),
            ..AdviceTerms::default()
        };
        let (found, header) = (examples::calibration(), examples::header());
        let settings = advise(&found, &header, &[product], terms)
            .remove(0)
            .settings;
        let one = settings.into_iter().find(|one| one.setting == setting);
        let relevance = one.expect("the setting").relevance;
        relevance.expect("a demand was given")
    }

    #[test]
    fn a_setting_matters_as_far_as_its_io_needs_the_storage() {
        // The example's eight servers do some 74,000 random reads of 8 KiB a second.
        let of = |per_s| {
            matters(
                "effective_io_concurrency",
                Product::Postgres,
                DemandKind::RandomReads,
                per_s,
            )
        };
        assert_eq!(of(100.0).matters, Answer::No);
        assert_eq!(of(3000.0).matters, Answer::Undecided);
        assert_eq!(of(30_000.0).matters, Answer::Yes);
        let why = of(30_000.0).why;
        assert!(why.starts_with("random reads need at least"), "{why}");
        let idle = of(0.0);
        assert_eq!(idle.matters, Answer::No);
        assert_eq!(idle.why, "the demand has no random reads");
    }

    #[test]
    fn of_every_setting_it_is_known_which_io_it_acts_on() {
        let (found, header) = (examples::calibration(), examples::header());
        let sections = advise(&found, &header, &Product::ALL, AdviceTerms::default());
        for setting in sections.iter().flat_map(|section| &section.settings) {
            let acts_on = ActsOn::of(setting.setting);
            let is_known = !matches!(acts_on, ActsOn::Unknown(UNKNOWN));
            assert!(is_known, "{}", setting.setting);
        }
    }

    #[test]
    fn what_a_demand_does_not_tell_leaves_it_undecided() {
        let found = matters(
            "effective_io_concurrency",
            Product::Postgres,
            DemandKind::PageWrites,
            100.0,
        );
        assert_eq!(found.matters, Answer::Undecided, "{found:?}");
    }

    #[test]
    fn a_limit_on_writes_matters_if_the_database_writes_more_than_its_default() {
        let of = |product, kind, per_s| matters("innodb_io_capacity", product, kind, per_s).matters;
        let pages = DemandKind::PageWrites;
        assert_eq!(of(Product::Mariadb, pages, 200.0), Answer::No);
        assert_eq!(of(Product::Mariadb, pages, 201.0), Answer::Yes);
        assert_eq!(of(Product::Mysql, pages, 201.0), Answer::Undecided);
        assert_eq!(of(Product::Mysql, pages, 10_001.0), Answer::Yes);
        let both = DemandKind::PageAndDirectWrites;
        assert_eq!(of(Product::Mariadb, both, 200.0), Answer::No);
        assert_eq!(of(Product::Mariadb, both, 201.0), Answer::Undecided);
        assert_eq!(
            of(Product::Mariadb, DemandKind::RandomReads, 201.0),
            Answer::Undecided
        );
    }

    #[test]
    fn a_default_that_is_as_good_matters_for_no_demand() {
        let found = matters(
            "innodb_read_io_threads",
            Product::Mysql,
            DemandKind::MultiblockReads,
            100_000.0,
        );
        assert_eq!(found.matters, Answer::No);
    }
}
