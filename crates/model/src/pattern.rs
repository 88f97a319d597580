//! The positions that a stream visits.
//!
//! Input: text such as `zipf:0.99`, or a journal. Output: a [`Pattern`], which prints as the text
//! it is parsed from. The numbers themselves are drawn in `workload`.

use super::{Error, Ratio};
use crate::usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The positions that a stream visits, among the `extent` blocks of its length in the volume.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// All blocks are equally likely; draws are independent.
    Uniform,
    /// One block after the other from `start`, wrapping at the end of the volume.
    Sequential {
        /// First position, in blocks.
        start: u64,
    },
    /// Independent draws, with popularity by Zipf's law: the k-th most popular block has a
    /// frequency proportional to `k^-theta`. Popular blocks are scattered over the volume, so
    /// they are not neighbours.
    Zipf {
        /// The exponent, above 0 and at most [`Pattern::THETA_MAX`]. 0.99 has been customary since
        /// YCSB.
        theta: f64,
    },
    /// Independent draws, with a hot part at the beginning of the volume; within each part all
    /// blocks are equally likely.
    Hotspot {
        /// The hot part of the volume. It has at least one block, and so has the rest, unless no
        /// operation goes there.
        space: Ratio,
        /// Fraction of operations that go to the hot part. If all do, it is a working set of that
        /// size.
        share: Ratio,
    },
    /// Every block of the volume once, in a pseudo-random order, and then again in the same order.
    /// With fixed work this holds for all workers of a stream together. If the point ends by
    /// time, a fast worker starts again before a slow one has finished.
    Permutation {
        /// Index in the order at which it begins, so that a point with the same seed continues
        /// where another ended.
        start: u64,
    },
    /// Every block of a part of the volume once, in a pseudo-random order, and then again in the
    /// same order.
    Part {
        /// First block of the part.
        start: u64,
        /// Number of blocks in it.
        blocks: u64,
    },
}

impl Pattern {
    /// Maximum exponent of [`Pattern::Zipf`]: with it, one block gets 99.9 % of the operations.
    pub const THETA_MAX: f64 = 10.0;
}

/// How the patterns are written.
const USAGE: &str = "write it as uniform, sequential, zipf:0.99, hotspot:20%:80% (20% of the \
                     volume gets 80% of the operations) or permutation";

impl FromStr for Pattern {
    type Err = Error;

    /// Parses `uniform`, `sequential`, `zipf:THETA`, `hotspot:SPACE:SHARE`, `part:START:BLOCKS` or
    /// `permutation`.
    /// `sequential:START` and `permutation:START` begin at this block or index instead of the
    /// first.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| usage!("'{text}' is not a pattern: {why}", USAGE);
        let (name, value) = text
            .split_once(':')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        let start = || {
            value.map_or(Ok(0), |value| {
                value
                    .parse()
                    .map_err(|_| wrong("the start is a whole number of blocks"))
            })
        };
        match (name, value) {
            ("uniform", None) => Ok(Pattern::Uniform),
            ("sequential", _) => Ok(Pattern::Sequential { start: start()? }),
            ("permutation", _) => Ok(Pattern::Permutation { start: start()? }),
            ("part", value) => {
                let numbers = value.and_then(|value| value.split_once(':'));
                let numbers = numbers.and_then(|(start, blocks)| {
                    Some((
                        start.parse().ok()?,
                        blocks.parse().ok().filter(|it| *it > 0)?,
                    ))
                });
                let (start, blocks) = numbers
                    .ok_or_else(|| wrong("a part has a first block and a number of blocks"))?;
                Ok(Pattern::Part { start, blocks })
            }
            ("zipf", value) => {
                let theta = value.and_then(|value| value.parse().ok());
                let theta = theta.filter(|theta| 0.0 < *theta && *theta <= Pattern::THETA_MAX);
                let theta = theta.ok_or_else(|| {
                    wrong("the exponent of zipf is a number above 0 and at most 10")
                })?;
                Ok(Pattern::Zipf { theta })
            }
            ("hotspot", value) => {
                let parts = value.and_then(|value| value.split_once(':'));
                let (space, share) = parts
                    .ok_or_else(|| wrong("a hotspot needs a part of the volume and a share"))?;
                let share_of = |text: &str| {
                    text.parse::<Ratio>()
                        .map_err(|_| wrong("a share must be from 0% to 100%"))
                };
                let (space, share) = (share_of(space)?, share_of(share)?);
                if space == Ratio::ZERO || share == Ratio::ZERO {
                    return Err(wrong(
                        "the hot part of the volume and its share must be above 0",
                    ));
                }
                if space == Ratio::ONE && share != Ratio::ONE {
                    return Err(wrong(
                        "the whole volume leaves no room for the other operations",
                    ));
                }
                Ok(Pattern::Hotspot { space, share })
            }
            _ => Err(wrong("there is no pattern of this name")),
        }
    }
}

