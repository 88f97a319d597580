//! Facts about one file or device: kind, size, alignment, filesystem, and how much of it was ever
//! written.
//!
//! Input: an open target. Output: a [`VolumeMember`] of facts. It reads no data and changes
//! nothing, but asking for extents makes the filesystem flush delayed allocations. The observer,
//! not this module, looks up the disks below a member.

use super::mounts::{Mount, mount_of, mounts};
use super::opened::Opened;
use crate::observe::stack::{Node, Sys, device_number};
use rigel_model::{Bytes, Error, Extents, FileKind, VolumeMember, failed, files};
use rustix::fs::{AtFlags, StatxFlags};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Alignment if nothing is known: the smallest sector size.
const ALIGNMENT_MIN: u32 = 512;

/// Inspects an open file or device.
///
/// # Errors
/// The system does not report its size or location.
pub fn probe(target: &Opened) -> Result<VolumeMember, Error> {
    match target.kind() {
        FileKind::File => probe_file(target),
        FileKind::Device => probe_device(target),
    }
}

fn probe_file(target: &Opened) -> Result<VolumeMember, Error> {
    let (file, metadata) = (target.file(), target.metadata()?);
    let number = device_number(metadata.dev());
    // Unknown facts are left out here; the guard is what requires them.
    let mounts = mounts().unwrap_or_default();
    let mount = mount_of(
        &mounts,
        files::mount_of(target.file()).ok(),
        number,
        &target.place()?,
    );
    let device_number = disk_below(number, mount);
    // With 0 and 0 the kernel reports that the file has no direct I/O: then the device's block size
    // applies.
    let statx = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let asked_by_kernel = statx
        .filter(|answer| answer.stx_mask & StatxFlags::DIOALIGN.bits() != 0)
        .map(|answer| answer.stx_dio_mem_align.max(answer.stx_dio_offset_align))
        .filter(|alignment| *alignment > 0);
    Ok(VolumeMember {
        path: target.path().to_path_buf(),
        kind: FileKind::File,
        bytes: Bytes(metadata.len()),
        inode: metadata.ino(),
        alignment: asked_by_kernel
            .or_else(|| logical_block(device_number?))
            .unwrap_or(ALIGNMENT_MIN)
            .max(ALIGNMENT_MIN),
        atomic_write_max: atomic_write_max(file),
        filesystem: mount.map(|mount| mount.filesystem.clone()),
        mount_options: mount.map(|mount| mount.options.clone()),
        extents: extents(file, 0, metadata.len()),
        device_number,
        devices: Vec::new(),
    })
}

fn probe_device(target: &Opened) -> Result<VolumeMember, Error> {
    let bytes = target.bytes().map_err(|error| {
        failed!(
            "the size of '{path}' cannot be read: {error}",
            "",
            path = target.path().display()
        )
    })?;
    let number = device_number(target.metadata()?.rdev());
    let alignment = rustix::fs::ioctl_blksszget(target.file())
        .unwrap_or(ALIGNMENT_MIN)
        .max(ALIGNMENT_MIN);
    Ok(VolumeMember {
        path: target.path().to_path_buf(),
        kind: FileKind::Device,
        bytes: Bytes(bytes),
        inode: 0,
        alignment,
        atomic_write_max: atomic_write_max(target.file()),
        filesystem: None,
        mount_options: None,
        extents: extents_below(number, bytes),
        device_number: Some(number),
        devices: Vec::new(),
    })
}

/// The largest write that is stored as a whole or not at all, if it asks for that; `None` if the kernel names
/// none. Since Linux 6.11 (block devices), 6.13 (ext4, XFS): statx(2), `stx_atomic_write_unit_max`.
fn atomic_write_max(file: &File) -> Option<Bytes> {
    /// `STATX_WRITE_ATOMIC`.
    const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);
    let statx = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, WRITE_ATOMIC).ok()?;
    let is_told = statx.stx_mask & WRITE_ATOMIC.bits() != 0;
    let most = statx.stx_atomic_write_unit_max;
    (is_told && most > 0).then(|| Bytes(most.into()))
}

