//! The cases: a governor with so many held slots or waiters, and a step that
//! leaves it as full as it was.

use std::collections::VecDeque;

use swarmvia_locks::governor::command::{Acquire, Command, Effect, Renewed, Reply, Verdict};
use swarmvia_locks::governor::ids::{AttemptId, KeyId, RequestId, SlotId, SlotSecret};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::snapshot::Snapshot;
use swarmvia_locks::governor::time::{Millis, Span};
use swarmvia_locks::governor::{Governor, Step};
use swarmvia_locks::outcome::Report;
use swarmvia_locks::wire::request::Carrier;

const START: Millis = Millis::from_epoch(1_710_000_000_000);
/// Long enough that no lease ends and nobody's wait is over.
const LONG: Span = Span::from_seconds(600);
const HELD_WITH_WAITERS: u32 = 10;

#[derive(Clone, Copy)]
pub enum Kind {
    /// An acquire and a release of the slot granted longest ago.
    Pair,
    /// A renewal, each time of the next slot.
    Renew,
    /// A release, which hands the slot to the head of the queue, and a newcomer
    /// at its end.
    HandOff,
}

pub struct Case {
    pub name: &'static str,
    kind: Kind,
    held: u32,
    waiters: u32,
}

const fn case(name: &'static str, kind: Kind, held: u32, waiters: u32) -> Case {
    Case {
        name,
        kind,
        held,
        waiters,
    }
}

pub const CASES: &[Case] = &[
    case("pair-10", Kind::Pair, 10, 0),
    case("pair-100", Kind::Pair, 100, 0),
    case("pair-1000", Kind::Pair, 1000, 0),
    case("pair-10000", Kind::Pair, 9999, 0),
    case("renew-10", Kind::Renew, 10, 0),
    case("renew-100", Kind::Renew, 100, 0),
    case("renew-1000", Kind::Renew, 1000, 0),
    case("renew-10000", Kind::Renew, 10_000, 0),
    case("handoff-1", Kind::HandOff, HELD_WITH_WAITERS, 1),
    case("handoff-100", Kind::HandOff, HELD_WITH_WAITERS, 100),
    case("handoff-10000", Kind::HandOff, HELD_WITH_WAITERS, 9999),
];

pub struct World {
    kind: Kind,
    governor: Governor,
    now: Millis,
    callers: u128,
    /// In the order of their grants.
    held: VecDeque<SlotId>,
}

impl World {
    pub fn new(case: &Case) -> Self {
        let mut settings = Settings::default();
        // A pair holds one more for a moment.
        let limit = if matches!(case.kind, Kind::Pair) {
            case.held + 1
        } else {
            case.held
        };
        settings.concurrency.limit = limit;
        settings.concurrency.max = limit;
        settings.queue.max_depth = 10_000;
        settings.queue.timeout = LONG;
        settings.lease.term = LONG;
        settings.lease.renew_interval = Span::from_seconds(100);
        settings.lease.request_timeout = Span::from_seconds(86_400);
        let mut world = Self {
            kind: case.kind,
            governor: Governor::load(settings, Snapshot::default()).expect("an empty source"),
            now: START,
            callers: 0,
            held: VecDeque::new(),
        };
        for _ in 0..case.held + case.waiters {
            world.acquire();
        }
        world
    }

    pub fn step(&mut self) {
        match self.kind {
            Kind::Pair => {
                self.acquire();
                self.release();
            }
            Kind::Renew => self.renew(),
            Kind::HandOff => {
                // The newcomer first, so that one more place is taken for a moment.
                self.acquire();
                self.release();
            }
        }
    }

    /// Time goes on so slowly that the longest run stays within [`LONG`].
    fn tick(&mut self) {
        if self.callers.is_multiple_of(100) {
            self.now = self.now.plus(Span::from_ms(1));
        }
        self.callers += 1;
    }

    fn acquire(&mut self) {
        self.tick();
        let acquire = Acquire {
            request: RequestId(self.callers),
            attempt: AttemptId(self.callers),
            key: KeyId(1),
            expires: None,
            carrier: Carrier::KeyHeader,
            ip: None,
            wait: LONG,
            waited: Span::ZERO,
            secret: SlotSecret(self.callers),
        };
        let step = self.governor.apply(self.now, Command::Acquire(acquire));
        match &step.reply {
            Reply::Acquire(answer) => self.granted(&answer.verdict),
            Reply::Queued => assert!(matches!(self.kind, Kind::HandOff), "queued"),
            other => panic!("not an acquire: {other:?}"),
        }
    }

    fn release(&mut self) {
        let slot = self.held.pop_front().expect("a held slot");
        let report = Report {
            status: Some(200),
            ..Report::default()
        };
        let step = self
            .governor
            .apply(self.now, Command::Release { slot, report });
        assert!(matches!(step.reply, Reply::Release(true)), "not released");
        self.handed_over(&step);
    }

    fn renew(&mut self) {
        self.tick();
        let slot = self.held.pop_front().expect("a held slot");
        let step = self.governor.apply(self.now, Command::Renew { slot });
        assert!(
            matches!(step.reply, Reply::Renew(Some(Renewed::Until(_)))),
            "not renewed"
        );
        self.held.push_back(slot);
    }

    fn handed_over(&mut self, step: &Step) {
        for effect in &step.effects {
            if let Effect::Answer { answer, .. } = effect {
                self.granted(&answer.verdict);
            }
        }
    }

    fn granted(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Granted(grant) => self.held.push_back(grant.slot),
            other => panic!("not granted: {other:?}"),
        }
    }
}
