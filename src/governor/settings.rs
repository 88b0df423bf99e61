//! The settings of a source, parsed once and bounded: an invalid one can't
//! exist.
//!
//! The JSON form is the wire's and the storage's alike. This module never
//! decides what a change of settings does to those who are already in.

use super::time::Span;
use crate::access::policy::{Loopback, Policy};
use crate::fields::{FieldError, Fields};
use crate::json::{Json, object};

const MOST_TERM_MS: u64 = 600_000;
/// The longest that any source lets a caller queue.
pub const LONGEST_QUEUE_TIMEOUT: Span = Span::from_ms(600_000);
const MOST_REQUEST_MS: u64 = 86_400_000;
/// Renewals a second that one object serves beside its other work.
const MOST_RENEWALS_PER_SECOND: u64 = 300;
/// Cloudflare's hints for where an object is to live.
pub const LOCATIONS: [&str; 11] = [
    "wnam", "enam", "sam", "weur", "eeur", "apac", "apac-ne", "apac-se", "oc", "afr", "me",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub concurrency: Concurrency,
    pub rpm: RpmSettings,
    pub queue: QueueSettings,
    pub lease: Lease,
    pub access: Policy,
    pub log: LogSettings,
    /// One of [`LOCATIONS`]; it counts when the source is created.
    pub location: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// Slots at once, 1 to 10,000.
    pub limit: u32,
    pub adaptive: bool,
    pub min: u32,
    pub max: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpmSettings {
    /// Grants in any 60 s, 1 to 1,000,000; `None`: no gate.
    pub limit: Option<u32>,
    pub adaptive: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// Places, 0 to 10,000.
    pub max_depth: u32,
    pub timeout: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub term: Span,
    pub renew_interval: Span,
    pub request_timeout: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Attempts to keep, 100 to 100,000.
    pub keep: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: Concurrency {
                limit: 10,
                adaptive: false,
                min: 1,
                max: 10,
            },
            rpm: RpmSettings {
                limit: None,
                adaptive: false,
            },
            queue: QueueSettings {
                max_depth: 100,
                timeout: Span::from_seconds(30),
            },
            lease: Lease {
                term: Span::from_seconds(30),
                renew_interval: Span::from_seconds(10),
                request_timeout: Span::from_seconds(60),
            },
            access: Policy::default(),
            log: LogSettings { keep: 10_000 },
            location: None,
        }
    }
}

impl Settings {
    /// Reads a body of settings; what is left out has its default. `loopback`:
    /// whether keys may be fetched from this machine.
    ///
    /// # Errors
    /// Names the first field that is unknown, of the wrong type, or out of range.
    pub fn parse(body: &[u8], loopback: Loopback) -> Result<Self, FieldError> {
        let fields = Fields::of_body(body)?;
        let concurrency = Concurrency::parse(&fields.part("concurrency")?)?;
        let lease = Lease::parse(&fields.part("lease")?)?;
        check_renewal_load(&concurrency, &lease)?;
        let settings = Self {
            concurrency,
            rpm: RpmSettings::parse(&fields.part("rpm")?)?,
            queue: QueueSettings::parse(&fields.part("queue")?)?,
            lease,
            access: Policy::parse(&fields.part("access")?, loopback)?,
            log: LogSettings::parse(&fields.part("log")?)?,
            location: location(&fields)?,
        };
        fields.no_others()?;
        Ok(settings)
    }

    /// The same, with every default filled in.
    pub fn to_json(&self) -> Json {
        object! {
            "concurrency": object! {
                "limit": self.concurrency.limit,
                "adaptive": self.concurrency.adaptive,
                "min": self.concurrency.min,
                "max": self.concurrency.max,
            },
            "rpm": object! {"limit": self.rpm.limit, "adaptive": self.rpm.adaptive},
            "queue": object! {
                "maxDepth": self.queue.max_depth,
                "timeoutMs": self.queue.timeout.ms(),
            },
            "lease": object! {
                "termMs": self.lease.term.ms(),
                "renewIntervalMs": self.lease.renew_interval.ms(),
                "requestTimeoutMs": self.lease.request_timeout.ms(),
            },
            "access": self.access.to_json(),
            "log": object! {"keep": self.log.keep},
            "location": self.location,
        }
    }
}

