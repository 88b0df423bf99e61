//! Seeded random numbers, in streams that don't disturb each other: what one
//! policy draws more of moves nothing else, so all meet the same noise.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

/// What the numbers are for.
#[derive(Clone, Copy)]
pub enum Stream {
    Service = 1,
    Rejections = 2,
    Callers = 3,
    Neighbour = 4,
    Phase = 5,
    Policy = 6,
}

pub struct Chance(ChaCha8Rng);

impl Chance {
    pub fn new(seed: u64, stream: Stream) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream as u64);
        Self(rng)
    }

    /// From 0 up to, but not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From `least` up to, but not including, `end`.
    pub fn within(&mut self, least: u64, end: u64) -> u64 {
        least + (self.unit() * (end - least) as f64) as u64
    }

    /// Of the standard normal distribution.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Of the lognormal distribution with this mean.
    pub fn lognormal(&mut self, mean: f64, sigma: f64) -> f64 {
        let mu = mean.ln() - sigma * sigma / 2.0;
        (mu + sigma * self.normal()).exp()
    }
}
