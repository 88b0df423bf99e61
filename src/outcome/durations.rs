//! Spans and bare numbers as headers write them: `30`, `1.5`, `1h2m3.5s`,
//! `172.799999ms`, `15 minutes`, `PT30S`, an epoch in s, ms or µs.
//!
//! Arithmetic is decimal and rounds up to whole milliseconds: to wake early is
//! to be refused again. There is no clock here.

use super::moments;
use crate::governor::time::{MAX_SAFE, Millis, Span};

pub const SECOND: u64 = 1000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;
pub const DAY: u64 = 24 * HOUR;
/// Of the calendar's, on average: for comparing only, since none is so long.
const MONTH: u64 = 365 * DAY / 12;
const YEAR: u64 = 365 * DAY;

/// Quotas are counted in years at most: a longer span was misread.
const LONGEST: Span = Span::from_ms(400 * DAY);

const NANOS: u64 = 1_000_000_000;
/// From here on a bare number of seconds is a moment.
const EPOCH_SECONDS: u64 = 1_000_000_000;
const EPOCH_MILLIS: u64 = 100_000_000_000;
const EPOCH_MICROS: u64 = 100_000_000_000_000;

/// A number without a sign, as written: `57`, `57.0`, `.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// At most 2^53 − 1.
    pub whole: u64,
    /// Of one; what was written past nine digits is rounded up.
    pub nanos: u64,
    pub has_point: bool,
}

impl Decimal {
    /// `None`: no plain decimal, or past 2^53.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
            return None;
        }
        let value = if whole.is_empty() {
            0
        } else {
            whole.parse().ok().filter(|value| *value <= MAX_SAFE)?
        };
        let (read, rest) = fraction.split_at(fraction.len().min(9));
        let mut nanos = 0_u64;
        for place in 0..9 {
            let digit = read.as_bytes().get(place).map_or(0, |byte| byte & 0x0f);
            nanos = nanos.saturating_mul(10).saturating_add(digit.into());
        }
        let is_cut = rest.bytes().any(|byte| byte != b'0');
        Some(Self {
            whole: value,
            nanos: nanos.saturating_add(is_cut.into()).min(NANOS),
            has_point: text.contains('.'),
        })
    }

    pub fn is_zero(self) -> bool {
        self.whole == 0 && self.nanos == 0
    }

    /// So many times a length of `unit_ms`, rounded up.
    pub fn times(self, unit_ms: u64) -> Span {
        let part = self.nanos.saturating_mul(unit_ms).div_ceil(NANOS);
        Span::from_ms(self.whole.saturating_mul(unit_ms).saturating_add(part))
    }

    /// As a number of `per_ms` for each millisecond, rounded up.
    fn divided(self, per_ms: u64) -> Span {
        let whole = self.whole.saturating_add((self.nanos > 0).into());
        Span::from_ms(whole.div_ceil(per_ms.max(1)))
    }
}

/// A moment or a span, as a header gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    In(Span),
    At(Millis),
}

impl When {
    /// Reads a value of a header that says when. `unit_ms`: the unit that the
    /// header's name states for bare numbers, else seconds; `is_span`: the name
    /// says that it is never a moment.
    pub fn parse(text: &str, unit_ms: Option<u64>, is_span: bool) -> Option<Self> {
        if let Some(number) = Decimal::parse(text) {
            return Some(Self::of_number(number, unit_ms, is_span));
        }
        span(text)
            .map(Self::In)
            .or_else(|| moments::parse(text).map(Self::At))
    }

    fn of_number(number: Decimal, unit_ms: Option<u64>, is_span: bool) -> Self {
        let epoch = |span: Span| Self::At(Millis::from_epoch(span.ms()));
        match number.whole {
            _ if is_span => Self::In(number.times(unit_ms.unwrap_or(SECOND))),
            EPOCH_MICROS.. => epoch(number.divided(1000)),
            EPOCH_MILLIS.. => epoch(number.times(1)),
            EPOCH_SECONDS.. => epoch(number.times(SECOND)),
            _ => Self::In(number.times(unit_ms.unwrap_or(SECOND))),
        }
    }

