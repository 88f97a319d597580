//! The job file that makes fio do what a data point does, so that anybody can check our figures with another tool.

use crate::model::{Error, Kind, Layout, Load, Nanos, Pattern, Point, Ratio, Stream, Target, Until};
use crate::plan::orion::least_common_multiple;
use crate::record::journal::Header;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The job file for the point at `small`, `large` of a run.
///
/// # Errors
/// The run has no such point, or fio cannot do what it does.
pub fn job(header: &Header, small: u32, large: u32) -> Result<String, Error> {
    let point = header.points.iter().find(|point| (point.coordinates.small, point.coordinates.large) == (small, large));
    let point = point.ok_or_else(|| {
        let cells: Vec<String> =
            header.points.iter().map(|p| format!("{},{}", p.coordinates.small, p.coordinates.large)).collect();
        Error::asked(format!("the run has no data point {small},{large}"), format!("it has {}", cells.join(" ")))
    })?;
    let members: Vec<PathBuf> = match &header.target {
        Target::Paths { members, .. } => members.clone(),
        Target::Scratch { keep: true, .. } => header.facts.members.iter().map(|member| member.path.clone()).collect(),
        Target::Scratch { .. } => {
            return Err(Error::asked(
                "the scratch file of this run is gone",
                "measure with --keep, and fio has a file to read",
            ));
        }
        Target::Sim(_) | Target::Null { .. } => {
            return Err(Error::asked(format!("fio has no target '{}'", header.target), "measure a file or a device"));
        }
    };
    let mut text = heading(header, point, &members);
    let places = Places::of(header, &members);
    let mut classes: Vec<&str> = Vec::new();
    for (number, stream) in point.streams.iter().enumerate() {
        let Load::Closed { depth } = stream.load else { continue };
        let _ = writeln!(text, "\n[{}-{}]\nbs={}", stream.name, number + 1, stream.length);
        if !classes.contains(&stream.name.as_str()) {
            if !classes.is_empty() {
                // Or fio would add the classes up, and their latencies with them.
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
        text.push_str(durability(stream, &header.engine.name));
        // A thread for each outstanding I/O is what our psync does; the others keep them outstanding in one.
        let how = if header.engine.name == "psync" { "numjobs" } else { "iodepth" };
        let _ = writeln!(text, "{how}={depth}");
    }
    Ok(text)
}

/// The options that make fio visit the positions of a stream, each with what it does otherwise.
fn positions(stream: &Stream, places: &Places) -> String {
    match stream.pattern {
        Pattern::Uniform => String::new(),
        Pattern::Sequential { start } => places.beginning(start * u64::from(stream.length), u64::from(stream.length)),
        Pattern::Zipf { theta } => {
            // fio takes no 1.
            let theta = if (theta - 1.0).abs() < 1e-6 { 1.0001 } else { theta };
            format!(
                "# ours is exact; fio approximates, and its hash can put two popular blocks in one place\n\
                 random_distribution=zipf:{theta}\n"
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
            let begins = if start == 0 { String::new() } else { format!(", and ours begins at place {start} of its") };
            format!(
                "# every block once: fio has another order{begins}; each job of several covers the volume by itself\n\
                 norandommap=0\n"
            )
        }
    }
}

/// The option that makes fio's writes durable before they count, where ours are.
fn durability(stream: &Stream, engine: &str) -> &'static str {
    match (stream.mix.kinds().contains(&Kind::Log), engine) {
        (false, _) => "",
        (true, "psync") => {
            "# ours is pwrite and fdatasync; of fio's fdatasync=1 the time would stand apart, under \"sync\"\nsync=dsync\n"
        }
        (true, _) => "sync=dsync\n",
    }
}

/// Where the members of the volume lie, for streams that begin somewhere.
struct Places {
    /// As fio is to be told them.
    names: Vec<String>,
    /// Where each begins in a concatenation, in bytes of the volume.
    starts: Vec<u64>,
    /// Bytes of a stripe, if the members take turns.
    stripe: Option<u64>,
}

impl Places {
    fn of(header: &Header, members: &[PathBuf]) -> Self {
        let lengths = header.points.iter().flat_map(|point| &point.streams).map(|stream| u64::from(stream.length));
        let grain = lengths.fold(1, least_common_multiple);
        let sizes = header.facts.members.iter().map(|member| member.bytes.0 / grain * grain);
        let starts = sizes.scan(0, |end, size| {
            *end += size;
            Some(*end - size)
        });
        Self {
            names: members.iter().map(|path| escaped(path)).collect(),
            starts: starts.collect(),
            stripe: match &header.target {
                Target::Paths { layout: Layout::Stripe { stripe }, .. } if members.len() > 1 => Some(stripe.0),
                _ => None,
            },
        }
    }

    /// The options of a sequential stream that begins at `offset` of the volume. fio's offset is one in each file.
    fn beginning(&self, offset: u64, length: u64) -> String {
        if let Some(stripe) = self.stripe {
            let row = offset / stripe / self.names.len() as u64 * stripe;
            return format!("file_service_type=roundrobin:{}\noffset={row}\n", stripe / length);
        }
        let mut text = "# fio does not go on at the end of the file: it begins again here\n".to_string();
        let member = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        if self.names.len() > 1 {
            let _ = writeln!(text, "filename={}", self.names[member]);
        }
        let _ = writeln!(text, "offset={}", offset - self.starts.get(member).copied().unwrap_or(0));
        text
    }
}

/// A colon separates names in fio, so one within a name is escaped.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(':', "\\:")
}

fn heading(header: &Header, point: &Point, members: &[PathBuf]) -> String {
    let mut text = format!("; The data point {} of the run begun {}, for fio 3.\n", point.coordinates, header.started);
    let _ = writeln!(text, "; Compare fio's \"lat\" (not \"clat\", which leaves submission out) with our latencies.");
    if point.streams.iter().any(|stream| stream.mix.writes != Ratio::ZERO) {
        let _ = writeln!(text, "; This job DESTROYS the data of its targets.");
    }
    if let (Target::Paths { layout: Layout::Stripe { stripe }, .. }, true) = (&header.target, members.len() > 1) {
        let _ = writeln!(text, "; Ours was striped by {stripe}; for random I/O fio draws a file for each.");
    }
    let engine = match header.engine.name.as_str() {
        same @ ("psync" | "libaio") => same,
        _ => "io_uring",
    };
    let names: Vec<String> = members.iter().map(|path| escaped(path)).collect();
    let _ = writeln!(text, "[global]\nfilename={}\nioengine={engine}", names.join(":"));
    let _ = writeln!(text, "direct={}", u8::from(!header.engine.buffered));
    if engine == "io_uring" {
        text.push_str("registerfiles=1\nfixedbufs=1\n");
    }
    if members.len() > 1 {
        text.push_str("file_service_type=random\n");
    }
    text.push_str("norandommap=1\nrandrepeat=0\nlat_percentiles=1\nallow_file_create=0\nthread=1\ngroup_reporting=1\n");
    match point.until {
        Until::Elapsed(Nanos(elapsed)) | Until::Precise { most: Nanos(elapsed), .. } => {
            let _ = writeln!(text, "time_based=1\nruntime={}ms", elapsed / 1_000_000);
            let _ = writeln!(text, "ramp_time={}ms", point.warm_up.least.0 / 1_000_000);
        }
        Until::Ops(ops) => {
            let _ = writeln!(text, "number_ios={ops}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mix;

    fn stream(pattern: &str) -> Stream {
        Stream {
            name: "small".into(),
            load: Load::Closed { depth: 1 },
            mix: Mix::READS,
            pattern: pattern.parse().unwrap(),
            length: 8192,
        }
    }

    fn options(pattern: &str) -> String {
        let places = Places { names: vec!["file".into()], starts: vec![0], stripe: None };
        positions(&stream(pattern), &places).lines().filter(|line| !line.starts_with('#')).collect()
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
    fn log_writes_are_durable_in_fio_too() {
        for (writes, durable, is) in [(Ratio::ONE, true, true), (Ratio::ONE, false, false), (Ratio::ZERO, true, false)]
        {
            let mut stream = stream("uniform");
            stream.mix = Mix { writes, durable };
            for engine in ["uring", "psync"] {
                assert_eq!(durability(&stream, engine).ends_with("sync=dsync\n"), is, "{writes:?} {durable} {engine}");
            }
        }
    }
}
