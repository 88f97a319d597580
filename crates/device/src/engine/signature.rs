//! Identifies the content of a file or device by its bytes: a filesystem, a partition table, a
//! database file.
//!
//! Input: the first and the last bytes. Output: the name of the content, with its article, or
//! nothing. It does not read the target itself. Random bytes match with a probability below 1 in
//! 10^9, over all tests: every test compares at least five bytes, or a shorter magic number and
//! further fields that must agree.

use rigel_model::{KIB, MIB};

/// Number of bytes that [`signature`] checks at both ends.
pub const REACH: u64 = MIB + 64 * KIB;

/// The content of a file or device of `size` bytes, by its first bytes `head` and its last bytes
/// `tail`. Each should be [`REACH`] long, or as long as the target.
pub fn signature(head: &[u8], tail: &[u8], size: u64) -> Option<&'static str> {
    let ends = TargetEnds {
        head,
        tail,
        tail_start: size.saturating_sub(tail.len() as u64),
        size,
    };
    let fixed = MAGIC
        .iter()
        .find(|(offset, magic, _)| ends.has(*offset, magic))
        .map(|(_, _, name)| *name);
    fixed
        .or_else(|| SHAPES.iter().find_map(|shape| shape(&ends)))
        // Last, because filesystems leave the first sector free for the signature of a partition
        // table.
        .or_else(|| partition_table(&ends))
}

const ASM: &str = "an Oracle ASM disk";
const LVM: &str = "an LVM physical volume";
const LUKS: &str = "an encrypted (LUKS) volume";
const SWAP: &str = "swap space";
const SUSPENDED: &str = "a suspended system's memory";
const BTRFS: &str = "a btrfs filesystem";
const FAT: &str = "a FAT filesystem";
const REISER: &str = "a Reiser filesystem";
const OCFS2: &str = "an OCFS2 filesystem";
const GPT: &str = "a partition table (GPT)";
const MYSQL_LOG: &str = "a MySQL or MariaDB redo log";
const INNODB: &str = "an InnoDB tablespace";
const POSTGRES: &str = "a PostgreSQL data file";
const BERKELEY: &str = "a Berkeley DB file";
const CRAMFS: &str = "a cramfs filesystem";
const MAC: &str = "a partition table (Apple)";
const BSD: &str = "a partition table (BSD)";
const THIN: &str = "the metadata of a thin pool (device mapper)";
const DM_CACHE: &str = "the metadata of a cache (device mapper)";
const DM_ERA: &str = "the metadata of dm-era (device mapper)";
const DM_CLONE: &str = "the metadata of a clone (device mapper)";
const WRITECACHE: &str = "a write cache (device mapper)";
const DM_RAID: &str = "the metadata of a RAID array (device mapper)";
const BOLT: &str = "a bolt (etcd) database";

