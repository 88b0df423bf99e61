//! Renewal and expiry.

use swarmvia_locks::governor::command::{Command, Effect, Renewed};
use swarmvia_locks::governor::ids::{SlotId, SlotSecret};
use swarmvia_locks::outcome::Report;

use crate::support::{Shell, call, limit, ms, throttled_for};

/// Hundreds of renewals at once lose updates, and a live lease is revoked
/// (Prefect 22935).
#[test]
fn hundreds_of_renewals_in_one_moment_all_count() {
    let mut shell = Shell::new(limit(500));
    let grants: Vec<_> = (0..500).map(|name| shell.take(call(name))).collect();
    shell.pass(ms(29_999));
    let until = shell.clock.plus(ms(30_000));
    for grant in &grants {
        assert_eq!(shell.renew(grant.slot), Some(Renewed::Until(until)));
    }
    shell.reload();
    shell.pass(ms(29_999));
    assert_eq!(shell.in_use(), 500);
    shell.pass(ms(1));
    assert_eq!(shell.in_use(), 0);
}

/// Renew and release race (Prefect 19187).
#[test]
fn after_a_release_the_slot_is_free_whichever_came_first() {
    for renew_first in [true, false] {
        let mut shell = Shell::new(limit(1));
        let held = shell.take(call(1));
        shell.pass(ms(1_000));
        if renew_first {
            assert!(shell.renew(held.slot).is_some());
        }
        assert!(shell.release(held.slot));
        assert_eq!(shell.renew(held.slot), None);
        assert_eq!(shell.in_use(), 0);
        shell.reload();
        assert_eq!(shell.renew(held.slot), None);
    }
}

/// An expired lock is taken again by the next refresh, which hides that
/// exclusion had lapsed (redis-semaphore 175).
#[test]
fn an_ended_lease_is_not_revived_even_if_nobody_took_the_slot() {
    for after_a_restart in [true, false] {
        let mut shell = Shell::new(limit(1));
        let held = shell.take(call(1));
        // No timer: the renewal itself finds that the lease is over.
        shell.clock = held.lease_deadline;
        if after_a_restart {
            shell.reload();
        }
        assert_eq!(shell.renew(held.slot), None);
        assert!(!shell.release(held.slot));
    }
}

/// One millisecond earlier it holds, and then for a whole term.
#[test]
fn a_renewal_in_the_last_moment_holds_for_a_whole_term() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.clock = held.lease_deadline.minus(ms(1));
    let until = shell.clock.plus(ms(30_000));
    assert_eq!(shell.renew(held.slot), Some(Renewed::Until(until)));
    shell.reload();
    shell.pass(ms(29_999));
    assert_eq!(shell.in_use(), 1);
}

/// A lease granted after a long wait is nearly over at its start (inngest 4766,
/// etcd 11456).
#[test]
fn the_term_begins_with_the_grant_not_with_the_wait() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    shell.queue(2, ms(30_000));
    shell.pass(ms(29_000));
    shell.release(held.slot);
    let grant = shell.grant_of(2).unwrap();
    assert_eq!(grant.lease_deadline, shell.clock.plus(ms(30_000)));
    assert_eq!(grant.request_deadline, shell.clock.plus(ms(60_000)));
}

/// A stale holder releases what is now someone else's (`solid_queue` 761,
/// laravel 27224).
#[test]
fn only_the_present_id_frees_a_slot() {
    let mut shell = Shell::new(limit(1));
    let stale = shell.take(call(1)).slot;
    shell.pass(ms(30_000));
    let present = shell.take(call(1)).slot;
    let guessed = SlotId {
        row: present.row,
        secret: SlotSecret(present.secret.0 + 1),
    };
    let crossed = SlotId {
        row: present.row,
        secret: stale.secret,
    };
    for id in [stale, guessed, crossed] {
        assert!(!shell.release(id));
        assert_eq!(shell.renew(id), None);
    }
    assert_eq!(shell.in_use(), 1);
    assert!(shell.release(present));
}

/// A stale holder's report closes the gate for everyone.
#[test]
fn a_report_counts_only_with_the_release_that_freed_the_slot() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    assert!(shell.report(held.slot, throttled_for(ms(1_000))));
    let opens_at = shell.governor.cooldown();
    assert!(opens_at.is_some());
    assert!(!shell.report(held.slot, throttled_for(ms(9_000))));
    assert_eq!(shell.governor.cooldown(), opens_at);
}

/// A double release lifts the count above the limit (redisson 5066).
#[test]
fn a_second_release_of_a_slot_frees_nothing() {
    let mut shell = Shell::new(limit(2));
    let first = shell.take(call(1));
    shell.take(call(2));
    let released: Vec<bool> = (0..5).map(|_| shell.release(first.slot)).collect();
    assert_eq!(released, [true, false, false, false, false]);
    shell.take(call(3));
    shell.refused(call(4));
    assert_eq!(shell.in_use(), 2);
}

/// A failed renewal is treated as loss (consul 1162).
#[test]
fn a_renewal_that_fails_changes_nothing() {
    let mut settings = limit(1);
    settings.lease.request_timeout = settings.lease.term;
    let mut shell = Shell::new(settings);
    let held = shell.take(call(1));
    shell.pass(ms(1_000));
    let step = shell.step(Command::Renew { slot: held.slot });
    assert!(step.effects.is_empty(), "capped, and nothing written");
    let slot = SlotId {
        row: held.slot.row,
        secret: SlotSecret(u128::MAX),
    };
    assert!(shell.step(Command::Renew { slot }).effects.is_empty());
    assert_eq!(
        shell.governor.slots()[0].lease_deadline,
        held.lease_deadline
    );
    shell.pass(ms(28_999));
    assert!(shell.release(held.slot), "held until its deadline");
}

/// A shorter term, set while a lease runs, cuts it.
#[test]
fn a_renewal_never_shortens_a_lease() {
    let mut shell = Shell::new(limit(1));
    let held = shell.take(call(1));
    let mut shorter = limit(1);
    shorter.lease.term = ms(500);
    shell.configure(shorter);
    shell.pass(ms(1_000));
    let step = shell.step(Command::Renew { slot: held.slot });
    assert!(step.effects.is_empty(), "nothing moved, nothing written");
    assert_eq!(
        shell.renew(held.slot),
        Some(Renewed::Until(held.lease_deadline))
    );
}

/// One row is written by a renewal, and one by a release.
#[test]
fn renew_and_release_write_one_row_each() {
    let mut shell = Shell::new(limit(1));
    let slot = shell.take(call(1)).slot;
    shell.pass(ms(1_000));
    let step = shell.step(Command::Renew { slot });
    assert!(matches!(step.effects[..], [Effect::Extend { row, .. }] if row == slot.row));
    let report = Report::default();
    let step = shell.step(Command::Release { slot, report });
    assert!(matches!(step.effects[..], [Effect::End { row }] if row == slot.row));
}
