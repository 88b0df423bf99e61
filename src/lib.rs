#![doc = include_str!("../README.md")]
//!
//! # Rooms
//!
//! | module | what it is for |
//! |---|---|
//! | [`governor`] | what admits: slots, queue, RPM gate, cool-down, settings; pure |
//! | [`outcome`] | what a release reports of the upstream |
//! | [`access`] | what a caller must show: keys, refresh tokens, policies |
//! | [`door`] | what is remembered of those who come to the door, and made of it |
//! | [`wire`] | what callers see: routes, bodies, headers, statuses |
//! | [`protocol`] | what the Worker and the objects say to each other |
//! | [`fields`] | JSON bodies, read field by field |
//! | [`json`] | JSON that is written |
//! | [`index`] | the ordered collections that all of them use |
//! | `edge` | the Worker and its objects; exists for wasm32 only |

pub mod access;
pub mod door;
#[cfg(target_arch = "wasm32")]
mod edge;
pub mod fields;
pub mod governor;
pub mod index;
pub mod json;
pub mod outcome;
pub mod protocol;
pub mod wire;
