//! AIMD as Netflix published it: one more per good call while at least half of
//! the limit is in use, a tenth less per dropped or overlong one.

use crate::limited::{INITIAL, LEAST, Limit, MOST, Sample};

const BACKOFF: f64 = 0.9;
const OVERLONG_MS: f64 = 5000.0;

pub struct Aimd {
    limit: f64,
}

impl Default for Aimd {
    fn default() -> Self {
        Self { limit: INITIAL }
    }
}

impl Limit for Aimd {
    fn sample(&mut self, sample: Sample) {
        if sample.dropped || sample.rtt_ms > OVERLONG_MS {
            self.limit = (self.limit * BACKOFF).floor().min(self.limit - 1.0);
        } else if f64::from(sample.in_flight) * 2.0 >= self.limit {
            self.limit += 1.0;
        }
        self.limit = self.limit.clamp(LEAST, MOST);
    }

    fn limit(&self) -> u32 {
        self.limit as u32
    }
}
