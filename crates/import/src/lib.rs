//! Parses the results of other tools.
//!
//! Input: the names and texts of files. Output: their contents as facts for the journal, or an
//! error with file and line. Pure: it opens no files. No text makes it panic.

mod awr;
mod calibrate_io;
pub mod csv_columns;
pub mod fio;
pub mod fio_log;
mod fio_sweep;
pub mod iostat;
mod limits;
mod listing;
mod listing_difference;
mod mhtml;
mod not_read;
pub mod orion;
mod orion_cells;
mod orion_histogram;
mod quotation;
mod ruler;
mod samples;
mod source;
mod spool;
pub mod table;
pub mod time;

use flate2::bufread::MultiGzDecoder;
use quotation::Unquoted;
use rigel_model::record::Imported;
use rigel_model::record::imported::Figures;
use rigel_model::{Error, escaped, failed, usage};
use std::borrow::Cow;
use std::io::Read;

pub use source::Source;

/// The tool that wrote a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportFormat {
    /// fio's JSON, normal or json+, and its logs over time.
    Fio,
    /// Orion's csv files and its summary.
    Orion,
    /// `iostat -x -t`, as text or JSON.
    Iostat,
    /// Lines with a time and values.
    Csv,
    /// Reports of AWR and Statspack, and captures of AWR-Miner.
    Awr,
    /// Listings of SQL*Plus.
    Listing,
    /// Spools of the files of `rigel sql script`.
    Spool,
    /// Rows of `DBA_RSRC_IO_CALIBRATE`, and the spool of a calibration.
    CalibrateIo,
}

impl ImportFormat {
    /// All formats.
    pub const ALL: [ImportFormat; 8] = [
        ImportFormat::Fio,
        ImportFormat::Orion,
        ImportFormat::Iostat,
        ImportFormat::Csv,
        ImportFormat::Awr,
        ImportFormat::Listing,
        ImportFormat::Spool,
        ImportFormat::CalibrateIo,
    ];

    /// Maximum number of lines of a file whose text becomes a table; `None` for the formats of which
    /// numbers alone are kept, a few for each line.
    fn lines_max(self) -> Option<usize> {
        match self {
            ImportFormat::Awr | ImportFormat::Spool => Some(limits::REPORT_LINES_MAX),
            ImportFormat::Listing | ImportFormat::CalibrateIo => Some(limits::LISTING_LINES_MAX),
            ImportFormat::Fio | ImportFormat::Orion | ImportFormat::Iostat | ImportFormat::Csv => {
                None
            }
        }
    }

    /// Name of the format in options.
    pub fn name(self) -> &'static str {
        match self {
            ImportFormat::Fio => "fio",
            ImportFormat::Orion => "orion",
            ImportFormat::Iostat => "iostat",
            ImportFormat::Csv => "csv",
            ImportFormat::Awr => "awr",
            ImportFormat::Listing => "listing",
            ImportFormat::Spool => "spool",
            ImportFormat::CalibrateIo => "calibrate-io",
        }
    }
}

/// The text of a file, without a byte order mark; of MHTML, that of its page. Invalid UTF-8 is
/// replaced: names of hosts and devices come in many encodings. Blanks that do not break, as mail and
/// wikis put them, are blanks.
///
/// # Errors
/// It is UTF-16, which cannot be read, MHTML without a page, or a damaged or too long compressed file.
pub fn text(name: &str, bytes: Vec<u8>) -> Result<String, Error> {
    let bytes = unpacked(name, &bytes)?.unwrap_or(bytes);
    let bytes = mhtml::page(name, &bytes)?.unwrap_or(bytes);
    let is_wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    // In UTF-16, every other byte of ASCII text is zero.
    if is_wide || matches!(bytes[..], [0, _, 0, _, ..] | [_, 0, _, 0, ..]) {
        return Err(usage!(
            "'{name}' is UTF-16, and only UTF-8 is supported",
            "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW"
        ));
    }
    // A text is not copied: it may have a gigabyte.
    let mut text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    if text.contains(NO_BREAK_SPACE) {
        text = text.replace(NO_BREAK_SPACE, " ");
    }
    Ok(text)
}

const BYTE_ORDER_MARK: char = '\u{feff}';
const NO_BREAK_SPACE: char = '\u{a0}';

