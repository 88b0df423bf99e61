//! Deterministic simulation: the core in a shell without a platform, in virtual
//! time, with everything going wrong that can, and someone who counts.
//!
//! One seed is one run. To look further, or at one run again with its trace:
//! `RUNS=100000 SEED=$RANDOM cargo test --profile bench --test simulation`,
//! `RUNS=1 SEED=7 cargo test --test simulation -- --nocapture`.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

#[path = "../support/mod.rs"]
mod support;

mod books;
mod caller;
mod clockwork;
mod coverage;
mod disk;
mod gate;
mod object;
mod operator;
mod owner;
mod plan;
mod rest;
mod rng;
mod said;
mod worker;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use coverage::Coverage;
use world::World;

/// Runs where the core is compiled for speed, and where it isn't.
const RUNS: u64 = if cfg!(debug_assertions) { 150 } else { 10_000 };
const STEPS: u64 = 1_000;
/// So many steps reach every branch.
const ENOUGH_STEPS: u64 = 2_000_000;

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect(name))
}

/// Plays one run.
fn run(seed: u64, steps: u64, trace: bool, coverage: &mut Coverage) {
    let mut step = 0;
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(seed, trace);
        while step < steps && world.step() {
            step += 1;
        }
        world.wind_down();
        world.coverage
    }));
    let Ok(reached) = played else {
        panic!(
            "seed {seed} failed after {step} steps; again, with its trace:\n\
             RUNS=1 SEED={seed} STEPS={steps} cargo test --test simulation -- --nocapture"
        );
    };
    coverage.add(&reached);
}

fn runs(first: u64, runs: u64, steps: u64) -> Coverage {
    let next = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut coverage = Coverage::default();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= runs {
                return coverage;
            }
            run(first.wrapping_add(index), steps, runs == 1, &mut coverage);
        }
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut coverage = Coverage::default();
        for thread in all {
            coverage.add(&thread.join().expect("no run fails"));
        }
        coverage
    })
}

#[test]
fn every_promise_holds_whatever_fails() {
    let seed = number("SEED", 1);
    let count = number("RUNS", RUNS);
    let steps = number("STEPS", STEPS);
    let coverage = runs(seed, count, steps);
    println!("{count} runs of {steps} steps, from seed {seed}");
    println!("{coverage}");
    if count * steps >= ENOUGH_STEPS {
        let missing = coverage.missing();
        assert!(missing.is_empty(), "never reached: {missing:?}");
    }
}
