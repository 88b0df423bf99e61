//! The IETF's `RateLimit` and `RateLimit-Policy`, drafts 06 to 10, and whatever
//! else puts a whole budget into one value: dictionaries, named quotas, JSON.
//!
//! Keys are read by what they mean (`r`, `remaining`, `left`), so a value needs
//! no draft of its own. Never refuses a value: unknown keys are skipped.

use super::dialects::names::Unit;
use super::dialects::values::{Count, split, unquoted};
use super::dialects::vocabulary::{Word, word, words};
use super::durations::{self, When};
use crate::fields::Members;
use crate::governor::time::Span;

/// One budget out of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Whose budget, by the words of the header's name.
    pub scope: String,
    pub name: Option<String>,
    pub limit: Option<Count>,
    pub remaining: Option<Count>,
    pub used: Option<Count>,
    pub reset: Option<When>,
    pub window: Option<Span>,
    pub unit: Option<Unit>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Name,
    Limit,
    Remaining,
    Used,
    Reset,
    Window,
    Unit,
}

fn key(text: &str) -> Option<Key> {
    let lower = text.trim().to_ascii_lowercase();
    Some(match lower.as_str() {
        "policy" | "name" | "b" | "bucket" | "id" => Key::Name,
        "r" => Key::Remaining,
        "t" => Key::Reset,
        "q" | "l" => Key::Limit,
        "w" => Key::Window,
        "qu" | "unit" => Key::Unit,
        "u" => Key::Used,
        _ => match words(&lower).first()?.0? {
            Word::Limit | Word::Max | Word::Total | Word::Quota => Key::Limit,
            Word::Remaining => Key::Remaining,
            Word::Used => Key::Used,
            Word::Reset | Word::Expires => Key::Reset,
            Word::Window | Word::Per => Key::Window,
            _ => return None,
        },
    })
}

impl Entry {
    fn has(&self, key: Key) -> bool {
        match key {
            Key::Name => self.name.is_some(),
            Key::Limit => self.limit.is_some(),
            Key::Remaining => self.remaining.is_some(),
            Key::Used => self.used.is_some(),
            Key::Reset => self.reset.is_some(),
            Key::Window => self.window.is_some(),
            Key::Unit => self.unit.is_some(),
        }
    }

    /// Whether it says anything of a budget but its length and name.
    pub fn tells(&self) -> bool {
        [Key::Limit, Key::Remaining, Key::Used, Key::Reset]
            .into_iter()
            .any(|key| self.has(key))
    }

    /// Whether what remains stands beside a limit or a reset.
    pub fn has_more_than_remaining(&self) -> bool {
        self.has(Key::Limit) || self.has(Key::Reset)
    }

    fn put(&mut self, key: Key, value: &str) {
        let value = unquoted(value.trim());
        match key {
            Key::Name => self.name = Some(value.to_owned()),
            Key::Limit => self.limit = Count::parse(value),
            Key::Remaining => self.remaining = Count::parse(value),
            Key::Used => self.used = Count::parse(value),
            Key::Reset => self.reset = When::parse(value, None, false),
            Key::Window => self.window = durations::window(value, None),
            Key::Unit => self.unit = Some(unit(value)),
        }
    }

    /// What its name says, where no parameter does: `"per_hour"`, `"tokens"`.
    fn learn_from_name(&mut self) {
        let Some(name) = &self.name else { return };
        for (word, text) in words(&name.to_ascii_lowercase()) {
            match word {
                Some(Word::Span(ms) | Word::Requests(ms)) if self.window.is_none() => {
                    self.window = Some(Span::from_ms(ms));
                }
                // `token` alone is a credential.
                Some(Word::Token | Word::Tokens(_)) if self.unit.is_none() && text != "token" => {
                    self.unit = Some(Unit::Tokens);
                }
                Some(Word::Concurrent) if self.unit.is_none() => {
                    self.unit = Some(Unit::Concurrency);
                }
                _ => {}
            }
        }
    }
}

