//! The kernel's mean time of I/Os against Rigel's, over the points of a run.
//!
//! Input: the summaries of the points. Output: findings where the two contradict each other by more
//! than counters, chance and a few I/Os of others explain.

use crate::figures::quantity::time;
use crate::point::summary::{ClassSummary, PointSummary};
use rigel_model::{Finding, FindingName, Severity};

/// How the kernel's mean time and Rigel's contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contradiction {
    /// The kernel's is longer, which is impossible: each I/O takes longest for the program that
    /// waits for it.
    KernelLonger,
    /// The kernel's is less than half of Rigel's: most of the time passes before the queue of the
    /// device, or after it.
    OutsideOfDevice,
}

/// The kernel's mean and Rigel's in microseconds, if they contradict each other. Rigel's is from
/// issue to completion.
fn contradiction(class: &ClassSummary) -> Option<(f64, f64, Contradiction)> {
    let kernel = class.kernel_mean_us?;
    let own = class.service.or(class.latency)?.mean_us;
    let interval = class.confidence?.mean_us?;
    let chance = interval.interval().half_width() / interval.value;
    Some((kernel, own, judge(kernel, own, chance)?))
}

/// How two means contradict each other, beyond what explains a difference; `chance` is the half-width
/// of the interval of Rigel's, as a fraction of it.
fn judge(kernel: f64, own: f64, chance: f64) -> Option<Contradiction> {
    /// Rounding explains 5 %, and a few slow I/Os of others among ours as much again and more.
    const LONGER: f64 = 1.25;
    const LESS_THAN: f64 = 0.5;
    /// The way of a completion from the device to a program: 15 to 60 us up to depth 16 on a
    /// virtual machine of two CPUs.
    const SOFTWARE_US: f64 = 100.0;
    let (low, high) = (own * (1.0 - chance), own * (1.0 + chance));
    if kernel > LONGER * high {
        Some(Contradiction::KernelLonger)
    } else if kernel < LESS_THAN * low && low - kernel > SOFTWARE_US {
        Some(Contradiction::OutsideOfDevice)
    } else {
        None
    }
}

/// Says where the kernel's mean time of I/Os contradicts Rigel's: a warning if the kernel's is
/// longer, a note if most of the time passed outside of the device. Of several points, the one with
/// the largest ratio.
pub(super) fn contradicted(points: &[PointSummary]) -> Vec<Finding> {
    let all: Vec<_> = points
        .iter()
        .filter_map(|point| Some((point, contradiction(point.classes.first()?)?)))
        .collect();
    let worst = |wanted: Contradiction| {
        let of_kind = || all.iter().filter(move |(_, (.., how))| *how == wanted);
        let ratio = |(kernel, own): (f64, f64)| (kernel / own).ln().abs();
        let (point, (kernel, own, _)) = of_kind()
            .max_by(|(_, (a, b, _)), (_, (c, d, _))| ratio((*a, *b)).total_cmp(&ratio((*c, *d))))?;
        let others = match of_kind().count() - 1 {
            0 => String::new(),
            1 => ", and at one more point".into(),
            more => format!(", and at {more} more points"),
        };
        let place = format!("at {}{others}", point.coordinates);
        let figure = point.coordinates.figure();
        let is_alike = of_kind().all(|(other, _)| other.coordinates.figure() == figure);
        Some((
            place,
            time(*kernel),
            time(*own),
            figure.filter(|_| is_alike),
        ))
    };
    let longer = worst(Contradiction::KernelLonger).map(|(at, kernel, own, figure)| {
        Finding::warning(
            FindingName::KernelTime,
            format!(
                "by the kernel's counters an I/O took {kernel} in queue and device, and by Rigel's \
                 records {own} ({at}): the kernel's mean cannot be longer"
            ),
            "see whether others use the device; else report this as a bug",
        )
        .at(figure)
    });
    let outside = worst(Contradiction::OutsideOfDevice).map(|(at, kernel, own, _)| Finding {
        severity: Severity::Note,
        name: FindingName::KernelTime.name().into(),
        what: format!(
            "of {own} that an I/O took, {kernel} were in the kernel's queue and the device \
             ({at}): for the rest it waited before the queue, or for a CPU after it"
        ),
        hint: "look for a limit of a control group (io.max), a queue with fewer requests than are \
               outstanding (nr_requests), locks of the filesystem on writes to one file, or busy \
               CPUs"
            .into(),
        figure: None,
    });
    longer.into_iter().chain(outside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_the_kernel_that_exceeds_ours_or_is_a_small_part_of_it_is_a_contradiction() {
        let (longer, outside) = (
            Some(Contradiction::KernelLonger),
            Some(Contradiction::OutsideOfDevice),
        );
        for (kernel, own, chance, wanted) in [
            (100.0, 100.0, 0.0, None),
            // The way of a completion, on a busy virtual machine.
            (52.0, 68.0, 0.01, None),
            (20.0, 80.0, 0.01, None),
            // A cap of 1,000 a second at depth 8.
            (150.0, 8000.0, 0.01, outside),
            (3900.0, 8000.0, 0.01, outside),
            (3900.0, 8000.0, 0.05, None),
            // A clock that loses a third of the time.
            (150.0, 100.0, 0.02, longer),
            (150.0, 100.0, 0.3, None),
            (120.0, 100.0, 0.0, None),
        ] {
            assert_eq!(
                judge(kernel, own, chance),
                wanted,
                "{kernel} {own} {chance}"
            );
        }
    }
}
