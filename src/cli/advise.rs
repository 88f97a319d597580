//! `rigel advise`: advice on database settings, from a run of `rigel calibrate`. It prints and applies nothing.

use super::output;
use super::report::warn_if_cut;
use crate::analyse::{Product, RunResult};
use crate::model::Error;
use crate::record::journal;
use crate::report::{self, advice};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Derives database settings from a calibration, each with its formula, range and source
///
/// Nothing is applied: the statements are printed, to be judged and run by whoever asked. Settings whose figures were
/// not measured are listed with the command that would measure them.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 done, 1 failed, 2 wrong usage.")]
pub(super) struct AdviseArgs {
    /// The directory of a run by `rigel calibrate`, or its journal
    run: PathBuf,
    /// Only these, separated by commas [default: all]
    #[arg(long = "for", value_name = "PRODUCT", value_enum, value_delimiter = ',')]
    products: Vec<Product>,
    /// Prints one JSON document
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
            Self::Oracle => ("oracle", "The row of `DBA_RSRC_IO_CALIBRATE`"),
            Self::Scylla => ("scylla", "The file `io_properties.yaml`"),
            Self::Linux => ("linux", "The kernel's `io.cost.model`"),
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
            format!("'{place}' is not a calibration: it does not tell what settings are derived from"),
            "make one by `rigel calibrate TARGET`, and name its directory",
        ));
    };
    if found.maximum.is_none() {
        return Err(Error::usage(
            format!("the calibration in '{place}' was stopped before it measured anything to go by"),
            format!("resume it by `rigel calibrate --resume {place}`"),
        ));
    }
    let wanted = |product: &Product| args.products.is_empty() || args.products.contains(product);
    let products: Vec<Product> = Product::ALL.into_iter().filter(wanted).collect();
    if args.json {
        output::json(&advice::json(&run, &found, &products));
    } else {
        output::result(&advice::text(&run, &found, &products));
    }
    warn_if_cut(&run);
    Ok(0)
}
