//! Several processes as one run, started as MPI's process managers start them: by a server of PMI-1
//! in these tests, without a launcher.

use crate::common::launched::{Rank, journal, run, start, statuses};
use crate::common::pmi::{Dialect, Server};
use crate::common::{
    Place, in_time, journal_lines, need, rigel, scratch_file, stderr, test, text, wait_until,
};
use rigel_model::record::End;
use std::process::{Command, Output};

/// Operations in the complete windows of the first class.
fn done(record: &rigel_model::record::PointRecord) -> u64 {
    record.streams[0].total().done
}

#[test]
fn three_ranks_measure_a_model_as_one_run() {
    let place = Place::new("ranks-model");
    let outputs = run(
        &place,
        "curve sim:8,100us --depth 1,8 --seed 1 --out out",
        3,
    );
    assert_eq!(statuses(&outputs), [Some(0); 3], "{}", stderr(&outputs[0]));
    // Rank 0 speaks for all.
    assert!(!outputs[0].stdout.is_empty());
    assert!(stderr(&outputs[0]).contains("3 ranks on 3 hosts"));
    for other in &outputs[1..] {
        assert!(
            other.stdout.is_empty() && other.stderr.is_empty(),
            "{}",
            stderr(other)
        );
    }
    let run = journal(&place, "out");
    assert_eq!(run.header.ranks.as_ref().map(|ranks| ranks.size()), Some(3));
    assert!(run.points.len() >= 2);
    assert_eq!(run.ranks.parts.len(), run.points.len());
    for point in &run.ranks.parts {
        let merged = &run.points[point.at];
        let sum: u64 = point.parts.iter().map(|part| done(&part.record)).sum();
        // Models begin at zero: no window is left out, so nothing may be lost.
        assert_eq!(done(merged), sum, "{}", merged.coordinates);
        let seeds = point.parts.iter().map(|part| done(&part.record));
        let differing = seeds.collect::<std::collections::BTreeSet<_>>().len();
        assert!(differing > 1 || point.parts.len() == 1, "equal seeds");
    }
    assert!(run.ended.as_ref().is_some_and(|end| end.status == 0));
}

#[test]
fn three_ranks_measure_a_directory_in_common_windows() {
    let place = Place::new("ranks-directory");
    std::fs::create_dir(place.0.join("storage")).unwrap();
    let line = "curve storage --depth 2 --scratch-size 64MiB --point-max 1s --out out";
    let outputs = run(&place, line, 3);
    assert_eq!(statuses(&outputs), [Some(0); 3], "{}", stderr(&outputs[0]));
    let run = journal(&place, "out");
    let group = run.header.ranks.as_ref().unwrap();
    assert!(group.members.iter().all(|member| member.clock.agreed));
    for point in &run.ranks.parts {
        let merged = &run.points[point.at];
        assert_eq!(merged.end, End::Complete, "{}", merged.coordinates);
        let sum: u64 = point.parts.iter().map(|part| done(&part.record)).sum();
        assert!(done(merged) <= sum && done(merged) > 0);
        let merge = merged.merge.as_ref().unwrap();
        if merge.windows_dropped == 0 {
            assert_eq!(done(merged), sum, "no window was left out");
        }
    }
    let left = std::fs::read_dir(place.0.join("storage")).unwrap().count();
    assert_eq!(
        left, 0,
        "neither scratch files nor files that ranks looked for"
    );
}

