//! Open files that together form one volume.

use super::guard::{self, Permit};
use super::layout::VolumeMap;
use super::opened::Opened;
use super::verification::VolumeContents;
use rigel_model::{Error, FileKind, Op, failed};
use std::fs::{File, OpenOptions};

/// The open files of a volume, and the mapping from volume offsets to them.
#[derive(Debug)]
pub struct Volume {
    files: Vec<File>,
    map: VolumeMap,
    direct: bool,
    writable: bool,
    contents: VolumeContents,
    /// For each file: true if Rigel made it. Such files are marked again after writing.
    ours: Vec<bool>,
}

impl Volume {
    /// Opens `members`, described by `map`, read-only, so that the kernel refuses every write.
    /// `direct` bypasses the page cache (`O_DIRECT`).
    ///
    /// # Errors
    /// A member cannot be opened in this way.
    pub fn to_read(members: &[Opened], map: VolumeMap, direct: bool) -> Result<Self, Error> {
        let open = |member: &Opened| open(member, false, direct);
        let files = members.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self {
            files,
            map,
            direct,
            writable: false,
            contents: VolumeContents::of(members.iter()),
            ours: Vec::new(),
        })
    }

    /// Opens `members` for reading and writing. This is the only way to a writable volume: the
    /// guard has checked every member, and exactly the checked files are opened.
    ///
    /// # Errors
    /// A member cannot be opened in this way.
    pub fn to_write(members: &[Permit], map: VolumeMap, direct: bool) -> Result<Self, Error> {
        let open = |member: &Permit| open(member.target(), true, direct);
        let files = members.iter().map(open).collect::<Result<_, _>>()?;
        let ours = members.iter().map(Permit::is_ours).collect();
        Ok(Self {
            files,
            map,
            direct,
            writable: true,
            contents: VolumeContents::of(members.iter().map(Permit::target)).going_on(),
            ours,
        })
    }

    /// Compares from now on what is read with what was written. All operations are multiples of `grain` bytes.
    ///
    /// # Errors
    /// Nothing is written, and a file holds what Rigel has not written.
    pub fn verify(&mut self, grain: u64) -> Result<(), Error> {
        self.contents.verify(grain, self.writable)
    }

    pub(super) fn contents(&self) -> &VolumeContents {
        &self.contents
    }

    /// Size of the volume in bytes.
    pub fn usable(&self) -> u64 {
        self.map.usable()
    }

    /// True if I/O bypasses the page cache.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// True if it was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// The files, in the order of the volume.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The index of the file that an operation goes to, and the offset in that file.
    ///
    /// # Panics
    /// If the operation lies beyond the end of the volume.
    #[inline]
    pub fn locate(&self, op: Op) -> (usize, u64) {
        // A product that overflowed would lead to another block of the volume.
        self.map
            .locate(op.position.saturating_mul(op.length.into()))
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        self.files
            .iter()
            .zip(&self.ours)
            .filter(|(_, ours)| **ours)
            .for_each(|(file, _)| guard::mark(file));
    }
}

fn open(target: &Opened, write: bool, direct: bool) -> Result<File, Error> {
    // Open a device exclusively for writing: from now on nobody can mount it.
    let exclusive = if write && target.kind() == FileKind::Device {
        libc::O_EXCL
    } else {
        0
    };
    let flags = exclusive | if direct { libc::O_DIRECT } else { 0 };
    let open = |more| target.reopen(OpenOptions::new().read(true).write(write), flags | more);
    // Do not update the access time: reading must not write. Only the owner may request this, so
    // fall back to a plain open.
    open(libc::O_NOATIME).or_else(|_| open(0)).map_err(|error| {
        let (how, hint) = match error.raw_os_error() {
            Some(libc::EINVAL) if direct => (
                " for direct I/O",
                "its filesystem has no direct I/O: give a file on another, or measure the page \
                 cache with --buffered",
            ),
            Some(libc::EACCES | libc::EPERM) => ("", "run as a user who may open it"),
            Some(libc::EBUSY) => (
                "",
                "another process has just started to use it (mounted it, for example): give \
                 another target",
            ),
            _ => ("", ""),
        };
        failed!(
            "cannot open '{path}'{how}: {error}",
            hint,
            path = target.path().display()
        )
    })
}
