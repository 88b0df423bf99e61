//! Our governor with a shell around it: learning, or with fixed limits.

use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::Step;
use swarmvia_locks::governor::command::{
    self, Acquire, Command, Effect, Grant, Refusal, Reply, Verdict,
};
use swarmvia_locks::governor::ids::{AttemptId, KeyId, RequestId, SlotId, SlotSecret};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::snapshot::Snapshot;
use swarmvia_locks::governor::time::{Millis, Span};
use swarmvia_locks::outcome::Report;
use swarmvia_locks::wire::request::Carrier;

use crate::policy::{Answer, Answers, CALLERS, Gauge, Policy, Seen};
use crate::scenario::Letter;

/// When every run begins.
pub const START_MS: u64 = 1_710_000_000_000;
/// What callers are ready to wait in the queue.
const WAIT: Span = Span::from_seconds(30);

pub struct Governed {
    governor: Governor,
    /// The slot that each caller holds.
    slots: [Option<SlotId>; CALLERS],
    requests: u128,
}

impl Governed {
    /// As a source would be set up whose limits nobody knows.
    pub fn learning() -> Self {
        let mut settings = Settings::default();
        settings.concurrency.adaptive = true;
        settings.concurrency.limit = 10;
        settings.concurrency.min = 1;
        settings.concurrency.max = CALLERS as u32;
        settings.rpm.adaptive = true;
        Self::new(settings)
    }

    /// As somebody would set it who knows the rule, times `factor`.
    pub fn fixed(letter: Letter, factor: u32) -> Self {
        let (concurrency, rpm) = match letter {
            Letter::A => (20, None),
            Letter::B | Letter::D => (20, Some(300)),
            Letter::C => (8, Some(600)),
            // What is safe all the time.
            Letter::E => (10, None),
            Letter::F => (20, Some(150)),
            Letter::G => (30, None),
        };
        let mut settings = Settings::default();
        settings.concurrency.limit = concurrency * factor;
        settings.concurrency.max = concurrency * factor;
        settings.rpm.limit = rpm.map(|rpm: u32| rpm * factor);
        Self::new(settings)
    }

    fn new(settings: Settings) -> Self {
        Self {
            governor: Governor::load(settings, Snapshot::default()).unwrap(),
            slots: [None; CALLERS],
            requests: 0,
        }
    }

    fn step(&mut self, now: u64, command: Command, answers: &mut Answers) -> Reply {
        let now = Millis::from_epoch(START_MS + now);
        let Step { reply, effects } = self.governor.apply(now, command);
        for effect in effects {
            if let Effect::Answer { request, answer } = effect {
                let caller = (request.0 % CALLERS as u128) as usize;
                self.answer(now, caller, &answer, answers);
            }
        }
        reply
    }

    fn answer(
        &mut self,
        now: Millis,
        caller: usize,
        answer: &command::Answer,
        answers: &mut Answers,
    ) {
        let told = match &answer.verdict {
            Verdict::Granted(Grant { slot, .. }) => {
                self.slots[caller] = Some(*slot);
                Answer::Granted
            }
            Verdict::Refused(Refusal::Cooldown { opens_at } | Refusal::Rpm { opens_at }) => {
                Answer::Later(Some(opens_at.since(now).ms()))
            }
            Verdict::Refused(_)
            | Verdict::TimedOut(_)
            | Verdict::Dismissed(_)
            | Verdict::Forbidden => Answer::Later(None),
        };
        answers.push((caller, told));
    }
}

impl Policy for Governed {
    fn acquire(&mut self, now: u64, caller: usize, answers: &mut Answers) {
        self.requests += 1;
        let name = self.requests * CALLERS as u128 + caller as u128;
        let acquire = Acquire {
            request: RequestId(name),
            attempt: AttemptId(name),
            key: KeyId(1),
            expires: None,
            carrier: Carrier::KeyHeader,
            ip: None,
            wait: WAIT,
            waited: Span::ZERO,
            secret: SlotSecret(name),
        };
        if let Reply::Acquire(answer) = self.step(now, Command::Acquire(acquire), answers) {
            self.answer(Millis::from_epoch(START_MS + now), caller, &answer, answers);
        }
    }

    fn release(&mut self, now: u64, caller: usize, seen: &Seen, answers: &mut Answers) {
        let slot = self.slots[caller].take().expect("a release without a slot");
        let report = Report {
            status: Some(seen.status),
            throttled: None,
            rate: seen.rate,
        };
        self.step(now, Command::Release { slot, report }, answers);
    }

    fn renew(&mut self, now: u64, caller: usize) {
        let slot = self.slots[caller].expect("a renewal without a slot");
        let mut answers = Vec::new();
        self.step(now, Command::Renew { slot }, &mut answers);
        assert!(answers.is_empty(), "a renewal frees nothing");
    }

    fn tick(&mut self, now: u64, answers: &mut Answers) {
        self.step(now, Command::Tick, answers);
    }

    fn deadline(&self) -> Option<u64> {
        let deadline = self.governor.deadline()?;
        Some(deadline.epoch_ms().saturating_sub(START_MS))
    }

    fn gauge(&self) -> Gauge {
        let gauge = self.governor.gauge();
        Gauge {
            limit: gauge.limit,
            rpm: gauge
                .rpm
                .map(|rpm| (rpm.limit, rpm.limit.saturating_sub(rpm.remaining))),
        }
    }
}
