//! Lock calls on their way from the Worker to a source's object.

use super::log::{door_outcome, door_word};
use super::{Query, Url};
use crate::governor::command::Outcome;
use crate::governor::ids::{AttemptId, KeyId, RequestId, SlotId, Version};
use crate::governor::time::{Millis, Span};
use crate::outcome::Report;
use crate::outcome::rate::Rate;
use crate::wire::request::Carrier;

const BASE: &str = "http://source/v1/lock/";

/// Who calls, as far as the door could tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub request: RequestId,
    pub key: KeyId,
    /// When the key that was shown ends; `None` where the Worker's version doesn't
    /// say.
    pub expires: Option<Millis>,
    pub carrier: Carrier,
    /// The version of the settings by whose policy the door decided; `None`: it
    /// knew of none.
    pub policy: Option<Version>,
}

/// One lock call on its way to the object.
#[derive(Clone, Debug)]
pub struct LockCall {
    pub caller: Caller,
    pub verb: Verb,
}

#[derive(Clone, Debug)]
pub enum Verb {
    Acquire {
        attempt: AttemptId,
        ip: Option<Box<str>>,
        wait: Span,
        waited: Span,
    },
    /// `None`: what stood in the path can't be a slot id.
    Renew { slot: Option<SlotId> },
    Release {
        slot: Option<SlotId>,
        report: Report,
    },
    /// Is this caller let in? Asked before an answer that the policy or the body
    /// calls for. A refused acquire says what is to be logged.
    Check { refused: Option<Refused> },
}

/// An acquire that is refused if the caller is let in at all.
#[derive(Clone, Debug)]
pub struct Refused {
    pub outcome: Outcome,
    pub ip: Option<Box<str>>,
}

impl Verb {
    /// What is to be logged where the caller isn't let in; `None`: it is no
    /// acquire. Every way out of an acquire asks this, so none is without an entry.
    pub fn refused(&self, outcome: Outcome) -> Option<Refused> {
        let ip = match self {
            Self::Acquire { ip, .. } => ip,
            Self::Check { refused } => &refused.as_ref()?.ip,
            Self::Renew { .. } | Self::Release { .. } => return None,
        };
        let ip = ip.clone();
        Some(Refused { outcome, ip })
    }
}

impl Caller {
    /// Who calls, as the pairs of a URL.
    pub fn to_query(&self) -> String {
        Url::query().put_caller(self).0
    }

    /// `None` if it says nothing of a caller.
    pub fn from_query(query: &str) -> Option<Self> {
        caller(&Query::pairs(query))
    }
}

fn caller(query: &Query) -> Option<Caller> {
    Some(Caller {
        request: query.parse("request")?,
        key: query.parse("key")?,
        expires: query.parse("expires").map(Millis::from_epoch),
        carrier: carrier(query.text("carrier")?)?,
        policy: query.parse("policy"),
    })
}

impl LockCall {
    /// What each URL of a lock call begins with.
    pub const BASE: &str = BASE;

    pub fn to_url(&self) -> String {
        let (wait, waited) = self.times();
        format!(
            "{}&wait={}&waited={}",
            self.base_url(),
            wait.ms(),
            waited.ms()
        )
    }

    /// How long an acquire is ready to queue, and has queued before it was
    /// carried over; zero for what never queues.
    pub fn times(&self) -> (Span, Span) {
        match self.verb {
            Verb::Acquire { wait, waited, .. } => (wait, waited),
            _ => (Span::ZERO, Span::ZERO),
        }
    }

    /// The URL without the two times, which whoever calls appends.
    pub fn base_url(&self) -> String {
        let path = match self.verb {
            Verb::Acquire { .. } => "acquire",
            Verb::Renew { .. } => "renew",
            Verb::Release { .. } => "release",
            Verb::Check { .. } => "check",
        };
        let url = Url::new(BASE, path).put_caller(&self.caller);
        let url = match &self.verb {
            Verb::Acquire { attempt, ip, .. } => {
                url.put("attempt", attempt).put_some("ip", ip.as_ref())
            }
            Verb::Renew { slot } => url.put_some("slot", slot.as_ref()),
            Verb::Release { slot, report } => url
                .put_some("slot", slot.as_ref())
                .put_some("status", report.status.as_ref())
                .put_some("throttled", report.throttled.as_ref())
                .put_rate(&report.rate),
            Verb::Check { refused: None } => url,
            Verb::Check {
                refused: Some(refused),
            } => url
                .put("outcome", &door_word(refused.outcome))
                .put_some("ip", refused.ip.as_ref()),
        };
        url.0
    }

