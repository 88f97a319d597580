//! `rigel import`: other tools' figures as a run for reports and comparisons.

use super::choice::one_of;
use super::exit_status::exit_status;
use super::expected::ExpectedArgs;
use super::results::{Results, own_arguments};
use super::{output, page};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use rigel_device::clock;
use rigel_import::{self as import, ImportFormat, Source, csv_columns::Columns};
use rigel_model::files;
use rigel_model::record::imported::Figures;
use rigel_model::record::journal::Header;
use rigel_model::record::journal::{self, EngineChoice, Journal};
use rigel_model::record::{Imported, RunEnd};
use rigel_model::{Bytes, Error, Host, Layout, Target, TargetFacts, file_name, usage};
use rigel_verbs::Evaluated;
use rigel_verbs::Verb as _;
use rigel_verbs::import::ImportRequest;
use std::path::{Path, PathBuf};

/// Maximum size of a file, and of all files of one import together: a tool's output of weeks is far
/// smaller.
const BYTES_MAX: Bytes = Bytes(1 << 30);

/// Maximum number of bytes that all compressed files of one import have more when uncompressed.
const UNPACKED_MAX: Bytes = Bytes(256 << 20);

/// Import results of fio, Orion, iostat, csv files or a database's reports
///
/// Detects the format from the content of the files. What a tool does not report stays unknown.
#[derive(Debug, Args)]
#[command(
    after_help = "Formats: fio's JSON (--output-format=json or json+) and its logs (NAME_iops.1.log, \
                  _bw, _lat, _clat, _slat), Orion's _iops.csv, _mbps.csv, _lat.csv and \
                  _summary.txt, iostat -x -t (text or -o JSON), and csv with a column of times and \
                  columns of values, such as an export from AWR; Oracle's AWR reports (text or \
                  HTML, one instance, global or one container), Statspack reports, and captures of \
                  AWR-Miner, each also compressed by gzip; spools of the files of rigel sql script, and rows of DBA_RSRC_IO_CALIBRATE.\n\nExit status: 0 imported, 1 failed, or a file is damaged, 2 wrong usage."
)]
pub(super) struct ImportArgs {
    /// Result files, - for stdin; those of one Orion run, of one sweep of fio, and one run's logs are
    /// combined, and reports of one database are a series
    #[arg(value_name = "FILE", required = true, value_parser = file_or_stdin())]
    files: Vec<PathBuf>,
    /// Directory for the run [default: import_<date>_<time>.rigel]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Tool that wrote the files, if it is not detected
    #[arg(long, value_name = "TOOL", value_parser = one_of(&ImportFormat::ALL, name_and_help))]
    format: Option<ImportFormat>,
    /// For csv: column of times, by name or by number from 1
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// For csv: column of values; may be repeated
    #[arg(long, value_name = "COLUMN")]
    value: Vec<String>,
    /// For csv: column with the number of events in each sample
    #[arg(long, value_name = "COLUMN")]
    count: Option<String>,
    /// For csv: column with the duration of each sample, in seconds
    #[arg(long, value_name = "COLUMN")]
    seconds: Option<String>,
    /// For csv: unit of the values, such as /s or ms
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,
    #[command(flatten)]
    expected: ExpectedArgs,
    /// Show all figures, sections and findings, and not one screen of them
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    verbose: bool,
    /// Print the results as JSON, and nothing else to stdout
    #[arg(long)]
    json: bool,
    /// Print the results as csv, and nothing else to stdout; for AWR, one line per report
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// The path of a file; `-` is what is piped in.
fn file_or_stdin() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| {
        if path.as_os_str() == "-" {
            PathBuf::from("/dev/stdin")
        } else {
            path
        }
    })
}

/// Name and help of a value of `--format`.
fn name_and_help(format: ImportFormat) -> (&'static str, &'static str) {
    let help = match format {
        ImportFormat::Fio => "JSON of fio 3, and its logs",
        ImportFormat::Orion => "csv files and summary of Oracle's Orion or of rigel orion",
        ImportFormat::Iostat => "iostat -x -t, text or JSON",
        ImportFormat::Csv => "Lines with a time and values",
        ImportFormat::Listing => "Listing of SQL*Plus: intervals or a histogram of waits",
        ImportFormat::Awr => "Oracle's AWR and Statspack reports, captures of AWR-Miner",
        ImportFormat::CalibrateIo => {
            "Row of DBA_RSRC_IO_CALIBRATE, or what calibrate_io.sql prints"
        }
        ImportFormat::Spool => "Spool of a run by the files of rigel sql script",
    };
    (format.name(), help)
}

