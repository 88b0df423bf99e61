//! Restarts, deploys, and clocks.

use swarmvia_locks::governor::command::{Acquire, Command, Refusal, Renewed, Reply};
use swarmvia_locks::governor::ids::{AttemptId, KeyId};
use swarmvia_locks::governor::time::{MAX_SAFE, Span};

use crate::support::{START, Shell, call, limit, ms, throttled_for};

/// After a restart the holders are forgotten, and the limit is exceeded for one
/// term (argo 15609, Prefect 20090).
#[test]
fn holders_survive_a_restart_with_their_deadlines() {
    let mut shell = Shell::new(limit(3));
    let grants: Vec<_> = (0..3).map(|name| shell.take(call(name))).collect();
    shell.pass(ms(5_000));
    shell.renew(grants[1].slot);
    shell.release(grants[2].slot);
    shell.reload();
    assert_eq!(shell.in_use(), 2);
    shell.take(call(5));
    shell.refused(call(6));
    assert_eq!(
        shell.renew(grants[2].slot),
        None,
        "a released one stays released"
    );
    let ends: Vec<_> = shell
        .governor
        .slots()
        .iter()
        .map(|s| s.lease_deadline)
        .collect();
    let now = shell.clock;
    assert_eq!(
        ends,
        [
            START.plus(ms(30_000)),
            now.plus(ms(30_000)),
            now.plus(ms(30_000))
        ]
    );
    assert!(matches!(
        shell.renew(grants[0].slot),
        Some(Renewed::Until(_))
    ));
}

/// What is abandoned comes free at its deadline after a restart, too.
#[test]
fn a_slot_abandoned_before_a_restart_comes_free_at_its_deadline() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.reload();
    assert_eq!(shell.governor.deadline(), Some(held.lease_deadline));
    shell.queue(2, ms(30_000));
    shell.pass(ms(30_000));
    assert_eq!(shell.served(), [2]);
}

/// An answer lost in a restart is given again.
#[test]
fn a_repeat_after_a_restart_gets_the_slot_that_was_granted() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.queue(2, ms(20_000));
    shell.release(held.slot);
    let granted = shell.grant_of(2).unwrap();
    shell.reload();
    let again = shell.take(Acquire {
        wait: ms(20_000),
        ..call(2)
    });
    assert_eq!(again.slot.to_string(), granted.slot.to_string());
}

/// A closed gate is forgotten in a restart.
#[test]
fn a_cool_down_survives_a_restart() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.report(held.slot, throttled_for(ms(8_000)));
    shell.reload();
    let opens_at = START.plus(ms(8_000));
    assert_eq!(shell.refused(call(2)), Refusal::Cooldown { opens_at });
}

/// Storage that grew in a busy minute and shrank in a quiet one grows again, and
/// not one mark of the window is lost in it.
#[test]
fn a_source_busy_again_after_a_quiet_time_counts_every_grant() {
    let mut settings = limit(1);
    settings.log.keep = 100;
    settings.rpm.limit = Some(1_000_000);
    let mut shell = Shell::new(settings);
    for minute in 0..3 {
        for name in 0..1_000 {
            let slot = shell.take(call(minute * 1_000 + name)).slot;
            shell.release(slot);
        }
        shell.reload();
        assert_eq!(shell.governor.granted_within_a_minute(), 1_000);
        shell.pass(ms(90_000));
        for _ in 0..20 {
            shell.step(Command::Tick);
        }
    }
}

