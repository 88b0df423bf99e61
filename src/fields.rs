//! Reads a JSON object field by field, with errors that name the field.
//!
//! Numbers are taken from their text, so `5000.0` is an integer and `1e400` is
//! a large number rather than a syntax error. `null` is as absent. Nothing here
//! knows what the fields mean.

mod strict;

use std::cell::RefCell;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::governor::time::MAX_SAFE;
pub use strict::check_strictly;

/// What is wrong with a body, and where: `field` is a dotted path, empty for
/// the body itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    pub message: String,
}

impl FieldError {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

/// What a JSON object holds, in order of the names. Of a name that comes
/// several times, the last value counts.
#[derive(Default)]
pub struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self
            .0
            .binary_search_by(|(known, _)| known.as_str().cmp(name));
        self.0.get(found.ok()?).map(|(_, raw)| *raw)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, raw)| (name.as_str(), *raw))
    }
}

impl<'a> Deserialize<'a> for Members<'a> {
    fn deserialize<D: Deserializer<'a>>(object: D) -> Result<Self, D::Error> {
        object.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'a> Visitor<'a> for MembersVisitor {
    type Value = Members<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut object: A) -> Result<Members<'a>, A::Error> {
        let mut all: Vec<(String, &'a RawValue)> = Vec::new();
        while let Some(entry) = object.next_entry()? {
            all.push(entry);
        }
        // All at once: a body may have thousands of names. Equal ones by where
        // they stand in the text.
        all.sort_unstable_by(|(a, one), (b, other)| {
            a.cmp(b)
                .then_with(|| one.get().as_ptr().cmp(&other.get().as_ptr()))
        });
        all.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                kept.1 = later.1;
            }
            is_same
        });
        Ok(Members(all))
    }
}

/// The fields of one JSON object.
pub struct Fields<'a> {
    path: String,
    values: Members<'a>,
    /// Names asked for so far, to tell the unknown ones.
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Fields<'a> {
    /// Reads a body. An empty one, or `null`, is an object without fields.
    ///
    /// # Errors
    /// If the body is not UTF-8, not JSON, or not an object.
    pub fn of_body(body: &'a [u8]) -> Result<Self, FieldError> {
        let text = std::str::from_utf8(body)
            .map_err(|_| FieldError::new("", "The body is not UTF-8; send JSON or nothing."))?;
        if text.trim().is_empty() {
            return Ok(Self::none(String::new()));
        }
        let raw: &RawValue = serde_json::from_str(text).map_err(|_| {
            FieldError::new(
                "",
                "The body is not valid JSON; send a JSON object or nothing.",
            )
        })?;
        Self::of_value(String::new(), raw)
    }

    fn none(path: String) -> Self {
        Self {
            path,
            values: Members::default(),
            known: RefCell::default(),
        }
    }

    fn of_value(path: String, raw: &'a RawValue) -> Result<Self, FieldError> {
        if raw.get() == "null" {
            return Ok(Self::none(path));
        }
        if !raw.get().starts_with('{') {
            let name = if path.is_empty() { "The body" } else { &path };
            let message = format!("{name} must be a JSON object.");
            return Err(FieldError::new(path, message));
        }
        let values = serde_json::from_str(raw.get())
            .map_err(|_| FieldError::new(path.clone(), "A field name is not valid text."))?;
        Ok(Self {
            path,
            values,
            known: RefCell::default(),
        })
    }

    /// The dotted path of a field, for an error about it.
    pub fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn error(&self, name: &str, what: &str) -> FieldError {
        let path = self.path_of(name);
        let message = format!("{path} must be {what}.");
        FieldError::new(path, message)
    }

    /// The raw value of a field; `None` if absent or `null`.
    pub fn raw(&self, name: &'static str) -> Option<&'a RawValue> {
        self.known.borrow_mut().push(name);
        let raw = self.values.get(name)?;
        (raw.get() != "null").then_some(raw)
    }

    /// The names that are there, known or not.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| name)
    }

    /// Every field with its value, known or not.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.values.iter()
    }

    /// An object inside this one; without fields if absent.
    ///
    /// # Errors
    /// If it is there and no object.
    pub fn part(&self, name: &'static str) -> Result<Fields<'a>, FieldError> {
        let path = self.path_of(name);
        match self.raw(name) {
            None => Ok(Self::none(path)),
            Some(raw) => Self::of_value(path, raw),
        }
    }

    /// An integer ≥ 0, clamped to 2^53 − 1.
    ///
    /// # Errors
    /// If it is no number, negative, or has a fraction.
    pub fn natural(&self, name: &'static str) -> Result<Option<u64>, FieldError> {
        let Some(raw) = self.raw(name) else {
            return Ok(None);
        };
        natural(raw.get())
            .map(Some)
            .ok_or_else(|| self.error(name, "an integer of 0 or more"))
    }

    /// An integer from `least` to `most`.
    ///
    /// # Errors
    /// If it is no integer, or outside.
    pub fn within(
        &self,
        name: &'static str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, FieldError> {
        let Some(raw) = self.raw(name) else {
            return Ok(None);
        };
        natural(raw.get())
            .filter(|value| (least..=most).contains(value))
            .map(Some)
            .ok_or_else(|| self.error(name, &format!("an integer from {least} to {most}")))
    }

    /// A number ≥ 0, not necessarily whole.
    ///
    /// # Errors
    /// If it is no number, or negative.
    pub fn amount(&self, name: &'static str) -> Result<Option<f64>, FieldError> {
        let Some(raw) = self.raw(name) else {
            return Ok(None);
        };
        number(raw.get())
            .filter(|value| *value >= 0.0)
            .map(Some)
            .ok_or_else(|| self.error(name, "a number of 0 or more"))
    }

    /// # Errors
    /// If it is neither `true` nor `false`.
    pub fn flag(&self, name: &'static str) -> Result<Option<bool>, FieldError> {
        match self.raw(name).map(RawValue::get) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(self.error(name, "true or false")),
        }
    }

    /// A text of `least` to `most` characters.
    ///
    /// # Errors
    /// If it is no text, or shorter or longer.
    pub fn text(
        &self,
        name: &'static str,
        least: usize,
        most: usize,
    ) -> Result<Option<String>, FieldError> {
        let Some(raw) = self.raw(name) else {
            return Ok(None);
        };
        serde_json::from_str::<String>(raw.get())
            .ok()
            .filter(|text| (least..=most).contains(&text.chars().count()))
            .map(Some)
            .ok_or_else(|| self.error(name, &format!("a text of {least} to {most} characters")))
    }

    /// Refuses fields that nobody asked for.
    ///
    /// # Errors
    /// If there is one; the error names it.
    pub fn no_others(&self) -> Result<(), FieldError> {
        let known = self.known.borrow();
        match self.names().find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(name) => {
                let shown: String = name.chars().take(64).collect();
                let path = self.path_of(&shown);
                let message = format!("{path} is not a field of this body; remove it.");
                Err(FieldError::new(path, message))
            }
        }
    }
}

