//! The counters and waits of databases, read beside the disks: a thread for each database, so that
//! one that does not answer delays nothing else.
//!
//! Input: connections. Output: a [`DatabaseInterval`] for each when an interval ends. A connection
//! that was lost is a gap, and is made again.

use crate::asked::{AskedServer, PATIENCE, Respondent};
use rigel_database::{Access, ServerStatus};
use rigel_device::{clock, rights};
use rigel_model::record::DatabaseInterval;
use rigel_model::{LogKind, Nanos};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between two looks at the waits of sessions.
const LOOK: Duration = Duration::from_millis(500);

/// Looks that are left out after a connection failed, before the next attempt.
const PAUSE_LOOKS: u32 = 10;

/// Names of waits that are kept apart in an interval; more are counted together.
const WAITS_MAX: usize = 200;

/// A database that is observed.
pub(super) struct DatabaseWatch {
    name: String,
    asked: AskedServer<Observed>,
    before: Result<Reading, String>,
}

/// One reading of the counters.
#[derive(Debug, Clone)]
struct Reading {
    at: Nanos,
    counters: BTreeMap<String, u64>,
    /// How the server writes its log.
    log: Option<LogKind>,
}

/// What the thread answers.
struct DatabaseReading {
    reading: Result<Reading, String>,
    waits: BTreeMap<String, u64>,
    looks: u64,
}

impl DatabaseWatch {
    /// Begins to observe through an open connection.
    pub(super) fn begin(name: String, access: Access, status: ServerStatus) -> Self {
        let observed = Observed {
            access,
            status: Some(status),
            pause: 0,
            why: String::new(),
            waits: BTreeMap::new(),
            looks: 0,
        };
        let mut watch = Self {
            name,
            asked: AskedServer::begin(observed, LOOK),
            before: Err("it was not read yet".into()),
        };
        watch.ask();
        watch.wait(Nanos(clock::monotonic().0 + PATIENCE.0));
        watch.before = watch.take().reading;
        watch
    }

    /// Asks for a reading now; [`DatabaseWatch::end`] has the answer.
    pub(super) fn ask(&mut self) {
        self.asked.ask(());
    }

    /// What happened since the last call, until the reading that was asked for.
    pub(super) fn end(&mut self) -> DatabaseInterval {
        let DatabaseReading {
            reading,
            waits,
            looks,
            ..
        } = self.take();
        let before = std::mem::replace(&mut self.before, reading);
        let readings = before.and_then(|before| {
            let after = self.before.clone()?;
            began_anew(&before, &after)
                .or_else(|| went_back(&before.counters, &after.counters))
                .map_or(Ok(()), Err)?;
            Ok((before, after))
        });
        let (measured, counters, log, gap) = match readings {
            Ok((before, after)) => (
                after.at.since(before.at),
                Some([before.counters, after.counters]),
                after.log,
                String::new(),
            ),
            Err(why) => (Nanos(0), None, None, why),
        };
        DatabaseInterval {
            name: self.name.clone(),
            measured,
            counters,
            log,
            gap,
            waits,
            looks,
        }
    }

