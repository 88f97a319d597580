//! fio's JSON, normal and json+, of version 3.
//!
//! Entries of one job that ran as several processes are one load: their rates are added, their
//! means weighted, their bins merged. Quantiles cannot be combined: without bins they are then
//! unknown.

use super::limits::{refuse_json_above_parsed_max, refuse_large_json};
use super::source::{Source, damaged, refuse_empty};
use rigel_model::record::histogram::{BUCKETS, bucket_of};
use rigel_model::record::imported::{
    Figures, Flow, LoadPoint, ReportedLatency, ReportedLoad, ReportedSyncs, is_countable,
};
use rigel_model::record::{Histogram, Imported};
use rigel_model::{Error, LifeCycle, LogKind, Moment, SyncMethod, failed};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum size of a large operation in bytes: between the 8 KiB of a database block and the 1 MiB
/// of its scans.
const LARGE_FROM: u32 = 128 << 10;

/// True if `text` contains fio's JSON, possibly among other text.
pub fn is_like(text: &str) -> bool {
    !starts(text).is_empty()
}

/// What this output of fio is that is not read, and how fio writes what is; `None` for other text.
pub(super) fn not_read(text: &str) -> Option<(&'static str, &'static str)> {
    let mut lines = text.lines().take(LINES_LOOKED_AT).map(str::trim);
    // `3;fio-3.33;name;…`: the version of the format, then that of fio.
    let is_terse = |line: &str| {
        let mut cells = line.split(';').skip(1);
        cells.next().is_some_and(|cell| cell.starts_with("fio-"))
    };
    let is_normal = |line: &str| {
        line.starts_with("fio-") || line.contains("(groupid=") || line.contains(": (g=0): rw=")
    };
    if lines.clone().any(is_terse) {
        Some((
            "fio's terse output, of which other versions mean other things",
            "run fio with --output-format=json+ (terse,json+ prints both)",
        ))
    } else if lines.any(is_normal) {
        Some((
            "fio's output for people, whose figures are rounded",
            "run fio with --output-format=json+ (normal,json+ prints both)",
        ))
    } else {
        None
    }
}

/// Lines at the beginning of fio's text outputs that name fio.
const LINES_LOOKED_AT: usize = 100;

const VERSION: &str = "\"fio version\"";

/// Offsets of the reports in a text. Text that fio or a script writes may stand before each, even
/// on its line.
fn starts(text: &str) -> Vec<usize> {
    let brace = |(at, _)| {
        let before = text[..at].trim_end();
        before.ends_with('{').then(|| before.len() - 1)
    };
    let starts: Vec<usize> = text.match_indices(VERSION).filter_map(brace).collect();
    if !starts.is_empty() || !text.contains(VERSION) {
        return starts;
    }
    // Other programs that rewrite JSON put the keys into another order.
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if line[indent..].starts_with('{') {
            return vec![position + indent];
        }
        position += line.len();
    }
    Vec::new()
}

/// Reads fio's JSON.
///
/// # Errors
/// It is not JSON, truncated, of an unknown version, or without jobs.
pub fn read(source: Source) -> Result<Imported, Error> {
    let mut bytes = refuse_large_json(source)?;
    let documents = documents(source)?;
    let count = documents.len();
    let reports = last_of_each_run(documents);
    let mut notes = Vec::new();
    if reports.len() < count {
        notes.push(format!(
            "fio wrote {count} reports (--status-interval): the last one {}is used",
            if reports.len() > 1 {
                "of each run "
            } else {
                ""
            }
        ));
    }
    let (mut points, mut reported) = (Vec::new(), Vec::new());
    let mut versions: Vec<&str> = Vec::new();
    for whole in &reports {
        let version = version(source, whole)?;
        if !versions.contains(&version) {
            versions.push(version);
        }
        bytes += repeated_options(whole);
        refuse_json_above_parsed_max(source, bytes)?;
        let entries = entries(source, whole)?;
        bytes += repeated_names(&entries);
        refuse_json_above_parsed_max(source, bytes)?;
        points.extend(loads(&entries, &mut notes));
        reported.extend(facts(whole, &entries));
    }
    let imported = Imported {
        sources: vec![source.name.into()],
        tool: "fio".into(),
        version: Some(versions.join(", ")),
        reported,
        notes,
        figures: Figures::Loads(points),
    };
    refuse_empty(source.name, imported)
}

fn wrong(source: Source, why: &str) -> Error {
    failed!(
        "'{name}' is not fio's JSON: {why}",
        "write it with --output-format=json+",
        name = source.name
    )
}

fn version<'a>(source: Source, whole: &'a Value) -> Result<&'a str, Error> {
    let version = whole
        .get("fio version")
        .and_then(Value::as_str)
        .ok_or_else(|| wrong(source, "it contains no fio version"))?;
    if !version.starts_with("fio-3") && !version.starts_with("fio-4") {
        return Err(failed!(
            "'{name}' was written by {version}, and before fio 3.0 times had another unit",
            "measure again with fio 3",
            name = source.name
        ));
    }
    Ok(version.trim_start_matches("fio-"))
}

