//! What ranks agree about before anything is opened for writing: that they are the same program
//! with the same request, that each may do it, and that they mean the same target.
//!
//! Input: a target and the ranks. Output: the target's identity, or one refusal that names the
//! host. Ranks of one host look one after another, and no descriptor stays open: the guard refuses
//! what another process holds.

use rigel_database::Access;
use rigel_device::bounded;
use rigel_device::clock;
use rigel_device::engine::guard;
use rigel_device::engine::opened::Opened;
use rigel_device::engine::presence::{LeftoverFile, PresenceFile};
use rigel_device::engine::sampled::SampledBlocks;
use rigel_device::engine::scratch;
use rigel_device::observe;
use rigel_model::record::ranks::{RankClock, RankFacts, RankGroup, TargetIdentity};
use rigel_model::{Bytes, Error, Host, Nanos, Tables, Target, TargetFacts, usage};
use rigel_ranks::{ClockOffset, Ranks};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Time for all to have looked at the target.
pub(super) const AGREE: Nanos = Nanos::from_secs(60);
/// Time for one rank to look at its target, which is less: so its own error says why it has not.
const LOOK_MAX: Nanos = Nanos::from_secs(40);
/// Time for all to have made their targets ready: a scratch file may take hours. A rank that dies
/// meanwhile is noticed.
pub(super) const PREPARE: Nanos = Nanos::from_secs(24 * 3600);
/// Exchanges for the first measurement of the clocks.
const EXCHANGES: usize = 50;

/// What is to be agreed about.
pub struct AgreementTerms<'a> {
    /// The target.
    pub target: &'a Target,
    /// True if the plan writes.
    pub writes: bool,
    /// Paths that may be overwritten.
    pub destroy: &'a [PathBuf],
    /// True if every host has storage of its own.
    pub separate: bool,
    /// Number of hosts that the user wants; `None` for any.
    pub hosts: Option<usize>,
    /// Why this rank cannot take part, whatever the target is.
    pub refusal: Option<&'a Error>,
    /// The servers that this rank uses and the tables that it found, if the target is a database.
    pub database: Option<(Access, Tables)>,
}

/// What the ranks have agreed about.
#[derive(Debug, Default)]
pub struct Agreement {
    /// What identifies the target from here.
    pub identity: TargetIdentity,
    /// Size of each rank's scratch file, where the user gave none.
    pub scratch: Option<Bytes>,
    /// Name of all ranks' sessions on a database.
    pub application: Option<String>,
    /// Files of other runs that were in the directory, as rank 0 found them.
    pub leftovers: Vec<LeftoverFile>,
}

/// What one rank found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Findings {
    /// Status, problem and hint.
    refusal: Option<(u8, String, String)>,
    members: Vec<MemberSeen>,
    /// Size of its scratch file.
    scratch: Option<ScratchSize>,
    database: Option<DatabaseSeen>,
}

/// The size of a scratch file, as one rank wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ScratchSize {
    bytes: Bytes,
    /// False for the part of the free space that a scratch file takes by default.
    is_given: bool,
}

/// A database as one rank sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct DatabaseSeen {
    /// Its first server.
    server: String,
    tables: Tables,
    application: String,
    /// A server that only this host reaches by this address.
    local: Option<String>,
}

/// A file or device as one rank sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MemberSeen {
    path: PathBuf,
    name: Option<String>,
    blocks: SampledBlocks,
}

