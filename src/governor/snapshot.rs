//! What of a governor outlives the object: the persisted form, as it is read
//! back. Waiters are not in it: the Worker carries them over.
//!
//! Storage is the truth: everything that a governor knows beside its waiters
//! comes from here.

use std::collections::VecDeque;

use super::ids::Ref;
use super::ring::Block;
use super::slots::Slot;
use super::tally::Tally;
use super::time::Millis;

#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The latest moment that any row speaks of: the clock may have stepped
    /// back since.
    pub seen: Millis,
    /// The last attempt's ordinal.
    pub last: Option<Ref>,
    /// The row after the one written last.
    pub next_row: u32,
    /// The row after the one of the doorstep that was written last; 0 if none.
    pub next_doorstep: u32,
    /// Blocks of rows in order of use.
    pub blocks: VecDeque<Block>,
    /// Leases that had not ended.
    pub held: Vec<Slot>,
    /// Grants of the RPM window, oldest first.
    pub window: Vec<(Millis, u32)>,
    /// When the cool-down opens.
    pub cooldown: Option<Millis>,
    /// What was learned, as it was written down.
    pub learned: Option<String>,
    /// What was counted when that was last written down, and what the log has
    /// since.
    pub tally: Tally,
}
