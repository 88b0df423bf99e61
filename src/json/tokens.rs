//! The pieces of a text of JSON, one after another, without building anything:
//! what can be said of a text in one pass needs no more.
//!
//! The text has been found valid before; of any other the pieces mean nothing,
//! but they end.

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// `{` or `[`.
    Open {
        is_object: bool,
    },
    /// `}` or `]`.
    Close,
    Comma,
    Colon,
    /// A name or a text, with its quotes.
    Quoted(&'a str),
    /// A number, `true`, `false` or `null`.
    Word(&'a str),
}

/// The pieces that are left, each with its text.
pub struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    pub const fn of(text: &'a str) -> Self {
        Self(text)
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.0.split_at_checked(length).unwrap_or((self.0, ""));
        self.0 = rest;
        taken
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (Token<'a>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.0 = self.0.trim_ascii_start();
        let token = match self.0.bytes().next()? {
            b'{' => Token::Open { is_object: true },
            b'[' => Token::Open { is_object: false },
            b'}' | b']' => Token::Close,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => {
                let quoted = self.take(quoted_length(self.0));
                return Some((Token::Quoted(quoted), quoted));
            }
            _ => {
                let is_end = |byte: u8| byte.is_ascii_whitespace() || b"{}[],:\"".contains(&byte);
                let length = self.0.bytes().position(is_end);
                let word = self.take(length.unwrap_or(self.0.len()));
                return Some((Token::Word(word), word));
            }
        };
        Some((token, self.take(1)))
    }
}

/// How long the quoted text is with which this begins.
fn quoted_length(text: &str) -> usize {
    let mut is_escaped = false;
    let ends = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    // Both quotes are left out of the position.
    ends.map_or(text.len(), |at| at.saturating_add(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_falls_into_its_pieces() {
        for (text, wanted) in [
            (
                " { \"a b\" : [ 1 , -2.5e3 ,\ttrue\r\n] } ",
                "{|\"a b\"|:|[|1|,|-2.5e3|,|true|]|}",
            ),
            (
                r#"{"\" } \\" : "\\\"" , "" : null}"#,
                r#"{|"\" } \\"|:|"\\\""|,|""|:|null|}"#,
            ),
            (r#"["ü ä" , "\u0020"]"#, r#"[|"ü ä"|,|"\u0020"|]"#),
            (" 1e400 ", "1e400"),
            ("[ ]", "[|]"),
        ] {
            let pieces: Vec<_> = Tokens::of(text).map(|(_, piece)| piece).collect();
            assert_eq!(pieces.join("|"), wanted);
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_end(text in "[\\[\\]{}:,\"\\\\ a1ü]*") {
            let all: usize = Tokens::of(&text).map(|(_, piece)| piece.len()).sum();
            prop_assert!(all <= text.len());
        }
    }
}