#[test]
fn ranks_divide_the_rounds_of_a_soak_and_resume_it() {
    let place = Place::new("ranks-soak");
    let soak = "soak sim:8,100us --work 301ops --every 1m --for 10m --seed 1 --out out";
    let outputs = run(&place, soak, 3);
    assert_eq!(statuses(&outputs), [Some(0); 3], "{}", stderr(&outputs[0]));
    let whole = journal(&place, "out");
    assert_eq!(whole.points.len(), 10);
    for point in &whole.ranks.parts {
        let each: Vec<u64> = point.parts.iter().map(|part| done(&part.record)).collect();
        assert_eq!(
            each,
            [101, 100, 100],
            "{}",
            whole.points[point.at].coordinates
        );
    }
    assert_eq!(whole.ranks.parts.len(), 10);
    assert!(whole.ended.as_ref().is_some_and(|end| end.status == 0));

    // As if it had been killed after the fourth round.
    let path = place.0.join("out/journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let fourth = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with("{\"point\""));
    let end = fourth.map(|(at, _)| at).nth(3).unwrap();
    std::fs::write(&path, lines[..=end].join("\n") + "\n").unwrap();
    // Only rank 0 has the journal, and no rank opens what another one names.
    let outputs = run(&place, "soak --resume out", 3);
    assert_eq!(statuses(&outputs), [Some(2); 3]);
    let said = stderr(&outputs[0]);
    assert!(said.contains("whose TARGET is not given again"), "{said}");
    let outputs = run(&place, "soak --resume out sim:9,100us", 3);
    assert_eq!(statuses(&outputs), [Some(2); 3]);
    let said = stderr(&outputs[0]);
    assert!(
        said.contains("was made on 'sim:8,100us") && said.contains("and 'sim:9,100us"),
        "{said}"
    );
    let outputs = run(&place, "soak --resume out sim:8,100us --separate", 3);
    assert_eq!(statuses(&outputs), [Some(2); 3]);
    let said = stderr(&outputs[0]);
    assert!(
        said.contains("--separate is given, and this run was made without"),
        "{said}"
    );
    // Its reports name each host once, so it goes on on the same ones.
    let kept = std::fs::read_to_string(&path).unwrap();
    let mut head: serde_json::Value = serde_json::from_str(kept.lines().next().unwrap()).unwrap();
    head["header"]["ranks"]["members"][1]["host"]["name"] = "elsewhere".into();
    let others = kept.lines().skip(1).map(|line| format!("{line}\n"));
    std::fs::write(&path, format!("{head}\n{}", others.collect::<String>())).unwrap();
    let outputs = run(&place, "soak --resume out sim:8,100us", 3);
    assert_eq!(statuses(&outputs), [Some(2); 3]);
    let said = stderr(&outputs[0]);
    assert!(
        said.contains("rank 1 of this run was on 'elsewhere', and is on"),
        "{said}"
    );
    std::fs::write(&path, kept).unwrap();
    let outputs = run(&place, "soak --resume out sim:8,100us", 2);
    assert_eq!(statuses(&outputs), [Some(2); 2]);
    assert!(stderr(&outputs[0]).contains("made by 3 ranks, and these are 2"));
    let outputs = run(&place, "soak --resume out sim:8,100us", 3);
    assert_eq!(statuses(&outputs), [Some(0); 3], "{}", stderr(&outputs[0]));
    assert_eq!(journal(&place, "out").points.len(), 10);
    let outputs = run(&place, "soak --resume out sim:8,100us", 3);
    assert_eq!(statuses(&outputs), [Some(0); 3], "{}", stderr(&outputs[0]));
    assert!(stderr(&outputs[0]).contains("nothing is left to measure"));
}

/// Runs two ranks whose target, `/proc/self/fd/0`, is another file for each.
fn run_on(place: &Place, line: &str, files: [&std::path::Path; 2]) -> Vec<Output> {
    let (_server, ends) = Server::start(Dialect::Slurm, 2, usize::MAX);
    let ranks = ends.into_iter().enumerate().map(|(rank, end)| {
        let mut command = rigel(place, line);
        command.env("RIGEL_TEST_BOOT_ID", format!("boot-{rank}"));
        command.stdin(std::fs::File::open(files[rank]).unwrap());
        Rank::start(command, &end, rank, 2)
    });
    let ranks: Vec<Rank> = ranks.collect();
    ranks.into_iter().map(Rank::end).collect()
}

