//! What is asked of a text of JSON from outside before it is read: that it is
//! nested no deeper and holds no more than what it may be about, so that no
//! reading of it takes long; and where it says a name twice.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::tokens::{Token, Tokens};

/// Lists and objects within each other. Settings with inline keys have seven.
pub const DEEPEST: usize = 16;
/// Values in all. A list of 1,000 ranges and a set of 32 keys stay below 2,000.
pub const MOST_VALUES: usize = 4096;
/// Characters of a name that a path shows.
const MOST_SHOWN: usize = 64;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    TooDeep,
    TooMuch,
    /// An object says a name again, whatever its spelling.
    Repeated,
}

/// A flaw, and the path of the value in which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub flaw: Flaw,
    pub path: Path,
}

/// Names and indices from the outermost value to one inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
}

/// Looks through a valid text once.
///
/// # Errors
/// With the first flaw.
pub fn check(text: &str) -> Result<(), Found> {
    let mut scan = Scan::default();
    for (token, _) in Tokens::of(text) {
        if let Some(flaw) = scan.meets(token) {
            let steps = scan.levels.into_iter().filter_map(|level| level.at);
            let path = Path(steps.collect());
            return Err(Found { flaw, path });
        }
    }
    Ok(())
}

#[derive(Default)]
struct Scan {
    levels: Vec<Level>,
    values: usize,
}

/// A list or object that is not yet at its end.
struct Level {
    /// Of the value that comes, or is under way.
    at: Option<Step>,
    /// Those of an object so far.
    names: BTreeSet<String>,
    expects_name: bool,
}

impl Level {
    fn of(is_object: bool) -> Self {
        Self {
            at: (!is_object).then_some(Step::Index(0)),
            names: BTreeSet::new(),
            expects_name: is_object,
        }
    }

    fn goes_on(&mut self) {
        match &mut self.at {
            Some(Step::Index(index)) => *index = index.saturating_add(1),
            _ => self.expects_name = true,
        }
    }

    fn names(&mut self, quoted: &str) -> Option<Flaw> {
        // One that is no text by its escapes is itself, as it stands.
        let name = serde_json::from_str(quoted).unwrap_or_else(|_| quoted.to_owned());
        let is_new = self.names.insert(name.clone());
        self.at = Some(Step::Name(name));
        self.expects_name = false;
        (!is_new).then_some(Flaw::Repeated)
    }
}

impl Scan {
    fn meets(&mut self, token: Token<'_>) -> Option<Flaw> {
        match (token, self.levels.last_mut()) {
            (Token::Colon, _) => None,
            (Token::Close, _) => {
                self.levels.pop();
                None
            }
            (Token::Comma, level) => {
                if let Some(level) = level {
                    level.goes_on();
                }
                None
            }
            (Token::Quoted(quoted), Some(level)) if level.expects_name => level.names(quoted),
            (Token::Quoted(_) | Token::Word(_), _) => self.counts(),
            (Token::Open { is_object }, _) => {
                if self.levels.len() >= DEEPEST {
                    return Some(Flaw::TooDeep);
                }
                let flaw = self.counts();
                if flaw.is_none() {
                    self.levels.push(Level::of(is_object));
                }
                flaw
            }
        }
    }

    fn counts(&mut self) -> Option<Flaw> {
        self.values = self.values.saturating_add(1);
        (self.values > MOST_VALUES).then_some(Flaw::TooMuch)
    }
}

impl Path {
    /// Dotted, with indices in brackets: `access.jwt.jwks.keys[0].kid`.
    pub fn dotted(&self) -> String {
        let mut path = String::new();
        for step in &self.0 {
            match step {
                Step::Name(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.extend(name.chars().take(MOST_SHOWN));
                }
                Step::Index(index) => {
                    // Into a text: it can't fail.
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        path
    }

    /// The named value that this is in, at most so many names down.
    #[must_use]
    pub fn named(mut self, most: usize) -> Self {
        let is_name = |step: &Step| matches!(step, Step::Name(_));
        let names = self.0.iter().take_while(|step| is_name(step)).count();
        self.0.truncate(names.min(most));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flaw(text: &str) -> Option<(Flaw, String)> {
        let found = check(text).err()?;
        Some((found.flaw, found.path.dotted()))
    }

    #[test]
    fn a_name_that_comes_again_is_found_at_any_depth_and_in_any_spelling() {
        for (text, path) in [
            (r#"{"a":1,"a":1}"#, "a"),
            (r#"{"a":1,"\u0061":1}"#, "a"),
            (r#"{"a":null,"b":[],"a":{}}"#, "a"),
            (r#"{"a":{"b":1,"b":2},"a":3}"#, "a.b"),
            (r#"{"a":[{"b":1},{"b":1,"c":[],"b":1}]}"#, "a[1].b"),
            (r#"[[1,{"":1,"":2}]]"#, "[0][1]."),
            (r#"{"\ud800":1,"\ud800":2}"#, r#""\ud800""#),
        ] {
            assert_eq!(
                flaw(text),
                Some((Flaw::Repeated, path.to_owned())),
                "{text}"
            );
        }
        for good in [
            "{}",
            "1",
            r#""a""#,
            r#"{"a":"a","A":"a"}"#,
            r#"[{"a":1},{"a":1}]"#,
            r#"{"a":{"a":{"a":["a","a"]}},"b":{"a":1}}"#,
            r#"{"a":"\",\"a\":1","\\":1,"\"":2}"#,
        ] {
            assert_eq!(flaw(good), None, "{good}");
        }
    }

    #[test]
    fn depth_and_number_are_bounded() {
        for (depth, is_good) in [(16, true), (17, false), (30_000, false)] {
            let lists = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(check(&lists).is_ok(), is_good);
            let objects = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
            assert_eq!(check(&objects).is_ok(), is_good);
        }
        // The list itself is one.
        for (count, is_good) in [(4095, true), (4096, false)] {
            assert_eq!(
                check(&format!("[{}]", vec!["1"; count].join(","))).is_ok(),
                is_good
            );
        }
        let many = format!(r#"{{"a":{{"b":[{}]}}}}"#, vec!["{}"; 5000].join(","));
        assert_eq!(flaw(&many), Some((Flaw::TooMuch, "a.b[4093]".into())));
    }

    #[test]
    fn a_path_can_be_cut_to_its_first_names() {
        let path = Path(vec![
            Step::Name("a".into()),
            Step::Name("b".into()),
            Step::Index(3),
            Step::Name("c".into()),
        ]);
        assert_eq!(path.clone().named(3).dotted(), "a.b");
        assert_eq!(path.clone().named(1).dotted(), "a");
        assert_eq!(path.dotted(), "a.b[3].c");
    }
}