    /// Waits for the answer to the last question, at most until `deadline` on the monotonic clock.
    pub(super) fn wait(&mut self, deadline: Nanos) {
        self.asked.wait(deadline);
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Since when it has not answered, on the monotonic clock; `None` if nothing is asked.
    pub(super) fn asked_since(&self) -> Option<Nanos> {
        self.asked.busy_since()
    }

    /// The answer to the last question, or that there is none.
    fn take(&mut self) -> DatabaseReading {
        self.asked.take().unwrap_or_else(|| DatabaseReading {
            reading: Err("the server did not answer in time".into()),
            waits: BTreeMap::new(),
            looks: 0,
        })
    }
}

/// Says that the server was restarted, or its statistics were reset, which need not show in a
/// counter: one that began anew may be higher by now. `None` if neither is known.
fn began_anew(before: &Reading, after: &Reading) -> Option<String> {
    /// Seconds by which an uptime, which is in whole seconds, may lag behind our clock.
    const LAG: f64 = 2.0;
    let both = |name: &str| Some((*before.counters.get(name)?, *after.counters.get(name)?));
    let restarted = || Some("the server was restarted".to_string());
    if both("pg_postmaster_start_time").is_some_and(|(then, now)| then != now) {
        return restarted();
    }
    if let Some((then, now)) = both("Uptime")
        && (now as f64) < then as f64 + after.at.since(before.at).as_secs_f64() - LAG
    {
        return restarted();
    }
    let mut resets = before
        .counters
        .keys()
        .filter(|name| name.ends_with(".stats_reset"));
    let reset = resets.find(|name| both(name).is_some_and(|(then, now)| then != now))?;
    let view = reset.trim_end_matches(".stats_reset");
    Some(format!("the statistics of {view} were reset"))
}

/// Says that a counter went back; `None` if none did.
fn went_back(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Option<String> {
    let mut both = before
        .iter()
        .filter_map(|(name, then)| Some((name, then, after.get(name)?)));
    both.find(|(_, then, now)| now < then).map(|(name, ..)| {
        format!("{name} went back: the server was restarted, or its statistics were reset")
    })
}

/// A database, in its thread.
struct Observed {
    access: Access,
    /// `None` after the connection was lost.
    status: Option<ServerStatus>,
    /// Looks that are left out before the next attempt to connect.
    pause: u32,
    /// Why there is no connection.
    why: String,
    waits: BTreeMap<String, u64>,
    looks: u64,
}

impl Respondent for Observed {
    type Question = ();
    type Answer = DatabaseReading;

    fn begin(&mut self) -> bool {
        rights::keep_that_to_connect().is_ok()
    }

    fn answer(&mut self, (): ()) -> DatabaseReading {
        DatabaseReading {
            reading: self.read(),
            waits: std::mem::take(&mut self.waits),
            looks: std::mem::take(&mut self.looks),
        }
    }

    fn look(&mut self) {
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        let Ok(seen) = self.asked(ServerStatus::waits) else {
            return;
        };
        self.looks += 1;
        for (name, count) in seen {
            let is_known = self.waits.contains_key(&name) || self.waits.len() < WAITS_MAX;
            let name = if is_known { name } else { "others".into() };
            *self.waits.entry(name).or_default() += count;
        }
    }
}

impl Observed {
    fn read(&mut self) -> Result<Reading, String> {
        if self.pause > 0 {
            return Err(self.why.clone());
        }
        let (counters, log) = self.asked(|status| Ok((status.counters()?, status.log)))?;
        Ok(Reading {
            at: clock::monotonic(),
            counters,
            log,
        })
    }

    /// Asks the server, and connects first if there is no connection.
    fn asked<T>(
        &mut self,
        ask: impl Fn(&mut ServerStatus) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut status = match self.status.take() {
            Some(status) => status,
            None => ServerStatus::connect(&self.access)
                .map_err(|error| self.lost(&error.to_string()))?,
        };
        let answer = ask(&mut status).map_err(|why| self.lost(&why))?;
        self.status = Some(status);
        Ok(answer)
    }

    /// The connection is gone; the next attempt comes later.
    fn lost(&mut self, why: &str) -> String {
        let first = why.lines().next().unwrap_or_default();
        self.why = format!("the connection was lost: {first}");
        self.pause = PAUSE_LOOKS;
        self.why.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked::tests::{Answers, by_hand};

    /// A database that was asked once, and the other end of its answers.
    fn asked() -> (DatabaseWatch, Answers<Observed>) {
        let (asked, answers) = by_hand();
        let mut watch = DatabaseWatch {
            name: "db".into(),
            asked,
            before: Ok(reading()),
        };
        watch.ask();
        (watch, answers)
    }

    fn reading() -> Reading {
        Reading {
            at: Nanos(0),
            counters: BTreeMap::new(),
            log: None,
        }
    }

    /// An answer to this question.
    fn answer(number: u64) -> (u64, DatabaseReading) {
        let reading = DatabaseReading {
            reading: Ok(reading()),
            waits: BTreeMap::new(),
            looks: number,
        };
        (number, reading)
    }

    #[test]
    fn an_answer_to_an_earlier_question_is_left_out() {
        let (mut watch, answers) = asked();
        let far = Nanos(clock::monotonic().0 + Nanos::from_secs(3600).0);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                answers.send(answer(0)).unwrap();
                answers.send(answer(1)).unwrap();
            });
            watch.wait(far);
        });
        let interval = watch.end();
        assert_eq!(interval.looks, 1);
        assert!(interval.counters.is_some());
    }

    #[test]
    fn after_the_deadline_only_an_answer_that_is_here_counts() {
        let ((mut first, late), (mut second, here)) = (asked(), asked());
        late.send(answer(0)).unwrap();
        here.send(answer(1)).unwrap();
        first.wait(Nanos(0));
        second.wait(Nanos(0));
        assert_eq!(first.end().gap, "the server did not answer in time");
        assert_eq!(second.end().gap, "");
    }

    #[test]
    fn a_restart_or_reset_shows_without_a_counter_that_fell() {
        let reading = |at: u64, all: &[(&str, u64)]| Reading {
            log: None,
            at: Nanos::from_secs(at),
            counters: all
                .iter()
                .map(|(name, value)| ((*name).into(), *value))
                .collect(),
        };
        let up = |at: u64, uptime: u64| reading(at, &[("Uptime", uptime), ("reads", at)]);
        assert_eq!(began_anew(&up(10, 500), &up(20, 509)), None);
        // Up again for longer than before, and yet not since then.
        let said = began_anew(&up(10, 3), &up(60, 40)).unwrap();
        assert_eq!(said, "the server was restarted");
        let postgres = |start: u64, reset: u64| {
            let all = [
                ("pg_postmaster_start_time", start),
                ("pg_stat_io.stats_reset", reset),
            ];
            reading(start, &all)
        };
        assert_eq!(began_anew(&postgres(5, 0), &postgres(5, 0)), None);
        assert!(began_anew(&postgres(5, 0), &postgres(6, 0)).is_some());
        let said = began_anew(&postgres(5, 0), &postgres(5, 7)).unwrap();
        assert_eq!(said, "the statistics of pg_stat_io were reset");
    }

    #[test]
    fn a_counter_that_went_back_is_a_gap_with_its_name() {
        let counters = |reads: u64, writes: u64| {
            BTreeMap::from([("reads".to_string(), reads), ("writes".into(), writes)])
        };
        assert_eq!(went_back(&counters(5, 5), &counters(5, 9)), None);
        let said = went_back(&counters(5, 5), &counters(9, 4)).unwrap();
        assert!(said.starts_with("writes went back"), "{said}");
        // A counter that only one of them has says nothing.
        assert_eq!(went_back(&counters(5, 5), &BTreeMap::new()), None);
    }
}
