//! An upstream with a hidden rule: what it accepts, what it says about it.
//!
//! It decides when a call arrives, and what its headers say is of that moment,
//! as a gateway in front of a service does it.

use crate::chance::{Chance, Stream};
use crate::scenario::{Letter, STEP_MS, WINDOW_MS};

const MEAN_SERVICE_MS: f64 = 800.0;
const SIGMA: f64 = 0.5;
const CALLS_PER_WINDOW: u32 = 300;
pub const NEIGHBOUR_PER_WINDOW: u32 = 150;
/// One token is 100 parts; one part comes back per millisecond.
const TOKEN: u64 = 100;
const BUCKET: u64 = 20 * TOKEN;
const SLOW_PAST: u32 = 30;
const FAILS_AT: u32 = 60;
/// The rate that an upstream announces that limits concurrency only.
const GENEROUS: u32 = 10_000;

/// What an arriving call comes to.
pub struct Outcome {
    pub status: u16,
    pub takes_ms: u64,
    pub standing: Standing,
}

impl Outcome {
    pub const fn accepted(&self) -> bool {
        self.status < 300
    }
}

/// What there is to say about the limits, whatever the headers' form.
#[derive(Clone, Copy, Default)]
pub struct Standing {
    pub rate: Option<RateStanding>,
    /// Calls at once, and how many more.
    pub concurrency: Option<(u32, u32)>,
    /// When to come back, where the call was rejected.
    pub retry_after_ms: Option<u64>,
}

#[derive(Clone, Copy)]
pub struct RateStanding {
    pub limit: u32,
    pub remaining: u32,
    /// To the end of the window, or until the bucket is full.
    pub reset_ms: u64,
    pub window_ms: u64,
    /// Not what limits; only some announce it.
    pub generous: bool,
}

pub struct Upstream {
    letter: Letter,
    /// How far into a window the run starts, in milliseconds.
    phase: u64,
    in_flight: u32,
    /// Index of the window that `used` counts in.
    window: u64,
    used: u32,
    /// Parts of tokens, as of `filled_at`.
    tokens: u64,
    filled_at: u64,
    service: Chance,
    rejections: Chance,
}

impl Upstream {
    pub fn new(letter: Letter, seed: u64) -> Self {
        Self {
            letter,
            phase: Chance::new(seed, Stream::Phase).within(0, WINDOW_MS),
            in_flight: 0,
            window: 0,
            used: 0,
            tokens: BUCKET,
            filled_at: 0,
            service: Chance::new(seed, Stream::Service),
            rejections: Chance::new(seed, Stream::Rejections),
        }
    }

    pub const fn phase(&self) -> u64 {
        self.phase
    }

    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// A call comes in. If it is accepted, [`Self::finish`] must follow.
    pub fn arrive(&mut self, now: u64) -> Outcome {
        self.pass_time(now);
        let rejected = self.rejection(now);
        if rejected.is_none() {
            self.in_flight += 1;
            self.tokens = self.tokens.saturating_sub(TOKEN);
        }
        if rejected.is_none() || self.is_generous() {
            self.used += 1;
        }
        let (status, takes_ms) = match rejected {
            Some((status, _)) => (status, self.rejections.within(30, 61)),
            None => (200, self.service_ms()),
        };
        let standing = Standing {
            rate: self.rate(now),
            concurrency: self
                .letter
                .concurrency_at(now)
                .map(|most| (most, most.saturating_sub(self.in_flight))),
            retry_after_ms: rejected.map(|(_, ms)| ms),
        };
        Outcome {
            status,
            takes_ms,
            standing,
        }
    }

    /// The answer to an accepted call has left.
    pub const fn finish(&mut self) {
        self.in_flight -= 1;
    }

    /// A call of the neighbour, which doesn't come back when it is rejected.
    pub fn neighbour_arrives(&mut self, now: u64) {
        self.pass_time(now);
        self.used = CALLS_PER_WINDOW.min(self.used + 1);
    }

    /// When the neighbour calls, until `end`: in each window of its stretches
    /// half of the calls, at random moments.
    pub fn neighbour_calls(&self, end: u64, chance: &mut Chance) -> Vec<u64> {
        if self.letter != Letter::F {
            return Vec::new();
        }
        let starts = (1..).map(|index| index * WINDOW_MS - self.phase);
        let mut calls = Vec::new();
        for start in starts.take_while(|start| *start < end) {
            if (start / STEP_MS) % 2 == 1 {
                let moments = (0..NEIGHBOUR_PER_WINDOW).map(|_| chance.within(0, WINDOW_MS));
                calls.extend(moments.map(|ms| start + ms));
            }
        }
        calls
    }

    /// Milliseconds between two calls of one who uses its share evenly.
    pub const fn fair_spacing(letter: Letter, phase: u64, now: u64) -> Option<u64> {
        match letter {
            Letter::B | Letter::D => Some(200),
            Letter::C => Some(100),
            Letter::F => {
                let start = ((now + phase) / WINDOW_MS * WINDOW_MS).saturating_sub(phase);
                if (start / STEP_MS) % 2 == 1 {
                    return Some(400);
                }
                Some(200)
            }
            Letter::A | Letter::E | Letter::G => None,
        }
    }

    const fn is_generous(&self) -> bool {
        matches!(self.letter, Letter::A | Letter::E)
    }

    fn pass_time(&mut self, now: u64) {
        let window = (now + self.phase) / WINDOW_MS;
        if window != self.window {
            self.window = window;
            self.used = 0;
        }
        self.tokens = BUCKET.min(self.tokens + (now - self.filled_at));
        self.filled_at = now;
    }

    /// Status, and when to come back.
    fn rejection(&self, now: u64) -> Option<(u16, u64)> {
        let most = self.letter.concurrency_at(now);
        if most.is_some_and(|most| self.in_flight >= most) {
            return Some((429, 1000));
        }
        match self.letter {
            Letter::B | Letter::D | Letter::F if self.used >= CALLS_PER_WINDOW => {
                Some((429, self.to_window_end(now)))
            }
            Letter::C if self.tokens < TOKEN => Some((429, TOKEN - self.tokens)),
            Letter::G if self.in_flight >= FAILS_AT => Some((503, 1000)),
            _ => None,
        }
    }

    /// How long the call takes that was just accepted.
    fn service_ms(&mut self) -> u64 {
        let ms = self.service.lognormal(MEAN_SERVICE_MS, SIGMA);
        let slowed = self.letter == Letter::G && self.in_flight > SLOW_PAST;
        let ms = if slowed { 2.0 * ms } else { ms };
        ms.round().max(1.0) as u64
    }

    const fn to_window_end(&self, now: u64) -> u64 {
        WINDOW_MS - (now + self.phase) % WINDOW_MS
    }

    fn rate(&self, now: u64) -> Option<RateStanding> {
        match self.letter {
            Letter::G => None,
            Letter::C => Some(RateStanding {
                limit: (BUCKET / TOKEN) as u32,
                remaining: (self.tokens / TOKEN) as u32,
                reset_ms: BUCKET - self.tokens,
                window_ms: BUCKET,
                generous: false,
            }),
            _ => {
                let generous = self.is_generous();
                let limit = if generous { GENEROUS } else { CALLS_PER_WINDOW };
                Some(RateStanding {
                    limit,
                    remaining: limit.saturating_sub(self.used),
                    reset_ms: self.to_window_end(now),
                    window_ms: WINDOW_MS,
                    generous,
                })
            }
        }
    }
}
