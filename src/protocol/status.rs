//! The statuses by which an object speaks to its Worker. No caller sees one: the
//! Worker takes each of them as said here, and so does the version before.

/// Statuses from here on are between the two.
pub const INTERNAL: u16 = 590;
/// Memory was lost, or the object can't answer: call again.
pub const AGAIN: u16 = 599;
/// The key's family is dead here, for good; the body says why, in a word.
pub const DEAD_KEY: u16 = 598;
/// The door decided by another policy than stands; the body is the one that
/// does.
pub const STALE_POLICY: u16 = 597;
/// There is no source.
pub const ABSENT: u16 = 596;
