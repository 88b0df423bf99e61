//! What happened at a source since it was made, counted.
//!
//! Figures for operators only: nothing may be decided by them. They are written
//! down now and then, not with each call, so an object that is cut off goes on
//! counting from what was written last, and from what its log has since
//! (`edge/summary.rs`). They are written down by name: what a neighbouring version
//! counts beside is kept as it is, and what it doesn't know is 0.

use super::command::Outcome;
use super::ids::Ref;
use super::time::Span;
use crate::outcome::signal::Signal;

mod text;

/// Upper bounds of the histograms' buckets; a last one has none.
pub const BOUNDS_MS: [u64; 11] = [
    10, 50, 100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000,
];
const BUCKETS: usize = BOUNDS_MS.len().saturating_add(1);

/// How long something took, by buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// How many fell into each bucket; not cumulative.
    pub counts: [u64; BUCKETS],
    pub sum_ms: u64,
}

/// Names that only another version knows: more than a few would be no version's.
const MOST_OTHERS: usize = 100;
const LONGEST_NAME: usize = 40;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Attempts by outcome, at the places of [`Outcome::WORDS`].
    pub outcomes: [u64; Outcome::WORDS.len()],
    /// Slots that were given back.
    pub released: u64,
    /// Leases that ended by time alone.
    pub expired: u64,
    /// Reports of throttled calls.
    pub throttled: u64,
    /// Refresh tokens that were written here and are good no more.
    pub refresh_refused: u64,
    /// How long granted callers had queued.
    pub queued: Histogram,
    /// How long slots were held that were given back.
    pub held: Histogram,
    /// The last attempt that is in these counts: later ones are in the log alone.
    /// `None`: it wasn't written down.
    pub counted: Option<Ref>,
    /// What only another version counts.
    others: Vec<(Box<str>, u64)>,
}

impl Histogram {
    pub fn add(&mut self, span: Span) {
        let bucket = BOUNDS_MS.partition_point(|bound| *bound < span.ms());
        if let Some(count) = self.counts.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
        self.sum_ms = self.sum_ms.saturating_add(span.ms());
    }

    pub fn count(&self) -> u64 {
        self.counts
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl Tally {
    pub fn attempt(&mut self, reference: Ref, outcome: Outcome, queued: Span) {
        self.counted = Some(reference);
        if let Some(count) = self.outcomes.get_mut(outcome.place()) {
            *count = count.saturating_add(outcome.omitted().unwrap_or(1).into());
        }
        if outcome == Outcome::Granted {
            self.queued.add(queued);
        }
    }

    /// Attempts that the log has and that were not counted yet, with the word of
    /// their outcome; each granted one had queued for so long.
    pub fn recount(&mut self, word: &str, times: u64, queued: Span) {
        let before = self.figure(word).copied().unwrap_or_default();
        self.put(word, before.saturating_add(times));
        if word == Outcome::Granted.word() {
            for _ in 0..times {
                self.queued.add(queued);
            }
        }
    }

    /// A slot was given back that was held for so long.
    pub fn release(&mut self, held: Span, signal: Signal) {
        self.released = self.released.saturating_add(1);
        self.held.add(held);
        let is_throttled = signal == Signal::Throttled;
        self.throttled = self.throttled.saturating_add(is_throttled.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_counts_under_its_word() {
        let mut tally = Tally::default();
        tally.attempt(Ref(1), Outcome::Granted, Span::from_ms(20));
        tally.attempt(Ref(2), Outcome::Omitted(7), Span::ZERO);
        tally.attempt(Ref(3), Outcome::Forbidden, Span::ZERO);
        for (word, count) in Outcome::WORDS.into_iter().zip(tally.outcomes) {
            let expected = match word {
                "granted" | "unauthorized" => 1,
                "omitted" => 7,
                _ => 0,
            };
            assert_eq!(count, expected, "{word}");
        }
        assert_eq!((tally.counted, tally.queued.count()), (Some(Ref(3)), 1));
    }

    #[test]
    fn a_bucket_holds_what_is_at_most_its_bound() {
        let mut known = Histogram::default();
        for ms in [0, 10, 11, 600_000, 600_001] {
            known.add(Span::from_ms(ms));
        }
        assert_eq!(known.counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!((known.count(), known.sum_ms), (5, 1_200_022));
    }
}
