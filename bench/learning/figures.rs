//! What a run comes to, in figures.

use crate::policy::CALLERS;
use crate::scenario::{Case, WINDOW_MS};
use crate::world::{Run, Second};

/// Settled: for so many seconds within a tenth of the oracle; where calls are
/// counted in windows, for a window.
const SETTLED_FOR: usize = 10;
const WITHIN: f64 = 0.9;

#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Completed calls, and what the oracle completed.
    pub completed: u64,
    pub oracle: u64,
    pub calls: u64,
    pub throttled: u64,
    /// The same two, once it has settled or should have.
    pub late_calls: u64,
    pub late_throttled: u64,
    /// Windows in that time; 0 where calls aren't counted in windows.
    pub late_windows: u64,
    /// Seconds to settle after the start and after each step; `None`: never.
    pub settled: Vec<Option<usize>>,
    /// Jain's index over the callers' completed calls.
    pub fairness: f64,
    /// Of completed calls, the mean in milliseconds.
    pub service_ms: f64,
}

impl Figures {
    pub fn of(case: Case, run: &Run, oracle: &Run) -> Self {
        let completed = completed(&run.seconds);
        let mut figures = Self {
            completed,
            oracle: self::completed(&oracle.seconds),
            fairness: jain(&run.by_caller),
            service_ms: run.service_ms as f64 / completed.max(1) as f64,
            ..Self::default()
        };
        for second in &run.seconds {
            figures.throttled += u64::from(second.throttled);
            figures.calls += u64::from(second.throttled + second.accepted);
        }
        let mut late_seconds = 0;
        for (nth, from) in run.steps.iter().copied().enumerate() {
            let to = run.steps.get(nth + 1).copied();
            let to = to.unwrap_or(run.seconds.len()).min(run.seconds.len());
            let stretch = &run.seconds[from.min(to)..to];
            let settled = settled(case, stretch, &oracle.seconds[from.min(to)..to]);
            let grace = settled.unwrap_or(0).max(case.allowed_to_settle());
            let late = &stretch[grace.min(stretch.len())..];
            for second in late {
                figures.late_throttled += u64::from(second.throttled);
                figures.late_calls += u64::from(second.throttled + second.accepted);
            }
            late_seconds += late.len() as u64;
            figures.settled.push(settled);
        }
        if case.letter.has_window() {
            figures.late_windows = late_seconds / (WINDOW_MS / 1000);
        }
        figures
    }

    /// Goodput as a share of the oracle's.
    pub fn ratio(&self) -> f64 {
        self.completed as f64 / self.oracle.max(1) as f64
    }

    /// Goodput less what was wasted: the ratio, at most 1, times the share of
    /// calls that weren't throttled. Who hammers has goodput, but no yield.
    pub fn yielded(&self) -> f64 {
        self.ratio().min(1.0) * (1.0 - self.throttled_share())
    }

    pub fn throttled_share(&self) -> f64 {
        self.throttled as f64 / self.calls.max(1) as f64
    }

    pub fn late_throttled_share(&self) -> f64 {
        self.late_throttled as f64 / self.late_calls.max(1) as f64
    }

    /// Throttled calls after settling that are allowed: 1 %, or one per window.
    pub fn allowed_throttled(&self) -> f64 {
        (0.01 * self.late_calls as f64).max(self.late_windows as f64)
    }

    /// All seeds of a case together.
    pub fn sum(all: &[Self]) -> Self {
        let mut sum = Self::default();
        for one in all {
            sum.completed += one.completed;
            sum.oracle += one.oracle;
            sum.calls += one.calls;
            sum.throttled += one.throttled;
            sum.late_calls += one.late_calls;
            sum.late_throttled += one.late_throttled;
            sum.late_windows += one.late_windows;
            sum.settled.extend(&one.settled);
            sum.fairness += one.fairness / all.len() as f64;
            sum.service_ms += one.service_ms / all.len() as f64;
        }
        sum
    }

    /// Seconds within which this share of the steps was settled; `None`: they
    /// were not.
    pub fn settled_by(&self, share: f64) -> Option<usize> {
        let mut sorted: Vec<usize> = self
            .settled
            .iter()
            .map(|settled| settled.unwrap_or(usize::MAX))
            .collect();
        sorted.sort_unstable();
        let needed = (share * sorted.len() as f64).ceil().max(1.0) as usize;
        let at = sorted.get(needed - 1).copied();
        at.filter(|seconds| *seconds != usize::MAX)
    }
}

fn completed(seconds: &[Second]) -> u64 {
    seconds.iter().map(|s| u64::from(s.completed)).sum()
}

/// The first second of a stretch from which on goodput is within a tenth of the
/// oracle's mean there, for as long as it must be.
fn settled(case: Case, stretch: &[Second], oracle: &[Second]) -> Option<usize> {
    let span = if case.letter.has_window() {
        (WINDOW_MS / 1000) as usize
    } else {
        SETTLED_FOR
    };
    let of = |seconds: &[Second]| -> f64 { seconds.iter().map(|s| f64::from(s.accepted)).sum() };
    let needed = WITHIN * of(oracle) / oracle.len().max(1) as f64 * span as f64;
    stretch.windows(span).position(|part| of(part) >= needed)
}

fn jain(by_caller: &[u32; CALLERS]) -> f64 {
    let sum: f64 = by_caller.iter().map(|count| f64::from(*count)).sum();
    let squares: f64 = by_caller.iter().map(|c| f64::from(*c).powi(2)).sum();
    if squares == 0.0 {
        return 0.0;
    }
    sum * sum / (CALLERS as f64 * squares)
}

/// The geometric mean, each capped at 1 so that nothing makes up for a failure.
pub fn mean(ratios: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = ratios.into_iter().fold((0.0, 0.0), |(sum, count), ratio| {
        (sum + ratio.clamp(1e-6, 1.0).ln(), count + 1.0)
    });
    f64::exp(sum / f64::max(count, 1.0))
}
