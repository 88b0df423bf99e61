//! What a release's report does to the gates and the limits, and what becomes of
//! them when settings change.

use super::Governor;
use super::command::Effect;
use super::ids::{AttemptId, KeyId, Ref, RequestId, SlotSecret};
use super::learning::{Around, Learning, Sample};
use super::settings::Settings;
use super::slots::Slot;
use super::time::Millis;
use crate::outcome::Report;

impl Governor {
    /// Takes the report of the slot that was just freed.
    pub(super) fn learn(
        &mut self,
        now: Millis,
        slot: &Slot,
        report: &Report,
        effects: &mut Vec<Effect>,
    ) {
        let was_open = self.cooldown.opens_at(now).is_none();
        let closes = report.closes_gate_for();
        let moved = closes.is_some_and(|span| self.cooldown.close(now, span));
        if moved {
            let until = self.cooldown.opens_at(now);
            effects.push(Effect::Cooldown { until });
        }
        let around = Around {
            now,
            last: self.last,
            settings: &self.settings,
            grants: &self.rpm,
        };
        let sample = Sample {
            reference: slot.reference,
            granted_at: slot.granted_at,
            in_use: slot.in_use,
            report,
        };
        let mut is_news = self.learning.learn(sample, around);
        if moved && was_open {
            is_news |= self.learning.cool_down(around);
        }
        if is_news {
            self.keep_learned(now, effects);
        }
    }

    /// A part of the settings that changes is learned afresh.
    pub(super) fn reconfigure(
        &mut self,
        now: Millis,
        settings: Settings,
        effects: &mut Vec<Effect>,
    ) {
        let before = std::mem::replace(&mut self.settings, settings);
        if self.learning.configure(&before, &self.settings) {
            self.keep_learned(now, effects);
        }
    }

    pub(super) fn forget_learned(&mut self, now: Millis, effects: &mut Vec<Effect>) {
        self.learning = Learning::new(&self.settings);
        self.keep_learned(now, effects);
        if self.cooldown.open(now) {
            effects.push(Effect::Cooldown { until: None });
        }
    }

    /// The governor as it would be if a call that is granted now came back with
    /// this report. Nothing changes here.
    #[must_use]
    pub fn explained(&self, now: Millis, report: &Report) -> Self {
        let mut after = self.clone();
        let now = now.max(self.seen);
        after.seen = now;
        after.last = Ref(self.last.0.saturating_add(1));
        let slot = Slot {
            row: u32::MAX,
            reference: after.last,
            secret: SlotSecret(0),
            attempt: AttemptId(0),
            request: RequestId(0),
            repeats: false,
            key: KeyId(0),
            granted_at: now,
            in_use: self.slots.in_use().max(1),
            lease_deadline: now,
            request_deadline: now,
        };
        after.learn(now, &slot, report, &mut Vec::new());
        after
    }

    fn keep_learned(&self, now: Millis, effects: &mut Vec<Effect>) {
        let text = self.learning.to_text(&self.rpm, now);
        effects.push(Effect::Learned { text });
    }
}
