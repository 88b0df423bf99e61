//! Moments and spans in whole milliseconds, with arithmetic that saturates.
//!
//! There is no `now()` here and there never may be one: the core is told the
//! time. Values stay at or below 2^53 − 1, since they travel through
//! JavaScript numbers and JSON.

/// The largest integer that a JavaScript number holds exactly: 2^53 − 1.
pub const MAX_SAFE: u64 = (1 << 53) - 1;

/// A moment: milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(u64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Millis {
    pub const EPOCH: Self = Self(0);

    /// Milliseconds since the epoch, clamped to [`MAX_SAFE`].
    pub const fn from_epoch(ms: u64) -> Self {
        Self(if ms > MAX_SAFE { MAX_SAFE } else { ms })
    }

    pub const fn epoch_ms(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self::from_epoch(self.0.saturating_add(span.0))
    }

    #[must_use]
    pub const fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// A key that sorts by the moment, then by the number.
    pub const fn then(self, number: u64) -> u128 {
        ((self.0 as u128) << 64) | number as u128
    }

    /// The moment of such a key.
    pub const fn of_key(key: u128) -> Self {
        Self((key >> 64) as u64)
    }

    /// How long after `earlier` this is; zero if it isn't after it.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    pub const ZERO: Self = Self(0);

    /// Clamped to [`MAX_SAFE`].
    pub const fn from_ms(ms: u64) -> Self {
        Self(if ms > MAX_SAFE { MAX_SAFE } else { ms })
    }

    pub const fn from_seconds(seconds: u64) -> Self {
        Self::from_ms(seconds.saturating_mul(1000))
    }

    pub const fn ms(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::from_ms(self.0.saturating_add(other.0))
    }

    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Whole seconds, rounded up.
    pub const fn seconds_up(self) -> u64 {
        self.0.div_ceil(1000)
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let end = Millis::from_epoch(u64::MAX);
        assert_eq!(end.epoch_ms(), MAX_SAFE);
        assert_eq!(end.plus(Span::from_ms(u64::MAX)), end);
        assert_eq!(Millis::EPOCH.minus(Span::from_ms(1)), Millis::EPOCH);
        assert_eq!(Millis::EPOCH.since(end), Span::ZERO);
    }

    #[test]
    fn seconds_round_up() {
        assert_eq!(Span::from_ms(0).seconds_up(), 0);
        assert_eq!(Span::from_ms(1).seconds_up(), 1);
        assert_eq!(Span::from_ms(1000).seconds_up(), 1);
        assert_eq!(Span::from_ms(1001).seconds_up(), 2);
    }
}
