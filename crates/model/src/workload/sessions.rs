//! The operations of one database session: the SLOB method's mix and positions.
//!
//! Fractions are dealt from a shuffled deck, not drawn independently: after each deck a session has
//! done exactly its fraction, in an unpredictable order. Anything that happens on every n-th
//! operation is counted.

use super::rng::Rng;
use crate::{Kind, Nanos, Ratio, SqlWork};

/// Maximum number of cards in a deck.
const DECK_MAX: u32 = 100;

/// The operations of one session.
#[derive(Debug, Clone)]
pub(super) struct SessionOps {
    work: SqlWork,
    /// Index of its own table.
    home: u64,
    /// Operations made so far.
    made: u64,
    updates: Deck,
    scans: Deck,
}

impl SessionOps {
    /// The operations of session `number`, from 0: sessions take the tables in turn.
    pub(super) fn new(work: SqlWork, number: u64) -> Self {
        Self {
            home: number % u64::from(work.tables.schemas.max(1)),
            made: 0,
            updates: Deck::new(work.updates),
            scans: Deck::new(work.scans),
            work,
        }
    }

    /// Its next operation: the first block, numbered over all tables, and the kind.
    pub(super) fn next(&mut self, rng: &mut Rng) -> (u64, Kind) {
        self.made += 1;
        let kind = if self.updates.deal(rng) {
            Kind::Write
        } else if self.scans.deal(rng) {
            Kind::Scan
        } else {
            Kind::Read
        };
        let table = if self.is_turn(self.work.hot_schema_every) {
            0
        } else {
            self.home
        };
        let from = table * self.work.tables.scale;
        if kind == Kind::Scan {
            return (from, kind);
        }
        let (first, rows) = match self.work.hot_spot {
            Some(spot) if self.is_turn(Some(spot.every)) => (spot.first, spot.rows),
            _ => (0, self.work.tables.scale),
        };
        let starts = rows.saturating_sub(self.work.blocks(kind)) + 1;
        (from + first + rng.below(starts), kind)
    }

    /// Its pause before the operation just made.
    pub(super) fn pause(&self, rng: &mut Rng) -> Nanos {
        match self.work.think {
            // Count completed operations; the operation just made is not one of them.
            Some(think)
                if self.made > 1 && (self.made - 1).is_multiple_of(think.every.max(1).into()) =>
            {
                think
                    .least
                    .plus(Nanos(rng.below(think.most.since(think.least).0 + 1)))
            }
            _ => Nanos(0),
        }
    }

    fn is_turn(&self, every: Option<u32>) -> bool {
        every.is_some_and(|every| every > 0 && self.made.is_multiple_of(every.into()))
    }
}

/// Deals a fraction exactly: every deck contains its number of hits, shuffled.
#[derive(Debug, Clone)]
struct Deck {
    share: f64,
    /// Cards in a deck: the minimum that represents the fraction in whole cards.
    size: u32,
    /// Cards dealt up to the end of this deck, and hits among them.
    dealt: u64,
    hits: u64,
    /// Cards left in this deck, and hits among them.
    cards: u32,
    hits_left: u32,
}

impl Deck {
    fn new(share: Ratio) -> Self {
        let share = share.get();
        let is_whole = |size: &u32| {
            let hits = share * f64::from(*size);
            (hits - hits.round()).abs() < 1e-9
        };
        let size = (1..=DECK_MAX).find(is_whole).unwrap_or(DECK_MAX);
        Self {
            share,
            size,
            dealt: 0,
            hits: 0,
            cards: 0,
            hits_left: 0,
        }
    }

