//! What the books demand of each effect and each reply.

use swarmvia_locks::governor::Step;
use swarmvia_locks::governor::command::{
    Acquire, Answer, Attempt, Command, Effect, Outcome, Renewed, Reply, SlotRow, Verdict,
};
use swarmvia_locks::governor::ids::RequestId;
use swarmvia_locks::governor::time::{Millis, Span};

use super::force::Force;
use super::{Books, Granted, Holding, Place, Waiter};

const MINUTE: Span = Span::from_seconds(60);

impl Books {
    pub(super) fn recorded(&mut self, command: &Command, attempt: &Attempt, in_force: &Force) {
        assert!(
            self.held.iter().all(|slot| slot.row != attempt.row),
            "a held row is written over"
        );
        match &attempt.slot {
            Some(taken) => self.granted(command, attempt, taken, in_force),
            None if attempt.outcome == Outcome::Left => drop(self.take(attempt.request)),
            None => {}
        }
    }

    /// Whether a held row was left out just before this one.
    pub(super) fn passed_over(&mut self, row: u32) -> bool {
        let last = std::mem::replace(&mut self.last_row, row);
        let before = row.checked_sub(1).filter(|before| *before != last);
        before.is_some_and(|before| self.held.iter().any(|slot| slot.row == before))
    }

    fn granted(&mut self, command: &Command, attempt: &Attempt, taken: &SlotRow, force: &Force) {
        let limit = force.limit;
        assert!(
            self.held.len() < limit,
            "over the limit: {} of {limit}",
            self.held.len() + 1
        );
        while self
            .grants
            .front()
            .is_some_and(|at| at.plus(MINUTE) <= self.now)
        {
            self.grants.pop_front();
        }
        assert!(
            self.grants.len() < force.rpm,
            "over the RPM limit: {}",
            force.rpm
        );
        assert!(
            self.cooldown.is_none_or(|until| until <= self.now),
            "granted in a cool-down"
        );
        assert!(
            self.served.is_empty(),
            "granted and not answered: {:?}",
            self.served
        );
        if self.queue.is_empty() {
            let newcomer = matches!(command, Command::Acquire(it) if it.attempt == taken.attempt);
            assert!(newcomer, "granted to nobody: {attempt:?}");
        } else {
            let head = self.queue.remove(0);
            assert_eq!(
                head.attempt, taken.attempt,
                "the head of the queue was overtaken"
            );
            self.served = head.waiters;
        }
        assert!(
            self.held.iter().all(|slot| slot.attempt != taken.attempt),
            "a second slot"
        );
        let (until, freed) = (taken.lease_deadline, false);
        let twice = self.all.insert(taken.secret.0, Granted { until, freed });
        assert!(twice.is_none(), "a slot id given twice");
        self.grants.push_back(self.now);
        self.held.push(Holding {
            row: attempt.row,
            secret: taken.secret.0,
            attempt: taken.attempt,
            until,
        });
    }

    pub(super) fn answered(&mut self, request: RequestId, answer: &Answer) {
        match &answer.verdict {
            Verdict::Granted(grant) => {
                assert!(!self.served.is_empty(), "{request:?} was not to be served");
                let waiter = self.served.remove(0);
                assert_eq!(waiter.request, request);
                assert!(waiter.deadline >= self.now, "granted past its deadline");
                assert!(
                    self.held
                        .iter()
                        .any(|held| held.secret == grant.slot.secret.0)
                );
            }
            Verdict::TimedOut(_) => {
                assert!(self.take(request).deadline <= self.now, "timed out early");
            }
            Verdict::Dismissed(_) | Verdict::Forbidden => drop(self.take(request)),
            Verdict::Refused(_) => panic!("a waiter is not refused"),
        }
    }

    /// It has left the queue, and will call again.
    pub(super) fn asked(&mut self, request: RequestId) {
        self.take(request);
    }

    fn take(&mut self, request: RequestId) -> Waiter {
        let of = |place: &Place| place.waiters.iter().position(|it| it.request == request);
        let mut places = self.queue.iter().enumerate();
        let (at, index) = places
            .find_map(|(at, place)| Some((at, of(place)?)))
            .expect("someone who waits");
        let waiter = self.queue[at].waiters.remove(index);
        if self.queue[at].waiters.is_empty() {
            self.queue.remove(at);
        }
        waiter
    }

    pub(super) fn extended(&mut self, row: u32, until: Millis) {
        let mut held = self.held.iter_mut();
        let slot = held.find(|slot| slot.row == row).expect("a held slot");
        assert!(until > slot.until, "a promised deadline moved back");
        slot.until = until;
        self.all
            .entry(slot.secret)
            .and_modify(|it| it.until = until);
    }

    pub(super) fn freed(&mut self, command: &Command, row: u32) {
        let mut held = self.held.iter();
        let at = held
            .position(|slot| slot.row == row)
            .expect("a slot freed twice");
        let slot = self.held.remove(at);
        if let Command::Release { slot: named, .. } = command {
            let its = (named.row, named.secret.0) == (slot.row, slot.secret);
            assert!(its, "another slot than the one that was named");
        }
        let granted = self
            .all
            .get_mut(&slot.secret)
            .expect("a slot that was granted");
        assert!(!granted.freed, "a slot freed twice");
        granted.freed = true;
    }

    pub(super) fn replied(&mut self, command: &Command, step: &Step) {
        match (command, &step.reply) {
            (Command::Acquire(acquire), Reply::Queued) => self.enqueue(acquire),
            (Command::Renew { slot }, Reply::Renew(renewed)) => {
                let mut held = self.held.iter();
                let held = held.find(|it| it.secret == slot.secret.0);
                match renewed {
                    Some(Renewed::Until(until)) => {
                        assert_eq!(held.map(|held| held.until), Some(*until));
                    }
                    Some(Renewed::Capped) => assert!(held.is_some()),
                    None => assert!(held.is_none(), "a slot was lost before its time"),
                }
            }
            (Command::Release { .. } | Command::Force { .. }, Reply::Release(released)) => {
                let ends = |effect: &&Effect| matches!(effect, Effect::End { .. });
                let ended = step.effects.iter().filter(ends).count();
                assert_eq!(ended, usize::from(*released), "a release counts once");
            }
            _ => {}
        }
    }

    fn enqueue(&mut self, acquire: &Acquire) {
        let arrived = self.now.minus(acquire.waited);
        let longest = self.settings.queue.timeout;
        let waiter = Waiter {
            request: acquire.request,
            arrived,
            deadline: arrived.plus(acquire.waited.plus(acquire.wait).min(longest)),
        };
        let mut places = self.queue.iter_mut();
        if let Some(place) = places.find(|place| place.attempt == acquire.attempt) {
            match place
                .waiters
                .iter_mut()
                .find(|it| it.request == acquire.request)
            {
                Some(former) => *former = waiter,
                // The one that came first made the attempt.
                None if arrived < place.first => {
                    place.first = arrived;
                    place.waiters.insert(0, waiter);
                }
                None => place.waiters.push(waiter),
            }
            return;
        }
        let behind = self.queue.partition_point(|place| place.arrived <= arrived);
        let place = Place {
            attempt: acquire.attempt,
            arrived: waiter.arrived,
            first: waiter.arrived,
            waiters: vec![waiter],
        };
        self.queue.insert(behind, place);
    }
}
