//! The policies of sources as an isolate knows them.
//!
//! A known policy never lets anyone in, since the object refuses a stale one. A
//! refusal under it rests on the object too: the key comes before the policy, so
//! the family must be alive, and the policy must stand. Some times a second that
//! is asked; beyond that, what was learned within the last second holds, so that
//! callers who may not in don't become as many calls to the object.

use std::rc::Rc;

use crate::access::policy::{Loopback, Policy};
use crate::fields::Fields;
use crate::governor::ids::{KeyId, Version};
use crate::governor::time::{Millis, Span};
use crate::index::{Recent, Shelf};
use crate::json::object;

/// Sources whose policy an isolate knows.
const MOST_POLICIES: usize = 4096;
/// What those policies may take together, as text: one with inline keys may take
/// as much as a body, most take next to nothing.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Families that are known to have been alive just now.
const MOST_LIVE: usize = 4096;
/// For how long a refusal may rest on what was learned.
const FRESH: Span = Span::from_seconds(1);
/// Refusals of a source in [`FRESH`] before which the object is asked.
const MOST_ASKED: u32 = 10;

/// A policy, by the version of the settings that it is of.
#[derive(Clone, Debug)]
pub struct Known {
    pub version: Version,
    pub policy: Rc<Policy>,
}

#[derive(Debug)]
struct Kept {
    known: Known,
    bytes: usize,
    /// When it was seen to stand.
    stood_at: Millis,
    asked: u32,
    asked_since: Millis,
}

/// All that an isolate knows.
#[derive(Debug)]
pub struct Policies {
    kept: Shelf<Kept>,
    /// Of all that is kept.
    bytes: usize,
    most_bytes: usize,
    /// By key, when its family was seen to be alive.
    live: Recent<Millis>,
}

impl Default for Policies {
    fn default() -> Self {
        Self::new()
    }
}

impl Policies {
    pub const fn new() -> Self {
        Self::within(MOST_BYTES)
    }

    const fn within(most_bytes: usize) -> Self {
        Self {
            kept: Shelf::of(MOST_POLICIES),
            bytes: 0,
            most_bytes,
            live: Recent::of(MOST_LIVE),
        }
    }

    /// The policy of a source; `None`: none is known, and plain is assumed.
    pub fn of(&mut self, source: &str) -> Option<Known> {
        self.kept.recall(source).map(|kept| kept.known.clone())
    }

    pub fn forget(&mut self, source: &str) {
        if let Some(kept) = self.kept.remove(source) {
            self.bytes = self.bytes.saturating_sub(kept.bytes);
        }
    }

    /// Takes over what an object said of its policy to a caller of this key, whose
    /// family is alive then. `None` if it can't be read.
    pub fn learn(&mut self, source: &str, said: &str, key: KeyId, now: Millis) -> Option<()> {
        let known = read(said, self.kept.recall(source).map(|kept| &kept.known))?;
        let before = self.kept.remove(source);
        let (asked, asked_since) = before
            .as_ref()
            .map_or((0, Millis::EPOCH), |kept| (kept.asked, kept.asked_since));
        let freed = before.map_or(0, |kept| kept.bytes);
        self.bytes = self.bytes.saturating_sub(freed).saturating_add(said.len());
        while self.bytes > self.most_bytes || self.kept.len() >= MOST_POLICIES {
            let Some((_, oldest)) = self.kept.pop_oldest() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
        }
        let kept = Kept {
            known,
            bytes: said.len(),
            stood_at: now,
            asked,
            asked_since,
        };
        self.kept.put(source, kept);
        self.live.put(key.0.into(), now);
        Some(())
    }

    /// The object was asked: the policy stands, and the family is alive.
    pub fn stands(&mut self, source: &str, key: KeyId, now: Millis) {
        if let Some(kept) = self.kept.recall(source) {
            kept.stood_at = now;
        }
        self.live.put(key.0.into(), now);
    }

    /// Whether a refusal under the known policy may be given without asking the
    /// object. If not, it counts as asked.
    pub fn may_refuse(&mut self, source: &str, key: KeyId, now: Millis) -> bool {
        let Some(kept) = self.kept.recall(source) else {
            return false;
        };
        if now.since(kept.asked_since) >= FRESH {
            (kept.asked, kept.asked_since) = (0, now);
        }
        let alive_at = self.live.recall(key.0.into());
        let is_fresh = |at: Millis| now.since(at) < FRESH;
        let is_known = is_fresh(kept.stood_at) && alive_at.is_some_and(|at| is_fresh(*at));
        if is_known && kept.asked >= MOST_ASKED {
            return true;
        }
        kept.asked = kept.asked.saturating_add(1);
        false
    }
}

