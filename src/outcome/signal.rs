//! What a report says of how the call went, as far as limits are concerned.

use super::Report;

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The upstream held it back, or held back one of its tries.
    Throttled,
    /// The upstream took it.
    Served,
    /// Nothing can be learned of it: no outcome, or a failure of another kind.
    Silent,
}

impl Signal {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Served => "served",
            Self::Silent => "silent",
        }
    }
}

impl Report {
    /// Whether the upstream held the call back: the one rule, for the gate, for
    /// learning, and for what is counted and shown. It says so by 429, 503 or 529;
    /// by 403 beside a hint or an exhausted window, since 403 alone is a matter of
    /// rights; by 429s that the caller counted; by a hint where no status speaks
    /// against it.
    pub fn is_throttled(&self) -> bool {
        let is_hinted = self.rate.retry_after.is_some();
        let is_told = match self.status {
            Some(429 | 503 | 529) => true,
            Some(403) => is_hinted || self.rate.is_exhausted(),
            Some(_) => false,
            None => is_hinted,
        };
        is_told || self.throttled.is_some_and(|count| count > 0)
    }

    pub fn signal(&self) -> Signal {
        match (self.status, self.throttled) {
            _ if self.is_throttled() => Signal::Throttled,
            (Some(100..500), _) | (None, Some(0)) => Signal::Served,
            _ => Signal::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::time::Span;

    const HINT: Span = Span::from_ms(5);
    const RESET: Span = Span::from_ms(700);

    /// What stands in the report beside status and count.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Window {
        Unsaid,
        Left,
        Exhausted,
        TokensExhausted,
        /// Nothing is left, and nobody knows until when.
        Endless,
    }

    fn report(
        status: Option<u16>,
        throttled: Option<u64>,
        is_hinted: bool,
        window: Window,
    ) -> Report {
        let mut report = Report {
            status,
            throttled,
            ..Report::default()
        };
        let rate = &mut report.rate;
        rate.retry_after = is_hinted.then_some(HINT);
        match window {
            Window::Unsaid => {}
            Window::Left => (rate.remaining, rate.reset) = (Some(1), Some(RESET)),
            Window::Exhausted => (rate.remaining, rate.reset) = (Some(0), Some(RESET)),
            Window::TokensExhausted => {
                (rate.token_remaining, rate.token_reset) = (Some(0), Some(RESET));
            }
            Window::Endless => rate.remaining = Some(0),
        }
        report
    }

    #[test]
    fn one_rule_says_what_is_throttled_to_learning_and_to_the_gate() {
        use Window::{Endless, Exhausted, Left, TokensExhausted, Unsaid};
        let windows = [Unsaid, Left, Exhausted, TokensExhausted, Endless];
        let statuses = [200, 302, 400, 403, 404, 429, 500, 502, 503, 529, 599];
        let statuses = statuses.into_iter().map(Some).chain([None]);
        for status in statuses {
            for window in windows {
                for is_hinted in [false, true] {
                    for throttled in [None, Some(0), Some(2)] {
                        let report = report(status, throttled, is_hinted, window);
                        let is_empty = matches!(window, Exhausted | TokensExhausted | Endless);
                        let is_throttled = match (status, throttled) {
                            (_, Some(2)) | (Some(429 | 503 | 529), _) => true,
                            (Some(403), _) => is_hinted || is_empty,
                            (None, _) => is_hinted,
                            _ => false,
                        };
                        let signal = match status {
                            _ if is_throttled => Signal::Throttled,
                            Some(500..) => Signal::Silent,
                            None if throttled.is_none() => Signal::Silent,
                            _ => Signal::Served,
                        };
                        assert_eq!(report.signal(), signal, "{report:?}");
                        let hint = Some(HINT).filter(|_| is_hinted && is_throttled);
                        let reset = matches!(window, Exhausted | TokensExhausted);
                        let reset = Some(RESET).filter(|_| reset);
                        assert_eq!(report.closes_gate_for(), hint.max(reset), "{report:?}");
                    }
                }
            }
        }
    }
}
