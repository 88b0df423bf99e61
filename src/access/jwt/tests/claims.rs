//! What a token must say, and when.

use serde_json::{Value, json};

use super::super::*;
use super::support::*;

#[test]
fn claims_must_say_what_is_expected() {
    let seconds = |after: i64| NOW_SECONDS.cast_signed() + after;
    let good = [
        json!({}),
        json!({"aud": ["locks"]}),
        json!({"aud": ["other", "locks"]}),
        json!({"exp": seconds(-29)}),
        json!({"exp": seconds(100_000_000)}),
        json!({"exp": 1_710_000_001.5}),
        json!({"exp": 99_999_999_999_u64}),
        json!({"nbf": seconds(30), "iat": seconds(30)}),
        json!({"nbf": seconds(-1_000_000)}),
        json!({"nbf": 0}),
        json!({"nbf": -1}),
        json!({"nbf": -8_334_601_228_800_i64}),
        json!({"iat": seconds(1000)}),
        // What matters to Access only may be anything elsewhere.
        json!({"type": 1, "email": [], "common_name": {}}),
        json!({"sub": "x", "scope": "y", "nested": {"a": [1, null]}}),
    ];
    for said in good {
        let token = EDWARDS.says(&claims(&said));
        assert!(check(&token, &EDWARDS.set()).is_ok(), "{said}");
    }
    let bad = [
        json!({"iss": null}),
        json!({"iss": ""}),
        json!({"iss": "https://idp.example"}),
        json!({"iss": "https://IDP.example/"}),
        json!({"iss": ["https://idp.example/"]}),
        json!({"aud": null}),
        json!({"aud": ""}),
        json!({"aud": "lock"}),
        json!({"aud": "locks "}),
        json!({"aud": []}),
        json!({"aud": ["other"]}),
        json!({"aud": ["locks", 1]}),
        json!({"aud": {"locks": true}}),
        json!({"exp": null}),
        json!({"exp": seconds(-30)}),
        json!({"exp": 0}),
        json!({"exp": -1}),
        json!({"exp": (NOW_SECONDS + 60).to_string()}),
        json!({"exp": true}),
        json!({"exp": [seconds(60)]}),
        json!({"exp": i64::MAX}),
        json!({"exp": u64::MAX}),
        json!({"exp": 1e300}),
        json!({"exp": -1e300}),
        json!({"nbf": seconds(31)}),
        json!({"nbf": "now"}),
        json!({"nbf": i64::MAX}),
        json!({"nbf": i64::MIN}),
    ];
    for said in bad {
        let token = EDWARDS.says(&claims(&said));
        assert_eq!(check(&token, &EDWARDS.set()), Err(Refused::Bad), "{said}");
    }
}

#[test]
fn claims_that_are_said_twice_or_are_no_object_are_bad() {
    let good = claims(&json!({})).to_string();
    let header = json!({"alg": "EdDSA", "kid": "k"}).to_string();
    for said in [
        good.replacen('{', r#"{"iss":"x","#, 1),
        good.replacen('{', r#"{"aud":"locks","#, 1),
        good.replacen('{', r#"{"exp":9999999999,"#, 1),
        format!("[{good}]"),
        format!("{good}{good}"),
        String::new(),
        "null".into(),
        "\"\"".into(),
        good.strip_suffix('}').unwrap().to_owned(),
        good.replacen('{', &format!(r#"{{"x":{},"#, "[".repeat(4000)), 1),
        good.replacen(
            '{',
            &format!(r#"{{"x":{}0{},"#, "[".repeat(500), "]".repeat(500)),
            1,
        ),
    ] {
        let token = EDWARDS.token_of(&header, &said);
        assert_eq!(check(&token, &EDWARDS.set()), Err(Refused::Bad), "{said}");
    }
}

#[test]
fn access_wants_rs256_an_app_and_a_name() {
    let team = Expectation {
        is_access: true,
        ..expected()
    };
    let user = claims(&json!({
        "aud": ["locks"],
        "email": "user@example.com",
        "nbf": NOW_SECONDS,
        "iat": NOW_SECONDS,
        "type": "app",
        "identity_nonce": "6ei69kawdKzMIAPF",
        "sub": "7335d417-61da-459d-899c-0a01c76a2f94",
        "country": "US",
    }));
    let service = claims(&json!({
        "aud": ["locks"],
        "type": "app",
        "iat": NOW_SECONDS,
        "common_name": "e367826f93b8d71185e03fe518aff3b4.access",
        "sub": "",
    }));
    let check =
        |signer: &Signer, said: &Value| verify(&signer.says(said), &signer.set(), &team, NOW);
    assert!(check(&RSA, &user).is_ok());
    assert!(check(&RSA, &service).is_ok());
    for other in [&*P256, &EDWARDS] {
        assert_eq!(check(other, &user), Err(Refused::Bad));
    }
    for more in [
        json!({"type": null}),
        json!({"type": "org"}),
        json!({"type": "App"}),
        json!({"type": ["app"]}),
        json!({"email": null}),
        json!({"email": ""}),
        json!({"email": true}),
        json!({"exp": null}),
        json!({"nbf": NOW_SECONDS + 31}),
        json!({"iss": "https://other.example"}),
        json!({"aud": ["other"]}),
    ] {
        assert_eq!(
            check(&RSA, &merged(&user, &more)),
            Err(Refused::Bad),
            "{more}"
        );
    }
    let nameless = merged(&service, &json!({"common_name": ""}));
    assert_eq!(check(&RSA, &nameless), Err(Refused::Bad));
}
