//! The key families of a source: which are alive, and which refresh token is
//! each one's current.
//!
//! A family is known by its `keyId`; keys and tokens themselves are never here,
//! only a digest. Once revoked, a family stays so. What trading in a refresh
//! token comes to is decided in `trade.rs`.

mod trade;

pub use trade::{Refresh, Trade, Why};

use super::refresh::SecretDigest;
use crate::governor::ids::KeyId;
use crate::governor::time::{Millis, Span};
use crate::index::Table;

/// The most families that a source keeps.
pub const MOST_FAMILIES: usize = 10_000;
/// How long a family is still listed when nothing of it is good any more.
const LISTED_AFTER_EXPIRY: Span = Span::from_seconds(86_400);

/// One family of access keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    pub name: Option<String>,
    pub created_at: Millis,
    /// How long each access key lives.
    pub ttl: Span,
    /// How long each refresh token lives.
    pub refresh_ttl: Span,
    /// When the last access key of the family expires: no two of its keys end at
    /// the same moment, so this tells the last one from those before it.
    pub expires_at: Millis,
    /// The refresh token that is good now.
    pub current: SecretDigest,
    pub refresh_expires_at: Millis,
    /// The token that `current` succeeded, while neither `current` nor the last
    /// access key was seen; and from when on it gets its answer again for ten
    /// seconds more. That is when it was traded in, or later.
    pub retired: Option<(SecretDigest, Millis)>,
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
    /// A family whose first access key and refresh token are handed out now.
    pub fn minted(
        name: Option<String>,
        now: Millis,
        ttl: Span,
        refresh_ttl: Span,
        current: SecretDigest,
    ) -> Self {
        Self {
            name,
            created_at: now,
            ttl,
            refresh_ttl,
            expires_at: now.plus(ttl),
            current,
            refresh_expires_at: now.plus(refresh_ttl),
            retired: None,
            revoked_at: None,
        }
    }

    /// Of its access keys: an expired family may still be refreshed.
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
    /// By key.
    known: Table<Family>,
}

impl Families {
    pub fn insert(&mut self, key: KeyId, family: Family) {
        self.known.insert(key.0.into(), family);
    }

    pub fn find(&self, key: KeyId) -> Option<&Family> {
        self.known.get(key.0.into())
    }

    /// Whether a key of this family, itself not expired, may come in.
    pub fn admits(&self, key: KeyId) -> bool {
        self.find(key)
            .is_some_and(|family| family.revoked_at.is_none())
    }

    /// Whether a key of this family may still be good at `now`.
    pub fn is_live(&self, key: KeyId, now: Millis) -> bool {
        self.find(key)
            .is_some_and(|family| family.state(now) == State::Live)
    }

    pub fn is_full(&self) -> bool {
        self.known.len() >= MOST_FAMILIES
    }

    /// Revokes a family, for good. False if it isn't known or was revoked
    /// before.
    pub fn revoke(&mut self, key: KeyId, now: Millis) -> bool {
        match self.known.get_mut(key.0.into()) {
            Some(family) if family.revoked_at.is_none() => {
                family.revoked_at = Some(now);
                true
            }
            _ => false,
        }
    }

    /// Takes note that a key which ends at `end` is in use. True where that is
    /// news: then whoever holds the token before it has had its answer.
    pub fn see(&mut self, key: KeyId, end: Option<Millis>) -> bool {
        let family = self.known.get_mut(key.0.into());
        family.is_some_and(|family| family.see(end))
    }

    /// Trades in a refresh token.
    pub fn refresh(&mut self, key: KeyId, traded: &Trade, now: Millis) -> Refresh {
        self.known
            .get_mut(key.0.into())
            .map_or(Refresh::Refused(Why::Unknown), |family| {
                family.refresh(traded, now)
            })
    }

    /// Forgets families of which nothing has been good for a day; returns them.
    pub fn prune(&mut self, now: Millis) -> Vec<KeyId> {
        let pruned = self.known.retain(|family| {
            let end = family.expires_at.max(family.refresh_expires_at);
            let end = family.revoked_at.map_or(end, |_| family.expires_at);
            end.plus(LISTED_AFTER_EXPIRY) > now
        });
        pruned.into_iter().map(key_of).collect()
    }

    /// Up to `limit` families after a key, by key, and whether there are more.
    pub fn page(&self, after: Option<KeyId>, limit: usize) -> (Vec<(KeyId, &Family)>, bool) {
        let from = after.map_or(0, |key| u128::from(key.0).saturating_add(1));
        let mut found = self.known.range_from(from);
        let page = found.by_ref().take(limit);
        let page: Vec<_> = page.map(|(key, family)| (key_of(key), family)).collect();
        (page, found.next().is_some())
    }
}

/// The key of a family, from that of the table.
fn key_of(key: u128) -> KeyId {
    KeyId(u64::try_from(key).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: KeyId = KeyId(1);
    const DAY: u64 = 86_400_000;

    fn digest(byte: u8) -> SecretDigest {
        SecretDigest([byte; 32])
    }

    fn at(ms: u64) -> Millis {
        Millis::from_epoch(ms)
    }

    /// Access keys live 100 ms, refresh tokens 50 s; token 1 is current.
    fn families() -> Families {
        let mut families = Families::default();
        let (ttl, refresh_ttl) = (Span::from_ms(100), Span::from_seconds(50));
        let family = Family::minted(None, at(0), ttl, refresh_ttl, digest(1));
        families.insert(KEY, family);
        families
    }

    fn refresh(families: &mut Families, shown: u8, ms: u64) -> Refresh {
        let traded = Trade {
            shown: digest(shown),
            successor: digest(shown.wrapping_add(1)),
            is_admitted: true,
        };
        families.refresh(KEY, &traded, at(ms))
    }

    #[test]
    fn revoking_is_for_good_and_happens_once() {
        let mut families = families();
        assert!(families.admits(KEY));
        assert!(families.revoke(KEY, at(5)));
        assert!(!families.revoke(KEY, at(9)));
        assert_eq!(families.find(KEY).unwrap().revoked_at, Some(at(5)));
        assert!(!families.admits(KEY));
        assert_eq!(
            refresh(&mut families, 1, 10),
            Refresh::Refused(Why::Revoked)
        );
        assert!(!families.revoke(KeyId(2), at(5)));
    }

    #[test]
    fn a_refresh_rotates_the_token_and_prolongs_the_family() {
        let mut families = families();
        assert_eq!(refresh(&mut families, 1, 1_000), Refresh::Rotated);
        let family = families.find(KEY).unwrap();
        assert_eq!(family.expires_at, at(1_100));
        assert_eq!(family.refresh_expires_at, at(51_000));
        assert_eq!(refresh(&mut families, 2, 2_000), Refresh::Rotated);
    }

    #[test]
    fn families_of_which_nothing_is_good_are_pruned() {
        let mut families = families();
        assert_eq!(families.prune(at(50_000 + DAY - 1)), []);
        assert_eq!(families.prune(at(50_000 + DAY)), [KEY]);
    }

    #[test]
    fn pages_follow_each_other() {
        let mut families = families();
        let family = families.find(KEY).cloned().unwrap();
        families.insert(KeyId(2), family.clone());
        families.insert(KeyId(3), family);
        let keys =
            |page: Vec<(KeyId, &Family)>| page.iter().map(|(key, _)| key.0).collect::<Vec<_>>();
        let (page, more) = families.page(None, 2);
        assert_eq!((keys(page), more), (vec![1, 2], true));
        let (page, more) = families.page(Some(KeyId(2)), 2);
        assert_eq!((keys(page), more), (vec![3], false));
    }
}
