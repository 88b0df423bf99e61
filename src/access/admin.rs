//! The admin tokens of a deployment.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// A shorter token could be guessed.
const LEAST_CHARS: usize = 32;

/// `ADMIN_TOKEN`: one or several, comma-separated, for rotation. Only their
/// digests are kept.
pub struct AdminTokens {
    digests: Vec<[u8; 32]>,
}

/// `ADMIN_TOKEN` is unset, or one in it is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadAdminToken;

impl AdminTokens {
    /// # Errors
    /// If there is none, or one has under 32 characters: the control routes stay
    /// shut rather than open to a guess.
    pub fn parse(text: &str) -> Result<Self, BadAdminToken> {
        let digests = text
            .split(',')
            .map(str::trim)
            .map(|token| (token.len() >= LEAST_CHARS).then(|| digest(token)))
            .collect::<Option<Vec<_>>>();
        digests.map(|digests| Self { digests }).ok_or(BadAdminToken)
    }

    /// Compares with each in constant time, over digests of equal length.
    pub fn admits(&self, token: &str) -> bool {
        let shown = digest(token);
        let found = self
            .digests
            .iter()
            .fold(subtle::Choice::from(0), |found, known| {
                found | known.ct_eq(&shown)
            });
        found.into()
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_tokens_are_good_at_once() {
        let (old, new) = ("a".repeat(32), "b".repeat(40));
        let tokens = AdminTokens::parse(&format!("{old}, {new}")).unwrap();
        assert!(tokens.admits(&old) && tokens.admits(&new));
        assert!(!tokens.admits("") && !tokens.admits(&format!("{old}, {new}")));
    }

    #[test]
    fn none_or_a_short_one_shuts_the_routes() {
        for bad in [
            "",
            "short",
            &"a".repeat(31),
            &format!("{},", "a".repeat(32)),
        ] {
            assert!(AdminTokens::parse(bad).is_err(), "{bad}");
        }
    }
}
