//! One run: callers, a policy and an upstream, in virtual time.
//!
//! A caller asks, calls the upstream as soon as it is granted, releases with
//! what it saw, and asks again once that is answered.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::chance::{Chance, Stream};
use crate::flavour;
use crate::governed::START_MS;
use crate::policy::{Answer, Answers, CALLERS, Gauge, Kind, NETWORK_MS, Policy, Seen};
use crate::scenario::Case;
use crate::upstream::{Outcome, Upstream};

/// A call that is out for longer renews its slot, and again after as long.
const RENEW_INTERVAL_MS: u64 = 10_000;
/// Callers begin within this time.
const START_SPREAD_MS: u64 = 200;
/// What a throttled caller waits by itself if nobody told it.
const PAUSE_MS: u64 = 1000;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An acquire reaches the service.
    Acquire { caller: usize },
    /// A granted caller's call reaches the upstream.
    Call { caller: usize },
    /// The upstream's answer is at the caller.
    Answered { caller: usize },
    /// A release reaches the service.
    Release { caller: usize },
    /// A renewal reaches the service.
    Renew { caller: usize },
    /// A call of the neighbour reaches the upstream.
    Neighbour,
}

/// What happened in one second, and how things stood at its end.
#[derive(Clone, Copy, Default)]
pub struct Second {
    /// Accepted calls, by when they arrived at the upstream.
    pub accepted: u32,
    pub throttled: u32,
    /// Accepted calls that were answered.
    pub completed: u32,
    pub in_flight: u32,
    pub gauge: Gauge,
}

pub struct Run {
    pub seconds: Vec<Second>,
    /// Completed calls of each caller.
    pub by_caller: [u32; CALLERS],
    /// Of all completed calls.
    pub service_ms: u64,
    /// When the rule changed, in seconds, rounded up; the start first.
    pub steps: Vec<usize>,
}

struct World {
    policy: Box<dyn Policy>,
    upstream: Upstream,
    case: Case,
    kind: Kind,
    chance: Chance,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    ordinal: u64,
    /// What each caller's call comes to.
    calls: [Option<(Outcome, Seen)>; CALLERS],
    answers: Answers,
    run: Run,
}

/// Runs `kind` in `case` for so many seconds.
pub fn run(case: Case, kind: Kind, seed: u64, seconds: usize, skew: f64) -> Run {
    let end = seconds as u64 * 1000;
    let upstream = Upstream::new(case.letter, seed);
    let steps = case.letter.steps(upstream.phase(), end);
    let mut world = World {
        policy: kind.policy(case.letter, upstream.phase(), seed, skew),
        case,
        kind,
        chance: Chance::new(seed, Stream::Callers),
        events: BinaryHeap::new(),
        ordinal: 0,
        calls: [const { None }; CALLERS],
        answers: Vec::new(),
        run: Run {
            seconds: Vec::with_capacity(seconds),
            by_caller: [0; CALLERS],
            service_ms: 0,
            steps: steps.iter().map(|ms| ms.div_ceil(1000) as usize).collect(),
        },
        upstream,
    };
    world.begin(seed, end);
    world.play(end);
    world.run
}

impl World {
    fn begin(&mut self, seed: u64, end: u64) {
        for caller in 0..CALLERS {
            let at = self.chance.within(0, START_SPREAD_MS);
            self.at(at, Event::Acquire { caller });
        }
        let mut chance = Chance::new(seed, Stream::Neighbour);
        for at in self.upstream.neighbour_calls(end, &mut chance) {
            self.at(at, Event::Neighbour);
        }
    }

    fn at(&mut self, at: u64, event: Event) {
        self.ordinal += 1;
        self.events.push(Reverse((at, self.ordinal, event)));
    }

