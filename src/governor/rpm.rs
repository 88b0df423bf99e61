//! The requests-per-minute gate: an exact sliding window over the grants.
//!
//! In no window of 60 s are there more than `limit` grants. Grants are marked
//! whether or not a limit is set, so that one set later counts them. Only a
//! grant counts: nothing here may be called for a refusal.

use std::collections::VecDeque;

use super::time::{Millis, Span};

/// The window that the limit speaks of.
pub const WINDOW: Span = Span::from_seconds(60);

/// Marks of the last [`WINDOW`]. Grants of one millisecond share an entry, so
/// there are at most 60,000, whatever the rate.
#[derive(Clone, Debug, Default)]
pub struct Rpm {
    marks: VecDeque<(Millis, u32)>,
    used: u32,
}

impl Rpm {
    /// Grants in the window, as of the last [`Self::forget`].
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Drops the marks that have left the window.
    pub fn forget(&mut self, now: Millis) {
        while let Some((at, count)) = self.marks.front().copied() {
            if at.plus(WINDOW) > now {
                break;
            }
            self.marks.pop_front();
            self.used = self.used.saturating_sub(count);
        }
    }

    /// Marks `count` grants at `at`, which is never before the last mark.
    pub fn mark(&mut self, at: Millis, count: u32) {
        self.used = self.used.saturating_add(count);
        match self.marks.back_mut() {
            Some((last, marked)) if *last >= at => *marked = marked.saturating_add(count),
            _ => self.marks.push_back((at, count)),
        }
    }

    /// When the next grant is allowed under `limit`; `None` if it is now.
    pub fn opens_at(&self, limit: u32) -> Option<Millis> {
        let mut surplus = self.used.checked_sub(limit)?.saturating_add(1);
        for (at, count) in &self.marks {
            surplus = surplus.saturating_sub(*count);
            if surplus == 0 {
                return Some(at.plus(WINDOW));
            }
        }
        None
    }

    /// The marks, oldest first.
    pub fn marks(&self) -> impl Iterator<Item = (Millis, u32)> + '_ {
        self.marks.iter().copied()
    }

    /// What must hold between the marks and their sum.
    ///
    /// # Errors
    /// Says what doesn't hold.
    pub fn audit(&self) -> Result<(), &'static str> {
        let sum: u64 = self.marks.iter().map(|(_, count)| u64::from(*count)).sum();
        if sum != u64::from(self.used) {
            return Err("RPM marks and their count differ");
        }
        if !self.marks.iter().is_sorted_by_key(|(at, _)| *at) {
            return Err("RPM marks out of order");
        }
        Ok(())
    }
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
        assert_eq!(rpm.opens_at(3), None);
        assert_eq!(rpm.opens_at(2), Some(at(61_000)));
        rpm.forget(at(60_999));
        assert_eq!(rpm.used(), 2);
        rpm.forget(at(61_000));
        assert_eq!(rpm.opens_at(2), None);
    }

    #[test]
    fn a_lowered_limit_waits_for_as_many_as_it_is_over() {
        let mut rpm = Rpm::default();
        for ms in [0, 10, 20, 30] {
            rpm.mark(at(ms), 1);
        }
        assert_eq!(rpm.opens_at(4), Some(at(60_000)));
        assert_eq!(rpm.opens_at(2), Some(at(60_020)));
        assert_eq!(rpm.opens_at(1), Some(at(60_030)));
    }

    #[test]
    fn a_burst_in_one_millisecond_is_one_entry() {
        let mut rpm = Rpm::default();
        for _ in 0..1000 {
            rpm.mark(at(7), 1);
        }
        assert_eq!(rpm.marks().count(), 1);
        assert_eq!(rpm.opens_at(1000), Some(at(60_007)));
    }
}
