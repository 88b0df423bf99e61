//! Who is granted, who waits, who is refused: acquire and hand-over.
//!
//! The one place where a slot is handed out. It asks the slots, the queue and
//! the gates; it never reads a clock and never frees a slot.

use super::Governor;
use super::command::{
    Acquire, Answer, Dismissal, Effect, Grant, Outcome, Refusal, Reply, SlotRow, Verdict,
};
use super::ids::{AttemptId, Ref, RequestId};
use super::queue::{Caller, Deadline};
use super::record::Got;
use super::slots::Slot;
use super::time::{Millis, Span};

impl Governor {
    /// Gives free slots to the head of the queue while the gates are open.
    pub(super) fn hand_over(&mut self, now: Millis, effects: &mut Vec<Effect>) {
        while !self.queue.is_empty() && self.has_free_slot() && self.closed(now).is_none() {
            let Some(place) = self.queue.pop() else {
                return;
            };
            let mut callers = place.callers.into_iter();
            let Some(first) = callers.next() else {
                continue;
            };
            let queued = now.since(first.arrived);
            let request = first.request;
            let slot = self.grant(now, place.attempt, &first, queued, effects);
            let answer = self.granted(place.attempt, request, queued);
            effects.extend(answer.map(|answer| Effect::Answer { request, answer }));
            for caller in callers {
                let queued = now.since(caller.arrived);
                let request = caller.request;
                let got = Got::Replay(slot);
                self.record(now, &caller, Outcome::Granted, queued, got, effects);
                let answer = self.granted(place.attempt, request, queued);
                effects.extend(answer.map(|answer| Effect::Answer { request, answer }));
            }
        }
    }

    pub(super) fn has_free_slot(&self) -> bool {
        self.slots.in_use() < self.limit()
    }

    /// Of the gates that are closed the one that opens last, and when: then all
    /// are open. Where both open at once, it is the cool-down.
    pub(super) fn closed(&self, now: Millis) -> Option<(Outcome, Millis)> {
        let cooldown = self.cooldown.opens_at(now);
        let rpm = self.rpm_gate_opens_at(now);
        if cooldown >= rpm {
            cooldown.map(|opens_at| (Outcome::Cooldown, opens_at))
        } else {
            rpm.map(|opens_at| (Outcome::Rpm, opens_at))
        }
    }

    pub(super) fn acquire(
        &mut self,
        now: Millis,
        acquire: Acquire,
        effects: &mut Vec<Effect>,
    ) -> Reply {
        let arrived = now.minus(acquire.waited);
        let longest = self.settings.queue.timeout;
        let deadline = arrived.plus(acquire.waited.plus(acquire.wait).min(longest));
        let caller = Caller {
            request: acquire.request,
            key: acquire.key,
            ip: acquire.ip,
            carrier: acquire.carrier,
            arrived,
            deadline: Deadline::first(deadline, acquire.expires),
            secret: acquire.secret,
            repeats: false,
        };
        let waits = deadline > now;
        let has_ended = acquire.expires.is_some_and(|end| end <= now);
        if let Some(reply) = self.again(now, acquire.attempt, &caller, has_ended, effects) {
            return reply;
        }
        if has_ended {
            let queued = acquire.waited;
            let outcome = Outcome::Unauthorized;
            self.record(now, &caller, outcome, queued, Got::Nothing, effects);
            return Reply::Acquire(self.answer(Verdict::Dismissed(Dismissal::KeyEnded), queued));
        }
        if self.queue.of_attempt(acquire.attempt).is_some() {
            if waits && self.queue.join(acquire.attempt, caller.clone()) {
                return Reply::Queued;
            }
            return self.refuse(now, &caller, waits, effects);
        }
        let overtakes = !self.queue.is_empty();
        if !overtakes && self.has_free_slot() && self.closed(now).is_none() {
            let (request, queued) = (caller.request, acquire.waited);
            self.grant(now, acquire.attempt, &caller, queued, effects);
            return self.reply_granted(acquire.attempt, request, queued);
        }
        // Whoever is carried over had a place already.
        let has_room =
            self.queue.depth() < self.settings.queue.max_depth || !acquire.waited.is_zero();
        if !waits || !has_room {
            return self.refuse(now, &caller, waits, effects);
        }
        self.queue.push(acquire.attempt, caller);
        Reply::Queued
    }

