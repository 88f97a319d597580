//! Plain csv: lines of a time and values, such as figures pulled out of AWR by SQL.

use super::time::{Order, moment};
use super::{Source, damaged, number, refuse_empty};
use crate::model::{Error, Moment};
use crate::record::Imported;
use crate::record::imported::{Counted, Figures, Series};

/// Which columns are what, where it was said outright: by name, or by number from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// When a sample began.
    pub time: Option<String>,
    /// Values, a series each.
    pub values: Vec<String>,
    /// How many were counted.
    pub count: Option<String>,
    /// How long a sample took, in seconds.
    pub seconds: Option<String>,
    /// Unit of the values.
    pub unit: Option<String>,
}

const BEGIN: &[&str] = &["begin", "begin_time", "begin_interval_time", "start", "start_time", "time", "timestamp"];
const BEGIN_TOO: &[&str] = &["snap_time", "snap_begin", "date", "datetime", "ts", "when"];
const END: &[&str] = &["end", "end_time", "end_interval_time", "snap_end", "finish"];
const SECONDS: &[&str] = &["seconds", "elapsed", "elapsed_s", "elapsed_seconds", "secs", "duration", "interval_s"];
const VALUE: &[&str] = &["value", "rate", "iops", "tps"];
const VALUE_ENDS: &[&str] = &["_per_second", "_per_sec", "_per_s", "/s", " per second", "_rate"];
const COUNT: &[&str] = &["count", "physical_reads", "physical_writes", "reads", "writes", "done", "delta", "total"];

/// The lines of a table, with their numbers, and what stands between fields.
struct Lines<'a> {
    separator: char,
    lines: Vec<(usize, &'a str)>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let text = text.trim_start_matches('\u{feff}');
        let is_row = |line: &str| !line.is_empty() && !line.starts_with('#');
        let lines: Vec<(usize, &str)> = text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line.trim_end()))
            .filter(|(_, l)| is_row(l.trim()))
            .collect();
        let first = lines.first()?.1;
        let separator = ['\t', ';', ','].into_iter().find(|separator| first.contains(*separator))?;
        Some(Self { separator, lines })
    }

    fn fields(&self, line: &str) -> Vec<String> {
        let (mut fields, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                c if c == self.separator && !quoted => fields.push(String::new()),
                c => fields.last_mut().expect("never empty").push(c),
            }
        }
        fields.into_iter().map(|field| field.trim().to_string()).collect()
    }

    fn rows(&self) -> impl Iterator<Item = (usize, Vec<String>)> + '_ {
        self.lines.iter().map(|(number, line)| (*number, self.fields(line)))
    }
}

/// True if lines of a time and a number stand in `text`.
#[must_use]
pub fn is_like(text: &str, columns: &Columns) -> bool {
    let Some(lines) = Lines::of(text) else { return false };
    let has_time = |row: &[String]| row.iter().any(|field| moment(field, Order::DayFirst).is_some() || is_date(field));
    let is_number = |field: &String| number(field, lines.separator != ',').is_some() || is_grouped(field);
    let has_number = |row: &[String]| row.iter().any(is_number);
    columns.time.is_some() || lines.rows().take(2).any(|(_, row)| has_time(&row) && has_number(&row))
}

fn is_date(field: &str) -> bool {
    moment(field, Order::MonthFirst).is_some()
}

/// Which column is what, by its place.
struct Places {
    begin: usize,
    end: Option<usize>,
    seconds: Option<usize>,
    values: Vec<usize>,
    count: Option<usize>,
    names: Vec<String>,
}

