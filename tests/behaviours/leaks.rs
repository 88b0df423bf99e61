//! Slots that leak.

use swarmvia_locks::governor::command::{Acquire, Command, Effect, Renewed, Verdict};
use swarmvia_locks::governor::ids::{AttemptId, Ref, RequestId};
use swarmvia_locks::governor::time::{Millis, Span};
use swarmvia_locks::outcome::Report;

use crate::support::{Shell, call, limit, ms};

fn leave(name: u128) -> Command {
    Command::Leave {
        attempt: AttemptId(name),
        request: RequestId(name),
    }
}

/// A client aborts while it waits (litellm 27955, workers-sdk 9438).
#[test]
fn who_leaves_while_waiting_is_skipped_and_holds_nothing() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.queue(2, ms(5_000));
    shell.queue(3, ms(5_000));
    shell.step(leave(2));
    assert_eq!(shell.governor.gauge().depth, 1);
    assert!(shell.release(held.slot));
    assert_eq!(shell.served(), [3]);
    assert_eq!((shell.in_use(), shell.governor.gauge().depth), (1, 0));
}

/// Leaving after the grant takes nothing from the one who was granted.
#[test]
fn a_late_departure_does_not_touch_the_slot() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.step(leave(1));
    assert!(matches!(shell.renew(held.slot), Some(Renewed::Until(_))));
}

/// A refused call extends or takes something (litellm 20256, 39309).
#[test]
fn a_refused_call_takes_no_slot_no_place_and_no_rpm() {
    let mut settings = limit(1);
    settings.rpm.limit = Some(5);
    settings.queue.max_depth = 1;
    let mut shell = Shell::new(settings);
    let held = shell.take(call(1));
    shell.queue(2, ms(20_000));
    let before = shell.governor.gauge();
    for name in 10..60 {
        let wait = ms(if name % 2 == 0 { 0 } else { 5_000 });
        shell.refused(Acquire { wait, ..call(name) });
    }
    assert_eq!(shell.governor.gauge(), before);
    assert_eq!(
        shell.governor.slots()[0].lease_deadline,
        held.lease_deadline
    );
    assert!(shell.release(held.slot));
    assert_eq!(shell.served(), [2]);
}

/// A malformed request after admission leaks its slot (litellm 1477).
#[test]
fn a_malformed_report_is_no_release_and_the_slot_stays_its_holders() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    // What can't be parsed can't be put into a command.
    assert!(Report::parse(br#"{"status":"ok"}"#, Millis::EPOCH).is_err());
    assert!(matches!(shell.renew(held.slot), Some(Renewed::Until(_))));
    assert!(shell.report(
        held.slot,
        Report::parse(br#"{"status":200}"#, Millis::EPOCH).unwrap()
    ));
    assert_eq!(shell.in_use(), 0);
}

/// The answer was lost, and the retry is refused by the lease that its first
/// try had made (stardag 342, titen 71).
#[test]
fn a_retry_gets_the_slot_that_its_first_try_took() {
    let mut shell = Shell::new(limit(1));
    let first = shell.take(call(1));
    let again = shell.take(call(1));
    assert_eq!(again.slot.to_string(), first.slot.to_string());
    assert!(!again.replayed, "the caller has not seen it before");
    let repeat = shell.take(Acquire {
        request: RequestId(2),
        ..call(1)
    });
    assert_eq!(repeat.slot.to_string(), first.slot.to_string());
    assert!(repeat.replayed);
    assert_eq!(shell.in_use(), 1);
}

/// The same while it waits: the retry keeps the place and takes no second one.
#[test]
fn a_retry_of_a_waiting_call_keeps_its_one_place() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.queue(2, ms(5_000));
    shell.queue(3, ms(5_000));
    shell.queue(2, ms(5_000));
    assert_eq!(shell.governor.gauge().depth, 2);
    shell.release(held.slot);
    assert_eq!(shell.served(), [2]);
    assert_eq!(shell.governor.gauge().depth, 1);
}

/// An interrupted acquire leaves an orphan that drains the pool (curator 835,
/// 982), or a killed holder's slot waits for an operator (kestra 14356,
/// dagster 28456, redisson 2045).
#[test]
fn a_vanished_holders_slot_is_free_one_term_after_its_last_renewal() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.pass(ms(20_000));
    shell.renew(held.slot);
    shell.pass(ms(29_999));
    assert_eq!(shell.in_use(), 1);
    shell.pass(ms(1));
    assert_eq!(shell.in_use(), 0, "without any other traffic");
}