/// An integer field that fits in 32 bits by its bounds.
fn small(
    fields: &Fields,
    name: &'static str,
    least: u32,
    most: u32,
) -> Result<Option<u32>, FieldError> {
    let value = fields.within(name, u64::from(least), u64::from(most))?;
    Ok(value.map(|v| u32::try_from(v).unwrap_or(most)))
}

fn span(
    fields: &Fields,
    name: &'static str,
    least: u64,
    most: u64,
) -> Result<Option<Span>, FieldError> {
    Ok(fields.within(name, least, most)?.map(Span::from_ms))
}

impl Concurrency {
    fn parse(fields: &Fields) -> Result<Self, FieldError> {
        let limit = small(fields, "limit", 1, 10_000)?.unwrap_or(10);
        let parsed = Self {
            limit,
            adaptive: fields.flag("adaptive")?.unwrap_or(false),
            min: small(fields, "min", 1, 10_000)?.unwrap_or(1),
            max: small(fields, "max", 1, 10_000)?.unwrap_or(limit),
        };
        fields.no_others()?;
        if parsed.min > limit {
            let message = format!("concurrency.min must be at most the limit, {limit}.");
            return Err(FieldError::new("concurrency.min", message));
        }
        if parsed.max < limit {
            let message = format!(
                "concurrency.max must be at least the limit, {limit}: raise it too, or leave it out."
            );
            return Err(FieldError::new("concurrency.max", message));
        }
        Ok(parsed)
    }
}

impl RpmSettings {
    fn parse(fields: &Fields) -> Result<Self, FieldError> {
        let parsed = Self {
            limit: small(fields, "limit", 1, 1_000_000)?,
            adaptive: fields.flag("adaptive")?.unwrap_or(false),
        };
        fields.no_others()?;
        Ok(parsed)
    }
}

impl QueueSettings {
    fn parse(fields: &Fields) -> Result<Self, FieldError> {
        let default = Settings::default().queue;
        let parsed = Self {
            max_depth: small(fields, "maxDepth", 0, 10_000)?.unwrap_or(default.max_depth),
            timeout: span(fields, "timeoutMs", 0, LONGEST_QUEUE_TIMEOUT.ms())?
                .unwrap_or(default.timeout),
        };
        fields.no_others()?;
        Ok(parsed)
    }
}

impl Lease {
    fn parse(fields: &Fields) -> Result<Self, FieldError> {
        let term =
            span(fields, "termMs", 500, MOST_TERM_MS)?.unwrap_or(Settings::default().lease.term);
        // Below the term, as the bound says; 1 ms short of it at the most.
        let longest_interval = term.ms().saturating_sub(1);
        let third = Span::from_ms(term.ms().div_euclid(3));
        let twice = Span::from_ms(term.ms().saturating_mul(2).max(60_000));
        let parsed = Self {
            term,
            renew_interval: span(fields, "renewIntervalMs", 1, longest_interval)?.unwrap_or(third),
            request_timeout: span(fields, "requestTimeoutMs", term.ms(), MOST_REQUEST_MS)?
                .unwrap_or(twice),
        };
        fields.no_others()?;
        Ok(parsed)
    }
}

impl LogSettings {
    fn parse(fields: &Fields) -> Result<Self, FieldError> {
        let parsed = Self {
            keep: small(fields, "keep", 100, 100_000)?.unwrap_or(10_000),
        };
        fields.no_others()?;
        Ok(parsed)
    }
}

fn location(fields: &Fields) -> Result<Option<&'static str>, FieldError> {
    let Some(text) = fields.text("location", 1, 16)? else {
        return Ok(None);
    };
    let known = LOCATIONS.into_iter().find(|known| *known == text);
    known.map(Some).ok_or_else(|| {
        let message = format!("location must be null or one of {}.", LOCATIONS.join(", "));
        FieldError::new("location", message)
    })
}