/// Magic numbers at fixed offsets, at least five bytes long. Offsets as in the programs that write
/// them; most agree with libblkid.
const MAGIC: &[(u64, &[u8], &str)] = &[
    (32, b"ORCLDISK", ASM),
    (0, b"LABELONE", LVM),
    (512, b"LABELONE", LVM),
    (1024, b"LABELONE", LVM),
    (1536, b"LABELONE", LVM),
    (0, b"LUKS\xba\xbe", LUKS),
    (16 * KIB, b"SKUL\xba\xbe", LUKS),
    (32 * KIB, b"SKUL\xba\xbe", LUKS),
    // In the last ten bytes of the first page, whose size depends on the processor.
    (4 * KIB - 10, b"SWAPSPACE2", SWAP),
    (8 * KIB - 10, b"SWAPSPACE2", SWAP),
    (16 * KIB - 10, b"SWAPSPACE2", SWAP),
    (32 * KIB - 10, b"SWAPSPACE2", SWAP),
    (64 * KIB - 10, b"SWAPSPACE2", SWAP),
    (4 * KIB - 10, b"SWAP-SPACE", SWAP),
    (4 * KIB - 10, b"S1SUSPEND", SUSPENDED),
    (4 * KIB - 10, b"S2SUSPEND", SUSPENDED),
    (4 * KIB - 10, b"LINHIB0001", SUSPENDED),
    (64 * KIB + 64, b"_BHRfS_M", BTRFS),
    (3, b"NTFS    ", "an NTFS filesystem"),
    (3, b"-FVE-FS-", "an encrypted (BitLocker) volume"),
    (3, b"EXFAT   ", "an exFAT filesystem"),
    (82, b"FAT32   ", FAT),
    (54, b"FAT12   ", FAT),
    (54, b"FAT16   ", FAT),
    (54, b"FAT     ", FAT),
    (32 * KIB + 1, b"CD001", "an ISO 9660 filesystem"),
    (32 * KIB + 1, b"BEA01", "a UDF filesystem"),
    (
        4 * KIB + 24,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
        "a bcachefs filesystem",
    ),
    (
        4 * KIB + 24,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        "a bcache or bcachefs device",
    ),
    (3, b"ReFS\0\0\0\0", "a ReFS filesystem"),
    (0, b"-rom1fs-", "a romfs filesystem"),
    (16, b"Compressed ROMFS", CRAMFS),
    (512 + 16, b"Compressed ROMFS", CRAMFS),
    // The first entry of the map describes the map itself, one block from the start.
    (512 + 48, b"Apple_partition_map", MAC),
    (2 * KIB + 48, b"Apple_partition_map", MAC),
    (0, b"bluestore block device", "a Ceph BlueStore device"),
    (64 * KIB + 52, b"ReIsErFs", REISER),
    (64 * KIB + 52, b"ReIsEr2Fs", REISER),
    (64 * KIB + 52, b"ReIsEr3Fs", REISER),
    (8 * KIB + 52, b"ReIsErFs", REISER),
    (KIB, b"OCFSV2", OCFS2),
    (2 * KIB, b"OCFSV2", OCFS2),
    (4 * KIB, b"OCFSV2", OCFS2),
    (8 * KIB, b"OCFSV2", OCFS2),
    (64 * KIB, b"\x01\x16\x19\x70\0\0\0\x01", "a GFS2 filesystem"),
    (516, b"!Stra0tis\x86\xff\x02", "a Stratis device"),
    (0, b"dmvdo001", "a VDO device"),
    (0, b"integrt\0", "a dm-integrity device"),
    (0, b"verity\0\0", "a dm-verity device"),
    // Superblocks of the kernel's device mapper: a checksum, flags, the number of the block, a UUID, and a magic
    // number of eight bytes.
    (32, &27_022_010_u64.to_le_bytes(), THIN),
    (32, &0o6_142_003_u64.to_le_bytes(), DM_CACHE),
    (32, &2_126_579_579_u64.to_le_bytes(), DM_ERA),
    (32, &0x8af2_7f64_u64.to_le_bytes(), DM_CLONE),
    // Four bytes of a magic number, then a version, or features (0 or 1).
    (0, b"\x21\x93\x48\x23\x01\0\0\0", WRITECACHE),
    (0, b"\x21\x93\x48\x23\x02\0\0\0", WRITECACHE),
    (0, b"DmRd\0\0\0\0", DM_RAID),
    (0, b"DmRd\x01\0\0\0", DM_RAID),
    (512, b"EFI PART", GPT),
    (KIB, b"EFI PART", GPT),
    (2 * KIB, b"EFI PART", GPT),
    (4 * KIB, b"EFI PART", GPT),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (16, b"MySQL ", MYSQL_LOG),
    (16, b"MariaDB ", MYSQL_LOG),
    (0, b"\xfe\xfe\x07\x01\x00", "a MyISAM index"),
    // Magic number 120897, major version 1, minor version 0.
    (
        0,
        b"\x41\xd8\x01\x00\x01\x00\x00\x00",
        "a WiredTiger (MongoDB) file",
    ),
    (16, b"\xde\xc0\xef\xbe\x01\x00\x00\x00", "an LMDB database"),
    // The two first pages, 4 KiB each: a header of 16 bytes, magic number, version 2.
    (16, b"\xed\xda\x0c\xed\x02\0\0\0", BOLT),
    (4 * KIB + 16, b"\xed\xda\x0c\xed\x02\0\0\0", BOLT),
    (0, b"REDIS00", "a Redis dump"),
    (0, b"PGDMP", "a PostgreSQL dump"),
    (0, b"vhdxfile", "a disk image (VHDX)"),
    (0, b"conectix", "a disk image (VHD)"),
    (
        64,
        b"\x7f\x10\xda\xbe\x01\x00\x01\x00",
        "a disk image (VDI)",
    ),
];

/// Formats identified by several fields that must agree.
const SHAPES: &[fn(&TargetEnds) -> Option<&'static str>] = &[
    ext,
    other_filesystem,
    xfs_log,
    ufs,
    zfs,
    raid,
    snapshot,
    older_partition_table,
    at_the_end,
    oracle,
    innodb,
    postgres_control,
    postgres_log,
    postgres_page,
    other_database,
    disk_image,
];

/// Both ends of a target, addressed from its start.
struct TargetEnds<'a> {
    head: &'a [u8],
    tail: &'a [u8],
    tail_start: u64,
    size: u64,
}