    /// `None` if the URL is no lock call.
    pub fn from_url(url: &str) -> Option<Self> {
        let (verb, query) = Query::of(url, BASE)?;
        let caller = caller(&query)?;
        let verb = match verb {
            "acquire" => Verb::Acquire {
                attempt: query.parse("attempt")?,
                ip: query.text("ip").map(Box::from),
                wait: Span::from_ms(query.parse("wait")?),
                waited: Span::from_ms(query.parse("waited")?),
            },
            "renew" => Verb::Renew {
                slot: query.parse("slot"),
            },
            "release" => Verb::Release {
                slot: query.parse("slot"),
                report: Report {
                    status: query.parse("status"),
                    throttled: query.parse("throttled"),
                    rate: rate(&query),
                },
            },
            "check" => Verb::Check {
                refused: query
                    .text("outcome")
                    .and_then(door_outcome)
                    .map(|outcome| Refused {
                        outcome,
                        ip: query.text("ip").map(Box::from),
                    }),
            },
            _ => return None,
        };
        Some(Self { caller, verb })
    }
}

impl Url {
    fn put_caller(self, caller: &Caller) -> Self {
        self.put("request", &caller.request)
            .put("key", &caller.key)
            .put("carrier", &carrier_word(caller.carrier))
            .put_some("policy", caller.policy.as_ref())
            .put_some("expires", caller.expires.map(Millis::epoch_ms).as_ref())
    }

    /// The nine numbers; those that are unknown are absent.
    fn put_rate(self, rate: &Rate) -> Self {
        let ms = |span: Option<Span>| span.map(Span::ms);
        self.put_some("retryAfter", ms(rate.retry_after).as_ref())
            .put_some("limit", rate.limit.as_ref())
            .put_some("remaining", rate.remaining.as_ref())
            .put_some("reset", ms(rate.reset).as_ref())
            .put_some("tokenLimit", rate.token_limit.as_ref())
            .put_some("tokenRemaining", rate.token_remaining.as_ref())
            .put_some("tokenReset", ms(rate.token_reset).as_ref())
            .put_some("window", ms(rate.window).as_ref())
            .put_some("concurrency", rate.concurrency_limit.as_ref())
    }
}

fn rate(query: &Query) -> Rate {
    let span = |name| query.parse(name).map(Span::from_ms);
    Rate {
        limit: query.parse("limit"),
        remaining: query.parse("remaining"),
        reset: span("reset"),
        token_limit: query.parse("tokenLimit"),
        token_remaining: query.parse("tokenRemaining"),
        token_reset: span("tokenReset"),
        retry_after: span("retryAfter"),
        window: span("window"),
        concurrency_limit: query.parse("concurrency"),
    }
}

fn carrier_word(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::KeyHeader => "header",
        Carrier::Bearer => "bearer",
        Carrier::Swarmvia => "swarmvia",
    }
}

