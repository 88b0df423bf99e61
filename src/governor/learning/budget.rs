//! What the upstream said remains until a reset, counted down by our own
//! grants.
//!
//! A report speaks for the moment at which its call was granted: the grants
//! since are counted off. So the report of the slot that was granted last knows
//! best, and calls of others on the same account show in it.

use crate::governor::cooldown::LONGEST;
use crate::governor::rpm::Rpm;
use crate::governor::time::{Millis, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// All grants so far at which nothing remains.
    pub ends: u64,
    pub resets_at: Millis,
    /// All grants so far when the call that told of it was granted.
    told_at: u64,
    /// What remained when it was last written down.
    written: u64,
}

impl Budget {
    /// As headers of a call granted at `granted_at` state it.
    pub fn stated(
        remaining: u64,
        reset: Span,
        granted_at: Millis,
        grants: &Rpm,
        now: Millis,
    ) -> Self {
        let told_at = grants.total_at(granted_at);
        Self {
            ends: told_at.saturating_add(remaining),
            resets_at: now.plus(reset.min(LONGEST)),
            told_at,
            written: u64::MAX,
        }
    }

    /// As it was written down at `at`.
    pub fn restored(left: u64, resets_at: Millis, at: Millis, grants: &Rpm) -> Self {
        let told_at = grants.total_at(at);
        Self {
            ends: told_at.saturating_add(left),
            resets_at,
            told_at,
            written: left,
        }
    }

    pub fn left(&self, grants: &Rpm) -> u64 {
        self.ends.saturating_sub(grants.total())
    }

    /// When it opens, if nothing is left.
    pub fn opens_at(&self, grants: &Rpm, now: Millis) -> Option<Millis> {
        Some(self.resets_at).filter(|at| *at > now && self.left(grants) == 0)
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