/// The filesystem that a directory or file lies in: its type, and its block device. `None` for
/// filesystems in memory, in layers and over a network, which have no device of their own.
///
/// # Errors
/// The path does not exist or may not be looked at.
pub fn filesystem_below(path: &Path) -> std::io::Result<(String, Option<(u32, u32)>)> {
    let place = path.canonicalize()?;
    let number = device_number(std::fs::metadata(&place)?.dev());
    let mounts = mounts().unwrap_or_default();
    let mount = mount_of(&mounts, None, number, &place);
    let name = mount.map_or("unknown", |mount| &mount.filesystem);
    Ok((name.to_string(), disk_below(number, mount)))
}

/// The block device of a filesystem with files of device `number`. btrfs and others invent a number
/// with major 0: there the device is the mount's source.
fn disk_below(number: (u32, u32), mount: Option<&Mount>) -> Option<(u32, u32)> {
    if number.0 != 0 {
        return Some(number);
    }
    let source = std::fs::metadata(&mount?.source).ok()?;
    source
        .file_type()
        .is_block_device()
        .then(|| device_number(source.rdev()))
}

/// Logical block size of a device that is not open, from /sys; for a partition, of its whole disk.
fn logical_block(number: (u32, u32)) -> Option<u32> {
    let node = Sys::default().node(number).ok()?;
    let disk = node.disk().unwrap_or(node);
    disk.text("queue/logical_block_size")?.parse().ok()
}

/// Maximum number of extents per call: 56 bytes each.
const EXTENTS_A_CALL: u16 = 256;
/// Flush delayed allocations first, otherwise they look like holes.
const FIEMAP_FLAG_SYNC: u32 = 1;
/// The last extent of the file.
const FIEMAP_EXTENT_LAST: u32 = 0x1;
/// Allocated and never written.
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;

/// `struct fiemap_extent` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// `struct fiemap` of the kernel, with space for the extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS_A_CALL as usize],
}

/// Allocation of what a loop device, or a partition of it, shows of its file; `None` for other devices.
fn extents_below(number: (u32, u32), size: u64) -> Option<Extents> {
    const SECTOR: u64 = 512;
    let node = Sys::default().node(number).ok()?;
    let disk = node.disk();
    let whole = disk.as_ref().unwrap_or(&node);
    let field = |node: &Node, name: &str| node.text(name)?.trim().parse::<u64>().ok();
    let file = Opened::open(&whole.backing_file()?).ok()?;
    let offset = field(whole, "loop/offset")?;
    let start = disk.as_ref().map_or(Some(0), |_| field(&node, "start"))? * SECTOR;
    (file.kind() == FileKind::File)
        .then(|| extents(file.file(), offset + start, size))
        .flatten()
}

/// Allocation of `size` bytes of the file from `start` on; `None` if the filesystem does not report it.
fn extents(file: &File, start: u64, size: u64) -> Option<Extents> {
    // FS_IOC_FIEMAP = _IOWR('f', 11, struct fiemap); its size does not include the extents.
    const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
    let mut tally = Tally {
        size,
        limit: start.saturating_add(size),
        end: start,
        extents: Extents::default(),
    };
    let mut flags = FIEMAP_FLAG_SYNC;
    loop {
        let mut request = Box::new(Fiemap {
            start: tally.end,
            length: u64::MAX - tally.end,
            flags,
            mapped: 0,
            room: EXTENTS_A_CALL.into(),
            reserved: 0,
            extents: [FiemapExtent::default(); EXTENTS_A_CALL as usize],
        });
        // SAFETY: the request is laid out as the kernel's and has room for as many extents as it
        // says.
        let result = unsafe {
            libc::ioctl(
                file.as_fd().as_raw_fd(),
                FS_IOC_FIEMAP as _,
                &raw mut *request,
            )
        };
        if result < 0 {
            return None;
        }
        let mapped = (request.mapped as usize).min(EXTENTS_A_CALL.into());
        let before = tally.end;
        let last = request.extents[..mapped]
            .iter()
            .any(|extent| tally.add(extent));
        if last || mapped == 0 || tally.end <= before {
            return Some(tally.finish());
        }
        flags = 0;
    }
}

