//! Limits: concurrency and requests per minute.

use swarmvia_locks::governor::command::{Acquire, Command, Refusal, Reply, Verdict};
use swarmvia_locks::governor::settings::Settings;

use crate::support::{START, Shell, call, limit, ms};

fn rpm(requests: u32) -> Settings {
    let mut settings = limit(100);
    settings.rpm.limit = Some(requests);
    settings.lease.term = ms(500);
    settings
}

/// A limit lowered below what is in use makes free slots negative, and then
/// everything is admitted (airflow 15399).
#[test]
fn a_lowered_limit_admits_nobody_until_enough_were_released() {
    let mut shell = Shell::new(limit(5));
    let grants: Vec<_> = (0..5).map(|name| shell.take(call(name))).collect();
    shell.configure(limit(2));
    assert_eq!(shell.in_use(), 5, "it takes no slot away");
    assert_eq!(shell.governor.gauge().remaining(), 0);
    shell.queue(10, ms(20_000));
    for grant in &grants[..3] {
        shell.release(grant.slot);
        assert_eq!(shell.served(), []);
    }
    shell.refused(call(11));
    shell.release(grants[3].slot);
    assert_eq!(shell.served(), [10]);
    assert_eq!(shell.in_use(), 2);
}

/// A limit set while work runs does not count it (Prefect 19404).
#[test]
fn a_limit_counts_what_was_granted_before_it_was_set() {
    let mut shell = Shell::new(limit(10));
    for name in 0..4 {
        shell.take(call(name));
    }
    let mut settings = limit(10);
    settings.rpm.limit = Some(5);
    shell.configure(settings);
    shell.take(call(4));
    let opens_at = START.plus(ms(60_000));
    assert_eq!(shell.refused(call(5)), Refusal::Rpm { opens_at });
    shell.configure(limit(5));
    assert!(matches!(shell.refused(call(6)), Refusal::NoFreeSlot { .. }));
}

/// A raised limit doesn't wake the waiters (argo 12194).
#[test]
fn a_raised_limit_wakes_as_many_waiters_at_once() {
    let mut shell = Shell::new(limit(1));
    shell.take(call(1));
    for name in 2..6 {
        shell.queue(name, ms(20_000));
    }
    shell.configure(limit(3));
    assert_eq!(shell.served(), [2, 3]);
}

/// So does a raised RPM limit, or one that is taken away.
#[test]
fn a_raised_rpm_limit_wakes_waiters_at_once() {
    for (raised, served) in [(Some(2), vec![2]), (None, vec![2, 3])] {
        let mut shell = Shell::new(rpm(1));
        shell.take(call(1));
        shell.queue(2, ms(20_000));
        shell.queue(3, ms(20_000));
        let mut settings = rpm(1);
        settings.rpm.limit = raised;
        shell.configure(settings);
        assert_eq!(shell.served(), served);
    }
}

/// Check, then increment: a burst gets past the limit (concurrency-limits 234,
/// litellm 16011).
#[test]
fn a_burst_in_one_moment_is_granted_up_to_the_limit() {
    let mut shell = Shell::new(limit(7));
    let replies = (0..1_000).map(|name| shell.acquire(call(name)));
    let granted = replies.filter(|reply| {
        matches!(reply, Reply::Acquire(answer) if matches!(answer.verdict, Verdict::Granted(_)))
    });
    assert_eq!(granted.count(), 7);
    assert_eq!(shell.in_use(), 7);
}

/// RPM overshoots under bursts and at the edges of windows (litellm 6938,
/// 18730).
#[test]
fn no_minute_has_more_grants_than_the_rpm_limit() {
    let mut shell = Shell::new(rpm(10));
    let mut granted_at = Vec::new();
    for name in 0..3_000 {
        if matches!(shell.refused_or_granted(call(name)), Verdict::Granted(_)) {
            granted_at.push(shell.clock);
        }
        // Bursts of thirty, and a step that divides no window evenly.
        shell.pass(ms(if name % 30 == 0 { 7_001 } else { 0 }));
    }
    assert!(granted_at.len() > 100);
    for minute in granted_at.windows(11) {
        assert!(minute[10].since(minute[0]) >= ms(60_000));
    }
}

/// The gate opens in the very millisecond in which the oldest grant is a minute
/// old, and not before.
#[test]
fn the_rpm_gate_opens_when_it_says() {
    let mut shell = Shell::new(rpm(1));
    shell.take(call(1));
    shell.pass(ms(1));
    let opens_at = START.plus(ms(60_000));
    assert_eq!(shell.refused(call(2)), Refusal::Rpm { opens_at });
    shell.pass(ms(59_998));
    assert_eq!(shell.refused(call(3)), Refusal::Rpm { opens_at });
    shell.pass(ms(1));
    shell.take(call(4));
}

/// RPM overshoots after a restart (litellm 18730).
#[test]
fn the_rpm_window_survives_a_restart_of_a_source_whose_slots_are_all_back() {
    let mut shell = Shell::new(rpm(3));
    for name in 0..3 {
        let slot = shell.take(call(name)).slot;
        shell.release(slot);
        shell.pass(ms(1_000));
    }
    shell.reload();
    let opens_at = START.plus(ms(60_000));
    assert_eq!(shell.refused(call(3)), Refusal::Rpm { opens_at });
}

/// Items that refer to removed settings spin for ever (inngest 4060).
#[test]
fn deleting_a_source_answers_its_waiters() {
    let mut shell = Shell::new(limit(1));
    shell.take(call(1));
    for name in 2..5 {
        shell.queue(name, ms(20_000));
    }
    shell.step(Command::Close);
    let dismissed = |verdict: &Verdict| matches!(verdict, Verdict::Dismissed(_));
    let names: Vec<u128> = shell.answers.iter().map(|(request, _)| request.0).collect();
    assert_eq!(names, [2, 3, 4]);
    assert!(
        shell
            .answers
            .iter()
            .all(|(_, answer)| dismissed(&answer.verdict))
    );
    assert!(!shell.governor.has_waiters());
}

/// A closed gate, like a missing slot, queues whoever is ready to wait.
#[test]
fn a_closed_gate_queues_whoever_is_ready_to_wait() {
    let mut settings = rpm(1);
    settings.queue.timeout = ms(90_000);
    let mut shell = Shell::new(settings);
    shell.take(call(1));
    let reply = shell.acquire(Acquire {
        wait: ms(70_000),
        ..call(2)
    });
    assert!(matches!(reply, Reply::Queued));
    shell.pass(ms(59_999));
    assert_eq!(shell.served(), []);
    shell.pass(ms(1));
    assert_eq!(shell.served(), [2]);
}
