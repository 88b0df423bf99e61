//! What would be: checks on copies of a governor, which leave it as it is.

use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::command::{
    Acquire, Answer, Command, Effect, Grant, Refusal, Reply, Verdict,
};
use swarmvia_locks::governor::ids::RequestId;
use swarmvia_locks::governor::time::{Millis, Span};

use super::observer::held_slots;
use super::storage::Storage;
use super::{call, ms};

/// Whatever the moment, a governor loaded from storage is the present one
/// without its waiters, down to the row that it writes next.
pub fn reload_would_agree(present: &Governor, storage: &Storage, now: Millis) {
    let snapshot = storage.snapshot(now);
    let mut loaded = Governor::load(present.settings().clone(), snapshot).unwrap();
    // One step each, since a step lets go of one block of rows.
    loaded.apply(now, Command::Tick);
    let mut present = present.clone();
    present.apply(now, Command::Tick);
    let mut held = held_slots(&present);
    // Whether a slot went to a repeat is all that rows don't say.
    for slot in &mut held {
        slot.repeats = false;
    }
    assert_eq!(held_slots(&loaded), held);
    assert_eq!(loaded.cooldown(), present.cooldown());
    assert_eq!(loaded.rpm_opens_at(), present.rpm_opens_at());
    assert_eq!(loaded.gauge().rpm, present.gauge().rpm);
    if !present.has_waiters() {
        assert_eq!(loaded.deadline(), present.deadline());
        assert_eq!(next_row(loaded, now), next_row(present, now));
    }
}

/// An alarm that fires twice, or before anything is due, changes nothing.
pub fn early_ticks_change_nothing(present: &Governor, now: Millis) {
    let early = present.deadline().map(|at| at.minus(ms(1)));
    for at in [Some(now), early].into_iter().flatten() {
        let mut ticked = present.clone();
        let effects = ticked.apply(at, Command::Tick).effects;
        let trims = |effect: &Effect| matches!(effect, Effect::Discard { .. });
        assert!(effects.iter().all(trims), "{effects:?}");
        assert_eq!(held_slots(&ticked), held_slots(present));
        assert_eq!(ticked.gauge().depth, present.gauge().depth);
    }
}

/// But for its log entry, a refused call was never there: not now, and not in
/// anything that time brings later.
pub fn refused_left_no_trace(mut before: Governor, after: &Governor, clock: Millis) {
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
pub fn refusal_is_honest(after: &Governor, acquire: &Acquire, refusal: Refusal) {
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

fn next_row(mut governor: Governor, now: Millis) -> Option<u32> {
    let step = governor.apply(now, Command::Acquire(call(1)));
    step.effects.iter().find_map(|effect| match effect {
        Effect::Record(attempt) => Some(attempt.row),
        _ => None,
    })
}

pub fn grant(answer: &Answer) -> Option<&Grant> {
    match &answer.verdict {
        Verdict::Granted(grant) => Some(grant),
        _ => None,
    }
}
