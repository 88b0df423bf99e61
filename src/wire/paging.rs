//! `?limit=&after=` of the lists; `before` where they run backwards; which
//! attempts of the access log are asked for.

use core::fmt;
use std::str::FromStr;

use crate::fields::{FieldError, natural};
use crate::governor::command::Outcome;
use crate::governor::ids::{KeyId, NotAnId, RequestId};

/// Entries of a page unless the caller says how many.
const USUAL: u32 = 100;
/// The most entries of a page.
const MOST: u32 = 1000;

/// The parameters of a list. One that it doesn't know is refused: a filter that
/// is misspelt would show what nobody asked for.
struct Parameters<'a>(&'a str);

impl<'a> Parameters<'a> {
    fn of(query: &'a str, known: &[&str]) -> Result<Self, FieldError> {
        let mut names = pairs(query).map(|(name, _)| name);
        if names.all(|name| name.is_empty() || known.contains(&name)) {
            return Ok(Self(query));
        }
        let message = format!("This list takes {} only.", known.join(", "));
        Err(FieldError::new("query", message))
    }

    /// Of a name that comes several times, the last counts.
    fn value(&self, name: &str) -> Option<&'a str> {
        pairs(self.0)
            .filter(|(known, _)| *known == name)
            .last()
            .map(|(_, value)| value)
    }

    fn limit(&self) -> Result<u32, FieldError> {
        self.value("limit").map_or(Ok(USUAL), limit)
    }

    fn read<T: FromStr>(&self, name: &'static str, must: &str) -> Result<Option<T>, FieldError> {
        let value = self.value(name).map(str::parse).transpose();
        value.map_err(|_| FieldError::new(name, format!("{name} must be {must}.")))
    }
}

/// What a page goes on from.
const NEXT: &str = "what `next` of the page before said, or for a log milliseconds since the epoch";

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
/// If `limit` or `after` is malformed, or there is anything else.
pub fn forwards<T: FromStr>(query: &str) -> Result<(u32, Option<T>), FieldError> {
    let page = Parameters::of(query, &["limit", "after"])?;
    Ok((page.limit()?, page.read("after", NEXT)?))
}

/// A page of a log, newest first: how many entries, before which place.
///
/// # Errors
/// If `limit` or `before` is malformed, or there is anything else.
pub fn backwards(query: &str) -> Result<(u32, Option<Cursor>), FieldError> {
    let page = Parameters::of(query, &["limit", "before"])?;
    Ok((page.limit()?, page.read("before", NEXT)?))
}

/// A page of the access log: the same, and which attempts.
///
/// # Errors
/// If any of it is malformed, or there is anything else.
pub fn attempts(query: &str) -> Result<(u32, Option<Cursor>, Sought), FieldError> {
    let known = ["limit", "before", "outcome", "keyId", "requestId"];
    let page = Parameters::of(query, &known)?;
    let words = format!("refused or one of {}", Outcome::WORDS.join(", "));
    let sought = Sought {
        outcome: page.read("outcome", &words)?,
        key: page.read("keyId", "the id of a key, 16 hexadecimal digits")?,
        request: page.read("requestId", "the id of a request, 32 hexadecimal digits")?,
    };
    Ok((page.limit()?, page.read("before", NEXT)?, sought))
}

/// Which attempts are asked for: those for which all that is said holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sought {
    pub outcome: Option<OutcomeWord>,
    pub key: Option<KeyId>,
    pub request: Option<RequestId>,
}

/// An outcome of the log, or `refused` for all but `granted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeWord(pub &'static str);

/// Every outcome but `granted`.
pub const REFUSED: OutcomeWord = OutcomeWord("refused");

impl FromStr for OutcomeWord {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let words = Outcome::WORDS.into_iter().chain([REFUSED.0]);
        let mut words = words.filter(|word| *word == text);
        words.next().map(Self).ok_or(NotAnId)
    }
}

impl fmt::Display for OutcomeWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
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
    use crate::governor::ids::Ref;

    #[test]
    fn a_log_goes_on_from_a_cursor_or_a_moment() {
        let cursor = Cursor { at: 17, ordinal: 4 };
        let moment = Cursor { at: 17, ordinal: 0 };
        for (query, before) in [
            ("before=17-4", Some(cursor)),
            ("before=17", Some(moment)),
            ("", None),
        ] {
            assert_eq!(backwards(query), Ok((100, before)), "{query}");
        }
        assert_eq!(cursor.to_string(), "17-4");
        for bad in ["", "x", "-", "1-", "-1", "1-2-3"] {
            let error = backwards(&format!("before={bad}")).unwrap_err();
            assert_eq!(error.field, "before", "{bad}");
        }
    }

    #[test]
    fn pages_are_bounded() {
        let page = |query| forwards::<Ref>(query);
        assert_eq!(page(""), Ok((100, None)));
        assert_eq!(page("limit=7&&after=12"), Ok((7, Some(Ref(12)))));
        for bad in ["limit=0", "limit=1001", "limit=", "limit=x", "limit=-1"] {
            assert_eq!(page(bad).unwrap_err().field, "limit", "{bad}");
        }
    }

    #[test]
    fn what_a_list_does_not_know_is_refused_by_telling_what_it_knows() {
        for (error, known) in [
            (forwards::<Ref>("before=1").unwrap_err(), "limit, after"),
            (
                backwards("limit=1&outcome=rpm").unwrap_err(),
                "limit, before",
            ),
            (
                attempts("status=429").unwrap_err(),
                "outcome, keyId, requestId",
            ),
        ] {
            assert_eq!(error.field, "query");
            assert!(error.message.contains(known), "{}", error.message);
        }
    }

    #[test]
    fn attempts_are_sought_by_outcome_key_and_request() {
        let key = "00000000000000ab";
        let request = "000000000000000000000000000000cd";
        let query = format!("outcome=refused&keyId={key}&requestId={request}&before=5");
        let (limit, before, sought) = attempts(&query).unwrap();
        assert_eq!((limit, before.map(|cursor| cursor.at)), (100, Some(5)));
        assert_eq!(sought.outcome, Some(REFUSED));
        assert_eq!(sought.key, Some(KeyId(0xab)));
        assert_eq!(sought.request, Some(RequestId(0xcd)));
        assert_eq!(attempts("").unwrap().2, Sought::default());
        for (bad, field) in [
            ("outcome=forbidden", "outcome"),
            ("outcome=", "outcome"),
            ("keyId=ab", "keyId"),
            ("requestId=cd", "requestId"),
        ] {
            assert_eq!(attempts(bad).unwrap_err().field, field, "{bad}");
        }
    }
}
