//! What each rank measured so far, for a search that judges a point on every host.
//!
//! Other searches go by the sums, and keep nothing.

use crate::cli::membership::Membership;
use rigel_measure::run::Event;
use rigel_model::Error;
use rigel_model::record::journal::Run;
use rigel_model::record::{End, RankLines};
use rigel_verbs::Verb;
use std::cell::{Ref, RefCell};
use std::path::Path;

/// The lines of ranks behind the complete points of a run.
pub(super) struct HostLines {
    is_kept: bool,
    lines: RefCell<RankLines>,
}

impl HostLines {
    /// Those of the run at `path`, if `is_resumed`; else none yet.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub(super) fn of(
        verb: &dyn Verb,
        membership: &Membership,
        path: &Path,
        is_resumed: bool,
    ) -> Result<Self, Error> {
        let is_kept = (verb.name() == "fit") && membership.joined().is_some();
        let lines = if is_kept && is_resumed {
            of_complete(&Run::read(path)?)
        } else {
            RankLines::default()
        };
        Ok(Self {
            is_kept,
            lines: RefCell::new(lines),
        })
    }

    /// Keeps the lines of a point that was completed.
    pub(super) fn hear(&self, event: &Event) {
        let mut lines = self.lines.borrow_mut();
        match event {
            Event::Parts(parts) if self.is_kept => {
                parts.iter().for_each(|part| lines.record(part.clone()));
            }
            Event::End(record) if record.end == End::Complete => lines.point(0, record),
            _ => {}
        }
    }

    pub(super) fn get(&self) -> Ref<'_, RankLines> {
        self.lines.borrow()
    }
}

fn of_complete(run: &Run) -> RankLines {
    let mut lines = run.ranks.clone();
    lines.parts.retain(|lines| {
        let point = run.points.get(lines.at);
        point.is_some_and(|point| point.end == End::Complete)
    });
    lines
}
