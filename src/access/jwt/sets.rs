//! The key sets that an isolate knows, by URL: which one to use, and when to
//! fetch it anew.
//!
//! Pure: it says what to do, and is told how it went. An old set is used while
//! a newer one can't be had. Only one of many callers fetches; the others use
//! the old set, or wait where there is none.

use std::rc::Rc;

use super::keys::KeySet;
use crate::governor::time::{Millis, Span};
use crate::index::Shelf;

/// The most sets that are kept.
pub const MOST_SETS: usize = 100;
/// How long a fetch may take, and is taken to be under way.
pub const FETCH_TIMEOUT: Span = Span::from_seconds(5);
/// Between a failed fetch and the next.
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
    /// Fetch it, and tell by [`KeySets::arrived`] or [`KeySets::failed`].
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

    /// A set has come. Returns the generation that it replaced, if it is another
    /// set than before.
    pub fn arrived(
        &mut self,
        url: &str,
        set: KeySet,
        digest: [u8; 32],
        lifetime: Span,
        now: Millis,
    ) -> Option<u64> {
        let generation = self.generations.saturating_add(1);
        let held = Held {
            set: Rc::new(set),
            generation,
        };
        let replaced = self.with(url, now, |entry| {
            entry.fetching_since = None;
            entry.failed_at = None;
            entry.fresh_until = now.plus(lifetime);
            if entry.held.is_some() && entry.digest == digest {
                return None;
            }
            entry.digest = digest;
            Some(entry.held.replace(held))
        });
        if replaced.is_some() {
            self.generations = generation;
        }
        replaced.flatten().map(|held| held.generation)
    }

    /// A fetch has failed.
    pub fn failed(&mut self, url: &str, now: Millis) {
        self.with(url, now, |entry| {
            entry.fetching_since = None;
            entry.failed_at = Some(now);
        });
    }

    /// The set that there is, fresh or not.
    pub fn held(&self, url: &str) -> Option<Held> {
        self.known.get(url)?.held.clone()
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
            return match &self.held {
                Some(held) => Look::Use(held.clone()),
                None if waits => Look::Wait,
                None => Look::Unavailable,
            };
        }
        self.fetching_since = Some(now);
        Look::Fetch
    }

    fn look_beyond(&mut self, seen: u64, now: Millis) -> Look {
        if let Some(held) = self.held.as_ref().filter(|held| held.generation != seen) {
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
mod tests {
    use super::*;

    const URL: &str = "https://idp.example/keys";
    const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519",
        "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    const HOUR: Span = Span::from_seconds(3600);

    fn at(seconds: u64) -> Millis {
        Millis::from_epoch(1_710_000_000_000).plus(Span::from_seconds(seconds))
    }

    fn arrive(sets: &mut KeySets, body: u8, now: Millis) -> Option<u64> {
        arrive_at(sets, URL, body, now)
    }

    fn arrive_at(sets: &mut KeySets, url: &str, body: u8, now: Millis) -> Option<u64> {
        let set = KeySet::parse(KEYS).unwrap();
        sets.arrived(url, set, [body; 32], Span::from_seconds(600), now)
    }

    fn used(look: Look) -> u64 {
        match look {
            Look::Use(held) => held.generation,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_set_is_fetched_once_and_used_while_it_is_fresh() {
        let mut sets = KeySets::default();
        assert!(matches!(sets.look(URL, at(0)), Look::Fetch));
        assert_eq!(arrive(&mut sets, 1, at(1)), None);
        let generation = used(sets.look(URL, at(600)));
        assert!(matches!(sets.look(URL, at(601)), Look::Fetch));
        // The same body is the same set.
        assert_eq!(arrive(&mut sets, 1, at(601)), None);
        assert_eq!(used(sets.look(URL, at(602))), generation);
        // Another is not, and replaces it.
        assert!(matches!(sets.look(URL, at(1201)), Look::Fetch));
        assert_eq!(arrive(&mut sets, 2, at(1201)), Some(generation));
        assert_ne!(used(sets.look(URL, at(1202))), generation);
    }

    #[test]
    fn one_fetches_and_the_others_wait_or_use_the_old_set() {
        let mut sets = KeySets::default();
        assert!(matches!(sets.look(URL, at(0)), Look::Fetch));
        assert!(matches!(sets.look(URL, at(4)), Look::Wait));
        // Whoever fetched has left without a word.
        assert!(matches!(sets.look(URL, at(5)), Look::Fetch));
        arrive(&mut sets, 1, at(5));
        assert!(matches!(sets.look(URL, at(605)), Look::Fetch));
        used(sets.look(URL, at(606)));
    }

    #[test]
    fn the_old_set_is_kept_while_a_fetch_fails() {
        let mut sets = KeySets::default();
        assert!(matches!(sets.look(URL, at(0)), Look::Fetch));
        sets.failed(URL, at(0));
        assert!(matches!(sets.look(URL, at(1)), Look::Unavailable));
        assert!(matches!(sets.look(URL, at(2)), Look::Fetch));
        arrive(&mut sets, 1, at(2));
        let generation = used(sets.look(URL, at(3)));
        for hours in 1..5 {
            let now = at(0).plus(Span::from_ms(HOUR.ms() * hours));
            assert!(matches!(sets.look(URL, now), Look::Fetch));
            sets.failed(URL, now);
            assert_eq!(used(sets.look(URL, now)), generation);
            let soon = now.plus(Span::from_ms(1999));
            assert_eq!(used(sets.look(URL, soon)), generation);
        }
    }

    #[test]
    fn an_unknown_key_fetches_at_most_once_a_minute() {
        let mut sets = KeySets::default();
        sets.look(URL, at(0));
        arrive(&mut sets, 1, at(0));
        let seen = used(sets.look(URL, at(0)));
        assert!(matches!(sets.look_beyond(URL, seen, at(1)), Look::Fetch));
        assert!(matches!(sets.look_beyond(URL, seen, at(1)), Look::Wait));
        arrive(&mut sets, 1, at(2));
        for soon in [2, 30, 60] {
            let look = sets.look_beyond(URL, seen, at(soon));
            assert!(matches!(look, Look::Unavailable), "{soon}");
        }
        assert!(matches!(sets.look_beyond(URL, seen, at(61)), Look::Fetch));
        arrive(&mut sets, 2, at(61));
        assert_ne!(used(sets.look_beyond(URL, seen, at(61))), seen);
    }

    #[test]
    fn a_clock_that_steps_back_blocks_nothing() {
        let mut sets = KeySets::default();
        assert!(matches!(sets.look(URL, at(1000)), Look::Fetch));
        assert!(matches!(sets.look(URL, at(0)), Look::Fetch));
        sets.failed(URL, at(1000));
        assert!(matches!(sets.look(URL, at(0)), Look::Fetch));
    }

    #[test]
    fn the_least_used_set_makes_room() {
        let mut sets = KeySets::default();
        for number in 0..MOST_SETS {
            let url = format!("https://{number}.example/");
            arrive_at(&mut sets, &url, 1, at(number as u64));
        }
        sets.look("https://0.example/", at(500));
        sets.look("https://more.example/", at(501));
        assert_eq!(sets.known.len(), MOST_SETS);
        assert!(sets.held("https://0.example/").is_some());
        assert!(sets.held("https://1.example/").is_none());
    }
}
