//! The system as a state machine: the real governor between a network that
//! loses, a disk that a crash leaves behind, and callers with their Workers.
//!
//! Time is a few ticks. Every step consumes a message, a tick or a budget, so
//! no path is endless, and a state from which nothing follows is the end.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::command::{Command, Effect, Reply};
use swarmvia_locks::governor::ids::{SlotId, SlotSecret};
use swarmvia_locks::governor::time::Millis;

use crate::bench::Bench;
use crate::support::storage::Storage;
use crate::support::{START, ms};
use crate::terms::{Message, Name, Phase, Said};

pub const TICK: u64 = 500;

/// A part of a state as it is: no history, no names of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct View {
    /// Slots on disk, in the order of their grants: request and name, the
    /// lease's end and cap.
    pub held: Vec<(u128, Name, u64, u64)>,
    /// Those in the queue: request, and how long they have waited.
    pub queue: Vec<(u128, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    pub phase: Phase,
    /// Sessions yet to come.
    pub sessions: u8,
    /// The present attempt, and the request that carries it.
    pub attempt: u8,
    pub request: u8,
    /// The present try; an answer to an earlier one finds nobody.
    pub number: u8,
}

#[derive(Clone, Debug)]
pub struct State {
    pub tick: u64,
    pub callers: Vec<Caller>,
    pub network: BTreeSet<Message>,
    pub crashes: u8,
    pub losses: u8,
    pub departures: u8,
    /// Tries that wait in the object, by request.
    pub waiting: BTreeMap<u128, (usize, u8)>,
    /// `None`: memory is lost, and read again with the next call.
    pub governor: Option<Governor>,
    pub disk: Storage,
    /// The slot that each caller was told of.
    pub slots: Vec<Option<Name>>,
    pub view: View,
}

type Key<'a> = (
    (u64, u8, u8, u8),
    (
        &'a [Caller],
        &'a BTreeSet<Message>,
        &'a BTreeMap<u128, (usize, u8)>,
    ),
    (bool, &'a View, &'a [Option<Name>]),
);

impl State {
    /// What tells it from others.
    fn key(&self) -> Key<'_> {
        (
            (self.tick, self.crashes, self.losses, self.departures),
            (&self.callers, &self.network, &self.waiting),
            (self.governor.is_some(), &self.view, &self.slots),
        )
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

/// Where a turn is cut off, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Nowhere,
    BeforeCommit,
    AfterCommit,
}

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    None,
    /// A restart knows of no holders.
    ForgetsHolders,
    /// An extension isn't written down.
    ForgetsExtensions,
    /// Answers leave before their rows are durable.
    AnswersTooEarly,
    /// Nobody wakes the object when a deadline has come.
    NoTimer,
    /// A waiter's answer is dropped where a release frees its slot.
    DropsHandOver,
}

impl State {
    pub fn clock(&self) -> Millis {
        START.plus(ms(self.tick * TICK))
    }

    /// The slot of this name, held or not.
    pub fn slot(&self, name: Name) -> SlotId {
        let mut rows = self.disk.rows.values();
        let named = rows.find(|row| {
            let taken = row.attempt.slot.as_ref();
            taken.is_some_and(|taken| taken.secret.0 == name)
        });
        SlotId {
            row: named.map_or(0, |row| row.attempt.row),
            secret: SlotSecret(name),
        }
    }

    /// One turn of the object, which reads memory back where it was lost.
    pub fn turn(&mut self, bench: &Bench, command: &Command, by: Option<(usize, u8)>, cut: Cut) {
        let clock = self.clock();
        let sabotage = bench.sabotage;
        let load = || {
            let mut snapshot = self.disk.snapshot(clock);
            if sabotage == Sabotage::ForgetsHolders {
                snapshot.held.clear();
            }
            Governor::load(bench.settings.clone(), snapshot).unwrap()
        };
        let mut governor = self.governor.take().unwrap_or_else(load);
        let step = governor.apply(clock, command.clone());
        governor.audit().unwrap();
        let mut said: Vec<((usize, u8), Said)> = Vec::new();
        let mut waiting = self.waiting.clone();
        for effect in &step.effects {
            if let Effect::Answer { request, answer } = effect {
                let dropped = sabotage == Sabotage::DropsHandOver
                    && matches!(command, Command::Release { .. });
                if let Some(by) = waiting.remove(&request.0).filter(|_| !dropped) {
                    said.push((by, Said::of(answer)));
                }
            }
        }
        if let Some(by) = by {
            match (&step.reply, command) {
                (Reply::Queued, Command::Acquire(acquire)) => {
                    let former = waiting.insert(acquire.request.0, by);
                    said.extend(former.map(|former| (former, Said::Again)));
                }
                (reply, _) => said.push((by, Said::reply(reply))),
            }
        }
        if cut != Cut::BeforeCommit {
            for effect in &step.effects {
                let is_forgotten = matches!(effect, Effect::Extend { .. })
                    && sabotage == Sabotage::ForgetsExtensions;
                if !is_forgotten {
                    self.disk.apply(effect);
                }
            }
        }
        if cut == Cut::Nowhere || sabotage == Sabotage::AnswersTooEarly {
            for (by, said) in said.drain(..) {
                self.post(Message::answer(by, said, self.tick));
            }
        }
        if cut == Cut::Nowhere {
            self.waiting = waiting;
            self.governor = Some(governor);
        } else {
            self.waiting.clear();
            let unanswered = said.into_iter().map(|(by, _)| by);
            for by in unanswered.chain(waiting.into_values()) {
                self.broken(by);
            }
        }
    }

    /// An answer to an earlier try finds nobody.
    pub fn post(&mut self, message: Message) {
        let number = self.callers[message.caller].number;
        if !message.is_answer() || message.number == number {
            self.network.insert(message);
        }
    }

    /// Memory and connections are lost between two turns.
    pub fn crash(&mut self) {
        self.governor = None;
        for by in std::mem::take(&mut self.waiting).into_values() {
            self.broken(by);
        }
    }

    /// The Worker notices that the connection of a try broke, and tries again.
    pub fn broken(&mut self, (caller, number): (usize, u8)) {
        if self.callers[caller].number == number {
            self.retry(caller);
        }
    }

    /// Takes stock, so that states are told apart by what they are.
    pub fn look(&mut self) {
        let clock = self.clock();
        let mut held = self.disk.snapshot(clock).held;
        held.sort_by_key(|slot| slot.reference);
        let since = |at: Millis| at.since(START).ms();
        let held = held.iter().map(|slot| {
            let request = slot.request.0;
            let ends = (since(slot.lease_deadline), since(slot.request_deadline));
            (request, slot.secret.0, ends.0, ends.1)
        });
        let held = held.collect();
        self.view = View {
            held,
            queue: self.queue(),
        };
    }

    /// The queue as it would be turned away.
    fn queue(&self) -> Vec<(u128, u64)> {
        let Some(mut governor) = self.governor.clone().filter(Governor::has_waiters) else {
            return Vec::new();
        };
        let effects = governor.apply(self.clock(), Command::Close).effects;
        let waiters = effects.iter().filter_map(|effect| match effect {
            Effect::Answer { request, answer } => Some((request.0, answer.queued.ms())),
            _ => None,
        });
        waiters.collect()
    }
}
