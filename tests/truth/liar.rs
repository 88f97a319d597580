//! A device that stores what is written, and lies: one file in a filesystem of this process.
//!
//! Input: a [`Lie`]. Output: a path to read and write with direct I/O, and which of its blocks are wrong now, and how. It
//! knows nothing of Rigel's code but the content that the file begins with.

use super::device::{FILE, FOR_EVER, Mounted, NAME, attributes, lock};
use fuser::{
    Errno, FileHandle, Filesystem, Generation, INodeNo, InitFlags, KernelConfig, LockOwner,
    MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, ReplyWrite, Request, WriteFlags,
};
use rigel_model::WrongBytes;
use rigel_model::workload::content::{SECTOR, Sectors};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Bytes of the blocks that it is written in.
pub(crate) const BLOCK: u64 = 8192;
/// One of this number of writes is not stored as it was asked for.
const ONE_IN: u64 = 7;
/// Bytes of a torn write that are stored.
const TORN: usize = 4096;
/// The identity of the file that it begins with.
const IDENTITY: u64 = 0x5157_1234;

/// What the device does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    /// Nothing.
    None,
    /// It acknowledges a write, and stores nothing.
    Lose,
    /// It stores the first 4 KiB of a write.
    Tear,
    /// It stores a write one block farther on.
    Misdirect,
    /// It stores nothing at all, and answers reads with what the file began with, but for one bit at this byte.
    Flip(u64),
}

/// What it stores, and what is wrong of it.
#[derive(Debug, Default)]
struct Stored {
    bytes: Vec<u8>,
    writes: u64,
    wrong: BTreeMap<u64, WrongBytes>,
}

impl Stored {
    fn write(&mut self, lie: Lie, offset: u64, data: &[u8]) {
        self.writes += 1;
        let block = offset / BLOCK;
        let lies = self.writes.is_multiple_of(ONE_IN) && data.len() as u64 == BLOCK;
        let (at, stored) = match lie {
            Lie::Lose if lies => (block, 0),
            Lie::Tear if lies => (block, TORN),
            Lie::Misdirect if lies => ((block + 1) % (self.bytes.len() as u64 / BLOCK), data.len()),
            _ => (offset / BLOCK, data.len()),
        };
        let start = usize::try_from(at * BLOCK + offset % BLOCK).unwrap();
        self.bytes[start..start + stored].copy_from_slice(&data[..stored]);
        match lie {
            Lie::Tear if lies => _ = self.wrong.insert(block, WrongBytes::Torn),
            Lie::Lose if lies => _ = self.wrong.insert(block, WrongBytes::Stale),
            Lie::Misdirect if lies => {
                // What was directed here stays.
                self.wrong.entry(block).or_insert(WrongBytes::Stale);
                self.wrong.insert(at, WrongBytes::Misdirected);
            }
            _ => _ = self.wrong.remove(&block),
        }
    }
}

/// A mounted device, unmounted on drop.
pub(crate) struct Liar {
    /// Its only file.
    pub(crate) path: PathBuf,
    stored: Arc<Mutex<Stored>>,
    _mounted: Mounted,
}

impl Liar {
    /// Mounts a device of `bytes` in a directory of its own in `place`.
    pub(crate) fn mount(place: &Path, bytes: u64, lie: Lie) -> io::Result<Self> {
        let mut stored = Stored::default();
        if !matches!(lie, Lie::Flip(_)) {
            stored.bytes = vec![0; usize::try_from(bytes).expect("a small file")];
            Sectors::of_file(IDENTITY).write(&mut stored.bytes, 0, 1);
        }
        let stored = Arc::new(Mutex::new(stored));
        let server = Server {
            bytes,
            lie,
            sectors: Sectors::of_file(IDENTITY),
            stored: Arc::clone(&stored),
        };
        let mounted = Mounted::mount(server, place.join("liar"), (2, MountOption::NoAtime))?;
        Ok(Self {
            path: mounted.at.join(NAME),
            stored,
            _mounted: mounted,
        })
    }

    /// The blocks that are wrong now, and how a reader finds them.
    pub(crate) fn wrong(&self) -> BTreeMap<u64, WrongBytes> {
        lock(&self.stored).wrong.clone()
    }
}

struct Server {
    bytes: u64,
    lie: Lie,
    sectors: Sectors,
    stored: Arc<Mutex<Stored>>,
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let missing = |_| io::Error::other("no FUSE_ASYNC_DIO");
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(missing)
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&FOR_EVER, &attributes(FILE, self.bytes), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &attributes(inode, self.bytes));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let end = offset.saturating_add(size.into()).min(self.bytes);
        let length = usize::try_from(end.saturating_sub(offset)).unwrap();
        let Lie::Flip(at) = self.lie else {
            let start = usize::try_from(offset).unwrap();
            return reply.data(&lock(&self.stored).bytes[start..start + length]);
        };
        let mut data = vec![0; length];
        self.sectors.write(&mut data, offset / SECTOR as u64, 1);
        if (offset..end).contains(&at) {
            data[usize::try_from(at - offset).unwrap()] ^= 0x10;
        }
        reply.data(&data);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        lock(&self.stored).write(self.lie, offset, data);
        reply.written(u32::try_from(data.len()).unwrap());
    }
}