fn jobs(whole: &Value) -> Option<&Vec<Value>> {
    ["jobs", "client_stats"]
        .iter()
        .find_map(|key| whole.get(*key)?.as_array())
}

/// Bytes of the options of all jobs, each of which has its own copy of the global ones, also as text.
fn repeated_options(whole: &Value) -> u64 {
    const OPTION: usize = 200;
    let length = |value: &Value| value.as_str().map_or(OPTION, str::len);
    let options = whole.get("global options").and_then(Value::as_object);
    let options = options.into_iter().flatten();
    let bytes: usize = options
        .map(|(key, value)| OPTION + 3 * (key.len() + length(value)))
        .sum();
    (bytes as u64).saturating_mul(jobs(whole).map_or(0, Vec::len) as u64)
}

/// Bytes of the names that loads of one group have of each other.
fn repeated_names(entries: &[FioJob]) -> u64 {
    const NAME: usize = 40;
    let each: BTreeSet<(i64, &str)> = entries
        .iter()
        .map(|entry| (entry.group, entry.name.as_str()))
        .collect();
    let mut groups: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
    for (group, name) in each {
        let (count, bytes) = groups.entry(group).or_default();
        *count += 1;
        *bytes += (NAME + name.len()) as u64;
    }
    let of_groups = groups.values();
    of_groups.fold(0, |sum, (count, bytes)| {
        sum.saturating_add(count.saturating_mul(*bytes))
    })
}

fn entries<'a>(source: Source, whole: &'a Value) -> Result<Vec<FioJob<'a>>, Error> {
    let jobs = jobs(whole).ok_or_else(|| wrong(source, "it contains no \"jobs\""))?;
    let global = whole
        .get("global options")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    Ok(jobs
        .iter()
        .filter_map(|job| FioJob::of(job, &global))
        .collect())
}

/// The reports in the text.
fn documents(source: Source) -> Result<Vec<Value>, Error> {
    let text = source.text;
    let (mut found, mut end) = (Vec::new(), 0);
    for start in starts(text) {
        if start < end {
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                found.push(value);
                end = start + values.byte_offset();
            }
            Some(Err(error)) => {
                let why = if error.is_eof() {
                    "the JSON is truncated here".to_string()
                } else {
                    error.to_string()
                };
                let hint = "check that fio ran to its end and that the file was copied completely";
                let above = text[..start].matches('\n').count();
                return Err(damaged(source.name, above + error.line(), &why, hint));
            }
            None => {}
        }
    }
    if found.is_empty() {
        return Err(wrong(source, "it contains no fio version"));
    }
    Ok(found)
}

/// The last report of each run. With `--status-interval` fio reports the same jobs again, from the
/// same start on; a script may append the reports of several runs to one file.
fn last_of_each_run(documents: Vec<Value>) -> Vec<Value> {
    const SECONDS: u64 = 2;
    type Member<'a> = Option<&'a Value>;
    fn options(whole: &Value) -> (Member<'_>, Vec<[Member<'_>; 3]>) {
        let jobs = jobs(whole).into_iter().flatten();
        let own = jobs.map(|job| ["jobname", "hostname", "job options"].map(|key| job.get(key)));
        (whole.get("global options"), own.collect())
    }
    let began = |whole: &Value| {
        let jobs = jobs(whole).into_iter().flatten();
        let elapsed = jobs.filter_map(|job| job.get("elapsed")?.as_i64()).max()?;
        whole.get("timestamp")?.as_i64()?.checked_sub(elapsed)
    };
    let is_same = |one: &Value, other: &Value| {
        let apart = began(one)
            .zip(began(other))
            .map_or(0, |(one, other)| one.abs_diff(other));
        apart <= SECONDS && options(one) == options(other)
    };
    let mut runs: Vec<Value> = Vec::new();
    for document in documents {
        match runs.last_mut().filter(|last| is_same(last, &document)) {
            Some(last) => *last = document,
            None => runs.push(document),
        }
    }
    runs
}

/// One entry of `jobs`.
struct FioJob<'a> {
    name: String,
    group: i64,
    options: BTreeMap<String, String>,
    job: &'a Map<String, Value>,
}

impl<'a> FioJob<'a> {
    fn of(job: &'a Value, global: &Map<String, Value>) -> Option<Self> {
        let job = job.as_object()?;
        let name = job
            .get("jobname")
            .and_then(Value::as_str)
            .unwrap_or("job")
            .to_string();
        // With client and server, the sum over the clients is a separate entry.
        if name == "All clients" {
            return None;
        }
        let own = job.get("job options").and_then(Value::as_object);
        let text = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_string)
        };
        let both = global.iter().chain(own.into_iter().flatten());
        let options = both
            .map(|(key, value)| (key.clone(), text(value)))
            .collect();
        let host = job.get("hostname").and_then(Value::as_str);
        let name = host.map_or(name.clone(), |host| format!("{name} on {host}"));
        Some(Self {
            name,
            group: job.get("groupid").and_then(Value::as_i64).unwrap_or(0),
            options,
            job,
        })
    }

    fn option(&self, names: &[&str]) -> Option<&str> {
        names
            .iter()
            .find_map(|name| self.options.get(*name))
            .map(String::as_str)
    }

    fn count(&self, names: &[&str]) -> u32 {
        self.option(names)
            .and_then(|text| u32::try_from(quantity(text)?).ok())
            .unwrap_or(1)
            .max(1)
    }
}

