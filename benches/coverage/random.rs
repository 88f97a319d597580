//! The part `random`: whole calibrations of devices that are drawn at random, each with its truth.
//!
//! Input: the number of devices, or the time. Output: what each run printed beside the truth, a line for each device in
//! `random.jsonl`, and tables of all lines. A call goes on where the one before it ended, if the program is the same;
//! another program begins anew with the same devices, so that two tables are of pairs.

use super::lookup::{self, GOOD, Printed};
use super::modelled::{self, EXACTLY, LARGE, ROUGHLY, SMALL, Truth};
use super::table::{Tally, head, rows, share_between};
use super::{Bench, in_parallel};
use rigel_model::workload::rng::Rng;
use rigel_model::{Bound, Bytes, Cache, Distribution, Limit, Nanos, Ratio, SimSpec, Slow, Stall};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// The most that a device does in a second at full speed, so that a run of it is quick.
const RATE_MAX: f64 = 25_000.0;

/// A figure further from the truth than this is wrong, if its interval does not hold the truth either.
const WRONG: f64 = 0.05;

/// How exactly simulations know a sustained rate.
const SLACK: f64 = 0.01;

/// The headline figures, in this order.
const FIGURES: [&str; 4] = ["max IOPS", "bytes/s", "p99 of one reader", "sustained rate"];

/// The one that a device may not have.
const SUSTAINED: usize = 3;

/// What rows of devices are named by, and whether a device has it.
type Feature = (&'static str, fn(&SimSpec) -> bool);

const FEATURES: [Feature; 9] = [
    ("all", |_| true),
    ("plain", is_plain),
    ("slow share", |it| it.slow.is_some()),
    ("stall", |it| it.stall.is_some()),
    ("cache", |it| it.cache.is_some()),
    ("limit", |it| limits(it).any(|limit| limit.burst <= 1)),
    ("credit of I/Os", |it| {
        it.limit.is_some_and(|limit| limit.burst > 1)
    }),
    ("credit of bytes", |it| {
        it.byte_limit.is_some_and(|limit| limit.burst > 1)
    }),
    ("no credit, no stall", |it| {
        it.stall.is_none() && limits(it).all(|limit| limit.burst <= 1)
    }),
];

fn limits(spec: &SimSpec) -> impl Iterator<Item = Limit> {
    [spec.limit, spec.byte_limit].into_iter().flatten()
}

/// A queue of servers and nothing else; their bandwidth is part of the service.
fn is_plain(spec: &SimSpec) -> bool {
    spec.slow.is_none()
        && spec.stall.is_none()
        && spec.cache.is_none()
        && limits(spec).next().is_none()
}

/// What is kept of a run: a line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    /// SHA-256 of the program.
    program: String,
    device: u32,
    target: String,
    seed: u64,
    bound: String,
    /// The exit status.
    status: Option<i32>,
    trust: String,
    warnings: Vec<String>,
    figures: Vec<Judged>,
    /// True if the device has credit or stalls beyond what the run says that it sees.
    is_beyond_sight: bool,
}

/// A headline figure beside its truth, if there is one.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Judged {
    printed: Option<Printed>,
    truth: Option<(f64, f64)>,
    /// True if the run trusts this figure.
    is_trusted: bool,
}

impl Judged {
    fn new((printed, is_trusted): (Option<Printed>, bool), truth: Option<Truth>) -> Self {
        let truth = truth.map(|truth| (truth.low, truth.high));
        Self {
            printed,
            truth,
            is_trusted,
        }
    }

    /// True if the run trusts it, and it is wrong.
    fn is_false(self) -> bool {
        self.is_trusted && self.is_wrong()
    }

    fn truth(self) -> Option<Truth> {
        self.truth.map(|(low, high)| Truth { low, high })
    }

    /// True if a figure is given where there is none, or is outside of its interval and far off. Without any interval it
    /// claims nothing.
    fn is_wrong(self) -> bool {
        let (Some(printed), truth) = (self.printed, self.truth()) else {
            return false;
        };
        let Some(truth) = truth else {
            return true;
        };
        let is_above = printed.low.is_some_and(|low| low > truth.high);
        let is_below = printed.high.is_some_and(|high| high < truth.low);
        (is_above || is_below) && truth.miss(printed.value) > WRONG
    }
}