#[test]
fn separate_storage_is_not_compared_and_its_figures_stand_side_by_side() {
    let place = Place::new("ranks-separate");
    let one = scratch_file("ranks-separate-1", 1 << 20);
    let other = scratch_file("ranks-separate-2", 1 << 21);
    let line = "curve /proc/self/fd/0 --depth 1 --point-max 1s --out out";
    let files = [&*one.path, &*other.path];
    let outputs = run_on(&place, line, files);
    assert_eq!(statuses(&outputs), [Some(2); 2], "{}", stderr(&outputs[0]));
    assert!(
        stderr(&outputs[0]).contains("it has 2MiB, not 1MiB"),
        "{}",
        stderr(&outputs[0])
    );
    let outputs = run_on(&place, &format!("{line} --separate"), files);
    assert_eq!(statuses(&outputs), [Some(0); 2], "{}", stderr(&outputs[0]));
    let shown = rigel(&place, "report out --verbose").output().unwrap();
    let said = String::from_utf8_lossy(&shown.stdout).into_owned();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("their sum is not the rate of one storage"),
        "{said}"
    );
    let group = journal(&place, "out").header.ranks.unwrap();
    assert!(group.separate);
    let sizes = group.members.iter().map(|member| member.facts.usable.0);
    assert_eq!(sizes.collect::<Vec<_>>(), [1 << 20, 1 << 21]);
}

#[test]
fn a_target_that_differs_is_refused_once_and_for_all() {
    let place = Place::new("ranks-differ");
    let (one, other) = (
        scratch_file("ranks-one", 1 << 20),
        scratch_file("ranks-two", 1 << 20),
    );
    std::fs::copy(&other.path, place.0.join("copy")).unwrap();
    let mut bytes = std::fs::read(place.0.join("copy")).unwrap();
    bytes[0] ^= 1;
    std::fs::write(place.0.join("copy"), bytes).unwrap();
    // The same path leads elsewhere on each host: here through the process's own descriptors.
    let line = "curve /proc/self/fd/0 --depth 1 --out out";
    let (server, ends) = Server::start(Dialect::Slurm, 2, usize::MAX);
    let files = [one.path.clone(), place.0.join("copy")];
    let ranks: Vec<Rank> = ends
        .into_iter()
        .enumerate()
        .map(|(rank, end)| {
            let mut command = rigel(&place, line);
            command.env("RIGEL_TEST_BOOT_ID", format!("boot-{rank}"));
            command.stdin(std::fs::File::open(&files[rank]).unwrap());
            Rank::start(command, &end, rank, 2)
        })
        .collect();
    let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
    assert_eq!(statuses(&outputs), [Some(2); 2], "{}", stderr(&outputs[0]));
    let said = stderr(&outputs[0]);
    assert!(said.contains("its first block differs"), "{said}");
    assert!(said.contains("nothing was written on any host"), "{said}");
    assert_eq!(stderr(&outputs[1]), "", "one message");
    assert!(!place.0.join("out").exists());
    assert_eq!(server.state().finalized, 2);
}

#[test]
fn one_rank_that_cannot_measure_ends_all_with_its_reason() {
    let place = Place::new("ranks-refused");
    let present = scratch_file("ranks-present", 1 << 20);
    let line = format!("curve {} --depth 1 --out out", text(&present.path));
    // Rank 1 has another working directory: it is not the same command.
    let elsewhere = Place::new("ranks-elsewhere");
    let (_server, ranks) = start(&place, &line, 2, |rank, command| {
        if rank == 1 {
            command.current_dir(&elsewhere.0);
        }
    });
    let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
    assert_eq!(statuses(&outputs), [Some(2); 2], "{}", stderr(&outputs[0]));
    let said = stderr(&outputs[0]);
    assert!(
        said.contains("has other arguments or another working directory"),
        "{said}"
    );
    assert!(!place.0.join("out").exists());
    // The number of hosts is checked as well.
    let outputs = run(&place, &format!("{line} --hosts 3"), 2);
    assert_eq!(statuses(&outputs), [Some(2); 2]);
    let said = stderr(&outputs[0]);
    assert!(
        said.contains("--hosts 3 was given, and 2 ranks run on 2 hosts"),
        "{said}"
    );
}

