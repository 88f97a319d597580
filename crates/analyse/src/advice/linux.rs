//! Linux: the line of `io.cost.model`, which tells the kernel what I/Os of different kinds cost
//! relative to each other.

use super::product::Product;
use super::setting::{Advice, Ground, size, three_digits, unsteady_or_unknown};
use crate::AtLoad;
use crate::figures::quantity::count;
use rigel_model::shell_word;

const SOURCE: &str = "Linux, Documentation/admin-guide/cgroup-v2.rst, io.cost.model; \
                      tools/cgroup/iocost_coef_gen.py";

/// The I/O size of the model's rates, in bytes.
const PAGE: u32 = 4096;

/// All settings for `io.cost.model`.
pub(super) fn settings(ground: &Ground) -> Vec<Advice> {
    let calibration = ground.found;
    vec![
        rbps(ground),
        rseqiops(ground),
        random(
            ground,
            "rrandiops",
            calibration.maximum,
            "reads",
            "--size 4KiB",
        ),
        wbps(ground),
        wseqiops(ground),
        random(
            ground,
            "wrandiops",
            calibration.writes,
            "writes",
            "--size 4KiB --write",
        ),
    ]
}

fn blank(ground: &Ground, setting: &'static str) -> Advice {
    Advice {
        misleads: "only the proportions matter: the kernel scales the model to the device's \
                   response times. Do not mix measured and unmeasured figures"
            .into(),
        ..ground.blank(Product::Linux, setting, SOURCE)
    }
}

fn assigned(ground: &Ground, advice: Advice) -> Advice {
    let setting = advice.setting;
    let why = "measured; the line has no defaults for this device";
    advice.set_as_measured(ground, why, |value| format!("{setting}={value}"))
}

/// The higher of two rates: one sequential stream, and large reads at the depth of their maximum.
fn rbps(ground: &Ground) -> Advice {
    let calibration = ground.found;
    let both = calibration.stream.into_iter().chain(calibration.large);
    let Some(most) = both.max_by(|one, other| one.mb_per_s.value.total_cmp(&other.mb_per_s.value))
    else {
        return blank(ground, "rbps").not_measured(
            "large reads were not measured",
            ground.command("").trim_end().into(),
        );
    };
    let how = if Some(most) == calibration.stream {
        "one sequential stream"
    } else {
        "random reads"
    };
    assigned(
        ground,
        Advice {
            derivation: format!(
                "the maximum throughput of reads: {how} of {} at depth {}, in bytes/s. The kernel's \
             tool reads sequentially, 128 MiB at once",
                size(most.io_bytes),
                most.depth
            ),
            warnings: unsteady_or_unknown(&[Some(most)]),
            ..blank(ground, "rbps").valued(most.mb_per_s.scaled(1e6), three_digits)
        },
    )
}

fn random(
    ground: &Ground,
    setting: &'static str,
    at: Option<AtLoad>,
    what: &str,
    options: &str,
) -> Advice {
    let command = ground.command(options);
    let Some(at) = at else {
        return blank(ground, setting)
            .not_measured(format!("no random {what} were measured"), command);
    };
    if at.io_bytes != PAGE {
        let measured = format!(
            "{} random {what} of {} per second were measured, but the model needs 4 KiB",
            count(at.iops.value),
            size(at.io_bytes)
        );
        return blank(ground, setting).not_measured(measured, command);
    }
    assigned(
        ground,
        Advice {
            derivation: format!(
                "the maximum rate of random {what} of 4 KiB, at depth {}",
                at.depth
            ),
            warnings: unsteady_or_unknown(&[Some(at)]),
            ..blank(ground, setting).valued(at.iops, three_digits)
        },
    )
}

const TOOL: &str = "tools/cgroup/iocost_coef_gen.py # in the kernel's sources";

fn rseqiops(ground: &Ground) -> Advice {
    let calibration = ground.found;
    let most = calibration
        .large
        .into_iter()
        .chain(calibration.stream)
        .map(|at| at.mb_per_s.value)
        .reduce(f64::max);
    let least = calibration
        .maximum
        .filter(|at| at.io_bytes <= PAGE)
        .map(|at| at.iops.value);
    let upper = most.map_or_else(String::new, |mb| {
        format!(
            ". It is at most rbps / 4096 = {:.0}",
            mb * 1e6 / f64::from(PAGE)
        )
    });
    let lower = least.map_or_else(String::new, |iops| {
        format!(", and usually at least rrandiops, {iops:.0}")
    });
    let missing = format!("sequential reads of 4 KiB were not measured{upper}{lower}");
    blank(ground, "rseqiops").not_measured(missing, TOOL.into())
}

fn wbps(ground: &Ground) -> Advice {
    let Some(at) = ground.found.large_writes.lasting else {
        let missing = "large writes were not measured";
        return blank(ground, "wbps").not_measured(missing, ground.command("--write"));
    };
    assigned(
        ground,
        Advice {
            derivation: format!(
                "the throughput of sequential writes of {} after their first minute, at depth {}, in bytes/s",
                size(at.io_bytes),
                at.depth
            ),
            warnings: unsteady_or_unknown(&[Some(at)]),
            ..blank(ground, "wbps").valued(at.mb_per_s.scaled(1e6), three_digits)
        },
    )
}

fn wseqiops(ground: &Ground) -> Advice {
    let missing = if ground.found.log_writes.is_empty() {
        "no writes were measured"
    } else {
        "log writes are sequential, but one at a time and each flushed, so they do not show it"
    };
    blank(ground, "wseqiops").not_measured(missing, TOOL.into())
}

/// The line, as a comment: the kernel takes only a whole one.
pub(super) fn apply(ground: &Ground, settings: &[Advice]) -> Vec<String> {
    let mut names: Vec<&str> = ground
        .header
        .facts
        .members
        .iter()
        .flat_map(|member| &member.devices)
        .map(|device| device.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    // The kernel wants the device number of a whole disk. It is known only if the target names
    // exactly one disk.
    let number = match names[..] {
        [name] => format!("$(cat {})", shell_word(&format!("/sys/block/{name}/dev"))),
        _ => "MAJ:MIN".into(),
    };
    let assignment = |setting: &Advice| {
        setting
            .statement
            .clone()
            .unwrap_or_else(|| format!("{}=?", setting.setting))
    };
    let figures: Vec<String> = settings.iter().map(assignment).collect();
    let mut lines = vec![
        "# A figure with ? is missing: without it, the kernel has one of another device.".into(),
    ];
    if names.len() != 1 {
        lines.push(
            "# MAJ:MIN is the number of the whole disk: this target is not on exactly one.".into(),
        );
    }
    lines.push(format!(
        "# As root: echo \"{number}\" ctrl=user model=linear \\"
    ));
    lines.push(format!("#   {} \\", figures[..4].join(" ")));
    lines.push(format!(
        "#   {} > /sys/fs/cgroup/io.cost.model",
        figures[4..].join(" ")
    ));
    lines
}
