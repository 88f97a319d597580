//! The preflight check before a run: facts about the target, activity of the host, and warnings.
//!
//! Input: the open members of a target and the largest I/O size. Output: a [`Preflight`] with
//! facts, samples and findings, or the reason why this cannot be a target. It takes a second
//! without any I/O, so all device activity in that second is caused by others. It writes nothing
//! and reads no data, except that [`writing`], for `rigel check`, has the guard read both ends.
//! `rigel check` prints it; every run makes and records it.

use rigel_analyse as analyse;
use rigel_device::bounded;
use rigel_device::clock::Clock;
use rigel_device::engine::layout::VolumeMap;
use rigel_device::engine::opened::{Identity, Opened};
use rigel_device::engine::{guard, probe};
use rigel_device::observe::{self, Observer};
use rigel_model::{
    Bytes, Error, FileKind, Finding, FindingName, Host, Layout, Nanos, Sample, Severity,
    TargetFacts, VolumeMember, usage,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Default duration of watching the host.
pub const WATCH: Nanos = Nanos::from_secs(1);

/// Result of the preflight check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Preflight {
    /// The machine.
    pub host: Host,
    /// The target and the devices below it.
    pub target: TargetFacts,
    /// Counters at the beginning.
    pub before: Sample,
    /// Counters at the end.
    pub after: Sample,
    /// Findings, the most severe first.
    pub findings: Vec<Finding>,
}

/// Input of the preflight check.
#[derive(Debug, Clone)]
pub struct PreflightRequest<'a> {
    /// The members, in the order of the volume.
    pub members: &'a [Opened],
    /// Name for the target, and for a single member, if its path means nothing to people: the
    /// scratch file's `/proc/self/fd/3`.
    pub called: Option<&'a str>,
    /// How the members form the volume.
    pub layout: Layout,
    /// Unit in bytes into which members of a volume are divided, so that no I/O crosses two
    /// members.
    pub grain: u64,
    /// Size of the largest I/O in bytes.
    pub largest: u64,
    /// I/O goes through the page cache.
    pub buffered: bool,
    /// Duration of watching the host.
    pub watch: Nanos,
}

/// Inspects a target and the host.
///
/// # Errors
/// A member is given twice, is empty or too small, or the largest I/O does not fit the device's
/// blocks or the stripe.
pub fn inspect(request: &PreflightRequest) -> Result<Preflight, Error> {
    let target = target(request)?;
    let names: Vec<&str> = target
        .members
        .iter()
        .flat_map(|member| &member.devices)
        .map(|device| device.name.as_str())
        .collect();
    let observer = Observer::new(names);
    let host = observe::host();
    let clock = Clock::real();
    let before = observer.sample(clock.now());
    clock.wait_until(before.at.plus(request.watch));
    let after = observer.sample(clock.now());
    let findings = analyse::preflight_findings(&host, &target, &before, &after, request.buffered);
    Ok(Preflight {
        host,
        target,
        before,
        after,
        findings,
    })
}

/// The same, on storage that may not answer. Returns the members too.
///
/// # Errors
/// As [`inspect`], or there was no answer.
pub fn inspect_members(
    members: Vec<Opened>,
    request: &PreflightRequest,
) -> Result<(Vec<Opened>, Preflight), Error> {
    let PreflightRequest {
        called,
        layout,
        grain,
        largest,
        buffered,
        watch,
        ..
    } = *request;
    let called = called.map(str::to_string);
    let names: Vec<String> = members
        .iter()
        .map(|member| format!("'{}'", member.path().display()))
        .collect();
    let what = format!("examining {}", names.join(", "));
    bounded::call(&what, bounded::ANSWER.plus(watch), move || {
        let look = inspect(&PreflightRequest {
            members: &members,
            called: called.as_deref(),
            layout,
            grain,
            largest,
            buffered,
            watch,
        });
        look.map(|look| (members, look))
    })?
}

/// Objections to writing to each of `members`, even if its path is repeated as confirmation. For
/// `rigel check`, which does not write. Checks the open files of every process, which takes seconds
/// with thousands of processes.
pub fn writing(members: &[Opened]) -> Vec<Finding> {
    let refused = |member: &Opened| {
        let named_twice = [member.path().to_path_buf()];
        let (Error::Usage { what, hint } | Error::Failed { what, hint }) =
            guard::judge(member, &named_twice).err()?;
        Some(Finding {
            severity: Severity::Note,
            name: FindingName::WriteGuard.name().into(),
            what,
            hint,
            figure: None,
        })
    };
    members.iter().filter_map(refused).collect()
}

/// True if nothing was found that could mislead.
pub fn trustworthy(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|finding| finding.severity == Severity::Note)
}

/// The facts of a valid target.
fn target(request: &PreflightRequest) -> Result<TargetFacts, Error> {
    if request.members.is_empty() {
        return Err(usage!(
            "no file or device is given",
            "give one or more, or a directory for a scratch file"
        ));
    }
    refuse_duplicates(request.members)?;
    let members = request
        .members
        .iter()
        .map(|opened| member(opened, request))
        .collect::<Result<Vec<_>, _>>()?;
    let sizes: Vec<u64> = members.iter().map(|member| member.bytes.0).collect();
    let usable = Bytes(VolumeMap::new(&sizes, request.layout, request.grain)?.usable());
    let names: Vec<String> = members
        .iter()
        .map(|member| member.path.display().to_string())
        .collect();
    let name = request
        .called
        .map_or_else(|| names.join(" "), str::to_string);
    Ok(TargetFacts {
        server: None,
        name,
        usable,
        members,
    })
}