#[test]
fn ranks_of_one_host_may_not_write_to_one_target() {
    let place = Place::new("ranks-writers");
    let present = scratch_file("ranks-written", 1 << 20);
    let path = text(&present.path);
    let line = format!("curve {path} --depth 1 --mix write=100 --destroy {path} --out out");
    let before = std::fs::read(path).unwrap();
    let one_host = |_: usize, command: &mut Command| {
        command.env("RIGEL_TEST_BOOT_ID", "one");
    };
    let (_server, ranks) = start(&place, &line, 2, one_host);
    let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
    assert_eq!(statuses(&outputs), [Some(2); 2]);
    let said = stderr(&outputs[0]);
    assert!(said.contains("is not alone on its host"), "{said}");
    assert!(!place.0.join("out").exists());
    assert!(std::fs::read(path).unwrap() == before);
}

const LONG: &str = "curve storage --depth 2 --scratch-size 64MiB --out out";

/// Starts a long run, and waits until one point is in its journal.
fn running(place: &Place, seconds: u32) -> (Server, Vec<Rank>) {
    std::fs::create_dir(place.0.join("storage")).unwrap();
    let line = format!("{LONG} --point-min {seconds}s --point-max {seconds}s --precision 0.1%");
    let (server, ranks) = start(place, &line, 3, |_, _| ());
    let run = place.0.join("out");
    wait_until("one point is done", || journal_lines(&run) >= 5);
    (server, ranks)
}

#[test]
fn the_death_of_a_rank_ends_the_run_and_keeps_what_is_complete() {
    let (place, server, outputs) = in_time("a rank died", |factor| {
        let place = Place::new(&format!("ranks-death-{factor}"));
        let (server, mut ranks) = running(&place, 6 * factor);
        ranks.pop().unwrap().signal_and_wait("KILL");
        let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
        let was_running = journal(&place, "out").ranks.lost.len() == 1;
        was_running.then_some((place, server, outputs))
    });
    assert_eq!(statuses(&outputs), [Some(6); 2], "{}", stderr(&outputs[0]));
    let run = journal(&place, "out");
    assert_eq!(run.ranks.lost[0].rank, 2);
    assert!(run.ranks.lost[0].how.contains("closed") || run.ranks.lost[0].how.contains("broke"));
    assert_eq!(run.ended.as_ref().map(|end| end.status), Some(6));
    assert!(run.points.iter().all(|point| point.end == End::Complete));
    assert!(!run.points.is_empty());
    assert!(
        stderr(&outputs[0]).contains("was lost"),
        "{}",
        stderr(&outputs[0])
    );
    // The others are ended through the process manager as well.
    wait_until("the job is ended", || server.state().aborted.is_some());
    assert_eq!(server.state().aborted.as_deref(), Some("6"));
}

#[test]
fn a_rank_that_hangs_is_lost_after_the_limit_on_beats() {
    let (place, outputs) = in_time("a rank hung", |factor| {
        let place = Place::new(&format!("ranks-hang-{factor}"));
        let (_server, mut ranks) = running(&place, 20 * factor);
        let hanging = ranks.remove(1);
        hanging.signal("STOP");
        let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
        drop(hanging);
        let was_running = journal(&place, "out").ranks.lost.len() == 1;
        was_running.then_some((place, outputs))
    });
    assert_eq!(statuses(&outputs), [Some(6); 2], "{}", stderr(&outputs[0]));
    let run = journal(&place, "out");
    assert_eq!(run.ranks.lost[0].rank, 1);
    assert_eq!(run.ranks.lost[0].how, "no beat for 10s");
}

#[test]
fn a_signal_to_one_rank_stops_all_and_leaves_a_readable_journal() {
    let (place, outputs) = in_time("a rank was interrupted", |factor| {
        let place = Place::new(&format!("ranks-interrupt-{factor}"));
        let (_server, ranks) = running(&place, 6 * factor);
        ranks[2].signal("TERM");
        let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
        let was_running = outputs[0].status.code() == Some(1);
        was_running.then_some((place, outputs))
    });
    assert_eq!(statuses(&outputs), [Some(1); 3], "{}", stderr(&outputs[0]));
    let run = journal(&place, "out");
    assert!(run.ranks.lost.is_empty());
    assert_eq!(run.ended.as_ref().map(|end| end.status), Some(1));
    assert!(stderr(&outputs[0]).contains("the run ended before it was complete"));
}

