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
use crate::scenario::Case;

const BEGIN: &str = "<!-- written by --write: begin -->";
const END: &str = "<!-- written by --write: end -->";

/// The section of results, in Markdown.
pub fn text(options: &Options, results: &Results) -> String {
    let mut text = String::new();
    let minutes = options.seconds / 60;
    let seeds = options.seeds;
    writeln!(
        text,
        "Goodput in % of the oracle's; {seeds} seeds of {minutes} minutes each. The mean is the \
         geometric one, with nothing above 100; the yield is goodput times the share of calls that \
         weren't throttled.\n"
    )
    .unwrap();
    text += &goodput(options, results);
    text += "\nCalls that were throttled, in % of all calls; for ours also after settling.\n\n";
    text += &throttled(options, results);
    if options.kinds.contains(&options.judge) {
        text += "\nThe rest of what was measured of ours.\n\n";
        text += &ours(options, results);
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

fn head(options: &Options, title: &str, more: &str) -> String {
    let names: Vec<&str> = options.kinds.iter().map(|kind| kind.name()).collect();
    format!(
        "| {title} | {} |{more}\n|---|{}{}\n",
        names.join(" | "),
        "--:|".repeat(names.len()),
        if more.is_empty() { "" } else { "--:|" }
    )
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {name} | {} |\n", cells.join(" | "))
}

fn cell(results: &Results, case: Case, kind: Kind, of: impl Fn(&Figures) -> f64) -> String {
    let figures = results.get(case, kind);
    figures.map_or("–".to_owned(), |figures| percent(of(figures)))
}

fn goodput(options: &Options, results: &Results) -> String {
    let mut text = head(options, "case", "");
    for case in &options.cases {
        let kinds = options.kinds.iter();
        let cells = kinds.map(|kind| cell(results, *case, *kind, Figures::ratio));
        text += &row(&case.name(), cells);
    }
    let all = |kind: &Kind, of| results.all(options, *kind, of);
    let kinds = options.kinds.iter();
    let means = kinds
        .clone()
        .map(|kind| percent(mean(all(kind, Figures::ratio))));
    text += &row("**mean**", means);
    let least = |kind| {
        let ratios = all(kind, Figures::ratio);
        percent(ratios.into_iter().fold(f64::INFINITY, f64::min))
    };
    text += &row("**worst**", kinds.clone().map(least));
    let yields = kinds.map(|kind| percent(mean(all(kind, Figures::yielded))));
    text += &row("**mean yield**", yields);
    text
}

fn throttled(options: &Options, results: &Results) -> String {
    let mut text = head(options, "case", " after settling |");
    for case in &options.cases {
        let kinds = options.kinds.iter();
        let cells = kinds.map(|kind| cell(results, *case, *kind, Figures::throttled_share));
        let late = cell(results, *case, options.judge, Figures::late_throttled_share);
        text += &row(&case.name(), cells.chain([late]));
    }
    text
}

fn ours(options: &Options, results: &Results) -> String {
    let mut text = "| case | rule | settled s, median | nine of ten | all | allowed | fairness \
                    | throttled late | allowed | service ms |\n\
                    |---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
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
            format!("{:.3}", figures.fairness),
            figures.late_throttled.to_string(),
            format!("{:.0}", figures.allowed_throttled()),
            format!("{:.0}", figures.service_ms),
        ];
        text += &row(&case.name(), cells.into_iter());
    }
    text
}

/// Says where one of Netflix's three has more goodput, at which price.
fn where_rivals_win(options: &Options, results: &Results) -> String {
    let mut text = String::new();
    for case in &options.cases {
        let Some(own) = results.get(*case, options.judge) else {
            continue;
        };
        for rival in Kind::NETFLIX {
            let Some(theirs) = results.get(*case, rival) else {
                continue;
            };
            // Both are at what the rule gives, if both are past it.
            if theirs.ratio().min(1.0) > own.ratio().min(1.0) {
                writeln!(
                    text,
                    "- {}: {} has {} %, ours {} %; throttled {} % against {} %",
                    case.name(),
                    rival.name(),
                    percent(theirs.ratio()),
                    percent(own.ratio()),
                    percent(theirs.throttled_share()),
                    percent(own.throttled_share())
                )
                .unwrap();
            }
        }
    }
    if text.is_empty() {
        return text;
    }
    format!("\nWhere one of Netflix's three has more goodput than ours:\n\n{text}")
}
