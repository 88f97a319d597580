//! Parallel loading in chunks over several connections, shared by both kinds of database.
//!
//! Input: tables, and the list of their loaded chunks. Output: every missing chunk is loaded once
//! by one connection. An interrupted load can resume, because each chunk is loaded and recorded in
//! one transaction.

use super::loading::{LoadEvent, LoadListen};
use super::tables::in_words;
use crate::access::Address;
use rigel_model::{Error, Tables, failed, shell_word, usage};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maker in a manifest; tables of another maker are left alone.
pub(super) const MAKER: &str = "rigel sql load";

/// Seed of the mapping from position to key: the same in every load, so that an interrupted load
/// can resume.
pub(super) const ORDER: u64 = 0x5249_4745_4c31;

/// Minimum number of rows for a meaningful correlation.
const ORDERED_ROWS_MIN: u64 = 1000;

/// Maximum correlation of key and position for shuffled keys.
const CORRELATION_MAX: f64 = 0.1;

/// Rows of one table that are loaded in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The table's name.
    pub(super) table: String,
    /// Its first position.
    pub(super) first: u64,
    /// The position after its last.
    pub(super) end: u64,
    /// Number of rows of the table.
    pub(super) of: u64,
}

impl Chunk {
    fn rows(&self) -> u64 {
        self.end - self.first
    }
}

/// The names of all tables with the rows of each. `names` are those of the tables for reads by key, and of
/// the tables for scans.
pub(super) fn named(
    tables: Tables,
    names: [fn(usize) -> String; 2],
) -> impl Iterator<Item = (String, u64)> {
    let sorts = names.into_iter().zip([tables.scale, tables.scan_blocks]);
    sorts.flat_map(move |(name, of)| (0..tables.schemas as usize).map(move |at| (name(at), of)))
}

/// The chunks of `tables`, with `rows` rows each, that are not in `there`.
pub(super) fn missing(
    tables: Tables,
    rows: u64,
    names: [fn(usize) -> String; 2],
    there: &BTreeSet<(String, u64)>,
) -> Vec<Chunk> {
    let step = usize::try_from(rows).expect("a chunk is small");
    let all = named(tables, names).flat_map(|(table, of)| {
        (0..of).step_by(step).map(move |first| Chunk {
            table: table.clone(),
            first,
            end: of.min(first + rows),
            of,
        })
    });
    all.filter(|chunk| !there.contains(&(chunk.table.clone(), chunk.first)))
        .collect()
}

/// A load in progress.
pub(super) struct Loading<'a> {
    chunks: &'a [Chunk],
    /// Index of the next chunk to load.
    next: AtomicUsize,
    /// Rows loaded so far, including earlier loads.
    done: AtomicU64,
    /// Rows loaded by earlier loads.
    pub(super) rows_before: u64,
    /// Total rows.
    pub(super) rows: u64,
    stop: &'a AtomicBool,
    listen: &'a LoadListen<'a>,
}

impl<'a> Loading<'a> {
    /// Prepares the missing `chunks` of `tables`.
    pub(super) fn new(
        tables: Tables,
        chunks: &'a [Chunk],
        stop: &'a AtomicBool,
        listen: &'a LoadListen<'a>,
    ) -> Self {
        let rows = u64::from(tables.schemas) * (tables.scale + tables.scan_blocks);
        let rows_before = rows - chunks.iter().map(Chunk::rows).sum::<u64>();
        let done = AtomicU64::new(rows_before);
        Self {
            chunks,
            next: AtomicUsize::new(0),
            done,
            rows_before,
            rows,
            stop,
            listen,
        }
    }

    /// Loads over `degree` connections. After the first failure each connection stops at the end of
    /// its chunk.
    ///
    /// # Errors
    /// The error of a connection; or the load was stopped.
    pub(super) fn run<C>(
        &self,
        degree: u32,
        connect: impl Fn() -> Result<C, Error> + Sync,
        put: impl Fn(&mut C, &Chunk) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let work = || -> Result<(), Error> {
            let mut connection = connect()?;
            while !self.stop.load(Ordering::Relaxed)
                && let Some(chunk) = self.chunks.get(self.next.fetch_add(1, Ordering::Relaxed))
            {
                put(&mut connection, chunk)?;
                let done = self.done.fetch_add(chunk.rows(), Ordering::Relaxed) + chunk.rows();
                (self.listen)(LoadEvent::Rows {
                    done,
                    of: self.rows,
                });
            }
            Ok(())
        };
        let wrong: Mutex<Option<Error>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..(degree.max(1) as usize).min(self.chunks.len()) {
                scope.spawn(|| {
                    if let Err(error) = work() {
                        self.next.store(self.chunks.len(), Ordering::Relaxed);
                        wrong
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .get_or_insert(error);
                    }
                });
            }
        });
        if let Some(error) = wrong.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(failed!(
                "the load was stopped after {done} of {rows} rows",
                "the same command resumes it; rigel sql drop removes the tables",
                done = self.done.load(Ordering::Relaxed),
                rows = self.rows
            ));
        }
        Ok(())
    }
}

