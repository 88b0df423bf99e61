//! `?limit=&after=` of the lists; `before` where they run backwards.

use core::fmt;
use std::str::FromStr;

use crate::fields::{FieldError, natural};
use crate::governor::ids::NotAnId;

/// Entries of a page unless the caller says how many.
const USUAL: u32 = 100;
/// The most entries of a page.
const MOST: u32 = 1000;

/// Which page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page<'a> {
    /// 1 to 1,000.
    limit: u32,
    /// What the page before called its next; `None`: from the start.
    after: Option<&'a str>,
    /// The same in lists that have the newest first.
    before: Option<&'a str>,
}

impl<'a> Page<'a> {
    /// Reads a query string. Unknown parameters are ignored.
    ///
    /// # Errors
    /// If `limit` is no integer from 1 to 1,000.
    fn parse(query: &'a str) -> Result<Self, FieldError> {
        let mut page = Self {
            limit: USUAL,
            after: None,
            before: None,
        };
        for (name, value) in pairs(query) {
            match name {
                "limit" => page.limit = limit(value)?,
                "after" => page.after = Some(value),
                "before" => page.before = Some(value),
                _ => {}
            }
        }
        Ok(page)
    }
}

/// A place in a log that has the newest first: what comes after it is older, or
/// as old and written earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Milliseconds since the epoch.
    pub at: u64,
    pub ordinal: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at, self.ordinal)
    }
}

impl FromStr for Cursor {
    type Err = NotAnId;

    /// A cursor as it was given out, or just a moment.
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let (at, ordinal) = text.split_once('-').unwrap_or((text, "0"));
        Ok(Self {
            at: natural(at).ok_or(NotAnId)?,
            ordinal: natural(ordinal).ok_or(NotAnId)?,
        })
    }
}

/// A page of a list that runs forwards: how many entries, after which.
///
/// # Errors
/// If `limit` or `after` is malformed.
pub fn forwards<T: FromStr>(query: &str) -> Result<(u32, Option<T>), FieldError> {
    let page = Page::parse(query)?;
    Ok((page.limit, going_on("after", page.after)?))
}

/// A page of a log, newest first: how many entries, before which place.
///
/// # Errors
/// If `limit` or `before` is malformed.
pub fn backwards(query: &str) -> Result<(u32, Option<Cursor>), FieldError> {
    let page = Page::parse(query)?;
    Ok((page.limit, going_on("before", page.before)?))
}

/// Reads what a page goes on from.
///
/// # Errors
/// If it is nothing that a list of this kind gives out.
fn going_on<T: FromStr>(name: &'static str, value: Option<&str>) -> Result<Option<T>, FieldError> {
    let Some(value) = value else {
        return Ok(None);
    };
    value.parse().map(Some).map_err(|_| {
        let message = format!("{name} must be what `next` of the page before said.");
        FieldError::new(name, message)
    })
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
    fn a_log_goes_on_from_a_cursor_or_a_moment() {
        let cursor = Cursor { at: 17, ordinal: 4 };
        assert_eq!(
            going_on("before", Some(&cursor.to_string())),
            Ok(Some(cursor))
        );
        let moment = Cursor { at: 17, ordinal: 0 };
        assert_eq!(going_on("before", Some("17")), Ok(Some(moment)));
        assert_eq!(going_on::<Cursor>("before", None), Ok(None));
        for bad in ["", "x", "-", "1-", "-1", "1-2-3"] {
            assert_eq!(
                going_on::<Cursor>("before", Some(bad)).unwrap_err().field,
                "before",
                "{bad}"
            );
        }
    }

    #[test]
    fn pages_are_bounded() {
        assert_eq!(
            Page::parse(""),
            Ok(Page {
                limit: 100,
                after: None,
                before: None,
            })
        );
        assert_eq!(
            Page::parse("limit=7&x&after=ab"),
            Ok(Page {
                limit: 7,
                after: Some("ab"),
                before: None,
            })
        );
        for bad in ["limit=0", "limit=1001", "limit=", "limit=x", "limit=-1"] {
            assert_eq!(Page::parse(bad).unwrap_err().field, "limit", "{bad}");
        }
    }
}
