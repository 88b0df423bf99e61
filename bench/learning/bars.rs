//! The bars that a policy must clear, and which it missed.

use crate::figures::{Figures, mean};
use crate::options::Options;
use crate::policy::Kind;
use crate::runs::Results;

const LEAST_MEAN: f64 = 0.90;
const LEAST_IN_A_CASE: f64 = 0.75;
/// Of all steps and seeds, this share must have settled in time: the rest is
/// the noise of ten seconds of calls.
pub const SETTLED_SHARE: f64 = 0.9;
/// Nobody does better than the oracle by more, but for what follows.
const ORACLE_NOISE: f64 = 1.03;

/// What was missed, a sentence each.
pub fn missed(options: &Options, results: &Results) -> Vec<String> {
    let mut missed = Vec::new();
    let judged = options.judge;
    let name = judged.name();
    oracle(options, results, &mut missed);
    let ratios = results.all(options, judged, Figures::ratio);
    if ratios.is_empty() {
        missed.push(format!("{name} was not run"));
    }
    let own = mean(ratios);
    if own < LEAST_MEAN {
        missed.push(format!(
            "{name}: mean goodput is {:.1} % of the oracle's, below {:.0} %",
            100.0 * own,
            100.0 * LEAST_MEAN
        ));
    }
    for case in &options.cases {
        let Some(figures) = results.get(*case, judged) else {
            continue;
        };
        let case_name = case.name();
        in_case(&case_name, case.allowed_to_settle(), figures, &mut missed);
    }
    rivals(options, results, "goodput", Figures::ratio, &mut missed);
    rivals(options, results, "yield", Figures::yielded, &mut missed);
    missed
}

/// Better than each of Netflix's in the mean.
fn rivals(
    options: &Options,
    results: &Results,
    what: &str,
    of: fn(&Figures) -> f64,
    missed: &mut Vec<String>,
) {
    let judged = options.judge;
    let own = mean(results.all(options, judged, of));
    for rival in Kind::NETFLIX.into_iter().filter(|rival| *rival != judged) {
        let all = results.all(options, rival, of);
        let theirs = mean(all.iter().copied());
        if !all.is_empty() && theirs >= own {
            missed.push(format!(
                "{}: mean {what} {:.1} % is not above that of {}, {:.1} %",
                judged.name(),
                100.0 * own,
                rival.name(),
                100.0 * theirs
            ));
        }
    }
}

fn in_case(name: &str, allowed: usize, figures: &Figures, missed: &mut Vec<String>) {
    if figures.ratio() < LEAST_IN_A_CASE {
        missed.push(format!(
            "{name}: goodput is {:.1} % of the oracle's, below {:.0} %",
            100.0 * figures.ratio(),
            100.0 * LEAST_IN_A_CASE
        ));
    }
    if figures.late_throttled as f64 > figures.allowed_throttled() {
        missed.push(format!(
            "{name}: {} of {} calls throttled after settling ({:.1} %), {:.0} allowed",
            figures.late_throttled,
            figures.late_calls,
            100.0 * figures.late_throttled_share(),
            figures.allowed_throttled()
        ));
    }
    let settled = figures.settled_by(SETTLED_SHARE);
    if settled.is_none_or(|seconds| seconds > allowed) {
        let took = settled.map_or("not".to_owned(), |seconds| format!("in {seconds} s"));
        missed.push(format!(
            "{name}: nine of ten steps settled {took}, {allowed} s allowed"
        ));
    }
}

/// A wrong oracle makes every other figure worthless.
fn oracle(options: &Options, results: &Results, missed: &mut Vec<String>) {
    if results.oracle_rejected > 0 {
        missed.push(format!(
            "the oracle was rejected {} times",
            results.oracle_rejected
        ));
    }
    // Who uses up a window at once has one more in a run than who paces.
    let minutes = options.seconds as f64 / 60.0;
    for case in &options.cases {
        let windows = if case.letter.has_window() { 1.0 } else { 0.0 };
        let most = ORACLE_NOISE + windows / minutes;
        for kind in &options.kinds {
            // Who takes the neighbour's share has more than the oracle.
            let Some(figures) = results.get(*case, *kind).filter(|_| !case.is_shared()) else {
                continue;
            };
            if figures.ratio() > most {
                missed.push(format!(
                    "{}: {} has {:.1} % of the oracle's goodput, so the oracle is wrong",
                    case.name(),
                    kind.name(),
                    100.0 * figures.ratio()
                ));
            }
        }
    }
}
