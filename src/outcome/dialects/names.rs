//! From the name of a header to what its value says: which budget, and which of
//! its numbers.
//!
//! General rules first: the words decide, in any order, with any prefix. Where a
//! vendor's use of a word is its own, `vendors` knows it.

use super::sums::Sum;
use super::vendors;
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

/// Headers of one response that come from different hands are told apart by how
/// they spell the same thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Family {
    pub has_x: bool,
    /// It says `quota` where others say `ratelimit`.
    pub is_quota: bool,
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
    /// A clock time in the value counts down.
    pub is_countdown: bool,
    /// Nothing but a value of the form `used/limit` makes it a rate header.
    pub is_weak: bool,
    pub family: Family,
    /// Whose budget: the words that say nothing else.
    pub scope: String,
}

/// Names are longer than this only to be long.
const LONGEST: usize = 128;

/// `None`: no header about limits.
pub fn read(name: &str) -> Option<Name> {
    if name.len() > LONGEST {
        return None;
    }
    let plain = name.to_ascii_lowercase().replace('_', "-");
    let mut sum = Sum::of(&vendors::meant(plain))?;
    let (role, is_weak) = sum.role()?;
    // `period-in-sec`: the unit of the value, rather than a window.
    let is_time = matches!(role, Role::Window | Role::RetryAfter);
    if is_time || (role == Role::Reset && sum.has(Word::After)) {
        sum.unit_ms = sum.unit_ms.or(sum.window_ms.take());
    }
    let mut name = Name {
        role,
        unit: sum.unit(),
        window_ms: sum.window_ms,
        unit_ms: sum.unit_ms,
        is_span: sum.has(Word::After) && role == Role::Reset,
        is_countdown: sum.is_countdown(),
        is_weak,
        family: Family {
            has_x: sum.has_x,
            is_quota: sum.has(Word::Quota) && !sum.has(Word::Marker),
        },
        scope: sum.scope.join("-"),
    };
    vendors::correct(&mut name).then_some(name)
}

/// Whether a name that is none of a number may have a sentence about limits for
/// its value: `ratelimit-status`.
pub fn may_tell_in_words(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    name.len() <= LONGEST
        && ["limit", "quota", "throttl"]
            .iter()
            .any(|word| lower.contains(word))
}

/// A name without the words that make it none of a number.
pub fn without_denial(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let kept = words(&lower).into_iter();
    let kept = kept.filter(|(word, _)| *word != Some(Word::Deny));
    kept.map(|(_, text)| text).collect::<Vec<_>>().join("-")
}

/// Words of a second tier of service: it has budgets of its own, and the first
/// goes on when they are used up.
const TIERS: [&str; 16] = [
    "priority",
    "batch",
    "batches",
    "flex",
    "fast",
    "turbo",
    "context",
    "longcontext",
    "provisioned",
    "ptu",
    "reserved",
    "dedicated",
    "premium",
    "scale",
    "bulk",
    "async",
];

/// Words of a programme that isn't in force yet.
const NOTICES: [&str; 9] = [
    "beta",
    "alpha",
    "preview",
    "experimental",
    "upcoming",
    "planned",
    "shadow",
    "dry",
    "dryrun",
];

fn has_one(words: &[&str], scope: &str) -> bool {
    scope
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Whether a budget is one beside the usual one: another tier's, or one that is
/// only announced. By the words of its name.
pub fn is_aside(scope: &str) -> bool {
    has_one(&TIERS, scope) || is_notice(scope)
}

/// Whether a name tells of what isn't in force yet.
pub fn is_notice(scope: &str) -> bool {
    has_one(&NOTICES, scope)
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
