//! How a Worker calls an object: tries in a row with growing pauses, each with a
//! deadline. `worker/object-call.js` does so for lock calls, `edge::forward` for
//! others, and the simulation for its callers.

use crate::governor::time::Span;

/// How long an object may take, beyond the time that the caller queues.
pub const PATIENCE: Span = Span::from_seconds(10);
/// Calls in a row that may fail.
pub const MOST_TRIES: u32 = 6;
/// The pause before the second of them; it doubles with each.
pub const FIRST_PAUSE: Span = Span::from_ms(20);
/// A waiting call that stood this long before it failed starts the count anew.
pub const QUIET: Span = Span::from_seconds(1);