impl Outcome {
    fn spec(&self) -> SimSpec {
        modelled::spec(&self.target)
    }

    fn is_good(&self) -> bool {
        self.trust == GOOD
    }

    fn has_wrong(&self) -> bool {
        self.figures.iter().any(|figure| figure.is_wrong())
    }

    fn has_false(&self) -> bool {
        self.figures.iter().any(|figure| figure.is_false())
    }

    /// A trusted figure is wrong, and the run does not say that it could not see why.
    fn has_false_within_sight(&self) -> bool {
        self.has_false() && !self.is_beyond_sight
    }

    fn sustained(&self) -> Judged {
        self.figures[SUSTAINED]
    }
}

/// Measures devices until the time or their number is reached, and prints tables of all there are.
pub(crate) fn random(bench: &Bench) -> Result<(), String> {
    let began = Instant::now();
    let length = bench.settings.length;
    let file = Ledger::open(bench)?;
    let known = file.outcomes.len();
    eprintln!(
        "random: {} has {known} devices of this program",
        file.path.display()
    );
    let devices = bench.runs();
    let to_do: Vec<u32> = (0..devices)
        .filter(|device| file.outcomes.iter().all(|it| it.device != *device))
        .collect();
    let number = u32::try_from(to_do.len()).expect("few devices");
    let appended = Mutex::new(&file);
    let added = in_parallel(number, |at| {
        if length.is_some_and(|length| began.elapsed() >= length) {
            return Ok(None);
        }
        let outcome = measured(bench, to_do[at as usize], &file.program)?;
        let file = appended.lock().expect("no thread panics");
        file.append(&outcome)?;
        Ok(Some(outcome))
    })?;
    let mut outcomes = file.outcomes;
    outcomes.extend(added.into_iter().flatten());
    outcomes.sort_by_key(|outcome| outcome.device);
    tables(&outcomes);
    Ok(())
}

/// The file of outcomes.
struct Ledger {
    path: PathBuf,
    program: String,
    /// Of earlier calls.
    outcomes: Vec<Outcome>,
}

impl Ledger {
    /// Reads what earlier calls of the same program left; of another program, it removes that.
    fn open(bench: &Bench) -> Result<Self, String> {
        let program = digest(&bench.settings.rigel)?;
        let path = bench.settings.folder.join("random.jsonl");
        let text = fs::read_to_string(&path).unwrap_or_default();
        // A line that a killed call cut off is measured again.
        let outcomes: Vec<Outcome> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|outcome: &Outcome| outcome.program == program)
            .collect();
        let ledger = Self {
            path,
            program,
            outcomes,
        };
        ledger.rewrite()?;
        Ok(ledger)
    }

    fn rewrite(&self) -> Result<(), String> {
        fs::write(&self.path, "").map_err(|error| self.failed(&error))?;
        self.outcomes.iter().try_for_each(|it| self.append(it))
    }

    fn append(&self, outcome: &Outcome) -> Result<(), String> {
        let line = serde_json::to_string(outcome).map_err(|error| error.to_string())?;
        let file = OpenOptions::new().append(true).open(&self.path);
        file.and_then(|mut file| writeln!(file, "{line}"))
            .map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> String {
        format!("{}: {error}", self.path.display())
    }
}

fn digest(program: &Path) -> Result<String, String> {
    let bytes = fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let hexadecimal = |byte: u8| format!("{byte:02x}");
    Ok(Sha256::digest(bytes).into_iter().map(hexadecimal).collect())
}

