//! The values of rate headers: lists, parameters and counts.
//!
//! Lenient on purpose: what servers send is often not quite a structured field
//! (unquoted names, empty parameters, blanks), and each piece that can't be read
//! is unknown rather than the end of the whole.

use crate::governor::time::Span;
use crate::outcome::durations::{self, Decimal, SECOND};
use crate::outcome::moments::is_weekday;

/// Splits outside quotes and brackets; pieces are trimmed, empty ones left out.
pub fn split(text: &str, at: char) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut depth) = (0, 0_u32);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (place, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ if c == at && depth == 0 => {
                pieces.extend(text.get(start..place));
                start = place.saturating_add(c.len_utf8());
            }
            _ => {}
        }
    }
    pieces.extend(text.get(start..));
    pieces.retain_mut(|piece| {
        *piece = piece.trim();
        !piece.is_empty()
    });
    pieces
}

/// Splits a list of moments or spans, never inside a date.
pub fn split_times(text: &str) -> Vec<String> {
    let mut times: Vec<String> = Vec::new();
    let mut is_open = false;
    for piece in split(text, ',') {
        match times.last_mut() {
            Some(last) if is_open => {
                last.push_str(", ");
                last.push_str(piece);
            }
            _ => times.push(piece.to_owned()),
        }
        is_open = is_weekday(piece);
    }
    times
}

/// A text without its quotes.
pub fn unquoted(text: &str) -> &str {
    let inner = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(text).trim()
}

/// A count as a header gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Number(Decimal),
    /// Below zero; what that means depends on what stands beside it.
    Negative,
    Unlimited,
}

impl Count {
    pub fn parse(text: &str) -> Option<Self> {
        let text = unquoted(text.trim());
        if let Some(number) = Decimal::parse(text) {
            return Some(Self::Number(number));
        }
        if text.strip_prefix('-').and_then(Decimal::parse).is_some() {
            return Some(Self::Negative);
        }
        let is_word = |word| text.eq_ignore_ascii_case(word);
        ["unlimited", "infinite", "infinity", "inf", "none"]
            .into_iter()
            .any(is_word)
            .then_some(Self::Unlimited)
    }

    pub fn number(self) -> Option<Decimal> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Without a part of one, as is right for what is left.
    pub fn whole(self) -> Option<u64> {
        self.number().map(|number| number.whole)
    }

    /// With a part of one taken for a whole, as is right for what is used.
    pub fn whole_up(self) -> Option<u64> {
        let number = self.number()?;
        Some(number.whole.saturating_add((number.nanos > 0).into()))
    }
}

/// What one item of a list says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    pub count: Option<Count>,
    /// `used/limit`: the second number.
    pub of: Option<Count>,
    pub window: Option<Span>,
    /// `hits:seconds:penalty`: the calls are held back for so long.
    pub penalty: Option<Span>,
    /// It had a parameter that states its window.
    pub is_policy: bool,
}

/// The items of a value of counts.
pub fn items(value: &str) -> Vec<Item> {
    // `300/3000/12000`: the windows of one budget.
    let slashes = value.bytes().filter(|byte| *byte == b'/').count();
    if slashes >= 2
        && value
            .bytes()
            .all(|byte| byte == b'/' || byte.is_ascii_digit())
    {
        return items_of(value, '/');
    }
    items_of(value, ',')
}

/// Whether a value is made of `hits:seconds` or `hits:seconds:penalty` alone.
pub fn is_of_rules(value: &str) -> bool {
    let is_rule = |item: &&str| {
        let numbers = item.split(':').count();
        let is_number = |part: &str| Decimal::parse(part.trim()).is_some();
        (2..=3).contains(&numbers) && item.split(':').all(is_number)
    };
    let items = split(value, ',');
    !items.is_empty() && items.iter().all(is_rule)
}

/// The longest wait of a list of `seconds:of:what`, each for something else.
pub fn wait_of_list(value: &str) -> Option<Span> {
    let items = split(value, ',').into_iter().take(MOST_ITEMS);
    let waits = items.filter_map(|item| {
        let (number, of) = item.split_once(':')?;
        let is_named = of.starts_with(|c: char| c.is_ascii_alphabetic() || c == ':');
        let span = Decimal::parse(number.trim())?.times(SECOND);
        (is_named && !span.is_zero()).then_some(span)
    });
    waits.max().filter(|span| durations::is_plausible(*span))
}

/// Items of one value that are looked at.
pub const MOST_ITEMS: usize = 16;

fn items_of(value: &str, at: char) -> Vec<Item> {
    let mut items = Vec::new();
    for text in split(value, at) {
        if items.len() < MOST_ITEMS {
            items.push(item(text));
        }
    }
    items
}

fn item(text: &str) -> Item {
    let mut item = Item::default();
    for (place, segment) in split(text, ';').into_iter().enumerate() {
        match segment.split_once('=') {
            Some((key, value)) if is_window_key(key.trim()) => {
                item.window = durations::window(unquoted(value.trim()), None);
                item.is_policy = true;
            }
            None if place == 0 => item.head(segment),
            // `Microsoft.Compute/HighCostGet3Min;159`
            None if item.count.is_none() => item.count = Count::parse(segment),
            _ => {}
        }
    }
    item
}

fn is_window_key(key: &str) -> bool {
    [
        "w", "window", "period", "interval", "duration", "range", "per", "size",
    ]
    .iter()
    .any(|name| key.eq_ignore_ascii_case(name))
}

