//! Refresh tokens traded in: for a new pair, for the same pair again, or for the
//! end of the family.
//!
//! A refresh token is good for one use, and used again it ends the family. But
//! an answer may get lost, or its reader crash before it has written the new
//! pair down: so the token that was traded in last gets its answer again until
//! either of the new pair was seen in use, and not for ever. A token that is no
//! good is so from anywhere; a good one needs an address that may come in.

use super::Family;
use crate::access::refresh::SecretDigest;
use crate::governor::time::{Millis, Span};

/// For how long a retired refresh token at least gets the answer again that it
/// got, while nothing of that answer was seen in use.
const ANSWER_AGAIN: Span = Span::from_seconds(10);

/// A refresh token that is traded in; its MAC was good.
#[derive(Clone, Copy, Debug)]
pub struct Trade {
    pub shown: SecretDigest,
    pub successor: SecretDigest,
    /// Whether the caller's address may have an answer.
    pub is_admitted: bool,
}

/// What trading in a refresh token comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// The successor is current now.
    Rotated,
    /// It was before, and nothing of the answer was seen yet: the same answer
    /// again.
    Again,
    /// A retired token was used: the family is revoked.
    Reused,
    /// A good token, from an address that may not come in: nothing changed.
    Forbidden,
    /// Nothing changed.
    Refused(Why),
}

/// Why a token with a good MAC is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The family isn't known, or not by this token.
    Unknown,
    Revoked,
    Expired,
}

impl Family {
    /// What trading in a token comes to at `now`; nothing changes here.
    fn judge(&self, traded: &Trade, now: Millis) -> Refresh {
        if self.revoked_at.is_some() {
            return Refresh::Refused(Why::Revoked);
        }
        let comes_to = if traded.shown == self.current {
            if self.refresh_expires_at <= now {
                return Refresh::Refused(Why::Expired);
            }
            Refresh::Rotated
        } else {
            match self.retired {
                Some((retired, from))
                    if retired == traded.shown && now <= from.plus(ANSWER_AGAIN) =>
                {
                    let is_over = self.refresh_expires_at.max(self.expires_at) <= now;
                    if is_over {
                        return Refresh::Refused(Why::Expired);
                    }
                    // Written under other signing keys, it leads elsewhere: what
                    // came of it can't be given again.
                    if traded.successor != self.current {
                        return Refresh::Refused(Why::Unknown);
                    }
                    Refresh::Again
                }
                _ => return Refresh::Reused,
            }
        };
        if traded.is_admitted {
            comes_to
        } else {
            Refresh::Forbidden
        }
    }

    /// Takes note that a key which ends at `end` is in use. True where that is
    /// news: then whoever holds the token before it has had its answer.
    pub(super) fn see(&mut self, end: Option<Millis>) -> bool {
        let is_newest = end == Some(self.expires_at);
        is_newest && self.retired.take().is_some()
    }

    pub(super) fn refresh(&mut self, traded: &Trade, now: Millis) -> Refresh {
        let comes_to = self.judge(traded, now);
        match comes_to {
            Refresh::Rotated => {
                let from = now.max(self.expires_at.minus(ANSWER_AGAIN));
                self.retired = Some((traded.shown, from));
                self.current = traded.successor;
                let next = self.expires_at.plus(Span::from_ms(1));
                self.expires_at = now.plus(self.ttl).max(next);
                self.refresh_expires_at = now.plus(self.refresh_ttl);
            }
            Refresh::Reused => self.revoked_at = Some(now),
            Refresh::Again | Refresh::Forbidden | Refresh::Refused(_) => {}
        }
        comes_to
    }
}

#[cfg(test)]
mod tests {
    use super::super::Families;
    use super::*;
    use crate::governor::ids::KeyId;

    const KEY: KeyId = KeyId(1);
    const DAY: u64 = 86_400_000;
    const HOUR: u64 = 3_600_000;

