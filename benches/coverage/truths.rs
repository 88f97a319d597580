//! What a measurement on a model must find, in closed form: response times of queues, their mean and their quantiles.
//!
//! Input: number of servers, service time and load. Output: the exact value, to the precision of
//! `f64`. Times and rates have one unit each, such as seconds and operations per second. Nothing
//! here uses the simulator or the statistics that these values judge.

/// The M/M/c queue: Poisson load, exponential service, first come first served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queue {
    pub(crate) servers: u32,
    /// Mean service time.
    pub(crate) service: f64,
    /// Operations due per unit of time, below the capacity.
    pub(crate) rate: f64,
}

impl Queue {
    /// Operations that the servers can complete per unit of time.
    pub(crate) fn capacity(self) -> f64 {
        f64::from(self.servers) / self.service
    }

    /// Share of operations that wait: Erlang's C formula (Gross, Shortle, Thompson, Harris,
    /// Fundamentals of Queueing Theory, 2008, section 2.3).
    pub(crate) fn waiting(self) -> f64 {
        let load = self.rate * self.service;
        let (mut term, mut sum) = (1.0, 0.0);
        for busy in 1..=self.servers {
            sum += term;
            term *= load / f64::from(busy);
        }
        let all_busy = term / (1.0 - load / f64::from(self.servers));
        all_busy / (sum + all_busy)
    }

    /// Mean response time.
    pub(crate) fn mean(self) -> f64 {
        self.service + self.waiting() / (self.capacity() - self.rate)
    }

    /// Share of operations that take longer than `time`: service alone, or an exponential wait and
    /// service, which are independent (the same, section 2.3).
    pub(crate) fn longer(self, time: f64) -> f64 {
        let (served, freed) = (1.0 / self.service, self.capacity() - self.rate);
        let alone = (-served * time).exp();
        // The sum of two exponential times; of the same rate it is Erlang's distribution.
        let both = if (served - freed).abs() < 1e-9 * served {
            (1.0 + served * time) * alone
        } else {
            (served * (-freed * time).exp() - freed * alone) / (served - freed)
        };
        (1.0 - self.waiting()) * alone + self.waiting() * both
    }

    /// Response time that the share `quantile` of operations does not exceed.
    pub(crate) fn quantile(self, quantile: f64) -> f64 {
        let high = self.mean() * 1000.0;
        bisect(high, |time| self.longer(time) > 1.0 - quantile)
    }

    /// Greatest rate at which the share `quantile` takes no longer than `time`; its own rate does
    /// not count.
    pub(crate) fn greatest_rate(self, quantile: f64, time: f64) -> f64 {
        let within = |rate| Self { rate, ..self }.longer(time) < 1.0 - quantile;
        bisect(self.capacity(), within)
    }
}

/// A closed loop that keeps all exponential servers busy: `depth` operations are outstanding.
///
/// A new operation waits until `depth - servers` others have left, which is Erlang's distribution
/// because all servers are busy, and then for its own service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Saturated {
    pub(crate) servers: u32,
    /// Mean service time.
    pub(crate) service: f64,
    /// Outstanding operations, at least one per server.
    pub(crate) depth: u32,
}

impl Saturated {
    /// Mean response time, by Little's law.
    pub(crate) fn mean(self) -> f64 {
        f64::from(self.depth) * self.service / f64::from(self.servers)
    }

    /// Share of operations that take longer than `time`.
    pub(crate) fn longer(self, time: f64) -> f64 {
        let (served, left) = (1.0 / self.service, f64::from(self.servers) / self.service);
        let ahead = self.depth - self.servers;
        if self.servers == 1 {
            // Waiting and service have the same rate: Erlang's distribution of one stage more.
            return erlang_longer(ahead + 1, left * time);
        }
        let still_waiting = erlang_longer(ahead, left * time);
        let in_service = 1.0 - erlang_longer(ahead, (left - served) * time);
        let stages = i32::try_from(ahead).expect("depths are small");
        still_waiting + (-served * time).exp() * (left / (left - served)).powi(stages) * in_service
    }

    /// Response time that the share `quantile` of operations does not exceed.
    pub(crate) fn quantile(self, quantile: f64) -> f64 {
        bisect(self.mean() * 1000.0, |time| {
            self.longer(time) > 1.0 - quantile
        })
    }
}

/// Share of Erlang's distribution of `stages` above `time`, with one stage per unit of time.
fn erlang_longer(stages: u32, time: f64) -> f64 {
    let (mut term, mut sum) = ((-time).exp(), 0.0);
    for stage in 1..=stages {
        sum += term;
        term *= time / f64::from(stage);
    }
    sum
}

/// Service of one server: exponential, but a share of the operations takes a fixed, longer time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlowShare {
    pub(crate) service: f64,
    pub(crate) slow: f64,
    pub(crate) share: f64,
}

impl SlowShare {
    /// Mean service time.
    pub(crate) fn mean(self) -> f64 {
        (1.0 - self.share) * self.service + self.share * self.slow
    }

    /// Mean response time of the M/G/1 queue: the formula of Pollaczek and Khinchine (Gross and
    /// others, section 5.1), in which an exponential time has the second moment 2 s².
    pub(crate) fn mean_response(self, rate: f64) -> f64 {
        let second =
            (1.0 - self.share) * 2.0 * self.service.powi(2) + self.share * self.slow.powi(2);
        self.mean() + rate * second / (2.0 * (1.0 - rate * self.mean()))
    }
}

/// Where `below`, true at first and then false, changes between 0 and `high`.
pub(crate) fn bisect(high: f64, below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, high);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