fn unit(text: &str) -> Unit {
    let lower = text.to_ascii_lowercase();
    let words = words(&lower);
    let has = |wanted| words.iter().any(|(word, _)| *word == Some(wanted));
    if has(Word::Concurrent) {
        Unit::Concurrency
    } else if has(Word::Token) && has(Word::Part) {
        Unit::TokenPart
    } else if has(Word::Token) {
        Unit::Tokens
    } else if has(Word::Request) {
        Unit::Requests
    } else {
        Unit::Other
    }
}

/// Whether a value has more in it than counts.
pub fn is_structured(value: &str) -> bool {
    value.contains('=') || value.starts_with('{')
}

/// The budgets in a value.
pub fn entries(value: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    if value.starts_with('{') {
        entries.extend(json(value));
    } else {
        items(value, &mut entries);
    }
    for entry in &mut entries {
        entry.learn_from_name();
    }
    entries
}

fn items(value: &str, entries: &mut Vec<Entry>) {
    for item in split(value, ',') {
        for (place, segment) in split(item, ';').into_iter().enumerate() {
            if let Some(entry) = spaced(segment) {
                entries.push(entry);
                continue;
            }
            match segment.split_once('=') {
                Some((name, value)) if !segment.starts_with('"') => {
                    member(name, value, entries);
                }
                // Only the first of an item can be its name or its quota.
                _ if place == 0 => entries.push(headed(segment)),
                // `"fixed window";"api"`: the kind, then the name.
                _ if segment.starts_with('"') => {
                    if let Some(entry) = entries.last_mut() {
                        entry.name = Some(unquoted(segment).to_owned());
                    }
                }
                _ => {}
            }
        }
    }
}

/// `key:abc 56/48000 reset=1180s`, `limit=100 remaining=50 reset=30`
fn spaced(segment: &str) -> Option<Entry> {
    let mut entry = Entry::default();
    let mut keys = 0_u32;
    for word in segment.split_whitespace() {
        if let Some((name, value)) = word.split_once('=') {
            if let Some(key) = key(name) {
                entry.put(key, value);
                keys = keys.saturating_add(1);
            }
        } else if let Some((used, limit)) = word.split_once('/') {
            entry.used = Count::parse(used);
            entry.limit = Count::parse(limit);
        }
    }
    let is_pair = entry.used.is_some() && entry.limit.is_some();
    (is_pair || (keys > 1 && entry.tells())).then_some(entry)
}

/// An item that doesn't begin with a key: `"default"`, `default`, `100`.
fn headed(segment: &str) -> Entry {
    let mut entry = Entry::default();
    match Count::parse(segment) {
        Some(count) if !segment.starts_with('"') => entry.limit = Some(count),
        _ => entry.name = Some(unquoted(segment).to_owned()),
    }
    entry
}

fn member(name: &str, value: &str, entries: &mut Vec<Entry>) {
    // `api-usage=25/5000` and `per-app-api-usage=17/250(appName=x)` are two.
    let pair = value
        .split('(')
        .next()
        .and_then(|pair| pair.split_once('/'));
    if let Some((used, limit)) = pair
        && let (Some(used), Some(limit)) = (Count::parse(used), Count::parse(limit))
    {
        entries.push(Entry {
            name: Some(name.to_owned()),
            used: Some(used),
            limit: Some(limit),
            ..Entry::default()
        });
        return;
    }
    let Some(key) = key(name) else { return };
    // A key that comes again begins the next budget of a dictionary.
    if entries.last().is_none_or(|entry| entry.has(key)) {
        entries.push(Entry::default());
    }
    if let Some(entry) = entries.last_mut() {
        entry.put(key, value);
    }
}

