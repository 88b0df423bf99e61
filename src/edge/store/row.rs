//! What rows mean: the source, its slots, its families of keys, what it counted.

use super::Header;
use crate::access::families::Family;
use crate::edge::sql::Row;
use crate::governor::ids::{KeyId, Ref, SlotSecret};
use crate::governor::slots::Slot;
use crate::governor::tally::Tally;
use crate::governor::time::Span;
use crate::protocol::directory::Summary;

impl Row {
    pub fn header(&self) -> Option<Header> {
        Some(Header {
            name: self.text("name")?,
            version: self.text("version")?.parse().ok()?,
            created_at: self.moment("created_at")?,
            updated_at: self.moment("updated_at")?,
        })
    }

    /// `at`: the column of its moment. What was counted is 0 where it can't be
    /// read.
    pub fn summary(&self, at: &str) -> Option<Summary> {
        let tally = self.text("tally");
        Some(Summary {
            at: self.moment(at)?,
            limit: self.small("effective_limit")?,
            in_use: self.small("in_use")?,
            depth: self.small("depth")?,
            tally: tally
                .and_then(|text| Tally::from_text(&text))
                .unwrap_or_default(),
        })
    }

    pub fn slot(&self) -> Option<Slot> {
        let secret = u128::from_str_radix(&self.text("secret")?, 16).ok()?;
        Some(Slot {
            row: self.small("row")?,
            reference: Ref(self.natural("ref")?),
            secret: SlotSecret(secret),
            attempt: self.text("attempt")?.parse().ok()?,
            request: self.text("request")?.parse().ok()?,
            repeats: false,
            key: self.text("key")?.parse().ok()?,
            granted_at: self.moment("at")?,
            in_use: 0,
            lease_deadline: self.moment("lease_deadline")?,
            request_deadline: self.moment("request_deadline")?,
        })
    }

    pub fn family(&self) -> Option<(KeyId, Family)> {
        let key = self.text("key")?.parse().ok()?;
        let retired = self.text("retired").and_then(|digest| digest.parse().ok());
        let family = Family {
            name: self.text("name"),
            created_at: self.moment("created_at")?,
            ttl: Span::from_ms(self.natural("ttl_ms")?),
            refresh_ttl: Span::from_ms(self.natural("refresh_ttl_ms")?),
            expires_at: self.moment("expires_at")?,
            current: self.text("current")?.parse().ok()?,
            refresh_expires_at: self.moment("refresh_expires_at")?,
            retired: retired.zip(self.moment("retired_at")),
            revoked_at: self.moment("revoked_at"),
        };
        Some((key, family))
    }
}
