//! Access keys: signed tokens that the edge checks without a hop.
//!
//! A key is `sv_at_` and a compact JWT, HS256 under the deployment's signing
//! keys. It names its source and its family; whether the family is alive, only
//! the source's object knows.

use base64ct::{Base64, Base64Unpadded, Base64UrlUnpadded, Encoding as _};
use jwt_compact::alg::{Hs256, Hs256Key};
use jwt_compact::{AlgorithmExt as _, Claims, Header, UntrustedToken};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::governor::ids::KeyId;
use crate::governor::time::Millis;
use crate::index::Recent;

/// What every access key begins with.
pub const PREFIX: &str = "sv_at_";
/// The longest key that is looked at: ours have about 230 characters.
const MOST_CHARS: usize = 1024;
/// The most keys that are known at once.
const MOST_KNOWN: usize = 1024;
/// As many bytes as HS256 asks for.
const LEAST_SECRET_BYTES: usize = 32;

/// `SIGNING_KEYS`: the first signs, all verify.
pub struct SigningKeys {
    keys: Vec<(String, Hs256Key)>,
}

/// Why `SIGNING_KEYS` can't be used. Never carries a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSigningKeys;

impl SigningKeys {
    /// Reads `kid:base64,kid:base64,…`.
    ///
    /// # Errors
    /// If there is none, an entry is malformed, a `kid` comes twice or isn't 1 to
    /// 32 letters, digits, `-` and `_`, or a secret has under 32 bytes.
    pub fn parse(text: &str) -> Result<Self, BadSigningKeys> {
        let mut keys: Vec<(String, Hs256Key)> = Vec::new();
        for entry in text.split(',') {
            let (kid, secret) = entry.trim().split_once(':').ok_or(BadSigningKeys)?;
            let secret = decode(secret).ok_or(BadSigningKeys)?;
            let is_new = keys.iter().all(|(known, _)| known != kid);
            if !is_kid(kid) || !is_new || secret.len() < LEAST_SECRET_BYTES {
                return Err(BadSigningKeys);
            }
            keys.push((kid.to_owned(), Hs256Key::new(secret)));
        }
        Ok(Self { keys })
    }

    /// The key that signs, with its id.
    pub(super) fn first(&self) -> Option<(&str, &[u8])> {
        let (kid, secret) = self.keys.first()?;
        Some((kid, secret.as_ref()))
    }

    /// The key with this id.
    pub(super) fn named(&self, kid: &str) -> Option<&[u8]> {
        let found = self.keys.iter().find(|(known, _)| known == kid);
        found.map(|(_, secret)| secret.as_ref())
    }

    /// Signs a key. `None` only if the token can't be written.
    pub fn sign(&self, grant: &KeyGrant) -> Option<String> {
        let (kid, secret) = self.keys.first()?;
        let header = Header::empty().with_key_id(kid.as_str());
        let claims = Claims::new(Private {
            src: grant.source.clone(),
            key: grant.key.to_string(),
            exp_ms: grant.expires_at.epoch_ms(),
        });
        let token = Hs256.token(&header, &claims, secret).ok()?;
        Some(format!("{PREFIX}{token}"))
    }

    /// The family of a key that is good for `source` at `now`, as far as its
    /// text can say.
    pub fn verify(&self, key: &str, source: &str, now: Millis) -> Option<KeyId> {
        let (key, expires_at) = self.read(key, source)?;
        (now < expires_at).then_some(key)
    }

    /// The family of a key that was signed for `source`, and the end of its life.
    fn read(&self, key: &str, source: &str) -> Option<(KeyId, Millis)> {
        let token = key.strip_prefix(PREFIX)?;
        if key.len() > MOST_CHARS {
            return None;
        }
        let token = UntrustedToken::new(token).ok()?;
        let kid = token.header().key_id.as_deref()?;
        let (_, secret) = self.keys.iter().find(|(known, _)| known == kid)?;
        let token = Hs256.validator::<Private>(secret).validate(&token).ok()?;
        let private = &token.claims().custom;
        if private.src != source {
            return None;
        }
        let expires_at = Millis::from_epoch(private.exp_ms);
        Some((private.key.parse().ok()?, expires_at))
    }
}

