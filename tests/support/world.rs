//! A world of callers, operators, restarts and clocks around one governor,
//! with the observer looking on.

use proptest::prelude::*;
use proptest::sample::Index;

use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::command::{
    Acquire, Answer, Command, Effect, Grant, Refusal, Reply, Verdict,
};
use swarmvia_locks::governor::ids::{AttemptId, KeyId, Ref, RequestId, SlotId, SlotSecret};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::{Millis, Span};
use swarmvia_locks::outcome::Report;

use super::observer::{Observer, Waiter, held_slots};
use super::{START, Shell, THIRTY_YEARS, call, limit, ms};

/// Names of attempts; the first half belongs to one key, the rest to another.
const ATTEMPTS: u128 = 8;

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Move {
    Acquire {
        attempt: u128,
        wait: Span,
        /// The Worker sends the last request of this attempt again.
        retry: bool,
    },
    /// Many fail-fast calls in one moment.
    Burst(u16),
    Leave(Index),
    Renew(Index),
    RenewForged(Index),
    Release(Index, Report),
    ReleaseForged(Index),
    Tick,
    Configure(Settings),
    Force(Index),
    Dismiss(KeyId),
    Close,
    /// Time passes, and the timer fires at each deadline.
    Pass(Span),
    /// Time passes, and no timer fires.
    Sleep(Span),
    /// The clock is set back.
    StepBack(Span),
    /// The object is reset; who stays is carried over, from one of them on.
    Reload {
        first: Index,
        stay: Vec<bool>,
    },
}

pub fn settings() -> impl Strategy<Value = Settings> {
    let term = prop::sample::select(vec![500, 3_000, 30_000]);
    let timeout = prop::sample::select(vec![0, 1_000, 5_000, 40_000]);
    let rpm = prop_oneof![2 => Just(None), 3 => (1..8_u32).prop_map(Some)];
    let parts = (1..5_u32, rpm, 0..5_u32, timeout, term, 1..4_u64, 1..3_u32);
    parts.prop_map(|(slots, rpm, depth, timeout, term, terms, keep)| {
        let mut settings = limit(slots);
        settings.rpm.limit = rpm;
        settings.queue.max_depth = depth;
        settings.queue.timeout = ms(timeout);
        settings.lease.term = ms(term);
        settings.lease.renew_interval = ms(term / 3);
        // Once the term itself, so that a lease is capped from the start.
        settings.lease.request_timeout = ms(term * terms - (terms - 1) * 100);
        settings.log.keep = keep * 100;
        settings
    })
}

fn span() -> impl Strategy<Value = Span> {
    let near = prop::sample::select(vec![0, 1, 499, 500, 501, 1_000, 3_000]);
    let ms = prop_oneof![4 => near, 4 => 0..2_500_u64, 1 => 20_000..70_000_u64];
    ms.prop_map(Span::from_ms)
}

fn report() -> impl Strategy<Value = Report> {
    let status = prop::sample::select(vec![None, Some(200), Some(429), Some(503)]);
    let throttled = prop::sample::select(vec![None, Some(0), Some(2)]);
    let hint = prop::sample::select(vec![None, Some(0), Some(700), Some(5_000), Some(90_000)]);
    let hint = prop_oneof![
        9 => hint.prop_map(|hint| hint.map(Span::from_ms)),
        1 => Just(Some(THIRTY_YEARS)),
    ];
    let report = (status, throttled, hint).prop_map(|(status, throttled, retry_after)| Report {
        status,
        throttled,
        retry_after,
    });
    prop_oneof![3 => Just(Report::default()), 1 => report]
}

pub fn moves() -> impl Strategy<Value = Move> {
    let wait = prop_oneof![2 => Just(Span::ZERO), 3 => span(), 2 => Just(ms(30_000))];
    let acquire = (0..ATTEMPTS, wait, prop::bool::weighted(0.2));
    let acquire = acquire.prop_map(|(attempt, wait, retry)| Move::Acquire {
        attempt,
        wait,
        retry,
    });
    let index = any::<Index>;
    let reload = (index(), prop::collection::vec(prop::bool::weighted(0.8), 8));
    prop_oneof![
        40 => acquire,
        2 => (1..90_u16).prop_map(Move::Burst),
        4 => index().prop_map(Move::Leave),
        10 => index().prop_map(Move::Renew),
        2 => index().prop_map(Move::RenewForged),
        16 => (index(), report()).prop_map(|(slot, report)| Move::Release(slot, report)),
        2 => index().prop_map(Move::ReleaseForged),
        3 => Just(Move::Tick),
        4 => settings().prop_map(Move::Configure),
        2 => index().prop_map(Move::Force),
        1 => (1..4_u64).prop_map(|key| Move::Dismiss(KeyId(key))),
        1 => Just(Move::Close),
        14 => span().prop_map(Move::Pass),
        6 => span().prop_map(Move::Sleep),
        1 => span().prop_map(Move::StepBack),
        4 => reload.prop_map(|(first, stay)| Move::Reload { first, stay }),
    ]
}

pub struct World {
    pub shell: Shell,
    pub observer: Observer,
    /// Every slot id that was ever given out, newest last.
    ids: Vec<SlotId>,
    /// The last request of each attempt.
    requests: Vec<RequestId>,
    names: u128,
}

