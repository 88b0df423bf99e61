//! Situations that broke other systems of this kind, each from a public report
//! named beside it, as far as the machine without its platform can show them.
//! A test's name is the promise.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

#[path = "../support/mod.rs"]
mod support;

mod leaks;
mod learning;
mod let_in;
mod limits;
mod queue;
mod reasons;
mod renewal;
mod repeats;
mod restart;