fn carrier(word: &str) -> Option<Carrier> {
    [Carrier::KeyHeader, Carrier::Bearer, Carrier::Swarmvia]
        .into_iter()
        .find(|carrier| carrier_word(*carrier) == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::ids::SlotSecret;

    fn round_trip(verb: Verb) -> String {
        let expires = Some(Millis::from_epoch(1_710_000_000_000));
        let url = round_trip_of(verb.clone(), expires);
        assert!(url.contains("&expires=1710000000000"), "{url}");
        round_trip_of(verb, None)
    }

    fn round_trip_of(verb: Verb, expires: Option<Millis>) -> String {
        let call = LockCall {
            caller: Caller {
                request: RequestId(1),
                key: KeyId(2),
                expires,
                carrier: Carrier::Swarmvia,
                policy: None,
            },
            verb,
        };
        let url = call.to_url();
        let back = LockCall::from_url(&url).expect("what is written can be read");
        assert_eq!(format!("{call:?}"), format!("{back:?}"));
        assert_eq!(back.to_url(), url);
        url
    }

    const EVERYTHING: Rate = Rate {
        limit: Some(11),
        remaining: Some(0),
        reset: Some(Span::from_ms(13)),
        token_limit: Some(14),
        token_remaining: Some(crate::governor::time::MAX_SAFE),
        token_reset: Some(Span::from_ms(16)),
        retry_after: Some(Span::ZERO),
        window: Some(Span::from_ms(18)),
        concurrency_limit: Some(19),
    };

    #[test]
    fn every_call_survives_its_url() {
        let slot = Some(SlotId {
            row: 3,
            secret: SlotSecret(4),
        });
        round_trip(Verb::Check { refused: None });
        let (outcome, ip) = (Outcome::InvalidRequest, None);
        round_trip(Verb::Check {
            refused: Some(Refused { outcome, ip }),
        });
        round_trip(Verb::Renew { slot });
        round_trip(Verb::Renew { slot: None });
        round_trip(Verb::Release {
            slot,
            report: Report::default(),
        });
        let report = Report {
            status: Some(429),
            throttled: Some(2),
            rate: Rate {
                retry_after: Some(Span::from_ms(7)),
                ..Rate::default()
            },
        };
        round_trip(Verb::Release { slot: None, report });
        let report = Report {
            rate: EVERYTHING,
            ..report
        };
        round_trip(Verb::Release { slot, report });
        let (wait, waited) = (Span::from_ms(5), Span::from_ms(6));
        for ip in [None, Some("2001:db8::1".into())] {
            round_trip(Verb::Acquire {
                attempt: AttemptId(9),
                ip,
                wait,
                waited,
            });
        }
    }

    #[test]
    fn an_acquire_that_is_not_let_in_is_logged_however_malformed_it_was() {
        let refused = |verb: Verb| {
            let refused = verb.refused(Outcome::Unauthorized);
            refused.map(|Refused { outcome, ip }| (outcome, ip.unwrap_or_default().into()))
        };
        let ip = || Some("::1".into());
        let expected = Some((Outcome::Unauthorized, "::1".to_owned()));
        let acquire = Verb::Acquire {
            attempt: AttemptId(9),
            ip: ip(),
            wait: Span::ZERO,
            waited: Span::ZERO,
        };
        assert_eq!(refused(acquire), expected);
        let malformed = Refused {
            outcome: Outcome::InvalidRequest,
            ip: ip(),
        };
        let refused_acquire = Some(malformed);
        assert_eq!(
            refused(Verb::Check {
                refused: refused_acquire
            }),
            expected
        );
        assert_eq!(refused(Verb::Check { refused: None }), None);
        assert_eq!(refused(Verb::Renew { slot: None }), None);
        let report = Report::default();
        assert_eq!(refused(Verb::Release { slot: None, report }), None);
    }

    #[test]
    fn the_form_is_pinned() {
        let verb = Verb::Acquire {
            attempt: AttemptId(9),
            ip: Some("127.0.0.1".into()),
            wait: Span::from_ms(5),
            waited: Span::ZERO,
        };
        // Workers and objects of two versions meet during a deploy: changing
        // this breaks calls in flight.
        assert_eq!(
            round_trip(verb),
            "http://source/v1/lock/acquire?request=00000000000000000000000000000001&key=0000000000000002\
             &carrier=swarmvia&attempt=00000000000000000000000000000009&ip=127.0.0.1&wait=5&waited=0"
        );
    }

    #[test]
    fn the_form_of_a_report_is_pinned() {
        let report = Report {
            status: Some(200),
            throttled: None,
            rate: EVERYTHING,
        };
        let url = round_trip(Verb::Release { slot: None, report });
        let (_, said) = url.split_once("&status=").unwrap();
        assert_eq!(
            said,
            "200&retryAfter=0&limit=11&remaining=0&reset=13&tokenLimit=14\
             &tokenRemaining=9007199254740991&tokenReset=16&window=18&concurrency=19\
             &wait=0&waited=0"
        );
    }

    #[test]
    fn what_is_unknown_is_ignored_and_what_is_missing_is_no_call() {
        let url = round_trip(Verb::Check { refused: None });
        assert!(LockCall::from_url(&format!("{url}&new=1")).is_some());
        assert!(LockCall::from_url(&url.replace("key=", "kex=")).is_none());
        assert!(LockCall::from_url(&url.replace("check", "chuck")).is_none());
    }
}
