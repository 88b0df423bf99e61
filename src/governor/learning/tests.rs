//! One sample in, one number out.

use super::budget::Budget;
use super::concurrency::{Concurrency, Served};
use super::rate::{Inferred, Rate};
use crate::governor::ids::Ref;
use crate::governor::rpm::Rpm;
use crate::governor::settings::{Concurrency as Bounds, Settings};
use crate::governor::time::{Millis, Span};
use crate::outcome::rate::Rate as Said;

const NOW: Millis = Millis::from_epoch(1_710_000_000_000);
const SECOND: Span = Span::from_seconds(1);

fn bounds(min: u32, limit: u32, max: u32) -> Bounds {
    let mut bounds = Settings::default().concurrency;
    (bounds.min, bounds.limit, bounds.max) = (min, limit, max);
    bounds.adaptive = true;
    bounds
}

/// Two rounds and more of calls that were served with all slots in use.
fn rounds(known: &mut Concurrency, bounds: &Bounds, now: Millis, held: Span, calls: u64) {
    for reference in 1..=calls {
        let served = Served {
            reference: Ref(u64::MAX),
            in_use: known.limit(bounds),
            held,
            last: Ref(reference),
        };
        known.served(served, bounds, now);
    }
}

#[test]
fn a_probe_that_goes_well_becomes_the_level_and_the_next_is_twice_as_large() {
    let bounds = bounds(1, 10, 100);
    let mut known = Concurrency::new(&bounds);
    let mut limits = vec![known.limit(&bounds)];
    for _ in 0..400 {
        rounds(&mut known, &bounds, NOW, SECOND, 1);
        if limits.last() != Some(&known.limit(&bounds)) {
            limits.push(known.limit(&bounds));
        }
    }
    assert_eq!(limits[..6], [10, 11, 13, 17, 25, 41]);
}

#[test]
fn below_a_ceiling_each_probe_goes_half_of_the_way() {
    let bounds = bounds(1, 10, 100);
    let mut known = Concurrency::new(&bounds);
    known.throttled(26, None, Ref(1), &bounds, NOW);
    assert_eq!(known.limit(&bounds), 10, "it was fine before");
    let mut limits = vec![10];
    for _ in 0..1_000 {
        rounds(&mut known, &bounds, NOW, SECOND, 1);
        if limits.last() != Some(&known.limit(&bounds)) {
            limits.push(known.limit(&bounds));
        }
    }
    assert_eq!(limits, [10, 18, 22, 24, 25], "and stays right below it");
    let later = NOW.plus(Span::from_seconds(10));
    rounds(&mut known, &bounds, later, SECOND, 51);
    assert_eq!(known.limit(&bounds), 26, "until it was quiet for a while");
}

#[test]
fn throttling_at_a_count_that_was_fine_cuts_by_a_quarter_down_to_the_floor() {
    let bounds = bounds(5, 20, 100);
    let mut known = Concurrency::new(&bounds);
    for expected in [15, 11, 8, 6, 5, 5] {
        let limit = known.limit(&bounds);
        known.throttled(limit, None, Ref(1), &bounds, NOW);
        assert_eq!(known.limit(&bounds), expected);
    }
}

#[test]
fn the_ceiling_is_left_alone_for_longer_where_it_costs_a_hint() {
    let bounds = bounds(1, 10, 100);
    for (hint, quiet) in [
        (None, 10),
        (Some(SECOND), 14),
        (Some(Span::from_seconds(60)), 840),
    ] {
        let mut known = Concurrency::new(&bounds);
        known.throttled(11, hint, Ref(1), &bounds, NOW);
        assert_eq!(known.quiet_until, NOW.plus(Span::from_seconds(quiet)));
    }
}

#[test]
fn a_probe_that_makes_calls_half_as_long_again_is_taken_back() {
    let bounds = bounds(1, 10, 100);
    for (held_ms, expected) in [(1_499, 13), (1_501, 10)] {
        let mut known = Concurrency::new(&bounds);
        rounds(&mut known, &bounds, NOW, SECOND, 20);
        assert_eq!(known.limit(&bounds), 11);
        rounds(&mut known, &bounds, NOW, Span::from_ms(held_ms), 22);
        assert_eq!(known.limit(&bounds), expected, "{held_ms}");
    }
}

#[test]
fn a_cool_down_halves_and_each_release_after_it_gives_one_back() {
    let bounds = bounds(3, 10, 100);
    let mut known = Concurrency::new(&bounds);
    known.cool_down(Ref(7), &bounds);
    assert_eq!(known.limit(&bounds), 5);
    known.cool_down(Ref(8), &bounds);
    assert_eq!(known.limit(&bounds), 3, "never below the floor");
    let mut served = Served {
        reference: Ref(8),
        in_use: 1,
        held: SECOND,
        last: Ref(9),
    };
    known.served(served, &bounds, NOW);
    assert_eq!(known.limit(&bounds), 3, "granted before");
    served.reference = Ref(9);
    known.served(served, &bounds, NOW);
    assert_eq!(known.limit(&bounds), 4);
}

