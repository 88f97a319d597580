//! Which columns of a csv file have the time, the length and the figures of a sample, by their names or as the
//! user says.

use super::source::shortened;
use super::time::{Order, moment};
use rigel_model::record::imported::ImportedSeries;
use rigel_model::{Error, usage};

/// Columns that the user named explicitly: by name, or by number from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// Beginning of a sample.
    pub time: Option<String>,
    /// Values, one series each.
    pub values: Vec<String>,
    /// Number of counted events.
    pub count: Option<String>,
    /// Duration of a sample in seconds.
    pub seconds: Option<String>,
    /// Unit of the values.
    pub unit: Option<String>,
}

const BEGIN: &[&str] = &[
    "begin",
    "begin_time",
    "begin_interval_time",
    "start",
    "start_time",
    "time",
    "timestamp",
];
const BEGIN_TOO: &[&str] = &["snap_time", "snap_begin", "date", "datetime", "ts", "when"];
const END: &[&str] = &["end", "end_time", "end_interval_time", "snap_end", "finish"];
const SECONDS: &[&str] = &[
    "seconds",
    "elapsed",
    "elapsed_s",
    "elapsed_seconds",
    "secs",
    "duration",
    "interval_s",
];
const VALUE: &[&str] = &["value", "rate", "iops", "tps"];
const VALUE_ENDS: &[&str] = &[
    "_per_second",
    "_per_sec",
    "_per_s",
    "/s",
    "/sec",
    " per second",
    " per sec",
    " per s",
    "_rate",
];
/// Words that mark a column name as a rate, and their ends: `ReadIOPS`.
const RATES: &[&str] = &["iops", "tps"];
const RATE_ENDS: &[&str] = &["iops"];
/// Ends of the names of rates of bytes, and their units.
const BYTES: &[(&str, &str)] = &[
    ("bytes", "B/s"),
    ("kb", "kB/s"),
    ("mb", "MB/s"),
    ("mib", "MiB/s"),
];
const COUNT: &[&str] = &[
    "count",
    "physical_reads",
    "physical_writes",
    "reads",
    "writes",
    "done",
    "delta",
    "total",
];

/// Number of top rows that show the contents of a table: the first may be empty, as `LAG()` leaves
/// it.
pub(super) const TOP_ROWS: usize = 20;

/// Line number and fields.
pub(super) type CsvRow = (usize, Vec<String>);

/// True for a date, with or without a time.
pub(super) fn is_date(field: &str) -> bool {
    [Order::MonthFirst, Order::DayFirst]
        .iter()
        .any(|order| moment(field, *order).is_some())
}

/// Index of each column.
pub(super) struct CsvColumns {
    pub(super) begin: usize,
    pub(super) end: Option<usize>,
    pub(super) seconds: Option<usize>,
    pub(super) values: Vec<usize>,
    pub(super) counts: Vec<usize>,
    pub(super) names: Vec<String>,
}

/// The column of counts among these lower-case names; both of reads and of writes, which are two figures of one time.
fn counts_among(lower: &[String]) -> Vec<usize> {
    let place = |wanted: &&str| lower.iter().position(|name| name == wanted);
    let of = |word: &str| {
        let mut all = COUNT.iter().filter(|name| name.contains(word));
        all.find_map(place)
    };
    let first = COUNT.iter().find_map(place);
    match (of("read"), of("write")) {
        (Some(reads), Some(writes)) if [Some(reads), Some(writes)].contains(&first) => {
            vec![reads, writes]
        }
        _ => first.into_iter().collect(),
    }
}

/// True if a column of this lower-case name is a rate, that is, per second.
fn is_rate(name: &str) -> bool {
    // `Operations/Sec (Avg)`
    let before = name.split(['(', '[']).next().unwrap_or(name).trim();
    let name = name.replace(['(', ')', '[', ']'], " ");
    let name = name.trim();
    let has_word = || {
        name.split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| RATES.contains(&word) || RATE_ENDS.iter().any(|end| word.ends_with(end)))
    };
    let ends = |name: &str| VALUE_ENDS.iter().any(|end| name.ends_with(end));
    name == "rate" || ends(name) || ends(before) || has_word()
}

