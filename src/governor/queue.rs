//! The waiters: a first-come-first-served queue of places, each with its own
//! way out.
//!
//! A place belongs to one attempt; callers that repeat the attempt join it and
//! wait each within their own time. A place goes when its last caller does.
//! This module never decides who may be granted, only who is next.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::{AttemptId, KeyId, RequestId, SlotSecret};
use super::time::Millis;

/// Callers that may share one place; a further one is refused as if the queue
/// were full.
pub const MAX_CALLERS_OF_A_PLACE: usize = 16;

/// Where a place stands: by arrival, then by the order in which it was taken.
pub type Order = (Millis, u64);

/// One call that waits.
#[derive(Clone, Debug)]
pub struct Caller {
    pub request: RequestId,
    pub key: KeyId,
    /// The address at the door, as text for the access log.
    pub ip: Option<Box<str>>,
    pub arrived: Millis,
    /// When it must be answered.
    pub deadline: Millis,
    /// The secret of the slot, should this caller be the one who gets it.
    pub secret: SlotSecret,
}

/// One place in the queue.
#[derive(Clone, Debug)]
pub struct Place {
    pub attempt: AttemptId,
    /// Never empty while the place stands in the queue.
    pub callers: Vec<Caller>,
}

/// The queue of a source.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    places: BTreeMap<Order, Place>,
    attempts: BTreeMap<AttemptId, Order>,
    deadlines: BTreeSet<(Millis, Order, RequestId)>,
    tickets: u64,
}

impl Queue {
    /// Places taken.
    pub fn depth(&self) -> u32 {
        u32::try_from(self.places.len()).unwrap_or(u32::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub fn earliest_deadline(&self) -> Option<Millis> {
        self.deadlines.first().map(|(deadline, ..)| *deadline)
    }

    /// The place of an attempt that already waits.
    pub fn of_attempt(&self, attempt: AttemptId) -> Option<&Place> {
        self.places.get(self.attempts.get(&attempt)?)
    }

    /// Takes a new place by the caller's arrival. The attempt must not wait yet.
    pub fn push(&mut self, attempt: AttemptId, caller: Caller) {
        self.tickets = self.tickets.saturating_add(1);
        let order = (caller.arrived, self.tickets);
        self.attempts.insert(attempt, order);
        self.deadlines
            .insert((caller.deadline, order, caller.request));
        self.places.insert(
            order,
            Place {
                attempt,
                callers: vec![caller],
            },
        );
    }

    /// Adds a caller to the place of its attempt. The same request come again
    /// takes its own place over. False if there is no place or no room in it.
    pub fn join(&mut self, attempt: AttemptId, caller: Caller) -> bool {
        let Some(order) = self.attempts.get(&attempt) else {
            return false;
        };
        let Some(place) = self.places.get_mut(order) else {
            return false;
        };
        let same = place
            .callers
            .iter_mut()
            .find(|c| c.request == caller.request);
        let entry = (caller.deadline, *order, caller.request);
        if let Some(former) = same {
            self.deadlines
                .remove(&(former.deadline, *order, former.request));
            *former = caller;
        } else if place.callers.len() < MAX_CALLERS_OF_A_PLACE {
            place.callers.push(caller);
        } else {
            return false;
        }
        self.deadlines.insert(entry);
        true
    }

    /// Takes the head out, with all its callers.
    pub fn pop(&mut self) -> Option<Place> {
        let (order, place) = self.places.pop_first()?;
        self.attempts.remove(&place.attempt);
        for caller in &place.callers {
            self.deadlines
                .remove(&(caller.deadline, order, caller.request));
        }
        Some(place)
    }

    /// Takes out one caller whose deadline has come by `now`.
    pub fn expire(&mut self, now: Millis) -> Option<Caller> {
        let (deadline, order, request) = *self.deadlines.first()?;
        if deadline > now {
            return None;
        }
        self.take(order, request)
    }

    /// Takes out the caller that went away.
    pub fn leave(&mut self, attempt: AttemptId, request: RequestId) -> Option<Caller> {
        let order = *self.attempts.get(&attempt)?;
        self.take(order, request)
    }

    /// Takes out every caller for whom `gone` says so, in order of the queue.
    pub fn take_all(&mut self, gone: impl Fn(&Caller) -> bool) -> Vec<Caller> {
        let leaving: Vec<(Order, RequestId)> = self
            .places
            .iter()
            .flat_map(|(order, place)| place.callers.iter().map(move |c| (*order, c)))
            .filter(|(_, caller)| gone(caller))
            .map(|(order, caller)| (order, caller.request))
            .collect();
        leaving
            .into_iter()
            .filter_map(|(order, request)| self.take(order, request))
            .collect()
    }

    fn take(&mut self, order: Order, request: RequestId) -> Option<Caller> {
        let place = self.places.get_mut(&order)?;
        let index = place.callers.iter().position(|c| c.request == request)?;
        let caller = place.callers.remove(index);
        self.deadlines.remove(&(caller.deadline, order, request));
        if place.callers.is_empty() {
            let attempt = place.attempt;
            self.places.remove(&order);
            self.attempts.remove(&attempt);
        }
        Some(caller)
    }

    /// What must hold between the places and their indexes.
    ///
    /// # Errors
    /// Says what doesn't hold.
    pub fn audit(&self) -> Result<(), &'static str> {
        if self.attempts.len() != self.places.len() {
            return Err("a place without its attempt, or an attempt without its place");
        }
        let mut callers: usize = 0;
        for (order, place) in &self.places {
            if place.callers.is_empty() {
                return Err("a place that nobody waits in");
            }
            if self.attempts.get(&place.attempt) != Some(order) {
                return Err("an attempt leads to another place");
            }
            for caller in &place.callers {
                callers = callers.saturating_add(1);
                if !self
                    .deadlines
                    .contains(&(caller.deadline, *order, caller.request))
                {
                    return Err("a caller whose deadline nobody watches");
                }
            }
        }
        if callers != self.deadlines.len() {
            return Err("a deadline that nobody waits for");
        }
        Ok(())
    }
}