/// One calibration of a device, and its truth.
fn measured(bench: &Bench, device: u32, program: &str) -> Result<Outcome, String> {
    let (spec, bound) = drawn(&mut bench.draws(0, device));
    let (target, seed) = (spec.to_string(), bench.seed(0, device));
    let folder = bench.folder.join(format!("random-{device}"));
    let words = format!("calibrate {target} --max-latency {bound}");
    let (json, status) = bench.answer(&words, seed, &folder)?;
    let _ = fs::remove_dir_all(&folder);
    let figures = [
        lookup::maximum(&json),
        lookup::large(&json),
        lookup::low_load_p99(&json),
        lookup::sustained(&json),
    ];
    let mut judged: Vec<Judged> = figures
        .into_iter()
        .zip(lookup::trusted_figures(&json))
        .zip(truths(&spec, bound, ROUGHLY))
        .map(|(printed, truth)| Judged::new(printed, truth))
        .collect();
    if judged[SUSTAINED].is_wrong() {
        let exact = sustained(&spec, bound, EXACTLY);
        judged[SUSTAINED] = Judged::new((figures[SUSTAINED], judged[SUSTAINED].is_trusted), exact);
    }
    Ok(Outcome {
        program: program.to_string(),
        device,
        target,
        seed,
        bound: bound.to_string(),
        status,
        trust: lookup::trust(&json),
        warnings: lookup::warnings(&json).into_iter().collect(),
        figures: judged,
        is_beyond_sight: is_beyond_sight(&spec, &json["sight"]),
    })
}

/// True if the device's stalls are rarer, or its credit is greater, than what a run says that it sees. That line is of
/// credit that lasts for half the maximum: more of it hides where more lasts.
fn is_beyond_sight(spec: &SimSpec, sight: &Value) -> bool {
    let credit = |limit: Option<Limit>, unit: &str| {
        let seen = sight["credit_beyond"][unit].as_f64();
        limit
            .zip(seen)
            .is_some_and(|(limit, seen)| limit.burst as f64 >= seen)
    };
    let pauses_s = sight["pauses_rarer_than_s"].as_f64();
    let rare = spec.stall.zip(pauses_s);
    rare.is_some_and(|(stall, seen_s)| stall.period.as_secs_f64() >= seen_s)
        || credit(spec.limit, "operations")
        || credit(spec.byte_limit, "bytes")
}

fn truths(spec: &SimSpec, bound: Bound, late: f64) -> [Option<Truth>; 4] {
    let small = modelled::in_each_state(spec, SMALL, |device| Some(device.capacity()));
    let large = modelled::in_each_state(spec, LARGE, |device| Some(device.capacity()));
    let p99 = modelled::in_each_state(spec, SMALL, |device| {
        Some(device.idle_quantile(bound.quantile).into())
    });
    let bytes = large.map(|large| large.scaled(f64::from(LARGE)));
    [small, bytes, p99, sustained(spec, bound, late)]
}

fn sustained(spec: &SimSpec, bound: Bound, late: f64) -> Option<Truth> {
    modelled::in_each_state(spec, SMALL, |device| {
        let rate = device.greatest_rate(bound, late)?;
        Some(Truth::from(rate).widened(SLACK))
    })
}

/// A number between two, each factor alike.
fn between(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.unit())
}

fn nanos(seconds: f64) -> Nanos {
    Nanos::from_secs_f64(seconds)
}

/// A device with the bound on its p99.
fn drawn(rng: &mut Rng) -> (SimSpec, Bound) {
    loop {
        let (spec, bound) = any(rng);
        let full = modelled::Device::of(&spec, SMALL).capacity().high;
        // Everything is drawn again, or slow devices would have fewer limits.
        if full > 1.0 && full <= RATE_MAX {
            return (limited(rng, spec), bound);
        }
    }
}

