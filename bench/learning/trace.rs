//! One run as text, five seconds a line: to see what a policy does, and when.

use crate::options::Options;
use crate::policy::Kind;
use crate::scenario::Case;
use crate::world;

const LINE: usize = 5;

pub fn print(options: &Options, case: Case) {
    let kind = options.kinds.first().copied().unwrap_or(Kind::Ours);
    let run = world::run(case, kind, options.seed, options.seconds, 1.0);
    let oracle = world::run(
        case,
        Kind::Oracle,
        options.seed,
        options.seconds,
        options.skew,
    );
    println!(
        "{}, {}, seed {}; the rule changes at {:?} s",
        case.name(),
        kind.name(),
        options.seed,
        run.steps
    );
    println!(
        "{:>6} {:>6} {:>10} {:>8} {:>8} {:>10} {:>14}",
        "from s", "limit", "in flight", "good/s", "oracle", "throttled", "rpm used/limit"
    );
    let lines = run.seconds.chunks(LINE).zip(oracle.seconds.chunks(LINE));
    for (nth, (seconds, oracle)) in lines.enumerate() {
        let last = seconds.last().copied().unwrap_or_default();
        let good: u32 = seconds.iter().map(|second| second.accepted).sum();
        let best: u32 = oracle.iter().map(|second| second.accepted).sum();
        let throttled: u32 = seconds.iter().map(|second| second.throttled).sum();
        let rpm = last.gauge.rpm;
        let rpm = rpm.map_or("–".to_owned(), |(limit, used)| format!("{used}/{limit}"));
        println!(
            "{:>6} {:>6} {:>10} {:>8.1} {:>8.1} {:>10} {:>14}",
            nth * LINE,
            last.gauge.limit,
            last.in_flight,
            f64::from(good) / LINE as f64,
            f64::from(best) / LINE as f64,
            throttled,
            rpm
        );
    }
}
