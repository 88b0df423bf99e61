//! Where vendors go by rules of their own: names that mean something else to
//! them, and values of a form that nobody else has.
//!
//! The one place that knows a vendor by name. The general rules ask here, and
//! each question says what it is that no rule by words or forms could tell.

use super::names::{Name, Role};
use crate::governor::time::{Millis, Span};
use crate::outcome::durations::{Decimal, MINUTE, When};

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

/// What a name, in lower case and with dashes, means to those who use it.
pub fn meant(name: String) -> String {
    // ip-api.com: what is left, in as few letters as can be.
    if name == "x-rl" {
        return "x-rl-remaining".to_owned();
    }
    match ALIASES.iter().find(|(part, _)| name.contains(part)) {
        Some((part, meant)) => name.replacen(part, meant, 1),
        None => name,
    }
}

/// What a name means beside the others of its response: ip-api.com counts down
/// in a header that elsewhere belongs to caches.
pub fn beside(name: &str, has: impl Fn(&str) -> bool) -> &str {
    if name == "x-ttl" && has("x-rl") {
        return "x-rl-reset";
    }
    name
}

/// Sets right what was read of a name. `false`: it is not to be read.
pub fn correct(name: &mut Name) -> bool {
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

/// `HubSpot` tells of its day for information; what it enforces from call to call
/// is the interval.
pub fn is_secondary(scope: &str, window_ms: Option<u64>) -> bool {
    is_of("hubspot", scope) && window_ms.is_some()
}

/// Amazon's limits are calls a second, `2.0` as well as `0.5`.
pub fn speaks_in_rates(scope: &str) -> bool {
    is_of("amzn", scope)
}

fn is_of(vendor: &str, scope: &str) -> bool {
    scope.split('-').any(|word| word == vendor)
}

/// Meta's wait, in minutes, in the JSON of what was used: the longest of all
/// the uses that it tells of.
pub fn wait_in_usage(value: &str) -> Option<Span> {
    let waits = value.split("_to_regain_access\":").skip(1);
    let minutes = waits.filter_map(number).filter(|wait| !wait.is_zero());
    let spans = minutes.filter_map(|number| When::In(number.times(MINUTE)).from(Millis::EPOCH));
    spans.max()
}

/// The plain decimal at the start of a text.
fn number(text: &str) -> Option<Decimal> {
    let text = text.trim_start();
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    Decimal::parse(text.get(..end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_in_what_was_used_is_the_longest_and_never_cut() {
        let wait = |value: &str| wait_in_usage(value).map(Span::ms);
        let one = r#"{"1":[{"estimated_time_to_regain_access":1.5}]}"#;
        assert_eq!(wait(one), Some(90_000));
        let two = r#"{"1":[{"estimated_time_to_regain_access": 2},{"estimated_time_to_regain_access":19}]}"#;
        assert_eq!(wait(two), Some(1_140_000));
        assert_eq!(wait(r#"{"estimated_time_to_regain_access":0}"#), None);
        assert_eq!(wait("_to_regain_access\":"), None);
    }
}
