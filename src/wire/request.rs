//! What an acquire asks for, and how an access key is presented.

use sha2::{Digest as _, Sha256};

use crate::fields::{FieldError, Fields, natural};
use crate::governor::ids::{AttemptId, KeyId};
use crate::governor::time::Span;

pub const QUEUE_TIMEOUT_HEADER: &str = "X-Swarmvia-Queue-Timeout-Ms";
pub const IDEMPOTENCY_HEADER: &str = "Idempotency-Key";
pub const KEY_HEADER: &str = "X-Swarmvia-Key";
pub const NO_QUEUE_HEADER: &str = "X-Swarmvia-No-Queue";

/// The headers of an acquire that say something; each as it came.
#[derive(Clone, Copy, Debug, Default)]
pub struct AcquireHeaders<'a> {
    pub queue_timeout: Option<&'a str>,
    pub no_queue: Option<&'a str>,
    pub idempotency_key: Option<&'a str>,
}

/// What an acquire asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How long to queue; zero: fail fast.
    pub wait: Span,
    /// The attempt that this is a repeat of, or may be repeated as.
    pub attempt: Option<AttemptId>,
}

/// Reads the body and the headers of an acquire made under `key`.
///
/// # Errors
/// Names the field or header that is wrong, also where another one wins.
pub fn acquire(body: &[u8], headers: AcquireHeaders, key: KeyId) -> Result<Wanted, FieldError> {
    let from_body = Fields::of_body(body)?.natural("waitMs")?;
    let from_header = headers.queue_timeout.map(queue_timeout).transpose()?;
    let idempotency_key = headers.idempotency_key.map(check_key).transpose()?;
    let fail_fast = headers.no_queue.is_some_and(is_set);
    let wait_ms = from_body.or(from_header).filter(|_| !fail_fast);
    Ok(Wanted {
        wait: Span::from_ms(wait_ms.unwrap_or(0)),
        attempt: idempotency_key.map(|name| attempt_of(key, name)),
    })
}

fn queue_timeout(value: &str) -> Result<u64, FieldError> {
    natural(value.trim_ascii()).ok_or_else(|| {
        let message = format!("{QUEUE_TIMEOUT_HEADER} must be an integer of 0 or more.");
        FieldError::new(QUEUE_TIMEOUT_HEADER, message)
    })
}

fn is_set(value: &str) -> bool {
    let value = value.trim_ascii();
    value != "0" && !value.eq_ignore_ascii_case("false")
}

fn check_key(value: &str) -> Result<&str, FieldError> {
    let visible = value.bytes().all(|b| b.is_ascii_graphic());
    if visible && (1..=255).contains(&value.len()) {
        return Ok(value);
    }
    let message = format!("{IDEMPOTENCY_HEADER} must be 1 to 255 visible ASCII characters.");
    Err(FieldError::new(IDEMPOTENCY_HEADER, message))
}

/// Scoped to the key's family: two teams that both say `job-1` do not meet.
fn attempt_of(key: KeyId, name: &str) -> AttemptId {
    let mut hasher = Sha256::new();
    hasher.update(key.0.to_be_bytes());
    hasher.update(name.as_bytes());
    let digest: [u8; 32] = hasher.finalize().into();
    let first = digest.first_chunk().copied().unwrap_or_default();
    AttemptId(u128::from_be_bytes(first))
}

/// How an access key came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// `X-Swarmvia-Key`: always allowed.
    KeyHeader,
    Bearer,
    Swarmvia,
}

/// Finds the access key. `X-Swarmvia-Key` wins, also when it is bad.
pub fn presented<'a>(
    key_header: Option<&'a str>,
    authorization: Option<&'a str>,
) -> Option<(Carrier, &'a str)> {
    if let Some(key) = key_header {
        return Some((Carrier::KeyHeader, key.trim_ascii()));
    }
    let (scheme, token) = scheme_and_token(authorization?)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        Some((Carrier::Bearer, token))
    } else if scheme.eq_ignore_ascii_case("swarmvia") {
        Some((Carrier::Swarmvia, token))
    } else {
        None
    }
}

