//! The products that advice is given for.

use serde::Serialize;

/// A product that advice is given for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// `PostgreSQL`.
    Postgres,
    /// `MySQL`.
    Mysql,
    /// `MariaDB`.
    Mariadb,
    /// Oracle Database.
    Oracle,
    /// `ScyllaDB`, and most else that is built on Seastar.
    Scylla,
    /// Redpanda, which is, too.
    Redpanda,
    /// etcd.
    Etcd,
    /// `CockroachDB`.
    Cockroach,
    /// The kernel's own model of I/O cost.
    Linux,
}

impl Product {
    /// All products, in output order.
    pub const ALL: [Product; 9] = [
        Self::Postgres,
        Self::Mysql,
        Self::Mariadb,
        Self::Oracle,
        Self::Scylla,
        Self::Redpanda,
        Self::Etcd,
        Self::Cockroach,
        Self::Linux,
    ];

    /// The product's name as its makers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
            Self::Mariadb => "MariaDB",
            Self::Oracle => "Oracle",
            Self::Scylla => "ScyllaDB (Seastar)",
            Self::Redpanda => "Redpanda (Seastar)",
            Self::Etcd => "etcd",
            Self::Cockroach => "CockroachDB",
            Self::Linux => "Linux",
        }
    }

    /// The comment marker of the language in which its statements are written.
    pub fn comment(self) -> &'static str {
        match self {
            Self::Postgres | Self::Mysql | Self::Oracle | Self::Cockroach => "--",
            Self::Mariadb | Self::Scylla | Self::Redpanda | Self::Etcd | Self::Linux => "#",
        }
    }
}
