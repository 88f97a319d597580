//! The setup: workload, target, host, versions, and the command that repeats the run.

use super::columns::{TableOf, pairs};
use super::document::{Block, Section};
use super::parts;
use rigel_model::record::journal::Header;
use rigel_model::{BlockDevice, ServerFacts, Target, VolumeMember, arm_letter, shell_word};
use std::fmt::Write;

/// The section about the setup; `workload` describes the load in words.
pub fn section(header: &Header, workload: &str) -> Section {
    let mut blocks = vec![
        Block::Text(if seed(header).is_some() {
            "To run it again, with the same seed:".into()
        } else {
            "To run it again:".into()
        }),
        Block::Code(again(header)),
        pairs("What was run", ["", "value"], what(header, workload)),
        pairs("The machine", ["", "value"], machine(header)),
    ];
    let facts = std::iter::once(&header.facts).chain(&header.facts_of_others);
    let mut members: Vec<&VolumeMember> = Vec::new();
    for member in facts.flat_map(|facts| &facts.members) {
        if !members.contains(&member) {
            members.push(member);
        }
    }
    let mut devices: Vec<&BlockDevice> = Vec::new();
    for device in members.iter().flat_map(|member| &member.devices) {
        if devices.iter().all(|known| known.name != device.name) {
            devices.push(device);
        }
    }
    if !members.is_empty() {
        blocks.push(files(members));
    }
    if !devices.is_empty() {
        blocks.push(disks(devices));
    }
    if let Some(server) = &header.facts.server {
        if !server.settings.is_empty() {
            let headings = ["setting", "value"];
            blocks.push(pairs("The server's settings", headings, &server.settings));
        }
        if !server.plan.is_empty() {
            blocks.push(Block::Text("How the server reads, by its EXPLAIN:".into()));
            blocks.push(Block::Code(server.plan.join("\n")));
        }
    }
    let others = other_servers(header);
    if !others.is_empty() {
        let caption = "The servers of the other arms: what differs";
        blocks.push(pairs(caption, ["", "value"], others));
    }
    let lead = "Everything that these figures depend on.";
    parts::section("setup", "What was run, and on what", lead, blocks)
}

/// The servers of the other arms of a duet, and their settings that the first one has another value of.
fn other_servers(header: &Header) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let first = header.facts.server.as_ref();
    for (arm, facts) in (1..).zip(&header.facts_of_others) {
        let Some((first, server)) = first.zip(facts.server.as_ref()) else {
            continue;
        };
        let letter = arm_letter(arm);
        rows.push((format!("{letter}, server"), server_line(server)));
        let settings = server.settings.iter();
        let differs = settings.filter(|(name, value)| first.settings.get(*name) != Some(value));
        rows.extend(differs.map(|(name, value)| (format!("{letter}, {name}"), value.clone())));
    }
    rows
}

/// `PostgreSQL 18.1, buffer cache 32 MiB, direct I/O; 1 table of 131072 rows, one to a block of 8
/// KiB: 1 GiB`.
pub fn server_line(server: &ServerFacts) -> String {
    let how = if server.direct {
        "direct I/O"
    } else {
        "through the page cache"
    };
    let mut text = format!(
        "{}, buffer cache {}, {how}",
        server.version, server.buffer_cache
    );
    if let Some(tables) = server.tables {
        let _ = write!(text, "; {tables}: {}", tables.bytes());
    }
    text
}

/// How the engine reads, after its name: direct, or through the page cache.
pub fn manner(header: &Header) -> &'static str {
    match header.target {
        // A database's I/O mode is among its settings, and a model has none.
        Target::Sql(_) | Target::Sim(_) | Target::Null { .. } => "",
        _ if matches!(header.invocation.verb.as_str(), "import" | "watch") => "",
        _ if header.engine.buffered => ", through the page cache",
        _ => ", direct I/O",
    }
}

fn what(header: &Header, workload: &str) -> Vec<(&'static str, String)> {
    // Of what is only watched or imported, none is known.
    let size = Some(header.facts.usable).filter(|size| size.0 > 0);
    let mut rows = vec![
        pair("target", &header.facts.name),
        (
            "size",
            size.map_or_else(String::new, |size| size.to_string()),
        ),
        pair("workload", &workload),
        pair("begun", &header.started),
        pair(
            "engine",
            &format!("{}{}", header.engine.name, manner(header)),
        ),
        pair("granted", &header.engine_about),
        pair("Rigel", &header.version),
    ];
    if let Some(server) = &header.facts.server {
        rows.insert(1, pair("server", &server_line(server)));
    }
    if let Some(seed) = seed(header) {
        rows.push(pair("seed", &seed));
    }
    rows.retain(|(_, value)| !value.is_empty());
    rows
}

