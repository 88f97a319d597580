//! The demand that a command names: a run, or a file that `rigel import` reads.

use super::import;
use super::output::remark;
use super::report::warn_if_cut;
use super::watch::is_watch;
use crate::analyse::{WatchDemands, demands, imported_demands};
use crate::import::{Source, read, table::Columns};
use crate::model::{Demand, Error};
use crate::record::journal;
use std::path::Path;

/// The demand of the database, instance or device `of` at `path`; of the first, with a remark that
/// names the others, if none is asked for.
pub(super) fn chosen(path: &Path, of: Option<&str>) -> Result<Demand, Error> {
    let all = demands_of(path)?;
    let names: Vec<String> = all.iter().map(|demand| demand.database.clone()).collect();
    let mut all = all.into_iter();
    if let Some(name) = of {
        return all.find(|demand| demand.database == *name).ok_or_else(|| {
            Error::usage(
                format!("'{}' has no demand of '{name}'", path.display()),
                format!("give one of: {}", names.join("; ")),
            )
        });
    }
    if let [first, others @ ..] = &names[..]
        && !others.is_empty()
    {
        remark(&format!(
            "the demand of {first}; --of selects another: {}\n",
            others.join("; ")
        ));
    }
    all.next().ok_or_else(|| no_demand(path))
}

/// The demands in a run, or in a file that `rigel import` reads.
fn demands_of(path: &Path) -> Result<Vec<Demand>, Error> {
    let header = journal::header(path);
    let found = if header.as_ref().is_ok_and(is_watch) {
        of_watch(path)?
    } else if path.is_dir() || header.is_ok() {
        let run = journal::read(path)?;
        warn_if_cut(run.cut);
        demands(&run)
    } else {
        let (name, text) = (path.display().to_string(), import::text_of(path)?);
        let source = Source {
            name: &name,
            text: &text,
        };
        imported_demands(&read(&[source], None, &Columns::default())?)
    };
    if found.is_empty() {
        return Err(no_demand(path));
    }
    Ok(found)
}

/// The demands of a watch, whose journal is read interval by interval: it may be of weeks.
fn of_watch(path: &Path) -> Result<Vec<Demand>, Error> {
    let mut demands = WatchDemands::default();
    let (_, cut) = journal::scan_watched(path, &mut |header, interval| {
        demands.add(header, &interval);
    })?;
    warn_if_cut(cut);
    Ok(demands.finish())
}

fn no_demand(path: &Path) -> Error {
    Error::usage(
        format!(
            "'{}' does not say what a database asks of its storage",
            path.display()
        ),
        "give an AWR or Statspack report, a capture of AWR-Miner, output of iostat -x, a csv file \
         with rates of reads, or a run of rigel watch, import or sql",
    )
}