impl TargetEnds<'_> {
    fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let within = |bytes: &'_ [u8], offset: u64| {
            let start = usize::try_from(offset).ok()?;
            let end = start.checked_add(length)?;
            (end <= bytes.len()).then_some((start, end))
        };
        if let Some((start, end)) = within(self.head, offset) {
            return Some(&self.head[start..end]);
        }
        let (start, end) = within(self.tail, offset.checked_sub(self.tail_start)?)?;
        Some(&self.tail[start..end])
    }

    fn has(&self, offset: u64, magic: &[u8]) -> bool {
        self.at(offset, magic.len()) == Some(magic)
    }

    /// True if `magic` is `back` bytes before the end.
    fn ends_with(&self, back: u64, magic: &[u8]) -> bool {
        self.size
            .checked_sub(back)
            .is_some_and(|offset| self.has(offset, magic))
    }

    fn array<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        self.at(offset, N)?.try_into().ok()
    }

    fn le16(&self, offset: u64) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    fn le32(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    fn be16(&self, offset: u64) -> Option<u16> {
        self.array(offset).map(u16::from_be_bytes)
    }

    fn be32(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_be_bytes)
    }
}

/// True for a power of two between `least` and `most`, as block sizes are.
fn is_block_size(value: u32, least: u32, most: u32) -> bool {
    value.is_power_of_two() && (least..=most).contains(&value)
}

/// The magic number has only two bytes, so revision, state, block size and error behaviour must be
/// valid too.
fn ext(ends: &TargetEnds) -> Option<&'static str> {
    const BLOCK: u64 = 1024;
    let sane = ends.le16(BLOCK + 56)? == 0xef53
        && ends.le16(BLOCK + 58)? <= 7
        && ends.le16(BLOCK + 60)? <= 3
        && ends.le32(BLOCK + 24)? <= 6
        && ends.le32(BLOCK + 76)? <= 1;
    if !sane {
        return None;
    }
    // Extents, 64 bits, flexible groups: features that only ext4 has.
    if ends.le32(BLOCK + 96)? & 0x2c0 != 0 {
        Some("an ext4 filesystem")
    } else if ends.le32(BLOCK + 92)? & 4 != 0 {
        Some("an ext3 filesystem")
    } else {
        Some("an ext2 filesystem")
    }
}

fn other_filesystem(ends: &TargetEnds) -> Option<&'static str> {
    let block_size =
        |value: Option<u32>, most: u32| value.is_some_and(|value| is_block_size(value, 512, most));
    if ends.has(0, b"XFSB")
        && block_size(ends.be32(4), 65536)
        && block_size(ends.be16(102).map(u32::from), 32768)
    {
        Some("an XFS filesystem")
    } else if ends.has(1024, b"\x10\x20\xf5\xf2")
        && ends.le32(1032).is_some_and(|log| (9..=12).contains(&log))
    {
        Some("an F2FS filesystem")
    } else if ends.has(1024, b"\xe2\xe1\xf5\xe0")
        && ends
            .at(1036, 1)
            .is_some_and(|bits| (9..=16).contains(&bits[0]))
    {
        Some("an EROFS filesystem")
    } else if ends.has(32 * KIB, b"JFS1")
        && ends.le32(32 * KIB + 4).is_some_and(|version| version <= 2)
    {
        Some("a JFS filesystem")
    } else if ends.has(0, b"hsqs") && ends.le16(28) == Some(4) {
        Some("a squashfs filesystem")
    } else if ends.has(32, b"NXSB") && block_size(ends.le32(36), 65536) {
        Some("an APFS filesystem")
    } else if (ends.has(1024, b"H+\0\x04") || ends.has(1024, b"HX\0\x05"))
        && block_size(ends.be32(1064), 1 << 20)
    {
        Some("an HFS+ filesystem")
    } else if [(KIB, false), (8 * KIB, true)]
        .into_iter()
        .any(|(at, big)| is_vxfs(ends, at, big))
    {
        Some("a VxFS filesystem")
    } else if ends.le32(0) == Some(0x1bad_face)
        && ends
            .le32(4)
            .is_some_and(|start| (512..1 << 20).contains(&start))
    {
        Some("a BFS filesystem")
    } else if ends.has(MIB, b"\x0d\xd0\x01\xc0")
        && ends.le32(MIB + 4).is_some_and(|version| version <= 64)
    {
        Some("a VMFS filesystem")
    } else {
        None
    }
}

