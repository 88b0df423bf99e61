//! What a source asks of its callers beside a good key: how the key may come,
//! from where, and with which tokens. Parsed once; an invalid one can't exist.
//!
//! The JSON form is the `access` part of the settings, on the wire and in
//! storage alike. Nothing in it is a secret.

pub use super::cloudflare::CloudflareAccess;
use super::ip::{self, IpAllowlist};
pub use super::jwt::policy::{JwtPolicy, KeySource, Loopback};
use crate::fields::{FieldError, Fields};
use crate::json::{Json, object};
use crate::wire::request::Carrier;

/// The longest issuer and the longest audience, in characters.
pub(super) const MOST_CLAIM_CHARS: usize = 512;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether a key may come as `Authorization: Bearer`.
    pub bearer: bool,
    /// Whether a key may come as `Authorization: Swarmvia`.
    pub swarmvia: bool,
    pub ip_allowlist: IpAllowlist,
    pub jwt: Option<JwtPolicy>,
    pub cloudflare_access: Option<CloudflareAccess>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            bearer: true,
            swarmvia: true,
            ip_allowlist: IpAllowlist::default(),
            jwt: None,
            cloudflare_access: None,
        }
    }
}

impl Policy {
    /// Reads the `access` part of the settings; what is left out has its default.
    ///
    /// # Errors
    /// Names the first field that is unknown, of the wrong type, or out of range.
    pub fn parse(fields: &Fields, loopback: Loopback) -> Result<Self, FieldError> {
        let bearer = fields.flag("bearer")?.unwrap_or(true);
        let parsed = Self {
            bearer,
            swarmvia: fields.flag("swarmvia")?.unwrap_or(true),
            ip_allowlist: IpAllowlist::parse(fields, "ipAllowlist")?,
            jwt: match fields.raw("jwt") {
                None => None,
                Some(_) => Some(JwtPolicy::parse(&fields.part("jwt")?, bearer, loopback)?),
            },
            cloudflare_access: match fields.raw("cloudflareAccess") {
                None => None,
                Some(_) => Some(CloudflareAccess::parse(&fields.part("cloudflareAccess")?)?),
            },
        };
        fields.no_others()?;
        Ok(parsed)
    }

    /// The same, with every default filled in.
    pub fn to_json(&self) -> Json {
        object! {
            "bearer": self.bearer,
            "swarmvia": self.swarmvia,
            "ipAllowlist": self.ip_allowlist.texts(),
            "jwt": self.jwt.as_ref().map(JwtPolicy::to_json),
            "cloudflareAccess": self.cloudflare_access.as_ref().map(CloudflareAccess::to_json),
        }
    }

    /// Nothing in it needs the edge: the object can decide alone.
    pub fn is_plain(&self) -> bool {
        self.ip_allowlist.is_empty() && self.jwt.is_none() && self.cloudflare_access.is_none()
    }

    /// Whether a caller may come from here; `address` as text.
    pub fn admits(&self, address: Option<&str>) -> bool {
        self.ip_allowlist.admits(address.and_then(ip::address))
    }

    /// Whether those whom `before` let in must show a token that they may not have
    /// shown: one that is asked for now, or asked for in another way.
    pub fn asks_anew(&self, before: &Self) -> bool {
        let jwt = self.jwt.is_some() && self.jwt != before.jwt;
        let access = &self.cloudflare_access;
        jwt || access.is_some() && *access != before.cloudflare_access
    }

    /// Whether a key that came this way may come this way.
    pub fn carries(&self, carrier: Carrier) -> bool {
        match carrier {
            Carrier::KeyHeader => true,
            Carrier::Bearer => self.bearer,
            Carrier::Swarmvia => self.swarmvia,
        }
    }
}

