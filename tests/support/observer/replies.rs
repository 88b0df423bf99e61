//! What the observer demands of each reply, by the contract's words.

use swarmvia_locks::governor::Step;
use swarmvia_locks::governor::command::{
    Acquire, Answer, Command, Effect, Refusal, Renewed, Reply, Verdict,
};
use swarmvia_locks::governor::ids::{AttemptId, RequestId, SlotId};
use swarmvia_locks::governor::time::{Millis, Span};
use swarmvia_locks::outcome::Report;

use super::{Observer, Place, Waiter};

const TEN_MINUTES: Span = Span::from_seconds(600);
/// Callers that may share a place.
const CALLERS: usize = 16;

/// What an acquire must come to.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Replay,
    Grant,
    Queue,
    TimeOut(Refusal),
    Dismiss,
    Refuse(Refusal),
}

impl Observer {
    pub(super) fn acquired(
        &mut self,
        command: &Command,
        acquire: &Acquire,
        reply: &Reply,
        step: &Step,
    ) {
        // What time did comes first; a record that no answer follows is the
        // acquire's own.
        let of_waiters = |effect: &Effect| matches!(effect, Effect::Answer { .. });
        let split = step
            .effects
            .iter()
            .rposition(of_waiters)
            .map_or(0, |last| last + 1);
        let (before, after) = step.effects.split_at(split);
        self.effects(command, before);
        let waiter = self.waiter(acquire);
        let due = self.due(acquire, &waiter);
        self.effects(command, after);
        match reply {
            Reply::Queued => {
                assert_eq!(due, Due::Queue);
                self.enqueue(waiter);
            }
            Reply::Acquire(answer) => self.decided(&due, &waiter, answer),
            other => panic!("{other:?} to an acquire"),
        }
    }

    fn waiter(&self, acquire: &Acquire) -> Waiter {
        let arrived = self.now.minus(acquire.waited);
        let allowed = acquire.waited.plus(acquire.wait);
        let end = arrived.plus(allowed.min(self.settings.queue.timeout));
        let ends_with_key = acquire.expires.is_some_and(|key| key <= end);
        Waiter {
            request: acquire.request,
            attempt: acquire.attempt,
            key: acquire.key,
            expires: acquire.expires,
            carrier: acquire.carrier,
            ip: acquire.ip.clone(),
            arrived,
            deadline: acquire.expires.map_or(end, |key| key.min(end)),
            ends_with_key,
            repeats: false,
        }
    }

    fn due(&self, acquire: &Acquire, waiter: &Waiter) -> Due {
        let waits = waiter.deadline > self.now;
        let has_ended = acquire.expires.is_some_and(|end| end <= self.now);
        let mut held = self.held.iter();
        match held.find(|slot| slot.attempt == acquire.attempt) {
            Some(slot) if !has_ended || slot.request == acquire.request => return Due::Replay,
            _ if has_ended => return Due::Dismiss,
            _ => {}
        }
        let room = match self
            .places
            .iter()
            .find(|place| place.attempt == acquire.attempt)
        {
            Some(place) => {
                let again = place.waiters.iter().any(|w| w.request == acquire.request);
                again || place.waiters.len() < CALLERS
            }
            None if self.can_grant() => return Due::Grant,
            None => {
                let carried_over = acquire.waited > Span::ZERO;
                carried_over || self.places.len() < self.settings.queue.max_depth as usize
            }
        };
        match (waits, room) {
            (true, true) => Due::Queue,
            (true, false) => Due::Refuse(Refusal::QueueFull {
                earliest_end: self.earliest_end(),
            }),
            (false, _) => {
                let refusal = self.refusal(&self.settings, self.now);
                if acquire.waited > Span::ZERO {
                    Due::TimeOut(refusal)
                } else {
                    Due::Refuse(refusal)
                }
            }
        }
    }

    fn can_grant(&self) -> bool {
        self.places.is_empty() && self.has_room(&self.settings) && self.opens_at().is_none()
    }

    fn enqueue(&mut self, mut waiter: Waiter) {
        let mut places = self.places.iter_mut();
        if let Some(place) = places.find(|place| place.attempt == waiter.attempt) {
            let mut waiters = place.waiters.iter_mut();
            match waiters.find(|former| former.request == waiter.request) {
                Some(former) => {
                    waiter.repeats = former.repeats;
                    *former = waiter;
                }
                // Carried over after one that had come later.
                None if waiter.arrived < place.first => {
                    place.first = waiter.arrived;
                    place.waiters.iter_mut().for_each(|it| it.repeats = true);
                    place.waiters.insert(0, waiter);
                }
                None => {
                    waiter.repeats = true;
                    place.waiters.push(waiter);
                }
            }
            return;
        }
        let behind = self
            .places
            .partition_point(|place| place.arrived <= waiter.arrived);
        let place = Place {
            attempt: waiter.attempt,
            arrived: waiter.arrived,
            first: waiter.arrived,
            waiters: vec![waiter],
        };
        self.places.insert(behind, place);
    }

