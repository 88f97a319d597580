//! The client of PMI-1 against the dialects of real process managers, and the star of connections
//! that is made with its help.

use crate::common::pmi::{Dialect, Server};
use rigel_device::clock::Clock;
use rigel_model::{Error, Nanos};
use rigel_ranks::pmi::Pmi;
use rigel_ranks::{Joining, RankMember, Ranks, SILENCE_LEAST};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const LONG: Nanos = Nanos::from_secs(60);

/// Runs `work` as each of `size` ranks, each in a thread, against a server of this dialect.
pub(crate) fn as_ranks<Result: Send + 'static>(
    dialect: Dialect,
    size: usize,
    work: impl Fn(Pmi) -> Result + Send + Sync + 'static,
) -> (Server, Vec<Result>) {
    let (server, ends) = Server::start(dialect, size, usize::MAX);
    let work = Arc::new(work);
    let threads: Vec<_> = ends
        .into_iter()
        .enumerate()
        .map(|(rank, end)| {
            let work = Arc::clone(&work);
            thread::spawn(move || work(Pmi::inherited(Box::new(end), rank, size).unwrap()))
        })
        .collect();
    let results = threads.into_iter().map(|thread| thread.join().unwrap());
    let results = results.collect();
    (server, results)
}

#[test]
fn every_dialect_carries_keys_across_barriers() {
    for dialect in Dialect::ALL {
        let (server, read) = as_ranks(dialect, 3, move |mut pmi| {
            let clock = Clock::real();
            let rank = pmi.rank();
            let longest = "x".repeat(pmi.room("longest-0"));
            pmi.put(&format!("longest-{rank}"), &longest).unwrap();
            pmi.barrier(&clock, LONG).unwrap();
            let next = format!("longest-{}", (rank + 1) % pmi.size());
            let read = pmi.get(&next).unwrap();
            let missing = pmi.get("nobody-put-it").unwrap_err().to_string();
            assert!(missing.contains("get_result"), "{dialect:?}: {missing}");
            pmi.barrier(&clock, LONG).unwrap();
            pmi.finalize().unwrap();
            read == longest
        });
        assert_eq!(read, [true; 3], "{dialect:?}");
        let state = server.state();
        assert_eq!(state.finalized, 3, "{dialect:?}");
        assert!(state.unknown.is_empty(), "{dialect:?}: {:?}", state.unknown);
        assert!(
            state.longest <= 1000,
            "{dialect:?}: Slurm loses longer lines"
        );
        assert!(state.longest > 900, "{dialect:?}: room for an invitation");
    }
}

#[test]
fn what_servers_lose_or_end_the_job_over_is_never_sent() {
    let (server, _) = as_ranks(Dialect::Hydra4, 1, |mut pmi| {
        pmi.put("k", "first").unwrap();
        let refused = |put: Result<(), Error>| put.unwrap_err().to_string();
        assert!(refused(pmi.put("k", "second")).contains("put already"));
        for value in ["two words", "back\\slash", "line\nbreak", "tab\t"] {
            assert!(
                refused(pmi.put("v", value)).contains("cannot carry"),
                "{value}"
            );
        }
        assert!(refused(pmi.put("", "x")).contains("cannot carry"));
        assert!(refused(pmi.put(&"k".repeat(64), "x")).contains("does not fit"));
        let long = "x".repeat(pmi.room("long") + 2);
        assert!(refused(pmi.put("long", &long)).contains("does not fit"));
        assert_eq!(pmi.get("k").unwrap(), "first");
    });
    let state = server.state();
    assert_eq!(state.keys.len(), 1);
    assert!(state.unknown.is_empty());
}

#[test]
fn a_value_that_was_cut_is_noticed() {
    let (server, ends) = Server::start(Dialect::Hydra5, 1, 1);
    let end = ends.into_iter().next().unwrap();
    let mut pmi = Pmi::inherited(Box::new(end), 0, 1).unwrap();
    pmi.put("whole", "0123456789").unwrap();
    for damage in [
        |value: &mut String| value.truncate(value.len() - 1),
        |value: &mut String| {
            value.replace_range(value.len() - 1.., "8");
        },
    ] {
        let mut state = server.state();
        damage(state.keys.get_mut("whole").unwrap());
        drop(state);
        let error = pmi.get("whole").unwrap_err().to_string();
        assert!(error.contains("damaged"), "{error}");
    }
}

#[test]
fn a_connection_of_our_own_learns_rank_and_size() {
    let (_server, mut ends) = Server::start(Dialect::Hydra5, 3, 1);
    let pmi = Pmi::connected(Box::new(ends.remove(2)), "2").unwrap();
    assert_eq!((pmi.rank(), pmi.size()), (2, 3));
}

#[test]
fn a_barrier_that_never_completes_says_that_a_host_is_missing() {
    let (_server, ends) = Server::start(Dialect::Hydra4, 2, 0);
    let mut pmi = Pmi::inherited(Box::new(ends.into_iter().next().unwrap()), 0, 2).unwrap();
    let error = pmi
        .barrier(&Clock::real(), Nanos::from_millis(50))
        .unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains("did not complete in 50ms: a host was not started"),
        "{told}"
    );
    assert!(told.contains("--join"), "{told}");
}