/// The log of an XFS filesystem on a device of its own. A record begins at any sector, as the log is a ring, and is
/// 256 KiB at most: magic number, cycle, version 1 or 2, length, and the record's own position, which begins with the
/// cycle.
fn xfs_log(ends: &TargetEnds) -> Option<&'static str> {
    const RECORD_MAX: u32 = 256 << 10;
    let is_record = |at: u64| {
        ends.be32(at) == Some(0xfeed_babe)
            && matches!(ends.be32(at + 8), Some(1 | 2))
            && ends
                .be32(at + 12)
                .is_some_and(|length| length <= RECORD_MAX)
            && ends.be32(at + 4).is_some_and(|cycle| cycle > 0)
            && ends.be32(at + 4) == ends.be32(at + 16)
    };
    (0..MIB)
        .step_by(512)
        .any(is_record)
        .then_some("the log of an XFS filesystem")
}

/// Magic number and version, in the byte order of the machine that wrote it.
fn is_vxfs(ends: &TargetEnds, at: u64, big: bool) -> bool {
    let field = |offset| {
        if big {
            ends.be32(at + offset)
        } else {
            ends.le32(at + offset)
        }
    };
    field(0) == Some(0xa501_fcf5) && field(4).is_some_and(|version| (1..=32).contains(&version))
}

/// UFS1 and UFS2: the superblock is at one of four offsets, with its magic number at its end, and
/// valid block and fragment sizes.
fn ufs(ends: &TargetEnds) -> Option<&'static str> {
    // BSD first, then the variants of Solaris, HP-UX and others.
    const MAGICS: [u32; 6] = [
        0x0001_1954,
        0x1954_0119,
        0x0009_5014,
        0x0019_5612,
        0x0523_1994,
        0x0061_2195,
    ];
    let is_ufs = [0, 8 * KIB, 64 * KIB, 256 * KIB].into_iter().any(|at| {
        [TargetEnds::le32, TargetEnds::be32]
            .into_iter()
            .any(|read| {
                let is_size = |offset, least| {
                    read(ends, at + offset).is_some_and(|size| is_block_size(size, least, 65536))
                };
                read(ends, at + 1372).is_some_and(|magic| MAGICS.contains(&magic))
                    && is_size(48, 4096)
                    && is_size(52, 512)
            })
    });
    is_ufs.then_some("a UFS filesystem")
}

/// Changes since a snapshot (device mapper): magic number, valid flag, version 1, sectors per
/// chunk.
fn snapshot(ends: &TargetEnds) -> Option<&'static str> {
    let is_header = ends.has(0, b"SnAp") && ends.le32(4)? <= 1 && ends.le32(8)? == 1;
    (is_header && is_block_size(ends.le32(12)?, 1, 1 << 20))
        .then_some("a snapshot's changes (device mapper)")
}

/// BSD's label, which contains its magic number twice, and Sun's, whose 16-bit words have an XOR of
/// zero.
fn older_partition_table(ends: &TargetEnds) -> Option<&'static str> {
    let magic = 0x8256_4557_u32.to_le_bytes();
    if [0, 64, 128, 512]
        .into_iter()
        .any(|at| ends.has(at, &magic) && ends.has(at + 132, &magic))
    {
        return Some(BSD);
    }
    let words = ends
        .at(0, 512)?
        .chunks_exact(2)
        .fold(0, |sum, word| sum ^ u16::from_be_bytes([word[0], word[1]]));
    // Heads and sectors per track.
    let has_geometry = ends.be16(436)? > 0 && ends.be16(438)? > 0;
    (ends.be16(508)? == 0xdabe && words == 0 && has_geometry).then_some("a partition table (Sun)")
}

/// A ring of 128 uberblocks, 1 KiB apart, in the second half of each of four labels: two at the
/// start, two at the end.
fn zfs(ends: &TargetEnds) -> Option<&'static str> {
    const LABEL: u64 = 256 * KIB;
    let end = ends.size / LABEL * LABEL;
    let labels = [
        Some(0),
        Some(LABEL),
        end.checked_sub(2 * LABEL),
        end.checked_sub(LABEL),
    ];
    let magic = 0x00ba_b10c_u64;
    let is_zfs = labels.into_iter().flatten().any(|label| {
        (0..128).any(|slot| {
            let offset = label + 128 * KIB + slot * KIB;
            ends.has(offset, &magic.to_le_bytes()) || ends.has(offset, &magic.to_be_bytes())
        })
    });
    is_zfs.then_some("a member of a ZFS pool")
}

