//! Moments as texts: RFC 3339 and its looser forms, the three forms of an HTTP
//! date, and what `Date.toString()` of other languages prints.
//!
//! Read by the kinds of their words rather than by a list of formats, since
//! the variants in use are many. No zone means UTC, never a local one.

use chrono::{NaiveDate, NaiveTime};

use super::durations::Decimal;
use crate::governor::time::Millis;

/// Longer texts are no moments.
const LONGEST: usize = 100;

/// `None`: no moment, or one before 1970.
pub fn parse(text: &str) -> Option<Millis> {
    let text = text.trim();
    if text.len() > LONGEST || !text.is_ascii() {
        return None;
    }
    // A comment, as in `GMT+0100 (Central European Standard Time)`.
    let text = text.split('(').next()?.trim().to_ascii_lowercase();
    let mut parts =
        if text.bytes().next()?.is_ascii_digit() && text.as_bytes().get(4) == Some(&b'-') {
            iso(&text)?
        } else {
            words(&text)?
        };
    parts.year = parts.year.filter(|year| (1970..=9999).contains(year));
    parts.moment()
}

#[derive(Default)]
struct Parts {
    year: Option<u32>,
    month: Option<u32>,
    day: Option<u32>,
    time: Option<NaiveTime>,
    /// What a fraction past the last millisecond, or a leap second, adds.
    carry_ms: i64,
    is_pm: Option<bool>,
    /// Minutes east of UTC.
    offset: i64,
}

impl Parts {
    fn moment(self) -> Option<Millis> {
        let date =
            NaiveDate::from_ymd_opt(i32::try_from(self.year?).ok()?, self.month?, self.day?)?;
        let ms = date
            .and_time(self.time.unwrap_or_default())
            .and_utc()
            .timestamp_millis();
        let half_day = match self.is_pm {
            Some(is_pm) => half_day(self.time?, is_pm)?,
            None => 0,
        };
        let shift = half_day.saturating_sub(self.offset).saturating_mul(60_000);
        let ms = ms.saturating_add(self.carry_ms).saturating_add(shift);
        let ms = u64::try_from(ms).ok()?;
        Some(Millis::from_epoch(ms))
    }
}

/// What `AM` or `PM` adds, in minutes.
fn half_day(time: NaiveTime, is_pm: bool) -> Option<i64> {
    use chrono::Timelike as _;
    match (time.hour(), is_pm) {
        (12, false) => Some(-720),
        (1..=11, true) => Some(720),
        (12, true) | (1..=11, false) => Some(0),
        _ => None,
    }
}

