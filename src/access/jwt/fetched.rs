//! What the answer of a key set's server comes to: a set, word that there are no
//! keys, or nothing that can be used.
//!
//! The difference decides who is in: a set that is known bridges a failure for a
//! while, but what the issuer says itself holds at once.

use sha2::{Digest as _, Sha256};

use super::keys::{BadKeySet, KeySet};
use crate::governor::time::Span;

/// How a fetch went.
#[derive(Debug)]
pub enum Fetched {
    Set(Arrival),
    /// The issuer says that it has no keys, and why that is clear: nobody is in.
    Withdrawn(&'static str),
    /// Nothing is said of the keys, and why.
    Failed(&'static str),
}

/// A set that came.
#[derive(Debug)]
pub struct Arrival {
    pub set: KeySet,
    /// Of the body that it was read from.
    pub digest: [u8; 32],
    pub lifetime: Span,
}

impl Fetched {
    /// What the status alone says; `None`: the body says it. It comes first,
    /// since an answer that a key set is gone has often no body.
    pub const fn of_status(status: u16) -> Option<Self> {
        match status {
            200 => None,
            404 | 410 => Some(Self::Withdrawn("it is no longer there")),
            _ => Some(Self::Failed("the answer is not 200")),
        }
    }

    /// What the body of a 200 says.
    pub fn of_body(body: &[u8], lifetime: Span) -> Self {
        let Ok(text) = std::str::from_utf8(body) else {
            return Self::Failed("it is not UTF-8");
        };
        // Some servers send a file as it is, with its mark of order.
        match KeySet::parse(text.strip_prefix('\u{feff}').unwrap_or(text)) {
            Ok(set) => Self::Set(Arrival {
                set,
                digest: Sha256::digest(body).into(),
                lifetime,
            }),
            Err(BadKeySet::NoneUsable) => Self::Withdrawn("it has no key that can be used"),
            Err(BadKeySet::TooMany) => Self::Failed("it has more than 32 keys"),
            Err(BadKeySet::Malformed) => Self::Failed("it is no key set"),
        }
    }

    /// What the operator should hear of it.
    pub const fn complaint(&self) -> Option<&'static str> {
        match self {
            Self::Set(_) => None,
            Self::Withdrawn(why) | Self::Failed(why) => Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

    fn of_body(body: &str) -> Fetched {
        Fetched::of_body(body.as_bytes(), Span::from_seconds(60))
    }

    #[test]
    fn a_set_without_a_usable_key_is_the_issuers_word_and_what_is_no_set_is_not() {
        assert!(matches!(
            of_body(&format!(r#"{{"keys":[{KEY}]}}"#)),
            Fetched::Set(_)
        ));
        let for_encryption = KEY.replacen('{', r#"{"use":"enc","#, 1);
        let private = KEY.replacen('{', r#"{"d":"AA","#, 1);
        for keys in [
            "",
            "{}",
            "null",
            r#"{"kty":"oct"}"#,
            &for_encryption,
            &private,
        ] {
            let body = format!(r#"{{"keys":[{keys}],"more":1}}"#);
            assert!(matches!(of_body(&body), Fetched::Withdrawn(_)), "{body}");
        }
        let many = format!(r#"{{"keys":[{}]}}"#, [KEY; 33].join(","));
        for body in [
            "",
            " ",
            "{}",
            "[]",
            "null",
            r#"{"keys":null}"#,
            r#"{"keys":{}}"#,
            r#"{"keys":[]"#,
            r#"{"keys":[]} x"#,
            r#"{"keys":[],"keys":[]}"#,
            r#"{"Keys":[]}"#,
            "<html>maintenance</html>",
            &many,
        ] {
            assert!(matches!(of_body(body), Fetched::Failed(_)), "{body}");
        }
        let not_text = Fetched::of_body(&[0xff, b'{', b'}'], Span::ZERO);
        assert!(matches!(not_text, Fetched::Failed(_)));
    }

    #[test]
    fn a_set_is_read_in_one_pass_however_deep_or_wide() {
        let deep = format!("{}{}", "[".repeat(120_000), "]".repeat(120_000));
        let wide = format!("[{}]", vec!["{}"; 80_000].join(","));
        for more in [deep, wide] {
            for set in [
                format!(r#"{{"keys":[{KEY}],"more":{more}}}"#),
                format!(r#"{{"keys":[{KEY},{{"kty":"OKP","more":{more}}}]}}"#),
                format!(r#"{{"keys":[{KEY},{more}]}}"#),
            ] {
                assert!(matches!(of_body(&set), Fetched::Set(_)));
            }
            let set = format!(r#"{{"keys":{more}}}"#);
            assert!(!matches!(of_body(&set), Fetched::Set(_)));
        }
    }

    #[test]
    fn a_mark_of_order_before_a_set_is_skipped_once() {
        let set = format!(r#"{{"keys":[{KEY}]}}"#);
        assert!(matches!(
            of_body(&format!("\u{feff}{set}")),
            Fetched::Set(_)
        ));
        assert!(matches!(
            of_body("\u{feff}{\"keys\":[]}"),
            Fetched::Withdrawn(_)
        ));
        for body in [
            "\u{feff}".to_owned(),
            format!("\u{feff}\u{feff}{set}"),
            format!("{set}\u{feff}"),
        ] {
            assert!(matches!(of_body(&body), Fetched::Failed(_)), "{body}");
        }
    }

    #[test]
    fn of_the_statuses_404_and_410_are_the_issuers_word() {
        for status in 100..600 {
            let said = Fetched::of_status(status);
            match status {
                200 => assert!(said.is_none()),
                404 | 410 => assert!(matches!(said, Some(Fetched::Withdrawn(_)))),
                _ => assert!(matches!(said, Some(Fetched::Failed(_))), "{status}"),
            }
        }
    }
}
