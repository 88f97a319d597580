//! The closed forms that `make coverage` compares measurements with, against values that are simple
//! enough to be derived here.

#[path = "../../benches/coverage/truths.rs"]
pub(crate) mod truths;

use truths::{Queue, Saturated, SlowShare};

fn assert_is(value: f64, expected: f64) {
    assert!(
        (value / expected - 1.0).abs() < 1e-6,
        "{value} is not {expected}"
    );
}

#[test]
fn one_server_responds_in_an_exponential_time() {
    // M/M/1: the mean is 1 / (mu - lambda), and quantiles are -ln(1 - q) times it.
    let queue = Queue {
        servers: 1,
        service: 0.005,
        rate: 180.0,
    };
    assert_is(queue.waiting(), 0.9);
    assert_is(queue.mean(), 0.05);
    assert_is(queue.quantile(0.99), 0.05 * 100f64.ln());
    // Bound of 50 ms at p99: mu - lambda = ln 100 / 50 ms.
    assert_is(queue.greatest_rate(0.99, 0.05), 200.0 - 100f64.ln() / 0.05);
}

#[test]
fn three_servers_wait_as_erlang_says() {
    // Two of three servers busy: C = (8/6 · 3) / (1 + 2 + 2 + 4) = 4/9, and waiting and service
    // have the same rate, which is the case of its own.
    let queue = Queue {
        servers: 3,
        service: 1.0,
        rate: 2.0,
    };
    assert_is(queue.waiting(), 4.0 / 9.0);
    assert_is(queue.mean(), 1.0 + 4.0 / 9.0);
    assert_is(queue.longer(1.0), (1.0 + 4.0 / 9.0) * (-1f64).exp());
    let near = Queue {
        rate: 2.000_001,
        ..queue
    };
    assert!((queue.longer(3.0) / near.longer(3.0) - 1.0).abs() < 1e-5);
}

#[test]
fn a_closed_loop_waits_for_those_ahead_of_it() {
    // As many operations as servers: service alone.
    let level = Saturated {
        servers: 4,
        service: 2.0,
        depth: 4,
    };
    assert_is(level.quantile(0.5), 2.0 * 2f64.ln());
    // One server, two outstanding: the sum of two services.
    let alone = Saturated {
        servers: 1,
        service: 1.0,
        depth: 2,
    };
    assert_is(alone.longer(1.0), 2.0 * (-1f64).exp());
    // Two servers, one waits: P(W + S > t) = 2 e^-t - e^-2t with W of rate 2 and S of rate 1.
    let waits = Saturated {
        servers: 2,
        service: 1.0,
        depth: 3,
    };
    assert_is(waits.longer(1.5), 2.0 * (-1.5f64).exp() - (-3f64).exp());
    // The mean is the integral of what takes longer.
    let busy = Saturated {
        servers: 4,
        service: 1.0,
        depth: 16,
    };
    let integral: f64 = (0..100_000)
        .map(|at| busy.longer((f64::from(at) + 0.5) * 1e-3) * 1e-3)
        .sum();
    assert_is(integral, busy.mean());
}

#[test]
fn a_slow_share_lengthens_the_queue_by_pollaczek_and_khinchine() {
    // Without slow operations it is M/M/1; with nothing else it is M/D/1.
    let memoryless = SlowShare {
        service: 0.5,
        slow: 9.0,
        share: 0.0,
    };
    assert_is(memoryless.mean_response(1.0), 1.0);
    let fixed = SlowShare {
        service: 9.0,
        slow: 0.5,
        share: 1.0,
    };
    assert_is(fixed.mean_response(1.0), 0.75);
}
