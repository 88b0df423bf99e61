//! The Worker's side of a call, as `worker/object-call.js` has it: tries in a row with
//! growing pauses, a waiter carried over with the time it waited, and an end to
//! all patience.

use swarmvia_locks::governor::command::Command;
use swarmvia_locks::governor::ids::{AttemptId, KeyId, RequestId, SlotId};
use swarmvia_locks::governor::time::Millis;
use swarmvia_locks::outcome::Report;
use swarmvia_locks::protocol::tries::{self, MOST_TRIES};

use crate::coverage::Seen;
use crate::object::Try;
use crate::said::Said;
use crate::world::{Event, World};

const PATIENCE: u64 = tries::PATIENCE.ms();
const FIRST_PAUSE: u64 = tries::FIRST_PAUSE.ms();
const QUIET: u64 = tries::QUIET.ms();

/// The longest that a message takes here, where it arrives at all.
const LONGEST_WAY: u64 = 2_000;
/// Beyond the waiting time: the last try begins within one patience and is
/// given up after another; and the pause before it.
const LONGEST_CALL: u64 = 2 * PATIENCE + 2_000;

#[derive(Clone, Copy, Debug)]
pub enum Verb {
    Acquire {
        attempt: AttemptId,
    },
    Renew {
        slot: SlotId,
    },
    Release {
        slot: SlotId,
        report: Report,
    },
    /// Tokens of a family are numbered: each leads to the next.
    Refresh {
        token: u64,
    },
}

/// One call of a caller, while its Worker looks after it and after.
#[derive(Clone, Debug)]
pub struct Call {
    pub caller: usize,
    /// The caller's session, which the answer belongs to.
    pub session: u32,
    pub verb: Verb,
    pub request: RequestId,
    pub key: KeyId,
    /// When the access key that is shown ends.
    pub end: Option<Millis>,
    wait: u64,
    started: u64,
    carried: bool,
    tries: u32,
    pause: u64,
    /// Of the present try: its number, when it began, the time left to wait.
    number: u32,
    tried_at: u64,
    left: u64,
    done: bool,
    /// The try whose end the object will hear of when its request arrives.
    aborted: Option<u32>,
}

impl Call {
    pub fn attempt(&self) -> AttemptId {
        match self.verb {
            Verb::Acquire { attempt } => attempt,
            _ => AttemptId(self.request.0),
        }
    }

    pub fn left_unread(&self, number: u32) -> bool {
        self.aborted == Some(number)
    }

    pub fn is_done(&self) -> bool {
        self.done
    }
}

impl World {
    /// Begins a call; its number.
    pub fn begin(
        &mut self,
        caller: usize,
        session: u32,
        key: KeyId,
        request: RequestId,
        verb: Verb,
        wait: u64,
    ) -> usize {
        let end = self.end_of(key);
        self.calls.push(Call {
            caller,
            session,
            verb,
            request,
            key,
            end,
            wait,
            started: self.now,
            carried: false,
            tries: 0,
            pause: FIRST_PAUSE,
            number: 0,
            tried_at: 0,
            left: 0,
            done: false,
            aborted: None,
        });
        let call = self.calls.len() - 1;
        self.send(call);
        call
    }

    /// One try.
    pub fn send(&mut self, call: usize) {
        let now = self.now;
        let it = &mut self.calls[call];
        if it.done {
            return;
        }
        // Failures that are slow, each within its deadline, must not add up.
        if it.tries > 0 && now - it.started > it.wait + PATIENCE {
            self.coverage.saw(Seen::GaveUpSlow);
            self.finish(call, Said::Failed);
            return;
        }
        let gone = if it.carried {
            (now - it.started).max(1)
        } else {
            0
        };
        it.tried_at = now;
        it.left = it.wait.saturating_sub(gone);
        it.number += 1;
        let (number, wait, waited) = (it.number, it.left, gone);
        self.schedule(wait + PATIENCE, Event::Patience { call, number });
        let way = self.way();
        let arrive = Event::Arrive {
            call,
            number,
            wait,
            waited,
        };
        if !self.rng.one_in(self.plan.lost) {
            self.schedule(way, arrive);
            return;
        }
        match self.rng.below(8) {
            0..3 => {
                self.coverage.saw(Seen::RequestLost);
                self.schedule(way, Event::Broken { call, number });
            }
            // A ghost of a refresh would be a use of its token.
            3..6 if !matches!(self.calls[call].verb, Verb::Refresh { .. }) => {
                self.coverage.saw(Seen::RequestGhost);
                self.schedule(way, Event::Broken { call, number });
                let later = self.rng.below(LONGEST_WAY);
                self.schedule(later, arrive);
            }
            3..=6 => self.coverage.saw(Seen::RequestSilent),
            _ => {
                self.coverage.saw(Seen::Overloaded);
                self.schedule(way, Event::Overloaded { call, number });
            }
        }
    }