/// Agrees with the other ranks. Nothing is opened for writing but a file of our own, which proves
/// that a directory is the same; it is removed again.
///
/// # Errors
/// The ranks differ, or one of them refuses. Every rank returns the same error.
pub fn agree(ranks: &Ranks, terms: &AgreementTerms) -> Result<Agreement, Error> {
    same_program(ranks)?;
    if let Some(wanted) = terms.hosts.filter(|wanted| *wanted != ranks.hosts()) {
        return Err(usage!(
            "--hosts {wanted} was given, and {size} ranks run on {hosts} hosts",
            "with mpiexec give -ppn 1 and -hosts, with srun --ntasks-per-node=1",
            size = ranks.size(),
            hosts = ranks.hosts()
        ));
    }
    let mut own = Findings::default();
    for turn in 0..turns(ranks) {
        if turn == turn_of(ranks, ranks.rank()) {
            // Hosts with storage of their own share it with no other host.
            let sharing = if terms.separate {
                let boots = ranks.members().iter().map(|member| &member.boot_id);
                let own_boot = &ranks.members()[ranks.rank()].boot_id;
                boots.filter(|boot| *boot == own_boot).count()
            } else {
                ranks.size()
            };
            own = Findings::of(terms, sharing);
        }
        ranks.barrier(AGREE)?;
    }
    let of_all = ranks.exchange(&own, AGREE)?;
    refuse_any(ranks, &of_all)?;
    // Before ranks of this run make files of their own.
    let leftovers = match terms.target {
        Target::Scratch { directory, .. } if ranks.is_root() => {
            // The next step finds out whether the directory answers.
            let sweep = |directory: &Path| PresenceFile::sweep(directory, clock::since_epoch());
            looked(directory, sweep).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    if !terms.separate {
        same_members(ranks, &of_all)?;
        one_writer_of_a_host(ranks, terms)?;
        if let Target::Scratch { directory, .. } = terms.target {
            same_directory(ranks, directory)?;
        }
        reachable_servers(ranks, &of_all)?;
    }
    same_tables(ranks, &of_all)?;
    let first = of_all.iter().find_map(|found| found.database.as_ref());
    if let Some(database) = first {
        refuse_odd_name(ranks, &database.application)?;
    }
    Ok(Agreement {
        identity: own.identity(),
        scratch: agreed_size(own.scratch, &of_all)?,
        application: first.map(|database| database.application.clone()),
        leftovers,
    })
}

/// Refuses ranks of another version or build, or with other arguments.
fn same_program(ranks: &Ranks) -> Result<(), Error> {
    let [first, others @ ..] = ranks.members() else {
        return Ok(());
    };
    for (rank, other) in (1..).zip(others) {
        let what = if other.version != first.version {
            format!(
                "is rigel {}, and rank 0 is {}",
                other.version, first.version
            )
        } else if other.build != first.build {
            format!("is another build of rigel {} than rank 0", first.version)
        } else if other.arguments != first.arguments {
            "has other arguments or another working directory than rank 0".into()
        } else {
            continue;
        };
        return Err(usage!(
            "{rank} {what}",
            "start the same program with the same arguments on every host",
            rank = ranks.named(rank)
        ));
    }
    Ok(())
}

/// How many turns the host with the most ranks needs.
fn turns(ranks: &Ranks) -> usize {
    (0..ranks.size())
        .map(|rank| turn_of(ranks, rank) + 1)
        .max()
        .unwrap_or(1)
}

/// How many ranks of the same host come before this one.
fn turn_of(ranks: &Ranks, rank: usize) -> usize {
    let members = ranks.members();
    let before = &members[..rank];
    before
        .iter()
        .filter(|other| other.boot_id == members[rank].boot_id)
        .count()
}

impl Findings {
    /// Looks at the target.
    fn of(terms: &AgreementTerms, size: usize) -> Self {
        let look = || -> Result<Self, Error> {
            if let Some(refusal) = terms.refusal {
                return Err(refusal.clone());
            }
            let mut seen = Self {
                database: terms.database.as_ref().map(DatabaseSeen::of),
                ..Self::default()
            };
            match terms.target {
                Target::Paths { members, .. } => {
                    for path in members {
                        seen.members.push(MemberSeen::of(path, terms)?);
                    }
                }
                Target::Scratch {
                    directory, bytes, ..
                } => {
                    let free =
                        move |directory: &Path| scratch::default_size(directory, size as u64);
                    let default = || looked(directory, free)?;
                    seen.scratch = Some(ScratchSize {
                        bytes: bytes.map_or_else(default, Ok)?,
                        is_given: bytes.is_some(),
                    });
                }
                Target::Sim(_) | Target::Null { .. } | Target::Sql(_) => {}
            }
            Ok(seen)
        };
        look().unwrap_or_else(|error| Self {
            refusal: Some((
                error.exit_status(),
                error.what().into(),
                error.hint().into(),
            )),
            ..Self::default()
        })
    }

    fn identity(&self) -> TargetIdentity {
        let first = self.members.first();
        TargetIdentity {
            name: first.and_then(|member| member.name.clone()),
            digest: first.map(|member| member.blocks.all.clone()),
        }
    }
}

impl DatabaseSeen {
    fn of((access, tables): &(Access, Tables)) -> Self {
        let local = access.servers.iter().find(|server| server.is_local());
        Self {
            server: access.servers[0].to_string(),
            tables: *tables,
            application: access.application.clone(),
            local: local.map(ToString::to_string),
        }
    }
}

impl MemberSeen {
    fn of(path: &Path, terms: &AgreementTerms) -> Result<Self, Error> {
        let (writes, destroy) = (terms.writes, terms.destroy.to_vec());
        looked(path, move |path| {
            let target = Opened::open(path)?;
            if writes {
                guard::judge(&target, &destroy)?;
            }
            Ok(Self {
                path: path.to_path_buf(),
                name: target.device().and_then(observe::storage_name),
                blocks: SampledBlocks::of(&target)?,
            })
        })?
    }

    /// Why the other rank's target is another one; `None` if it is the same.
    fn difference(&self, other: &Self) -> Option<String> {
        let (ours, theirs) = (&self.blocks, &other.blocks);
        if let (Some(name), Some(their_name)) = (&self.name, &other.name) {
            return (name != their_name).then(|| format!("it is {their_name}, not {name}"));
        }
        if ours.bytes != theirs.bytes {
            let (our_bytes, their_bytes) = (Bytes(ours.bytes), Bytes(theirs.bytes));
            return Some(format!(
                "it has {}, not {}",
                their_bytes.exact(),
                our_bytes.exact()
            ));
        }
        if ours.first != theirs.first {
            return Some("its first block differs".into());
        }
        if ours.all != theirs.all {
            return Some("sampled blocks differ".into());
        }
        ours.is_empty
            .then(|| "both hold only zeros, and neither has a serial number".into())
    }
}

/// Looks at a path on storage that may not answer.
fn looked<Answer: Send + 'static>(
    path: &Path,
    look: impl FnOnce(&Path) -> Answer + Send + 'static,
) -> Result<Answer, Error> {
    let what = format!("examining '{}'", path.display());
    let path = path.to_path_buf();
    Ok(bounded::call(&what, LOOK_MAX, move || look(&path))?)
}

/// Refuses for all what one rank refuses.
fn refuse_any(ranks: &Ranks, of_all: &[Findings]) -> Result<(), Error> {
    let refused = |(rank, found): (usize, &Findings)| Some((rank, found.refusal.clone()?));
    let Some((rank, (status, what, hint))) = of_all.iter().enumerate().find_map(refused) else {
        return Ok(());
    };
    let what = format!(
        "{}: {what}; nothing was written on any host",
        ranks.named(rank)
    );
    Err(match status {
        2 => Error::usage(what, hint),
        _ => Error::failed(what, hint),
    })
}

/// Refuses a name of sessions that Rigel does not give: it becomes a part of what a server is asked.
fn refuse_odd_name(ranks: &Ranks, name: &str) -> Result<(), Error> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.len() <= 63 && name.bytes().all(is_plain) {
        Ok(())
    } else {
        Err(ranks.unreadable(0, "an odd name of sessions"))
    }
}