    /// The slot that the attempt holds already, given again. `has_ended`: the
    /// caller's key has.
    fn again(
        &mut self,
        now: Millis,
        attempt: AttemptId,
        caller: &Caller,
        has_ended: bool,
        effects: &mut Vec<Effect>,
    ) -> Option<Reply> {
        let slot = self.slots.of_attempt(attempt)?;
        // Its wait ended with the grant, however long the answer took: a holder
        // counts its term from there.
        let queued = slot.granted_at.since(caller.arrived);
        // A retry inside the service has its log entry, and its slot though its key
        // has ended since; a caller's repeat is an attempt of its own.
        if slot.request != caller.request {
            if has_ended {
                return None;
            }
            let got = Got::Replay(slot.reference);
            self.record(now, caller, Outcome::Granted, queued, got, effects);
        }
        Some(self.reply_granted(attempt, caller.request, queued))
    }

    /// Why there is no slot at `at`: the gate that opens last, else that none is
    /// free, or that those who are free are due to others.
    pub(super) fn refusal(&self, at: Millis) -> Refusal {
        let earliest_end = self.slots.earliest_end();
        match self.closed(at) {
            Some((Outcome::Cooldown, opens_at)) => Refusal::Cooldown { opens_at },
            Some((_, opens_at)) => Refusal::Rpm { opens_at },
            None => Refusal::NoFreeSlot { earliest_end },
        }
    }

    pub(super) fn refuse(
        &mut self,
        now: Millis,
        caller: &Caller,
        waits: bool,
        effects: &mut Vec<Effect>,
    ) -> Reply {
        let queued = now.since(caller.arrived);
        let (outcome, verdict) = if waits {
            let earliest_end = self.slots.earliest_end();
            let refusal = Refusal::QueueFull { earliest_end };
            (refusal.into(), Verdict::Refused(refusal))
        } else {
            let refusal = self.refusal(now);
            if queued.is_zero() {
                (refusal.into(), Verdict::Refused(refusal))
            } else {
                // Carried over, and its time ran out on the way.
                (Outcome::QueueTimeout, Verdict::TimedOut(refusal))
            }
        };
        self.record(now, caller, outcome, queued, Got::Nothing, effects);
        Reply::Acquire(self.answer(verdict, queued))
    }

    /// Takes a slot for the attempt and writes its row. The slot's name.
    pub(super) fn grant(
        &mut self,
        now: Millis,
        attempt: AttemptId,
        caller: &Caller,
        queued: Span,
        effects: &mut Vec<Effect>,
    ) -> Ref {
        let lease = &self.settings.lease;
        let request_deadline = now.plus(lease.request_timeout);
        let lease_deadline = now.plus(lease.term).min(request_deadline);
        let slot_row = SlotRow {
            secret: caller.secret,
            attempt,
            lease_deadline,
            request_deadline,
        };
        let row = self.record(
            now,
            caller,
            Outcome::Granted,
            queued,
            Got::Slot(slot_row),
            effects,
        );
        self.rpm.mark(now, 1);
        self.learning.rate.granted(now);
        self.slots.insert(Slot {
            row,
            reference: self.last,
            secret: caller.secret,
            attempt,
            request: caller.request,
            repeats: caller.repeats,
            key: caller.key,
            granted_at: now,
            in_use: self.slots.in_use().saturating_add(1),
            lease_deadline,
            request_deadline,
        });
        self.last
    }

    fn reply_granted(&self, attempt: AttemptId, request: RequestId, queued: Span) -> Reply {
        self.granted(attempt, request, queued)
            .map_or(Reply::Done, Reply::Acquire)
    }

    /// The answer to `request` if its attempt holds a slot.
    pub(super) fn granted(
        &self,
        attempt: AttemptId,
        request: RequestId,
        queued: Span,
    ) -> Option<Answer> {
        let slot = self.slots.of_attempt(attempt)?;
        let lease = &self.settings.lease;
        let grant = Grant {
            slot: slot.id(),
            lease_deadline: slot.lease_deadline,
            request_deadline: slot.request_deadline,
            term: lease.term,
            renew_interval: lease.renew_interval,
            replayed: slot.repeats || slot.request != request,
        };
        Some(self.answer(Verdict::Granted(grant), queued))
    }

    pub(super) fn answer(&self, verdict: Verdict, queued: Span) -> Answer {
        Answer {
            verdict,
            queued,
            gauge: self.gauge(),
        }
    }
}
