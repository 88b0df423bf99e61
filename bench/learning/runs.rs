//! All runs that were asked for, on as many threads as there are processors.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::figures::Figures;
use crate::flavour::Flavour;
use crate::options::Options;
use crate::policy::Kind;
use crate::scenario::Case;
use crate::world::{self, Run};

/// Figures of all seeds together.
#[derive(Default)]
pub struct Results {
    by_run: BTreeMap<(Case, Kind), Figures>,
    /// Calls of the oracle that were rejected: more than none is a mistake.
    pub oracle_rejected: u64,
}

impl Results {
    pub fn get(&self, case: Case, kind: Kind) -> Option<&Figures> {
        self.by_run.get(&(told(case, kind), kind))
    }

    /// A figure of a policy in all cases that were run.
    pub fn all(&self, options: &Options, kind: Kind, of: fn(&Figures) -> f64) -> Vec<f64> {
        let cases = options.cases.iter();
        cases
            .filter_map(|case| self.get(*case, kind).map(of))
            .collect()
    }
}

/// The case as a policy meets it: what doesn't read headers is run once for all
/// flavours that say the same to its callers.
fn told(case: Case, kind: Kind) -> Case {
    let flavour = match (kind, case.flavour) {
        (Kind::Oracle, _) => Flavour::Bare,
        (_, flavour) if kind.reads_headers() => flavour,
        (_, Flavour::RetryAfter) => Flavour::RetryAfter,
        _ => Flavour::Bare,
    };
    Case { flavour, ..case }
}

pub fn run(options: &Options) -> Results {
    let cases: BTreeSet<Case> = of_kind(options, Kind::Oracle);
    let jobs = with_seeds(options, cases.into_iter().map(|case| (case, Kind::Oracle)));
    let runs = in_parallel(&jobs, |(case, kind, seed)| {
        world::run(*case, *kind, *seed, options.seconds, options.skew)
    });
    let oracles: BTreeMap<_, Run> = jobs.into_iter().zip(runs).collect();

    let of_measured = options.kinds.iter().flat_map(|kind| {
        let cases = of_kind(options, *kind);
        cases.into_iter().map(|case| (case, *kind))
    });
    let jobs = with_seeds(options, of_measured);
    let figures = in_parallel(&jobs, |(case, kind, seed)| {
        let oracle = &oracles[&(told(*case, Kind::Oracle), Kind::Oracle, *seed)];
        let run = world::run(*case, *kind, *seed, options.seconds, 1.0);
        Figures::of(*case, &run, oracle)
    });
    let mut by_run: BTreeMap<(Case, Kind), Vec<Figures>> = BTreeMap::new();
    for ((case, kind, _), figures) in jobs.into_iter().zip(figures) {
        by_run.entry((case, kind)).or_default().push(figures);
    }
    let seconds = oracles.values().flat_map(|run| &run.seconds);
    Results {
        by_run: by_run
            .into_iter()
            .map(|(key, all)| (key, Figures::sum(&all)))
            .collect(),
        oracle_rejected: seconds.map(|second| u64::from(second.throttled)).sum(),
    }
}

fn of_kind(options: &Options, kind: Kind) -> BTreeSet<Case> {
    options.cases.iter().map(|case| told(*case, kind)).collect()
}

fn with_seeds(
    options: &Options,
    runs: impl Iterator<Item = (Case, Kind)>,
) -> Vec<(Case, Kind, u64)> {
    runs.flat_map(|(case, kind)| (1..=options.seeds).map(move |seed| (case, kind, seed)))
        .collect()
}

/// The results in the order of the jobs.
fn in_parallel<J: Sync, R: Send>(jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs.len()));
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((nth, job)) = take(jobs, &next) {
                    let result = work(job);
                    done.lock().unwrap().push((nth, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(nth, _)| *nth);
    done.into_iter().map(|(_, result)| result).collect()
}

fn take<'a, J>(jobs: &'a [J], next: &AtomicUsize) -> Option<(usize, &'a J)> {
    let nth = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(nth).map(|job| (nth, job))
}
