//! Signatures, algorithms and the naming of keys.

use base64ct::{Base64UrlUnpadded, Encoding as _};
use jwt_compact::alg::{Hs256, Hs256Key};
use jwt_compact::{Algorithm as _, AlgorithmSignature as _};
use serde_json::{Value, json};

use super::super::*;
use super::support::*;

#[test]
fn a_right_token_is_good_under_each_algorithm_until_it_expires() {
    let until = NOW.plus(Span::from_seconds(90));
    for signer in [&*RSA, &P256, &EDWARDS] {
        let token = signer.says(&claims(&json!({})));
        assert_eq!(check(&token, &signer.set()), Ok(until), "{}", signer.alg);
    }
}

#[test]
fn a_token_that_another_key_signed_is_bad() {
    for (signer, other) in [
        (&*RSA, &*OTHER_RSA),
        (&P256, &p256(2)),
        (&EDWARDS, &ed25519(2)),
    ] {
        let token = other.says(&claims(&json!({})));
        assert_eq!(check(&token, &signer.set()), Err(Refused::Bad));
    }
}

#[test]
fn any_change_to_a_token_spoils_it() {
    for signer in [&*P256, &EDWARDS] {
        let (token, keys) = (signer.says(&claims(&json!({}))), signer.set());
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(check(&changed, &keys).is_err(), "{at}");
        }
        for changed in [
            token.to_uppercase(),
            format!("{token}A"),
            format!("{token}="),
            format!("{token}.A"),
            format!(" {token}"),
            format!("{token}\n"),
            format!("Bearer {token}"),
            token.rsplit_once('.').unwrap().0.to_owned() + ".",
            token.rsplit_once('.').unwrap().0.to_owned(),
            token.strip_suffix(|_: char| true).unwrap().to_owned(),
        ] {
            assert_eq!(check(&changed, &keys), Err(Refused::Bad), "{changed}");
        }
    }
}

#[test]
fn the_algorithm_is_the_keys_and_never_the_tokens() {
    for signer in [&*RSA, &P256, &EDWARDS] {
        let (keys, said) = (signer.set(), claims(&json!({})));
        for alg in [
            "none", "None", "NONE", "", "HS256", "HS384", "HS512", "RS256", "RS384", "RS512",
            "PS256", "ES256", "ES384", "ES256K", "EdDSA", "Ed25519", "rs256", "eddsa",
        ] {
            let token = signer.token(&json!({"alg": alg, "kid": "k"}), &said);
            // EdDSA has two names.
            let is_its_own = alg == signer.alg || (alg, signer.alg) == ("Ed25519", "EdDSA");
            assert_eq!(check(&token, &keys).is_ok(), is_its_own, "{alg}");
        }
        for header in [
            json!({"kid": "k"}),
            json!({"alg": null, "kid": "k"}),
            json!({"alg": ["none"]}),
        ] {
            assert_eq!(
                check(&signer.token(&header, &said), &keys),
                Err(Refused::Bad)
            );
        }
    }
}

#[test]
fn no_signature_is_no_signature() {
    for signer in [&*RSA, &P256, &EDWARDS] {
        for alg in ["none", signer.alg] {
            let header = json!({"alg": alg, "kid": "k"}).to_string();
            let message = format!(
                "{}.{}",
                encode(&header),
                encode(&claims(&json!({})).to_string())
            );
            for signature in ["", "AA", &"A".repeat(86), &"A".repeat(342)] {
                let token = format!("{message}.{signature}");
                assert_eq!(check(&token, &signer.set()), Err(Refused::Bad), "{alg}");
            }
        }
    }
}

