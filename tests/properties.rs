//! What holds for every sequence of calls, restarts and clocks.
//!
//! The cases are the same in every run. To look further:
//! `PROPTEST_RNG_SEED=$RANDOM PROPTEST_CASES=100000 cargo test --test properties`.

mod support;

use std::env;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed};

use support::ms;
use support::world::{Move, World, moves, settings};

/// Sequences that once failed; they are run first.
const REGRESSIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/proptest-regressions/properties.txt"
);

fn config(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig::default();
    config.failure_persistence = Some(Box::new(FileFailurePersistence::Direct(REGRESSIONS)));
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn every_step_keeps_every_promise(settings in settings(), moves in vec(moves(), 1..120)) {
        let mut world = World::new(settings);
        for next in moves {
            world.play(next);
        }
    }
}