    /// From the server's `now`. A moment in the past is zero; `None`: too far
    /// off to be meant.
    pub fn from(self, now: Millis) -> Option<Span> {
        let span = match self {
            Self::In(span) => span,
            Self::At(moment) => moment.since(now),
        };
        (span <= LONGEST).then_some(span)
    }
}

/// A span with its units: `6m0s`, `1h2m3.5s`, `30 seconds`, `PT1M30S`.
pub fn span(text: &str) -> Option<Span> {
    let lower = text.trim().to_ascii_lowercase();
    let mut sum = Span::ZERO;
    let mut rest = lower.as_str();
    if let Some(iso) = lower.strip_prefix('p') {
        // Before the `T` an `m` is a month, and behind it a minute.
        let (date, time) = iso.split_once('t').unwrap_or((iso, ""));
        sum = days(date)?;
        if time.is_empty() && !date.is_empty() && !iso.ends_with('t') {
            return Some(sum);
        }
        rest = time;
    }
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = run(rest, |c| c.is_ascii_digit() || c == '.');
        let (number, after) = rest.split_at_checked(digits)?;
        let after = after.trim_start();
        let (unit, after) = after.split_at_checked(run(after, is_letter))?;
        sum = sum.plus(in_unit(Decimal::parse(number)?, unit)?);
        rest = after.trim_start();
    }
    Some(sum)
}

/// The part of an ISO 8601 duration before the `T`: `1d`, `1y6m`, or nothing.
fn days(text: &str) -> Option<Span> {
    let (mut sum, mut rest) = (Span::ZERO, text);
    while !rest.is_empty() {
        let digits = run(rest, |c| c.is_ascii_digit() || c == '.');
        let (number, after) = rest.split_at_checked(digits)?;
        let unit = match after.bytes().next()? {
            b'd' => DAY,
            b'w' => 7 * DAY,
            b'm' => MONTH,
            b'y' => YEAR,
            _ => return None,
        };
        sum = sum.plus(Decimal::parse(number)?.times(unit));
        rest = after.get(1..)?;
    }
    Some(sum)
}

/// A span as a clock shows it: `05:30`, `00:00:05`, `1.02:03:04.5`, `1 day,
/// 2:03:04`.
pub fn clock(text: &str) -> Option<Span> {
    let lower = text.trim().to_ascii_lowercase();
    let (days, time) = match lower.split_once("day") {
        Some((days, time)) => (days, time.trim_start_matches(['s', ',', ' '])),
        None => match lower.split_once(['.', ' ']) {
            Some((days, time)) if time.contains(':') && !days.contains(':') => (days, time),
            _ => ("0", lower.as_str()),
        },
    };
    let mut parts = time.rsplit(':');
    let mut sum = Decimal::parse(parts.next()?)?.times(SECOND);
    let mut is_clock = sum < Span::from_ms(MINUTE);
    for (unit, most) in [(MINUTE, 59), (HOUR, u64::MAX)] {
        let Some(part) = parts.next() else {
            // Seconds alone are no clock.
            is_clock &= unit == HOUR;
            break;
        };
        let number = Decimal::parse(part).filter(|number| !number.has_point)?;
        is_clock &= number.whole <= most;
        sum = sum.plus(number.times(unit));
    }
    is_clock &= parts.next().is_none();
    let days = Decimal::parse(days.trim()).filter(|number| !number.has_point)?;
    is_clock.then(|| sum.plus(days.times(DAY)))
}

/// Also the micro sign, in both of its spellings.
fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c == 'µ' || c == 'μ'
}

/// How many bytes the characters at the start that are `wanted` take.
fn run(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    text.find(|c| !wanted(c)).unwrap_or(text.len())
}

