//! `rigel advise`: advice on database settings, from a run of `rigel calibrate`. It prints and
//! applies nothing.

use super::choice::one_of;
use super::demand;
use super::output;
use super::plans::{self, PlansRequest};
use super::progress::ProgressMode;
use super::report::warn_if_cut;
use clap::Args;
use rigel_analyse::{AdviceTerms, Calibration, DemandAgainst, PlanTest, Product, against};
use rigel_device::observe::stack::device_number;
use rigel_model::record::journal::Header;
use rigel_model::{Bytes, Error, FindingName, GIB, TargetFacts, shell_path, usage};
use rigel_report::advice;
use rigel_report::document::Extent;
use rigel_verbs::Evaluated;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Decide which database settings to leave and which to set, from a calibration
///
/// Prints statements for you to review and run; applies nothing itself. Settings whose figures were
/// not measured are listed, with the command that measures them.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 success, 1 failed, 2 wrong usage.")]
pub(super) struct AdviseArgs {
    /// Directory of a rigel calibrate run, or its journal
    run: PathBuf,
    /// Products to advise on, separated by commas; reasons and statements are printed for one alone
    /// [default: every product]
    #[arg(
        long = "for",
        value_name = "PRODUCT",
        value_parser = one_of(&Product::ALL, name_and_help),
        value_delimiter = ','
    )]
    products: Vec<Product>,
    /// Number of sessions that read at the same time; they share what the storage can do [default:
    /// unknown, and settings of one session are printed as comments]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    sessions: Option<u32>,
    /// Say whether this storage serves a database, and which settings matter for it: an AWR or
    /// Statspack report, a capture of AWR-Miner, output of iostat, a csv file, or the directory of a
    /// run of rigel watch, import or sql
    #[arg(long, value_name = "DEMAND")]
    demand: Option<PathBuf>,
    /// Database, instance or device, if DEMAND has several [default: the one for all instances, or
    /// the first]
    #[arg(long, value_name = "NAME", requires = "demand")]
    of: Option<String>,
    /// Check the cost of a random page by plans: make a private PostgreSQL in this directory, on the
    /// storage that was calibrated, and measure index and sequential plans on it; takes minutes
    #[arg(long, value_name = "DIR")]
    plans_on: Option<PathBuf>,
    /// Size of the table for --plans-on [default: 1GiB]
    #[arg(long, value_name = "SIZE", requires = "plans_on")]
    plans_scale: Option<Bytes>,
    /// Directory of the PostgreSQL programs for --plans-on [default: the newest installed version]
    #[arg(long, value_name = "DIR", requires = "plans_on")]
    server_bin: Option<PathBuf>,
    /// Show formulas, other opinions, sources and all statements, and not one screen
    #[arg(long, conflicts_with = "json")]
    verbose: bool,
    /// Print the statements of one product alone, to pipe into its client
    #[arg(long, requires = "products", conflicts_with_all = ["json", "verbose"])]
    statements: bool,
    /// Print the advice as JSON
    #[arg(long)]
    json: bool,
}

/// Name and help of a value of `--for`.
fn name_and_help(product: Product) -> (&'static str, &'static str) {
    match product {
        Product::Postgres => ("postgres", "Costs and concurrency of reads"),
        Product::Mysql => ("mysql", "Background I/O"),
        Product::Mariadb => ("mariadb", "Background I/O"),
        Product::Oracle => (
            "oracle",
            "The row of DBA_RSRC_IO_CALIBRATE, and system statistics",
        ),
        Product::Scylla => ("scylla", "The file io_properties.yaml"),
        Product::Redpanda => ("redpanda", "The file io-config.yaml"),
        Product::Etcd => ("etcd", "Heartbeats and elections"),
        Product::Cockroach => ("cockroach", "The bandwidth of a store"),
        Product::Linux => ("linux", "The kernel's io.cost.model"),
    }
}

