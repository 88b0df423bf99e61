//! JSON that is written: bodies, documents, what is kept as text.
//!
//! A tree of its own rather than `serde_json::Value`, whose objects are maps:
//! that costs a multiple of the code. Nothing here is read back, except to be
//! passed on: reading is for [`crate::fields`].

mod read;
pub mod shape;
pub mod tokens;

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    Null,
    /// The text of a number, of a string, `true` or `false`; or of any value that
    /// is passed on as it is.
    Plain(Box<str>),
    List(Vec<Json>),
    /// Written in order of the names.
    Object(Vec<(Cow<'static, str>, Json)>),
}

/// A JSON object: `object! {"name": "x", "left": object! {"limit": 3}}`.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::json::Json::object([$(($name, $crate::json::Json::from($value))),*].into())
    };
}
pub(crate) use object;

impl Json {
    /// Of a name that comes again, the last value counts.
    pub fn object(members: Vec<(&'static str, Self)>) -> Self {
        let mut object = Self::Object(Vec::with_capacity(members.len()));
        for (name, value) in members {
            object.put_value(name, value);
        }
        object
    }

    /// Sets a member, if this is an object.
    pub fn put(&mut self, name: &'static str, value: impl Into<Self>) {
        self.put_value(name, value.into());
    }

    fn put_value(&mut self, name: &'static str, value: Self) {
        let Self::Object(members) = self else {
            return;
        };
        match members.binary_search_by(|(known, _)| known.as_ref().cmp(name)) {
            Ok(at) => {
                if let Some((_, known)) = members.get_mut(at) {
                    *known = value;
                }
            }
            Err(at) => members.insert(at, (name.into(), value)),
        }
    }

    /// The members of an object; none of anything else.
    pub fn members(&self) -> &[(Cow<'static, str>, Self)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    /// Leaves out the members that are `null`.
    #[must_use]
    pub fn without_nulls(mut self) -> Self {
        if let Self::Object(members) = &mut self {
            members.retain(|(_, value)| *value != Self::Null);
        }
        self
    }

    /// A text of JSON as it is, however deep; `None` if it is none.
    pub fn passed_on(text: &str) -> Option<Self> {
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        Some(match raw.get() {
            "null" => Self::Null,
            text => Self::Plain(text.into()),
        })
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Plain(text) => out.push_str(text),
            Self::List(items) => {
                let mut before = '[';
                for item in items {
                    out.push(before);
                    item.write(out);
                    before = ',';
                }
                out.push_str(if items.is_empty() { "[]" } else { "]" });
            }
            Self::Object(members) => {
                let mut before = '{';
                for (name, value) in members {
                    out.push(before);
                    write_text(name, out);
                    out.push(':');
                    value.write(out);
                    before = ',';
                }
                out.push_str(if members.is_empty() { "{}" } else { "}" });
            }
        }
    }
}

/// Writes a text with its quotes.
pub fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            ..' ' => {
                let code = u32::from(character);
                let digit = |nibble| char::from_digit(nibble, 16).unwrap_or('0');
                out.push_str("\\u00");
                out.push(digit(code >> 4));
                out.push(digit(code & 15));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&text)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        let mut quoted = String::new();
        write_text(text, &mut quoted);
        Self::Plain(quoted.into())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<u64> for Json {
    fn from(number: u64) -> Self {
        Self::Plain(number.to_string().into())
    }
}

impl From<u32> for Json {
    fn from(number: u32) -> Self {
        u64::from(number).into()
    }
}

impl From<u16> for Json {
    fn from(number: u16) -> Self {
        u64::from(number).into()
    }
}

impl From<bool> for Json {
    fn from(flag: bool) -> Self {
        Self::Plain(if flag { "true" } else { "false" }.into())
    }
}

impl<T: Into<Self>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Self>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A text is written as the usual library would read it.
        #[test]
        fn a_text_is_the_json_of_others(text in any::<String>(), number in any::<u64>()) {
            let ours = object! {"a": vec![text.as_str()], "b": number}.to_string();
            let theirs: serde_json::Value = serde_json::from_str(&ours).unwrap();
            prop_assert_eq!(theirs, serde_json::json!({"a": [text], "b": number}));
        }
    }

    #[test]
    fn what_is_passed_on_stays_as_it_is_and_must_be_json() {
        for text in [r#"{"b": [1e400, "\u0061"], "a":{}}"#, "1", "\"x\"", "[]"] {
            let padded = format!(" {text}\n");
            assert_eq!(Json::passed_on(&padded).unwrap().to_string(), text);
        }
        let deep = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
        assert_eq!(Json::passed_on(&deep).unwrap().to_string(), deep);
        assert_eq!(Json::passed_on(" null"), Some(Json::Null));
        for bad in ["", "{", "x", "1 2", "{}}", "\"", "[1,]"] {
            assert_eq!(Json::passed_on(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_object_is_written_in_order_of_its_names() {
        let inner = object! {"ü\n\"\\": "\u{7f}\u{1}", "none": None::<u32>};
        let mut all = object! {"b": 1_u64, "a": vec![inner, object! {}], "c": false};
        all.put("b", 2_u32);
        let text = all.to_string();
        let wanted = "{\"a\":[{\"none\":null,\"ü\\u000a\\\"\\\\\":\"\u{7f}\\u0001\"},{}],\"b\":2,\"c\":false}";
        assert_eq!(text, wanted);
        assert_eq!(object! {"a": None::<&str>}.without_nulls(), object! {});
    }
}
