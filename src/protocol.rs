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

use std::fmt::{Display, Write as _};
use std::str::FromStr;

use crate::wire::paging::pairs;

/// Writes a URL pair by pair.
struct Url(String);

impl Url {
    fn new(base: &str, path: &str) -> Self {
        let mut url = String::with_capacity(224);
        url.push_str(base);
        url.push_str(path);
        Self(url)
    }

    fn put(mut self, name: &str, value: &impl Display) -> Self {
        let before = if self.0.contains('?') { '&' } else { '?' };
        // Writing to a String can't fail.
        let _ = write!(self.0, "{before}{name}={value}");
        self
    }

    fn put_some(self, name: &str, value: Option<&impl Display>) -> Self {
        match value {
            Some(value) => self.put(name, value),
            None => self,
        }
    }
}

/// Reads the pairs of a URL.
struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    /// The path after `base` and the pairs after it.
    fn of(url: &'a str, base: &str) -> Option<(&'a str, Self)> {
        let rest = url.strip_prefix(base)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        Some((path, Self(query)))
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        let found = pairs(self.0).find(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    }

    /// Every value of a name, in order.
    fn all(&self, name: &'static str) -> impl Iterator<Item = &'a str> {
        let named = pairs(self.0).filter(move |(known, _)| *known == name);
        named.map(|(_, value)| value)
    }

    fn parse<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }
}
