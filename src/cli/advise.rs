//! `rigel advise`: advice on database settings, from a run of `rigel calibrate`. It prints and
//! applies nothing.

use super::output;
use super::report::warn_if_cut;
use crate::analyse::{Product, RunResult};
use crate::model::Error;
use crate::record::journal;
use crate::report::{self, advice};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Derive database settings from a calibration, each with its formula, range and source
///
/// Prints statements for you to review and run; changes nothing itself. Settings whose figures were
/// not measured are listed with the command that measures them.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 success, 1 failed, 2 wrong usage.")]
pub(super) struct AdviseArgs {
    /// Directory of a rigel calibrate run, or its journal
    run: PathBuf,
    /// Products to advise on, separated by commas [default: all]
    #[arg(
        long = "for",
        value_name = "PRODUCT",
        value_enum,
        value_delimiter = ','
    )]
    products: Vec<Product>,
    /// Number of sessions that read at the same time; they share what the storage can do [default:
    /// unknown, and settings of one session are printed as comments]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    sessions: Option<u32>,
    /// Print the advice as JSON
    #[arg(long)]
    json: bool,
}

impl ValueEnum for Product {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::Postgres => ("postgres", "Costs and concurrency of reads"),
            Self::Mysql => ("mysql", "Background I/O"),
            Self::Mariadb => ("mariadb", "Background I/O"),
            Self::Oracle => (
                "oracle",
                "The row of DBA_RSRC_IO_CALIBRATE, and system statistics",
            ),
            Self::Scylla => ("scylla", "The file io_properties.yaml"),
            Self::Linux => ("linux", "The kernel's io.cost.model"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// Prints the advice.
pub(super) fn run(args: &AdviseArgs) -> Result<u8, Error> {
    let run = journal::read(&args.run)?;
    let place = args.run.display();
    let RunResult::Calibration(found) = report::result(&run) else {
        return Err(Error::usage(
            format!(
                "'{place}' is not a calibration, and settings can be derived from calibrations \
                 only"
            ),
            "run `rigel calibrate TARGET`, and give the directory of that run",
        ));
    };
    if found.maximum.is_none() {
        return Err(Error::usage(
            format!(
                "the calibration in '{place}' was stopped before it measured enough to derive \
                 settings"
            ),
            format!("resume it with `rigel calibrate --resume {place}`"),
        ));
    }
    let wanted = |product: &Product| args.products.is_empty() || args.products.contains(product);
    let products: Vec<Product> = Product::ALL.into_iter().filter(wanted).collect();
    if args.json {
        output::json(&advice::json(&run, &found, &products, args.sessions));
    } else {
        output::result(&advice::text(&run, &found, &products, args.sessions));
    }
    warn_if_cut(&run);
    Ok(0)
}
