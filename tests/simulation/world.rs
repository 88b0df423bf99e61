//! One run: the object, the callers, the operators and what happens to them, in
//! virtual time, all from one seed.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use swarmvia_locks::governor::ids::SlotId;
use swarmvia_locks::governor::time::Millis;

use crate::books::Books;
use crate::caller::Caller;
use crate::coverage::{Coverage, Seen};
use crate::object::{Memory, Object};
use crate::owner::Owner;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::said::Said;
use crate::support::observer::Observer;
use crate::support::probes::{early_ticks_change_nothing, reload_would_agree};
use crate::support::{START, limit, ms};
use crate::worker::Call;

#[derive(Clone, Copy, Debug)]
pub enum Event {
    Come(usize),
    HangUp(usize),
    Renew(usize, u32),
    Release(usize, u32),
    /// An owner trades its token in; a thief one that it has found.
    Refresh(usize),
    Spend(usize, u64),
    Arrive {
        call: usize,
        number: u32,
        wait: u64,
        waited: u64,
    },
    Reach {
        call: usize,
        number: u32,
        said: Said,
    },
    Broken {
        call: usize,
        number: u32,
    },
    Overloaded {
        call: usize,
        number: u32,
    },
    Patience {
        call: usize,
        number: u32,
    },
    Abort {
        call: usize,
        number: u32,
    },
    Again(usize),
    Timer(u64),
    Alarm {
        number: u64,
        again: bool,
    },
    /// What was written is durable.
    Open,
    Operate,
}

/// An event in its order: by time, then as it was scheduled.
struct Due {
    at: u64,
    order: u64,
    event: Event,
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap's greatest is the next.
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

pub struct World {
    pub rng: Rng,
    pub plan: Plan,
    /// Milliseconds since the start; the object's clock may show another time.
    pub now: u64,
    /// How far the object's clock is behind.
    behind: u64,
    events: BinaryHeap<Due>,
    numbers: u64,
    pub object: Object,
    pub calls: Vec<Call>,
    pub callers: Vec<Caller>,
    pub owners: Vec<Owner>,
    /// Slots that were given out lately.
    pub ids: Vec<SlotId>,
    pub books: Books,
    /// Looks on where nothing is adaptive: what it expects is exact.
    pub observer: Option<Observer>,
    pub coverage: Coverage,
    /// Nobody comes any more.
    pub quiet: bool,
    trace: bool,
}

impl World {
    pub fn new(seed: u64, trace: bool) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::draw(&mut rng);
        let nothing = limit(1);
        let mut world = Self {
            observer: (!plan.adaptive).then(|| Observer::new(&nothing)),
            rng,
            now: 0,
            behind: 0,
            events: BinaryHeap::new(),
            numbers: 0,
            object: Object::default(),
            calls: Vec::new(),
            callers: vec![Caller::default(); plan.callers],
            owners: Vec::new(),
            ids: Vec::new(),
            books: Books::new(&nothing),
            coverage: Coverage::default(),
            quiet: false,
            plan,
            trace,
        };
        world.now = 100_000;
        world.create();
        for caller in 0..world.callers.len() {
            let delay = world.rng.below(2 * world.plan.think);
            world.schedule(delay, Event::Come(caller));
        }
        if world.plan.operate > 0 {
            let delay = world.rng.below(2 * world.plan.operate);
            world.schedule(delay, Event::Operate);
        }
        world
    }

    /// What the object's clock shows.
    pub fn clock(&self) -> Millis {
        START.plus(ms(self.now - self.behind))
    }

    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub fn schedule(&mut self, delay: u64, event: Event) {
        let order = self.number();
        let at = self.now + delay;
        self.events.push(Due { at, order, event });
    }

    /// Plays one step. False if nothing is left to happen.
    pub fn step(&mut self) -> bool {
        let Some(due) = self.events.pop() else {
            return false;
        };
        self.now = due.at;
        if self.trace {
            println!("{:>8}  {:?}", self.now, due.event);
        }
        self.happen(due.event);
        self.between();
        true
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Come(caller) => self.come(caller),
            Event::HangUp(call) => self.hang_up(call),
            Event::Renew(caller, session) => self.renew(caller, session),
            Event::Release(caller, session) => self.release(caller, session),
            Event::Refresh(owner) => self.refresh(owner),
            Event::Spend(owner, token) => self.spend(owner, token),
            Event::Arrive {
                call,
                number,
                wait,
                waited,
            } => self.arrive((call, number), wait, waited),
            Event::Reach { call, number, said } => self.reach((call, number), said),
            Event::Broken { call, number } => self.broke((call, number)),
            Event::Overloaded { call, number } => self.overloaded((call, number)),
            Event::Patience { call, number } => self.impatient((call, number)),
            Event::Abort { call, number } => self.leave((call, number)),
            Event::Again(call) => self.send(call),
            Event::Timer(number) => self.ring(number),
            Event::Alarm { number, again } => self.alarm(number, again),
            Event::Open => self.open(),
            Event::Operate => self.operate(),
        }
    }

    /// What may go wrong between any two steps.
    fn between(&mut self) {
        if self.rng.one_in(self.plan.crash) {
            let pending = self.object.gate.len();
            let durable = self.rng.index(pending + 1);
            self.note(format_args!("crash, {durable} of {pending} durable"));
            self.crash(durable);
        }
        let idle = self.object.waiting.is_empty() && self.object.gate.is_empty();
        if idle && self.rng.one_in(self.plan.evict) {
            self.note(format_args!("evicted"));
            self.coverage.saw(Seen::Evicted);
            self.object.memory = Memory::Unread;
        }
        if self.rng.one_in(self.plan.clock) {
            let by = self.rng.pick(&[1, 60, 700, 3_000, 20_000]);
            if self.rng.one_in(2) {
                self.coverage.saw(Seen::ClockBack);
                self.behind = (self.behind + by).min(90_000);
            } else if self.behind > 0 {
                self.coverage.saw(Seen::ClockForward);
                let by = by.min(self.behind);
                self.behind -= by;
                self.object.jumped += by;
            }
            self.note(format_args!("the clock is {} ms behind", self.behind));
        }
        if self.rng.one_in(50) {
            self.probe();
        }
    }

    fn note(&self, what: std::fmt::Arguments) {
        if self.trace {
            println!("{:>8}  -- {what}", self.now);
        }
    }

    /// Checks on copies, now and then: they cost more than a step.
    fn probe(&mut self) {
        let Memory::Present(source) = &self.object.memory else {
            return;
        };
        let Some(observer) = self
            .observer
            .as_mut()
            .filter(|_| self.object.gate.is_empty())
        else {
            return;
        };
        if let Some(kept) = &self.object.disk.source {
            observer.check_rows();
            early_ticks_change_nothing(&source.governor, observer.now);
            reload_would_agree(&source.governor, &kept.rows, observer.now);
        }
    }
}
