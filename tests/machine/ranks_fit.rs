//! `rigel fit` by several processes, started by a server of PMI-1; and how runs of several ranks end:
//! one exit status for all, which the journal has in its last line.

use crate::common::launched::{Rank, journal, run, start, statuses};
use crate::common::{Place, in_time, rigel, stderr, wait_until};
use rigel_model::DemandKind;
use rigel_model::record::journal::Run;
use std::process::Output;

/// The report of a run in one line of words with single spaces.
fn reported(place: &Place, name: &str) -> String {
    let output = rigel(place, &format!("report {name} --verbose"))
        .output()
        .unwrap();
    // A report exits as the run ended.
    let run = Run::read(&place.0.join(name)).unwrap();
    let ended = run.ended.as_ref().map_or(1, |end| i32::from(end.status));
    assert_eq!(output.status.code(), Some(ended), "{}", stderr(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A demand of this many reads per second.
fn demand(place: &Place, per_s: u32) {
    let text = format!("begin,end,reads_per_second\n2026-01-01T00:00,2026-01-01T01:00,{per_s}\n");
    std::fs::write(place.0.join("demand.csv"), text).unwrap();
}

/// Reports of the two instances of a RAC, made from one report of a single instance.
fn instances(place: &Place) {
    let one =
        include_str!("../imports/awr_synthetic.txt").replace("11.2.0.4.0  NO", "11.2.0.4.0  YES");
    let other = one
        .replace("synth1              1", "synth2              2")
        .replace("SYNTH/synth1", "SYNTH/synth2")
        // Half of the redo writes.
        .replace("100,000           27.7", " 50,000           13.8");
    assert_ne!(one, other);
    std::fs::write(place.0.join("one.txt"), &one).unwrap();
    std::fs::write(place.0.join("other.txt"), &other).unwrap();
    let output = rigel(place, "import other.txt one.txt --out rac").output();
    assert!(output.unwrap().status.success());
}

#[test]
fn all_ranks_exit_with_the_answer_and_the_journal_ends_with_it() {
    // Held, not held, undecided.
    let mean = "--slo reads";
    for (per_s, target, objective, status) in [
        (100, "sim:8,100us", "random-reads:mean<10ms", 0),
        (100, "sim:1,100ms", "random-reads:mean<10ms", 3),
        (5, "sim:8,100us", "random-reads:p99<10ms", 4),
    ] {
        let place = Place::new(&format!("ranks-fit-{status}"));
        demand(&place, per_s);
        let options = mean.replace("reads", objective);
        let line = format!(
            "fit demand.csv {target} {options} --multiples 1..1 --point-time 4s --seed 1 --out out"
        );
        let outputs = run(&place, &line, 2);
        assert_eq!(
            statuses(&outputs),
            [Some(status); 2],
            "{}",
            stderr(&outputs[0])
        );
        assert!(outputs[1].stdout.is_empty() && outputs[1].stderr.is_empty());
        let run = journal(&place, "out");
        let ended = run.ended.as_ref().map(|end| i32::from(end.status));
        assert_eq!(ended, Some(status));
        let said = reported(&place, "out");
        let is_said = said.contains(&format!("The run ended with exit status {status}"));
        assert_eq!(is_said, status != 0, "{said}");
        // Each offered half.
        let parts = run.ranks.parts[0].parts.iter();
        let offered = parts.map(|part| format!("{:?}", part.record.streams[0].loads));
        let half = format!("rate: {:?}", f64::from(per_s) / 2.0);
        assert!(offered.into_iter().all(|load| load.contains(&half)));
    }
}

#[test]
fn a_bound_that_is_not_kept_is_the_status_of_all_ranks() {
    let place = Place::new("ranks-bound");
    let line = "curve sim:1,5ms --depth 4 --max-latency 2ms@p99 --point-min 1s --point-max 2s \
                --seed 1 --out out";
    let outputs = run(&place, line, 2);
    assert_eq!(statuses(&outputs), [Some(3); 2], "{}", stderr(&outputs[0]));
    let ended = journal(&place, "out").ended;
    assert_eq!(ended.map(|end| end.status), Some(3));
}

#[test]
fn rank_n_offers_the_demand_of_instance_n_of_a_rac_and_the_fit_is_resumed() {
    let place = Place::new("ranks-fit-rac");
    instances(&place);
    let line = "fit rac sim:8,100us --write --point-time 4s --multiples 1..4 --seed 1 --out out";
    let outputs = run(&place, line, 3);
    assert_eq!(statuses(&outputs), [Some(2); 3], "{}", stderr(&outputs[0]));
    let said = stderr(&outputs[0]);
    assert!(
        said.contains("'rac' has 2 instances, and there are 3 ranks"),
        "{said}"
    );
    assert!(!place.0.join("out").exists());

    let outputs = run(&place, line, 2);
    let whole = journal(&place, "out");
    let log = |rank: usize| {
        let part = &whole.ranks.parts[0].parts[rank];
        let stream = part.record.stream(DemandKind::LogWrites.words()).unwrap();
        format!("{:?}", stream.loads)
    };
    // 100,000 and 50,000 in an hour; instance 1 is rank 0, though it was imported last.
    assert!(
        log(0).contains("rate: 27.67") && log(1).contains("rate: 13.8"),
        "{} {}",
        log(0),
        log(1)
    );
    let said = reported(&place, "out");
    assert!(said.contains("on every host"), "{said}");
    let status = outputs[0].status.code();
    assert_eq!(statuses(&outputs), [status; 2]);

    // As if it had been killed after the second point.
    let path = place.0.join("out/journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let points = lines.iter().enumerate();
    let points = points.filter(|(_, line)| line.starts_with("{\"point\""));
    let end = points.map(|(at, _)| at).nth(1).unwrap();
    std::fs::write(&path, lines[..=end].join("\n") + "\n").unwrap();
    assert!(reported(&place, "out").contains("The run is not complete: it was killed after 2 "));
    let outputs = run(&place, "fit --resume out sim:8,100us", 2);
    assert_eq!(statuses(&outputs), [status; 2], "{}", stderr(&outputs[0]));
    // What was measured is not measured again. A model begins anew, so what follows differs.
    let resumed = journal(&place, "out");
    assert_eq!(resumed.points[..2], whole.points[..2]);
    assert_eq!(resumed.ranks.parts[..2], whole.ranks.parts[..2]);
    assert_eq!(resumed.ranks.parts.len(), resumed.points.len());
    let outputs = run(&place, "fit --resume out sim:8,100us", 2);
    assert!(
        stderr(&outputs[0]).contains("already complete"),
        "{}",
        stderr(&outputs[0])
    );
}

#[test]
fn demands_are_as_many_as_ranks_or_one() {
    let place = Place::new("ranks-fit-demands");
    instances(&place);
    demand(&place, 100);
    let rest = "--point-time 2s --multiples 1..1 --seed 1";
    for (line, size, said) in [
        (
            format!("fit demand.csv sim:8,100us --also demand.csv {rest}"),
            3,
            "2 demands and 3 ranks",
        ),
        (
            format!("fit rac sim:8,100us --of SYNTH/synth1 --of SYNTH/none {rest}"),
            2,
            "no demand of 'SYNTH/none'",
        ),
    ] {
        let outputs = run(&place, &line, size);
        assert_eq!(
            statuses(&outputs),
            vec![Some(2); size],
            "{}",
            stderr(&outputs[0])
        );
        assert!(
            stderr(&outputs[0]).contains(said),
            "{}",
            stderr(&outputs[0])
        );
    }
    let alone = rigel(
        &place,
        &format!("fit demand.csv sim:8,100us --also demand.csv {rest}"),
    );
    let output = { alone }.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("2 demands and one process"),
        "{}",
        stderr(&output)
    );
    // Three hosts share the demand of two instances, if that is said.
    let line = format!("fit rac sim:8,100us --out shared {rest}");
    let mut line: Vec<String> = line.split(' ').map(String::from).collect();
    line.extend(["--of".into(), "SYNTH, all 2 instances".into()]);
    let (_server, ranks) = start(&place, "", 3, |_, command| {
        command.args(&line);
    });
    let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
    assert!(
        reported(&place, "shared").contains("Each of the 3 ranks offers an equal part"),
        "{}",
        stderr(&outputs[0])
    );
}

#[test]
fn a_rank_that_is_lost_in_the_first_point_is_in_the_journal_and_in_the_report() {
    let (place, outputs) = in_time("a rank died in the first point", |factor| {
        let place = Place::new(&format!("ranks-first-{factor}"));
        std::fs::create_dir(place.0.join("storage")).unwrap();
        let seconds = 10 * factor;
        let line = format!(
            "curve storage --depth 2 --scratch-size 64MiB --point-min {seconds}s \
             --point-max {seconds}s --precision 0.1% --out out"
        );
        let (_server, mut ranks) = start(&place, &line, 2, |_, _| ());
        let path = place.0.join("out/journal.jsonl");
        let has_header = || std::fs::read_to_string(&path).is_ok_and(|text| text.contains('\n'));
        wait_until("the journal has its header", has_header);
        ranks.pop().unwrap().signal_and_wait("KILL");
        let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
        let was_first = journal(&place, "out").points.is_empty();
        was_first.then_some((place, outputs))
    });
    assert_eq!(statuses(&outputs), [Some(6)], "{}", stderr(&outputs[0]));
    let run = journal(&place, "out");
    let [lost] = &run.ranks.lost[..] else {
        panic!("{:?}", run.ranks.lost);
    };
    assert_eq!((lost.rank, lost.coordinates.outstanding()), (1, 2));
    assert_eq!(run.ended.as_ref().map(|end| end.status), Some(6));
    let said = reported(&place, "out");
    assert!(
        said.contains("The run ended with exit status 6, because"),
        "{said}"
    );
}

#[test]
fn other_ranks_write_their_own_records_where_that_is_asked() {
    let place = Place::new("ranks-journals");
    let line = "curve sim:8,100us --depth 1,8 --seed 1 --point-max 1s --rank-journals own --out";
    let outputs = run(&place, &format!("{line} out"), 3);
    assert_eq!(statuses(&outputs), [Some(0); 3], "{}", stderr(&outputs[0]));
    let whole = journal(&place, "out");
    assert!(!place.0.join("own/rank-0").exists());
    for rank in [1, 2] {
        let own = journal(&place, &format!("own/rank-{rank}"));
        let of_root = whole.ranks.parts.iter().flat_map(|point| &point.parts);
        let of_root = of_root
            .filter(|part| part.rank == rank)
            .map(|part| &part.record);
        assert_eq!(of_root.clone().count(), own.points.len());
        for (there, here) in of_root.zip(&own.points) {
            assert_eq!(there.streams, here.streams, "{}", there.coordinates);
        }
        let said = reported(&place, &format!("own/rank-{rank}"));
        assert!(
            said.contains(&format!("this is what rank {rank} on")),
            "{said}"
        );
    }
    // They are not overwritten, and nothing is measured.
    let outputs = run(&place, &format!("{line} again"), 3);
    assert_eq!(statuses(&outputs), [Some(2); 3], "{}", stderr(&outputs[0]));
    let said = stderr(&outputs[0]);
    assert!(
        said.contains("rank 1 on") && said.contains("own/rank-1"),
        "{said}"
    );
    assert!(said.contains("--rank-journals"), "{said}");
    assert!(!place.0.join("again").exists());
}

#[test]
fn layers_are_those_of_one_host() {
    let place = Place::new("ranks-layers");
    let outputs = run(&place, "layers .", 2);
    assert_eq!(statuses(&outputs), [Some(2); 2], "{}", stderr(&outputs[0]));
    let said = stderr(&outputs[0]);
    assert!(
        said.contains("2 ranks cannot share rigel layers: it shows"),
        "{said}"
    );
}
