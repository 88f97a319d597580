//! Limits of this process: raising one as far as it must be.
//!
//! Input: a resource, and what is needed of it. Output: a limit that allows it, or why there is none. No limit is
//! lowered, and a hard one stays as it is.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises this process's limit of a resource to what is `needed`, unless it allows that already.
///
/// # Errors
/// The hard limit does not allow it, or the kernel refuses; the text says which.
pub fn raise(resource: Resource, needed: u64) -> Result<(), String> {
    match raised(getrlimit(resource), needed)? {
        Some(limit) => setrlimit(resource, limit).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// The limit to set; `None` if that in force is enough.
fn raised(limit: Rlimit, needed: u64) -> Result<Option<Rlimit>, String> {
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(None);
    }
    match limit.maximum {
        Some(maximum) if maximum < needed => Err(format!("the hard limit is {maximum}")),
        maximum => Ok(Some(Rlimit {
            current: Some(needed),
            maximum,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_as_far_as_it_must_be_and_may_be() {
        let limit = |current, maximum| Rlimit { current, maximum };
        let of = |limit| raised(limit, 500);
        assert_eq!(of(limit(None, None)), Ok(None));
        assert_eq!(of(limit(Some(500), Some(500))), Ok(None));
        let set = of(limit(Some(128), Some(4096))).unwrap();
        assert_eq!(set, Some(limit(Some(500), Some(4096))));
        assert_eq!(of(limit(Some(128), None)), Ok(Some(limit(Some(500), None))));
        let refused = of(limit(Some(128), Some(499)));
        assert_eq!(refused, Err("the hard limit is 499".into()));
    }
}
