//! Open files that together form one volume.

use super::layout::VolumeMap;
use super::probe::{Identity, identity_of_open};
use crate::model::Error;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The files of a volume, open, and the arithmetic that finds a byte in them.
#[derive(Debug)]
pub struct Volume {
    files: Vec<File>,
    map: VolumeMap,
    access: Access,
}

/// How a volume is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// For writing too. Without it the kernel itself refuses every write.
    pub write: bool,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
}

impl Volume {
    /// Opens `members`, which `map` describes.
    ///
    /// # Errors
    /// One of them cannot be opened in this way.
    pub fn open(members: &[PathBuf], map: VolumeMap, access: Access) -> Result<Self, Error> {
        let files = members.iter().map(|path| open_file(path, access)).collect::<Result<_, _>>()?;
        Ok(Self { files, map, access })
    }

    /// Refuses files that are not those in `judged`, in the same order: a path may have been led elsewhere between the
    /// guard's look and the opening.
    ///
    /// # Errors
    /// One of them is another file or device.
    pub fn refuse_exchanged(&self, judged: &[Identity]) -> Result<(), Error> {
        for (file, judged) in self.files.iter().zip(judged) {
            if identity_of_open(file)? != *judged {
                return Err(Error::asked(
                    "a target was exchanged for another file while Rigel looked at it; nothing was written",
                    "run it again, and leave the target alone meanwhile",
                ));
            }
        }
        Ok(())
    }

    /// Bytes of the volume.
    #[must_use]
    pub fn usable(&self) -> u64 {
        self.map.usable()
    }

    /// True if I/O goes past the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.access.direct
    }

    /// True if it was opened for writing too.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.access.write
    }

    /// The files, in the order of the volume.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The index of the file that holds the byte at `offset` of the volume, and its offset there.
    #[inline]
    #[must_use]
    pub fn locate(&self, offset: u64) -> (usize, u64) {
        self.map.locate(offset)
    }
}

fn open_file(path: &Path, access: Access) -> Result<File, Error> {
    let direct = if access.direct { libc::O_DIRECT } else { 0 };
    // A device that is to be written is held exclusively: from here on nobody can mount it.
    let is_device = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
    let exclusive = if access.write && is_device { libc::O_EXCL } else { 0 };
    let open =
        |flags| OpenOptions::new().read(true).write(access.write).custom_flags(direct | exclusive | flags).open(path);
    // Without the time of last access: reading must not write. Only the owner may ask for that, so others go without.
    open(libc::O_NOATIME).or_else(|_| open(0)).map_err(|error| {
        let (how, cure) = match error.raw_os_error() {
            Some(libc::EINVAL) if access.direct => (
                " for direct I/O",
                "its filesystem has no direct I/O: name a file on another, or measure the page cache with --buffered",
            ),
            Some(libc::EACCES | libc::EPERM) => ("", "run as a user who may open it"),
            Some(libc::EBUSY) => ("", "somebody took it for his own just now (mounted it, for one): name another"),
            _ => ("", ""),
        };
        Error::failed(format!("cannot open '{}'{how}: {error}", path.display()), cure)
    })
}