fn in_unit(number: Decimal, unit: &str) -> Option<Span> {
    Some(match unit {
        "us" | "µs" | "μs" | "microseconds" => number.divided(1000),
        "ns" | "nanoseconds" => number.divided(1_000_000),
        _ => number.times(unit_ms(unit)?),
    })
}

/// The length of a unit by its name, in milliseconds.
pub fn unit_ms(unit: &str) -> Option<u64> {
    Some(match unit {
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => 1,
        "s" | "sec" | "secs" | "second" | "seconds" | "secondly" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" | "minutely" => MINUTE,
        "h" | "hr" | "hrs" | "hour" | "hours" | "hourly" => HOUR,
        "d" | "day" | "days" | "daily" | "today" => DAY,
        "w" | "week" | "weeks" | "weekly" => 7 * DAY,
        "mo" | "month" | "months" | "monthly" => MONTH,
        "year" | "yearly" => YEAR,
        _ => return None,
    })
}

/// The length of a window: `60` (seconds, unless the name says otherwise),
/// `1s`, `15 minutes`, `minute`, `per hour`, `per-minute`, `PT1H`, `00:01:00`.
pub fn window(text: &str, unit: Option<u64>) -> Option<Span> {
    let lower = text.trim().to_ascii_lowercase().replace(['_', '-'], " ");
    let mut bare = lower.as_str();
    for before in ["1/", "/", "per", "every", "each", "an ", "a ", "one "] {
        bare = bare.strip_prefix(before).unwrap_or(bare).trim();
    }
    let length = match Decimal::parse(bare) {
        Some(number) => match unit {
            Some(unit) => number.times(unit),
            None if is_of_millis(number) => number.times(1),
            None => number.times(SECOND),
        },
        None => span(bare)
            .or_else(|| unit_ms(bare).map(Span::from_ms))
            .or_else(|| clock(bare))?,
    };
    (!length.is_zero() && length <= LONGEST).then_some(length)
}

/// Whether a window without a unit can't be meant in seconds: `60000` would be no
/// whole hours, `900000` no whole days, `86400000` years.
fn is_of_millis(number: Decimal) -> bool {
    let is_round = |unit: u64| number.nanos == 0 && number.whole.is_multiple_of(unit);
    let is_plausible = match number.whole {
        ..=86_400 => is_round(3600),
        86_401..=2_678_400 => is_round(86_400),
        _ => false,
    };
    number.whole >= 10_000 && is_round(1000) && !is_plausible
}

/// Whether a span is one that can be meant.
pub fn is_plausible(span: Span) -> bool {
    span <= LONGEST
}