/// A number of fio, with 1024 for `k`: `8k`, `1m`, `4096`, `4KiB`.
fn quantity(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let scale = match text[end..].trim_end_matches("ib").trim_end_matches('b') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(scale)
}

/// The loads: entries of one job in one group are one load.
fn loads(entries: &[FioJob], notes: &mut Vec<String>) -> Vec<LoadPoint> {
    let mut loads: Vec<Vec<&FioJob>> = Vec::new();
    let mut indices: BTreeMap<(&str, i64), usize> = BTreeMap::new();
    let mut groups: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for entry in entries {
        let index = *indices
            .entry((&entry.name, entry.group))
            .or_insert_with(|| {
                groups.entry(entry.group).or_default().push(&entry.name);
                loads.push(Vec::new());
                loads.len() - 1
            });
        loads[index].push(entry);
    }
    let beside = |load: &[&FioJob]| {
        let names = groups[&load[0].group].iter();
        let others = names.filter(|name| **name != load[0].name);
        others.map(|name| (*name).to_string()).collect::<Vec<_>>()
    };
    let points: Vec<LoadPoint> = loads.iter().map(|load| point(load, beside(load))).collect();
    for (load, point) in loads.iter().zip(&points) {
        notes.extend(point.ignored_depth.map(|depth| ignored(load[0], depth)));
        let merged = load.len() > 1
            && point
                .flows
                .iter()
                .any(|flow| flow.latencies.iter().all(|l| l.quantiles.is_empty()));
        if merged
            && point
                .flows
                .iter()
                .flat_map(|flow| &flow.latencies)
                .all(|latency| latency.histogram.is_none())
        {
            notes.push(format!(
                "{}: {} processes are reported separately, and their percentiles cannot be \
                 combined without bins: run fio with --group_reporting or --output-format=json+",
                point.label,
                load.len()
            ));
        }
    }
    points
}

fn point(load: &[&FioJob], beside: Vec<String>) -> LoadPoint {
    let first = load[0];
    let rw = first.option(&["rw", "readwrite"]).unwrap_or("read");
    let flows: Vec<Flow> = kinds(load)
        .into_iter()
        .map(|kind| flow(load, kind, first))
        .collect();
    let seconds: Vec<f64> = load.iter().filter_map(|entry| seconds(entry)).collect();
    let (load_of, ignored_depth) = told_load(first);
    let flows = flows.into_iter().chain(sync_flow(load));
    LoadPoint {
        label: first.name.clone(),
        load: load_of,
        processes: Some(first.count(&["numjobs"])),
        pattern: Some(pattern(rw, first)),
        writes_percent: writes(rw, first),
        beside,
        began: load.iter().filter_map(|entry| began(entry)).min(),
        seconds: seconds.iter().copied().reduce(f64::max),
        errors: load
            .iter()
            .filter_map(|entry| entry.job.get("error")?.as_i64())
            .filter(|error| *error != 0)
            .collect(),
        buffered_by: buffered_by(first),
        ignored_depth,
        syncs: syncs(rw, first),
        flows: flows.collect(),
        process_seconds: if load.len() > 1 { seconds } else { Vec::new() },
    }
}

/// How long the entry did I/O.
fn seconds(entry: &FioJob) -> Option<f64> {
    let of = |kind: &&str| entry.job.get(*kind)?.get("runtime")?.as_f64();
    let kinds = ["read", "write", "trim", "mixed"].iter();
    let longest = kinds.filter_map(of).reduce(f64::max)?;
    (longest > 0.0).then_some(longest / 1e3)
}

/// When the entry began, if fio reports it (3.36 and later).
fn began(entry: &FioJob) -> Option<Moment> {
    let milliseconds = entry.job.get("job_start")?.as_i64()?;
    let first: Moment = "1970-01-01T00:00:00Z".parse().ok()?;
    // A later time, beyond this millennium, is not valid.
    (0..32_503_680_000_000)
        .contains(&milliseconds)
        .then(|| first.plus_seconds(milliseconds / 1000))
}

/// Engines that have one I/O at a time, whatever the `iodepth`.
const ENGINES_OF_ONE: &[&str] = &[
    "sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice",
];

/// Other engines that go through the page cache without `direct=1`.
const ENGINES_OF_FILES: &[&str] = &["libaio", "io_uring", "posixaio", "windowsaio"];

