//! Rigel and fio side by side: the same file, size and depth, direct I/O, in one session,
//! interleaved.
//!
//!     cargo bench --bench against_fio -- [cpu] [disk] [log] [null] [memory] [truth] [buckets] [duets]
//! [--seconds 4] [--rounds 3] [--size-gib 4] [--folder target/bench] [--rigel PROGRAM]
//!
//! Input: the parts to run; all of them if none is named. Output: tables in Markdown for
//! docs/performance.md with medians over the rounds and their ratios, and the commands that
//! produced them. Each round runs every contender once, so that a disk whose speed varies does so
//! for all. The test file is made in the folder and removed at the end. The benchmark does not
//! judge: whether a goal is met is for the reader of the table.

mod common;
mod truth;

use common::{Folder, Settings};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

const PARTS: [&str; 8] = [
    "cpu", "disk", "log", "null", "memory", "truth", "buckets", "duets",
];
/// Environment variable with the path of the kernel developers' own test program, `t/io_uring` in
/// fio's sources, which is in no package.
const KERNEL_TEST: &str = "RIGEL_T_IO_URING";
/// `PostgreSQL`'s own test of its methods, as it is on the path.
const PG_TEST_FSYNC: &str = "pg_test_fsync";
/// Unit of the kernel's CPU time counters in /proc; the same on every Linux on x86-64.
const TICKS_A_SECOND: f64 = 100.0;

fn main() -> ExitCode {
    let result = Settings::from_arguments(&PARTS, 4, 3).and_then(|settings| {
        let folder = Folder::make(&settings.folder, "against-fio")?;
        for part in &settings.parts {
            match part.as_str() {
                "cpu" => cpu(&settings, &folder)?,
                "disk" => disk(&settings, &folder)?,
                "log" => log(&settings, &folder),
                "null" => null(&settings, &folder),
                "memory" => memory(&settings, &folder)?,
                "truth" => truth::tables(&settings, &folder)?,
                "buckets" => truth::buckets(&settings, &folder)?,
                _ => truth::duets(&settings, &folder)?,
            }
        }
        Ok(())
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("against_fio: {what}");
            ExitCode::FAILURE
        }
    }
}

// ---- the parts ----

/// CPU per I/O if the kernel answers without the device: 8 KiB direct reads of a hole, on one core.
fn cpu(settings: &Settings, folder: &Folder) -> Result<(), String> {
    let hole = hole(folder, settings)?;
    let fio = |name: &str, options: &str| {
        Contender::fio(
            name,
            settings,
            &hole,
            &format!("--rw=randread --bs=8k {options}"),
        )
    };
    let uring = "--ioengine=io_uring --iodepth=64";
    let batches =
        "--iodepth_batch_submit=16 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=16";
    let tuned = format!("{uring} --registerfiles=1 --fixedbufs=1 {batches}");
    let mut contenders = vec![
        fio("fio io_uring, as people run it", uring),
        fio("fio io_uring, tuned", &tuned),
        fio(
            "fio io_uring, tuned, gtod_reduce, norandommap",
            &format!("{tuned} --gtod_reduce=1 --norandommap=1"),
        ),
        fio("fio libaio", "--ioengine=libaio --iodepth=64"),
        fio(
            "fio libaio, batches of 16",
            &format!("--ioengine=libaio --iodepth=64 {batches}"),
        ),
        fio("fio psync, depth 1", "--ioengine=psync --iodepth=1"),
        Contender::rigel("rigel uring", settings, &small(64), &hole, "--engine uring"),
        Contender::rigel(
            "rigel libaio",
            settings,
            &small(64),
            &hole,
            "--engine libaio",
        ),
        Contender::rigel(
            "rigel psync, depth 1",
            settings,
            &small(1),
            &hole,
            "--engine psync",
        ),
    ];
    contenders.extend(Contender::kernel_test(settings, &hole));
    contenders.iter_mut().for_each(Contender::pin_to_one_core);
    let medians = interleaved(settings, folder, &contenders);

    heading(
        settings,
        "CPU for each I/O: 8 KiB random reads in a hole, 64 outstanding, one core",
    );
    println!(
        "| | I/Os a second | µs of CPU an I/O | ÷ as people run it | ÷ tuned | whole process, by \
         the kernel |"
    );
    println!("|---|---|---|---|---|---|");
    for (contender, median) in contenders.iter().zip(&medians) {
        let cpu = |figures: &Figures| figures.cpu_us;
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            contender.name,
            shown(median.as_ref().map(|figures| figures.iops), 0),
            shown(median.as_ref().map(cpu), 3),
            ratio(median.as_ref(), medians[0].as_ref(), cpu),
            ratio(median.as_ref(), medians[1].as_ref(), cpu),
            shown(median.as_ref().map(|figures| figures.process_cpu_us), 3),
        );
    }
    commands(&contenders);
    Ok(())
}

