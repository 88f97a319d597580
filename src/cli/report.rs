//! `rigel report`: any report of a run, made from its journal alone.

use super::{orion, output, page, soak, watch};
use clap::{Args, ValueEnum};
use rigel_analyse::RunResult;
use rigel_analyse::request::Header;
use rigel_analyse::request::Run;
use rigel_device::engine;
use rigel_model::Error;
use rigel_model::record::journal;
use rigel_report::document::{Document, Extent};
use rigel_report::{self as report, data, fio, sql, text};
use std::path::PathBuf;

/// Print a report of a run, computed from its journal
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 printed, 1 the journal cannot be read or the file not written, 2 \
                  wrong usage, or a report that this run does not have."
)]
pub(super) struct ReportArgs {
    /// Directory of the run, or its journal
    run: PathBuf,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Show everything that the page has in words and tables, and every note in full
    #[arg(long, conflicts_with_all = ["json", "emit_fio", "orion_files", "html"])]
    verbose: bool,
    /// Show the figures of each host at every load, of a run over several hosts
    #[arg(long, conflicts_with_all = ["emit_fio", "orion_files"])]
    per_host: bool,
    /// Print a fio job for the same load as this data point: 4,1 for four small I/Os and one
    /// large; depth:8; rate:900
    #[arg(long, value_name = "POINT", conflicts_with_all = ["format", "json"])]
    emit_fio: Option<String>,
    /// Write Orion's six files into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "json", "emit_fio"])]
    orion_files: Option<PathBuf>,
    /// Write an HTML page, in one self-contained file; - is stdout [default: report.html next to
    /// the journal]
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with_all = ["format", "json", "emit_fio", "orion_files"])]
    #[expect(
        clippy::option_option,
        reason = "not asked for, asked for, asked for by name"
    )]
    html: Option<Option<PathBuf>>,
}

/// A form of report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// Text for people
    Text,
    /// One line for each class of each point
    Csv,
    /// All derived figures
    Json,
    /// Orion's summary
    Orion,
    /// For databases: one line per point, in the format of SLOB's awr_info
    Awr,
}

/// Prints the report.
pub(super) fn run(args: &ReportArgs) -> Result<u8, Error> {
    if soak::is_soak(&Header::read(&args.run)?) {
        return args.of_soak();
    }
    if watch::is_watch(&Header::read(&args.run)?) {
        return args.of_watch();
    }
    let run = Run::read(&args.run)?;
    if let Some(directory) = &args.orion_files {
        return orion::write_files_again(&run, directory);
    }
    let found = || report::result(&run);
    if let Some(file) = &args.html {
        page::again(&args.document(&run, &found())?, &args.run, file.as_deref())?;
        warn_if_cut(run.cut);
        return Ok(0);
    }
    match (&args.emit_fio, args.format()) {
        (Some(point), _) => output::raw(&fio::job(
            &run,
            point,
            engine::info(&run.header.engine.name),
        )?),
        (None, ReportFormat::Text) => output::result(&args.text(&args.document(&run, &found())?)),
        (None, ReportFormat::Csv) if args.per_host => output::raw(&report::csv_of_hosts(&run)?),
        (None, ReportFormat::Json) if args.per_host => {
            output::json(&data::json_with_each_host(&run, &found())?);
        }
        (None, ReportFormat::Csv) => output::raw(&report::csv(&found())),
        (None, ReportFormat::Json) => output::json(&data::json(&run, &found())),
        (None, ReportFormat::Awr) => output::result(&awr(&run, &found())?),
        (None, ReportFormat::Orion) => output::result(&orion::summary_again(&run)?),
    }
    warn_if_cut(run.cut);
    Ok(0)
}

impl ReportArgs {
    fn document(&self, run: &Run, found: &RunResult) -> Result<Document, Error> {
        let document = report::with_end(run, report::document(run, found));
        if self.per_host {
            report::with_each_host(run, document)
        } else {
            Ok(document)
        }
    }

    fn text(&self, document: &Document) -> String {
        text::render(
            document,
            if self.verbose {
                Extent::Full
            } else {
                Extent::Summary
            },
        )
    }

    fn format(&self) -> ReportFormat {
        if self.json {
            ReportFormat::Json
        } else {
            self.format
        }
    }

    /// Reports a soak. Its journal is read round by round, because it may cover weeks.
    fn of_soak(&self) -> Result<u8, Error> {
        let format = self.format();
        self.refuse_formats_of_points("soak")?;
        let (header, found, cut) = soak::read(&self.run)?;
        if let Some(file) = &self.html {
            page::again(
                &report::soak::document(&header, &found),
                &self.run,
                file.as_deref(),
            )?;
        } else {
            match format {
                ReportFormat::Csv => output::raw(&report::soak::csv(&found)),
                ReportFormat::Json => output::json(&report::soak::json(&header, &found)),
                _ => output::result(&self.text(&report::soak::document(&header, &found))),
            }
        }
        if cut && !journal::is_being_written(&self.run) {
            output::remark(
                "rigel: the journal's last line is incomplete and is left out; resume the soak \
                 with rigel soak --resume\n",
            );
        }
        Ok(0)
    }
}

impl ReportArgs {
    /// Refuses the forms that a series over time does not have.
    fn refuse_formats_of_points(&self, what: &str) -> Result<(), Error> {
        if self.emit_fio.is_some()
            || self.orion_files.is_some()
            || matches!(self.format(), ReportFormat::Orion | ReportFormat::Awr)
        {
            return Err(Error::usage(
                format!("this run is a {what}"),
                "use --format text, csv or json, or --html",
            ));
        }
        Ok(())
    }

    /// Reports a watch. Its journal is read interval by interval, because it may cover weeks.
    fn of_watch(&self) -> Result<u8, Error> {
        self.refuse_formats_of_points("watch")?;
        let (header, found, cut) = watch::read(&self.run)?;
        let document = || report::watch::document(&header, &found);
        if let Some(file) = &self.html {
            page::again(&document(), &self.run, file.as_deref())?;
        } else {
            match self.format() {
                ReportFormat::Csv => output::raw(&report::watch::csv(&found)),
                ReportFormat::Json => output::json(&report::watch::json(&header, &found)),
                _ => output::result(&self.text(&document())),
            }
        }
        if cut && !journal::is_being_written(&self.run) {
            output::remark(
                "rigel: the journal's last line is incomplete and is left out; resume the watch \
                 with rigel watch --resume\n",
            );
        }
        Ok(0)
    }
}

fn awr(run: &Run, found: &RunResult) -> Result<String, Error> {
    match found {
        RunResult::Curve(found) if found.busiest().is_some() => {
            Ok(sql::awr_lines(run, &found.points))
        }
        _ => Err(Error::usage(
            "this run did not measure database sessions",
            "--format text, csv or json reports any run",
        )),
    }
}

pub(super) fn warn_if_cut(cut: bool) {
    if cut {
        output::remark(
            "rigel: the journal's last line is incomplete and is left out; resume the run with \
             --resume\n",
        );
    }
}
