//! Between the object and the world: what was written becomes durable, then
//! what depends on it is said. A crash in between loses both.

use swarmvia_locks::governor::command::{Command, Effect, Gauge, Refusal, Reply, Verdict};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::Millis;
use swarmvia_locks::governor::{Governor, Step};

use crate::books::Cause;
use crate::coverage::Seen;
use crate::disk::{Disk, Write};
use crate::object::{Memory, Object, Try};
use crate::said::Said;
use crate::support::observer::Observer;
use crate::world::{Event, World};

/// What the books are told once it is durable.
#[expect(clippy::large_enum_variant, reason = "nearly all are turns")]
pub enum Fact {
    Turn {
        clock: Millis,
        cause: Cause,
        command: Command,
        step: Step,
    },
    /// Memory was read: the clock, the rows' latest moment, the limit in force.
    Loaded(Millis, Millis, u32),
    Created(Millis, Box<Settings>),
    Deleted,
}

#[derive(Default)]
pub struct Written {
    pub writes: Vec<Write>,
    pub outs: Vec<(Try, Said)>,
    pub fact: Option<Fact>,
    /// The governor after the turn, where it has gone on since.
    pub after: Option<Governor>,
}

impl Written {
    pub fn fact(fact: Fact) -> Self {
        Self {
            fact: Some(fact),
            ..Self::default()
        }
    }
}

impl Object {
    /// What a read sees: also what isn't durable yet.
    pub fn as_written(&self) -> Disk {
        let mut disk = self.disk.clone();
        let writes = self.gate.iter().flat_map(|written| &written.writes);
        writes.for_each(|write| disk.apply(write));
        disk
    }
}

impl World {
    /// Says something that depends on nothing but what was written before.
    pub fn say(&mut self, by: Try, said: Said) {
        let outs = vec![(by, said)];
        self.written(Written {
            outs,
            ..Written::default()
        });
    }

    /// What needs no governor beside it.
    pub fn written(&mut self, written: Written) {
        if self.object.gate.is_empty() {
            self.durable(written, None);
        } else {
            self.object.gate.push(written);
        }
    }

    /// The end of a turn: durable at once, or after a while.
    pub fn commit(&mut self, mut written: Written, after: &Governor) {
        let is_open = self.object.gate.is_empty();
        if is_open && !self.rng.one_in(self.plan.held_back) {
            self.durable(written, Some(after));
            return;
        }
        written.after = Some(after.clone());
        self.object.gate.push(written);
        if is_open {
            let delay = self.rng.between(1, 60);
            self.schedule(delay, Event::Open);
        }
    }

    /// All that was written is durable.
    pub fn open(&mut self) {
        for mut written in std::mem::take(&mut self.object.gate) {
            let after = written.after.take();
            self.durable(written, after.as_ref());
        }
    }

    pub fn durable(&mut self, written: Written, after: Option<&Governor>) {
        for write in &written.writes {
            self.object.disk.apply(write);
            if let Write::Alarm(number, at) = write {
                self.send_alarm(*number, *at);
            }
        }
        match written.fact {
            None => {}
            Some(Fact::Turn {
                clock,
                cause,
                command,
                step,
            }) => {
                let after = after.expect("the governor after a turn");
                if let Some(observer) = &mut self.observer {
                    observer.watch(clock, &command, &step, after);
                }
                let seen = &mut self.coverage;
                self.books.watch(clock, cause, &command, &step, after, seen);
            }
            Some(Fact::Loaded(clock, stored, limit)) => {
                if let Some(observer) = &mut self.observer {
                    observer.reloaded(clock, stored);
                }
                self.books
                    .reloaded(clock, stored, limit, &mut self.coverage);
            }
            Some(Fact::Created(clock, settings)) => {
                if self.observer.is_some() {
                    let mut observer = Observer::new(&settings);
                    observer.now = clock;
                    self.observer = Some(observer);
                }
                self.books.anew(clock, &settings);
            }
            Some(Fact::Deleted) => self.books.ended(),
        }
        for (by, said) in written.outs {
            self.has_answered(by, said);
            self.answer(by, said);
        }
    }

    /// The alarm as the platform has it ring: mostly in time.
    fn send_alarm(&mut self, number: u64, at: Millis) {
        let delay = at.since(self.clock()).ms();
        let again = false;
        if !self.rng.one_in(self.plan.alarm) {
            let late = self.rng.below(100);
            self.schedule(delay + late, Event::Alarm { number, again });
            return;
        }
        match self.rng.below(3) {
            0 => self.coverage.saw(Seen::AlarmLost),
            1 => {
                self.coverage.saw(Seen::AlarmLate);
                let late = self.rng.between(1_000, 20_000);
                self.schedule(delay + late, Event::Alarm { number, again });
            }
            _ => {
                self.coverage.saw(Seen::AlarmTwice);
                self.schedule(delay, Event::Alarm { number, again });
                let again = true;
                let later = self.rng.below(3_000);
                self.schedule(delay + later, Event::Alarm { number, again });
            }
        }
    }

