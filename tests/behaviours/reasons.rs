//! Why there is no slot now, and when there may be one: for who is refused and
//! for who has waited in vain.

use swarmvia_locks::governor::command::{Acquire, Refusal, Reply, Verdict};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::{Millis, Span};

use crate::support::probes::refusal_is_honest;
use crate::support::{START, Shell, call, limit, ms, throttled_for};

const MINUTE: Span = Span::from_seconds(60);

/// One grant a minute, and no lack of slots.
fn one_a_minute() -> Settings {
    let mut settings = limit(10);
    settings.rpm.limit = Some(1);
    settings
}

/// An RPM gate that opens a minute after the start, and a cool-down of `span`.
fn both_closed(span: Span) -> Shell {
    let mut shell = Shell::new(one_a_minute());
    let held = shell.take(call(1));
    shell.report(held.slot, throttled_for(span));
    shell
}

/// What a waiter was told that waited in vain.
fn why_in_vain(shell: &Shell, name: u128) -> Refusal {
    let mut answers = shell.answers.iter();
    let found = answers.find(|(request, _)| request.0 == name);
    match found.map(|(_, answer)| &answer.verdict) {
        Some(Verdict::TimedOut(refusal)) => *refusal,
        other => panic!("{other:?}"),
    }
}

/// The reason is of the gate that `retryAfterMs` speaks of, else one reads that
/// an upstream asked for a wait that the operator set.
#[test]
fn the_reason_is_the_gate_that_opens_last_and_a_cool_down_where_both_open_at_once() {
    for (span, is_cooldown) in [
        (ms(1), false),
        (ms(59_999), false),
        (MINUTE, true),
        (ms(60_001), true),
        (ms(600_000), true),
    ] {
        let mut shell = both_closed(span);
        let opens_at = START.plus(span.max(MINUTE));
        let due = if is_cooldown {
            Refusal::Cooldown { opens_at }
        } else {
            Refusal::Rpm { opens_at }
        };
        assert_eq!(shell.refused(call(2)), due, "{span:?}");
        refusal_is_honest(&shell.governor, &call(2), due);
        shell.queue(3, ms(20));
        shell.pass(ms(20));
        assert_eq!(why_in_vain(&shell, 3), due, "{span:?}");
    }
}

#[test]
fn the_reason_changes_as_the_gates_do() {
    let mut shell = both_closed(ms(30_000));
    let rpm = Refusal::Rpm {
        opens_at: START.plus(MINUTE),
    };
    assert_eq!(shell.refused(call(2)), rpm);
    shell.configure(limit(10));
    let opens_at = START.plus(ms(30_000));
    assert_eq!(shell.refused(call(3)), Refusal::Cooldown { opens_at });
    shell.configure(one_a_minute());
    shell.pass(ms(30_000));
    assert_eq!(shell.refused(call(4)), rpm);
}

#[test]
fn a_learned_gate_and_a_configured_one_are_both_rpm() {
    let mut settings = one_a_minute();
    settings.rpm.limit = Some(2);
    settings.rpm.adaptive = true;
    let mut shell = Shell::new(settings);
    let held = shell.take(call(1));
    let mut report = throttled_for(ms(5_000));
    report.rate.limit = Some(1);
    report.rate.window = Some(ms(50_000));
    shell.report(held.slot, report);
    let Refusal::Rpm { opens_at } = shell.refused(call(2)) else {
        panic!("what was learned opens later than the cool-down");
    };
    assert!(opens_at > START.plus(ms(5_000)), "{opens_at:?}");
    refusal_is_honest(&shell.governor, &call(2), Refusal::Rpm { opens_at });
}

#[test]
fn who_waited_in_vain_for_a_slot_is_told_so_wherever_it_stood() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.queue(2, ms(5_000));
    shell.queue(3, ms(20));
    shell.pass(ms(20));
    let earliest_end = Some(held.lease_deadline);
    assert_eq!(why_in_vain(&shell, 3), Refusal::NoFreeSlot { earliest_end });
}

#[test]
fn a_gate_is_told_also_where_no_slot_is_free() {
    let mut settings = limit(1);
    settings.rpm.limit = Some(1);
    let mut shell = Shell::new(settings);
    shell.take(call(1));
    shell.queue(2, ms(20));
    shell.pass(ms(20));
    let opens_at = START.plus(MINUTE);
    assert_eq!(why_in_vain(&shell, 2), Refusal::Rpm { opens_at });
}

/// A timer is late now and then: the gate may have opened since.
#[test]
fn who_is_answered_late_is_told_what_kept_it_to_the_end_of_its_time() {
    for span in [ms(30), ms(70_000)] {
        let mut shell = both_closed(span);
        shell.queue(2, ms(20));
        shell.clock = START.plus(ms(80_000));
        shell.take(call(3));
        let due = both_closed(span).refused(call(2));
        assert_eq!(why_in_vain(&shell, 2), due);
    }
}

#[test]
fn who_is_carried_over_too_late_is_told_why() {
    let mut shell = both_closed(ms(90_000));
    shell.reload();
    let reply = shell.acquire(Acquire {
        waited: ms(50),
        ..call(2)
    });
    let Reply::Acquire(answer) = reply else {
        panic!("{reply:?}");
    };
    let opens_at: Millis = START.plus(ms(90_000));
    assert!(
        matches!(answer.verdict, Verdict::TimedOut(why) if why == Refusal::Cooldown { opens_at })
    );
}
