//! The callers: most of them do as they are told, some are rude, some are gone.

use swarmvia_locks::governor::command::Renewed;
use swarmvia_locks::governor::ids::{AttemptId, KeyId, RequestId, SlotId, SlotSecret};
use swarmvia_locks::governor::time::Millis;

use crate::coverage::Seen;
use crate::disk::Kept;
use crate::said::{Said, Slot};
use crate::worker::Verb;
use crate::world::{Event, World};

/// Slots that a rude caller may name.
const REMEMBERED: usize = 12;

/// What a holder does with its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Works, renews, releases.
    Proper,
    Vanishes,
    /// Renews and releases only after its lease.
    Stalls,
    /// Renews as long as it may, and never releases.
    Hoards,
    ReleasesTwice,
}

#[derive(Clone, Debug)]
pub struct Caller {
    key: KeyId,
    session: u32,
    resting: bool,
    attempt: Option<AttemptId>,
    wait: u64,
    repeats: u32,
    slot: Option<Slot>,
    manner: Manner,
    works_until: u64,
}

impl Default for Caller {
    fn default() -> Self {
        Self {
            key: KeyId(0),
            session: 0,
            resting: true,
            attempt: None,
            wait: 0,
            repeats: 0,
            slot: None,
            manner: Manner::Proper,
            works_until: 0,
        }
    }
}

impl World {
    /// A caller comes for a slot.
    pub fn come(&mut self, caller: usize) {
        if self.quiet {
            return;
        }
        if self.rng.one_in(self.plan.rude) {
            self.stray(caller);
        }
        let key = self.a_key(self.callers[caller].key);
        let repeatable = self.rng.one_in(self.plan.repeatable);
        let attempt = repeatable.then(|| AttemptId(self.rng.wide()));
        let attempt = attempt.map(|own| self.shared(key).unwrap_or(own));
        let wait = if self.rng.one_in(self.plan.waiting) {
            self.rng.pick(&[50, 1_000, 5_000, 40_000])
        } else {
            0
        };
        let it = &mut self.callers[caller];
        it.session += 1;
        it.resting = false;
        it.slot = None;
        it.repeats = 0;
        (it.key, it.attempt, it.wait) = (key, attempt, wait);
        let call = self.ask(caller);
        if wait > 0 && self.rng.one_in(8) {
            let delay = self.rng.below(wait.min(3_000));
            self.schedule(delay, Event::HangUp(call));
        }
    }

    /// Now and then two callers share an `Idempotency-Key`.
    fn shared(&mut self, key: KeyId) -> Option<AttemptId> {
        let other = self.rng.index(self.callers.len());
        let other = &self.callers[other];
        let attempt = other.attempt.filter(|_| other.key == key && !other.resting);
        attempt.filter(|_| self.rng.one_in(3))
    }

    /// A key that is alive, if there is one; some cling to what they have.
    fn a_key(&mut self, old: KeyId) -> KeyId {
        let alive = self.object.disk.source.as_ref().map(Kept::alive);
        let mut alive = alive.unwrap_or_default();
        let now = self.clock();
        if !self.rng.one_in(8) {
            alive.retain(|key| self.end_of(*key).is_some_and(|end| end > now));
        }
        if alive.is_empty() || self.rng.one_in(12) {
            return old;
        }
        self.rng.pick(&alive)
    }

    fn ask(&mut self, caller: usize) -> usize {
        let it = &self.callers[caller];
        let (session, key, wait, own) = (it.session, it.key, it.wait, it.attempt);
        let request = self.rng.wide();
        let attempt = own.unwrap_or(AttemptId(request));
        let verb = Verb::Acquire { attempt };
        let request = RequestId(request);
        self.begin(caller, session, key, request, verb, wait)
    }

    /// A caller hears what became of its call.
    pub fn heard(&mut self, call: usize, said: Said) {
        let call = self.calls[call].clone();
        if let Verb::Refresh { token } = call.verb {
            self.refreshed(&call, token, said);
            return;
        }
        self.keeps_promise(&call.verb, said);
        let caller = call.caller;
        if call.session != self.callers[caller].session || self.callers[caller].resting {
            return;
        }
        match (call.verb, said) {
            (Verb::Acquire { .. }, Said::Granted(slot)) => self.hold(caller, slot),
            (Verb::Acquire { .. }, Said::Failed | Said::Broken) => self.repeat(caller),
            (Verb::Renew { .. }, Said::Renewed(Some(Renewed::Until(until)))) => {
                self.coverage.saw(Seen::Renewed);
                if let Some(slot) = &mut self.callers[caller].slot {
                    slot.until = until;
                }
                self.go_on(caller);
            }
            (Verb::Renew { .. }, Said::Renewed(Some(Renewed::Capped))) => {
                self.coverage.saw(Seen::Capped);
                if self.callers[caller].manner == Manner::Hoards {
                    self.rest(caller, call.session);
                } else {
                    self.act(caller, Event::Release, 0);
                }
            }
            (Verb::Renew { .. }, Said::Failed | Said::Broken) => self.go_on(caller),
            (Verb::Renew { .. }, Said::Renewed(None)) => {
                self.coverage.saw(Seen::RenewedGone);
                self.act(caller, Event::Release, 0);
            }
            (Verb::Release { .. }, said) => {
                if let Said::Released(released) = said {
                    let gone = !released;
                    self.coverage.saw(if gone {
                        Seen::ReleasedGone
                    } else {
                        Seen::Released
                    });
                }
                self.rest(caller, call.session);
            }
            _ => self.rest(caller, call.session),
        }
    }

