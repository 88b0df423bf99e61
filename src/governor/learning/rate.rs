//! How many calls in a window the upstream takes: as its headers state it, or
//! as throttling teaches it.
//!
//! What headers state is followed to the letter: a limit with its window, and
//! what remains until a reset, so that others who use the same account are
//! counted too. Where they state nothing, a throttled call at a count of calls
//! that was fine before is the rate's doing: then grants trickle until one is
//! served, and what was let through over the time from the first of them to
//! that one is the rate that can be kept up, whatever the window is. It is tried
//! a little higher after some quiet.
//!
//! Nothing that one report says closes this gate beyond [`LONGEST`], and the
//! configured RPM limit always applies beside it.

use super::budget::Budget;
use crate::governor::cooldown::LONGEST;
use crate::governor::rpm::{Rpm, WINDOW};
use crate::governor::time::{Millis, Span};
use crate::outcome::rate::Rate as Said;

/// The first interval of the trickle; it doubles with each grant.
const TRICKLE: Span = Span::from_seconds(2);
const LONGEST_TRICKLE: Span = Span::from_seconds(60);
/// Of the rate that was let through, in percent: a window's edge isn't known.
const KEEP_PERCENT: u64 = 99;
/// Of a rate that was throttled, in percent at the most.
const CUT_PERCENT: u64 = 90;
/// A rate is tried so much higher, in percent.
const GROW_PERCENT: u64 = 110;
/// How long a rate that was throttled isn't tried higher: a minute's window
/// must have shown itself.
const QUIET: Span = Span::from_seconds(60);
/// How long between two rises without throttling.
const RISE: Span = Span::from_seconds(10);
/// Grants are spread so that no more than the rate of this span come at once.
const BURST_MS: u64 = 500;
const HOUR_MS: u64 = 3_600_000;
/// A grant a minute: no report can stop a source.
const LEAST_PER_HOUR: u64 = 60;
const MOST_PER_HOUR: u64 = 3_600_000_000;
/// A rate that is used less than this, in percent, isn't what throttles.
const IDLE_PERCENT: u64 = 70;
/// Fewer calls in a minute than these say nothing of a rate.
const EVIDENCE: u32 = 20;
/// Of what was let through before, in percent: less than that is no proof.
const TRIAL_PERCENT: u64 = 25;

/// What is known of calls in a window. All but the trial outlives the object
/// (`stored.rs`), the budget as far as it was written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    pub told: Option<Told>,
    pub inferred: Option<Inferred>,
    pub wait: Option<Wait>,
    pub budget: Option<Budget>,
    trial: Option<Trial>,
}

/// A rate that was just inferred must prove itself: an upstream that throttles
/// again long before it has let through as much as before limits something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trial {
    /// What had been let through before, in a minute at the most.
    accepted: u32,
    /// All grants so far when the upstream served again.
    began: u64,
    /// What was known before.
    before: Option<Inferred>,
}

/// A limit that headers stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    pub limit: u32,
    pub window: Option<Span>,
    /// Forgotten then, unless it is stated again.
    pub until: Millis,
}

/// A rate that throttling taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inferred {
    pub per_hour: u64,
    /// Not tried higher before this.
    pub quiet_until: Millis,
}

/// The upstream throttled, and hasn't served a call since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub began: Millis,
    /// Calls that it had let through in the last minute, and since when.
    pub accepted: u32,
    pub busy: Span,
    /// When the last call was granted that it still throttled.
    pub failed_at: Millis,
    /// The time between two grants; `None` where the upstream said when to come
    /// back, which the cool-down sees to.
    pub interval: Option<Span>,
    pub next_at: Millis,
}

/// So many grants in a window of at most a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    pub limit: u32,
    pub window: Span,
}

impl Inferred {
    pub fn gate(self) -> Gate {
        let per_hour = self.per_hour.clamp(LEAST_PER_HOUR, MOST_PER_HOUR);
        let limit = per_hour.saturating_mul(BURST_MS).div_euclid(HOUR_MS).max(1);
        let window_ms = limit.saturating_mul(HOUR_MS).div_ceil(per_hour.max(1));
        Gate {
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            window: Span::from_ms(window_ms).min(WINDOW),
        }
    }
}