    fn digest(byte: u8) -> SecretDigest {
        SecretDigest([byte; 32])
    }

    fn at(ms: u64) -> Millis {
        Millis::from_epoch(ms)
    }

    /// Access keys live 100 ms, refresh tokens 50 s; token 1 is current.
    fn families() -> Families {
        of(Span::from_ms(100), Span::from_seconds(50))
    }

    fn of(ttl: Span, refresh_ttl: Span) -> Families {
        let mut families = Families::default();
        let family = Family::minted(None, at(0), ttl, refresh_ttl, digest(1));
        families.insert(KEY, family);
        families
    }

    /// Token 1 leads to token 2, and so on.
    fn trade(shown: u8) -> Trade {
        Trade {
            shown: digest(shown),
            successor: digest(shown.wrapping_add(1)),
            is_admitted: true,
        }
    }

    fn refresh(families: &mut Families, shown: u8, ms: u64) -> Refresh {
        families.refresh(KEY, &trade(shown), at(ms))
    }

    fn family(families: &Families) -> Family {
        families.find(KEY).cloned().unwrap()
    }

    /// The newest access key is used.
    fn use_newest(families: &mut Families) -> bool {
        let end = family(families).expires_at;
        families.see(KEY, Some(end))
    }

    /// An hour's keys and a month's tokens.
    fn lasting() -> Families {
        of(Span::from_ms(HOUR), Span::from_ms(30 * DAY))
    }

    #[test]
    fn an_answer_that_nothing_was_seen_of_is_given_again_until_the_old_keys_end() {
        let mut families = lasting();
        assert_eq!(refresh(&mut families, 1, 1_000), Refresh::Rotated);
        let before = family(&families);
        for ms in [1_000, 11_001, HOUR / 2, HOUR] {
            assert_eq!(refresh(&mut families, 1, ms), Refresh::Again, "{ms}");
            assert_eq!(family(&families), before, "nothing moved");
        }
        assert_eq!(refresh(&mut families, 1, HOUR + 1), Refresh::Reused);
        assert!(!families.admits(KEY));
    }

    #[test]
    fn an_answer_is_given_again_for_ten_seconds_where_the_old_key_ends_before() {
        for late in [50, 1_000] {
            let mut families = families();
            assert_eq!(refresh(&mut families, 1, late), Refresh::Rotated);
            assert_eq!(refresh(&mut families, 1, late + 10_000), Refresh::Again);
            assert_eq!(refresh(&mut families, 1, late + 10_001), Refresh::Reused);
        }
    }

    #[test]
    fn a_retired_token_is_reuse_once_its_successor_was_used() {
        let mut families = lasting();
        refresh(&mut families, 1, 1_000);
        refresh(&mut families, 2, 1_001);
        assert_eq!(refresh(&mut families, 1, 1_002), Refresh::Reused);
        let dead = Refresh::Refused(Why::Revoked);
        assert_eq!(refresh(&mut families, 3, 1_003), dead);
        assert_eq!(refresh(&mut families, 2, 1_003), dead);
    }

    #[test]
    fn a_retired_token_is_reuse_once_the_new_key_was_used() {
        let mut families = lasting();
        assert!(!use_newest(&mut families), "nothing was traded in yet");
        refresh(&mut families, 1, 1_000);
        assert!(use_newest(&mut families), "the first time is news");
        assert!(!use_newest(&mut families), "and only the first");
        assert_eq!(refresh(&mut families, 1, 1_001), Refresh::Reused);
    }

    #[test]
    fn the_old_key_in_use_says_nothing_of_the_new_pair() {
        let mut families = lasting();
        let old = family(&families).expires_at;
        refresh(&mut families, 1, 1_000);
        for end in [None, Some(old), Some(at(0)), Some(at(u64::MAX))] {
            assert!(!families.see(KEY, end));
        }
        assert!(!families.see(KeyId(9), Some(family(&families).expires_at)));
        assert_eq!(refresh(&mut families, 1, 1_001), Refresh::Again);
    }

