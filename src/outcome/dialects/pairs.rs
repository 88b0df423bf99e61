//! Values that are headers of their own: `user-hour-lim:3500;user-hour-rem:500`,
//! `requests-limit=5&requests-left=4`, JSON of budgets by name.
//!
//! A key behind the header's name is read as a name, by the same rules; what the
//! key says of its window, unit and owner counts as it does there.

use super::names::{self, Role};
use super::values::{split, unquoted};
use crate::fields::Members;

/// Pairs of one value that are looked at.
const MOST: usize = 32;
const LONGEST_KEY: usize = 64;

/// The keys with their values; none: the value isn't made of pairs alone.
pub fn of(value: &str) -> Vec<(String, String)> {
    if value.starts_with('{') {
        return json(value);
    }
    // The mark that stands first between key and value.
    let Some(mark) = value.chars().find(|c| matches!(c, ':' | '=')) else {
        return Vec::new();
    };
    let separators = [';', ',', '&', '|'];
    let separator = separators.into_iter().find(|at| value.contains(*at));
    let mut pairs = Vec::new();
    for segment in split(value, separator.unwrap_or(';'))
        .into_iter()
        .take(MOST)
    {
        match segment.split_once(mark) {
            Some((key, value)) if is_key(key.trim()) && is_value(value, mark) => {
                pairs.push((key.trim().to_owned(), unquoted(value.trim()).to_owned()));
            }
            _ => return Vec::new(),
        }
    }
    pairs
}

/// Whether the pairs of a value say what remains, or what is used of what.
pub fn tell_rest(value: &str) -> bool {
    let roles: Vec<Role> = of(value)
        .iter()
        .filter_map(|(key, _)| Some(names::read(&format!("ratelimit-{key}"))?.role))
        .collect();
    let has = |role| roles.contains(&role);
    has(Role::Limit) && (has(Role::Remaining) || has(Role::Used))
}

fn is_key(key: &str) -> bool {
    key.len() <= LONGEST_KEY
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ' '))
}

/// A sentence has another label behind the number.
fn is_value(value: &str, mark: char) -> bool {
    let value = value.trim();
    let mut words = value.split_whitespace();
    let is_labelled = words.any(|word| word.ends_with(mark));
    !value.is_empty() && !is_labelled
}

/// Members of an object, and of those within it, as `outer-inner`.
fn json(value: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let Ok(outer) = serde_json::from_str::<Members>(value) else {
        return pairs;
    };
    for (name, value) in outer.iter().take(MOST) {
        match serde_json::from_str::<Members>(value.get()) {
            Ok(inner) => {
                for (key, value) in inner.iter().take(MOST) {
                    push(&format!("{name}-{key}"), value.get(), &mut pairs);
                }
            }
            Err(_) => push(name, value.get(), &mut pairs),
        }
    }
    pairs
}

fn push(key: &str, value: &str, pairs: &mut Vec<(String, String)>) {
    if pairs.len() < MOST && is_key(key) && !value.starts_with(['{', '[']) {
        pairs.push((key.to_owned(), unquoted(value).to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_pairs_throughout_is_read_as_pairs() {
        for (value, count) in [
            ("user-hour-lim:3500;user-hour-rem:500;", 2),
            ("limit: 5, remaining: 4, reset: 2026-10-05T12:00:00Z", 3),
            ("limit=5&left=4", 2),
            ("a:1|b:2", 2),
            (
                r#"{"requests":{"limit":5,"left":4},"reset":7,"list":[1]}"#,
                3,
            ),
            ("100:120,20:1", 0),
            ("60:error;transaction:organization", 0),
            ("Remaining: 5 Time until reset: 30", 0),
            ("Mon, 05 Oct 2026 12:00:00 GMT", 0),
            ("100;w=60", 0),
            ("é:1", 0),
            ("", 0),
        ] {
            assert_eq!(of(value).len(), count, "{value}");
        }
    }
}
