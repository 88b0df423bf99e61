//! Repeats: the same attempt by another call, told apart from a retry inside
//! the service, which is the same call again.

use swarmvia_locks::governor::command::{Acquire, Command, Effect, Grant, Refusal, Reply, Verdict};
use swarmvia_locks::governor::ids::{AttemptId, Ref, RequestId};
use swarmvia_locks::governor::queue::MAX_CALLERS_OF_A_PLACE;
use swarmvia_locks::governor::time::Span;

use crate::support::{START, Shell, call, limit, ms, slot_of};

const JOB: u128 = 100;

/// A call of one and the same attempt.
fn of_job(request: u128, wait: Span) -> Acquire {
    Acquire {
        attempt: AttemptId(JOB),
        wait,
        ..call(request)
    }
}

fn queued(shell: &mut Shell, acquire: Acquire) {
    let reply = shell.acquire(acquire);
    assert!(matches!(reply, Reply::Queued), "{reply:?}");
}

/// Releases what is held, and says who was marked as a repeat.
fn marks(shell: &mut Shell, held: &Grant) -> Vec<(u128, bool)> {
    shell.release(held.slot);
    let granted = shell.answers.iter().filter_map(|(request, answer)| {
        let Verdict::Granted(grant) = &answer.verdict else {
            return None;
        };
        Some((request.0, grant.replayed))
    });
    granted.collect()
}

/// The `ref` of each entry of the log, the oldest first.
fn refs(shell: &Shell) -> Vec<(u128, Option<Ref>)> {
    let rows = shell.storage.rows.values();
    let mut rows: Vec<_> = rows.map(|row| &row.attempt).collect();
    rows.sort_by_key(|attempt| attempt.reference);
    let entries = rows.into_iter();
    entries
        .map(|attempt| (attempt.request.0, attempt.slot_reference()))
        .collect()
}

#[test]
fn a_repeat_stays_one_when_the_first_caller_times_out() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    queued(&mut shell, of_job(2, ms(100)));
    queued(&mut shell, of_job(3, ms(5_000)));
    queued(&mut shell, of_job(4, ms(5_000)));
    shell.pass(ms(200));
    assert_eq!(marks(&mut shell, &held), [(3, true), (4, true)]);
}

#[test]
fn a_repeat_stays_one_when_the_first_caller_leaves() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    queued(&mut shell, of_job(2, ms(5_000)));
    queued(&mut shell, of_job(3, ms(5_000)));
    shell.step(Command::Leave {
        attempt: AttemptId(JOB),
        request: RequestId(2),
    });
    assert_eq!(marks(&mut shell, &held), [(3, true)]);
    // It holds the slot: a lost answer is given again as it was.
    assert!(shell.take(of_job(3, Span::ZERO)).replayed);
}

#[test]
fn a_retry_inside_the_service_is_what_its_call_was() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    queued(&mut shell, of_job(2, ms(5_000)));
    queued(&mut shell, of_job(3, ms(5_000)));
    queued(&mut shell, of_job(3, ms(5_000)));
    queued(&mut shell, of_job(2, ms(5_000)));
    assert_eq!(marks(&mut shell, &held), [(2, false), (3, true)]);
    assert!(!shell.take(of_job(2, Span::ZERO)).replayed);
}

#[test]
fn after_a_reset_whoever_arrived_first_made_the_attempt_whoever_is_back_first() {
    for order in [[2, 3, 4], [4, 3, 2], [3, 4, 2], [4, 2, 3]] {
        let mut shell = Shell::new(limit(1));
        let held = shell.take(call(1));
        shell.reload();
        for request in order {
            let arrived = u64::try_from(request).unwrap();
            let waited = ms(1_000 - 100 * arrived);
            let acquire = of_job(request, ms(4_000));
            queued(&mut shell, Acquire { waited, ..acquire });
        }
        let mut marks = marks(&mut shell, &held);
        marks.sort_unstable();
        assert_eq!(marks, [(2, false), (3, true), (4, true)], "{order:?}");
    }
}

#[test]
fn an_attempt_that_begins_anew_after_all_have_gone_is_no_repeat() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    queued(&mut shell, of_job(2, ms(100)));
    queued(&mut shell, of_job(3, ms(100)));
    shell.pass(ms(200));
    queued(&mut shell, of_job(4, ms(5_000)));
    assert_eq!(marks(&mut shell, &held), [(4, false)]);
}

#[test]
fn the_log_names_the_slot_of_each_repeat() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    queued(&mut shell, of_job(2, ms(5_000)));
    queued(&mut shell, of_job(3, ms(5_000)));
    assert!(matches!(
        shell.refused(of_job(4, Span::ZERO)),
        Refusal::NoFreeSlot { .. }
    ));
    shell.release(held.slot);
    shell.take(of_job(5, Span::ZERO));
    shell.reload();
    shell.take(of_job(6, ms(1_000)));
    // A retry has its entry.
    shell.take(of_job(2, Span::ZERO));
    let of_slot = Some(Ref(3));
    assert_eq!(
        refs(&shell),
        [
            (1, Some(Ref(1))),
            (4, None),
            (2, of_slot),
            (3, of_slot),
            (5, of_slot),
            (6, of_slot)
        ]
    );
    // None of them is a slot or counts as a grant.
    assert_eq!(shell.governor.granted_within_a_minute(), 2);
    assert_eq!(shell.in_use(), 1);
}

#[test]
fn one_more_than_may_share_a_place_is_told_that_the_queue_is_full() {
    let mut shell = Shell::new(limit(1));
    shell.take(call(1));
    let most = u128::try_from(MAX_CALLERS_OF_A_PLACE).unwrap();
    for request in 2..2 + most {
        queued(&mut shell, of_job(request, ms(5_000)));
    }
    assert!(matches!(
        shell.refused(of_job(90, ms(5_000))),
        Refusal::QueueFull { .. }
    ));
    assert!(matches!(
        shell.refused(of_job(91, Span::ZERO)),
        Refusal::NoFreeSlot { .. }
    ));
    let effects = shell.step(Command::Tick).effects;
    let answers = |effect: &Effect| matches!(effect, Effect::Answer { .. });
    assert!(!effects.iter().any(answers), "the place stays as it is");
}

/// A holder counts its term from when it came, plus how long it waited: a wait
/// that goes on past the grant would make it hold on for too long.
#[test]
fn a_wait_ends_with_the_grant_however_late_its_answer_comes() {
    let mut shell = Shell::new(limit(1));
    shell.pass(ms(10_000));
    let held = shell.take(of_job(1, ms(5_000)));
    let mut queued_at = |now: Span, request: u128, waited: Span| {
        shell.clock = START.plus(now);
        let acquire = of_job(request, ms(4_000));
        match shell.acquire(Acquire { waited, ..acquire }) {
            Reply::Acquire(answer) => {
                assert_eq!(slot_of(&answer.verdict).unwrap().row, held.slot.row);
                answer.queued
            }
            other => panic!("{other:?}"),
        }
    };
    // The call itself, and one that joined it, both carried over; a newcomer.
    assert_eq!(queued_at(ms(10_700), 1, ms(1_700)), ms(1_000));
    assert_eq!(queued_at(ms(10_900), 2, ms(1_000)), ms(100));
    assert_eq!(queued_at(ms(11_000), 3, ms(400)), Span::ZERO);
    assert_eq!(queued_at(ms(11_000), 4, Span::ZERO), Span::ZERO);
}
