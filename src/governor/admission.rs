//! Who is granted, who waits, who is refused: acquire and hand-over.
//!
//! The one place where a slot is handed out. It asks the slots, the queue and
//! the gates; it never reads a clock and never frees a slot.

use super::Governor;
use super::command::{Acquire, Answer, Effect, Grant, Outcome, Refusal, Reply, SlotRow, Verdict};
use super::ids::{AttemptId, RequestId};
use super::queue::{Caller, Deadline};
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
            self.grant(now, place.attempt, &first, queued, effects);
            let answer = self.granted(place.attempt, request, queued);
            effects.extend(answer.map(|answer| Effect::Answer { request, answer }));
            for caller in callers {
                let queued = now.since(caller.arrived);
                let request = caller.request;
                self.record(now, &caller, Outcome::Granted, queued, None, effects);
                let answer = self.granted(place.attempt, request, queued);
                effects.extend(answer.map(|answer| Effect::Answer { request, answer }));
            }
        }
    }

    pub(super) fn has_free_slot(&self) -> bool {
        self.slots.in_use() < self.limit()
    }

    /// Which gate is closed, and when both are open again.
    pub(super) fn closed(&self, now: Millis) -> Option<(Outcome, Millis)> {
        let cooldown = self.cooldown.opens_at(now);
        let rpm = self.rpm_gate_opens_at(now);
        match (cooldown, rpm) {
            (Some(cooldown), rpm) => Some((
                Outcome::Cooldown,
                rpm.map_or(cooldown, |rpm| rpm.max(cooldown)),
            )),
            (None, Some(rpm)) => Some((Outcome::Rpm, rpm)),
            (None, None) => None,
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
        };
        let waits = deadline > now;
        let queued = acquire.waited;
        let has_ended = acquire.expires.is_some_and(|end| end <= now);
        if let Some(answer) = self.granted(acquire.attempt, caller.request, queued) {
            // A retry inside the service has its log entry, and its slot though its
            // key has ended since; a caller's repeat is an attempt of its own.
            let is_repeat = matches!(&answer.verdict, Verdict::Granted(grant) if grant.replayed);
            if is_repeat && !has_ended {
                self.record(now, &caller, Outcome::Granted, queued, None, effects);
            }
            if !is_repeat || !has_ended {
                return Reply::Acquire(answer);
            }
        }
        if has_ended {
            self.record(now, &caller, Outcome::Unauthorized, queued, None, effects);
            return Reply::Acquire(self.answer(Verdict::Dismissed, queued));
        }
        if self.queue.of_attempt(acquire.attempt).is_some() {
            if waits && self.queue.join(acquire.attempt, caller.clone()) {
                return Reply::Queued;
            }
            return self.refuse(now, &caller, waits, effects);
        }
        let overtakes = !self.queue.is_empty();
        if !overtakes && self.has_free_slot() && self.closed(now).is_none() {
            let request = caller.request;
            self.grant(now, acquire.attempt, &caller, queued, effects);
            return match self.granted(acquire.attempt, request, queued) {
                Some(answer) => Reply::Acquire(answer),
                None => Reply::Done,
            };
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

    /// Why an acquire is refused now, the first reason that applies.
    pub(super) fn refusal(&self, now: Millis, waits: bool) -> Refusal {
        let earliest_end = self.slots.earliest_end();
        if waits {
            return Refusal::QueueFull { earliest_end };
        }
        match self.closed(now) {
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
        let (outcome, verdict) = if !waits && !queued.is_zero() {
            // Carried over, and its time ran out on the way.
            (Outcome::QueueTimeout, Verdict::TimedOut)
        } else {
            let refusal = self.refusal(now, waits);
            (refusal.into(), Verdict::Refused(refusal))
        };
        self.record(now, caller, outcome, queued, None, effects);
        Reply::Acquire(self.answer(verdict, queued))
    }

    /// Takes a slot for the attempt and writes its row.
    pub(super) fn grant(
        &mut self,
        now: Millis,
        attempt: AttemptId,
        caller: &Caller,
        queued: Span,
        effects: &mut Vec<Effect>,
    ) {
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
            Some(slot_row),
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
            key: caller.key,
            granted_at: now,
            in_use: self.slots.in_use().saturating_add(1),
            lease_deadline,
            request_deadline,
        });
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
            replayed: slot.request != request,
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