impl Told {
    /// A longer window than a minute is left to what remains of it.
    pub fn gate(self) -> Option<Gate> {
        let window = self.window.filter(|window| *window <= WINDOW)?;
        let limit = self.limit;
        Some(Gate { limit, window })
    }
}

impl Gate {
    /// In grants a minute.
    pub fn per_minute(self) -> u32 {
        let limit = u64::from(self.limit).saturating_mul(WINDOW.ms());
        let per_minute = limit.div_euclid(self.window.ms().max(1));
        u32::try_from(per_minute).unwrap_or(u32::MAX)
    }
}

impl Rate {
    /// The limit that headers stated, unless that is too long ago.
    pub fn stated(&self, now: Millis) -> Option<Told> {
        self.told.filter(|told| told.until > now)
    }

    /// The gates that count grants, in force at `now`.
    pub fn gates(&self, now: Millis) -> impl Iterator<Item = Gate> {
        let told = self.stated(now);
        let inferred = self.inferred.map(Inferred::gate);
        [told.and_then(Told::gate), inferred].into_iter().flatten()
    }

    /// When all that was learned lets the next grant pass; `None`: now.
    pub fn opens_at(&self, grants: &Rpm, now: Millis) -> Option<Millis> {
        let told = self.stated(now).and_then(|told| {
            let gate = told.gate()?;
            let opens_at = grants.opens_at(gate.limit, gate.window, now)?;
            Some(opens_at.min(told.until))
        });
        let inferred = self.inferred.map(Inferred::gate);
        let inferred = inferred.and_then(|gate| grants.opens_at(gate.limit, gate.window, now));
        let trickle = self.waiting(now).filter(|wait| wait.interval.is_some());
        let trickle = trickle.map(|wait| wait.next_at).filter(|at| *at > now);
        let budget = self.budget.and_then(|budget| budget.opens_at(grants, now));
        told.max(inferred).max(trickle).max(budget)
    }

    /// The wait, unless nobody has reported anything for so long that it is over.
    pub fn waiting(&self, now: Millis) -> Option<Wait> {
        self.wait.filter(|wait| wait.failed_at.plus(LONGEST) > now)
    }

    /// The trickle as a gate, for those who look.
    pub fn trickle(&self, now: Millis) -> Option<Gate> {
        let window = self.waiting(now)?.interval?.min(WINDOW);
        Some(Gate { limit: 1, window })
    }

    /// A slot was granted.
    pub fn granted(&mut self, now: Millis) {
        if let Some(wait) = &mut self.wait
            && let Some(interval) = wait.interval
        {
            wait.next_at = now.plus(interval);
            wait.interval = Some(interval.plus(interval).min(LONGEST_TRICKLE));
        }
    }

    /// Headers, of a call that was granted at `granted_at`. True if the limit is
    /// news, or half of what remained when it was last written down is gone.
    pub fn told(&mut self, said: &Said, granted_at: Millis, grants: &Rpm, now: Millis) -> bool {
        let mut is_news = false;
        if let Some(limit) = said.limit {
            let limit = u32::try_from(limit).unwrap_or(u32::MAX);
            let same = self.told.filter(|told| told.limit == limit);
            let window = said.window.or(same.and_then(|told| told.window));
            is_news = same.is_none_or(|told| told.window != window);
            let until = now.plus(LONGEST);
            self.told = Some(Told {
                limit,
                window,
                until,
            });
        }
        if let Some(stated) = Budget::stated(said, granted_at, grants, now) {
            is_news |= Budget::replace(&mut self.budget, stated, grants, now);
        }
        is_news
    }

    /// Whether the rate that is known, if any, can't be what throttled.
    pub fn is_beside_the_point(&self, grants: &Rpm, now: Millis) -> bool {
        self.is_idle(grants, now) || self.has_failed(grants)
    }

