//! The values that the products use if nobody sets them, by version: what is measured is decided
//! against these.
//!
//! Sources: those of the settings, which `docs/methods/advise.md` names.

use super::product::Product;
use serde::Serialize;

/// The value of a setting that nobody has set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ProductDefault {
    /// The value of the newest version, as it is written in a configuration.
    pub value: String,
    /// The version that brought it; `None` if all versions have it.
    pub since: Option<&'static str>,
    /// The value of the versions before `since`; `None` if these do not have the setting.
    pub before: Option<&'static str>,
}

impl ProductDefault {
    /// The default of a setting on a machine with this number of CPUs; `None` if the product has none.
    pub(super) fn of(product: Product, setting: &str, cpus: u32) -> Option<Self> {
        use Product::{Etcd, Mariadb, Mysql, Oracle, Postgres};
        let always = |value: &str| Self {
            value: value.into(),
            since: None,
            before: None,
        };
        let since = |value: &str, version, before| Self {
            value: value.into(),
            since: Some(version),
            before,
        };
        Some(match (product, setting) {
            (Postgres, "effective_io_concurrency") => since("16", "18", Some("1")),
            (Postgres, "maintenance_io_concurrency") => since("16", "18", Some("10")),
            (Postgres, "io_workers") => since("3", "18", None),
            (Postgres, "wal_sync_method") => always("fdatasync"),
            (Postgres, "wal_init_zero") => since("on", "12", None),
            (Postgres, "commit_delay") => always("0"),
            (Postgres, "full_page_writes") => always("on"),
            (Mysql | Mariadb, "innodb_flush_log_at_trx_commit") => always("1"),
            (Mysql | Mariadb, "innodb_doublewrite") => always("ON"),
            (Mariadb, "innodb_log_file_write_through") => since("OFF", "11.0", None),
            (Postgres, "io_combine_limit") => since("128kB", "17", None),
            // Twice innodb_io_capacity; before 8.4 at least 2000.
            (Mysql, "innodb_io_capacity_max") => since("20000", "8.4", Some("2000")),
            (Mysql, "innodb_io_capacity") => since("10000", "8.4", Some("200")),
            // Half the CPUs, at least 4.
            (Mysql, "innodb_read_io_threads") if cpus / 2 > 4 => {
                since(&(cpus / 2).to_string(), "8.4", Some("4"))
            }
            (Mariadb, "innodb_io_capacity_max") => always("2000"),
            (Mariadb, "innodb_io_capacity") => always("200"),
            (Postgres, "random_page_cost")
            | (Mysql | Mariadb, "innodb_read_io_threads" | "innodb_write_io_threads") => {
                always("4")
            }
            (Etcd, "heartbeat-interval") => always("100"),
            (Etcd, "election-timeout") => always("1000"),
            // Auto DOP assumes it if nothing was calibrated.
            (Oracle, "MAX_PMBPS") => since("200", "12.1", None),
            (Oracle, "IOSEEKTIM") => always("10"),
            (Oracle, "IOTFRSPEED") => always("4096"),
            _ => return None,
        })
    }

    /// The newest value as a number; `None` if it has a unit.
    pub(super) fn number(&self) -> Option<f64> {
        self.value.parse().ok()
    }

    /// The older value as a number.
    pub(super) fn number_before(&self) -> Option<f64> {
        self.before?.parse().ok()
    }

    /// `16 (1 before 18)`, `3 (since 18)` or `4`.
    pub fn words(&self) -> String {
        let value = &self.value;
        match (self.since, self.before) {
            (Some(version), Some(before)) => format!("{value} ({before} before {version})"),
            (Some(version), None) => format!("{value} (since {version})"),
            (None, _) => value.clone(),
        }
    }
}
