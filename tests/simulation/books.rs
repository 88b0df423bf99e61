//! The promises, as anybody can keep count of them who sees what was written
//! and what was said: kept in books of their own, in whatever way the limits are
//! found.
//!
//! They follow the turns in the order in which those became durable: what a
//! crash undid was promised to nobody.

mod effects;
mod force;

use std::collections::{BTreeMap, VecDeque};

use swarmvia_locks::governor::command::{Command, Effect};
use swarmvia_locks::governor::ids::{AttemptId, RequestId, SlotId};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::Millis;
use swarmvia_locks::governor::{Governor, Step};

use crate::coverage::{Coverage, Seen};
use crate::support::START;
use force::{Force, counts};

/// What took the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Call,
    Timer,
    Alarm,
    Operator,
}

#[derive(Clone, Debug)]
struct Holding {
    row: u32,
    secret: u128,
    attempt: AttemptId,
    until: Millis,
}

#[derive(Clone, Debug)]
struct Waiter {
    request: RequestId,
    arrived: Millis,
    deadline: Millis,
}

#[derive(Clone, Debug)]
struct Place {
    attempt: AttemptId,
    arrived: Millis,
    first: Millis,
    waiters: Vec<Waiter>,
}

/// A slot that was granted some time: until when at least, and whether it was
/// freed before.
#[derive(Clone, Copy, Debug)]
struct Granted {
    until: Millis,
    freed: bool,
}

pub struct Books {
    now: Millis,
    held: Vec<Holding>,
    lapsed: Vec<Holding>,
    queue: Vec<Place>,
    served: Vec<Waiter>,
    grants: VecDeque<Millis>,
    cooldown: Option<Millis>,
    all: BTreeMap<u128, Granted>,
    settings: Settings,
    limit: u32,
    last_row: u32,
}

impl Books {
    pub fn new(settings: &Settings) -> Self {
        Self {
            now: START,
            held: Vec::new(),
            lapsed: Vec::new(),
            queue: Vec::new(),
            served: Vec::new(),
            grants: VecDeque::new(),
            cooldown: None,
            all: BTreeMap::new(),
            settings: settings.clone(),
            limit: settings.concurrency.limit,
            last_row: 0,
        }
    }

    /// The source was ended and is made anew. What was given out stays known.
    pub fn anew(&mut self, clock: Millis, settings: &Settings) {
        let all = std::mem::take(&mut self.all);
        *self = Self::new(settings);
        self.now = clock;
        self.all = all;
    }

    /// Everything that the source held is gone with it, for good: also what had
    /// lapsed, though the clock may be set back behind its end.
    pub fn ended(&mut self) {
        self.queue.clear();
        for slot in self.held.drain(..).chain(self.lapsed.drain(..)) {
            self.all.entry(slot.secret).and_modify(|it| it.freed = true);
        }
    }

    /// Memory was read back. A lease whose end no row speaks of goes on.
    pub fn reloaded(&mut self, clock: Millis, stored: Millis, limit: u32, seen: &mut Coverage) {
        self.now = clock.max(stored);
        self.limit = limit;
        self.queue.clear();
        let now = self.now;
        let lapsed = std::mem::take(&mut self.lapsed);
        let (back, gone) = lapsed.into_iter().partition(|slot| slot.until > now);
        self.lapsed = gone;
        let back: Vec<Holding> = back;
        if !back.is_empty() {
            seen.saw(Seen::LeaseRevived);
            self.held.extend(back);
        }
    }

    pub fn holders(&self) -> usize {
        self.held.len()
    }

    pub fn waits(&self) -> bool {
        !self.queue.is_empty()
    }

    /// A holder was told that the slot is its own until `until`.
    pub fn promised(&self, slot: SlotId, until: Millis) {
        let granted = self
            .all
            .get(&slot.secret.0)
            .expect("a slot that was granted");
        assert!(granted.until >= until, "a promise that isn't kept");
        let held = self.held.iter().any(|held| held.secret == slot.secret.0);
        assert!(
            held || granted.freed || granted.until <= self.now,
            "a slot was lost before its time"
        );
    }

    /// Follows one turn that became durable.
    pub fn watch(
        &mut self,
        clock: Millis,
        cause: Cause,
        command: &Command,
        step: &Step,
        after: &Governor,
        seen: &mut Coverage,
    ) {
        self.now = self.now.max(clock);
        self.lapse(cause, seen);
        let limit = after.gauge().limit;
        let in_force = Force::of(command, &self.settings, (self.limit, limit));
        if let Command::Configure(settings) = command {
            self.settings = (**settings).clone();
        }
        for effect in &step.effects {
            match effect {
                Effect::Record(attempt) => {
                    self.recorded(command, attempt, &in_force);
                    if self.passed_over(attempt.row) {
                        seen.saw(Seen::PassedOver);
                    }
                }
                Effect::Answer { request, answer } => self.answered(*request, answer),
                Effect::Ask { request } => self.asked(*request),
                Effect::Extend {
                    row,
                    lease_deadline,
                } => self.extended(*row, *lease_deadline),
                Effect::End { row } => self.freed(command, *row),
                Effect::Discard { .. } => seen.saw(Seen::Discarded),
                Effect::Cooldown { until } => {
                    assert!(counts(command, &step.reply), "a report that doesn't count");
                    self.cooldown = *until;
                }
                Effect::Learned { .. } => {
                    assert!(counts(command, &step.reply), "a report that doesn't count");
                }
            }
        }
        self.replied(command, step);
        self.limit = limit;
        self.settled(after);
    }

    fn lapse(&mut self, cause: Cause, seen: &mut Coverage) {
        let now = self.now;
        if self.held.iter().all(|slot| slot.until > now) {
            return;
        }
        seen.saw(match cause {
            Cause::Call | Cause::Operator => Seen::LapsedByCall,
            Cause::Timer => Seen::LapsedByTimer,
            Cause::Alarm => Seen::LapsedByAlarm,
        });
        let held = std::mem::take(&mut self.held);
        let (ended, held) = held.into_iter().partition(|slot| slot.until <= now);
        self.held = held;
        let ended: Vec<Holding> = ended;
        self.lapsed.extend(ended);
    }

    /// What must hold between two turns.
    fn settled(&self, after: &Governor) {
        assert!(
            self.served.is_empty(),
            "granted and not answered: {:?}",
            self.served
        );
        let bounds = &self.settings.concurrency;
        let allowed = if bounds.adaptive {
            bounds.min..=bounds.max
        } else {
            bounds.limit..=bounds.limit
        };
        assert!(allowed.contains(&self.limit), "a limit out of its bounds");
        let slots = after.slots();
        let same = slots.len() == self.held.len()
            && slots.iter().all(|slot| {
                let mut held = self.held.iter();
                held.any(|held| {
                    (held.row, held.secret, held.until)
                        == (slot.row, slot.secret.0, slot.lease_deadline)
                })
            });
        assert!(
            same,
            "the books say {:?}, the governor {slots:?}",
            self.held
        );
        assert_eq!(after.gauge().depth as usize, self.queue.len(), "places");
        if !self.queue.is_empty() {
            let waiters = self.queue.iter().flat_map(|place| &place.waiters);
            let ends = self.held.iter().map(|slot| slot.until);
            let next = waiters.map(|waiter| waiter.deadline).chain(ends).min();
            assert!(
                next.is_none_or(|at| at > self.now),
                "someone's time is over"
            );
            assert!(after.deadline() <= next, "it would wake too late");
        }
    }
}
