//! A world of callers, operators, restarts and clocks around one governor,
//! with the observer looking on.

use proptest::sample::Index;

use swarmvia_locks::governor::command::{
    Acquire, Command, Effect, Outcome, Reply, TurnedAway, Verdict,
};
use swarmvia_locks::governor::ids::{AttemptId, KeyId, Ref, RequestId, SlotId, SlotSecret};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::Span;
use swarmvia_locks::outcome::Report;
use swarmvia_locks::wire::request::Carrier;

use super::moves::{ATTEMPTS, Move};
use super::observer::{Observer, Waiter};
use super::probes::{
    early_ticks_change_nothing, grant, refusal_is_honest, refused_left_no_trace, reload_would_agree,
};
use super::{START, Shell, call};

pub struct World {
    pub shell: Shell,
    pub observer: Observer,
    /// Every slot id that was ever given out, newest last.
    ids: Vec<SlotId>,
    /// The last request of each attempt.
    requests: Vec<RequestId>,
    names: u128,
    /// Whether copies are asked after each turn what would be. That is nearly all
    /// of the time that a move takes.
    pub probes: bool,
}

impl World {
    pub fn new(settings: Settings) -> Self {
        Self {
            observer: Observer::new(&settings),
            shell: Shell::new(settings),
            ids: Vec::new(),
            requests: (0..ATTEMPTS).map(RequestId).collect(),
            names: 1_000,
            probes: true,
        }
    }

    /// Plays a move; after it, storage tells the whole story.
    pub fn play(&mut self, next: Move) {
        self.make(next);
        if self.probes {
            self.observer.check_rows();
            let now = self.observer.now;
            reload_would_agree(&self.shell.governor, &self.shell.storage, now);
        }
    }

    fn make(&mut self, next: Move) {
        match next {
            Move::Acquire {
                attempt,
                wait,
                life,
                retry,
            } => self.acquire(attempt, wait, life, retry),
            Move::Burst(calls) => {
                for _ in 0..calls {
                    let name = self.name();
                    self.turn(Command::Acquire(call(name)));
                }
            }
            Move::Churn(calls) => {
                for _ in 0..calls {
                    let name = self.name();
                    self.turn(Command::Acquire(call(name)));
                    if let Some(slot) = self.ids.last().copied() {
                        let report = Report::default();
                        self.turn(Command::Release { slot, report });
                    }
                }
            }
            Move::Leave(index) => self.leave(index),
            Move::Renew(index) => self.name_slot(index, |slot| Command::Renew { slot }),
            Move::RenewForged(index) => {
                self.name_slot(index, |slot| Command::Renew { slot: forged(slot) });
            }
            Move::Release(index, report) => {
                self.name_slot(index, |slot| Command::Release { slot, report });
            }
            Move::ReleaseForged(index) => self.name_slot(index, |slot| Command::Release {
                slot: forged(slot),
                report: Report::default(),
            }),
            Move::TurnedAway(signed) => {
                let those = signed.into_iter().map(|signed| self.turned_away(signed));
                let those = those.collect();
                self.turn(Command::TurnedAway(those));
            }
            Move::Tick => self.turn(Command::Tick),
            Move::Configure(settings) => self.turn(Command::Configure(settings)),
            Move::Force(index) => self.force(index),
            Move::Dismiss(key) => self.turn(Command::Dismiss { key }),
            Move::Close => self.turn(Command::Close),
            Move::Pass(span) => self.pass(span),
            Move::Sleep(span) => self.shell.clock = self.shell.clock.plus(span),
            Move::StepBack(span) => {
                self.shell.clock = self.shell.clock.minus(span).max(START);
            }
            Move::Reload { first, stay } => self.reload(first, &stay),
        }
    }

    /// One turn, watched.
    pub fn turn(&mut self, command: Command) {
        let command = self.shell.with_secret(command);
        let clock = self.shell.clock;
        let before = self.probes.then(|| self.shell.governor.clone());
        let step = self.shell.step_with(&command);
        self.observer
            .watch(clock, &command, &step, &self.shell.governor);
        let grants = step.effects.iter().filter_map(|effect| match effect {
            Effect::Answer { answer, .. } => grant(answer),
            _ => None,
        });
        self.ids.extend(grants.map(|grant| grant.slot));
        if let (Command::Acquire(acquire), Reply::Acquire(answer)) = (&command, &step.reply) {
            self.ids.extend(grant(answer).map(|grant| grant.slot));
            if let (Verdict::Refused(refusal), Some(before)) = (&answer.verdict, before) {
                refused_left_no_trace(before, &self.shell.governor, clock);
                refusal_is_honest(&self.shell.governor, acquire, *refusal);
            }
        }
        if self.probes {
            let now = self.observer.now;
            early_ticks_change_nothing(&self.shell.governor, now);
        }
    }