    fn decided(&mut self, due: &Due, waiter: &Waiter, answer: &Answer) {
        match (&answer.verdict, due) {
            (Verdict::Granted(grant), Due::Replay | Due::Grant) => {
                assert!(*due == Due::Replay || !grant.replayed);
            }
            (Verdict::Dismissed(_), Due::Dismiss) => {}
            (Verdict::TimedOut(refusal), Due::TimeOut(reason))
            | (Verdict::Refused(refusal), Due::Refuse(reason)) => assert_eq!(refusal, reason),
            (verdict, due) => panic!("{due:?} was due, not {verdict:?}"),
        }
        let until = match &answer.verdict {
            // It waited until the attempt had its slot.
            Verdict::Granted(grant) => self.rows[&grant.slot.row].granted_at.unwrap(),
            _ => self.now,
        };
        assert_eq!(answer.queued, until.since(waiter.arrived));
        match self.recorded.take() {
            Some(record) => {
                assert_eq!(record.request, waiter.request);
                self.check_record(&record, answer);
            }
            None => assert!(self.is_retry(waiter), "an answer without its row"),
        }
        self.check_gauge(answer);
        self.check_grant(waiter.attempt, waiter.request, answer);
    }

    /// The very request that took the slot has come again.
    fn is_retry(&self, waiter: &Waiter) -> bool {
        let mut held = self.held.iter();
        held.any(|slot| slot.attempt == waiter.attempt && slot.request == waiter.request)
    }

    /// A grant names the slot that the attempt holds, as it stands now.
    pub(super) fn check_grant(&self, attempt: AttemptId, request: RequestId, answer: &Answer) {
        let Verdict::Granted(grant) = &answer.verdict else {
            return;
        };
        let slot = self.held_by(grant.slot).expect("a slot that is held");
        assert_eq!(slot.attempt, attempt);
        assert_eq!(grant.lease_deadline, slot.lease_deadline);
        assert_eq!(grant.request_deadline, slot.request_deadline);
        assert_eq!(grant.replayed, slot.repeats || slot.request != request);
        let mut in_force = self.in_force.iter();
        assert!(in_force.any(|set| {
            (grant.term, grant.renew_interval) == (set.lease.term, set.lease.renew_interval)
        }));
    }

    pub(super) fn renewed(
        &mut self,
        command: &Command,
        id: SlotId,
        renewed: Option<Renewed>,
        step: &Step,
    ) {
        let extends = |effect: &&Effect| matches!(effect, Effect::Extend { .. });
        let written = step.effects.iter().filter(extends).count();
        let (due, writes) = match self.held_by(id) {
            None => (None, 0),
            Some(slot) if slot.lease_deadline == slot.request_deadline => {
                (Some(Renewed::Capped), 0)
            }
            Some(slot) => {
                let wanted = self.now.plus(self.settings.lease.term);
                let until = wanted.min(slot.request_deadline).max(slot.lease_deadline);
                (
                    Some(Renewed::Until(until)),
                    usize::from(until > slot.lease_deadline),
                )
            }
        };
        assert_eq!(
            (renewed, written),
            (due, writes),
            "renewal and rows written"
        );
        self.effects(command, &step.effects);
        if let Some(Renewed::Until(until)) = due {
            assert_eq!(
                self.held_by(id).map(|slot| slot.lease_deadline),
                Some(until)
            );
        }
    }

    pub(super) fn released(&mut self, command: &Command, released: bool, step: &Step) {
        let due = match command {
            Command::Release { slot, .. } => self.held_by(*slot).is_some(),
            Command::Force { reference } => {
                self.held.iter().any(|slot| slot.reference == reference.0)
            }
            _ => false,
        };
        assert_eq!(released, due);
        let closed_until = self.cooldown;
        self.effects(command, &step.effects);
        let count = |wanted: fn(&Effect) -> bool| {
            step.effects.iter().filter(|effect| wanted(effect)).count()
        };
        assert_eq!(
            count(|effect| matches!(effect, Effect::End { .. })),
            usize::from(due)
        );
        let moved = usize::from(self.cooldown != closed_until);
        assert_eq!(
            count(|effect| matches!(effect, Effect::Cooldown { .. })),
            moved
        );
    }

    /// A report counts with the release that freed the slot.
    pub(super) fn reported(&mut self, report: &Report) {
        let throttled = match report.status {
            None | Some(429 | 503) => true,
            Some(_) => report.throttled.unwrap_or(0) > 0,
        };
        let rate = &report.rate;
        let hint = rate.retry_after.filter(|_| throttled);
        let requests = rate.reset.filter(|_| rate.remaining == Some(0));
        let tokens = rate.token_reset.filter(|_| rate.token_remaining == Some(0));
        for closed in [hint, requests, tokens].into_iter().flatten() {
            let until: Millis = self.now.plus(closed.min(TEN_MINUTES));
            if until > self.now {
                self.cooldown = self.cooldown.max(until);
            }
        }
    }
}
