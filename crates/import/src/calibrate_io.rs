//! What Oracle's own calibration claims: the spool of `rigel sql script oracle-calibrate`, a row of
//! `DBA_RSRC_IO_CALIBRATE` as SQL*Plus prints it, or lines such as `max_iops = 24002`, which the example in
//! Oracle's documentation prints.

use super::limits::LINES_BEFORE;
use super::listing;
use super::source::Source;
use rigel_model::record::Imported;
use rigel_model::record::imported::{ClaimedCalibration, Figures};
use rigel_model::{Error, failed, usage};

/// First fields of every line of interest.
const MARK: &str = "RIGEL|calibrate_io|";

/// True if the text is one of these.
pub(super) fn is_like(text: &str) -> bool {
    let first = || text.lines().take(LINES_BEFORE);
    first().any(|line| line.starts_with(MARK))
        || !printed(first()).is_empty()
        || first().any(|line| {
            let words: Vec<String> = line
                .split_whitespace()
                .map(str::to_ascii_lowercase)
                .collect();
            let has = |name: &str| words.iter().any(|word| word == name);
            has("max_iops") && has("max_mbps")
        })
}

/// Reads a spool, printed lines or a row.
///
/// # Errors
/// It is cut short, has an error of the database, or no row.
pub(super) fn read(source: Source) -> Result<Imported, Error> {
    let printed = printed(source.text.lines());
    let (claims, reported) = if source.text.lines().any(|line| line.starts_with(MARK)) {
        spool(source)?
    } else if printed.is_empty() {
        (row(source)?, Vec::new())
    } else {
        (printed, Vec::new())
    };
    let claims = each_once(claims);
    Ok(Imported {
        sources: vec![source.name.to_string()],
        tool: "CALIBRATE_IO".into(),
        version: None,
        reported,
        notes: Vec::new(),
        figures: Figures::Claims(claims),
    })
}

/// The claims, of those that are one run the one with more places: Oracle prints its results, and then the view,
/// which has whole milliseconds.
fn each_once(all: Vec<ClaimedCalibration>) -> Vec<ClaimedCalibration> {
    let mut claims: Vec<ClaimedCalibration> = Vec::new();
    for claim in all {
        match claims.iter_mut().find(|known| is_same(known, &claim)) {
            Some(known) => *known = of_both(known, claim),
            None => claims.push(claim),
        }
    }
    claims
}

/// True if no figure of one contradicts the other.
fn is_same(one: &ClaimedCalibration, other: &ClaimedCalibration) -> bool {
    fn agree<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
        one.zip(other).is_none_or(|(one, other)| one == other)
    }
    let whole_ms = |claim: &ClaimedCalibration| claim.latency_ms.map(f64::round);
    agree(one.started.as_ref(), other.started.as_ref())
        && agree(one.ended.as_ref(), other.ended.as_ref())
        && agree(one.max_iops, other.max_iops)
        && agree(one.max_mbps, other.max_mbps)
        && agree(one.max_pmbps, other.max_pmbps)
        && agree(whole_ms(one), whole_ms(other))
        && agree(one.disks, other.disks)
}

fn of_both(one: &ClaimedCalibration, other: ClaimedCalibration) -> ClaimedCalibration {
    let has_places = |ms: &f64| ms.fract() != 0.0;
    let one = one.clone();
    ClaimedCalibration {
        started: one.started.or(other.started),
        ended: one.ended.or(other.ended),
        max_iops: one.max_iops.or(other.max_iops),
        max_mbps: one.max_mbps.or(other.max_mbps),
        max_pmbps: one.max_pmbps.or(other.max_pmbps),
        latency_ms: one
            .latency_ms
            .filter(has_places)
            .or(other.latency_ms)
            .or(one.latency_ms),
        disks: one.disks.or(other.disks),
        asked_latency_ms: one.asked_latency_ms.or(other.asked_latency_ms),
    }
}

fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

fn word(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_string())
}

fn claim(cells: &[&str]) -> ClaimedCalibration {
    let of = |at: usize| cells.get(at).copied().unwrap_or("");
    ClaimedCalibration {
        started: word(of(0)),
        ended: word(of(1)),
        max_iops: number(of(2)),
        max_mbps: number(of(3)),
        max_pmbps: number(of(4)),
        latency_ms: number(of(5)),
        disks: number(of(6)),
        asked_latency_ms: None,
    }
}

