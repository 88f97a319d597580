//! The spool of a run by the files of `rigel sql script oracle`.
//!
//! A line of interest has fields between bars: `RIGEL`, the run, who printed it (`driver`, `before`,
//! `after` or `session N`), what it is, and its values. Lines with errors of the database or its
//! client are counted; all others are talk.

use super::limits::LINES_BEFORE;
use super::source::Source;
use rigel_model::record::database::{
    DatabaseReport, IoStatRow, NamedFigure, Printed, ReportKind, StatisticRow, WaitBucket,
    WaitHistogram, WaitRow, WaitTable,
};
use rigel_model::record::imported::Figures;
use rigel_model::record::loop_record::{LoopOperations, LoopSession};
use rigel_model::record::{Imported, LoopRecord};
use rigel_model::{Error, Moment, failed, usage};

/// First field of every line of interest.
const MARK: &str = "RIGEL|";

/// Lines with errors that are kept.
const ERRORS_MAX: usize = 5;

/// True if the text is a spool, whole or not.
pub(super) fn is_like(text: &str) -> bool {
    text.lines()
        .take(LINES_BEFORE)
        .any(|line| fields(line).is_some_and(|fields| fields.len() >= 4 && is_who(fields[2])))
}

fn is_who(who: &str) -> bool {
    matches!(who, "driver" | "before" | "after") || who.starts_with("session ")
}

fn fields(line: &str) -> Option<Vec<&str>> {
    line.starts_with(MARK)
        .then(|| line.trim_end().split('|').collect())
}

/// Counters of the server at one moment.
#[derive(Debug, Default)]
struct Snapshot {
    moment_us: Option<f64>,
    taken_us: Option<f64>,
    statistics: Vec<(String, f64)>,
    /// Event, class, waits, microseconds.
    waits: Vec<(String, String, f64, f64)>,
    /// Event, upper bound in microseconds, waits.
    histograms: Vec<(String, f64, f64)>,
    times: Vec<(String, f64)>,
    host: Vec<(String, f64)>,
    /// Function; reads, MiB, writes, MiB, waits, milliseconds.
    functions: Vec<(String, [f64; 6])>,
}

/// What was read so far.
#[derive(Debug, Default)]
struct Spool {
    loops: LoopRecord,
    report: DatabaseReport,
    before: Snapshot,
    after: Snapshot,
    sessions: Vec<SessionLines>,
    notes: Vec<String>,
    start_us: Option<f64>,
    is_whole: bool,
}

/// The lines of one session.
#[derive(Debug, Default)]
struct SessionLines {
    session: LoopSession,
    has_end: bool,
    statistics_before: Vec<(String, f64)>,
    waits_before: Vec<(String, f64, f64)>,
}

/// Reads a spool.
///
/// # Errors
/// It has lines of two runs, or none of a session that ended, or is of another version.
pub(super) fn read(source: Source) -> Result<Imported, Error> {
    let name = source.name;
    let mut spool = Spool::default();
    for line in source.text.lines() {
        let Some(fields) = fields(line) else {
            spool.talk(line);
            continue;
        };
        let [_, run, who, what, values @ ..] = &fields[..] else {
            continue;
        };
        if spool.loops.run.is_empty() {
            spool.loops.run = (*run).to_string();
        } else if spool.loops.run != *run {
            return Err(usage!(
                "'{name}' has lines of two runs, {other} and {run}",
                "give the spools of both runs as two files, as run.sh wrote them",
                other = spool.loops.run
            ));
        }
        match *who {
            "driver" => spool.driver(name, what, values)?,
            "before" => spool.server(what, values, true),
            "after" => spool.server(what, values, false),
            _ => spool.session(who, what, values),
        }
    }
    spool.finish(name)
}