/// Superblocks of Linux software RAID are at the start, 4 KiB from it, or near the end, depending
/// on their version.
fn raid(ends: &TargetEnds) -> Option<&'static str> {
    const NAME: &str = "a member of a RAID array (md)";
    const MAGIC: u32 = 0xa92b_4efc;
    let version_1 = [
        Some(0),
        Some(4 * KIB),
        (ends.size / 512)
            .checked_sub(16)
            .map(|sector| sector / 8 * 8 * 512),
    ];
    if version_1
        .into_iter()
        .flatten()
        .any(|at| ends.le32(at) == Some(MAGIC) && ends.le32(at + 4) == Some(1))
    {
        return Some(NAME);
    }
    let version_0 = (ends.size / (64 * KIB) * (64 * KIB)).checked_sub(64 * KIB)?;
    let big = ends.be32(version_0) == Some(MAGIC) && ends.be32(version_0 + 8) == Some(90);
    let little = ends.le32(version_0) == Some(MAGIC) && ends.le32(version_0 + 8) == Some(90);
    (big || little).then_some(NAME)
}

fn at_the_end(ends: &TargetEnds) -> Option<&'static str> {
    if ends.ends_with(512, b"EFI PART") || ends.ends_with(4096, b"EFI PART") {
        Some("the backup of a partition table (GPT)")
    } else if ends.ends_with(1024, b"Intel Raid ISM Cfg Sig. ") {
        Some("a member of a RAID array (Intel)")
    } else if ends.ends_with(ends.size % 512 + 512, b"$XIDE$") {
        Some("a member of a RAID array (LSI MegaRAID)")
    } else if is_ddf(ends) {
        Some("a member of a RAID array (DDF)")
    } else if ends.ends_with(512, b"conectix") {
        Some("a disk image (VHD)")
    } else if ends.ends_with(8, &0x88e2_41b7_85f4_cff7_u64.to_le_bytes())
        || ends.ends_with(8, &0xdb47_7524_8b80_fb57_u64.to_le_bytes())
    {
        Some("a RocksDB or LevelDB table")
    } else {
        drbd(ends)
    }
}

/// The header in the last sector: magic number, checksum, 24 bytes of a name, a revision such as
/// `02.00.00`.
fn is_ddf(ends: &TargetEnds) -> bool {
    let Some(at) = (ends.size / 512 * 512).checked_sub(512) else {
        return false;
    };
    let is_magic = ends.has(at, b"\xde\x11\xde\x11") || ends.has(at, b"\x11\xde\x11\xde");
    is_magic && ends.has(at + 34, b".") && ends.has(at + 37, b".")
}

/// DRBD stores its metadata in the last 4 KiB: the size of the device in sectors, identifiers,
/// flags, a magic number.
fn drbd(ends: &TargetEnds) -> Option<&'static str> {
    let offset = (ends.size / (4 * KIB) * (4 * KIB)).checked_sub(4 * KIB)?;
    let magic = matches!(ends.be32(offset + 60)?, 0x8374_026b..=0x8374_026d);
    let plausible = ends.be16(offset)? == 0 && ends.be32(offset + 4)? > 0;
    (magic && plausible).then_some("a DRBD device")
}

/// The header block of every Oracle database file: block size at 20, the bytes `}|{z` at 28.
fn oracle(ends: &TargetEnds) -> Option<&'static str> {
    let (size, magic) = (ends.array::<4>(20)?, ends.array::<4>(28)?);
    let block = match &magic {
        b"}|{z" => u32::from_le_bytes(size),
        b"z{|}" => u32::from_be_bytes(size),
        _ => return None,
    };
    is_block_size(block, 512, 32768).then_some(match ends.at(1, 1)?[0] {
        0x22 => "an Oracle redo log",
        0xc2 => "an Oracle control file",
        _ => "an Oracle data file",
    })
}

/// Page 0 of a tablespace: number 0, type 8 (space header), and the space ID twice.
fn innodb(ends: &TargetEnds) -> Option<&'static str> {
    let header = ends.be32(4)? == 0 && ends.be16(24)? == 8;
    let space = ends.be32(34)? == ends.be32(38)? && ends.be32(42)? == 0 && ends.be32(46)? > 0;
    (header && space).then_some(INNODB)
}

/// `pg_control`: a version such as 1300, a catalogue version such as 202209061, a state from 0 to
/// 6.
fn postgres_control(ends: &TargetEnds) -> Option<&'static str> {
    let version = (800..=3000).contains(&ends.le32(8)?);
    let catalogue = (200_000_000..=210_000_000).contains(&ends.le32(12)?);
    (version && catalogue && ends.le32(16)? <= 6).then_some("a PostgreSQL control file")
}

