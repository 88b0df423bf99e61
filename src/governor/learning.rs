//! What a source has learned from the reports of its releases: how many calls
//! at once, how many in a window.
//!
//! One report goes in, limits come out. This module decides which of the two a
//! throttled call speaks of; each learns for itself. A count of calls that was
//! never fine before speaks of the concurrency, one that was fine of the rate.
//! Fifty reports of one incident are one: a slot that was granted before the
//! last cut doesn't cut again.
//!
//! Never here: the cool-down, which follows hints whatever is adaptive; a
//! clock; a bound that isn't the settings'.

pub mod budget;
pub mod concurrency;
pub mod rate;
mod stored;
#[cfg(test)]
mod tests;

use concurrency::{Concurrency, Served};
use rate::Rate;

use super::ids::Ref;
use super::rpm::Rpm;
use super::settings::Settings;
use super::time::Millis;
use crate::outcome::Report;
use crate::outcome::signal::Signal;

/// One release: the slot that it freed, and what the caller reported.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    pub reference: Ref,
    pub granted_at: Millis,
    /// Slots in use right after its grant.
    pub in_use: u32,
    pub report: &'a Report,
}

/// What is known beside the learning when a sample comes in.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    pub now: Millis,
    /// The last attempt so far.
    pub last: Ref,
    pub settings: &'a Settings,
    pub grants: &'a Rpm,
}

/// From which report something was learned, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    pub reference: Ref,
    pub at: Millis,
}

#[derive(Clone, Debug)]
pub struct Learning {
    pub concurrency: Concurrency,
    pub concurrency_by: Option<Source>,
    pub rate: Rate,
    pub rate_by: Option<Source>,
    /// Throttled reports of the last minute.
    throttles: Rpm,
    /// Slots up to this one were granted before the last cut.
    incident: Ref,
}

impl Learning {
    /// Nothing learned yet.
    pub fn new(settings: &Settings) -> Self {
        Self {
            concurrency: Concurrency::new(&settings.concurrency),
            concurrency_by: None,
            rate: Rate::default(),
            rate_by: None,
            throttles: Rpm::default(),
            incident: Ref(0),
        }
    }

    /// The concurrency limit in force.
    pub fn limit(&self, settings: &Settings) -> u32 {
        let concurrency = &settings.concurrency;
        if concurrency.adaptive {
            self.concurrency.limit(concurrency)
        } else {
            concurrency.limit
        }
    }

    /// A part of the settings that changes is learned afresh.
    /// True if anything was forgotten.
    pub fn configure(&mut self, before: &Settings, after: &Settings) -> bool {
        let adaptive = before.concurrency.adaptive || before.rpm.adaptive;
        if before.concurrency != after.concurrency {
            self.concurrency = Concurrency::new(&after.concurrency);
            self.concurrency_by = None;
        }
        if before.rpm != after.rpm {
            self.rate = Rate::default();
            self.rate_by = None;
        }
        adaptive && (before.concurrency != after.concurrency || before.rpm != after.rpm)
    }

    /// Learns from a release. True if something is to be written down.
    pub fn learn(&mut self, sample: Sample, around: Around) -> bool {
        let concurrency = self.learn_concurrency(sample, around);
        let rate = self.learn_rate(sample, around);
        let blamed = self.blame(sample, around);
        let by = Some(Source {
            reference: sample.reference,
            at: around.now,
        });
        if concurrency || blamed == Some(Blamed::Concurrency) {
            self.concurrency_by = by;
        }
        if rate || blamed == Some(Blamed::Rate) {
            self.rate_by = by;
        }
        concurrency || rate || blamed.is_some()
    }

    /// What the report says of calls at once, but for throttling.
    fn learn_concurrency(&mut self, sample: Sample, around: Around) -> bool {
        let bounds = &around.settings.concurrency;
        if !bounds.adaptive {
            return false;
        }
        let stated = sample.report.rate.concurrency_limit;
        let told = stated.is_some_and(|limit| {
            let concurrency = &mut self.concurrency;
            concurrency.told(limit, around.last, bounds, around.now)
        });
        if sample.report.signal() != Signal::Served {
            return told;
        }
        let served = Served {
            reference: sample.reference,
            in_use: sample.in_use,
            held: around.now.since(sample.granted_at),
            last: around.last,
        };
        self.concurrency.served(served, bounds, around.now) || told
    }

    /// What the report says of calls in a window, but for throttling.
    fn learn_rate(&mut self, sample: Sample, around: Around) -> bool {
        if !around.settings.rpm.adaptive {
            return false;
        }
        let (said, granted_at, now) = (&sample.report.rate, sample.granted_at, around.now);
        let told = self.rate.told(said, granted_at, around.grants, now);
        let is_served = sample.report.signal() == Signal::Served;
        let served = is_served && sample.reference > self.incident;
        served && self.rate.served(granted_at, around.grants, now) || told
    }

    /// What a throttled call speaks of, once per incident.
    fn blame(&mut self, sample: Sample, around: Around) -> Option<Blamed> {
        let Around { now, settings, .. } = around;
        if sample.report.signal() != Signal::Throttled {
            return None;
        }
        self.throttles.forget(now);
        self.throttles.mark(now, 1);
        if sample.reference <= self.incident {
            return None;
        }
        let blamed = self.suspect(sample, around)?;
        self.incident = around.last;
        let hint = sample.report.rate.retry_after;
        match blamed {
            Blamed::Concurrency => {
                self.rate.acquitted(around.grants);
                let in_use = sample.in_use.max(1);
                let bounds = &settings.concurrency;
                self.concurrency
                    .throttled(in_use, hint, around.last, bounds, now);
            }
            Blamed::Rate => {
                let throttled = self.throttles.used();
                let (granted_at, grants) = (sample.granted_at, around.grants);
                self.rate
                    .throttled(granted_at, hint, grants, throttled, now);
            }
        }
        Some(blamed)
    }

    fn suspect(&self, sample: Sample, around: Around) -> Option<Blamed> {
        let Around { now, settings, .. } = around;
        let said = &sample.report.rate;
        let concurrency = Some(Blamed::Concurrency)
            .filter(|_| settings.concurrency.adaptive && said.concurrency_limit.is_none());
        let rate = Some(Blamed::Rate).filter(|_| settings.rpm.adaptive);
        match said.remaining {
            // The window is used up, which was foreseeable: nobody misjudged.
            Some(0) if said.reset.is_some() => return None,
            Some(1..) => return concurrency,
            _ => {}
        }
        if self.rate.waiting(now).is_some() {
            return rate.or(concurrency);
        }
        let was_fine = self.concurrency.was_fine(sample.in_use);
        if was_fine && !self.rate.is_beside_the_point(around.grants, now) {
            rate.or(concurrency)
        } else {
            concurrency.or(rate)
        }
    }

    /// The gate closes for a while.
    pub fn cool_down(&mut self, around: Around) -> bool {
        let bounds = &around.settings.concurrency;
        if bounds.adaptive {
            self.concurrency.cool_down(around.last, bounds);
        }
        bounds.adaptive
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blamed {
    Concurrency,
    Rate,
}