/// Whether a length is one that the calendar varies.
pub fn is_calendar(length: Span) -> bool {
    length.ms() == MONTH || length.ms() == YEAR
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> Option<u64> {
        span(text).map(Span::ms)
    }

    #[test]
    fn spans_carry_their_units() {
        for (text, expected) in [
            ("12ms", 12),
            ("6m0s", 360_000),
            ("1h2m3.5s", 3_723_500),
            ("2m59.56s", 179_560),
            ("172.799999ms", 173),
            ("1h", 3_600_000),
            ("565.087221ms", 566),
            ("250us", 1),
            ("999ns", 1),
            ("30 seconds", 30_000),
            ("1 minute 30 seconds", 90_000),
            ("1D2H", 93_600_000),
            ("PT1M30S", 90_000),
            (".5s", 500),
        ] {
            assert_eq!(ms(text), Some(expected), "{text}");
        }
        for (text, expected) in [
            ("P1D", DAY),
            ("P1DT2H", 26 * HOUR),
            ("PT0.5S", 500),
            ("P2W", 14 * DAY),
            ("P1M", MONTH),
        ] {
            assert_eq!(ms(text), Some(expected), "{text}");
        }
        for bad in [
            "p", "p1", "p1h", "p1dt", "pt5", "p1d2h", "", "5", "5k", "m", "-1s", "1s-", "1..5s",
            "s1", "pt", "1e3s",
        ] {
            assert_eq!(ms(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_clock_shows_a_span() {
        for (text, expected) in [
            ("00:00:05", Some(5000)),
            ("05:30", Some(330_000)),
            ("0:00:01.0001", Some(1001)),
            ("30:00:00", Some(30 * HOUR)),
            ("1.02:03:04", Some(DAY + 2 * HOUR + 3 * MINUTE + 4000)),
            ("1 day, 2:03:04", Some(DAY + 2 * HOUR + 3 * MINUTE + 4000)),
            ("2 days, 0:00:01", Some(2 * DAY + 1000)),
            ("5", None),
            ("5.5", None),
            ("00:00:60", None),
            ("00:60:00", None),
            ("1:00:00:00", None),
            ("12:00:00 GMT", None),
            ("-1:00", None),
            (":", None),
            ("day", None),
            ("1 day", None),
        ] {
            assert_eq!(clock(text).map(Span::ms), expected, "{text}");
        }
    }

    #[test]
    fn decimals_round_up_and_never_by_a_float() {
        for (text, expected) in [
            ("64.57", 64_570),
            ("16.1", 16_100),
            ("0.0001", 1),
            ("1.0000000000", 1000),
            ("1.00000000001", 1001),
            ("2.", 2000),
        ] {
            let number = Decimal::parse(text).unwrap();
            assert_eq!(number.times(SECOND).ms(), expected, "{text}");
        }
        for bad in [
            "",
            ".",
            "-1",
            "+1",
            "1e2",
            "0x64",
            "1_0",
            "9007199254740993",
        ] {
            assert_eq!(Decimal::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_bare_number_is_told_by_its_size() {
        let now = Millis::from_epoch(1_791_201_600_000);
        for (text, unit, is_span, expected) in [
            ("7", None, false, Some(7000)),
            ("7", Some(1), false, Some(7)),
            ("1791201607", None, false, Some(7000)),
            ("1791201607", Some(1), false, Some(7000)),
            ("1791201607.5", None, false, Some(7500)),
            ("1791201607000", None, false, Some(7000)),
            ("1791201607000000", None, false, Some(7000)),
            ("1791201000", None, false, Some(0)),
            ("1791201607", None, true, None),
            ("2592000", None, false, Some(2_592_000_000)),
            ("999999999", None, false, None),
            ("4102444800", None, false, None),
            ("99999999999999999999", None, false, None),
        ] {
            let read = When::parse(text, unit, is_span).and_then(|when| when.from(now));
            assert_eq!(read.map(Span::ms), expected, "{text}");
        }
    }

    #[test]
    fn windows_are_numbers_spans_or_words() {
        for (text, unit, expected) in [
            ("60", None, Some(60_000)),
            ("10000", Some(1), Some(10_000)),
            ("1s", None, Some(1000)),
            ("MINUTE", None, Some(60_000)),
            ("per hour", None, Some(3_600_000)),
            ("per-minute", None, Some(60_000)),
            ("perMinute", None, Some(60_000)),
            ("1 minute", None, Some(60_000)),
            ("15-minutes", None, Some(900_000)),
            ("every 10 seconds", None, Some(10_000)),
            ("an hour", None, Some(3_600_000)),
            ("PT1H", None, Some(3_600_000)),
            ("P1D", None, Some(86_400_000)),
            ("00:01:00", None, Some(60_000)),
            ("0.5", None, Some(500)),
            ("per", None, None),
            ("a", None, None),
            ("0", None, None),
            ("60000", None, Some(60_000)),
            ("900000", None, Some(900_000)),
            ("86400000", None, Some(86_400_000)),
            ("3600", None, Some(3_600_000)),
            ("36000", None, Some(36_000_000)),
            ("604800", None, Some(604_800_000)),
            ("60000", Some(SECOND), Some(60_000_000)),
            ("soon", None, None),
        ] {
            assert_eq!(window(text, unit).map(Span::ms), expected, "{text}");
        }
    }
}
