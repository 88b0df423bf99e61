//! The key families of a source: which are alive.
//!
//! A family is known by its `keyId`; the keys themselves are never here. Once
//! revoked, a family stays so.

use std::collections::BTreeMap;

use crate::governor::ids::KeyId;
use crate::governor::time::{Millis, Span};

/// The most families that a source keeps.
pub const MOST_FAMILIES: usize = 10_000;
/// How long an expired family is still listed.
const LISTED_AFTER_EXPIRY: Span = Span::from_seconds(86_400);

/// One family of access keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    pub name: Option<String>,
    pub created_at: Millis,
    /// When the last key of the family expires.
    pub expires_at: Millis,
    pub revoked_at: Option<Millis>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Live,
    Expired,
    Revoked,
}

impl State {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl Family {
    pub fn state(&self, now: Millis) -> State {
        if self.revoked_at.is_some() {
            State::Revoked
        } else if self.expires_at <= now {
            State::Expired
        } else {
            State::Live
        }
    }
}

/// All families of a source.
#[derive(Clone, Debug, Default)]
pub struct Families {
    known: BTreeMap<KeyId, Family>,
}

impl Families {
    pub fn insert(&mut self, key: KeyId, family: Family) {
        self.known.insert(key, family);
    }

    pub fn find(&self, key: KeyId) -> Option<&Family> {
        self.known.get(&key)
    }

    /// Whether a key of this family, itself not expired, may come in.
    pub fn admits(&self, key: KeyId) -> bool {
        self.find(key)
            .is_some_and(|family| family.revoked_at.is_none())
    }

    pub fn is_full(&self) -> bool {
        self.known.len() >= MOST_FAMILIES
    }

    /// Revokes a family, for good. False if it isn't known or was revoked
    /// before.
    pub fn revoke(&mut self, key: KeyId, now: Millis) -> bool {
        match self.known.get_mut(&key) {
            Some(family) if family.revoked_at.is_none() => {
                family.revoked_at = Some(now);
                true
            }
            _ => false,
        }
    }

    /// Forgets families of which every key expired a day ago or longer; returns
    /// them.
    pub fn prune(&mut self, now: Millis) -> Vec<KeyId> {
        let mut pruned = Vec::new();
        self.known.retain(|key, family| {
            let keep = family.expires_at.plus(LISTED_AFTER_EXPIRY) > now;
            if !keep {
                pruned.push(*key);
            }
            keep
        });
        pruned
    }

    /// Up to `limit` families after a key, by key, and whether there are more.
    pub fn page(&self, after: Option<KeyId>, limit: usize) -> (Vec<(KeyId, &Family)>, bool) {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut found = self.known.range((from, Bound::Unbounded));
        let page: Vec<_> = found
            .by_ref()
            .take(limit)
            .map(|(key, family)| (*key, family))
            .collect();
        (page, found.next().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(expires_at: u64) -> Family {
        Family {
            name: None,
            created_at: Millis::EPOCH,
            expires_at: Millis::from_epoch(expires_at),
            revoked_at: None,
        }
    }

    #[test]
    fn revoking_is_for_good_and_happens_once() {
        let mut families = Families::default();
        families.insert(KeyId(1), family(100));
        assert!(families.admits(KeyId(1)));
        let first = Millis::from_epoch(5);
        assert!(families.revoke(KeyId(1), first));
        assert!(!families.revoke(KeyId(1), Millis::from_epoch(9)));
        assert_eq!(families.find(KeyId(1)).unwrap().revoked_at, Some(first));
        assert!(!families.admits(KeyId(1)));
        assert!(!families.revoke(KeyId(2), first));
    }

    #[test]
    fn long_expired_families_are_pruned() {
        let mut families = Families::default();
        families.insert(KeyId(1), family(100));
        families.insert(KeyId(2), family(86_400_000));
        assert_eq!(families.prune(Millis::from_epoch(86_400_099)), []);
        assert_eq!(families.prune(Millis::from_epoch(86_400_100)), [KeyId(1)]);
    }

    #[test]
    fn pages_follow_each_other() {
        let mut families = Families::default();
        for key in 1..=3 {
            families.insert(KeyId(key), family(1));
        }
        let keys =
            |page: Vec<(KeyId, &Family)>| page.iter().map(|(key, _)| key.0).collect::<Vec<_>>();
        let (page, more) = families.page(None, 2);
        assert_eq!((keys(page), more), (vec![1, 2], true));
        let (page, more) = families.page(Some(KeyId(2)), 2);
        assert_eq!((keys(page), more), (vec![3], false));
    }
}