/// The name of the engine without its options; fio's default on Linux if none is named.
fn engine<'a>(entry: &'a FioJob) -> &'a str {
    let named = entry.option(&["ioengine"]).unwrap_or("psync");
    named.split([',', ':']).next().unwrap_or(named)
}

/// The engine, if it goes through the page cache.
fn buffered_by(entry: &FioJob) -> Option<String> {
    let is_on = |text: &str| matches!(text, "" | "1" | "true");
    let is_direct = entry.option(&["direct"]).is_some_and(is_on)
        || entry.option(&["buffered"]).is_some_and(|text| !is_on(text));
    let engine = engine(entry);
    let is_of_files = ENGINES_OF_ONE.contains(&engine) || ENGINES_OF_FILES.contains(&engine);
    (is_of_files && (!is_direct || engine == "mmap")).then(|| engine.to_string())
}

/// True if the engine has one I/O at a time: `libaio` waits in `io_submit` unless I/O is direct.
fn is_of_one(entry: &FioJob) -> bool {
    ENGINES_OF_ONE.contains(&engine(entry)) || buffered_by(entry).is_some_and(|by| by == "libaio")
}

/// Why another depth than that of the options is shown.
fn ignored(entry: &FioJob, depth: u32) -> String {
    let (name, engine, jobs) = (&entry.name, engine(entry), entry.count(&["numjobs"]));
    let each = depth / jobs;
    if ENGINES_OF_ONE.contains(&engine) {
        format!(
            "{name}: fio's {engine} has one I/O at a time, so iodepth={each} is ignored: the depth is {jobs}"
        )
    } else {
        format!(
            "{name}: {engine} without direct=1 waits for each I/O before the next, so the depth is {jobs} and not \
             iodepth={each}: the others wait in fio, and its times contain that"
        )
    }
}

/// The load, and the outstanding I/Os that were asked for and cannot be.
fn told_load(entry: &FioJob) -> (ReportedLoad, Option<u32>) {
    let jobs = entry.count(&["numjobs"]);
    let asked = entry.count(&["iodepth"]).saturating_mul(jobs);
    let depth = if is_of_one(entry) { jobs } else { asked };
    let is_set = |text: &&str| *text != "0";
    let other = |what: String| (ReportedLoad::Other(what), None);
    if let Some(pause) = entry.option(&["thinktime"]).filter(is_set) {
        return other(format!("with pauses (thinktime={pause})"));
    }
    if let Some(rate) = entry.option(&["rate"]) {
        return other(format!("with a limited bandwidth (rate={rate})"));
    }
    if let Some(target) = entry.option(&["latency_target"]).filter(is_set) {
        let found = entry.job.get("latency_depth").and_then(Value::as_u64);
        let found = found.map_or_else(String::new, |depth| format!(", depth {depth} at its end"));
        return other(format!("latency_target={target}{found}"));
    }
    let load = match entry.option(&["rate_iops"]) {
        Some(text) => {
            // One value per direction: reads, writes, trims. A single value applies to each of
            // them.
            let parts: Vec<u64> = text.split(',').filter_map(quantity).collect();
            let both = entry
                .option(&["rw", "readwrite"])
                .is_some_and(|rw| rw.contains("rw") || rw == "readwrite");
            let each = if parts.len() == 1 && both {
                parts[0].saturating_mul(2)
            } else {
                parts.iter().fold(0u64, |a, b| a.saturating_add(*b))
            };
            ReportedLoad::Open {
                rate: each.saturating_mul(jobs.into()),
                in_flight: depth,
            }
        }
        None => ReportedLoad::Closed { depth },
    };
    (load, Some(asked).filter(|asked| *asked != depth))
}

/// How writes are made durable; `None` if they are not, by options of the job.
fn syncs(rw: &str, entry: &FioJob) -> Option<ReportedSyncs> {
    let each = |name: &str| quantity(entry.option(&[name])?).filter(|each| *each > 0);
    let by_call = [
        ("fdatasync", SyncMethod::Fdatasync),
        ("fsync", SyncMethod::Fsync),
    ];
    let called = by_call
        .into_iter()
        .find_map(|(name, method)| Some((method, each(name)?)));
    let flag = entry
        .option(&["sync"])
        .filter(|text| !matches!(*text, "0" | "none" | "false"));
    let is_direct = buffered_by(entry).is_none();
    let by_flag = || {
        if is_direct {
            SyncMethod::Direct
        } else {
            SyncMethod::OpenDatasync
        }
    };
    let (method, writes_each) = called.or_else(|| Some((by_flag(), flag.map(|_| 1)?)))?;
    // fio makes the file before it writes it, by fallocate unless it is told otherwise.
    let file = match (entry.option(&["overwrite"]), entry.option(&["fallocate"])) {
        (Some("1"), _) => Some(LifeCycle::Reused),
        (_, None | Some("native" | "posix")) => Some(LifeCycle::Sized),
        (_, Some("keep")) => Some(LifeCycle::Reserved),
        (_, Some("none")) => Some(LifeCycle::Grow),
        _ => None,
    };
    let is_log = rw == "write" && writes_each == 1 && is_of_one(entry);
    Some(ReportedSyncs {
        method,
        writes_each,
        log: file
            .filter(|_| is_log)
            .map(|file| LogKind::of(file).by(method)),
    })
}