    /// Deals the next card; true for a hit.
    fn deal(&mut self, rng: &mut Rng) -> bool {
        if self.cards == 0 {
            self.cards = self.size;
            self.dealt += u64::from(self.size);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a count"
            )]
            let due = (self.share * self.dealt as f64).round() as u64;
            self.hits_left = u32::try_from(due - self.hits).expect("at most a deck");
            self.hits = due;
        }
        let hit = self.hits_left > 0 && rng.below(self.cards.into()) < u64::from(self.hits_left);
        self.cards -= 1;
        self.hits_left -= u32::from(hit);
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::super::rng::Rng;
    use super::{Deck, SessionOps};
    use crate::{HotSpot, Kind, Nanos, Ratio, SqlWork, Tables, Think};
    use proptest::prelude::*;

    const TABLES: Tables = Tables {
        schemas: 3,
        scale: 10_000,
        scan_blocks: 128,
        block: 8192,
    };

    fn kinds(work: SqlWork, count: usize) -> Vec<Kind> {
        let (mut session, mut rng) = (SessionOps::new(work, 0), Rng::new(7, 0));
        (0..count).map(|_| session.next(&mut rng).1).collect()
    }

    proptest! {
        #[test]
        fn shares_are_exact_after_every_deck(percent in 0u32..=100, scans in 0u32..=100, decks in 1usize..20) {
            let share = |percent: u32| Ratio::from_percent(f64::from(percent)).unwrap();
            let work = SqlWork { updates: share(percent), scans: share(scans), ..SqlWork::reads(TABLES) };
            let kinds = kinds(work, decks * 100);
            let count = |kind| kinds.iter().filter(|other| **other == kind).count();
            prop_assert_eq!(count(Kind::Write), decks * percent as usize);
            let reads = decks * (100 - percent as usize);
            let off = count(Kind::Scan) as f64 - reads as f64 * f64::from(scans) / 100.0;
            // The last deck of the reads may be incomplete.
            prop_assert!(off.abs() < 100.0 * 0.25 + 1.0, "{}", off);
        }

        #[test]
        fn shares_that_no_deck_holds_are_exact_in_the_long_run(share in 0.0f64..1.0, decks in 1u32..50) {
            let (mut deck, mut rng) = (Deck::new(Ratio::from_percent(share * 100.0).unwrap()), Rng::new(1, 1));
            let dealt = decks * deck.size;
            let hits = (0..dealt).filter(|_| deck.deal(&mut rng)).count();
            prop_assert!((hits as f64 - f64::from(dealt) * share).abs() <= 0.5 + 1e-6);
        }

        #[test]
        fn every_operation_lies_in_the_table_of_its_session(
            number in 0u64..10, rows in 1u32..2000, seed in any::<u64>(),
        ) {
            let work = SqlWork { read_rows: rows, ..SqlWork::reads(TABLES) };
            let (mut session, mut rng) = (SessionOps::new(work, number), Rng::new(seed, number));
            let home = number % 3 * 10_000;
            for _ in 0..200 {
                let (position, _) = session.next(&mut rng);
                prop_assert!(position >= home && position + u64::from(rows) <= home + 10_000);
            }
        }
    }

    #[test]
    fn a_hot_spot_and_a_hot_schema_get_every_nth_operation() {
        let spot = HotSpot {
            every: 3,
            first: 2_000,
            rows: 1_000,
        };
        let work = SqlWork {
            hot_spot: Some(spot),
            hot_schema_every: Some(5),
            ..SqlWork::reads(TABLES)
        };
        let (mut session, mut rng) = (SessionOps::new(work, 2), Rng::new(3, 0));
        let mut elsewhere = 0;
        for number in 1..=3000u64 {
            let (position, _) = session.next(&mut rng);
            assert_eq!(
                position / 10_000,
                if number % 5 == 0 { 0 } else { 2 },
                "{number}"
            );
            let within = (2_000..=3_000 - 64).contains(&(position % 10_000));
            assert!(within || number % 3 != 0, "{number}: {position}");
            elsewhere += u32::from(!within);
        }
        // Nine tenths of the other two thirds.
        assert!((1_700..1_900).contains(&elsewhere), "{elsewhere}");
    }

    #[test]
    fn pauses_come_after_every_nth_operation_and_keep_their_bounds() {
        let think = Think {
            every: 4,
            least: Nanos::from_millis(100),
            most: Nanos::from_millis(500),
        };
        let work = SqlWork {
            think: Some(think),
            ..SqlWork::reads(TABLES)
        };
        let (mut session, mut rng) = (SessionOps::new(work, 0), Rng::new(3, 0));
        for number in 1..=1000u64 {
            session.next(&mut rng);
            let pause = session.pause(&mut rng);
            if number > 1 && (number - 1) % 4 == 0 {
                assert!(
                    (think.least..=think.most).contains(&pause),
                    "{number}: {pause:?}"
                );
            } else {
                assert_eq!(pause, Nanos(0), "{number}");
            }
        }
    }
}
