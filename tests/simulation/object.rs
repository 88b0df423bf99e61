//! The object of the source: turns as `edge/turn.rs` takes them, and the gate
//! that holds every answer back until what was written before it is durable.

use std::collections::BTreeMap;

use swarmvia_locks::access::families::Families;
use swarmvia_locks::governor::command::{Acquire, Command, Effect, Reply};
use swarmvia_locks::governor::ids::{AttemptId, KeyId, RequestId, SlotSecret};
use swarmvia_locks::governor::time::Millis;
use swarmvia_locks::governor::{Governor, Step};
use swarmvia_locks::wire::request::Carrier;

use crate::books::Cause;
use crate::coverage::Seen;
use crate::disk::{Disk, Write};
use crate::gate::{Fact, Written};
use crate::said::Said;
use crate::support::ms;
use crate::world::World;

/// A timer rings by then; an alarm mostly.
pub const TIMER_LATE: u64 = 100;

/// One call of a Worker to the object: which call, and its how many-th try.
pub type Try = (usize, u32);

#[derive(Default)]
pub enum Memory {
    #[default]
    Unread,
    Absent,
    Present(Box<Source>),
}

pub struct Source {
    pub governor: Governor,
    pub families: Families,
    /// When the alarm rings, as far as this incarnation knows.
    pub armed: Option<Millis>,
}

impl Source {
    pub fn new(governor: Governor, families: Families) -> Self {
        Self {
            governor,
            families,
            armed: None,
        }
    }
}

#[derive(Default)]
pub struct Object {
    pub memory: Memory,
    pub disk: Disk,
    /// What was written and is not durable yet, and the answers behind it.
    pub gate: Vec<Written>,
    pub waiting: BTreeMap<RequestId, Try>,
    pub timer: Option<(Millis, u64)>,
    /// How far the clock jumped forward since the timer was set.
    pub jumped: u64,
}

impl World {
    /// An acquire has arrived.
    pub fn acquire(&mut self, by: Try, key: KeyId, attempt: AttemptId, wait: u64, waited: u64) {
        let request = self.calls[by.0].request;
        let acquire = Acquire {
            request,
            attempt,
            key,
            expires: self.calls[by.0].end,
            carrier: match by.0 % 3 {
                0 => Carrier::Bearer,
                _ => Carrier::KeyHeader,
            },
            ip: Some(["192.0.2.1", "198.51.100.1"][by.0 % 2].into()),
            wait: ms(wait),
            waited: ms(waited),
            secret: SlotSecret(self.rng.wide()),
        };
        self.lock(by, key, Command::Acquire(acquire));
        let left = self.calls[by.0].left_unread(by.1) && self.waits_at_object(request, by);
        if left {
            self.coverage.saw(Seen::LeftUnread);
            self.leave(by);
        }
    }

    /// A lock call: served if its key is alive.
    pub fn lock(&mut self, by: Try, key: KeyId, command: Command) {
        self.read();
        let end = self.calls[by.0].end;
        match &mut self.object.memory {
            Memory::Present(source) if source.families.admits(key) => {
                let is_news = source.families.see(key, end);
                let family = source.families.find(key).filter(|_| is_news);
                let seen = family.map(|family| Write::Family(key, Box::new(family.clone())));
                if is_news {
                    self.coverage.saw(Seen::FirstUse);
                }
                self.turn(Cause::Call, command, Vec::from_iter(seen), Some(by));
            }
            _ => {
                self.coverage.saw(Seen::DeadKey);
                self.say(by, Said::DeadKey);
            }
        }
    }

    fn waits_at_object(&self, request: RequestId, by: Try) -> bool {
        self.object.waiting.get(&request) == Some(&by)
    }

    /// The abort signal of a call has come; nothing happens where it doesn't
    /// wait, or another try of it does.
    pub fn leave(&mut self, by: Try) {
        let request = self.calls[by.0].request;
        if !self.waits_at_object(request, by) {
            return;
        }
        self.object.waiting.remove(&request);
        let attempt = self.calls[by.0].attempt();
        self.coverage.saw(Seen::LeftNoticed);
        self.read();
        self.turn(
            Cause::Call,
            Command::Leave { attempt, request },
            Vec::new(),
            None,
        );
    }

