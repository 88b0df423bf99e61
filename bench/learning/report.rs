//! The table, and where it is written.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use crate::bars::{SETTLED_SHARE, missed};
use crate::figures::{Figures, mean};
use crate::options::Options;
use crate::plot;
use crate::policy::Kind;
use crate::runs::Results;

const BEGIN: &str = "<!-- written by --write: begin -->";
const END: &str = "<!-- written by --write: end -->";

/// The section of results, in Markdown.
pub fn text(options: &Options, results: &Results) -> String {
    let minutes = options.seconds / 60;
    let seeds = options.seeds;
    let judged = options.judge.name();
    let mut text = format!(
        "Goodput in % of the oracle's, and after the dot the calls that were throttled in % of \
         all. {seeds} seeds of {minutes} minutes each.\n\n"
    );
    text += &everybody(options, results);
    if options.kinds.contains(&options.judge) {
        write!(text, "\nWhat else was measured of {judged}.\n\n").unwrap();
        text += &one(options, results);
    }
    text += &where_rivals_win(options, results);
    text
}

/// Writes the section and the plots.
///
/// # Errors
/// If a file can't be read or written, or has no place for the section.
pub fn write(options: &Options, results: &Results) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/learning");
    let readme = folder.join("README.md");
    let old = fs::read_to_string(&readme)?;
    let parts = old.split_once(BEGIN).and_then(|(head, rest)| {
        let (_, tail) = rest.split_once(END)?;
        Some((head, tail))
    });
    let Some((head, tail)) = parts else {
        return Err(io::Error::other("the README has no place for the table"));
    };
    let bars = bars(options, results);
    let section = text(options, results);
    fs::write(
        readme,
        format!("{head}{BEGIN}\n{bars}\n{section}{END}{tail}"),
    )?;
    fs::write(folder.join("goodput.svg"), plot::goodput(options, results))?;
    fs::write(folder.join("steps.svg"), plot::steps(options))
}

fn bars(options: &Options, results: &Results) -> String {
    let missed = missed(options, results);
    if missed.is_empty() {
        return "Every bar is cleared.\n".to_owned();
    }
    let mut text = format!("Bars that are missed: {}.\n\n", missed.len());
    for sentence in missed {
        writeln!(text, "- {sentence}").unwrap();
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {name} | {} |\n", cells.join(" | "))
}

fn everybody(options: &Options, results: &Results) -> String {
    let kinds = options.kinds.iter();
    let mut text = row("case", kinds.clone().map(|kind| kind.name().to_owned()));
    writeln!(text, "|---|{}", "--:|".repeat(options.kinds.len())).unwrap();
    for case in &options.cases {
        let cell = |kind| {
            let figures: Option<&Figures> = results.get(*case, kind);
            figures.map_or("–".to_owned(), |figures| {
                let throttled = percent(figures.throttled_share());
                format!("{} · {throttled}", percent(figures.ratio()))
            })
        };
        text += &row(&case.name(), kinds.clone().map(|kind| cell(*kind)));
    }
    let all = |kind: &Kind, of| results.all(options, *kind, of);
    let means = kinds.clone();
    let means = means.map(|kind| percent(mean(all(kind, Figures::ratio))));
    text += &row("**mean goodput**", means);
    let least = |kind| {
        let ratios = all(kind, Figures::ratio);
        percent(ratios.into_iter().fold(f64::INFINITY, f64::min))
    };
    text += &row("**worst goodput**", kinds.clone().map(least));
    let yields = kinds.map(|kind| percent(mean(all(kind, Figures::yielded))));
    text += &row("**mean yield**", yields);
    text
}

fn one(options: &Options, results: &Results) -> String {
    let mut text = "| case | rule | settled within s: half of the steps | nine of ten | all \
                    | allowed | throttled after settling | in % | allowed | fairness \
                    | service ms |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for case in &options.cases {
        let Some(figures) = results.get(*case, options.judge) else {
            continue;
        };
        let settled = |share| {
            let seconds = figures.settled_by(share);
            seconds.map_or("never".to_owned(), |seconds| seconds.to_string())
        };
        let cells = [
            case.letter.what().to_owned(),
            settled(0.5),
            settled(SETTLED_SHARE),
            settled(1.0),
            case.allowed_to_settle().to_string(),
            figures.late_throttled.to_string(),
            percent(figures.late_throttled_share()),
            format!("{:.0}", figures.allowed_throttled()),
            format!("{:.3}", figures.fairness),
            format!("{:.0}", figures.service_ms),
        ];
        text += &row(&case.name(), cells.into_iter());
    }
    text
}

/// Says where one of Netflix's three has more goodput, at which price.
fn where_rivals_win(options: &Options, results: &Results) -> String {
    let mut text = String::new();
    for rival in Kind::NETFLIX {
        let mut wins = Vec::new();
        for case in &options.cases {
            let both = results
                .get(*case, options.judge)
                .zip(results.get(*case, rival));
            // What is past the oracle's is nobody's merit.
            let won = both.filter(|(own, theirs)| theirs.ratio().min(1.0) > own.ratio().min(1.0));
            if let Some((own, theirs)) = won {
                wins.push(format!(
                    "{} ({} against {}, throttled {} against {})",
                    case.name(),
                    percent(theirs.ratio()),
                    percent(own.ratio()),
                    percent(theirs.throttled_share()),
                    percent(own.throttled_share())
                ));
            }
        }
        if !wins.is_empty() {
            writeln!(text, "- {}: {}", rival.name(), wins.join(", ")).unwrap();
        }
    }
    if text.is_empty() {
        return text;
    }
    let judged = options.judge.name();
    format!("\nWhere one of Netflix's three has more goodput than {judged}, in %:\n\n{text}")
}
