//! A descriptor that the process that started this one left open for it: `PMI_FD` of MPI's process
//! managers.
//!
//! Input: its number, from the environment. Output: the socket, no longer inheritable. Anybody can put
//! a number into an environment, so the number is judged before it is adopted. What is adopted is a
//! second descriptor of the socket: whoever owns the first one keeps it, whenever this is called.

use rigel_model::{Error, usage};
use rustix::fs::{FileType, fstat};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// Descriptors from here on are nobody's but the environment's.
const FIRST: RawFd = 3;

/// Adopts the socket that the variable `name` names by its number.
///
/// # Errors
/// There is no open socket of this number, or one was adopted already.
pub fn adopt(name: &str, descriptor: RawFd) -> Result<UnixStream, Error> {
    // The descriptors that `exec` handed over belong to the process, and this one is given once.
    static ADOPTED: AtomicBool = AtomicBool::new(false);
    let unset = "this environment was inherited from another job; unset PMI_FD PMI_RANK PMI_SIZE";
    let refused = |why| usage!("{name}={descriptor} is {why}", unset);
    if descriptor < FIRST {
        return Err(refused("no descriptor of a job"));
    }
    if ADOPTED.load(Ordering::Relaxed) {
        return Err(refused("adopted already"));
    }
    // SAFETY: the number is not negative; if nothing is open there, the calls below only say so. They
    // close nothing.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let facts = fstat(borrowed).map_err(|_| refused("not open"))?;
    if FileType::from_raw_mode(facts.st_mode) != FileType::Socket {
        return Err(refused("not a socket"));
    }
    // Whoever else holds it hides this process's death from the launcher.
    fcntl_setfd(borrowed, FdFlags::CLOEXEC).map_err(|_| refused("not open"))?;
    let own = fcntl_dupfd_cloexec(borrowed, FIRST).map_err(|_| refused("not open"))?;
    ADOPTED.store(true, Ordering::Relaxed);
    Ok(UnixStream::from(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn what_is_no_open_socket_is_refused_and_an_owner_keeps_its_own() {
        let refusal = |descriptor| adopt("PMI_FD", descriptor).unwrap_err().to_string();
        assert!(refusal(1).contains("PMI_FD=1 is no descriptor of a job"));
        assert!(refusal(-1).contains("no descriptor"));
        let closed = refusal(1_000_000);
        assert!(closed.contains("PMI_FD=1000000 is not open"), "{closed}");
        assert!(
            closed.contains("unset PMI_FD PMI_RANK PMI_SIZE"),
            "{closed}"
        );
        let file = std::fs::File::open("/proc/self/status").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert!(refusal(number).contains("is not a socket"));
        // Last and in this test, because one process adopts once: its owner keeps the socket.
        let (own, mut peer) = UnixStream::pair().unwrap();
        let mut adopted = adopt("PMI_FD", std::os::fd::AsRawFd::as_raw_fd(&own)).unwrap();
        drop(own);
        adopted.write_all(b"here").unwrap();
        let mut answer = [0; 4];
        peer.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"here");
        let again = adopt("PMI_FD", std::os::fd::AsRawFd::as_raw_fd(&peer));
        assert!(again.unwrap_err().to_string().contains("adopted already"));
    }
}
