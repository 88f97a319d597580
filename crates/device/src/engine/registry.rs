//! The engines for files and devices in one table, and the choice of one for a volume.

use super::Engine;
use super::file_engine::FileEngine;
use super::volume::Volume;
use super::{libaio, psync, uring};
use crate::clock::Clock;
use rigel_model::{EngineInfo, Error, Finding, FindingName, usage};

/// All engines for files and devices, in the order of the help. The first is the default.
pub static ENGINES: &[FileEngine] = &[uring::ENGINE, libaio::ENGINE, psync::ENGINE];

/// The value of `--engine` that leaves the choice to [`choose`].
pub const AUTO: &str = "auto";

/// All values of `--engine`, [`AUTO`] first.
pub fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once(AUTO).chain(ENGINES.iter().map(|engine| engine.info.name))
}

/// Returns the properties of the engine called `name`, or of the default engine if there is none of
/// this name.
pub fn info(name: &str) -> &'static EngineInfo {
    &find(name).unwrap_or(&ENGINES[0]).info
}

fn find(name: &str) -> Option<&'static FileEngine> {
    ENGINES.iter().find(|engine| engine.info.name == name)
}

/// Returns the engine called `name` for `volume`. `auto` is `io_uring`, or libaio with a warning if
/// the kernel forbids `io_uring`. `lengths` has the maximum number of slots that a session will
/// need.
///
/// # Errors
/// There is no engine of this name, or the machine does not allow it.
pub fn choose(
    name: &str,
    volume: Volume,
    lengths: &[u32],
) -> Result<(Box<dyn Engine>, Option<Finding>), Error> {
    let (engine, warning) = if name == AUTO {
        match uring::Uring::granted(lengths.len()) {
            Ok(()) => (&uring::ENGINE, None),
            Err(Error::Usage { what, hint } | Error::Failed { what, hint }) => {
                let what = format!("{what}; {} is used instead", libaio::ENGINE.info.name);
                (
                    &libaio::ENGINE,
                    Some(Finding::warning(FindingName::Engine, what, hint)),
                )
            }
        }
    } else {
        (find(name).ok_or_else(|| unknown(name))?, None)
    };
    Ok(((engine.open)(Clock::real(), volume, lengths)?, warning))
}

fn unknown(name: &str) -> Error {
    let names: Vec<&str> = names().collect();
    let (last, others) = names.split_last().expect("there are engines");
    usage!(
        "there is no engine '{name}'",
        "use {others} or {last}",
        others = others.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_words() {
        let all: Vec<&str> = names().collect();
        assert_eq!(
            all.iter().collect::<HashSet<_>>().len(),
            all.len(),
            "{all:?}"
        );
        assert!(
            all.iter().all(|name| name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())),
            "{all:?}"
        );
    }

    #[test]
    fn every_engine_is_described_and_has_a_job_in_fio() {
        for EngineInfo {
            name, help, fio, ..
        } in ENGINES.iter().map(|engine| engine.info)
        {
            assert!(
                !help.is_empty() && !help.ends_with('.') && !fio.name.is_empty(),
                "{name}"
            );
            assert!(
                fio.options.is_empty() || fio.options.ends_with('\n'),
                "{name}"
            );
            assert!(
                fio.log_writes
                    .split_inclusive('\n')
                    .all(|l| l.starts_with('#') && l.ends_with('\n')),
                "{name}"
            );
        }
    }

    #[test]
    fn an_unknown_engine_is_refused_with_the_names_of_all() {
        let said = unknown("fio").to_string();
        assert!(
            said.contains("there is no engine 'fio'") && names().all(|name| said.contains(name)),
            "{said}"
        );
        assert!(
            said.contains("use auto, uring, ") && said.contains(" or "),
            "{said}"
        );
        assert_eq!((info("psync").name, info("fio").name), ("psync", "uring"));
    }
}
