//! What a release reports of the upstream call, validated.
//!
//! A malformed report is refused with the field's name; a header value that
//! can't be read is ignored. Learning from `rate` and `headers` is not here
//! yet: they are validated only.

pub mod rate;
pub mod signal;

use serde_json::value::RawValue;

use crate::fields::{FieldError, Fields};
use crate::governor::time::Span;
use rate::Rate;

/// Header names that a report may carry.
const MOST_HEADERS: usize = 256;

/// The report of a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The final upstream status, 100 to 599.
    pub status: Option<u16>,
    /// Upstream 429s that were observed.
    pub throttled: Option<u64>,
    /// What the upstream said of its limits, and its hint when to come back.
    pub rate: Rate,
}

const RATE_FIELDS: [&str; 9] = [
    "limit",
    "remaining",
    "resetMs",
    "tokenLimit",
    "tokenRemaining",
    "tokenResetMs",
    "windowMs",
    "concurrencyLimit",
    "retryAfterMs",
];

impl Report {
    /// # Errors
    /// Names the field that has the wrong type or range.
    pub fn parse(body: &[u8]) -> Result<Self, FieldError> {
        let fields = Fields::of_body(body)?;
        let status = fields.within("status", 100, 599)?;
        let report = Self {
            status: status.and_then(|s| u16::try_from(s).ok()),
            throttled: fields.natural("throttled")?,
            rate: Rate {
                retry_after: fields.natural("retryAfterMs")?.map(Span::from_ms),
                ..Rate::default()
            },
        };
        let rate = fields.part("rate")?;
        for name in RATE_FIELDS {
            rate.amount(name)?;
        }
        check_headers(&fields)?;
        Ok(report)
    }

    /// For how long the report closes the gate: with a hint, and where the
    /// upstream throttled or nothing says that it didn't.
    pub fn closes_gate_for(&self) -> Option<Span> {
        let throttled = match (self.status, self.throttled) {
            (Some(429 | 503) | None, _) => true,
            (Some(_), throttled) => throttled.is_some_and(|count| count > 0),
        };
        let hint = self.rate.retry_after.filter(|_| throttled);
        hint.max(self.rate.exhausted_for())
    }
}

/// `headers`: an object of string → string, number, or array of those; null is as absent.
fn check_headers(fields: &Fields) -> Result<(), FieldError> {
    let headers = fields.part("headers")?;
    if headers.names().count() > MOST_HEADERS {
        let message =
            format!("headers has more than {MOST_HEADERS} names; send those about rates.");
        return Err(FieldError::new("headers", message));
    }
    for (name, value) in headers.entries() {
        if !is_header_value(value) {
            let path = headers.path_of(&name.chars().take(64).collect::<String>());
            let message = format!("{path} must be a text, a number, or a list of those.");
            return Err(FieldError::new(path, message));
        }
    }
    Ok(())
}

fn is_header_value(value: &RawValue) -> bool {
    match value.get().bytes().next() {
        Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(value.get())
            .is_ok_and(|items| items.into_iter().all(is_scalar)),
        Some(b'n') => true,
        _ => is_scalar(value),
    }
}

fn is_scalar(value: &RawValue) -> bool {
    match value.get().bytes().next() {
        // Read, since a raw value may hold an escape that is no text.
        Some(b'"') => serde_json::from_str::<String>(value.get()).is_ok(),
        Some(first) => first == b'-' || first.is_ascii_digit(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<Report, String> {
        Report::parse(body.as_bytes()).map_err(|error| error.field)
    }

    #[test]
    fn every_part_is_optional() {
        assert_eq!(parse(""), Ok(Report::default()));
        assert_eq!(
            parse(r#"{"status":null,"rate":null,"else":[1]}"#),
            Ok(Report::default())
        );
    }

    #[test]
    fn a_malformed_report_names_the_field() {
        for (body, field) in [
            (r#"{"status":99}"#, "status"),
            (r#"{"status":"200"}"#, "status"),
            (r#"{"status":200.5}"#, "status"),
            (r#"{"throttled":-1}"#, "throttled"),
            (r#"{"throttled":true}"#, "throttled"),
            (r#"{"retryAfterMs":"1"}"#, "retryAfterMs"),
            (r#"{"rate":[]}"#, "rate"),
            (r#"{"rate":{"limit":"10"}}"#, "rate.limit"),
            (r#"{"rate":{"remaining":-1}}"#, "rate.remaining"),
            (r#"{"headers":"x"}"#, "headers"),
            (r#"{"headers":{"a":{}}}"#, "headers.a"),
            (r#"{"headers":{"a":[["b"]]}}"#, "headers.a"),
            (r#"{"headers":{"a":[null]}}"#, "headers.a"),
            (r#"{"headers":{"a":true}}"#, "headers.a"),
        ] {
            assert_eq!(parse(body), Err(field.to_owned()), "{body}");
        }
    }

    #[test]
    fn header_values_are_texts_numbers_or_lists_of_them_and_null_is_as_absent() {
        let body = r#"{"headers":{"a":"b","c":1,"d":["e",-2.5],"f":[],"g":null}}"#;
        assert_eq!(parse(body), Ok(Report::default()));
    }

    #[test]
    fn a_hint_closes_the_gate_only_with_throttling_or_no_status() {
        for (body, closes) in [
            (r#"{"retryAfterMs":5}"#, true),
            (r#"{"status":429,"retryAfterMs":5}"#, true),
            (r#"{"status":503,"retryAfterMs":5}"#, true),
            (r#"{"status":200,"retryAfterMs":5}"#, false),
            (r#"{"status":200,"throttled":0,"retryAfterMs":5}"#, false),
            (r#"{"status":200,"throttled":2,"retryAfterMs":5}"#, true),
            (r#"{"status":429}"#, false),
            (r#"{"status":200,"throttled":2}"#, false),
        ] {
            assert_eq!(
                parse(body).unwrap().closes_gate_for().is_some(),
                closes,
                "{body}"
            );
        }
    }
}
