//! Every short sequence of calls against a small source, beside the model.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

mod support;

use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::command::{
    Acquire, Answer, Command, Effect, Refusal, Renewed, Reply, Verdict,
};
use swarmvia_locks::governor::ids::{AttemptId, RequestId, SlotId, SlotSecret};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::snapshot::Snapshot;
use swarmvia_locks::governor::time::Millis;
use swarmvia_locks::outcome::Report;

use support::model::{CAP, Heard, Letter, Model, Said, TERM, WAIT};
use support::{START, call, limit, ms};

const ATTEMPTS: usize = 3;

/// The real one, told and heard in the model's terms.
#[derive(Clone)]
struct Real {
    governor: Governor,
    clock: u64,
    slots: Vec<SlotId>,
}

impl Real {
    fn new(settings: Settings) -> Self {
        Self {
            governor: Governor::load(settings, Snapshot::default()).unwrap(),
            clock: 0,
            slots: Vec::new(),
        }
    }

    fn hear(&mut self, letter: Letter, number: usize) -> Heard {
        if let Letter::Tick(span) | Letter::Sleep(span) = letter {
            self.clock += span;
        }
        let command = match letter {
            Letter::Sleep(_) => return (Said::Nothing, Vec::new()),
            Letter::Tick(_) => Command::Tick,
            Letter::Acquire {
                attempt,
                wait,
                life,
            } => Command::Acquire(Acquire {
                attempt: AttemptId(attempt as u128),
                wait: ms(wait),
                expires: life.map(|life| START.plus(ms(self.clock + life))),
                secret: SlotSecret(number as u128),
                ..call(number as u128)
            }),
            Letter::Leave { attempt, call } => Command::Leave {
                attempt: AttemptId(attempt as u128),
                request: RequestId(call as u128),
            },
            Letter::Renew(slot) => Command::Renew {
                slot: self.slots[slot],
            },
            Letter::Release(slot) => Command::Release {
                slot: self.slots[slot],
                report: Report::default(),
            },
            Letter::Limit(slots) => {
                let mut settings = self.governor.settings().clone();
                settings.concurrency.limit = slots as u32;
                Command::Configure(Box::new(settings))
            }
        };
        self.tell(command)
    }

    fn tell(&mut self, command: Command) -> Heard {
        let step = self.governor.apply(START.plus(ms(self.clock)), command);
        self.governor.audit().unwrap();
        // In order of the grants: those to waiters come before an acquire's own.
        let mut answers = Vec::new();
        for effect in &step.effects {
            if let Effect::Answer { request, answer } = effect {
                answers.push((request.0 as usize, self.said(answer)));
            }
        }
        let said = match step.reply {
            Reply::Done => Said::Nothing,
            Reply::Queued => Said::Queued,
            Reply::Acquire(answer) => self.said(&answer),
            Reply::Renew(None) => Said::Gone,
            Reply::Renew(Some(Renewed::Capped)) => Said::Capped,
            Reply::Renew(Some(Renewed::Until(until))) => Said::Until(since_start(until)),
            Reply::Release(released) => Said::Released(released),
        };
        (said, answers)
    }

    fn said(&mut self, answer: &Answer) -> Said {
        let grant = match &answer.verdict {
            Verdict::Granted(grant) => grant,
            Verdict::Refused(Refusal::QueueFull { .. }) => return Said::QueueFull,
            Verdict::Refused(Refusal::NoFreeSlot { .. }) => return Said::NoFreeSlot,
            Verdict::TimedOut(Refusal::NoFreeSlot { .. }) => return Said::TimedOut,
            Verdict::Dismissed(_) => return Said::KeyEnded,
            other => panic!("{other:?}"),
        };
        let until = since_start(grant.lease_deadline);
        let same = |id: &SlotId| id.row == grant.slot.row && id.secret.matches(grant.slot.secret);
        let slot = self.slots.iter().position(same).unwrap_or_else(|| {
            self.slots.push(grant.slot);
            self.slots.len() - 1
        });
        if grant.replayed {
            return Said::Replayed { slot, until };
        }
        Said::Granted { slot, until }
    }
}

fn since_start(at: Millis) -> u64 {
    at.since(START).ms()
}