/// A device without a limit.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of a range are cut to whole ones"
)]
fn any(rng: &mut Rng) -> (SimSpec, Bound) {
    let service = between(rng, 30e-6, 20e-3);
    let servers = (between(rng, 1.0, 129.0) as u32).min(128);
    let is_fixed = rng.unit() < 0.5;
    let mut spec: SimSpec = modelled::spec("sim:1,1ms");
    spec.servers = servers;
    spec.service = nanos(service);
    if is_fixed {
        spec.distribution = Distribution::Fixed;
    }
    if rng.unit() < 0.4 {
        spec.bandwidth = Some(Bytes(between(rng, 50e6, 2e9) as u64));
    }
    if rng.unit() < 0.3 {
        let percent = (between(rng, 0.05, 1.2) * 1e4).round() / 1e4;
        spec.slow = Some(Slow {
            service: nanos(service * between(rng, 5.0, 60.0)),
            share: Ratio::from_percent(percent).expect("it is a share"),
        });
    }
    if rng.unit() < 0.3 {
        let (length, period) = (between(rng, 0.05, 2.0), between(rng, 2.0, 120.0));
        let (length, period) = (nanos(length), nanos(period));
        spec.stall = (length < period).then_some(Stall { length, period });
    }
    if rng.unit() < 0.15 {
        let share = between(rng, 0.05, 1.0);
        spec.cache = Some(Cache {
            bytes: Bytes((spec.bytes.0 as f64 * share) as u64),
            service: nanos(service * between(rng, 0.1, 0.5)),
        });
    }
    let latency = if rng.unit() < 0.5 {
        (8.0 * service).max(20e-3)
    } else {
        8.0 * service
    };
    // Three digits, as people write it.
    let digit = 10f64.powf((latency * 1e9).log10().floor() - 2.0);
    let latency = Nanos(((latency * 1e9 / digit).round() * digit) as u64);
    let quantile = 0.99;
    (spec, Bound { latency, quantile })
}

/// The same device, perhaps with a limit.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates and credits are cut to whole ones"
)]
fn limited(rng: &mut Rng, mut spec: SimSpec) -> SimSpec {
    if rng.unit() >= 0.35 {
        return spec;
    }
    let is_of_bytes = rng.unit() < 0.5;
    let length = if is_of_bytes { LARGE } else { SMALL };
    let tokens = if is_of_bytes { f64::from(length) } else { 1.0 };
    let full = tokens * modelled::Device::of(&spec, length).capacity().high;
    let rate = (full * (0.2 + 0.75 * rng.unit())).max(1.0);
    let burst = if rng.unit() < 0.5 {
        (full - rate) * between(rng, 0.5, 300.0)
    } else {
        1.0
    };
    let limit = Limit {
        rate: rate as u64,
        burst: burst.max(1.0) as u64,
    };
    if is_of_bytes {
        spec.byte_limit = Some(limit);
    } else {
        spec.limit = Some(limit);
    }
    spec
}

fn tables(outcomes: &[Outcome]) {
    trusted(outcomes);
    head(
        "random: intervals",
        &format!(
            "Of all runs, whatever their trust. Truth: closed forms, else simulations of the device in the long run, with \
             stalls and without credit where the load needs more than the limit; of a cache the range from empty to full; \
             a sustained rate is simulated to {:.0} %. The score is the width and {} × the miss, as shares of the truth.",
            SLACK * 100.0,
            super::table::MISS
        ),
        &format!("figure | device | {}", Tally::HEAD),
    );
    for (at, figure) in FIGURES.into_iter().enumerate() {
        for (feature, has) in FEATURES {
            let mut tally = Tally::default();
            for outcome in outcomes.iter().filter(|outcome| has(&outcome.spec())) {
                if let Some(truth) = outcome.figures[at].truth() {
                    tally.add(outcome.figures[at].printed, truth);
                }
            }
            rows(&[format!("{figure} | {feature} | {}", tally.cells())]);
        }
    }
    answers(outcomes);
    wrong(outcomes);
}

fn count<'a>(
    outcomes: impl IntoIterator<Item = &'a Outcome>,
    is: impl Fn(&Outcome) -> bool,
) -> u32 {
    let counted = outcomes.into_iter().filter(|outcome| is(outcome)).count();
    u32::try_from(counted).expect("few devices")
}

