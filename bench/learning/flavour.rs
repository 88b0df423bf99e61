//! How an upstream tells its limits: headers as they are sent, and what a
//! caller reads in them.

use swarmvia_locks::governor::time::Millis;
use swarmvia_locks::outcome::dialects;
use swarmvia_locks::outcome::rate::Rate;

use crate::upstream::Standing;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// The status only.
    Bare,
    /// `Retry-After` on a rejection.
    RetryAfter,
    OpenAi,
    GitHub,
    /// The IETF draft's `RateLimit` and `RateLimit-Policy`.
    Ietf,
}

pub type Headers = Vec<(&'static str, String)>;

impl Flavour {
    pub const ALL: [Self; 5] = [
        Self::Bare,
        Self::RetryAfter,
        Self::OpenAi,
        Self::GitHub,
        Self::Ietf,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::RetryAfter => "retry-after",
            Self::OpenAi => "openai",
            Self::GitHub => "github",
            Self::Ietf => "ietf",
        }
    }

    /// Whether it says how many calls a window takes.
    pub const fn tells(self) -> bool {
        !matches!(self, Self::Bare | Self::RetryAfter)
    }

    /// The headers of an answer. `epoch_ms`: when it was decided.
    pub fn headers(self, standing: &Standing, epoch_ms: u64) -> Headers {
        match self {
            Self::Bare => Vec::new(),
            Self::RetryAfter => {
                let after = standing.retry_after_ms.map(|ms| ms.div_ceil(1000));
                let header = after.map(|seconds| ("retry-after", seconds.to_string()));
                header.into_iter().collect()
            }
            Self::OpenAi => openai(standing),
            Self::GitHub => github(standing, epoch_ms),
            Self::Ietf => ietf(standing),
        }
    }
}

fn openai(standing: &Standing) -> Headers {
    let Some(rate) = standing.rate else {
        return Vec::new();
    };
    vec![
        ("x-ratelimit-limit-requests", rate.limit.to_string()),
        ("x-ratelimit-remaining-requests", rate.remaining.to_string()),
        ("x-ratelimit-reset-requests", go_duration(rate.reset_ms)),
    ]
}

fn github(standing: &Standing, epoch_ms: u64) -> Headers {
    let Some(rate) = standing.rate else {
        return Vec::new();
    };
    let reset = (epoch_ms + rate.reset_ms).div_ceil(1000);
    vec![
        ("x-ratelimit-limit", rate.limit.to_string()),
        ("x-ratelimit-remaining", rate.remaining.to_string()),
        (
            "x-ratelimit-used",
            (rate.limit - rate.remaining).to_string(),
        ),
        ("x-ratelimit-reset", reset.to_string()),
    ]
}

fn ietf(standing: &Standing) -> Headers {
    let mut policies = Vec::new();
    let mut states = Vec::new();
    if let Some(rate) = standing.rate.filter(|rate| !rate.generous) {
        let window = rate.window_ms.div_ceil(1000);
        let reset = rate.reset_ms.div_ceil(1000);
        policies.push(format!("\"default\";q={};w={window}", rate.limit));
        states.push(format!("\"default\";r={};t={reset}", rate.remaining));
    }
    if let Some((most, free)) = standing.concurrency {
        policies.push(format!("\"parallel\";q={most};qu=\"concurrent-requests\""));
        states.push(format!("\"parallel\";r={free}"));
    }
    if policies.is_empty() {
        return Vec::new();
    }
    vec![
        ("ratelimit-policy", policies.join(", ")),
        ("ratelimit", states.join(", ")),
    ]
}

/// As Go prints a duration: `1m0.5s`, `59.87s`, `120ms`.
fn go_duration(ms: u64) -> String {
    if ms < 1000 {
        return if ms == 0 {
            "0s".to_owned()
        } else {
            format!("{ms}ms")
        };
    }
    let (minutes, rest) = (ms / 60_000, ms % 60_000);
    let fraction = format!("{:03}", rest % 1000);
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    let seconds = format!("{}{dot}{fraction}s", rest / 1000);
    if minutes == 0 {
        return seconds;
    }
    format!("{minutes}m{seconds}")
}

/// What the service makes of the headers. `epoch_ms`: when they are reported.
pub fn read(headers: &Headers, epoch_ms: u64) -> Rate {
    let mut raw = dialects::Headers::default();
    for (name, value) in headers {
        raw.add(name, value);
    }
    Rate::of_headers(&raw, Millis::from_epoch(epoch_ms))
}
