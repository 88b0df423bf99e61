//! The waiters: a first-come-first-served queue of places, each with its own
//! way out.
//!
//! A place belongs to one attempt; callers that repeat the attempt join it and
//! wait each within their own time, and no longer than their key lives. A place
//! goes when its last caller does.
//! This module never decides who may be granted, only who is next.

use super::ids::{AttemptId, KeyId, RequestId, SlotSecret};
use super::time::Millis;
use crate::index::{Index, Table};
use crate::wire::request::Carrier;

/// Callers that may share one place; a further one is refused as if the queue
/// were full.
pub const MAX_CALLERS_OF_A_PLACE: usize = 16;

/// Whose end a caller's deadline is. At its end a key is over, while a wait is
/// over only after it: so keys come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Key,
    Wait,
}

/// When a caller must be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    pub at: Millis,
    pub of: End,
}

/// Splits the deadlines of one moment: tickets don't come near.
const OF_WAIT: u64 = 1 << 63;

impl Deadline {
    /// The end of a wait, or of a key where that is not later.
    pub fn first(wait: Millis, key: Option<Millis>) -> Self {
        match key {
            Some(at) if at <= wait => Self { at, of: End::Key },
            _ => Self {
                at: wait,
                of: End::Wait,
            },
        }
    }

    /// Sorts by the moment, then by what ends.
    fn then(self, ticket: u64) -> u128 {
        self.at.then(match self.of {
            End::Key => ticket,
            End::Wait => ticket | OF_WAIT,
        })
    }

    fn of_key(key: u128) -> Self {
        Self {
            at: Millis::of_key(key),
            of: if key & u128::from(OF_WAIT) == 0 {
                End::Key
            } else {
                End::Wait
            },
        }
    }
}

/// One call that waits.
#[derive(Clone, Debug)]
pub struct Caller {
    pub request: RequestId,
    pub key: KeyId,
    /// The address at the door, as text for the access log.
    pub ip: Option<Box<str>>,
    /// How its key came.
    pub carrier: Carrier,
    pub arrived: Millis,
    pub deadline: Deadline,
    /// The secret of the slot, should this caller be the one who gets it.
    pub secret: SlotSecret,
    /// Its attempt had come before, by another call.
    pub repeats: bool,
}

/// One place in the queue.
#[derive(Clone, Debug)]
pub struct Place {
    pub attempt: AttemptId,
    /// Never empty while the place stands in the queue.
    pub callers: Vec<Caller>,
    arrived: Millis,
    /// When the first of all its callers arrived, gone or not.
    first: Millis,
    /// Counts the places that were ever taken.
    ticket: u64,
}

impl Place {
    /// Where it stands: by arrival, then by the order in which it was taken.
    fn order(&self) -> u128 {
        self.arrived.then(self.ticket)
    }

    /// The key of its callers with this deadline.
    fn deadline_key(&self, deadline: Deadline) -> u128 {
        deadline.then(self.ticket)
    }

    /// Takes in a caller that comes with another call. Whoever arrived first made
    /// the attempt, in whatever order a reset has them come again; all others
    /// repeat it, also where they alone are left.
    fn take_in(&mut self, mut caller: Caller) {
        if caller.arrived < self.first {
            self.first = caller.arrived;
            self.callers
                .iter_mut()
                .for_each(|other| other.repeats = true);
            self.callers.insert(0, caller);
        } else {
            caller.repeats = true;
            self.callers.push(caller);
        }
    }

    fn waits_until(&self, deadline: Deadline) -> bool {
        self.callers.iter().any(|c| c.deadline == deadline)
    }
}