/// How often a run that trusts itself is wrong.
fn trusted(outcomes: &[Outcome]) {
    let figures = FIGURES.map(|name| format!("wrong: {name}")).join(" | ");
    head(
        "random: trusted runs with a wrong headline figure",
        &format!(
            "`rigel calibrate TARGET --max-latency BOUND@p99`, trust \"{GOOD}\". Wrong: the interval does not hold the \
             truth, and the figure, which is trusted, too, is over {:.0} % off; or a rate is given where none is \
             sustained. Within sight: the run does not say that it cannot see such pauses, or such credit.",
            WRONG * 100.0
        ),
        &format!(
            "device | runs | trusted | wrong of these (95 %) | wrong within sight (95 %) | {figures} | wrong of the others"
        ),
    );
    for (feature, has) in FEATURES {
        let of: Vec<&Outcome> = outcomes.iter().filter(|it| has(&it.spec())).collect();
        let (good, others): (Vec<&Outcome>, Vec<&Outcome>) =
            of.iter().partition(|outcome| outcome.is_good());
        let number = |of: &[&Outcome]| count(of.iter().copied(), |_| true);
        let wrong = |of: &[&Outcome], is: fn(&Outcome) -> bool| {
            share_between(count(of.iter().copied(), is), number(of))
        };
        let each = (0..FIGURES.len()).map(|at| {
            let is_wrong = |outcome: &Outcome| outcome.figures[at].is_false();
            count(good.iter().copied(), is_wrong).to_string()
        });
        rows(&[format!(
            "{feature} | {} | {} | {} | {} | {} | {}",
            number(&of),
            number(&good),
            wrong(&good, Outcome::has_false),
            wrong(&good, Outcome::has_false_within_sight),
            each.collect::<Vec<_>>().join(" | "),
            wrong(&others, Outcome::has_wrong)
        )]);
    }
}

/// Answers withheld, doubted, or given where there is none.
fn answers(outcomes: &[Outcome]) {
    head(
        "random: answers",
        "A range without an upper end is \"at least\", and an answer.",
        "what | share (95 %)",
    );
    let row = |what: &str, part: u32, of: u32| {
        rows(&[format!("{what} | {}", share_between(part, of))]);
    };
    let plain: Vec<&Outcome> = outcomes.iter().filter(|it| is_plain(&it.spec())).collect();
    let of_plain = |is: &dyn Fn(&Outcome) -> bool| count(plain.iter().copied(), is);
    row(
        "plain devices that are not trusted",
        of_plain(&|it| !it.is_good()),
        of_plain(&|_| true),
    );
    let sustains = |it: &Outcome| it.sustained().truth.is_some();
    let answers = |it: &Outcome| sustains(it) && it.sustained().printed.is_some();
    row(
        "plain devices that sustain a rate: it is given",
        of_plain(&answers),
        of_plain(&sustains),
    );
    row(
        "all that sustain a rate: it is given",
        count(outcomes, answers),
        count(outcomes, sustains),
    );
    let none = count(outcomes, |it| !sustains(it));
    for status in [0, 3, 4] {
        let ends = |it: &Outcome| it.status == Some(status);
        row(
            &format!("all that sustain no rate: exit status {status}"),
            count(outcomes, |it| !sustains(it) && ends(it)),
            none,
        );
        row(
            &format!("all that sustain one: exit status {status}"),
            count(outcomes, |it| sustains(it) && ends(it)),
            count(outcomes, sustains),
        );
    }
    let mut names: Vec<&str> = plain
        .iter()
        .flat_map(|it| it.warnings.iter().map(String::as_str))
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        row(
            &format!("plain devices with a warning `{name}`"),
            of_plain(&|it| it.warnings.iter().any(|warning| warning == name)),
            of_plain(&|_| true),
        );
    }
}

/// The runs to look at.
fn wrong(outcomes: &[Outcome]) {
    head(
        "random: the trusted runs that are wrong",
        "",
        "device | `rigel calibrate` and these | figure | printed | truth",
    );
    for outcome in outcomes.iter().filter(|it| it.is_good()) {
        for (figure, name) in outcome.figures.iter().zip(FIGURES) {
            let Some(printed) = figure.printed.filter(|_| figure.is_false()) else {
                continue;
            };
            let end = |end: Option<f64>| end.map_or("-".into(), |end| format!("{end:.6}"));
            let truth = figure.truth().map_or("none".into(), |truth| {
                format!("{:.6} to {:.6}", truth.low, truth.high)
            });
            rows(&[format!(
                "{} | {} --seed {} --max-latency {} | {name} | {:.6} ({} to {}) | {truth}",
                outcome.device,
                outcome.target,
                outcome.seed,
                outcome.bound,
                printed.value,
                end(printed.low),
                end(printed.high)
            )]);
        }
    }
}