/// Keys that were found to be signed: they are not checked again. Signing keys
/// change with the deployment only, and so with the memory that this is in. Only
/// digests are kept.
pub struct KnownKeys(Recent<KnownKey>);

impl Default for KnownKeys {
    fn default() -> Self {
        Self(Recent::of(MOST_KNOWN))
    }
}

struct KnownKey {
    digest: [u8; 32],
    key: KeyId,
    expires_at: Millis,
}

impl KnownKeys {
    /// As [`SigningKeys::verify`] says, at once where it was looked at before; and
    /// when the key ends.
    ///
    /// # Errors
    /// The family of a signed key whose life is over, for the log; `None` if it
    /// isn't signed for this source.
    pub fn verify(
        &mut self,
        signing: &SigningKeys,
        key: &str,
        source: &str,
        now: Millis,
    ) -> Result<(KeyId, Millis), Option<KeyId>> {
        if key.len() > MOST_CHARS {
            return Err(None);
        }
        // No source's name has a line break in it.
        let digest: [u8; 32] = Sha256::new()
            .chain_update(source)
            .chain_update("\n")
            .chain_update(key)
            .finalize()
            .into();
        let place = u128::from_be_bytes(digest.first_chunk().copied().unwrap_or_default());
        let known = self.0.recall(place);
        let known = known.filter(|known| known.digest == digest);
        let (key, expires_at) = if let Some(known) = known {
            (known.key, known.expires_at)
        } else {
            let (key, expires_at) = signing.read(key, source).ok_or(None)?;
            let known = KnownKey {
                digest,
                key,
                expires_at,
            };
            self.0.put(place, known);
            (key, expires_at)
        };
        if now < expires_at {
            Ok((key, expires_at))
        } else {
            Err(Some(key))
        }
    }
}

/// Key ids stand in tokens as they are.
fn is_kid(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=32).contains(&text.len()) && text.bytes().all(plain)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    Base64::decode_vec(text)
        .or_else(|_| Base64Unpadded::decode_vec(text))
        .or_else(|_| Base64UrlUnpadded::decode_vec(text.trim_end_matches('=')))
        .ok()
}

/// What an access key says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyGrant {
    pub source: String,
    pub key: KeyId,
    pub expires_at: Millis,
}

#[derive(Clone, Serialize, Deserialize)]
struct Private {
    src: String,
    key: String,
    #[serde(rename = "expMs")]
    exp_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::time::Span;

    const NOW: Millis = Millis::from_epoch(1_710_000_000_000);

    fn secret(byte: char) -> String {
        byte.to_string().repeat(43)
    }

    fn signing(text: &str) -> SigningKeys {
        SigningKeys::parse(text).unwrap()
    }

    fn grant() -> KeyGrant {
        KeyGrant {
            source: "demo".into(),
            key: KeyId(9),
            expires_at: NOW.plus(Span::from_ms(1)),
        }
    }

    #[test]
    fn a_known_key_is_good_for_what_it_was_good_for_and_no_longer() {
        let keys = signing(&format!("k1:{}", secret('A')));
        let mut known = KnownKeys::default();
        let key = keys.sign(&grant()).unwrap();
        let end = NOW.plus(Span::from_ms(1));
        for _ in 0..2 {
            assert_eq!(known.verify(&keys, &key, "demo", NOW), Ok((KeyId(9), end)));
            assert_eq!(known.verify(&keys, &key, "other", NOW), Err(None));
            let other = format!("{key}x");
            assert_eq!(known.verify(&keys, &other, "demo", NOW), Err(None));
        }
        assert_eq!(known.verify(&keys, &key, "demo", end), Err(Some(KeyId(9))));
    }

