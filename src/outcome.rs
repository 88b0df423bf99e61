//! What a release reports of the upstream call, validated.
//!
//! A malformed report is refused with the field's name; a header value that
//! can't be read is ignored. What the upstream said of its limits becomes nine
//! numbers here, at the edge; what they change is not decided here.

pub mod dialects;
mod durations;
mod moments;
pub mod rate;
pub mod signal;
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
        let mut given = rate(&fields)?;
        let headers = headers(&fields)?;
        let status = status.and_then(|status| u16::try_from(status).ok());
        let is_refused = is_refused(status, throttled);
        if let Some(given) = &mut given
            && is_refused == Some(false)
        {
            forget_void(given, &fields)?;
        }
        let mut rate = match given {
            Some(given) => given,
            None => Rate::of_answer(&headers, now, is_refused),
        };
        rate.retry_after = hint.or(rate.retry_after);
        Ok(Self {
            status,
            throttled,
            rate,
        })
    }

    /// For how long the report closes the gate, the longer of the two: by a hint
    /// of a call that was throttled, and by an exhausted window until it begins
    /// anew, whatever the status.
    pub fn closes_gate_for(&self) -> Option<Span> {
        let hint = self.rate.retry_after.filter(|_| self.is_throttled());
        hint.max(self.rate.exhausted_for())
    }
}