/// The first page of a WAL segment: magic 0xd0.. or 0xd1.., a long header with the sizes of segment
/// and page.
fn postgres_log(ends: &TargetEnds) -> Option<&'static str> {
    let magic = matches!(ends.le16(0)? >> 8, 0xd0 | 0xd1) && ends.le16(2)? & !0xd == 2;
    let sizes = is_block_size(ends.le32(32)?, 1 << 20, 1 << 30)
        && is_block_size(ends.le32(36)?, 1024, 65536);
    (magic && sizes).then_some("a PostgreSQL log segment")
}

/// A page of a table or index. It has no magic number: size and version, flags, and the order of
/// its three pointers must agree, which random bytes do once in 2·10^12. The first page may be new
/// and all zeros, so several are tried.
fn postgres_page(ends: &TargetEnds) -> Option<&'static str> {
    (0..16)
        .any(|page| is_postgres_page(ends, page * 8 * KIB).unwrap_or(false))
        .then_some(POSTGRES)
}

fn is_postgres_page(ends: &TargetEnds, at: u64) -> Option<bool> {
    const HEADER: u16 = 24;
    // Indexes use 8 to 16 bytes at the end of a page, tables none.
    const SPECIAL_MAX: u16 = 64;
    let [flags, lower, upper, special, size_and_version] =
        [10, 12, 14, 16, 18].map(|field| ends.le16(at + field));
    let (flags, lower, upper, special, size_and_version) =
        (flags?, lower?, upper?, special?, size_and_version?);
    let (size, version) = (size_and_version & 0xff00, size_and_version & 0xff);
    Some(
        is_block_size(size.into(), 1024, 32768)
            && (3..=5).contains(&version)
            && flags <= 7
            && (HEADER..=upper).contains(&lower)
            && upper <= special
            && (size - SPECIAL_MAX..=size).contains(&special)
            && special.is_multiple_of(8),
    )
}

fn other_database(ends: &TargetEnds) -> Option<&'static str> {
    // Page 0 of file 1 or later: header version 1, type 15 (file header), page number 0 at 32.
    let sql_server = ends.has(0, b"\x01\x0f\0\0")
        && ends.le32(32) == Some(0)
        && matches!(ends.le16(36), Some(1..=32767));
    let berkeley = [0x0005_3162, 0x0006_1561, 0x0004_2253]
        .iter()
        .any(|magic| ends.le32(12) == Some(*magic))
        && ends
            .le32(16)
            .is_some_and(|version| (1..=20).contains(&version));
    if sql_server {
        Some("an SQL Server data file")
    } else if berkeley {
        Some(BERKELEY)
    } else if is_lucene(ends).unwrap_or(false) {
        Some("a Lucene (Elasticsearch, Solr) index")
    } else {
        None
    }
}

/// A Lucene header: magic number, then the length of a name and the name, of letters and digits.
fn is_lucene(ends: &TargetEnds) -> Option<bool> {
    let [length] = ends.array(4)?;
    let name = ends.at(5, length.into())?;
    Some(
        ends.be32(0)? == 0x3fd7_6c17
            && name.len() >= 4
            && name.iter().all(u8::is_ascii_alphanumeric),
    )
}

fn disk_image(ends: &TargetEnds) -> Option<&'static str> {
    let small = |version: Option<u32>| version.is_some_and(|version| (1..=4).contains(&version));
    if ends.has(0, b"QFI\xfb") && small(ends.be32(4)) {
        Some("a disk image (qcow)")
    } else if ends.has(0, b"KDMV") && small(ends.le32(4)) {
        Some("a disk image (VMDK)")
    } else {
        None
    }
}

