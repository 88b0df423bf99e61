//! Answers as HTTP: the grant, the refusals, the governor's headers,
//! `Retry-After`. Randomness comes in as an argument.

use super::metrics;
use super::problem::{Kind, Problem};
use crate::door::dead::Death;
use crate::governor::command::{
    Answer, Dismissal, Gauge, Grant, Outcome, Refusal, Renewed, Verdict,
};
use crate::governor::ids::RequestId;
use crate::governor::time::{Millis, Span};
use crate::json::Json;

/// An HTTP answer before the headers that every answer carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl HttpAnswer {
    pub fn json(status: u16, body: &Json) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    /// The text of `GET /metrics`.
    pub fn metrics(text: String) -> Self {
        Self {
            status: 200,
            headers: vec![("Content-Type", metrics::CONTENT_TYPE.to_owned())],
            body: text,
        }
    }

    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Status and headers by lines, as `respond` in `worker/crossing.js` takes them,
    /// with the headers that every answer carries.
    pub fn head(&self, request: RequestId) -> String {
        let mut head = format!(
            "{}\nContent-Type\napplication/json\nCache-Control\nno-store\nX-Content-Type-Options\nnosniff\nx-swarmvia-request-id\n{request}",
            self.status
        );
        for (name, value) in &self.headers {
            for line in [*name, value] {
                head.push('\n');
                // What a line break would begin is no header of ours.
                head.push_str(line.lines().next().unwrap_or_default());
            }
        }
        head
    }
}

/// The answer to an acquire. `now` is the moment of the answer, `roll` any
/// random number.
pub fn acquire(answer: &Answer, now: Millis, roll: u32) -> HttpAnswer {
    let http = match &answer.verdict {
        Verdict::Granted(grant) => granted(grant),
        Verdict::Refused(refusal) => refused(*refusal, now, roll),
        Verdict::TimedOut(refusal) => timed_out(*refusal, now, roll),
        // Nothing of the governor is shown to someone who may not come in.
        Verdict::Dismissed(why) => return dismissed(*why).into_answer(),
        Verdict::Forbidden => return Problem::forbidden_address().into_answer(),
    };
    with_gauge(http, &answer.gauge, answer.queued)
}

/// The same words as at the door: whoever waited has shown a key of ours.
fn dismissed(why: Dismissal) -> Problem {
    match why {
        Dismissal::KeyEnded => Problem::dead_access_key(Death::Expired),
        Dismissal::KeyRevoked => Problem::dead_access_key(Death::Revoked),
        Dismissal::SourceDeleted => Problem::dead_access_key(Death::Unknown),
        Dismissal::WrongCarrier => Problem::bad_access_key(),
    }
}

fn granted(grant: &Grant) -> HttpAnswer {
    // Written by hand: the hottest body there is, and all of it is plain.
    let body = format!(
        r#"{{"slotId":"{}","leaseDeadline":{},"requestDeadline":{},"termMs":{},"renewIntervalMs":{}}}"#,
        grant.slot,
        grant.lease_deadline.epoch_ms(),
        grant.request_deadline.epoch_ms(),
        grant.term.ms(),
        grant.renew_interval.ms(),
    );
    let mut http = HttpAnswer {
        status: 200,
        headers: Vec::with_capacity(8),
        body,
    };
    if grant.replayed {
        http.headers.push(("x-swarmvia-replayed", "true".into()));
    }
    http
}

fn refused(refusal: Refusal, now: Millis, roll: u32) -> HttpAnswer {
    let message = match refusal {
        Refusal::QueueFull { .. } => {
            "The queue of this source is full; try again after Retry-After."
        }
        Refusal::Cooldown { .. } => {
            "The upstream asked to hold back; try again after Retry-After, or queue with waitMs."
        }
        Refusal::Rpm { .. } => {
            "The calls of this minute are used up; try again after Retry-After, or queue with waitMs."
        }
        Refusal::NoFreeSlot { .. } => {
            "All slots are in use; try again after Retry-After, or queue with waitMs."
        }
    };
    not_now(Kind::TooManyRequests, message, refusal, now, roll)
}

/// What kept it waiting says when it is worth to come again.
fn timed_out(refusal: Refusal, now: Millis, roll: u32) -> HttpAnswer {
    let message = "Its turn did not come within the waiting time, and nothing is held; try again after Retry-After, or wait longer.";
    not_now(Kind::QueueTimeout, message, refusal, now, roll)
}

fn not_now(
    kind: Kind,
    message: &'static str,
    refusal: Refusal,
    now: Millis,
    roll: u32,
) -> HttpAnswer {
    let mut problem = Problem::new(kind, message);
    problem.reason = Some(Outcome::from(refusal).word());
    let seconds = match refusal {
        Refusal::Cooldown { opens_at } | Refusal::Rpm { opens_at } => {
            // Whoever is answered late may hear of a moment that has come.
            let wait = opens_at.since(now).max(Span::from_ms(1));
            problem.retry_after = Some(wait);
            known_moment(wait, roll)
        }
        Refusal::QueueFull { earliest_end } | Refusal::NoFreeSlot { earliest_end } => {
            unknown_moment(earliest_end.map(|end| end.since(now)), roll)
        }
    };
    problem
        .with_header("Retry-After", seconds.to_string())
        .into_answer()
}

