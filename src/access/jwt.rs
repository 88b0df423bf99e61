//! JSON Web Tokens: whether one is good, by keys that are known already.
//!
//! Pure: the keys and the moment come in as arguments. The algorithm is the
//! key's, never the token's. Nothing of a token ever gets into an error or a
//! `Debug` text, and no token, however hostile, makes this panic.

pub mod fetched;
pub mod inline;
pub mod keys;
pub mod lifetime;
pub mod policy;
pub mod proven;
pub mod sets;
#[cfg(test)]
mod tests;
pub mod url;

use jwt_compact::{Claims, UntrustedToken, ValidationError};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use crate::governor::time::{Millis, Span};
use keys::Alg;
pub use keys::{BadKeySet, KeySet};

/// The longest token that is looked at.
pub const MOST_TOKEN_BYTES: usize = 8 * 1024;
/// How far the issuer's clock may be from ours.
const LEEWAY: Span = Span::from_seconds(30);

/// What a token must say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    pub issuer: String,
    pub audience: String,
    /// It comes from Cloudflare Access: signed with RS256, for an application,
    /// and it names a user or a service token.
    pub is_access: bool,
}

/// Why a token is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The set has no such key; a newer one may have it.
    UnknownKey,
    Bad,
}

/// The moment from which the token is no longer good: its `exp` with the
/// leeway.
///
/// # Errors
/// If it is not good at `now`.
pub fn verify(
    token: &str,
    keys: &KeySet,
    expected: &Expectation,
    now: Millis,
) -> Result<Millis, Refused> {
    if token.len() > MOST_TOKEN_BYTES {
        return Err(Refused::Bad);
    }
    let token = UntrustedToken::try_from(token).map_err(|_| Refused::Bad)?;
    let claims = signed_claims(&token, keys, expected)?;
    if !is_meant(&claims.custom, expected) {
        return Err(Refused::Bad);
    }
    let expires_at = claims.expiration.ok_or(Refused::Bad)?;
    let expires_at = moment(expires_at.timestamp_millis()).plus(LEEWAY);
    let not_before = claims
        .not_before
        .map_or(Millis::EPOCH, |at| moment(at.timestamp_millis()));
    if expires_at <= now || not_before > now.plus(LEEWAY) {
        return Err(Refused::Bad);
    }
    Ok(expires_at)
}

fn signed_claims(
    token: &UntrustedToken<'_, Extra>,
    keys: &KeySet,
    expected: &Expectation,
) -> Result<Claims<Said>, Refused> {
    let header = token.header();
    if header.other_fields.crit {
        // It asks for extensions, and we know none.
        return Err(Refused::Bad);
    }
    let alg = Alg::named(token.algorithm()).ok_or(Refused::Bad)?;
    if expected.is_access && alg != Alg::Rs256 {
        return Err(Refused::Bad);
    }
    let kid = header.key_id.as_deref();
    for key in keys.candidates(kid, alg) {
        match key.claims(token) {
            Ok(claims) => return Ok(claims),
            // Another may have signed it.
            Err(ValidationError::InvalidSignature) => {}
            // The key was the right one, or none can be.
            Err(_) => return Err(Refused::Bad),
        }
    }
    // Without a name, another signature may mean a new key.
    let is_known = kid.is_some_and(|kid| keys.names(kid));
    Err(if is_known {
        Refused::Bad
    } else {
        Refused::UnknownKey
    })
}

fn is_meant(said: &Said, expected: &Expectation) -> bool {
    let is_for_us = match &said.aud {
        Audience::One(audience) => *audience == expected.audience,
        Audience::Several(audiences) => audiences.contains(&expected.audience),
    };
    let names_someone = said.email.is_text() || said.common_name.is_text();
    let is_for_an_app = matches!(&said.kind, Claim::Text(kind) if kind == "app");
    said.iss == expected.issuer
        && is_for_us
        && (!expected.is_access || (is_for_an_app && names_someone))
}

fn moment(epoch_ms: i64) -> Millis {
    Millis::from_epoch(u64::try_from(epoch_ms).unwrap_or(0))
}

/// What matters of a header beyond the usual.
#[derive(Clone, Deserialize)]
struct Extra {
    #[serde(default, deserialize_with = "is_there")]
    crit: bool,
}

fn is_there<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(value).map(|_| true)
}

#[derive(Deserialize)]
struct Said {
    iss: String,
    aud: Audience,
    #[serde(default, rename = "type")]
    kind: Claim,
    #[serde(default)]
    email: Claim,
    #[serde(default)]
    common_name: Claim,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// A claim that is a text where it matters, and may be anything elsewhere.
#[derive(Deserialize)]
#[serde(untagged)]
enum Claim {
    Text(String),
    Other(IgnoredAny),
}

impl Default for Claim {
    fn default() -> Self {
        Self::Other(IgnoredAny)
    }
}

impl Claim {
    fn is_text(&self) -> bool {
        matches!(self, Self::Text(text) if !text.is_empty())
    }
}