impl Item {
    fn head(&mut self, text: &str) {
        self.count = Count::parse(text);
        if self.count.is_some() {
            return;
        }
        // `1m`: the window alone, where the limit is meant to stand.
        self.window = durations::span(text).filter(|span| !span.is_zero());
        if self.window.is_some() {
            return;
        }
        // `100:120` is so many in so many seconds; a third number is a penalty.
        if let Some((count, seconds)) = text.split_once(':') {
            let (seconds, penalty) = seconds.split_once(':').unwrap_or((seconds, ""));
            if Decimal::parse(count.trim()).is_none() {
                return;
            }
            self.penalty = Decimal::parse(penalty.trim()).map(|number| number.times(SECOND));
            self.window = Decimal::parse(seconds.trim()).map(|number| number.times(SECOND));
            if self.window.is_some() {
                self.count = Count::parse(count);
                self.is_policy = true;
            }
            return;
        }
        let lower = text.to_ascii_lowercase();
        let between = ["/", " per", " out of ", " of "];
        let Some((left, right)) = between.iter().find_map(|mark| lower.split_once(mark)) else {
            return;
        };
        let (left, right) = (left.trim(), right.trim());
        self.of = Count::parse(right);
        if self.of.is_some() {
            self.count = Count::parse(left);
            return;
        }
        self.window = durations::window(right, None);
        if self.window.is_some() {
            // `100 requests per minute`; with two numbers it is a sentence.
            let (count, what) = left.split_once(char::is_whitespace).unwrap_or((left, ""));
            if what.contains(|c: char| c.is_ascii_digit()) {
                self.window = None;
                return;
            }
            self.count = Count::parse(count);
            self.is_policy = true;
        }
    }
}

/// A rate of `number` in `window`, as a limit and its window; below one, and
/// with a part of one, the window makes up for it.
pub fn rate(number: Decimal, window: Span) -> Option<(u64, Span)> {
    if number.nanos == 0 {
        return (number.whole > 0).then_some((number.whole, window));
    }
    let limit = number.whole.max(1);
    // limit / number × window; millionths are exact enough for a rate.
    let millionths = number
        .whole
        .saturating_mul(1_000_000)
        .saturating_add(number.nanos.div_ceil(1000));
    let wanted = limit.saturating_mul(1_000_000).saturating_mul(window.ms());
    Some((limit, Span::from_ms(wanted.div_ceil(millionths.max(1)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(value: &str) -> Vec<(Option<u64>, Option<u64>, Option<u64>)> {
        let whole = |count: Option<Count>| count.and_then(Count::whole);
        items(value)
            .into_iter()
            .map(|item| (whole(item.count), whole(item.of), item.window.map(Span::ms)))
            .collect()
    }

    #[test]
    fn a_comma_splits_outside_quotes_and_dates_only() {
        assert_eq!(
            split(r#"a;b="x, \", y", c(d,e),,f"#, ','),
            [r#"a;b="x, \", y""#, "c(d,e)", "f"]
        );
        let dates = "Wed, 21 Oct 2015 07:28:00 GMT, Sunday, 06-Nov-94 08:49:37 GMT, 5";
        assert_eq!(split_times(dates).len(), 3);
    }

    #[test]
    fn counts_come_alone_in_pairs_and_with_a_window() {
        for (value, expected) in [
            ("57.0", vec![(Some(57), None, None)]),
            ("\"5\"", vec![(Some(5), None, None)]),
            ("32/40", vec![(Some(32), Some(40), None)]),
            ("100;w=60", vec![(Some(100), None, Some(60_000))]),
            (
                "100:120,20:1",
                vec![
                    (Some(100), None, Some(120_000)),
                    (Some(20), None, Some(1000)),
                ],
            ),
            ("100/minute", vec![(Some(100), None, Some(60_000))]),
            (
                "60 requests per 15 minutes",
                vec![(Some(60), None, Some(900_000))],
            ),
            ("1m", vec![(None, None, Some(60_000))]),
            (
                "300/3000/12000",
                vec![
                    (Some(300), None, None),
                    (Some(3000), None, None),
                    (Some(12000), None, None),
                ],
            ),
            ("Compute/Get3Min;159", vec![(Some(159), None, None)]),
            ("59.5 / 60", vec![(Some(59), Some(60), None)]),
            ("32 of 40", vec![(Some(32), Some(40), None)]),
            (
                "5:10:60,15:60:300",
                vec![
                    (Some(5), None, Some(10_000)),
                    (Some(15), None, Some(60_000)),
                ],
            ),
            ("1e2", vec![(None, None, None)]),
            ("60:error:organization", vec![(None, None, None)]),
        ] {
            assert_eq!(short(value), expected, "{value}");
        }
    }

    #[test]
    fn a_wait_of_a_list_is_the_longest_and_never_cut() {
        for (value, expected) in [
            ("60:error;transaction:organization", Some(60_000)),
            ("1.5:error:organization", Some(1500)),
            ("1.0001::key", Some(1001)),
            ("60:error:organization, 2700.5:session:key", Some(2_700_500)),
            ("0:error", None),
            ("100:120,20:1", None),
            ("40000000:error", None),
            ("error", None),
        ] {
            assert_eq!(wait_of_list(value).map(Span::ms), expected, "{value}");
        }
    }

    #[test]
    fn a_rate_keeps_its_ratio() {
        for (text, limit, window) in [
            ("0.5", 1, 2000),
            ("2.0", 2, 1000),
            ("1.5", 1, 667),
            ("0.0167", 1, 59_881),
        ] {
            let number = Decimal::parse(text).unwrap();
            assert_eq!(
                rate(number, Span::from_seconds(1)),
                Some((limit, Span::from_ms(window))),
                "{text}"
            );
        }
        assert_eq!(
            rate(Decimal::parse("0.0").unwrap(), Span::from_seconds(1)),
            None
        );
    }
}
