//! `iostat -t` of sysstat 10, 11 and 12, with or without `-x`, as text or as JSON: one series per
//! active device and column.
//!
//! A report's time is its end. The first report of a run covers the time since boot and is left
//! out, unless iostat has already left it out (`-y`), which two empty lines show, or its rates, which
//! are then whole numbers of operations. A file may contain several runs, each after its own first line.

use super::limits::{DEVICES_MAX, FIGURES_MAX, refuse_large_json};
use super::samples::{Remarks, impossible, put_in_order};
use super::source::{Source, damaged, number, refuse_empty};
use super::time::{Order, manner, moment};
use rigel_model::record::Imported;
use rigel_model::record::imported::{Counted, Figures, ImportedSeries};
use rigel_model::{Error, Moment, arithmetic, failed, usage};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The columns to keep, in the names of all versions, each with its unit. Sizes of requests follow
/// from rates, merges say nothing of the device, and `svctm` was never correct.
const COLUMNS: &[(&str, &str)] = &[
    ("tps", "/s"),
    ("kB/s", "kB/s"),
    ("MB/s", "MB/s"),
    ("r/s", "/s"),
    ("rkB/s", "kB/s"),
    ("rMB/s", "MB/s"),
    ("rsec/s", "sectors/s"),
    ("r_await", "ms"),
    ("w/s", "/s"),
    ("wkB/s", "kB/s"),
    ("wMB/s", "MB/s"),
    ("wsec/s", "sectors/s"),
    ("w_await", "ms"),
    ("await", "ms"),
    ("avgqu-sz", ""),
    ("aqu-sz", ""),
    ("%util", "%"),
    ("f/s", "/s"),
    ("f_await", "ms"),
    ("d/s", "/s"),
    ("dkB/s", "kB/s"),
    ("dMB/s", "MB/s"),
    ("d_await", "ms"),
    ("kB_read/s", "kB/s"),
    ("kB_wrtn/s", "kB/s"),
    ("kB_dscd/s", "kB/s"),
    ("MB_read/s", "MB/s"),
    ("MB_wrtn/s", "MB/s"),
    ("MB_dscd/s", "MB/s"),
    ("Blk_read/s", "sectors/s"),
    ("Blk_wrtn/s", "sectors/s"),
    ("Blk_dscd/s", "sectors/s"),
];

/// The columns of queues.
const QUEUES: &[&str] = &["avgqu-sz", "aqu-sz"];

/// The columns of operations per second.
const OPERATIONS: &[&str] = &["r/s", "w/s", "d/s", "f/s", "tps"];

/// Half of the last place that iostat prints in JSON, whatever a program has made of it since.
const HALF_OF_JSON: f64 = 0.005;

/// The CPU columns to keep.
const CPU: &[&str] = &["%user", "%system", "%iowait", "%steal", "%idle"];

/// The first report of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstReport {
    /// It covers an interval, because iostat left the one before it out.
    OfInterval,
    /// It covers the time since boot.
    SinceBoot,
    /// It may cover the time since boot: the beginning of the run is not in the file, or does not tell.
    Unknown,
}

/// One report.
#[derive(Debug, Default)]
struct IostatReport {
    line: usize,
    time: String,
    /// What is known of the first report of an iostat run, the length of whose interval is unknown.
    first: Option<FirstReport>,
    /// Number of the device in [`IostatContents::devices`], column, value.
    figures: Vec<(u32, &'static str, f64)>,
}

/// Contents of a file.
#[derive(Debug, Default)]
struct IostatContents {
    host: Vec<(String, String)>,
    /// The date in a run's first line, for reports that have only a time of day.
    date: String,
    reports: Vec<IostatReport>,
    /// Names of devices; the CPUs are one.
    devices: Vec<String>,
    /// The number of each name.
    numbers: HashMap<String, u32>,
    /// Half of the last printed place of a column; of places that differ, the greatest.
    halves: HashMap<&'static str, f64>,
    /// Number of figures of all reports.
    count: usize,
}

/// The CPUs as a device.
const CPUS: &str = "cpu";

impl IostatContents {
    /// Adds a figure of a device to the last report. A name is kept once, and so is a column.
    ///
    /// # Errors
    /// The file has more devices or figures than any.
    fn add(
        &mut self,
        name: &str,
        device: &str,
        column: &'static str,
        (value, half): (f64, f64),
    ) -> Result<(), Error> {
        let widest = self.halves.entry(column).or_insert(half);
        *widest = widest.max(half);
        let refused = |what: &str, most: usize| {
            Err(usage!(
                "'{name}' has more than {most} {what}, the limit of a file of iostat",
                "give parts of it, of fewer days or devices each"
            ))
        };
        let number = match self.numbers.get(device) {
            Some(number) => *number,
            None if self.devices.len() >= DEVICES_MAX => {
                return refused("devices", DEVICES_MAX);
            }
            None => {
                let number = u32::try_from(self.devices.len()).unwrap_or(u32::MAX);
                self.devices.push(device.to_string());
                self.numbers.insert(device.to_string(), number);
                number
            }
        };
        self.count += 1;
        if self.count > FIGURES_MAX {
            return refused("figures", FIGURES_MAX);
        }
        if let Some(report) = self.reports.last_mut() {
            report.figures.push((number, column, value));
        }
        Ok(())
    }

