//! Access keys that were good once: why they aren't any more, and those of them
//! that an isolate need not ask about again.

use crate::governor::ids::KeyId;
use crate::index::Recent;

/// Dead families that an isolate remembers.
pub const MOST_DEAD_KEYS: usize = 4096;

/// Why a validly signed key isn't good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    Expired,
    /// Its family was revoked.
    Revoked,
    /// The source doesn't know its family: it was ended, and perhaps made anew.
    Unknown,
    /// An object of an earlier version doesn't say.
    Untold,
}

impl Death {
    const ALL: [Self; 3] = [Self::Expired, Self::Revoked, Self::Unknown];

    pub fn of_word(word: &str) -> Self {
        let known = Self::ALL.into_iter().find(|death| death.word() == word);
        known.unwrap_or(Self::Untold)
    }

    /// As an object says it to its Worker.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Unknown => "unknown",
            Self::Untold => "untold",
        }
    }
}

/// Families that are dead for good.
pub struct DeadKeys(Recent<Death>);

impl DeadKeys {
    pub const fn new() -> Self {
        Self(Recent::of(MOST_DEAD_KEYS))
    }

    pub fn remember(&mut self, key: KeyId, why: Death) {
        self.0.put(key.0.into(), why);
    }

    /// Why the family is dead, if it is known to be.
    pub fn recall(&mut self, key: KeyId) -> Option<Death> {
        self.0.recall(key.0.into()).copied()
    }
}

impl Default for DeadKeys {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_dies_is_remembered_with_the_reason() {
        let mut dead = DeadKeys::new();
        assert_eq!(dead.recall(KeyId(1)), None);
        for why in Death::ALL {
            assert_eq!(Death::of_word(why.word()), why);
            dead.remember(KeyId(1), why);
            assert_eq!(dead.recall(KeyId(1)), Some(why));
        }
        assert_eq!(Death::of_word(""), Death::Untold);
        assert_eq!(Death::of_word("a word of the future"), Death::Untold);
    }

    #[test]
    fn keys_that_die_push_out_the_one_that_nobody_shows() {
        let mut dead = DeadKeys::new();
        dead.remember(KeyId(0), Death::Revoked);
        for key in 1..=u64::try_from(MOST_DEAD_KEYS).unwrap() {
            dead.remember(KeyId(key), Death::Revoked);
            assert!(dead.recall(KeyId(0)).is_some(), "it is shown all the time");
        }
        assert_eq!(dead.recall(KeyId(1)), None);
        assert_eq!(dead.0.len(), MOST_DEAD_KEYS);
    }
}
