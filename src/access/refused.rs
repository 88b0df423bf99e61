//! Tokens of operators and refresh tokens that were refused, gathered: an attack
//! must not become as many calls, lines and entries.

use crate::governor::time::{Millis, Span};

/// What was shown and refused. Access keys are not among them: whoever tries to
/// acquire is in a source's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    Admin,
    /// One that this deployment never wrote for the source that was named.
    Refresh,
}

impl Credential {
    pub const ALL: [Self; 2] = [Self::Admin, Self::Refresh];

    /// The place among [`Self::ALL`].
    pub const fn place(self) -> usize {
        self as usize
    }

    /// The word between Worker and directory, and in what is stored.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Refresh => "refresh",
        }
    }

    /// The word in the audit log.
    pub const fn action(self) -> &'static str {
        match self {
            Self::Admin => "admin_refused",
            Self::Refresh => "refresh_refused",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// So many refusals, and the last of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    pub count: u32,
    pub ip: Option<Box<str>>,
    /// The source that was named, if any was; it may not exist.
    pub source: Option<String>,
}

/// Refusals on their way to the directory.
#[derive(Debug)]
pub struct Gathered {
    since: Millis,
    refusals: Refusals,
}

impl Gathered {
    /// Those that were not told by then have lost who was to tell them.
    const OVERDUE: Span = Span::from_seconds(30);

    pub const fn none() -> Self {
        Self {
            since: Millis::EPOCH,
            refusals: Refusals {
                count: 0,
                ip: None,
                source: None,
            },
        }
    }

    /// True if they are to be told now: the first is, with those that come until
    /// then.
    pub fn note(&mut self, now: Millis, refused: Refusals) -> bool {
        let is_first = self.since == Millis::EPOCH || now.since(self.since) > Self::OVERDUE;
        if is_first {
            self.since = now;
        }
        self.refusals = Refusals {
            count: self.refusals.count.saturating_add(refused.count),
            ..refused
        };
        is_first
    }

    pub fn take(&mut self) -> Refusals {
        self.since = Millis::EPOCH;
        std::mem::take(&mut self.refusals)
    }

    /// They could not be told: they are in what is told next.
    pub fn put_back(&mut self, refused: Refusals) {
        let count = self.refusals.count.saturating_add(refused.count);
        if self.refusals.count == 0 {
            self.refusals = refused;
        }
        self.refusals.count = count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(ip: &str) -> Refusals {
        Refusals {
            count: 1,
            ip: Some(ip.into()),
            source: None,
        }
    }

    #[test]
    fn a_burst_is_told_once_with_its_count_and_its_last() {
        let at = Millis::from_epoch;
        let mut gathered = Gathered::none();
        assert!(gathered.note(at(1000), from("::1")));
        assert!(!gathered.note(at(1001), from("::2")));
        let told = gathered.take();
        assert_eq!((told.count, told.ip.as_deref()), (2, Some("::2")));
        assert!(gathered.note(at(1002), from("::3")), "the next burst");
    }

    #[test]
    fn what_could_not_be_told_is_in_the_next() {
        let at = Millis::from_epoch;
        let mut gathered = Gathered::none();
        gathered.note(at(1000), from("::1"));
        let lost = gathered.take();
        gathered.put_back(lost);
        assert!(gathered.note(at(2000), from("::2")));
        // Its teller was cut off: another one is sent.
        assert!(!gathered.note(at(32_000), from("::3")));
        assert!(gathered.note(at(32_001), from("::4")));
        let told = gathered.take();
        assert_eq!((told.count, told.ip.as_deref()), (4, Some("::4")));
    }

    #[test]
    fn credentials_have_words_and_places_of_their_own() {
        for (place, credential) in Credential::ALL.into_iter().enumerate() {
            assert_eq!(credential.place(), place);
            assert_eq!(Credential::of_word(credential.word()), Some(credential));
        }
    }
}