    #[test]
    fn no_two_keys_of_a_family_end_at_one_moment() {
        let mut families = lasting();
        let mut ends = vec![family(&families).expires_at];
        // In one moment, and with a clock that steps back.
        for (token, ms) in [(1, 5_000), (2, 5_000), (3, 0), (4, 5_000)] {
            assert_eq!(refresh(&mut families, token, ms), Refresh::Rotated);
            ends.push(family(&families).expires_at);
        }
        assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
    }

    #[test]
    fn an_owner_may_ask_again_in_each_round_and_is_never_revoked() {
        let mut families = lasting();
        for round in 1..=200_u8 {
            let now = u64::from(round) * 3_000;
            assert_eq!(refresh(&mut families, round, now), Refresh::Rotated);
            assert_eq!(refresh(&mut families, round, now + 1), Refresh::Again);
            assert_eq!(refresh(&mut families, round, now + 2_000), Refresh::Again);
            if round % 2 == 0 {
                assert!(use_newest(&mut families));
            }
        }
        assert!(families.admits(KEY));
    }

    #[test]
    fn of_a_pair_that_is_over_nothing_is_given_again_and_nothing_is_revoked() {
        // A month's keys, tokens of two seconds: the key is still good for something.
        let short = Span::from_seconds(2);
        let mut families = of(Span::from_ms(30 * DAY), short);
        refresh(&mut families, 1, 1_000);
        assert_eq!(refresh(&mut families, 1, 9_000), Refresh::Again);
        // Both are over.
        let mut families = of(short, short);
        refresh(&mut families, 1, 1_000);
        let expired = Refresh::Refused(Why::Expired);
        assert_eq!(refresh(&mut families, 1, 9_000), expired);
        assert!(families.admits(KEY));
    }

    #[test]
    fn a_token_that_leads_elsewhere_is_refused_without_harm() {
        let mut families = lasting();
        refresh(&mut families, 1, 1_000);
        let elsewhere = Trade {
            successor: digest(99),
            ..trade(1)
        };
        let unknown = Refresh::Refused(Why::Unknown);
        assert_eq!(families.refresh(KEY, &elsewhere, at(1_001)), unknown);
        assert_eq!(refresh(&mut families, 1, 1_002), Refresh::Again);
    }

    #[test]
    fn from_a_forbidden_address_a_good_token_changes_nothing_and_a_bad_one_is_bad() {
        let mut families = lasting();
        let from_afar = |families: &mut Families, shown, ms| {
            let trade = Trade {
                is_admitted: false,
                ..trade(shown)
            };
            families.refresh(KEY, &trade, at(ms))
        };
        let before = family(&families);
        assert_eq!(from_afar(&mut families, 1, 1_000), Refresh::Forbidden);
        assert_eq!(family(&families), before);
        refresh(&mut families, 1, 1_000);
        let before = family(&families);
        for token in [1, 2] {
            assert_eq!(from_afar(&mut families, token, 1_001), Refresh::Forbidden);
        }
        assert_eq!(family(&families), before, "nor was it seen");
        refresh(&mut families, 2, 1_002);
        assert_eq!(from_afar(&mut families, 1, 1_003), Refresh::Reused);
        let revoked = Refresh::Refused(Why::Revoked);
        assert_eq!(from_afar(&mut families, 3, 1_004), revoked);
    }

    #[test]
    fn an_expired_token_is_refused_without_harm() {
        let mut families = families();
        let expired = Refresh::Refused(Why::Expired);
        assert_eq!(refresh(&mut families, 1, 50_000), expired);
        assert!(families.admits(KEY));
        let unknown = families.refresh(KeyId(9), &trade(1), at(0));
        assert_eq!(unknown, Refresh::Refused(Why::Unknown));
    }
}