#[test]
fn a_public_key_is_no_secret_for_hs256() {
    for signer in [&*RSA, &P256, &EDWARDS] {
        let part = |name: &str| signer.jwk.get(name).and_then(Value::as_str).unwrap_or("");
        let decode = |name: &str| Base64UrlUnpadded::decode_vec(part(name)).unwrap();
        for secret in [
            signer.jwk.to_string().into_bytes(),
            part("n").into(),
            part("x").into(),
            decode("n"),
            decode("x"),
            [decode("x"), decode("y")].concat(),
            Vec::new(),
        ] {
            let key = Hs256Key::new(&secret);
            let forger = Signer {
                alg: "HS256",
                jwk: json!({}),
                sign: Box::new(move |message| Hs256.sign(&key, message).as_bytes().into()),
            };
            for alg in ["HS256", signer.alg] {
                let token = forger.token(&json!({"alg": alg, "kid": "k"}), &claims(&json!({})));
                assert_eq!(check(&token, &signer.set()), Err(Refused::Bad));
            }
        }
    }
}

#[test]
fn a_key_that_the_token_brings_along_is_not_looked_at() {
    let header = json!({
        "alg": "EdDSA",
        "kid": "mine",
        "jwk": EDWARDS.jwk,
        "jku": "https://evil.example/keys",
        "x5u": "https://evil.example/cert",
    });
    let token = EDWARDS.token(&header, &claims(&json!({})));
    assert_eq!(check(&token, &P256.set()), Err(Refused::UnknownKey));
}

#[test]
fn the_kid_names_the_key() {
    let named = |signer: &Signer, kid: &str| signer.jwk(&json!({ "kid": kid }));
    let two = set(&[named(&P256, "a"), named(&EDWARDS, "b")]);
    let token = |signer: &Signer, kid: Option<&str>| {
        let header = merged(&json!({"alg": signer.alg}), &json!({ "kid": kid }));
        signer.token(&header, &claims(&json!({})))
    };
    assert!(check(&token(&P256, Some("a")), &two).is_ok());
    assert!(check(&token(&EDWARDS, Some("b")), &two).is_ok());
    assert_eq!(check(&token(&EDWARDS, Some("a")), &two), Err(Refused::Bad));
    for unknown in ["c", "A", "", "a "] {
        let refused = check(&token(&P256, Some(unknown)), &two);
        assert_eq!(refused, Err(Refused::UnknownKey), "{unknown}");
    }
    let nameless = set(std::slice::from_ref(&P256.jwk));
    // A name that no key has is not the one key's.
    assert_eq!(
        check(&token(&P256, Some("a")), &nameless),
        Err(Refused::UnknownKey)
    );
    // Two keys of one name: either may have signed.
    let alike = set(&[
        named(&P256, "a"),
        named(&EDWARDS, "a"),
        named(&p256(2), "a"),
    ]);
    for signer in [&*P256, &EDWARDS, &p256(2)] {
        assert!(check(&token(signer, Some("a")), &alike).is_ok());
    }
    assert_eq!(
        check(&token(&p256(3), Some("a")), &alike),
        Err(Refused::Bad)
    );
}

#[test]
fn without_a_name_every_key_of_the_algorithm_is_tried() {
    let nameless = |signer: &Signer| {
        let header = json!({"alg": signer.alg});
        signer.token(&header, &claims(&json!({})))
    };
    let named = |signer: &Signer, kid: &str| signer.jwk(&json!({ "kid": kid }));
    for several in [
        set(&[named(&P256, "a"), named(&EDWARDS, "b"), named(&RSA, "c")]),
        set(&[RSA.jwk.clone(), EDWARDS.jwk.clone(), P256.jwk.clone()]),
        set(&[
            p256(2).jwk,
            ed25519(2).jwk,
            OTHER_RSA.jwk.clone(),
            named(&RSA, "a"),
            named(&EDWARDS, "a"),
            P256.jwk.clone(),
        ]),
    ] {
        for signer in [&*P256, &EDWARDS, &RSA] {
            assert!(check(&nameless(signer), &several).is_ok(), "{}", signer.alg);
        }
        // The issuer may have a new key, of any algorithm.
        for stranger in [p256(9), ed25519(9)] {
            let refused = check(&nameless(&stranger), &several);
            assert_eq!(refused, Err(Refused::UnknownKey));
        }
    }
    let refused = check(&nameless(&EDWARDS), &P256.set());
    assert_eq!(refused, Err(Refused::UnknownKey));
    for alg in ["none", "HS256", "RS512", ""] {
        let token = EDWARDS.token(&json!({"alg": alg}), &claims(&json!({})));
        assert_eq!(check(&token, &EDWARDS.set()), Err(Refused::Bad), "{alg}");
    }
}

