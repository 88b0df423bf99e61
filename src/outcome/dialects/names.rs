//! From the name of a header to what its value says: which budget, and which of
//! its numbers.
//!
//! General rules first: the words decide, in any order, with any prefix. Where a
//! vendor's use of a word is its own, `quirks` names the vendor.

use super::sums::Sum;
use super::vocabulary::Word;

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

/// `None`: no header about limits.
pub fn read(name: &str) -> Option<Name> {
    if name.len() > LONGEST {
        return None;
    }
    let mut sum = Sum::of(&plain(name))?;
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
        is_weak,
        has_x: sum.has_x,
        scope: sum.scope.join("-"),
    };
    quirks(&mut name).then_some(name)
}

/// Parts of names that mean something else to their vendors, and what that is.
const ALIASES: [(&str, &str); 8] = [
    // Bybit.
    ("bapi-limit-status", "bapi-ratelimit-remaining"),
    ("bapi-limit", "bapi-ratelimit"),
    // Mistral's older names, of tokens.
    ("ratelimitbysize", "ratelimit-tokens"),
    // Gateways before language models.
    ("x-ai-ratelimit", "x-ai-ratelimit-tokens"),
    // Walmart: tokens of a bucket of calls.
    ("current-token-count", "ratelimit-remaining"),
    ("next-replenish-time", "ratelimit-reset"),
    // Clover: of one credential.
    ("ratelimit-tokenlimit", "ratelimit-client-limit"),
    (
        "ratelimit-tokenconcurrentlimit",
        "ratelimit-concurrent-limit",
    ),
];

fn plain(name: &str) -> String {
    let lower = name.to_ascii_lowercase().replace('_', "-");
    // ip-api.com: what is left, in as few letters as can be.
    if lower == "x-rl" {
        return "x-rl-remaining".to_owned();
    }
    match ALIASES.iter().find(|(part, _)| lower.contains(part)) {
        Some((part, meant)) => lower.replacen(part, meant, 1),
        None => lower,
    }
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
