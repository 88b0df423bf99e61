//! What a release reports of the upstream call, validated.
//!
//! A malformed report is refused with the field's name; a header value that
//! can't be read is ignored. What the upstream said of its limits becomes nine
//! numbers here, at the edge; what they change is not decided here.

pub mod dialects;
mod durations;
mod moments;
pub mod rate;
mod structured;
mod windows;

use serde_json::value::RawValue;

use crate::fields::{FieldError, Fields, whole};
use crate::governor::time::{Millis, Span};
use dialects::Headers;
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

impl Report {
    /// Reads a report that came at `now`: what is absolute in `headers` is
    /// measured from there.
    ///
    /// # Errors
    /// Names the field that has the wrong type or range.
    pub fn parse(body: &[u8], now: Millis) -> Result<Self, FieldError> {
        let fields = Fields::of_body(body)?;
        let status = fields.within("status", 100, 599)?;
        let throttled = fields.natural("throttled")?;
        let hint = fields.natural("retryAfterMs")?.map(Span::from_ms);
        let given = rate(&fields)?;
        let headers = headers(&fields)?;
        let mut rate = given.unwrap_or_else(|| Rate::of_headers(&headers, now));
        rate.retry_after = hint.or(rate.retry_after);
        Ok(Self {
            status: status.and_then(|status| u16::try_from(status).ok()),
            throttled,
            rate,
        })
    }

    /// For how long the report closes the gate, the longer of the two: by a hint
    /// where the upstream throttled or nothing says that it didn't, and by an
    /// exhausted window until it begins anew, whatever the status.
    pub fn closes_gate_for(&self) -> Option<Span> {
        let throttled = match (self.status, self.throttled) {
            (Some(429 | 503) | None, _) => true,
            (Some(_), throttled) => throttled.is_some_and(|count| count > 0),
        };
        let hint = self.rate.retry_after.filter(|_| throttled);
        hint.max(self.rate.exhausted_for())
    }
}

/// `rate`, where it is there: numbers of 0 or more, read like those of headers.
fn rate(fields: &Fields) -> Result<Option<Rate>, FieldError> {
    let is_given = fields.raw("rate").is_some();
    let part = fields.part("rate")?;
    let count = |name| Ok(part.amount(name)?.map(whole));
    let at_least_one = |name| Ok(count(name)?.filter(|count| *count > 0));
    // Up to the next millisecond: to wake early is to be refused again.
    let span = |name| Ok(part.amount(name)?.map(|ms| Span::from_ms(whole(ms.ceil()))));
    let rate = Rate {
        limit: at_least_one("limit")?,
        remaining: count("remaining")?,
        reset: span("resetMs")?,
        token_limit: at_least_one("tokenLimit")?,
        token_remaining: count("tokenRemaining")?,
        token_reset: span("tokenResetMs")?,
        retry_after: span("retryAfterMs")?,
        window: span("windowMs")?.filter(|window| !window.is_zero()),
        concurrency_limit: at_least_one("concurrencyLimit")?,
    };
    Ok(is_given.then_some(rate))
}

/// `headers`: an object of string → string, number, or array of those.
fn headers(fields: &Fields) -> Result<Headers, FieldError> {
    let part = fields.part("headers")?;
    if part.names().count() > MOST_HEADERS {
        let message =
            format!("headers has more than {MOST_HEADERS} names; send those about rates.");
        return Err(FieldError::new("headers", message));
    }
    let mut headers = Headers::default();
    for (name, value) in part.entries() {
        let Some(texts) = texts(value) else {
            let path = part.path_of(&name.chars().take(64).collect::<String>());
            let message = format!("{path} must be a text, a number, or a list of those.");
            return Err(FieldError::new(path, message));
        };
        for text in texts {
            headers.add(name, &text);
        }
    }
    Ok(headers)
}

/// The values of a header; `None`: not of a form that is allowed.
fn texts(value: &RawValue) -> Option<Vec<String>> {
    if value.get().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
        return items.into_iter().map(text).collect();
    }
    Some(vec![text(value)?])
}

fn text(value: &RawValue) -> Option<String> {
    match value.get().bytes().next()? {
        // Read, since a raw value may hold an escape that is no text.
        b'"' => serde_json::from_str(value.get()).ok(),
        first if first == b'-' || first.is_ascii_digit() => Some(value.get().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis::from_epoch(1_791_201_600_000);

    fn parse(body: &str) -> Result<Report, String> {
        Report::parse(body.as_bytes(), NOW).map_err(|error| error.field)
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
            (r#"{"headers":{"a":true}}"#, "headers.a"),
        ] {
            assert_eq!(parse(body), Err(field.to_owned()), "{body}");
        }
    }

    #[test]
    fn header_values_are_texts_numbers_or_lists_of_them() {
        let body = r#"{"headers":{"a":"b","c":1,"d":["e",-2.5],"f":[]}}"#;
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
