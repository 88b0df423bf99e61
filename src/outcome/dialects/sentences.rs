//! Values that are sentences: `Remaining: 5 Time until reset: 30`, `You have 4 of
//! 100 requests left, resets in 30 seconds`.
//!
//! Each number is what the words beside it say: those in front of it, else those
//! behind it. A number without such a word is none of ours.

use super::names::Unit;
use super::values::Count;
use super::vocabulary::{Word, words};
use crate::governor::time::Span;
use crate::outcome::durations::{self, Decimal, When};
use crate::outcome::structured::Entry;

/// Words of one value that are looked at.
const MOST_WORDS: usize = 64;
/// Words that a time is made of, at most: `Mon, 05 Oct 2026 12:00:00 GMT`.
const LONGEST_TIME: usize = 6;
const LONGEST_WORD: usize = 32;

/// What a number is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Limit,
    Remaining,
    Used,
    Reset,
    Window,
}

/// Whether a value is more than numbers and marks.
pub fn is_sentence(value: &str) -> bool {
    value.trim().contains(char::is_whitespace)
        && value.contains(|c: char| c.is_ascii_digit())
        && value.contains(|c: char| c.is_ascii_alphabetic())
}

/// The budget that a sentence tells of; `None`: of none.
pub fn budget(value: &str) -> Option<Entry> {
    let words = tokens(value);
    let mut entry = Entry::default();
    let mut open: Option<Count> = None;
    let (mut from, mut place) = (0, 0);
    while let Some(word) = words.get(place) {
        if !word.starts_with(|c: char| c.is_ascii_digit()) {
            place = place.saturating_add(1);
            continue;
        }
        let before = words.get(from..place).unwrap_or_default();
        let behind = words.get(place.saturating_add(1)..).unwrap_or_default();
        let mut taken = 1;
        match part(before, behind) {
            Some(part @ (Part::Reset | Part::Window)) => {
                let (when, count) = longest(words.get(place..).unwrap_or_default())?;
                taken = count;
                put_time(&mut entry, part, when);
            }
            Some(part) => {
                let count = Count::parse(word);
                put_count(&mut entry, part, count);
                // `5 of 100 left`: what the first of the two is.
                if part == Part::Limit
                    && let Some(first) = open.take()
                {
                    let said = first_count(until_number(behind));
                    let part = said.filter(|part| *part == Part::Remaining);
                    put_count(&mut entry, part.unwrap_or(Part::Used), Some(first));
                }
            }
            None => open = Count::parse(word),
        }
        place = place.saturating_add(taken);
        from = place;
    }
    entry.window = entry.window.or_else(|| window_by_word(&words));
    let has = |wanted| words.iter().any(|word| meanings(word).contains(&wanted));
    if has(Word::Token) && !has(Word::Request) {
        entry.unit = Some(Unit::Tokens);
    }
    let is_told = entry.remaining.is_some() || entry.limit.is_some() || entry.reset.is_some();
    is_told.then_some(entry)
}

/// A count with what it counts behind it: `42 requests`.
pub fn counted(value: &str) -> Option<Count> {
    let words = tokens(value);
    let behind = meanings(words.get(1)?);
    let is_counted = behind.contains(&Word::Request) || behind.contains(&Word::Token);
    let count = Decimal::parse(words.first()?).map(Count::Number);
    count.filter(|_| is_counted && words.len() == 2)
}

/// The count that a sentence begins with, under a name that says what it is:
/// `0 (resets in 5s)`.
pub fn leading(value: &str) -> Option<Count> {
    let first = value.split_whitespace().next()?;
    Decimal::parse(first.trim_end_matches([',', ';'])).map(Count::Number)
}

