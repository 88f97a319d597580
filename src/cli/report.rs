//! `rigel report`: any report of a run, made from its journal alone.

use super::exit_status::{exit_status, is_of_outcome};
use super::expected::{AnswerArgs, ExpectedArgs};
use super::outputs::Kept;
use super::{orion, output, page};
use clap::{Args, ValueEnum};

use rigel_device::engine;
use rigel_model::record::Ending;
use rigel_model::record::journal;
use rigel_model::{Error, Provisioned, usage};
use rigel_report::document::{Document, Extent};
use rigel_report::{self as report, fio, text};
use rigel_verbs::Evaluated;
use rigel_verbs::curve::{CurveResult, sessions};
use std::path::PathBuf;

/// Print a report of a run, computed from its journal
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 printed, 1 the run failed or is not complete, the journal cannot be \
                  read or the file not written, 2 wrong usage, or a report that this run does not \
                  have; 3, 4, 5 or 6 as the run."
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
    /// Show all figures, sections and findings, and not one screen of them
    #[arg(long, conflicts_with_all = ["json", "emit_fio", "orion_files", "html"])]
    verbose: bool,
    /// Show the figures of each host at every load, of a run over several hosts
    #[arg(long, conflicts_with_all = ["emit_fio", "orion_files"])]
    per_host: bool,
    #[command(flatten)]
    expected: ExpectedArgs,
    /// What the volume was sold with, such as 30000iops,500MB/s, for --expect 'provisioned>=95%'
    #[arg(long, value_name = "RATES", requires = "expect")]
    provisioned: Option<Provisioned>,
    #[command(flatten)]
    answers: AnswerArgs,
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
    let expected = args.expected.expectations(args.provisioned)?;
    let measured = page::with_earlier(Evaluated::read(&args.run)?, &args.run);
    let verb = measured.verb.name();
    if matches!(verb, "soak" | "watch") {
        args.refuse_formats_of_points(verb)?;
    }
    if let Some(first) = expected.first()
        && matches!(
            verb,
            "soak" | "watch" | "expect" | "duet" | "fit" | "layers"
        )
    {
        return Err(usage!(
            "'{first}' is expected of a run of rigel {verb}",
            "its report has its own answers; those of calibrate, curve, sql run, orion and import can be \
             asked"
        ));
    }
    let measured = measured.with_expected(&expected);
    let kept = Kept::of_run(&args.run, &measured);
    args.answers.refuse_others(&kept)?;
    if args.answers.is_any() && measured.answers().is_none() {
        return Err(usage!(
            "nothing is expected of this run",
            "name it with --expect, such as --expect 'p99<2ms@3000/s'"
        ));
    }
    let run = &measured.run;
    if let Some(directory) = &args.orion_files {
        orion::write_files_again(run, directory, &kept)?;
    } else if let Some(file) = &args.html {
        let file = page::asked(file.as_ref(), &args.run);
        page::write(&args.document(&measured)?, file.as_ref(), &kept)?;
    } else if let Some(point) = &args.emit_fio {
        output::table(&fio::job(
            run,
            measured.verb.grain(),
            point,
            engine::info(&run.header.engine.name),
        )?);
    } else {
        args.print(&measured)?;
    }
    args.answers.tell(&measured, &kept)?;
    args.warn_if_cut(&measured);
    Ok(as_it_ended(&measured))
}

/// The status with which the run ended, so that a script need not trust that of a launcher; 1 if it was
/// killed. Of one that is complete, what is asked for now counts; of one that goes on, too.
fn as_it_ended(measured: &Evaluated) -> u8 {
    match measured.run.ending() {
        Ending::Said(end) if !is_of_outcome(end.status) => end.status,
        Ending::Killed => 1,
        _ => measured.outcome().map_or(0, exit_status),
    }
}

impl ReportArgs {
    fn document(&self, measured: &Evaluated) -> Result<Document, Error> {
        let run = &measured.run;
        let document = report::with_end(run, measured.document());
        if self.per_host {
            report::with_each_host(run, document)
        } else {
            Ok(document)
        }
    }

    /// Prints the report in the format that is asked for.
    fn print(&self, measured: &Evaluated) -> Result<(), Error> {
        let run = &measured.run;
        match self.format() {
            ReportFormat::Text => output::result(&self.text(&self.document(measured)?)),
            ReportFormat::Csv if self.per_host => output::table(&report::csv_of_hosts(run)?),
            ReportFormat::Json if self.per_host => output::json(&measured.json_with_each_host()?),
            ReportFormat::Csv => output::table(&measured.results.csv()),
            ReportFormat::Json => output::json(&measured.json()),
            ReportFormat::Awr => output::result(&awr(measured)?),
            ReportFormat::Orion => output::result(&orion::summary_again(run)?),
        }
        Ok(())
    }

    fn text(&self, document: &Document) -> String {
        if self.verbose || self.per_host {
            text::render(document, Extent::Full)
        } else {
            page::screen(document, &self.run)
        }
    }

    fn format(&self) -> ReportFormat {
        if self.json {
            ReportFormat::Json
        } else {
            self.format
        }
    }

    /// Refuses the forms that a series over time does not have.
    fn refuse_formats_of_points(&self, what: &str) -> Result<(), Error> {
        if self.emit_fio.is_some()
            || self.orion_files.is_some()
            || matches!(self.format(), ReportFormat::Orion | ReportFormat::Awr)
        {
            return Err(usage!(
                "this run is a {what}",
                "use --format text, csv or json, or --html"
            ));
        }
        Ok(())
    }

    /// Says that the journal's last line was lost; a journal that is being written may end anywhere.
    fn warn_if_cut(&self, measured: &Evaluated) {
        warn_if_cut(measured.run.cut && !journal::is_being_written(&self.run));
    }
}

fn awr(measured: &Evaluated) -> Result<String, Error> {
    let result = measured.results.downcast_ref::<CurveResult>();
    let result = result.filter(|result| result.busiest().is_some());
    let result = result.ok_or_else(|| {
        usage!(
            "this run did not measure database sessions",
            "--format text, csv or json reports any run"
        )
    })?;
    Ok(sessions::awr_lines(&measured.run, &result.points))
}

pub(super) fn warn_if_cut(cut: bool) {
    if cut {
        output::remark(
            "rigel: the journal's last line is incomplete and is left out; resume the run with \
             --resume\n",
        );
    }
}
