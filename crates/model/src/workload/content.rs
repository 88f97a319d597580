//! Content of writes: sectors that describe themselves, and neither deduplicate nor compress.
//!
//! Input: a buffer and where it is written. Output: the same buffer with a sector of 512 bytes for each place, whose
//! every byte follows from the file, the place and the generation of the write. Read back, a sector tells whether it
//! is the one that was asked for, and which write it is of.
//!
//! A checksum would say the same at the price of a pass over the bytes and of the chance that it is met by accident.
//! Here every bit is compared, which is as fast as memory.

use super::rng::Rng;
use std::fmt;

/// Bytes of a sector: the smallest unit that storage writes, and in which it looks for duplicates.
pub const SECTOR: usize = 512;

/// Words of a sector.
const WORDS: usize = SECTOR / 8;

/// Words of a sector that say which one it is: its key, place, generation and file.
const HEAD: usize = 4;

/// Odd factors that hide place, generation and file behind the key, so that they do not compress.
const MASKS: [u64; HEAD] = [
    0,
    0x9e37_79b9_7f4a_7c15,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
];

/// The sectors of one file: all that can be in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sectors {
    file: u64,
    /// Each word of a sector of this file is one of these and the sector's key.
    base: [u64; WORDS],
}

/// Which sector it is, as it says itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectorName {
    /// The identity of its file.
    pub file: u64,
    /// Its number from the beginning of the file.
    pub number: u64,
    /// The write that it is of: later ones have higher numbers.
    pub generation: u64,
}

impl SectorName {
    /// The word that all others of the sector are combined with.
    #[inline]
    fn key(self) -> u64 {
        let place = self.file ^ self.number.wrapping_mul(MASKS[1]);
        mixed(mixed(place) ^ self.generation)
    }
}

/// The finaliser of splitmix64: each bit of the result depends on every bit of the word.
#[inline]
fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// What a sector holds that is not the one that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectorHeld {
    /// Another sector of its file, whole.
    OtherPlace(SectorName),
    /// A sector of another file, whole.
    OtherFile(SectorName),
    /// Nothing but zeros.
    Zeros,
    /// The sector that was asked for, but for these bits, of which the first is in byte `byte` of it.
    Flipped {
        /// Number of bits that differ.
        bits: u32,
        /// The first byte that does.
        byte: usize,
    },
    /// What no file of this kind holds.
    Unknown,
}

impl fmt::Display for SectorHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SectorHeld::OtherPlace(name) => write!(
                f,
                "it holds what was written at {}",
                name.number * SECTOR as u64
            ),
            SectorHeld::OtherFile(_) => f.write_str("it holds what was written to another file"),
            SectorHeld::Zeros => f.write_str("it holds zeros"),
            SectorHeld::Flipped { bits: 1, byte } => write!(f, "1 bit differs, in its byte {byte}"),
            SectorHeld::Flipped { bits, byte } => {
                write!(f, "{bits} bits differ, the first in its byte {byte}")
            }
            SectorHeld::Unknown => f.write_str("it holds what Rigel has not written"),
        }
    }
}

impl Sectors {
    /// The sectors of the file with this identity.
    pub fn of_file(file: u64) -> Self {
        let mut rng = Rng::new(file, 0);
        let base = std::array::from_fn(|_| rng.bits());
        Self { file, base }
    }

    /// The identity of the file.
    pub fn file(&self) -> u64 {
        self.file
    }

    /// Which sector `sector` is, of whatever file.
    pub fn named(sector: &[u8]) -> Option<SectorName> {
        let head = head(sector)?;
        let name = unmasked(head, head[0]);
        let is_one = name.key() == head[0] && Self::of_file(name.file).holds(sector, head[0]);
        is_one.then_some(name)
    }

