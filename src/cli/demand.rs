//! The demand that a command names: a run, or a file that `rigel import` reads.

use super::import;
use super::output::remark;
use super::report::warn_if_cut;
use rigel_analyse::{WatchDemands, demands, imported_demands};
use rigel_import::{Source, csv_columns::Columns, read};
use rigel_model::record::journal::Header;
use rigel_model::record::journal::MeasuredLine;
use rigel_model::record::{Imported, journal};
use rigel_model::{Demand, Error, spoken, usage};
use std::path::Path;

/// What was read: demands, and the reports that they come from.
#[derive(Default)]
pub(super) struct Asked {
    /// The demands.
    pub(super) demands: Vec<Demand>,
    /// The figures of other tools; empty for what Rigel recorded.
    pub(super) imported: Vec<Imported>,
}

impl Asked {
    /// Only this demand.
    fn only(self, chosen: Demand) -> Self {
        Self {
            demands: vec![chosen],
            ..self
        }
    }

    fn and(mut self, other: Self) -> Self {
        self.demands.extend(other.demands);
        self.imported.extend(other.imported);
        self
    }
}

/// The demand of the database, instance or device `of` at `path`; of the first, with a remark that
/// names the others, if none is asked for.
pub(super) fn chosen(path: &Path, of: Option<&str>) -> Result<Asked, Error> {
    let asked = demands_of(path)?;
    let chosen = chosen_of(&asked.demands, path, of)?;
    Ok(asked.only(chosen))
}

/// Number of other demands that are named where none is asked for.
const OTHERS_NAMED: usize = 4;

fn chosen_of(all: &[Demand], path: &Path, of: Option<&str>) -> Result<Demand, Error> {
    if let Some(name) = of {
        return named(all, name, path);
    }
    let names: Vec<String> = all.iter().map(|demand| demand.database.clone()).collect();
    if let [first, others @ ..] = &names[..]
        && !others.is_empty()
    {
        let mut lines: Vec<String> = vec![format!(
            "the demand of {}; --of selects another:",
            spoken(first)
        )];
        let shown = others.iter().take(OTHERS_NAMED);
        lines.extend(shown.map(|other| format!("  {}", spoken(other))));
        if others.len() > OTHERS_NAMED {
            lines.push(format!("  and {} more", others.len() - OTHERS_NAMED));
        }
        remark(&format!("{}\n", lines.join("\n")));
    }
    all.first().cloned().ok_or_else(|| no_demand(path))
}

/// What each of `ranks` ranks offers: a demand for each of them, or a single one of which each
/// offers an equal part.
///
/// # Errors
/// There are several demands, and not as many as ranks.
pub(super) fn for_ranks(paths: &[&Path], of: &[String], ranks: usize) -> Result<Asked, Error> {
    let asked = match (paths, of) {
        ([path], []) => instances_of(path, ranks)?,
        ([path], names) => {
            let asked = demands_of(path)?;
            let each = names.iter().map(|name| named(&asked.demands, name, path));
            let demands = each.collect::<Result<Vec<Demand>, Error>>()?;
            Asked { demands, ..asked }
        }
        (paths, []) => {
            let mut each = paths.iter().map(|path| chosen(path, None));
            each.try_fold(Asked::default(), |all, one| Ok::<_, Error>(all.and(one?)))?
        }
        _ => {
            return Err(usage!(
                "--of selects from one DEMAND, and --also adds others",
                "give one of them: rigel import makes one DEMAND of several reports"
            ));
        }
    };
    let demands = &asked.demands;
    if demands.len() != 1 && demands.len() != ranks {
        let names: Vec<&str> = demands.iter().map(|one| one.database.as_str()).collect();
        return Err(usage!(
            "{count} demands and {processes} do not go together: {names}",
            "under mpiexec or srun give one for each rank; or a single one, of which each rank \
             offers an equal part",
            count = demands.len(),
            processes = if ranks == 1 {
                "one process".into()
            } else {
                format!("{ranks} ranks")
            },
            names = names.join("; ")
        ));
    }
    Ok(asked)
}

/// The instances of the database at `path`, if it has several and there are ranks for them; else the
/// first demand.
fn instances_of(path: &Path, ranks: usize) -> Result<Asked, Error> {
    let asked = demands_of(path)?;
    let all = &asked.demands;
    let Some(sum) = all
        .first()
        .filter(|first| ranks > 1 && !first.sum_of.is_empty())
    else {
        let chosen = chosen_of(all, path, None)?;
        return Ok(asked.only(chosen));
    };
    let mut names = sum.sum_of.clone();
    // Instance 10 comes behind instance 2.
    names.sort_by_key(|name| (name.len(), name.clone()));
    if names.len() != ranks {
        return Err(usage!(
            "'{path}' has {count} instances, and there are {ranks} ranks",
            "start a rank for each instance, on a host each; or let {ranks} hosts share the \
             demand: --of '{database}'",
            path = path.display(),
            count = names.len(),
            database = sum.database
        ));
    }
    let each = names.iter().map(|name| named(all, name, path));
    let demands = each.collect::<Result<Vec<Demand>, Error>>()?;
    Ok(Asked { demands, ..asked })
}

/// The demand with this name, or with the one that is shown of it.
fn named(all: &[Demand], name: &str, path: &Path) -> Result<Demand, Error> {
    let is_named = |demand: &&Demand| {
        let own = demand.database.as_str();
        own == name || spoken(own) == name
    };
    all.iter().find(is_named).cloned().ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|demand| spoken(&demand.database)).collect();
        usage!(
            "'{path}' has no demand of '{name}'",
            "give one of: {names}",
            path = path.display(),
            names = names.join("; ")
        )
    })
}

/// The demands in a run, or in a file that `rigel import` reads.
fn demands_of(path: &Path) -> Result<Asked, Error> {
    let header = Header::read(path);
    let mut imported = Vec::new();
    let is_watch = |header: &Header| header.invocation.verb == "watch";
    let demands = if header.as_ref().is_ok_and(is_watch) {
        of_watch(path)?
    } else if path.is_dir() || header.is_ok() {
        let run = rigel_verbs::read(path)?;
        warn_if_cut(run.cut);
        let demands = demands(&run);
        imported = run.imported;
        demands
    } else {
        let (name, text) = (path.display().to_string(), import::text_of(path)?);
        let source = Source {
            name: &name,
            text: &text,
        };
        imported = read(&[source], None, &Columns::default())?;
        imported_demands(&imported)
    };
    if demands.is_empty() {
        return Err(no_demand(path));
    }
    Ok(Asked { demands, imported })
}

/// The demands of a watch, whose journal is read interval by interval: it may be of weeks.
fn of_watch(path: &Path) -> Result<Vec<Demand>, Error> {
    let mut demands = WatchDemands::default();
    let run = journal::scan(path, &mut |header, measured| {
        if let MeasuredLine::Interval(interval) = measured {
            demands.add(header, &interval);
        }
    })?;
    warn_if_cut(run.cut);
    Ok(demands.finish())
}

fn no_demand(path: &Path) -> Error {
    usage!(
        "'{path}' does not say what a database asks of its storage",
        "give an AWR or Statspack report, a capture of AWR-Miner, output of iostat -x, a csv file \
         with rates of reads, or a run of rigel watch, import or sql",
        path = path.display()
    )
}
