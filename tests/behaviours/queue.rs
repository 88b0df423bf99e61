//! The queue.

use swarmvia_locks::governor::Step;
use swarmvia_locks::governor::command::{Acquire, Command, Effect, Refusal, Reply, Verdict};
use swarmvia_locks::governor::ids::SlotId;

use crate::support::{START, Shell, THIRTY_YEARS, call, limit, ms, throttled_for};

/// A wake-up is lost between the check and the wait (e2b 3629,
/// `solid_queue` 689).
#[test]
fn a_release_and_an_acquire_in_one_moment_leave_no_slot_idle() {
    for release_first in [true, false] {
        let mut shell = Shell::new(limit(1));
        let held = shell.take(call(1)).slot;
        let waiter = Acquire {
            wait: ms(5_000),
            ..call(2)
        };
        if release_first {
            shell.release(held);
            shell.take(waiter);
        } else {
            assert!(matches!(shell.acquire(waiter), Reply::Queued));
            shell.release(held);
            assert_eq!(shell.served(), [2]);
        }
        assert_eq!(shell.in_use(), 1);
    }
}

/// Hundreds of waiters, some never served (redisson 5762, 6664).
#[test]
fn hundreds_of_waiters_are_all_served_in_order_of_arrival() {
    let mut settings = limit(7);
    settings.queue.max_depth = 500;
    let mut shell = Shell::new(settings);
    let mut held: Vec<SlotId> = (0..7).map(|name| shell.take(call(name)).slot).collect();
    for name in 7..500 {
        shell.queue(name, ms(30_000));
        shell.pass(ms(5));
    }
    for name in 7..500 {
        shell.pass(ms(10));
        // A pattern that frees them out of order.
        let slot = held.swap_remove((name as usize * 3) % held.len());
        assert!(shell.release(slot));
        assert_eq!(shell.in_use(), 7);
        held.push(shell.grant_of(name).unwrap().slot);
    }
    assert_eq!(shell.served(), (7..500).collect::<Vec<_>>());
}

/// A freed slot idles for seconds because waiters poll (Prefect 23183,
/// consul 1006).
#[test]
fn a_freed_slot_goes_to_the_head_in_the_same_step() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.queue(2, ms(20_000));
    shell.queue(3, ms(20_000));
    shell.pass(ms(1_234));
    shell.release(held.slot);
    let (request, answer) = &shell.answers[0];
    assert_eq!((request.0, answer.queued), (2, ms(1_234)));
    assert_eq!((answer.gauge.in_use, answer.gauge.depth), (1, 1));
}

/// A retry hint of 89 minutes, computed from an average times a count; or none
/// at all (Prefect 19428, 20470, litellm 27823).
#[test]
fn a_refusal_names_the_moment_that_is_known() {
    let mut shell = Shell::new(limit(2));
    let first = shell.take(call(1));
    shell.pass(ms(1_000));
    let second = shell.take(call(2));
    let earliest_end = Some(first.lease_deadline);
    assert_eq!(shell.refused(call(3)), Refusal::NoFreeSlot { earliest_end });
    shell.report(second.slot, throttled_for(ms(7_000)));
    let opens_at = shell.clock.plus(ms(7_000));
    assert_eq!(shell.refused(call(4)), Refusal::Cooldown { opens_at });
    shell.pass(ms(7_000));
    shell.take(call(5));
}

/// A second, longer cool-down is ignored because one is set (litellm 40130).
#[test]
fn a_later_cool_down_extends_and_an_earlier_one_does_not_shorten() {
    let mut shell = Shell::new(limit(3));
    let slots: Vec<_> = (0..3).map(|name| shell.take(call(name)).slot).collect();
    shell.report(slots[0], throttled_for(ms(5_000)));
    shell.report(slots[1], throttled_for(ms(9_000)));
    assert_eq!(shell.governor.cooldown(), Some(START.plus(ms(9_000))));
    shell.pass(ms(1_000));
    shell.report(slots[2], throttled_for(ms(2_000)));
    assert_eq!(shell.governor.cooldown(), Some(START.plus(ms(9_000))));
}

