//! Rounds of fixed work that were cut short by a time limit.
//!
//! If rounds state how many operations were requested, cut rounds are marked and counted. For other
//! tools' figures they are inferred: if most rounds did the same work in different times, the work
//! was fixed, and those that did less were cut. A snapshot in the middle of a round leaves two
//! lines for it, which are joined.

use super::rounds::{Round, RoundEnd};
use rigel_model::Moment;
use rigel_stats::robust::median;
use serde::Serialize;

/// Figures are the same if they lie within this fraction of their median.
const SAME: f64 = 0.01;
/// Maximum seconds between the lines of one round, because times may have minute resolution.
const PIECES_SECONDS: i64 = 60;

/// Rounds that were cut short.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CutRounds {
    /// Number of cut rounds.
    pub rounds: usize,
    /// Number of rounds with fixed work.
    pub of: usize,
    /// Round numbers of their lines in the series.
    pub numbers: Vec<u32>,
    /// Number of rounds, cut or not, that consist of two lines or more.
    pub in_pieces: usize,
    /// The time limit, if most cut rounds agree on it.
    pub limit_seconds: Option<f64>,
    /// Number of operations in a complete round.
    pub work: Option<f64>,
    /// True if inferred from the figures, not known from the request.
    pub inferred: bool,
    /// Start of the first one.
    pub first: Moment,
    /// Start of the last one.
    pub last: Moment,
}

/// The lines of the series that make up one round.
struct Whole<'a> {
    lines: Vec<&'a Round>,
    done: f64,
    seconds: f64,
}

impl<'a> Whole<'a> {
    fn of(round: &'a Round) -> Self {
        Self {
            lines: vec![round],
            done: round.done,
            seconds: round.seconds,
        }
    }
}

/// The cut rounds; `None` if there are none or it cannot be known.
pub(super) fn cut_rounds(counting: &[&Round]) -> Option<CutRounds> {
    let is_stated = counting
        .iter()
        .any(|round| round.asked.is_some() || round.end == RoundEnd::Cut);
    let (rounds, work): (Vec<Whole>, Option<f64>) = if is_stated {
        let asked: Vec<f64> = counting
            .iter()
            .filter_map(|round| Some(round.asked? as f64))
            .collect();
        (
            counting.iter().copied().map(Whole::of).collect(),
            median(&asked),
        )
    } else {
        // What follows without a gap are intervals of one series, and nothing ended early.
        let work = fixed(counting).filter(|_| !is_without_gap(counting))?;
        (joined(counting, work), Some(work))
    };
    let is_cut = |round: &&Whole| {
        if is_stated {
            round.lines.iter().any(|line| line.end == RoundEnd::Cut)
        } else {
            work.is_some_and(|work| round.done < (1.0 - SAME) * work)
        }
    };
    let cut: Vec<&Whole> = rounds.iter().filter(is_cut).collect();
    let lines: Vec<&Round> = cut
        .iter()
        .flat_map(|round| round.lines.iter().copied())
        .collect();
    let (first, last) = (lines.first()?.begin, lines.last()?.begin);
    let seconds: Vec<f64> = cut.iter().map(|round| round.seconds).collect();
    Some(CutRounds {
        rounds: cut.len(),
        of: rounds.len(),
        numbers: lines.iter().map(|line| line.number).collect(),
        in_pieces: rounds.iter().filter(|round| round.lines.len() > 1).count(),
        limit_seconds: agreed(&seconds),
        work,
        inferred: !is_stated,
        first,
        last,
    })
}

/// True if there are several, and each begins where the one before it ended, as intervals of a report do.
pub(super) fn is_without_gap(counting: &[&Round]) -> bool {
    /// Begins are known to the second.
    const CLOCK_S: f64 = 1.0;
    let mut pairs = counting.windows(2).peekable();
    pairs.peek().is_some()
        && pairs.all(|two| {
            let next = two[1].begin.since(two[0].begin) as f64;
            (next - two[0].seconds).abs() <= CLOCK_S
        })
}

/// The median, if more than half of the values are the same.
fn agreed(values: &[f64]) -> Option<f64> {
    let middle = median(values).filter(|middle| middle.is_finite() && *middle > 0.0)?;
    let same = values
        .iter()
        .filter(|value| (*value - middle).abs() <= SAME * middle)
        .count();
    (2 * same > values.len()).then_some(middle)
}

/// The work of a complete round, if most rounds did the same work and not merely took the same
/// time.
fn fixed(counting: &[&Round]) -> Option<f64> {
    let done: Vec<f64> = counting.iter().map(|round| round.done).collect();
    let seconds: Vec<f64> = counting.iter().map(|round| round.seconds).collect();
    agreed(&done).filter(|_| agreed(&seconds).is_none())
}

/// Joins lines that follow each other without a pause and together do no more than one round's
/// work.
fn joined<'a>(counting: &[&'a Round], work: f64) -> Vec<Whole<'a>> {
    let mut rounds: Vec<Whole> = Vec::new();
    for round in counting.iter().copied() {
        let goes_on = |before: &&mut Whole| {
            let pause = before
                .lines
                .last()
                .map(|line| round.begin.since(line.finish()));
            let close =
                pause.is_some_and(|pause| (-PIECES_SECONDS..=PIECES_SECONDS).contains(&pause));
            close
                && before.done < (1.0 - SAME) * work
                && before.done + round.done <= (1.0 + SAME) * work
        };
        match rounds.last_mut().filter(goes_on) {
            Some(before) => {
                before.lines.push(round);
                before.done += round.done;
                before.seconds += round.seconds;
            }
            None => rounds.push(Whole::of(round)),
        }
    }
    rounds
}
