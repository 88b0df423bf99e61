//! Upstream rate headers of any dialect, normalised to the nine fields of
//! [`Rate`].
//!
//! General rules before vendors: a name is read by its words, a value by its
//! form. What can't be read is unknown; it never stops traffic, is never an
//! error, and costs no more than a few kilobytes' reading. There is no clock
//! here: absolute moments are measured from the response's own `Date` where it
//! has one, else from the `now` that the caller passes.

mod budgets;
mod grouping;
mod groups;
mod hints;
pub mod names;
mod pairs;
mod sentences;
mod sums;
pub mod values;
mod vendors;
pub mod vocabulary;

use self::budgets::Budgets;
use self::hints::Hint;
use self::names::{Role, Unit};
use super::rate::Rate;
use super::windows::{self, Standing, Window};
use super::{durations, moments};
use crate::governor::time::{Millis, Span};

/// So much is read of one value.
const LONGEST_VALUE: usize = 4096;

/// The headers of a response by their names in lower case, sorted, so that the
/// order in which they came never matters.
#[derive(Debug, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Adds a value; one that comes again is joined as HTTP does.
    pub fn add(&mut self, name: &str, value: &str) {
        let name = name.trim().to_ascii_lowercase();
        let place = match self.place(&name) {
            Ok(place) => place,
            Err(place) => {
                self.0.insert(place, (name, String::new()));
                place
            }
        };
        let Some((_, known)) = self.0.get_mut(place) else {
            return;
        };
        if known.len() >= LONGEST_VALUE {
            return;
        }
        if !known.is_empty() {
            known.push_str(", ");
        }
        let value = value.trim();
        let room = LONGEST_VALUE.saturating_sub(known.len());
        known.push_str(
            value
                .get(..value.floor_char_boundary(room))
                .unwrap_or_default(),
        );
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0
            .binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    fn value(&self, name: &str) -> Option<&str> {
        let place = self.place(name).ok()?;
        self.0.get(place).map(|(_, value)| value.as_str())
    }

    /// What time it is for the server that answered. A copy from a cache carries
    /// the `Date` of the original, and its `Age`.
    fn server_time(&self, now: Millis) -> Millis {
        let Some(date) = self.value("date").and_then(moments::parse) else {
            return now;
        };
        let age = self.value("age").and_then(|age| age.parse().ok());
        let server = date.plus(Span::from_seconds(age.unwrap_or(0)));
        // A `Date` has no fraction of a second: within one, ours is finer.
        if now.since(server) < Span::from_seconds(1) && server <= now {
            return now;
        }
        server
    }
}

impl Rate {
    /// Reads the headers of a response that came at `now`, as far as they mean
    /// the same whatever its status.
    pub fn of_headers(headers: &Headers, now: Millis) -> Self {
        Self::of_answer(headers, now, None)
    }

    /// Reads the headers of a response that came at `now`. `is_refused`: its
    /// status says that the upstream took the call or did not; `None`: there is no
    /// status.
    pub fn of_answer(headers: &Headers, now: Millis, is_refused: Option<bool>) -> Self {
        let now = headers.server_time(now);
        let has_lists = headers.0.iter().any(|(_, value)| grouping::is_list(value));
        let mut budgets = Budgets::new(now);
        let mut hint: Option<Hint> = None;
        for (raw, value) in &headers.0 {
            let raw = vendors::beside(raw, |other| headers.value(other).is_some());
            let value = grouping::ungrouped(value.trim(), has_lists);
            let Some(name) = names::read(raw) else {
                if names::may_tell_in_words(raw) {
                    budgets.read_message(raw, &value);
                }
                continue;
            };
            if value.is_empty() {
                continue;
            }
            // What is only announced is a hint for whom it refused already.
            let is_notice = names::is_notice(&name.scope) && is_refused != Some(true);
            if let Some(told) = Hint::read(raw, &name, &value, now) {
                if !is_notice {
                    hint = Some(hint.map_or(told, |known| known.or_better(told)));
                }
            } else if name.role != Role::RetryAfter {
                budgets.read(raw, &name, &value);
            }
        }
        let penalty = budgets.penalty.map(Hint::of_vendor);
        let mut windows = budgets.into_windows();
        // Nothing left of a limit of nothing, yet the call was taken: nothing is said.
        windows.retain(|window| !(window.standing == Standing::Void && is_refused == Some(false)));
        let windows = windows::merge(windows);
        let mut rate = of_windows(&windows);
        rate.retry_after = hint.or(penalty).map(|hint| hint.sane(&rate));
        rate
    }
}

