//! Several processes as one run: joining the others at the beginning, and one exit status for all at
//! the end.
//!
//! Only rank 0 prints results, and only rank 0 prints errors: another rank sends its own there.

use super::membership::Membership;
use super::output;
use clap::Args;
use rigel_analyse::quantity::counted;
use rigel_device::bounded;
use rigel_device::engine::inherited;
use rigel_device::observe;
use rigel_measure::run::{Event, LOST_STATUS};
use rigel_model::record::ranks::RankGroup;
use rigel_model::{Error, Nanos, failed, usage};
#[cfg(feature = "mpi")]
use rigel_ranks::MpiLibrary;
use rigel_ranks::pmi::Pmi;
use rigel_ranks::{Channel, Joining, LaunchedAs, ProcessManager, RankMember, Ranks, SILENCE_LEAST};
use std::net::TcpStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::PoisonError;

/// Heading of these options in the help. Each of them names it: as the heading of the whole, it would
/// be that of all options that follow, too.
pub(super) const SEVERAL_HOSTS: &str = "Several hosts at once, under mpiexec or srun";

/// Options of a run on several hosts at once, under mpiexec or srun.
#[derive(Debug, Clone, Default, Args)]
pub struct RanksArgs {
    /// Refuse to measure unless the ranks run on this number of hosts
    #[arg(long, value_name = "N", help_heading = SEVERAL_HOSTS, hide_short_help = true)]
    pub hosts: Option<usize>,
    /// Every host has storage of its own: do not ask whether the target is the same
    #[arg(long, help_heading = SEVERAL_HOSTS, hide_short_help = true)]
    pub separate: bool,
    /// Let all ranks write to the same blocks, instead of each to its own part
    #[arg(long, help_heading = SEVERAL_HOSTS, hide_short_help = true)]
    pub same_blocks: bool,
    /// Let every other rank write its own records too, to DIR/rank-N on its host
    #[arg(long, value_name = "DIR", help_heading = SEVERAL_HOSTS, hide_short_help = true)]
    pub rank_journals: Option<PathBuf>,
    /// How they find each other.
    #[command(flatten)]
    pub joining: JoinArgs,
}

/// How the processes of one run find each other.
#[derive(Debug, Clone, Default, Args)]
pub struct JoinArgs {
    /// Time in which all ranks must have started [default: 60s]
    #[arg(long, value_name = "TIME", help_heading = SEVERAL_HOSTS, hide_short_help = true)]
    pub join: Option<Nanos>,
    /// Time without a heartbeat after which a rank is lost: longer than the network may be away
    /// [default: 10s, the minimum]
    #[arg(long, value_name = "TIME", help_heading = SEVERAL_HOSTS, hide_short_help = true)]
    pub rank_silence: Option<Nanos>,
    /// The address at which the other ranks reach rank 0 [default: all of its host]
    #[arg(long, value_name = "ADDRESS", help_heading = SEVERAL_HOSTS, hide_short_help = true)]
    pub rank_address: Option<String>,
    /// Ports of which rank 0 may use one, such as 7000-7099 [default: any free port]
    #[arg(long, value_name = "FROM-TO", help_heading = SEVERAL_HOSTS, hide_short_help = true)]
    pub rank_ports: Option<Ports>,
    /// Act alone although a launcher has started several processes
    #[arg(long, help_heading = SEVERAL_HOSTS, hide_short_help = true)]
    pub alone: bool,
}

/// A range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl FromStr for Ports {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = first.parse().ok().zip(last.parse().ok());
        range
            .map(|(first, last)| Self { first, last })
            .filter(|ports| 0 < ports.first && ports.first <= ports.last)
            .ok_or_else(|| usage!("'{text}' is not a range of ports", "write it as 7000-7099"))
    }
}

impl RanksArgs {
    /// As [`JoinArgs::enter`]: and on as many hosts as were asked for, which one process is not.
    ///
    /// # Errors
    /// As there, or more hosts than one were asked of a process that is alone.
    pub(super) fn enter(&self, membership: &Membership, destroys: bool) -> Result<(), Error> {
        self.joining.enter(membership, destroys)?;
        match self.hosts {
            Some(hosts) if hosts != 1 && membership.joined().is_none() => Err(usage!(
                "--hosts {hosts} was given, and one process measures alone",
                "start it with mpiexec or srun, on {hosts} hosts"
            )),
            _ => Ok(()),
        }
    }
}

impl JoinArgs {
    /// Decides whether this process is alone, and joins the others if it is not. Called before
    /// anything else is opened.
    ///
    /// # Errors
    /// It is one of many without a channel to the others, or they did not all come.
    pub(super) fn enter(&self, membership: &Membership, destroys: bool) -> Result<(), Error> {
        let environment = |name: &str| std::env::var_os(name);
        let place = LaunchedAs::decide(&environment, self.alone, destroys)?;
        let LaunchedAs::Rank(channel) = place else {
            return Ok(());
        };
        let silence = self.rank_silence.unwrap_or(SILENCE_LEAST);
        if silence < SILENCE_LEAST {
            return Err(usage!(
                "--rank-silence {silence} is below the minimum",
                "give at least {least}",
                silence = silence.exact(),
                least = SILENCE_LEAST.exact()
            ));
        }
        let (manager, launched_as) = connect(&channel)?;
        if manager.size() < 2 {
            return Ok(());
        }
        let mut addresses: Vec<String> = launched_as.into_iter().collect();
        addresses.extend(observe::addresses());
        let joining = Joining {
            within: self.join.unwrap_or(Nanos::from_secs(60)),
            silence,
            addresses,
            address: self.rank_address.clone(),
            ports: self.rank_ports.map(|ports| (ports.first, ports.last)),
            end_itself: Some(rigel_ranks::kill_itself),
        };
        let stop = super::stop::stop_flag()?;
        let ranks =
            Ranks::join(manager, &joining, &member(), stop).map_err(|(error, manager)| {
                membership.fail(manager);
                error
            })?;
        let (size, hosts) = (ranks.size(), ranks.hosts());
        if !ranks.is_root() {
            output::leave_to_root();
        }
        membership.join(ranks);
        output::remark(&format!(
            "{size} ranks on {}\n",
            counted(hosts as u64, "host")
        ));
        Ok(())
    }
}

