//! JSON that is written: bodies, documents, what is kept as text.
//!
//! A tree of its own rather than `serde_json::Value`, whose objects are maps:
//! that costs a multiple of the code. Nothing here is read back, except to be
//! passed on: reading is for [`crate::fields`].

pub mod shape;
pub mod tokens;

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use crate::fields::Members;

/// Lists and objects within each other that are read.
const DEEPEST: u8 = 127;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    Null,
    /// The text of a number, of a string, `true` or `false`.
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

    /// A text of JSON in the form that is written here; `None` if it is none,
    /// or nested too deep.
    pub fn read(text: &str) -> Option<Self> {
        Self::read_within(text, DEEPEST)
    }

    fn read_within(text: &str, depth: u8) -> Option<Self> {
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        let text = raw.get();
        Some(match text.bytes().next()? {
            b'{' => {
                let depth = depth.checked_sub(1)?;
                let members: Members = serde_json::from_str(text).ok()?;
                let members = members.iter().map(|(name, raw)| {
                    let value = Self::read_within(raw.get(), depth)?;
                    Some((Cow::Owned(name.to_owned()), value))
                });
                Self::Object(members.collect::<Option<_>>()?)
            }
            b'[' => {
                let depth = depth.checked_sub(1)?;
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                let items = items
                    .into_iter()
                    .map(|raw| Self::read_within(raw.get(), depth));
                Self::List(items.collect::<Option<_>>()?)
            }
            b'"' => serde_json::from_str::<String>(text).ok()?.into(),
            b'n' => Self::Null,
            _ => Self::Plain(text.into()),
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

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|flag| flag.to_string()),
            any::<u64>().prop_map(|number| number.to_string()),
            any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
        ];
        leaf.prop_recursive(3, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5)
                    .prop_map(|items| format!("[ {}]", items.join(" ,"))),
                prop::collection::vec((any::<String>(), inner), 0..5).prop_map(|members| {
                    let member =
                        |(name, value): (String, String)| format!("{}: {value}", Json::from(name));
                    let members: Vec<String> = members.into_iter().map(member).collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        })
    }

    proptest! {
        /// It is written, and read again, as the usual library would have it.
        #[test]
        fn it_is_the_json_of_others(text in json()) {
            let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
            let ours = Json::read(&text).unwrap().to_string();
            prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&ours).unwrap(), &theirs);
            prop_assert_eq!(Json::read(&ours).unwrap().to_string(), ours);
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_not_read() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for (depth, is_read) in [(127, true), (128, false), (30_000, false)] {
            let text = nested(depth);
            assert_eq!(Json::read(&text).is_some(), is_read);
            if depth < 1000 {
                let theirs = serde_json::from_str::<serde_json::Value>(&text);
                assert_eq!(theirs.is_ok(), is_read, "like the usual library");
            }
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