    /// Writes the sectors from number `first` on into `buffer`; the last one may be cut off. A `generation` must not
    /// come twice for a sector, or a device that deduplicates has less to do than for a database.
    #[inline]
    pub fn write(&self, buffer: &mut [u8], first: u64, generation: u64) {
        let mut number = first;
        let mut sectors = buffer.chunks_exact_mut(SECTOR);
        for sector in &mut sectors {
            self.write_one(sector, number, generation);
            number += 1;
        }
        let rest = sectors.into_remainder();
        if !rest.is_empty() {
            let mut sector = [0; SECTOR];
            self.write_one(&mut sector, number, generation);
            rest.copy_from_slice(&sector[..rest.len()]);
        }
    }

    #[inline]
    fn write_one(&self, sector: &mut [u8], number: u64, generation: u64) {
        let name = SectorName {
            file: self.file,
            number,
            generation,
        };
        let key = name.key();
        for (bytes, base) in sector.chunks_exact_mut(8).zip(&self.base) {
            bytes.copy_from_slice(&(base ^ key).to_le_bytes());
        }
        for (bytes, word) in sector.chunks_exact_mut(8).zip(masked(name, key)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// The generation of sector `number`, as `sector` holds it; `None` if it is another or not whole.
    #[inline]
    pub fn read(&self, sector: &[u8], number: u64) -> Option<u64> {
        let head = head(sector)?;
        let key = head[0];
        let name = unmasked(head, key);
        let is_it = name.file == self.file && name.number == number && name.key() == key;
        (is_it && self.holds(sector, key)).then_some(name.generation)
    }

    /// True if all words behind the head are those of a sector with this key.
    #[inline]
    fn holds(&self, sector: &[u8], key: u64) -> bool {
        let words = words(sector).zip(&self.base).skip(HEAD);
        words.fold(0, |differ, (word, base)| differ | (word ^ base ^ key)) == 0
    }

    /// What `sector` holds, where [`read`](Self::read) does not find sector `number` in it.
    pub fn held(&self, sector: &[u8], number: u64) -> SectorHeld {
        if sector.iter().all(|byte| *byte == 0) {
            return SectorHeld::Zeros;
        }
        if let Some(name) = Self::named(sector) {
            return if name.file == self.file {
                SectorHeld::OtherPlace(name)
            } else {
                SectorHeld::OtherFile(name)
            };
        }
        let (Some(head), Some(key)) = (head(sector), self.commonest_key(sector)) else {
            return SectorHeld::Unknown;
        };
        let decoded = unmasked(head, key).generation;
        // One bit of the generation may be wrong as well.
        let generations = std::iter::once(decoded).chain((0..64).map(|bit| decoded ^ (1 << bit)));
        let mut names = generations.map(|generation| SectorName {
            file: self.file,
            number,
            generation,
        });
        let Some(name) = names.find(|name| name.key() == key) else {
            return SectorHeld::Unknown;
        };
        let mut intact = [0; SECTOR];
        self.write_one(&mut intact, number, name.generation);
        let differ = || sector.iter().zip(intact).map(|(one, other)| one ^ other);
        SectorHeld::Flipped {
            bits: differ().map(u8::count_ones).sum(),
            byte: differ().position(|bits| bits != 0).unwrap_or(0),
        }
    }

    /// The key of more than half the words behind the head (the majority vote of Boyer and Moore, 1981).
    fn commonest_key(&self, sector: &[u8]) -> Option<u64> {
        let keys = || {
            words(sector)
                .zip(&self.base)
                .skip(HEAD)
                .map(|(word, base)| word ^ base)
        };
        let (mut best, mut votes) = (0, 0_usize);
        for key in keys() {
            match votes {
                0 => (best, votes) = (key, 1),
                _ if key == best => votes += 1,
                _ => votes -= 1,
            }
        }
        let is_majority = 2 * keys().filter(|key| *key == best).count() > WORDS - HEAD;
        is_majority.then_some(best)
    }
}

fn words(sector: &[u8]) -> impl Iterator<Item = u64> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("a word has eight bytes"));
    sector.chunks_exact(8).map(word)
}

/// The first words of a sector; `None` if it is cut off.
#[inline]
fn head(sector: &[u8]) -> Option<[u64; HEAD]> {
    if sector.len() < SECTOR {
        return None;
    }
    let mut words = words(sector);
    Some(std::array::from_fn(|_| words.next().unwrap_or(0)))
}