/// Fifty calls of one incident report it (envoy 11579).
#[test]
fn fifty_reports_of_one_incident_close_the_gate_once() {
    let mut shell = Shell::new(limit(50));
    let slots: Vec<_> = (0..50).map(|name| shell.take(call(name)).slot).collect();
    for slot in slots {
        shell.report(slot, throttled_for(ms(3_000)));
    }
    shell.queue(60, ms(10_000));
    shell.pass(ms(2_999));
    assert_eq!(shell.served(), []);
    shell.pass(ms(1));
    assert_eq!(shell.served(), [60]);
}

/// One caller reports a retry hint of thirty years.
#[test]
fn one_report_closes_the_gate_for_ten_minutes_at_most() {
    let mut shell = Shell::new(limit(2));
    let held = shell.take(call(1));
    shell.report(held.slot, throttled_for(THIRTY_YEARS));
    let opens_at = START.plus(ms(600_000));
    assert_eq!(shell.refused(call(2)), Refusal::Cooldown { opens_at });
    shell.pass(ms(600_000));
    shell.take(call(3));
}

/// A steady stream of newcomers starves the one who came first (argo 11098).
#[test]
fn newcomers_never_overtake_a_waiter() {
    let mut shell = Shell::new(limit(2));
    let mut held = [1, 2].map(|name| shell.take(call(name)).slot);
    shell.queue(3, ms(20_000));
    shell.queue(4, ms(20_000));
    for name in 10..40 {
        shell.refused(call(name));
        shell.queue(name + 100, ms(20_000));
    }
    for (index, name) in (3..5).enumerate() {
        shell.release(held[index]);
        shell.refused(call(name + 1_000));
        held[index] = shell.grant_of(name).unwrap().slot;
    }
    assert_eq!(shell.served(), [3, 4]);
}

/// Nor does a fail-fast call at the moment in which a slot comes free by time.
#[test]
fn a_call_that_finds_an_ended_lease_serves_the_waiter_first() {
    let mut settings = limit(1);
    settings.queue.timeout = ms(60_000);
    let mut shell = Shell::new(settings);
    let held = shell.take(call(1));
    shell.queue(2, ms(40_000));
    shell.clock = held.lease_deadline;
    shell.refused(call(3));
    assert_eq!(shell.served(), [2]);
}

/// Whoever can still be served at its deadline is served, not turned away.
#[test]
fn a_waiter_whose_time_ends_with_a_lease_gets_the_slot() {
    let mut shell = Shell::new(limit(1));
    shell.take(call(1));
    shell.queue(2, ms(30_000));
    shell.pass(ms(30_000));
    assert_eq!(shell.served(), [2]);
}

/// A place that callers share ends for each in its own time.
#[test]
fn each_caller_of_a_place_waits_its_own_time() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.queue(2, ms(1_000));
    let repeat = Acquire {
        wait: ms(9_000),
        attempt: call(2).attempt,
        ..call(3)
    };
    assert!(matches!(shell.acquire(repeat), Reply::Queued));
    assert_eq!(shell.governor.gauge().depth, 1);
    shell.pass(ms(1_000));
    assert!(matches!(shell.answers[0].1.verdict, Verdict::TimedOut(_)));
    shell.queue(4, ms(9_000));
    shell.release(held.slot);
    assert_eq!(
        shell.served(),
        [3],
        "in the place that the first caller took"
    );
    shell.step(Command::Tick);
    assert_eq!(shell.answers.len(), 2);
}

/// Deleting a source answers its waiters (inngest 4060): none of them with a
/// slot that ends with it.
#[test]
fn nobody_is_granted_a_slot_of_a_source_that_ends() {
    let mut shell = Shell::new(limit(1));
    shell.take(call(1));
    shell.queue(2, ms(60_000));
    // The lease ends, and the waiter's time with it, in the step that deletes.
    let at = shell.clock.plus(ms(30_000));
    let ticked = shell.governor.clone().apply(at, Command::Tick);
    assert!(grants(&ticked), "the lease is over by then");
    let step = shell.governor.clone().apply(at, Command::Close);
    assert!(!grants(&step));
}

fn grants(step: &Step) -> bool {
    step.effects.iter().any(|effect| {
        matches!(effect, Effect::Answer { answer, .. } if matches!(answer.verdict, Verdict::Granted(_)))
    })
}
