//! What holds for every sequence of calls, restarts and clocks.
//!
//! The cases are the same in every run. To look further:
//! `PROPTEST_RNG_SEED=$RANDOM PROPTEST_CASES=100000 cargo test --test properties`.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;

use swarmvia_locks::governor::command::Command;

use support::config;
use support::moves::{Move, moves, settings, writing};
use support::world::World;
use support::{limit, ms};

proptest! {
    #![proptest_config(config("properties", 600))]

    #[test]
    fn every_step_keeps_every_promise(settings in settings(), moves in vec(moves(), 1..120)) {
        let mut world = World::new(settings);
        for next in moves {
            world.play(next);
        }
    }
}

/// The smallest number of attempts that a source can be told to keep, in blocks
/// of rows: two hold them, one is being written, one may still be deleted; and
/// a tenth for those without a key.
const ROWS_OF_A_QUIET_SOURCE: usize = 4 * 64 + 10;

proptest! {
    #![proptest_config(config("properties", 60))]

    #[test]
    fn rows_stay_bounded_and_the_newest_attempts_are_kept(
        settings in settings(),
        moves in vec(writing(), 1..24),
    ) {
        let mut world = World::new(settings);
        for next in moves {
            world.play(next);
        }
        let mut quiet = limit(1);
        quiet.log.keep = 100;
        world.turn(Command::Configure(Box::new(quiet)));
        // Two laps of the rows for those without a key.
        world.play(Move::TurnedAway(vec![false; 20]));
        world.play(Move::Pass(ms(900_000)));
        for _ in 0..100 {
            world.play(Move::Tick);
        }
        prop_assert!(world.shell.storage.rows.len() <= ROWS_OF_A_QUIET_SOURCE);
    }
}

#[test]
fn sixteen_callers_share_a_place_and_a_seventeenth_does_not() {
    let mut world = World::new(limit(1));
    let (attempt, retry) = (1, false);
    for wait in [0].into_iter().chain([5_000; 18]) {
        // The first attempt holds the slot, the second one's callers wait.
        let attempt = attempt + u128::from(wait > 0);
        let wait = ms(wait);
        world.play(Move::Acquire {
            attempt,
            wait,
            life: None,
            retry,
        });
    }
    assert_eq!(world.observer.places[0].waiters.len(), 16);
    world.play(Move::Pass(ms(30_000)));
    assert!(world.observer.places.is_empty());
}
