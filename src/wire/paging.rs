//! `?limit=&after=` of the lists; `before` where they run backwards.

use crate::fields::{FieldError, natural};

/// Entries of a page unless the caller says how many.
const USUAL: u32 = 100;
/// The most entries of a page.
const MOST: u32 = 1000;

/// Which page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// 1 to 1,000.
    pub limit: u32,
    /// The name of the last entry of the page before; empty: from the start.
    pub after: &'a str,
    /// The same in lists that have the newest first.
    pub before: &'a str,
}

impl<'a> Page<'a> {
    /// Reads a query string. Unknown parameters are ignored.
    ///
    /// # Errors
    /// If `limit` is no integer from 1 to 1,000.
    pub fn parse(query: &'a str) -> Result<Self, FieldError> {
        let mut page = Self {
            limit: USUAL,
            after: "",
            before: "",
        };
        for (name, value) in pairs(query) {
            match name {
                "limit" => page.limit = limit(value)?,
                "after" => page.after = value,
                "before" => page.before = value,
                _ => {}
            }
        }
        Ok(page)
    }
}

fn limit(value: &str) -> Result<u32, FieldError> {
    natural(value)
        .and_then(|limit| u32::try_from(limit).ok())
        .filter(|limit| (1..=MOST).contains(limit))
        .ok_or_else(|| {
            let message = format!("limit must be an integer from 1 to {MOST}.");
            FieldError::new("limit", message)
        })
}

/// The pairs of a query string, as they came.
pub fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_bounded() {
        assert_eq!(
            Page::parse(""),
            Ok(Page {
                limit: 100,
                after: "",
                before: "",
            })
        );
        assert_eq!(
            Page::parse("limit=7&x&after=ab"),
            Ok(Page {
                limit: 7,
                after: "ab",
                before: "",
            })
        );
        for bad in ["limit=0", "limit=1001", "limit=", "limit=x", "limit=-1"] {
            assert_eq!(Page::parse(bad).unwrap_err().field, "limit", "{bad}");
        }
    }
}