/// `2026-10-05T12:00:30.5+02:00`; time, seconds, fraction and zone may be
/// missing, and a blank may stand for the `T`.
fn iso(text: &str) -> Option<Parts> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut numbers = date.split('-');
    let mut parts = Parts {
        year: number(numbers.next()?),
        month: number(numbers.next()?),
        day: number(numbers.next()?),
        ..Parts::default()
    };
    let rest = rest.strip_prefix('t').unwrap_or(rest).trim();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.')
        .unwrap_or(rest.len());
    let (time_text, zone) = rest.split_at_checked(end)?;
    if !time_text.is_empty() {
        parts.set_time(time_text)?;
    }
    for word in zone.split_whitespace() {
        parts.offset = offset(word)?;
    }
    Some(parts)
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`,
/// `Sun Nov  6 08:49:37 1994`, `Tue Feb 16 2021 09:02:42 GMT+0100`.
fn words(text: &str) -> Option<Parts> {
    let mut parts = Parts::default();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        if word.contains(':') && !word.starts_with(['+', '-']) {
            parts.set_time(word)?;
        } else if let Some(pm) = meridiem(word) {
            parts.is_pm = Some(pm);
        } else if is_weekday(word) {
        } else if let Some(minutes) = offset(word) {
            parts.offset = minutes;
        } else {
            for piece in word.split('-') {
                parts.take(piece)?;
            }
        }
    }
    parts.time?;
    Some(parts)
}

impl Parts {
    /// A day, a month or a year.
    fn take(&mut self, piece: &str) -> Option<()> {
        if let Some(month) = month(piece) {
            self.month = Some(month);
            return Some(());
        }
        let number = number(piece)?;
        match (piece.len(), self.day) {
            (4, _) => self.year = Some(number),
            // Two digits of a year, read as RFC 6265 does.
            (2, Some(_)) if number < 70 => self.year = number.checked_add(2000),
            (2, Some(_)) => self.year = number.checked_add(1900),
            (1 | 2, None) => self.day = Some(number),
            _ => return None,
        }
        Some(())
    }
}

impl Parts {
    /// `8:49`, `08:49:37`, `08:49:37.5`.
    fn set_time(&mut self, text: &str) -> Option<()> {
        let (time, carry_ms) = time(text)?;
        (self.time, self.carry_ms) = (Some(time), carry_ms);
        Some(())
    }
}

/// The time, and how much later in milliseconds it is meant: never an earlier one.
fn time(text: &str) -> Option<(NaiveTime, i64)> {
    let mut numbers = text.split(':');
    let hour = number(numbers.next()?)?;
    let minute = number(numbers.next()?)?;
    let second = match numbers.next() {
        Some(text) => Decimal::parse(text)?,
        None => Decimal::parse("0")?,
    };
    if numbers.next().is_some() {
        return None;
    }
    // Up to whole milliseconds; a leap second ends with the minute.
    let ms = second.nanos.div_ceil(1_000_000);
    let past = match second.whole {
        60 => 1000_u64.saturating_add(ms),
        _ => ms,
    };
    let second = u32::try_from(second.whole).ok()?;
    let time = NaiveTime::from_hms_opt(hour, minute, if second == 60 { 59 } else { second })?;
    Some((time, i64::try_from(past).ok()?))
}

/// Minutes east of UTC: `z`, `gmt`, `+02:00`, `gmt+0100`, `-05`.
fn offset(word: &str) -> Option<i64> {
    let rest = ["gmt", "utc", "z"]
        .iter()
        .find_map(|zone| word.strip_prefix(zone))
        .unwrap_or(word);
    if rest.is_empty() {
        return Some(0);
    }
    let (sign, rest) = if let Some(rest) = rest.strip_prefix('+') {
        (1, rest)
    } else {
        (-1, rest.strip_prefix('-')?)
    };
    let digits: String = rest.chars().filter(|c| *c != ':').collect();
    if digits.len() != 2 && digits.len() != 4 {
        return None;
    }
    let (hours, minutes) = digits.split_at_checked(2)?;
    let hours = i64::from(number(hours)?);
    let minutes = match minutes {
        "" => 0,
        _ => i64::from(number(minutes)?),
    };
    Some(
        hours
            .saturating_mul(60)
            .saturating_add(minutes)
            .saturating_mul(sign),
    )
}

fn number(text: &str) -> Option<u32> {
    u32::try_from(Decimal::parse(text)?.whole).ok()
}

fn meridiem(word: &str) -> Option<bool> {
    match word {
        "am" => Some(false),
        "pm" => Some(true),
        _ => None,
    }
}

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// Whether a word, in any case, is a day of the week.
pub fn is_weekday(word: &str) -> bool {
    let lower = word.trim().to_ascii_lowercase();
    lower.len() >= 3 && WEEKDAYS.iter().any(|day| day.starts_with(&lower))
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn month(word: &str) -> Option<u32> {
    if word.len() < 3 {
        return None;
    }
    let place = MONTHS.iter().position(|month| month.starts_with(word))?;
    u32::try_from(place.checked_add(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_moment_is_read() {
        for (text, expected) in [
            ("2026-10-05T12:00:30Z", 1_791_201_630_000),
            ("2026-10-05t12:00:30z", 1_791_201_630_000),
            ("2026-10-05T14:00:45.5+02:00", 1_791_201_645_500),
            ("2026-10-05T12:00Z", 1_791_201_600_000),
            ("2026-10-05T12:00:00", 1_791_201_600_000),
            ("2026-10-05 12:00:00 UTC", 1_791_201_600_000),
            ("2026-10-05 07:00:00 -0500", 1_791_201_600_000),
            ("2026-10-05T12:00:00.0000001Z", 1_791_201_600_001),
            ("2026-10-05T12:00:00.9999Z", 1_791_201_601_000),
            ("2026-10-05T12:00:59.9999Z", 1_791_201_660_000),
            ("2026-10-05T12:00:60Z", 1_791_201_660_000),
            ("2026-10-05", 1_791_158_400_000),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777_000),
            ("Sun Nov  6 08:49:37 1994", 784_111_777_000),
            ("Saturday, 10-Oct-26 12:00:30 GMT", 1_791_633_630_000),
            ("Mon, 5 Oct 2026 12:00:00 +0000", 1_791_201_600_000),
            (
                "Tue Feb 16 2021 09:02:42 GMT+0100 (Central European Standard Time)",
                1_613_462_562_000,
            ),
            (
                "Saturday, November 7, 2015 12:00:00 AM GMT",
                1_446_854_400_000,
            ),
            (
                "Saturday, November 7, 2015 1:00:00 PM GMT",
                1_446_901_200_000,
            ),
        ] {
            assert_eq!(parse(text).map(Millis::epoch_ms), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_unknown() {
        for bad in [
            "",
            "-3",
            "2.0",
            "soon",
            "2026",
            "Mon",
            "2026-13-05T12:00:00Z",
            "2026-02-30",
            "2026-10-05T25:00Z",
            "1969-12-31T23:59:59Z",
            "Sun, 31 Feb 2026 08:49:37 GMT",
            "Sun, 06 Nov 1994",
            "May",
            "\u{661}026-10-05",
            "2026-10-05T12:00:00Q",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
