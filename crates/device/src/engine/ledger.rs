//! The generations that the units of a volume may hold.
//!
//! Input: when writes to units begin and end. Output: for each unit the oldest generation that a read may still find,
//! its *floor*. While writes to a unit overlap, any of them may be the last one; the floor rises only when none is
//! outstanding, to the oldest of those that overlapped.
//!
//! It has [`ENTRIES`] at most. In a larger volume a unit may take the place of another, of which nothing is known then:
//! less is found, and nothing is accused that is right.

use std::sync::{Mutex, PoisonError};

/// Entries at most: 32 MiB of memory, and each unit of 4 KiB of a scratch file of 4 GiB.
const ENTRIES: u64 = 1 << 20;
/// Entries behind one lock.
const CHUNK: u64 = 1 << 10;

/// The unit of an entry that units share while writes to both are outstanding.
const SHARED: u64 = u64::MAX;

/// What is known of one unit.
#[derive(Debug, Clone, Copy)]
struct LedgerEntry {
    /// Its number, [`SHARED`], or [`LedgerEntry::EMPTY`]'s.
    unit: u64,
    /// The oldest generation that it may hold; 0 if this run has not written it.
    floor: u64,
    /// The oldest generation of the writes that overlap.
    least: u64,
    /// Writes that are outstanding.
    writing: u32,
}

impl LedgerEntry {
    const EMPTY: Self = Self {
        unit: u64::MAX - 1,
        floor: 0,
        least: 0,
        writing: 0,
    };
}

/// The generations of all units.
#[derive(Debug)]
pub(super) struct Ledger {
    chunks: Vec<Mutex<Vec<LedgerEntry>>>,
}

impl Ledger {
    /// A ledger of this number of units.
    pub(super) fn new(units: u64) -> Self {
        let chunks = units.clamp(1, ENTRIES).div_ceil(CHUNK);
        Self {
            chunks: (0..chunks).map(|_| Mutex::default()).collect(),
        }
    }

    /// Does `what` with the entry of a unit.
    fn with<Known>(&self, unit: u64, what: impl FnOnce(&mut LedgerEntry) -> Known) -> Known {
        let at = unit % (self.chunks.len() as u64 * CHUNK);
        let index = |number: u64| usize::try_from(number).expect("entries are few");
        let chunk = &self.chunks[index(at / CHUNK)];
        let mut entries = chunk.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.is_empty() {
            entries.resize(index(CHUNK), LedgerEntry::EMPTY);
        }
        what(&mut entries[index(at % CHUNK)])
    }

    /// The oldest generation that a read which begins now may find; 0 if any.
    pub(super) fn floor(&self, unit: u64) -> u64 {
        self.with(
            unit,
            |entry| {
                if entry.unit == unit { entry.floor } else { 0 }
            },
        )
    }

    /// A write to `unit` begins. Its generation must be made after this.
    pub(super) fn begin(&self, unit: u64) {
        self.with(unit, |entry| {
            if entry.unit != unit {
                let unit = if entry.writing > 0 { SHARED } else { unit };
                *entry = LedgerEntry {
                    unit,
                    floor: 0,
                    ..*entry
                };
            }
            if entry.writing == 0 {
                entry.least = u64::MAX;
            }
            entry.writing += 1;
        });
    }

    /// A write to `unit` has ended: with this generation, or in part, or not at all.
    pub(super) fn end(&self, unit: u64, generation: Option<u64>) {
        self.with(unit, |entry| {
            entry.least = entry.least.min(generation.unwrap_or(entry.floor));
            entry.writing -= 1;
            match entry.writing {
                0 if entry.unit == SHARED => *entry = LedgerEntry::EMPTY,
                0 => entry.floor = entry.least,
                _ => {}
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_rises_when_no_write_is_outstanding() {
        let ledger = Ledger::new(100);
        assert_eq!(ledger.floor(7), 0);
        ledger.begin(7);
        ledger.end(7, Some(10));
        assert_eq!((ledger.floor(7), ledger.floor(8)), (10, 0));
        ledger.begin(7);
        ledger.begin(7);
        ledger.end(7, Some(12));
        assert_eq!(ledger.floor(7), 10, "the other may still be what is read");
        ledger.end(7, Some(11));
        assert_eq!(ledger.floor(7), 11, "either may have been the last");
        ledger.begin(7);
        ledger.end(7, None);
        assert_eq!(
            ledger.floor(7),
            11,
            "a write that failed may have written nothing"
        );
    }

    #[test]
    fn units_that_share_an_entry_are_not_known() {
        let ledger = Ledger::new(1);
        let other = 7 + CHUNK;
        ledger.begin(7);
        ledger.end(7, Some(10));
        ledger.begin(other);
        assert_eq!((ledger.floor(7), ledger.floor(other)), (0, 0));
        ledger.begin(7);
        ledger.end(other, Some(11));
        ledger.end(7, Some(12));
        assert_eq!((ledger.floor(7), ledger.floor(other)), (0, 0));
        ledger.begin(other);
        ledger.end(other, Some(13));
        assert_eq!((ledger.floor(7), ledger.floor(other)), (0, 13));
    }
}