/// The words that say which sector it is.
#[inline]
fn masked(name: SectorName, key: u64) -> [u64; HEAD] {
    let mask = MASKS.map(|odd| key.wrapping_mul(odd));
    [
        key,
        name.number ^ mask[1],
        name.generation ^ mask[2],
        name.file ^ mask[3],
    ]
}

#[inline]
fn unmasked(head: [u64; HEAD], key: u64) -> SectorName {
    let mask = MASKS.map(|odd| key.wrapping_mul(odd));
    SectorName {
        number: head[1] ^ mask[1],
        generation: head[2] ^ mask[2],
        file: head[3] ^ mask[3],
    }
}

/// Fills `buffer` with random bytes.
pub fn fill(buffer: &mut [u8], rng: &mut Rng) {
    for chunk in buffer.chunks_mut(8) {
        chunk.copy_from_slice(&rng.bits().to_le_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Eight sectors of file 7 from number 40 on, of generation 3.
    fn eight() -> (Sectors, Vec<u8>) {
        let sectors = Sectors::of_file(7);
        let mut buffer = vec![0; 8 * SECTOR];
        sectors.write(&mut buffer, 40, 3);
        (sectors, buffer)
    }

    #[test]
    fn no_sector_is_written_twice() {
        let mut seen = BTreeSet::new();
        let mut buffer = vec![0; 64 * SECTOR];
        for file in 0..3 {
            for generation in 0..30 {
                Sectors::of_file(file).write(&mut buffer, 1, generation);
                for sector in buffer.chunks(SECTOR) {
                    assert!(
                        seen.insert(sector.to_vec()),
                        "file {file}, generation {generation}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_sector_tells_its_file_its_place_and_its_generation() {
        let (sectors, buffer) = eight();
        for (number, sector) in (40..).zip(buffer.chunks(SECTOR)) {
            assert_eq!(sectors.read(sector, number), Some(3));
            let name = SectorName {
                file: 7,
                number,
                generation: 3,
            };
            assert_eq!(Sectors::named(sector), Some(name));
            assert_eq!(sectors.read(sector, number + 1), None);
            assert_eq!(
                sectors.held(sector, number + 1),
                SectorHeld::OtherPlace(name)
            );
            let other = Sectors::of_file(8);
            assert_eq!(other.read(sector, number), None);
            assert_eq!(other.held(sector, number), SectorHeld::OtherFile(name));
        }
        let mut cut = vec![0; SECTOR + 100];
        sectors.write(&mut cut, 40, 3);
        assert_eq!(cut, buffer[..SECTOR + 100]);
    }

    #[test]
    fn each_flipped_bit_of_a_sector_is_found_and_named() {
        let (sectors, buffer) = eight();
        for bit in 0..SECTOR * 8 {
            let mut sector = buffer[..SECTOR].to_vec();
            sector[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(sectors.read(&sector, 40), None, "bit {bit}");
            let flipped = SectorHeld::Flipped {
                bits: 1,
                byte: bit / 8,
            };
            assert_eq!(sectors.held(&sector, 40), flipped, "bit {bit}");
        }
    }

    #[test]
    fn what_was_never_written_here_is_told_from_what_rotted() {
        let (sectors, mut buffer) = eight();
        assert_eq!(sectors.held(&[0; SECTOR], 40), SectorHeld::Zeros);
        let mut foreign = [0; SECTOR];
        fill(&mut foreign, &mut Rng::new(1, 0));
        assert_eq!(sectors.held(&foreign, 40), SectorHeld::Unknown);
        buffer[100..228].fill(0);
        let SectorHeld::Flipped { bits, byte } = sectors.held(&buffer[..SECTOR], 40) else {
            panic!("a quarter of a sector is not all of it");
        };
        assert!(
            (300..700).contains(&bits) && (100..105).contains(&byte),
            "{bits} {byte}"
        );
    }
}
