//! What a governor shows of itself: figures, never a change.

use super::command::{Gauge, RpmGauge};
use super::learning::Learning;
use super::learning::rate::Gate;
use super::rpm::WINDOW;
use super::tally::Tally;
use super::time::Millis;
use super::{Governor, LastReport};

impl Governor {
    pub fn gauge(&self) -> Gauge {
        Gauge {
            limit: self.limit(),
            in_use: self.slots.in_use(),
            depth: self.queue.depth(),
            rpm: self.rpm_gauge(),
        }
    }

    /// The concurrency limit in force.
    pub(super) fn limit(&self) -> u32 {
        self.learning.limit(&self.settings)
    }

    /// What happened since the source was made.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// A refresh token of this source was refused.
    pub fn count_refused_refresh(&mut self) {
        let count = &mut self.tally.refresh_refused;
        *count = count.saturating_add(1);
    }

    /// What was learned.
    pub fn learned(&self) -> &Learning {
        &self.learning
    }

    /// The last report that said anything since the governor was loaded.
    pub fn last_report(&self) -> Option<&LastReport> {
        self.last_report.as_ref()
    }

    /// When the cool-down opens, if it is closed.
    pub fn cooldown(&self) -> Option<Millis> {
        self.cooldown.opens_at(self.seen)
    }

    /// When the RPM gate opens, the configured one and what was learned, if it
    /// is closed as of the last step.
    pub fn rpm_opens_at(&self) -> Option<Millis> {
        self.rpm_gate_opens_at(self.seen)
    }

    pub(super) fn rpm_gate_opens_at(&self, now: Millis) -> Option<Millis> {
        let limit = self.settings.rpm.limit;
        let configured = limit.and_then(|limit| self.rpm.opens_at(limit, WINDOW, now));
        if !self.settings.rpm.adaptive {
            return configured;
        }
        configured.max(self.learning.rate.opens_at(&self.rpm, now))
    }

    /// Grants in the last minute.
    pub fn granted_within_a_minute(&self) -> u32 {
        self.rpm.used()
    }

    fn rpm_gauge(&self) -> Option<RpmGauge> {
        let now = self.seen;
        let configured = self.settings.rpm.limit.map(|limit| Gate {
            limit,
            window: WINDOW,
        });
        let rate = &self.learning.rate;
        let adaptive = self.settings.rpm.adaptive;
        let learned = adaptive.then(|| rate.gates(now));
        let gates = configured.into_iter().chain(learned.into_iter().flatten());
        let counted = gates.map(|gate| {
            let used = self.rpm.used_within(gate.window, now);
            (gate, gate.limit.saturating_sub(used))
        });
        // What trickles lets one through at a time.
        let trickle = rate.trickle(now).filter(|_| adaptive);
        let trickle = trickle.map(|gate| (gate, gate.limit));
        let mut tightest: Option<RpmGauge> = None;
        for (gate, remaining) in counted.chain(trickle) {
            let so_far = tightest.unwrap_or(RpmGauge {
                limit: u32::MAX,
                remaining: u32::MAX,
            });
            tightest = Some(RpmGauge {
                limit: so_far.limit.min(gate.per_minute()),
                remaining: so_far.remaining.min(remaining),
            });
        }
        let tightest = tightest.or_else(|| self.budget_gauge())?;
        let left = self.budget_left().unwrap_or(u32::MAX);
        let is_closed = self.rpm_gate_opens_at(now).is_some();
        Some(RpmGauge {
            remaining: if is_closed {
                0
            } else {
                tightest.remaining.min(left)
            },
            ..tightest
        })
    }

    /// Where a limit was stated without its window, what is left of it is all
    /// that is known.
    fn budget_gauge(&self) -> Option<RpmGauge> {
        let told = self.learning.rate.stated(self.seen);
        let limit = told.filter(|_| self.settings.rpm.adaptive)?.limit;
        let remaining = limit;
        Some(RpmGauge { limit, remaining })
    }

    fn budget_left(&self) -> Option<u32> {
        let budget = self.learning.rate.budget?;
        let is_in_force = self.settings.rpm.adaptive && budget.resets_at > self.seen;
        let left = is_in_force.then(|| budget.left(&self.rpm))?;
        Some(u32::try_from(left).unwrap_or(u32::MAX))
    }
}
