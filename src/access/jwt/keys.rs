//! Key sets: the public keys with which an issuer's tokens are checked.
//!
//! A set is read once into keys that are fit for use. A key of another kind or
//! for another use is skipped, as is one that is too weak or malformed: sets
//! are shared with others, who need other keys. The kind of a key is its
//! algorithm; a token has no say in it.

use std::fmt;

use base64ct::{Base64UrlUnpadded, Encoding as _};
use jwt_compact::alg::{Ed25519, Es256, Rsa, RsaPublicKey};
use jwt_compact::jwk::JsonWebKey;
use jwt_compact::{Algorithm, AlgorithmExt as _, Claims, UntrustedToken, ValidationError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::fields::Members;

/// The most keys of one set, usable or not.
const MOST_KEYS: usize = 32;
/// The most keys of one set that are tried for one token.
const MOST_CANDIDATES: usize = 8;
/// Below it RFC 7518 forbids RS256; above 4,096 the library doesn't go.
const LEAST_RSA_BITS: usize = 2048;
/// Members that only a private or a shared key has.
const PRIVATE_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// The keys of an issuer; at least one.
pub struct KeySet {
    keys: Vec<Key>,
}

/// An algorithm under which a token can be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alg {
    Rs256,
    Es256,
    EdDsa,
}

/// The name of `EdDSA` on the one curve that is known here (RFC 9864).
const ED25519: &str = "Ed25519";

impl Alg {
    /// The one that a token or a key names; both names of `EdDSA` are the same.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" | ED25519 => Some(Self::EdDsa),
            _ => None,
        }
    }
}

struct Key {
    kid: Option<String>,
    material: Material,
}

enum Material {
    Rs256(RsaPublicKey),
    Es256(<Es256 as Algorithm>::VerifyingKey),
    EdDsa(<Ed25519 as Algorithm>::VerifyingKey),
}

/// Why a key set can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadKeySet {
    Malformed,
    TooMany,
    NoneUsable,
}

impl BadKeySet {
    /// What must be otherwise, to follow the set's name.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Malformed => "must be a JSON object like {\"keys\": […]}.",
            Self::TooMany => "must have at most 32 keys.",
            Self::NoneUsable => {
                "must have a public signing key for RS256 (RSA of 2048 to 4096 bits), \
                 ES256 (EC, P-256) or EdDSA (OKP, Ed25519)."
            }
        }
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySet({} keys)", self.keys.len())
    }
}

#[derive(Deserialize)]
struct RawSet<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// # Errors
    /// If it is no key set, has more than 32 keys, or none that can be used.
    pub fn parse(json: &str) -> Result<Self, BadKeySet> {
        let raw: RawSet = serde_json::from_str(json).map_err(|_| BadKeySet::Malformed)?;
        if raw.keys.len() > MOST_KEYS {
            return Err(BadKeySet::TooMany);
        }
        let keys: Vec<Key> = raw.keys.iter().filter_map(|raw| Key::parse(raw)).collect();
        if keys.is_empty() {
            return Err(BadKeySet::NoneUsable);
        }
        Ok(Self { keys })
    }

    /// The keys that may have signed a token: those of its name if it has one,
    /// and of its algorithm.
    pub(super) fn candidates<'a>(
        &'a self,
        kid: Option<&'a str>,
        alg: Alg,
    ) -> impl Iterator<Item = KeyRef<'a>> {
        self.keys
            .iter()
            .filter(move |key| kid.is_none_or(|kid| key.is_named(kid)) && key.alg() == alg)
            .take(MOST_CANDIDATES)
            .map(KeyRef)
    }

    /// Whether there is a key of this name, of whatever algorithm.
    pub(super) fn names(&self, kid: &str) -> bool {
        self.keys.iter().any(|key| key.is_named(kid))
    }
}

/// One key of a set.
#[derive(Clone, Copy)]
pub(super) struct KeyRef<'a>(&'a Key);