    /// Name of a device.
    fn device(&self, number: u32) -> &str {
        self.devices.get(number as usize).map_or("", String::as_str)
    }
}

/// The name of a column of the CPUs that is kept.
fn of_cpu(column: &str) -> Option<&'static str> {
    CPU.iter().find(|known| known[1..] == *column).copied()
}

/// The name of a column of a device that is kept.
fn of_device(column: &str) -> Option<&'static str> {
    let mut names = COLUMNS.iter().map(|(known, _)| *known);
    names.find(|known| *known == column)
}

/// True if iostat wrote `text`.
pub fn is_like(text: &str) -> bool {
    let is_head =
        |line: &str| line.starts_with("Device") && (line.contains("%util") || line.contains("tps"));
    is_json(text)
        || text
            .lines()
            .any(|line| is_head(line) || line.trim_end().ends_with(" Device"))
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"sysstat\"")
}

/// Reads the output of iostat.
///
/// # Errors
/// It contains no times, or a line does not match its header.
pub fn read(source: Source) -> Result<Imported, Error> {
    let name = source.name;
    let mut contents = if is_json(source.text) {
        json(source)?
    } else {
        text(source)?
    };
    if contents.reports.is_empty() {
        return Err(failed!(
            "'{name}' contains no report of iostat -x",
            "record with iostat -x -t SECONDS, as text or with -o JSON"
        ));
    }
    let times: Vec<&str> = contents
        .reports
        .iter()
        .map(|report| report.time.as_str())
        .collect();
    let (order, of_times) = manner(times.iter().copied());
    let mut moments = Vec::new();
    for (report, time) in contents.reports.iter().zip(times.iter().copied()) {
        let why = if time.is_empty() {
            "a report has no time".into()
        } else {
            format!("'{time}' is not a date and time")
        };
        let hint = "record with -t; with S_TIME_FORMAT=ISO in its environment, iostat writes \
                    unambiguous times";
        moments.push(moment(time, order).ok_or_else(|| damaged(name, report.line, &why, hint))?);
    }
    let mut notes = vec![
        "times are those of the ends of reports; each sample begins when the previous one ended"
            .into(),
    ];
    notes.extend(of_times);
    notes.extend(decide_first(&mut contents, &moments));
    notes.extend(without_x(&contents));
    let mut remarks = Remarks::default();
    let mut series = series(&contents, &moments, &mut remarks);
    if series.is_empty() && contents.reports.iter().all(IostatReport::is_left_out) {
        return Err(failed!(
            "'{name}' contains only the first report of a run, which covers the time since boot, \
             unless iostat ran with -y",
            "record more than one: iostat -x -t 10 360"
        ));
    }
    remarks.refuse_all_left_out(name, &series)?;
    notes.extend(remarks.notes());
    notes.extend(put_in_order(&mut series));
    match idle_devices(&contents) {
        0 => {}
        1 => notes.push("1 device did nothing and is left out".into()),
        idle => notes.push(format!("{idle} devices did nothing and are left out")),
    }
    let sources = vec![name.to_string()];
    let (tool, figures) = ("iostat".to_string(), Figures::Series(series));
    refuse_empty(
        name,
        Imported {
            sources,
            tool,
            version: None,
            reported: contents.host,
            notes,
            figures,
        },
    )
}