/// Throughput and latency on the disk itself.
fn disk(settings: &Settings, folder: &Folder) -> Result<(), String> {
    let file = filled(folder, settings)?;
    let mut deepest = Vec::new();
    heading(settings, "On the disk");
    println!(
        "| reads | outstanding | MB/s: fio | rigel | ÷ | p50 µs: fio | rigel | ÷ | p99 µs: fio | \
         rigel | ÷ |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for shape in ["8 KiB random", "1 MiB sequential", "1 MiB random"] {
        for depth in [1, 4, 16, 64] {
            let (theirs, ours, bytes) = match shape {
                "8 KiB random" => ("--rw=randread --bs=8k", small(depth), 8192.0),
                "1 MiB sequential" => ("--rw=read --bs=1m", sequential(depth), 1_048_576.0),
                _ => ("--rw=randread --bs=1m", large(depth), 1_048_576.0),
            };
            let options = format!("{theirs} --ioengine=io_uring --iodepth={depth}");
            let contenders = [
                Contender::fio(&format!("fio {shape}, {depth}"), settings, &file, &options),
                Contender::rigel(
                    &format!("rigel {shape}, {depth}"),
                    settings,
                    &ours,
                    &file,
                    "--engine uring",
                ),
            ];
            let medians = interleaved(settings, folder, &contenders);
            let [theirs, ours] = [medians[0].as_ref(), medians[1].as_ref()];
            let mut row = format!("| {shape} | {depth} |");
            let values: [fn(&Figures) -> f64; 3] = [
                |figures| figures.iops,
                |figures| figures.p50_us,
                |figures| figures.p99_us,
            ];
            for (value, scale) in values.into_iter().zip([bytes / 1e6, 1.0, 1.0]) {
                let scaled = |figures: Option<&Figures>| {
                    shown(figures.map(|figures| value(figures) * scale), 1)
                };
                let _ = write!(
                    row,
                    " {} | {} | {} |",
                    scaled(theirs),
                    scaled(ours),
                    ratio(ours, theirs, value)
                );
            }
            println!("{row}");
            // The commands for other depths differ only in the depth.
            deepest.extend(contenders.into_iter().filter(|_| depth == 64));
        }
    }
    commands(&deepest);
    Ok(())
}