    /// The object is gone. `durable`: how much of what was written remains.
    pub fn crash(&mut self, durable: usize) {
        let gate = std::mem::take(&mut self.object.gate);
        self.coverage.saw(if gate.is_empty() {
            Seen::CrashIdle
        } else if durable < gate.len() {
            Seen::CrashLost
        } else {
            Seen::CrashKept
        });
        if !self.object.waiting.is_empty() {
            self.coverage.saw(Seen::CrashWaiters);
        }
        self.object.memory = Memory::Unread;
        let mut broken: Vec<Try> = Vec::new();
        for (index, mut written) in gate.into_iter().enumerate() {
            broken.extend(written.outs.drain(..).map(|(by, _)| by));
            if index < durable {
                let after = written.after.take();
                self.durable(written, after.as_ref());
            }
        }
        let waiting = self.forget(None);
        broken.extend(waiting.into_iter().map(|(by, _)| by));
        for (call, number) in broken {
            let delay = self.rng.below(20);
            self.schedule(delay, Event::Broken { call, number });
        }
    }

    /// Notes what a turn has come to.
    pub fn reached(
        &mut self,
        cause: Cause,
        command: &Command,
        step: &Step,
        before: Gauge,
        after: &Governor,
    ) {
        let seen = &mut self.coverage;
        for effect in &step.effects {
            match effect {
                Effect::Answer { answer, .. } => seen.saw(match (&answer.verdict, cause) {
                    (Verdict::Granted(_), Cause::Call) => Seen::GrantedByCall,
                    (Verdict::Granted(_), Cause::Timer) => Seen::GrantedByTimer,
                    (Verdict::Granted(_), Cause::Alarm) => Seen::GrantedByAlarm,
                    (Verdict::Granted(_), Cause::Operator) => Seen::GrantedByOperator,
                    (Verdict::Dismissed(_), Cause::Timer | Cause::Alarm) => Seen::KeyEnded,
                    (Verdict::Dismissed(_), _) => Seen::Dismissed,
                    (Verdict::Forbidden, _) => Seen::Forbidden,
                    (Verdict::TimedOut(_) | Verdict::Refused(_), _) => Seen::TimedOut,
                }),
                Effect::Ask { .. } => seen.saw(Seen::Asked),
                Effect::Cooldown { until: Some(_) } => seen.saw(Seen::CoolingDown),
                _ => {}
            }
        }
        let gauge = after.gauge();
        if matches!(command, Command::Release { .. }) && gauge.limit != before.limit {
            let less = gauge.limit < before.limit;
            seen.saw(if less {
                Seen::LearnedLess
            } else {
                Seen::LearnedMore
            });
        }
        let Command::Acquire(acquire) = command else {
            return;
        };
        match &step.reply {
            Reply::Queued => {
                if gauge.depth == before.depth && step.effects.is_empty() {
                    seen.saw(Seen::Joined);
                }
                if !acquire.waited.is_zero() {
                    seen.saw(Seen::Carried);
                    if gauge.depth > after.settings().queue.max_depth {
                        seen.saw(Seen::CarriedBeyondDepth);
                    }
                }
                if gauge.remaining() > 0 {
                    seen.saw(Seen::WaitedForGate);
                }
            }
            Reply::Acquire(answer) => seen.saw(match &answer.verdict {
                Verdict::Granted(grant) if grant.replayed => Seen::Replayed,
                Verdict::Granted(_) if wrote_slot(step) => Seen::GrantedAtOnce,
                Verdict::Granted(_) => Seen::Retried,
                Verdict::TimedOut(_) => Seen::TimedOutCarried,
                Verdict::Dismissed(_) | Verdict::Forbidden => Seen::Dismissed,
                Verdict::Refused(Refusal::QueueFull { .. }) => Seen::QueueFull,
                Verdict::Refused(Refusal::Cooldown { .. }) => Seen::Cooldown,
                Verdict::Refused(Refusal::Rpm { .. }) => Seen::Rpm,
                Verdict::Refused(Refusal::NoFreeSlot { .. }) => Seen::NoFreeSlot,
            }),
            _ => {}
        }
    }
}

fn wrote_slot(step: &Step) -> bool {
    let takes = |effect: &Effect| matches!(effect, Effect::Record(it) if it.slot.is_some());
    step.effects.iter().any(takes)
}
