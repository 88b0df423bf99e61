//! A source as a list of holders and a list of waiters: too simple to be wrong.
//!
//! It knows of no rows, no indexes and no gates; time is in milliseconds since
//! the start, and slots have the numbers of their grants.

/// Spans that fall on each other: a wait ends with a lease, a lease with a cap.
pub const WAIT: u64 = 1_000;
pub const TERM: u64 = 1_000;
pub const CAP: u64 = 1_500;

/// One letter of the alphabet. Slots are named by the order of their grants.
#[derive(Clone, Copy, Debug)]
pub enum Letter {
    Acquire {
        attempt: usize,
        wait: u64,
        /// For how long its key lives on.
        life: Option<u64>,
    },
    Leave {
        attempt: usize,
        call: usize,
    },
    Renew(usize),
    Release(usize),
    /// The timer fires, so much later.
    Tick(u64),
    /// Time passes and no timer fires.
    Sleep(u64),
    Limit(usize),
}

/// What is said to a caller, in terms that both sides know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Granted { slot: usize, until: u64 },
    Replayed { slot: usize, until: u64 },
    Queued,
    QueueFull,
    NoFreeSlot,
    TimedOut,
    KeyEnded,
    Until(u64),
    Capped,
    Gone,
    Released(bool),
    Nothing,
}

/// A reply, and the answers to waiters by the number of their call.
pub type Heard = (Said, Vec<(usize, Said)>);

#[derive(Clone, Debug)]
pub struct Holder {
    pub slot: usize,
    pub attempt: usize,
    pub until: u64,
    pub cap: u64,
}

#[derive(Clone, Debug)]
pub struct Waiter {
    pub attempt: usize,
    /// The call that took this place; all others repeat it.
    pub began: usize,
    pub calls: Vec<Call>,
}

/// One call of a place.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub number: usize,
    /// The end of its wait, and of its key.
    wait: u64,
    key: u64,
}

impl Call {
    fn deadline(&self) -> u64 {
        self.wait.min(self.key)
    }

    fn over(&self) -> Said {
        if self.key <= self.wait {
            Said::KeyEnded
        } else {
            Said::TimedOut
        }
    }
}

#[derive(Clone, Debug)]
pub struct Model {
    pub limit: usize,
    pub depth: usize,
    pub now: u64,
    pub grants: usize,
    pub holders: Vec<Holder>,
    pub waiters: Vec<Waiter>,
}

impl Model {
    pub fn new(limit: usize, depth: usize) -> Self {
        Self {
            limit,
            depth,
            now: 0,
            grants: 0,
            holders: Vec::new(),
            waiters: Vec::new(),
        }
    }

    pub fn hear(&mut self, letter: Letter, call: usize) -> Heard {
        let mut answers = Vec::new();
        if let Letter::Sleep(span) = letter {
            self.now += span;
            return (Said::Nothing, answers);
        }
        if let Letter::Tick(span) = letter {
            self.now += span;
        }
        self.holders.retain(|holder| holder.until > self.now);
        // A key is over at its end, a wait after it.
        self.time_out(|call, now| call.wait < now || call.key <= now, &mut answers);
        self.serve(&mut answers);
        self.time_out(|call, now| call.deadline() <= now, &mut answers);
        let said = match letter {
            Letter::Acquire {
                attempt,
                wait,
                life,
            } => {
                let call = Call {
                    number: call,
                    wait: self.now + wait,
                    key: life.map_or(u64::MAX, |life| self.now + life),
                };
                self.acquire(attempt, call)
            }
            Letter::Leave { call, .. } => self.leave(call),
            Letter::Renew(slot) => self.renew(slot),
            Letter::Release(slot) => {
                let before = self.holders.len();
                self.holders.retain(|holder| holder.slot != slot);
                Said::Released(self.holders.len() < before)
            }
            Letter::Limit(limit) => {
                self.limit = limit;
                Said::Nothing
            }
            Letter::Tick(_) | Letter::Sleep(_) => Said::Nothing,
        };
        self.serve(&mut answers);
        (said, answers)
    }

    fn time_out(&mut self, over: fn(&Call, u64) -> bool, answers: &mut Vec<(usize, Said)>) {
        let now = self.now;
        let mut late: Vec<Call> = Vec::new();
        for waiter in &mut self.waiters {
            late.extend(waiter.calls.iter().filter(|call| over(call, now)));
            waiter.calls.retain(|call| !over(call, now));
        }
        self.waiters.retain(|waiter| !waiter.calls.is_empty());
        // By deadline, and those with the same one as they stand in the queue.
        late.sort_by_key(|call| (call.deadline(), call.over() == Said::TimedOut));
        answers.extend(late.into_iter().map(|call| (call.number, call.over())));
    }

    fn serve(&mut self, answers: &mut Vec<(usize, Said)>) {
        while self.holders.len() < self.limit && !self.waiters.is_empty() {
            let first = self.waiters.remove(0);
            let granted = self.grant(first.attempt);
            for call in first.calls {
                let began = call.number == first.began;
                answers.push((call.number, if began { granted } else { replay(granted) }));
            }
        }
    }

    fn grant(&mut self, attempt: usize) -> Said {
        let (slot, until) = (self.grants, self.now + TERM);
        self.grants += 1;
        self.holders.push(Holder {
            slot,
            attempt,
            until,
            cap: self.now + CAP,
        });
        Said::Granted { slot, until }
    }

    fn acquire(&mut self, attempt: usize, call: Call) -> Said {
        let wait = call.wait - self.now;
        if call.key <= self.now {
            return Said::KeyEnded;
        }
        if let Some(holder) = self.holders.iter().find(|h| h.attempt == attempt) {
            let (slot, until) = (holder.slot, holder.until);
            return Said::Replayed { slot, until };
        }
        let calls = vec![call];
        if let Some(place) = self.waiters.iter_mut().find(|w| w.attempt == attempt) {
            if wait == 0 {
                return Said::NoFreeSlot;
            }
            place.calls.extend(calls);
            return Said::Queued;
        }
        if self.waiters.is_empty() && self.holders.len() < self.limit {
            return self.grant(attempt);
        }
        match wait {
            0 => Said::NoFreeSlot,
            _ if self.waiters.len() == self.depth => Said::QueueFull,
            _ => {
                self.waiters.push(Waiter {
                    attempt,
                    began: call.number,
                    calls,
                });
                Said::Queued
            }
        }
    }

    fn leave(&mut self, gone: usize) -> Said {
        for waiter in &mut self.waiters {
            waiter.calls.retain(|call| call.number != gone);
        }
        self.waiters.retain(|waiter| !waiter.calls.is_empty());
        Said::Nothing
    }

    fn renew(&mut self, slot: usize) -> Said {
        match self.holders.iter_mut().find(|holder| holder.slot == slot) {
            None => Said::Gone,
            Some(holder) if holder.until == holder.cap => Said::Capped,
            Some(holder) => {
                holder.until = holder.until.max(holder.cap.min(self.now + TERM));
                Said::Until(holder.until)
            }
        }
    }

    /// When time alone changes something next.
    pub fn next(&self) -> Option<u64> {
        let ends = self.holders.iter().map(|holder| holder.until);
        let waits = self.waiters.iter().flat_map(|waiter| &waiter.calls);
        ends.chain(waits.map(Call::deadline)).min()
    }
}

fn replay(said: Said) -> Said {
    match said {
        Said::Granted { slot, until } => Said::Replayed { slot, until },
        other => other,
    }
}