/// Commits of 8 KiB by one writer: to a log's file in each state and by each method beside fio, and by those that
/// `pg_test_fsync` has beside it, if it is installed.
fn log(settings: &Settings, folder: &Folder) {
    let mut contenders = Vec::new();
    let states = [
        ("grow", "--fallocate=none --ioengine=psync --fdatasync=1"),
        (
            "reserved",
            "--fallocate=keep --ioengine=psync --fdatasync=1",
        ),
        ("sized", "--fallocate=native --ioengine=psync --fdatasync=1"),
        ("reused", "--overwrite=1 --ioengine=psync --fdatasync=1"),
        ("reused+fsync", "--overwrite=1 --ioengine=psync --fsync=1"),
        (
            "reused+open_datasync",
            "--overwrite=1 --ioengine=psync --sync=dsync",
        ),
        (
            "reused+direct",
            "--overwrite=1 --ioengine=psync --sync=dsync --direct=1",
        ),
        (
            "reused+uring",
            "--overwrite=1 --ioengine=io_uring --fdatasync=1",
        ),
    ];
    let beside_postgres = [
        ("reused", "fdatasync"),
        ("reused+fsync", "fsync"),
        ("reused+open_datasync", "open_datasync"),
    ];
    let has_postgres = Command::new(PG_TEST_FSYNC)
        .arg("--version")
        .output()
        .is_ok();
    let beside_postgres = if has_postgres {
        &beside_postgres[..]
    } else {
        &[]
    };
    let fio = states.map(|(state, options)| (state, Tool::FioLog, options));
    let postgres = beside_postgres
        .iter()
        .map(|(state, method)| (*state, Tool::PgTestFsync(method), *method));
    for (state, tool, theirs) in fio.into_iter().chain(postgres) {
        let seconds = settings.seconds;
        let witness = match tool {
            Tool::PgTestFsync(_) => format!("{PG_TEST_FSYNC} -f pg_test_fsync.dat -s {seconds}"),
            _ => format!(
                "fio --name=bench --directory=. --size=64m --rw=write --bs=8k {theirs} --time_based \
                 --runtime={seconds} --output-format=json"
            ),
        };
        let ours = format!(
            "{program} curve . --log {state} --size 8KiB --writers 1 --point-min {seconds}s --point-max \
             {seconds}s --json",
            program = settings.rigel.display()
        );
        let by = if tool == Tool::FioLog {
            "fio"
        } else {
            "pg_test_fsync"
        };
        let name = format!("{state}, {by}");
        let tools = [(tool, witness), (Tool::Rigel, ours)];
        contenders.extend(tools.map(|(tool, line)| Contender::new(&name, tool, &line, seconds)));
    }
    let medians = interleaved(settings, folder, &contenders);
    heading(
        settings,
        "Log writes of 8 KiB by one writer; fio's times are those of the sync alone",
    );
    println!(
        "| log, witness | commits/s: witness | rigel | ÷ | p50 µs: fio | rigel | p99 µs: fio | rigel |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (pair, states) in medians.chunks(2).zip(contenders.chunks(2)) {
        let [theirs, ours] = [pair[0].as_ref(), pair[1].as_ref()];
        let of =
            |figures: Option<&Figures>, value: fn(&Figures) -> f64| shown(figures.map(value), 0);
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            states[0].name,
            of(theirs, |figures| figures.iops),
            of(ours, |figures| figures.iops),
            ratio(ours, theirs, |figures| figures.iops),
            of(theirs, |figures| figures.p50_us),
            of(ours, |figures| figures.p50_us),
            of(theirs, |figures| figures.p99_us),
            of(ours, |figures| figures.p99_us),
        );
    }
    commands(&contenders);
}

/// Time of the program itself per operation, without a target.
fn null(settings: &Settings, folder: &Folder) {
    let nowhere = Path::new("null:");
    let options = "--rw=randread --bs=8k --ioengine=null --iodepth=32";
    let mut contenders = [
        Contender::fio("fio null", settings, nowhere, options),
        Contender::rigel("rigel null", settings, &small(32), nowhere, ""),
    ];
    contenders.iter_mut().for_each(Contender::pin_to_one_core);
    let medians = interleaved(settings, folder, &contenders);
    heading(
        settings,
        "The loop by itself: no target, 32 outstanding, one core",
    );
    println!(
        "| | operations a second | ns an operation | ns of CPU an operation |\n|---|---|---|---|"
    );
    for (contender, median) in contenders.iter().zip(&medians) {
        let iops = median.as_ref().map(|figures| figures.iops);
        let cpu = median.as_ref().map(|figures| figures.cpu_us * 1e3);
        println!(
            "| {} | {} | {} | {} |",
            contender.name,
            shown(iops, 0),
            shown(iops.map(|n| 1e9 / n), 1),
            shown(cpu, 1)
        );
    }
    commands(&contenders);
}

/// Peak resident memory.
fn memory(settings: &Settings, folder: &Folder) -> Result<(), String> {
    let hole = hole(folder, settings)?;
    let runs = [
        (
            "8 KiB, 64 outstanding",
            0.5,
            "--rw=randread --bs=8k --ioengine=io_uring --iodepth=64",
            small(64),
            "uring",
        ),
        (
            "8 KiB, 64 outstanding",
            0.5,
            "--rw=randread --bs=8k --ioengine=psync --numjobs=64",
            small(64),
            "psync",
        ),
        (
            "1 MiB, 64 outstanding",
            64.0,
            "--rw=randread --bs=1m --ioengine=io_uring --iodepth=64",
            large(64),
            "uring",
        ),
    ];
    let mut contenders = Vec::new();
    let mut buffers = Vec::new();
    for (what, mib, theirs, ours, engine) in runs {
        // Threads instead of processes: with processes, fio's memory would be spread over all its
        // jobs.
        let options = format!("{theirs} --thread --group_reporting");
        contenders.push(Contender::fio(
            &format!("fio {engine} {what}"),
            settings,
            &hole,
            &options,
        ));
        let option = format!("--engine {engine}");
        contenders.push(Contender::rigel(
            &format!("rigel {engine} {what}"),
            settings,
            &ours,
            &hole,
            &option,
        ));
        buffers.extend([mib, mib]);
    }
    let medians = interleaved(settings, folder, &contenders);
    heading(settings, "Peak resident memory");
    println!("| | MiB | without I/O buffers |\n|---|---|---|");
    for ((contender, median), buffers) in contenders.iter().zip(&medians).zip(buffers) {
        let peak = median.as_ref().map(|figures| figures.peak_mib);
        println!(
            "| {} | {} | {} |",
            contender.name,
            shown(peak, 1),
            shown(peak.map(|mib| mib - buffers), 1)
        );
    }
    commands(&contenders);
    Ok(())
}