/// The unit of a column of this lower-case name; empty if the name does not say it.
fn unit_of(name: &str) -> &'static str {
    if !is_rate(name) {
        return "";
    }
    let before = name.split(['(', '[']).next().unwrap_or(name).trim();
    let counted = VALUE_ENDS.iter().find_map(|end| before.strip_suffix(end));
    let bytes = counted.and_then(|counted| {
        let mut words = counted.split(|c: char| !c.is_ascii_alphanumeric());
        let last = words.next_back()?;
        BYTES.iter().find(|(name, _)| *name == last)
    });
    bytes.map_or("/s", |(_, unit)| unit)
}

/// The column that an option names, by its name or its number from 1.
fn column_named(name: &str, names: &[String], option: &str, wanted: &str) -> Result<usize, Error> {
    let is_named = |name: &String| name.to_lowercase() == wanted.to_lowercase();
    let by_name = names.iter().position(is_named);
    let by_number = || {
        let number = wanted.parse::<usize>().ok();
        number
            .filter(|n| (1..=names.len()).contains(n))
            .map(|n| n - 1)
    };
    by_name.or_else(by_number).ok_or_else(|| {
        usage!(
            "{option} '{wanted}' is not a column of '{name}'",
            "its columns are {names}; a number counts them from 1",
            names = names.join(", ")
        )
    })
}

/// Finds the columns.
pub(super) fn places(
    name: &str,
    first: &[String],
    has_head: bool,
    columns: &Columns,
    rows: &[CsvRow],
) -> Result<CsvColumns, Error> {
    let names: Vec<String> = if has_head {
        first.to_vec()
    } else {
        (1..=first.len()).map(|n| format!("column {n}")).collect()
    };
    let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let column = |option: &str, wanted: &str| column_named(name, &names, option, wanted);
    let listed = |list: &[&str]| {
        list.iter()
            .find_map(|wanted| lower.iter().position(|name| name == wanted))
    };
    let top = || rows.iter().take(TOP_ROWS);
    let is_time = |at: usize| {
        top()
            .filter_map(|(_, row)| row.get(at))
            .any(|field| is_date(field))
    };
    let begin = match &columns.time {
        Some(wanted) => column("--time", wanted)?,
        None => listed(BEGIN)
            .or_else(|| listed(BEGIN_TOO))
            .or_else(|| (0..names.len()).find(|at| is_time(*at)))
            .ok_or_else(|| {
                usage!(
                    "'{name}' has no column of times; looked for {wanted}",
                    "give --time COLUMN; the columns are {names}",
                    wanted = [BEGIN, BEGIN_TOO].concat().join(", "),
                    names = first_of(&names)
                )
            })?,
    };
    let seconds = columns
        .seconds
        .as_deref()
        .map_or(Ok(listed(SECONDS)), |wanted| {
            column("--seconds", wanted).map(Some)
        })?;
    // If the duration is named explicitly, a column called `end` may contain anything: in a soak's
    // csv it contains words.
    let end = listed(END).filter(|at| *at != begin && columns.seconds.is_none());
    let mut counts = match &columns.count {
        Some(wanted) => vec![column("--count", wanted)?],
        None => counts_among(&lower),
    };
    let mut values = columns
        .values
        .iter()
        .map(|wanted| column("--value", wanted))
        .collect::<Result<Vec<usize>, _>>()?;
    if values.is_empty() {
        let is_value = |at: &usize| VALUE.contains(&lower[*at].as_str()) || is_rate(&lower[*at]);
        values = (0..names.len()).filter(is_value).collect();
    }
    if values.is_empty() && counts.is_empty() {
        let is_rest =
            |at: &usize| ![Some(begin), end, seconds].contains(&Some(*at)) && !is_time(*at);
        values = (0..names.len()).filter(is_rest).collect();
        if values.len() != 1 {
            let others = (0..names.len()).filter(|at| *at != begin);
            let others: Vec<String> = others.map(|at| shortened(&names[at])).collect();
            return Err(usage!(
                "'{name}' has several columns that may be the value: {names}",
                "give --value COLUMN, by name or by number from 1",
                names = first_of(&others)
            ));
        }
    }
    if values.is_empty() && seconds.is_none() && end.is_none() {
        // A count without a duration is a value like any other.
        values.append(&mut counts);
    }
    counts.retain(|at| !values.contains(at) && values.len() <= 1);
    Ok(CsvColumns {
        begin,
        end,
        seconds,
        values,
        counts,
        names,
    })
}

