//! An example of each verb.

/// Complete commands of all verbs, for hints and manual pages; of a verb's, the shortest is first.
pub(super) const EXAMPLES: [&str; 24] = [
    "rigel calibrate /var/lib/data",
    "rigel curve /var/lib/data --depth 1..64",
    "rigel curve /var/lib/data --rate 10%..120% --max-latency 20ms@p99",
    "rigel orion --run oltp --testname mytest --num_disks 4",
    "rigel sql run --on /var/lib/data",
    "rigel sql run postgres://bench@db1/perf --sessions 1..32",
    "rigel sql load postgres://bench@db1/perf --scale 8GiB",
    "rigel sql drop postgres://bench@db1/perf",
    "rigel sql clean /var/lib/data",
    "rigel sql script oracle slob",
    "rigel sql script oracle-calibrate calibrate",
    "rigel layers /var/lib/data",
    "rigel soak /var/lib/data --for 7d",
    "rigel soak /var/lib/data --work 100kops --every 15m --for 7d --slo 'p99<2ms'",
    "rigel watch /var/lib/postgresql --for 1h",
    "rigel fit awr.txt /var/lib/data",
    "rigel expect 'p99<2ms@3000/s' /var/lib/data",
    "rigel expect etcd /var/lib/etcd",
    "rigel duet /mnt/one /mnt/other",
    "rigel check /var/lib/data",
    "rigel import awrrpt_1.html awrrpt_2.html --out prod",
    "rigel report calibrate_20260101_1200.rigel",
    "rigel advise calibrate_20260101_1200.rigel --for postgres",
    "rigel compare before.rigel after.rigel",
];