/// Whether the upstream may have refused the call for its limits; `None`: nobody
/// says.
fn is_refused(status: Option<u16>, throttled: Option<u64>) -> Option<bool> {
    match (status, throttled) {
        (Some(403 | 429 | 503 | 529), _) | (_, Some(1..)) => Some(true),
        (Some(_), _) => Some(false),
        _ => None,
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

/// Nothing left of a limit of nothing, though the call was taken: nothing is
/// said, as with headers.
fn forget_void(rate: &mut Rate, fields: &Fields) -> Result<(), FieldError> {
    let part = fields.part("rate")?;
    let is_nothing = |name| Ok(part.amount(name)?.is_some_and(|count| count <= 0.0));
    if is_nothing("limit")? && is_nothing("remaining")? {
        (rate.remaining, rate.reset) = (None, None);
    }
    if is_nothing("tokenLimit")? && is_nothing("tokenRemaining")? {
        (rate.token_remaining, rate.token_reset) = (None, None);
    }
    Ok(())
}

/// `headers`: an object of string → string, number, or array of those; null is
/// as absent.
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
    if value.get() == "null" {
        return Some(Vec::new());
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
            (r#"{"status":529,"headers":{"retry-after":"30"}}"#, true),
            (r#"{"status":403,"headers":{"retry-after":"60"}}"#, true),
            (r#"{"status":403}"#, false),
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

    #[test]
    fn an_exhausted_window_closes_the_gate_whatever_the_status_and_the_longer_wins() {
        for (rate, closes) in [
            (r#""remaining":0,"resetMs":500"#, Some(500)),
            (r#""tokenRemaining":0,"tokenResetMs":700"#, Some(700)),
            (
                r#""remaining":0,"resetMs":500,"tokenRemaining":0,"tokenResetMs":70"#,
                Some(500),
            ),
            (r#""remaining":1,"resetMs":500"#, None),
            (r#""remaining":0"#, None),
            (r#""remaining":0,"resetMs":0"#, None),
            (r#""resetMs":500"#, None),
            (r#""retryAfterMs":900"#, None),
        ] {
            let body = format!(r#"{{"status":200,"rate":{{{rate}}}}}"#);
            let gate = parse(&body).unwrap().closes_gate_for();
            assert_eq!(gate.map(Span::ms), closes, "{rate}");
        }
        let both = r#"{"status":429,"retryAfterMs":5,"rate":{"remaining":0,"resetMs":9}}"#;
        assert_eq!(
            parse(both).unwrap().closes_gate_for(),
            Some(Span::from_ms(9))
        );
    }

    #[test]
    fn nothing_left_of_a_limit_of_nothing_closes_no_gate_unless_the_call_was_refused() {
        let headers = r#""headers":{"x-ratelimit-limit":"0","x-ratelimit-remaining":"0","x-ratelimit-reset":"60"}"#;
        let tokens = r#""headers":{"x-ratelimit-limit-tokens":"0","x-ratelimit-remaining-tokens":"0","x-ratelimit-reset-tokens":"60"}"#;
        let given = r#""rate":{"limit":0,"remaining":0,"resetMs":60000}"#;
        let given_tokens = r#""rate":{"tokenLimit":0,"tokenRemaining":0,"tokenResetMs":60000}"#;
        let structured = r#""headers":{"RateLimit":"limit=0, remaining=0, reset=60"}"#;
        for said in [headers, tokens, given, given_tokens, structured] {
            for (status, closes) in [(200, false), (404, false), (500, false), (429, true)] {
                let body = format!(r#"{{"status":{status},{said}}}"#);
                let gate = parse(&body).unwrap().closes_gate_for();
                assert_eq!(gate.is_some(), closes, "{body}");
            }
        }
        let beside = r#"{"status":200,"headers":{"x-ratelimit-limit":"0","x-ratelimit-remaining":"0","x-ratelimit-reset":"60",
            "x-ratelimit-limit-day":"100","x-ratelimit-remaining-day":"9"}}"#;
        assert_eq!(parse(beside).unwrap().rate.remaining, Some(9));
    }

    #[test]
    fn a_part_of_a_millisecond_of_waiting_is_a_whole_one() {
        let rate = parse(r#"{"rate":{"retryAfterMs":1.5,"tokenResetMs":0.1,"resetMs":7.0}}"#);
        let rate = rate.unwrap().rate;
        let spans = [rate.retry_after, rate.token_reset, rate.reset];
        assert_eq!(spans, [2, 1, 7].map(|ms| Some(Span::from_ms(ms))));
        let headers = r#"{"headers":{"retry-after":1.0001,"x-ratelimit-reset":"0.00001"}}"#;
        let rate = parse(headers).unwrap().rate;
        assert_eq!(rate.retry_after, Some(Span::from_ms(1001)));
        assert_eq!(rate.reset, Some(Span::from_ms(1)));
    }

    #[test]
    fn what_is_only_announced_is_a_hint_for_whom_it_refused() {
        for (status, hint) in [(Some(200), false), (None, false), (Some(429), true)] {
            let status = status.map_or("null".to_owned(), |status| status.to_string());
            let body = format!(r#"{{"status":{status},"headers":{{"beta-retry-after":"30"}}}}"#);
            let read = parse(&body).unwrap().rate.retry_after;
            assert_eq!(read.is_some(), hint, "{body}");
        }
    }

    #[test]
    fn rate_wins_over_headers_and_the_top_level_hint_over_both() {
        let headers = r#""headers":{"Retry-After":"7","RateLimit-Limit":["5"]}"#;
        let rate = |body: String| parse(&body).unwrap().rate;
        let read = rate(format!("{{{headers}}}"));
        assert_eq!(
            (read.limit, read.retry_after),
            (Some(5), Some(Span::from_seconds(7)))
        );
        assert_eq!(
            rate(format!(r#"{{{headers},"rate":{{}}}}"#)),
            Rate::default()
        );
        assert_eq!(rate(format!(r#"{{{headers},"rate":null}}"#)), read);
        let hint = rate(format!(r#"{{{headers},"retryAfterMs":3}}"#)).retry_after;
        assert_eq!(hint, Some(Span::from_ms(3)));
    }

    #[test]
    fn numbers_of_rate_are_as_sane_as_those_of_headers() {
        let body = r#"{"rate":{"limit":0,"remaining":2.9,"resetMs":1.2,"tokenLimit":1e300,
            "windowMs":0,"concurrencyLimit":0.5}}"#;
        let rate = parse(body).unwrap().rate;
        let expected = Rate {
            remaining: Some(2),
            reset: Some(Span::from_ms(2)),
            token_limit: Some(crate::governor::time::MAX_SAFE),
            ..Rate::default()
        };
        assert_eq!(rate, expected);
    }
}
