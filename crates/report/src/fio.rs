//! An fio job file for a data point, so that anybody can check our figures with another tool.

use rigel_model::record::journal::{Header, Run};
use rigel_model::{
    Arrivals, EngineInfo, Error, Kind, Layout, LifeCycle, Load, Nanos, Pattern, Point, Ratio,
    Stream, SyncMethod, Target, Until, drives_a_terminal, usage,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Minimum runtime of a job. A visit of a search lasts less than a second, and a run has several: fio
/// measures once, and its rate is compared with that of all visits.
const RUNTIME_MIN: Nanos = Nanos::from_secs(10);

/// The job file for the named point of a run, such as `4,1`, `depth:8` or `rate:12000`. `engine` is
/// that of the run.
///
/// # Errors
/// The run has no such point, or fio cannot run it.
pub fn job(run: &Run, grain: u64, name: &str, engine: &EngineInfo) -> Result<String, Error> {
    let (header, points) = (&run.header, points(run));
    let wanted: String = name.chars().filter(|c| !c.is_whitespace()).collect();
    let point = points
        .iter()
        .find(|point| point.coordinates.name() == wanted)
        .ok_or_else(|| {
            let names: Vec<String> = points
                .iter()
                .map(|point| point.coordinates.name())
                .collect();
            usage!(
                "the run has no data point {name}",
                "it has {names}",
                names = names.join(" ")
            )
        })?;
    let members: Vec<PathBuf> = match &header.target {
        Target::Paths { members, .. } => members.clone(),
        Target::Scratch { keep: true, .. } => header
            .facts
            .members
            .iter()
            .map(|member| member.path.clone())
            .collect(),
        Target::Scratch { .. } => {
            return Err(usage!(
                "the scratch file of this run is gone",
                "measure with --keep, so that fio has a file to read"
            ));
        }
        Target::Sim(_) | Target::Null { .. } | Target::Sql(_) => {
            return Err(usage!(
                "fio has no target '{target}'",
                "measure a file or a device",
                target = header.target
            ));
        }
    };
    refuse_unsafe(header, point, &members)?;
    let mut text = heading(header, point, &members, engine);
    let places = Places::of(header, grain, &members);
    let mut classes: Vec<&str> = Vec::new();
    for (number, stream) in point.streams.iter().enumerate() {
        let _ = writeln!(
            text,
            "\n[{}-{}]\nbs={}",
            stream.name,
            number + 1,
            stream.length
        );
        if !classes.contains(&stream.name.as_str()) {
            if !classes.is_empty() {
                // Otherwise fio would combine the classes and their latencies.
                text.push_str("new_group=1\n");
            }
            classes.push(&stream.name);
        }
        let writes = stream.mix.writes;
        let sequential = matches!(stream.pattern, Pattern::Sequential { .. });
        let rw = match (sequential, writes) {
            (false, Ratio::ZERO) => "randread",
            (false, Ratio::ONE) => "randwrite",
            (false, _) => "randrw",
            (true, Ratio::ZERO) => "read",
            (true, Ratio::ONE) => "write",
            (true, _) => "rw",
        };
        text.push_str(&positions(stream, &places));
        let _ = writeln!(text, "rw={rw}");
        if rw.ends_with("rw") {
            let _ = writeln!(text, "rwmixwrite={:.0}", writes.get() * 100.0);
        }
        text.push_str(&durability(stream, engine));
        text.push_str(&load(stream, engine));
    }
    Ok(text)
}

/// Refuses text that would be more than the name of a file or a job: fio runs commands that a job
/// contains, and a journal may come from anywhere.
fn refuse_unsafe(header: &Header, point: &Point, members: &[PathBuf]) -> Result<(), Error> {
    let refuse = |what: &str, text: &str, special: &[char]| {
        let is_plain = !text
            .chars()
            .any(|c| drives_a_terminal(c) || special.contains(&c))
            && text.trim() == text;
        if is_plain && !text.is_empty() {
            return Ok(());
        }
        Err(usage!(
            "the {what} '{text}' of this run cannot be written in a fio job",
            "no line breaks, control characters, blanks at the ends or any of ; # $ ` \\ may be in \
             it: name the target by a link without them, and measure again"
        ))
    };
    for path in members {
        refuse(
            "path",
            &path.display().to_string(),
            &[';', '#', '$', '`', '\\'],
        )?;
    }
    point.streams.iter().try_for_each(|stream| {
        refuse("class", &stream.name, &['[', ']', ';', '#', '$', '`', '\\'])
    })?;
    refuse("time", &header.started, &[])
}

/// The points of a run: as planned, or as measured if each depended on the previous ones.
fn points(run: &Run) -> Vec<Point> {
    if run.header.points.is_empty() {
        run.joined()
            .into_iter()
            .filter_map(|record| record.asked.map(|asked| *asked))
            .collect()
    } else {
        run.header.points.clone()
    }
}

/// The options for outstanding I/Os and, in an open loop, for the rate.
fn load(stream: &Stream, engine: &EngineInfo) -> String {
    let how = if engine.thread_per_io {
        "numjobs"
    } else {
        "iodepth"
    };
    let slots = format!("{how}={}\n", stream.load.slots());
    let Load::Open {
        rate,
        arrivals,
        in_flight_max,
    } = stream.load
    else {
        return slots;
    };
    // fio's rates are per job, and separate for reads and writes.
    let each = if engine.thread_per_io {
        rate / f64::from(in_flight_max)
    } else {
        rate
    };
    let part = |share: f64| format!("{:.0}", (each * share).round().max(1.0));
    let rates = match stream.mix.writes {
        Ratio::ZERO => part(1.0),
        Ratio::ONE => format!(",{}", part(1.0)),
        writes => format!("{},{}", part(1.0 - writes.get()), part(writes.get())),
    };
    let process = match arrivals {
        Arrivals::Poisson => "rate_process=poisson\n",
        Arrivals::Uniform => "",
    };
    format!(
        "# fio's latency begins when it issues an I/O, ours when the I/O was due: compare it with \
         our service times;\n# fio makes up for what it is late in bursts, and what it never \
         issued it does not count\nrate_iops={rates}\n{process}{slots}"
    )
}

/// The options that make fio visit the positions of a stream, with comments on the differences.
fn positions(stream: &Stream, places: &Places) -> String {
    match stream.pattern {
        Pattern::Uniform => String::new(),
        Pattern::Sequential { start } => {
            let length = u64::from(stream.length);
            places.beginning(start.saturating_mul(length), length)
        }
        Pattern::Zipf { theta } => {
            // fio does not accept 1.
            let theta = if (theta - 1.0).abs() < 1e-6 {
                1.0001
            } else {
                theta
            };
            format!(
                "# ours is exact; fio approximates, and its hash can put two popular blocks in \
                 one place\nrandom_distribution=zipf:{theta}\n"
            )
        }
        Pattern::Hotspot { space, share } => {
            let [space, share] = [space, share].map(|ratio| (ratio.get() * 100.0).round().max(1.0));
            format!(
                "# {}; fio takes whole percents\nrandom_distribution=zoned:{share}/{space}:{}/{}\n",
                stream.pattern,
                100.0 - share,
                100.0 - space
            )
        }
        Pattern::Permutation { start } => {
            let begins = if start == 0 {
                String::new()
            } else {
                format!(", and ours begins at place {start} of its")
            };
            format!(
                "# every block once: fio has another order{begins}; each job of several covers \
                 the volume by itself\nnorandommap=0\n"
            )
        }
        Pattern::Part { start, blocks } => {
            let length = u64::from(stream.length);
            let beginning = places.beginning(start.saturating_mul(length), length);
            let size = blocks.saturating_mul(length);
            format!(
                "{beginning}size={size}\n# every block of it once; fio has another order\nnorandommap=0\n"
            )
        }
    }
}

/// The option that makes fio's writes durable before they count, if ours are.
fn durability(stream: &Stream, engine: &EngineInfo) -> String {
    if let Some(log) = stream.log {
        let begins = match log.life_cycle {
            LifeCycle::Grow => "fallocate=none",
            LifeCycle::Reserved => "fallocate=keep",
            LifeCycle::Sized => "fallocate=native",
            LifeCycle::Reused => "overwrite=1",
        };
        let synced = match log.method {
            SyncMethod::Fdatasync => "ioengine=psync\ndirect=0\nfdatasync=1",
            SyncMethod::Fsync => "ioengine=psync\ndirect=0\nfsync=1",
            // fio has no RWF_DSYNC.
            SyncMethod::OpenDatasync | SyncMethod::RwfDsync => {
                "ioengine=psync\ndirect=0\nsync=dsync"
            }
            SyncMethod::Direct => "ioengine=psync\ndirect=1\nsync=dsync",
            SyncMethod::Uring => "ioengine=io_uring\ndirect=0\nfdatasync=1",
        };
        return format!(
            "# to {about}, of its own: remove it before and afterwards\n\
             # Rigel measures a write and its sync together; fio reports the time of a sync \
             separately, under \"sync\"\n\
             filename=rigel-log.dat\nsize=64m\n{begins}\n{synced}\n",
            about = log.about()
        );
    }
    let is_durable = stream.mix.kinds().contains(&Kind::Log);
    if is_durable {
        format!("{}sync=dsync\n", engine.fio.log_writes)
    } else {
        String::new()
    }
}

/// The members of the volume, for streams with a start position.
struct Places {
    /// Their names, escaped for fio.
    names: Vec<String>,
    /// Start of each member in a concatenation, in bytes of the volume.
    starts: Vec<u64>,
    /// Bytes of a stripe, if the volume is striped.
    stripe: Option<u64>,
}

impl Places {
    fn of(header: &Header, grain: u64, members: &[PathBuf]) -> Self {
        // The grain comes from the request, because a run that ended early has not made all its
        // points.
        let grain = grain.max(1);
        let sizes = header
            .facts
            .members
            .iter()
            .map(|member| member.bytes.0 / grain * grain);
        let starts = sizes.scan(0_u64, |end, size| {
            let start = *end;
            *end = start.saturating_add(size);
            Some(start)
        });
        Self {
            names: members.iter().map(|path| escaped(path)).collect(),
            starts: starts.collect(),
            stripe: match &header.target {
                Target::Paths {
                    layout: Layout::Stripe { stripe },
                    ..
                } if members.len() > 1 => Some(stripe.0),
                _ => None,
            },
        }
    }

    /// The options of a sequential stream that begins at `offset` of the volume. fio's offset is
    /// within each file.
    fn beginning(&self, offset: u64, length: u64) -> String {
        if let Some(stripe) = self.stripe {
            let row = offset / stripe.max(1) / self.names.len() as u64 * stripe;
            return format!(
                "file_service_type=roundrobin:{}\noffset={row}\n",
                stripe / length.max(1)
            );
        }
        let mut text = "# at the end of the file fio begins again here\n".to_string();
        let member = self
            .starts
            .partition_point(|start| *start <= offset)
            .clamp(1, self.names.len().max(1))
            - 1;
        if self.names.len() > 1 {
            let _ = writeln!(text, "filename={}", self.names[member]);
        }
        let _ = writeln!(
            text,
            "offset={}",
            offset - self.starts.get(member).copied().unwrap_or(0)
        );
        text
    }
}

/// Escapes colons, which separate names in fio.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(':', "\\:")
}

