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
    /// Throttling comes as 429, 503 or 529, as a count of 429s that the caller
    /// saw, as a hint without a status, and as 403 beside a hint or an exhausted
    /// window.
    pub fn signal(&self) -> Signal {
        let is_hinted = self.rate.retry_after.is_some();
        match (self.status, self.throttled) {
            (_, Some(1..)) | (Some(429 | 503 | 529), _) => Signal::Throttled,
            (Some(403), _) if is_hinted || self.rate.remaining == Some(0) => Signal::Throttled,
            (None, None) if is_hinted => Signal::Throttled,
            (Some(100..500), _) | (None, Some(0)) => Signal::Served,
            _ => Signal::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::time::Span;

    #[test]
    fn a_report_is_throttled_served_or_silent() {
        for (status, throttled, hint, signal) in [
            (None, None, false, Signal::Silent),
            (None, Some(0), false, Signal::Served),
            (None, None, true, Signal::Throttled),
            (Some(200), None, false, Signal::Served),
            (Some(200), Some(1), false, Signal::Throttled),
            (Some(404), None, true, Signal::Served),
            (Some(403), None, false, Signal::Served),
            (Some(403), None, true, Signal::Throttled),
            (Some(429), Some(0), false, Signal::Throttled),
            (Some(503), None, false, Signal::Throttled),
            (Some(500), None, false, Signal::Silent),
            (Some(502), Some(0), false, Signal::Silent),
        ] {
            let mut report = Report {
                status,
                throttled,
                ..Report::default()
            };
            report.rate.retry_after = hint.then_some(Span::from_ms(5));
            assert_eq!(report.signal(), signal, "{report:?}");
        }
    }
}