/// Calls `work` for each table number, over up to `degree` connections in parallel.
pub(super) fn each_table<C>(
    tables: Tables,
    degree: u32,
    connect: impl Fn() -> Result<C, Error> + Sync,
    work: impl Fn(&mut C, usize) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let next = AtomicUsize::new(0);
    let schemas = tables.schemas as usize;
    let worker = || -> Result<(), Error> {
        let mut connection = connect()?;
        loop {
            let table = next.fetch_add(1, Ordering::Relaxed);
            if table >= schemas {
                return Ok(());
            }
            work(&mut connection, table)?;
        }
    };
    std::thread::scope(|scope| {
        let degree = (degree.max(1) as usize).min(schemas);
        let workers: Vec<_> = (0..degree).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a loader does not panic"))
    })
}

/// Refuses to load `wanted` if different tables exist.
pub(super) fn refuse_others(address: &Address, found: Tables, wanted: Tables) -> Result<(), Error> {
    if found == wanted {
        return Ok(());
    }
    Err(usage!(
        "'{address}' has {found}, but {wanted} are to be loaded",
        "use the existing tables, or remove them first: rigel sql drop {word}",
        found = in_words(found),
        wanted = in_words(wanted),
        word = shell_word(&address.to_string())
    ))
}

/// Refuses a table whose correlation of key and position is too high. Returns the worse of it and
/// `worst`. Ignores tables of few rows, where it is meaningless.
pub(super) fn refuse_ordered(
    address: &Address,
    name: &str,
    rows: u64,
    correlation: f64,
    worst: f64,
) -> Result<f64, Error> {
    if rows < ORDERED_ROWS_MIN {
        return Ok(worst);
    }
    if correlation.abs() > CORRELATION_MAX {
        return Err(failed!(
            "'{address}' has ordered keys in {name}: correlation {correlation:.3}",
            "remove the tables and load again: rigel sql drop {word}",
            word = shell_word(&address.to_string())
        ));
    }
    Ok(if correlation.abs() > worst.abs() {
        correlation
    } else {
        worst
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: Tables = Tables {
        schemas: 2,
        scale: 20_000,
        scan_blocks: 100,
        block: 8192,
    };

    fn chunks(there: &[(&str, u64)]) -> Vec<Chunk> {
        let there = there
            .iter()
            .map(|(name, first)| ((*name).to_string(), *first))
            .collect();
        missing(
            TABLES,
            8192,
            [|table| format!("b{table}"), |table| format!("s{table}")],
            &there,
        )
    }

    #[test]
    fn chunks_hold_every_row_once_but_those_that_are_there() {
        let all = chunks(&[]);
        assert_eq!(
            (all.len(), all.iter().map(Chunk::rows).sum::<u64>()),
            (2 * 3 + 2, 2 * 20_100)
        );
        assert_eq!(
            all[2],
            Chunk {
                table: "b0".into(),
                first: 16_384,
                end: 20_000,
                of: 20_000
            }
        );
        let rest = chunks(&[("b0", 16_384), ("s1", 0), ("s1", 8192)]);
        assert_eq!(all.iter().filter(|chunk| !rest.contains(chunk)).count(), 2);
    }

    #[test]
    fn every_chunk_is_put_once_and_the_first_failure_ends_all() {
        let (all, stop) = (chunks(&[]), AtomicBool::new(false));
        let put: Mutex<Vec<Chunk>> = Mutex::default();
        let loading = Loading::new(TABLES, &all, &stop, &|_| ());
        let keep = |(): &mut (), chunk: &Chunk| {
            put.lock().unwrap().push(chunk.clone());
            Ok(())
        };
        loading.run(3, || Ok(()), keep).unwrap();
        let mut put = put.into_inner().unwrap();
        put.sort_by_key(|chunk| (chunk.table.clone(), chunk.first));
        assert_eq!(put, all);

        let tried = AtomicUsize::new(0);
        let fail = |(): &mut (), _: &Chunk| {
            tried.fetch_add(1, Ordering::Relaxed);
            Err(failed!("full", ""))
        };
        let loading = Loading::new(TABLES, &all, &stop, &|_| ());
        assert_eq!(loading.run(1, || Ok(()), fail), Err(failed!("full", "")));
        assert_eq!(tried.into_inner(), 1);

        stop.store(true, Ordering::Relaxed);
        let stopped = Loading::new(TABLES, &all, &stop, &|_| ())
            .run(2, || Ok(()), |(), _| Ok(()))
            .unwrap_err();
        assert!(
            stopped.to_string().contains("after 0 of 40200 rows"),
            "{stopped}"
        );
    }
}
