//! What holds whatever is reported, hostile reports included.
//!
//! The cases are the same in every run. To look further:
//! `PROPTEST_RNG_SEED=$RANDOM PROPTEST_CASES=100000 cargo test --test learning`.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

mod support;

use proptest::prelude::*;
use proptest::sample::Index;

use support::{Shell, call, config, limit, ms, slot_of};
use swarmvia_locks::governor::command::Command;
use swarmvia_locks::governor::cooldown::LONGEST;
use swarmvia_locks::governor::ids::SlotId;
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::Span;
use swarmvia_locks::outcome::Report;
use swarmvia_locks::outcome::rate::Rate;

#[derive(Clone, Debug)]
enum Move {
    Take(u8),
    Report(Index, Report),
    Pass(Span),
    /// The clock goes on and nothing is told.
    Sleep(Span),
    Reload,
    Reset,
    Configure(Settings),
    /// Nothing may change.
    Explain(Report),
}

/// Small, large, and anything: whatever a caller may send.
fn number() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        2 => Just(None),
        4 => (0..30_u64).prop_map(Some),
        2 => (0..100_000_u64).prop_map(Some),
        1 => any::<u64>().prop_map(Some),
    ]
}

fn span() -> impl Strategy<Value = Option<Span>> {
    number().prop_map(|ms| ms.map(Span::from_ms))
}

fn report() -> impl Strategy<Value = Report> {
    let status = prop_oneof![
        1 => Just(None),
        3 => Just(Some(200)),
        3 => Just(Some(429)),
        1 => (100..600_u16).prop_map(Some),
    ];
    let limit = number().prop_map(|limit| limit.filter(|limit| *limit > 0));
    let rate = (limit, number(), span(), span(), span(), number());
    let tokens = (number(), span());
    let throttled = prop_oneof![3 => Just(None), 1 => (0..3_u64).prop_map(Some)];
    (status, throttled, rate, tokens).prop_map(|(status, throttled, rate, tokens)| Report {
        status,
        throttled,
        rate: Rate {
            limit: rate.0,
            remaining: rate.1,
            reset: rate.2,
            retry_after: rate.3,
            window: rate.4,
            concurrency_limit: rate.5,
            token_limit: None,
            token_remaining: tokens.0,
            token_reset: tokens.1,
        },
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let bounds = (1..6_u32, 0..6_u32, 0..30_u32);
    let rpm = prop_oneof![2 => Just(None), 1 => (1..40_u32).prop_map(Some)];
    let parts = (bounds, any::<bool>(), rpm, any::<bool>(), 1..60_u64);
    parts.prop_map(|((min, more, most), adaptive, rpm, rates, seconds)| {
        let mut settings = limit(min + more);
        settings.concurrency.adaptive = adaptive;
        settings.concurrency.min = min;
        settings.concurrency.max = min + more + most;
        settings.rpm.limit = rpm;
        settings.rpm.adaptive = rates;
        settings.lease.term = Span::from_seconds(seconds);
        settings.lease.request_timeout = Span::from_seconds(seconds * 2);
        settings
    })
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        8 => (1..12_u8).prop_map(Move::Take),
        12 => (any::<Index>(), report()).prop_map(|(index, report)| Move::Report(index, report)),
        4 => (0..5_000_u64).prop_map(|span| Move::Pass(ms(span))),
        1 => (0..900_000_u64).prop_map(|span| Move::Pass(ms(span))),
        1 => (0..120_000_u64).prop_map(|span| Move::Sleep(ms(span))),
        1 => Just(Move::Reload),
        1 => Just(Move::Reset),
        1 => settings().prop_map(Move::Configure),
        1 => report().prop_map(Move::Explain),
    ];
    proptest::collection::vec(one, 1..120)
}

struct World {
    shell: Shell,
    held: Vec<SlotId>,
    names: u128,
}

impl World {
    fn play(&mut self, next: Move) {
        match next {
            Move::Take(calls) => (0..calls).for_each(|_| self.take()),
            Move::Report(index, report) => {
                if !self.held.is_empty() {
                    let slot = self.held.swap_remove(index.index(self.held.len()));
                    self.shell.report(slot, report);
                }
            }
            Move::Pass(span) => self.shell.pass(span),
            Move::Sleep(span) => self.shell.clock = self.shell.clock.plus(span),
            Move::Reload => self.shell.reload(),
            Move::Reset => {
                self.shell.step(Command::Reset);
                assert_eq!(self.shell.governor.cooldown(), None);
            }
            Move::Configure(settings) => self.shell.configure(settings),
            Move::Explain(report) => {
                let before = self.view();
                let _ = self.shell.governor.explained(self.shell.clock, &report);
                assert_eq!(self.view(), before);
            }
        }
        self.check();
    }

    fn take(&mut self) {
        self.names += 1;
        self.shell.step(Command::Tick);
        let before = self.shell.governor.gauge();
        let verdict = self.shell.refused_or_granted(call(self.names));
        let granted = slot_of(&verdict);
        if granted.is_some() {
            assert!(before.in_use < before.limit, "{before:?}");
            assert!(before.rpm.is_none_or(|rpm| rpm.remaining > 0), "{before:?}");
        } else if before.in_use < before.limit {
            // A gate is closed then, and says until when.
            let governor = &self.shell.governor;
            let closed = governor.cooldown().max(governor.rpm_opens_at());
            assert!(closed.is_some(), "{verdict:?} {before:?}");
        }
        self.held.extend(granted);
    }

    fn view(&self) -> String {
        let governor = &self.shell.governor;
        format!(
            "{:?} {:?} {:?}",
            governor.gauge(),
            governor.cooldown(),
            governor.learned()
        )
    }

    fn check(&self) {
        let governor = &self.shell.governor;
        let bounds = &governor.settings().concurrency;
        let gauge = governor.gauge();
        if bounds.adaptive {
            assert!(
                (bounds.min..=bounds.max).contains(&gauge.limit),
                "{gauge:?}"
            );
        } else {
            assert_eq!(gauge.limit, bounds.limit);
        }
        // No report closes a gate for longer; the governor speaks of its last
        // moment, which may be a while ago.
        for at in [governor.cooldown(), governor.rpm_opens_at()]
            .into_iter()
            .flatten()
        {
            assert!(at <= self.shell.clock.plus(LONGEST), "closed until {at:?}");
        }
    }
}

proptest! {
    #![proptest_config(config("learning", 300))]

    #[test]
    fn the_limits_stay_within_their_bounds_and_no_gate_stays_closed(
        settings in settings(),
        moves in moves(),
    ) {
        let mut world = World { shell: Shell::new(settings), held: Vec::new(), names: 0 };
        for next in moves {
            world.play(next);
        }
    }
}