fn of_windows(windows: &[Window]) -> Rate {
    let requests = windows::governing(windows, Unit::Requests);
    let tokens = windows::governing(windows, Unit::Tokens)
        .filter(|window| window.limit.is_some() || window.remaining.is_some())
        .or_else(|| windows::governing(windows, Unit::TokenPart))
        .or_else(|| windows::governing(windows, Unit::Tokens));
    let concurrency = windows
        .iter()
        .filter(|window| window.unit == Unit::Concurrency)
        .filter_map(|window| window.limit);
    // Without any count the name of a window says nothing of a limit.
    let stated = requests.or(tokens).filter(|window| {
        window.limit.is_some() || window.remaining.is_some() || window.is_length_stated
    });
    Rate {
        limit: requests.and_then(|window| window.limit),
        remaining: requests.and_then(|window| window.remaining),
        reset: requests
            .and_then(|window| window.reset)
            .map(|reset| reset.span),
        token_limit: tokens.and_then(|window| window.limit),
        token_remaining: tokens.and_then(|window| window.remaining),
        token_reset: tokens
            .and_then(|window| window.reset)
            .map(|reset| reset.span),
        retry_after: None,
        window: stated
            .and_then(|window| window.length)
            .filter(|length| !durations::is_calendar(*length)),
        concurrency_limit: concurrency.min(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis::from_epoch(1_791_201_600_000);

    fn read(headers: &[(&str, &str)]) -> Rate {
        let mut all = Headers::default();
        for (name, value) in headers {
            all.add(name, value);
        }
        Rate::of_headers(&all, NOW)
    }

    #[test]
    fn a_hint_in_milliseconds_comes_first_then_the_standard_one() {
        let hint = |headers: &[(&str, &str)]| read(headers).retry_after.map(Span::ms);
        let vendor = ("x-ratelimit-retry-after", "9");
        assert_eq!(hint(&[vendor]), Some(9000));
        assert_eq!(hint(&[vendor, ("retry-after", "7")]), Some(7000));
        assert_eq!(
            hint(&[("retry-after", "7"), ("retry-after-ms", "6413")]),
            Some(6413)
        );
        assert_eq!(hint(&[vendor, ("retry-after", "soon")]), Some(9000));
        assert_eq!(
            hint(&[("Retry-After", "5"), ("retry-after", "10")]),
            Some(10_000)
        );
    }

    #[test]
    fn moments_are_measured_by_the_servers_own_clock() {
        let reset = |date: &str, age: &str| {
            let headers = [
                ("x-ratelimit-reset", "1791201660"),
                ("date", date),
                ("age", age),
            ];
            read(&headers).reset.map(Span::ms)
        };
        assert_eq!(reset("Mon, 05 Oct 2026 12:00:00 GMT", ""), Some(60_000));
        assert_eq!(reset("Mon, 05 Oct 2026 12:00:30 GMT", ""), Some(30_000));
        assert_eq!(reset("Mon, 05 Oct 2026 11:59:00 GMT", ""), Some(120_000));
        assert_eq!(reset("Mon, 05 Oct 2026 11:59:00 GMT", "60"), Some(60_000));
        assert_eq!(reset("yesterday", "x"), Some(60_000));
    }

    #[test]
    fn what_can_not_be_read_is_unknown() {
        for (name, value) in [
            ("x-ratelimit-limit", "0"),
            ("x-ratelimit-limit", "-1"),
            ("x-ratelimit-limit", "unlimited"),
            ("x-ratelimit-limit", "9007199254740993"),
            ("x-ratelimit-remaining", "-1"),
            ("x-ratelimit-remaining", "NaN"),
            ("x-ratelimit-reset", "5k"),
            ("x-ratelimit-used", "5"),
            ("retry-after", ""),
            ("retry-after", "-3"),
        ] {
            assert_eq!(read(&[(name, value)]), Rate::default(), "{name}: {value}");
        }
    }

    #[test]
    fn of_a_long_value_only_the_beginning_is_read() {
        let mut long = Headers::default();
        for _ in 0..100 {
            long.add("x-a", &"é".repeat(1000));
        }
        assert!(long.value("x-a").unwrap().len() <= LONGEST_VALUE + 2);
    }

    #[test]
    fn a_response_full_of_limits_is_soon_read() {
        let mut all = Headers::default();
        let list = "5,".repeat(2000);
        let policies = "\"a\";q=5;w=9,".repeat(300);
        for number in 0..64 {
            for role in ["limit", "remaining", "policy", "reset"] {
                let value = if role == "policy" { &policies } else { &list };
                all.add(&format!("a{number}q-ratelimit-{role}"), value);
            }
        }
        assert_eq!(Rate::of_headers(&all, NOW).limit, Some(5));
    }
}