/// The first few names, and how many others there are.
fn first_of(names: &[String]) -> String {
    const NAMED_MAX: usize = 8;
    match names.len().saturating_sub(NAMED_MAX) {
        0 => names.join(", "),
        others => format!("{} and {others} others", names[..NAMED_MAX].join(", ")),
    }
}

impl CsvColumns {
    /// The columns with numbers.
    pub(super) fn figures(&self) -> impl Iterator<Item = usize> + '_ {
        self.values
            .iter()
            .copied()
            .chain(self.counts.iter().copied())
            .chain(self.seconds)
    }

    /// The series of the figures, without samples.
    pub(super) fn series(&self, unit: Option<&str>) -> Vec<ImportedSeries> {
        let of = |at: usize, is_value: bool| {
            let name = self.names[at].clone();
            let own = if is_value {
                unit_of(&name.to_lowercase())
            } else {
                "/s"
            };
            let unit = unit.unwrap_or(own).to_string();
            ImportedSeries {
                name,
                unit,
                ..ImportedSeries::default()
            }
        };
        if self.values.is_empty() {
            return self.counts.iter().map(|at| of(*at, false)).collect();
        }
        self.values.iter().map(|at| of(*at, true)).collect()
    }

    /// Notes about assumptions for the columns.
    pub(super) fn notes(&self, series: &[ImportedSeries]) -> Vec<String> {
        let mut notes = Vec::new();
        let begin = &self.names[self.begin];
        if END.contains(&begin.to_lowercase().as_str()) {
            notes.push(format!(
                "no column has the begin of a sample: {begin} is taken as the begin"
            ));
        }
        if let [ImportedSeries { name, unit, .. }] = series
            && unit.is_empty()
        {
            notes.push(format!(
                "{name} has no unit: if it is a rate, give --unit /s to have it analysed"
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_tools_have_their_units() {
        for (name, unit) in [
            ("ReadIOPS", "/s"),
            ("Data Disk Read Operations/Sec (Avg)", "/s"),
            ("\\\\HOST\\PhysicalDisk(_Total)\\Disk Reads/sec", "/s"),
            ("physical reads (per second)", "/s"),
            ("Disk Read Bytes/sec", "B/s"),
            ("read_kB/s", "kB/s"),
            ("ReadLatency", ""),
            ("steps", ""),
        ] {
            assert_eq!(unit_of(&name.to_lowercase()), unit, "{name}");
        }
    }

    #[test]
    fn a_refusal_names_some_columns_and_not_that_of_times() {
        let names: Vec<String> = std::iter::once("Timestamp".to_string())
            .chain((1..40).map(|n| format!("column_{n}")))
            .collect();
        let rows = [(2, vec!["2026-03-01T10:00".to_string(); 40])];
        let refused = places("f", &names, true, &Columns::default(), &rows);
        let refused = refused.err().unwrap().to_string();
        assert!(
            refused.contains("column_8 and 31 others") && !refused.contains("Timestamp"),
            "{refused}"
        );
    }
}