impl KeyRef<'_> {
    /// The claims of a token that this key signed under its own algorithm.
    pub(super) fn claims<T: DeserializeOwned, H: Clone>(
        self,
        token: &UntrustedToken<'_, H>,
    ) -> Result<Claims<T>, ValidationError> {
        let validated = match &self.0.material {
            Material::Rs256(key) => Rsa::rs256().validator(key).validate(token),
            Material::Es256(key) => Es256.validator(key).validate(token),
            Material::EdDsa(key) if token.algorithm() == ED25519 => {
                Ed25519::with_specific_name().validator(key).validate(token)
            }
            Material::EdDsa(key) => Ed25519.validator(key).validate(token),
        };
        validated.map(|token| token.into_parts().1)
    }
}

impl Key {
    fn is_named(&self, kid: &str) -> bool {
        self.kid.as_deref() == Some(kid)
    }

    const fn alg(&self) -> Alg {
        match self.material {
            Material::Rs256(_) => Alg::Rs256,
            Material::Es256(_) => Alg::Es256,
            Material::EdDsa(_) => Alg::EdDsa,
        }
    }

    fn parse(raw: &RawValue) -> Option<Self> {
        if private_name(raw).is_some() {
            // Its private half is out: it proves nothing.
            return None;
        }
        let jwk: Jwk = serde_json::from_str(raw.get()).ok()?;
        let may_verify = jwk.usage.as_deref().is_none_or(|usage| usage == "sig")
            && jwk
                .key_ops
                .as_ref()
                .is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        if !may_verify {
            return None;
        }
        let material = match jwk.kty.as_str() {
            "RSA" => rsa(&jwk)?,
            "EC" => p256(&jwk)?,
            "OKP" => ed25519(&jwk)?,
            _ => return None,
        };
        let alg = jwk.alg;
        let key = Self {
            kid: jwk.kid,
            material,
        };
        let is_for = |alg: &str| Alg::named(alg) == Some(key.alg());
        alg.as_deref().is_none_or(is_for).then_some(key)
    }
}

fn rsa(jwk: &Jwk) -> Option<Material> {
    let modulus = bytes(jwk.n.as_deref())?;
    if bits(&modulus) < LEAST_RSA_BITS {
        return None;
    }
    let jwk = JsonWebKey::Rsa {
        modulus: modulus.into(),
        public_exponent: bytes(jwk.e.as_deref())?.into(),
        private_parts: None,
    };
    (&jwk).try_into().ok().map(Material::Rs256)
}

fn p256(jwk: &Jwk) -> Option<Material> {
    let jwk = JsonWebKey::EllipticCurve {
        curve: jwk.crv.as_deref()?.into(),
        x: bytes(jwk.x.as_deref())?.into(),
        y: bytes(jwk.y.as_deref())?.into(),
        secret: None,
    };
    (&jwk).try_into().ok().map(Material::Es256)
}

fn ed25519(jwk: &Jwk) -> Option<Material> {
    let jwk = JsonWebKey::KeyPair {
        curve: jwk.crv.as_deref()?.into(),
        x: bytes(jwk.x.as_deref())?.into(),
        secret: None,
    };
    let key: <Ed25519 as Algorithm>::VerifyingKey = (&jwk).try_into().ok()?;
    // Under a weak one anybody could sign.
    (!key.is_weak()).then_some(Material::EdDsa(key))
}

fn bytes(text: Option<&str>) -> Option<Vec<u8>> {
    Base64UrlUnpadded::decode_vec(text?).ok()
}

/// How many bits a big-endian number has.
fn bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let leading = number.get(zeros).map_or(0, |byte| byte.leading_zeros());
    number
        .len()
        .saturating_sub(zeros)
        .saturating_mul(8)
        .saturating_sub(leading as usize)
}

/// The first key of a set, by its index, that has a private part, and the name
/// of that part.
pub fn private_member(json: &str) -> Option<(usize, &'static str)> {
    let raw: RawSet = serde_json::from_str(json).ok()?;
    let mut keys = raw.keys.iter().enumerate();
    keys.find_map(|(index, raw)| Some((index, private_name(raw)?)))
}

fn private_name(raw: &RawValue) -> Option<&'static str> {
    let members: Members = serde_json::from_str(raw.get()).ok()?;
    PRIVATE_MEMBERS
        .into_iter()
        .find(|name| members.get(name).is_some())
}
