//! What the object stores: the rows of attempts and the cool-down, changed by
//! effects and read back as a snapshot.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use swarmvia_locks::governor::command::{Attempt, Effect};
use swarmvia_locks::governor::ids::{Ref, SlotSecret};
use swarmvia_locks::governor::ring::{BLOCK, Block, DOORSTEP};
use swarmvia_locks::governor::rpm::WINDOW;
use swarmvia_locks::governor::slots::Slot;
use swarmvia_locks::governor::snapshot::Snapshot;
use swarmvia_locks::governor::time::Millis;

/// One stored attempt.
#[derive(Clone, Debug)]
pub struct Row {
    pub attempt: Attempt,
    /// Present while the attempt holds its slot, or until its lease ends.
    pub secret: Option<SlotSecret>,
}

impl Row {
    /// When it took a slot, if it did.
    fn granted_at(&self) -> Option<Millis> {
        self.attempt.slot.is_some().then_some(self.attempt.at)
    }

    fn held(&self, now: Millis) -> Option<Slot> {
        let taken = self.attempt.slot.as_ref()?;
        (taken.lease_deadline > now).then_some(Slot {
            row: self.attempt.row,
            reference: self.attempt.reference,
            secret: self.secret?,
            attempt: taken.attempt,
            request: self.attempt.request,
            repeats: false,
            key: self.attempt.key?,
            granted_at: self.attempt.at,
            in_use: 0,
            lease_deadline: taken.lease_deadline,
            request_deadline: taken.request_deadline,
        })
    }
}

#[derive(Clone, Debug, Default)]
pub struct Storage {
    pub rows: BTreeMap<u32, Row>,
    pub cooldown: Option<Millis>,
    pub learned: Option<String>,
}

impl Storage {
    pub fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Record(attempt) => self.insert_or_replace(attempt),
            Effect::Extend {
                row,
                lease_deadline,
            } => self.extend(*row, *lease_deadline),
            Effect::End { row } => {
                if let Some(row) = self.rows.get_mut(row) {
                    row.secret = None;
                }
            }
            Effect::Discard { rows } => self.delete(rows),
            Effect::Cooldown { until } => self.cooldown = *until,
            Effect::Learned { text } => self.learned = Some(text.clone()),
            Effect::Answer { .. } | Effect::Ask { .. } => {}
        }
    }

    fn insert_or_replace(&mut self, attempt: &Attempt) {
        let row = Row {
            attempt: attempt.clone(),
            secret: attempt.slot.as_ref().map(|slot| slot.secret),
        };
        self.rows.insert(attempt.row, row);
    }

    fn extend(&mut self, row: u32, lease_deadline: Millis) {
        let row = self.rows.get_mut(&row);
        if let Some(slot) = row.and_then(|row| row.attempt.slot.as_mut()) {
            slot.lease_deadline = lease_deadline;
        }
    }

    fn delete(&mut self, rows: &Range<u32>) {
        self.rows.retain(|row, _| !rows.contains(row));
    }

    /// The latest moment that a row speaks of.
    pub fn seen(&self) -> Millis {
        let moments = self.rows.range(..DOORSTEP).map(|(_, row)| row.attempt.at);
        moments.max().unwrap_or(Millis::EPOCH)
    }

    /// What a governor is loaded from, when the clock shows `clock`.
    pub fn snapshot(&self, clock: Millis) -> Snapshot {
        let now = clock.max(self.seen());
        let (next_row, last) = self.after_last(0..DOORSTEP);
        let (next_doorstep, last_knock) = self.after_last(DOORSTEP..u32::MAX);
        Snapshot {
            seen: now,
            last: last.max(last_knock),
            next_row,
            next_doorstep,
            blocks: self.blocks(),
            held: self.rows.values().filter_map(|row| row.held(now)).collect(),
            window: self.window(now),
            cooldown: self.cooldown,
            learned: self.learned.clone(),
            ..Snapshot::default()
        }
    }

    /// The row after the one written last of these, and that one's ordinal.
    fn after_last(&self, rows: Range<u32>) -> (u32, Option<Ref>) {
        let rows = self.rows.range(rows).map(|(_, row)| &row.attempt);
        match rows.max_by_key(|attempt| attempt.reference) {
            Some(last) => (last.row + 1, Some(last.reference)),
            None => (0, None),
        }
    }

    fn blocks(&self) -> VecDeque<Block> {
        let mut blocks: BTreeMap<u32, (Ref, Option<Millis>)> = BTreeMap::new();
        for (number, row) in self.rows.range(..DOORSTEP) {
            let block = blocks.entry(number / BLOCK).or_insert((Ref(0), None));
            block.0 = block.0.max(row.attempt.reference);
            block.1 = block.1.max(row.granted_at());
        }
        let mut by_use: Vec<_> = blocks.into_iter().collect();
        by_use.sort_by_key(|(_, (newest, _))| *newest);
        let block = |(index, (_, last_grant))| Block { index, last_grant };
        by_use.into_iter().map(block).collect()
    }

    fn window(&self, now: Millis) -> Vec<(Millis, u32)> {
        let mut counts: BTreeMap<Millis, u32> = BTreeMap::new();
        for at in self.rows.values().filter_map(Row::granted_at) {
            if at.plus(WINDOW) > now {
                *counts.entry(at).or_default() += 1;
            }
        }
        counts.into_iter().collect()
    }
}
