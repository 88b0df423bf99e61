//! Gradient2 as Netflix published it, in the window that its documents put it
//! into: once a second the average of the calls is held against a slow average,
//! and the limit follows their ratio. Dropped calls count as (short) calls only.

use crate::limited::{INITIAL, LEAST, Limit, MOST, Sample};

const TOLERANCE: f64 = 1.5;
const SMOOTHING: f64 = 0.2;
const QUEUE: f64 = 4.0;
const LONG_WINDOW: f64 = 600.0;
const WARM_UP: u32 = 10;
/// Of the window around it: its length, and the calls that it needs.
const WINDOW_MS: u64 = 1000;
const FEWEST_CALLS: u32 = 10;

pub struct Gradient2 {
    limit: f64,
    long: SlowAverage,
    window: Window,
}

#[derive(Default)]
struct Window {
    ends_at_ms: u64,
    calls: u32,
    rtt_sum: f64,
    most_in_flight: u32,
}

/// An average that is plain at first and exponential later.
#[derive(Default)]
struct SlowAverage {
    value: f64,
    sum: f64,
    count: u32,
}

impl SlowAverage {
    fn add(&mut self, sample: f64) {
        if self.count < WARM_UP {
            self.count += 1;
            self.sum += sample;
            self.value = self.sum / f64::from(self.count);
        } else {
            let factor = 2.0 / (LONG_WINDOW + 1.0);
            self.value = self.value * (1.0 - factor) + sample * factor;
        }
    }
}

impl Default for Gradient2 {
    fn default() -> Self {
        Self {
            limit: INITIAL,
            long: SlowAverage::default(),
            window: Window::default(),
        }
    }
}

impl Gradient2 {
    fn update(&mut self, short: f64, in_flight: u32) {
        self.long.add(short);
        let long = self.long.value;
        if long / short > 2.0 {
            self.long.value *= 0.9;
        }
        if f64::from(in_flight) < self.limit / 2.0 {
            return;
        }
        let gradient = (TOLERANCE * long / short).clamp(0.5, 1.0);
        let aim = self.limit * gradient + QUEUE;
        let next = self.limit * (1.0 - SMOOTHING) + aim * SMOOTHING;
        self.limit = next.clamp(LEAST, MOST);
    }
}

impl Limit for Gradient2 {
    fn sample(&mut self, sample: Sample) {
        self.window.calls += 1;
        self.window.rtt_sum += sample.rtt_ms;
        self.window.most_in_flight = self.window.most_in_flight.max(sample.in_flight);
        if sample.at_ms <= self.window.ends_at_ms {
            return;
        }
        let ended = std::mem::take(&mut self.window);
        self.window.ends_at_ms = sample.at_ms + WINDOW_MS;
        if ended.calls >= FEWEST_CALLS {
            let short = ended.rtt_sum / f64::from(ended.calls);
            self.update(short, ended.most_in_flight);
        }
    }

    fn limit(&self) -> u32 {
        self.limit as u32
    }
}
