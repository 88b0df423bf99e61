//! What an isolate remembers at the door, and what it makes of it: policies, keys
//! that are dead, refusals on their way into a log; and who is let in at the
//! object.
//!
//! Pure: `now` comes in, and nothing is sent from here. Everything is bounded,
//! whatever strangers do: what was used longest ago makes room.

pub mod admit;
pub mod dead;
pub mod policies;
pub mod refusals;
