//! What a run is like: how many callers, how fast, and how often what fails.
//! Each run draws its own, so that some are calm, some go wrong in one way only
//! and some in every way.

use swarmvia_locks::access::policy::Policy;
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::Span;
use swarmvia_locks::outcome::Report;
use swarmvia_locks::outcome::rate::Rate;

use crate::rng::Rng;
use crate::support::moves::{POLICIES, policy};
use crate::support::{THIRTY_YEARS, limit, ms};

/// Rates are "once in so many"; 0 is never.
#[derive(Clone, Debug)]
pub struct Plan {
    pub adaptive: bool,
    pub callers: usize,
    /// Means, in ms.
    pub think: u64,
    pub hold: u64,
    pub waiting: u64,
    pub repeatable: u64,
    pub rude: u64,
    pub teaching: u64,
    /// Between any two steps.
    pub crash: u64,
    pub evict: u64,
    pub clock: u64,
    /// Of turns that write.
    pub write_fails: u64,
    pub write_reported: u64,
    /// Of turns.
    pub held_back: u64,
    /// Of messages.
    pub lost: u64,
    pub late: u64,
    pub lost_outside: u64,
    pub alarm: u64,
    /// Of refreshes; and of owners.
    pub crashes: u64,
    pub stolen: u64,
    /// Mean between two operations in ms; 0: none.
    pub operate: u64,
}

impl Plan {
    pub fn draw(rng: &mut Rng) -> Self {
        Self {
            adaptive: rng.one_in(3),
            callers: rng.between(3, 10) as usize,
            think: rng.pick(&[20, 200, 2_000]),
            hold: rng.pick(&[20, 400, 3_000]),
            waiting: rng.pick(&[1, 2, 2, 5]),
            repeatable: rng.pick(&[1, 2, 4]),
            rude: rng.pick(&[0, 4, 10]),
            teaching: rng.pick(&[0, 3, 10]),
            crash: rng.pick(&[0, 40, 200]),
            evict: rng.pick(&[0, 20, 100]),
            clock: rng.pick(&[0, 0, 60, 300]),
            write_fails: rng.pick(&[0, 15, 60]),
            write_reported: rng.pick(&[0, 15, 60]),
            held_back: rng.pick(&[0, 3, 8]),
            // Sometimes so many, and so late, that slow failures add up.
            lost: rng.pick(&[0, 8, 40, 2]),
            late: rng.pick(&[0, 10, 50, 2]),
            lost_outside: rng.pick(&[0, 10, 50]),
            alarm: rng.pick(&[0, 2, 10]),
            crashes: rng.pick(&[0, 2, 8]),
            stolen: rng.pick(&[0, 2, 8]),
            operate: rng.pick(&[0, 1_000, 5_000, 20_000]),
        }
    }

    /// Nothing fails any more.
    pub fn calm(&mut self) {
        let calm = Self {
            crash: 0,
            evict: 0,
            clock: 0,
            write_fails: 0,
            write_reported: 0,
            held_back: 0,
            lost: 0,
            late: 0,
            lost_outside: 0,
            crashes: 0,
            operate: 0,
            ..self.clone()
        };
        *self = calm;
    }

    pub fn settings(&self, rng: &mut Rng) -> Settings {
        let mut settings = limit(rng.between(1, 5) as u32);
        let term = rng.pick(&[500, 500, 3_000, 3_000, 3_000, 30_000, 120_000]);
        let terms = rng.between(1, 3);
        settings.rpm.limit = rng.pick(&[None, None, Some(3), Some(10), Some(60)]);
        settings.queue.max_depth = rng.pick(&[0, 2, 5, 100]);
        settings.queue.timeout = ms(rng.pick(&[0, 1_000, 5_000, 30_000]));
        settings.lease.term = ms(term);
        settings.lease.renew_interval = ms(term / 3);
        settings.lease.request_timeout = ms(term * terms - (terms - 1) * 100);
        settings.log.keep = rng.pick(&[100, 200]);
        settings.access = a_policy(rng);
        if self.adaptive {
            settings.concurrency.adaptive = !rng.one_in(4);
            settings.rpm.adaptive = !rng.one_in(3);
            settings.concurrency.max += rng.below(4) as u32;
        }
        settings
    }

    /// What a release reports; mostly nothing.
    pub fn report(&self, rng: &mut Rng) -> Report {
        if !rng.one_in(self.teaching) {
            return Report::default();
        }
        if rng.one_in(3) {
            let status = Some(200);
            return Report {
                status,
                ..Report::default()
            };
        }
        let span = |rng: &mut Rng| match rng.below(12) {
            0..3 => None,
            3..6 => Some(Span::ZERO),
            6..9 => Some(ms(rng.between(1, 900))),
            9..11 => Some(ms(rng.between(1_000, 20_000))),
            _ => Some(THIRTY_YEARS),
        };
        let count = |rng: &mut Rng| rng.pick(&[None, None, None, Some(0), Some(3), Some(50)]);
        let few = |rng: &mut Rng| count(rng).filter(|count| *count > 0);
        Report {
            status: rng.pick(&[None, Some(200), Some(429), Some(429), Some(503)]),
            throttled: rng.pick(&[None, Some(0), Some(2)]),
            rate: Rate {
                retry_after: span(rng),
                limit: few(rng),
                remaining: count(rng),
                reset: span(rng),
                token_remaining: count(rng),
                token_reset: span(rng),
                window: rng.pick(&[None, Some(ms(1_000)), Some(ms(60_000))]),
                concurrency_limit: few(rng),
                ..Rate::default()
            },
        }
    }
}

/// Mostly none. The object of this simulation doesn't ask newcomers: what a policy
/// says holds for those who wait when it comes.
fn a_policy(rng: &mut Rng) -> Policy {
    if rng.one_in(4) {
        policy(rng.pick(&POLICIES))
    } else {
        Policy::default()
    }
}
