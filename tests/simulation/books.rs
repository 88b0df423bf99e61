//! The promises, as anybody can keep count of them who sees what was written
//! and what was said: kept in books of their own, in whatever way the limits are
//! found.
//!
//! They follow the turns in the order in which those became durable: what a
//! crash undid was promised to nobody.

use std::collections::{BTreeMap, VecDeque};

use swarmvia_locks::governor::command::{
    Acquire, Answer, Attempt, Command, Effect, Outcome, Renewed, Reply, SlotRow, Verdict,
};
use swarmvia_locks::governor::ids::{AttemptId, RequestId, SlotId};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::{Millis, Span};
use swarmvia_locks::governor::{Governor, Step};

use crate::coverage::{Coverage, Seen};
use crate::support::START;

const MINUTE: Span = Span::from_seconds(60);

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

    /// Everything that the source held is gone with it.
    pub fn ended(&mut self) {
        self.queue.clear();
        self.lapsed.clear();
        for slot in self.held.drain(..) {
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

    fn recorded(&mut self, command: &Command, attempt: &Attempt, in_force: &Force) {
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
    fn passed_over(&mut self, row: u32) -> bool {
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

    fn answered(&mut self, request: RequestId, answer: &Answer) {
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
            Verdict::TimedOut => {
                assert!(self.take(request).deadline <= self.now, "timed out early");
            }
            Verdict::Dismissed => drop(self.take(request)),
            Verdict::Refused(_) => panic!("a waiter is not refused"),
        }
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

    fn extended(&mut self, row: u32, until: Millis) {
        let mut held = self.held.iter_mut();
        let slot = held.find(|slot| slot.row == row).expect("a held slot");
        assert!(until > slot.until, "a promised deadline moved back");
        slot.until = until;
        self.all
            .entry(slot.secret)
            .and_modify(|it| it.until = until);
    }

    fn freed(&mut self, command: &Command, row: u32) {
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

    fn replied(&mut self, command: &Command, step: &Step) {
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
                None => place.waiters.push(waiter),
            }
            return;
        }
        let behind = self.queue.partition_point(|place| place.arrived <= arrived);
        let place = Place {
            attempt: acquire.attempt,
            arrived: waiter.arrived,
            waiters: vec![waiter],
        };
        self.queue.insert(behind, place);
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

/// The limits that may be in force at a grant of this step.
struct Force {
    limit: usize,
    rpm: usize,
}

impl Force {
    fn of(command: &Command, before: &Settings, learned: (u32, u32)) -> Self {
        let rpm = |settings: &Settings| settings.rpm.limit.map_or(usize::MAX, |it| it as usize);
        // Only within these two is there a before and an after: what time did
        // comes first.
        let (limit, rpm) = match command {
            Command::Configure(after) => (learned.0.max(learned.1), rpm(before).max(rpm(after))),
            Command::Release { .. } | Command::Reset => (learned.0.max(learned.1), rpm(before)),
            _ => (learned.1, rpm(before)),
        };
        Self {
            limit: limit as usize,
            rpm,
        }
    }
}

/// Whether a report, or an operator, has something to say in this step.
fn counts(command: &Command, reply: &Reply) -> bool {
    match command {
        Command::Release { .. } => matches!(reply, Reply::Release(true)),
        Command::Configure(_) | Command::Reset => true,
        _ => false,
    }
}
