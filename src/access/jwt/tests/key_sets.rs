//! Which keys of a set are used.

use base64ct::{Base64UrlUnpadded, Encoding as _};
use serde_json::json;

use super::super::*;
use super::support::*;

#[test]
fn a_key_for_something_else_is_skipped() {
    // An odd number of so many bits, which is all that is looked at.
    let modulus = |bits: usize| {
        let mut bytes = vec![0xff; bits / 8];
        bytes.insert(0, 0);
        Base64UrlUnpadded::encode_string(&bytes)
    };
    let x_of = |signer: &Signer| signer.jwk["x"].clone();
    for (key, is_usable) in [
        (RSA.jwk(&json!({})), true),
        (
            RSA.jwk(&json!({"use": "sig", "alg": "RS256", "kid": "a", "x5c": ["…"]})),
            true,
        ),
        (RSA.jwk(&json!({"key_ops": ["verify", "x"]})), true),
        (RSA.jwk(&json!({"kid": null, "alg": null})), true),
        (RSA.jwk(&json!({"use": "enc"})), false),
        (RSA.jwk(&json!({"use": 1})), false),
        (RSA.jwk(&json!({"key_ops": ["encrypt"]})), false),
        (RSA.jwk(&json!({"alg": "RS512"})), false),
        (RSA.jwk(&json!({"alg": "PS256"})), false),
        (RSA.jwk(&json!({"alg": "HS256"})), false),
        (RSA.jwk(&json!({"alg": "none"})), false),
        (RSA.jwk(&json!({"kid": 1})), false),
        (RSA.jwk(&json!({"d": "AA"})), false),
        (RSA.jwk(&json!({"n": modulus(4096)})), true),
        (RSA.jwk(&json!({"n": modulus(2048)})), true),
        (RSA.jwk(&json!({"n": modulus(2040)})), false),
        (RSA.jwk(&json!({"n": modulus(1024)})), false),
        (RSA.jwk(&json!({"n": modulus(4104)})), false),
        (RSA.jwk(&json!({"n": ""})), false),
        (RSA.jwk(&json!({"n": "!"})), false),
        (RSA.jwk(&json!({"n": "A".repeat(1000)})), false),
        // Even.
        (
            RSA.jwk(&json!({"n": Base64UrlUnpadded::encode_string(&[0xfe; 256])})),
            false,
        ),
        (RSA.jwk(&json!({"e": "AQ"})), false),
        (RSA.jwk(&json!({"e": "Ag"})), false),
        (RSA.jwk(&json!({"e": "Aw"})), true),
        (RSA.jwk(&json!({"e": ""})), false),
        (RSA.jwk(&json!({"e": "_".repeat(40)})), false),
        (RSA.jwk(&json!({"e": null})), false),
        (P256.jwk(&json!({"alg": "ES256", "use": "sig"})), true),
        (P256.jwk(&json!({"alg": "RS256"})), false),
        (P256.jwk(&json!({"crv": "P-384"})), false),
        (P256.jwk(&json!({"crv": "secp256k1"})), false),
        (P256.jwk(&json!({"crv": null})), false),
        (P256.jwk(&json!({"x": x_of(&EDWARDS)})), false),
        (
            P256.jwk(&json!({"x": "A".repeat(43), "y": "A".repeat(43)})),
            false,
        ),
        (P256.jwk(&json!({"x": "AA"})), false),
        (P256.jwk(&json!({"y": null})), false),
        (EDWARDS.jwk(&json!({"alg": "EdDSA"})), true),
        (EDWARDS.jwk(&json!({"alg": "Ed25519"})), true),
        (EDWARDS.jwk(&json!({"alg": "Ed448"})), false),
        (EDWARDS.jwk(&json!({"alg": "ES256"})), false),
        (P256.jwk(&json!({"alg": "Ed25519"})), false),
        (EDWARDS.jwk(&json!({"crv": "X25519"})), false),
        (EDWARDS.jwk(&json!({"crv": "Ed448"})), false),
        (EDWARDS.jwk(&json!({"x": "AA"})), false),
        // Points of small order: the neutral one, and one of order 2.
        (
            EDWARDS.jwk(&json!({"x": format!("AQ{}", "A".repeat(41))})),
            false,
        ),
        (
            EDWARDS.jwk(
                &json!({"x": "7P///////////////////////////////////////38".replace('/', "_")}),
            ),
            false,
        ),
        (json!({"kty": "oct", "k": "AA"}), false),
        (json!({"kty": "oct"}), false),
        (json!({"kty": "rsa", "n": RSA.jwk["n"], "e": "AQAB"}), false),
        (json!({"kty": "AKP"}), false),
        (json!({}), false),
        (json!([]), false),
        (json!("x"), false),
        (json!(null), false),
    ] {
        // Beside a good one, it does no harm.
        let both = json!({"keys": [key, EDWARDS.jwk]}).to_string();
        assert!(KeySet::parse(&both).is_ok(), "{key}");
        let alone = KeySet::parse(&json!({"keys": [key]}).to_string());
        let refused = alone.err();
        assert_eq!(
            refused,
            (!is_usable).then_some(BadKeySet::NoneUsable),
            "{key}"
        );
    }
}

#[test]
fn what_is_no_key_set_is_refused() {
    for bad in [
        "",
        "{",
        "null",
        "[]",
        "1",
        "\"\"",
        "{}",
        r#"{"keys":null}"#,
        r#"{"keys":{}}"#,
        r#"{"keys":"x"}"#,
        r#"{"keys":[]"#,
        r#"{"keys":[],"keys":[]}"#,
        "<html></html>",
    ] {
        assert_eq!(
            KeySet::parse(bad).err(),
            Some(BadKeySet::Malformed),
            "{bad}"
        );
    }
    let of = |count: usize| {
        let keys = vec![EDWARDS.jwk.clone(); count];
        KeySet::parse(&json!({"keys": keys, "public_certs": [{}]}).to_string())
    };
    assert_eq!(of(0).err(), Some(BadKeySet::NoneUsable));
    assert!(of(32).is_ok());
    assert_eq!(of(33).err(), Some(BadKeySet::TooMany));
}

#[test]
fn the_private_part_of_a_key_is_found_wherever_it_is() {
    for name in ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] {
        let keys = json!({"keys": [EDWARDS.jwk, P256.jwk(&json!({name: "AA"}))]});
        assert_eq!(keys::private_member(&keys.to_string()), Some((1, name)));
    }
    let public = json!({"keys": [EDWARDS.jwk, P256.jwk, RSA.jwk, 1, null]});
    assert_eq!(keys::private_member(&public.to_string()), None);
}

#[test]
fn nothing_of_a_key_shows() {
    assert_eq!(format!("{:?}", P256.set()), "KeySet(1 keys)");
}
