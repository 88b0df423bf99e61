//! The key sets that an isolate knows, by URL: which one to use, and when to
//! fetch it anew.
//!
//! Pure: it says what to do, and is told how it went. An old set bridges a
//! while in which its server says nothing, and only that: a key that the issuer
//! took back lets nobody in. Only one of many callers fetches; the others use
//! the old set, or wait where there is none.

use std::rc::Rc;

use super::fetched::{Arrival, Fetched};
use super::keys::KeySet;
use crate::governor::time::{Millis, Span};
use crate::index::Shelf;

/// The most sets that are kept.
pub const MOST_SETS: usize = 100;
/// How long a fetch may take, and is taken to be under way.
pub const FETCH_TIMEOUT: Span = Span::from_seconds(5);
/// How long a set may be used past its lifetime while no newer one can be had.
const BRIDGE: Span = Span::from_seconds(600);
/// Between a fetch that brought no set and the next.
const RETRY_AFTER: Span = Span::from_seconds(2);
/// Between two fetches because of a key that isn't in the set.
const UNKNOWN_KEY_PAUSE: Span = Span::from_seconds(60);

/// A set, and which one it is: two with the same number are the same set.
#[derive(Clone, Debug)]
pub struct Held {
    pub set: Rc<KeySet>,
    pub generation: u64,
}

/// What to do.
#[derive(Debug)]
pub enum Look {
    Use(Held),
    /// Fetch it, and tell by [`KeySets::settle`] how it went.
    Fetch,
    /// Another is fetching it: look again soon.
    Wait,
    /// There is none, and it is too soon to try again.
    Unavailable,
}

pub struct KeySets {
    known: Shelf<Entry>,
    /// How many sets there were so far.
    generations: u64,
}

#[derive(Default)]
struct Entry {
    held: Option<Held>,
    /// Of the body that the set was read from.
    digest: [u8; 32],
    fresh_until: Millis,
    fetching_since: Option<Millis>,
    failed_at: Option<Millis>,
    /// The last fetch because of an unknown key.
    forced_at: Option<Millis>,
    used_at: Millis,
}

impl Default for KeySets {
    fn default() -> Self {
        Self {
            known: Shelf::of(MOST_SETS),
            generations: 0,
        }
    }
}

impl KeySets {
    /// A set that is fresh, or the freshest that can be had.
    pub fn look(&mut self, url: &str, now: Millis) -> Look {
        self.with(url, now, |entry| entry.look(now))
    }

    /// A set other than `seen`, in which a key was looked for in vain.
    pub fn look_beyond(&mut self, url: &str, seen: u64, now: Millis) -> Look {
        self.with(url, now, |entry| entry.look_beyond(seen, now))
    }

    /// A fetch has ended. Returns the generation that is no more, if one went.
    pub fn settle(&mut self, url: &str, fetched: Fetched, now: Millis) -> Option<u64> {
        match fetched {
            Fetched::Set(arrival) => self.arrived(url, arrival, now),
            Fetched::Withdrawn(_) => self.withdrawn(url, now),
            Fetched::Failed(_) => {
                self.with(url, now, |entry| entry.end_in_vain(now));
                None
            }
        }
    }

    fn arrived(&mut self, url: &str, arrival: Arrival, now: Millis) -> Option<u64> {
        let generation = self.generations.saturating_add(1);
        let held = Held {
            set: Rc::new(arrival.set),
            generation,
        };
        let replaced = self.with(url, now, |entry| {
            entry.fetching_since = None;
            entry.failed_at = None;
            entry.fresh_until = now.plus(arrival.lifetime);
            if entry.held.is_some() && entry.digest == arrival.digest {
                return None;
            }
            entry.digest = arrival.digest;
            Some(entry.held.replace(held))
        });
        if replaced.is_some() {
            self.generations = generation;
        }
        replaced.flatten().map(|held| held.generation)
    }

    /// The issuer has no keys any more. Whether it has them again is asked as
    /// often as after a failure.
    fn withdrawn(&mut self, url: &str, now: Millis) -> Option<u64> {
        let gone = self.with(url, now, |entry| {
            entry.end_in_vain(now);
            entry.held.take()
        });
        gone.map(|held| held.generation)
    }

    /// The set that there is, fresh or not, as long as it may be used.
    pub fn held(&self, url: &str, now: Millis) -> Option<Held> {
        self.known.get(url)?.usable(now).cloned()
    }

    /// Does something with the entry of `url`, for which the least used one
    /// makes room.
    fn with<T>(&mut self, url: &str, now: Millis, work: impl FnOnce(&mut Entry) -> T) -> T {
        let known = self.known.remove(url);
        if known.is_none() && self.known.len() >= MOST_SETS {
            let oldest = self.known.iter().min_by_key(|(_, entry)| entry.used_at);
            if let Some(oldest) = oldest.map(|(url, _)| url.to_owned()) {
                self.known.remove(&oldest);
            }
        }
        let mut entry = known.unwrap_or_default();
        entry.used_at = now;
        let result = work(&mut entry);
        self.known.put(url, entry);
        result
    }
}

impl Entry {
    fn look(&mut self, now: Millis) -> Look {
        if let Some(held) = self.held.as_ref().filter(|_| now < self.fresh_until) {
            return Look::Use(held.clone());
        }
        let waits = self.is_fetching(now);
        if waits || is_within(self.failed_at, RETRY_AFTER, now) {
            return match self.usable(now) {
                Some(held) => Look::Use(held.clone()),
                None if waits => Look::Wait,
                None => Look::Unavailable,
            };
        }
        self.fetching_since = Some(now);
        Look::Fetch
    }

    fn look_beyond(&mut self, seen: u64, now: Millis) -> Look {
        let usable = self.usable(now);
        if let Some(held) = usable.filter(|held| held.generation != seen) {
            return Look::Use(held.clone());
        }
        if self.is_fetching(now) {
            return Look::Wait;
        }
        if is_within(self.failed_at, RETRY_AFTER, now)
            || is_within(self.forced_at, UNKNOWN_KEY_PAUSE, now)
        {
            return Look::Unavailable;
        }
        self.fetching_since = Some(now);
        self.forced_at = Some(now);
        Look::Fetch
    }

    /// The set, while it is fresh and for the bridge after it.
    fn usable(&self, now: Millis) -> Option<&Held> {
        let held = self.held.as_ref();
        held.filter(|_| now < self.fresh_until.plus(BRIDGE))
    }

    fn end_in_vain(&mut self, now: Millis) {
        self.fetching_since = None;
        self.failed_at = Some(now);
    }

    /// Whether another is fetching. One who left while fetching is forgotten
    /// when the fetch would have timed out.
    fn is_fetching(&self, now: Millis) -> bool {
        is_within(self.fetching_since, FETCH_TIMEOUT, now)
    }
}

/// Whether `now` is in the span that begins at `from`. A clock that stepped
/// back ends it.
fn is_within(from: Option<Millis>, span: Span, now: Millis) -> bool {
    from.is_some_and(|from| from <= now && now < from.plus(span))
}

#[cfg(test)]
mod tests;