/// The size of each rank's scratch file: what rank 0 was given, else the least of all. A rank that was
/// given none makes none of more than twice its own default, whoever asks for it.
fn agreed_size(own: Option<ScratchSize>, of_all: &[Findings]) -> Result<Option<Bytes>, Error> {
    let Some(own) = own else { return Ok(None) };
    let sizes = || of_all.iter().filter_map(|found| found.scratch);
    let agreed = match sizes().next() {
        Some(first) if first.is_given => first.bytes,
        _ => sizes().map(|size| size.bytes).min().unwrap_or(own.bytes),
    };
    let limit = if own.is_given {
        own.bytes
    } else {
        Bytes(own.bytes.0.saturating_mul(2))
    };
    if agreed > limit {
        return Err(usage!(
            "a scratch file of {agreed} is wanted, and {limit} is the most that this host makes",
            "give --scratch-size {bytes} on the command line",
            bytes = agreed.exact()
        ));
    }
    Ok(Some(agreed))
}

/// Refuses files and devices that are not the same on every host.
fn same_members(ranks: &Ranks, of_all: &[Findings]) -> Result<(), Error> {
    let Some((first, others)) = of_all.split_first() else {
        return Ok(());
    };
    let host = |rank: usize| &ranks.members()[rank].host;
    for (rank, other) in (1..).zip(others) {
        // Ranks of one host see one thing under one path.
        if ranks.members()[rank].boot_id == ranks.members()[0].boot_id
            && first
                .members
                .iter()
                .zip(&other.members)
                .all(|(one, two)| one.blocks == two.blocks && one.name == two.name)
        {
            continue;
        }
        for (one, two) in first.members.iter().zip(&other.members) {
            if let Some(difference) = one.difference(two) {
                let path = two.path.display();
                return Err(usage!(
                    "'{path}' on {rank} is not '{path}' on {first}: {difference}; nothing was \
                     written on any host",
                    "name it by /dev/disk/by-id; or give --separate if every host has storage of \
                     its own",
                    rank = host(rank),
                    first = host(0)
                ));
            }
        }
    }
    Ok(())
}