fn heading(header: &Header, point: &Point, members: &[PathBuf], engine: &EngineInfo) -> String {
    let mut text = format!(
        "; The data point {} of the run begun {}, for fio 3.\n",
        point.coordinates, header.started
    );
    let _ = writeln!(
        text,
        "; Compare fio's \"lat\" (not \"clat\", which leaves submission out) with our latencies."
    );
    if point
        .streams
        .iter()
        .any(|stream| stream.mix.writes != Ratio::ZERO)
    {
        let _ = writeln!(text, "; This job DESTROYS the data of its targets.");
    }
    if let (
        Target::Paths {
            layout: Layout::Stripe { stripe },
            ..
        },
        true,
    ) = (&header.target, members.len() > 1)
    {
        let _ = writeln!(
            text,
            "; Ours was striped by {stripe}; for random I/O fio draws a file for each."
        );
    }
    let names: Vec<String> = members.iter().map(|path| escaped(path)).collect();
    let _ = writeln!(
        text,
        "[global]\nfilename={}\nioengine={}",
        names.join(":"),
        engine.fio.name
    );
    let _ = writeln!(text, "direct={}", u8::from(!header.engine.buffered));
    text.push_str(engine.fio.options);
    if members.len() > 1 {
        text.push_str("file_service_type=random\n");
    }
    text.push_str(
        "norandommap=1\nrandrepeat=0\nlat_percentiles=1\nallow_file_create=0\nthread=1\n\
         group_reporting=1\n",
    );
    match point.until {
        Until::Elapsed(elapsed) | Until::Precise { most: elapsed, .. } => {
            let runtime = elapsed.max(RUNTIME_MIN).0 / 1_000_000;
            let _ = writeln!(text, "time_based=1\nruntime={runtime}ms");
            let _ = writeln!(text, "ramp_time={}ms", point.warm_up.least.0 / 1_000_000);
        }
        Until::Ops(ops) => {
            let _ = writeln!(text, "number_ios={ops}");
        }
        Until::Work { ops, most } => {
            let _ = writeln!(text, "number_ios={ops}\nruntime={}ms", most.0 / 1_000_000);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_device::engine;
    use rigel_model::Mix;

    fn stream(pattern: &str) -> Stream {
        Stream {
            objective: None,
            sql: None,
            name: "small".into(),
            load: Load::Closed { depth: 1 },
            mix: Mix::READS,
            pattern: pattern.parse().unwrap(),
            length: 8192,
            rank: None,
            log: None,
        }
    }

    fn options(pattern: &str) -> String {
        let places = Places {
            names: vec!["file".into()],
            starts: vec![0],
            stripe: None,
        };
        positions(&stream(pattern), &places)
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect()
    }

    #[test]
    fn each_pattern_has_its_option_in_fio() {
        for (pattern, option) in [
            ("uniform", ""),
            ("sequential:2", "offset=16384"),
            ("zipf:0.99", "random_distribution=zipf:0.99"),
            ("zipf:1", "random_distribution=zipf:1.0001"),
            ("hotspot:20%:80%", "random_distribution=zoned:80/20:20/80"),
            ("hotspot:0.1%:100%", "random_distribution=zoned:100/1:0/99"),
            ("permutation", "norandommap=0"),
        ] {
            assert_eq!(options(pattern), option, "{pattern}");
        }
    }

    #[test]
    fn an_open_loop_has_its_rate_in_fio() {
        let open = |rate, arrivals, writes| Stream {
            load: Load::Open {
                rate,
                arrivals,
                in_flight_max: 256,
            },
            mix: Mix {
                writes,
                durable: false,
            },
            ..stream("uniform")
        };
        let options = |stream: &Stream, engine| {
            let text = load(stream, engine::info(engine));
            text.lines()
                .filter(|line| !line.starts_with('#'))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let reads = open(12_000.0, Arrivals::Poisson, Ratio::ZERO);
        assert_eq!(
            options(&reads, "uring"),
            "rate_iops=12000 rate_process=poisson iodepth=256"
        );
        assert_eq!(
            options(&reads, "psync"),
            "rate_iops=47 rate_process=poisson numjobs=256"
        );
        let mixed = open(
            1000.0,
            Arrivals::Uniform,
            Ratio::from_percent(30.0).unwrap(),
        );
        assert_eq!(options(&mixed, "libaio"), "rate_iops=700,300 iodepth=256");
        assert_eq!(options(&stream("uniform"), "uring"), "iodepth=1");
    }

    #[test]
    fn log_writes_are_durable_in_fio_too() {
        for (writes, durable, is) in [
            (Ratio::ONE, true, true),
            (Ratio::ONE, false, false),
            (Ratio::ZERO, true, false),
        ] {
            let mut stream = stream("uniform");
            stream.mix = Mix { writes, durable };
            for engine in ["uring", "psync"] {
                let text = durability(&stream, engine::info(engine));
                assert_eq!(
                    text.ends_with("sync=dsync\n"),
                    is,
                    "{writes:?} {durable} {engine}"
                );
            }
        }
    }
}
