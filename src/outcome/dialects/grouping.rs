//! Numbers whose thousands are set apart: `4,999`, `1 234 567`, `4_999`.
//!
//! A comma is a list's as well, so it is a number's only where three digits stand
//! around each and nothing says otherwise. What is wrong either way: to read four
//! of `4,999`.

use std::borrow::Cow;

/// What sets thousands apart, beside the comma.
const MARKS: [char; 5] = [' ', '_', '\'', '\u{a0}', '\u{202f}'];

/// Whether a value is a list of bare numbers that can't be one number: then
/// those beside it are lists too.
pub fn is_list(value: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    value.contains(',') && value.split(',').all(is_plain) && !is_one(value)
}

/// Whether all of a value can be one number.
fn is_one(value: &str) -> bool {
    run(value, |c| c == ',').is_some_and(|end| end == value.len())
}

/// The value with its numbers written without marks between thousands.
/// `has_lists`: a comma without a blank separates numbers in this response.
pub fn ungrouped(value: &str, has_lists: bool) -> Cow<'_, str> {
    if !value.contains(|c| c == ',' || MARKS.contains(&c)) {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(c) = rest.chars().next() {
        if !c.is_ascii_digit() {
            out.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            continue;
        }
        let digits = rest.find(|c: char| !c.is_ascii_digit());
        let digits = digits.unwrap_or(rest.len());
        // Most numbers have no mark: those are soon done with.
        let end = is_marked(rest, digits)
            .then(|| number(&out, rest, has_lists))
            .flatten();
        let end = end.unwrap_or(digits);
        let (number, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if end == digits {
            out.push_str(number);
        } else {
            out.extend(number.chars().filter(char::is_ascii_digit));
        }
        rest = after;
    }
    Cow::Owned(out)
}

/// Whether a mark and another digit stand behind the first `digits`.
fn is_marked(text: &str, digits: usize) -> bool {
    let mut behind = text.get(digits..).unwrap_or_default().chars();
    let has_mark = behind
        .next()
        .is_some_and(|c| c == ',' || MARKS.contains(&c));
    (1..=3).contains(&digits) && has_mark && behind.next().is_some_and(is_digit)
}

/// The end of the number with marks that `text` begins with, behind `before`.
fn number(before: &str, text: &str, has_lists: bool) -> Option<usize> {
    let last = before.chars().next_back();
    // Within a fraction, a word, a list or a time that has begun.
    if last.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '.' | '-' | ',')) {
        return None;
    }
    // The rest of a run that is no number: each is looked at once.
    let is_rest = last.is_some_and(|c| MARKS.contains(&c))
        && before.trim_end_matches(MARKS).ends_with(is_digit)
        && !before.ends_with("  ");
    if is_rest {
        return None;
    }
    let is_of_time = last == Some(':') && before.trim_end_matches(':').ends_with(is_digit);
    if is_of_time {
        return None;
    }
    if let Some(end) = MARKS.into_iter().find_map(|mark| run(text, |c| c == mark)) {
        return Some(end);
    }
    let end = run(text, |c| c == ',')?;
    let (number, after) = text.split_at_checked(end)?;
    // With a zero in front it is nothing else; `100,100;w=60` is a list.
    let has_zero = number.split(',').skip(1).any(|part| part.starts_with('0'));
    let is_policy = after.starts_with(';') && (is_repeated(number) || has_letter_key(before));
    (has_zero || !(has_lists || is_policy)).then_some(end)
}

/// Behind a key of one letter, as the IETF's drafts have them: `w=60`.
fn has_letter_key(before: &str) -> bool {
    let mut back = before.chars().rev();
    back.next() == Some('=')
        && back.next().is_some_and(|c| c.is_ascii_alphabetic())
        && !back.next().is_some_and(|c| c.is_ascii_alphanumeric())
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn is_repeated(number: &str) -> bool {
    let first = number.split(',').next();
    number.split(',').skip(1).any(|part| Some(part) == first)
}

/// The end of one to three digits and then mark and three digits, once or more.
fn run(text: &str, is_mark: impl Fn(char) -> bool) -> Option<usize> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let first = digits(text);
    if !(1..=3).contains(&first) || text.starts_with('0') {
        return None;
    }
    let mut end = first;
    loop {
        let rest = text.get(end..)?;
        let mark = rest.chars().next().filter(|c| is_mark(*c));
        let after = mark.and_then(|mark| rest.get(mark.len_utf8()..));
        match (mark, after.map_or(0, digits)) {
            (Some(mark), 3) => end = end.saturating_add(mark.len_utf8()).saturating_add(3),
            (Some(_), 1..) => return None,
            // A pair of count and seconds begins behind the mark.
            _ if rest.starts_with(':') => return None,
            _ => return (end > first).then_some(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_told_from_lists() {
        for (value, expected) in [
            ("4,999", "4999"),
            ("1,234,567", "1234567"),
            ("4_999", "4999"),
            ("4 999", "4999"),
            ("4'999", "4999"),
            ("4\u{a0}999", "4999"),
            ("4\u{202f}999", "4999"),
            ("1,199.94", "1199.94"),
            ("4,999/5,000", "4999/5000"),
            ("5,000;w=3600", "5000;w=3600"),
            (
                "limit=5,000, remaining=4,999, reset=5",
                "limit=5000, remaining=4999, reset=5",
            ),
            ("limit:5,000;remaining:4,999", "limit:5000;remaining:4999"),
            // Lists, pairs and times stay.
            ("5, 10", "5, 10"),
            ("100, 100;w=60", "100, 100;w=60"),
            ("100,100;w=60", "100,100;w=60"),
            ("q=9;w=60,200;w=3600", "q=9;w=60,200;w=3600"),
            ("200,2000", "200,2000"),
            ("10,100,1000", "10,100,1000"),
            ("1,23,456", "1,23,456"),
            ("0,100", "0,100"),
            ("100:120,200:1", "100:120,200:1"),
            ("5:10:60,150:60:300", "5:10:60,150:60:300"),
            (
                "Mon, 05 Oct 2026 12:00:00 GMT",
                "Mon, 05 Oct 2026 12:00:00 GMT",
            ),
            ("1 234 23", "1 234 23"),
            ("é 4,999", "é 4999"),
        ] {
            assert_eq!(ungrouped(value, false), expected, "{value}");
        }
        assert_eq!(ungrouped("32,190", true), "32,190");
        assert_eq!(ungrouped("32,090", true), "32090");
        assert_eq!(ungrouped("4 999", true), "4999");
        for (value, expected) in [
            ("200,2000", true),
            ("4,999", false),
            ("5, 10", false),
            ("5", false),
        ] {
            assert_eq!(is_list(value), expected, "{value}");
        }
    }
}