/// Reads the text of a JSON number. Past the range of a double it is infinite.
pub fn number(text: &str) -> Option<f64> {
    // Rust also reads "inf", "nan", "+1" and "1."; JSON doesn't.
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    let first = raw.get().bytes().next()?;
    if first != b'-' && !first.is_ascii_digit() {
        return None;
    }
    raw.get().parse().ok()
}

/// Reads the text of a JSON number as an integer ≥ 0, clamped to 2^53 − 1.
pub fn natural(text: &str) -> Option<u64> {
    if let Ok(value) = text.parse::<u64>() {
        if text.starts_with('+') || (text.len() > 1 && text.starts_with('0')) {
            return None;
        }
        return Some(value.min(MAX_SAFE));
    }
    let value = number(text)?;
    if value < 0.0 || (value.is_finite() && value.fract() != 0.0) {
        return None;
    }
    Some(whole(value))
}

/// A double as an integer, clamped to 0 … 2^53 − 1; a fraction is cut off.
pub fn whole(value: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and the clamp follows"
    )]
    let whole = value as u64;
    whole.min(MAX_SAFE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_in_several_spellings() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("5000.0", 5000),
            ("5e3", 5000),
            ("9007199254740993", MAX_SAFE),
            ("1e400", MAX_SAFE),
            ("99999999999999999999999", MAX_SAFE),
        ] {
            assert_eq!(natural(text), Some(value), "{text}");
        }
        for bad in [
            "", "-1", "1.5", "\"5\"", "true", "NaN", "inf", "+5", "05", "0x5", "1 2", "-1e400",
        ] {
            assert_eq!(natural(bad), None, "{bad}");
        }
    }

    #[test]
    fn of_a_name_that_comes_again_the_last_value_counts() {
        let body = br#"{"b": 1, "a": 2, "b": 3, "c": 4, "b": 5, "\u0061": 6}"#;
        let fields = Fields::of_body(body).unwrap();
        let all: Vec<_> = fields
            .entries()
            .map(|(name, raw)| (name, raw.get()))
            .collect();
        assert_eq!(all, [("a", "6"), ("b", "5"), ("c", "4")]);
        assert_eq!(fields.natural("b"), Ok(Some(5)));
    }

    #[test]
    fn an_error_names_the_field() {
        let body = br#"{"a": {"b": "x", "c": 1}}"#;
        let fields = Fields::of_body(body).unwrap();
        let part = fields.part("a").unwrap();
        assert_eq!(part.within("b", 1, 5).unwrap_err().field, "a.b");
        assert_eq!(part.no_others().unwrap_err().field, "a.c");
        assert_eq!(fields.part("a").unwrap().within("c", 1, 5), Ok(Some(1)));
        assert_eq!(fields.no_others(), Ok(()));
    }

    #[test]
    fn empty_and_null_are_no_fields() {
        for body in ["", "  \n", "null", "{}"] {
            assert_eq!(Fields::of_body(body.as_bytes()).unwrap().names().count(), 0);
        }
        for body in ["[]", "1", "{", "{\"a\":}", "\u{feff}x"] {
            assert!(Fields::of_body(body.as_bytes()).is_err(), "{body}");
        }
        assert!(Fields::of_body(&[0xff]).is_err());
    }

    #[test]
    fn the_last_of_two_fields_counts() {
        let fields = Fields::of_body(br#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(fields.natural("a"), Ok(Some(2)));
    }
}