/// What may come next. Attempts are alike, so a new one is the lowest unused.
fn alphabet(model: &Model, used: usize, lives: &[u64]) -> Vec<Letter> {
    let mut letters = vec![
        Letter::Tick(500),
        Letter::Sleep(700),
        Letter::Limit(3 - model.limit),
    ];
    for attempt in 0..ATTEMPTS.min(used + 1) {
        let acquire = |wait, life| Letter::Acquire {
            attempt,
            wait,
            life,
        };
        letters.extend([acquire(0, None), acquire(WAIT, None)]);
        letters.extend(lives.iter().map(|life| acquire(WAIT, Some(*life))));
    }
    for waiter in &model.waiters {
        let attempt = waiter.attempt;
        let calls = waiter.calls.iter();
        letters.extend(calls.map(|call| Letter::Leave {
            attempt,
            call: call.number,
        }));
    }
    // Every held slot, and the newest of those that are not.
    let held = |slot: &usize| model.holders.iter().any(|holder| holder.slot == *slot);
    let gone = (0..model.grants).rev().find(|slot| !held(slot));
    for slot in (0..model.grants).filter(held).chain(gone) {
        letters.extend([Letter::Renew(slot), Letter::Release(slot)]);
    }
    letters
}

struct Walk {
    path: Vec<Letter>,
    steps: u64,
    /// For how long keys live on, other than for ever.
    lives: &'static [u64],
}

impl Walk {
    /// Takes every sequence of at most `left` further letters.
    fn go(&mut self, model: &Model, real: &Real, used: usize, left: usize) {
        if left == 0 {
            return;
        }
        for letter in alphabet(model, used, self.lives) {
            let (mut model, mut real) = (model.clone(), real.clone());
            self.path.push(letter);
            self.steps += 1;
            let call = self.path.len();
            let heard = real.hear(letter, call);
            assert_eq!(heard, model.hear(letter, call), "after {:?}", self.path);
            if !matches!(letter, Letter::Sleep(_)) {
                self.compare(&model, &real);
            }
            let used = match letter {
                Letter::Acquire { attempt, .. } => used.max(attempt + 1),
                _ => used,
            };
            self.go(&model, &real, used, left - 1);
            self.path.pop();
        }
    }

    fn compare(&self, model: &Model, real: &Real) {
        let gauge = real.governor.gauge();
        let seen = [gauge.limit, gauge.in_use, gauge.depth].map(|count| count as usize);
        let counted = [model.limit, model.holders.len(), model.waiters.len()];
        assert_eq!(seen, counted, "limit, in use, depth after {:?}", self.path);
        let next = real.governor.deadline().map(since_start);
        assert_eq!(next, model.next(), "deadline after {:?}", self.path);
    }
}

/// Walks all sequences; the number of steps says that there was a walk.
fn walk(slots: usize, depth: usize, length: usize) -> u64 {
    walk_with(&[], slots, depth, length)
}

fn walk_with(lives: &'static [u64], slots: usize, depth: usize, length: usize) -> u64 {
    let mut settings = limit(slots as u32);
    settings.concurrency.max = 2;
    settings.queue.max_depth = depth as u32;
    settings.lease.term = ms(TERM);
    settings.lease.request_timeout = ms(CAP);
    let mut walk = Walk {
        path: Vec::new(),
        steps: 0,
        lives,
    };
    walk.go(&Model::new(slots, depth), &Real::new(settings), 0, length);
    walk.steps
}

#[test]
fn one_slot_and_no_queue() {
    assert!(dbg!(walk(1, 0, 6)) > 100_000);
}

#[test]
fn one_slot_and_a_queue_of_one() {
    assert!(dbg!(walk(1, 1, 6)) > 100_000);
}

#[test]
fn one_slot_and_a_queue_of_two() {
    assert!(dbg!(walk(1, 2, 6)) > 100_000);
}

#[test]
fn two_slots_and_a_queue_of_one() {
    assert!(dbg!(walk(2, 1, 6)) > 100_000);
}

#[test]
fn two_slots_and_a_queue_of_two() {
    assert!(dbg!(walk(2, 2, 6)) > 100_000);
}

/// One that ends while it waits, and with a tick; and one that ends with its wait.
const LIVES: &[u64] = &[500, WAIT];

#[test]
fn keys_that_end_beside_a_queue_of_one() {
    assert!(dbg!(walk_with(LIVES, 1, 1, 5)) > 50_000);
}

#[test]
fn keys_that_end_beside_a_queue_of_two() {
    assert!(dbg!(walk_with(LIVES, 1, 2, 5)) > 50_000);
}

/// With a key that has ended nobody is let in, whatever is free.
#[test]
fn keys_that_have_ended_take_nothing() {
    assert!(dbg!(walk_with(&[0], 2, 1, 5)) > 50_000);
}
