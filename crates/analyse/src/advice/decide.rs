//! How settings are decided on.
//!
//! Input: the product's default and the range that was measured. Output: one decision with its
//! reason, and the statement that follows. A default within the range is left: nothing that was
//! measured is certainly better.

use super::decision::Decision;
use super::default::ProductDefault;
use super::setting::{Advice, Ground};
use std::cmp::Ordering;

impl Advice {
    /// Where the default lies beside the measured range: `Less` is below it, `Equal` within it.
    /// `None` if there is no default or no range.
    pub(super) fn default_beside_range(&self) -> Option<Ordering> {
        self.beside_range(self.default.as_ref()?.number()?)
    }

    fn beside_range(&self, value: f64) -> Option<Ordering> {
        let [low, high] = self.range_in_numbers()?;
        Some(if value < low {
            Ordering::Less
        } else if value > high {
            Ordering::Greater
        } else {
            Ordering::Equal
        })
    }

    /// The range as it is written, so that what is decided is what is read.
    fn range_in_numbers(&self) -> Option<[f64; 2]> {
        let [low, high] = self.range.as_ref()?;
        Some([low.parse().ok()?, high.parse().ok()?])
    }

    /// To leave the default because it lies within the range.
    pub(super) fn leave_within(&self, value: &str) -> Decision {
        let is_worse = self.is_older_default_outside();
        self.leave_since("the default is within what was measured", is_worse, value)
    }

    /// True if the default of older versions lies outside the range.
    pub(super) fn is_older_default_outside(&self) -> bool {
        let older = self
            .default
            .as_ref()
            .and_then(ProductDefault::number_before);
        let beside = older.and_then(|older| self.beside_range(older));
        beside.is_some_and(|beside| beside != Ordering::Equal)
    }

    /// To leave the default because of `why`; if that of older versions is worse, to set `value` in
    /// these.
    pub(super) fn leave_since(&self, why: &str, is_older_worse: bool, value: &str) -> Decision {
        let version = self.default.as_ref().and_then(|own| own.since);
        match version.filter(|_| is_older_worse) {
            None => Decision::leave(why),
            Some(version) => Decision::Leave {
                why: format!("{why}; before {version} set {value}"),
                before: Some(value.into()),
            },
        }
    }

    /// The same advice, to set the value that was measured, for settings without a default. Not measured if it has
    /// no range.
    pub(super) fn set_as_measured(
        self,
        ground: &Ground,
        why: &str,
        statement: impl Fn(&str) -> String,
    ) -> Self {
        let Some(value) = self.value.clone() else {
            return self;
        };
        if self.range.is_none() {
            let known = format!("{value} was measured, too briefly for an interval");
            let unvalued = Self {
                value: None,
                estimate: None,
                ..self
            };
            return unvalued.not_measured(known, ground.command("--for 15min"));
        }
        self.decided(Decision::set(value, why), false, statement)
    }

    /// The same advice with this decision and the statement that follows from it, written by
    /// `statement`; a comment if `is_harmful`, or for older versions only.
    pub(super) fn decided(
        self,
        decision: Decision,
        is_harmful: bool,
        statement: impl Fn(&str) -> String,
    ) -> Self {
        let comment = self.database.comment();
        let statement = match &decision {
            Decision::Set { value, .. } if is_harmful => {
                Some(format!("{comment} {}", statement(value)))
            }
            Decision::Set { value, .. } => Some(statement(value)),
            Decision::Leave {
                before: Some(value),
                ..
            } => {
                let version = self.default.as_ref().and_then(|own| own.since);
                version.map(|version| format!("{comment} before {version}: {}", statement(value)))
            }
            Decision::Leave { .. } | Decision::NotMeasured => None,
        };
        Self {
            decision,
            statement,
            ..self
        }
    }