/// The syncs of all entries; `None` if there were none.
fn sync_flow(load: &[&FioJob]) -> Option<Flow> {
    let of: Vec<&Map<String, Value>> = load
        .iter()
        .filter_map(|entry| entry.job.get("sync")?.as_object())
        .collect();
    // fio counts the times, and before 3.34 nothing else.
    let timed = latency(&of, "total", "lat").filter(|_| of.len() == load.len())?;
    let of_entry = |entry: &&FioJob| {
        let timed = entry.job.get("sync")?.get("lat_ns")?.get("N")?.as_f64()?;
        Some(timed / seconds(entry)?)
    };
    let write = load[0].option(&["bs", "blocksize"]);
    let bytes = write.and_then(|text| quantity(text.split(',').next_back()?));
    let io_bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
    Some(Flow {
        class: class(io_bytes).into(),
        kind: "sync".into(),
        io_bytes,
        done: timed.count,
        iops: load.iter().map(of_entry).sum(),
        bytes_per_s: None,
        latencies: vec![timed],
    })
}

/// `uniform`, `sequential`, or fio's own name of the distribution.
fn pattern(rw: &str, entry: &FioJob) -> String {
    if !rw.starts_with("rand") {
        return "sequential".into();
    }
    match entry.option(&["random_distribution"]) {
        None | Some("random") => "uniform".into(),
        Some(other) => other.into(),
    }
}

/// Percentage of writes; `None` for loads that also trim.
fn writes(rw: &str, entry: &FioJob) -> Option<f64> {
    let rw = rw.split(':').next().unwrap_or(rw);
    match rw {
        "read" | "randread" => Some(0.0),
        "write" | "randwrite" => Some(100.0),
        "rw" | "readwrite" | "randrw" => {
            let percent = |names: &[&str]| {
                entry
                    .option(names)
                    .and_then(|text| text.parse::<f64>().ok())
            };
            let writes = percent(&["rwmixwrite"])
                .or_else(|| percent(&["rwmixread"]).map(|reads| 100.0 - reads));
            Some(writes.unwrap_or(50.0)).filter(|percent| (0.0..=100.0).contains(percent))
        }
        _ => None,
    }
}

/// The kinds with operations.
fn kinds(load: &[&FioJob]) -> Vec<&'static str> {
    let did = |kind: &&str| load.iter().any(|entry| total_ios(entry, kind) > 0);
    // With unified_rw_reporting=both, all together stand beside each.
    ["read", "write", "trim", "mixed"]
        .into_iter()
        .filter(did)
        .collect()
}

fn total_ios(entry: &FioJob, kind: &str) -> u64 {
    entry
        .job
        .get(kind)
        .and_then(|of| of.get("total_ios"))
        .and_then(Value::as_u64)
        .unwrap_or(0)
}

fn flow(load: &[&FioJob], kind: &str, first: &FioJob) -> Flow {
    let of: Vec<&Map<String, Value>> = load
        .iter()
        .filter_map(|entry| entry.job.get(kind)?.as_object())
        .collect();
    let sum = |key: &str| {
        of.iter()
            .map(|one| one.get(key)?.as_f64())
            .sum::<Option<f64>>()
    };
    let whole = |key: &str| {
        of.iter()
            .try_fold(0u64, |sum, one| sum.checked_add(one.get(key)?.as_u64()?))
    };
    let done = whole("total_ios");
    let exact = || {
        let (bytes, done) = (whole("io_bytes")?, done?);
        (done > 0 && bytes % done == 0).then(|| bytes / done)
    };
    let sizes: Vec<&str> = first
        .option(&["bs", "blocksize"])
        .map(|text| text.split(',').collect())
        .unwrap_or_default();
    let size = if kind == "write" {
        sizes.get(1).or(sizes.first())
    } else {
        sizes.first()
    };
    let io_bytes = exact()
        .or_else(|| quantity(size?))
        .and_then(|bytes| u32::try_from(bytes).ok());
    let latencies = [
        ("total", "lat"),
        ("completion", "clat"),
        ("submission", "slat"),
    ]
    .into_iter()
    .filter_map(|(name, key)| latency(&of, name, key))
    .collect();
    Flow {
        class: class(io_bytes).into(),
        kind: kind.into(),
        io_bytes,
        done,
        iops: sum("iops"),
        // Before 3.2, the rate is only there in KiB/s.
        bytes_per_s: sum("bw_bytes").or_else(|| Some(sum("bw")? * 1024.0)),
        latencies,
    }
}

fn class(io_bytes: Option<u32>) -> &'static str {
    if io_bytes.is_some_and(|bytes| bytes >= LARGE_FROM) {
        "large"
    } else {
        "small"
    }
}