/// Reads a table.
///
/// # Errors
/// A column is not found, or a line does not hold what the others do.
pub fn read(source: Source, columns: &Columns) -> Result<Imported, Error> {
    let name = source.name;
    let lines = Lines::of(source.text).ok_or_else(|| {
        Error::failed(
            format!("'{name}' has no line with a separator: a comma, a semicolon or a tab"),
            "write a line for each sample, such as 2016-04-23T10:17,6272",
        )
    })?;
    let first = lines.rows().next().map(|(_, row)| row).unwrap_or_default();
    let has_head = !first.iter().any(|field| is_date(field) || moment(field, Order::DayFirst).is_some());
    let rows: Vec<(usize, Vec<String>)> =
        lines.rows().skip(usize::from(has_head)).filter(|row| !is_rule(row)).collect();
    let places = places(name, &first, has_head, columns, &rows)?;
    let texts = || rows.iter().filter_map(|(_, row)| row.get(places.begin)).map(String::as_str);
    let (order, is_shown) = Order::of(texts());
    let mut notes = Vec::new();
    let mut commas = vec![Comma::Refused; places.names.len()];
    if lines.separator != ',' {
        for at in places.figures() {
            commas[at] = comma_of(name, &rows, at, &places.names[at])?;
            if commas[at] == Comma::Thousands {
                notes.push(format!("commas of {} stand between thousands", places.names[at]));
            }
        }
    }
    let mut reader = Reader { name, order, commas, places: &places, empty: 0 };
    let mut series: Vec<Series> = places.series(columns.unit.as_deref());
    for (line, row) in &rows {
        reader.row(*line, row, &mut series)?;
    }
    if reader.empty > 0 {
        notes.push(format!("{} values are empty and left out", reader.empty));
    }
    if !is_shown {
        notes.push("no date shows whether its month or its day comes first: the month is taken to".into());
    }
    if !texts().any(has_offset) {
        notes.push("times tell no offset from UTC: they are shown as written".into());
    }
    for one in &mut series {
        if one.samples.windows(2).any(|two| two[0].begin > two[1].begin) {
            one.samples.sort_by_key(|sample| sample.begin);
            notes.push(format!("the lines of {} were not in the order of time, and were put into it", one.name));
        }
    }
    let told = comments(source.text);
    let sources = vec![name.to_string()];
    refuse_empty(
        name,
        Imported { sources, tool: "csv".into(), version: None, told, notes, figures: Figures::Series(series) },
    )
}

/// A line of dashes, as SQL*Plus draws below its headings.
fn is_rule((_, row): &(usize, Vec<String>)) -> bool {
    row.iter().all(|field| !field.is_empty() && field.bytes().all(|byte| byte == b'-'))
}

/// What the file says of itself.
fn comments(text: &str) -> Vec<(String, String)> {
    let comments = text.lines().filter_map(|line| line.trim().strip_prefix('#')).map(str::trim);
    comments.filter(|said| !said.is_empty()).take(5).map(|said| ("comment".into(), said.into())).collect()
}

