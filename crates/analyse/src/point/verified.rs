//! What looking at the blocks of a run found, in words.

use crate::figures::quantity::{bytes, capital, count, counted, time};
use rigel_model::record::{Verified, WrongBlock};
use rigel_model::{Finding, FindingName, VolumeMember};
use serde::Serialize;

/// Wrong blocks that a finding names; the JSON report has more.
const NAMED: usize = 3;

/// A warning of blocks that were not as they were written, or that nobody could look at; `None` if all is well.
pub fn finding(verified: &Verified, members: &[VolumeMember]) -> Option<Finding> {
    if verified.wrong_blocks > 0 {
        let named: Vec<String> = verified
            .wrong
            .iter()
            .take(NAMED)
            .map(|wrong| named(wrong, members))
            .collect();
        let more = match verified.wrong.len() - named.len() {
            0 => "",
            _ => "; more are in the JSON report",
        };
        return Some(Finding::warning(
            FindingName::WrongBlocks,
            format!(
                "{} of {}, warm-up included, did not return what was written: {}{more}",
                count(verified.wrong_blocks as f64),
                counted(verified.blocks, "read"),
                named.join("; "),
            ),
            "trust this storage with nothing before you know why: read the log of the kernel (dmesg), and test its memory",
        ));
    }
    (verified.blocks == 0).then(|| {
        let what = match verified.unknown {
            0 => "--verify compared nothing: the run read no block".into(),
            unknown => format!(
                "--verify compared nothing: of the {} that were read it is not known what was written",
                counted(unknown, "block")
            ),
        };
        let hint = "measure a scratch file, or run it again on what it has filled";
        Finding::warning(FindingName::NotVerified, what, hint)
    })
}

fn named(wrong: &WrongBlock, members: &[VolumeMember]) -> String {
    let member = usize::try_from(wrong.member)
        .ok()
        .and_then(|at| members.get(at));
    let path = member.map_or_else(String::new, |member| format!("{}, ", member.path.display()));
    format!(
        "{path}{} at byte {}: {}",
        wrong.how.name(),
        wrong.offset,
        wrong.held
    )
}

/// Says that blocks were not compared, beside others that were as written; `None` if all were.
pub fn unknown(verified: &Verified) -> Option<String> {
    let is_apart = verified.unknown > 0 && verified.wrong_blocks == 0 && verified.blocks > 0;
    is_apart.then(|| {
        format!(
            "{} not compared: Rigel may never have written them.",
            match verified.unknown {
                1 => "1 block that was read was".into(),
                blocks => format!("{} blocks that were read were", count(blocks as f64)),
            }
        )
    })
}

/// How many blocks were as they were written, and what it cost to know.
pub fn sentence(verified: &Verified) -> Option<String> {
    if verified.blocks == verified.wrong_blocks {
        return None;
    }
    let all = if verified.wrong_blocks == 0 {
        "every bit"
    } else {
        "all others"
    };
    let unknown = match verified.unknown {
        0 => String::new(),
        unknown => format!(
            "; {} may never have been written by Rigel",
            counted(unknown, "block")
        ),
    };
    Some(capital(&format!(
        "{} were compared ({}), {all} as written; comparing took {} a block{unknown}.",
        counted(verified.blocks, "block"),
        bytes(verified.bytes as f64),
        time(us_per_block(verified)),
    )))
}

/// Microseconds of comparing a block.
fn us_per_block(verified: &Verified) -> f64 {
    verified.time.as_micros_f64() / (verified.blocks + verified.unknown).max(1) as f64
}

/// The same for scripts.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct VerifiedFigures {
    /// Blocks that were compared.
    blocks: u64,
    /// Their bytes.
    bytes: u64,
    /// Blocks that Rigel did not write, and that nothing was compared with.
    unknown_blocks: u64,
    /// Blocks that were not as they were written.
    wrong_blocks: u64,
    /// Time of comparing a block.
    us_per_block: f64,
    /// The wrong ones: how, where and how often.
    wrong: Vec<WrongBlock>,
}

impl From<&Verified> for VerifiedFigures {
    fn from(verified: &Verified) -> Self {
        Self {
            blocks: verified.blocks,
            bytes: verified.bytes,
            unknown_blocks: verified.unknown,
            wrong_blocks: verified.wrong_blocks,
            us_per_block: us_per_block(verified),
            wrong: verified.wrong.clone(),
        }
    }
}
