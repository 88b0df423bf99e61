//! Nothing that comes from outside makes it panic: a panic hangs callers.

use std::sync::LazyLock;

use base64ct::{Base64UrlUnpadded, Encoding as _};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use super::support::*;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~é]{0,12}".prop_map(Value::from),
        Just(Value::from("locks")),
        Just(Value::from("https://idp.example/")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z$:]{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_members(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(prop::sample::select(names), any_json(), 0..names.len())
        .prop_map(|map| Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()))
}

const HEADER: &[&str] = &[
    "alg", "kid", "typ", "cty", "crit", "jku", "x5u", "x5t", "x5t#S256", "b64",
];
const CLAIMS: &[&str] = &[
    "iss",
    "aud",
    "exp",
    "nbf",
    "iat",
    "type",
    "email",
    "common_name",
    "sub",
];
const JWK: &[&str] = &[
    "kty", "kid", "alg", "use", "key_ops", "crv", "n", "e", "x", "y", "d", "k",
];

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        prop_assert!(check(&text, &EDWARDS.set()).is_err());
        let _ = KeySet::parse(&text);
    }

    #[test]
    fn no_parts_make_it_panic(parts in prop::collection::vec("[A-Za-z0-9_=-]{0,60}", 0..5)) {
        prop_assert!(check(&parts.join("."), &EDWARDS.set()).is_err());
    }

    #[test]
    fn no_header_makes_it_panic(more in any_members(HEADER)) {
        let header = merged(&json!({"alg": "EdDSA", "kid": "k"}), &more);
        let _ = check(&EDWARDS.token(&header, &claims(&json!({}))), &EDWARDS.set());
    }

    #[test]
    fn no_signed_claims_make_it_panic(more in any_members(CLAIMS), is_access in any::<bool>()) {
        let token = EDWARDS.says(&merged(&claims(&json!({})), &more));
        let expected = Expectation { is_access, ..expected() };
        let _ = verify(&token, &EDWARDS.set(), &expected, NOW);
    }

    #[test]
    fn no_signature_makes_it_panic(signature in prop::collection::vec(any::<u8>(), 0..600)) {
        for signed in SIGNED.iter() {
            for length in [64, 256, signature.len()] {
                let mut signature = signature.clone();
                signature.resize(length, 0xff);
                let message = signed.token.rsplit_once('.').unwrap().0;
                let token = format!("{message}.{}", Base64UrlUnpadded::encode_string(&signature));
                prop_assert!(check(&token, &signed.keys).is_err());
            }
        }
    }

    #[test]
    fn no_key_makes_it_panic(more in any_members(JWK), bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let coded = Base64UrlUnpadded::encode_string(&bytes);
        for signed in SIGNED.iter() {
            let mut keys = vec![merged(&signed.jwk, &more)];
            for name in ["n", "e", "x", "y"] {
                keys.push(merged(&signed.jwk, &json!({name: coded})));
            }
            for key in keys {
                if let Ok(keys) = KeySet::parse(&json!({"keys": [key]}).to_string()) {
                    let _ = check(&signed.token, &keys);
                }
            }
        }
    }
}

/// A token without a `kid` for each algorithm, signed once: that is slow.
struct Signed {
    token: String,
    jwk: Value,
    keys: KeySet,
}

static SIGNED: LazyLock<Vec<Signed>> = LazyLock::new(|| {
    let signed = |signer: &Signer| Signed {
        token: signer.token(&json!({"alg": signer.alg}), &claims(&json!({}))),
        jwk: signer.jwk.clone(),
        keys: signer.set(),
    };
    [&*RSA, &P256, &EDWARDS].map(signed).into()
});
