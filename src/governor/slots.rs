//! The leases: who holds a slot, until when.
//!
//! Slots in use are the leases that stand here, counted and never kept beside
//! them. A lower limit takes nothing away: it is debt, paid by releases. This
//! module decides nothing about admission and never hands a slot on.

use super::ids::{AttemptId, KeyId, Ref, RequestId, SlotId, SlotSecret};
use super::time::{Millis, Span};
use crate::index::{Index, Table};

/// One held slot.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The row that holds it, and so its log entry and its RPM mark.
    pub row: u32,
    pub reference: Ref,
    pub secret: SlotSecret,
    pub attempt: AttemptId,
    pub request: RequestId,
    /// That request repeats another one, which was queued before it and is gone.
    /// False where it isn't known any more.
    pub repeats: bool,
    pub key: KeyId,
    pub granted_at: Millis,
    /// Slots in use right after the grant; 0: not known any more.
    pub in_use: u32,
    pub lease_deadline: Millis,
    pub request_deadline: Millis,
}

impl Slot {
    /// Its place among the ends.
    fn end_key(&self) -> u128 {
        self.lease_deadline.then(self.row.into())
    }

    pub fn id(&self) -> SlotId {
        SlotId {
            row: self.row,
            secret: self.secret,
        }
    }
}

/// What a renewal comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease now ends at `deadline`; `moved` unless it did so before.
    Extended { deadline: Millis, moved: bool },
    /// It already reaches the request deadline.
    Capped,
}

/// All held slots of a source.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    /// By row.
    held: Table<Slot>,
    /// By the end of the lease: the row.
    ends: Index,
    /// By attempt: the row.
    attempts: Index,
}

impl Slots {
    pub fn in_use(&self) -> u32 {
        u32::try_from(self.held.len()).unwrap_or(u32::MAX)
    }

    pub fn earliest_end(&self) -> Option<Millis> {
        self.ends.first().map(|(key, _)| Millis::of_key(key))
    }

    pub fn holds_row(&self, row: u32) -> bool {
        self.held.contains(row.into())
    }

    pub fn of_attempt(&self, attempt: AttemptId) -> Option<&Slot> {
        self.of_row(self.attempts.get(attempt.0)?)
    }

    /// The slot that `id` names, if it is held and the secret is right.
    pub fn find(&self, id: SlotId) -> Option<&Slot> {
        self.of_row(id.row)
            .filter(|slot| slot.secret.matches(id.secret))
    }

    fn of_row(&self, row: u32) -> Option<&Slot> {
        self.held.get(row.into())
    }

    pub fn find_ref(&self, reference: Ref) -> Option<&Slot> {
        let mut all = self.held.iter().map(|(_, slot)| slot);
        all.find(|slot| slot.reference == reference)
    }

    /// Held slots in the order of their grants.
    pub fn by_age(&self) -> Vec<&Slot> {
        let mut order = Index::default();
        for (_, slot) in self.held.iter() {
            order.insert(slot.reference.0.into(), slot.row);
        }
        let rows = order.range_from(0);
        rows.filter_map(|(_, row)| self.of_row(row)).collect()
    }

    pub fn insert(&mut self, slot: Slot) {
        let row = slot.row;
        self.ends.insert(slot.end_key(), row);
        self.attempts.insert(slot.attempt.0, row);
        if let (_, Some(displaced)) = self.held.insert(row.into(), slot) {
            // Can't be: a held row is never handed out again. Keep the indexes
            // whole all the same; the audit reports it.
            self.forget(&displaced);
        }
    }

    /// Extends the lease to `now + term`, at most to the request deadline, and
    /// never to an earlier moment than it has.
    pub fn renew(&mut self, row: u32, now: Millis, term: Span) -> Option<Renewal> {
        let slot = self.held.get_mut(row.into())?;
        if slot.lease_deadline >= slot.request_deadline {
            return Some(Renewal::Capped);
        }
        let wanted = now.plus(term).min(slot.request_deadline);
        let moved = wanted > slot.lease_deadline;
        if moved {
            self.ends.remove(slot.end_key());
            slot.lease_deadline = wanted;
            self.ends.insert(slot.end_key(), row);
        }
        Some(Renewal::Extended {
            deadline: slot.lease_deadline,
            moved,
        })
    }

    pub fn remove(&mut self, row: u32) -> Option<Slot> {
        let slot = self.held.remove(row.into())?;
        self.forget(&slot);
        Some(slot)
    }

    /// Takes back one slot whose lease has ended by `now`, the earliest first.
    pub fn expire(&mut self, now: Millis) -> Option<Slot> {
        let (key, row) = self.ends.first()?;
        if Millis::of_key(key) > now {
            return None;
        }
        self.remove(row)
    }

    fn forget(&mut self, slot: &Slot) {
        self.ends.remove(slot.end_key());
        if self.attempts.get(slot.attempt.0) == Some(slot.row) {
            self.attempts.remove(slot.attempt.0);
        }
    }

    /// What must hold between the leases and their indexes.
    ///
    /// # Errors
    /// Says what doesn't hold.
    pub fn audit(&self) -> Result<(), &'static str> {
        if self.ends.len() != self.held.len() || self.attempts.len() != self.held.len() {
            return Err("a lease without its index, or an index without its lease");
        }
        for (row, slot) in self.held.iter() {
            let stands = self.ends.get(slot.end_key());
            if row != u128::from(slot.row) || stands != Some(slot.row) {
                return Err("a lease is indexed under another end");
            }
            if self.attempts.get(slot.attempt.0) != Some(slot.row) {
                return Err("an attempt leads to another slot");
            }
            if slot.lease_deadline > slot.request_deadline {
                return Err("a lease outlives its request deadline");
            }
        }
        Ok(())
    }
}