/// Grant and record are two steps, and a crash between them loses one
/// (hatchet 4494).
#[test]
fn a_grant_and_its_row_are_one_step() {
    let mut shell = Shell::new(limit(1));
    let step = shell.step(Command::Acquire(call(1)));
    assert!(matches!(&step.effects[..], [Effect::Record(row)] if row.slot.is_some()));
    let slot = shell.governor.slots()[0].id();
    shell.queue(2, ms(5_000));
    let report = Report::default();
    let step = shell.step(Command::Release { slot, report });
    let [
        Effect::End { row },
        Effect::Record(attempt),
        Effect::Answer { request, answer },
    ] = &step.effects[..]
    else {
        panic!("{:?}", step.effects);
    };
    assert_eq!(*row, slot.row);
    assert_eq!((attempt.request, *request), (RequestId(2), RequestId(2)));
    assert!(attempt.slot.is_some() && matches!(answer.verdict, Verdict::Granted(_)));
}

/// The in-use counter and the leases drift apart (Prefect 21794).
#[test]
fn slots_in_use_are_the_leases_that_stand() {
    let mut shell = Shell::new(limit(8));
    let grants: Vec<_> = (0..8).map(|name| shell.take(call(name))).collect();
    shell.release(grants[0].slot);
    shell.release(grants[0].slot);
    shell.step(Command::Force { reference: Ref(2) });
    shell.release(grants[1].slot);
    shell.pass(ms(10_000));
    shell.renew(grants[2].slot);
    shell.pass(ms(20_000));
    assert_eq!(shell.in_use(), 1);
    assert_eq!(shell.governor.slots().len(), 1);
    shell.reload();
    assert_eq!(shell.in_use(), 1);
}

/// A waiter is granted, never reads its answer, never renews (dagster 17690).
#[test]
fn a_grant_that_nobody_reads_is_back_after_one_term() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.queue(2, ms(30_000));
    shell.pass(ms(10_000));
    shell.release(held.slot);
    shell.queue(3, ms(30_000));
    shell.pass(ms(29_999));
    assert_eq!(shell.served(), [2]);
    shell.pass(ms(1));
    assert_eq!(shell.served(), [2, 3]);
}

/// Slots are freed on some exits and skipped on others (trigger.dev 2907).
#[test]
fn every_way_out_frees_the_slot_and_serves_the_next_in_the_same_step() {
    let exits: [fn(&mut Shell); 3] = [
        |shell| {
            let slot = shell.governor.slots()[0].id();
            assert!(shell.release(slot));
        },
        |shell| {
            shell.step(Command::Force { reference: Ref(1) });
        },
        |shell| {
            shell.clock = shell.governor.deadline().unwrap();
            shell.step(Command::Tick);
        },
    ];
    for exit in exits {
        let mut settings = limit(1);
        settings.queue.timeout = ms(60_000);
        let mut shell = Shell::new(settings);
        shell.take(call(1));
        shell.queue(2, ms(40_000));
        exit(&mut shell);
        assert_eq!(shell.served(), [2]);
        assert_eq!(shell.in_use(), 1);
    }
}

/// A leaked lease is renewed for ever by a background refresher (atlasdb 4181).
#[test]
fn the_request_deadline_ends_a_slot_however_often_it_is_renewed() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    let mut renewals = 0;
    while shell.in_use() == 1 {
        shell.pass(ms(10_000));
        if let Some(Renewed::Until(until)) = shell.renew(held.slot) {
            assert!(until <= held.request_deadline);
            renewals += 1;
        }
    }
    assert_eq!(shell.clock, held.request_deadline);
    assert_eq!(renewals, 3, "at 10, 20 and 30 s; then it is capped");
}

/// What makes room in storage takes the row of a slot that is held for long.
#[test]
fn a_slot_held_for_hours_outlives_every_other_row() {
    let mut settings = limit(3);
    settings.log.keep = 100;
    settings.lease.term = ms(600_000);
    settings.lease.request_timeout = Span::from_seconds(86_400);
    let mut shell = Shell::new(settings);
    let held = shell.take(call(1)).slot;
    for name in 2..3_000 {
        // Many of them in one minute, so that storage grows, and then shrinks.
        if name % 500 == 0 {
            shell.pass(ms(90_000));
            shell.renew(held);
        }
        let passing = shell.take(call(name)).slot;
        shell.release(passing);
        shell.step(Command::Tick);
    }
    shell.reload();
    assert_eq!(shell.in_use(), 1);
    assert!(matches!(shell.renew(held), Some(Renewed::Until(_))));
}

/// Expired state is never deleted (redisson 4100, bottleneck 115).
#[test]
fn what_has_expired_is_overwritten_or_deleted() {
    let mut settings = limit(50);
    settings.log.keep = 100;
    let mut shell = Shell::new(settings);
    for name in 0..2_000 {
        shell.acquire(call(name));
        shell.pass(ms(700));
        assert!(
            shell.storage.rows.len() <= 320,
            "{}",
            shell.storage.rows.len()
        );
    }
    shell.pass(Span::from_seconds(120));
    shell.step(Command::Tick);
    let kept = shell.storage.snapshot(shell.clock);
    assert!(kept.held.is_empty() && kept.window.is_empty());
    assert_eq!(shell.governor.deadline(), None);
}
