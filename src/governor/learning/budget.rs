//! What the upstream said remains until a reset, counted down by our own
//! grants.
//!
//! A report speaks for the moment at which its call was granted: the grants
//! since are counted off. So the report of the slot that was granted last knows
//! best, and calls of others on the same account show in it.
//!
//! Of what remains half may go at once, the rest from half of the time on: an
//! upstream that refills steadily is never drained, and one that resets at once
//! loses nothing by it. After the reset the whole limit is there again, and half
//! of it may go until a report tells more.

use crate::governor::cooldown::LONGEST;
use crate::governor::rpm::{Rpm, WINDOW};
use crate::governor::time::{Millis, Span};
use crate::outcome::rate::Rate as Said;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// All grants so far at which nothing remains.
    ends: u64,
    pub resets_at: Millis,
    /// What the first half of the time has, in the same count, and until when.
    half: u64,
    half_at: Millis,
    /// What may go after the reset, as far as it is known, and until when a
    /// report is waited for.
    refill: Option<u64>,
    refill_until: Millis,
    /// All grants so far when the call that told of it was granted.
    told_at: u64,
    /// What remained when it was last written down.
    written: u64,
}

impl Budget {
    /// As headers of a call granted at `granted_at` state it, if they do.
    pub fn stated(said: &Said, granted_at: Millis, grants: &Rpm, now: Millis) -> Option<Self> {
        let (remaining, span) = (said.remaining?, said.reset?.min(LONGEST));
        let told_at = grants.total_at(granted_at);
        let resets_at = now.plus(span);
        // Grants are remembered for a minute; and no report has a say for longer.
        let refill_until = resets_at.plus(span.min(WINDOW)).min(now.plus(LONGEST));
        Some(Self {
            ends: told_at.saturating_add(remaining),
            resets_at,
            half: told_at.saturating_add(remaining.div_ceil(2)),
            half_at: granted_at.plus(Span::from_ms(span.ms().div_euclid(2))),
            refill: said.limit.map(|limit| limit.div_ceil(2)),
            refill_until,
            told_at,
            written: u64::MAX,
        })
    }

    /// As it was written down at `at`.
    pub fn restored(left: u64, resets_at: Millis, at: Millis, grants: &Rpm) -> Self {
        let told_at = grants.total_at(at);
        let ends = told_at.saturating_add(left);
        Self {
            ends,
            resets_at,
            half: ends,
            half_at: at,
            refill: None,
            refill_until: resets_at,
            told_at,
            written: left,
        }
    }

    /// What is left until the reset.
    pub fn left(&self, grants: &Rpm) -> u64 {
        self.ends.saturating_sub(grants.total())
    }

    /// When it opens, if it is closed.
    pub fn opens_at(&self, grants: &Rpm, now: Millis) -> Option<Millis> {
        let used = grants.total();
        let (most, opens_at) = if now >= self.resets_at {
            // Those of the moment of the reset itself come out of the new window.
            let before = grants.total_at(self.resets_at.minus(Span::from_ms(1)));
            (before.saturating_add(self.refill?), self.refill_until)
        } else if now < self.half_at && used < self.ends {
            (self.half, self.half_at.min(self.resets_at))
        } else {
            (self.ends, self.resets_at)
        };
        Some(opens_at).filter(|at| *at > now && used >= most)
    }

    /// Takes `stated` for the budget unless the present one knows better. True
    /// if it is to be written down: each time that what is left has halved.
    pub fn replace(present: &mut Option<Self>, stated: Self, grants: &Rpm, now: Millis) -> bool {
        let before = present.filter(|budget| budget.resets_at > now);
        if before.is_some_and(|budget| budget.told_at > stated.told_at) {
            return false;
        }
        let left = stated.left(grants);
        let written = before.map_or(u64::MAX, |budget| budget.written);
        // A new window: what was written of the last one has no say.
        let written = if left > written { u64::MAX } else { written };
        let is_due = left < written && left <= written.div_euclid(2);
        let written = if is_due { left } else { written };
        *present = Some(Self { written, ..stated });
        is_due
    }
}
