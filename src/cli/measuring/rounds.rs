//! The run of a soak: its journal from the first round to the last, and going on with it.

use super::benches::{all_ready, only};
use super::job::{Job, header};
use super::rank_journal::OwnJournal;
use super::resumed::{self, NamedAgain};
use super::{
    MeasuringArgs, difference_of_targets, job_again, refuse_another_target, refuse_other_verb,
};
use crate::cli::attend;
use crate::cli::membership::Membership;
use crate::cli::output::remark;
use crate::cli::progress::{Progress, Total};
use crate::cli::ranks::{self, RanksArgs};
use crate::cli::stop::stop_flag;

use rigel_analyse::series::soak_request::SoakRequest;
use rigel_device::clock;
use rigel_measure::run::ranks::FollowedBenches;
use rigel_measure::run::{self, Bench, Event, Listen, soak};
use rigel_model::record::journal::Header;
use rigel_model::record::journal::{Journal, MeasuredLine};
use rigel_model::record::{HowEnded, PointRecord, RunEnd};
use rigel_model::{Coordinates, Error, Nanos, Target, usage};
use rigel_ranks::Ranks;
use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Told of every round that ends, and beforehand of those that are in the journal already; first of
/// all of none.
pub(in crate::cli) type OnRound<'a> = dyn FnMut(&Header, Option<&PointRecord>) + 'a;

/// The rounds that are in a soak's journal already: the number of the last, and the longest complete one.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::cli) struct RoundsDone {
    last: u32,
    longest: Nanos,
}

/// A soak that is resumed.
pub(in crate::cli) enum ResumedSoak {
    /// Nothing of it is left to measure.
    Over(OverSoak),
    /// It goes on behind these rounds.
    Job(Box<Job>, RoundsDone),
}

/// A soak of which nothing is left to measure; its last line may be missing.
pub(in crate::cli) struct OverSoak(Option<Journal>);

impl OverSoak {
    /// Writes its last line, if it is missing.
    pub(in crate::cli) fn end(self, end: &RunEnd) -> Result<(), Error> {
        self.0.map_or(Ok(()), |mut journal| journal.end(end))
    }
}

/// A soak that was cut short, and what is done of it. Its rounds are read one by one, and none is
/// kept.
pub(in crate::cli) fn resume(
    run: &Path,
    args: &MeasuringArgs,
    membership: &Membership,
    ended: &mut OnRound,
) -> Result<ResumedSoak, Error> {
    let named = NamedAgain::of(args, membership)?;
    let mut done = RoundsDone::default();
    let (journal, so_far) = Journal::reopen_each(run, &mut |header, measured| {
        let MeasuredLine::Point(record, _) = measured else {
            return;
        };
        if let Coordinates::Round { round: number, .. } = record.coordinates {
            done.last = done.last.max(number);
        }
        done.longest = SoakRequest::longest_with(done.longest, &record);
        ended(header, Some(&record));
    })?;
    if so_far.cut {
        remark("the journal's last line is incomplete: its round is lost\n");
    }
    let header = &so_far.header;
    refuse_other_verb(&*rigel_verbs::of(header)?, header, "soak", run)?;
    if is_over(header, done.last)? {
        ended(header, None);
        let is_ended = so_far.is_complete();
        return Ok(ResumedSoak::Over(OverSoak((!is_ended).then_some(journal))));
    }
    resumed::share(header, args, membership)?;
    let job = job_again(
        run,
        args,
        membership,
        named.as_ref(),
        &[],
        (journal, so_far),
    )?;
    Ok(ResumedSoak::Job(Box::new(job), done))
}

/// Measures the rounds that rank 0 begins; called at the other ranks. `begin` makes a new run;
/// `resumed` is the directory of one that is resumed.
pub(in crate::cli) fn follow(
    ranks: &Ranks,
    resumed: Option<&Path>,
    args: &MeasuringArgs,
    membership: &Membership,
    begin: &dyn Fn() -> Result<Job, Error>,
) -> Result<(), Error> {
    let mut job = match resumed {
        Some(_) => {
            let named = NamedAgain::of(args, membership)?;
            resumed::follow(ranks, args, membership, named, "soak")?
        }
        None => begin()?,
    };
    let stop = stop_flag()?;
    let own = OwnJournal::asked(&args.outcome.ranks, membership, resumed.is_some());
    job.agree(&args.outcome.ranks, own.as_ref().err())?;
    let mut own = own?;
    let bench = only(&job, &stop, &mut |event| ranks::say_stall(&event))?;
    all_ready(&bench, &job)?;
    let header = header(&bench, &job);
    own.begin(header.clone())?;
    let mut again = |_: &mut Listen| {
        let asked = (&header, &args.outcome.ranks);
        again(&mut job, asked, &stop, &mut |event| {
            ranks::say_stall(&event);
        })
    };
    let reopened = FollowedBenches::Reopened(Some(Box::new(bench)), &mut again);
    let followed = run::ranks::follow(reopened, ranks, &stop, &mut |record| own.keep(record));
    own.end(followed, stop.load(Ordering::Relaxed))
}