#[test]
fn a_server_that_is_gone_or_speaks_nonsense_is_an_error() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(theirs);
    let error = Pmi::inherited(Box::new(ours), 0, 2)
        .unwrap_err()
        .to_string();
    assert!(error.contains("the process manager is gone"), "{error}");
    for nonsense in [
        "cmd=response_to_init rc=-1 pmi_version=1\n",
        "cmd=response_to_init rc=0 pmi_version=2\n",
        "hello\n",
        "\n",
    ] {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(nonsense.as_bytes()).unwrap();
        let error = Pmi::inherited(Box::new(ours), 0, 2)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("answered") && error.contains("to init"),
            "{error}"
        );
    }
    // A line without end is not read for ever.
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let writer = thread::spawn(move || while theirs.write_all(&[b'x'; 4096]).is_ok() {});
    let error = Pmi::inherited(Box::new(ours), 0, 2)
        .unwrap_err()
        .to_string();
    assert!(error.contains("a line without end"), "{error}");
    writer.join().unwrap();
}

fn joining() -> Joining {
    Joining {
        within: LONG,
        silence: SILENCE_LEAST,
        addresses: Vec::new(),
        address: Some("127.0.0.1".into()),
        ports: None,
        end_itself: None,
    }
}

fn member(host: &str) -> RankMember {
    RankMember {
        host: host.into(),
        boot_id: host.into(),
        version: "1".into(),
        build: "1".into(),
        arguments: "none".into(),
    }
}

pub(crate) fn join(pmi: Pmi) -> Ranks {
    let host = format!("h{}", pmi.rank() + 1);
    Ranks::join(Box::new(pmi), &joining(), &member(&host), Arc::default()).unwrap()
}

#[test]
fn ranks_find_each_other_exchange_and_end_with_one_status() {
    for dialect in Dialect::ALL {
        let (server, statuses) = as_ranks(dialect, 3, |pmi| {
            let ranks = join(pmi);
            let rank = ranks.rank();
            assert_eq!((ranks.size(), ranks.hosts()), (3, 3));
            assert_eq!(ranks.named(1), "rank 1 on h2");
            // Long enough to be deflated on the way.
            let long = rank.to_string().repeat(10_000);
            let of_all = ranks.exchange(&long, LONG).unwrap();
            assert_eq!(of_all[2].len(), 10_000);
            assert!(of_all[1].starts_with("11"));
            if ranks.is_root() {
                let offsets = ranks.clock_offsets(20).unwrap();
                assert_eq!(offsets.len(), 3);
                assert!(offsets.iter().all(|offset| offset.agreed), "{offsets:?}");
            }
            ranks.barrier(LONG).unwrap();
            ranks.end(if rank == 0 { 3 } else { 0 }).unwrap()
        });
        assert_eq!(statuses, [3; 3], "{dialect:?}");
        assert_eq!(server.state().finalized, 3, "{dialect:?}");
    }
}

#[test]
fn clocks_of_one_machine_are_within_their_bounds() {
    as_ranks(Dialect::Hydra5, 2, |pmi| {
        let ranks = join(pmi);
        // Both processes are this one: what the clocks differ by is when each was created.
        let reading = ranks.exchange(&ranks.clock().now(), LONG).unwrap();
        if ranks.is_root() {
            let offset = ranks.clock_offsets(50).unwrap()[1];
            let now = ranks.clock().now();
            assert!(offset.bound < Nanos::from_secs(1));
            // Its reading lies before now, on its own clock.
            assert!(reading[1] < offset.of_root(now).plus(offset.bound));
        }
        ranks.end(0).unwrap();
    });
}

#[test]
fn a_rank_that_cannot_go_on_is_named_with_its_host() {
    let (_, told) = as_ranks(Dialect::Slurm, 3, |pmi| {
        let ranks = join(pmi);
        if ranks.rank() == 1 {
            ranks.fail(&Error::usage(
                "'/dev/sdb' carries an ext4 filesystem",
                "name another",
            ));
        } else if ranks.rank() == 2 {
            ranks.send(0, &()).unwrap();
        }
        let told = if ranks.is_root() {
            let error = ranks.gather(&(), LONG).unwrap_err();
            assert_eq!(error.exit_status(), 2);
            error.to_string()
        } else {
            String::new()
        };
        assert_eq!(ranks.end(2).unwrap(), 2);
        told
    });
    assert!(
        told[0].starts_with("rank 1 on h2: '/dev/sdb' carries an ext4"),
        "{}",
        told[0]
    );
}