/// The queue of a source.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// By their order.
    places: Table<Place>,
    /// Where in the table the place of an attempt is.
    attempts: Index,
    /// Where in the table the place is in which someone waits until then.
    deadlines: Index,
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
        self.deadlines.first().map(|(key, _)| Millis::of_key(key))
    }

    /// The place of an attempt that already waits.
    pub fn of_attempt(&self, attempt: AttemptId) -> Option<&Place> {
        self.places.at(self.attempts.get(attempt.0)?)
    }

    /// Takes a new place by the caller's arrival. The attempt must not wait yet.
    pub fn push(&mut self, attempt: AttemptId, caller: Caller) {
        self.tickets = self.tickets.saturating_add(1);
        let deadline = caller.deadline;
        let place = Place {
            attempt,
            arrived: caller.arrived,
            first: caller.arrived,
            ticket: self.tickets,
            callers: vec![caller],
        };
        let key = place.deadline_key(deadline);
        let (at, _) = self.places.insert(place.order(), place);
        self.attempts.insert(attempt.0, at);
        self.deadlines.insert(key, at);
    }

    /// Adds a caller to the place of its attempt. The same request come again
    /// takes its own place over, and is what it was. False if there is no place or
    /// no room in it.
    pub fn join(&mut self, attempt: AttemptId, mut caller: Caller) -> bool {
        let Some(at) = self.attempts.get(attempt.0) else {
            return false;
        };
        let Some(place) = self.places.at_mut(at) else {
            return false;
        };
        let deadline = caller.deadline;
        let same = place
            .callers
            .iter_mut()
            .find(|c| c.request == caller.request);
        if let Some(former) = same {
            let given_up = former.deadline;
            caller.repeats = former.repeats;
            *former = caller;
            if !place.waits_until(given_up) {
                self.deadlines.remove(place.deadline_key(given_up));
            }
        } else if place.callers.len() < MAX_CALLERS_OF_A_PLACE {
            place.take_in(caller);
        } else {
            return false;
        }
        self.deadlines.insert(place.deadline_key(deadline), at);
        true
    }

    /// Takes the head out, with all its callers.
    pub fn pop(&mut self) -> Option<Place> {
        let place = self.places.pop_first()?;
        self.attempts.remove(place.attempt.0);
        for caller in &place.callers {
            self.deadlines.remove(place.deadline_key(caller.deadline));
        }
        Some(place)
    }

    /// Takes out one caller whose deadline is `last` or before.
    pub fn expire(&mut self, last: Deadline) -> Option<Caller> {
        let (key, at) = self.deadlines.first()?;
        let deadline = Deadline::of_key(key);
        if deadline > last {
            return None;
        }
        let callers = &self.places.at(at)?.callers;
        let late = callers.iter().find(|caller| caller.deadline == deadline)?;
        self.take(at, late.request)
    }

    /// Takes out the caller that went away.
    pub fn leave(&mut self, attempt: AttemptId, request: RequestId) -> Option<Caller> {
        self.take(self.attempts.get(attempt.0)?, request)
    }

    /// Takes out every caller for whom `gone` says so, in order of the queue.
    pub fn take_all(&mut self, gone: impl Fn(&Caller) -> bool) -> Vec<Caller> {
        let mut leaving = Vec::new();
        for (_, place) in self.places.iter() {
            for caller in place.callers.iter().filter(|caller| gone(caller)) {
                leaving.push((place.attempt, caller.request));
            }
        }
        leaving
            .into_iter()
            .filter_map(|(attempt, request)| self.leave(attempt, request))
            .collect()
    }

    /// `at`: where in the table the caller's place is.
    fn take(&mut self, at: u32, request: RequestId) -> Option<Caller> {
        let place = self.places.at_mut(at)?;
        let index = place.callers.iter().position(|c| c.request == request)?;
        let caller = place.callers.remove(index);
        if !place.waits_until(caller.deadline) {
            self.deadlines.remove(place.deadline_key(caller.deadline));
        }
        if place.callers.is_empty() {
            let (attempt, order) = (place.attempt, place.order());
            self.places.remove(order);
            self.attempts.remove(attempt.0);
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
        let mut watched: usize = 0;
        for (order, place) in self.places.iter() {
            if place.callers.is_empty() {
                return Err("a place that nobody waits in");
            }
            let at = self.attempts.get(place.attempt.0);
            let own = at.and_then(|at| self.places.at(at));
            if own.is_none_or(|own| own.order() != order) || place.order() != order {
                return Err("an attempt leads to another place");
            }
            for (index, caller) in place.callers.iter().enumerate() {
                if self.deadlines.get(place.deadline_key(caller.deadline)) != at {
                    return Err("a caller whose deadline nobody watches");
                }
                let mut before = place.callers.iter().take(index);
                if before.all(|other| other.deadline != caller.deadline) {
                    watched = watched.saturating_add(1);
                }
            }
        }
        if watched != self.deadlines.len() {
            return Err("a deadline that nobody waits for");
        }
        Ok(())
    }
}