/// So many grants a second for a minute.
fn minute(per_second: u64) -> Rpm {
    let mut grants = Rpm::default();
    for ms in (0..60_000).step_by(1_000) {
        grants.mark(
            NOW.plus(Span::from_ms(ms)),
            u32::try_from(per_second).unwrap(),
        );
    }
    grants
}

#[test]
fn what_was_let_through_until_it_served_again_is_the_rate() {
    let grants = minute(5);
    let throttled_at = NOW.plus(Span::from_seconds(60));
    let mut rate = Rate::default();
    rate.throttled(throttled_at, None, &grants, 0, throttled_at);
    let opens_at = rate.opens_at(&grants, throttled_at);
    assert_eq!(
        opens_at,
        Some(throttled_at.plus(Span::from_seconds(2))),
        "it trickles"
    );
    let served_at = throttled_at.plus(Span::from_seconds(40));
    assert!(rate.served(served_at, &grants, served_at));
    // 300 in 60 s, then nothing for 20 s, half of the way to the one that was
    // served; and one in a hundred less.
    let per_hour = 300 * 3_600 / 80 * 99 / 100;
    assert_eq!(rate.inferred.unwrap().per_hour, per_hour);
}

#[test]
fn the_trickle_gets_thinner_with_each_grant() {
    let grants = Rpm::default();
    let mut rate = Rate::default();
    rate.throttled(NOW, None, &grants, 0, NOW);
    let mut now = NOW;
    for seconds in [2, 2, 4, 8, 16, 32, 60, 60] {
        let opens_at = rate.opens_at(&grants, now).unwrap();
        assert_eq!(opens_at, now.plus(Span::from_seconds(seconds)));
        now = opens_at;
        rate.granted(now);
    }
}

#[test]
fn a_rate_becomes_a_gate_of_about_half_a_second() {
    for (per_hour, limit, window_ms) in [
        (36_000, 5, 500),
        (18_000, 2, 400),
        (3_600, 1, 1_000),
        (60, 1, 60_000),
        (1, 1, 60_000),
    ] {
        let quiet_until = NOW;
        let gate = Inferred {
            per_hour,
            quiet_until,
        }
        .gate();
        assert_eq!(
            (gate.limit, gate.window.ms()),
            (limit, window_ms),
            "{per_hour}"
        );
    }
}

fn stated(remaining: u64, reset_ms: u64) -> Said {
    Said {
        limit: Some(100),
        remaining: Some(remaining),
        reset: Some(Span::from_ms(reset_ms)),
        ..Said::default()
    }
}

#[test]
fn grants_since_the_one_that_told_are_counted_off() {
    let mut grants = Rpm::default();
    grants.mark(NOW, 1);
    grants.mark(NOW.plus(SECOND), 3);
    let now = NOW.plus(SECOND);
    let budget = Budget::stated(&stated(10, 4_000), NOW, &grants, now).unwrap();
    assert_eq!(budget.left(&grants), 7);
    assert_eq!(budget.opens_at(&grants, now), None);
    grants.mark(now, 2);
    assert_eq!(
        budget.opens_at(&grants, now),
        Some(NOW.plus(Span::from_seconds(2))),
        "half"
    );
    grants.mark(now, 5);
    assert_eq!(
        budget.opens_at(&grants, now),
        Some(now.plus(Span::from_seconds(4)))
    );
}

#[test]
fn who_was_granted_later_knows_better() {
    let mut grants = Rpm::default();
    grants.mark(NOW, 1);
    let later = NOW.plus(SECOND);
    grants.mark(later, 1);
    let mut known = None;
    let first = Budget::stated(&stated(50, 4_000), NOW, &grants, later).unwrap();
    let second = Budget::stated(&stated(20, 4_000), later, &grants, later).unwrap();
    assert!(Budget::replace(&mut known, second, &grants, later));
    assert!(!Budget::replace(&mut known, first, &grants, later));
    assert_eq!(known.unwrap().left(&grants), 20);
}

#[test]
fn a_budget_is_written_down_each_time_that_it_has_halved() {
    let grants = Rpm::default();
    let mut known = None;
    let written: Vec<u64> = (0..=100)
        .rev()
        .filter(|left| {
            let stated = Budget::stated(&stated(*left, 4_000), NOW, &grants, NOW).unwrap();
            Budget::replace(&mut known, stated, &grants, NOW)
        })
        .collect();
    assert_eq!(written, [100, 50, 25, 12, 6, 3, 1, 0]);
}
