//! A key set that stands in the settings themselves.
//!
//! It is read once, into the text that is passed on and into keys: a set may be
//! as large as a body, and whoever knows the policy has the keys.

use std::fmt;
use std::sync::Arc;

use super::keys::{BadKeySet, KeySet, private_member};
use crate::json::Json;

/// Two that say the same have the same text.
#[derive(Clone)]
pub struct InlineSet {
    text: Arc<str>,
    keys: Arc<KeySet>,
}

impl InlineSet {
    /// Reads the text of a JSON value.
    ///
    /// # Errors
    /// Says what must be otherwise, to follow the set's name.
    pub(super) fn parse(json: &str) -> Result<Self, String> {
        let text = Json::read(json).ok_or(BadKeySet::Malformed.message())?;
        let text = text.to_string();
        if let Some((index, member)) = private_member(&text) {
            return Err(format!(
                "must hold public keys only, but keys[{index}] has the private part \
                 \"{member}\"; that key is no longer a secret: replace it."
            ));
        }
        let keys = KeySet::parse(&text).map_err(BadKeySet::message)?;
        Ok(Self {
            text: text.into(),
            keys: Arc::new(keys),
        })
    }

    pub fn keys(&self) -> &KeySet {
        &self.keys
    }

    pub(super) fn to_json(&self) -> Json {
        Json::Plain((*self.text).into())
    }
}

impl PartialEq for InlineSet {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for InlineSet {}

impl fmt::Debug for InlineSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.keys, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

    #[test]
    fn sets_that_say_the_same_are_the_same_and_survive_their_json() {
        let came = format!("{{ \"z\" : [ 1e400,\n\"a  b\\u0020\" ] , \"keys\" : [ {KEY} ] }}");
        let set = InlineSet::parse(&came).unwrap();
        let other = InlineSet::parse(&format!(r#"{{"keys":[{KEY}],"z":[1e400,"a  b "]}}"#));
        assert_eq!(other.as_ref(), Ok(&set));
        let text = set.to_json().to_string();
        let again = InlineSet::parse(&text).unwrap();
        assert_eq!(again, set);
        assert_eq!(again.to_json().to_string(), text);
        assert_eq!(format!("{set:?}"), "KeySet(1 keys)");
    }

    #[test]
    fn a_private_part_is_found_whatever_stands_beside_it() {
        for more in [r#""d":"AA""#, r#""\u0064":"AA""#, r#""d":null,"d":1"#] {
            let private = KEY.replacen('{', &format!("{{{more},"), 1);
            let set = format!(r#"{{"keys":[{KEY},{private}]}}"#);
            let refused = InlineSet::parse(&set).unwrap_err();
            assert!(
                refused.contains("keys[1]") && refused.contains("\"d\""),
                "{more}"
            );
        }
        // Not even where a name beside it can't be read.
        let private = KEY.replacen('{', r#"{"d":"AA","\ud800":1,"#, 1);
        assert!(InlineSet::parse(&format!(r#"{{"keys":[{KEY},{private}]}}"#)).is_err());
    }

    #[test]
    fn a_set_as_deep_as_any_that_is_stored_is_read() {
        for (depth, is_read) in [(1, true), (16, true), (126, true), (127, false)] {
            let more = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
            let set = InlineSet::parse(&format!(r#"{{"keys":[{KEY}],"more":{more}}}"#));
            assert_eq!(set.is_ok(), is_read, "{depth}");
        }
    }
}
