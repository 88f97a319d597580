//! The part `verdicts`: what `expect` and `duet` answer where the truth is known, and how often wrongly.

use super::Bench;
use super::lookup::{answer, length_s, outcome};
use super::table::{Tally, head, rows, share};
use serde_json::Value;

/// What is expected of a device, and the right answer.
struct Expected {
    words: &'static str,
    truth: &'static str,
    right: &'static str,
}

const fn expected(words: &'static str, truth: &'static str, right: &'static str) -> Expected {
    Expected {
        words,
        truth,
        right,
    }
}

/// Four servers of 4 ms on average give 1,000 reads a second; one of 1 ms at 500 a second has a p99 of
/// 9.21 ms (M/M/1).
const EXPECTED: [Expected; 7] = [
    expected("iops>=800 sim:4,4ms", "1,000", "met"),
    expected("iops>=1000 sim:4,4ms", "1,000", "undecided"),
    expected("iops>=1500 sim:4,4ms", "1,000", "not met"),
    expected("p99<12ms@500/s sim:1,1ms", "9.21 ms", "met"),
    expected("p99<9210us@500/s sim:1,1ms", "9.21 ms", "undecided"),
    expected("p99<6140us@500/s sim:1,1ms", "9.21 ms", "not met"),
    expected(
        "iops>=1000@depth:8 iops>=1000@depth:10 iops>=1000@depth:12 iops>=1000@depth:14 \
         iops>=1000@depth:16 iops>=1000@depth:18 iops>=1000@depth:20 iops>=1000@depth:24 \
         iops>=1000@depth:28 iops>=1000@depth:32 sim:4,4ms",
        "ten of 1,000",
        "undecided",
    ),
];

/// Arms, and the throughput of the second as a multiple of the first one's, or its p50 at a rate.
const ARMS: [(&str, f64); 4] = [
    ("sim:4,2ms --vary depth=16,32", 1.0),
    ("sim:4,2ms sim:4,2.1ms", 1.0 / 1.05),
    ("sim:4,2ms sim:4,2.01ms", 1.0 / 1.005),
    ("sim:4,2ms --vary depth=200,256 --rate 1000", 1.0),
];

pub(crate) fn verdicts(bench: &Bench) -> Result<(), String> {
    head(
        "expect: answers",
        "`rigel expect WORDS --error 1%`: of all runs.",
        "words | truth | right answer | met | not met | undecided | not measured | mean length, virtual s",
    );
    for (row, of) in EXPECTED.iter().enumerate() {
        let runs = bench.each(row, |_| format!("expect {}", of.words))?;
        let with = |word: &str| {
            let runs = runs.iter().filter(|run| outcome(run) == Some(word));
            counted(runs.count(), bench.runs())
        };
        let cells = ["met", "not met", "undecided", "not measured"]
            .map(with)
            .join(" | ");
        rows(&[format!(
            "{} | {} | {} | {cells} | {:.0}",
            of.words,
            of.truth,
            of.right,
            mean_length(&runs)
        )]);
    }
    head(
        "duet: answers",
        "`rigel duet WORDS --error 5%`: of all runs. An answer at a rate is that of p50.",
        &format!(
            "words | truth | different | equivalent | undecided | mean length, virtual s | {}",
            Tally::HEAD
        ),
    );
    for (at, (words, truth)) in ARMS.iter().enumerate() {
        let runs = bench.each(EXPECTED.len() + at, |_| format!("duet {words}"))?;
        let with = |word: &str| {
            let runs = runs.iter().filter(|run| answer(run).0 == Some(word));
            counted(runs.count(), bench.runs())
        };
        let cells = ["different", "equivalent", "undecided"]
            .map(with)
            .join(" | ");
        let mut tally = Tally::default();
        runs.iter().for_each(|run| tally.add(answer(run).1, *truth));
        rows(&[format!(
            "{words} | {:+.1} % | {cells} | {:.0} | {}",
            (truth - 1.0) * 100.0,
            mean_length(&runs),
            tally.cells()
        )]);
    }
    Ok(())
}

fn counted(count: usize, of: u32) -> String {
    share(u32::try_from(count).unwrap_or(u32::MAX), of)
}

fn mean_length(runs: &[Value]) -> f64 {
    runs.iter().map(length_s).sum::<f64>() / runs.len().max(1) as f64
}
