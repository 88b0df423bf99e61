//! Errors as callers see them: a status, a word, one plain sentence that says
//! what to do. Detail that helps only us is never in here.

use std::borrow::Cow;

use super::answer::HttpAnswer;
use crate::access::families::Why;
use crate::door::dead::Death;
use crate::fields::FieldError;
use crate::governor::time::Span;
use crate::json::object;

/// The `error` word of a body, with its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    InvalidRequest,
    Unauthorized,
    /// 403: also `unauthorized` on the wire.
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    Capped,
    TooManyKeys,
    PreconditionFailed,
    PayloadTooLarge,
    TooManyRequests,
    Unavailable,
    QueueTimeout,
}

impl Kind {
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::Capped | Self::TooManyKeys => 409,
            Self::PreconditionFailed => 412,
            Self::PayloadTooLarge => 413,
            Self::TooManyRequests => 429,
            Self::Unavailable => 503,
            Self::QueueTimeout => 504,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unauthorized | Self::Forbidden => "unauthorized",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::Capped => "capped",
            Self::TooManyKeys => "too_many_keys",
            Self::PreconditionFailed => "precondition_failed",
            Self::PayloadTooLarge => "payload_too_large",
            Self::TooManyRequests => "too_many_requests",
            Self::Unavailable => "unavailable",
            Self::QueueTimeout => "queue_timeout",
        }
    }
}

/// An error on its way to a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub kind: Kind,
    pub message: Cow<'static, str>,
    pub field: Option<String>,
    pub reason: Option<&'static str>,
    /// The exact moment to come back at, where it is known.
    pub retry_after: Option<Span>,
    pub headers: Vec<(&'static str, String)>,
}