/// Reads the files, writes the run, and shows its content.
pub(super) fn run(args: &ImportArgs) -> Result<u8, Error> {
    args.out.as_deref().map_or(Ok(()), refuse_occupied)?;
    let expected = args.expected.expectations(None)?;
    let mut results = Results::begin(args.out.as_deref(), "import")?;
    let texts = texts_of(&args.files)?;
    let names: Vec<String> = args
        .files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    refuse_duplicates(&names)?;
    let sources: Vec<Source> = names
        .iter()
        .zip(&texts)
        .map(|(name, text)| Source { name, text })
        .collect();
    let columns = Columns {
        time: args.time.clone(),
        values: args.value.clone(),
        count: args.count.clone(),
        seconds: args.seconds.clone(),
        unit: args.unit.clone(),
    };
    let imported = import::read(&sources, args.format, &columns)?;
    refuse_idle_columns(&columns, &imported)?;
    drop(texts);
    results.claim()?;
    let directory = results.path();
    let mut header = header(&args.files, &imported);
    header.invocation.options.expected = expected;
    let mut journal = Journal::create(directory, &header)?;
    // What is read back is not kept twice.
    for one in imported {
        journal.imported(&one)?;
    }
    let imported = Evaluated::read_ending(directory, RunEnd::complete(0))?;
    let status = imported.outcome().map_or(0, exit_status);
    journal.end(&RunEnd::complete(status))?;
    if args.csv {
        output::table(&imported.results.csv());
        return Ok(0);
    }
    if args.verbose {
        page::show_all(&imported, directory);
    } else {
        page::show(&imported, directory, args.json);
    }
    Ok(status)
}

/// Refuses a directory that is not empty. Unlike a measurement, an import cannot be resumed.
fn refuse_occupied(directory: &Path) -> Result<(), Error> {
    let is_occupied =
        std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
    if !is_occupied {
        return Ok(());
    }
    Err(usage!(
        "the result directory '{directory}' exists and is not empty",
        "give another with --out DIR, or remove it",
        directory = directory.display()
    ))
}

/// Reads the texts of files, of a limited length together.
fn texts_of(files: &[PathBuf]) -> Result<Vec<String>, Error> {
    let (mut all, mut of_compressed) = (Bytes(0), Bytes(0));
    let mut texts = Vec::new();
    for (before, path) in files.iter().enumerate() {
        let (text, length) = text_and_length(path)?;
        let refuse = |bytes: Bytes, of: &str, limit: Bytes| {
            if bytes <= limit {
                return Ok(());
            }
            Err(usage!(
                "'{path}' and the {before} files before it have {bytes} together{of}, and the \
                 limit is {limit}",
                "import fewer at once: `rigel compare` takes several runs",
                path = path.display()
            ))
        };
        all.0 += text.len() as u64;
        of_compressed.0 += (text.len() as u64).saturating_sub(length.0);
        refuse(all, "", BYTES_MAX)?;
        let of = " more than on disk";
        refuse(of_compressed, of, UNPACKED_MAX)?;
        texts.push(text);
    }
    Ok(texts)
}

/// Reads the text of a file.
pub(super) fn text_of(path: &Path) -> Result<String, Error> {
    Ok(text_and_length(path)?.0)
}

/// Reads the text of a file, and says how long the file is.
fn text_and_length(path: &Path) -> Result<(String, Bytes), Error> {
    let bytes = files::read(path, BYTES_MAX).map_err(|error| {
        usage!(
            "cannot read '{path}': {error}",
            "give a file with a tool's results",
            path = path.display()
        )
    })?;
    let length = Bytes(bytes.len() as u64);
    Ok((import::text(&path.display().to_string(), bytes)?, length))
}

fn refuse_duplicates(names: &[String]) -> Result<(), Error> {
    match names
        .iter()
        .enumerate()
        .find(|(at, name)| names[..*at].contains(name))
    {
        Some((_, name)) => Err(usage!("'{name}' is given twice", "give every file once")),
        None => Ok(()),
    }
}

/// Refuses column options if no file is CSV, because they would be ignored.
fn refuse_idle_columns(columns: &Columns, found: &[Imported]) -> Result<(), Error> {
    if *columns == Columns::default()
        || found
            .iter()
            .any(|one| matches!(one.figures, Figures::Series(_)))
    {
        return Ok(());
    }
    Err(usage!(
        "--time, --value, --count, --seconds and --unit are for csv, and no file is one",
        "leave them out, or add --format csv"
    ))
}

/// The names of the files, or of the first of many, without their directories.
fn title(names: &[String]) -> String {
    const NAMED_MAX: usize = 4;
    let short = |name: &String| file_name(name).to_string();
    match names {
        [first, others @ ..] if names.len() > NAMED_MAX => {
            format!("{} and {} other files", short(first), others.len())
        }
        _ => names.iter().map(short).collect::<Vec<_>>().join(", "),
    }
}

/// The first line of the journal of what was found in these files.
pub fn header(files: &[PathBuf], found: &[Imported]) -> Header {
    let names: Vec<String> = files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let mut tools: Vec<&str> = found.iter().map(|one| one.tool.as_str()).collect();
    tools.dedup();
    Header {
        format: journal::FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        started: clock::wall_time(),
        command: own_arguments(),
        target: Target::Paths {
            members: files.to_vec(),
            layout: Layout::Concat,
        },
        engine: EngineChoice {
            name: tools.join(" and "),
            buffered: false,
            verify: false,
        },
        engine_about: String::new(),
        points: Vec::new(),
        invocation: ImportRequest {
            files: names.clone(),
        }
        .invocation(),
        // The machine that reads the files is not the measured one.
        host: Host::default(),
        facts_of_others: Vec::new(),
        facts: TargetFacts {
            name: title(&names),
            ..TargetFacts::default()
        },
        findings: Vec::new(),
        ranks: None,
        says_end: true,
    }
}