    fn name(&mut self) -> u128 {
        self.names += 1;
        self.names
    }

    fn acquire(&mut self, attempt: u128, wait: Span, life: Option<Span>, retry: bool) {
        let last = attempt as usize;
        if !retry {
            self.requests[last] = RequestId(self.name());
        }
        self.turn(Command::Acquire(Acquire {
            request: self.requests[last],
            attempt: AttemptId(attempt),
            key: KeyId(if attempt < ATTEMPTS / 2 { 1 } else { 2 }),
            expires: life.map(|life| self.shell.clock.plus(life)),
            carrier: if attempt.is_multiple_of(3) {
                Carrier::Bearer
            } else {
                Carrier::KeyHeader
            },
            ip: Some(["192.0.2.1", "198.51.100.1"][last % 2].into()),
            wait,
            ..call(0)
        }));
    }

    fn turned_away(&mut self, signed: bool) -> TurnedAway {
        TurnedAway {
            request: RequestId(self.name()),
            // Some of those who aren't let in have a key that is dead.
            key: (signed || self.names.is_multiple_of(2)).then_some(KeyId(1)),
            ip: None,
            outcome: Outcome::Unauthorized,
            ago: Span::from_ms(u64::try_from(self.names % 1_000).unwrap()),
            is_live: signed,
        }
    }

    fn leave(&mut self, index: Index) {
        let waiters = self.waiters();
        if let Some(waiter) = pick(&waiters, index) {
            self.turn(Command::Leave {
                attempt: waiter.attempt,
                request: waiter.request,
            });
        }
    }

    fn waiters(&self) -> Vec<Waiter> {
        let places = self.observer.places.iter();
        places.flat_map(|place| place.waiters.clone()).collect()
    }

    /// A call about one of the last few ids, whether it is held or not.
    fn name_slot(&mut self, index: Index, command: impl FnOnce(SlotId) -> Command) {
        let last = &self.ids[self.ids.len().saturating_sub(6)..];
        if let Some(slot) = pick(last, index) {
            self.turn(command(slot));
        }
    }

    fn force(&mut self, index: Index) {
        let held = &self.observer.held;
        let reference = pick(held, index).map_or(1, |slot| slot.reference);
        self.turn(Command::Force {
            reference: Ref(reference),
        });
    }

    fn pass(&mut self, span: Span) {
        let until = self.shell.clock.plus(span);
        while let Some(at) = self.shell.governor.deadline().filter(|at| *at <= until) {
            self.shell.clock = self.shell.clock.max(at);
            self.turn(Command::Tick);
        }
        self.shell.clock = until;
    }

    fn reload(&mut self, first: Index, stay: &[bool]) {
        let mut waiters = self.waiters();
        let clock = self.shell.clock;
        let seen = self.observer.now;
        self.shell.reload();
        self.observer.reloaded(clock, self.shell.storage.seen());
        // Until the governor has been told the time, it speaks of its last.
        self.turn(Command::Tick);
        if !waiters.is_empty() {
            let at = first.index(waiters.len());
            waiters.rotate_left(at);
        }
        let staying = waiters.into_iter().zip(stay.iter().cycle());
        for (waiter, _) in staying.filter(|(_, stays)| **stays) {
            self.turn(Command::Acquire(Acquire {
                request: waiter.request,
                attempt: waiter.attempt,
                key: waiter.key,
                expires: waiter.expires,
                carrier: waiter.carrier,
                ip: waiter.ip,
                wait: waiter.deadline.since(seen),
                waited: seen.since(waiter.arrived),
                ..call(0)
            }));
        }
    }
}

fn pick<T: Clone>(all: &[T], index: Index) -> Option<T> {
    (!all.is_empty()).then(|| index.get(all).clone())
}

/// The right row and a guessed secret.
fn forged(slot: SlotId) -> SlotId {
    SlotId {
        row: slot.row,
        secret: SlotSecret(slot.secret.0 ^ (1 << 127)),
    }
}
