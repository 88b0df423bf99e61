//! What is kept of a family's refreshes for operators: who took its keys on, and
//! from where.
//!
//! An entry stands for the refreshes of an hour from one address, so that a
//! worker which refreshes every second leaves as little as one that does so once
//! an hour, and a stranger's address always shows. Each family has its own few
//! entries: no other family can push them out.

use crate::governor::time::{Millis, Span};

/// For how long an entry takes further refreshes.
const AN_ENTRY: Span = Span::from_seconds(3_600);
/// The entries of a family that are kept, the newest.
pub const KEPT_OF_A_FAMILY: u32 = 10;

/// The newest entry of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name among all entries.
    pub ordinal: u64,
    /// When its first refresh was.
    pub at: Millis,
    pub ip: Option<Box<str>>,
}

impl Entry {
    /// Whether a refresh now, from this address, is one more of the same.
    pub fn takes(&self, now: Millis, ip: Option<&str>) -> bool {
        self.ip.as_deref() == ip && now.since(self.at) < AN_ENTRY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_of_one_hour_and_one_address() {
        let start = Millis::from_epoch(1_710_000_000_000);
        let entry = Entry {
            ordinal: 1,
            at: start,
            ip: Some("192.0.2.1".into()),
        };
        let after = |ms| start.plus(Span::from_ms(ms));
        assert!(entry.takes(start, Some("192.0.2.1")));
        assert!(entry.takes(after(3_599_999), Some("192.0.2.1")));
        assert!(!entry.takes(after(3_600_000), Some("192.0.2.1")));
        assert!(!entry.takes(start, Some("192.0.2.2")));
        assert!(!entry.takes(start, None));
        // A clock that steps back makes no entry.
        assert!(entry.takes(start.minus(Span::from_ms(5)), Some("192.0.2.1")));
        let unknown = Entry { ip: None, ..entry };
        assert!(unknown.takes(start, None) && !unknown.takes(start, Some("192.0.2.1")));
    }
}