#[test]
fn ranks_that_were_not_all_started_say_so_and_end_the_job() {
    let place = Place::new("ranks-missing");
    let line = "curve sim:8,100us --depth 1 --out out --join 1s";
    let (server, ends) = Server::start(Dialect::Hydra4, 2, usize::MAX);
    let mut ends = ends.into_iter();
    // The second rank never comes.
    let rank = Rank::start(rigel(&place, line), &ends.next().unwrap(), 0, 2);
    let output = rank.end();
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("did not complete in 1s: a host was not started"),
        "{said}"
    );
    wait_until("the job is ended", || server.state().aborted.is_some());
    assert_eq!(server.state().aborted.as_deref(), Some("1"));
    assert!(!place.0.join("out").exists());
}

/// The output of one process with this environment.
fn with_environment(name: &str, variables: &[(&str, &str)], line: &str) -> (Output, bool) {
    let place = Place::new(name);
    let mut command = rigel(&place, line);
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    (output, place.0.join("out").exists())
}

#[test]
fn many_processes_without_a_channel_are_refused_before_anything_is_made() {
    let line = "curve sim:8,100us --depth 1 --seed 1 --out out";
    let cases: [(&[(&str, &str)], &str); 4] = [
        (
            &[("SLURM_STEP_NUM_TASKS", "3")],
            "3 times by srun without PMI",
        ),
        (&[("OMPI_COMM_WORLD_SIZE", "3")], "through PMIx"),
        (
            &[("PMI_SIZE", "3"), ("PALS_RANKID", "0")],
            "PALS gives no PMI-1",
        ),
        (
            &[("PMI_FD", "11"), ("PMI_SIZE", "3"), ("PMI_RANK", "0")],
            "PMI_FD=11 is not open",
        ),
    ];
    for (variables, expected) in cases {
        let (output, has_run) = with_environment("ranks-refusal", variables, line);
        assert_eq!(output.status.code(), Some(2), "{expected}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        assert!(output.stdout.is_empty() && !has_run);
    }
    let alone: [(&[(&str, &str)], &str); 2] = [
        (&[("SLURM_NTASKS", "4")], line),
        (&[("SLURM_STEP_NUM_TASKS", "3")], &format!("{line} --alone")),
    ];
    for (variables, line) in alone {
        let (output, has_run) = with_environment("ranks-alone", variables, line);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(has_run);
    }
}

#[test]
fn three_hosts_under_mpiexec_with_clocks_of_their_own_measure_one_directory() {
    test("three hosts under mpiexec", || {
        need("mpiexec.hydra", &["--version"])?;
        need("unshare", &["--net", "--uts", "--mount", "--time", "true"])?;
        let place = Place::new("ranks-hosts");
        std::fs::create_dir(place.0.join("storage")).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/cluster-demo.sh");
        let output = Command::new(script)
            .args([env!("CARGO_BIN_EXE_rigel"), "storage", "out"])
            .args("--depth 2 --scratch-size 64MiB --point-max 1s".split(' '))
            .env("RIGEL_DEMO_VERB", "curve")
            .current_dir(&place.0)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let run = journal(&place, "out");
        let group = run.header.ranks.as_ref().unwrap();
        assert_eq!(group.hosts(), 3);
        let names: Vec<&str> = group.members.iter().map(|one| &*one.host.name).collect();
        assert_eq!(names, ["h1", "h2", "h3"]);
        // That of the interface between the namespaces.
        assert!(group.members.iter().all(|member| member.mtu == Some(1500)));
        for point in &run.ranks.parts {
            let clocks = point.parts.iter().map(|part| part.clock);
            assert!(clocks.into_iter().all(|clock| clock.agreed));
        }
        assert_eq!(run.ended.as_ref().map(|end| end.status), Some(0));
        Ok(())
    });
}
