//! Keys made here, and tokens signed with them.

use std::sync::LazyLock;

use base64ct::{Base64UrlUnpadded, Encoding as _};
use jwt_compact::alg::{Ed25519, Es256, ModulusBits, Rsa, SigningKey};
use jwt_compact::jwk::JsonWebKey;
use jwt_compact::{Algorithm, AlgorithmSignature as _};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use serde_json::{Value, json};

use super::super::*;

pub(super) const NOW_SECONDS: u64 = 1_710_000_000;
pub(super) const NOW: Millis = Millis::from_epoch(NOW_SECONDS * 1000);

pub(super) type Sign = Box<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

/// A key pair: how it signs, under which name, and its public half as JSON.
pub(super) struct Signer {
    pub(super) alg: &'static str,
    pub(super) sign: Sign,
    pub(super) jwk: Value,
}

pub(super) fn rsa(seed: u64) -> Signer {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (private, public) = Rsa::generate(&mut rng, ModulusBits::TwoKibibytes).unwrap();
    let (private, public) = (private.into_inner(), public.into_inner());
    Signer {
        alg: "RS256",
        jwk: serde_json::to_value(JsonWebKey::from(&public)).unwrap(),
        sign: Box::new(move |message| Rsa::rs256().sign(&private, message).as_bytes().into()),
    }
}

pub(super) fn p256(seed: u8) -> Signer {
    type Private = <Es256 as Algorithm>::SigningKey;
    let private = <Private as SigningKey<Es256>>::from_slice(&[seed; 32]).unwrap();
    Signer {
        alg: "ES256",
        jwk: serde_json::to_value(JsonWebKey::from(private.verifying_key())).unwrap(),
        sign: Box::new(move |message| Es256.sign(&private, message).as_bytes().into()),
    }
}

pub(super) fn ed25519(seed: u8) -> Signer {
    type Private = <Ed25519 as Algorithm>::SigningKey;
    let private = <Private as SigningKey<Ed25519>>::from_slice(&[seed; 32]).unwrap();
    Signer {
        alg: "EdDSA",
        jwk: serde_json::to_value(JsonWebKey::from(&private.verifying_key())).unwrap(),
        sign: Box::new(move |message| Ed25519.sign(&private, message).as_bytes().into()),
    }
}

pub(super) static RSA: LazyLock<Signer> = LazyLock::new(|| rsa(1));
pub(super) static OTHER_RSA: LazyLock<Signer> = LazyLock::new(|| rsa(2));
pub(super) static P256: LazyLock<Signer> = LazyLock::new(|| p256(1));
pub(super) static EDWARDS: LazyLock<Signer> = LazyLock::new(|| ed25519(1));

impl Signer {
    pub(super) fn token(&self, header: &Value, claims: &Value) -> String {
        self.token_of(&header.to_string(), &claims.to_string())
    }

    pub(super) fn token_of(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", encode(header), encode(claims));
        let signature = (self.sign)(message.as_bytes());
        format!("{message}.{}", Base64UrlUnpadded::encode_string(&signature))
    }

    /// A token with a header as it should be.
    pub(super) fn says(&self, claims: &Value) -> String {
        self.token(&json!({"alg": self.alg, "kid": "k", "typ": "JWT"}), claims)
    }

    pub(super) fn jwk(&self, more: &Value) -> Value {
        merged(&self.jwk, more)
    }

    /// A set of this key, named `k`.
    pub(super) fn set(&self) -> KeySet {
        set(&[self.jwk(&json!({"kid": "k"}))])
    }
}

pub(super) fn encode(text: &str) -> String {
    Base64UrlUnpadded::encode_string(text.as_bytes())
}

/// `base` with the members of `more`; those that are null there are left out.
pub(super) fn merged(base: &Value, more: &Value) -> Value {
    let mut merged = base.as_object().unwrap().clone();
    for (name, value) in more.as_object().unwrap() {
        if value.is_null() {
            merged.remove(name);
        } else {
            merged.insert(name.clone(), value.clone());
        }
    }
    merged.into()
}

pub(super) fn set(keys: &[Value]) -> KeySet {
    KeySet::parse(&json!({ "keys": keys }).to_string()).unwrap()
}

pub(super) fn expected() -> Expectation {
    Expectation {
        issuer: "https://idp.example/".into(),
        audience: "locks".into(),
        is_access: false,
    }
}

/// Good claims, with these changes.
pub(super) fn claims(more: &Value) -> Value {
    let good = json!({
        "iss": "https://idp.example/",
        "aud": "locks",
        "exp": NOW_SECONDS + 60,
    });
    merged(&good, more)
}

pub(super) fn check(token: &str, keys: &KeySet) -> Result<Millis, Refused> {
    verify(token, keys, &expected(), NOW)
}