/// Begins to speak to the process manager. Also returns the name by which it started this host.
fn connect(channel: &Channel) -> Result<(Box<dyn ProcessManager>, Option<String>), Error> {
    let name = ["MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "PMI_HOSTNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok())
        .filter(|name| !name.is_empty());
    let manager: Box<dyn ProcessManager> = match channel {
        Channel::Inherited {
            descriptor,
            rank,
            size,
        } => {
            let socket = inherited::adopt("PMI_FD", *descriptor)?;
            Box::new(Pmi::inherited(Box::new(socket), *rank, *size)?)
        }
        Channel::Port { address, id } => {
            let stream = TcpStream::connect(address.as_str()).map_err(|error| {
                failed!(
                    "PMI_PORT={address} cannot be reached: {error}",
                    "if no launcher started this, unset PMI_PORT PMI_ID"
                )
            })?;
            Box::new(Pmi::connected(Box::new(stream), id)?)
        }
        #[cfg(feature = "mpi")]
        Channel::Library { processes } => Box::new(MpiLibrary::begin(processes)?),
    };
    Ok((manager, name))
}

/// Who this rank is.
fn member() -> RankMember {
    // Tests have several hosts with one kernel. A released program believes the kernel alone: whoever
    // may set a variable must not make two ranks of one host writers of the same blocks.
    let for_tests = cfg!(debug_assertions).then(|| std::env::var("RIGEL_TEST_BOOT_ID"));
    let boot_id = for_tests
        .and_then(Result::ok)
        .unwrap_or_else(observe::boot_id);
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy().into_owned();
    let here = std::env::current_dir().unwrap_or_default();
    RankMember {
        arguments: RankMember::digest_of(std::env::args_os().skip(1), &here),
        ..RankMember::of_this_program(host, boot_id)
    }
}

/// Ends the process's part of the run: prints the error at rank 0, sends it there from any other.
/// Returns the exit status, which is that of rank 0 for all.
pub(super) fn concluded(membership: &Membership, outcome: Result<u8, Error>) -> u8 {
    let Some(ranks) = membership.joined() else {
        return outcome.unwrap_or_else(|error| {
            output::complain(&error);
            if let Some(manager) = membership.unjoined() {
                // Said first: no launcher says why.
                let mut manager = manager.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = manager.abort(error.exit_status());
            }
            error.exit_status()
        });
    };
    if !ranks.lost().is_empty() {
        let loss = ranks.loss_error();
        // What failed because of it may have been noticed first: a message that could not be sent.
        if let Err(error) = outcome
            && error.what() != loss.what()
        {
            complain(ranks, &error);
        }
        complain(ranks, &loss);
        // Nobody else ends the ranks that are left.
        ranks.abort(LOST_STATUS);
        return LOST_STATUS;
    }
    let status = match outcome {
        Ok(status) => status,
        Err(error) if ranks.is_root() => {
            output::complain(&error);
            error.exit_status()
        }
        Err(error) => {
            ranks.fail(&error);
            error.exit_status()
        }
    };
    let ended = ranks.end(status);
    if !bounded::left_behind().is_empty() {
        // This process does not end by itself, and its launcher would wait for it.
        ranks.abort(status);
    }
    ended.unwrap_or_else(|error| {
        complain(ranks, &error);
        // Nobody else ends a rank whose I/O hangs.
        ranks.abort(status);
        if ranks.ended().is_some() || ranks.is_root() {
            status
        } else {
            LOST_STATUS
        }
    })
}

/// Says at any rank what does not answer on its host while it prepares its target. Later, rank 0 says
/// it for all.
pub(super) fn say_stall(event: &Event) {
    if let Event::Stall(event) = event {
        output::remark_of_host(&format!("{event}\n"));
    }
}

/// Prints an error of any rank, with its name.
fn complain(ranks: &Ranks, error: &Error) {
    let named = ranks.named(ranks.rank());
    output::complain(&failed!(
        "{named}: {what}",
        error.hint(),
        what = error.what()
    ));
}

/// Refuses other terms between the hosts than the run had that is resumed: they decide which blocks
/// are written, so each rank takes them from its own command line.
pub(super) fn refuse_other_flags(then: &RankGroup, now: &RanksArgs) -> Result<(), Error> {
    let flags = [
        ("--separate", then.separate, now.separate),
        ("--same-blocks", then.same_blocks, now.same_blocks),
    ];
    match flags.iter().find(|(_, then, now)| then != now) {
        None => Ok(()),
        Some((flag, true, _)) => Err(usage!(
            "this run was made with {flag}, which is not given",
            "resume it with {flag}"
        )),
        Some((flag, ..)) => Err(usage!(
            "{flag} is given, and this run was made without it",
            "resume it without, or start another run"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_a_range() {
        let parsed = |text: &str| {
            text.parse::<Ports>()
                .ok()
                .map(|ports| (ports.first, ports.last))
        };
        assert_eq!(parsed("7000-7099"), Some((7000, 7099)));
        assert_eq!(parsed("7000"), Some((7000, 7000)));
        for wrong in ["", "0-5", "9-5", "x", "1-70000", "-"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