    fn play(&mut self, end: u64) {
        let mut second = Second::default();
        let mut until = 1000;
        loop {
            let next = self.events.peek().map_or(end, |Reverse((at, ..))| *at);
            let tick = self.policy.deadline().filter(|at| *at <= next);
            let now = tick.unwrap_or(next);
            while until <= now.min(end) {
                second.in_flight = self.upstream.in_flight();
                second.gauge = self.policy.gauge();
                self.run.seconds.push(std::mem::take(&mut second));
                until += 1000;
            }
            if now >= end {
                return;
            }
            if tick.is_some() {
                self.policy.tick(now, &mut self.answers);
                let again = self.policy.deadline();
                assert!(again.is_none_or(|again| again > now), "a timer that spins");
            } else if let Some(Reverse((_, _, event))) = self.events.pop() {
                self.handle(now, event, &mut second);
            }
            self.pass_on(now);
        }
    }

    fn handle(&mut self, now: u64, event: Event, second: &mut Second) {
        match event {
            Event::Acquire { caller } => self.policy.acquire(now, caller, &mut self.answers),
            Event::Call { caller } => {
                let outcome = self.upstream.arrive(now);
                if outcome.accepted() {
                    second.accepted += 1;
                } else {
                    second.throttled += 1;
                }
                self.call(now, caller, outcome);
            }
            Event::Answered { caller } => {
                if let Some((outcome, _)) = &self.calls[caller]
                    && outcome.accepted()
                {
                    second.completed += 1;
                    self.run.by_caller[caller] += 1;
                    self.run.service_ms += outcome.takes_ms;
                    self.upstream.finish();
                }
                self.at(now + NETWORK_MS, Event::Release { caller });
            }
            Event::Release { caller } => self.release(now, caller),
            Event::Renew { caller } => self.policy.renew(now, caller),
            Event::Neighbour => self.upstream.neighbour_arrives(now),
        }
    }

    fn call(&mut self, now: u64, caller: usize, outcome: Outcome) {
        let answered = now + outcome.takes_ms;
        let mut seen = Seen {
            status: outcome.status,
            ..Seen::default()
        };
        if self.kind.reads_headers() {
            let headers = self.case.flavour.headers(&outcome.standing, START_MS + now);
            seen.rate = flavour::read(&headers, START_MS + answered);
        }
        let mut renewal = now + RENEW_INTERVAL_MS;
        while renewal < answered {
            self.at(renewal, Event::Renew { caller });
            renewal += RENEW_INTERVAL_MS;
        }
        self.calls[caller] = Some((outcome, seen));
        self.at(answered, Event::Answered { caller });
    }

    fn release(&mut self, now: u64, caller: usize) {
        let Some((outcome, seen)) = self.calls[caller].take() else {
            panic!("a release without a call");
        };
        self.policy.release(now, caller, &seen, &mut self.answers);
        let pause = if seen.throttled() && self.kind.leaves_pause_to_callers() {
            let told = outcome.standing.retry_after_ms;
            let told = told.filter(|_| self.case.flavour == flavour::Flavour::RetryAfter);
            told.map_or(PAUSE_MS, |ms| ms.next_multiple_of(1000))
        } else {
            0
        };
        let again = now + 2 * NETWORK_MS + pause;
        self.at(again, Event::Acquire { caller });
    }

    /// Sends the service's answers on their way.
    fn pass_on(&mut self, now: u64) {
        let mut answers = std::mem::take(&mut self.answers);
        for (caller, answer) in answers.drain(..) {
            match answer {
                Answer::Granted => self.at(now + NETWORK_MS, Event::Call { caller }),
                Answer::Later(known) => {
                    let wait = self.retry_after(known);
                    self.at(now + 2 * NETWORK_MS + wait, Event::Acquire { caller });
                }
            }
        }
        self.answers = answers;
    }

    /// As the contract has it: the known moment and up to the larger of 2 s and
    /// a quarter; else from 1 to 5 s.
    fn retry_after(&mut self, known: Option<u64>) -> u64 {
        match known {
            Some(ms) => ms + self.chance.within(0, (ms / 4).max(2000)),
            None => self.chance.within(1000, 5001),
        }
    }
}
