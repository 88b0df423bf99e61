//! The invariants of a governor, in one place: checked after every step in the
//! tests, and whenever a governor is loaded.

use super::Governor;

impl Governor {
    /// # Errors
    /// Says which invariant is broken.
    pub fn audit(&self) -> Result<(), &'static str> {
        self.slots.audit()?;
        self.queue.audit()?;
        self.rpm.audit()?;
        if self
            .slots
            .by_age()
            .iter()
            .any(|slot| slot.reference > self.last)
        {
            return Err("a slot from the future");
        }
        let open = self.closed(self.seen).is_none() && self.has_free_slot();
        if open && !self.queue.is_empty() {
            return Err("a waiter, a free slot and open gates");
        }
        if self
            .queue
            .earliest_deadline()
            .is_some_and(|at| at <= self.seen)
        {
            return Err("a waiter past its deadline");
        }
        if self.slots.earliest_end().is_some_and(|at| at <= self.seen) {
            return Err("a lease past its end");
        }
        Ok(())
    }
}
