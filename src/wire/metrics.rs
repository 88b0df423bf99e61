//! What `GET /metrics` says, in the text form of Prometheus: base units, counts
//! end in `_total`, a HELP and a TYPE before each family.
//!
//! The figures come from the summaries that sources push, so they may be 15 s
//! old. Counts go on from when a source was made (`edge/summary.rs`). A label's value is a source's name or an outcome's word, never a
//! caller's text.

use core::fmt::Write as _;

use crate::access::refused::Credential;
use crate::governor::command::Outcome;
use crate::governor::tally::{BOUNDS_MS, Histogram, Tally};
use crate::protocol::directory::Summary;

/// The content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What one source pushed last.
#[derive(Clone, Debug)]
pub struct Figures {
    pub source: String,
    pub summary: Summary,
}

type Gauge = (&'static str, &'static str, fn(&Summary) -> u64);
type Counter = (&'static str, &'static str, fn(&Tally) -> u64);
type Spread = (&'static str, &'static str, fn(&Tally) -> &Histogram);

const GAUGES: [Gauge; 3] = [
    ("slots_in_use", "Slots held.", |s| s.in_use.into()),
    ("slots_limit", "The concurrency limit in force.", |s| {
        s.limit.into()
    }),
    ("waiters", "Callers in the queue.", |s| s.depth.into()),
];
const COUNTERS: [Counter; 4] = [
    ("releases_total", "Slots given back.", |t| t.released),
    (
        "expired_leases_total",
        "Leases that ended by time alone.",
        |t| t.expired,
    ),
    (
        "throttled_reports_total",
        "Reports of throttled upstream calls.",
        |t| t.throttled,
    ),
    (
        "refresh_refused_total",
        "Refresh tokens refused that were good once.",
        |t| t.refresh_refused,
    ),
];
const SPREADS: [Spread; 2] = [
    (
        "queue_wait_seconds",
        "How long granted callers had queued.",
        |t| &t.queued,
    ),
    (
        "hold_seconds",
        "How long slots were held that were given back.",
        |t| &t.held,
    ),
];

/// What was refused at the door, at the places of [`Credential::ALL`].
const REFUSED: [(&str, &str); Credential::ALL.len()] = [
    ("admin_refused_total", "Wrong admin tokens."),
    (
        "refresh_refused_total",
        "Refresh tokens refused that were never written here.",
    ),
];

/// The whole text, for sources in the order of their names. `refused`: what the
/// directory counted, at the places of [`Credential::ALL`].
pub fn text(all: &[Figures], refused: [u64; Credential::ALL.len()]) -> String {
    let mut out = String::new();
    for (name, help, figure) in GAUGES {
        family(&mut out, name, "gauge", help);
        for one in all {
            line(&mut out, name, &one.source, "", &figure(&one.summary));
        }
    }
    family(
        &mut out,
        "summary_timestamp_seconds",
        "gauge",
        "When the source pushed its figures.",
    );
    for one in all {
        let at = Seconds(one.summary.at.epoch_ms());
        line(&mut out, "summary_timestamp_seconds", &one.source, "", &at);
    }
    family(
        &mut out,
        "acquires_total",
        "counter",
        "Acquire attempts by outcome.",
    );
    for one in all {
        for (outcome, count) in Outcome::WORDS.iter().zip(one.summary.tally.outcomes) {
            let label = format!(",outcome=\"{outcome}\"");
            line(&mut out, "acquires_total", &one.source, &label, &count);
        }
    }
    for (name, help, figure) in COUNTERS {
        family(&mut out, name, "counter", help);
        for one in all {
            line(&mut out, name, &one.source, "", &figure(&one.summary.tally));
        }
    }
    for (name, help, figure) in SPREADS {
        family(&mut out, name, "histogram", help);
        for one in all {
            histogram(&mut out, name, &one.source, figure(&one.summary.tally));
        }
    }
    for ((name, help), count) in REFUSED.into_iter().zip(refused) {
        // Of the deployment, not of its locks.
        let name = format!("swarmvia_{name}");
        // Writing to a string can't fail.
        let _ = writeln!(
            out,
            "# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}"
        );
    }
    out
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(out, "# HELP swarmvia_locks_{name} {help}");
    let _ = writeln!(out, "# TYPE swarmvia_locks_{name} {kind}");
}

fn line(out: &mut String, name: &str, source: &str, labels: &str, value: &dyn core::fmt::Display) {
    let _ = writeln!(
        out,
        "swarmvia_locks_{name}{{source=\"{source}\"{labels}}} {value}"
    );
}