fn check_renewal_load(concurrency: &Concurrency, lease: &Lease) -> Result<(), FieldError> {
    let per_interval = u64::from(concurrency.max).saturating_mul(1000);
    let most = lease
        .renew_interval
        .ms()
        .saturating_mul(MOST_RENEWALS_PER_SECOND);
    if per_interval <= most {
        return Ok(());
    }
    let needed = per_interval.div_ceil(MOST_RENEWALS_PER_SECOND);
    let message = format!(
        "{} slots renewed every {} ms are more than {MOST_RENEWALS_PER_SECOND} renewals a second; \
         lengthen lease.termMs so that lease.renewIntervalMs is at least {needed}.",
        concurrency.max,
        lease.renew_interval.ms(),
    );
    Err(FieldError::new("lease.renewIntervalMs", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<Settings, FieldError> {
        Settings::parse(body.as_bytes(), Loopback::Refused)
    }

    fn error(body: &str) -> String {
        parse(body).unwrap_err().field
    }

    #[test]
    fn nothing_said_is_the_default() {
        for body in ["", "{}", r#"{"concurrency":{},"location":null,"rpm":null}"#] {
            assert_eq!(parse(body), Ok(Settings::default()));
        }
    }

    #[test]
    fn settings_survive_their_json() {
        let body = r#"{"concurrency":{"limit":5,"adaptive":true,"min":2,"max":9},
            "rpm":{"limit":100,"adaptive":true},"queue":{"maxDepth":0,"timeoutMs":0},
            "lease":{"termMs":500,"renewIntervalMs":100,"requestTimeoutMs":700},
            "access":{"bearer":false,"swarmvia":false,"ipAllowlist":["192.0.2.0/24"],
            "jwt":{"issuer":"i","audience":"a","jwksUrl":"https://idp.example/keys"}},"log":{"keep":100},"location":"weur"}"#;
        let settings = parse(body).unwrap();
        let again = parse(&settings.to_json().to_string()).unwrap();
        assert_eq!(settings, again);
        assert_eq!(settings.lease.request_timeout, Span::from_ms(700));
    }

    #[test]
    fn dependent_defaults_follow_what_was_said() {
        let settings = parse(r#"{"concurrency":{"limit":7},"lease":{"termMs":90000}}"#).unwrap();
        assert_eq!(settings.concurrency.max, 7);
        assert_eq!(settings.lease.renew_interval, Span::from_seconds(30));
        assert_eq!(settings.lease.request_timeout, Span::from_seconds(180));
    }

    #[test]
    fn an_error_names_its_field() {
        for (body, field) in [
            (r#"{"concurrency":{"limit":0}}"#, "concurrency.limit"),
            (r#"{"concurrency":{"limit":10001}}"#, "concurrency.limit"),
            (r#"{"concurrency":{"limit":5,"min":6}}"#, "concurrency.min"),
            (r#"{"concurrency":{"limit":5,"max":4}}"#, "concurrency.max"),
            (r#"{"concurrency":{"limit":5,"mx":4}}"#, "concurrency.mx"),
            (r#"{"concurrency":[]}"#, "concurrency"),
            (r#"{"rpm":{"limit":0}}"#, "rpm.limit"),
            (r#"{"queue":{"maxDepth":10001}}"#, "queue.maxDepth"),
            (r#"{"queue":{"timeoutMs":600001}}"#, "queue.timeoutMs"),
            (r#"{"lease":{"termMs":499}}"#, "lease.termMs"),
            (
                r#"{"lease":{"termMs":1000,"renewIntervalMs":1000}}"#,
                "lease.renewIntervalMs",
            ),
            (
                r#"{"lease":{"termMs":1000,"requestTimeoutMs":999}}"#,
                "lease.requestTimeoutMs",
            ),
            (r#"{"access":{"jwt":{}}}"#, "access.jwt.issuer"),
            (
                r#"{"access":{"ipAllowlist":["::1/129"]}}"#,
                "access.ipAllowlist",
            ),
            (r#"{"log":{"keep":99}}"#, "log.keep"),
            (r#"{"location":"mars"}"#, "location"),
            (r#"{"nonsense":1}"#, "nonsense"),
        ] {
            assert_eq!(error(body), field, "{body}");
        }
    }

    #[test]
    fn more_renewals_than_one_object_serves_are_refused() {
        assert_eq!(
            error(r#"{"concurrency":{"limit":3001}}"#),
            "lease.renewIntervalMs"
        );
        assert!(parse(r#"{"concurrency":{"limit":3000}}"#).is_ok());
        assert!(parse(r#"{"concurrency":{"limit":10000},"lease":{"termMs":120000}}"#).is_ok());
    }
}