    /// If memory is empty, storage is read.
    pub fn read(&mut self) {
        if !matches!(self.object.memory, Memory::Unread) {
            return;
        }
        self.coverage.saw(Seen::Load);
        let clock = self.clock();
        let loaded = if self.object.gate.is_empty() {
            self.object.disk.load(clock)
        } else {
            self.coverage.saw(Seen::LoadBesidePending);
            self.object.as_written().load(clock)
        };
        let Some((governor, families, stored)) = loaded else {
            self.object.memory = Memory::Absent;
            return;
        };
        let limit = governor.gauge().limit;
        if governor.learned().concurrency_by.is_some() || governor.learned().rate_by.is_some() {
            self.coverage.saw(Seen::LearnedKept);
        }
        let fact = Fact::Loaded(clock, stored, limit);
        self.object.memory = Memory::Present(Box::new(Source::new(governor, families)));
        self.written(Written::fact(fact));
    }

    /// One turn at the source: `None` if it failed, or there is none.
    pub fn turn(
        &mut self,
        cause: Cause,
        command: Command,
        mut writes: Vec<Write>,
        by: Option<Try>,
    ) -> Option<Reply> {
        let Memory::Present(mut source) = std::mem::take(&mut self.object.memory) else {
            self.object.memory = Memory::Absent;
            return None;
        };
        self.coverage.saw(Seen::Turn);
        let clock = self.clock();
        self.in_time(&source.governor, clock);
        let before = source.governor.gauge();
        let step = source.governor.apply(clock, command.clone());
        if let Err(broken) = source.governor.audit() {
            panic!("audit: {broken}");
        }
        let alarm = self.arm(&mut source, clock);
        let is_row =
            |effect: &&Effect| !matches!(effect, Effect::Answer { .. } | Effect::Ask { .. });
        writes.extend(
            step.effects
                .iter()
                .filter(is_row)
                .cloned()
                .map(Write::Effect),
        );
        let writes_rows = !writes.is_empty();
        let fails = writes_rows && self.rng.one_in(self.plan.write_fails);
        let reported = writes_rows && !fails && self.rng.one_in(self.plan.write_reported);
        if fails {
            self.coverage.saw(Seen::WriteFailed);
            writes.clear();
        }
        writes.extend(alarm);
        if fails {
            let outs = self.forget(by);
            self.written(Written {
                writes,
                outs,
                ..Written::default()
            });
            return None;
        }
        self.reached(cause, &command, &step, before, &source.governor);
        let outs = if reported {
            self.coverage.saw(Seen::WriteReported);
            self.forget(by)
        } else {
            self.answers(&step, &command, by)
        };
        let reply = step.reply.clone();
        let fact = Some(Fact::Turn {
            clock,
            cause,
            command,
            step,
        });
        self.commit(
            Written {
                writes,
                outs,
                fact,
                after: None,
            },
            &source.governor,
        );
        if reported {
            return None;
        }
        self.object.memory = Memory::Present(source);
        Some(reply)
    }

    /// Whoever waits is looked after in time: the timer stood where it should.
    fn in_time(&self, governor: &Governor, clock: Millis) {
        let late = TIMER_LATE + self.object.jumped;
        if governor.has_waiters() {
            let due = governor.deadline().expect("a waiter has a deadline");
            assert!(clock <= due.plus(ms(late)), "nobody came at {due:?}");
        }
    }

    /// Those who wait, and whoever called, are told to call again.
    pub fn forget(&mut self, by: Option<Try>) -> Vec<(Try, Said)> {
        self.object.timer = None;
        let waiting = std::mem::take(&mut self.object.waiting);
        let all = waiting.into_values().chain(by);
        all.map(|by| (by, Said::Again)).collect()
    }

    pub fn answers(&mut self, step: &Step, command: &Command, by: Option<Try>) -> Vec<(Try, Said)> {
        let mut outs = Vec::new();
        for effect in &step.effects {
            let (request, said) = match effect {
                Effect::Answer { request, answer } => (request, Said::of(answer)),
                Effect::Ask { request } => (request, Said::Again),
                _ => continue,
            };
            let by = self.object.waiting.remove(request);
            outs.extend(by.map(|by| (by, said)));
        }
        let Some(by) = by else { return outs };
        let said = match (&step.reply, command) {
            (Reply::Queued, Command::Acquire(acquire)) => {
                let former = self.object.waiting.insert(acquire.request, by);
                if former.is_some() {
                    self.coverage.saw(Seen::RequestTwice);
                }
                outs.extend(former.map(|former| (former, Said::Again)));
                return outs;
            }
            (Reply::Acquire(answer), _) => Said::of(answer),
            (Reply::Renew(renewed), _) => Said::Renewed(*renewed),
            (Reply::Release(released), _) => Said::Released(*released),
            (reply, command) => panic!("{reply:?} to {command:?}"),
        };
        outs.push((by, said));
        outs
    }

    /// An operator's command; false if it failed or there is no source.
    pub fn operator(&mut self, command: Command, writes: Vec<Write>) -> Option<Reply> {
        self.read();
        self.turn(Cause::Operator, command, writes, None)
    }
}
