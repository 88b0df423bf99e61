//! What an upstream said of its limits, in nine fields.

use crate::governor::time::Span;

/// The normal form of `rate` and of rate headers. `None`: not said, or said in
/// a way that can't be read; never zero by guess.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Requests in a window, at least 1.
    pub limit: Option<u64>,
    /// Requests left in the window that governs.
    pub remaining: Option<u64>,
    /// When that window begins anew, from now.
    pub reset: Option<Span>,
    /// Tokens in a window, at least 1.
    pub token_limit: Option<u64>,
    /// Tokens left in the window that governs.
    pub token_remaining: Option<u64>,
    /// When that window begins anew, from now.
    pub token_reset: Option<Span>,
    /// The hint when to come back, from now; kept apart from the resets.
    pub retry_after: Option<Span>,
    /// The length of the window that `limit` speaks of, where it was stated.
    pub window: Option<Span>,
    /// Calls at once, at least 1.
    pub concurrency_limit: Option<u64>,
}

impl Rate {
    /// Nothing is left of the requests or of the tokens.
    pub fn is_exhausted(&self) -> bool {
        self.remaining == Some(0) || self.token_remaining == Some(0)
    }

    /// How long an exhausted window stays so: nothing is left of the requests or
    /// of the tokens, and the upstream said until when.
    pub fn exhausted_for(&self) -> Option<Span> {
        let of = |remaining, reset: Option<Span>| match remaining {
            Some(0) => reset.filter(|span| !span.is_zero()),
            _ => None,
        };
        let requests = of(self.remaining, self.reset);
        requests.max(of(self.token_remaining, self.token_reset))
    }
}
