//! Learning from what releases report.

use swarmvia_locks::governor::command::{Command, Effect, Refusal};
use swarmvia_locks::governor::cooldown::LONGEST;
use swarmvia_locks::governor::ids::SlotId;
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::Span;
use swarmvia_locks::outcome::Report;
use swarmvia_locks::outcome::rate::Rate;

use crate::support::{Shell, THIRTY_YEARS, call, limit, ms, throttled_for};

/// Adaptive in calls at once only.
fn adaptive(min: u32, start: u32, max: u32) -> Settings {
    let mut settings = limit(start);
    settings.concurrency.adaptive = true;
    settings.concurrency.min = min;
    settings.concurrency.max = max;
    settings
}

/// Adaptive in calls a window only.
fn adaptive_rate() -> Settings {
    let mut settings = limit(100);
    settings.rpm.adaptive = true;
    settings
}

fn status(status: u16) -> Report {
    Report {
        status: Some(status),
        ..Report::default()
    }
}

fn stated(rate: Rate) -> Report {
    Report {
        rate,
        ..status(200)
    }
}

fn window(limit: u64, remaining: u64, reset: Span) -> Rate {
    Rate {
        limit: Some(limit),
        remaining: Some(remaining),
        reset: Some(reset),
        ..Rate::default()
    }
}

/// A crowd that keeps all slots in use: each is held for about a second, and
/// released with what `report` makes of the slots in use at its grant.
struct Crowd {
    shell: Shell,
    held: Vec<(SlotId, u32)>,
    names: u128,
}

impl Crowd {
    fn new(settings: Settings) -> Self {
        Self {
            shell: Shell::new(settings),
            held: Vec::new(),
            names: 0,
        }
    }

    fn fill(&mut self) {
        while self.shell.governor.gauge().remaining() > 0 {
            self.names += 1;
            let grant = self.shell.take(call(self.names));
            self.held.push((grant.slot, self.shell.in_use()));
        }
    }

    /// All slots are taken, held and released, one after the other.
    fn turn(&mut self, report: impl Fn(u32) -> Report) {
        self.fill();
        let held = std::mem::take(&mut self.held);
        let between = ms(1_000 / held.len() as u64);
        for (slot, in_use) in held {
            self.shell.pass(between);
            self.shell.report(slot, report(in_use));
            self.fill();
        }
    }

    fn limit(&self) -> u32 {
        self.shell.governor.gauge().limit
    }
}

/// The limit stops moving when every call is throttled
/// (go-concurrency-limits 141).
#[test]
fn where_every_call_is_throttled_the_limit_falls_to_its_floor_and_comes_back() {
    let mut crowd = Crowd::new(adaptive(2, 10, 20));
    for _ in 0..20 {
        crowd.turn(|_| status(429));
    }
    assert_eq!(crowd.limit(), 2);
    for _ in 0..200 {
        crowd.turn(|_| status(200));
    }
    assert_eq!(crowd.limit(), 20);
}

#[test]
fn the_limit_finds_what_the_upstream_takes_and_stays_there() {
    let upstream = |in_use| status(if in_use > 13 { 429 } else { 200 });
    let mut crowd = Crowd::new(adaptive(1, 4, 64));
    for _ in 0..60 {
        crowd.turn(upstream);
    }
    assert!((12..=14).contains(&crowd.limit()), "{}", crowd.limit());
}

/// Timeouts with no variance make the limit grow under overload
/// (concurrency-limits 137).
#[test]
fn calls_without_an_outcome_and_failures_change_nothing() {
    for report in [Report::default(), status(500), status(504)] {
        let mut crowd = Crowd::new(adaptive(1, 5, 50));
        for _ in 0..50 {
            crowd.turn(|_| report);
        }
        assert_eq!(crowd.limit(), 5, "{report:?}");
        assert_eq!(crowd.shell.storage.learned, None);
    }
}

#[test]
fn a_limit_that_is_not_used_does_not_grow() {
    let mut shell = Shell::new(adaptive(1, 5, 50));
    for name in 0..500 {
        let slots = [0, 1].map(|half| shell.take(call(name * 2 + half)).slot);
        shell.pass(ms(100));
        for slot in slots {
            shell.report(slot, status(200));
        }
    }
    assert_eq!(shell.governor.gauge().limit, 5);
}

