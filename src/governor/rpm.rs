//! The grants of the last minute, and the gates that count them: an exact
//! sliding window.
//!
//! In no window of 60 s are there more than `limit` grants. Grants are marked
//! whether or not a limit is set, so that one set later counts them. Only a
//! grant counts: nothing here may be called for a refusal.

use std::collections::VecDeque;

use super::time::{Millis, Span};

/// How long a mark is kept, and the window that a configured limit speaks of.
pub const WINDOW: Span = Span::from_seconds(60);

/// Grants of one millisecond.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Millis,
    count: u32,
    /// Grants up to this mark, itself included, since the first one ever.
    total: u64,
}

/// Marks of the last [`WINDOW`]. Grants of one millisecond share an entry, so
/// there are at most 60,000, whatever the rate. Each question is one binary
/// search.
#[derive(Clone, Debug, Default)]
pub struct Rpm {
    marks: VecDeque<Mark>,
    /// All grants ever marked.
    total: u64,
}

impl Rpm {
    /// Grants in the last minute, as of the last [`Self::forget`].
    pub fn used(&self) -> u32 {
        let before = self.marks.front().map_or(self.total, |mark| {
            mark.total.saturating_sub(u64::from(mark.count))
        });
        clamp(self.total.saturating_sub(before))
    }

    /// Grants within `window` before `now`; of no more than the last minute.
    pub fn used_within(&self, window: Span, now: Millis) -> u32 {
        let gone = self.marks.partition_point(|m| m.at.plus(window) <= now);
        let before = match gone.checked_sub(1) {
            None => return self.used(),
            Some(last) => self.marks.get(last).map_or(self.total, |mark| mark.total),
        };
        clamp(self.total.saturating_sub(before))
    }

    /// All grants so far: an ordinal for the last one.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// All grants up to `at`; of what is longer ago than a minute, those before it.
    pub fn total_at(&self, at: Millis) -> u64 {
        let later = self.marks.partition_point(|mark| mark.at <= at);
        match later.checked_sub(1).and_then(|last| self.marks.get(last)) {
            Some(mark) => mark.total,
            None => self.total.saturating_sub(u64::from(self.used())),
        }
    }

    /// When the first grant of the last minute was made.
    pub fn first(&self) -> Option<Millis> {
        self.marks.front().map(|mark| mark.at)
    }

    /// Drops the marks that have left the window.
    pub fn forget(&mut self, now: Millis) {
        while self.marks.front().is_some_and(|m| m.at.plus(WINDOW) <= now) {
            self.marks.pop_front();
        }
    }

    /// Marks `count` grants at `at`, which is never before the last mark.
    pub fn mark(&mut self, at: Millis, count: u32) {
        let total = self.total.saturating_add(u64::from(count));
        self.total = total;
        match self.marks.back_mut() {
            Some(last) if last.at >= at => {
                last.count = last.count.saturating_add(count);
                last.total = total;
            }
            _ => self.marks.push_back(Mark { at, count, total }),
        }
    }

    /// When the next grant is allowed if there may be `limit` in `window`, which
    /// is at most a minute; `None` if it is now.
    pub fn opens_at(&self, limit: u32, window: Span, now: Millis) -> Option<Millis> {
        // The latest mark that must have left the window before.
        let spare = self.total.checked_sub(u64::from(limit))?;
        let last = self.marks.partition_point(|mark| mark.total <= spare);
        let mark = self.marks.get(last)?;
        // Those before it have left already.
        let is_last = mark.total.saturating_sub(u64::from(mark.count)) <= spare;
        let opens_at = mark.at.plus(window);
        Some(opens_at).filter(|at| is_last && *at > now)
    }

    /// The marks, oldest first.
    pub fn marks(&self) -> impl Iterator<Item = (Millis, u32)> + '_ {
        self.marks.iter().map(|mark| (mark.at, mark.count))
    }

    /// What must hold between the marks and their totals.
    ///
    /// # Errors
    /// Says what doesn't hold.
    pub fn audit(&self) -> Result<(), &'static str> {
        let mut total = self.total.saturating_sub(u64::from(self.used()));
        for mark in &self.marks {
            total = total.saturating_add(u64::from(mark.count));
            if mark.total != total {
                return Err("RPM marks and their totals differ");
            }
        }
        if total != self.total {
            return Err("RPM marks and their count differ");
        }
        if !self.marks.iter().is_sorted_by_key(|mark| mark.at) {
            return Err("RPM marks out of order");
        }
        Ok(())
    }
}

fn clamp(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Millis {
        Millis::from_epoch(ms)
    }

    #[test]
    fn opens_when_the_oldest_grant_leaves_the_window() {
        let mut rpm = Rpm::default();
        rpm.mark(at(1_000), 1);
        rpm.mark(at(5_000), 1);
        assert_eq!(rpm.opens_at(3, WINDOW, at(5_000)), None);
        assert_eq!(rpm.opens_at(2, WINDOW, at(5_000)), Some(at(61_000)));
        rpm.forget(at(60_999));
        assert_eq!(rpm.used(), 2);
        rpm.forget(at(61_000));
        assert_eq!(rpm.opens_at(2, WINDOW, at(61_000)), None);
    }

    #[test]
    fn a_lowered_limit_waits_for_as_many_as_it_is_over() {
        let mut rpm = Rpm::default();
        for ms in [0, 10, 20, 30] {
            rpm.mark(at(ms), 1);
        }
        assert_eq!(rpm.opens_at(4, WINDOW, at(30)), Some(at(60_000)));
        assert_eq!(rpm.opens_at(2, WINDOW, at(30)), Some(at(60_020)));
        assert_eq!(rpm.opens_at(1, WINDOW, at(30)), Some(at(60_030)));
    }

    #[test]
    fn a_burst_in_one_millisecond_is_one_entry() {
        let mut rpm = Rpm::default();
        for _ in 0..1000 {
            rpm.mark(at(7), 1);
        }
        assert_eq!(rpm.marks().count(), 1);
        assert_eq!(rpm.opens_at(1000, WINDOW, at(7)), Some(at(60_007)));
    }

    #[test]
    fn a_shorter_window_counts_its_own_grants_only() {
        let mut rpm = Rpm::default();
        for ms in [1_000, 1_100, 2_500, 2_500] {
            rpm.mark(at(ms), 1);
        }
        let second = Span::from_seconds(1);
        assert_eq!(rpm.used_within(second, at(2_500)), 2);
        assert_eq!(rpm.used_within(second, at(2_050)), 3);
        assert_eq!(rpm.opens_at(2, second, at(2_500)), Some(at(3_500)));
        assert_eq!(rpm.opens_at(3, second, at(2_500)), None);
        assert_eq!(rpm.used_within(second, at(3_500)), 0);
    }
}
