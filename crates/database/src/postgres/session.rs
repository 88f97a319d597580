//! The operations of a `PostgreSQL` session: which statement an operation is, and what its answer
//! says.
//!
//! Input: operations whose position is a row number over all tables. Output: whether the statement
//! touched exactly the requested rows.

use super::client::{COLUMN_CHARS, COLUMNS};
use super::protocol::{
    PostgresAnswer, PostgresCall, PostgresClient, PostgresError, PostgresStatement, array, types,
};
use crate::tables::{SCHEMA, blocks_table, scan_table};
use rigel_model::workload::Permutation;
use rigel_model::{Cause, Fault, Kind, Op, Outcome, ReadWay, Redo, SqlWork, Tables};
use std::fmt::Write as _;

/// Blocks per file of a table; a larger table continues in further files.
pub(super) const SEGMENT_BLOCKS: u64 = 131_072;

/// The operations on one table, prepared on first use.
#[derive(Default, Clone)]
struct PostgresStatements {
    read: Option<PostgresCall>,
    update: Option<PostgresCall>,
    scan: Option<PostgresCall>,
    read_file: Option<PostgresStatement>,
}

/// A connection, and the statements of its operations.
pub(super) struct PostgresSession<'a> {
    pub(super) client: PostgresClient,
    work: SqlWork,
    /// First file of each table, for [`ReadWay::File`].
    files: &'a [String],
    tables: Vec<PostgresStatements>,
    /// The last call of a statement whose values have no fixed length.
    made: Option<PostgresCall>,
    /// Text that an update writes. It must change each time, otherwise the database would log
    /// nothing.
    text: String,
    updates: u64,
    /// Maps keys to blocks for [`ReadWay::File`], practically at random.
    order: Permutation,
}

impl<'a> PostgresSession<'a> {
    /// A session for `work` on a connection that has its settings.
    pub(super) fn new(client: PostgresClient, work: SqlWork, files: &'a [String]) -> Self {
        let Tables { schemas, scale, .. } = work.tables;
        Self {
            client,
            work,
            files,
            tables: vec![PostgresStatements::default(); schemas as usize],
            made: None,
            text: String::with_capacity(COLUMN_CHARS),
            updates: rigel_device::clock::fresh_seed(),
            order: Permutation::new(scale, 0),
        }
    }

    /// Executes an operation, and waits for its answer.
    ///
    /// # Errors
    /// The connection is lost.
    #[inline]
    pub(super) fn execute(&mut self, op: Op) -> Result<Outcome, Fault> {
        let answered = match self.prepare(op) {
            Ok(()) => self
                .client
                .run(call(&self.tables, self.made.as_ref(), op, self.work)),
            Err(error) => Err(error),
        };
        self.judge(op.kind, answered)
    }

    /// Sends an operation, and does not wait for its answer.
    ///
    /// # Errors
    /// The server refuses the statement, or the connection is lost.
    pub(super) fn start(&mut self, op: Op) -> Result<(), PostgresError> {
        self.prepare(op)?;
        let call = call(&self.tables, self.made.as_ref(), op, self.work);
        self.client.start(call)
    }

    /// Adds an operation, which must be [prepared](Self::prepare), to what is sent next.
    pub(super) fn queue(&mut self, op: Op) {
        let call = call(&self.tables, self.made.as_ref(), op, self.work);
        self.client.queue(call);
    }

    /// Decides whether an operation of this kind is done, failed, or broke the session.
    ///
    /// # Errors
    /// The connection is lost.
    #[inline]
    pub(super) fn judge(
        &self,
        kind: Kind,
        answered: Result<PostgresAnswer, PostgresError>,
    ) -> Result<Outcome, Fault> {
        let error = match answered {
            Ok(answer) => {
                let rows = match kind {
                    Kind::Write | Kind::Log => answer.rows,
                    Kind::Read | Kind::Scan => counted(answer.number),
                };
                return Ok(if rows == self.work.blocks(kind) {
                    Outcome::Done
                } else {
                    Outcome::Failed(Cause::Rows)
                });
            }
            Err(error) => error,
        };
        match error.state() {
            // Class 57P: the server shuts down, or this session was terminated.
            Some(state) if !self.client.is_closed() && !state.starts_with(b"57P") => {
                Ok(Outcome::Failed(Cause::SqlState(state)))
            }
            _ => Err(Fault(format!(
                "the connection was lost: {}",
                error.in_words()
            ))),
        }
    }