/// Prepares the target of a soak again, after all ranks have agreed on it again if there are several.
fn again(
    job: &mut Job,
    (header, ranks): (&Header, &RanksArgs),
    stop: &AtomicBool,
    listen: &mut Listen,
) -> Result<Bench, Error> {
    job.agree(ranks, None)?;
    let bench = only(job, stop, listen)?;
    match difference_of_targets((&header.target, &header.facts), &bench.facts) {
        Some(difference) => Err(usage!(
            "the target of this run was replaced: {difference}",
            "restore the one that it was started on"
        )),
        None => Ok(bench),
    }
}

/// True if the time of the soak's last round is over. The time of a model stands still meanwhile.
fn is_over(header: &Header, last: u32) -> Result<bool, Error> {
    let Some(request) = header.invocation.asked::<SoakRequest>("soak") else {
        return Ok(false);
    };
    let is_lapsed = !matches!(header.target, Target::Sim(_))
        && clock::gone_since(header.started.parse()?) >= request.lasting;
    Ok(last >= request.rounds() || is_lapsed)
}

/// Measures the rounds after those that are done. Answers whether it was stopped before the last of them.
/// The journal has its last line then, and after an error.
pub(in crate::cli) fn measure(
    job: &mut Job,
    done: RoundsDone,
    args: &MeasuringArgs,
    ended: &mut OnRound,
) -> Result<bool, Error> {
    let stop = stop_flag()?;
    job.agree(&args.outcome.ranks, None)?;
    let search = &job.verb;
    let title = format!("soak {}", job.target);
    let way = args.outcome.progress();
    let progress = Progress::new(
        &title,
        Total::Known(search.points_expected()),
        search.point_seconds(),
        way,
    );
    let progress = RefCell::new(progress);
    let notify = |event: &Event| progress.borrow_mut().on_event(event);
    let ranks = &args.outcome.ranks;
    let measured = prepare_and_measure(job, (done, ranks), &stop, &notify, ended);
    attend::is_measured();
    progress.borrow().finish();
    let stopped = stop.load(Ordering::Relaxed);
    if let Err(error) = measured {
        return job.failed(error, stopped);
    }
    if stopped {
        let end = job.end(HowEnded::Stopped, &Ok(STOPPED_STATUS));
        job.journal
            .iter_mut()
            .try_for_each(|journal| journal.end(&end))?;
    }
    Ok(stopped)
}

/// The exit status of a soak that was stopped.
const STOPPED_STATUS: u8 = 1;

fn prepare_and_measure(
    job: &mut Job,
    (done, ranks_args): (RoundsDone, &RanksArgs),
    stop: &AtomicBool,
    notify: &dyn Fn(&Event),
    ended: &mut OnRound,
) -> Result<(), Error> {
    let Some(request) = job.verb.downcast_ref::<SoakRequest>().cloned() else {
        return Err(usage!(
            "this run was made by another verb",
            "resume it with the verb that started it"
        ));
    };
    let membership = job.membership.clone();
    let made = only(job, stop, &mut |event| notify(&event));
    let (made, group) = match (membership.joined(), made) {
        // Of several ranks, all must have their targets now: none tries again later.
        (Some(_), made) => {
            let bench = made?;
            let group = all_ready(&bench, job)?;
            (Ok(bench), group)
        }
        (None, made) => (made, None),
    };
    let (bench, journal, header) = if let Some((journal, run)) = job.resumed.take() {
        resumed::refuse_other_hosts(&run.header, group.as_ref())?;
        let bench = match made {
            Ok(bench) => {
                let header = &run.header;
                refuse_another_target((&header.target, &header.facts), &bench.facts)?;
                Some(bench)
            }
            // After a reboot the target may come up later than this.
            Err(error) => {
                notify(&Event::Trouble(&format!(
                    "{error}\n  the next round tries again"
                )));
                None
            }
        };
        (bench, journal, run.header)
    } else {
        let bench = made?;
        let mut header = header(&bench, job);
        header.ranks = group.map(Box::new);
        job.results.claim()?;
        let journal = Journal::create(job.results.path(), &header)?;
        (Some(bench), journal, header)
    };
    job.begin(journal, &header);
    ended(&header, None);
    let began = header.started.parse()?;
    let conductor = soak::Soak {
        request: &request,
        began,
        last: done.last,
        longest: done.longest,
        seed: job.options.seed,
        together: membership.joined(),
        header: &header,
    };
    // Preparing the target again needs the whole job.
    let Some(mut journal) = job.journal.take() else {
        return Ok(());
    };
    let outcome = measure_rounds(
        (&conductor, bench),
        job,
        (&header, ranks_args),
        &mut journal,
        stop,
        notify,
        ended,
    );
    job.journal = Some(journal);
    outcome
}

/// Measures the rounds into the journal.
fn measure_rounds(
    (conductor, bench): (&soak::Soak, Option<Bench>),
    job: &mut Job,
    (header, ranks_args): (&Header, &RanksArgs),
    journal: &mut Journal,
    stop: &AtomicBool,
    notify: &dyn Fn(&Event),
    ended: &mut OnRound,
) -> Result<(), Error> {
    let mut again = |listen: &mut Listen| again(job, (header, ranks_args), stop, listen);
    let mut events = journal.events()?;
    let mut listen = |event: Event| {
        notify(&event);
        if let Event::Stall(event) = &event {
            events.stall(event);
        }
        if let Event::End(record) = event {
            ended(header, Some(record));
        }
    };
    conductor.measure(bench, &mut again, journal, stop, &mut listen)
}