    /// What is said to a holder holds.
    fn keeps_promise(&self, verb: &Verb, said: Said) {
        let promised: Option<(SlotId, Millis)> = match (verb, said) {
            (_, Said::Granted(slot)) => Some((slot.id, slot.until)),
            (Verb::Renew { slot }, Said::Renewed(Some(Renewed::Until(until)))) => {
                Some((*slot, until))
            }
            _ => None,
        };
        if let Some((slot, until)) = promised {
            self.books.promised(slot, until);
        }
    }

    /// The same again, under the same key, where there is one.
    fn repeat(&mut self, caller: usize) {
        let it = &mut self.callers[caller];
        if it.attempt.is_none() || it.repeats >= 3 {
            let session = it.session;
            self.rest(caller, session);
            return;
        }
        it.repeats += 1;
        self.coverage.saw(Seen::Repeated);
        self.ask(caller);
    }

    fn hold(&mut self, caller: usize, slot: Slot) {
        if self.ids.len() == REMEMBERED {
            self.ids.remove(0);
        }
        self.ids.push(slot.id);
        let manner = match self.rng.below(12) {
            0 => Manner::Vanishes,
            1 => Manner::Stalls,
            2 => Manner::Hoards,
            3 => Manner::ReleasesTwice,
            _ => Manner::Proper,
        };
        let works = self.rng.below(2 * self.plan.hold);
        let it = &mut self.callers[caller];
        it.slot = Some(slot);
        it.manner = manner;
        it.works_until = self.now + works;
        let session = it.session;
        match manner {
            Manner::Vanishes => {
                self.coverage.saw(Seen::Vanished);
                self.rest(caller, session);
            }
            Manner::Stalls => {
                self.coverage.saw(Seen::Stalled);
                let delay = slot.term.ms() + self.rng.below(1_000);
                self.act(caller, Event::Renew, delay);
            }
            Manner::Hoards => {
                self.coverage.saw(Seen::Hoarded);
                self.go_on(caller);
            }
            Manner::Proper | Manner::ReleasesTwice => self.go_on(caller),
        }
    }

    /// A holder works on: until its next renewal, or until it is done.
    fn go_on(&mut self, caller: usize) {
        let it = &self.callers[caller];
        let Some(slot) = it.slot else { return };
        let (manner, left) = (it.manner, it.works_until.saturating_sub(self.now));
        let interval = slot.interval.ms().max(1);
        if manner == Manner::Hoards || left > interval {
            self.act(caller, Event::Renew, interval);
            return;
        }
        self.act(caller, Event::Release, left);
        if manner == Manner::ReleasesTwice {
            self.coverage.saw(Seen::ReleasedTwice);
            let later = left + self.rng.below(30);
            self.act(caller, Event::Release, later);
        }
    }

    fn act(&mut self, caller: usize, act: fn(usize, u32) -> Event, delay: u64) {
        let session = self.callers[caller].session;
        self.schedule(delay, act(caller, session));
    }

    pub fn renew(&mut self, caller: usize, session: u32) {
        if let Some((slot, key)) = self.slot_of(caller, session) {
            self.name_slot(caller, session, key, Verb::Renew { slot });
        }
    }

    pub fn release(&mut self, caller: usize, session: u32) {
        if let Some((slot, key)) = self.slot_of(caller, session) {
            let report = self.plan.report(&mut self.rng);
            self.name_slot(caller, session, key, Verb::Release { slot, report });
        }
    }

    /// A call about a slot.
    fn name_slot(&mut self, caller: usize, session: u32, key: KeyId, verb: Verb) {
        let request = RequestId(self.rng.wide());
        self.begin(caller, session, key, request, verb, 0);
    }

    fn slot_of(&mut self, caller: usize, session: u32) -> Option<(SlotId, KeyId)> {
        let it = &self.callers[caller];
        let slot = it.slot.filter(|_| it.session == session)?;
        // A worker that runs for long goes on with a fresh key.
        let key = self.a_key(it.key);
        Some((slot.id, key))
    }

    /// A call about a slot that isn't the caller's, or isn't any more.
    fn stray(&mut self, caller: usize) {
        if self.ids.is_empty() {
            return;
        }
        let mut slot = self.rng.pick(&self.ids);
        if self.rng.one_in(3) {
            self.coverage.saw(Seen::Forged);
            slot.secret = SlotSecret(slot.secret.0 ^ (1 << 127));
        } else {
            self.coverage.saw(Seen::Stray);
        }
        let report = self.plan.report(&mut self.rng);
        let verb = match self.rng.below(2) {
            0 => Verb::Renew { slot },
            _ => Verb::Release { slot, report },
        };
        let key = self.a_key(self.callers[caller].key);
        self.name_slot(caller, u32::MAX, key, verb);
    }

    /// The session is over; the caller comes again.
    pub fn rest(&mut self, caller: usize, session: u32) {
        let it = &mut self.callers[caller];
        if it.session == session && !it.resting {
            it.resting = true;
            let delay = self.rng.below(2 * self.plan.think);
            self.schedule(delay, Event::Come(caller));
        }
    }
}