    #[test]
    fn keys_that_are_known_are_not_checked_and_are_bounded() {
        let keys = signing(&format!("k1:{}", secret('A')));
        let nobody = signing(&format!("k1:{}", secret('E')));
        let mut known = KnownKeys::default();
        let key = keys.sign(&grant()).unwrap();
        let end = NOW.plus(Span::from_ms(1));
        assert_eq!(known.verify(&keys, &key, "demo", NOW), Ok((KeyId(9), end)));
        assert_eq!(
            known.verify(&nobody, &key, "demo", NOW),
            Ok((KeyId(9), end))
        );
        let used = key;
        for id in 0..=MOST_KNOWN as u64 {
            let key = keys
                .sign(&KeyGrant {
                    key: KeyId(id),
                    ..grant()
                })
                .unwrap();
            assert_eq!(known.verify(&keys, &key, "demo", NOW), Ok((KeyId(id), end)));
            // It is shown all the time, so others make room.
            assert_eq!(
                known.verify(&nobody, &used, "demo", NOW),
                Ok((KeyId(9), end))
            );
        }
        assert_eq!(known.0.len(), MOST_KNOWN);
    }

    #[test]
    fn a_signed_key_is_good_for_its_source_until_it_expires() {
        let keys = signing(&format!("k1:{}", secret('A')));
        let key = keys.sign(&grant()).unwrap();
        assert!(key.starts_with("sv_at_"));
        assert_eq!(keys.verify(&key, "demo", NOW), Some(KeyId(9)));
        assert_eq!(keys.verify(&key, "other", NOW), None);
        assert_eq!(keys.verify(&key, "demo", NOW.plus(Span::from_ms(1))), None);
    }

    #[test]
    fn the_first_signs_and_all_verify() {
        let (old, new) = (secret('A'), secret('E'));
        let key = signing(&format!("k1:{old}")).sign(&grant()).unwrap();
        let both = signing(&format!("k2:{new}, k1:{old}"));
        assert_eq!(both.verify(&key, "demo", NOW), Some(KeyId(9)));
        let fresh = both.sign(&grant()).unwrap();
        assert_eq!(
            signing(&format!("k2:{new}")).verify(&fresh, "demo", NOW),
            Some(KeyId(9))
        );
        assert_eq!(
            signing(&format!("k1:{old}")).verify(&fresh, "demo", NOW),
            None
        );
        assert_eq!(
            signing(&format!("k1:{new}")).verify(&key, "demo", NOW),
            None
        );
    }

    #[test]
    fn any_change_to_a_key_spoils_it() {
        let keys = signing(&format!("k1:{}", secret('A')));
        let key = keys.sign(&grant()).unwrap();
        for at in 0..key.len() {
            let mut bytes = key.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(keys.verify(&changed, "demo", NOW), None, "{at}");
        }
        for bad in [
            "",
            "sv_at_",
            "sv_at_..",
            key.strip_prefix(PREFIX).unwrap(),
            &format!("{key}A"),
            &format!("{key} "),
        ] {
            assert_eq!(keys.verify(bad, "demo", NOW), None, "{bad}");
        }
    }

    #[test]
    fn malformed_signing_keys_are_refused_whole() {
        let good = secret('A');
        for padding in ["", "="] {
            assert!(SigningKeys::parse(&format!("k1:{good}{padding}")).is_ok());
        }
        for bad in [
            String::new(),
            "k1".into(),
            "k1:".into(),
            "k1:short".into(),
            format!(":{good}"),
            format!("a.b:{good}"),
            format!("k1:{good},"),
            format!("k1:{good},k1:{good}"),
            format!("k1:{}", "!".repeat(43)),
        ] {
            assert!(SigningKeys::parse(&bad).is_err(), "{bad}");
        }
    }
}