/// The figures of each call whose results were printed, a line each: `max_iops = 24002`, `Max IOPS: 24002`.
fn printed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<ClaimedCalibration> {
    let mut claims: Vec<ClaimedCalibration> = Vec::new();
    for line in lines {
        let Some((name, Some(value))) = line
            .split_once(['=', ':'])
            .map(|(name, value)| (name, number(value)))
        else {
            continue;
        };
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        let name = letters.collect::<String>().to_ascii_lowercase();
        let is_new = match claims.last_mut() {
            Some(last) => figure(last, &name).is_some_and(|known| known.is_some()),
            None => true,
        };
        if is_new && figure(&mut claim(&[]), &name).is_some() {
            claims.push(claim(&[]));
        }
        if let Some(place) = claims.last_mut().and_then(|last| figure(last, &name)) {
            *place = Some(value);
        }
    }
    claims.retain(|claim| claim.max_iops.is_some() && claim.max_mbps.is_some());
    claims
}

/// The figure that is printed with this name, in letters and digits.
fn figure<'a>(claim: &'a mut ClaimedCalibration, name: &str) -> Option<&'a mut Option<f64>> {
    match name {
        "maxiops" => Some(&mut claim.max_iops),
        "maxmbps" => Some(&mut claim.max_mbps),
        "maxpmbps" => Some(&mut claim.max_pmbps),
        "latency" | "actuallatency" => Some(&mut claim.latency_ms),
        _ => None,
    }
}

/// Rows, and what else the spool tells, by name.
type Claims = (Vec<ClaimedCalibration>, Vec<(String, String)>);

fn spool(source: Source) -> Result<Claims, Error> {
    let name = source.name;
    let error = source.text.lines().find(|line| {
        let mark = line.find("ORA-").map(|at| &line[at + 4..]);
        mark.is_some_and(|rest| rest.bytes().take(5).filter(u8::is_ascii_digit).count() == 5)
    });
    let (mut claims, mut reported) = (Vec::new(), Vec::new());
    let (mut asked, mut is_whole) = (None, false);
    for line in source.text.lines() {
        let Some(rest) = line.strip_prefix(MARK) else {
            continue;
        };
        let cells: Vec<&str> = rest.trim_end().split('|').collect();
        let text = |at: usize| cells.get(at).map_or("", |cell| cell.trim()).to_string();
        match cells[0] {
            "spool" => reported.push(("database".to_string(), text(2))),
            "asked" => {
                asked = number(&text(2));
                reported.push(("disks asked for".into(), text(1)));
                reported.push((
                    "greatest latency asked for".into(),
                    format!("{} ms", text(2)),
                ));
            }
            "old" => reported.push(("calibration before".into(), cells[1..].join(" "))),
            "parameter" => reported.push((text(1), text(2))),
            "files" => reported.push((
                "data files with asynchronous I/O".into(),
                format!("{} of {}", text(2), text(1)),
            )),
            "row" => claims.push(claim(&cells[1..])),
            "end" => is_whole = true,
            _ => {}
        }
    }
    for claim in &mut claims {
        claim.asked_latency_ms = asked;
    }
    if let Some(error) = error {
        return Err(failed!(
            "'{name}' has an error of the database: {error}",
            "remove the cause and run calibrate_io.sql again; ORA-01031: connect as SYSDBA; \
             ORA-65040: connect to the root; ORA-56708: data files without asynchronous I/O",
            error = error.trim()
        ));
    }
    if claims.is_empty() || !is_whole {
        return Err(failed!(
            "'{name}' is cut short: calibrate_io.sql did not come to its end",
            "give the whole output; the procedure takes 4 to 9 minutes"
        ));
    }
    Ok((claims, reported))
}