/// Prints the advice.
pub(super) fn run(args: &AdviseArgs) -> Result<u8, Error> {
    let measured = Evaluated::read(&args.run)?;
    let run = &measured.run;
    let place = args.run.display();
    let Some(found) = measured.results.downcast_ref::<Calibration>() else {
        return Err(usage!(
            "'{place}' is not a calibration, and settings can be derived from calibrations only",
            "run `rigel calibrate TARGET`, and give the directory of that run"
        ));
    };
    if found.maximum.is_none() {
        let run = shell_path(&args.run);
        let mut findings = found.findings.iter();
        return Err(if findings.any(|one| one.is(FindingName::Incomplete)) {
            usage!(
                "the calibration in '{place}' was stopped before it measured enough to derive settings",
                "resume it with `rigel calibrate --resume {run}`"
            )
        } else {
            usage!(
                "the calibration in '{place}' measured too little to derive settings",
                "`rigel report {run}` says why"
            )
        });
    }
    let wanted = |product: &Product| args.products.is_empty() || args.products.contains(product);
    let products: Vec<Product> = Product::ALL.into_iter().filter(wanted).collect();
    let plans = args.plans(&run.header, &products)?;
    let of = args.of.as_deref();
    let demand = args.demand.as_deref().map(|path| beside(path, of, found));
    let demand = demand.transpose()?;
    let trust = measured.trust();
    let terms = AdviceTerms {
        trust: Some(&trust),
        sessions: args.sessions,
        plans: plans.as_ref(),
        demand: demand.as_ref(),
    };
    if args.statements {
        if let [_, _, ..] = products[..] {
            return Err(usage!(
                "--statements are for one product, and --for names {count}",
                "name one with --for",
                count = products.len()
            ));
        }
        output::raw(&advice::statements(run, found, &products, terms));
    } else if args.json {
        output::json(&advice::json(run, found, &products, terms));
    } else {
        let extent = if args.verbose {
            Extent::Full
        } else {
            Extent::Screen
        };
        output::result(&advice::text(run, found, &products, terms, extent));
        if products.len() > 1 && !args.verbose {
            let (product, _) = name_and_help(products[0]);
            output::result(&format!(
                "\nReasons and statements: rigel advise {} --for {product}\n",
                shell_path(&args.run)
            ));
        }
    }
    warn_if_cut(run.cut);
    Ok(0)
}

/// What the database at `path` asks for, beside the calibration.
fn beside(
    path: &Path,
    of: Option<&str>,
    calibration: &Calibration,
) -> Result<DemandAgainst, Error> {
    let asked = demand::chosen(path, of)?;
    let demand = asked.demands.first();
    demand.and_then(|demand| against(demand, &asked.imported, calibration)).ok_or_else(|| {
        usage!(
            "'{path}' does not say how much I/O a database asked for",
            "give AWR or Statspack reports, or a capture of AWR-Miner; a listing of a histogram \
             has no rates",
            path = path.display()
        )
    })
}

impl AdviseArgs {
    /// Measures plans, if they are asked for.
    fn plans(&self, header: &Header, products: &[Product]) -> Result<Option<PlanTest>, Error> {
        let Some(directory) = &self.plans_on else {
            return Ok(None);
        };
        if !products.contains(&Product::Postgres) {
            return Err(usage!(
                "--plans-on checks a setting of PostgreSQL, and --for leaves it out",
                "add postgres to --for, or omit --plans-on"
            ));
        }
        refuse_other_storage(directory, &header.facts)?;
        let request = PlansRequest {
            directory,
            table: self.plans_scale.unwrap_or(Bytes(GIB)),
            bin: self.server_bin.clone(),
            way: ProgressMode::Lines,
        };
        plans::measure(&request).map(Some)
    }
}

/// Refuses a directory on another device than that which was calibrated. A model has none.
fn refuse_other_storage(directory: &Path, facts: &TargetFacts) -> Result<(), Error> {
    let mut devices = facts
        .members
        .iter()
        .filter_map(|member| member.device_number)
        .peekable();
    let Ok(there) = std::fs::metadata(directory).map(|facts| facts.dev()) else {
        // The server refuses it with the reason.
        return Ok(());
    };
    let there = device_number(there);
    if devices.peek().is_some() && devices.all(|device| device != there) {
        return Err(usage!(
            "--plans-on '{directory}' is on device {major}:{minor}, which is not the storage that \
             was calibrated",
            "give a directory on the storage that the calibration measured",
            directory = directory.display(),
            major = there.0,
            minor = there.1
        ));
    }
    Ok(())
}
