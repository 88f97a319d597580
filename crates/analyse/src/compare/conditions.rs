//! The conditions of runs, and how they differ.
//!
//! Input: the headers of runs. Output: every condition that differs, and which figures are then of
//! different work and not compared. A different target is a condition like others, and the first
//! one shown: comparing two storage systems is what comparing is for. Meaningless differences
//! between runs (clock time, seed, file names of the journal) are not conditions.

use super::side::Side;
use super::subject::{Scope, Subject, Term};
use rigel_model::{BlockDevice, VolumeMember};
use serde::Serialize;

/// A condition of a side that differs from the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Condition {
    /// Index of the side; the baseline is 0.
    pub run: usize,
    /// Name of the condition.
    pub name: &'static str,
    /// Its value in the baseline.
    pub before: String,
    /// Its value in this side.
    pub after: String,
    /// Figures that are of different work and not compared.
    pub not_compared: Option<Scope>,
}

/// Differences of each side's conditions from the baseline's. A condition without a value in one of
/// the two, such as a filesystem, is shown as `-`. Terms that only one of the two verbs has are
/// left out.
pub(super) fn conditions(sides: &[Side]) -> Vec<Condition> {
    let Some((baseline, others)) = sides.split_first() else {
        return Vec::new();
    };
    let before = facts_of_all(baseline);
    let mut conditions = Vec::new();
    for (index, side) in others.iter().enumerate() {
        for after in facts_of_all(side) {
            let Some(one) = before
                .iter()
                .find(|one| one.name == after.name && one.value != after.value)
            else {
                continue;
            };
            let (before, value) = match after.name {
                MOUNT => only_different(&one.value, &after.value),
                _ => (one.value.clone(), after.value),
            };
            let not_compared = after.decides;
            conditions.push(Condition {
                run: index + 1,
                name: after.name,
                before,
                after: value,
                not_compared,
            });
        }
    }
    // Conditions of the target come first, then those that prevent a comparison.
    conditions.sort_by_key(|condition| {
        (
            !TARGET.contains(&condition.name),
            condition.not_compared.is_none(),
        )
    });
    conditions
}

/// True if two runs are of the same work, on the same target of the same host, by the same engine.
pub(super) fn is_of_the_same(one: &Subject, other: &Subject) -> bool {
    const DECISIVE: [&str; 4] = ["I/O goes", "engine", "host", "ranks that measured together"];
    let sides = [Side::of(one), Side::of(other)];
    one.header.invocation.verb == other.header.invocation.verb
        && conditions(&sides).iter().all(|condition| {
            condition.not_compared.is_none()
                && !TARGET.contains(&condition.name)
                && !DECISIVE.contains(&condition.name)
        })
}

/// Conditions that identify the target.
const TARGET: [&str; 4] = ["target", "target size", "device", "filesystem"];

const MOUNT: &str = "mount options";

/// The conditions of a side: where its runs differ, all of their values.
fn facts_of_all(side: &Side) -> Vec<Term> {
    let mut all = facts(side.first());
    for run in &side.runs[1..] {
        for term in facts(run) {
            if let Some(one) = all.iter_mut().find(|one| one.name == term.name)
                && one.value.split(OR).all(|value| value != term.value)
            {
                one.value = format!("{}{OR}{}", one.value, term.value);
            }
        }
    }
    all
}

/// Between the values of one side.
const OR: &str = " or ";

fn facts(subject: &Subject) -> Vec<Term> {
    let (header, host) = (subject.header, &subject.header.host);
    if subject.imported.is_some() {
        // Other tools report nothing about the machine and the target that is known to mean the
        // same.
        let mut terms = subject.terms.clone();
        terms.extend([
            Term::known("target", &header.facts.name),
            Term::known("engine", &header.engine.name),
        ]);
        return terms;
    }
    let facts = &header.facts;
    let members =
        |of: fn(&VolumeMember) -> Option<String>| listed(facts.members.iter().filter_map(of));
    let devices = |of: fn(&BlockDevice) -> Option<String>| {
        listed(
            facts
                .members
                .iter()
                .flat_map(|member| &member.devices)
                .filter_map(of),
        )
    };
    // For a model, the engine's description only repeats the target's name.
    let about = if facts.members.is_empty() {
        header.engine.name.clone()
    } else {
        header.engine_about.clone()
    };
    let cache = if header.engine.buffered {
        "through the page cache"
    } else {
        "direct"
    };
    let mut terms = subject.terms.clone();
    terms.extend([
        Term::known("target", &facts.name),
        Term::known("target size", &size(facts.usable.0)),
        Term::known("filesystem", &members(|member| member.filesystem.clone())),
        Term::known(MOUNT, &members(|member| member.mount_options.clone())),
        Term::known(
            "device",
            &devices(|device| device.model.clone().or_else(|| Some(device.name.clone()))),
        ),
        Term::known(
            "scheduler",
            &devices(|device| Some(device.scheduler.clone())),
        ),
        Term::known(
            "write cache",
            &devices(|device| Some(device.write_cache.clone())),
        ),
        Term::known(
            "nomerges",
            &devices(|device| Some(device.nomerges.to_string())),
        ),
        Term::known("I/O goes", &cache),
        Term::known("engine", &header.engine.name),
        Term::known("engine makes use of", &about),
        Term::known(
            "ranks that measured together",
            &header.ranks.as_ref().map_or(1, |group| group.size()),
        ),
        Term::known("host", &host.name),
        Term::known("kernel", &host.kernel),
        Term::known("CPU", &host.cpu),
        Term::known("CPUs", &host.cpus),
        Term::known("memory", &host.memory),
        Term::known("clock source", &host.clock_source),
        Term::known("Rigel", &header.version),
    ]);
    for term in terms.iter_mut().filter(|term| term.value.is_empty()) {
        term.value = "-".into();
    }
    terms
}

/// Formats a size with its exact bytes where it was rounded, so that no two sizes look the same.
fn size(bytes: u64) -> String {
    let shown = rigel_model::Bytes(bytes);
    if shown.to_string().contains('.') {
        format!("{shown} ({bytes} bytes)")
    } else {
        shown.to_string()
    }
}

/// The distinct values of a volume's members, in their order.
fn listed(values: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for value in values.filter(|value| !value.is_empty()) {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    if distinct.is_empty() {
        "-".into()
    } else {
        distinct.join(", ")
    }
}

/// The items that only one of two comma-separated lists contains.
fn only_different(before: &str, after: &str) -> (String, String) {
    let rest = |of: &str, other: &str| {
        let others: Vec<&str> = other.split(',').map(str::trim).collect();
        let own: Vec<&str> = of
            .split(',')
            .map(str::trim)
            .filter(|option| !others.contains(option))
            .collect();
        if own.is_empty() {
            "-".to_string()
        } else {
            own.join(",")
        }
    };
    (rest(before, after), rest(after, before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differing_mount_options_are_reported() {
        assert_eq!(
            only_different("rw,relatime,discard", "rw,noatime"),
            ("relatime,discard".into(), "noatime".into())
        );
        assert_eq!(
            only_different("rw", "rw,noatime"),
            ("-".into(), "noatime".into())
        );
    }

    #[test]
    fn sizes_that_differ_look_different() {
        assert_eq!(size(4 << 30), "4 GiB");
        assert_ne!(size((4 << 30) + 4096), size((4 << 30) + 8192));
    }
}