/// The rows of a listing.
fn row(source: Source) -> Result<Vec<ClaimedCalibration>, Error> {
    let (names, rows) = listing::columns(source)?;
    let place = |wanted: &str| names.iter().position(|name| name == wanted);
    let order = [
        "start_time",
        "end_time",
        "max_iops",
        "max_mbps",
        "max_pmbps",
        "latency",
        "num_physical_disks",
    ]
    .map(place);
    let claims: Vec<ClaimedCalibration> = rows
        .iter()
        .map(|row| {
            let cells = order.map(|at| at.and_then(|at| row.get(at)).map_or("", String::as_str));
            claim(&cells)
        })
        .filter(|claim| claim.max_iops.is_some())
        .collect();
    if claims.is_empty() {
        return Err(usage!(
            "'{name}' has the heads of DBA_RSRC_IO_CALIBRATE and no row with a MAX_IOPS",
            "paste the heads, the line of dashes and the row",
            name = source.name
        ));
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the layout of SQL*Plus, made for this test.
    const PASTED: &str = "\
SQL> select max_iops, max_mbps, max_pmbps, latency, num_physical_disks from dba_rsrc_io_calibrate;

  MAX_IOPS   MAX_MBPS  MAX_PMBPS    LATENCY NUM_PHYSICAL_DISKS
---------- ---------- ---------- ---------- ------------------
     29283        501        480          0                  1

SQL>
";

    fn claims(text: &str) -> Vec<ClaimedCalibration> {
        let read = read(Source { name: "f", text }).unwrap();
        match read.figures {
            Figures::Claims(claims) => claims,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pasted_row_is_read() {
        assert!(is_like(PASTED));
        let claim = &claims(PASTED)[0];
        assert_eq!(claim.max_iops, Some(29_283.0));
        assert_eq!(claim.latency_ms, Some(0.0));
        assert_eq!(claim.disks, Some(1.0));
        assert_eq!(claim.started, None);
    }

    #[test]
    fn printed_lines_are_read_call_by_call() {
        let text = "SQL> @disk\nDBMS_OUTPUT.PUT_LINE('max_iops = ' || iops);\nmax_iops = 24002\n\
                    latency  = 10.868\nmax_mbps = 175\n\nSQL> @again\nLatency: 7\nMax IOPS: 25000\n\
                    Max MBPS: 180\n";
        assert!(is_like(text));
        let found = claims(text);
        let figures = found.iter();
        let figures = figures.map(|one| (one.max_iops, one.max_mbps, one.latency_ms));
        assert_eq!(
            figures.collect::<Vec<_>>(),
            [
                (Some(24_002.0), Some(175.0), Some(10.868)),
                (Some(25_000.0), Some(180.0), Some(7.0))
            ]
        );
        assert!(!is_like("max_iops = many\nmax_mbps = 3\n"));
    }

    #[test]
    fn a_run_that_is_printed_twice_is_one_with_all_its_places() {
        let twice = include_str!("../../../tests/imports/calibrate_twice.txt");
        let found = claims(twice);
        let figures = found.iter();
        let figures = figures.map(|one| (one.max_iops, one.latency_ms));
        assert_eq!(
            figures.collect::<Vec<_>>(),
            [(Some(24_002.0), Some(10.868))]
        );
        let other = twice.replace("latency = 11", "latency = 12");
        assert_eq!(claims(&other).len(), 2);
    }

    #[test]
    fn a_spool_is_read_and_one_with_an_error_is_refused() {
        let text = "RIGEL|calibrate_io|spool|1|DB|CDB$ROOT\nRIGEL|calibrate_io|asked|1|20\n\
                    RIGEL|calibrate_io|row|2026-11-21T10:00:00|2026-11-21T10:05:00|154|3|2|11|1\n\
                    RIGEL|calibrate_io|end\n";
        let claim = &claims(text)[0];
        assert_eq!(claim.max_iops, Some(154.0));
        assert_eq!(claim.asked_latency_ms, Some(20.0));
        let refused = |text: &str| {
            let read = read(Source { name: "f", text });
            read.unwrap_err().to_string()
        };
        let failed = text.replace(
            "RIGEL|calibrate_io|end",
            "ORA-56708: Could not find any datafiles",
        );
        assert!(refused(&failed).contains("ORA-56708: Could"));
        let cut = &text[..text.find("RIGEL|calibrate_io|end").unwrap()];
        assert!(refused(cut).contains("is cut short"));
    }
}
