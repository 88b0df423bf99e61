//! What the observer demands of each effect.

use std::ops::Range;

use swarmvia_locks::governor::command::{
    Answer, Attempt, Command, Effect, Outcome, SlotRow, TurnedAway, Verdict,
};
use swarmvia_locks::governor::ids::{Ref, RequestId};
use swarmvia_locks::governor::ring::DOORSTEP;
use swarmvia_locks::governor::time::{Millis, Span};

use super::{Held, Observer, Row, Waiter};

impl Observer {
    pub(super) fn effects(&mut self, command: &Command, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Record(attempt) => self.recorded(command, attempt),
                Effect::Answer { request, answer } => self.answered(command, *request, answer),
                Effect::Extend {
                    row,
                    lease_deadline,
                } => self.extended(command, *row, *lease_deadline),
                Effect::End { row } => self.ended(command, *row),
                Effect::Discard { rows } => self.discarded(rows.clone()),
                Effect::Ask { request } => self.asked(command, *request),
                Effect::Learned { .. } => panic!("nothing is adaptive here"),
                Effect::Cooldown { until } => {
                    assert_eq!(
                        *until,
                        Some(self.cooldown),
                        "not the moment that was reported"
                    );
                }
            }
        }
    }

    /// A row is written: once per attempt, and over nothing that is needed.
    pub(super) fn recorded(&mut self, command: &Command, attempt: &Attempt) {
        assert!(self.recorded.is_none(), "not answered: {:?}", self.recorded);
        assert_eq!(attempt.reference, Ref(self.last + 1));
        let door = turned_away(command, attempt);
        let ago = door.map_or(Span::ZERO, |one| one.ago);
        assert_eq!(attempt.at, self.now.minus(ago));
        assert!(!self.pinned(attempt.row), "row {} is needed", attempt.row);
        self.last += 1;
        let granted_at = attempt.slot.as_ref().map(|_| self.now);
        let row = Row {
            reference: self.last,
            granted_at,
        };
        self.rows.insert(attempt.row, row);
        let log = if attempt.row < DOORSTEP {
            &mut self.written
        } else {
            &mut self.knocks
        };
        log.push(self.last);
        if let Some(taken) = &attempt.slot {
            self.granted(command, attempt, taken);
        }
        if let Some(one) = door {
            assert_eq!(attempt.row < DOORSTEP, one.is_live);
            assert!(attempt.slot.is_none());
            self.turned_away += 1;
        } else if attempt.outcome == Outcome::Left {
            self.left(command, attempt);
        } else {
            self.recorded = Some(attempt.clone());
        }
    }

    /// A slot is taken: within every limit, and by whoever came first.
    fn granted(&mut self, command: &Command, attempt: &Attempt, taken: &SlotRow) {
        let mut in_force = self.in_force.iter();
        let admitted = in_force.any(|set| self.has_room(set) && self.rpm_open(set));
        assert!(
            admitted,
            "over the limit: {:?}, {} in the window",
            self.held,
            self.rpm_used()
        );
        assert!(self.cooldown <= self.now, "granted in a cool-down");
        assert!(self.served.is_empty(), "not answered: {:?}", self.served);
        let mut repeats = false;
        match (self.places.first(), command) {
            (Some(head), _) => {
                assert_eq!(head.attempt, taken.attempt, "the head was overtaken");
                assert_eq!(head.waiters[0].request, attempt.request);
                repeats = head.waiters[0].repeats;
                self.served = self.places.remove(0).waiters;
            }
            (None, Command::Acquire(newcomer)) => {
                assert_eq!(newcomer.attempt, taken.attempt);
                assert_eq!(newcomer.request, attempt.request);
            }
            (None, _) => panic!("granted to nobody: {attempt:?}"),
        }
        assert!(
            self.held.iter().all(|slot| slot.attempt != taken.attempt),
            "a second slot"
        );
        assert!(
            self.given.insert((attempt.row, taken.secret.0)),
            "an id given twice"
        );
        self.check_lease(taken);
        self.grants.push(self.now);
        self.held.push(Held {
            row: attempt.row,
            secret: taken.secret.0,
            reference: attempt.reference.0,
            attempt: taken.attempt,
            request: attempt.request,
            repeats,
            lease_deadline: taken.lease_deadline,
            request_deadline: taken.request_deadline,
        });
    }

    /// The term begins with the grant.
    fn check_lease(&self, taken: &SlotRow) {
        let as_promised = self.in_force.iter().any(|set| {
            let request_deadline = self.now.plus(set.lease.request_timeout);
            let lease_deadline = self.now.plus(set.lease.term).min(request_deadline);
            (taken.lease_deadline, taken.request_deadline) == (lease_deadline, request_deadline)
        });
        assert!(as_promised, "{taken:?} granted at {:?}", self.now);
    }

    /// A waiter is answered: once, in time, and only for what happened.
    fn answered(&mut self, command: &Command, request: RequestId, answer: &Answer) {
        let record = self.recorded.take().expect("an answer without its row");
        assert_eq!(record.request, request);
        let waiter = match &answer.verdict {
            Verdict::Granted(_) => {
                assert!(!self.served.is_empty(), "{request:?} was not to be served");
                self.served.remove(0)
            }
            Verdict::TimedOut(refusal) => {
                let waiter = self.take_waiter(request);
                assert!(waiter.deadline <= self.now, "timed out before its deadline");
                let could_be_served = waiter.deadline == self.now && self.admits();
                assert!(!could_be_served, "timed out beside a free slot");
                assert!(!waiter.ends_with_key, "its key had ended");
                let due = self.refusal(&self.in_force[0], waiter.deadline);
                assert_eq!(*refusal, due, "what kept it waiting");
                waiter
            }
            Verdict::Dismissed(_) => {
                let waiter = self.take_waiter(request);
                let of_key = matches!(command, Command::Dismiss { key } if *key == waiter.key);
                let ended = waiter.ends_with_key && waiter.deadline <= self.now;
                let by_carrier =
                    self.has_new_policy(command) && !self.settings.access.carries(waiter.carrier);
                let ends = matches!(command, Command::Close);
                assert!(of_key || ended || by_carrier || ends);
                waiter
            }
            Verdict::Forbidden => {
                let waiter = self.take_waiter(request);
                assert!(self.has_new_policy(command));
                assert!(self.settings.access.carries(waiter.carrier));
                assert!(!self.settings.access.admits(waiter.ip.as_deref()));
                waiter
            }
            Verdict::Refused(_) => panic!("a waiter is not refused"),
        };
        assert_eq!(waiter.request, request);
        assert!(
            waiter.may_be_granted(self.now) || !is_grant(answer),
            "granted past its deadline"
        );
        assert_eq!(answer.queued, self.now.since(waiter.arrived));
        self.check_record(&record, answer);
        if !matches!(answer.verdict, Verdict::Dismissed(_) | Verdict::Forbidden) {
            self.check_gauge(answer);
        }
        self.check_grant(waiter.attempt, request, answer);
    }

    /// A waiter is to show more: only where the new policy asks for it.
    fn asked(&mut self, command: &Command, request: RequestId) {
        assert!(self.has_new_policy(command));
        assert!(self.settings.access.asks_anew(&self.policy_before));
        let waiter = self.take_waiter(request);
        assert!(waiter.is_let_in(&self.settings.access));
    }

    pub(super) fn has_new_policy(&self, command: &Command) -> bool {
        let is_change = matches!(command, Command::Configure(_));
        is_change && self.settings.access != self.policy_before
    }

    pub(super) fn check_gauge(&self, answer: &Answer) {
        let mut in_force = self.in_force.iter();
        assert!(
            in_force.any(|set| answer.gauge == self.gauge(set)),
            "{answer:?}"
        );
    }

    /// The row says what the answer says.
    pub(super) fn check_record(&self, record: &Attempt, answer: &Answer) {
        let outcome = match answer.verdict {
            Verdict::Granted(_) => Outcome::Granted,
            Verdict::TimedOut(_) => Outcome::QueueTimeout,
            Verdict::Dismissed(_) => Outcome::Unauthorized,
            Verdict::Forbidden => Outcome::Forbidden,
            Verdict::Refused(refusal) => refusal.into(),
        };
        assert_eq!((record.outcome, record.queued), (outcome, answer.queued));
        let slot = match &answer.verdict {
            Verdict::Granted(grant) => self.held_by(grant.slot),
            _ => None,
        };
        let slot = slot.map(|slot| Ref(slot.reference));
        assert_eq!(record.slot_reference(), slot, "another slot in the log");
    }

    /// Whether the head could be granted, by what was in force before the step.
    fn admits(&self) -> bool {
        let set = &self.in_force[0];
        self.has_room(set) && self.rpm_open(set) && self.cooldown <= self.now
    }

    fn left(&mut self, command: &Command, attempt: &Attempt) {
        match command {
            Command::Leave { request, .. } => assert_eq!(*request, attempt.request),
            other => panic!("nobody left at {other:?}"),
        }
        let waiter = self.take_waiter(attempt.request);
        assert_eq!(attempt.queued, self.now.since(waiter.arrived));
    }

    fn take_waiter(&mut self, request: RequestId) -> Waiter {
        let places = &mut self.places;
        let waits = |waiters: &[Waiter]| waiters.iter().position(|w| w.request == request);
        let found = places.iter().enumerate();
        let mut found = found.filter_map(|(at, place)| Some((at, waits(&place.waiters)?)));
        let (at, index) = found.next().expect("nobody waits by that name");
        let waiter = places[at].waiters.remove(index);
        if places[at].waiters.is_empty() {
            places.remove(at);
        }
        waiter
    }

    fn extended(&mut self, command: &Command, row: u32, lease_deadline: Millis) {
        assert!(matches!(command, Command::Renew { slot } if slot.row == row));
        let slot = self
            .held
            .iter_mut()
            .find(|slot| slot.row == row)
            .expect("a held row");
        assert!(
            lease_deadline > slot.lease_deadline,
            "a renewal that shortens"
        );
        slot.lease_deadline = lease_deadline;
    }

    fn ended(&mut self, command: &Command, row: u32) {
        let at = self
            .held
            .iter()
            .position(|slot| slot.row == row)
            .expect("a held row");
        let named = match command {
            Command::Release { slot, .. } => self.held_by(*slot).is_some_and(|s| s.row == row),
            Command::Force { reference } => self.held[at].reference == reference.0,
            _ => false,
        };
        assert!(named, "{command:?} ended row {row}");
        self.held.remove(at);
        if let Command::Release { report, .. } = command {
            self.reported(report);
        }
    }

    fn discarded(&mut self, rows: Range<u32>) {
        for row in rows {
            assert!(!self.pinned(row), "row {row} is needed");
            self.rows.remove(&row);
        }
    }
}

fn is_grant(answer: &Answer) -> bool {
    matches!(answer.verdict, Verdict::Granted(_))
}

/// The row of someone who never came further than the door.
fn turned_away<'a>(command: &'a Command, attempt: &Attempt) -> Option<&'a TurnedAway> {
    let Command::TurnedAway(those) = command else {
        return None;
    };
    let mut those = those.iter();
    those.find(|one| (one.request, one.key) == (attempt.request, attempt.key))
}