    /// How long a message is under way.
    fn way(&mut self) -> u64 {
        if self.rng.one_in(self.plan.late) {
            self.coverage.saw(Seen::RequestLate);
            return self.rng.below(LONGEST_WAY);
        }
        self.rng.below(10)
    }

    /// The request of a try arrives at the object.
    pub fn arrive(&mut self, by: Try, wait: u64, waited: u64) {
        let call = &self.calls[by.0];
        let key = call.key;
        match call.verb {
            Verb::Acquire { attempt } => self.acquire(by, key, attempt, wait, waited),
            Verb::Refresh { token } => self.trade(by, key, token),
            Verb::Renew { slot } => self.lock(by, key, Command::Renew { slot }),
            Verb::Release { slot, report } => {
                self.lock(by, key, Command::Release { slot, report });
            }
        }
    }

    /// The object says something to a try.
    pub fn answer(&mut self, (call, number): Try, said: Said) {
        let way = self.way();
        if !self.rng.one_in(self.plan.lost) {
            self.schedule(way, Event::Reach { call, number, said });
        } else if self.rng.one_in(4) {
            self.coverage.saw(Seen::AnswerSilent);
        } else {
            self.coverage.saw(Seen::AnswerLost);
            self.schedule(way, Event::Broken { call, number });
        }
    }

    /// What the object said reaches the Worker.
    pub fn reach(&mut self, by: Try, said: Said) {
        if !self.is_present(by) {
            return;
        }
        match said {
            Said::Again => self.again(by.0),
            Said::DeadKey => self.finish(by.0, Said::Unauthorized),
            said => self.finish(by.0, said),
        }
    }

    fn is_present(&self, (call, number): Try) -> bool {
        let call = &self.calls[call];
        !call.done && call.number == number
    }

    /// The connection of a try broke.
    pub fn broke(&mut self, by: Try) {
        if self.is_present(by) {
            self.abort(by);
            self.again(by.0);
        }
    }

    pub fn overloaded(&mut self, by: Try) {
        if self.is_present(by) {
            self.finish(by.0, Said::Failed);
        }
    }

    pub fn impatient(&mut self, by: Try) {
        if self.is_present(by) {
            self.coverage.saw(Seen::Impatient);
            self.abort(by);
            self.finish(by.0, Said::Failed);
        }
    }

    /// The object may hear that nobody waits for this try any more.
    fn abort(&mut self, (call, number): Try) {
        if self.rng.one_in(3) {
            return;
        }
        self.calls[call].aborted = Some(number);
        let delay = self.rng.below(400);
        self.schedule(delay, Event::Abort { call, number });
    }

    /// The caller goes away.
    pub fn hang_up(&mut self, call: usize) {
        if self.calls[call].done {
            return;
        }
        self.calls[call].done = true;
        let number = self.calls[call].number;
        if self.rng.one_in(3) {
            self.coverage.saw(Seen::LeftUnnoticed);
        } else {
            self.calls[call].aborted = Some(number);
            let delay = self.rng.below(100);
            self.schedule(delay, Event::Abort { call, number });
        }
        let (caller, session) = (self.calls[call].caller, self.calls[call].session);
        self.rest(caller, session);
    }

    /// A try failed: another one, after a pause.
    fn again(&mut self, call: usize) {
        let now = self.now;
        let it = &mut self.calls[call];
        it.carried = it.wait > 0;
        if it.left > 0 && now - it.tried_at >= QUIET {
            self.coverage.saw(Seen::CountedAnew);
            let it = &mut self.calls[call];
            it.tries = 0;
            it.pause = FIRST_PAUSE;
            self.send(call);
            return;
        }
        it.tries += 1;
        let pause = it.pause;
        it.pause *= 2;
        let is_last = it.tries == MOST_TRIES;
        let delay = pause / 2 + self.rng.below(pause);
        if is_last {
            self.coverage.saw(Seen::GaveUp);
            self.finish(call, Said::Failed);
        } else {
            self.schedule(delay, Event::Again(call));
        }
    }

    /// The Worker's answer to the caller.
    fn finish(&mut self, call: usize, said: Said) {
        let it = &mut self.calls[call];
        it.done = true;
        let took = self.now - it.started;
        assert!(took <= it.wait + LONGEST_CALL, "answered after {took} ms");
        if self.rng.one_in(self.plan.lost_outside) {
            self.coverage.saw(Seen::AnswerLostOutside);
            self.heard(call, Said::Broken);
        } else {
            self.heard(call, said);
        }
    }
}
