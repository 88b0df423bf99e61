//! What the words of a header's name add up to: the role of its value, and
//! whether the name is one of limits at all.
//!
//! The order of words matters only where two of them could be the value; names
//! of vendors never matter here.

use super::names::{Role, Unit};
use super::vocabulary::{Word, words};

/// What the words of a name add up to.
#[derive(Default)]
pub struct Sum {
    said: Vec<Word>,
    /// The last of limit, use and window is what the value is.
    ends_in: Option<Word>,
    /// Behind the word for a limit stands one of a vendor.
    has_unknown_after: bool,
    /// `until`, `time-left`: the value counts down.
    is_until: bool,
    pub has_x: bool,
    pub window_ms: Option<u64>,
    pub unit_ms: Option<u64>,
    pub scope: Vec<String>,
}

impl Sum {
    pub fn of(name: &str) -> Option<Self> {
        let mut sum = Self::default();
        let words = words(name);
        let mut before: Option<Word> = None;
        let mut number = None;
        let mut rest = words.iter().peekable();
        while let Some((word, text)) = rest.next() {
            let next = rest.peek().and_then(|(word, _)| *word);
            match word {
                Some(Word::Rate) if next == Some(Word::Limit) => {
                    rest.next();
                    sum.mark();
                }
                Some(Word::Marker) => sum.mark(),
                Some(Word::Deny) => return None,
                // Of a window rather than of a body.
                Some(Word::Other) if is_extent(text) && is_beside(&words, Word::Window) => {}
                // `bucket-size`: what it holds.
                Some(Word::Other) if is_extent(text) && is_of_bucket(&words) => {
                    sum.add(Word::Max, text);
                }
                // `rate-limit-unit: minute`
                Some(Word::Other) if *text == "unit" && sum.is_marked() && next.is_none() => {
                    sum.add(Word::Window, text);
                }
                // `tokens_usage_based` is a kind of budget, and used up by nobody.
                Some(Word::Used) if rest.peek().is_some_and(|(_, text)| *text == "based") => {
                    sum.add_scope(text);
                }
                Some(Word::Token) if is_credential(before, text, &words) => sum.add_scope(text),
                Some(Word::Span(ms)) => {
                    sum.window_ms = Some(ms.saturating_mul(number.unwrap_or(1)));
                }
                // `per-10-seconds` is a window, `reset-seconds` a unit.
                Some(Word::Unit(ms)) => match number {
                    Some(count) => sum.window_ms = Some(ms.saturating_mul(count)),
                    None => sum.add_unit(*ms, text),
                },
                Some(word) => sum.add(*word, text),
                None => sum.add_scope(text),
            }
            number = match word {
                Some(Word::Number(number)) => Some(*number),
                _ => None,
            };
            before = *word;
        }
        // `ratelimit-per`: of which window, is in the value.
        if before == Some(Word::Per) {
            sum.ends_in = before;
        }
        Some(sum)
    }

    pub fn has(&self, word: Word) -> bool {
        self.said.contains(&word)
    }

    fn has_any(&self, words: &[Word]) -> bool {
        words.iter().any(|word| self.has(*word))
    }

    fn mark(&mut self) {
        self.said.push(Word::Marker);
        self.has_unknown_after = false;
    }

    fn is_marked(&self) -> bool {
        self.has_any(&[Word::Marker, Word::Quota])
    }

    fn is_limit(&self) -> bool {
        self.has_any(&[Word::Limit, Word::Max, Word::Total])
    }

    fn add_scope(&mut self, text: &str) {
        self.has_unknown_after = true;
        self.put_scope(text);
    }

    /// Sorted: the order of words is the vendors' taste.
    fn put_scope(&mut self, text: &str) {
        let place = self.scope.iter().take_while(|word| word.as_str() < text);
        self.scope.insert(place.count(), text.to_owned());
    }

    /// `ms` at the front is Microsoft.
    fn add_unit(&mut self, ms: u64, text: &str) {
        const BEFORE: [Word; 5] = [
            Word::Marker,
            Word::Retry,
            Word::Reset,
            Word::Window,
            Word::Limit,
        ];
        if text != "ms" || self.has_any(&BEFORE) {
            self.unit_ms = Some(ms);
        }
    }

    /// Whether a clock time in the value is a span: `resets-after`,
    /// `time-until-reset`, `retry-after`.
    pub fn is_countdown(&self) -> bool {
        self.is_until || self.has(Word::After) || self.has(Word::Retry)
    }

    fn add(&mut self, word: Word, text: &str) {
        self.is_until |= text == "until" || word == Word::Remaining;
        self.said.push(word);
        match word {
            Word::Limit | Word::Max | Word::Total => self.ends_in = Some(Word::Limit),
            Word::Used | Word::Window | Word::Reset => self.ends_in = Some(word),
            Word::Part => self.put_scope(text),
            Word::Requests(ms) => {
                self.said.push(Word::Request);
                self.window_ms = Some(ms);
            }
            Word::Tokens(ms) => {
                self.said.push(Word::Token);
                self.window_ms = Some(ms);
            }
            Word::Scope => self.add_scope(text),
            Word::Filler if text == "x" => self.has_x = true,
            _ => {}
        }
    }