/// A text that has to be there.
pub(super) fn required(
    fields: &Fields,
    name: &'static str,
    most: usize,
) -> Result<String, FieldError> {
    fields.text(name, 1, most)?.ok_or_else(|| {
        let path = fields.path_of(name);
        let message = format!("{path} is missing; it must be a text of 1 to {most} characters.");
        FieldError::new(path, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(access: &str) -> Result<Policy, FieldError> {
        let body = format!(r#"{{"access":{access}}}"#);
        let fields = Fields::of_body(body.as_bytes()).unwrap();
        Policy::parse(&fields.part("access").unwrap(), Loopback::Refused)
    }

    const JWT: &str = r#""jwt":{"issuer":"i","audience":"a","jwksUrl":"https://idp.example/keys"}"#;
    const ACCESS: &str =
        r#""cloudflareAccess":{"teamDomain":"Team.cloudflareaccess.com","audience":"tag"}"#;

    #[test]
    fn nothing_said_is_the_default_and_plain() {
        for access in [
            "{}",
            "null",
            r#"{"ipAllowlist":[],"jwt":null,"cloudflareAccess":null}"#,
        ] {
            assert_eq!(parse(access), Ok(Policy::default()), "{access}");
        }
        assert!(Policy::default().is_plain());
    }

    #[test]
    fn each_policy_alone_needs_the_edge() {
        for access in [r#""ipAllowlist":["::1"]"#, JWT, ACCESS] {
            assert!(
                !parse(&format!("{{{access}}}")).unwrap().is_plain(),
                "{access}"
            );
        }
        assert!(
            parse(r#"{"bearer":false,"swarmvia":false}"#)
                .unwrap()
                .is_plain()
        );
    }

    #[test]
    fn a_policy_survives_its_json() {
        let policy = parse(&format!(
            r#"{{"bearer":false,"swarmvia":false,"ipAllowlist":["192.0.2.9/24"],{JWT},{ACCESS}}}"#
        ));
        let policy = policy.unwrap();
        let again = parse(&policy.to_json().to_string()).unwrap();
        assert_eq!(policy, again);
        assert_eq!(
            policy.to_json(),
            object! {
                "bearer": false,
                "swarmvia": false,
                "ipAllowlist": vec!["192.0.2.0/24"],
                "jwt": object! {
                    "issuer": "i",
                    "audience": "a",
                    "jwksUrl": "https://idp.example/keys",
                    "header": "X-Swarmvia-Jwt",
                },
                "cloudflareAccess": object! {"teamDomain": "team.cloudflareaccess.com", "audience": "tag"},
            }
        );
    }

    #[test]
    fn a_text_that_is_no_address_comes_from_nowhere() {
        let policy = parse(r#"{"ipAllowlist":["192.0.2.0/24"]}"#).unwrap();
        assert!(policy.admits(Some("192.0.2.7")));
        for nowhere in [None, Some(""), Some("x"), Some("192.0.3.7")] {
            assert!(!policy.admits(nowhere), "{nowhere:?}");
            assert!(Policy::default().admits(nowhere));
        }
    }

    #[test]
    fn only_a_token_that_is_asked_for_newly_or_otherwise_is_asked_for_anew() {
        let none = Policy::default();
        let other_jwt = JWT.replace("\"a\"", "\"b\"");
        let other_access = ACCESS.replace("tag", "other");
        for (one, other) in [(JWT, other_jwt.as_str()), (ACCESS, other_access.as_str())] {
            let asks = parse(&format!("{{{one}}}")).unwrap();
            let asks_other = parse(&format!("{{{other}}}")).unwrap();
            assert!(asks.asks_anew(&none) && asks_other.asks_anew(&asks));
            assert!(!none.asks_anew(&asks) && !asks.asks_anew(&asks));
            let elsewhere = parse(&format!(
                r#"{{"bearer":false,"ipAllowlist":["::1"],{one}}}"#
            ));
            assert!(!elsewhere.unwrap().asks_anew(&asks));
        }
        let both = parse(&format!("{{{JWT},{ACCESS}}}")).unwrap();
        let jwt = parse(&format!("{{{JWT}}}")).unwrap();
        assert!(both.asks_anew(&jwt) && !jwt.asks_anew(&both));
    }

    #[test]
    fn the_key_header_is_always_allowed() {
        let policy = parse(r#"{"bearer":false,"swarmvia":false}"#).unwrap();
        assert!(policy.carries(Carrier::KeyHeader));
        assert!(!policy.carries(Carrier::Bearer) && !policy.carries(Carrier::Swarmvia));
    }

    #[test]
    fn an_error_names_its_field() {
        let long = "x".repeat(513);
        for (access, field) in [
            (r#"{"bearer":1}"#.to_owned(), "access.bearer"),
            (r#"{"berer":true}"#.into(), "access.berer"),
            (r#"{"ipAllowlist":["::1","x"]}"#.into(), "access.ipAllowlist"),
            (r#"{"jwt":[]}"#.into(), "access.jwt"),
            (r#"{"cloudflareAccess":1}"#.into(), "access.cloudflareAccess"),
            (r#"{"cloudflareAccess":{}}"#.into(), "access.cloudflareAccess.teamDomain"),
            (
                r#"{"cloudflareAccess":{"teamDomain":"a.cloudflareaccess.com"}}"#.into(),
                "access.cloudflareAccess.audience",
            ),
            (
                format!(
                    r#"{{"cloudflareAccess":{{"teamDomain":"a.cloudflareaccess.com","audience":"{long}"}}}}"#
                ),
                "access.cloudflareAccess.audience",
            ),
            (
                r#"{"cloudflareAccess":{"teamDomain":"a.cloudflareaccess.com","audience":"a","x":1}}"#
                    .into(),
                "access.cloudflareAccess.x",
            ),
        ] {
            assert_eq!(parse(&access).unwrap_err().field, field, "{access}");
        }
    }
}
