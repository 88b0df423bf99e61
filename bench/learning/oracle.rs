//! The oracle: knows the rule at every moment and uses it as well as can be,
//! in the same world, with the same network. It is never rejected.

use std::collections::VecDeque;

use crate::policy::{Answer, Answers, CALLERS, Gauge, NETWORK_MS, Policy, Seen};
use crate::scenario::Letter;
use crate::upstream::Upstream;

pub struct Oracle {
    letter: Letter,
    phase: u64,
    /// What it takes for the truth, as a multiple of it.
    skew: f64,
    in_flight: u32,
    waiting: VecDeque<usize>,
    /// When the next call is due, where calls are paced.
    next_at: u64,
    seen: u64,
}

impl Oracle {
    pub const fn new(letter: Letter, phase: u64, skew: f64) -> Self {
        Self {
            letter,
            phase,
            skew,
            in_flight: 0,
            waiting: VecDeque::new(),
            next_at: 0,
            seen: 0,
        }
    }

    /// Calls at once, for one that arrives at the upstream after the network.
    fn limit(&self, now: u64) -> u32 {
        let at = |ms| match self.letter {
            Letter::G => 30,
            letter => letter.concurrency_at(ms).unwrap_or(CALLERS as u32),
        };
        let truth = at(now).min(at(now + NETWORK_MS));
        (f64::from(truth) * self.skew).round() as u32
    }

    fn spacing(&self, now: u64) -> u64 {
        let fair = Upstream::fair_spacing(self.letter, self.phase, now + NETWORK_MS);
        (fair.unwrap_or(0) as f64 / self.skew).round() as u64
    }

    fn hand_over(&mut self, now: u64, answers: &mut Answers) {
        self.seen = now;
        while self.in_flight < self.limit(now) && self.next_at <= now {
            let Some(caller) = self.waiting.pop_front() else {
                return;
            };
            self.in_flight += 1;
            self.next_at = now + self.spacing(now);
            answers.push((caller, Answer::Granted));
        }
    }
}

impl Policy for Oracle {
    fn acquire(&mut self, now: u64, caller: usize, answers: &mut Answers) {
        self.waiting.push_back(caller);
        self.hand_over(now, answers);
    }

    fn release(&mut self, now: u64, _caller: usize, _seen: &Seen, answers: &mut Answers) {
        self.in_flight -= 1;
        self.hand_over(now, answers);
    }

    fn tick(&mut self, now: u64, answers: &mut Answers) {
        self.hand_over(now, answers);
    }

    /// The next paced call; the rule's next change shows with the next release
    /// or acquire, but for a rise: then nobody may be about to come.
    fn deadline(&self) -> Option<u64> {
        let paced = Some(self.next_at).filter(|at| *at > self.seen);
        let rise = (self.letter == Letter::E)
            .then(|| (self.seen + 1).next_multiple_of(crate::scenario::STEP_MS));
        paced.or(rise).filter(|_| !self.waiting.is_empty())
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            limit: self.limit(self.seen),
            rpm: None,
        }
    }
}
