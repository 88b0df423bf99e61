//! What may happen in a world, and how likely it is.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use swarmvia_locks::access::policy::{Loopback, Policy};
use swarmvia_locks::fields::Fields;
use swarmvia_locks::governor::ids::KeyId;
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::Span;
use swarmvia_locks::outcome::Report;
use swarmvia_locks::outcome::rate::Rate;

use super::{THIRTY_YEARS, limit, ms};

/// Names of attempts; the first half belongs to one key, the rest to another.
pub const ATTEMPTS: u128 = 8;

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Move {
    Acquire {
        attempt: u128,
        wait: Span,
        /// For how long its key lives on.
        life: Option<Span>,
        /// The Worker sends the last request of this attempt again.
        retry: bool,
    },
    /// Many fail-fast calls in one moment.
    Burst(u16),
    /// As many, each of which gives its slot back at once.
    Churn(u16),
    Leave(Index),
    Renew(Index),
    RenewForged(Index),
    Release(Index, Report),
    ReleaseForged(Index),
    Tick,
    /// Callers are refused at the door, some without a signed key.
    TurnedAway(Vec<bool>),
    Configure(Box<Settings>),
    Force(Index),
    Dismiss(KeyId),
    Close,
    /// Time passes, and the timer fires at each deadline.
    Pass(Span),
    /// Time passes, and no timer fires.
    Sleep(Span),
    /// The clock is set back.
    StepBack(Span),
    /// The object is reset; who stays is carried over, from one of them on.
    Reload {
        first: Index,
        stay: Vec<bool>,
    },
}

/// What callers may have to show. They come from two addresses, with two carriers.
pub const POLICIES: [&str; 5] = [
    "{}",
    r#"{"bearer":false}"#,
    r#"{"ipAllowlist":["192.0.2.0/24"]}"#,
    r#"{"ipAllowlist":["198.51.100.0/24"],"bearer":false}"#,
    r#"{"cloudflareAccess":{"teamDomain":"a.cloudflareaccess.com","audience":"b"}}"#,
];

pub fn policy(access: &str) -> Policy {
    let body = format!(r#"{{"access":{access}}}"#);
    let fields = Fields::of_body(body.as_bytes()).unwrap();
    Policy::parse(&fields.part("access").unwrap(), Loopback::Refused).unwrap()
}

pub fn settings() -> impl Strategy<Value = Settings> {
    let term = prop::sample::select(vec![500, 3_000, 30_000, 300_000]);
    let timeout = prop::sample::select(vec![0, 1_000, 5_000, 40_000]);
    let rpm = prop_oneof![2 => Just(None), 3 => (1..8_u32).prop_map(Some)];
    let access = prop_oneof![3 => Just(POLICIES[0]), 2 => prop::sample::select(POLICIES.to_vec())];
    let sizes = (0..5_u32, 1..3_u32);
    let parts = (1..5_u32, rpm, sizes, timeout, term, 1..4_u64, access);
    parts.prop_map(
        |(slots, rpm, (depth, keep), timeout, term, terms, access)| {
            let mut settings = limit(slots);
            settings.access = policy(access);
            settings.rpm.limit = rpm;
            settings.queue.max_depth = depth;
            settings.queue.timeout = ms(timeout);
            settings.lease.term = ms(term);
            settings.lease.renew_interval = ms(term / 3);
            // Once the term itself, so that a lease is capped from the start.
            settings.lease.request_timeout = ms(term * terms - (terms - 1) * 100);
            settings.log.keep = keep * 100;
            settings
        },
    )
}

fn span() -> impl Strategy<Value = Span> {
    let near = prop::sample::select(vec![0, 1, 499, 500, 501, 1_000, 3_000]);
    let ms = prop_oneof![4 => near, 4 => 0..2_500_u64, 1 => 20_000..70_000_u64];
    ms.prop_map(Span::from_ms)
}

fn report() -> impl Strategy<Value = Report> {
    let status = prop::sample::select(vec![None, Some(200), Some(429), Some(503)]);
    let throttled = prop::sample::select(vec![None, Some(0), Some(2)]);
    let hint = prop::sample::select(vec![None, Some(0), Some(700), Some(5_000), Some(90_000)]);
    let hint = prop_oneof![
        9 => hint.prop_map(|hint| hint.map(Span::from_ms)),
        1 => Just(Some(THIRTY_YEARS)),
    ];
    let window = || {
        let remaining = prop::sample::select(vec![None, None, Some(0), Some(3)]);
        let reset = prop::sample::select(vec![None, Some(0), Some(900), Some(70_000)]);
        (remaining, reset.prop_map(|reset| reset.map(Span::from_ms)))
    };
    let parts = (status, throttled, hint, window(), window());
    let report = parts.prop_map(
        |(status, throttled, retry_after, requests, tokens)| Report {
            status,
            throttled,
            rate: Rate {
                retry_after,
                remaining: requests.0,
                reset: requests.1,
                token_remaining: tokens.0,
                token_reset: tokens.1,
                ..Rate::default()
            },
        },
    );
    prop_oneof![3 => Just(Report::default()), 1 => report]
}

pub fn moves() -> impl Strategy<Value = Move> {
    let wait = prop_oneof![2 => Just(Span::ZERO), 3 => span(), 2 => Just(ms(30_000))];
    let life = prop_oneof![2 => Just(None), 1 => span().prop_map(Some)];
    let acquire = (0..ATTEMPTS, wait, life, prop::bool::weighted(0.2));
    let acquire = acquire.prop_map(|(attempt, wait, life, retry)| Move::Acquire {
        attempt,
        wait,
        life,
        retry,
    });
    let index = any::<Index>;
    let reload = (index(), vec(prop::bool::weighted(0.8), 8));
    prop_oneof![
        40 => acquire,
        2 => (1..90_u16).prop_map(Move::Burst),
        4 => index().prop_map(Move::Leave),
        10 => index().prop_map(Move::Renew),
        2 => index().prop_map(Move::RenewForged),
        16 => (index(), report()).prop_map(|(slot, report)| Move::Release(slot, report)),
        2 => index().prop_map(Move::ReleaseForged),
        3 => Just(Move::Tick),
        2 => vec(any::<bool>(), 1..8).prop_map(Move::TurnedAway),
        4 => settings().prop_map(|set| Move::Configure(Box::new(set))),
        2 => index().prop_map(Move::Force),
        1 => (1..4_u64).prop_map(|key| Move::Dismiss(KeyId(key))),
        1 => Just(Move::Close),
        14 => span().prop_map(Move::Pass),
        6 => span().prop_map(Move::Sleep),
        1 => span().prop_map(Move::StepBack),
        4 => reload.prop_map(|(first, stay)| Move::Reload { first, stay }),
    ]
}

/// Moves that write many rows.
pub fn writing() -> impl Strategy<Value = Move> {
    let index = any::<Index>;
    prop_oneof![
        3 => (1..150_u16).prop_map(Move::Burst),
        3 => (1..150_u16).prop_map(Move::Churn),
        2 => vec(any::<bool>(), 1..60).prop_map(Move::TurnedAway),
        2 => index().prop_map(Move::Renew),
        1 => (index(), Just(Report::default())).prop_map(|(at, report)| Move::Release(at, report)),
        1 => settings().prop_map(|set| Move::Configure(Box::new(set))),
        2 => span().prop_map(Move::Pass),
        2 => (55_000..65_000_u64).prop_map(|span| Move::Pass(ms(span))),
        1 => index().prop_map(|first| Move::Reload { first, stay: vec![true] }),
    ]
}