impl Problem {
    pub fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            field: None,
            reason: None,
            retry_after: None,
            headers: Vec::new(),
        }
    }

    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn not_found() -> Self {
        Self::new(
            Kind::NotFound,
            "There is no such route on this host; see /openapi.json.",
        )
    }

    pub fn bad_source_name() -> Self {
        Self::new(
            Kind::NotFound,
            "There can be no such source: a name is at most 63 lower-case letters, digits and inner hyphens.",
        )
    }

    /// What an operator named isn't there.
    pub fn unknown(what: &str) -> Self {
        Self::new(Kind::NotFound, format!("There is no such {what}."))
    }

    /// `allow`: the methods of the route, as the header lists them.
    pub fn method_not_allowed(allow: &'static str) -> Self {
        let which = if allow.contains(',') {
            "one of them"
        } else {
            "that method"
        };
        let message = format!("This route takes {allow} only; use {which}.");
        Self::new(Kind::MethodNotAllowed, message).with_header("Allow", allow)
    }

    pub fn precondition_failed() -> Self {
        Self::new(
            Kind::PreconditionFailed,
            "The settings are not at that version, or are there already; read them and decide anew.",
        )
    }

    /// To the holder of a key that was good once: it was ours, so why it isn't good
    /// any more tells nothing to those who never had one.
    pub fn dead_access_key(why: Death) -> Self {
        let message = match why {
            Death::Expired => {
                "This access key has expired; refresh it, or have an operator mint a new one."
            }
            Death::Revoked => "This access key was revoked; have an operator mint a new one.",
            Death::Unknown => {
                "This access key is no longer known to its source; have an operator mint a new one."
            }
            Death::Untold => return Self::bad_access_key(),
        };
        Self::bad_access_key().saying(message)
    }

    /// To everyone else the same for every reason, so that nothing can be learned
    /// from it.
    pub fn bad_access_key() -> Self {
        Self::new(
            Kind::Unauthorized,
            "Present a live access key of this source, for instance as X-Swarmvia-Key.",
        )
        .with_header(
            "WWW-Authenticate",
            "Swarmvia realm=\"locks\", Bearer realm=\"locks\"",
        )
    }

    /// `header`: where the token was to be.
    pub fn bad_token(header: &str) -> Self {
        let message = format!("Present a valid token of this source's issuer in {header}.");
        Self::new(Kind::Unauthorized, message)
            .with_header("WWW-Authenticate", "Bearer realm=\"locks\"")
    }

    /// `header`: where the token was.
    pub fn token_too_long(header: &str) -> Self {
        let message = format!("The token in {header} is over 8,192 bytes; present a shorter one.");
        Self::new(Kind::Unauthorized, message)
            .with_header("WWW-Authenticate", "Bearer realm=\"locks\"")
    }

    /// The same for every reason, so that nothing can be learned from it.
    pub fn bad_refresh_token() -> Self {
        Self::new(
            Kind::Unauthorized,
            "The refresh token is not good (any more); have an operator mint a new key.",
        )
        .with_header("WWW-Authenticate", "Bearer realm=\"refresh\"")
    }

    /// Whoever holds a token that we signed may know what became of it.
    pub fn dead_refresh_token(why: Why) -> Self {
        let message = match why {
            Why::Unknown => return Self::bad_refresh_token(),
            Why::Expired => "The refresh token has expired; have an operator mint a new key.",
            Why::Revoked => {
                "The refresh token's family is revoked; have an operator mint a new key."
            }
        };
        Self::bad_refresh_token().saying(message)
    }

    pub fn reused_refresh_token() -> Self {
        Self::bad_refresh_token().saying(
            "The refresh token was traded in before, so its whole family is revoked now; have an operator mint a new key.",
        )
    }

    fn saying(mut self, message: &'static str) -> Self {
        self.message = message.into();
        self
    }

    pub fn forbidden_address() -> Self {
        Self::new(
            Kind::Forbidden,
            "Your address is not on the allowlist of this source; ask its operator to add it.",
        )
    }

    pub fn bad_admin_token() -> Self {
        Self::new(
            Kind::Unauthorized,
            "Present the admin token of this deployment as Authorization: Bearer.",
        )
        .with_header("WWW-Authenticate", "Bearer realm=\"control\"")
    }

    /// A `Host` that is none: what would be read as its path isn't one.
    pub fn bad_host() -> Self {
        let message = "Host must be a host name or an address, and a port if need be; send nothing else in it.";
        let mut problem = Self::new(Kind::InvalidRequest, message);
        problem.field = Some("Host".into());
        problem
    }

    pub fn request_timeout() -> Self {
        Self::new(
            Kind::RequestTimeout,
            "The body did not come to its end in time; send it again, at once.",
        )
    }

    pub fn payload_too_large() -> Self {
        Self::new(
            Kind::PayloadTooLarge,
            "The body is over 64 KiB; send a shorter one.",
        )
    }

    /// `seconds`: after how long a retry is likely to work.
    pub fn unavailable(seconds: u32) -> Self {
        Self::new(
            Kind::Unavailable,
            "The source could not answer; try again after Retry-After.",
        )
        .with_header("Retry-After", seconds.max(1).to_string())
    }

    /// A secret of the deployment is missing or malformed; `what` says which.
    pub fn misconfigured(what: &'static str) -> Self {
        Self::new(Kind::Unavailable, what).with_header("Retry-After", "60")
    }

    /// Whether it is about what the request says, beside who may call.
    pub fn is_of_request(&self) -> bool {
        matches!(self.kind, Kind::InvalidRequest | Kind::NotFound)
    }

    pub fn into_answer(self) -> HttpAnswer {
        let body = object! {
            "error": self.kind.word(),
            "reason": self.reason,
            "message": self.message.as_ref(),
            "field": self.field,
            "retryAfterMs": self.retry_after.map(Span::ms),
        };
        HttpAnswer {
            status: self.kind.status(),
            headers: self.headers,
            body: body.without_nulls().to_string(),
        }
    }
}

impl From<FieldError> for Problem {
    fn from(error: FieldError) -> Self {
        let mut problem = Self::new(Kind::InvalidRequest, error.message);
        problem.field = Some(error.field).filter(|field| !field.is_empty());
        problem
    }
}
