//! Which stored row the next attempt is written to.
//!
//! The attempts of a source are a ring of rows: a new one overwrites the
//! oldest, so trimming costs nothing. Rows are handed out in blocks of
//! [`BLOCK`]; the block used longest ago comes next, unless a grant in it still
//! counts in the RPM window, in which case the ring grows by a block. A row that
//! holds a slot is never handed out.
//!
//! Refusals of callers without a live key have a small ring of their own, from
//! [`DOORSTEP`] on: whoever knocks can't push others out of the log.

use std::collections::VecDeque;
use std::ops::Range;

use super::rpm::WINDOW;
use super::time::Millis;

/// Rows of a block: the bookkeeping is one entry per block, not per row.
pub const BLOCK: u32 = 64;

/// The first row of the doorstep's ring: far beyond where the other can grow.
pub const DOORSTEP: u32 = 1 << 31;

/// A tenth of the most attempts that a source may keep.
const MOST_DOORSTEP_ROWS: u32 = 10_000;

/// A run of [`BLOCK`] rows, from `index * BLOCK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub index: u32,
    /// When the last grant in it was made, if any was.
    pub last_grant: Option<Millis>,
}

impl Block {
    fn first_row(self) -> u32 {
        self.index.saturating_mul(BLOCK)
    }

    fn rows(self) -> Range<u32> {
        self.first_row()..self.first_row().saturating_add(BLOCK)
    }

    fn counts_in_window(self, now: Millis) -> bool {
        self.last_grant.is_some_and(|at| at.plus(WINDOW) > now)
    }
}

/// The ring, in order of use: the front was used longest ago.
#[derive(Clone, Debug)]
pub struct Ring {
    /// How many attempts are to be kept.
    keep: u32,
    /// All blocks but the current one.
    blocks: VecDeque<Block>,
    current: Block,
    /// The next row of the current block.
    next: u32,
    /// The next row of the doorstep's ring, from 0.
    next_doorstep: u32,
}

impl Ring {
    pub fn empty(keep: u32) -> Self {
        let current = Block {
            index: 0,
            last_grant: None,
        };
        Self {
            keep,
            blocks: VecDeque::new(),
            current,
            next: 0,
            next_doorstep: 0,
        }
    }

    /// `used`: the stored blocks in order of use; `next`: the row after the one
    /// written last.
    pub fn restored(keep: u32, mut used: VecDeque<Block>, next: u32) -> Self {
        match used.pop_back() {
            None => Self::empty(keep),
            Some(current) => Self {
                keep,
                blocks: used,
                current,
                next,
                next_doorstep: 0,
            },
        }
    }

    /// `row`: the one after the row of the doorstep written last.
    #[must_use]
    pub fn with_doorstep_at(mut self, row: u32) -> Self {
        self.next_doorstep = row.saturating_sub(DOORSTEP);
        self
    }

    /// Keeps another number of attempts from now on.
    pub fn set_keep(&mut self, keep: u32) {
        self.keep = keep;
    }

    /// A tenth of what is kept.
    fn doorstep_rows(&self) -> u32 {
        self.keep.div_euclid(10).max(1)
    }

    /// A row for a refusal of someone without a live key, and rows that may be
    /// deleted at that.
    ///
    /// Where the ring was made smaller, the rows beyond its size may be the
    /// newest: they go when a lap within its size is complete, not before.
    pub fn allocate_doorstep(&mut self) -> (u32, Option<Range<u32>>) {
        let size = self.doorstep_rows();
        let beyond = DOORSTEP.saturating_add(size)..DOORSTEP.saturating_add(MOST_DOORSTEP_ROWS);
        let lap_complete = self.next_doorstep == size;
        let row = if self.next_doorstep < size {
            self.next_doorstep
        } else {
            0
        };
        self.next_doorstep = row.saturating_add(1);
        let surplus = Some(beyond).filter(|rows| lap_complete && !rows.is_empty());
        (DOORSTEP.saturating_add(row), surplus)
    }

    /// A row for an attempt made at `now`, which `is_grant` or isn't.
    pub fn allocate(&mut self, now: Millis, is_grant: bool, held: impl Fn(u32) -> bool) -> u32 {
        let row = loop {
            let row = self.next;
            if !self.current.rows().contains(&row) {
                self.turn(now, &held);
                continue;
            }
            self.next = row.saturating_add(1);
            if !held(row) {
                break row;
            }
        };
        if is_grant {
            self.current.last_grant = Some(now);
        }
        row
    }