/// The wait rounded up, plus a random part of up to the larger of 2 s and 25 %,
/// so that a thousand callers don't come back as one.
fn known_moment(wait: Span, roll: u32) -> u64 {
    let spread = wait.seconds_up().div_ceil(4).max(2);
    wait.seconds_up().saturating_add(pick(spread, roll)).max(1)
}

/// From 1 to the smaller of 5 and the seconds until the earliest lease ends.
fn unknown_moment(until_end: Option<Span>, roll: u32) -> u64 {
    let most = until_end.map_or(5, |span| span.seconds_up().clamp(1, 5));
    pick(most.saturating_sub(1), roll).saturating_add(1)
}

/// A number from 0 to `most`.
fn pick(most: u64, roll: u32) -> u64 {
    u64::from(roll)
        .checked_rem(most.saturating_add(1))
        .unwrap_or(0)
}

fn with_gauge(mut http: HttpAnswer, gauge: &Gauge, queued: Span) -> HttpAnswer {
    let mut add = |name, value: u64| http.headers.push((name, value.to_string()));
    add("x-swarmvia-remaining-slots", gauge.remaining().into());
    add("x-swarmvia-effective-limit", gauge.limit.into());
    add("x-swarmvia-queued-ms", queued.ms());
    add("x-swarmvia-queue-depth", gauge.depth.into());
    if let Some(rpm) = gauge.rpm {
        add("x-swarmvia-rpm-limit", rpm.limit.into());
        add("x-swarmvia-rpm-remaining", rpm.remaining.into());
    }
    http
}

