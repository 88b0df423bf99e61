//! Tokens that were found good: they are not checked again until they expire,
//! or the key set changes.
//!
//! Only a digest of a token is kept, together with everything that it was found
//! good for: one that is good at one source, or under one policy, proves
//! nothing elsewhere.

use sha2::{Digest as _, Sha256};

use super::Expectation;
use crate::governor::ids::Version;
use crate::governor::time::Millis;
use crate::index::Table;

/// The most tokens that are remembered.
pub const MOST_TOKENS: usize = 1024;
/// The generation of inline keys: another policy version has another set.
pub const INLINE: u64 = 0;

/// What a token is good for.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub source: &'a str,
    pub version: Version,
    pub expected: &'a Expectation,
    /// Of the key set.
    pub generation: u64,
}

impl Scope<'_> {
    fn digest(&self, token: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [
            self.source,
            &self.expected.issuer,
            &self.expected.audience,
            token,
        ] {
            // With its length, so that no two ways of saying it are alike.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.update([u8::from(self.expected.is_access)]);
        hash.update(self.version.0.to_be_bytes());
        hash.update(self.generation.to_be_bytes());
        hash.finalize().into()
    }
}

#[derive(Default)]
pub struct Proven {
    /// By the first half of the digest.
    known: Table<Proof>,
}

struct Proof {
    digest: [u8; 32],
    generation: u64,
    expires_at: Millis,
}

impl Proven {
    /// Whether this token was found good for this, and still is.
    pub fn holds(&self, scope: &Scope<'_>, token: &str, now: Millis) -> bool {
        let digest = scope.digest(token);
        let proof = self.known.get(key(&digest));
        proof.is_some_and(|proof| proof.digest == digest && now < proof.expires_at)
    }

    pub fn remember(&mut self, scope: &Scope<'_>, token: &str, expires_at: Millis, now: Millis) {
        if self.known.len() >= MOST_TOKENS {
            self.known.retain(|proof| now < proof.expires_at);
        }
        if self.known.len() >= MOST_TOKENS {
            let soonest = self.known.iter().min_by_key(|(_, proof)| proof.expires_at);
            if let Some(soonest) = soonest.map(|(key, _)| key) {
                self.known.remove(soonest);
            }
        }
        let digest = scope.digest(token);
        let proof = Proof {
            digest,
            generation: scope.generation,
            expires_at,
        };
        self.known.insert(key(&digest), proof);
    }

    /// Drops what was found good by a set that is no more.
    pub fn forget(&mut self, generation: u64) {
        self.known.retain(|proof| proof.generation != generation);
    }
}

fn key(digest: &[u8; 32]) -> u128 {
    digest
        .first_chunk()
        .map_or(0, |half| u128::from_be_bytes(*half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Millis {
        Millis::from_epoch(ms)
    }

    fn expected(issuer: &str, audience: &str, is_access: bool) -> Expectation {
        Expectation {
            issuer: issuer.into(),
            audience: audience.into(),
            is_access,
        }
    }

    fn scope(expected: &Expectation) -> Scope<'_> {
        Scope {
            source: "demo",
            version: Version(1),
            expected,
            generation: 1,
        }
    }

    #[test]
    fn a_token_is_remembered_until_it_expires() {
        let (mut proven, plain) = (Proven::default(), expected("i", "a", false));
        assert!(!proven.holds(&scope(&plain), "t", at(0)));
        proven.remember(&scope(&plain), "t", at(100), at(0));
        assert!(proven.holds(&scope(&plain), "t", at(99)));
        assert!(!proven.holds(&scope(&plain), "t", at(100)));
        assert!(!proven.holds(&scope(&plain), "u", at(0)));
    }

    #[test]
    fn a_token_that_is_good_for_one_thing_proves_nothing_elsewhere() {
        let mut proven = Proven::default();
        let here = expected("i", "a", false);
        proven.remember(&scope(&here), "t", at(100), at(0));
        let good = scope(&here);
        #[rustfmt::skip]
        let others = [
            Scope { source: "other", ..good },
            Scope { source: "dem", expected: &expected("oi", "a", false), ..good },
            Scope { version: Version(2), ..good },
            Scope { generation: 2, ..good },
            Scope { expected: &expected("j", "a", false), ..good },
            Scope { expected: &expected("i", "b", false), ..good },
            Scope { expected: &expected("ia", "", false), ..good },
            Scope { expected: &expected("i", "a", true), ..good },
        ];
        for (index, other) in others.iter().enumerate() {
            assert!(!proven.holds(other, "t", at(0)), "{index}");
        }
        assert!(proven.holds(&good, "t", at(0)));
    }

    #[test]
    fn a_set_that_is_no_more_takes_its_proofs_along() {
        let (mut proven, plain) = (Proven::default(), expected("i", "a", false));
        let old = scope(&plain);
        let new = Scope {
            generation: 2,
            ..old
        };
        proven.remember(&old, "t", at(100), at(0));
        proven.remember(&new, "t", at(100), at(0));
        proven.forget(1);
        assert!(!proven.holds(&old, "t", at(0)) && proven.holds(&new, "t", at(0)));
        assert_eq!(proven.known.len(), 1);
    }

    #[test]
    fn their_number_is_bounded_and_the_expired_go_first() {
        let (mut proven, plain) = (Proven::default(), expected("i", "a", false));
        let scope = scope(&plain);
        for number in 0..MOST_TOKENS as u64 {
            proven.remember(&scope, &number.to_string(), at(1000 + number), at(0));
        }
        proven.remember(&scope, "one more", at(5000), at(0));
        assert_eq!(proven.known.len(), MOST_TOKENS);
        assert!(!proven.holds(&scope, "0", at(0)) && proven.holds(&scope, "1", at(0)));
        proven.remember(&scope, "later", at(5000), at(1500));
        assert_eq!(proven.known.len(), MOST_TOKENS - 500 + 1);
    }
}