/// The latencies of all entries combined; `None` if none were measured.
fn latency(of: &[&Map<String, Value>], name: &str, key: &str) -> Option<ReportedLatency> {
    let of_entry = |entry: &&Map<String, Value>| {
        // The name contains the unit.
        let units = [("_ns", 1.0), ("_us", 1e3), ("_ms", 1e6)];
        let (figures, scale) = units.iter().find_map(|(unit, scale)| {
            Some((entry.get(&format!("{key}{unit}"))?.as_object()?, *scale))
        })?;
        let latency = single(figures, scale)?;
        // Older versions do not tell how many their mean is of.
        let ended = || entry.get("total_ios").and_then(Value::as_u64);
        Some(ReportedLatency {
            of: name.into(),
            count: latency.count.or_else(ended),
            ..latency
        })
    };
    let all: Vec<ReportedLatency> = of.iter().filter_map(of_entry).collect();
    match all.len() {
        0 => None,
        1 => all.into_iter().next(),
        _ => Some(ReportedLatency::together(name, &all)),
    }
}

/// Beginning of the last bin of fio's histogram, which has all longer times, too: 29 groups of 64 bins, of which
/// the last begins at 127/64 of 2^33 ns. fio prints its middle.
const HISTOGRAM_END_NS: f64 = (127_u64 << 27) as f64;

/// The latencies of one entry.
fn single(reported: &Map<String, Value>, scale: f64) -> Option<ReportedLatency> {
    let figure = |key: &str| {
        reported
            .get(key)
            .and_then(Value::as_f64)
            .map(|value| value * scale)
            .filter(|v| v.is_finite())
    };
    let count = reported.get("N").and_then(Value::as_u64);
    let (mean, max) = (figure("mean"), figure("max"));
    // Disabled measurements are reported as zeros.
    if count == Some(0) || max.is_none_or(|max| max <= 0.0) && mean.is_none_or(|mean| mean <= 0.0) {
        return None;
    }
    let pairs = |key: &str| {
        reported
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    };
    let mut quantiles: Vec<(f64, f64)> = pairs("percentile")
        .filter_map(|(percent, value)| {
            Some((
                percent.parse::<f64>().ok()? / 100.0,
                value.as_f64()? * scale,
            ))
        })
        .filter(|(share, value)| (0.0..=1.0).contains(share) && value.is_finite())
        .collect();
    quantiles.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut bins: BTreeMap<u16, u64> = BTreeMap::new();
    for (value, count) in pairs("bins") {
        let (Ok(value), Some(count)) = (
            value.parse::<f64>(),
            count.as_u64().filter(|count| *count > 0),
        ) else {
            continue;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "float casts saturate"
        )]
        let bucket = bucket_of((value * scale) as u64).min(BUCKETS - 1);
        let counted = bins
            .entry(u16::try_from(bucket).expect("BUCKETS fits"))
            .or_default();
        *counted = counted.saturating_add(count);
    }
    let histogram = Histogram::try_from(bins.into_iter().collect::<Vec<_>>())
        .ok()
        .filter(is_countable);
    let is_at_end = quantiles
        .iter()
        .any(|(_, value)| *value >= HISTOGRAM_END_NS)
        || pairs("bins").any(|(value, _)| {
            value
                .parse()
                .is_ok_and(|value: f64| value * scale >= HISTOGRAM_END_NS)
        });
    Some(ReportedLatency {
        of: String::new(),
        count,
        mean,
        min: figure("min"),
        max,
        deviation: figure("stddev"),
        quantiles,
        histogram_end: is_at_end.then_some(HISTOGRAM_END_NS),
        histogram,
    })
}

