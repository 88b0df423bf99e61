//! What the observer demands between two steps.

use std::collections::BTreeSet;

use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::command::Command;
use swarmvia_locks::governor::ring::{BLOCK, DOORSTEP};

use super::{Held, Observer};

impl Observer {
    /// What must hold between two steps.
    pub(super) fn settled(&mut self, command: &Command, after: &Governor) {
        assert!(
            self.recorded.is_none(),
            "recorded and not answered: {:?}",
            self.recorded
        );
        assert!(
            self.served.is_empty(),
            "granted and not answered: {:?}",
            self.served
        );
        if let Command::Dismiss { key } = command {
            assert!(self.waiters().all(|waiter| waiter.key != *key));
        }
        if self.has_new_policy(command) {
            let policy = &self.settings.access;
            assert!(self.waiters().all(|waiter| waiter.is_let_in(policy)));
            assert!(self.places.is_empty() || !policy.asks_anew(&self.policy_before));
        }
        if let Command::Close = command {
            assert!(self.places.is_empty());
        }
        after.audit().unwrap();
        let idle = self.has_room(&self.settings) && self.opens_at().is_none();
        assert!(
            !idle || self.places.is_empty(),
            "someone waits beside a free slot"
        );
        assert!(self.waiters().all(|waiter| waiter.deadline > self.now));
        self.check_view(after);
    }

    /// What the governor says of itself.
    pub fn check_view(&self, after: &Governor) {
        assert_eq!(after.gauge(), self.gauge(&self.settings));
        let cooldown = Some(self.cooldown).filter(|until| *until > self.now);
        assert_eq!(after.cooldown(), cooldown);
        assert_eq!(
            after.rpm_opens_at(),
            self.rpm_opens_at(&self.settings, self.now)
        );
        assert_eq!(after.has_waiters(), !self.places.is_empty());
        assert_eq!(held_slots(after), self.held);
        let gate = self.opens_at().filter(|_| !self.places.is_empty());
        let ends = self.held.iter().map(|slot| slot.lease_deadline);
        let next = ends
            .chain(self.waiters().map(|w| w.deadline))
            .chain(gate)
            .min();
        assert_eq!(
            after.deadline(),
            next,
            "the next moment at which something happens"
        );
        assert!(next.is_none_or(|at| at > self.now));
    }

    /// The log keeps the newest attempts, and storage stays bounded.
    pub fn check_rows(&mut self) {
        let keep = self.least_keep as usize;
        assert_eq!(
            self.missing(&self.written, keep),
            0,
            "of the newest attempts"
        );
        let missing = self.missing(&self.knocks, keep / 10);
        assert_eq!(missing, 0, "of the newest at the door");
        let knocks = self.rows.range(DOORSTEP..).count();
        assert!(knocks <= self.most_keep as usize / 10, "{knocks} rows");
        let pinned = self.rows.keys().filter(|row| self.pinned(**row));
        let blocks: BTreeSet<u32> = pinned.map(|row| row / BLOCK).collect();
        self.most_pinned = self.most_pinned.max(blocks.len());
        let most = (keep.div_ceil(BLOCK as usize) + 2 + self.most_pinned) * BLOCK as usize;
        let stored = self.rows.range(..DOORSTEP).count();
        assert!(stored <= most, "{stored} rows");
    }

    /// How many of the newest `keep` of these are not stored.
    fn missing(&self, written: &[u64], keep: usize) -> usize {
        let newest = &written[written.len().saturating_sub(keep)..];
        let stored: BTreeSet<u64> = self.rows.values().map(|row| row.reference).collect();
        newest
            .iter()
            .filter(|reference| !stored.contains(reference))
            .count()
    }
}

/// The held slots as the governor lists them.
pub fn held_slots(governor: &Governor) -> Vec<Held> {
    let held = governor.slots().into_iter().map(|slot| Held {
        row: slot.row,
        secret: slot.secret.0,
        reference: slot.reference.0,
        attempt: slot.attempt,
        request: slot.request,
        repeats: slot.repeats,
        lease_deadline: slot.lease_deadline,
        request_deadline: slot.request_deadline,
    });
    held.collect()
}
