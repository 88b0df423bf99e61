//! What the Worker and the objects say to each other: one URL of parsed values,
//! and for settings and names a JSON body.
//!
//! Both sides use these forms, written and read here only. A caller's raw path,
//! header or body never gets in: every value is a number, an id or a checked
//! name. Names that the reader doesn't know are ignored, so that neighbouring
//! versions of Worker and object understand each other.

pub mod control;
pub mod directory;
pub mod lock;
pub mod log;
pub mod status;
pub mod tries;

use std::fmt::{Display, Write as _};
use std::str::FromStr;

use crate::governor::ids::RequestId;
use crate::wire::paging::pairs;

/// Writes a URL pair by pair.
struct Url(String);

impl Url {
    fn new(base: &str, path: &str) -> Self {
        let mut url = String::with_capacity(224);
        url.push_str(base);
        url.push_str(path);
        url.push('?');
        Self(url)
    }

    /// The pairs alone.
    fn query() -> Self {
        Self(String::with_capacity(112))
    }

    fn put(mut self, name: &str, value: &impl Display) -> Self {
        if !self.0.is_empty() && !self.0.ends_with('?') {
            self.0.push('&');
        }
        // Writing to a String can't fail.
        let _ = write!(self.0, "{name}={value}");
        self
    }

    fn put_some(self, name: &str, value: Option<&impl Display>) -> Self {
        match value {
            Some(value) => self.put(name, value),
            None => self,
        }
    }
}

/// The request that a call of any form is part of, also one of a form that isn't
/// known here: what is answered to it may be passed on.
pub fn request_of(url: &str) -> Option<RequestId> {
    let (_, query) = url.split_once('?')?;
    Query::pairs(query).parse("request")
}

/// The pairs of a URL, taken apart once: a call asks for up to twenty names.
struct Query<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Query<'a> {
    /// The path after `base` and the pairs after it.
    fn of(url: &'a str, base: &str) -> Option<(&'a str, Self)> {
        let rest = url.strip_prefix(base)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        Some((path, Self::pairs(query)))
    }

    fn pairs(query: &'a str) -> Self {
        Self(pairs(query).collect())
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// Every value of a name, in order.
    fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(known, _)| *known == name);
        named.map(|(_, value)| *value)
    }

    fn parse<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_an_unknown_form_still_says_which_request_it_is_part_of() {
        let id = RequestId(7);
        let url = format!("http://source/v9/other?a=b&request={id}&c=d");
        assert_eq!(request_of(&url), Some(id));
        assert_eq!(request_of("http://source/v9/other?request=x"), None);
        assert_eq!(request_of("http://source/v9/other"), None);
    }
}
