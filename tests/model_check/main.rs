//! The protocol, walked to exhaustion: the real governor with two slots, three
//! callers, crashes, losses, leases that end, retries and a queue, in every
//! order in which it can happen.

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

mod bench;
mod callers;
mod promises;
mod system;
mod terms;

use stateright::{Checker, HasDiscoveries, Model};

use bench::Bench;
use system::Sabotage;

/// Walks the whole space; the number of its states.
fn walk(name: &str, bench: Bench) -> usize {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checker = bench.checker().threads(threads).spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("{name}: {states} states, depth {}", checker.max_depth());
    checker.assert_properties();
    states
}

/// So much may go wrong on one path, of each kind.
fn faults(crashes: u8, losses: u8, departures: u8) -> Bench {
    Bench {
        crashes,
        losses,
        departures,
        ..Bench::new(Sabotage::None, bench::SLOTS)
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow where the core isn't optimised")]
fn three_callers_of_two_slots_and_a_crash() {
    walk("two slots, three callers, a crash", faults(1, 0, 0));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow where the core isn't optimised")]
fn three_callers_of_two_slots_and_a_lost_message() {
    walk("two slots, three callers, a lost message", faults(0, 1, 0));
}

#[test]
fn three_callers_of_two_slots_one_of_whom_goes_away() {
    walk("two slots, three callers, one goes", faults(0, 0, 1));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow where the core isn't optimised")]
fn two_callers_of_one_slot_and_one_of_each_fault() {
    let bench = Bench {
        slots: 1,
        callers: 2,
        ..Bench::new(Sabotage::None, 1)
    };
    walk("one slot, two callers, one of each", bench);
}

#[test]
#[ignore = "takes minutes"]
fn three_callers_of_two_slots_a_crash_and_a_lost_message() {
    let name = "two slots, three callers, a crash and a lost message";
    walk(name, faults(1, 1, 0));
}

#[test]
#[ignore = "takes minutes"]
fn three_callers_of_two_slots_a_crash_and_one_goes() {
    walk(
        "two slots, three callers, a crash, one goes",
        faults(1, 0, 1),
    );
}

#[test]
#[ignore = "takes minutes"]
fn three_callers_of_two_slots_a_lost_message_and_one_goes() {
    let name = "two slots, three callers, a lost message, one goes";
    walk(name, faults(0, 1, 1));
}

/// What is broken on purpose is found, and by the promise that it breaks.
fn finds(sabotage: Sabotage, crashes: u8, promise: &'static str) {
    let bench = Bench {
        sabotage,
        ..faults(crashes, 0, 0)
    };
    let checker = bench
        .checker()
        .finish_when(HasDiscoveries::AnyOf([promise].into()))
        .spawn_bfs()
        .join();
    let path = checker.discovery(promise);
    let path = path.unwrap_or_else(|| panic!("{sabotage:?} breaks nothing"));
    println!(
        "{sabotage:?}: not \"{promise}\", after {:?}",
        path.into_actions()
    );
}

#[test]
fn a_restart_that_forgets_holders_is_found() {
    let promise = "never more holders than the limit";
    finds(Sabotage::ForgetsHolders, 1, promise);
}

#[test]
fn an_extension_that_is_not_written_is_found() {
    let promise = "a holder's slot is its own as long as promised";
    finds(Sabotage::ForgetsExtensions, 1, promise);
}

#[test]
fn an_answer_before_its_row_is_durable_is_found() {
    let promise = "a holder's slot is its own as long as promised";
    finds(Sabotage::AnswersTooEarly, 1, promise);
}

#[test]
fn an_object_that_nobody_wakes_is_found() {
    finds(Sabotage::NoTimer, 0, "nobody waits beside a free slot");
}

#[test]
fn an_answer_that_is_dropped_is_found() {
    finds(Sabotage::DropsHandOver, 0, "answered in time");
}
