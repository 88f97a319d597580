//! Seastar, with `ScyllaDB` and Redpanda: the file that tells the I/O scheduler what a disk can do.

use super::product::Product;
use super::setting::{Advice, Ground, other_block, size, three_digits, unsteady_or_unknown};
use crate::{AtLoad, Estimate};

const SOURCE: &str = "Seastar, doc/io-properties-file.md";

/// The block size of `iotune`'s random reads and writes on nearly every disk.
const BLOCK: u32 = 4096;

/// All settings of the file.
pub(super) fn settings(ground: &Ground, product: Product) -> Vec<Advice> {
    let calibration = ground.found;
    vec![
        iops(
            (ground, product, "read_iops"),
            calibration.maximum,
            "random reads",
            "",
        ),
        bandwidth(ground, product),
        iops(
            (ground, product, "write_iops"),
            calibration.writes,
            "random writes",
            "--write",
        ),
        write_bandwidth(ground, product),
    ]
}

/// The file.
pub(super) fn apply(product: Product, settings: &[Advice]) -> Vec<String> {
    let (file, data) = match product {
        Product::Redpanda => ("/etc/redpanda/io-config.yaml", "/var/lib/redpanda/data"),
        _ => ("/etc/scylla.d/io_properties.yaml", "/var/lib/scylla"),
    };
    let mut apply = vec![
        format!("# {file}, read at the start of the server"),
        "disks:".into(),
        format!("  - mountpoint: {data}  # where the data directory is mounted"),
    ];
    let line = |setting: &Advice| match &setting.statement {
        Some(statement) => format!("    {statement}"),
        None => format!(
            "    # {}: missing; Seastar does not accept the file without it",
            setting.setting
        ),
    };
    apply.extend(settings.iter().map(line));
    apply
}

fn valued(
    ground: &Ground,
    blank: Advice,
    (figure, estimate): (AtLoad, Estimate),
    how: String,
) -> Advice {
    let setting = blank.setting;
    let why = "measured; the file has no defaults, and must be whole";
    let advice = Advice {
        derivation: how,
        misleads: "the scheduler divides these figures among the shards and delays I/O beyond \
                   them: a figure that is too high lets latency grow, one that is too low leaves \
                   the disk idle"
            .into(),
        warnings: unsteady_or_unknown(&[Some(figure)]),
        ..blank.valued(estimate, three_digits)
    };
    advice.set_as_measured(ground, why, |value| format!("{setting}: {value}"))
}

fn iops(
    (ground, product, setting): (&Ground, Product, &'static str),
    at: Option<AtLoad>,
    what: &str,
    options: &str,
) -> Advice {
    let four = format!("--size 4KiB {options}");
    let blank = ground.blank(product, setting, SOURCE);
    let Some(at) = at else {
        return blank.not_measured(
            format!("no {what} were measured"),
            ground.command(four.trim_end()),
        );
    };
    let how = format!(
        "the maximum rate of {what} of {}, at depth {}",
        size(at.io_bytes),
        at.depth
    );
    let mut advice = valued(ground, blank, (at, at.iops), how);
    advice
        .warnings
        .extend(other_block(at, BLOCK, four.trim_end()));
    advice
}

fn bandwidth(ground: &Ground, product: Product) -> Advice {
    let blank = ground.blank(product, "read_bandwidth", SOURCE);
    let Some(at) = ground.found.large else {
        return blank.not_measured(
            "large reads were not measured",
            ground.command("").trim_end().into(),
        );
    };
    let how = format!(
        "the maximum throughput of reads of {}, at depth {}, in bytes/s. iotune reads sequentially",
        size(at.io_bytes),
        at.depth
    );
    valued(ground, blank, (at, at.mb_per_s.scaled(1e6)), how)
}

fn write_bandwidth(ground: &Ground, product: Product) -> Advice {
    let blank = ground.blank(product, "write_bandwidth", SOURCE);
    let Some(at) = ground.found.large_writes.lasting else {
        let what = "large writes were not measured".to_string();
        return blank.not_measured(what, ground.command("--write"));
    };
    let how = format!(
        "the throughput of sequential writes of {} after their first minute, at depth {}, in bytes/s",
        size(at.io_bytes),
        at.depth
    );
    valued(ground, blank, (at, at.mb_per_s.scaled(1e6)), how)
}
