//! Vegas as Netflix published it: the queue at the upstream is estimated from
//! the shortest call seen, and kept between alpha and beta, which grow with the
//! logarithm of the limit. A dropped call counts as one too many.
//!
//! As published, a rejection that comes back fast also becomes the shortest call.

use crate::chance::{Chance, Stream};
use crate::limited::{INITIAL, LEAST, Limit, MOST, Sample};

/// The shortest call is measured anew after about so many calls per slot.
const PROBE_MULTIPLIER: f64 = 30.0;

pub struct Vegas {
    limit: f64,
    shortest_ms: Option<f64>,
    since_probe: f64,
    jitter: f64,
    chance: Chance,
}

impl Vegas {
    pub fn new(seed: u64) -> Self {
        let mut vegas = Self {
            limit: INITIAL,
            shortest_ms: None,
            since_probe: 0.0,
            jitter: 1.0,
            chance: Chance::new(seed, Stream::Policy),
        };
        vegas.draw_jitter();
        vegas
    }

    fn draw_jitter(&mut self) {
        self.jitter = 0.5 + self.chance.unit() / 2.0;
    }

    /// The limit after a call, or `None` where it stays.
    fn next(&self, sample: Sample, shortest_ms: f64) -> Option<f64> {
        let step = self.limit.floor().log10().floor().max(1.0);
        let (alpha, beta) = (3.0 * step, 6.0 * step);
        if sample.dropped {
            return Some(self.limit - step);
        }
        if f64::from(sample.in_flight) * 2.0 < self.limit {
            return None;
        }
        let queue = (self.limit * (1.0 - shortest_ms / sample.rtt_ms)).ceil();
        if queue <= step {
            return Some(self.limit + beta);
        }
        if queue < alpha {
            return Some(self.limit + step);
        }
        (queue > beta).then_some(self.limit - step)
    }
}

impl Limit for Vegas {
    fn sample(&mut self, sample: Sample) {
        self.since_probe += 1.0;
        if self.since_probe >= self.jitter * PROBE_MULTIPLIER * self.limit {
            self.draw_jitter();
            self.since_probe = 0.0;
            self.shortest_ms = Some(sample.rtt_ms);
            return;
        }
        let Some(shortest_ms) = self.shortest_ms.filter(|ms| *ms <= sample.rtt_ms) else {
            self.shortest_ms = Some(sample.rtt_ms);
            return;
        };
        if let Some(next) = self.next(sample, shortest_ms) {
            self.limit = next.clamp(LEAST, MOST);
        }
    }

    fn limit(&self) -> u32 {
        self.limit as u32
    }
}