fn number(values: &[&str], at: usize) -> Option<f64> {
    let number: f64 = values.get(at)?.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

fn count(values: &[&str], at: usize) -> Option<u64> {
    values.get(at)?.trim().parse().ok()
}

fn text(values: &[&str], at: usize) -> String {
    values
        .get(at)
        .map_or_else(String::new, |value| value.trim().to_string())
}

/// Number of a count, which is exact.
fn exact(value: f64) -> Printed {
    Printed { value, half: 0.0 }
}

impl Spool {
    /// A line that is not of the files: an error, or nothing of interest.
    fn talk(&mut self, line: &str) {
        let is_error = ["ORA-", "SP2-", "PLS-", "TNS-"].iter().any(|mark| {
            line.match_indices(mark).any(|(at, _)| {
                let digits = line[at + mark.len()..].bytes().take(4);
                digits.filter(u8::is_ascii_digit).count() == 4
            })
        });
        if is_error {
            self.loops.error_lines += 1;
            if self.loops.errors.len() < ERRORS_MAX {
                self.loops.errors.push(line.trim().to_string());
            }
        }
    }

    fn driver(&mut self, name: &str, what: &str, values: &[&str]) -> Result<(), Error> {
        match what {
            "spool" if text(values, 0) != "1" => {
                return Err(usage!(
                    "'{name}' is a spool of version {word}, and this Rigel reads version 1",
                    "read it with the Rigel that wrote the files",
                    word = text(values, 0)
                ));
            }
            "setting" => {
                let setting = (text(values, 0), text(values, 1));
                if setting.0 == "sessions" {
                    self.loops.started = setting.1.parse().unwrap_or(0);
                }
                self.loops.settings.push(setting);
            }
            "start" => self.start_us = number(values, 0),
            "note" => self.notes.push(text(values, 0)),
            "end" => self.is_whole = true,
            _ => {}
        }
        Ok(())
    }

    fn server(&mut self, what: &str, values: &[&str], is_before: bool) {
        let reading = if is_before {
            &mut self.before
        } else {
            &mut self.after
        };
        match what {
            "moment" => reading.moment_us = number(values, 0),
            "taken" => reading.taken_us = number(values, 0),
            "missing" => self.missing(values),
            "who" => self.who(values),
            "parameter" => self
                .report
                .parameters
                .push((text(values, 0), text(values, 1))),
            "statistic" => reading
                .statistics
                .extend(number(values, 1).map(|value| (text(values, 0), value))),
            "time" => reading
                .times
                .extend(number(values, 1).map(|value| (text(values, 0), value))),
            "host" => reading
                .host
                .extend(number(values, 1).map(|value| (text(values, 0), value))),
            "wait" => {
                let waited = number(values, 2).zip(number(values, 3));
                reading.waits.extend(
                    waited.map(|(waits, us)| (text(values, 0), text(values, 1), waits, us)),
                );
            }
            "histogram" => {
                let bucket = number(values, 1).zip(number(values, 2));
                reading
                    .histograms
                    .extend(bucket.map(|(bound, waits)| (text(values, 0), bound, waits)));
            }
            "function" => {
                let mut all = [0.0; 6];
                for (place, value) in all.iter_mut().enumerate() {
                    *value = number(values, place + 1).unwrap_or(0.0);
                }
                reading.functions.push((text(values, 0), all));
            }
            _ => {}
        }
    }

    fn missing(&mut self, values: &[&str]) {
        let code = values.get(1).and_then(|code| code.trim().parse().ok());
        let view = (text(values, 0), code.unwrap_or(0));
        if !self.loops.missing.contains(&view) {
            self.loops.missing.push(view);
        }
    }

    fn who(&mut self, values: &[&str]) {
        let who = &mut self.report.identity;
        let value = Some(text(values, 1)).filter(|value| !value.is_empty());
        match values.first().copied().unwrap_or("") {
            "db_name" => who.db_name = value,
            "container" => who.container = value,
            "release" => who.release = value,
            "instance" => {
                who.instance = value;
                who.instance_number = count(values, 2).and_then(|number| number.try_into().ok());
                who.host = Some(text(values, 3)).filter(|host| !host.is_empty());
            }
            "block_bytes" => {
                who.block_bytes = count(values, 1).and_then(|bytes| bytes.try_into().ok());
            }
            _ => {}
        }
    }

    fn session(&mut self, who: &str, what: &str, values: &[&str]) {
        let Some(number_of) = who
            .strip_prefix("session ")
            .and_then(|number| number.parse().ok())
        else {
            return;
        };
        if what == "missing" {
            self.missing(values);
            return;
        }
        let index = self
            .sessions
            .iter()
            .position(|one| one.session.number == number_of);
        let index = index.unwrap_or_else(|| {
            let mut lines = SessionLines::default();
            lines.session.number = number_of;
            self.sessions.push(lines);
            self.sessions.len() - 1
        });
        self.sessions[index].line(what, values);
    }
}

impl SessionLines {
    fn line(&mut self, what: &str, values: &[&str]) {
        let session = &mut self.session;
        match what {
            "begin" => {
                let late = number(values, 1).zip(number(values, 0));
                session.late_us = late.map_or(0.0, |(began, asked)| (began - asked).max(0.0));
                session.table = count(values, 2)
                    .and_then(|table| table.try_into().ok())
                    .unwrap_or(1);
            }
            "own" => {
                let statistic = number(values, 2).map(|value| (text(values, 1), value));
                if text(values, 0) == "before" {
                    self.statistics_before.extend(statistic);
                } else {
                    session.statistics.extend(statistic);
                }
            }
            "ownwait" => {
                let waited = number(values, 2).zip(number(values, 3));
                let row = waited.map(|(waits, us)| (text(values, 1), waits, us));
                if text(values, 0) == "before" {
                    self.waits_before.extend(row);
                } else {
                    session.waits.extend(row);
                }
            }
            "operations" => session.operations.push(LoopOperations {
                kind: text(values, 0),
                done: count(values, 1).unwrap_or(0),
                failed: count(values, 2).unwrap_or(0),
                rows: count(values, 3).unwrap_or(0),
                sum_us: number(values, 4).unwrap_or(0.0),
                min_us: number(values, 5).unwrap_or(0.0),
                max_us: number(values, 6).unwrap_or(0.0),
                buckets: Vec::new(),
            }),
            "latency" => {
                let kind = text(values, 0);
                let of_kind = session
                    .operations
                    .iter_mut()
                    .find(|operations| operations.kind == kind);
                if let (Some(operations), Some(bound), Some(done)) =
                    (of_kind, number(values, 1), count(values, 2))
                {
                    operations.buckets.push((bound, done));
                }
            }
            "failed" => session
                .failures
                .extend(count(values, 1).map(|failed| (text(values, 0), failed))),
            "end" => {
                self.has_end = true;
                let times = number(values, 0).zip(number(values, 1));
                session.measured_us = times.map_or(0.0, |(from, until)| (until - from).max(0.0));
                session.paused_us = number(values, 2).unwrap_or(0.0);
                session.clock_back = count(values, 3).unwrap_or(0);
                session.ended = text(values, 4);
            }
            _ => {}
        }
    }

    /// The session with what its statistics grew by; `None` if it did not end.
    fn ended(self) -> Option<LoopSession> {
        let mut session = self.session;
        let before = |name: &str| {
            let row = self.statistics_before.iter().find(|one| one.0 == name);
            row.map_or(0.0, |one| one.1)
        };
        for (name, value) in &mut session.statistics {
            *value = (*value - before(name)).max(0.0);
        }
        for (event, waits, us) in &mut session.waits {
            let row = self.waits_before.iter().find(|one| one.0 == *event);
            *waits = (*waits - row.map_or(0.0, |one| one.1)).max(0.0);
            *us = (*us - row.map_or(0.0, |one| one.2)).max(0.0);
        }
        session.waits.retain(|(_, waits, _)| *waits > 0.0);
        self.has_end.then_some(session)
    }
}

impl Spool {
    fn finish(mut self, name: &str) -> Result<Imported, Error> {
        self.loops.sessions = std::mem::take(&mut self.sessions)
            .into_iter()
            .filter_map(SessionLines::ended)
            .collect();
        self.loops.sessions.sort_by_key(|session| session.number);
        if self.loops.sessions.is_empty() {
            let why = match self.loops.errors.first() {
                Some(error) => format!("its first error is '{error}'"),
                None if self.is_whole => "none printed its end".into(),
                None => "it is cut short".into(),
            };
            return Err(failed!(
                "'{name}' has no session that ended: {why}",
                "remove the cause and run it again; a session prints what it did when it ends"
            ));
        }
        let mut report = std::mem::take(&mut self.report);
        report.file = name.to_string();
        report.kind = ReportKind::Spool;
        if !self.is_whole {
            report.cut_after = Some("the last line of run.sh is missing".into());
        }
        self.differences(&mut report);
        if report.window.begin.is_none() {
            report.window.begin = self.start_us.and_then(moment);
        }
        report.notes = self.notes;
        report.sessions = Some(self.loops);
        Ok(Imported {
            sources: vec![name.to_string()],
            tool: "Oracle".into(),
            version: report.identity.release.clone(),
            reported: Vec::new(),
            notes: report.notes.clone(),
            figures: Figures::Database(vec![report]),
        })
    }

    /// What the server did between the two moments; nothing if one of them is missing.
    fn differences(&self, report: &mut DatabaseReport) {
        let (Some(from), Some(until)) = (self.before.moment_us, self.after.moment_us) else {
            return;
        };
        // A snapshot takes time; where in it a view was read is not known.
        let half = |at: &Snapshot, from: f64| at.taken_us.map_or(0.0, |taken| (taken - from) / 2.0);
        let (half_before, half_after) = (half(&self.before, from), half(&self.after, until));
        let seconds = (until + half_after - from - half_before) / 1e6;
        if seconds <= 0.0 {
            return;
        }
        report.window.begin = moment(from);
        report.window.end = moment(until);
        report.window.elapsed_s = Some(Printed {
            value: seconds,
            half: (half_before + half_after) / 1e6,
        });
        let grown = |before: &[(String, f64)], after: &[(String, f64)]| {
            let of = |name: &str| before.iter().find(|one| one.0 == name).map(|one| one.1);
            let rows = after
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value - of(name)?)));
            rows.filter(|(_, value)| *value >= 0.0).collect::<Vec<_>>()
        };
        for (name, value) in grown(&self.before.statistics, &self.after.statistics) {
            report.statistics.push(StatisticRow {
                name,
                total: Some(exact(value)),
                per_s: None,
            });
        }
        for (name, us) in grown(&self.before.times, &self.after.times) {
            report.time_model.push(NamedFigure {
                name,
                instance: None,
                value: exact(us / 1e6),
            });
        }
        self.waits(report);
        self.histograms(report);
        self.functions(report, seconds);
        self.host(report, &grown(&self.before.host, &self.after.host));
    }

    fn waits(&self, report: &mut DatabaseReport) {
        for (event, class, waits, us) in &self.after.waits {
            let before = self.before.waits.iter().find(|one| one.0 == *event);
            let (waits_before, us_before) = before.map_or((0.0, 0.0), |one| (one.2, one.3));
            if *waits > waits_before {
                report.waits.push(WaitRow {
                    of: WaitTable::Both,
                    event: event.clone(),
                    class: Some(class.clone()),
                    waits: Some(exact(waits - waits_before)),
                    time_s: Some(exact((us - us_before).max(0.0) / 1e6)),
                    mean_us: None,
                    percent: None,
                });
            }
        }
    }

    fn histograms(&self, report: &mut DatabaseReport) {
        for (event, bound, waits) in &self.after.histograms {
            let is_same =
                |one: &&(String, f64, f64)| one.0 == *event && one.1.total_cmp(bound).is_eq();
            let before = self.before.histograms.iter().find(is_same);
            let waits = waits - before.map_or(0.0, |one| one.2);
            if waits <= 0.0 {
                continue;
            }
            let bucket = WaitBucket {
                label: format!("<{bound}us"),
                high_us: Some(*bound),
                percent: None,
                count: Some(waits),
            };
            match report.histograms.iter_mut().find(|row| row.event == *event) {
                Some(row) => row.buckets.push(bucket),
                None => report.histograms.push(WaitHistogram {
                    event: event.clone(),
                    is_detail: false,
                    waits: None,
                    may_be_cut: false,
                    first_bound_us: Some(1.0),
                    last_bound_us: None,
                    buckets: vec![bucket],
                }),
            }
        }
        let by_bound = |one: &WaitBucket, other: &WaitBucket| {
            let bound = |bucket: &WaitBucket| bucket.high_us.unwrap_or(f64::INFINITY);
            bound(one).total_cmp(&bound(other))
        };
        for row in &mut report.histograms {
            row.buckets.sort_by(by_bound);
        }
    }

    fn functions(&self, report: &mut DatabaseReport, seconds: f64) {
        for (name, after) in &self.after.functions {
            let Some((_, before)) = self.before.functions.iter().find(|one| one.0 == *name) else {
                continue;
            };
            let grown = |at: usize| (after[at] - before[at]).max(0.0);
            let per_s = |at: usize, half: f64| {
                Some(Printed {
                    value: grown(at) / seconds,
                    half: half / seconds,
                })
            };
            if grown(0) + grown(2) <= 0.0 {
                continue;
            }
            report.functions.push(IoStatRow {
                name: name.clone(),
                instance: None,
                reads_per_s: per_s(0, 0.0),
                // Whole MiB, at both moments.
                read_mib_per_s: per_s(1, 1.0),
                writes_per_s: per_s(2, 0.0),
                write_mib_per_s: per_s(3, 1.0),
                mean_us: (grown(4) > 0.0).then(|| Printed {
                    value: grown(5) / grown(4) * 1e3,
                    half: 1e3 / grown(4),
                }),
            });
        }
    }

    /// CPU of the host, from hundredths of seconds summed over its CPUs.
    fn host(&self, report: &mut DatabaseReport, grown: &[(String, f64)]) {
        let of = |name: &str| grown.iter().find(|one| one.0 == name).map(|one| one.1);
        let statistic = |name: &str| {
            let row = self.after.host.iter().find(|one| one.0 == name);
            row.map(|one| one.1)
        };
        let whole = |value: f64| {
            let is_count = value >= 0.0 && value <= f64::from(u32::MAX);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be in range"
            )]
            is_count.then_some(value as u32)
        };
        report.identity.cpus = statistic("NUM_CPUS").and_then(whole);
        report.identity.cores = statistic("NUM_CPU_CORES").and_then(whole);
        report.identity.memory_gib =
            statistic("PHYSICAL_MEMORY_BYTES").map(|bytes| bytes / f64::from(1 << 30));
        let all = of("BUSY_TIME").zip(of("IDLE_TIME"));
        let Some(all) = all.map(|(busy, idle)| busy + idle).filter(|all| *all > 0.0) else {
            return;
        };
        for (name, from) in [
            ("user", "USER_TIME"),
            ("system", "SYS_TIME"),
            ("wio", "IOWAIT_TIME"),
            ("idle", "IDLE_TIME"),
        ] {
            report.host_cpu.extend(of(from).map(|time| NamedFigure {
                name: name.into(),
                instance: None,
                value: Printed {
                    value: time / all * 100.0,
                    half: 1.0 / all * 100.0,
                },
            }));
        }
    }
}

/// The moment of microseconds since 1970.
fn moment(us: f64) -> Option<Moment> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "float casts saturate, and the range is checked"
    )]
    let seconds = (us / 1e6) as i64;
    Moment::from_unix_seconds(seconds)
}