    /// True if the server has prepared the statement of `op`, so that [`prepare`](Self::prepare)
    /// asks nothing of it.
    pub(super) fn is_prepared(&self, op: Op) -> bool {
        let (table, _) = self.place(op);
        let statements = &self.tables[table];
        match op.kind {
            Kind::Read if self.work.way == ReadWay::File => statements.read_file.is_some(),
            Kind::Read => statements.read.is_some(),
            Kind::Write | Kind::Log => statements.update.is_some(),
            Kind::Scan => statements.scan.is_some(),
        }
    }

    /// Makes the call of an operation. Prepares its statement on first use, with one round trip.
    ///
    /// # Errors
    /// The server refuses the statement, or the connection is lost.
    pub(super) fn prepare(&mut self, op: Op) -> Result<(), PostgresError> {
        match op.kind {
            Kind::Read if self.work.way == ReadWay::File => self.read_file(op),
            Kind::Read if self.work.way == ReadWay::Prefetch => self.read_list(op),
            Kind::Read => self.read(op),
            Kind::Write | Kind::Log => self.update(op),
            Kind::Scan => self.scan(op),
        }
    }

    /// Number of the table, and the first key of the operation in it.
    #[expect(
        clippy::cast_possible_wrap,
        reason = "a table has fewer than 2^63 rows"
    )]
    fn place(&self, op: Op) -> (usize, i64) {
        let scale = self.work.tables.scale;
        let table = table_of(op, self.work);
        (table, (op.position % scale) as i64)
    }

    fn read(&mut self, op: Op) -> Result<(), PostgresError> {
        let (table, first) = self.place(op);
        let end = first + i64::from(self.work.read_rows);
        let call = match &mut self.tables[table].read {
            Some(call) => call,
            none => {
                let types = [types::BIGINT; 2];
                let statement = self.client.prepare(&read_statement(table), &types)?;
                none.insert(statement.call(&[&[0; 8], &[0; 8]]))
            }
        };
        call.set(0, &first.to_be_bytes());
        call.set(1, &end.to_be_bytes());
        Ok(())
    }

    /// Reads the same rows as [`read`](Self::read), named one by one: so the server knows all blocks
    /// before it reads the first.
    fn read_list(&mut self, op: Op) -> Result<(), PostgresError> {
        let (table, first) = self.place(op);
        let keys: Vec<[u8; 8]> = (first..first + i64::from(self.work.read_rows))
            .map(i64::to_be_bytes)
            .collect();
        let list = array(types::BIGINT, &keys);
        let call = match &mut self.tables[table].read {
            Some(call) => call,
            none => {
                let text = list_statement(table);
                let statement = self.client.prepare(&text, &[types::BIGINTS])?;
                none.insert(statement.call(&[&list]))
            }
        };
        call.set(0, &list);
        Ok(())
    }

    fn update(&mut self, op: Op) -> Result<(), PostgresError> {
        let (table, first) = self.place(op);
        let end = first + i64::from(self.work.update_rows);
        let call = match &mut self.tables[table].update {
            Some(call) => call,
            none => {
                let text = update_statement(table, self.work.redo);
                let types = [types::BIGINT, types::BIGINT, types::TEXT];
                let statement = self.client.prepare(&text, &types)?;
                none.insert(statement.call(&[&[0; 8], &[0; 8], &[b'x'; COLUMN_CHARS]]))
            }
        };
        self.updates += 1;
        self.text.clear();
        let _ = write!(self.text, "{:0>width$}", self.updates, width = 20);
        let _ = write!(
            self.text,
            "{:x>width$}",
            op.position,
            width = COLUMN_CHARS - 20
        );
        call.set(0, &first.to_be_bytes());
        call.set(1, &end.to_be_bytes());
        call.set(2, self.text.as_bytes());
        Ok(())
    }

    fn scan(&mut self, op: Op) -> Result<(), PostgresError> {
        let (table, _) = self.place(op);
        if self.tables[table].scan.is_none() {
            let text = format!("SELECT count(c1) FROM {SCHEMA}.{}", scan_table(table));
            self.tables[table].scan = Some(self.client.prepare(&text, &[])?.call(&[]));
        }
        Ok(())
    }

    /// Reads the blocks of the rows as pieces of the table's files, bypassing the buffer cache.
    fn read_file(&mut self, op: Op) -> Result<(), PostgresError> {
        let (table, first) = self.place(op);
        let Tables { scale, block, .. } = self.work.tables;
        let statement = match &mut self.tables[table].read_file {
            Some(statement) => statement,
            none => {
                let text = format!(
                    "SELECT count(length(pg_read_binary_file(f, o, {block}))) FROM unnest($1, $2) \
                     AS b(f, o)"
                );
                none.insert(
                    self.client
                        .prepare(&text, &[types::TEXTS, types::BIGINTS])?,
                )
            }
        };
        let (mut names, mut offsets) = (Vec::new(), Vec::new());
        for row in 0..u64::from(self.work.read_rows) {
            let block_number = self.order.of((first.unsigned_abs() + row) % scale);
            let (segment, within) = (block_number / SEGMENT_BLOCKS, block_number % SEGMENT_BLOCKS);
            names.push(segment_of(&self.files[table], segment));
            offsets.push((within * u64::from(block)).to_be_bytes());
        }
        let call = statement.call(&[&array(types::TEXT, &names), &array(types::BIGINT, &offsets)]);
        self.made = Some(call);
        Ok(())
    }
}

