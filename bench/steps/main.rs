//! What a step of the governor takes, and how that grows with what it holds.
//!
//! Without arguments: wall time of every case. `--case NAME --steps N` runs one
//! case and prints nothing, for callgrind: everything between entering and
//! leaving [`measured_steps`] is what is counted (`bench/core.mjs` does that).

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a bench that panics fails, and its numbers are small"
)]

mod cases;

use std::env;
use std::hint::black_box;
use std::time::Instant;

use cases::{CASES, World};

const STEPS: u32 = 20_000;
/// The quickest of so many runs counts: what disturbs only ever slows down.
const RUNS: u32 = 5;

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    // `cargo bench` adds `--bench`.
    let args: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .filter(|arg| *arg != "--bench")
        .collect();
    match args.as_slice() {
        [] => print_times(),
        ["--list"] => CASES.iter().for_each(|case| println!("{}", case.name)),
        ["--case", name, "--steps", steps] => {
            let case = CASES.iter().find(|case| case.name == *name);
            let mut world = World::new(case.expect("a case: --list shows them"));
            measured_steps(&mut world, steps.parse().expect("a number of steps"));
        }
        _ => panic!("usage: steps [--list | --case NAME --steps N]"),
    }
}

/// A name of its own, never inlined: callgrind looks for it.
#[inline(never)]
fn measured_steps(world: &mut World, steps: u32) {
    for _ in 0..steps {
        black_box(&mut *world).step();
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a native program that measures time"
)]
fn print_times() {
    for case in CASES {
        let quickest = (0..RUNS)
            .map(|_| {
                let mut world = World::new(case);
                measured_steps(&mut world, STEPS / 10);
                let began = Instant::now();
                measured_steps(&mut world, STEPS);
                began.elapsed()
            })
            .min()
            .expect("there are runs");
        println!("{} {}", case.name, quickest.as_nanos() / u128::from(STEPS));
    }
}