fn machine(header: &Header) -> Vec<(&'static str, String)> {
    let host = &header.host;
    let clock = format!(
        "{}, {:.0} ns a reading",
        host.clock_source, host.clock_read_ns
    );
    let quota = host.cpu_quota.map_or_else(String::new, |cpus| {
        format!(", of which control groups allow {cpus:.2}")
    });
    vec![
        pair("name", &host.name),
        pair("kernel", &format!("Linux {}", host.kernel)),
        pair("CPUs", &format!("{} of {}{quota}", host.cpus, host.cpu)),
        pair("memory", &host.memory),
        pair("clock", &clock),
    ]
}

fn pair(name: &'static str, value: &impl ToString) -> (&'static str, String) {
    (name, value.to_string())
}

fn files(members: Vec<&VolumeMember>) -> Block {
    TableOf::of("Files and devices", members)
        .text("path", |member| member.path.display().to_string())
        .text("is a", |member| format!("{:?}", member.kind).to_lowercase())
        .number("size", |member| member.bytes)
        .text("filesystem", |member| {
            parts::known(member.filesystem.as_ref(), String::clone)
        })
        .text("mounted with", |member| {
            parts::known(member.mount_options.as_ref(), String::clone)
        })
        .block()
}

fn disks(devices: Vec<&BlockDevice>) -> Block {
    TableOf::of("The disks below", devices)
        .text("disk", |device| device.name.clone())
        .text("model", |device| {
            parts::known(device.model.as_ref(), String::clone)
        })
        .number("size", |device| device.bytes)
        .text("kind", |device| {
            // Loop and virtual devices say so without a disk that could spin.
            let is_local = device.model.is_some() && device.transport.is_none();
            match (device.rotational, is_local) {
                (true, true) => "spinning",
                (true, false) => "reports spinning",
                (false, _) => "not spinning",
            }
        })
        .text("scheduler", |device| device.scheduler.clone())
        .text("write cache", |device| device.write_cache.clone())
        .number("queue", |device| device.requests)
        .number("largest request", |device| {
            format!("{} KiB", device.request_max_kib)
        })
        .number("block", |device| {
            format!("{} / {}", device.logical_block, device.physical_block)
        })
        .block()
}

/// The seed of all random choices, from the journal; `None` where there are none.
fn seed(header: &Header) -> Option<u64> {
    let is_random = !matches!(header.invocation.verb.as_str(), "import" | "watch");
    is_random.then_some(header.invocation.options.seed)
}

/// The command that repeats the run: with the seed that was used, and without the output directory,
/// which now exists.
pub fn again(header: &Header) -> String {
    let mut words = vec!["rigel".to_string()];
    // The journal has only Orion's own arguments, because the program may have been called as
    // `orion`.
    if header.invocation.verb == "orion"
        && header.command.first().is_none_or(|first| first != "orion")
    {
        words.push("orion".into());
    }
    let mut arguments = header.command.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--out" {
            arguments.next();
        } else if !argument.starts_with("--out=") {
            words.push(shell_word(&without_password(argument)));
        }
    }
    let has_seed = header
        .command
        .iter()
        .any(|word| word == "--seed" || word.starts_with("--seed="));
    if let Some(seed) = seed(header).filter(|_| !has_seed) {
        words.push(format!("--seed {seed}"));
    }
    words.join(" ")
}

/// Removes a possible password in a URL from an argument. Rigel refuses such URLs, but a journal
/// from elsewhere may have one.
fn without_password(argument: &str) -> String {
    let Some((scheme, rest)) = argument.split_once("://") else {
        return argument.into();
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = match rest
        .rfind('@')
        .filter(|at| *at > end || rest[..end].contains('@'))
    {
        Some(at) => rest.split_at(at),
        None => ("", rest),
    };
    let user = authority.split(':').next().unwrap_or_default();
    let (path, query) = path
        .split_once('?')
        .map_or((path, None), |(path, query)| (path, Some(query)));
    let query = query.map(|query| {
        let parts = query
            .split('&')
            .filter(|part| !part.to_ascii_lowercase().starts_with("password="));
        parts.collect::<Vec<_>>().join("&")
    });
    let query = query
        .filter(|query| !query.is_empty())
        .map_or_else(String::new, |query| format!("?{query}"));
    format!("{scheme}://{user}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_password_is_shown() {
        for url in [
            "postgres://u:hidden@h:5432/d",
            "postgres://u:hid/hidden@h/d",
            "postgres://h/d?password=hidden",
            "mysql://u@h/d?ssl=on&PASSWORD=hidden",
        ] {
            assert!(
                !without_password(url).contains("hidden"),
                "{}",
                without_password(url)
            );
        }
        assert_eq!(
            without_password("postgres://u@h:5432/d?sslmode=require"),
            "postgres://u@h:5432/d?sslmode=require"
        );
        assert_eq!(without_password("postgres:///d"), "postgres:///d");
        assert_eq!(without_password("/data/a@b"), "/data/a@b");
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "([a-z]{1,4}://)?([a-z:@/?&=]|.){0,16}") {
            let _ = shell_word(&without_password(&text));
        }
    }
}
