//! Cloudflare Access: where the keys of a team are, and what its tokens say.

use super::jwt::Expectation;
use super::jwt::policy::KeySource;
use super::policy::{MOST_CLAIM_CHARS, required};
use crate::fields::{FieldError, Fields};
use crate::json::{Json, object};

/// What the team domains end with.
const ACCESS_DOMAIN: &str = ".cloudflareaccess.com";
/// The longest name of a host.
const MOST_HOST_CHARS: usize = 253;

/// Cloudflare Access stands in front of the deployment and says who comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudflareAccess {
    /// A host name under `cloudflareaccess.com`, in lowercase.
    team_domain: String,
    /// The tag of the Access application.
    audience: String,
}

impl CloudflareAccess {
    pub(super) fn parse(fields: &Fields) -> Result<Self, FieldError> {
        let team_domain = required(fields, "teamDomain", MOST_HOST_CHARS)?.to_ascii_lowercase();
        if !is_team_domain(&team_domain) {
            let path = fields.path_of("teamDomain");
            let message = format!(
                "{path} must be a bare host name like my-team{ACCESS_DOMAIN}, without https://."
            );
            return Err(FieldError::new(path, message));
        }
        let parsed = Self {
            team_domain,
            audience: required(fields, "audience", MOST_CLAIM_CHARS)?,
        };
        fields.no_others()?;
        Ok(parsed)
    }

    pub(super) fn to_json(&self) -> Json {
        object! {"teamDomain": self.team_domain.as_str(), "audience": self.audience.as_str()}
    }

    /// Where the keys of the team are published.
    pub fn keys(&self) -> KeySource {
        KeySource::Url(format!("https://{}/cdn-cgi/access/certs", self.team_domain))
    }

    pub fn expectation(&self) -> Expectation {
        Expectation {
            issuer: format!("https://{}", self.team_domain),
            audience: self.audience.clone(),
            is_access: true,
        }
    }
}

fn is_team_domain(text: &str) -> bool {
    text.strip_suffix(ACCESS_DOMAIN)
        .is_some_and(|team| team.split('.').all(is_label))
}

/// A DNS label in lowercase.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn team(domain: &str) -> Result<CloudflareAccess, FieldError> {
        let body = json!({"teamDomain": domain, "audience": "tag"}).to_string();
        CloudflareAccess::parse(&Fields::of_body(body.as_bytes()).unwrap())
    }

    #[test]
    fn a_team_domain_gives_issuer_and_keys() {
        let access = team("Team.cloudflareaccess.com").unwrap();
        let expected = access.expectation();
        assert_eq!(expected.issuer, "https://team.cloudflareaccess.com");
        assert_eq!(
            (expected.audience.as_str(), expected.is_access),
            ("tag", true)
        );
        let certs = "https://team.cloudflareaccess.com/cdn-cgi/access/certs";
        assert_eq!(access.keys(), KeySource::Url(certs.into()));
    }

    #[test]
    fn a_team_domain_is_a_bare_host_name_under_cloudflareaccess_com() {
        assert!(team("a.cloudflareaccess.com").is_ok());
        assert!(team("a.fed.cloudflareaccess.com").is_ok());
        for bad in [
            "",
            "cloudflareaccess.com",
            ".cloudflareaccess.com",
            "-a.cloudflareaccess.com",
            "a-.cloudflareaccess.com",
            "a..cloudflareaccess.com",
            "a_b.cloudflareaccess.com",
            "a.cloudflareaccess.com.",
            "a.cloudflareaccess.com.evil.example",
            "evilcloudflareaccess.com",
            "evil.example/.cloudflareaccess.com",
            "evil.example#.cloudflareaccess.com",
            "evil.example?.cloudflareaccess.com",
            "evil.example\\.cloudflareaccess.com",
            "u@a.cloudflareaccess.com",
            "https://a.cloudflareaccess.com",
            "a.cloudflareaccess.com/",
            "a.cloudflareaccess.com:443",
            "a b.cloudflareaccess.com",
            "ä.cloudflareaccess.com",
            &format!("{}.cloudflareaccess.com", "a".repeat(64)),
        ] {
            let error = team(bad).unwrap_err();
            assert_eq!(error.field, "teamDomain", "{bad}");
        }
    }
}
