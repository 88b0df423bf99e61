//! From the name of a header to what its value says: which budget, and which of
//! its numbers.
//!
//! General rules first: the words decide, in any order, with any prefix. Where a
//! vendor's use of a word is its own, `quirks` names the vendor.

use super::vocabulary::{Word, words};

/// What the value of a header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Limit,
    Remaining,
    Used,
    Reset,
    Window,
    Refill,
    RetryAfter,
    /// `RateLimit-Policy`.
    Policy,
    /// Only named after the limit: a limit, or all of it in one value.
    State,
    /// All of it in one value, or nothing.
    Entry,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    #[default]
    Requests,
    Tokens,
    /// Of the input, or of the output.
    TokenPart,
    Concurrency,
    Other,
}

/// A name that has to do with limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub role: Role,
    /// What is counted, where the name says so; else requests.
    pub unit: Option<Unit>,
    /// The window that the name states, in milliseconds.
    pub window_ms: Option<u64>,
    /// The unit of a time in the value, in milliseconds.
    pub unit_ms: Option<u64>,
    /// The value is never a moment.
    pub is_span: bool,
    /// Nothing but a value of the form `used/limit` makes it a rate header.
    pub is_weak: bool,
    pub has_x: bool,
    /// Whose budget: the words that say nothing else.
    pub scope: String,
}

/// Names are longer than this only to be long.
const LONGEST: usize = 128;

/// What the words of a name add up to.
#[derive(Default)]
struct Sum {
    said: Vec<Word>,
    /// The last of limit, use and window is what the value is.
    ends_in: Option<Word>,
    /// Behind the word for a limit stands one of a vendor.
    has_unknown_after: bool,
    has_x: bool,
    window_ms: Option<u64>,
    unit_ms: Option<u64>,
    scope: Vec<String>,
}