/// fio's facts about the run, and the options of each job.
fn facts(whole: &Value, entries: &[FioJob]) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if let Some(time) = whole.get("time").and_then(Value::as_str) {
        facts.push(("written".to_string(), time.trim().to_string()));
    }
    let mut seen: BTreeSet<(&str, i64)> = BTreeSet::new();
    for entry in entries {
        if !seen.insert((&entry.name, entry.group)) {
            continue;
        }
        let shown = entry.options.iter().filter(|(key, _)| *key != "name");
        let line: Vec<String> = shown
            .map(|(key, value)| {
                if value.is_empty() {
                    key.clone()
                } else {
                    format!("{key}={value}")
                }
            })
            .collect();
        facts.push((format!("job {}", entry.name), line.join(" ")));
    }
    let disks = whole
        .get("disk_util")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for disk in disks {
        let Some(name) = disk.get("name").and_then(Value::as_str) else {
            continue;
        };
        let busy = disk
            .get("util")
            .and_then(Value::as_f64)
            .map_or_else(String::new, |busy| format!(", busy {busy:.1} %"));
        facts.push(("disk".into(), format!("{name}{busy}")));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points_of(text: &str) -> (Imported, Vec<LoadPoint>) {
        let found = read(Source {
            name: "f.json",
            text,
        })
        .unwrap();
        let Figures::Loads(points) = found.figures.clone() else {
            unreachable!("fio has loads")
        };
        (found, points)
    }

    fn close(one: f64, other: f64, share: f64) -> bool {
        (one / other - 1.0).abs() <= share
    }

    #[test]
    fn bins_tell_the_percentiles_that_fio_prints() {
        let (found, points) =
            points_of(include_str!("../../../tests/imports/fio_depth8_plus.json"));
        assert_eq!(found.version.as_deref(), Some("3.33"));
        let [point] = &points[..] else {
            panic!("{points:?}")
        };
        assert_eq!(point.load, ReportedLoad::Closed { depth: 8 });
        let flow = &point.flows[0];
        assert_eq!(
            (flow.class.as_str(), flow.kind.as_str(), flow.io_bytes),
            ("small", "read", Some(8192))
        );
        let timed = flow.latency("completion").unwrap();
        let histogram = timed.histogram.as_ref().unwrap();
        assert_eq!(Some(histogram.count()), flow.done);
        for (share, reported) in &timed.quantiles {
            let ours = histogram.quantile(*share).unwrap().middle();
            assert!(
                close(ours, *reported, 1.0 / 64.0),
                "{share}: {ours} {reported}"
            );
        }
    }

    #[test]
    fn separately_reported_processes_are_one_load() {
        let (found, points) = points_of(include_str!("../../../tests/imports/fio_each.json"));
        let [point] = &points[..] else {
            panic!("{points:?}")
        };
        assert_eq!(point.load, ReportedLoad::Closed { depth: 3 });
        let flow = &point.flows[0];
        let expected = 13_426.286_857 + 13_429.785_107 + 13_431.568_432;
        assert!(
            close(flow.iops.unwrap(), expected, 1e-12),
            "{:?}",
            flow.iops
        );
        let timed = flow.latency("completion").unwrap();
        assert!(timed.quantiles.is_empty() && timed.mean.is_some());
        assert!(
            found.notes[0].contains("cannot be combined without bins"),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn a_mix_has_its_reads_and_writes() {
        let (_, points) = points_of(include_str!("../../../tests/imports/fio_mixed_lat.json"));
        assert_eq!(points[0].writes_percent, Some(30.0));
        let kinds: Vec<&str> = points[0]
            .flows
            .iter()
            .map(|flow| flow.kind.as_str())
            .collect();
        assert_eq!(kinds, ["read", "write"]);
        assert!(
            points[0].flows.iter().all(|flow| flow
                .latency("total")
                .unwrap()
                .quantile(0.99)
                .is_some())
        );
    }

    #[test]
    fn jobs_one_after_the_other_are_loads_of_their_own() {
        let (_, points) = points_of(include_str!("../../../tests/imports/fio_three.json"));
        let names: Vec<&str> = points.iter().map(|point| point.label.as_str()).collect();
        assert_eq!(
            (names, points.iter().all(|point| point.beside.is_empty())),
            (vec!["a", "b", "c"], true)
        );
        assert_eq!(
            (
                points[2].pattern.as_deref(),
                points[2].flows[0].class.as_str()
            ),
            (Some("sequential"), "large")
        );
        assert_eq!(
            points[2].flows[0]
                .latency("submission")
                .unwrap()
                .quantiles
                .len(),
            3
        );
    }

    #[test]
    fn text_around_the_json_is_skipped() {
        let text = include_str!("../../../tests/imports/fio_each.json");
        let around =
            format!("fio: warning\nnote: more\n{text}\n\nps: (groupid=0, jobs=3): err= 0\n");
        assert_eq!(points_of(&around).1, points_of(text).1);
        let (found, _) = points_of(&format!("{text}\n{text}"));
        assert!(
            found.notes.iter().any(|note| note.contains("2 reports")),
            "{:?}",
            found.notes
        );
        // What fio prints while it runs has no line ends, and may have braces.
        let around =
            format!("{{a}}\n{{\nJobs: 1 (f=1)[r(1)][eta 00m:01s]\r{text}ps: err= 0\n{text}");
        assert_eq!(points_of(&around).1, points_of(text).1);
    }

    #[test]
    fn appended_reports_of_several_runs_all_count() {
        let text = include_str!("../../../tests/imports/fio_depth8_plus.json");
        let later = text.replace("\"timestamp\": 1", "\"timestamp\": 2");
        let (found, points) = points_of(&format!("{text}{later}"));
        assert_eq!(points.len(), 2);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
        let other = text.replace("\"iodepth\": \"8\"", "\"iodepth\": \"4\"");
        let (_, points) = points_of(&format!("{text}{other}"));
        let depths: Vec<&ReportedLoad> = points.iter().map(|point| &point.load).collect();
        let depth = |depth| ReportedLoad::Closed { depth };
        assert_eq!(depths, [&depth(8), &depth(4)]);
    }

    #[test]
    fn kibibytes_a_second_stand_in_for_bytes() {
        let text = include_str!("../../../tests/imports/fio_depth8_plus.json");
        let old: String = text
            .split_inclusive('\n')
            .filter(|line| !line.contains("\"bw_bytes\""))
            .collect();
        let of = |text: &str| points_of(text).1[0].flows[0].bytes_per_s.unwrap();
        assert!(old.len() < text.len() && close(of(&old), of(text), 1e-5));
    }

    #[test]
    fn a_cut_or_foreign_file_is_refused_with_its_line() {
        let text = include_str!("../../../tests/imports/fio_each.json");
        for (text, part) in [
            (text[..2000].to_string(), "the JSON is truncated here"),
            (text.replacen("\"groupid\"", "groupid", 1), "line 9: "),
            (
                text.replacen("fio-3.33", "fio-2.21", 1),
                "written by fio-2.21",
            ),
            (
                "{\"fio version\": \"fio-3.33\", \"jobs\": []}".into(),
                "contains no figures",
            ),
        ] {
            let said = read(Source {
                name: "f.json",
                text: &text,
            })
            .unwrap_err()
            .to_string();
            assert!(
                said.contains(part) && said.contains("'f.json'") && said.contains("hint: "),
                "{said}"
            );
        }
    }

    #[test]
    fn times_that_were_not_taken_are_none() {
        let (_, points) = points_of(include_str!("../../../tests/imports/fio_nolat.json"));
        assert!(points[0].flows[0].latencies.is_empty() && points[0].flows[0].iops.is_some());
    }

    #[test]
    fn syncs_after_writes_are_a_flow_of_their_own() {
        let text = include_str!("../../../tests/imports/fio_fdatasync.json");
        let (_, points) = points_of(text);
        let [write, sync] = &points[0].flows[..] else {
            panic!("{points:?}")
        };
        assert_eq!((write.kind.as_str(), sync.kind.as_str()), ("write", "sync"));
        let timed = sync.latency("total").unwrap();
        assert_eq!((sync.io_bytes, sync.done), (Some(2300), Some(10_028)));
        assert_eq!(timed.quantile(0.99), Some(14_090_240.0));
        assert!(close(sync.iops.unwrap(), 10_028.0 / 29.85, 1e-9));
        let log = |text: &str| points_of(text).1[0].syncs.clone().unwrap().log;
        assert_eq!(log(text), Some(LogKind::SIZED));
        let with = |option: &str| log(&text.replace("\"bs\"", &format!("{option},\"bs\"")));
        assert_eq!(with("\"overwrite\":\"1\""), Some(LogKind::REUSED));
        assert_eq!(with("\"fallocate\":\"none\""), Some(LogKind::GROW));
        // Every tenth write, or writes at random, are no log of a database.
        assert_eq!(
            log(&text.replace("\"fdatasync\":\"1\"", "\"fdatasync\":\"10\"")),
            None
        );
        assert_eq!(
            log(&text.replace("\"rw\":\"write\"", "\"rw\":\"randwrite\"")),
            None
        );
    }

    #[test]
    fn a_depth_that_the_engine_does_not_keep_is_named() {
        let text = include_str!("../../../tests/imports/fio_psync_iodepth32.json");
        let depth = |text: &str| {
            let (found, points) = points_of(text);
            let ReportedLoad::Closed { depth } = points[0].load else {
                panic!("{:?}", points[0].load)
            };
            (depth, found.notes.join("; "))
        };
        let (one, note) = depth(text);
        assert!(one == 1 && note.contains("iodepth=32 is ignored"), "{note}");
        let async_direct = text.replace("psync", "libaio");
        assert_eq!(depth(&async_direct), (32, String::new()));
        let (one, note) = depth(&async_direct.replace("\"direct\": \"1\"", "\"direct\": \"0\""));
        assert!(
            one == 1 && note.contains("libaio without direct=1"),
            "{note}"
        );
    }

    #[test]
    fn a_latency_target_is_a_load_of_its_own() {
        let text = include_str!("../../../tests/imports/fio_depth8_plus.json");
        let text = text.replace(
            "\"iodepth\": \"8\"",
            "\"iodepth\": \"8\", \"latency_target\": \"500us\"",
        );
        let (_, points) = points_of(&text);
        let ReportedLoad::Other(words) = &points[0].load else {
            panic!("{:?}", points[0].load)
        };
        assert!(
            words.contains("latency_target=500us, depth 8 at its end"),
            "{words}"
        );
    }

    #[test]
    fn figures_of_all_kinds_together_stand_beside_those_of_each() {
        let text = include_str!("../../../tests/imports/fio_mixed_lat.json");
        let mut whole: Value = serde_json::from_str(text).unwrap();
        let mut both = whole["jobs"][0]["read"].clone();
        both["iops"] = Value::from(9999.0);
        whole["jobs"][0]["mixed"] = both;
        let flows = points_of(&whole.to_string()).1.remove(0).flows;
        let kinds: Vec<&str> = flows.iter().map(|flow| flow.kind.as_str()).collect();
        assert_eq!(kinds, ["read", "write", "mixed"]);
        assert!(flows[2].latency("total").unwrap().quantile(0.99).is_some());
    }
}