/// Refuses tables of another size than rank 0 found: points are planned for those.
fn same_tables(ranks: &Ranks, of_all: &[Findings]) -> Result<(), Error> {
    let seen = |(rank, found): (usize, &Findings)| Some((rank, found.database.clone()?));
    let mut all = of_all.iter().enumerate().filter_map(seen);
    let Some((_, first)) = all.next() else {
        return Ok(());
    };
    match all.find(|(_, other)| other.tables != first.tables) {
        None => Ok(()),
        Some((rank, other)) => Err(usage!(
            "{rank}: the tables in '{other}' have another size than those in '{first}'",
            "load all of them with the same options: rigel sql drop, then rigel sql load",
            rank = ranks.named(rank),
            other = other.server,
            first = first.server
        )),
    }
}

/// Refuses addresses that lead to another server on every host.
fn reachable_servers(ranks: &Ranks, of_all: &[Findings]) -> Result<(), Error> {
    let local = |found: &Findings| found.database.as_ref()?.local.clone();
    match of_all.iter().find_map(local) {
        Some(url) if ranks.hosts() > 1 => Err(usage!(
            "'{url}' is another server on each of the {hosts} hosts",
            "give the server's name; or --separate if every host has a server of its own",
            hosts = ranks.hosts()
        )),
        _ => Ok(()),
    }
}

/// Refuses ranks of one host that would write to one target: the guard refuses what another process
/// holds, and the second would find it held by the first.
fn one_writer_of_a_host(ranks: &Ranks, terms: &AgreementTerms) -> Result<(), Error> {
    let is_named = matches!(terms.target, Target::Paths { .. });
    let second = (0..ranks.size()).find(|rank| turn_of(ranks, *rank) > 0);
    match second.filter(|_| is_named && terms.writes) {
        None => Ok(()),
        Some(rank) => Err(usage!(
            "{rank} is not alone on its host, and several processes of one host may not write to \
             '{target}'",
            "start one rank on each host: -ppn 1 with mpiexec, --ntasks-per-node=1 with srun",
            rank = ranks.named(rank),
            target = terms.target
        )),
    }
}

