//! The words that names of rate headers are made of.
//!
//! Names differ in separators, case and order, but hardly in their words:
//! `X-Rate-Limit-Reset-Ms` and `x-ratelimit-resetms` are the same five. Nothing
//! here knows what a combination of words means.

use crate::outcome::durations::{DAY, MINUTE, SECOND, unit_ms};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Rate,
    Limit,
    /// `ratelimit`, `throttle`: what the name is about.
    Marker,
    Quota,
    /// Another word for the limit.
    Max,
    /// As `Max`, but in names of anything.
    Total,
    Remaining,
    Used,
    Current,
    Reset,
    /// As `Reset`, but in names of anything.
    Expires,
    Retry,
    /// Turns a moment into a span: `reset-after`.
    After,
    /// The length of a window stands in the value.
    Window,
    /// What a bucket gains in an interval.
    Refill,
    Policy,
    Request,
    Token,
    Concurrent,
    /// A part of the tokens.
    Part,
    /// Counts of something else: bytes, points, money.
    Other,
    /// Names with it give no count of the budget.
    Deny,
    Api,
    Per,
    Time,
    /// A window: `minute`, `5h`.
    Span(u64),
    /// The unit of a time in the value: `ms`, `seconds`.
    Unit(u64),
    /// `rpm`, `tpd`, `qps`: what is counted, in which window.
    Requests(u64),
    Tokens(u64),
    Number(u64),
    /// Says nothing.
    Filler,
    /// Whose budget, as far as it occurs glued to other words.
    Scope,
}

/// `None`: a word of a vendor.
pub fn word(text: &str) -> Option<Word> {
    Some(match text {
        "rate" => Word::Rate,
        "limit" | "limits" | "limiter" | "limiting" | "lim" => Word::Limit,
        "throttle" | "throttling" | "rl" => Word::Marker,
        "quota" | "quotas" => Word::Quota,
        "max" | "maximum" | "allowed" | "allotted" | "allowance" | "allocated" | "capacity"
        | "cap" | "ceiling" => Word::Max,
        "total" => Word::Total,
        "remaining" | "remain" | "remains" | "left" | "available" | "avail" | "rem" => {
            Word::Remaining
        }
        "used" | "usage" | "consumed" | "count" | "counter" | "observed" | "spent" | "level" => {
            Word::Used
        }
        "current" => Word::Current,
        "reset" | "resets" => Word::Reset,
        "expires" | "expire" | "expiry" | "expiration" | "renew" | "renews" | "renewal"
        | "until" | "next" | "replenishes" | "ttl" => Word::Expires,
        "retry" => Word::Retry,
        "after" | "in" | "delay" | "wait" => Word::After,
        "window" | "windows" | "interval" | "period" | "duration" | "timeframe" | "timespan"
        | "timewindow" | "range" | "granularity" | "cycle" => Word::Window,
        "fill" | "refill" | "replenish" | "drip" | "leak" | "restore" => Word::Refill,
        "policy" | "policies" => Word::Policy,
        "request" | "requests" | "req" | "reqs" | "call" | "calls" | "query" | "queries"
        | "hits" => Word::Request,
        "token" | "tokens" | "toks" => Word::Token,
        "concurrency" | "concurrent" | "parallel" | "simultaneous" | "inflight" | "flight"
        | "connection" | "connections" | "conn" => Word::Concurrent,
        "input" | "output" | "prompt" | "completion" | "generated" | "cached" | "cache" => {
            Word::Part
        }
        // `connrate`: of connections opened.
        "connrate" | "byte" | "bytes" | "bandwidth" | "complexity" | "point" | "points"
        | "cost" | "costs" | "weight" | "credit" | "credits" | "unit" | "units" | "image"
        | "images" | "audio" | "storage" | "upload" | "uploads" | "file" | "files" | "size"
        | "length" | "characters" | "money" | "usd" | "dollars" => Word::Other,
        "near" | "over" | "reason" | "note" | "status" | "percent" | "percentage"
        | "utilization" | "utilisation" | "ratio" | "problem" | "docs" | "documentation"
        | "url" | "link" | "type" | "warning" | "exceeded" | "limited" | "requested" | "should"
        | "page" | "offset" | "timeout" | "depth" | "attempt" | "attempts" | "retries"
        | "error" | "version" | "cursor" | "id" => Word::Deny,
        "api" => Word::Api,
        "per" => Word::Per,
        "time" => Word::Time,
        "x" | "at" | "timestamp" | "date" | "epoch" | "unix" | "utc" | "to" | "this" | "the"
        | "info" | "header" | "of" | "number" | "combined" => Word::Filler,
        "user" | "client" | "app" | "ip" | "key" | "account" | "method" | "org" | "burst"
        | "global" | "read" | "write" => Word::Scope,
        "rps" | "qps" => Word::Requests(SECOND),
        "rpm" | "qpm" => Word::Requests(MINUTE),
        "rph" => Word::Requests(60 * MINUTE),
        "rpd" | "qpd" => Word::Requests(DAY),
        "tps" => Word::Tokens(SECOND),
        "tpm" => Word::Tokens(MINUTE),
        "tph" => Word::Tokens(60 * MINUTE),
        "tpd" => Word::Tokens(DAY),
        "seconds" | "secs" | "minutes" | "mins" | "hours" | "hrs" | "days" | "ms" | "msec"
        | "msecs" | "millis" | "millisecond" | "milliseconds" => Word::Unit(unit_ms(text)?),
        _ => return timed(text),
    })
}