/// Longer holding makes a probe fail, and never lowers what was fine.
#[test]
fn slower_calls_stop_growth_and_cut_nothing() {
    let mut crowd = Crowd::new(adaptive(1, 8, 50));
    crowd.turn(|_| status(200));
    let before = crowd.limit();
    for _ in 0..40 {
        crowd.fill();
        for (slot, _) in std::mem::take(&mut crowd.held) {
            // The more calls at once, the longer each takes.
            crowd.shell.pass(ms(u64::from(crowd.limit()).pow(2)));
            crowd.shell.report(slot, status(200));
            crowd.fill();
        }
    }
    assert!(crowd.limit() >= before, "{} < {before}", crowd.limit());
    assert!(crowd.limit() < 50, "{}", crowd.limit());
}

/// Fifty calls of one incident report 429 and the limit is cut fifty times
/// (envoy 11579).
#[test]
fn fifty_reports_of_one_incident_make_one_cut() {
    let mut crowd = Crowd::new(adaptive(1, 50, 50));
    crowd.turn(|_| status(200));
    let mut cuts = 0;
    for (slot, _) in std::mem::take(&mut crowd.held) {
        let report = status(429);
        let step = crowd.shell.step(Command::Release { slot, report });
        let learned = |effect: &&Effect| matches!(effect, Effect::Learned { .. });
        cuts += step.effects.iter().filter(learned).count();
    }
    assert_eq!(cuts, 1);
    assert_eq!(crowd.limit(), 37);
}

/// What was learned is lost on restart (`OmniRoute` 13895).
#[test]
fn what_was_learned_survives_a_restart_and_reset_forgets_it() {
    let mut settings = adaptive(1, 50, 50);
    settings.rpm.adaptive = true;
    let mut crowd = Crowd::new(settings);
    crowd.turn(|in_use| status(if in_use > 20 { 429 } else { 200 }));
    let slot = crowd.held[0].0;
    let rate = Rate {
        window: Some(ms(10_000)),
        ..window(400, 200, ms(5_000))
    };
    crowd.shell.report(slot, stated(rate));
    let before = crowd.shell.governor.gauge();
    assert!(before.limit < 50);
    crowd.shell.reload();
    let after = crowd.shell.governor.gauge();
    assert_eq!((after.limit, after.rpm), (before.limit, before.rpm));
    let learned = crowd.shell.governor.learned();
    assert_eq!(learned.rate.told.unwrap().limit, 400);
    assert!(learned.concurrency_by.is_some() && learned.rate_by.is_some());
    crowd.shell.step(Command::Reset);
    assert_eq!(crowd.limit(), 50);
    assert_eq!(crowd.shell.governor.gauge().rpm, None);
    crowd.shell.reload();
    assert_eq!(crowd.limit(), 50);
}

#[test]
fn a_stated_concurrency_limit_is_taken_as_it_stands_within_the_bounds() {
    for (said, in_force) in [(7, 7), (1, 2), (1_000_000, 20)] {
        let mut shell = Shell::new(adaptive(2, 10, 20));
        let slot = shell.take(call(1)).slot;
        let concurrency_limit = Some(said);
        shell.report(
            slot,
            stated(Rate {
                concurrency_limit,
                ..Rate::default()
            }),
        );
        assert_eq!(shell.governor.gauge().limit, in_force);
    }
}

/// One caller reports `limit: 1`, or a retry hint of thirty years.
#[test]
fn one_hostile_report_stops_nobody_beyond_the_cap() {
    let hostile = [
        throttled_for(THIRTY_YEARS),
        stated(window(1, 0, THIRTY_YEARS)),
        stated(Rate {
            window: Some(THIRTY_YEARS),
            ..window(1, 1, THIRTY_YEARS)
        }),
        stated(Rate {
            limit: Some(1),
            window: Some(ms(60_000)),
            ..Rate::default()
        }),
        stated(Rate {
            token_remaining: Some(0),
            token_reset: Some(THIRTY_YEARS),
            concurrency_limit: Some(1),
            ..Rate::default()
        }),
    ];
    for report in hostile {
        let mut settings = adaptive(1, 10, 10);
        settings.rpm.adaptive = true;
        let mut shell = Shell::new(settings);
        let slot = shell.take(call(1)).slot;
        shell.report(slot, report);
        shell.pass(LONGEST);
        for name in 2..12 {
            // What the limit in force is, it takes callers again.
            if shell.governor.gauge().remaining() > 0 {
                shell.take(call(name));
            }
        }
        assert!(shell.in_use() >= 1, "{report:?}");
    }
}