    /// True unless the default is left in all versions.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.decision, Decision::Leave { before: None, .. })
    }

    /// Leaves the default in all versions because of `why`, whatever was decided before.
    pub(super) fn left(&mut self, why: String) {
        self.decision = Decision::leave(why);
        self.statement = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::plan_crossing::PlanTest;
    use crate::advice::{AdviceTerms, Product, advise};
    use crate::conclusion::{RunTrust, TrustLevel};
    use crate::examples::{self, against, at, calibration};
    use crate::{Calibration, Estimate, Limits};
    use rigel_model::DemandKind;
    use rigel_model::examples::stream;

    fn of(calibration: &Calibration, product: Product, name: &str, terms: AdviceTerms) -> Advice {
        let section = advise(calibration, &examples::header(), &[product], terms).remove(0);
        let setting = section.settings.into_iter().find(|one| one.setting == name);
        setting.expect(name)
    }

    fn decided(calibration: &Calibration, product: Product, name: &str) -> Decision {
        of(calibration, product, name, AdviceTerms::default()).decision
    }

    /// What is decided on the depth of reads, if the knee lies between these depths.
    fn at_knee(low: f64, high: f64) -> Decision {
        let mut found = calibration();
        let knee = found.curve.knee.as_mut().unwrap();
        (knee.range.low, knee.range.high) = (low, Some(high));
        decided(&found, Product::Postgres, "effective_io_concurrency")
    }

    fn value(decision: &Decision) -> Option<&str> {
        match decision {
            Decision::Set { value, .. } => Some(value),
            Decision::Leave { .. } | Decision::NotMeasured => None,
        }
    }

    /// The value for the versions before the newest default.
    fn value_before(decision: &Decision) -> Option<&str> {
        match decision {
            Decision::Leave { before, .. } => before.as_deref(),
            Decision::Set { .. } | Decision::NotMeasured => None,
        }
    }

    #[test]
    fn a_default_within_the_measured_range_is_left() {
        for (low, high) in [(16.0, 256.0), (2.0, 16.0), (1.0, 64.0)] {
            let decision = at_knee(low, high);
            assert!(matches!(decision, Decision::Leave { .. }), "{decision:?}");
        }
    }

    #[test]
    fn a_default_outside_the_range_gives_way_to_its_low_end() {
        assert_eq!(value(&at_knee(17.0, 256.0)), Some("17"));
        assert_eq!(value(&at_knee(5.0, 15.0)), Some("5"));
    }

    #[test]
    fn a_default_beyond_all_measured_depths_is_left_if_throughput_still_rose() {
        let mut found = calibration();
        found.curve.knee.as_mut().unwrap().bounded_above = false;
        let decision = decided(&found, Product::Postgres, "effective_io_concurrency");
        assert!(decision.why().contains("still rose"), "{decision:?}");
        assert_eq!(value(&decision), None);
    }

    #[test]
    fn older_versions_whose_default_is_worse_have_a_value_as_a_comment() {
        let decision = at_knee(9.0, 256.0);
        assert_eq!(value_before(&decision), Some("9"));
        assert_eq!(
            decision.why(),
            "the default is within what was measured; before 18 set 9"
        );
        assert_eq!(value_before(&at_knee(1.0, 256.0)), None);
        let found = calibration();
        let capacity = of(
            &found,
            Product::Mysql,
            "innodb_io_capacity",
            AdviceTerms::default(),
        );
        assert_eq!(
            capacity.statement.as_deref(),
            Some("-- before 8.4: SET PERSIST innodb_io_capacity = 10000;")
        );
    }

    #[test]
    fn a_cost_is_set_only_if_the_default_is_too_high_without_any_cache() {
        let name = "random_page_cost";
        let mut found = calibration();
        // Seven times a sequential page: as much as 90 % of it may be a cache's.
        let higher = decided(&found, Product::Postgres, name);
        assert!(matches!(higher, Decision::Leave { .. }), "{higher:?}");
        found.large = Some(at(8, 128 << 10, 8000.0));
        let random = |cost: f64| Some(at(8, 8192, 8000.0 * 16.0 / cost));
        found.at_knee = random(2.0);
        assert_eq!(
            value(&decided(&found, Product::Postgres, name)),
            Some("2.0")
        );
        found.at_knee = random(4.0);
        let within = decided(&found, Product::Postgres, name);
        assert_eq!(within.why(), "the default is within what was measured");
        found.at_knee.as_mut().unwrap().iops.interval = None;
        let brief = decided(&found, Product::Postgres, name);
        assert!(brief.why().contains("too briefly"), "{brief:?}");
    }

    #[test]
    fn plans_decide_on_the_cost_in_both_directions() {
        let found = calibration();
        let of_plans = |cost: Option<f64>| {
            let test = PlanTest {
                server: "PostgreSQL 15".into(),
                table_rows: 1000,
                block: 8192,
                times: Vec::new(),
                costs: Vec::new(),
                cached: [Some(0.0); 2],
                crossing: cost.map(|cost| {
                    Estimate::new(
                        cost,
                        Some(Limits {
                            low: cost - 0.5,
                            high: Some(cost + 0.5),
                        }),
                    )
                }),
                why_not: None,
            };
            let terms = AdviceTerms {
                plans: Some(&test),
                ..AdviceTerms::default()
            };
            of(&found, Product::Postgres, "random_page_cost", terms).decision
        };
        assert_eq!(value(&of_plans(Some(6.0))), Some("6.0"));
        assert_eq!(value(&of_plans(Some(2.0))), Some("2.0"));
        let within = of_plans(Some(4.2));
        assert_eq!(within.why(), "the default is within what was measured");
        let none = of_plans(None);
        assert!(none.why().contains("plans gave no cost"), "{none:?}");
    }

    #[test]
    fn workers_are_at_most_a_quarter_of_the_cpus_and_never_fewer_than_the_default() {
        let found = calibration();
        for (cpus, expected) in [(2, None), (12, None), (16, Some("4")), (32, Some("5"))] {
            let mut header = examples::header();
            header.host.cpus = cpus;
            let terms = AdviceTerms::default();
            let section = advise(&found, &header, &[Product::Postgres], terms).remove(0);
            let workers = section
                .settings
                .iter()
                .find(|one| one.setting == "io_workers");
            let decision = &workers.unwrap().decision;
            assert_eq!(value(decision), expected, "{cpus}: {decision:?}");
        }
    }

    #[test]
    fn a_limit_on_writes_is_lowered_only_if_the_storage_cannot_do_the_default() {
        let name = "innodb_io_capacity_max";
        let mut found = calibration();
        for (writes, expected) in [
            (30_000.0, None),
            (15_000.0, Some("7500")),
            (60_000.0, Some("30000")),
        ] {
            found.writes = Some(at(16, 16 << 10, writes));
            let decision = decided(&found, Product::Mysql, name);
            assert_eq!(value(&decision), expected, "{writes}: {decision:?}");
        }
        found.writes.as_mut().unwrap().iops.interval = None;
        let brief = decided(&found, Product::Mysql, name);
        assert!(brief.why().contains("too briefly"), "{brief:?}");
    }

    #[test]
    fn what_was_not_measured_has_no_decision_but_with_oracle_it_is_left() {
        let mut found = calibration();
        found.writes = None;
        found.stream = None;
        found.large_low_load = None;
        found.large = None;
        for (product, name) in [
            (Product::Mariadb, "innodb_io_capacity"),
            (Product::Postgres, "io_combine_limit"),
            (Product::Scylla, "write_iops"),
        ] {
            assert_eq!(
                decided(&found, product, name),
                Decision::NotMeasured,
                "{name}"
            );
        }
        for name in ["MAX_PMBPS", "SREADTIM"] {
            let left = decided(&found, Product::Oracle, name);
            assert!(matches!(left, Decision::Leave { .. }), "{name}: {left:?}");
        }
    }

    #[test]
    fn what_a_demand_does_not_need_is_left_but_a_file_stays_whole() {
        let demand = against(vec![
            stream(DemandKind::RandomReads, 100.0, Some(8192.0)),
            stream(DemandKind::LogWrites, 1.0, Some(4096.0)),
        ]);
        let terms = AdviceTerms {
            demand: Some(&demand),
            ..AdviceTerms::default()
        };
        let found = calibration();
        let reads = of(&found, Product::Postgres, "effective_io_concurrency", terms);
        assert_eq!(
            reads.decision,
            Decision::leave(reads.relevance.unwrap().why)
        );
        assert_eq!(reads.statement, None);
        let file = of(&found, Product::Scylla, "read_iops", terms);
        assert_eq!(value(&file.decision), Some("73900"));
    }

    #[test]
    fn figures_that_are_not_to_be_used_change_nothing() {
        let trust = RunTrust {
            level: TrustLevel::DoNotUse,
            ..RunTrust::default()
        };
        let terms = AdviceTerms {
            trust: Some(&trust),
            ..AdviceTerms::default()
        };
        for section in advise(&calibration(), &examples::header(), &Product::ALL, terms) {
            for setting in &section.settings {
                assert_eq!(value(&setting.decision), None, "{}", setting.setting);
                assert_eq!(setting.statement, None, "{}", setting.setting);
            }
        }
    }

    #[test]
    fn a_default_without_a_range_lies_nowhere() {
        let mut advice = of(
            &calibration(),
            Product::Postgres,
            "effective_io_concurrency",
            AdviceTerms::default(),
        );
        advice.range = Some(["16".into(), "17".into()]);
        assert_eq!(advice.default_beside_range(), Some(Ordering::Equal));
        advice.range = None;
        assert_eq!(advice.default_beside_range(), None);
    }
}