fn has_offset(text: &str) -> bool {
    let zone = |at: usize| text.get(at..).is_some_and(|rest| rest.contains(['+', 'Z']) || rest.contains('-'));
    zone(16) || text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What a comma in a column of numbers is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comma {
    /// Nothing: a number has none.
    Refused,
    /// The decimal sign.
    Decimal,
    /// Between thousands.
    Thousands,
}

/// True for digits in groups of three with commas or points between, such as `1,234`, `1.234,5` or `1,234,567.8`.
fn is_grouped(text: &str) -> bool {
    let digits = text.trim().trim_start_matches(['+', '-']);
    let (whole, rest) = match (digits.rfind(','), digits.rfind('.')) {
        // Of two signs the last is the decimal sign.
        (Some(comma), Some(point)) => digits.split_at(comma.max(point)),
        (None, None) => return false,
        _ => (digits, ""),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = whole.split([',', '.']);
    let first = groups.next().unwrap_or_default();
    is_number(first)
        && first.len() <= 3
        && groups.all(|group| is_number(group) && group.len() == 3)
        && (rest.is_empty() || is_number(&rest[1..]))
}

/// What the commas in column `at` are. One before exactly three digits may be either: it takes another value in the
/// column to tell.
fn comma_of(name: &str, rows: &[(usize, Vec<String>)], at: usize, column: &str) -> Result<Comma, Error> {
    const CURE: &str = "write numbers without thousands separators, with a point for decimals: 6272 or 6.272";
    let values = || rows.iter().filter_map(|(line, row)| Some((*line, row.get(at)?.as_str())));
    let mut with_comma = values().filter(|(_, value)| value.contains(',')).peekable();
    let Some((line, value)) = with_comma.peek().copied() else { return Ok(Comma::Decimal) };
    if let Some((other_line, other)) = values().find(|(_, value)| value.contains('.')) {
        let why = if line == other_line {
            format!("'{value}' of {column} has a comma and a point")
        } else {
            format!("'{value}' of {column} has a comma, and '{other}' in line {other_line} a point")
        };
        return Err(damaged(name, line, &why, CURE));
    }
    let (mut is_thousands, mut is_decimal) = (false, false);
    for (_, value) in with_comma {
        is_thousands |= value.matches(',').count() > 1;
        is_decimal |= !is_grouped(value) || value.trim_start_matches(['+', '-']).starts_with('0');
    }
    match (is_thousands, is_decimal) {
        (true, false) => Ok(Comma::Thousands),
        (false, true) => Ok(Comma::Decimal),
        (true, true) => Err(damaged(
            name,
            line,
            &format!("the commas of {column} stand between thousands and before decimals"),
            CURE,
        )),
        (false, false) => {
            let why = format!("the comma in '{value}' of {column} may stand between thousands or before decimals");
            Err(damaged(name, line, &why, CURE))
        }
    }
}

/// Finds the columns.
fn places(
    name: &str,
    first: &[String],
    has_head: bool,
    columns: &Columns,
    rows: &[(usize, Vec<String>)],
) -> Result<Places, Error> {
    let names: Vec<String> =
        if has_head { first.to_vec() } else { (1..=first.len()).map(|n| format!("column {n}")).collect() };
    let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let said = |option: &str, wanted: &str| {
        let by_name = lower.iter().position(|name| *name == wanted.to_lowercase());
        let by_number = || wanted.parse::<usize>().ok().filter(|n| (1..=names.len()).contains(n)).map(|n| n - 1);
        by_name.or_else(by_number).ok_or_else(|| {
            Error::asked(
                format!("{option} '{wanted}' is no column of '{name}'"),
                format!("its columns are {}; a number from 1 is one, too", names.join(", ")),
            )
        })
    };
    let known = |list: &[&str]| list.iter().find_map(|wanted| lower.iter().position(|name| name == wanted));
    let is_time = |at: usize| rows.first().and_then(|(_, row)| row.get(at)).is_some_and(|field| is_date(field));
    let begin = match &columns.time {
        Some(wanted) => said("--time", wanted)?,
        None => known(BEGIN)
            .or_else(|| known(BEGIN_TOO))
            .or_else(|| (0..names.len()).find(|at| is_time(*at)))
            .ok_or_else(|| {
                Error::asked(
                    format!("'{name}' has no column of times: looked for {}", [BEGIN, BEGIN_TOO].concat().join(", ")),
                    format!("say --time COLUMN; there are {}", names.join(", ")),
                )
            })?,
    };
    let seconds =
        columns.seconds.as_deref().map_or(Ok(known(SECONDS)), |wanted| said("--seconds", wanted).map(Some))?;
    // Where the length is named outright, a column called `end` may hold anything: that of a soak's csv holds words.
    let end = known(END).filter(|at| *at != begin && columns.seconds.is_none());
    let count = columns.count.as_deref().map_or(Ok(known(COUNT)), |wanted| said("--count", wanted).map(Some))?;
    let mut values = columns.values.iter().map(|wanted| said("--value", wanted)).collect::<Result<Vec<usize>, _>>()?;
    if values.is_empty() {
        let is_value =
            |at: &usize| VALUE.contains(&lower[*at].as_str()) || VALUE_ENDS.iter().any(|end| lower[*at].ends_with(end));
        values = (0..names.len()).filter(is_value).collect();
    }
    if values.is_empty() && count.is_none() {
        let other = |at: &usize| ![Some(begin), end, seconds].contains(&Some(*at)) && !is_time(*at);
        values = (0..names.len()).filter(other).collect();
        if values.len() != 1 {
            return Err(Error::asked(
                format!("'{name}' does not say which of its columns is the value: {}", names.join(", ")),
                "say --value COLUMN, by name or by number from 1",
            ));
        }
    }
    if values.is_empty() && seconds.is_none() && end.is_none() {
        // A count without a time over which it was counted is a value like any other.
        values.extend(count);
    }
    let count = count.filter(|at| !values.contains(at) && values.len() <= 1);
    Ok(Places { begin, end, seconds, values, count, names })
}

impl Places {
    /// The columns that hold numbers.
    fn figures(&self) -> impl Iterator<Item = usize> + '_ {
        self.values.iter().copied().chain(self.count).chain(self.seconds)
    }

    fn series(&self, unit: Option<&str>) -> Vec<Series> {
        let of = |at: usize, is_value: bool| {
            let name = self.names[at].clone();
            let per_second = !is_value || VALUE_ENDS.iter().any(|end| name.to_lowercase().ends_with(end));
            let unit = unit.unwrap_or(if per_second { "/s" } else { "" }).to_string();
            Series { name, unit, samples: Vec::new() }
        };
        let counted = self.count.filter(|_| self.values.is_empty());
        self.values.iter().map(|at| of(*at, true)).chain(counted.map(|at| of(at, false))).collect()
    }
}

/// Reads rows, one after the other.
struct Reader<'a> {
    name: &'a str,
    order: Order,
    /// By column.
    commas: Vec<Comma>,
    places: &'a Places,
    /// Values that were empty.
    empty: usize,
}