impl IostatReport {
    /// True if it covers, or may cover, the time since boot.
    fn is_left_out(&self) -> bool {
        self.first
            .is_some_and(|first| first != FirstReport::OfInterval)
    }
}

/// Decides which first reports cover an interval like the next one, and says which are left out.
fn decide_first(contents: &mut IostatContents, moments: &[Moment]) -> Option<String> {
    let (mut since_boot, mut unknown, mut whole) = (0, 0, 0);
    for at in 0..contents.reports.len() {
        let Some(first) = contents.reports[at].first else {
            continue;
        };
        let next = contents
            .reports
            .get(at + 1)
            .filter(|next| next.first.is_none());
        let seconds = next.map(|_| moments[at + 1].since(moments[at]));
        let is_of_interval = first != FirstReport::OfInterval
            && seconds.is_some_and(|seconds| has_whole_counts(contents, at, seconds as f64));
        match first {
            _ if is_of_interval => {
                contents.reports[at].first = Some(FirstReport::OfInterval);
                whole += 1;
            }
            FirstReport::SinceBoot => since_boot += 1,
            FirstReport::Unknown => unknown += 1,
            FirstReport::OfInterval => {}
        }
    }
    let started =
        |runs: usize| format!("iostat was started {runs} times: the first report of each");
    match (since_boot, unknown, whole) {
        (0, 0, 0) => None,
        (1, 0, 0) => Some("the first report covers the time since boot and is left out".into()),
        (0, 1, 0) => Some(
            "the first report is left out, because it may cover the time since boot: only text of \
             iostat from its first line on tells"
                .into(),
        ),
        (0, 0, 1) => Some(
            "the first report is of an interval like the next one: its operations per second, times \
             that, are whole numbers"
                .into(),
        ),
        (_, 0, 0) => Some(format!(
            "{} covers the time since boot and is left out",
            started(since_boot)
        )),
        _ => Some(format!(
            "{}: {since_boot} cover the time since boot, and {unknown} may: they are left out",
            started(since_boot + unknown + whole)
        )),
    }
}

/// True if the operations per second of a report, times `seconds`, are whole numbers, and by chance that would be
/// rarer than one in a hundred: a rate since boot is any number.
fn has_whole_counts(contents: &IostatContents, at: usize, seconds: f64) -> bool {
    const CHANCE: f64 = 0.01;
    let mut rates: Vec<(f64, f64)> = Vec::new();
    for (_, column, value) in &contents.reports[at].figures {
        let half = contents.halves.get(column).copied().unwrap_or(0.0);
        // A disk and its only partition have one figure.
        let is_new = *value > 0.0 && !rates.contains(&(*value, half));
        if OPERATIONS.contains(column) && is_new {
            rates.push((*value, half));
        }
    }
    let is_whole = |rate: &(f64, f64)| arithmetic::is_whole((*rate).into(), seconds) == Some(true);
    let by_chance: f64 = rates.iter().map(|(_, half)| 2.0 * half * seconds).product();
    !rates.is_empty() && rates.iter().all(is_whole) && by_chance <= CHANCE
}

/// What is missing without `-x`.
fn without_x(contents: &IostatContents) -> Option<String> {
    let has = |column: &str| contents.halves.contains_key(column);
    let is_plain = has("tps") && !has("r/s");
    is_plain.then(|| {
        "without -x, reads and writes are told apart only by bytes, and there are no times: record with \
         iostat -x -t"
            .into()
    })
}

/// Adds the date of the first line to a time of day without a date.
fn with_date(time: &str, date: &str) -> String {
    let has_date = time.contains(['/', '-'])
        || time
            .split(' ')
            .next()
            .is_some_and(|word| word.matches('.').count() > 1);
    if has_date || time.is_empty() {
        time.to_string()
    } else {
        format!("{date} {time}")
    }
}

fn idle_devices(contents: &IostatContents) -> usize {
    let mut is_busy: HashMap<u32, bool> = HashMap::new();
    let reports = contents
        .reports
        .iter()
        .filter(|report| !report.is_left_out());
    for (device, _, value) in reports.flat_map(|report| &report.figures) {
        *is_busy.entry(*device).or_default() |= *value > 0.0;
    }
    is_busy.values().filter(|busy| !**busy).count()
}

