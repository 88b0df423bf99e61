//! The cool-down: after an upstream said "not before", nothing is granted
//! until then.
//!
//! A later moment extends it, an earlier one doesn't shorten it, and one report
//! can't close the gate for more than [`LONGEST`].

use super::time::{Millis, Span};

/// The most that one report may ask for.
pub const LONGEST: Span = Span::from_seconds(600);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cooldown {
    until: Option<Millis>,
}

impl Cooldown {
    pub fn restored(until: Option<Millis>) -> Self {
        Self { until }
    }

    /// When the gate opens; `None` if it is open at `now`.
    pub fn opens_at(self, now: Millis) -> Option<Millis> {
        self.until.filter(|until| *until > now)
    }

    /// Opens the gate. True if it was closed at `now`.
    pub fn open(&mut self, now: Millis) -> bool {
        let was_closed = self.opens_at(now).is_some();
        self.until = None;
        was_closed
    }

    /// Closes the gate for `span` from `now`. True if that moved its opening.
    pub fn close(&mut self, now: Millis, span: Span) -> bool {
        let until = now.plus(span.min(LONGEST));
        let later = until > self.until.map_or(now, |u| u.max(now));
        if later {
            self.until = Some(until);
        }
        later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_moment_extends_and_an_earlier_one_does_not_shorten() {
        let now = Millis::from_epoch(1_000);
        let mut gate = Cooldown::default();
        assert!(gate.close(now, Span::from_ms(500)));
        assert!(!gate.close(now, Span::from_ms(400)));
        assert_eq!(gate.opens_at(now), Some(Millis::from_epoch(1_500)));
        assert!(gate.close(now, Span::from_ms(900)));
        assert_eq!(gate.opens_at(now), Some(Millis::from_epoch(1_900)));
        assert_eq!(gate.opens_at(Millis::from_epoch(1_900)), None);
    }

    #[test]
    fn thirty_years_are_ten_minutes() {
        let mut gate = Cooldown::default();
        gate.close(Millis::EPOCH, Span::from_seconds(30 * 365 * 86_400));
        assert_eq!(
            gate.opens_at(Millis::EPOCH),
            Some(Millis::from_epoch(600_000))
        );
    }
}