/// `{"period":300,"limit":1000,"remaining":999,"until":"…"}`
fn json(value: &str) -> Option<Entry> {
    let fields: Members = serde_json::from_str(value).ok()?;
    let mut entry = Entry::default();
    for (name, value) in fields.iter() {
        let text = serde_json::from_str::<String>(value.get());
        if let Some(key) = key(name)
            && !entry.has(key)
        {
            entry.put(key, text.as_deref().unwrap_or(value.get()));
        }
    }
    // A key can't be a name here that `word` knows.
    entry.name = entry.name.filter(|name| word(name).is_none());
    Some(entry)
}

/// The policy that a state is one of: by name, by its limit, or the only one.
pub fn policy_of<'a>(
    name: Option<&str>,
    limit: Option<u64>,
    policies: &[&'a Entry],
) -> Option<&'a Entry> {
    if name.is_some() {
        let is_it = |policy: &&&Entry| policy.name.as_deref() == name;
        return policies.iter().find(is_it).copied();
    }
    // Calls at once have no window to share.
    let is_of_requests = |policy: &&&Entry| policy.unit.is_none_or(|unit| unit == Unit::Requests);
    let of_requests = || policies.iter().filter(is_of_requests);
    let first = of_requests().next()?;
    let is_same = |policy: &&&Entry| policy.limit.and_then(Count::whole) == limit;
    if limit.is_some()
        && let Some(policy) = policies.iter().find(is_same)
    {
        return Some(policy);
    }
    let is_only = of_requests().all(|policy| policy.window == first.window);
    is_only.then_some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(value: &str) -> Vec<String> {
        entries(value)
            .into_iter()
            .map(|entry| {
                let whole = |count: Option<Count>| {
                    count
                        .and_then(Count::whole)
                        .map_or("-".to_owned(), |n| n.to_string())
                };
                let reset = match entry.reset {
                    Some(When::In(span)) => span.ms().to_string(),
                    Some(When::At(at)) => at.epoch_ms().to_string(),
                    None => "-".to_owned(),
                };
                let window = entry.window.map_or("-".to_owned(), |w| w.ms().to_string());
                let name = entry.name.unwrap_or_default();
                format!(
                    "{name} {} {} {reset} {window}",
                    whole(entry.limit),
                    whole(entry.remaining)
                )
            })
            .collect()
    }

    #[test]
    fn every_draft_and_what_looks_like_one_is_read() {
        for (value, expected) in [
            ("limit=100, remaining=50, reset=5", vec![" 100 50 5000 -"]),
            (
                "total=100; remaining=99; resets=41",
                vec![" 100 99 41000 -"],
            ),
            ("\"a\";r=50;t=30", vec!["a - 50 30000 -"]),
            ("default ; ; r=50; t=5", vec!["default - 50 5000 -"]),
            (
                "\"a\";q=100;w=60, \"b\";q=5;w=1",
                vec!["a 100 - - 60000", "b 5 - - 1000"],
            ),
            (
                "100;w=60;comment=\"a, b;r=1\", 5;w=1",
                vec![" 100 - - 60000", " 5 - - 1000"],
            ),
            (
                "policy=default, remaining=50, reset=5",
                vec!["default - 50 5000 -"],
            ),
            (
                "\"100-in-15min\"; q=100; w=900",
                vec!["100-in-15min 100 - - 900000"],
            ),
            ("\"a\";r=1;pk=:cHs=:;t=9", vec!["a - 1 9000 -"]),
            (
                "b=per_hour;q=100;r=99;t=1,b=per_day;q=300;r=299;t=2",
                vec![
                    "per_hour 100 99 1000 3600000",
                    "per_day 300 299 2000 86400000",
                ],
            ),
            (
                "{\"period\":300,\"limit\":1000,\"remaining\":9}",
                vec![" 1000 9 - 300000"],
            ),
            ("{\"limit\":", vec![]),
            ("\"unterminated;r=5", vec!["\"unterminated;r=5 - - - -"]),
        ] {
            assert_eq!(short(value), expected, "{value}");
        }
    }
}
