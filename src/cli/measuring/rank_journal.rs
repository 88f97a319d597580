//! The journal of a rank that only measures: written where `--rank-journals` asks for it.
//!
//! It has what this rank measured itself, as the journal of a process that measures alone has it.
//! The sums are in the journal of rank 0.

use crate::cli::membership::Membership;
use crate::cli::ranks::RanksArgs;
use rigel_model::record::journal::Header;
use rigel_model::record::journal::{self, Journal};
use rigel_model::record::{PointRecord, RunEnd};
use rigel_model::{Error, Finding, FindingName};
use std::path::PathBuf;

/// Where this rank writes its own records.
pub(super) struct OwnJournal {
    /// `None` if it keeps none.
    directory: Option<PathBuf>,
    is_resumed: bool,
    membership: Membership,
    journal: Option<Journal>,
}

impl OwnJournal {
    /// The one that `args` ask for. Nothing is made yet.
    ///
    /// # Errors
    /// Its directory cannot be written to, or holds something else.
    pub(super) fn asked(
        args: &RanksArgs,
        membership: &Membership,
        is_resumed: bool,
    ) -> Result<Self, Error> {
        let ranks = membership.as_follower();
        let directory = args.rank_journals.as_ref().zip(ranks);
        let directory =
            directory.map(|(above, ranks)| above.join(format!("rank-{}", ranks.rank())));
        let is_resumed = is_resumed
            && directory
                .as_ref()
                .is_some_and(|own| journal::file_of(own).is_file());
        if let Some(own) = directory.as_ref().filter(|_| !is_resumed) {
            journal::refuse_unusable(own).map_err(|error| {
                Error::usage(error.what(), "give another with --rank-journals DIR")
            })?;
        }
        Ok(Self {
            directory,
            is_resumed,
            membership: membership.clone(),
            journal: None,
        })
    }

    /// Begins it with `header`, or opens that of the run that is resumed.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn begin(&mut self, header: Header) -> Result<(), Error> {
        let Some((own, ranks)) = self.directory.as_ref().zip(self.membership.joined()) else {
            return Ok(());
        };
        self.journal = Some(if self.is_resumed {
            Journal::reopen_each(own, &mut |_, _| ())?.0
        } else {
            let mut header = header;
            header.findings.push(Finding::note(
                FindingName::RankJournal,
                format!(
                    "this is what {} of {} measured itself: the sums are in the journal of rank 0",
                    ranks.named(ranks.rank()),
                    ranks.size()
                ),
            ));
            Journal::create(own, &header)?
        });
        Ok(())
    }

    /// Appends what was measured of a point.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn keep(&mut self, record: &PointRecord) -> Result<(), Error> {
        match &mut self.journal {
            Some(journal) if record.measured.0 > 0 => journal.point(record),
            _ => Ok(()),
        }
    }

    /// Appends how this rank's part of the run ended, and returns that. The status of all ranks is in
    /// the journal of rank 0.
    ///
    /// # Errors
    /// The outcome is one, or it cannot be written.
    pub(super) fn end(
        mut self,
        outcome: Result<(), Error>,
        was_stopped: bool,
    ) -> Result<(), Error> {
        let outcome = outcome.map(|()| 0);
        let written = match &mut self.journal {
            Some(journal) => journal.end(&RunEnd::of(&outcome, was_stopped)),
            None => Ok(()),
        };
        outcome.and(written)
    }
}