    fn has_failed(&self, grants: &Rpm) -> bool {
        self.trial.is_some_and(|trial| {
            let since = grants.total().saturating_sub(trial.began);
            since.saturating_mul(100) < u64::from(trial.accepted).saturating_mul(TRIAL_PERCENT)
        })
    }

    /// It was something else: a rate that didn't prove itself is forgotten.
    pub fn acquitted(&mut self, grants: &Rpm) {
        if self.has_failed(grants) {
            self.inferred = self.trial.take().and_then(|trial| trial.before);
        }
    }

    fn is_idle(&self, grants: &Rpm, now: Millis) -> bool {
        let mut gates = self.gates(now).peekable();
        gates.peek().is_some()
            && gates.all(|gate| {
                let used = u64::from(grants.used_within(gate.window, now)).saturating_mul(100);
                used < u64::from(gate.limit).saturating_mul(IDLE_PERCENT)
            })
    }

    /// A call was throttled at a count of calls that was fine before. `throttled`
    /// is how many were within the last minute.
    pub fn throttled(
        &mut self,
        granted_at: Millis,
        hint: Option<Span>,
        grants: &Rpm,
        throttled: u32,
        now: Millis,
    ) {
        let interval = hint.is_none().then_some(TRICKLE);
        self.wait = self.waiting(now);
        match &mut self.wait {
            Some(wait) => {
                wait.failed_at = granted_at;
                wait.interval = wait.interval.or(interval).filter(|_| hint.is_none());
            }
            None => {
                self.wait = Some(Wait {
                    began: now,
                    accepted: grants.used().saturating_sub(throttled),
                    busy: grants.first().map_or(Span::ZERO, |first| now.since(first)),
                    failed_at: granted_at,
                    interval,
                    next_at: now.plus(TRICKLE),
                });
            }
        }
    }

    /// A call was served that was granted at `granted_at`, after the last
    /// incident. True if the rate changed, or a wait is over.
    pub fn served(&mut self, granted_at: Millis, grants: &Rpm, now: Millis) -> bool {
        if let Some(wait) = self.wait.take() {
            if wait.accepted < EVIDENCE && self.inferred.is_none() {
                return true;
            }
            self.trial = Some(Trial {
                accepted: wait.accepted,
                began: grants.total(),
                before: self.inferred,
            });
            self.inferred = Some(self.sustained(wait, granted_at, now));
            return true;
        }
        let Some(inferred) = &mut self.inferred else {
            return false;
        };
        let gate = inferred.gate();
        let binds = grants.opens_at(gate.limit, gate.window, now).is_some();
        if !binds || now < inferred.quiet_until {
            return false;
        }
        inferred.per_hour = percent(inferred.per_hour, GROW_PERCENT).min(MOST_PER_HOUR);
        inferred.quiet_until = now.plus(RISE);
        true
    }

    /// The rate that was let through from the first call of the last minute to
    /// the one that was served again.
    fn sustained(&self, wait: Wait, granted_at: Millis, now: Millis) -> Inferred {
        // It opened at some moment between the last that failed and this one.
        let closed_for = wait.failed_at.since(wait.began).ms();
        let closed_for = closed_for.saturating_add(granted_at.since(wait.began).ms());
        let closed_for = closed_for.div_euclid(2);
        let over = wait.busy.ms().saturating_add(closed_for).max(TRICKLE.ms());
        let let_through = u64::from(wait.accepted).saturating_mul(HOUR_MS);
        let per_hour = percent(let_through.div_euclid(over.max(1)), KEEP_PERCENT);
        let before = self
            .inferred
            .map(|known| percent(known.per_hour, CUT_PERCENT));
        let per_hour = before.map_or(per_hour, |before| per_hour.min(before));
        Inferred {
            per_hour: per_hour.clamp(LEAST_PER_HOUR, MOST_PER_HOUR),
            quiet_until: now.plus(QUIET.max(Span::from_ms(closed_for))),
        }
    }
}

fn percent(of: u64, percent: u64) -> u64 {
    of.saturating_mul(percent).div_euclid(100)
}
