//! A shell around a governor, in virtual time: what the object is around the
//! real one, without the platform.
//!
//! Its storage does to rows exactly what the statements of the real one do, and
//! a reload sees nothing but those rows.

#![allow(dead_code, reason = "each test file uses its part of this")]

pub mod model;
pub mod moves;
pub mod observer;
pub mod probes;
pub mod storage;
pub mod world;

use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::Step;
use swarmvia_locks::governor::command::{
    Acquire, Answer, Command, Effect, Grant, Refusal, Renewed, Reply, Verdict,
};
use swarmvia_locks::governor::ids::{AttemptId, KeyId, RequestId, SlotId, SlotSecret};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::snapshot::Snapshot;
use swarmvia_locks::governor::time::{Millis, Span};
use swarmvia_locks::outcome::Report;
use swarmvia_locks::outcome::rate::Rate;
use swarmvia_locks::wire::request::Carrier;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::{FileFailurePersistence, RngSeed};

use storage::Storage;

/// Property tests: the same cases in every run, unless the environment asks for
/// others; sequences that once failed are run first.
pub fn config(test: &str, cases: u32) -> ProptestConfig {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proptest-regressions");
    let file: &'static str = format!("{folder}/{test}.txt").leak();
    let mut config = ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

/// When every test begins.
pub const START: Millis = Millis::from_epoch(1_710_000_000_000);
/// A hint that no upstream means.
pub const THIRTY_YEARS: Span = Span::from_seconds(30 * 365 * 86_400);

pub const fn ms(ms: u64) -> Span {
    Span::from_ms(ms)
}

/// Default settings with this many slots.
pub fn limit(limit: u32) -> Settings {
    let mut settings = Settings::default();
    settings.concurrency.limit = limit;
    settings.concurrency.max = limit;
    settings
}

/// A fail-fast newcomer: a request, and an attempt of the same name.
pub fn call(name: u128) -> Acquire {
    Acquire {
        request: RequestId(name),
        attempt: AttemptId(name),
        key: KeyId(1),
        expires: None,
        carrier: Carrier::KeyHeader,
        ip: None,
        wait: Span::ZERO,
        waited: Span::ZERO,
        secret: SlotSecret(0),
    }
}

pub fn throttled_for(span: Span) -> Report {
    Report {
        status: Some(429),
        throttled: None,
        rate: Rate {
            retry_after: Some(span),
            ..Rate::default()
        },
    }
}

pub struct Shell {
    pub governor: Governor,
    pub storage: Storage,
    /// What the clock shows.
    pub clock: Millis,
    /// Answers to waiters, in the order in which they were given.
    pub answers: Vec<(RequestId, Answer)>,
    secrets: u128,
}

impl Shell {
    pub fn new(settings: Settings) -> Self {
        Self {
            governor: Governor::load(settings, Snapshot::default()).unwrap(),
            storage: Storage::default(),
            clock: START,
            answers: Vec::new(),
            secrets: 0,
        }
    }

    /// One turn: the step, its effects, the audit.
    pub fn step(&mut self, command: Command) -> Step {
        let command = self.with_secret(command);
        self.step_with(&command)
    }

    /// The same, where an acquire has its secret already.
    pub fn step_with(&mut self, command: &Command) -> Step {
        let step = self.governor.apply(self.clock, command.clone());
        for effect in &step.effects {
            self.storage.apply(effect);
            if let Effect::Answer { request, answer } = effect {
                self.answers.push((*request, answer.clone()));
            }
        }
        self.governor.audit().unwrap();
        step
    }

    /// Draws the secret that an acquire brings.
    pub fn with_secret(&mut self, command: Command) -> Command {
        match command {
            Command::Acquire(acquire) => {
                self.secrets += 1;
                let secret = SlotSecret(self.secrets);
                Command::Acquire(Acquire { secret, ..acquire })
            }
            other => other,
        }
    }

    pub fn acquire(&mut self, acquire: Acquire) -> Reply {
        self.step(Command::Acquire(acquire)).reply
    }

    /// An acquire that must be granted at once.
    pub fn take(&mut self, acquire: Acquire) -> Grant {
        match self.acquire(acquire) {
            Reply::Acquire(Answer {
                verdict: Verdict::Granted(grant),
                ..
            }) => grant,
            other => panic!("not granted: {other:?}"),
        }
    }

    /// An acquire that must be refused at once.
    pub fn refused(&mut self, acquire: Acquire) -> Refusal {
        match self.acquire(acquire) {
            Reply::Acquire(Answer {
                verdict: Verdict::Refused(refusal),
                ..
            }) => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// A fail-fast acquire that may be either.
    pub fn refused_or_granted(&mut self, acquire: Acquire) -> Verdict {
        match self.acquire(acquire) {
            Reply::Acquire(answer) => answer.verdict,
            other => panic!("not decided: {other:?}"),
        }
    }

    /// An acquire of this name that must queue, for up to `wait`.
    pub fn queue(&mut self, name: u128, wait: Span) {
        let reply = self.acquire(Acquire { wait, ..call(name) });
        assert!(matches!(reply, Reply::Queued), "not queued: {reply:?}");
    }

    pub fn renew(&mut self, slot: SlotId) -> Option<Renewed> {
        match self.step(Command::Renew { slot }).reply {
            Reply::Renew(renewed) => renewed,
            other => panic!("not a renewal: {other:?}"),
        }
    }

    pub fn release(&mut self, slot: SlotId) -> bool {
        self.report(slot, Report::default())
    }

    /// A release with its report.
    pub fn report(&mut self, slot: SlotId, report: Report) -> bool {
        match self.step(Command::Release { slot, report }).reply {
            Reply::Release(released) => released,
            other => panic!("not a release: {other:?}"),
        }
    }

    pub fn configure(&mut self, settings: Settings) {
        self.step(Command::Configure(Box::new(settings)));
    }

    /// Lets time pass with a timer that fires at every deadline.
    pub fn pass(&mut self, span: Span) {
        let until = self.clock.plus(span);
        while let Some(at) = self.governor.deadline().filter(|at| *at <= until) {
            self.clock = self.clock.max(at);
            self.step(Command::Tick);
            let next = self.governor.deadline();
            assert!(next.is_none_or(|next| next > at), "a timer that spins");
        }
        self.clock = until;
    }

    /// The object is evicted or restarted: memory and waiters are lost.
    pub fn reload(&mut self) {
        let settings = self.governor.settings().clone();
        let snapshot = self.storage.snapshot(self.clock);
        self.governor = Governor::load(settings, snapshot).unwrap();
    }

    /// Who was granted after having waited, in order.
    pub fn served(&self) -> Vec<u128> {
        let granted = |(request, answer): &(RequestId, Answer)| {
            matches!(answer.verdict, Verdict::Granted(_)).then_some(request.0)
        };
        self.answers.iter().filter_map(granted).collect()
    }

    /// The grant that this waiter got, if it got one.
    pub fn grant_of(&self, name: u128) -> Option<Grant> {
        let mut of_name = self.answers.iter().filter(|(request, _)| request.0 == name);
        of_name.find_map(|(_, answer)| match &answer.verdict {
            Verdict::Granted(grant) => Some(grant.clone()),
            _ => None,
        })
    }

    pub fn in_use(&self) -> u32 {
        self.governor.gauge().in_use
    }
}

/// The slot that a verdict grants.
pub fn slot_of(verdict: &Verdict) -> Option<SlotId> {
    match verdict {
        Verdict::Granted(grant) => Some(grant.slot),
        _ => None,
    }
}
