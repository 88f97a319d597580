//! The counters of a whole `MariaDB` or `MySQL` server, and what its sessions wait for.

use super::client::{connect, failed, in_words, version};
use super::connection::MysqlConnection;
use crate::access::{Access, Address};
use crate::pairs::numbers;
use rigel_model::{Dbms, Error, LogKind, failed};
use std::collections::BTreeMap;

/// A connection for statistics.
pub(crate) struct MysqlStatus {
    client: MysqlConnection,
    /// How the server writes its log.
    pub(crate) log: Option<LogKind>,
}

/// Names differ between versions: those that a server does not have are absent.
const COUNTERS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_buffer_pool_reads', \
                        'Innodb_buffer_pool_read_ahead', 'Innodb_data_reads', \
                        'Innodb_data_read', 'Innodb_pages_read', 'Innodb_pages_written', \
                        'Innodb_dblwr_writes', 'Innodb_dblwr_pages_written', \
                        'Innodb_log_writes', 'Innodb_os_log_written', 'Innodb_os_log_fsyncs', \
                        'Innodb_data_fsyncs', 'Innodb_page_size', 'Com_commit', \
                        'Uptime')";

/// Those that say how it writes its log. Versions that do not have one leave it out.
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', \
                        'innodb_flush_method', 'innodb_use_fdatasync', \
                        'innodb_log_file_buffering', 'innodb_log_file_write_through')";

/// Sessions that execute a statement, by their state, without our own and those of replication,
/// which are there also while they have nothing to do.
const WAITS: &str = "SELECT CONCAT('state:', COALESCE(NULLIF(STATE, ''), 'none')), \
                     CAST(COUNT(*) AS CHAR) FROM information_schema.PROCESSLIST WHERE COMMAND NOT \
                     IN ('Sleep', 'Daemon', 'Connect', 'Binlog Dump', 'Binlog Dump GTID', \
                     'Slave_IO', 'Slave_SQL', 'Slave_worker') AND ID <> CONNECTION_ID() GROUP BY 1";

impl MysqlStatus {
    /// Connects; also returns product and version, and the size of a page.
    pub(crate) fn connect(
        access: &Access,
        address: &Address,
    ) -> Result<(Self, String, u32), Error> {
        let mut client = connect(access, address)?;
        let version = version(&mut client, address)?;
        let settings: Vec<(String, String)> = client
            .query(SETTINGS)
            .map_err(|error| failed(address, "report its settings", &error))?;
        let log = Dbms::Mysql.log_of(&settings.into_iter().collect());
        let mut status = Self { client, log };
        let counters = status.counters().map_err(|said| {
            failed!(
                "'{address}' could not report its statistics: {said}",
                "see the server's log"
            )
        })?;
        let block = counters.get("Innodb_page_size").copied().unwrap_or(16_384);
        let block = u32::try_from(block).unwrap_or(16_384);
        status
            .client
            .query_drop(WAITS)
            .map_err(|error| failed(address, "report what its sessions do", &error))?;
        Ok((status, version.name, block))
    }

    pub(crate) fn counters(&mut self) -> Result<BTreeMap<String, u64>, String> {
        self.pairs(COUNTERS)
    }

    pub(crate) fn waits(&mut self) -> Result<BTreeMap<String, u64>, String> {
        self.pairs(WAITS)
    }

    fn pairs(&mut self, statement: &str) -> Result<BTreeMap<String, u64>, String> {
        let rows: Result<Vec<(String, Option<String>)>, _> = self.client.query(statement);
        rows.map(numbers).map_err(|error| in_words(&error))
    }
}