/// One series per device and column with a value other than zero, and per queue of a busy device, in the order of
/// [`COLUMNS`].
fn series(
    contents: &IostatContents,
    moments: &[Moment],
    remarks: &mut Remarks,
) -> Vec<ImportedSeries> {
    let mut series: BTreeMap<(u32, usize), ImportedSeries> = BTreeMap::new();
    let reports = &contents.reports;
    for (at, report) in reports
        .iter()
        .enumerate()
        .filter(|(_, report)| !report.is_left_out())
    {
        // A first report that is complete, or one before which the clock was set back, takes the
        // length of the next one.
        let before = at.checked_sub(1).filter(|_| report.first.is_none());
        let before = before
            .map(|before| moments[at].since(moments[before]))
            .filter(|seconds| *seconds > 0);
        let after = || {
            let next = reports.get(at + 1).filter(|next| next.first.is_none());
            next.map(|_| moments[at + 1].since(moments[at]))
        };
        let seconds = before.or_else(after).filter(|seconds| *seconds > 0);
        let begin = moments[at].plus_seconds(-seconds.unwrap_or(0));
        for (device, column, value) in &report.figures {
            let names = COLUMNS.iter().map(|(name, _)| name).chain(CPU);
            let place = names.take_while(|name| *name != column).count();
            let one = series
                .entry((*device, place))
                .or_insert_with(|| ImportedSeries {
                    name: format!("{} {column}", contents.device(*device)),
                    unit: COLUMNS.get(place).map_or("%", |(_, unit)| *unit).into(),
                    half: contents.halves.get(column).copied(),
                    samples: Vec::new(),
                });
            let seconds = seconds.map(|seconds| seconds as f64);
            let sample = Counted {
                begin,
                seconds,
                value: Some(*value),
                count: None,
            };
            match impossible(&sample, &one.unit) {
                Some(why) => remarks.left_out(report.line, why),
                None => one.samples.push(sample),
            }
        }
    }
    let did = |one: &ImportedSeries| one.samples.iter().any(|sample| sample.value != Some(0.0));
    let busy: HashSet<u32> = series
        .iter()
        .filter(|(_, one)| did(one))
        .map(|((device, _), _)| *device)
        .collect();
    // A queue of zero beside operations is a figure.
    let is_queue = |place: usize| {
        COLUMNS
            .get(place)
            .is_some_and(|(name, _)| QUEUES.contains(name))
    };
    series
        .into_iter()
        .filter(|((device, place), one)| did(one) || is_queue(*place) && busy.contains(device))
        .map(|(_, one)| one)
        .collect()
}

/// The section of a report that contains the current line.
enum IostatSection {
    None,
    Cpu(Vec<String>),
    Devices(Vec<String>),
}

fn text(source: Source) -> Result<IostatContents, Error> {
    let mut contents = IostatContents::default();
    let mut section = IostatSection::None;
    let (mut blank, mut time) = (Some(RunHead::default()), (0, String::new()));
    for (at, line) in source.text.lines().enumerate() {
        let line = line.trim_end();
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = words.first() else {
            section = IostatSection::None;
            blank = blank.map(|head| RunHead {
                blank_lines: head.blank_lines + 1,
                ..head
            });
            continue;
        };
        if *first == "Linux" && line.contains('(') {
            contents.host = host(line);
            // The kernel's version before the host's name may look like a date.
            let after_host = words.iter().skip_while(|word| !word.starts_with('('));
            contents.date = after_host
                .skip(1)
                .find(|word| {
                    moment(word, Order::DayFirst)
                        .or(moment(word, Order::MonthFirst))
                        .is_some()
                })
                .map_or_else(String::new, |w| (*w).into());
            let head = RunHead {
                is_there: true,
                blank_lines: 0,
            };
            (blank, time) = (Some(head), (0, String::new()));
            section = IostatSection::None;
        } else if *first == "avg-cpu:" {
            begin(&mut contents, &mut time, at + 1, &mut blank);
            section = IostatSection::Cpu(
                words[1..]
                    .iter()
                    .map(|word| word.trim_start_matches('%').to_string())
                    .collect(),
            );
        } else if first.trim_end_matches(':') == "Device" {
            begin(&mut contents, &mut time, at + 1, &mut blank);
            section =
                IostatSection::Devices(words[1..].iter().map(|word| (*word).to_string()).collect());
        } else if words.last() == Some(&"Device") {
            return Err(damaged(source.name, at + 1, OF_PEOPLE, WITHOUT_H));
        } else if let IostatSection::Cpu(columns) | IostatSection::Devices(columns) = &section {
            let (who, values) = match section {
                IostatSection::Cpu(_) => (CPUS, &words[..]),
                _ => (*first, &words[1..]),
            };
            figures(source.name, at + 1, who, columns, values, &mut contents)?;
        } else {
            time = (at + 1, line.trim_start_matches("Time: ").to_string());
        }
    }
    Ok(contents)
}

