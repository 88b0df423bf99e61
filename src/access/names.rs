//! What a key may be called: a text that people read in lists, logs and dialogs.
//!
//! Nothing in it may be unseen, or change how what stands around it is shown.

use crate::fields::{FieldError, Fields};

/// Characters of a name, without the white space around it.
const MOST_CHARS: usize = 100;

/// The `name` of a body, if it has one.
///
/// # Errors
/// If it is no text, or can be no key's name.
pub fn key_name_of(fields: &Fields<'_>) -> Result<Option<String>, FieldError> {
    let text = fields.text("name", 0, usize::MAX);
    let text = text.map_err(|_| not_such_a_text())?;
    let name = text.as_deref().map(key_name).transpose()?;
    Ok(name.map(str::to_owned))
}

/// The name without the white space around it.
///
/// # Errors
/// If nothing or too much is left, or a character in it can't be seen.
fn key_name(text: &str) -> Result<&str, FieldError> {
    if text.chars().any(is_unseen) {
        let message = "name must hold no control, direction or invisible characters.";
        return Err(FieldError::new("name", message));
    }
    let name = text.trim();
    if (1..=MOST_CHARS).contains(&name.chars().count()) {
        return Ok(name);
    }
    Err(not_such_a_text())
}

fn not_such_a_text() -> FieldError {
    let message = format!("name must be a text of 1 to {MOST_CHARS} characters.");
    FieldError::new("name", message)
}

/// Whether a character leaves no trace of itself, or turns the text around it.
const fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            // Soft hyphen, joiners, marks and fillers.
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            // Line and paragraph separators, then the direction's embeddings.
            | '\u{2028}'..='\u{202e}'
            // Word joiner, unseen operators, the direction's isolates.
            | '\u{2060}'..='\u{206f}'
            // Blanks that are no white space: of Braille, a filler.
            | '\u{2800}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}'
            // Controls of musical notation, tags.
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_without_the_white_space_around_it() {
        for (text, name) in [
            ("worker-7", "worker-7"),
            (" worker 7  ", "worker 7"),
            ("\u{a0}\u{3000}Bücher 本 🚀\u{2003}", "Bücher 本 🚀"),
            ("<b>&amp;\"'`", "<b>&amp;\"'`"),
            ("❤\u{fe0f}", "❤\u{fe0f}"),
        ] {
            assert_eq!(key_name(text), Ok(name), "{text:?}");
        }
        let longest = "本".repeat(100);
        assert_eq!(key_name(&format!("  {longest} ")), Ok(longest.as_str()));
    }

    #[test]
    fn a_name_that_is_empty_or_too_long_is_none() {
        for text in ["", " ", "\u{3000}", &"x".repeat(101)] {
            assert_eq!(key_name(text).map_err(|e| e.field), Err("name".into()));
        }
    }

    #[test]
    fn what_is_no_name_is_told_the_same_bounds_whatever_is_wrong() {
        let of = |body: &str| key_name_of(&Fields::of_body(body.as_bytes()).unwrap());
        assert_eq!(of("{}"), Ok(None));
        assert_eq!(of(r#"{"name":null}"#), Ok(None));
        assert_eq!(of(r#"{"name":" a "}"#), Ok(Some("a".to_owned())));
        let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(101));
        for body in [
            r#"{"name":""}"#,
            r#"{"name":" "}"#,
            r#"{"name":5}"#,
            r#"{"name":"\ud800"}"#,
            &long,
        ] {
            let error = of(body).unwrap_err();
            assert_eq!(
                error.message, "name must be a text of 1 to 100 characters.",
                "{body}"
            );
        }
    }

    #[test]
    fn nothing_in_a_name_is_unseen_or_turns_the_text_around_it() {
        let ranges = [
            0..=0x1f,
            0x7f..=0x9f,
            0xad..=0xad,
            0x61c..=0x61c,
            0x200b..=0x200f,
            0x2028..=0x202e,
            0x2060..=0x2069,
            0x2800..=0x2800,
            0xfeff..=0xfeff,
            0xe0001..=0xe007f,
        ];
        for c in ranges.into_iter().flatten().filter_map(char::from_u32) {
            for text in [format!("a{c}b"), format!("{c}ab"), format!("ab{c}")] {
                let error = key_name(&text).unwrap_err();
                assert_eq!(error.field, "name", "{text:?}");
            }
        }
    }
}