/// `before`: what was known. Of the same version it is not read again: inline keys
/// take their time.
fn read(said: &str, before: Option<&Known>) -> Option<Known> {
    let fields = Fields::of_body(said.as_bytes()).ok()?;
    let version: String = fields.text("version", 1, 32).ok()??;
    let version = version.parse().ok()?;
    let policy = match before.filter(|known| known.version == version) {
        Some(known) => Rc::clone(&known.policy),
        // Checked when it was put in place.
        None => Rc::new(Policy::parse(&fields.part("access").ok()?, Loopback::Allowed).ok()?),
    };
    Some(Known { version, policy })
}

/// The form in which an object says its policy.
pub fn said(version: Version, policy: &Policy) -> String {
    object! {"version": version.to_string(), "access": policy.to_json()}.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: KeyId = KeyId(1);

    fn at(ms: u64) -> Millis {
        Millis::from_epoch(1_710_000_000_000).plus(Span::from_ms(ms))
    }

    fn plain() -> String {
        said(Version(7), &Policy::default())
    }

    #[test]
    fn what_an_object_says_is_what_is_known() {
        let mut policies = Policies::new();
        assert!(policies.of("demo").is_none());
        assert_eq!(policies.learn("demo", "{}", KEY, at(0)), None);
        let policy = Policy {
            bearer: false,
            ..Policy::default()
        };
        let text = said(Version(7), &policy);
        assert_eq!(policies.learn("demo", &text, KEY, at(0)), Some(()));
        let known = policies.of("demo").unwrap();
        assert_eq!((known.version, &*known.policy), (Version(7), &policy));
        policies.forget("demo");
        assert!(policies.of("demo").is_none());
        assert_eq!(policies.bytes, 0);
    }

    #[test]
    fn an_object_is_asked_before_a_refusal_so_often_and_then_at_most_what_is_a_second_old_holds() {
        let mut policies = Policies::new();
        assert!(!policies.may_refuse("demo", KEY, at(0)));
        policies.learn("demo", &plain(), KEY, at(0));
        for _ in 0..MOST_ASKED {
            assert!(!policies.may_refuse("demo", KEY, at(10)));
            policies.stands("demo", KEY, at(10));
        }
        for _ in 0..1000 {
            assert!(policies.may_refuse("demo", KEY, at(1009)));
        }
        let other = KeyId(2);
        assert!(
            !policies.may_refuse("demo", other, at(1009)),
            "it may be dead"
        );
        policies.stands("demo", other, at(1009));
        assert!(policies.may_refuse("demo", other, at(1009)));
        assert!(
            !policies.may_refuse("demo", KEY, at(1010)),
            "that is too old"
        );
    }

    #[test]
    fn whoever_may_not_in_costs_a_bounded_number_of_questions() {
        let mut policies = Policies::new();
        policies.learn("demo", &plain(), KEY, at(0));
        let mut asked = 0;
        for ms in 0..10_000 {
            if !policies.may_refuse("demo", KEY, at(ms)) {
                asked += 1;
                // The answer may be another version of the policy each time.
                policies.learn("demo", &plain(), KEY, at(ms));
            }
        }
        assert!(asked <= 10 * (MOST_ASKED + 1), "{asked}");
    }

    #[test]
    fn many_small_policies_are_known_at_once_and_large_ones_push_out_what_is_unused() {
        let most_bytes = 400 * plain().len();
        let mut policies = Policies::within(most_bytes);
        for id in 0..400 {
            policies.learn(&format!("source-{id}"), &plain(), KEY, at(0));
        }
        for id in 0..400 {
            assert!(policies.of(&format!("source-{id}")).is_some(), "{id}");
        }
        let large = plain() + &" ".repeat(100 * plain().len());
        for id in 0..10 {
            assert!(policies.of("source-0").is_some(), "it is used all the time");
            policies.learn(&format!("large-{id}"), &large, KEY, at(0));
            assert!(policies.bytes <= most_bytes);
        }
        let bytes: usize = policies.kept.iter().map(|(_, kept)| kept.bytes).sum();
        assert_eq!(bytes, policies.bytes);
        assert!(policies.of("source-1").is_none());
        assert!(policies.of("large-9").is_some());
    }
}
