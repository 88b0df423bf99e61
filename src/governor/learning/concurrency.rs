//! How many calls at once the upstream takes, learned from how they went.
//!
//! Sample in, number out: nothing here reads a clock, and the configured bounds
//! always win. `level` is the count of calls that has been fine. Above it lies
//! the ceiling, a count at which the upstream throttled or calls grew slow, or
//! the next after the one that it stated, if that ever happened.
//! While all slots are in use the level is probed upwards, a few slots at a
//! time: a probe that goes well becomes the level and the next one is twice as
//! large; one that is throttled or slow sets the ceiling, and the probes between level
//! and ceiling halve the distance. Just below the ceiling it stays quiet for a
//! while, then tries the ceiling again.
//!
//! Longer holding alone never lowers the level; it only makes a probe fail.

use crate::governor::ids::Ref;
use crate::governor::settings::Concurrency as Bounds;
use crate::governor::time::{Millis, Span};

/// How long the ceiling isn't tried again.
const QUIET: Span = Span::from_seconds(10);
/// Trying the ceiling again costs about one hint: so many of it lie between.
const QUIET_HINTS: u64 = 14;
/// A limit that the upstream stated isn't probed for so long.
const TOLD_FOR: Span = Span::from_seconds(60);
/// A probe fails if calls are held so much longer than before, in percent.
const TOO_LONG_PERCENT: u64 = 150;
/// Of a level that turned out too high, in percent.
const CUT_PERCENT: u64 = 75;
/// The fewest calls that say something about a level.
const LEAST_ROUND: u32 = 4;
/// The most doublings of [`QUIET`] after probes that only made calls slower.
const MOST_DOUBLINGS: u32 = 4;

/// What is known of calls at once. Level, ceiling, quiet and ramp outlive the
/// object (`stored.rs`); what was proven, the probe and its round begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// Calls at once that have been fine.
    pub level: u32,
    /// Calls at once that were served.
    proven: u32,
    /// The count at which the upstream throttled last, or calls grew too slow; or
    /// one more than it stated.
    pub ceiling: Option<u32>,
    /// The ceiling isn't tried again before this.
    pub quiet_until: Millis,
    /// The limit in force right after a cool-down, growing to the level.
    pub ramp: Option<u32>,
    /// Slots granted after this one let the ramp grow.
    ramp_since: Ref,
    /// Slots beyond the level that are being tried; 0: none.
    probe: u32,
    /// How large the next probe is.
    step: u32,
    slow_probes: u32,
    round: Round,
    /// How long calls are usually held at the level, in ms; 0: not known yet.
    usual_ms: u64,
}

/// Calls that were granted at one limit, with all slots in use. The first lot
/// is skipped: those that end first are the short ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Round {
    /// Slots granted after this one count.
    since: Option<Ref>,
    served: u32,
    measured: u32,
    held_ms: u64,
}

/// What a call that was served says.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    pub reference: Ref,
    /// Slots in use right after its grant.
    pub in_use: u32,
    pub held: Span,
    /// The last slot granted so far.
    pub last: Ref,
}

impl Concurrency {
    pub fn new(bounds: &Bounds) -> Self {
        Self::restored(bounds.limit, None, Millis::EPOCH, None, Ref(0))
    }

    pub fn restored(
        level: u32,
        ceiling: Option<u32>,
        quiet_until: Millis,
        ramp: Option<u32>,
        last: Ref,
    ) -> Self {
        Self {
            level,
            proven: 0,
            ceiling,
            quiet_until,
            ramp,
            ramp_since: last,
            probe: 0,
            step: 1,
            slow_probes: 0,
            round: Round::default(),
            usual_ms: 0,
        }
    }

    /// The limit in force, within the bounds whatever was learned.
    pub fn limit(&self, bounds: &Bounds) -> u32 {
        let limit = self.tried();
        let limit = self.ramp.map_or(limit, |ramp| limit.min(ramp));
        limit.clamp(bounds.min, bounds.max)
    }

    /// Whether so many calls at once have been served.
    pub fn was_fine(&self, in_use: u32) -> bool {
        in_use <= self.proven.max(1)
    }

    fn tried(&self) -> u32 {
        self.level.saturating_add(self.probe)
    }

    /// A call was served. True if the level rose, or is reached again after a
    /// cool-down.
    pub fn served(&mut self, call: Served, bounds: &Bounds, now: Millis) -> bool {
        let had_ramp = self.ramp.is_some();
        let rose = self.count(call, bounds, now);
        rose || had_ramp && self.ramp.is_none()
    }

