//! Through a database: sessions of `rigel sql run` next to pgbench, a loop in the server and raw
//! reads, on one server and one table; and loading compared with psql's COPY.
//!
//!     cargo bench --bench sql -- [reads] [load] [--rounds 3] [--seconds 5] [--size-gib 1]
//!                                [--folder target/bench] [--rigel PROGRAM]
//!
//! Input: the parts to run; all of them if none is named. `RIGEL_SERVER_BIN` names the folder of
//! the server's programs; if it is not set, the newest installed ones are used. pgbench and psql
//! are those on the PATH. Output: tables in Markdown for docs/performance.md. For every contender,
//! physical reads are those that the server counts. The benchmark does not judge: whether a goal is
//! met is for the reader of the table.

mod common;

use common::{Folder, Settings};
use rigel_database::server::{Server, ServerRequest};
use rigel_database::{self as sql, Access, LoadEvent, LoadRequest};
use rigel_model::{Bytes, Dbms, GIB, MIB, Tables};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Numbers of sessions that are compared.
const SESSIONS: [u32; 4] = [1, 4, 16, 64];

const PARTS: [&str; 2] = ["reads", "load"];

/// Settings that make other clients use the same plan as ours.
const PLAN: &str = "-c enable_bitmapscan=off -c enable_seqscan=off -c enable_indexonlyscan=off -c \
                    max_parallel_workers_per_gather=0 -c jit=off -c \
                    plan_cache_mode=force_generic_plan";

fn main() -> ExitCode {
    let result = Settings::from_arguments(&PARTS, 5, 3).and_then(|settings| {
        let bench = Bench::make(settings)?;
        for part in bench.settings.parts.clone() {
            match part.as_str() {
                "reads" => bench.reads()?,
                _ => bench.load()?,
            }
        }
        Ok(())
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("sql: {what}");
            ExitCode::FAILURE
        }
    }
}

/// A private server with its tables. The field order matters: the folder is dropped last.
struct Bench {
    settings: Settings,
    server: Server,
    access: Access,
    tables: Tables,
    folder: Folder,
}

impl Bench {
    fn make(settings: Settings) -> Result<Self, String> {
        let folder = Folder::make(&settings.folder, "sql")?;
        let bin = std::env::var_os("RIGEL_SERVER_BIN").map(PathBuf::from);
        let request = ServerRequest {
            dbms: Dbms::Postgres,
            directory: &folder.0,
            bin: bin.as_deref(),
            buffer_cache: Bytes(32 * MIB),
            sessions: 80,
            settings: &[],
        };
        let mut server =
            Server::start(&request, &AtomicBool::new(false)).map_err(|error| error.to_string())?;
        let access = Access::parse([server.url()], &|_| None).map_err(|error| error.to_string())?;
        let scale = u64::from(settings.size_gib) * GIB / 8192;
        let tables = Tables {
            schemas: 1,
            scale,
            scan_blocks: 128,
            block: 8192,
        };
        println!(
            "\n{}, {} of table, {}",
            server.version(),
            tables.bytes(),
            how(&server)
        );
        // The tables are loaded first, because the limit slows loading.
        fill(&access, tables, 2)?;
        if !server.is_direct() {
            server
                .limit_page_cache(Bytes(32 * MIB))
                .map_err(|why| format!("its page cache cannot be limited: {why}"))?;
        }
        Ok(Self {
            settings,
            server,
            access,
            tables,
            folder,
        })
    }

    /// What a statement returns, as psql prints it.
    fn ask(&self, statement: &str) -> Result<String, String> {
        let printed = answer(self.command("psql").args(["-XqAt", "-c", statement]))?;
        Ok(printed.trim_end().into())
    }

    /// Number of blocks that the server has read past its cache so far.
    fn physical(&self) -> Result<i64, String> {
        let text = "SELECT coalesce(sum(heap_blks_read + idx_blks_read), 0)::bigint FROM \
                    pg_statio_user_tables";
        let count = self.ask(text)?;
        count.parse().map_err(|_| format!("no number: {count}"))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("PGHOST", self.server.directory())
            .env("PGUSER", "rigel")
            .env("PGDATABASE", "postgres");
        command.env("PGOPTIONS", PLAN).current_dir("/");
        command
    }

    // ---- reads ----

