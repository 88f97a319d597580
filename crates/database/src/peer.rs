//! Whether whoever answers at a local socket may have the password of its server.
//!
//! Input: a connected socket and its path. Output: true if no other user of this host can have put it there. Where a
//! server has stopped, anybody who may write to the directory of its socket can answer in its place.

use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Mode bit of a directory in which everybody may make files.
const OPEN_TO_ALL: u32 = 0o002;

/// True if the process that listens at the socket is of root or of the caller, or of the owner of the socket's
/// directory, if that is not open to all.
pub(super) fn is_trusted(socket: BorrowedFd<'_>, path: &Path) -> bool {
    let Some(peer) = credentials(socket) else {
        return false;
    };
    let peer = peer.uid;
    if peer == 0 || peer == rustix::process::geteuid().as_raw() {
        return true;
    }
    let directory = path
        .parent()
        .and_then(|directory| std::fs::metadata(directory).ok());
    directory.is_some_and(|facts| facts.uid() == peer && facts.mode() & OPEN_TO_ALL == 0)
}

/// Of the process that listens at the socket; its number is 0 if it is in another container.
pub(super) fn credentials(socket: BorrowedFd<'_>) -> Option<libc::ucred> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let size = mem::size_of_val(&peer);
    let mut length = libc::socklen_t::try_from(size).ok()?;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to a structure of that size.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    (result == 0 && usize::try_from(length) == Ok(size)).then_some(peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn a_socket_of_this_user_is_trusted() {
        let directory = std::env::temp_dir().join(format!("rigel-peer-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        let _listener = UnixListener::bind(&path).unwrap();
        let socket = UnixStream::connect(&path).unwrap();
        let own = rustix::process::geteuid().as_raw();
        let is_own = credentials(socket.as_fd()).is_some_and(|peer| peer.uid == own);
        let is_trusted = is_trusted(socket.as_fd(), &path);
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(is_own && is_trusted);
    }
}