/// The content of a file that gzip compressed; `None` for another file.
fn unpacked(name: &str, bytes: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(None);
    }
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(bytes)
        .take(limits::REPORT_MAX.0 + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error| {
            failed!(
                "'{name}' is a damaged gzip file: {error}",
                "check it with gzip -t, or give the file uncompressed"
            )
        })?;
    if unpacked.len() as u64 > limits::REPORT_MAX.0 {
        return Err(usage!(
            "'{name}' has more than {most} when uncompressed, the limit of a compressed file",
            "give files of one report each; a longer one uncompressed",
            most = limits::REPORT_MAX
        ));
    }
    Ok(Some(unpacked))
}

/// Reads `sources`, each by its detected format, or all as `format`. Files of one Orion run are
/// combined, and so are the logs of one fio run, and fio's reports of one sweep.
///
/// # Errors
/// A file has an unknown format, or is damaged or truncated.
pub fn read(
    sources: &[Source],
    format: Option<ImportFormat>,
    columns: &csv_columns::Columns,
) -> Result<Vec<Imported>, Error> {
    let mut imported = Vec::new();
    let (mut of_orion, mut logs): (Vec<Source>, Vec<Source>) = (Vec::new(), Vec::new());
    let mut listings = Vec::new();
    let mut figures = limits::KeptFigures::default();
    for source in sources {
        limits::refuse_controls(*source)?;
    }
    // Escape terminal control characters before any text appears in a message.
    let texts: Vec<Cow<str>> = sources.iter().map(|source| escaped(source.text)).collect();
    let texts: Vec<Unquoted> = texts.iter().map(|text| quotation::unquoted(text)).collect();
    for (source, unquoted) in sources.iter().zip(&texts) {
        let source = &Source {
            text: &unquoted.text,
            ..*source
        };
        let format = format.map_or_else(|| recognise(*source, columns), Ok)?;
        if let Some(lines_max) = format.lines_max() {
            let is_html = format == ImportFormat::Awr && awr::is_html(source.text);
            limits::refuse_oversized(*source, lines_max, is_html)?;
        }
        let mut one_file = match format {
            ImportFormat::Fio if !fio::is_like(source.text) => {
                logs.push(*source);
                continue;
            }
            ImportFormat::Orion => {
                of_orion.push(*source);
                continue;
            }
            ImportFormat::Fio => vec![fio::read(*source)?],
            ImportFormat::Iostat => vec![iostat::read(*source)?],
            ImportFormat::Csv => vec![table::read(*source, columns)?],
            ImportFormat::Listing => listing::read(*source, columns)?,
            ImportFormat::Awr => awr::read(*source)?,
            ImportFormat::Spool => vec![spool::read(*source)?],
            ImportFormat::CalibrateIo => vec![calibrate_io::read(*source)?],
        };
        if let Some(first) = one_file.first_mut().filter(|_| !unquoted.prefix.is_empty()) {
            let prefix = unquoted.prefix;
            let note = format!("each line begins with '{prefix}', which is left out");
            first.notes.push(note);
        }
        one_file.iter().try_for_each(|one| figures.add(one))?;
        match format {
            ImportFormat::Listing => listings.extend(one_file),
            ImportFormat::Awr | ImportFormat::Spool => {
                one_file
                    .into_iter()
                    .for_each(|one| awr::join(&mut imported, one));
            }
            _ => imported.extend(one_file),
        }
    }
    let (histograms, others): (Vec<Imported>, Vec<Imported>) = listings
        .into_iter()
        .partition(|one: &Imported| matches!(one.figures, Figures::Database(_)));
    imported.extend(others);
    for one in listing_difference::differences(histograms)? {
        awr::join(&mut imported, one);
    }
    let mut imported = fio_sweep::together(imported);
    let mut of_several = fio_log::read(&logs)?;
    of_several.extend(orion::read(&of_orion)?);
    of_several.iter().try_for_each(|one| figures.add(one))?;
    imported.extend(of_several);
    Ok(imported)
}