pub fn renew(renewed: Option<Renewed>) -> HttpAnswer {
    match renewed {
        Some(Renewed::Until(deadline)) => HttpAnswer {
            status: 200,
            headers: Vec::new(),
            body: format!(r#"{{"leaseDeadline":{}}}"#, deadline.epoch_ms()),
        },
        Some(Renewed::Capped) => Problem::new(
            Kind::Capped,
            "The lease already reaches the request deadline and can't be extended; release the slot.",
        )
        .into_answer(),
        None => Problem::new(
            Kind::NotFound,
            "No such slot is held: it was released, or its lease has ended; acquire a new one.",
        )
        .into_answer(),
    }
}

pub fn release(released: bool) -> HttpAnswer {
    HttpAnswer {
        status: 200,
        headers: Vec::new(),
        body: format!(r#"{{"released":{released}}}"#),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::command::RpmGauge;
    use crate::governor::ids::{SlotId, SlotSecret};
    use serde_json::{Value, json};

    const NOW: Millis = Millis::from_epoch(1_710_000_000_000);

    fn answer(verdict: Verdict) -> Answer {
        let rpm = Some(RpmGauge {
            limit: 60,
            remaining: 0,
        });
        Answer {
            verdict,
            queued: Span::from_ms(12),
            gauge: Gauge {
                limit: 3,
                in_use: 5,
                depth: 2,
                rpm,
            },
        }
    }

    fn header<'a>(http: &'a HttpAnswer, name: &str) -> Option<&'a str> {
        let found = http.headers.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_grant_reads_as_the_contract_says() {
        let grant = Grant {
            slot: SlotId {
                row: 0,
                secret: SlotSecret(0),
            },
            lease_deadline: NOW.plus(Span::from_seconds(30)),
            request_deadline: NOW.plus(Span::from_seconds(60)),
            term: Span::from_seconds(30),
            renew_interval: Span::from_seconds(10),
            replayed: true,
        };
        let http = acquire(&answer(Verdict::Granted(grant)), NOW, 0);
        assert_eq!(http.status, 200);
        let body: Value = serde_json::from_str(&http.body).unwrap();
        assert_eq!(
            body,
            json!({"slotId": "AAAAAAAAAAAAAAAAAAAAAAAAAAA", "leaseDeadline": 1_710_000_030_000_u64,
                "requestDeadline": 1_710_000_060_000_u64, "termMs": 30000, "renewIntervalMs": 10000})
        );
        for (name, value) in [
            ("x-swarmvia-replayed", "true"),
            ("x-swarmvia-remaining-slots", "0"),
            ("x-swarmvia-effective-limit", "3"),
            ("x-swarmvia-queued-ms", "12"),
            ("x-swarmvia-queue-depth", "2"),
            ("x-swarmvia-rpm-limit", "60"),
            ("x-swarmvia-rpm-remaining", "0"),
        ] {
            assert_eq!(header(&http, name), Some(value), "{name}");
        }
    }

    #[test]
    fn a_known_moment_is_exact_in_the_body_and_spread_in_the_header() {
        let refusal = Refusal::Rpm {
            opens_at: NOW.plus(Span::from_ms(40_001)),
        };
        let mut seen = std::collections::BTreeSet::new();
        for roll in 0..1000 {
            let http = acquire(&answer(Verdict::Refused(refusal)), NOW, roll);
            let body: Value = serde_json::from_str(&http.body).unwrap();
            assert_eq!(body["retryAfterMs"], 40_001);
            assert_eq!(body["reason"], "rpm");
            let seconds: u64 = header(&http, "Retry-After").unwrap().parse().unwrap();
            seen.insert(seconds);
        }
        assert_eq!(seen.first(), Some(&41));
        assert_eq!(seen.last(), Some(&52));
    }

    #[test]
    fn an_unknown_moment_is_a_guess_of_at_most_five_seconds() {
        for (left, most) in [
            (Some(90_000), 5),
            (Some(2_100), 3),
            (Some(1), 1),
            (Some(0), 1),
            (None, 5),
        ] {
            let earliest_end = left.map(|ms| NOW.plus(Span::from_ms(ms)));
            let mut seen = std::collections::BTreeSet::new();
            for roll in 0..100 {
                let refusal = Refusal::NoFreeSlot { earliest_end };
                let http = acquire(&answer(Verdict::Refused(refusal)), NOW, roll);
                let body: Value = serde_json::from_str(&http.body).unwrap();
                assert_eq!(body.get("retryAfterMs"), None);
                seen.insert(
                    header(&http, "Retry-After")
                        .unwrap()
                        .parse::<u64>()
                        .unwrap(),
                );
            }
            assert_eq!((seen.first(), seen.last()), (Some(&1), Some(&most)));
        }
    }

    #[test]
    fn who_waited_in_vain_hears_why_and_when_to_come_again_as_who_is_refused() {
        let opens_at = NOW.plus(Span::from_ms(40_001));
        let earliest_end = Some(NOW.plus(Span::from_ms(2_100)));
        for (refusal, reason, known, least, most) in [
            (Refusal::Cooldown { opens_at }, "cooldown", true, 41, 52),
            (Refusal::Rpm { opens_at }, "rpm", true, 41, 52),
            (
                Refusal::NoFreeSlot { earliest_end },
                "no_free_slot",
                false,
                1,
                3,
            ),
        ] {
            let mut seen = std::collections::BTreeSet::new();
            for roll in 0..1000 {
                let http = acquire(&answer(Verdict::TimedOut(refusal)), NOW, roll);
                assert_eq!(http.status, 504);
                let body: Value = serde_json::from_str(&http.body).unwrap();
                assert_eq!(body["error"], "queue_timeout");
                assert_eq!(body["reason"], reason);
                let told = body.get("retryAfterMs").and_then(Value::as_u64);
                assert_eq!(told, known.then_some(40_001));
                assert_eq!(header(&http, "x-swarmvia-queued-ms"), Some("12"));
                let seconds: u64 = header(&http, "Retry-After").unwrap().parse().unwrap();
                seen.insert(seconds);
            }
            assert_eq!((seen.first(), seen.last()), (Some(&least), Some(&most)));
        }
    }

    #[test]
    fn a_moment_that_has_come_meanwhile_is_the_least_wait_there_is() {
        for opens_at in [NOW, NOW.minus(Span::from_ms(5_000))] {
            let http = acquire(
                &answer(Verdict::TimedOut(Refusal::Rpm { opens_at })),
                NOW,
                0,
            );
            let body: Value = serde_json::from_str(&http.body).unwrap();
            assert_eq!(body["retryAfterMs"], 1);
            assert_eq!(header(&http, "Retry-After"), Some("1"));
        }
    }

    #[test]
    fn the_dismissed_see_nothing_of_the_governor() {
        for why in DISMISSALS {
            let http = acquire(&answer(Verdict::Dismissed(why)), NOW, 0);
            assert_eq!(http.status, 401);
            assert!(
                http.headers
                    .iter()
                    .all(|(name, _)| !name.starts_with("x-swarmvia"))
            );
        }
    }

    const DISMISSALS: [Dismissal; 4] = [
        Dismissal::KeyEnded,
        Dismissal::KeyRevoked,
        Dismissal::SourceDeleted,
        Dismissal::WrongCarrier,
    ];

    #[test]
    fn the_dismissed_are_told_what_became_of_their_key() {
        let words = ["expired", "revoked", "no longer known", "live access key"];
        for (why, word) in DISMISSALS.into_iter().zip(words) {
            let http = acquire(&answer(Verdict::Dismissed(why)), NOW, 0);
            assert!(http.body.contains(word), "{}", http.body);
        }
    }

    #[test]
    fn every_answer_carries_its_request_id_no_store_and_nosniff() {
        let head = release(true).head(RequestId(1));
        let lines: Vec<&str> = head.lines().collect();
        assert_eq!(lines.first(), Some(&"200"));
        let id = "00000000000000000000000000000001";
        for pair in [
            ["x-swarmvia-request-id", id],
            ["Cache-Control", "no-store"],
            ["X-Content-Type-Options", "nosniff"],
        ] {
            assert!(lines.windows(2).any(|two| two == pair), "{pair:?}");
        }
    }

    #[test]
    fn a_line_break_in_a_value_begins_no_header() {
        let http = release(true).with_header("Retry-After", "1\nSet-Cookie\na=b");
        assert!(http.head(RequestId(1)).ends_with("\nRetry-After\n1"));
    }
}
