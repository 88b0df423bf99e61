//! The callers and their Workers, who try again until they are answered.

use swarmvia_locks::governor::command::Command;
use swarmvia_locks::governor::ids::{AttemptId, RequestId};

use crate::bench::{Bench, RENEWALS, WAIT};
use crate::system::{Cut, State, TICK};
use crate::terms::{Kind, Message, Phase, Said};

impl State {
    pub fn come(&mut self, caller: usize) {
        let it = &mut self.callers[caller];
        if it.phase == Phase::Done {
            it.sessions -= 1;
        }
        it.request += 1;
        it.attempt = it.request;
        it.phase = Phase::Asking {
            since: self.tick,
            carried: false,
        };
        self.slots[caller] = None;
        self.send(caller);
    }

    /// The caller comes again with the same `Idempotency-Key`.
    pub fn repeat(&mut self, (caller, number): (usize, u8)) {
        let it = &mut self.callers[caller];
        if it.number == number {
            it.request += 1;
            it.phase = Phase::Asking {
                since: self.tick,
                carried: false,
            };
            self.send(caller);
        }
    }

    pub fn retry(&mut self, caller: usize) {
        if let Phase::Asking { carried, .. } = &mut self.callers[caller].phase {
            *carried = true;
        }
        self.send(caller);
    }

    /// One try of whatever the caller is at.
    fn send(&mut self, caller: usize) {
        let tick = self.tick;
        let name = self.slots[caller];
        let it = &mut self.callers[caller];
        let kind = match it.phase {
            Phase::Asking { since, carried } => {
                let waited = if carried {
                    ((tick - since) * TICK).max(1)
                } else {
                    0
                };
                Some(Kind::Acquire {
                    attempt: it.attempt,
                    request: it.request,
                    wait: WAIT.saturating_sub(waited),
                    waited,
                })
            }
            Phase::Renewing { .. } => name.map(Kind::Renew),
            Phase::Releasing => name.map(Kind::Release),
            Phase::Idle | Phase::Holding { .. } | Phase::Done => None,
        };
        if let Some(kind) = kind {
            it.number += 1;
            let number = it.number;
            self.post(Message {
                at: tick,
                caller,
                number,
                kind,
            });
        }
    }

    pub fn renew(&mut self, caller: usize) {
        if let Phase::Holding { until, .. } = self.callers[caller].phase {
            self.callers[caller].phase = Phase::Renewing { until };
            self.send(caller);
        }
    }

    pub fn release(&mut self, caller: usize) {
        self.callers[caller].phase = Phase::Releasing;
        self.send(caller);
    }

    pub fn hang_up(&mut self, bench: &Bench, caller: usize, noticed: bool) {
        let it = &mut self.callers[caller];
        it.phase = Phase::Done;
        let name = |of: u8| ((caller as u128) << 8) + u128::from(of);
        let (attempt, request) = (name(it.attempt), name(it.request));
        if noticed && self.waiting.remove(&request).is_some() {
            let command = Command::Leave {
                attempt: AttemptId(attempt),
                request: RequestId(request),
            };
            self.turn(bench, &command, None, Cut::Nowhere);
        }
    }

    /// An answer has reached the caller.
    pub fn hear(&mut self, caller: usize, said: Said) {
        let phase = self.callers[caller].phase;
        self.callers[caller].phase = match (phase, said) {
            (Phase::Asking { .. }, Said::Granted { slot, until }) => {
                self.slots[caller] = Some(slot);
                let renewals = RENEWALS;
                Phase::Holding { until, renewals }
            }
            (Phase::Asking { .. } | Phase::Renewing { .. }, Said::Again) => {
                self.retry(caller);
                return;
            }
            (Phase::Renewing { .. }, Said::Until(until))
            | (Phase::Renewing { until }, Said::Capped) => Phase::Holding { until, renewals: 0 },
            (Phase::Asking { .. } | Phase::Renewing { .. } | Phase::Releasing, _) => Phase::Done,
            (other, _) => other,
        };
    }

    /// Who holds a slot for sure, and until when in ms since the start.
    pub fn holders(&self) -> impl Iterator<Item = (usize, u64)> {
        let now = self.tick * TICK;
        let callers = self.callers.iter().enumerate();
        callers.filter_map(move |(index, caller)| match caller.phase {
            Phase::Holding { until, .. } | Phase::Renewing { until } if until > now => {
                Some((index, until))
            }
            _ => None,
        })
    }

    /// What memory holds is on disk, and the other way round.
    pub fn is_whole(&self) -> bool {
        let clock = self.clock();
        let Some(governor) = &self.governor else {
            return true;
        };
        let mut stored = self.disk.snapshot(clock).held;
        stored.sort_by_key(|slot| slot.reference);
        let present = governor.slots();
        let mut present = present.iter().filter(|slot| slot.lease_deadline > clock);
        let same = stored.iter().all(|slot| {
            present.next().is_some_and(|it| {
                (it.reference, it.attempt, it.lease_deadline)
                    == (slot.reference, slot.attempt, slot.lease_deadline)
            })
        });
        same && present.next().is_none()
    }

    /// Each try that stands in the object has its place in the queue.
    pub fn everyone_is_known(&self) -> bool {
        let queue = &self.view.queue;
        let mut waiting = self.waiting.keys();
        waiting.all(|request| queue.iter().any(|(queued, _)| queued == request))
    }
}