#[test]
fn a_rank_that_dies_is_a_loss_and_stops_the_others() {
    let (_, lost) = as_ranks(Dialect::Hydra5, 3, |pmi| {
        let stop = Arc::new(AtomicBool::new(false));
        let rank = pmi.rank();
        let ranks =
            Ranks::join(Box::new(pmi), &joining(), &member("h"), Arc::clone(&stop)).unwrap();
        if rank == 2 {
            // Its connection closes as that of a killed process does.
            return None;
        }
        if rank == 1 {
            // It lives until rank 0 is gone.
            let error = ranks.from_root::<()>(LONG).unwrap_err().to_string();
            assert!(error.contains("rank 0 on h was lost"), "{error}");
            return None;
        }
        let error = ranks.gather(&(), LONG).unwrap_err().to_string();
        assert!(stop.load(Ordering::Relaxed));
        assert!(
            error.contains("rank 2 on h was lost: its connection closed"),
            "{error}"
        );
        ranks.lost().first().map(|lost| lost.rank)
    });
    assert_eq!(lost[0], Some(2));
}

#[test]
fn one_rank_that_is_stopped_stops_all() {
    as_ranks(Dialect::Flux, 3, |pmi| {
        let stop = Arc::new(AtomicBool::new(false));
        let ranks =
            Ranks::join(Box::new(pmi), &joining(), &member("h"), Arc::clone(&stop)).unwrap();
        if ranks.rank() == 2 {
            stop.store(true, Ordering::Relaxed);
        }
        while !stop.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        ranks.end(1).unwrap();
    });
}

/// Connects to rank 0 as soon as it listens, as a stranger who knows the port but not the secret.
fn disturb(invitation: &str) {
    // The text has length and checksum in front of it.
    let text = invitation.splitn(3, '-').last().unwrap();
    let json = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, text);
    let json: serde_json::Value = serde_json::from_slice(&json.unwrap()).unwrap();
    let port = u16::try_from(json["p"].as_u64().unwrap()).unwrap();
    let connect = || TcpStream::connect(("127.0.0.1", port));
    // A port scanner: connects, and is gone.
    drop(connect());
    // A silent client, until the test is over.
    if let Ok(silent) = connect() {
        std::mem::forget(silent);
    }
    // A wrong proof, of a rank that exists, of rank 0, and of one that does not.
    for rank in [1_u32, 0, 77, u32::MAX] {
        let Ok(mut stream) = connect() else { continue };
        let mut greeting = [0; 40];
        if stream.read_exact(&mut greeting).is_err() {
            continue;
        }
        let _ = stream.write_all(&rank.to_be_bytes());
        let _ = stream.write_all(&[7; 64]);
        let mut reply = Vec::new();
        // The port may be another test's by now, but a proof is never answered.
        let _ = stream.read_to_end(&mut reply);
        assert!(reply.is_empty(), "a wrong proof was answered");
    }
}

#[test]
fn strangers_at_the_port_are_refused_and_the_run_is_unharmed() {
    let (server, ends) = Server::start(Dialect::Hydra5, 2, usize::MAX);
    let mut ends = ends.into_iter().enumerate();
    let (_, first) = ends.next().unwrap();
    let root = thread::spawn(move || join(Pmi::inherited(Box::new(first), 0, 2).unwrap()));
    // The second rank comes to the barriers, and waits before it joins.
    let (_, second) = ends.next().unwrap();
    let other = thread::spawn(move || {
        let pmi = Pmi::inherited(Box::new(second), 1, 2).unwrap();
        Late { pmi }.join()
    });
    let invitation = loop {
        let found = server.state().keys.get("rigel-star").cloned();
        if let Some(found) = found {
            break found;
        }
        thread::yield_now();
    };
    disturb(&invitation);
    let (root, other) = (
        root.join().unwrap(),
        thread::spawn(move || other.join().unwrap()),
    );
    let exchanged = thread::spawn(move || {
        assert_eq!(root.exchange(&0, LONG).unwrap(), [0, 1]);
        root.end(0).unwrap()
    });
    let other = other.join().unwrap();
    assert_eq!(other.exchange(&1, LONG).unwrap(), [0, 1]);
    other.end(0).unwrap();
    assert_eq!(exchanged.join().unwrap(), 0);
}

/// A rank like any other.
struct Late {
    pmi: Pmi,
}

impl Late {
    fn join(self) -> Ranks {
        join(self.pmi)
    }
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    let (_, told) = as_ranks(Dialect::Hydra4, 3, |mut pmi| {
        let short = Joining {
            within: Nanos::from_millis(300),
            ..joining()
        };
        if pmi.rank() == 2 {
            // It takes part in the barriers, and cannot reach rank 0.
            for _ in 0..2 {
                pmi.barrier(&Clock::real(), LONG).unwrap();
            }
            return String::new();
        }
        let joined = Ranks::join(Box::new(pmi), &short, &member("h"), Arc::default());
        joined.map_or_else(|(error, _)| error.to_string(), |_| "joined".into())
    });
    assert!(
        told[0].starts_with("rank 2 did not reach rank 0 in 300ms"),
        "{}",
        told[0]
    );
    assert!(told[0].contains("--rank-address"), "{}", told[0]);
}