const OF_PEOPLE: &str = "is from iostat -h, whose figures are rounded";

const WITHOUT_H: &str = "-h is not supported: record with iostat -x -t SECONDS, without -h";

/// What stands before the first report of a run.
#[derive(Debug, Clone, Copy, Default)]
struct RunHead {
    /// True if the first line of the run is in the file.
    is_there: bool,
    /// Number of empty lines after it.
    blank_lines: usize,
}

/// A header begins a report, unless the CPU section has already begun it. `blank` is the head of a run until its
/// first report.
fn begin(
    contents: &mut IostatContents,
    time: &mut (usize, String),
    line: usize,
    blank: &mut Option<RunHead>,
) {
    let of_cpus = contents.numbers.get(CPUS).copied();
    let is_begun = contents.reports.last().is_some_and(|report| {
        // Without a new time, devices belong to the CPU section above them.
        time.1.is_empty() && !report.time.is_empty()
            || report.figures.iter().all(|(who, ..)| of_cpus == Some(*who)) && time.1.is_empty()
    });
    let is_first = blank.is_some();
    if !is_begun || is_first {
        // Two empty lines after a run's first line mean that -y left the first report out.
        let first = blank.take().map(|head| match head.blank_lines {
            _ if !head.is_there => FirstReport::Unknown,
            0 | 1 => FirstReport::SinceBoot,
            _ => FirstReport::OfInterval,
        });
        let (line_of_time, text) = std::mem::take(time);
        let (line, time) = (
            if line_of_time > 0 { line_of_time } else { line },
            with_date(&text, &contents.date),
        );
        contents.reports.push(IostatReport {
            line,
            time,
            first,
            figures: Vec::new(),
        });
    }
}

fn figures(
    name: &str,
    line: usize,
    who: &str,
    columns: &[String],
    values: &[&str],
    contents: &mut IostatContents,
) -> Result<(), Error> {
    const HINT: &str = "the lines before it are complete; truncate the file there to read them";
    let is_rounded = |value: &&str| {
        let number = value.strip_suffix(['%', 'B', 'k', 'K', 'M', 'G', 'T']);
        number.is_some_and(|rest| number_of(rest).is_some())
    };
    if values.iter().any(is_rounded) {
        return Err(damaged(name, line, OF_PEOPLE, WITHOUT_H));
    }
    if values.len() != columns.len() {
        let why = format!(
            "{who} has {} values for {} columns",
            values.len(),
            columns.len()
        );
        return Err(damaged(name, line, &why, HINT));
    }
    for (column, value) in columns.iter().zip(values) {
        let number = number_of(value)
            .ok_or_else(|| damaged(name, line, &format!("'{value}' is not a number"), HINT))?;
        let value = (number, half_of(value));
        let of_cpus = || of_cpu(column).filter(|_| who == CPUS);
        if let Some(column) = of_cpus().or_else(|| of_device(column)) {
            contents.add(name, who, column, value)?;
        }
    }
    Ok(())
}

/// A number with a decimal point or comma, depending on the locale: iostat writes no thousands
/// separators.
fn number_of(text: &str) -> Option<f64> {
    number(text, true)
}

/// Half of the last place of a printed number.
fn half_of(text: &str) -> f64 {
    let places = text
        .rfind(['.', ','])
        .map_or(0, |sign| text.len() - sign - 1);
    0.5 * 10_f64.powi(-i32::try_from(places).unwrap_or(i32::MAX))
}

/// Parses `Linux 6.1.0 (db1) 2026-11-21 _x86_64_ (2 CPU)`, separated by tabs.
fn host(line: &str) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut words = line.split_whitespace().skip(1);
    facts.extend(
        words
            .next()
            .map(|kernel| ("kernel".to_string(), kernel.to_string())),
    );
    let inside = |text: &str| text.trim_matches(['(', ')']).to_string();
    facts.extend(words.next().map(|name| ("host".to_string(), inside(name))));
    let cpus = line
        .rsplit('(')
        .next()
        .and_then(|rest| rest.strip_suffix(" CPU)"));
    facts.extend(cpus.map(|cpus| ("CPUs".to_string(), cpus.to_string())));
    facts
}

