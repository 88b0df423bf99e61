//! What happened at a source since it was made, counted.
//!
//! Figures for operators only: nothing may be decided by them. They are written
//! down now and then, not with each call, so an object that is cut off goes on
//! counting from what was written last (`edge/summary.rs`).

use super::command::Outcome;
use super::time::Span;
use crate::outcome::signal::Signal;

/// Upper bounds of the histograms' buckets; a last one has none.
pub const BOUNDS_MS: [u64; 11] = [
    10, 50, 100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000,
];
const BUCKETS: usize = BOUNDS_MS.len().saturating_add(1);

/// The words of the outcomes that are counted, in the order of their counts.
pub const OUTCOMES: [&str; 11] = [
    "granted",
    "queue_full",
    "cooldown",
    "rpm",
    "no_free_slot",
    "queue_timeout",
    "unauthorized",
    "invalid_request",
    "payload_too_large",
    "left",
    "omitted",
];

/// How long something took, by buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// How many fell into each bucket; not cumulative.
    pub counts: [u64; BUCKETS],
    pub sum_ms: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Attempts by outcome, in the order of [`OUTCOMES`].
    pub outcomes: [u64; OUTCOMES.len()],
    /// Slots that were given back.
    pub released: u64,
    /// Leases that ended by time alone.
    pub expired: u64,
    /// Reports of throttled calls.
    pub throttled: u64,
    /// How long granted callers had queued.
    pub queued: Histogram,
    /// How long slots were held that were given back.
    pub held: Histogram,
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
    pub fn attempt(&mut self, outcome: Outcome, queued: Span) {
        let word = outcome.word();
        let mut counts = OUTCOMES.iter().zip(&mut self.outcomes);
        if let Some((_, count)) = counts.find(|(known, _)| **known == word) {
            *count = count.saturating_add(outcome.omitted().unwrap_or(1).into());
        }
        if outcome == Outcome::Granted {
            self.queued.add(queued);
        }
    }

    /// A slot was given back that was held for so long.
    pub fn release(&mut self, held: Span, signal: Signal) {
        self.released = self.released.saturating_add(1);
        self.held.add(held);
        let is_throttled = signal == Signal::Throttled;
        self.throttled = self.throttled.saturating_add(is_throttled.into());
    }

    /// All figures in a row, for the way to the directory.
    pub fn to_text(&self) -> String {
        let all: Vec<String> = self.figures().map(|figure| figure.to_string()).collect();
        all.join(",")
    }

    fn figures(&self) -> impl Iterator<Item = u64> + '_ {
        let single = [self.released, self.expired, self.throttled];
        let histogram = |known: &Histogram| {
            let counts = known.counts;
            counts.into_iter().chain([known.sum_ms])
        };
        self.outcomes
            .into_iter()
            .chain(single)
            .chain(histogram(&self.queued))
            .chain(histogram(&self.held))
    }

    /// `None` if it is no such text.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut figures = text.split(',').map(|figure| figure.parse::<u64>().ok());
        let mut next = || figures.next().flatten();
        let mut tally = Self::default();
        for count in &mut tally.outcomes {
            *count = next()?;
        }
        tally.released = next()?;
        tally.expired = next()?;
        tally.throttled = next()?;
        for histogram in [&mut tally.queued, &mut tally.held] {
            for count in &mut histogram.counts {
                *count = next()?;
            }
            histogram.sum_ms = next()?;
        }
        Some(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_survive_their_text() {
        let mut tally = Tally::default();
        tally.attempt(Outcome::Granted, Span::from_ms(20));
        tally.attempt(Outcome::Omitted(7), Span::ZERO);
        tally.attempt(Outcome::Forbidden, Span::ZERO);
        tally.held.add(Span::from_seconds(10_000));
        tally.throttled = 3;
        assert_eq!(Tally::from_text(&tally.to_text()), Some(tally));
        assert_eq!(tally.outcomes, [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7]);
        assert_eq!(Tally::from_text("1,2"), None);
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
