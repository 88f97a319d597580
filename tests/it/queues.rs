//! The closed forms that `make coverage` compares measurements with, against values that are simple
//! enough to be derived here, and its simulation of devices, against the closed forms.

#[allow(dead_code, reason = "the benchmark uses all of it")]
#[path = "../../benches/coverage/modelled.rs"]
mod modelled;
#[path = "../../benches/coverage/truths.rs"]
pub(crate) mod truths;

use modelled::{Device, LARGE, SMALL, spec};
use rigel_model::{Bound, Nanos};
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

/// The number of operations of a simulation here, and how far its figures may be off: four of their deviations.
const OPERATIONS: f64 = 200_000.0;
const NEAR: f64 = 0.02;

fn assert_near(value: f64, expected: f64) {
    let off = (value / expected - 1.0).abs();
    assert!(off < NEAR, "{value} is not within 2 % of {expected}");
}

#[test]
fn a_simulated_device_keeps_its_bound_as_far_as_erlang_says() {
    // A slow share of nothing leaves M/M/3, and has no closed form.
    let simulated = spec("sim:3,1ms,slow=1ms@0%");
    let bound = Bound {
        latency: Nanos::from_millis(8),
        quantile: 0.99,
    };
    let rate = Device::of(&simulated, SMALL).greatest_rate(bound, OPERATIONS / 100.0);
    let queue = Queue {
        servers: 3,
        service: 1e-3,
        rate: 0.0,
    };
    assert_near(rate.unwrap(), queue.greatest_rate(0.99, 8e-3));
    // One in fifty takes longer than the bound at any rate; so do all that arrive in the first half of a stall.
    for late in ["slow=9ms@2%", "stall=1s/20s"] {
        let late = spec(&format!("sim:3,1ms,{late}"));
        let rate = Device::of(&late, SMALL).greatest_rate(bound, OPERATIONS / 100.0);
        assert!(rate.is_none(), "{rate:?}");
    }
}

#[test]
fn simulated_closed_loops_do_what_servers_limits_and_stalls_allow() {
    for (target, length, expected) in [
        ("sim:4,1ms", SMALL, 4_000.0),
        ("sim:4,1ms,fixed,stall=100ms/1s", SMALL, 3_600.0),
        ("sim:4,1ms,slow=50ms@1%", SMALL, 4.0 / 1.49e-3),
        ("sim:4,1ms,limit=1500/s", SMALL, 1_500.0),
        ("sim:4,1ms,limit=1500/s+90000", SMALL, 1_500.0),
        ("sim:4,1ms,limit=314572800B/s+9000MB", LARGE, 300.0),
        ("sim:1,1ms,fixed,bandwidth=1048576000B", LARGE, 500.0),
    ] {
        let spec = spec(target);
        let device = Device::of(&spec, length);
        assert_near(device.closed(256, OPERATIONS).rate, expected);
        assert_near(device.capacity().high, expected);
    }
    // Two thirds of the reads are hits.
    let cached = spec("sim:1,900us,fixed,cache=2GiB@300us,size=3GiB");
    let full = Device::of(&cached, SMALL).with_full_cache();
    assert_near(full.closed(16, OPERATIONS).rate, 1.0 / 500e-6);
    assert_near(full.idle_quantile(0.99), 900e-6);
}

#[test]
fn quantiles_of_an_idle_device_are_those_of_its_service() {
    for target in [
        "sim:4,1ms",
        "sim:4,1ms,slow=20ms@1.5%",
        "sim:4,1ms,slow=20ms@0.5%",
        "sim:1,500us,bandwidth=81920000B",
    ] {
        let spec = spec(target);
        let device = Device::of(&spec, SMALL);
        let simulated = device.closed(1, 5.0 * OPERATIONS).quantile(0.99);
        assert_near(simulated, device.idle_quantile(0.99));
    }
    // A reader that a limit slows down waits for the rest of each interval.
    let limited = spec("sim:1,1ms,fixed,limit=100/s+5000");
    assert_near(Device::of(&limited, SMALL).idle_quantile(0.99), 10e-3);
}