impl World {
    pub fn new(settings: Settings) -> Self {
        Self {
            observer: Observer::new(&settings),
            shell: Shell::new(settings),
            ids: Vec::new(),
            requests: (0..ATTEMPTS).map(RequestId).collect(),
            names: 1_000,
        }
    }

    pub fn play(&mut self, next: Move) {
        match next {
            Move::Acquire {
                attempt,
                wait,
                retry,
            } => self.acquire(attempt, wait, retry),
            Move::Burst(calls) => {
                for _ in 0..calls {
                    let name = self.name();
                    self.turn(Command::Acquire(call(name)));
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
            Move::Tick => self.turn(Command::Tick),
            Move::Configure(settings) => self.turn(Command::Configure(Box::new(settings))),
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

    /// One turn, watched; and after it, storage tells the whole story.
    pub fn turn(&mut self, command: Command) {
        let command = self.shell.with_secret(command);
        let clock = self.shell.clock;
        let before = self.shell.governor.clone();
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
            if let Verdict::Refused(refusal) = answer.verdict {
                refused_left_no_trace(before, &self.shell.governor, clock);
                refusal_is_honest(&self.shell.governor, acquire, refusal);
            }
        }
        self.reload_would_agree();
    }

    fn name(&mut self) -> u128 {
        self.names += 1;
        self.names
    }

    fn acquire(&mut self, attempt: u128, wait: Span, retry: bool) {
        let last = attempt as usize;
        if !retry {
            self.requests[last] = RequestId(self.name());
        }
        self.turn(Command::Acquire(Acquire {
            request: self.requests[last],
            attempt: AttemptId(attempt),
            key: KeyId(if attempt < ATTEMPTS / 2 { 1 } else { 2 }),
            wait,
            ..call(0)
        }));
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
                wait: waiter.deadline.since(seen),
                waited: seen.since(waiter.arrived),
                ..call(0)
            }));
        }
    }

    /// Whatever the moment, a governor loaded from storage is the present one
    /// without its waiters, down to the row that it writes next.
    fn reload_would_agree(&self) {
        let now = self.observer.now;
        let present = &self.shell.governor;
        let snapshot = self.shell.storage.snapshot(now);
        let mut loaded = Governor::load(present.settings().clone(), snapshot).unwrap();
        loaded.apply(now, Command::Tick);
        assert_eq!(held_slots(&loaded), held_slots(present));
        assert_eq!(loaded.cooldown(), present.cooldown());
        assert_eq!(loaded.rpm_opens_at(), present.rpm_opens_at());
        assert_eq!(loaded.gauge().rpm, present.gauge().rpm);
        if !present.has_waiters() {
            assert_eq!(loaded.deadline(), present.deadline());
            assert_eq!(next_row(loaded, now), next_row(present.clone(), now));
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

fn grant(answer: &Answer) -> Option<&Grant> {
    match &answer.verdict {
        Verdict::Granted(grant) => Some(grant),
        _ => None,
    }
}

fn next_row(mut governor: Governor, now: Millis) -> Option<u32> {
    let step = governor.apply(now, Command::Acquire(call(1)));
    step.effects.iter().find_map(|effect| match effect {
        Effect::Record(attempt) => Some(attempt.row),
        _ => None,
    })
}

/// But for its log entry, a refused call was never there: not now, and not in
/// anything that time brings later.
fn refused_left_no_trace(mut before: Governor, after: &Governor, clock: Millis) {
    before.apply(clock, Command::Tick);
    assert_eq!(before.gauge(), after.gauge());
    assert_eq!(held_slots(&before), held_slots(after));
    let mut after = after.clone();
    for _ in 0..8 {
        assert_eq!(before.deadline(), after.deadline());
        let Some(at) = before.deadline() else { return };
        assert_eq!(answers_at(&mut before, at), answers_at(&mut after, at));
        assert_eq!(before.gauge(), after.gauge());
        assert_eq!(before.rpm_opens_at(), after.rpm_opens_at());
    }
}

fn answers_at(governor: &mut Governor, at: Millis) -> Vec<(RequestId, Option<Millis>)> {
    let effects = governor.apply(at, Command::Tick).effects;
    let answers = effects.into_iter().filter_map(|effect| match effect {
        Effect::Answer { request, answer } => {
            Some((request, grant(&answer).map(|grant| grant.lease_deadline)))
        }
        _ => None,
    });
    answers.collect()
}

/// Refused until the moment that the refusal names, accepted at it.
fn refusal_is_honest(after: &Governor, acquire: &Acquire, refusal: Refusal) {
    let (Refusal::Cooldown { opens_at } | Refusal::Rpm { opens_at }) = refusal else {
        return;
    };
    let alone = !after.has_waiters();
    let newcomer = Acquire {
        wait: Span::ZERO,
        waited: Span::ZERO,
        secret: acquire.secret,
        ..call(u128::MAX)
    };
    let granted_at = |at: Millis| {
        let mut governor = after.clone();
        governor.apply(at, Command::Tick);
        let free = governor.gauge().remaining() > 0;
        let reply = governor.apply(at, Command::Acquire(newcomer.clone())).reply;
        (
            free,
            matches!(reply, Reply::Acquire(answer) if grant(&answer).is_some()),
        )
    };
    assert!(
        !granted_at(opens_at.minus(ms(1))).1,
        "granted before {opens_at:?}"
    );
    let (free, granted) = granted_at(opens_at);
    assert!(granted || !free || !alone, "refused at {opens_at:?}");
}
