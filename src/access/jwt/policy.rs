//! What a source asks of a JWT, as its settings say it.

use super::Expectation;
pub use super::inline::InlineSet;
pub use super::url::Loopback;
use super::url::{MOST_URL_CHARS, is_key_set_url};
use crate::access::policy::{MOST_CLAIM_CHARS, required};
use crate::fields::{FieldError, Fields};
use crate::json::{Json, object};

/// The header in which a token is looked for if the settings don't say.
const DEFAULT_HEADER: &str = "X-Swarmvia-Jwt";
const AUTHORIZATION: &str = "Authorization";
/// The header of access keys: a token never comes in it.
const KEY_HEADER: &str = "X-Swarmvia-Key";
/// The longest name of a header.
const MOST_HEADER_CHARS: usize = 64;

/// Where the keys are with which tokens are signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A key set to fetch; checked by [`is_key_set_url`].
    Url(String),
    Inline(InlineSet),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtPolicy {
    pub issuer: String,
    pub audience: String,
    pub keys: KeySource,
    /// The header in which the token comes.
    pub header: String,
}

impl JwtPolicy {
    /// `bearer`: whether access keys may come in `Authorization`.
    pub(in crate::access) fn parse(
        fields: &Fields,
        bearer: bool,
        loopback: Loopback,
    ) -> Result<Self, FieldError> {
        let parsed = Self {
            issuer: required(fields, "issuer", MOST_CLAIM_CHARS)?,
            audience: required(fields, "audience", MOST_CLAIM_CHARS)?,
            keys: key_source(fields, loopback)?,
            header: header(fields, bearer)?,
        };
        fields.no_others()?;
        Ok(parsed)
    }

    pub(in crate::access) fn to_json(&self) -> Json {
        let mut json = object! {
            "issuer": self.issuer.as_str(),
            "audience": self.audience.as_str(),
            "header": self.header.as_str(),
        };
        let (name, keys) = match &self.keys {
            KeySource::Url(url) => ("jwksUrl", Json::from(url.as_str())),
            KeySource::Inline(set) => ("jwks", set.to_json()),
        };
        json.put(name, keys);
        json
    }

    pub fn expectation(&self) -> Expectation {
        Expectation {
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            is_access: false,
        }
    }
}

fn refuse<T>(fields: &Fields, name: &str, what: &str) -> Result<T, FieldError> {
    let path = fields.path_of(name);
    let message = format!("{path} {what}");
    Err(FieldError::new(path, message))
}

fn key_source(fields: &Fields, loopback: Loopback) -> Result<KeySource, FieldError> {
    let inline = fields.raw("jwks");
    match (fields.text("jwksUrl", 1, MOST_URL_CHARS)?, inline) {
        (Some(_), Some(_)) => refuse(
            fields,
            "jwks",
            "must be left out where jwksUrl is given; say one of the two.",
        ),
        (None, None) => refuse(
            fields,
            "jwksUrl",
            "is missing; give the URL of a key set, or the keys themselves as jwks.",
        ),
        (Some(url), None) if is_key_set_url(&url, loopback) => Ok(KeySource::Url(url)),
        (Some(_), None) => refuse(
            fields,
            "jwksUrl",
            "must be an https:// URL with a plain host name, without user, fragment or spaces.",
        ),
        (None, Some(raw)) => InlineSet::parse(raw.get())
            .map(KeySource::Inline)
            .or_else(|what| refuse(fields, "jwks", &what)),
    }
}

fn header(fields: &Fields, bearer: bool) -> Result<String, FieldError> {
    let Some(name) = fields.text("header", 1, MOST_HEADER_CHARS)? else {
        return Ok(DEFAULT_HEADER.into());
    };
    if !name.bytes().all(is_token_byte) {
        return refuse(fields, "header", "must be the name of an HTTP header.");
    }
    if name.eq_ignore_ascii_case(KEY_HEADER) {
        let what = "must not be X-Swarmvia-Key: the access key comes in it.";
        return refuse(fields, "header", what);
    }
    if bearer && name.eq_ignore_ascii_case(AUTHORIZATION) {
        let what = "can be Authorization only where access.bearer is false.";
        return refuse(fields, "header", what);
    }
    Ok(name)
}