// ---- what runs, and how its answer is read ----

/// Figures of one run.
#[derive(Clone, Copy)]
struct Figures {
    iops: f64,
    /// CPU time by the program's own account, during its measurement.
    cpu_us: f64,
    /// CPU time by the kernel's account, from start to end of the process.
    process_cpu_us: f64,
    p50_us: f64,
    p99_us: f64,
    peak_mib: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Tool {
    Fio,
    FioLog,
    /// Its figure of one write of 8 KiB by this method.
    PgTestFsync(&'static str),
    Rigel,
    KernelTest,
}

struct Contender {
    name: String,
    tool: Tool,
    command: Vec<String>,
    seconds: u32,
}

/// Options of `rigel orion` for one point with `depth` outstanding 8 KiB reads.
fn small(depth: u32) -> String {
    format!("-num_small {depth} -num_large 0")
}

/// Options for one point with `depth` outstanding 1 MiB random reads.
fn large(depth: u32) -> String {
    format!("-num_small 0 -num_large {depth} -size_large 1024 -type rand")
}

/// Options for one point with a sequential stream of 1 MiB reads.
fn sequential(depth: u32) -> String {
    format!("-num_small 0 -num_large 1 -size_large 1024 -type seq -num_streamIO {depth}")
}

impl Contender {
    fn fio(name: &str, settings: &Settings, file: &Path, options: &str) -> Self {
        let seconds = settings.seconds;
        let target = if file == Path::new("null:") {
            format!("--size={}g", settings.size_gib)
        } else {
            // `lat` includes the submission, as ours does; fio's default is `clat`, which excludes
            // it.
            format!(
                "--filename={} --readonly --direct=1 --lat_percentiles=1 --clat_percentiles=0",
                file.display()
            )
        };
        let line = format!(
            "fio --name=bench {target} {options} --time_based --runtime={seconds} \
             --output-format=json"
        );
        Self::new(name, Tool::Fio, &line, seconds)
    }

    fn rigel(name: &str, settings: &Settings, point: &str, file: &Path, options: &str) -> Self {
        let (program, seconds) = (settings.rigel.display(), settings.seconds);
        let line = format!(
            "{program} orion -run advanced -matrix point {point} -duration {seconds} --target {} \
             --allow-holes --json {options}",
            file.display()
        );
        Self::new(name, Tool::Rigel, &line, seconds)
    }

    fn kernel_test(settings: &Settings, file: &Path) -> Option<Self> {
        let program = std::env::var(KERNEL_TEST).ok()?;
        let seconds = settings.seconds;
        let line = format!(
            "{program} -d64 -s16 -c16 -b8192 -p0 -B1 -F1 -R1 -O1 -n1 -r{seconds} {}",
            file.display()
        );
        Some(Self::new(
            "t/io_uring, which records nothing",
            Tool::KernelTest,
            &line,
            seconds,
        ))
    }

    fn new(name: &str, tool: Tool, line: &str, seconds: u32) -> Self {
        let command = line.split_whitespace().map(str::to_owned).collect();
        Self {
            name: name.to_owned(),
            tool,
            command,
            seconds,
        }
    }

    /// Runs it on the last core, because interrupts prefer the first.
    fn pin_to_one_core(&mut self) {
        let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
        self.command.splice(
            0..0,
            ["taskset".to_owned(), "-c".to_owned(), last.to_string()],
        );
    }

    fn run(&self, folder: &Folder) -> Result<Figures, String> {
        let place = place_for_a_run(folder)?;
        let [said, complained] = ["stdout", "stderr"].map(|name| place.join(name));
        let failed = |what: String| format!("{}: {what}\n  {}", self.name, self.command.join(" "));
        let create = |path: &Path| {
            File::create(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let before = children_cpu_seconds();
        // Output goes to files, not pipes: nobody would read a pipe while we watch the memory.
        let mut child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .current_dir(&place)
            .stdin(Stdio::null())
            .stdout(create(&said)?)
            .stderr(create(&complained)?)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let mut peak_mib = 0.0_f64;
        let status = loop {
            peak_mib = peak_mib.max(peak_mib_of(child.id()));
            match child
                .try_wait()
                .map_err(|error| failed(error.to_string()))?
            {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let process_cpu = children_cpu_seconds() - before;
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        if !status.success() {
            return Err(failed(format!("{status}\n{}", read(&complained).trim())));
        }
        let mut figures = match self.tool {
            Tool::Fio => json_in(&read(&said)).and_then(|json| of_fio(&json, "read", "read")),
            Tool::FioLog => json_in(&read(&said)).and_then(|json| of_fio(&json, "write", "sync")),
            Tool::PgTestFsync(method) => of_pg_test_fsync(&read(&said), method),
            Tool::Rigel => json_in(&read(&said)).and_then(|json| of_rigel(&json)),
            Tool::KernelTest => of_kernel_test(&read(&said), process_cpu, self.seconds),
        }
        .ok_or_else(|| failed("its answer was not understood".into()))?;
        figures.peak_mib = peak_mib;
        figures.process_cpu_us = process_cpu * 1e6 / (figures.iops * f64::from(self.seconds));
        Ok(figures)
    }
}

/// The rate that `pg_test_fsync` prints for one write by this method.
fn of_pg_test_fsync(said: &str, method: &str) -> Option<Figures> {
    let (_, one) = said.split_once("using one 8kB write")?;
    let line = one
        .lines()
        .find(|line| line.trim_start().starts_with(&format!("{method} ")))?;
    let rate = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(Figures::new(rate, 0.0, 0.0, 0.0))
}

impl Figures {
    fn new(iops: f64, cpu_us: f64, p50_us: f64, p99_us: f64) -> Self {
        Self {
            iops,
            cpu_us,
            p50_us,
            p99_us,
            process_cpu_us: 0.0,
            peak_mib: 0.0,
        }
    }

    /// The median of each figure separately.
    fn median(rounds: &[Figures]) -> Option<Figures> {
        let of = |value: fn(&Figures) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            let middle = values.len().checked_sub(1)? / 2;
            Some(f64::midpoint(values[middle], values[values.len() / 2]))
        };
        Some(Figures {
            iops: of(|figures| figures.iops)?,
            cpu_us: of(|figures| figures.cpu_us)?,
            process_cpu_us: of(|figures| figures.process_cpu_us)?,
            p50_us: of(|figures| figures.p50_us)?,
            p99_us: of(|figures| figures.p99_us)?,
            peak_mib: of(|figures| figures.peak_mib)?,
        })
    }
}

/// Skips text before the JSON: programs may print a line or two first.
fn json_in(text: &str) -> Option<Value> {
    serde_json::from_str(&text[text.find('{')?..]).ok()
}

/// Reads `rigel orion --json`; the only function here that knows its format.
fn of_rigel(json: &Value) -> Option<Figures> {
    let point = json.pointer("/points/0")?;
    let class = point.pointer("/classes/0")?;
    let number = |value: &Value, field: &str| value.get(field).and_then(Value::as_f64);
    Some(Figures::new(
        number(class, "iops")?,
        number(point, "cpu_us_per_io")?,
        number(class, "p50_us")?,
        number(class, "p99_us")?,
    ))
}

/// `counted` is the part of fio's report with the number of operations, `timed` that with their times.
fn of_fio(json: &Value, counted: &str, timed: &str) -> Option<Figures> {
    let job = json.pointer("/jobs/0")?;
    let number = |path: &str| job.pointer(path).and_then(Value::as_f64);
    let cpu_share = (number("/usr_cpu")? + number("/sys_cpu")?) / 100.0;
    let ios = number(&format!("/{counted}/total_ios"))?;
    // Missing with gtod_reduce.
    let percentile = |name: &str| {
        number(&format!("/{timed}/lat_ns/percentile/{name}")).unwrap_or(f64::NAN) / 1e3
    };
    Some(Figures::new(
        number(&format!("/{counted}/iops"))?,
        cpu_share * number("/job_runtime")? * 1e3 / ios,
        percentile("50.000000"),
        percentile("99.000000"),
    ))
}

/// Reads lines such as `IOPS=562.31K, BW=…`, one per second. The program does not report its CPU
/// time, so the kernel's is used.
fn of_kernel_test(text: &str, process_cpu: f64, seconds: u32) -> Option<Figures> {
    let number = |line: &str| {
        let value = line.trim().strip_prefix("IOPS=")?.split(',').next()?;
        let (digits, scale) = match value.as_bytes().last()? {
            b'K' => (&value[..value.len() - 1], 1e3),
            b'M' => (&value[..value.len() - 1], 1e6),
            _ => (value, 1.0),
        };
        digits.parse::<f64>().ok().map(|n| n * scale)
    };
    let seen: Vec<f64> = text.lines().filter_map(number).collect();
    let iops = seen.iter().sum::<f64>() / seen.len() as f64;
    let cpu_us = process_cpu * 1e6 / (iops * f64::from(seconds));
    (!seen.is_empty()).then(|| Figures::new(iops, cpu_us, f64::NAN, f64::NAN))
}

/// User and system time of all children that have ended, and of theirs.
fn children_cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may contain anything. After it, cutime and cstime are the 14th and
    // 15th field.
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    fields
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / TICKS_A_SECOND
}

/// Peak resident memory of the process so far; 0 once it has ended.
fn peak_mib_of(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|kib| kib.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1024.0
}

/// Runs every contender once per round; returns the median of each, `None` for one that failed in
/// any round.
fn interleaved(
    settings: &Settings,
    folder: &Folder,
    contenders: &[Contender],
) -> Vec<Option<Figures>> {
    let mut rounds: Vec<Option<Vec<Figures>>> = vec![Some(Vec::new()); contenders.len()];
    for round in 1..=settings.rounds {
        for (contender, figures) in contenders.iter().zip(&mut rounds) {
            let Some(seen) = figures else { continue };
            eprintln!("round {round} of {}: {}", settings.rounds, contender.name);
            match contender.run(folder) {
                Ok(run) => seen.push(run),
                Err(what) => {
                    eprintln!("{what}");
                    *figures = None;
                }
            }
        }
    }
    rounds
        .iter()
        .map(|seen| seen.as_deref().and_then(Figures::median))
        .collect()
}

// ---- what is printed ----

fn heading(settings: &Settings, what: &str) {
    println!(
        "\n### {what}\n\nMedians of {} rounds of {} s, interleaved.\n",
        settings.rounds, settings.seconds
    );
}

fn commands(contenders: &[Contender]) {
    println!("\nCommands:\n\n```");
    // Paths are shown relative to the project's folder, because a document should not contain a
    // machine's paths.
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    for contender in contenders {
        println!(
            "# {}\n{}",
            contender.name,
            contender.command.join(" ").replace(here, "")
        );
    }
    println!("```");
}

/// Formats a number; a dash if there is none.
fn shown(value: Option<f64>, digits: usize) -> String {
    value
        .filter(|value| value.is_finite())
        .map_or("–".into(), |value| format!("{value:.digits$}"))
}

fn ratio(of: Option<&Figures>, to: Option<&Figures>, value: impl Fn(&Figures) -> f64) -> String {
    shown(of.zip(to).map(|(of, to)| value(of) / value(to)), 3)
}

// ---- files ----

/// A file without any blocks.
fn hole(folder: &Folder, settings: &Settings) -> Result<PathBuf, String> {
    let path = folder.0.join("hole");
    let made =
        File::create(&path).and_then(|file| file.set_len(u64::from(settings.size_gib) << 30));
    made.map(|()| path.clone())
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// A file on the disk, filled with data that neither compresses nor deduplicates.
fn filled(folder: &Folder, settings: &Settings) -> Result<PathBuf, String> {
    let path = folder.0.join("filled");
    eprintln!("filling {} GiB", settings.size_gib);
    let status = Command::new("fio")
        .args([
            "--name=fill",
            "--rw=write",
            "--bs=1m",
            "--ioengine=psync",
            "--direct=1",
            "--refill_buffers",
        ])
        .args(["--end_fsync=1", "--minimal"])
        .args([
            format!("--filename={}", path.display()),
            format!("--size={}g", settings.size_gib),
        ])
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("fio: {error}; `scripts/setup.sh bench` installs it"))?;
    if status.success() {
        Ok(path)
    } else {
        Err(format!("fio could not fill {}: {status}", path.display()))
    }
}

/// An empty working directory, because programs refuse to overwrite the results of another run.
fn place_for_a_run(folder: &Folder) -> Result<PathBuf, String> {
    let place = folder.0.join("run");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    Ok(place)
}
