//! What callers see: routes, bodies, headers, statuses. Pure, so that every
//! byte of the contract is tested natively.
//!
//! Nothing here decides anything; it reads what was sent and writes down what
//! was decided.

pub mod answer;
pub mod line;
pub mod metrics;
pub mod page;
pub mod paging;
pub mod problem;
pub mod request;
pub mod route;

/// The most bytes of a body that is read.
pub const MOST_BODY_BYTES: u32 = 64 * 1024;
