//! How long a key set is fresh, as its server says, within bounds.

use crate::governor::time::Span;

/// How long a set is fresh where its server doesn't say.
const DEFAULT_LIFETIME: Span = Span::from_seconds(600);
const LEAST_LIFETIME: Span = Span::from_seconds(60);
const MOST_LIFETIME: Span = Span::from_seconds(3600);

/// How long a set is fresh, by the `Cache-Control` and `Age` of its answer.
pub fn lifetime(cache_control: Option<&str>, age: Option<&str>) -> Span {
    let directives = cache_control.unwrap_or_default().split(',').map(str::trim);
    let mut lifetime = DEFAULT_LIFETIME;
    for directive in directives {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        if name.eq_ignore_ascii_case("no-store") || name.eq_ignore_ascii_case("no-cache") {
            return LEAST_LIFETIME;
        }
        if name.eq_ignore_ascii_case("max-age") {
            lifetime = seconds(value.trim_matches('"')).unwrap_or(LEAST_LIFETIME);
            let age = age.and_then(|age| seconds(age.trim()));
            lifetime = lifetime.less(age.unwrap_or(Span::ZERO));
        }
    }
    lifetime.max(LEAST_LIFETIME).min(MOST_LIFETIME)
}

fn seconds(text: &str) -> Option<Span> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // More digits than fit are a long time.
    plain.then(|| Span::from_seconds(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_fresh_as_long_as_its_server_says_within_bounds() {
        for (cache_control, age, seconds) in [
            (None, None, 600),
            (Some(""), None, 600),
            (Some("public"), None, 600),
            (Some("max-age=900"), None, 900),
            (Some("public, Max-Age = 900, must-revalidate"), None, 600),
            (Some("public,MAX-AGE=900,immutable"), None, 900),
            (Some("max-age=\"900\""), None, 900),
            (Some("max-age=900"), Some("300"), 600),
            (Some("max-age=900"), Some("899"), 60),
            (Some("max-age=900"), Some("9000"), 60),
            (Some("max-age=900"), Some("x"), 900),
            (Some("max-age=0"), None, 60),
            (Some("max-age=59"), None, 60),
            (Some("max-age=-1"), None, 60),
            (Some("max-age=x"), None, 60),
            (Some("max-age"), None, 60),
            (Some("max-age=86400"), None, 3600),
            (Some("max-age=99999999999999999999999"), None, 3600),
            (Some("no-store, max-age=900"), None, 60),
            (Some("max-age=900, no-cache"), None, 60),
            (Some("s-maxage=900"), None, 600),
        ] {
            let expected = Span::from_seconds(seconds);
            assert_eq!(
                lifetime(cache_control, age),
                expected,
                "{cache_control:?} {age:?}"
            );
        }
    }
}
