//! What is asked for on the command line.

use crate::policy::Kind;
use crate::scenario::Case;

pub const USAGE: &str = "\
cargo bench --bench learning -- [options]
  --seeds N        runs per case, 10 if not said
  --minutes N      length of a run, 60 if not said
  --only A,B       cases by name or its beginning: a-bare, b, e-ietf
  --policy A,B     ours, fixed-right, fixed-twice, aimd, vegas, gradient2
  --check          fails if a bar is missed, and says which
  --judge NAME     whose bars --check looks at; ours if not said
  --skew X         misleads the oracle by this factor, to test --check
  --write          puts the table and the plots into bench/learning/
  --trace CASE     prints one run, five seconds a line
  --seed N         the seed of --trace, 1 if not said";

pub struct Options {
    pub seeds: u64,
    pub seconds: usize,
    pub cases: Vec<Case>,
    pub kinds: Vec<Kind>,
    pub check: bool,
    pub judge: Kind,
    pub skew: f64,
    pub write: bool,
    pub trace: Option<Case>,
    pub seed: u64,
}

impl Options {
    /// # Errors
    /// Says which word wasn't understood.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            seeds: 10,
            seconds: 3600,
            cases: Case::all(),
            kinds: Kind::MEASURED.to_vec(),
            check: false,
            judge: Kind::Ours,
            skew: 1.0,
            write: false,
            trace: None,
            seed: 1,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--seeds" => options.seeds = number(&value()?)?,
                "--minutes" => options.seconds = 60 * number::<usize>(&value()?)?,
                "--only" => options.cases = cases(&value()?)?,
                "--policy" => options.kinds = kinds(&value()?)?,
                "--check" => options.check = true,
                "--judge" => options.judge = kind(&value()?)?,
                "--skew" => options.skew = number(&value()?)?,
                "--write" => options.write = true,
                "--trace" => options.trace = cases(&value()?)?.first().copied(),
                "--seed" => options.seed = number(&value()?)?,
                // Cargo's own.
                "--bench" => {}
                _ => return Err(format!("{word} is not known")),
            }
        }
        Ok(options)
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

fn cases(text: &str) -> Result<Vec<Case>, String> {
    let asked: Vec<&str> = text.split(',').collect();
    let mut cases = Case::all();
    cases.retain(|case| asked.iter().any(|asked| case.name().starts_with(asked)));
    if cases.is_empty() {
        return Err(format!("{text} is no case"));
    }
    Ok(cases)
}

fn kinds(text: &str) -> Result<Vec<Kind>, String> {
    text.split(',').map(kind).collect()
}

fn kind(text: &str) -> Result<Kind, String> {
    let mut known = Kind::MEASURED.into_iter();
    let found = known.find(|kind| kind.name() == text);
    found.ok_or(format!("{text} is no policy"))
}