/// The time that a sentence names: `in 30 seconds`, `try again in 1m`.
pub fn time(value: &str) -> Option<When> {
    if !is_sentence(value) {
        return None;
    }
    let words = tokens(value);
    let place = words
        .iter()
        .position(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let (when, count) = longest(words.get(place..)?)?;
    let is_announced = place
        .checked_sub(1)
        .and_then(|before| words.get(before))
        .is_some_and(|word| {
            matches!(
                word.as_str(),
                "in" | "after" | "for" | "wait" | "at" | "until"
            )
        });
    // Of a broken date the first number is no time.
    let has_unit = count > 1
        || words
            .get(place)
            .is_some_and(|word| Decimal::parse(word).is_none());
    (is_announced || has_unit).then_some(when)
}

/// The words in lower case; labels, numbers and slashes apart.
fn tokens(value: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for word in value.split_whitespace() {
        let lower = word.to_ascii_lowercase();
        let is_label = |label: &&str| label.bytes().all(|byte| byte.is_ascii_alphabetic());
        let pieces: Vec<&str> = match lower.split_once([':', '=']) {
            Some((label, rest)) if is_label(&label) => vec![label, rest],
            _ => match lower.split_once('/') {
                Some((left, right)) if Decimal::parse(left).is_some() => vec![left, "of", right],
                _ => vec![&lower],
            },
        };
        for piece in pieces {
            let is_edge =
                |c: char| matches!(c, '.' | ',' | ';' | ':' | '(' | ')' | '!' | '"' | '\'');
            let piece = piece.trim_matches(is_edge);
            if !piece.is_empty() && tokens.len() < MOST_WORDS {
                tokens.push(piece.to_owned());
            }
        }
    }
    tokens
}

/// The time that the words begin with, as long as can be, and of how many.
fn longest(words: &[String]) -> Option<(When, usize)> {
    (1..=words.len().min(LONGEST_TIME)).rev().find_map(|count| {
        let text = words.get(..count)?.join(" ");
        let when = When::parse(&text, None, false);
        let when = when.or_else(|| durations::clock(&text).map(When::In))?;
        Some((when, count))
    })
}

/// What a number is, by the words on either side of it.
fn part(before: &[String], behind: &[String]) -> Option<Part> {
    let said = strongest(before);
    let is_time = behind
        .first()
        .is_some_and(|word| durations::unit_ms(word).is_some());
    match before.last().map(String::as_str) {
        Some("of") => return Some(Part::Limit),
        Some("per" | "every" | "each") => return Some(Part::Window),
        // `retry in 5`
        Some("in" | "after" | "for" | "wait") => return said.filter(|part| *part == Part::Reset),
        _ => {}
    }
    match said {
        // `rate limit: 99 of 100 left`: the label is of both.
        Some(Part::Limit) if behind.first().is_some_and(|word| word == "of") => {
            return first_count(until_number(behind));
        }
        // `time remaining: 30`
        Some(Part::Remaining) if is_time || before.iter().any(|word| word == "time") => {
            return Some(Part::Reset);
        }
        Some(_) => return said,
        None => {}
    }
    let behind = until_number(behind);
    if is_time {
        return strongest(behind).filter(|part| *part == Part::Reset);
    }
    let said = first_count(behind);
    // `100 requests per minute`
    said.or_else(|| (behind.iter().any(|word| word == "per")).then_some(Part::Limit))
}

fn until_number(words: &[String]) -> &[String] {
    let is_number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
    let end = words.iter().position(is_number).unwrap_or(words.len());
    words.get(..end).unwrap_or_default()
}

/// Of the roles that words name the one that tells most: in `rate limit
/// remaining` that is what remains.
fn strongest(words: &[String]) -> Option<Part> {
    let all: Vec<Word> = words.iter().flat_map(|word| meanings(word)).collect();
    let has = |wanted: &[Word]| all.iter().any(|word| wanted.contains(word));
    match () {
        () if has(&[Word::Reset, Word::Expires]) => Some(Part::Reset),
        () if has(&[Word::Remaining]) => Some(Part::Remaining),
        () if has(&[Word::Used]) => Some(Part::Used),
        () if has(&[Word::Window]) => Some(Part::Window),
        () if has(&[Word::Limit, Word::Max, Word::Quota, Word::Total]) => Some(Part::Limit),
        () => None,
    }
}

/// What a count is by the words behind it: the first that says so, since the
/// next may begin another clause.
fn first_count(words: &[String]) -> Option<Part> {
    words.iter().find_map(|word| {
        let part = strongest(std::slice::from_ref(word))?;
        (part != Part::Reset && part != Part::Window).then_some(part)
    })
}

fn meanings(word: &str) -> Vec<Word> {
    if word.len() > LONGEST_WORD {
        return Vec::new();
    }
    words(word)
        .into_iter()
        .filter_map(|(word, _)| word)
        .collect()
}

fn put_count(entry: &mut Entry, part: Part, count: Option<Count>) {
    let place = match part {
        Part::Limit => &mut entry.limit,
        Part::Remaining => &mut entry.remaining,
        Part::Used => &mut entry.used,
        Part::Reset | Part::Window => return,
    };
    *place = place.or(count);
}

fn put_time(entry: &mut Entry, part: Part, when: When) {
    match (part, when) {
        (Part::Window, When::In(span)) if !span.is_zero() => {
            entry.window = entry.window.or(Some(span));
        }
        (Part::Reset, when) => entry.reset = entry.reset.or(Some(when)),
        _ => {}
    }
}

/// `per minute`
fn window_by_word(words: &[String]) -> Option<Span> {
    let mut pairs = words.iter().zip(words.iter().skip(1));
    let (_, unit) = pairs.find(|(word, _)| word.as_str() == "per")?;
    durations::unit_ms(unit).map(Span::from_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(value: &str) -> String {
        let Some(entry) = budget(value) else {
            return "-".to_owned();
        };
        let whole = |count: Option<Count>| count.and_then(Count::whole);
        let reset = match entry.reset {
            Some(When::In(span)) => Some(span.ms()),
            Some(When::At(at)) => Some(at.epoch_ms()),
            None => None,
        };
        let counts = [
            whole(entry.limit),
            whole(entry.remaining),
            whole(entry.used),
        ];
        let window = entry.window.map(Span::ms);
        let all = counts.into_iter().chain([reset, window]);
        let all: Vec<String> = all
            .map(|number| number.map_or("-".to_owned(), |number| number.to_string()))
            .collect();
        all.join(" ")
    }

    #[test]
    fn every_number_is_what_the_words_beside_it_say() {
        for (value, expected) in [
            ("Remaining: 5 Time until reset: 30", "- 5 - 30000 -"),
            ("Limit: 100 Remaining: 5 Reset in: 1.5s", "100 5 - 1500 -"),
            (
                "You have 4 of 100 requests left, resets in 30 seconds",
                "100 4 - 30000 -",
            ),
            ("4/100 requests used", "100 - 4 - -"),
            ("100 requests per minute, 42 remaining", "100 42 - - 60000"),
            ("limit 60 remaining 4 reset 7", "60 4 - 7000 -"),
            (
                "5 requests remaining out of 100 per 15 minutes",
                "100 5 - - 900000",
            ),
            ("30 seconds until reset", "- - - 30000 -"),
            ("time remaining: 30 seconds", "- - - 30000 -"),
            (
                "0 calls left; resets at Mon, 05 Oct 2026 12:00:30 GMT",
                "- 0 - 1791201630000 -",
            ),
            ("0 left until 2026-10-05T12:00:30Z", "- 0 - 1791201630000 -"),
            ("resets after 00:00:05", "- - - 5000 -"),
            ("rate limit exceeded, retry in 30 seconds", "-"),
            ("error 5 of nothing", "-"),
            ("no numbers at all", "-"),
            ("", "-"),
        ] {
            assert_eq!(short(value), expected, "{value}");
        }
    }

    #[test]
    fn a_time_is_named_with_its_unit_or_announced() {
        let read = |value: &str| match time(value) {
            Some(When::In(span)) => Some(span.ms()),
            _ => None,
        };
        for (value, expected) in [
            ("try again in 30 seconds", Some(30_000)),
            ("Please wait 1.5 seconds.", Some(1500)),
            ("retry in 7", Some(7000)),
            ("5 minutes from now", Some(300_000)),
            ("after 00:01:00", Some(60_000)),
            ("Wed, 21 Foo 2015 07:28:00 GMT", None),
            ("attempt 3 failed", None),
            ("soon", None),
        ] {
            assert_eq!(read(value), expected, "{value}");
        }
    }
}