fn histogram(out: &mut String, name: &str, source: &str, known: &Histogram) {
    let bucket = format!("{name}_bucket");
    let mut sum = 0_u64;
    for (bound, count) in BOUNDS_MS.iter().zip(known.counts) {
        sum = sum.saturating_add(count);
        let label = format!(",le=\"{}\"", Seconds(*bound));
        line(out, &bucket, source, &label, &sum);
    }
    line(out, &bucket, source, ",le=\"+Inf\"", &known.count());
    line(
        out,
        &format!("{name}_sum"),
        source,
        "",
        &Seconds(known.sum_ms),
    );
    line(out, &format!("{name}_count"), source, "", &known.count());
}

/// Milliseconds, written as seconds without a superfluous zero.
struct Seconds(u64);

impl core::fmt::Display for Seconds {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (whole, rest) = (self.0.div_euclid(1000), self.0.rem_euclid(1000));
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let fraction = format!("{rest:03}");
        write!(f, "{whole}.{}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::ids::Ref;
    use crate::governor::time::{Millis, Span};

    #[test]
    fn alerts_and_dashboard_ask_only_for_what_there_is() {
        let known = text(&[], [0; 2]);
        for document in [
            include_str!("../../docs/alerts.yaml"),
            include_str!("../../docs/grafana.json"),
            include_str!("../../docs/operating.md"),
        ] {
            for rest in document.split("swarmvia_locks_").skip(1) {
                let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_');
                let name = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                let name = name.trim_end_matches("_bucket");
                let is_known = known.contains(&format!("# TYPE swarmvia_locks_{name} "));
                assert!(is_known, "{name}");
            }
            for words in document.split("outcome=").skip(1) {
                let words = words.trim_start_matches(['~', '"', '\\']);
                let end = words.find(|c: char| !c.is_ascii_lowercase() && c != '_' && c != '|');
                let words = words.get(..end.unwrap_or(words.len())).unwrap_or_default();
                for word in words.split('|').filter(|word| *word != "refused") {
                    assert!(Outcome::WORDS.contains(&word), "{word}");
                }
            }
        }
    }

    #[test]
    fn a_source_reads_as_prometheus_expects_it() {
        let mut tally = Tally::default();
        tally.attempt(Ref(1), Outcome::Granted, Span::from_ms(20));
        tally.attempt(Ref(2), Outcome::Rpm, Span::ZERO);
        tally.released = 1;
        tally.refresh_refused = 4;
        tally.held.add(Span::from_ms(1_250));
        let summary = Summary {
            at: Millis::from_epoch(1_710_000_000_500),
            limit: 10,
            in_use: 3,
            depth: 2,
            tally,
        };
        let source = "demo".to_owned();
        let text = text(&[Figures { source, summary }], [5, 6]);
        for expected in [
            "# HELP swarmvia_locks_slots_in_use Slots held.\n# TYPE swarmvia_locks_slots_in_use gauge\nswarmvia_locks_slots_in_use{source=\"demo\"} 3\n",
            "swarmvia_locks_summary_timestamp_seconds{source=\"demo\"} 1710000000.5\n",
            "swarmvia_locks_acquires_total{source=\"demo\",outcome=\"granted\"} 1\n",
            "swarmvia_locks_acquires_total{source=\"demo\",outcome=\"rpm\"} 1\n",
            "swarmvia_locks_queue_wait_seconds_bucket{source=\"demo\",le=\"0.01\"} 0\n",
            "swarmvia_locks_queue_wait_seconds_bucket{source=\"demo\",le=\"0.05\"} 1\n",
            "swarmvia_locks_hold_seconds_bucket{source=\"demo\",le=\"+Inf\"} 1\n",
            "swarmvia_locks_hold_seconds_sum{source=\"demo\"} 1.25\n",
            "swarmvia_locks_hold_seconds_count{source=\"demo\"} 1\n",
            "swarmvia_locks_refresh_refused_total{source=\"demo\"} 4\n",
            "# TYPE swarmvia_admin_refused_total counter\nswarmvia_admin_refused_total 5\n",
            "\nswarmvia_refresh_refused_total 6\n",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        // As a library reads it: three gauges and a moment, the outcomes, four
        // counters, two histograms, two counters of the deployment.
        let lines = text.lines().map(|line| Ok(line.to_owned()));
        let scrape = prometheus_parse::Scrape::parse(lines).unwrap();
        let histograms = scrape.samples.iter().filter(|sample| {
            matches!(&sample.value, prometheus_parse::Value::Histogram(counts)
                if counts.len() == BOUNDS_MS.len() + 1)
        });
        assert_eq!(histograms.count(), 2);
        assert_eq!(scrape.docs.len(), 13);
        for sample in &scrape.samples {
            let of_source = sample.metric.starts_with("swarmvia_locks_");
            assert_eq!(sample.labels.get("source").is_some(), of_source);
        }
    }
}