/// Detects the tool that wrote a file, by the file's content.
///
/// # Errors
/// The content matches no known format.
pub fn recognise(source: Source, columns: &csv_columns::Columns) -> Result<ImportFormat, Error> {
    let text = source.text;
    if text.trim().is_empty() {
        return Err(usage!(
            "'{name}' is empty",
            "give a file that contains results",
            name = source.name
        ));
    }
    not_read::refuse(source)?;
    if spool::is_like(text) {
        Ok(ImportFormat::Spool)
    } else if calibrate_io::is_like(text) {
        Ok(ImportFormat::CalibrateIo)
    } else if awr::is_like(text) {
        Ok(ImportFormat::Awr)
    } else if fio::is_like(text) || fio_log::is_like(source) {
        Ok(ImportFormat::Fio)
    } else if orion::is_like(text) {
        Ok(ImportFormat::Orion)
    } else if iostat::is_like(text) {
        Ok(ImportFormat::Iostat)
    } else if listing::is_like(text) {
        Ok(ImportFormat::Listing)
    } else if table::is_like(text, columns) {
        Ok(ImportFormat::Csv)
    } else if awr::is_fragment(text) {
        Ok(ImportFormat::Awr)
    } else if text.starts_with("{\"header\":") {
        Err(usage!(
            "'{name}' is the journal of a run of Rigel",
            "rigel report shows it, and rigel fit takes the demand of it",
            name = source.name
        ))
    } else if fio_log::has_lines(text) {
        Err(usage!(
            "'{name}' has lines of fio's logs, and its name does not say what they count",
            "name it as fio does: NAME_iops.1.log, NAME_bw.1.log, NAME_lat.1.log, NAME_clat.1.log or NAME_slat.1.log",
            name = source.name
        ))
    } else if let Some((what, hint)) = fio::not_read(text) {
        Err(usage!("'{name}' is {what}", hint, name = source.name))
    } else {
        Err(usage!(
            "'{name}' has no known format: {text}",
            "`rigel import --help` lists what is read; for csv give --time and --value, for \
             details --format",
            name = source.name,
            text = table::why_not(text)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_unknown_format_is_refused_with_what_was_looked_for() {
        for text in ["", "hello\nworld\n", "{\"a\": 1}", "1 2 3\n"] {
            let said = read(
                &[Source { name: "f", text }],
                None,
                &csv_columns::Columns::default(),
            )
            .unwrap_err()
            .to_string();
            assert!(said.contains("'f' ") && said.contains("hint: "), "{said}");
        }
    }

    #[test]
    fn a_refusal_quotes_the_unreadable_text() {
        for (text, part) in [
            ("hello\nworld\n", "its first line is 'hello'"),
            ("{\"header\":{}}\n", "is the journal of a run"),
            (
                "time,value\n2026-03-01 00:00,6000 io/s\n",
                "'6000 io/s' in line 2 is not a number",
            ),
            (
                "time,value\n2026-03-01 00:00,60 %\n",
                "'60 %' in line 2 is not a number",
            ),
            (
                "time,value\n2026-03-01T00:00+01:00[Here],6\n",
                "'2026-03-01T00:00+01:00[Here]' in line 2 is not a date and time",
            ),
            (
                "time,value\n26-03-01 00:00,6\n",
                "'26-03-01 00:00' in line 2 may have its year first or last",
            ),
            (
                "time\u{1b}[31m,value\nx,6\n",
                "its first line is 'time\\u{1b}[31m,value'",
            ),
        ] {
            let said = read(
                &[Source { name: "f", text }],
                None,
                &csv_columns::Columns::default(),
            )
            .unwrap_err()
            .to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn encodings_are_distinguished() {
        assert_eq!(text("f", b"\xef\xbb\xbf{}".to_vec()).unwrap(), "{}");
        for bytes in [
            &b"\xff\xfea\0"[..],
            &b"\xfe\xff\0a"[..],
            &b"t\0i\0"[..],
            &b"\0t\0i"[..],
        ] {
            assert!(
                text("f", bytes.to_vec())
                    .unwrap_err()
                    .to_string()
                    .contains("'f' is UTF-16"),
                "{bytes:?}"
            );
        }
    }

    fn refusal(text: &str) -> String {
        let source = Source {
            name: "results",
            text,
        };
        let refused = read(&[source], None, &csv_columns::Columns::default());
        refused.unwrap_err().to_string()
    }

    #[test]
    fn a_file_that_is_not_text_is_said_to_be_none_whatever_words_are_in_it() {
        let elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0";
        for words in [&b""[..], b"{\"fio version\" : [[[[", b"ORION VERSION"] {
            let text = text("program", [&elf[..], words].concat()).unwrap();
            let refused = refusal(&text);
            assert!(refused.starts_with("'results' is not text"), "{refused}");
        }
    }

    #[test]
    fn outputs_of_fio_that_are_not_read_name_the_option_that_makes_one_that_is() {
        let normal = "randread: (g=0): rw=randread, bs=(R) 8192B-8192B\nfio-3.33\nStarting 1 process\n\n\
                      randread: (groupid=0, jobs=1): err= 0: pid=1: Wed Nov 25 15:00:00 2026\n  read: \
                      IOPS=22.5k, BW=176MiB/s\n";
        let terse = format!("3;fio-3.33;randread;0;0;{}", "12345;".repeat(120));
        for (text, what) in [(normal, "for people"), (terse.as_str(), "terse")] {
            let refused = refusal(text);
            assert!(refused.contains(what), "{refused}");
            assert!(refused.contains("--output-format=json+"), "{refused}");
            assert!(refused.lines().all(|line| line.len() <= 90), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_a_parser(text in "(?s).{0,400}") {
            for format in ImportFormat::ALL {
                let _ = read(&[Source { name: "f", text: &text }], Some(format), &csv_columns::Columns::default());
            }
        }

        /// A log of fio with any numbers is read or refused, and no more comes out than went in.
        #[test]
        fn no_numbers_break_a_log_of_fio(
            rows in prop::collection::vec((0..u64::MAX, 0..u64::MAX, 0..4u8, 0..3u64), 1..30),
            is_late in any::<bool>(),
        ) {
            let line = |(time, value, direction, bytes): &(u64, u64, u8, u64)| {
                let time = if is_late { *time } else { time % 10_000 };
                format!("{time}, {value}, {direction}, {bytes}, 0\n")
            };
            let text: String = rows.iter().map(line).collect();
            for name in ["f_iops.1.log", "f_bw.1.log", "f_lat.1.log"] {
                let found = read(&[Source { name, text: &text }], None, &csv_columns::Columns::default());
                for one in found.unwrap_or_default() {
                    let Figures::Series(series) = one.figures else { panic!("a log has series") };
                    let samples: usize = series.iter().map(|series| series.samples.len()).sum();
                    prop_assert!(samples <= 16 * (10 * rows.len() + 10_000));
                }
            }
        }

        /// A real file with any part removed or inserted is either read or refused.
        #[test]
        fn no_damage_breaks_a_parser(which in 0..SAMPLES.len(), at in 0.0..1.0f64, cut in 0..60usize, put in ".{0,9}") {
            let text = SAMPLES[which];
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the text")]
            let place = |share: f64| {
                let at = (share * text.len() as f64) as usize;
                (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
            };
            let from = place(at);
            let to = place(((from + cut) as f64 / text.len() as f64).min(1.0)).max(from);
            for text in [format!("{}{put}{}", &text[..from], &text[to..]), text[..from].to_string()] {
                for name in ["f", "f_clat.1.log"] {
                    let source = Source { name, text: &text };
                    let _ = read(&[source], None, &csv_columns::Columns::default());
                    for format in ImportFormat::ALL {
                        let _ = read(&[source], Some(format), &csv_columns::Columns::default());
                    }
                }
            }
        }
    }

    const SAMPLES: [&str; 9] = [
        "500, 2000, 9000, 1, 0, 0, 0x0000, 0\n1000, 4000, 5000, 1, 0, 0, 0x0000, 0\n",
        include_str!("../../../tests/imports/fio_depth8_plus.json"),
        include_str!("../../../tests/imports/fio_each.json"),
        include_str!("../../../tests/imports/iostat_iso.txt"),
        include_str!("../../../tests/imports/iostat_10.txt"),
        include_str!("../../../tests/imports/iostat.json"),
        include_str!("../../../tests/golden/classic/simple_summary.txt"),
        include_str!("../../../tests/golden/classic/simple_iops.csv"),
        include_str!("../../../docs/examples/cloud-day.csv"),
    ];
}
