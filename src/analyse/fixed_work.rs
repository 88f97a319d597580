//! Rounds of fixed work that a time limit cut short.
//!
//! Where rounds say how much was asked of them, it is counted. Of other tools' figures it is inferred: most rounds did
//! the same work in different times, so the work was fixed; those that did less were cut. A snapshot in the middle of a
//! round leaves two lines for it, which are taken together.

use super::robust::median;
use super::rounds::{Round, RoundEnd};
use crate::model::Moment;
use serde::Serialize;

/// How far figures may lie from their median to be the same.
const SAME: f64 = 0.01;
/// The second line of a round begins at most so many seconds after the end of the first: times may be to the minute.
const PIECES_SECONDS: i64 = 60;

/// Rounds that were cut.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CutRounds {
    /// How many.
    pub rounds: usize,
    /// Of how many with fixed work.
    pub of: usize,
    /// The lines of the series that they stand in, by number.
    pub numbers: Vec<u32>,
    /// Rounds, cut or not, that stand in two lines or more.
    pub in_pieces: usize,
    /// The time limit, as most of them have it; none if they do not agree.
    pub limit_seconds: Option<f64>,
    /// Operations of a whole round.
    pub work: Option<f64>,
    /// Told from the figures, not from what was asked.
    pub inferred: bool,
    /// The first of them began.
    pub first: Moment,
    /// The last of them began.
    pub last: Moment,
}

/// Lines of the series that are one round.
struct Whole<'a> {
    lines: Vec<&'a Round>,
    done: f64,
    seconds: f64,
}

impl<'a> Whole<'a> {
    fn of(round: &'a Round) -> Self {
        Self { lines: vec![round], done: round.done, seconds: round.seconds }
    }
}

/// The rounds that were cut; none if there are none, or it cannot be told.
pub(super) fn cut_rounds(counting: &[&Round]) -> Option<CutRounds> {
    let told = counting.iter().any(|round| round.asked.is_some() || round.end == RoundEnd::Cut);
    let (rounds, work): (Vec<Whole>, Option<f64>) = if told {
        let asked: Vec<f64> = counting.iter().filter_map(|round| Some(round.asked? as f64)).collect();
        (counting.iter().copied().map(Whole::of).collect(), median(&asked))
    } else {
        let work = fixed(counting)?;
        (joined(counting, work), Some(work))
    };
    let is_cut = |round: &&Whole| {
        if told {
            round.lines.iter().any(|line| line.end == RoundEnd::Cut)
        } else {
            work.is_some_and(|work| round.done < (1.0 - SAME) * work)
        }
    };
    let cut: Vec<&Whole> = rounds.iter().filter(is_cut).collect();
    let lines: Vec<&Round> = cut.iter().flat_map(|round| round.lines.iter().copied()).collect();
    let (first, last) = (lines.first()?.begin, lines.last()?.begin);
    let seconds: Vec<f64> = cut.iter().map(|round| round.seconds).collect();
    Some(CutRounds {
        rounds: cut.len(),
        of: rounds.len(),
        numbers: lines.iter().map(|line| line.number).collect(),
        in_pieces: rounds.iter().filter(|round| round.lines.len() > 1).count(),
        limit_seconds: agreed(&seconds),
        work,
        inferred: !told,
        first,
        last,
    })
}

/// The median, if more than half of the values are the same.
fn agreed(values: &[f64]) -> Option<f64> {
    let middle = median(values).filter(|middle| middle.is_finite() && *middle > 0.0)?;
    let same = values.iter().filter(|value| (*value - middle).abs() <= SAME * middle).count();
    (2 * same > values.len()).then_some(middle)
}

/// The work of a whole round: most did the same, and not because all took the same time.
fn fixed(counting: &[&Round]) -> Option<f64> {
    let done: Vec<f64> = counting.iter().map(|round| round.done).collect();
    let seconds: Vec<f64> = counting.iter().map(|round| round.seconds).collect();
    agreed(&done).filter(|_| agreed(&seconds).is_none())
}

/// Lines that follow each other without a pause and do no more than one round's work together.
fn joined<'a>(counting: &[&'a Round], work: f64) -> Vec<Whole<'a>> {
    let mut rounds: Vec<Whole> = Vec::new();
    for round in counting.iter().copied() {
        let goes_on = |before: &&mut Whole| {
            let pause = before.lines.last().map(|line| round.begin.since(line.finish()));
            let close = pause.is_some_and(|pause| (-PIECES_SECONDS..=PIECES_SECONDS).contains(&pause));
            close && before.done < (1.0 - SAME) * work && before.done + round.done <= (1.0 + SAME) * work
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