    fn count(&mut self, call: Served, bounds: &Bounds, now: Millis) -> bool {
        if let Some(ramp) = self.ramp
            && call.reference > self.ramp_since
        {
            let grown = ramp.saturating_add(1);
            self.ramp = Some(grown).filter(|ramp| *ramp < self.tried());
        }
        self.proven = self.proven.max(call.in_use.min(self.tried()));
        let round = &mut self.round;
        let since = *round.since.get_or_insert(call.last);
        let limit = self.level.saturating_add(self.probe);
        if call.reference <= since || call.in_use < limit {
            return false;
        }
        round.served = round.served.saturating_add(1);
        let size = limit.max(LEAST_ROUND);
        if round.served <= size {
            return false;
        }
        round.measured = round.measured.saturating_add(1);
        round.held_ms = round.held_ms.saturating_add(call.held.ms());
        if round.measured < size {
            return false;
        }
        let mean_ms = round.held_ms.div_euclid(u64::from(size.max(1)));
        self.end_round(mean_ms, call.last, bounds, now)
    }

    /// All slots were in use for a while and nothing was throttled.
    fn end_round(&mut self, mean_ms: u64, last: Ref, bounds: &Bounds, now: Millis) -> bool {
        let rose = self.probe > 0 && self.judge(mean_ms, now);
        if self.probe == 0 {
            self.learn_usual(mean_ms);
        }
        self.probe = 0;
        self.begin_round(last);
        self.probe = self.next_probe(bounds, now);
        rose
    }

    /// Whether the probe becomes the level.
    fn judge(&mut self, mean_ms: u64, now: Millis) -> bool {
        let most_ms = self
            .usual_ms
            .saturating_mul(TOO_LONG_PERCENT)
            .div_euclid(100);
        if self.usual_ms > 0 && mean_ms > most_ms {
            self.ceiling = Some(self.tried());
            self.step = 1;
            let doublings = self.slow_probes.min(MOST_DOUBLINGS);
            self.slow_probes = self.slow_probes.saturating_add(1);
            let quiet_ms = QUIET.ms().saturating_mul(1 << doublings);
            self.quiet_until = now.plus(Span::from_ms(quiet_ms));
            return false;
        }
        self.level = self.tried();
        self.step = self.step.saturating_mul(2);
        self.slow_probes = 0;
        self.learn_usual(mean_ms);
        if self.ceiling.is_some_and(|ceiling| ceiling <= self.level) {
            self.ceiling = None;
        }
        true
    }

    /// Follows slowly: one round may have been short or long by chance.
    fn learn_usual(&mut self, mean_ms: u64) {
        let usual = self.usual_ms;
        self.usual_ms = if usual == 0 {
            mean_ms
        } else {
            usual
                .saturating_mul(7)
                .saturating_add(mean_ms)
                .div_euclid(8)
        };
    }

    /// How far the next probe goes: half of the way to the ceiling, and the
    /// ceiling itself only from right below it, after some quiet.
    fn next_probe(&mut self, bounds: &Bounds, now: Millis) -> u32 {
        let room = bounds.max.saturating_sub(self.level);
        let step = match self
            .ceiling
            .map(|ceiling| ceiling.saturating_sub(self.level))
        {
            None => self.step,
            Some(..=1) if now < self.quiet_until => return 0,
            Some(distance) => {
                self.step = 1;
                distance.div_euclid(2).max(1)
            }
        };
        step.min(room)
    }

    fn begin_round(&mut self, last: Ref) {
        self.round = Round {
            since: Some(last),
            ..Round::default()
        };
    }

    /// A call was throttled that was granted while `in_use` were; a cut, once
    /// per incident, which the caller sees to.
    pub fn throttled(
        &mut self,
        in_use: u32,
        hint: Option<Span>,
        last: Ref,
        bounds: &Bounds,
        now: Millis,
    ) {
        if in_use <= self.level {
            let cut = u64::from(in_use).saturating_mul(CUT_PERCENT);
            self.level = u32::try_from(cut.div_euclid(100)).unwrap_or(u32::MAX);
        }
        self.level = self.level.clamp(bounds.min, bounds.max);
        self.proven = self.proven.min(in_use.saturating_sub(1));
        self.ceiling = Some(in_use.max(self.level.saturating_add(1)));
        self.probe = 0;
        self.step = 1;
        self.begin_round(last);
        let hints_ms = hint.map_or(0, |hint| hint.ms().saturating_mul(QUIET_HINTS));
        self.quiet_until = now.plus(QUIET.max(Span::from_ms(hints_ms)));
    }

    /// The upstream stated its limit. True if that is news.
    pub fn told(&mut self, limit: u64, last: Ref, bounds: &Bounds, now: Millis) -> bool {
        let stated = u32::try_from(limit).unwrap_or(u32::MAX);
        let stated = stated.clamp(bounds.min, bounds.max);
        let is_news = stated != self.level || self.probe > 0;
        self.quiet_until = now.plus(TOLD_FOR);
        if is_news {
            self.level = stated;
            self.ceiling = Some(stated.saturating_add(1));
            self.probe = 0;
            self.step = 1;
            self.begin_round(last);
        }
        is_news
    }

    /// The gate closes for a while: what comes first after it runs at half.
    pub fn cool_down(&mut self, last: Ref, bounds: &Bounds) {
        let half = self.limit(bounds).div_euclid(2).max(bounds.min);
        self.ramp = Some(half);
        self.ramp_since = last;
    }
}