#[test]
fn at_most_eight_keys_are_tried_and_only_those_of_the_algorithm_count() {
    let token = EDWARDS.token(&json!({"alg": "EdDSA"}), &claims(&json!({})));
    let among = |before: u8| {
        let strangers = (10..).map(|seed| ed25519(seed).jwk).take(before.into());
        let others = (10..).map(|seed| p256(seed).jwk).take(10);
        let keys: Vec<_> = others
            .chain(strangers)
            .chain([EDWARDS.jwk.clone()])
            .collect();
        check(&token, &set(&keys))
    };
    assert!(among(7).is_ok());
    assert_eq!(among(8), Err(Refused::UnknownKey));
}

#[test]
fn a_token_of_the_right_key_is_refused_for_what_it_says_and_not_for_its_key() {
    let said = json!({"alg": "EdDSA"});
    let token = EDWARDS.token(&said, &claims(&json!({"aud": {}})));
    let two = set(&[EDWARDS.jwk.clone(), ed25519(2).jwk]);
    assert_eq!(check(&token, &two), Err(Refused::Bad));
}

#[test]
fn eddsa_goes_by_both_its_names() {
    for said_by_key in [json!(null), json!("EdDSA"), json!("Ed25519")] {
        let keys = set(&[EDWARDS.jwk(&json!({"kid": "k", "alg": said_by_key}))]);
        for alg in ["EdDSA", "Ed25519"] {
            for kid in [json!(null), json!("k")] {
                let header = merged(&json!({ "alg": alg }), &json!({ "kid": kid }));
                let token = EDWARDS.token(&header, &claims(&json!({})));
                assert!(check(&token, &keys).is_ok(), "{alg} {said_by_key}");
                let other = ed25519(2).token(&header, &claims(&json!({})));
                assert!(check(&other, &keys).is_err());
            }
        }
    }
}

#[test]
fn headers_that_ask_for_more_are_bad() {
    for (more, is_good) in [
        (
            json!({"typ": "at+jwt", "x5t": "lDpwLQbzRZmu4fjajvn3KWAx1pk", "x": [1]}),
            true,
        ),
        (json!({"cty": "json"}), true),
        (json!({"crit": ["exp"]}), false),
        (json!({"crit": ["b64"], "b64": false}), false),
        (json!({"crit": []}), false),
        (json!({"crit": 1}), false),
        (json!({"cty": "JWT"}), false),
        (json!({"cty": "CBOR"}), false),
        (
            json!({"zip": "DEF", "enc": "A256GCM", "crit": ["zip"]}),
            false,
        ),
        (json!({"kid": 1}), false),
        (json!({"x5t": "short"}), false),
    ] {
        let header = merged(&json!({"alg": "EdDSA", "kid": "k"}), &more);
        let token = EDWARDS.token(&header, &claims(&json!({})));
        assert_eq!(check(&token, &EDWARDS.set()).is_ok(), is_good, "{more}");
    }
    let null = r#"{"alg":"EdDSA","kid":"k","crit":null}"#;
    let token = EDWARDS.token_of(null, &claims(&json!({})).to_string());
    assert_eq!(check(&token, &EDWARDS.set()), Err(Refused::Bad));
}

#[test]
fn a_token_over_8_kib_is_bad() {
    let sized = |wanted: usize| {
        let token = |pad: usize| EDWARDS.says(&claims(&json!({"pad": "x".repeat(pad)})));
        let mut pad = wanted * 3 / 4;
        while token(pad).len() > wanted {
            pad -= 1;
        }
        token(pad)
    };
    let (fits, exceeds) = (sized(MOST_TOKEN_BYTES), sized(MOST_TOKEN_BYTES + 4));
    assert!(exceeds.len() > MOST_TOKEN_BYTES);
    assert!(check(&fits, &EDWARDS.set()).is_ok());
    assert_eq!(check(&exceeds, &EDWARDS.set()), Err(Refused::Bad));
}