/// `minute`, `1m`, `24hr`, `10`.
fn timed(text: &str) -> Option<Word> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end)?;
    if digits.is_empty() {
        // A single letter can be anything.
        return (unit.len() > 1).then(|| unit_ms(unit).map(Word::Span))?;
    }
    let number: u64 = digits.parse().ok()?;
    if unit.is_empty() {
        return Some(Word::Number(number));
    }
    Some(Word::Span(number.saturating_mul(unit_ms(unit)?)))
}

/// The words of a name with what they mean, lower case. Glued ones are taken
/// apart where every piece is known.
pub fn words(name: &str) -> Vec<(Option<Word>, &str)> {
    let mut found = Vec::new();
    for text in name.split(|c: char| !c.is_ascii_alphanumeric()) {
        if !text.is_empty() {
            push(text, &mut found);
        }
    }
    found
}

fn push<'a>(text: &'a str, found: &mut Vec<(Option<Word>, &'a str)>) {
    let known = word(text);
    if known.is_some() {
        found.push((known, text));
        return;
    }
    let mut pieces = Vec::new();
    if take_apart(text, &mut pieces, MOST_PIECES) {
        found.extend(pieces.into_iter().map(|piece| (word(piece), piece)));
    } else if let Some((before, after)) = text.split_once("ratelimit") {
        // A vendor's word is glued to it.
        if !before.is_empty() {
            push(before, found);
        }
        found.push((Some(Word::Marker), "ratelimit"));
        if !after.is_empty() {
            push(after, found);
        }
    } else {
        found.push((None, text));
    }
}

const MOST_PIECES: usize = 5;
const LONGEST_WORD: usize = 13;

/// Whether all of `text` is known words, longest first.
fn take_apart<'a>(text: &'a str, pieces: &mut Vec<&'a str>, most: usize) -> bool {
    if text.is_empty() {
        return true;
    }
    if most == 0 {
        return false;
    }
    for end in (1..=text.len().min(LONGEST_WORD)).rev() {
        let Some((first, rest)) = text.split_at_checked(end) else {
            continue;
        };
        // Two letters end a word at most (`resetat`, `resetms`).
        let is_word = first.len() > 2 || matches!(first, "x" | "in") || rest.is_empty();
        let is_plain = first.bytes().all(|byte| byte.is_ascii_alphabetic());
        if is_word && is_plain && word(first).is_some() {
            pieces.push(first);
            if take_apart(rest, pieces, most.saturating_sub(1)) {
                return true;
            }
            pieces.pop();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glued_words_come_apart() {
        for (name, expected) in [
            ("x-ratelimit-resettime", "x rate limit reset time"),
            ("x-rate-limit-reset-ms", "x rate limit reset ms"),
            ("x-appminlimit-remaining", "x app min limit remaining"),
            ("x-requestsavailable", "x requests available"),
            ("ratelimit-dailylimit", "rate limit daily limit"),
            ("x-tokenlimit-limit", "x token limit limit"),
            ("x-acmeratelimit-left", "x acme ratelimit left"),
            ("x-limit-perminute", "x limit per minute"),
            (
                "x-ratelimit-windowsizeinseconds",
                "x rate limit window size in seconds",
            ),
            ("x_rate_limit_5h", "x rate limit 5h"),
            ("ratelimit\u{2013}limit", "rate limit limit"),
            ("hubspot", "hubspot"),
        ] {
            let read: Vec<&str> = words(name).into_iter().map(|(_, text)| text).collect();
            assert_eq!(read.join(" "), expected);
        }
    }

    #[test]
    fn windows_are_told_from_units() {
        assert_eq!(word("minute"), Some(Word::Span(60_000)));
        assert_eq!(word("10s"), Some(Word::Span(10_000)));
        assert_eq!(word("7d"), Some(Word::Span(7 * DAY)));
        assert_eq!(word("seconds"), Some(Word::Unit(1000)));
        assert_eq!(word("s"), None);
        assert_eq!(word("15"), Some(Word::Number(15)));
    }
}
