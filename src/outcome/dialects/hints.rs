//! When to come back: which header's word counts, and in which unit it is.
//!
//! A wait is kept apart from the resets of budgets; neither is filled from the
//! other. It is rounded up wherever it is read.

use super::names::{Name, Role};
use super::{budgets, sentences, values, vendors};
use crate::governor::time::{Millis, Span};
use crate::outcome::durations::{Decimal, MINUTE, SECOND, When};
use crate::outcome::rate::Rate;
use crate::outcome::windows;

/// When to come back, by one header.
#[derive(Clone, Copy)]
pub struct Hint {
    /// From now.
    span: Span,
    /// The lower, the more it counts: `retry-after-ms`, `retry-after`, vendors'.
    rank: u8,
    /// A number without a unit.
    is_bare: bool,
}

impl Hint {
    pub fn read(raw: &str, name: &Name, value: &str, now: Millis) -> Option<Self> {
        match name.role {
            Role::RetryAfter => {}
            Role::Used => return vendors::wait_in_usage(value).map(Self::of_vendor),
            Role::State | Role::Entry => return values::wait_of_list(value).map(Self::of_vendor),
            _ => return None,
        }
        let rank = match raw {
            "retry-after-ms" => 0,
            "retry-after" => 1,
            _ if name.unit_ms == Some(1) => 2,
            _ => 3,
        };
        let one = |text: &str| {
            let text = values::unquoted(text);
            let when = When::parse(text, name.unit_ms, false)
                .or_else(|| budgets::countdown(name, text))
                .or_else(|| sentences::time(text))?;
            when.from(now)
        };
        // Two proxies that each added one: the longer wait pleases both.
        let span = one(value).or_else(|| {
            let times = values::split_times(value);
            times.iter().filter_map(|text| one(text)).max()
        })?;
        let is_bare = name.unit_ms.is_none() && Decimal::parse(value).is_some();
        Some(Self {
            span,
            rank,
            is_bare,
        })
    }

    pub const fn of_vendor(span: Span) -> Self {
        Self {
            span,
            rank: 4,
            is_bare: false,
        }
    }

    /// In milliseconds, where seconds would be absurd: a thousand times the reset
    /// beside it, or far past the window and no round time either.
    pub fn sane(self, rate: &Rate) -> Span {
        let span = self.span;
        let shorter = Span::from_ms(span.ms().div_ceil(1000));
        let is_round = span.ms().is_multiple_of(15 * MINUTE);
        let is_reset = |reset: Span| {
            let slack = if is_round {
                0
            } else {
                reset.ms().div_euclid(10).max(SECOND)
            };
            reset.ms() >= SECOND && shorter.ms().abs_diff(reset.ms()) <= slack
        };
        let mut resets = rate.reset.into_iter().chain(rate.token_reset).peekable();
        let is_absurd = match (resets.peek(), rate.window) {
            (Some(_), _) => resets.any(is_reset),
            (None, Some(window)) => {
                let is_near = shorter.ms().saturating_mul(20) >= window.ms();
                is_near && !is_round && windows::in_ms_if_absurd(span, window) != span
            }
            _ => false,
        };
        if self.is_bare && is_absurd && span.ms() >= 1000 * SECOND {
            shorter
        } else {
            span
        }
    }

    pub fn or_better(self, other: Self) -> Self {
        let is_better = (other.rank, self.span) < (self.rank, other.span);
        if is_better { other } else { self }
    }
}