impl Reader<'_> {
    fn row(&mut self, line: usize, row: &[String], series: &mut [Series]) -> Result<(), Error> {
        let places = self.places;
        if row.len() != places.names.len() {
            let why = format!("has {} fields, and {} were expected", row.len(), places.names.len());
            return Err(damaged(self.name, line, &why, "write every line with the same fields, or take it out"));
        }
        let begin = self.time(line, &row[places.begin])?;
        let end = places.end.map(|at| self.time(line, &row[at])).transpose()?;
        let seconds = match places.seconds {
            Some(at) => self.number(line, row, at)?,
            None => end.map(|end| end.since(begin) as f64),
        };
        let count = places.count.map(|at| self.number(line, row, at)).transpose()?.flatten();
        if places.values.is_empty() {
            self.add(&mut series[0], Counted { begin, seconds, value: None, count });
        }
        for (at, one) in places.values.iter().zip(series.iter_mut()) {
            let value = self.number(line, row, *at)?;
            self.add(one, Counted { begin, seconds, value, count });
        }
        Ok(())
    }

    fn add(&mut self, series: &mut Series, sample: Counted) {
        if sample.value.is_none() && sample.count.is_none() {
            self.empty += 1;
        } else {
            series.samples.push(sample);
        }
    }

    fn time(&self, line: usize, text: &str) -> Result<Moment, Error> {
        moment(text, self.order).ok_or_else(|| {
            let why = format!("'{text}' is not a moment");
            damaged(self.name, line, &why, "write it as 2016-04-23T10:17; --time COLUMN names another column")
        })
    }

    /// The number in a column; none where it is empty.
    fn number(&self, line: usize, row: &[String], at: usize) -> Result<Option<f64>, Error> {
        let text = &row[at];
        if text.is_empty() || text.eq_ignore_ascii_case("null") || text == "-" {
            return Ok(None);
        }
        let plain = if self.commas[at] == Comma::Thousands { text.replace(',', "") } else { text.clone() };
        number(&plain, self.commas[at] == Comma::Decimal).map(Some).ok_or_else(|| {
            let why = format!("'{text}' of {} is not a number", self.places.names[at]);
            damaged(self.name, line, &why, "write it without thousands separators; leave it empty where it is unknown")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(text: &str, columns: &Columns) -> Vec<Series> {
        match read(Source { name: "f.csv", text }, columns).unwrap().figures {
            Figures::Series(series) => series,
            Figures::Loads(_) => unreachable!("a table has no loads"),
        }
    }

    fn refused(text: &str) -> String {
        read(Source { name: "f.csv", text }, &Columns::default()).unwrap_err().to_string()
    }

    #[test]
    fn a_cloud_day_is_read_as_it_stands() {
        let found = series(include_str!("../../docs/examples/cloud-day.csv"), &Columns::default());
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!((one.name.as_str(), one.unit.as_str(), one.samples.len()), ("physical_reads_per_second", "/s", 51));
        let first = one.samples[0];
        assert_eq!(first.begin.to_string(), "2016-04-23T10:17:00+00:00");
        assert_eq!((first.seconds, first.value, first.count), (Some(1018.0), Some(6272.0), Some(6_385_274.0)));
    }

    #[test]
    fn separators_heads_and_gaps_of_many_kinds_are_read() {
        let values = |text: &str| -> Vec<Option<f64>> {
            series(text, &Columns::default())[0].samples.iter().map(Counted::rate).collect()
        };
        assert_eq!(values("2016-04-23T10:17,5\n2016-04-23T10:27,6\n"), [Some(5.0), Some(6.0)]);
        assert_eq!(values("time;value\n23.04.2016 10:17;5,25\n23.04.2016 10:27;\n"), [Some(5.25)]);
        assert_eq!(values("\"SNAP_TIME\"\t\"READS\"\n-----\t----\n23-APR-16 10.17.00 AM\t7\n"), [Some(7.0)]);
        assert_eq!(values("begin,seconds,reads\n2016-04-23T10:17,10,50\n"), [Some(5.0)]);
        assert_eq!(values("begin,end,reads\n2016-04-23T10:17,2016-04-23T10:18,120\n"), [Some(2.0)]);
        // A comma before three digits is what the other commas of its column are.
        let thousands = "time;value\n2016-04-23;6,272\n2016-04-24;1,234,567\n2016-04-25;417\n";
        assert_eq!(values(thousands), [Some(6272.0), Some(1_234_567.0), Some(417.0)]);
        assert_eq!(values("time;value\n2016-04-23;6,272\n2016-04-24;0,125\n"), [Some(6.272), Some(0.125)]);
        let said =
            Columns { time: Some("3".into()), values: vec!["b".into()], unit: Some("ms".into()), ..Columns::default() };
        let found = series("a,b,c\n1,2,2016-04-23\n", &said);
        assert_eq!((found[0].unit.as_str(), found[0].samples[0].value), ("ms", Some(2.0)));
    }

    #[test]
    fn what_cannot_be_read_names_line_and_cure() {
        for (text, part) in [
            (
                "time\tv\n2016-04-23\t6,272\n2016-04-24\t417.5\n",
                "line 2: '6,272' of v has a comma, and '417.5' in line 3",
            ),
            ("time\tv\n2016-04-23\t417\n2016-04-24\t6,272\n", "line 3: the comma in '6,272' of v may stand"),
            ("time;v\n2016-04-23;1.234,5\n", "line 2: '1.234,5' of v has a comma and a point"),
            ("time;v\n2016-04-23;1,5\n2016-04-24;1,234,567\n", "line 2: the commas of v stand between"),
            ("time,v\n2016-04-23,\"6,272\"\n", "line 2: '6,272' of v is not a number"),
            ("time,value\n2016-04-23T10:17,5\n2016-04-23T10:27,x\n", "line 3: 'x' of value is not a number"),
            ("time,value\n2016-04-23T10:17,5\nyesterday,6\n", "line 3: 'yesterday' is not a moment"),
            ("time,value\n2016-04-23T10:17,5\n2016-04-23T10:2", "line 3: has 1 fields, and 2 were expected"),
            ("time,a,b\n2016-04-23T10:17,5,6\n", "which of its columns is the value: time, a, b"),
            ("a,b\n1,2\n", "no column of times"),
            ("time,value\n", "holds no figures"),
        ] {
            let said = refused(text);
            assert!(said.contains(part) && said.contains("cure: "), "{said}");
        }
    }
}