/// Refuses directories that are not the same on every host: each rank makes a file, rank 0 looks
/// for all of them, and the others for that of rank 0.
fn same_directory(ranks: &Ranks, directory: &Path) -> Result<(), Error> {
    // A number, since it becomes a part of a path: a text of another rank might lead elsewhere.
    let of_all: Vec<u64> = ranks.exchange(&clock::fresh_seed(), AGREE)?;
    let nonce = of_all.first().copied().unwrap_or_default();
    let name = |rank: usize| format!("{nonce:016x}-{rank}");
    let own = name(ranks.rank());
    let made = looked(directory, move |directory| {
        PresenceFile::make(directory, &own)
    });
    let made = made.and_then(|made| made);
    let refusal = made.as_ref().err();
    let own = Findings {
        refusal: refusal.map(|error| {
            (
                error.exit_status(),
                error.what().into(),
                error.hint().into(),
            )
        }),
        ..Findings::default()
    };
    refuse_any(ranks, &ranks.exchange(&own, AGREE)?)?;
    let wanted = if ranks.is_root() {
        1..ranks.size()
    } else {
        0..1
    };
    let wanted: Vec<(usize, String)> = wanted.map(|rank| (rank, name(rank))).collect();
    let unseen: Vec<usize> = looked(directory, move |directory| {
        let is_unseen = |(_, name): &&(usize, String)| !PresenceFile::is_seen(directory, name);
        wanted
            .iter()
            .filter(is_unseen)
            .map(|(rank, _)| *rank)
            .collect()
    })?;
    let of_all = ranks.exchange(&unseen, AGREE)?;
    looked(directory, |_| drop(made))?;
    let missing = of_all
        .iter()
        .enumerate()
        .find_map(|(rank, unseen)| unseen.first().map(|other| (rank, *other)));
    let Some((rank, other)) = missing else {
        return Ok(());
    };
    // Another rank may name one that there is not.
    let host = |rank: usize| {
        let member = ranks.members().get(rank);
        member.map_or("another host", |member| &member.host)
    };
    let path = directory.display();
    Err(usage!(
        "'{path}' on {rank} is not '{path}' on {other}: a file that was made in one is not in the \
         other",
        "is it mounted on both? Give --separate if every host has storage of its own",
        rank = host(rank),
        other = host(other)
    ))
}

/// An offset as the journal has it.
pub(super) fn clock_of(offset: ClockOffset) -> RankClock {
    RankClock {
        ahead_ns: offset.ahead_ns,
        bound: offset.bound,
        drift_ppm: 0.0,
        agreed: offset.agreed,
    }
}

/// What ranks tell each other once their targets are ready.
#[derive(Clone, Serialize, Deserialize)]
struct Readiness {
    host: Host,
    facts: TargetFacts,
    identity: TargetIdentity,
    cpu_mask: String,
    mtu: Option<u32>,
    paths: Option<u32>,
    /// Wall clock and this rank's own clock, at the same moment.
    wall: (Nanos, Nanos),
}

/// Major and minor numbers of the target's devices.
fn devices(facts: &TargetFacts) -> impl Iterator<Item = (u32, u32)> {
    let members = facts.members.iter();
    members.filter_map(|member| member.device_number)
}

/// Waits until all ranks are ready to measure, and tells rank 0 what each is. Only rank 0 receives
/// the group.
///
/// # Errors
/// A rank could not prepare its target, or was lost.
pub fn all_ready(
    ranks: &Ranks,
    (host, facts): (&Host, &TargetFacts),
    identity: TargetIdentity,
) -> Result<Option<RankGroup>, Error> {
    let own = Readiness {
        host: host.clone(),
        facts: facts.clone(),
        identity,
        cpu_mask: observe::cpu_mask(),
        mtu: ranks.peer_address().and_then(observe::mtu_towards),
        paths: devices(facts).find_map(observe::paths),
        wall: (clock::since_epoch(), ranks.clock().now()),
    };
    if !ranks.is_root() {
        return ranks.send(0, &own).map(|()| None);
    }
    let of_all = ranks.gather(&own, PREPARE)?;
    let offsets = ranks.clock_offsets(EXCHANGES)?;
    let signed = |time: Nanos| i64::try_from(time.0).unwrap_or(i64::MAX);
    // When this rank's clock read zero, by its wall clock.
    let zero = |ready: &Readiness| signed(ready.wall.0).saturating_sub(signed(ready.wall.1));
    let members = of_all.iter().zip(&offsets).zip(ranks.members());
    let members = (0u32..)
        .zip(members)
        .map(|(rank, ((ready, offset), member))| {
            let mut host = ready.host.clone();
            host.name.clone_from(&member.host);
            RankFacts {
                rank,
                boot_id: member.boot_id.clone(),
                host,
                facts: ready.facts.clone(),
                identity: ready.identity.clone(),
                cpu_mask: ready.cpu_mask.clone(),
                clock: clock_of(*offset),
                wall_clock_ahead_ns: zero(ready)
                    .saturating_add(offset.ahead_ns)
                    .saturating_sub(zero(&of_all[0])),
                mtu: ready.mtu,
                paths: ready.paths,
            }
        });
    Ok(Some(RankGroup {
        members: members.collect(),
        ..RankGroup::default()
    }))
}
