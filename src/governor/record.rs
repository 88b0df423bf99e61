//! What is written down of each attempt, once, when it is answered.

use super::Governor;
use super::command::{Attempt, Effect, Outcome, SlotRow, TurnedAway, Verdict};
use super::ids::Ref;
use super::queue::Caller;
use super::time::{Millis, Span};

/// What an attempt got.
pub(super) enum Got {
    Nothing,
    Slot(SlotRow),
    /// The slot that its attempt holds already.
    Replay(Ref),
}

impl Governor {
    /// Answers a caller that was taken out of the queue without a slot.
    pub(super) fn turn_away(
        &mut self,
        now: Millis,
        caller: &Caller,
        verdict: Verdict,
        effects: &mut Vec<Effect>,
    ) {
        let outcome = match verdict {
            Verdict::Dismissed(_) => Outcome::Unauthorized,
            Verdict::Forbidden => Outcome::Forbidden,
            _ => Outcome::QueueTimeout,
        };
        self.record_unserved(now, caller, outcome, effects);
        effects.push(Effect::Answer {
            request: caller.request,
            answer: self.answer(verdict, now.since(caller.arrived)),
        });
    }

    pub(super) fn record_unserved(
        &mut self,
        now: Millis,
        caller: &Caller,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        let queued = now.since(caller.arrived);
        self.record(now, caller, outcome, queued, Got::Nothing, effects);
    }

    pub(super) fn turned_away(&mut self, now: Millis, one: TurnedAway, effects: &mut Vec<Effect>) {
        self.last = Ref(self.last.0.saturating_add(1));
        let slots = &self.slots;
        let (row, surplus) = if one.is_live {
            let held = |row| slots.holds_row(row);
            (self.ring.allocate(now, false, held), None)
        } else {
            self.ring.allocate_doorstep()
        };
        self.tally.attempt(self.last, one.outcome, Span::ZERO);
        effects.extend(surplus.map(|rows| Effect::Discard { rows }));
        effects.push(Effect::Record(Attempt {
            row,
            reference: self.last,
            at: now.minus(one.ago),
            request: one.request,
            key: one.key,
            ip: one.ip,
            outcome: one.outcome,
            queued: Span::ZERO,
            slot: None,
            replays: None,
        }));
    }

    /// Gives the attempt its ordinal and its row.
    pub(super) fn record(
        &mut self,
        now: Millis,
        caller: &Caller,
        outcome: Outcome,
        queued: Span,
        got: Got,
        effects: &mut Vec<Effect>,
    ) -> u32 {
        self.last = Ref(self.last.0.saturating_add(1));
        self.tally.attempt(self.last, outcome, queued);
        let (slot, replays) = match got {
            Got::Nothing => (None, None),
            Got::Slot(slot) => (Some(slot), None),
            Got::Replay(slot) => (None, Some(slot)),
        };
        let slots = &self.slots;
        let row = self
            .ring
            .allocate(now, slot.is_some(), |row| slots.holds_row(row));
        effects.push(Effect::Record(Attempt {
            row,
            reference: self.last,
            at: now,
            request: caller.request,
            key: Some(caller.key),
            ip: caller.ip.clone(),
            outcome,
            queued,
            slot,
            replays,
        }));
        row
    }
}