/// `None`: no header about limits.
pub fn read(name: &str) -> Option<Name> {
    if name.len() > LONGEST {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let sum = Sum::of(&lower)?;
    let (role, is_weak) = sum.role()?;
    let mut name = Name {
        role,
        unit: sum.unit(),
        window_ms: sum.window_ms,
        unit_ms: sum.unit_ms,
        is_span: sum.has(Word::After) && role == Role::Reset,
        is_weak,
        has_x: sum.has_x,
        scope: sum.scope.join("-"),
    };
    quirks(&mut name).then_some(name)
}

/// Where vendors go by rules of their own. `false`: not to be read.
fn quirks(name: &mut Name) -> bool {
    // Deprecated and not enforced; the interval is.
    if is_of("hubspot", &name.scope) && name.window_ms == Some(1000) {
        return false;
    }
    // KuCoin counts down in milliseconds.
    if is_of("gw", &name.scope) && name.role == Role::Reset {
        name.unit_ms = Some(1);
    }
    true
}

fn is_of(vendor: &str, scope: &str) -> bool {
    scope.split('-').any(|word| word == vendor)
}

/// `HubSpot` tells of its day for information; what it enforces from call to call
/// is the interval.
pub fn is_secondary(scope: &str, window_ms: Option<u64>) -> bool {
    is_of("hubspot", scope) && window_ms.is_some()
}

impl Sum {
    fn of(name: &str) -> Option<Self> {
        let mut sum = Self::default();
        let words = words(name);
        let is_bybit = words.iter().any(|(_, text)| *text == "bapi");
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
                // Bybit: `X-Bapi-Limit`, `-Status` (what is left), `-Reset-Timestamp`.
                Some(Word::Limit) if is_bybit => sum.mark(),
                Some(Word::Deny) if is_bybit && *text == "status" => sum.said.push(Word::Remaining),
                Some(Word::Deny) => return None,
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
        sum.scope.sort_unstable();
        Some(sum)
    }

    fn has(&self, word: Word) -> bool {
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
        self.scope.push(text.to_owned());
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

    fn add(&mut self, word: Word, text: &str) {
        self.said.push(word);
        match word {
            Word::Limit | Word::Max | Word::Total => self.ends_in = Some(Word::Limit),
            Word::Used | Word::Window => self.ends_in = Some(word),
            Word::Part => self.scope.push(text.to_owned()),
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

    fn unit(&self) -> Option<Unit> {
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
    fn role(&self) -> Option<(Role, bool)> {
        if self.has(Word::Retry) {
            let is_hint = self.has(Word::After)
                || (self.is_marked() && !self.has(Word::Used) && !self.has(Word::Max));
            return is_hint.then_some((Role::RetryAfter, false));
        }
        let role = self.wanted_role()?;
        Some((role, !self.is_marked() && !self.is_evident(role)?))
    }

    fn wanted_role(&self) -> Option<Role> {
        let is_limit = self.is_limit();
        Some(match self {
            _ if self.has(Word::Policy) => self.is_marked().then_some(Role::Policy)?,
            _ if self.has(Word::Reset) || self.has(Word::Expires) => Role::Reset,
            _ if self.has(Word::Refill) => Role::Refill,
            // The time that is left, rather than calls.
            _ if self.has(Word::Remaining) && self.unit_ms.is_some() && self.unit().is_none() => {
                Role::Reset
            }
            _ if self.has(Word::Remaining) && !self.has(Word::Time) => Role::Remaining,
            // What this one call used is no state.
            _ if self.has(Word::Used) && self.has(Word::Current) => return None,
            _ if self.has(Word::Window) && (self.ends_in == Some(Word::Window) || !is_limit) => {
                Role::Window
            }
            _ if self.has(Word::Time) => return None,
            _ if self.has(Word::Used) && self.ends_in == Some(Word::Used) => Role::Used,
            _ if self.has(Word::Current) && !is_limit => Role::Used,
            _ if is_limit || self.has(Word::Quota) => Role::Limit,
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
                    || (self.has(Word::Api) && self.has(Word::Limit));
                return (is_counted && self.has(Word::Reset)).then_some(true);
            }
            _ => return None,
        }
        let is_said = self.has(Word::Limit) || self.has(Word::Remaining) || self.has(Word::Used);
        Some(match self {
            _ if self.has(Word::Other) => return None,
            _ if self.has(Word::Concurrent) => true,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn short(name: &str) -> String {
        match read(name) {
            None => "-".to_owned(),
            Some(name) => {
                let some = |before: &str, ms: Option<u64>| {
                    ms.map_or(String::new(), |ms| format!("{before}{ms}"))
                };
                let scope = match name.scope.as_str() {
                    "" => String::new(),
                    scope => format!(" of {scope}"),
                };
                format!(
                    "{:?} {:?}{}{}{}{scope}",
                    name.role,
                    name.unit.unwrap_or_default(),
                    some(" ", name.window_ms),
                    some(" in ", name.unit_ms),
                    if name.is_weak { "?" } else { "" },
                )
            }
        }
    }

    #[test]
    fn words_decide_in_any_order_case_and_separation() {
        for (name, expected) in [
            ("X-RateLimit-Limit", "Limit Requests"),
            ("x_rate_limit_limit", "Limit Requests"),
            ("X-Rate-Limit", "State Requests"),
            ("X-RateLimit-Requests-Remaining", "Remaining Requests"),
            ("x-ratelimit-remaining-requests", "Remaining Requests"),
            ("X-RateLimit-ResetTime", "Reset Requests"),
            ("x-rate-limit-reset-ms", "Reset Requests in 1"),
            ("X-RateLimit-Limit-Minute", "Limit Requests 60000"),
            ("x-limit-per-second", "Limit Requests 1000"),
            ("x-remaining-today", "Remaining Requests 86400000"),
            ("x-ratelimit-limit-per-10-seconds", "Limit Requests 10000"),
            ("X-MinLimit-Remaining", "Remaining Requests 60000"),
            ("x-ratelimit-limit-tpm", "Limit Tokens 60000"),
            (
                "acme-ratelimit-input-tokens-limit",
                "Limit TokenPart of acme-input",
            ),
            (
                "x-ratelimit-limit-tokens_usage_based",
                "Limit Tokens of based-usage",
            ),
            ("maximum-concurrent-requests", "Limit Concurrency"),
            ("current-concurrent-requests", "Used Concurrency"),
            ("x-ms-retry-after-ms", "RetryAfter Requests in 1"),
            ("x-ms-retry-after", "RetryAfter Requests"),
            ("x-rate-limit-api-token-max", "Limit Requests of token"),
            ("sforce-limit-info", "Limit Requests? of sforce"),
            ("RateLimit-Policy", "Policy Requests"),
            ("Beta-RateLimit", "State Requests of beta"),
            ("X-Bapi-Limit-Status", "Remaining Requests of bapi"),
            (
                "x-ms-ratelimit-remaining-subscription-reads",
                "Remaining Requests of reads-subscription",
            ),
        ] {
            assert_eq!(short(name), expected, "{name}");
        }
    }

    #[test]
    fn look_alikes_are_no_counts() {
        for name in [
            "x-request-limit-note",
            "x-ratelimit-nearlimit",
            "x-ratelimit-over-limit",
            "ratelimit-reason",
            "x-token-expires-in",
            "twilio-request-duration",
            "x-ratelimit-used-currentrequest",
            "x-ratelimit-requested-tokens",
            "age",
            "x-ms-ratelimit-time-remaining-xrm-requests",
            "x-request-size-limit",
            "x-retry-count",
            "x-ratelimit-limit-percent",
            "content-length",
            "stripe-should-retry",
        ] {
            assert_eq!(short(name), "-", "{name}");
        }
        for name in [
            "x-limit",
            "x-total-remaining",
            "x-app-usage",
            "content-limit",
        ] {
            assert!(read(name).is_none_or(|name| name.is_weak), "{name}");
        }
    }
}