/// Number of the table of an operation.
fn table_of(op: Op, work: SqlWork) -> usize {
    usize::try_from(op.position / work.tables.scale).expect("tables are few")
}

/// The call that [`PostgresSession::prepare`] made for `op`.
#[inline]
fn call<'a>(
    tables: &'a [PostgresStatements],
    made: Option<&'a PostgresCall>,
    op: Op,
    work: SqlWork,
) -> &'a PostgresCall {
    let statements = &tables[table_of(op, work)];
    match op.kind {
        Kind::Read if work.way == ReadWay::File => made,
        Kind::Read => statements.read.as_ref(),
        Kind::Write | Kind::Log => statements.update.as_ref(),
        Kind::Scan => statements.scan.as_ref(),
    }
    .expect("the operation was prepared")
}

/// A count of rows; 0 if the server sent none, which is then not the wanted number.
fn counted(number: Option<i64>) -> u64 {
    number
        .and_then(|rows| u64::try_from(rows).ok())
        .unwrap_or(0)
}

/// Counts a column other than the key, so that the row itself is visited.
pub(super) fn read_statement(table: usize) -> String {
    format!(
        "SELECT count(c1) FROM {SCHEMA}.{} WHERE id >= $1 AND id < $2",
        blocks_table(table)
    )
}

/// The same with a list of keys.
pub(super) fn list_statement(table: usize) -> String {
    format!(
        "SELECT count(c1) FROM {SCHEMA}.{} WHERE id = ANY ($1)",
        blocks_table(table)
    )
}

fn update_statement(table: usize, redo: Redo) -> String {
    let columns: Vec<String> = match redo {
        Redo::Lite => vec!["c1 = $3".into(), format!("c{COLUMNS} = $3")],
        Redo::Heavy => (1..=COLUMNS)
            .map(|number| format!("c{number} = $3"))
            .collect(),
    };
    format!(
        "UPDATE {SCHEMA}.{} SET {} WHERE id >= $1 AND id < $2",
        blocks_table(table),
        columns.join(", ")
    )
}

/// The file of a table's segment, derived from its first file.
pub(super) fn segment_of(first: &str, segment: u64) -> String {
    if segment == 0 {
        first.into()
    } else {
        format!("{first}.{segment}")
    }
}