impl fmt::Display for Pattern {
    /// The form that [`Pattern::from_str`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Uniform => f.write_str("uniform"),
            Pattern::Sequential { start: 0 } => f.write_str("sequential"),
            Pattern::Sequential { start } => write!(f, "sequential:{start}"),
            Pattern::Zipf { theta } => write!(f, "zipf:{theta}"),
            Pattern::Hotspot { space, share } => {
                write!(f, "hotspot:{}:{}", space.exact(), share.exact())
            }
            Pattern::Permutation { start: 0 } => f.write_str("permutation"),
            Pattern::Permutation { start } => write!(f, "permutation:{start}"),
            Pattern::Part { start, blocks } => write!(f, "part:{start}:{blocks}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share() -> impl Strategy<Value = Ratio> {
        (1u32..100_000)
            .prop_map(|thousandths| Ratio::from_percent(f64::from(thousandths) / 1000.0).unwrap())
    }

    fn any_pattern() -> impl Strategy<Value = Pattern> {
        prop_oneof![
            Just(Pattern::Uniform),
            any::<u64>().prop_map(|start| Pattern::Sequential { start }),
            any::<u64>().prop_map(|start| Pattern::Permutation { start }),
            (any::<u64>(), 1..u64::MAX).prop_map(|(start, blocks)| Pattern::Part { start, blocks }),
            (f64::MIN_POSITIVE..=Pattern::THETA_MAX).prop_map(|theta| Pattern::Zipf { theta }),
            (share(), share()).prop_map(|(space, share)| Pattern::Hotspot { space, share }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(pattern in any_pattern()) {
            prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "(uniform|sequential|zipf|hotspot|permutation)?.{0,20}") {
            let _ = text.parse::<Pattern>();
        }
    }

    #[test]
    fn a_pattern_prints_in_the_form_that_is_parsed() {
        for text in [
            "uniform",
            "sequential",
            "zipf:0.99",
            "hotspot:20%:80%",
            "hotspot:0.5%:100%",
            "permutation",
        ] {
            assert_eq!(text.parse::<Pattern>().unwrap().to_string(), text);
        }
        assert_eq!(
            "hotspot:0.2:0.8".parse::<Pattern>(),
            "hotspot:20%:80%".parse()
        );
    }

    #[test]
    fn a_pattern_that_makes_no_sense_is_refused_by_value_with_a_hint() {
        let wrong = [
            "",
            "random",
            "uniform:1",
            "sequential:x",
            "permutation:-1",
            "zipf",
            "zipf:0",
            "zipf:-1",
            "zipf:NaN",
            "zipf:11",
            "hotspot",
            "hotspot:20%",
            "hotspot:0%:80%",
            "hotspot:20%:0%",
            "hotspot:120%:80%",
            "hotspot:100%:80%",
        ];
        for text in wrong {
            let error = text.parse::<Pattern>().unwrap_err();
            assert_eq!(error.exit_status(), 2);
            assert!(
                error.to_string().contains(&format!("'{text}'"))
                    && error.to_string().contains("zipf:0.99"),
                "{error}"
            );
        }
    }
}