#[test]
fn after_a_cool_down_the_limit_starts_at_half_and_grows_with_each_release() {
    let mut crowd = Crowd::new(adaptive(1, 10, 10));
    crowd.turn(|_| status(200));
    let slot = crowd.held.pop().unwrap().0;
    // The upstream throttles something else: the count was fine before.
    let mut report = status(200);
    report.rate = window(100, 0, ms(3_000));
    crowd.shell.report(slot, report);
    assert!(matches!(
        crowd.shell.refused(call(1_000)),
        Refusal::Cooldown { .. }
    ));
    // Releases of slots from before don't count.
    for (slot, _) in std::mem::take(&mut crowd.held) {
        crowd.shell.report(slot, status(200));
    }
    crowd.shell.pass(ms(3_000));
    assert_eq!(crowd.limit(), 5);
    crowd.fill();
    for served in 1..=3 {
        let (slot, _) = crowd.held.remove(0);
        crowd.shell.report(slot, status(200));
        assert_eq!(crowd.limit(), 5 + served);
    }
}

/// Window lengths other than a minute are respected.
#[test]
fn a_stated_window_of_a_second_opens_within_a_second() {
    let mut shell = Shell::new(adaptive_rate());
    let slot = shell.take(call(1)).slot;
    let rate = Rate {
        limit: Some(3),
        window: Some(ms(1_000)),
        ..Rate::default()
    };
    shell.pass(ms(500));
    shell.report(slot, stated(rate));
    assert_eq!(shell.governor.gauge().rpm.unwrap().limit, 180);
    shell.take(call(2));
    shell.take(call(3));
    let Refusal::Rpm { opens_at } = shell.refused(call(4)) else {
        panic!("not the rate");
    };
    assert_eq!(opens_at, shell.clock.plus(ms(500)));
    shell.pass(ms(500));
    shell.take(call(5));
}

/// Others on the same account use it up: the count that remains is believed.
#[test]
fn what_remains_is_counted_down_until_the_reset() {
    let mut shell = Shell::new(adaptive_rate());
    let slots: Vec<_> = (0..3).map(|name| shell.take(call(name)).slot).collect();
    // Said of the moment at which the second was granted; two more are out.
    shell.pass(ms(10));
    shell.take(call(10));
    shell.report(slots[1], stated(window(1_000, 3, ms(4_000))));
    shell.take(call(11));
    let half = shell.refused(call(12));
    assert!(matches!(half, Refusal::Rpm { .. }), "half goes at once");
    shell.pass(ms(2_000));
    shell.take(call(13));
    let Refusal::Rpm { opens_at } = shell.refused(call(14)) else {
        panic!("not the rate");
    };
    assert_eq!(opens_at, shell.clock.plus(ms(2_000)));
    shell.pass(ms(2_000));
    shell.take(call(15));
}

#[test]
fn a_configured_limit_is_the_ceiling_of_what_is_learned() {
    let mut settings = adaptive_rate();
    settings.rpm.limit = Some(5);
    let mut shell = Shell::new(settings);
    let slot = shell.take(call(0)).slot;
    let rate = Rate {
        window: Some(ms(60_000)),
        ..window(1_000, 1_000, ms(60_000))
    };
    shell.report(slot, stated(rate));
    for name in 1..5 {
        shell.take(call(name));
    }
    assert!(matches!(shell.refused(call(6)), Refusal::Rpm { .. }));
}

/// Without headers, throttling at a low concurrency teaches the rate.
#[test]
fn throttling_at_low_concurrency_teaches_the_rate() {
    let mut shell = Shell::new(adaptive_rate());
    // One call at a time, ten a second, of which the upstream takes 60 a minute.
    let mut accepted = 0_u32;
    let mut throttled = [0_u32; 5];
    let mut served = [0_u32; 5];
    for name in 0..3_000 {
        let minute = name / 600;
        if name % 600 == 0 {
            accepted = 0;
        }
        let verdict = shell.refused_or_granted(call(name as u128));
        if let Some(slot) = crate::support::slot_of(&verdict) {
            let is_served = accepted < 60;
            accepted += u32::from(is_served);
            served[minute] += u32::from(is_served);
            throttled[minute] += u32::from(!is_served);
            shell.report(slot, status(if is_served { 200 } else { 429 }));
        }
        shell.pass(ms(100));
    }
    assert!(
        throttled[1..].iter().all(|count| *count <= 5),
        "{throttled:?}"
    );
    assert!(served[1..].iter().all(|count| *count >= 45), "{served:?}");
}