    pub fn unit(&self) -> Option<Unit> {
        Some(match self {
            _ if self.has(Word::Concurrent) => Unit::Concurrency,
            _ if self.has(Word::Other) => Unit::Other,
            _ if self.has(Word::Token) && self.has(Word::Part) => Unit::TokenPart,
            _ if self.has(Word::Token) => Unit::Tokens,
            _ if self.has(Word::Request) => Unit::Requests,
            _ => return None,
        })
    }

    /// The role, and whether only the value can tell that it is one.
    pub fn role(&self) -> Option<(Role, bool)> {
        if self.has(Word::Retry) {
            let is_hint = self.has(Word::After)
                || (self.is_marked() && !self.has(Word::Used) && !self.has(Word::Max));
            return is_hint.then_some((Role::RetryAfter, false));
        }
        let role = self.wanted_role()?;
        let is_weak = !self.is_marked() && !self.is_evident(role)?;
        // `x-total-remaining` can be of pages.
        (!(is_weak && self.has(Word::Total))).then_some((role, is_weak))
    }

    fn wanted_role(&self) -> Option<Role> {
        let is_limit = self.is_limit();
        Some(match self {
            _ if self.has(Word::Policy) => self.is_marked().then_some(Role::Policy)?,
            // `renewal-period`
            _ if self.has(Word::Window)
                && self.ends_in == Some(Word::Window)
                && self.has_any(&[Word::Reset, Word::Expires]) =>
            {
                Role::Window
            }
            _ if self.has(Word::Reset) || self.has(Word::Expires) => Role::Reset,
            _ if self.has(Word::Refill) => Role::Refill,
            // The time that is left, rather than calls.
            _ if self.has(Word::Remaining)
                && self.unit().is_none()
                && (self.unit_ms.is_some() || (self.has(Word::Time) && self.is_marked())) =>
            {
                Role::Reset
            }
            _ if self.has(Word::Remaining) && !self.has(Word::Time) => Role::Remaining,
            // What this one call used is no state.
            _ if self.has(Word::Used) && self.has(Word::Current) => return None,
            _ if self.ends_in == Some(Word::Per) && self.window_ms.is_none() => Role::Window,
            _ if self.has(Word::Window) && (self.ends_in == Some(Word::Window) || !is_limit) => {
                Role::Window
            }
            _ if self.has(Word::Time) => return None,
            _ if self.has(Word::Used) && self.ends_in == Some(Word::Used) => Role::Used,
            _ if self.has(Word::Current) && !is_limit => Role::Used,
            _ if is_limit || self.has(Word::Quota) => Role::Limit,
            // `ratelimit-delay`: how long this call was held up.
            _ if self.has(Word::After) || self.unit_ms.is_some() => return None,
            _ if self.is_marked() && !self.has_unknown_after => Role::State,
            _ if self.is_marked() => Role::Entry,
            _ => return None,
        })
    }

    /// Whether a name without `ratelimit` in it is one of limits; `None`: not
    /// even where the value looks like it.
    fn is_evident(&self, role: Role) -> Option<bool> {
        match role {
            Role::Limit | Role::Remaining | Role::Used => {}
            // `token-expires`, `request-duration`.
            Role::Reset => {
                let is_counted = self.has(Word::Request)
                    || self.has(Word::Token)
                    || self.has(Word::Concurrent)
                    || self.has(Word::Limit);
                return self.has(Word::Reset).then_some(is_counted);
            }
            _ => return None,
        }
        let is_said = self.has(Word::Limit) || self.has(Word::Remaining) || self.has(Word::Used);
        Some(match self {
            _ if self.has(Word::Other) => return None,
            _ if self.has(Word::Concurrent) => true,
            // `burstlimit-limit`, `api-limit-remaining`
            _ if self.has(Word::Limit) && self.has(Word::Remaining) => true,
            _ if self
                .said
                .iter()
                .filter(|word| **word == Word::Limit)
                .count()
                > 1 =>
            {
                true
            }
            _ if self.has(Word::Request) => {
                is_said || self.has(Word::Max) || self.has(Word::Current)
            }
            // A model's `max-tokens` is no budget.
            _ if self.has(Word::Token) || self.has(Word::Api) => {
                self.has(Word::Limit) || self.has(Word::Remaining)
            }
            _ => self.window_ms.is_some() && (self.has(Word::Limit) || self.has(Word::Remaining)),
        })
    }
}

fn is_extent(text: &str) -> bool {
    matches!(text, "size" | "length")
}

fn is_beside(words: &[(Option<Word>, &str)], wanted: Word) -> bool {
    words.iter().any(|(word, _)| *word == Some(wanted))
}

fn is_of_bucket(words: &[(Option<Word>, &str)]) -> bool {
    words
        .iter()
        .any(|(_, text)| matches!(*text, "bucket" | "burst"))
}

/// Whether `token` means a credential here.
fn is_credential(before: Option<Word>, text: &str, words: &[(Option<Word>, &str)]) -> bool {
    const OWNERS: [&str; 11] = [
        "access", "auth", "bearer", "personal", "session", "refresh", "csrf", "oauth", "user",
        "client", "api",
    ];
    let is_owned = matches!(before, Some(Word::Api | Word::Per | Word::Scope))
        || words.iter().any(|(_, word)| OWNERS.contains(word));
    text == "token" && is_owned
}