fn json(source: Source) -> Result<IostatContents, Error> {
    refuse_large_json(source)?;
    let whole: Value = serde_json::from_str(source.text).map_err(|error| {
        let cut = error.is_eof();
        let why = if cut {
            "the JSON is truncated here".to_string()
        } else {
            error.to_string()
        };
        damaged(
            source.name,
            error.line(),
            &why,
            "stop iostat with Ctrl-C (SIGINT), which completes the file",
        )
    })?;
    let mut contents = IostatContents::default();
    let host = &whole["sysstat"]["hosts"][0];
    for (name, key) in [
        ("kernel", "release"),
        ("host", "nodename"),
        ("CPUs", "number-of-cpus"),
    ] {
        let value = &host[key];
        let text = value
            .as_str()
            .map(str::to_string)
            .or_else(|| value.as_u64().map(|value| value.to_string()));
        contents
            .host
            .extend(text.map(|text| (name.to_string(), text)));
    }
    contents.date = host["date"].as_str().unwrap_or("").into();
    let statistics = host["statistics"].as_array().into_iter().flatten();
    for statistic in statistics.filter(|statistic| statistic.is_object()) {
        let is_first = contents.reports.is_empty();
        let time = with_date(
            statistic["timestamp"].as_str().unwrap_or(""),
            &contents.date,
        );
        contents.reports.push(IostatReport {
            line: 1,
            time,
            first: is_first.then_some(FirstReport::Unknown),
            figures: Vec::new(),
        });
        for (key, value) in statistic["avg-cpu"].as_object().into_iter().flatten() {
            if let (Some(column), Some(value)) = (of_cpu(key), value.as_f64()) {
                contents.add(source.name, CPUS, column, (value, HALF_OF_JSON))?;
            }
        }
        for disk in statistic["disk"].as_array().into_iter().flatten() {
            let Some(device) = disk["disk_device"].as_str() else {
                continue;
            };
            for (column, _) in COLUMNS {
                let value = disk
                    .get(*column)
                    .or_else(|| disk.get(column.trim_start_matches('%')));
                if let Some(value) = value.and_then(Value::as_f64) {
                    contents.add(source.name, device, column, (value, HALF_OF_JSON))?;
                }
            }
        }
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series_of(text: &str) -> (Imported, Vec<ImportedSeries>) {
        let found = read(Source {
            name: "f.txt",
            text,
        })
        .unwrap();
        let Figures::Series(series) = found.figures.clone() else {
            unreachable!("iostat has series")
        };
        (found, series)
    }

    fn named<'a>(series: &'a [ImportedSeries], name: &str) -> &'a ImportedSeries {
        let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
        series
            .iter()
            .find(|one| one.name == name)
            .unwrap_or_else(|| panic!("{name} is not in {names:?}"))
    }

    #[test]
    fn reports_of_sysstat_12_are_series() {
        let (found, series) = series_of(include_str!("../../../tests/imports/iostat_iso.txt"));
        let reads = named(&series, "vda r/s");
        assert_eq!((reads.unit.as_str(), reads.samples.len()), ("/s", 2));
        assert_eq!(
            reads.samples[0].begin.to_string(),
            "2026-11-21T15:43:19+00:00"
        );
        assert_eq!(reads.samples[0].seconds, Some(1.0));
        named(&series, "cpu %steal");
        assert!(
            found.reported.contains(&("host".into(), "vm".into())),
            "{:?}",
            found.reported
        );
        assert!(series.iter().all(|one| !one.name.starts_with("loop0")));
    }

    #[test]
    fn the_columns_and_times_of_older_versions_are_read() {
        let (_, series) = series_of(include_str!("../../../tests/imports/iostat_10.txt"));
        let queue = named(&series, "sda avgqu-sz");
        assert_eq!(
            queue
                .samples
                .iter()
                .map(|sample| sample.value)
                .collect::<Vec<_>>(),
            [Some(7.91), Some(8.02)]
        );
        assert_eq!(
            queue.samples[0].begin.to_string(),
            "2016-04-23T22:17:05+00:00"
        );
        let (_, series) = series_of(include_str!("../../../tests/imports/iostat_11.txt"));
        assert_eq!(
            named(&series, "nvme0n1 aqu-sz").samples[0].value,
            Some(31.52)
        );
    }

    #[test]
    fn each_run_in_a_file_that_was_added_to_has_its_report_since_boot_left_out() {
        let whole = include_str!("../../../tests/imports/iostat_10.txt");
        let (_, once) = series_of(whole);
        let (found, twice) = series_of(&format!(
            "{whole}{}",
            whole.replace("04/23/2016", "04/24/2016")
        ));
        let values = |series: &[ImportedSeries]| -> Vec<Option<f64>> {
            named(series, "sda r/s")
                .samples
                .iter()
                .map(|sample| sample.value)
                .collect()
        };
        assert_eq!(values(&twice), values(&once).repeat(2));
        assert!(
            found
                .notes
                .iter()
                .any(|note| note.contains("iostat was started 2 times")),
            "{:?}",
            found.notes
        );
        // With -y nothing is left out, and no interval spans two runs.
        let head = "Linux 5.4.0 (db1) \t2026-11-21 \t_x86_64_\t(2 CPU)\n\n\n";
        let report = |second| {
            format!("2026-11-21T10:00:{second}+0000\nDevice r/s %util\nsda {second} 1.0\n\n")
        };
        let run = |seconds: [u32; 2]| format!("{head}{}", seconds.map(report).concat());
        let (_, series) = series_of(&[run([11, 12]), run([41, 42])].concat());
        assert_eq!(values(&series), [11.0, 12.0, 41.0, 42.0].map(Some));
        assert!(
            named(&series, "sda r/s")
                .samples
                .iter()
                .all(|sample| sample.seconds == Some(1.0)),
            "{series:?}"
        );
    }

    #[test]
    fn a_date_is_that_behind_the_hosts_name_and_no_version_of_a_kernel() {
        let report = |time| format!("Time: {time}\nDevice r/s %util\nsda 1.0 1.0\n\n");
        let reports = ["10:00:00", "10:00:10"].map(report).concat();
        for kernel in ["5.15.0", "6.1.12", "5.15.0-91-generic"] {
            let head = format!("Linux {kernel} (db1) \t03/14/2024 \t_x86_64_\t(2 CPU)\n\n\n");
            let (_, series) = series_of(&format!("{head}{reports}"));
            let begin = named(&series, "sda r/s").samples[0].begin.to_string();
            assert!(begin.starts_with("2024-03-14T"), "{kernel}: {begin}");
        }
    }

    #[test]
    fn a_clock_set_back_and_a_negative_figure_are_noted() {
        let report =
            |time, reads| format!("2026-10-25T{time}\nDevice r/s %util\nsda {reads} 1.0\n\n");
        let head = "Linux 5.4.0 (db1) \t2026-10-25 \t_x86_64_\t(2 CPU)\n\n\n";
        let times = ["02:40:00", "02:50:00", "02:05:00", "02:15:00", "02:25:00"];
        let reads = ["1", "2", "3", "-4", "5"];
        let reports = times
            .iter()
            .zip(reads)
            .map(|(time, reads)| report(time, reads))
            .collect::<String>();
        let (found, series) = series_of(&format!("{head}{reports}"));
        let samples = &named(&series, "sda r/s").samples;
        assert!(
            samples.is_sorted_by_key(|sample| sample.begin),
            "{samples:?}"
        );
        assert!(
            samples.len() == 4 && samples.iter().all(|sample| sample.seconds == Some(600.0)),
            "{samples:?}"
        );
        let said = found.notes.join("; ");
        assert!(
            said.contains("times go back") && said.contains("line 16: the value is negative"),
            "{said}"
        );
    }

    #[test]
    fn json_and_text_give_the_same_result() {
        let (found, series) = series_of(include_str!("../../../tests/imports/iostat.json"));
        assert_eq!(named(&series, "vda r/s").samples[0].value, Some(30.69));
        assert!(
            found.reported.contains(&("CPUs".into(), "2".into())),
            "{:?}",
            found.reported
        );
    }

    #[test]
    fn errors_name_the_line_and_a_hint() {
        let whole = include_str!("../../../tests/imports/iostat_iso.txt");
        let cut = &whole[..whole.rfind("vda").unwrap() + 40];
        let json = include_str!("../../../tests/imports/iostat.json");
        let is_kept = |line: &&str| !line.starts_with("2026");
        let without = whole.lines().filter(is_kept).collect::<Vec<_>>().join("\n");
        for (text, part) in [
            (cut, "for 22 columns"),
            (&json[..json.len() / 2], "the JSON is truncated here"),
            (&without, "a report has no time"),
            ("     r/s     rkB/s Device\n", "is from iostat -h"),
            (
                "10:00:00\navg-cpu:  %user   %idle\n  3.1%  96.9%\n\nDevice r/s %util\n",
                "line 3: is from iostat -h",
            ),
        ] {
            let said = read(Source {
                name: "f.txt",
                text,
            })
            .unwrap_err()
            .to_string();
            assert!(said.contains(part) && said.contains("hint: "), "{said}");
        }
    }

    fn values(series: &[ImportedSeries], name: &str) -> Vec<f64> {
        let samples = named(series, name).samples.iter();
        samples.filter_map(|sample| sample.value).collect()
    }

    #[test]
    fn a_first_report_of_whole_counts_is_of_an_interval() {
        let json = include_str!("../../../tests/imports/iostat_y.json");
        let (found, series) = series_of(json);
        assert_eq!(values(&series, "sda r/s"), [5000.0, 100.0, 120.0]);
        assert!(
            found.notes.join("; ").contains("are whole numbers"),
            "{:?}",
            found.notes
        );
        // Rates since boot are any numbers.
        let (found, series) = series_of(&json.replace("\"r/s\": 5000.0", "\"r/s\": 4999.37"));
        assert_eq!(values(&series, "sda r/s"), [100.0, 120.0]);
        assert!(
            found
                .notes
                .join("; ")
                .contains("it may cover the time since boot"),
            "{:?}",
            found.notes
        );
        // Over 100 s any rate of two decimals is a whole count.
        let (_, series) = series_of(&json.replace(":00:02", ":01:41").replace(":00:03", ":03:21"));
        assert_eq!(values(&series, "sda r/s"), [100.0, 120.0]);
    }

    #[test]
    fn text_without_its_head_keeps_a_first_report_of_whole_counts() {
        let report = |second: u32, reads: &str, writes: &str| {
            format!(
                "2026-05-14T10:00:{second}+0000\nDevice r/s w/s %util\nsda {reads} {writes} 1.0\n\n"
            )
        };
        let rest = [report(13, "89.67", "3.33"), report(16, "80.00", "4.00")].concat();
        let of = |head: &str, first: String| {
            let (_, series) = series_of(&format!("{head}{first}{rest}"));
            values(&series, "sda r/s")
        };
        let head = "Linux 5.4.0 (db1) \t2026-05-14 \t_x86_64_\t(2 CPU)\n\n";
        for head in ["", head] {
            assert_eq!(of(head, report(10, "88.33", "5.67")), [88.33, 89.67, 80.0]);
            assert_eq!(of(head, report(10, "88.31", "5.67")), [89.67, 80.0]);
        }
        // One whole count of 3 s is chance.
        assert_eq!(of("", report(10, "88.33", "0.00")), [89.67, 80.0]);
    }

    #[test]
    fn bytes_of_reads_and_writes_are_series_without_x() {
        let (found, series) = series_of(include_str!("../../../tests/imports/iostat_default.txt"));
        assert_eq!(values(&series, "sda kB_read/s"), [4800.0, 4900.0]);
        assert_eq!(values(&series, "sda kB_wrtn/s"), [1200.0, 1100.0]);
        let notes = found.notes.join("; ");
        assert!(notes.contains("told apart only by bytes"), "{notes}");
    }

    #[test]
    fn a_series_has_the_place_to_which_it_was_printed() {
        let head = "Linux 5.4.0 (db1) \t2026-05-14 \t_x86_64_\t(2 CPU)\n\n\n";
        let report = |value| {
            format!("2026-05-14T10:00:{value}+0000\nDevice r/s r_await %util\nsda 800 1 50,5\n\n")
        };
        let (_, series) = series_of(&format!("{head}{}", [10, 20].map(report).concat()));
        assert_eq!(named(&series, "sda r_await").half, Some(0.5));
        assert_eq!(named(&series, "sda %util").half, Some(0.05));
    }
}
