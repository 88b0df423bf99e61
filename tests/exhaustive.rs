//! Every short sequence of calls against a small source, beside a model that
//! is too simple to be wrong: a list of holders and a list of waiters.

mod support;

use std::fmt::Debug;

use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::command::{
    Acquire, Answer, Command, Effect, Refusal, Renewed, Reply, Verdict,
};
use swarmvia_locks::governor::ids::{AttemptId, RequestId, SlotId, SlotSecret};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::snapshot::Snapshot;
use swarmvia_locks::governor::time::Millis;
use swarmvia_locks::outcome::Report;

use support::{START, call, limit, ms};

const ATTEMPTS: usize = 3;
/// Spans that fall on each other: a wait ends with a lease, a lease with a cap.
const WAIT: u64 = 1_000;
const TERM: u64 = 1_000;
const CAP: u64 = 1_500;

/// One letter of the alphabet. Slots are named by the order of their grants.
#[derive(Clone, Copy, Debug)]
enum Letter {
    Acquire { attempt: usize, wait: u64 },
    Leave { attempt: usize },
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
enum Said {
    Granted { slot: usize, until: u64 },
    Replayed { slot: usize, until: u64 },
    Queued,
    QueueFull,
    NoFreeSlot,
    TimedOut,
    Until(u64),
    Capped,
    Gone,
    Released(bool),
    Nothing,
}

/// A reply, and the answers to waiters by the number of their call.
type Heard = (Said, Vec<(usize, Said)>);

#[derive(Clone, Debug)]
struct Holder {
    slot: usize,
    attempt: usize,
    until: u64,
    cap: u64,
}

#[derive(Clone, Debug)]
struct Waiter {
    attempt: usize,
    /// The calls of this place: number, deadline.
    calls: Vec<(usize, u64)>,
}

#[derive(Clone, Debug)]
struct Model {
    limit: usize,
    depth: usize,
    now: u64,
    grants: usize,
    holders: Vec<Holder>,
    waiters: Vec<Waiter>,
}

impl Model {
    fn hear(&mut self, letter: Letter, call: usize) -> Heard {
        let mut answers = Vec::new();
        if let Letter::Sleep(span) = letter {
            self.now += span;
            return (Said::Nothing, answers);
        }
        if let Letter::Tick(span) = letter {
            self.now += span;
        }
        self.holders.retain(|holder| holder.until > self.now);
        self.time_out(|deadline, now| deadline < now, &mut answers);
        self.serve(&mut answers);
        self.time_out(|deadline, now| deadline <= now, &mut answers);
        let said = match letter {
            Letter::Acquire { attempt, wait } => self.acquire(attempt, wait, call),
            Letter::Leave { attempt } => {
                // The first caller of the place.
                if let Some(at) = self.waiters.iter().position(|w| w.attempt == attempt) {
                    self.waiters[at].calls.remove(0);
                    self.waiters.retain(|waiter| !waiter.calls.is_empty());
                }
                Said::Nothing
            }
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

    fn time_out(&mut self, over: fn(u64, u64) -> bool, answers: &mut Vec<(usize, Said)>) {
        let now = self.now;
        let mut late: Vec<(u64, usize)> = Vec::new();
        for waiter in &mut self.waiters {
            let of_place = waiter.calls.iter().filter(|call| over(call.1, now));
            late.extend(of_place.map(|(call, deadline)| (*deadline, *call)));
            waiter.calls.retain(|call| !over(call.1, now));
        }
        self.waiters.retain(|waiter| !waiter.calls.is_empty());
        // The order among those who are turned away together matters to nobody.
        late.sort_unstable();
        answers.extend(late.into_iter().map(|(_, call)| (call, Said::TimedOut)));
    }

    fn serve(&mut self, answers: &mut Vec<(usize, Said)>) {
        while self.holders.len() < self.limit && !self.waiters.is_empty() {
            let first = self.waiters.remove(0);
            let granted = self.grant(first.attempt);
            for (index, (call, _)) in first.calls.into_iter().enumerate() {
                answers.push((call, if index == 0 { granted } else { replay(granted) }));
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

    fn acquire(&mut self, attempt: usize, wait: u64, call: usize) -> Said {
        if let Some(holder) = self.holders.iter().find(|h| h.attempt == attempt) {
            let (slot, until) = (holder.slot, holder.until);
            return Said::Replayed { slot, until };
        }
        let calls = vec![(call, self.now + wait)];
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
                self.waiters.push(Waiter { attempt, calls });
                Said::Queued
            }
        }
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
    fn next(&self) -> Option<u64> {
        let ends = self.holders.iter().map(|holder| holder.until);
        let waits = self.waiters.iter().flat_map(|waiter| &waiter.calls);
        ends.chain(waits.map(|(_, deadline)| *deadline)).min()
    }
}

fn replay(said: Said) -> Said {
    match said {
        Said::Granted { slot, until } => Said::Replayed { slot, until },
        other => other,
    }
}

/// The real one, told and heard in the model's terms.
#[derive(Clone)]
struct Real {
    governor: Governor,
    clock: u64,
    slots: Vec<SlotId>,
}

impl Real {
    fn new(settings: Settings) -> Self {
        Self {
            governor: Governor::load(settings, Snapshot::default()).unwrap(),
            clock: 0,
            slots: Vec::new(),
        }
    }

    fn hear(&mut self, letter: Letter, number: usize, first_calls: &[usize]) -> Heard {
        if let Letter::Tick(span) | Letter::Sleep(span) = letter {
            self.clock += span;
        }
        let command = match letter {
            Letter::Sleep(_) => return (Said::Nothing, Vec::new()),
            Letter::Tick(_) => Command::Tick,
            Letter::Acquire { attempt, wait } => Command::Acquire(Acquire {
                attempt: AttemptId(attempt as u128),
                wait: ms(wait),
                secret: SlotSecret(number as u128),
                ..call(number as u128)
            }),
            Letter::Leave { attempt } => Command::Leave {
                attempt: AttemptId(attempt as u128),
                request: RequestId(first_calls[attempt] as u128),
            },
            Letter::Renew(slot) => Command::Renew {
                slot: self.slots[slot],
            },
            Letter::Release(slot) => Command::Release {
                slot: self.slots[slot],
                report: Report::default(),
            },
            Letter::Limit(slots) => {
                let mut settings = self.governor.settings().clone();
                settings.concurrency.limit = slots as u32;
                Command::Configure(Box::new(settings))
            }
        };
        self.tell(command)
    }

    fn tell(&mut self, command: Command) -> Heard {
        let step = self.governor.apply(START.plus(ms(self.clock)), command);
        self.governor.audit().unwrap();
        // In order of the grants: those to waiters come before an acquire's own.
        let mut answers = Vec::new();
        for effect in &step.effects {
            if let Effect::Answer { request, answer } = effect {
                answers.push((request.0 as usize, self.said(answer)));
            }
        }
        let said = match step.reply {
            Reply::Done => Said::Nothing,
            Reply::Queued => Said::Queued,
            Reply::Acquire(answer) => self.said(&answer),
            Reply::Renew(None) => Said::Gone,
            Reply::Renew(Some(Renewed::Capped)) => Said::Capped,
            Reply::Renew(Some(Renewed::Until(until))) => Said::Until(since_start(until)),
            Reply::Release(released) => Said::Released(released),
        };
        (said, answers)
    }

    fn said(&mut self, answer: &Answer) -> Said {
        let grant = match &answer.verdict {
            Verdict::Granted(grant) => grant,
            Verdict::Refused(Refusal::QueueFull { .. }) => return Said::QueueFull,
            Verdict::Refused(Refusal::NoFreeSlot { .. }) => return Said::NoFreeSlot,
            Verdict::TimedOut => return Said::TimedOut,
            other => panic!("{other:?}"),
        };
        let until = since_start(grant.lease_deadline);
        let same = |id: &SlotId| id.row == grant.slot.row && id.secret.matches(grant.slot.secret);
        let slot = self.slots.iter().position(same).unwrap_or_else(|| {
            self.slots.push(grant.slot);
            self.slots.len() - 1
        });
        if grant.replayed {
            return Said::Replayed { slot, until };
        }
        Said::Granted { slot, until }
    }
}

fn since_start(at: Millis) -> u64 {
    at.since(START).ms()
}
