//! Bodies of the control routes: what an operator says holds for everybody, so
//! a body that says a thing twice is refused rather than guessed at, and one
//! that would take long to read is refused before.

use serde_json::value::RawValue;

use super::FieldError;
use crate::json::shape::{self, DEEPEST, Flaw, Found, MOST_VALUES};

/// How deep the fields of a body are, before their values begin:
/// `access.jwt.jwks`.
const DEEPEST_FIELD: usize = 3;

/// Looks through a body before it is read. One that is no JSON is left to the
/// reader, who says so.
///
/// # Errors
/// Names a field that comes again, at any depth, or that holds too much.
pub fn check_strictly(body: &[u8]) -> Result<(), FieldError> {
    let text = std::str::from_utf8(body).ok();
    let raw: Option<&RawValue> = text.and_then(|text| serde_json::from_str(text).ok());
    raw.map_or(Ok(()), |raw| shape::check(raw.get()).map_err(refusal))
}

fn refusal(found: Found) -> FieldError {
    let Found { flaw, path } = found;
    match flaw {
        Flaw::Repeated => {
            let path = path.dotted();
            let message = format!("{path} comes twice; say it once.");
            FieldError::new(path, message)
        }
        Flaw::TooDeep => {
            let what = format!("is nested too deep: {DEEPEST} lists and objects within each other");
            holds_too_much(&path.named(DEEPEST_FIELD).dotted(), &what)
        }
        Flaw::TooMuch => {
            let what = format!("is too much: {MOST_VALUES} values");
            holds_too_much(&path.named(DEEPEST_FIELD).dotted(), &what)
        }
    }
}

fn holds_too_much(path: &str, what: &str) -> FieldError {
    let name = if path.is_empty() { "The body" } else { path };
    let message = format!("{name} {what} are the most in a body.");
    FieldError::new(path, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(body: &str) -> Option<String> {
        check_strictly(body.as_bytes())
            .err()
            .map(|error| error.field)
    }

    #[test]
    fn a_field_that_comes_twice_is_named_by_its_path() {
        for (body, path) in [
            (
                r#"{"concurrency":{},"concurrency":{"limit":3}}"#,
                "concurrency",
            ),
            (
                r#"{"access":{"ipAllowlist":["::1"],"ipAllowlist":[]}}"#,
                "access.ipAllowlist",
            ),
            (
                r#"{"access":{"ipAllowlist":["::1"],"\u0069pAllowlist":null}}"#,
                "access.ipAllowlist",
            ),
            (
                r#"{"access":{"jwt":{"issuer":"a","issuer":"b"}}}"#,
                "access.jwt.issuer",
            ),
            (
                r#"{"access":{"jwt":{"jwks":{"keys":[],"keys":[]}}}}"#,
                "access.jwt.jwks.keys",
            ),
            (
                r#"{"access":{"jwt":{"jwks":{"keys":[{"kid":"a","kid":"b"}]}}}}"#,
                "access.jwt.jwks.keys[0].kid",
            ),
            (r#"{"name":"a","name":"a"}"#, "name"),
            (
                r#"{"refreshToken":"a", "refreshToken":"b"}"#,
                "refreshToken",
            ),
        ] {
            assert_eq!(field(body).as_deref(), Some(path), "{body}");
        }
        // What is no JSON, or no object, is for the reader to refuse.
        for other in ["", "{", "null", "[]", r#"{"a":1,"a":2"#, "\u{feff}{}"] {
            assert_eq!(field(other), None, "{other}");
        }
        assert_eq!(check_strictly(&[0xff]), Ok(()));
    }

    #[test]
    fn what_holds_too_much_is_named_by_the_settings_own_field() {
        let nested =
            |open: &str, close: &str| format!("{}1{}", open.repeat(100), close.repeat(100));
        for (body, path) in [
            (nested("[", "]"), ""),
            (format!(r#"{{"access":{}}}"#, nested("[", "]")), "access"),
            (
                format!(
                    r#"{{"access":{{"jwt":{{"jwks":{}}}}}}}"#,
                    nested("{\"a\":", "}")
                ),
                "access.jwt.jwks",
            ),
            (
                format!(
                    r#"{{"access":{{"jwt":{{"jwks":{{"keys":[{}]}}}}}}}}"#,
                    nested("[", "]")
                ),
                "access.jwt.jwks",
            ),
            (
                format!(
                    r#"{{"access":{{"ipAllowlist":[{}]}}}}"#,
                    vec!["1"; 5000].join(",")
                ),
                "access.ipAllowlist",
            ),
        ] {
            assert_eq!(field(&body).as_deref(), Some(path), "{body}");
        }
        let good = vec!["\"203.0.113.0/24\""; 1000].join(",");
        assert_eq!(
            field(&format!(r#"{{"access":{{"ipAllowlist":[{good}]}}}}"#)),
            None
        );
    }
}