/// Sums of extents, added in the order of the file.
struct Tally {
    size: u64,
    /// Where the part of the file ends.
    limit: u64,
    /// Where the last extent ended.
    end: u64,
    extents: Extents,
}

impl Tally {
    /// Adds one extent, without any part before or past the part of the file. Returns true if it is the last.
    fn add(&mut self, extent: &FiemapExtent) -> bool {
        let start = extent.logical.max(self.end);
        let end = extent.logical.saturating_add(extent.length);
        let inside = end.min(self.limit).saturating_sub(start);
        self.extents.count += 1;
        if extent.flags & FIEMAP_EXTENT_UNWRITTEN == 0 {
            self.extents.written.0 += inside;
        } else {
            self.extents.unwritten.0 += inside;
        }
        self.end = self.end.max(end);
        extent.flags & FIEMAP_EXTENT_LAST != 0
    }

    fn finish(mut self) -> Extents {
        self.extents.holes.0 = self.size - self.extents.written.0 - self.extents.unwritten.0;
        self.extents
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::temp_dir::TempDir;
    use proptest::prelude::*;
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    fn probe(path: &Path) -> VolumeMember {
        super::probe(&Opened::open(path).unwrap()).unwrap()
    }

    #[test]
    fn a_file_is_reported_with_its_size_and_written_extents() {
        let place = TempDir::new("probe-file");
        let path = place.0.join("file");
        File::create(&path)
            .unwrap()
            .write_all(&vec![7; 1 << 20])
            .unwrap();
        let member = probe(&path);
        assert_eq!(
            (member.kind, member.bytes),
            (FileKind::File, Bytes(1 << 20))
        );
        assert!(
            member.alignment >= 512 && member.alignment.is_power_of_two(),
            "{member:?}"
        );
        assert!(
            member.filesystem.is_some() && member.mount_options.is_some(),
            "{member:?}"
        );
        if let Some(extents) = member.extents {
            assert_eq!((extents.written, extents.holes), (Bytes(1 << 20), Bytes(0)));
        }
    }

    #[test]
    fn holes_are_counted_however_many_extents_there_are() {
        let place = TempDir::new("probe-sparse");
        let path = place.0.join("sparse");
        let file = File::create(&path).unwrap();
        // More extents than fit in one call: 1200 blocks of 4 KiB, a hole of 60 KiB after each.
        let blocks = 1200;
        file.set_len(blocks << 16).unwrap();
        for block in 0..blocks {
            file.write_all_at(&[1; 4096], block << 16).unwrap();
        }
        if let Some(extents) = probe(&path).extents {
            assert_eq!(extents.written.0, blocks * 4096, "{extents:?}");
            assert_eq!(extents.holes.0, blocks * (65536 - 4096), "{extents:?}");
            assert_eq!(extents.count, blocks);
        }
    }

    #[test]
    fn blocks_set_aside_and_never_written_are_counted_apart() {
        let place = TempDir::new("probe-unwritten");
        let path = place.0.join("unwritten");
        let file = File::create(&path).unwrap();
        if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 1 << 20).is_err() {
            return;
        }
        file.write_all_at(&[1; 8192], 0).unwrap();
        if let Some(extents) = probe(&path).extents {
            assert_eq!(
                (extents.written.0, extents.unwritten.0, extents.holes.0),
                (8192, (1 << 20) - 8192, 0)
            );
        }
    }

    proptest! {
        #[test]
        fn every_byte_of_a_file_is_written_unwritten_or_a_hole(
            size in 0u64..1 << 20, steps in prop::collection::vec((0u64..9000, 1u64..9000, any::<bool>()), 0..60)
        ) {
            let mut tally = Tally { size, limit: size, end: 0, extents: Extents::default() };
            let mut at = 0;
            for (gap, length, unwritten) in steps {
                at += gap;
                let flags = if unwritten { FIEMAP_EXTENT_UNWRITTEN } else { 0 };
                tally.add(&FiemapExtent { logical: at, length, flags, ..FiemapExtent::default() });
                at += length;
            }
            let extents = tally.finish();
            prop_assert_eq!(extents.written.0 + extents.unwritten.0 + extents.holes.0, size);
        }
    }
}
