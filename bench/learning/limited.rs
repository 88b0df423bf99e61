//! A concurrency limit with a fair queue in front, as Netflix's limiters are
//! used by callers that block: no gate, no hold-off, just so many at once.

use std::collections::VecDeque;

use crate::policy::{Answer, Answers, CALLERS, Gauge, Policy, Seen};

/// The most and the least that any of the limits may come to here.
pub const MOST: f64 = CALLERS as f64;
pub const LEAST: f64 = 1.0;
/// Where all of them begin, as ours does.
pub const INITIAL: f64 = 10.0;

/// One call as a limit sees it.
#[derive(Clone, Copy)]
pub struct Sample {
    /// When it ended.
    pub at_ms: u64,
    pub rtt_ms: f64,
    /// Calls in flight when it began, itself included.
    pub in_flight: u32,
    pub dropped: bool,
}

/// The arithmetic of a limit: samples in, a limit out.
pub trait Limit {
    fn sample(&mut self, sample: Sample);
    fn limit(&self) -> u32;
}

pub struct Limited<L> {
    limit: L,
    in_flight: u32,
    waiting: VecDeque<usize>,
    /// When each caller began, and how many were in flight then.
    begun: [(u64, u32); CALLERS],
}

impl<L: Limit> Limited<L> {
    pub const fn new(limit: L) -> Self {
        Self {
            limit,
            in_flight: 0,
            waiting: VecDeque::new(),
            begun: [(0, 0); CALLERS],
        }
    }

    fn hand_over(&mut self, now: u64, answers: &mut Answers) {
        while self.in_flight < self.limit.limit() {
            let Some(caller) = self.waiting.pop_front() else {
                return;
            };
            self.in_flight += 1;
            self.begun[caller] = (now, self.in_flight);
            answers.push((caller, Answer::Granted));
        }
    }
}

impl<L: Limit> Policy for Limited<L> {
    fn acquire(&mut self, now: u64, caller: usize, answers: &mut Answers) {
        self.waiting.push_back(caller);
        self.hand_over(now, answers);
    }

    fn release(&mut self, now: u64, caller: usize, seen: &Seen, answers: &mut Answers) {
        let (begun, in_flight) = self.begun[caller];
        self.in_flight -= 1;
        self.limit.sample(Sample {
            at_ms: now,
            rtt_ms: (now - begun) as f64,
            in_flight,
            dropped: seen.throttled(),
        });
        self.hand_over(now, answers);
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            limit: self.limit.limit(),
            rpm: None,
        }
    }
}
