//! A text of JSON in the form that is written here: of objects that say the
//! same, the texts are the same.
//!
//! One pass: a level of nesting costs no pass of its own.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::Json;
use super::tokens::{Token, Tokens};

/// Lists and objects within each other that are read.
const DEEPEST: u8 = 127;

impl Json {
    /// `None` if it is no JSON, has what is no text by its escapes, or is nested
    /// too deep.
    pub fn read(text: &str) -> Option<Self> {
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        let mut tokens = Tokens::of(raw.get());
        let (first, _) = tokens.next()?;
        value(first, &mut tokens, DEEPEST)
    }
}

/// The value that begins with `first`.
fn value(first: Token<'_>, rest: &mut Tokens<'_>, depth: u8) -> Option<Json> {
    match first {
        Token::Word("null") => Some(Json::Null),
        Token::Word(word) => Some(Json::Plain(word.into())),
        Token::Quoted(quoted) => Some(text(quoted)?.into()),
        Token::Open { is_object: true } => object(rest, depth.checked_sub(1)?),
        Token::Open { is_object: false } => list(rest, depth.checked_sub(1)?),
        Token::Close | Token::Comma | Token::Colon => None,
    }
}

fn list(rest: &mut Tokens<'_>, depth: u8) -> Option<Json> {
    let mut items = Vec::new();
    loop {
        match rest.next()?.0 {
            Token::Close => return Some(Json::List(items)),
            Token::Comma => {}
            first => items.push(value(first, rest, depth)?),
        }
    }
}

/// Of a name that comes again, the last value counts.
fn object(rest: &mut Tokens<'_>, depth: u8) -> Option<Json> {
    let mut members: Vec<(Cow<'static, str>, Json)> = Vec::new();
    loop {
        match rest.next()?.0 {
            Token::Close => break,
            Token::Quoted(name) => {
                let _colon = rest.next()?;
                let first = rest.next()?.0;
                members.push((Cow::Owned(text(name)?), value(first, rest, depth)?));
            }
            _ => {}
        }
    }
    // The sort keeps the order of equal names: the last one comes first.
    members.reverse();
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    members.dedup_by(|(later, _), (kept, _)| later == kept);
    Some(Json::Object(members))
}

fn text(quoted: &str) -> Option<String> {
    serde_json::from_str(quoted).ok()
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
    fn objects_that_say_the_same_are_written_alike() {
        for text in [
            r#"{"b":[1e400,"a"],"a":{"d":1,"c":null}}"#,
            " { \"a\" : {\"c\":null , \"d\":1}, \"\\u0062\" : [1e400,\"\\u0061\"] } ",
            r#"{"a":1,"b":2,"a":{"c":0,"d":1,"c":null},"b":[1e400,"a"]}"#,
        ] {
            let ours = Json::read(text).unwrap().to_string();
            assert_eq!(ours, r#"{"a":{"c":null,"d":1},"b":[1e400,"a"]}"#, "{text}");
        }
        for bad in [
            "",
            "{",
            "1 2",
            "[1,]",
            r#""\ud800""#,
            r#"{"\ud800":1}"#,
            "\u{feff}1",
        ] {
            assert_eq!(Json::read(bad), None, "{bad}");
        }
    }
}