/// Refuses duplicates: one file given twice would be measured as two that share one device and one
/// cache.
fn refuse_duplicates(members: &[Opened]) -> Result<(), Error> {
    let mut seen: BTreeMap<Identity, &Path> = BTreeMap::new();
    for member in members {
        if let Some(first) = seen.insert(member.identity(), member.path()) {
            let what = if first == member.path() {
                format!("'{}' is given twice", first.display())
            } else {
                format!(
                    "'{}' and '{}' are the same",
                    first.display(),
                    member.path().display()
                )
            };
            return Err(Error::usage(what, "give every file and device once"));
        }
    }
    Ok(())
}

fn member(opened: &Opened, request: &PreflightRequest) -> Result<VolumeMember, Error> {
    let mut member = probe::probe(opened)?;
    let (shown, grain) = (opened.path().display(), request.grain);
    if member.bytes.0 == 0 {
        let hint = match member.kind {
            FileKind::File => {
                "fill it first, or give a directory, in which Rigel makes a scratch file"
            }
            FileKind::Device => "see `lsblk`: nothing is attached to it, or it has no medium",
        };
        return Err(usage!("'{shown}' is empty", hint));
    }
    if member.bytes.0 < request.largest.saturating_mul(2) {
        return Err(usage!(
            "'{shown}' has {bytes}, less than two I/Os of {largest}",
            "give a larger file, or a smaller maximum I/O size",
            bytes = member.bytes,
            largest = Bytes(request.largest)
        ));
    }
    if !request.buffered && !grain.is_multiple_of(member.alignment.into()) {
        return Err(usage!(
            "I/Os of {grain} bytes are not a multiple of {alignment}, the block size of '{shown}'",
            "use a multiple of it, or the page cache with --buffered",
            alignment = Bytes(member.alignment.into())
        ));
    }
    if let (Some(called), [_]) = (request.called, request.members) {
        member.path = called.into();
    }
    member.devices = member
        .device_number
        .map(observe::devices)
        .unwrap_or_default();
    Ok(member)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temp_dir::TempDir;
    use std::path::PathBuf;

    fn opened(paths: &[PathBuf]) -> Result<Vec<Opened>, Error> {
        paths.iter().map(|path| Opened::open(path)).collect()
    }

    fn look_at(paths: &[PathBuf], grain: u64) -> Result<Preflight, Error> {
        let watch = Nanos::from_millis(1);
        let (members, layout) = (&opened(paths)?[..], Layout::Concat);
        inspect(&PreflightRequest {
            members,
            called: None,
            layout,
            grain,
            largest: grain,
            buffered: false,
            watch,
        })
    }

    #[test]
    fn a_written_file_is_seen_whole() {
        let place = TempDir::new("look-written");
        let path = place.file("file", 1 << 20, 1 << 20);
        let look = look_at(std::slice::from_ref(&path), 65536).unwrap();
        assert_eq!(look.target.usable, Bytes(1 << 20));
        assert_eq!(look.target.members[0].path, path);
        assert!(look.after.at > look.before.at && look.host.cpus > 0);
        assert!(
            !look
                .findings
                .iter()
                .any(|finding| finding.is(FindingName::Holes)),
            "{:?}",
            look.findings
        );
        // Every whole disk below is sampled.
        let devices = &look.target.members[0].devices;
        assert!(
            devices
                .iter()
                .all(|device| look.after.devices.contains_key(&device.name)),
            "{look:?}"
        );
    }

    #[test]
    fn a_target_without_a_name_has_the_requested_name() {
        let place = TempDir::new("look-called");
        let members = &opened(&[place.file("file", 1 << 20, 1 << 20)]).unwrap()[..];
        let called = Some("a scratch file");
        let watch = Nanos(0);
        let (grain, largest, layout) = (4096, 4096, Layout::Concat);
        let request = PreflightRequest {
            members,
            called,
            layout,
            grain,
            largest,
            buffered: false,
            watch,
        };
        let target = inspect(&request).unwrap().target;
        assert_eq!(
            (target.name.as_str(), target.members[0].path.to_str()),
            ("a scratch file", called)
        );
    }

    #[test]
    fn a_sparse_file_is_not_trustworthy() {
        let place = TempDir::new("look-sparse");
        let path = place.file("file", 65536, 1 << 30);
        let look = look_at(&[path], 65536).unwrap();
        // If the filesystem does not report what was written, no holes can be found.
        if look.target.members[0].extents.is_some() {
            assert!(!trustworthy(&look.findings));
            assert_eq!(
                (look.findings[0].name.as_str(), look.findings[0].severity),
                ("holes", Severity::Refusal)
            );
        }
    }

    #[test]
    fn targets_that_make_no_sense_are_refused_by_name() {
        let place = TempDir::new("look-refused");
        let file = place.file("file", 1 << 20, 1 << 20);
        let link = place.0.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let (empty, small) = (
            place.file("empty", 0, 0),
            place.file("small", 70_000, 70_000),
        );
        let cases: [(Vec<PathBuf>, &str); 7] = [
            (vec![], "no file"),
            (vec![file.clone(), file.clone()], "is given twice"),
            (vec![file.clone(), link], "are the same"),
            (vec![file.clone(), empty], "is empty"),
            (vec![file.clone(), small], "less than two I/Os"),
            (vec![place.0.clone()], "is a directory"),
            (vec![place.0.join("absent")], "does not exist"),
        ];
        for (paths, words) in cases {
            let error = look_at(&paths, 65536).unwrap_err();
            assert_eq!(error.exit_status(), 2, "{error}");
            assert!(error.to_string().contains(words), "wanted {words}: {error}");
        }
        assert!(
            look_at(&[file], 1000)
                .unwrap_err()
                .to_string()
                .contains("not a multiple")
        );
    }
}