    /// Goes on to the block used longest ago, or to a new one.
    fn turn(&mut self, now: Millis, held: &impl Fn(u32) -> bool) {
        self.blocks.push_back(self.current);
        // The blocks used last hold what is to be kept, whatever else stands
        // before them because it can't be overwritten yet.
        let kept = usize::try_from(self.keep.div_ceil(BLOCK)).unwrap_or(usize::MAX);
        let old_enough = self.blocks.len().saturating_add(1).saturating_sub(kept);
        let reusable = self
            .blocks
            .iter()
            .take(old_enough)
            .position(|block| !block.counts_in_window(now) && !block.rows().all(held));
        let block = reusable.and_then(|index| self.blocks.remove(index));
        self.current = block.unwrap_or_else(|| Block {
            index: self.fresh_index(),
            last_grant: None,
        });
        self.current.last_grant = None;
        self.next = self.current.first_row();
    }

    /// A block beyond the size that is to be kept, of which no row is needed any
    /// more. It is out of the ring when this returns; its rows may be deleted.
    pub fn surplus(&mut self, now: Millis, held: impl Fn(u32) -> bool) -> Option<Range<u32>> {
        let wanted = self.keep.div_ceil(BLOCK).saturating_add(1);
        if u32::try_from(self.blocks.len()).unwrap_or(u32::MAX) <= wanted {
            return None;
        }
        let front = *self.blocks.front()?;
        if front.counts_in_window(now) || front.rows().any(held) {
            return None;
        }
        self.blocks.pop_front();
        Some(front.rows())
    }

    /// The lowest index that no block has.
    fn fresh_index(&self) -> u32 {
        // One of so many is free: there is one more than there are blocks.
        let mut taken = vec![false; self.blocks.len().saturating_add(1)];
        for block in &self.blocks {
            if let Some(taken) = taken.get_mut(block.index as usize) {
                *taken = true;
            }
        }
        let free = taken.iter().position(|taken| !taken).unwrap_or_default();
        u32::try_from(free).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn at(ms: u64) -> Millis {
        Millis::from_epoch(ms)
    }

    #[test]
    fn refusals_overwrite_the_oldest_once_enough_are_kept() {
        let mut ring = Ring::empty(100);
        let rows: Vec<u32> = (0..256)
            .map(|_| ring.allocate(at(0), false, |_| false))
            .collect();
        assert_eq!(rows[127], 127);
        assert_eq!(rows[128], 0, "two blocks hold 100");
        assert_eq!(rows[255], 127);
    }

    #[test]
    fn grants_of_the_window_are_not_overwritten() {
        let mut ring = Ring::empty(100);
        let rows: BTreeSet<u32> = (0..1000)
            .map(|_| ring.allocate(at(5), true, |_| false))
            .collect();
        assert_eq!(rows.len(), 1000);
        assert_eq!(ring.allocate(at(60_004), true, |_| false), 1000);
        let mut late = Ring::empty(100);
        for _ in 0..128 {
            late.allocate(at(5), true, |_| false);
        }
        assert_eq!(late.allocate(at(60_005), true, |_| false), 0);
    }

    #[test]
    fn a_held_row_is_passed_over() {
        let mut ring = Ring::empty(100);
        for _ in 0..128 {
            ring.allocate(at(0), false, |_| false);
        }
        let row = ring.allocate(at(0), false, |row| row < 3);
        assert_eq!(row, 3);
        let mut full = Ring::empty(100);
        for _ in 0..128 {
            full.allocate(at(0), false, |_| false);
        }
        assert_eq!(full.allocate(at(0), false, |row| row < 128), 128);
    }

    #[test]
    fn the_doorstep_has_a_ring_of_its_own() {
        let mut ring = Ring::empty(100);
        let rows: Vec<u32> = (0..11)
            .map(|_| ring.allocate_doorstep().0 - DOORSTEP)
            .collect();
        assert_eq!(rows, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
    }

    #[test]
    fn a_smaller_doorstep_lets_go_of_rows_once_newer_ones_stand_within_it() {
        let mut ring = Ring::empty(200).with_doorstep_at(DOORSTEP + 14);
        assert_eq!(ring.allocate_doorstep(), (DOORSTEP + 14, None));
        ring.set_keep(100);
        for row in 0..10 {
            assert_eq!(ring.allocate_doorstep(), (DOORSTEP + row, None));
        }
        let (row, surplus) = ring.allocate_doorstep();
        assert_eq!(
            (row, surplus.map(|rows| rows.start)),
            (DOORSTEP, Some(DOORSTEP + 10))
        );
    }

    #[test]
    fn a_ring_that_grew_shrinks_again() {
        let mut ring = Ring::empty(100);
        for _ in 0..1000 {
            ring.allocate(at(0), true, |_| false);
        }
        assert_eq!(ring.surplus(at(59_999), |_| false), None);
        let mut dropped = 0;
        while let Some(rows) = ring.surplus(at(60_000), |_| false) {
            assert_eq!(rows.len(), 64);
            dropped += 1;
        }
        assert!(dropped >= 10, "{dropped}");
    }
}