/// What a header's name is made of.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(jwt: &str) -> Result<JwtPolicy, FieldError> {
        parse_where(jwt, true)
    }

    /// `bearer`: as in the settings.
    fn parse_where(jwt: &str, bearer: bool) -> Result<JwtPolicy, FieldError> {
        let body = format!(r#"{{"jwt":{jwt}}}"#);
        let fields = Fields::of_body(body.as_bytes()).unwrap();
        JwtPolicy::parse(&fields.part("jwt").unwrap(), bearer, Loopback::Refused)
    }

    /// With the parts that must be there, and one more.
    fn with(part: &str) -> String {
        format!(r#"{{"issuer":"i","audience":"a",{part}}}"#)
    }

    const URL: &str = r#""jwksUrl":"https://idp.example/keys""#;
    const EDWARDS: &str =
        r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

    #[test]
    fn keys_come_from_a_url_or_inline() {
        let policy = parse(&with(URL)).unwrap();
        assert_eq!(
            policy.keys,
            KeySource::Url("https://idp.example/keys".into())
        );
        assert_eq!(policy.header, "X-Swarmvia-Jwt");
        let policy = parse(&with(&format!(r#""jwks": {{ "keys" : [{EDWARDS}] }}"#))).unwrap();
        assert!(matches!(policy.keys, KeySource::Inline(_)));
        assert_eq!(parse(&policy.to_json().to_string()), Ok(policy));
    }

    #[test]
    fn authorization_is_for_tokens_only_where_it_is_not_for_keys() {
        let jwt = with(&format!(r#"{URL},"header":"authorization""#));
        assert_eq!(parse_where(&jwt, false).unwrap().header, "authorization");
        assert_eq!(parse_where(&jwt, true).unwrap_err().field, "jwt.header");
    }

    #[test]
    fn an_error_names_its_field() {
        let inline = format!(r#""jwks":{{"keys":[{EDWARDS}]}}"#);
        let private = EDWARDS.replace(r#""kty""#, r#""d":"AA","kty""#);
        let long = "x".repeat(513);
        for (jwt, field) in [
            ("{}".to_owned(), "jwt.issuer"),
            (r#"{"issuer":""}"#.into(), "jwt.issuer"),
            (format!(r#"{{"issuer":"{long}"}}"#), "jwt.issuer"),
            (r#"{"issuer":"i"}"#.into(), "jwt.audience"),
            (r#"{"issuer":"i","audience":["a"]}"#.into(), "jwt.audience"),
            (r#"{"issuer":"i","audience":"a"}"#.into(), "jwt.jwksUrl"),
            (with(r#""jwksUrl":1"#), "jwt.jwksUrl"),
            (with(r#""jwksUrl":"http://localhost/""#), "jwt.jwksUrl"),
            (with(&format!("{URL},{inline}")), "jwt.jwks"),
            (with(r#""jwks":[]"#), "jwt.jwks"),
            (with(r#""jwks":"{}""#), "jwt.jwks"),
            (with(r#""jwks":{"keys":[]}"#), "jwt.jwks"),
            (
                with(&format!(r#""jwks":{{"keys":[{private}]}}"#)),
                "jwt.jwks",
            ),
            (
                with(&format!(
                    r#""jwks":{{"keys":[{EDWARDS},{{"kty":"oct","k":"AA"}}]}}"#
                )),
                "jwt.jwks",
            ),
            (with(&format!(r#"{URL},"header":"a b""#)), "jwt.header"),
            (with(&format!(r#"{URL},"header":"a:""#)), "jwt.header"),
            (
                with(&format!(r#"{URL},"header":"{}""#, "a".repeat(65))),
                "jwt.header",
            ),
            (
                with(&format!(r#"{URL},"header":"x-swarmvia-KEY""#)),
                "jwt.header",
            ),
            (
                with(&format!(r#"{URL},"header":"AUTHORIZATION""#)),
                "jwt.header",
            ),
            (
                with(&format!(r#"{URL},"algorithm":"none""#)),
                "jwt.algorithm",
            ),
        ] {
            assert_eq!(parse(&jwt).unwrap_err().field, field, "{jwt}");
        }
        // Whoever sends a private key learns that it must go, without seeing it again.
        let error = parse(&with(&format!(r#""jwks":{{"keys":[{private}]}}"#))).unwrap_err();
        assert!(error.message.contains("keys[0]") && error.message.contains("\"d\""));
        assert!(!error.message.contains("AA"));
    }
}
