//! Open files of rank 0, which has a connection to every other rank.

use rigel_model::{Error, failed};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files for everything but connections to ranks: devices, results, and handshakes with whoever
/// else connects.
const OTHERS: u64 = 320;

/// Raises this process's limit of open files, as far as it must be for connections to `size` ranks.
///
/// # Errors
/// The hard limit does not allow it.
pub(super) fn raise_for(size: usize) -> Result<(), Error> {
    let needed = size as u64 + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    let Some(raised) = raised(limit, needed, size)? else {
        return Ok(());
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| too_low(size, needed, &error.to_string()))
}

/// The limit to set; `None` if that in force is enough.
fn raised(limit: Rlimit, needed: u64, size: usize) -> Result<Option<Rlimit>, Error> {
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(None);
    }
    match limit.maximum {
        Some(maximum) if maximum < needed => Err(too_low(
            size,
            needed,
            &format!("the hard limit is {maximum}"),
        )),
        maximum => Ok(Some(Rlimit {
            current: Some(needed),
            maximum,
        })),
    }
}

fn too_low(size: usize, needed: u64, why: &str) -> Error {
    failed!(
        "rank 0 needs {needed} open files for {size} ranks: {why}",
        "raise the limit on its host: ulimit -Hn {needed}, or start fewer ranks"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_it_must_be_and_may_be() {
        let limit = |current, maximum| Rlimit { current, maximum };
        let of = |limit| raised(limit, 500, 180);
        assert_eq!(of(limit(None, None)), Ok(None));
        assert_eq!(of(limit(Some(500), Some(500))), Ok(None));
        let set = of(limit(Some(128), Some(4096))).unwrap();
        assert_eq!(set, Some(limit(Some(500), Some(4096))));
        assert_eq!(of(limit(Some(128), None)), Ok(Some(limit(Some(500), None))));
        let error = of(limit(Some(128), Some(499))).unwrap_err().to_string();
        assert!(
            error.contains("500 open files for 180 ranks: the hard limit is 499"),
            "{error}"
        );
        assert!(error.contains("ulimit -Hn 500"), "{error}");
    }
}
