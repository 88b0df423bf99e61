//! Refresh tokens: how they are written, read, and followed by the next one.
//!
//! A token is `sv_rt_` and `kid.source.keyId.secret.mac`: garbage is refused by
//! its MAC at the edge and never reaches an object. Its successor is derived
//! from it, not stored, so an answer that was lost can be given again though
//! only digests are kept. Whether a token is the current one, only the source's
//! object knows.

use base64ct::{Base64UrlUnpadded, Encoding as _};
use core::fmt;
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use std::str::FromStr;

use super::keys::SigningKeys;
use crate::governor::ids::{KeyId, NotAnId};

/// What every refresh token begins with.
pub const PREFIX: &str = "sv_rt_";
/// The longest token that is looked at: a name and a kid of the longest kind
/// make about 220 characters.
const MOST_CHARS: usize = 512;
/// Labels keep what is signed here apart from access keys, and from each other.
const MAC_LABEL: &[u8] = b"refresh token\0";
const SUCCESSOR_LABEL: &[u8] = b"successor of a refresh token\0";

/// The secret part of a refresh token: 256 bits.
#[derive(Clone, Copy)]
pub struct RefreshSecret(pub [u8; 32]);

impl RefreshSecret {
    pub fn digest(&self) -> SecretDigest {
        SecretDigest(Sha256::digest(self.0).into())
    }
}

impl fmt::Debug for RefreshSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RefreshSecret(…)")
    }
}

/// What is kept of a refresh token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretDigest(pub [u8; 32]);

impl fmt::Display for SecretDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64UrlUnpadded::encode_string(&self.0))
    }
}

impl FromStr for SecretDigest {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        bytes(text).map(Self).ok_or(NotAnId)
    }
}

/// A token whose MAC was good.
#[derive(Clone, Copy, Debug)]
pub struct Presented {
    pub key: KeyId,
    pub secret: RefreshSecret,
    pub successor: RefreshSecret,
}

impl SigningKeys {
    /// Writes a token. `None` only if there is no key to sign with.
    pub fn write_refresh(&self, source: &str, key: KeyId, secret: RefreshSecret) -> Option<String> {
        let (kid, signer) = self.first()?;
        let secret = Base64UrlUnpadded::encode_string(&secret.0);
        let body = format!("{kid}.{source}.{key}.{secret}");
        let mac = mac(signer, MAC_LABEL, body.as_bytes())?;
        let mac = Base64UrlUnpadded::encode_string(&mac.finalize().into_bytes());
        Some(format!("{PREFIX}{body}.{mac}"))
    }

    /// Reads a token that was written for `source`.
    pub fn read_refresh(&self, token: &str, source: &str) -> Option<Presented> {
        if token.len() > MOST_CHARS {
            return None;
        }
        let (body, shown) = token.strip_prefix(PREFIX)?.rsplit_once('.')?;
        let mut parts = body.split('.');
        let kid = parts.next()?;
        let signer = self.named(kid)?;
        let shown: [u8; 32] = bytes(shown)?;
        mac(signer, MAC_LABEL, body.as_bytes())?
            .verify_slice(&shown)
            .ok()?;
        let is_for_source = parts.next()? == source;
        let key = parts.next()?.parse().ok()?;
        let secret = RefreshSecret(bytes(parts.next()?)?);
        if !is_for_source || parts.next().is_some() {
            return None;
        }
        let successor = mac(signer, SUCCESSOR_LABEL, &secret.0)?;
        let successor = RefreshSecret(successor.finalize().into_bytes().into());
        Some(Presented {
            key,
            secret,
            successor,
        })
    }
}

fn mac(signer: &[u8], label: &[u8], message: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(signer).ok()?;
    mac.update(label);
    mac.update(message);
    Some(mac)
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    Base64UrlUnpadded::decode_vec(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signing(kid: &str, letter: char) -> SigningKeys {
        let secret = letter.to_string().repeat(43);
        SigningKeys::parse(&format!("{kid}:{secret}")).unwrap()
    }

    fn token() -> String {
        let keys = signing("k1", 'A');
        keys.write_refresh("demo", KeyId(3), RefreshSecret([7; 32]))
            .unwrap()
    }

    #[test]
    fn a_token_names_its_source_and_its_family() {
        let presented = signing("k1", 'A').read_refresh(&token(), "demo").unwrap();
        assert_eq!(presented.key, KeyId(3));
        assert_eq!(presented.secret.digest(), RefreshSecret([7; 32]).digest());
        assert!(signing("k1", 'A').read_refresh(&token(), "other").is_none());
        assert!(signing("k1", 'E').read_refresh(&token(), "demo").is_none());
        assert!(signing("k2", 'A').read_refresh(&token(), "demo").is_none());
    }

    #[test]
    fn the_successor_is_always_the_same_and_never_the_token_itself() {
        let keys = signing("k1", 'A');
        let first = keys.read_refresh(&token(), "demo").unwrap().successor;
        let second = keys.read_refresh(&token(), "demo").unwrap().successor;
        assert_eq!(first.0, second.0);
        assert_ne!(first.0, [7; 32]);
    }

    #[test]
    fn new_signing_keys_change_the_text_of_a_successor_and_not_the_successor() {
        let (old, new) = ("A".repeat(43), "E".repeat(43));
        let before = signing("k1", 'A');
        let after = SigningKeys::parse(&format!("k2:{new},k1:{old}")).unwrap();
        let successor = |keys: &SigningKeys, token: &str| {
            let shown = keys.read_refresh(token, "demo").unwrap();
            let text = keys.write_refresh("demo", shown.key, shown.successor);
            (shown.successor.digest(), text.unwrap())
        };
        let (first, its_text) = successor(&before, &token());
        let (again, other_text) = successor(&after, &token());
        assert_eq!(first, again);
        assert_ne!(its_text, other_text);
        // Both are good, but from there they lead to two tokens.
        assert_ne!(
            successor(&after, &its_text).0,
            successor(&after, &other_text).0
        );
    }

    #[test]
    fn any_change_to_a_token_spoils_it() {
        let keys = signing("k1", 'A');
        let token = token();
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(keys.read_refresh(&changed, "demo").is_none(), "{at}");
        }
        for bad in [
            "",
            "sv_rt_",
            "sv_rt_....",
            &format!("{token}."),
            &"x".repeat(9999),
        ] {
            assert!(keys.read_refresh(bad, "demo").is_none());
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", RefreshSecret([7; 32])), "RefreshSecret(…)");
    }
}