/// A master boot record: its signature of two bytes, and four entries, each empty or plausible, at
/// least one not empty.
fn partition_table(ends: &TargetEnds) -> Option<&'static str> {
    if !ends.has(510, b"\x55\xaa") {
        return None;
    }
    let mut used = 0;
    for entry in 0..4 {
        let entry = ends.at(446 + 16 * entry, 16)?;
        let number = |at: usize| {
            u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
        };
        let plausible =
            matches!(entry[0], 0 | 0x80) && entry[4] != 0 && number(8) > 0 && number(12) > 0;
        if plausible {
            used += 1;
        } else if entry.iter().any(|byte| *byte != 0) {
            return None;
        }
    }
    (used > 0).then_some("a partition table (MBR)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rigel_model::workload::content;
    use rigel_model::workload::rng::Rng;

    /// Zeros, with the given bytes at the given offsets.
    fn image(size: usize, pieces: &[(usize, &[u8])]) -> Vec<u8> {
        let mut image = vec![0; size];
        for (offset, bytes) in pieces {
            image[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        image
    }

    fn of(image: &[u8]) -> Option<&'static str> {
        let reach = usize::try_from(REACH).unwrap().min(image.len());
        signature(
            &image[..reach],
            &image[image.len() - reach..],
            image.len() as u64,
        )
    }

    #[test]
    fn every_fixed_signature_is_found_at_its_offset() {
        for (offset, magic, name) in MAGIC {
            assert!(magic.len() >= 5, "{name}: too short to tell it from chance");
            assert_eq!(
                of(&image(
                    2 << 20,
                    &[(usize::try_from(*offset).unwrap(), magic)]
                )),
                Some(*name)
            );
        }
    }

    #[test]
    fn zeros_text_and_nothing_at_all_are_nothing() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&vec![0; 4 << 20]), None);
        assert_eq!(of(&vec![0xff; 4 << 20]), None);
        assert_eq!(
            of(&b"The quick brown fox jumps over the lazy dog.\n".repeat(50_000)),
            None
        );
    }

    #[test]
    fn random_data_is_nothing() {
        let mut rng = Rng::new(7, 0);
        let mut bytes = vec![0; 128 << 10];
        for _ in 0..20 {
            content::fill(&mut bytes, &mut rng);
            assert_eq!(of(&bytes), None);
        }
    }

    #[test]
    fn a_page_of_random_bytes_fails_where_a_page_of_postgres_passes() {
        // A table page of 8 KiB with three rows: pointers up to 36 bytes, rows from 8000, no
        // special space.
        let header: Vec<u8> = [0u16, 0, 0, 0, 0, 0, 36, 8000, 8192, 0x2004]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        assert_eq!(of(&image(8192, &[(0, &header)])), Some(POSTGRES));
        // The first page is new, the second is not.
        assert_eq!(of(&image(16384, &[(8192, &header)])), Some(POSTGRES));
        for field in [10, 12, 14, 16, 18] {
            let mut broken = header.clone();
            broken[field] ^= 0xff;
            broken[field + 1] ^= 0xff;
            assert_eq!(of(&image(8192, &[(0, &broken)])), None, "field at {field}");
        }
        // With valid size and flags, how often do random pointers agree?
        let mut rng = Rng::new(3, 0);
        let mut page = vec![0; 8192];
        let passed = (0..20_000).filter(|_| {
            content::fill(&mut page[..24], &mut rng);
            page[18..20].copy_from_slice(&0x2004u16.to_le_bytes());
            page[10..12].fill(0);
            of(&page).is_some()
        });
        assert_eq!(passed.count(), 0);
    }

    #[test]
    fn database_files_are_recognised_by_consistent_fields() {
        let oracle = |kind: u8| {
            image(
                8192,
                &[(0, &[0, kind]), (20, &8192u32.to_le_bytes()), (28, b"}|{z")],
            )
        };
        assert_eq!(of(&oracle(0xa2)), Some("an Oracle data file"));
        assert_eq!(of(&oracle(0x22)), Some("an Oracle redo log"));
        assert_eq!(of(&oracle(0xc2)), Some("an Oracle control file"));
        let space = 23u32.to_be_bytes();
        let innodb = image(
            16384,
            &[
                (0, b"sums"),
                (24, &[0, 8]),
                (34, &space),
                (38, &space),
                (46, &[0, 0, 0, 7]),
            ],
        );
        assert_eq!(of(&innodb), Some(INNODB));
        let (version, catalogue, state) = (
            1300u32.to_le_bytes(),
            202_209_061u32.to_le_bytes(),
            6u32.to_le_bytes(),
        );
        let control = image(
            8192,
            &[
                (0, b"identity"),
                (8, &version),
                (12, &catalogue),
                (16, &state),
            ],
        );
        assert_eq!(of(&control), Some("a PostgreSQL control file"));
        let log = image(
            8192,
            &[
                (0, &[0x10, 0xd1, 2, 0]),
                (32, &(16u32 << 20).to_le_bytes()),
                (36, &[0, 0x20]),
            ],
        );
        assert_eq!(of(&log), Some("a PostgreSQL log segment"));
    }

    #[test]
    fn rarer_filesystems_and_tables_are_recognised_by_their_fields() {
        let le = |value: u32| value.to_le_bytes();
        let be = |value: u32| value.to_be_bytes();
        let size = 1 << 20;
        let vxfs = image(size, &[(1024, &le(0xa501_fcf5)), (1028, &le(7))]);
        assert_eq!(of(&vxfs), Some("a VxFS filesystem"));
        assert_eq!(
            of(&image(size, &[(8192, &be(0xa501_fcf5)), (8196, &be(4))])),
            Some("a VxFS filesystem")
        );
        let sizes = [
            (8192 + 48, le(16384)),
            (8192 + 52, le(2048)),
            (8192 + 1372, le(0x0001_1954)),
        ];
        let sizes: Vec<_> = sizes.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
        assert_eq!(of(&image(size, &sizes)), Some("a UFS filesystem"));
        let sizes = [
            (65536 + 48, be(32768)),
            (65536 + 52, be(4096)),
            (65536 + 1372, be(0x1954_0119)),
        ];
        let sizes: Vec<_> = sizes.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
        assert_eq!(of(&image(size, &sizes)), Some("a UFS filesystem"));
        assert_eq!(of(&image(size, &[(65536 + 1372, &be(0x1954_0119))])), None);
        let changes = image(
            size,
            &[(0, b"SnAp"), (4, &le(1)), (8, &le(1)), (12, &le(8))],
        );
        assert_eq!(of(&changes), Some("a snapshot's changes (device mapper)"));
        let bsd = le(0x8256_4557);
        assert_eq!(of(&image(size, &[(512, &bsd), (644, &bsd)])), Some(BSD));
        assert_eq!(of(&image(size, &[(512, &bsd)])), None);
        let sun = |sum: u16| {
            image(
                size,
                &[
                    (436, &[0, 255, 0, 63]),
                    (508, &[0xda, 0xbe]),
                    (510, &sum.to_be_bytes()),
                ],
            )
        };
        assert_eq!(of(&sun(0xdabe ^ 255 ^ 63)), Some("a partition table (Sun)"));
        assert_eq!(of(&sun(1)), None);
        // A record of the second cycle, somewhere in the ring.
        let log = |version, cycle| {
            let record = [0xfeed_babe, 2, version, 512, cycle, 0x400]
                .map(be)
                .concat();
            image(2 << 20, &[(0xf_fe00, &record)])
        };
        assert_eq!(of(&log(1, 2)), Some("the log of an XFS filesystem"));
        assert_eq!(of(&log(2, 2)), Some("the log of an XFS filesystem"));
        assert_eq!(of(&log(3, 2)), None);
        assert_eq!(of(&log(2, 1)), None);
        let lucene = [b"\x3f\xd7\x6c\x17\x08segments".as_slice(), &[0, 0, 0, 10]].concat();
        assert_eq!(
            of(&image(size, &[(0, &lucene)])),
            Some("a Lucene (Elasticsearch, Solr) index")
        );
    }

    #[test]
    fn controllers_leave_their_marks_in_the_last_sector() {
        for size in [8 << 20, (8 << 20) + 512 * 7] {
            let last = size - 512;
            let lsi = image(size, &[(last, b"$XIDE$")]);
            assert_eq!(of(&lsi), Some("a member of a RAID array (LSI MegaRAID)"));
            let ddf = image(
                size,
                &[(last, b"\xde\x11\xde\x11"), (last + 32, b"02.00.00")],
            );
            assert_eq!(of(&ddf), Some("a member of a RAID array (DDF)"));
        }
    }

    #[test]
    fn signatures_at_the_end_are_found_from_the_end() {
        for size in [8 << 20, (8 << 20) + 512 * 7] {
            assert_eq!(
                of(&image(size, &[(size - 512, b"EFI PART")])),
                Some("the backup of a partition table (GPT)")
            );
            let uberblock = 0x00ba_b10cu64.to_le_bytes();
            let label = size / (256 << 10) * (256 << 10) - (256 << 10);
            assert_eq!(
                of(&image(size, &[(label + (130 << 10), &uberblock)])),
                Some("a member of a ZFS pool")
            );
            let superblock = (size / 512 - 16) / 8 * 8 * 512;
            let md = [0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0];
            assert_eq!(
                of(&image(size, &[(superblock, &md)])),
                Some("a member of a RAID array (md)")
            );
        }
    }

    #[test]
    fn a_boot_record_counts_if_its_entries_make_sense() {
        let entry = [0x80, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 0];
        assert_eq!(
            of(&image(1 << 20, &[(446, &entry), (510, b"\x55\xaa")])),
            Some("a partition table (MBR)")
        );
        assert_eq!(of(&image(1 << 20, &[(510, b"\x55\xaa")])), None);
        let mut odd = entry;
        odd[0] = 7;
        assert_eq!(
            of(&image(1 << 20, &[(446, &odd), (510, b"\x55\xaa")])),
            None
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(head in prop::collection::vec(any::<u8>(), 0..2000), size in any::<u64>()) {
            let _ = signature(&head, &head, size);
        }
    }
}