    fn reads(&self) -> Result<(), String> {
        let last = self.tables.scale - 64;
        self.ask(&format!(
            "CREATE OR REPLACE FUNCTION public.look_up(n int) RETURNS bigint LANGUAGE plpgsql AS $$ \
             DECLARE k bigint; r bigint; t bigint := 0; BEGIN FOR i IN 1..n LOOP k := \
             floor(random() * {last}); SELECT count(c1) INTO r FROM rigel.blocks_1 WHERE id >= k \
             AND id < k + 64; t := t + r; END LOOP; RETURN t; END $$"
        ))?;
        let one = format!(
            "\\set k random(0, {last})\nSELECT count(c1) FROM rigel.blocks_1 WHERE id >= :k AND \
             id < :k + 1;\n"
        );
        let many = "SELECT public.look_up(20);\n";
        println!(
            "\n## Physical reads a second, medians of {}\n",
            self.settings.rounds
        );
        println!(
            "| sessions | raw psync | rigel, 1 row | pgbench, 1 row | rigel / pgbench | rigel, 64 \
             rows | loop in the server, 64 rows | rigel / loop | rigel 64 / raw |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        let mut cpu = Vec::new();
        for sessions in SESSIONS {
            let mut rounds: Vec<[f64; 5]> = Vec::new();
            for round in 0..self.settings.rounds {
                // Who comes first finds the disk as others left it: they take turns.
                let ours =
                    || Ok::<_, String>((self.rigel(sessions, 1)?, self.rigel(sessions, 64)?));
                let theirs = || {
                    Ok::<_, String>((self.pgbench(sessions, &one)?, self.pgbench(sessions, many)?))
                };
                let raw = self.raw(sessions)?;
                let (((single, of_single), (unit, of_unit)), (pgbench, inside)) = if round % 2 == 0
                {
                    let ours = ours()?;
                    (ours, theirs()?)
                } else {
                    let theirs = theirs()?;
                    (ours()?, theirs)
                };
                rounds.push([raw, single, pgbench, unit, inside]);
                cpu.push((sessions, of_single, of_unit));
            }
            let [raw, single, pgbench, unit, inside] =
                std::array::from_fn(|at| median(rounds.iter().map(|round| round[at])));
            let ratio = |a: usize, b: usize| median(rounds.iter().map(|round| round[a] / round[b]));
            println!(
                "| {sessions} | {raw:.0} | {single:.0} | {pgbench:.0} | {:.2} | {unit:.0} | \
                 {inside:.0} | {:.2} | {:.2} |",
                ratio(1, 2),
                ratio(3, 4),
                ratio(3, 0)
            );
        }
        println!(
            "\n| sessions | rows | client CPU µs an operation | database CPU µs a block \
             |\n|---|---|---|---|"
        );
        for sessions in SESSIONS {
            let of = |rows: u32| {
                let of_load = cpu.iter().filter(|(other, ..)| *other == sessions);
                let figures: Vec<[f64; 2]> = of_load
                    .map(|(_, single, unit)| if rows == 1 { *single } else { *unit })
                    .collect();
                [
                    median(figures.iter().map(|f| f[0])),
                    median(figures.iter().map(|f| f[1])),
                ]
            };
            for rows in [1, 64] {
                let [client, database] = of(rows);
                println!("| {sessions} | {rows} | {client:.1} | {database:.1} |");
            }
        }
        Ok(())
    }

    /// Physical reads per second of our sessions; and the client's CPU per operation, and the
    /// database's per block.
    fn rigel(&self, sessions: u32, rows: u32) -> Result<(f64, [f64; 2]), String> {
        let out = self.folder.0.join("run");
        let _ = std::fs::remove_dir_all(&out);
        let (threads, unit) = (sessions.to_string(), rows.to_string());
        let time = format!("{}s", self.settings.seconds);
        let mut command = Command::new(&self.settings.rigel);
        command.args([
            "sql",
            "run",
            self.server.url(),
            "-t",
            &threads,
            "--work-unit",
            &unit,
            "--run-time",
            &time,
        ]);
        command
            .args(["--warm-up", "1s", "--no-progress", "--json", "--out"])
            .arg(&out);
        let json: Value =
            serde_json::from_str(&answer(&mut command)?).map_err(|error| error.to_string())?;
        let sql = &json["points"][0]["sql"];
        let figure = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        let database = figure(&sql["server"]["cpu_us"]["per_operation"]) / f64::from(rows);
        Ok((
            figure(&sql["server"]["physical"]["per_s"]),
            [figure(&sql["client_cpu_us"]), database],
        ))
    }

    /// Raw reads of the table's own file by as many threads.
    fn raw(&self, sessions: u32) -> Result<f64, String> {
        let path = self.ask(
            "SELECT current_setting('data_directory') || '/' || \
             pg_relation_filepath('rigel.blocks_1')",
        )?;
        let out = self.folder.0.join("raw");
        let _ = std::fs::remove_dir_all(&out);
        let time = format!("{}s", self.settings.seconds);
        let mut command = Command::new(&self.settings.rigel);
        command.args([
            "curve",
            &path,
            "--sessions",
            &sessions.to_string(),
            "--point-max",
            &time,
            "--precision",
            "0.5%",
        ]);
        command.args(["--no-progress", "--json", "--out"]).arg(&out);
        let json: Value =
            serde_json::from_str(&answer(&mut command)?).map_err(|error| error.to_string())?;
        Ok(json["points"][0]["classes"][0]["iops"]
            .as_f64()
            .unwrap_or(f64::NAN))
    }

    /// Physical reads per second of pgbench's clients with this prepared script.
    fn pgbench(&self, clients: u32, script: &str) -> Result<f64, String> {
        let path = self.folder.0.join("script.sql");
        std::fs::write(&path, script).map_err(|error| error.to_string())?;
        let (clients, seconds) = (clients.to_string(), self.settings.seconds.to_string());
        let before = self.physical()?;
        let mut command = self.command("pgbench");
        command
            .args([
                "-n", "-M", "prepared", "-c", &clients, "-j", "2", "-T", &seconds, "-f",
            ])
            .arg(&path);
        let said = answer(&mut command)?;
        let number = |after: &str| -> Option<f64> {
            let rest = said.split_once(after)?.1.trim_start();
            rest.split(|c: char| !c.is_ascii_digit() && c != '.')
                .next()?
                .parse()
                .ok()
        };
        let done = number("transactions actually processed:").ok_or("pgbench said no count")?;
        let rate = number("tps =").ok_or("pgbench said no tps")?;
        Ok((self.physical()? - before) as f64 / done * rate)
    }

    // ---- load ----

    fn load(&self) -> Result<(), String> {
        let rows = self.folder.0.join("rows");
        let psql = |text: &str| {
            answer(
                self.command("psql")
                    .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", text]),
            )
        };
        psql(&format!("\\copy rigel.blocks_1 TO '{}'", rows.display()))?;
        println!(
            "\n## Loading {} rows, one to a block, medians of {}\n",
            self.tables.scale, self.settings.rounds
        );
        let mut theirs = Vec::new();
        let mut ours: Vec<(u32, f64)> = Vec::new();
        for _ in 0..self.settings.rounds {
            psql("DROP TABLE IF EXISTS public.copied")?;
            psql(
                "CREATE TABLE public.copied (LIKE rigel.blocks_1) WITH (fillfactor = 10, \
                 autovacuum_enabled = off)",
            )?;
            psql("CHECKPOINT")?;
            let began = Instant::now();
            psql(&format!("\\copy public.copied FROM '{}'", rows.display()))?;
            theirs.push(began.elapsed().as_secs_f64());
            psql("DROP TABLE public.copied")?;
            for degree in [1, 2] {
                sql::remove(&self.access).map_err(|error| error.to_string())?;
                psql("CHECKPOINT")?;
                ours.push((degree, fill(&self.access, self.tables, degree)?));
            }
        }
        let theirs = median(theirs.into_iter());
        println!("| loader | s | rows a second | against psql |\n|---|---|---|---|");
        println!(
            "| psql, \\copy | {theirs:.1} | {:.0} | 1 |",
            self.tables.scale as f64 / theirs
        );
        for degree in [1, 2] {
            let seconds = median(
                ours.iter()
                    .filter(|(other, _)| *other == degree)
                    .map(|(_, seconds)| *seconds),
            );
            let rate = self.tables.scale as f64 / seconds;
            println!(
                "| rigel, --load-degree {degree} | {seconds:.1} | {rate:.0} | {:.2} |",
                theirs / seconds
            );
        }
        Ok(())
    }
}

fn how(server: &Server) -> &'static str {
    if server.is_direct() {
        "direct I/O"
    } else {
        "its memory limited"
    }
}

/// Loads the tables; returns the time of the rows, without indexes and checks.
fn fill(access: &Access, tables: Tables, degree: u32) -> Result<f64, String> {
    let began = Instant::now();
    let rows = Mutex::new(0.0);
    let listen = |event| {
        if event == LoadEvent::Indexing {
            *rows.lock().expect("nobody panics") = began.elapsed().as_secs_f64();
        }
    };
    let request = LoadRequest {
        tables,
        degree,
        tablespace: None,
    };
    sql::load(access, &request, &AtomicBool::new(false), &listen)
        .map_err(|error| error.to_string())?;
    rows.into_inner().map_err(|error| error.to_string())
}

fn answer(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!(
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