/// The token of `Authorization: Bearer …`.
pub fn bearer(authorization: Option<&str>) -> Option<&str> {
    let (scheme, token) = scheme_and_token(authorization?)?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

fn scheme_and_token(authorization: &str) -> Option<(&str, &str)> {
    let (scheme, token) = authorization.trim_ascii().split_once(' ')?;
    Some((scheme, token.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_white_space_of_http_is_cut_off() {
        let timeout = |value| {
            let headers = AcquireHeaders {
                queue_timeout: Some(value),
                ..AcquireHeaders::default()
            };
            acquire(b"", headers, KeyId(1)).map(|wanted| wanted.wait.ms())
        };
        assert_eq!(timeout(" 5\t"), Ok(5));
        for value in ["5\u{a0}", "5\u{85}", "\u{2003}5"] {
            assert!(timeout(value).is_err(), "{value:?}");
        }
    }

    const KEY: KeyId = KeyId(7);

    fn wait(
        body: &str,
        queue_timeout: Option<&str>,
        no_queue: Option<&str>,
    ) -> Result<u64, String> {
        let headers = AcquireHeaders {
            queue_timeout,
            no_queue,
            idempotency_key: None,
        };
        acquire(body.as_bytes(), headers, KEY)
            .map(|wanted| wanted.wait.ms())
            .map_err(|error| error.field)
    }

    #[test]
    fn the_wait_comes_from_body_or_header() {
        let ok = Ok::<u64, String>;
        assert_eq!(wait("", None, None), ok(0));
        assert_eq!(wait(r#"{"waitMs":5000}"#, None, None), ok(5000));
        assert_eq!(wait(r#"{"waitMs":5000.0}"#, Some("7"), None), ok(5000));
        assert_eq!(wait(r#"{"waitMs":null}"#, Some(" 7 "), None), ok(7));
        assert_eq!(wait(r#"{"waitMs":0}"#, Some("7"), None), ok(0));
        assert_eq!(wait("{}", Some("7.0"), Some("false")), ok(7));
        assert_eq!(wait("{}", Some("7"), Some("0")), ok(7));
        for set in ["1", "true", "", "no", "00"] {
            assert_eq!(wait(r#"{"waitMs":5}"#, None, Some(set)), ok(0), "{set}");
        }
    }

    #[test]
    fn a_malformed_header_is_an_error_even_where_the_body_wins() {
        let bad = Err("X-Swarmvia-Queue-Timeout-Ms".to_owned());
        for value in ["", "x", "-1", "1.5", "1, 2", "Infinity"] {
            assert_eq!(wait(r#"{"waitMs":5}"#, Some(value), None), bad, "{value}");
        }
        assert_eq!(wait(r#"{"waitMs":"5"}"#, None, None), Err("waitMs".into()));
    }

    #[test]
    fn an_idempotency_key_is_scoped_to_the_family() {
        let of = |name, key| {
            let headers = AcquireHeaders {
                idempotency_key: Some(name),
                ..AcquireHeaders::default()
            };
            acquire(b"", headers, KeyId(key)).map(|wanted| wanted.attempt)
        };
        assert_eq!(of("job-1", 1), of("job-1", 1));
        assert_ne!(of("job-1", 1), of("job-1", 2));
        assert_ne!(of("job-1", 1), of("job-2", 1));
        for bad in ["", "a b", "ä", &"x".repeat(256)] {
            assert!(of(bad, 1).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_key_header_wins_also_when_it_is_bad() {
        let bearer = Some("bEARER  sv_at_x");
        assert_eq!(presented(Some(""), bearer), Some((Carrier::KeyHeader, "")));
        assert_eq!(presented(None, bearer), Some((Carrier::Bearer, "sv_at_x")));
        let swarmvia = Some("swarmvia sv_at_y");
        assert_eq!(
            presented(None, swarmvia),
            Some((Carrier::Swarmvia, "sv_at_y"))
        );
        assert_eq!(presented(None, Some("Basic x")), None);
        assert_eq!(presented(None, Some("Bearer")), None);
        assert_eq!(presented(None, None), None);
    }
}
