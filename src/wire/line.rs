//! Lines of the platform's log, as JSON, for those who gather logs elsewhere: one
//! for each acquire attempt, with what the access log has, and one now and then
//! for tokens that were refused.
//!
//! It carries no secret: no slot id, no key, no header of a caller.

use crate::access::refused::{Credential, Refusals};
use crate::governor::command::Attempt;
use crate::governor::ids::KeyId;
use crate::json::{Json, object};

/// The line of an attempt at `source`.
pub fn of(source: &str, attempt: &Attempt) -> String {
    let line: Json = object! {
        "event": "acquire",
        "source": source,
        "at": attempt.at.epoch_ms(),
        "requestId": attempt.request.to_string(),
        "keyId": attempt.key.map(|key| key.to_string()),
        "ip": attempt.ip.as_deref(),
        "status": attempt.outcome.status(),
        "outcome": attempt.outcome.word(),
        "count": attempt.outcome.omitted(),
        "queuedMs": attempt.queued.ms(),
        "ref": attempt.slot_reference().map(|slot| slot.to_string()),
    };
    line.without_nulls().to_string()
}

/// The line of tokens that were refused at the door.
pub fn of_refusals(credential: Credential, refusals: &Refusals) -> String {
    refused(credential, None, refusals)
}

/// The line of refresh tokens that a source wrote once; the last was of `key`.
pub fn of_refused_refreshes(key: KeyId, refusals: &Refusals) -> String {
    refused(Credential::Refresh, Some(key), refusals)
}

fn refused(credential: Credential, key: Option<KeyId>, refusals: &Refusals) -> String {
    let line: Json = object! {
        "event": credential.action(),
        "count": refusals.count,
        "source": refusals.source.as_deref(),
        "keyId": key.map(|key| key.to_string()),
        "ip": refusals.ip.as_deref(),
    };
    line.without_nulls().to_string()
}

/// The share of attempts that a setting asks for, from 0 to 1; what can't be
/// read is 0.
pub fn share(setting: Option<&str>) -> f64 {
    let share = setting.and_then(|text| text.trim().parse::<f64>().ok());
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::command::{Outcome, SlotRow};
    use crate::governor::ids::{AttemptId, KeyId, Ref, RequestId, SlotSecret};
    use crate::governor::time::{Millis, Span};

    fn granted() -> Attempt {
        Attempt {
            row: 1,
            reference: Ref(7),
            at: Millis::from_epoch(1_710_000_000_000),
            request: RequestId(1),
            key: Some(KeyId(2)),
            ip: Some("192.0.2.1".into()),
            outcome: Outcome::Granted,
            queued: Span::from_ms(12),
            slot: Some(SlotRow {
                secret: SlotSecret(0xdead_beef),
                attempt: AttemptId(9),
                lease_deadline: Millis::from_epoch(1_710_000_030_000),
                request_deadline: Millis::from_epoch(1_710_000_060_000),
            }),
            replays: None,
        }
    }

    #[test]
    fn a_line_says_what_the_access_log_says_and_no_secret() {
        assert_eq!(
            of("demo", &granted()),
            r#"{"at":1710000000000,"event":"acquire","ip":"192.0.2.1","keyId":"0000000000000002","outcome":"granted","queuedMs":12,"ref":"7","requestId":"00000000000000000000000000000001","source":"demo","status":200}"#
        );
    }

    #[test]
    fn a_line_names_the_slot_that_was_given_and_none_where_there_was_none() {
        let repeat = Attempt {
            reference: Ref(8),
            slot: None,
            replays: Some(Ref(7)),
            ..granted()
        };
        assert!(of("demo", &repeat).contains(r#""ref":"7""#));
        let refused = Attempt {
            outcome: Outcome::Rpm,
            replays: None,
            ..repeat
        };
        assert!(!of("demo", &refused).contains("ref"));
    }

    #[test]
    fn a_line_of_refusals_says_how_many_and_who_was_the_last() {
        let refusals = Refusals {
            count: 3,
            ip: Some("192.0.2.1".into()),
            source: Some("demo".into()),
        };
        assert_eq!(
            of_refusals(Credential::Admin, &refusals),
            r#"{"count":3,"event":"admin_refused","ip":"192.0.2.1","source":"demo"}"#
        );
        assert_eq!(
            of_refused_refreshes(KeyId(2), &refusals),
            r#"{"count":3,"event":"refresh_refused","ip":"192.0.2.1","keyId":"0000000000000002","source":"demo"}"#
        );
    }

    #[test]
    fn a_share_is_from_0_to_1() {
        for (setting, expected) in [
            (None, 0.0),
            (Some("0.25"), 0.25),
            (Some(" 1 "), 1.0),
            (Some("2"), 0.0),
            (Some("-1"), 0.0),
            (Some("NaN"), 0.0),
            (Some("all"), 0.0),
        ] {
            assert!((share(setting) - expected).abs() < 1e-9, "{setting:?}");
        }
    }
}