/// A deploy kills queued calls (cloudflare-docs 32222): here they are carried
/// over, in whatever order they come back.
#[test]
fn callers_carried_over_queue_again_by_their_first_arrival() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    for name in 2..6 {
        shell.queue(name, ms(20_000));
        shell.pass(ms(1_000));
    }
    shell.reload();
    shell.queue(9, ms(20_000));
    for name in [4, 2, 5, 3] {
        let waited = shell.clock.since(START.plus(ms(1_000 * (name - 2))));
        let reply = shell.acquire(Acquire {
            wait: Span::from_ms(20_000 - waited.ms()),
            waited,
            ..call(u128::from(name))
        });
        assert!(matches!(reply, Reply::Queued));
    }
    let mut slot = held.slot;
    for name in [2, 3, 4, 5, 9] {
        assert!(shell.release(slot));
        slot = shell.grant_of(name).unwrap().slot;
    }
    assert_eq!(shell.served(), [2, 3, 4, 5, 9]);
}

/// Whoever had a place keeps it, also where newcomers have filled the queue.
#[test]
fn a_caller_carried_over_is_not_refused_by_a_full_queue() {
    let mut settings = limit(1);
    settings.queue.max_depth = 1;
    let mut shell = Shell::new(settings);
    shell.take(call(1));
    shell.queue(2, ms(20_000));
    let newcomer = Acquire {
        wait: ms(5_000),
        ..call(3)
    };
    assert!(matches!(
        shell.refused(newcomer.clone()),
        Refusal::QueueFull { .. }
    ));
    let carried = Acquire {
        waited: ms(1),
        ..newcomer
    };
    assert!(matches!(shell.acquire(carried), Reply::Queued));
}

/// Clocks of clients decide expiry (redis-semaphore 13).
#[test]
fn nothing_that_a_request_says_moves_a_deadline() {
    let mut shell = Shell::new(limit(2));
    let endless = Span::from_ms(MAX_SAFE);
    for (name, wait, waited) in [(1, endless, Span::ZERO), (2, Span::ZERO, endless)] {
        let grant = shell.take(Acquire {
            wait,
            waited,
            ..call(name)
        });
        assert_eq!(grant.lease_deadline, START.plus(ms(30_000)));
        assert_eq!(grant.request_deadline, START.plus(ms(60_000)));
    }
    shell.queue(3, endless);
    shell.pass(ms(29_999));
    assert_eq!(shell.answers.len(), 0);
    shell.pass(ms(1));
    assert_eq!(
        shell.served(),
        [3],
        "it waited as long as the settings allow"
    );
}

/// The clock of the object steps back: no lease gets longer by it, and nothing
/// is granted in the past.
#[test]
fn a_clock_that_steps_back_stands_still() {
    let mut shell = Shell::new(limit(1));
    shell.take(call(1));
    shell.pass(ms(20_000));
    shell.step(Command::Tick);
    shell.clock = START;
    shell.refused(call(2));
    let held = shell.governor.slots()[0].clone();
    let until = START.plus(ms(50_000));
    assert_eq!(shell.renew(held.id()), Some(Renewed::Until(until)));
}

/// An alarm that fires late, twice or never.
#[test]
fn a_missed_alarm_costs_nothing_that_the_next_call_does_not_make_good() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.clock = held.lease_deadline.plus(ms(3_600_000));
    shell.take(call(2));
    assert_eq!(shell.in_use(), 1);
    assert!(shell.step(Command::Tick).effects.is_empty());
    assert!(shell.step(Command::Tick).effects.is_empty());
}

/// A revoked family's waiters go; the slots it holds stay until their leases
/// end, and the others keep their order.
#[test]
fn a_revoked_familys_waiters_are_turned_away_and_its_slots_stay() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    for (name, key) in [(2, 1), (3, 7), (4, 1), (5, 7)] {
        shell.acquire(Acquire {
            key: KeyId(key),
            wait: ms(20_000),
            attempt: AttemptId(name),
            ..call(name)
        });
    }
    shell.step(Command::Dismiss { key: KeyId(1) });
    let turned_away: Vec<u128> = shell.answers.iter().map(|(name, _)| name.0).collect();
    assert_eq!(turned_away, [2, 4]);
    assert_eq!(shell.in_use(), 1);
    assert!(shell.release(held.slot));
    assert_eq!(shell.served(), [3]);
}