/// Nothing that is adaptive is asked for: reports teach nothing.
#[test]
fn without_adaptive_settings_nothing_is_learned() {
    let mut shell = Shell::new(limit(10));
    let slot = shell.take(call(1)).slot;
    let rate = Rate {
        concurrency_limit: Some(2),
        ..window(5, 4, ms(60_000))
    };
    shell.report(
        slot,
        Report {
            status: Some(429),
            throttled: Some(3),
            rate,
        },
    );
    assert_eq!(shell.governor.gauge().limit, 10);
    assert_eq!(shell.governor.gauge().rpm, None);
    assert_eq!(shell.storage.learned, None);
}

/// What an operator asks to have explained changes nothing.
#[test]
fn an_explanation_changes_nothing_and_foretells_what_the_report_does() {
    let mut settings = adaptive(1, 10, 20);
    settings.rpm.adaptive = true;
    let mut shell = Shell::new(settings);
    let slot = shell.take(call(1)).slot;
    let report = throttled_for(ms(5_000));
    let before = shell.governor.gauge();
    let explained = shell.governor.explained(shell.clock, &report);
    assert_eq!(shell.governor.gauge(), before);
    assert_eq!(shell.governor.cooldown(), None);
    shell.report(slot, report);
    assert_eq!(explained.cooldown(), shell.governor.cooldown());
    assert_eq!(explained.gauge().limit, shell.governor.gauge().limit);
}

/// One early 429 says nothing of a rate: too few calls were let through before.
#[test]
fn one_early_429_does_not_stop_a_source() {
    let mut shell = Shell::new(adaptive_rate());
    let slot = shell.take(call(1)).slot;
    shell.report(slot, status(429));
    let Refusal::Rpm { .. } = shell.refused(call(2)) else {
        panic!("not the rate");
    };
    assert_eq!(
        shell.governor.gauge().rpm.unwrap().remaining,
        0,
        "it is shown"
    );
    shell.pass(ms(2_000));
    let slot = shell.take(call(3)).slot;
    shell.report(slot, status(200));
    for name in 10..60 {
        shell.take(call(name));
    }
}

/// Workers that report nothing don't keep the trickle up for ever.
#[test]
fn a_trickle_ends_after_ten_minutes_without_a_report() {
    let mut shell = Shell::new(adaptive_rate());
    let slot = shell.take(call(1)).slot;
    shell.report(slot, status(429));
    shell.pass(LONGEST);
    for name in 10..60 {
        shell.take(call(name));
    }
}

/// At the very millisecond of a reset the new window's limit holds too.
#[test]
fn at_the_moment_of_a_reset_no_more_are_granted_than_just_after_it() {
    for late in [0, 1] {
        let mut shell = Shell::new(adaptive_rate());
        let slot = shell.take(call(1)).slot;
        shell.report(slot, stated(window(4, 0, ms(3_000))));
        shell.clock = shell.clock.plus(ms(3_000 + late));
        let granted = (10..40).filter(|name| {
            let verdict = shell.refused_or_granted(call(*name));
            crate::support::slot_of(&verdict).is_some()
        });
        assert_eq!(granted.count(), 2, "half of the limit");
    }
}

/// One report has no say beyond ten minutes, and what it says is kept.
#[test]
fn after_its_reset_a_stated_window_holds_for_a_minute_at_most() {
    for (reset, then) in [(600_000, 0), (90_000, 60_000), (3_000, 3_000)] {
        let mut settings = adaptive_rate();
        settings.lease.term = ms(500);
        let mut shell = Shell::new(settings);
        let slot = shell.take(call(1)).slot;
        shell.report(slot, stated(window(1, 0, ms(reset))));
        shell.pass(ms(reset));
        shell.take(call(2));
        if then > 0 {
            let Refusal::Rpm { opens_at } = shell.refused(call(3)) else {
                panic!("not the rate");
            };
            assert_eq!(opens_at, shell.clock.plus(ms(then)));
            shell.pass(ms(then));
        }
        shell.take(call(4));
    }
}

/// That the limit has recovered from a cool-down is kept.
#[test]
fn a_recovery_from_a_cool_down_survives_a_restart() {
    let mut crowd = Crowd::new(adaptive(1, 4, 4));
    crowd.turn(|_| status(200));
    let slot = crowd.held.pop().unwrap().0;
    crowd.shell.report(slot, stated(window(100, 0, ms(3_000))));
    crowd.shell.pass(ms(3_000));
    assert_eq!(crowd.limit(), 2);
    for _ in 0..3 {
        crowd.turn(|_| status(200));
    }
    assert_eq!(crowd.limit(), 4);
    crowd.shell.reload();
    assert_eq!(crowd.limit(), 4);
}
