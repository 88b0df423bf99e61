//! Worker and object of neighbouring versions, as they meet during a deploy.
//!
//! The texts below are what the released version writes. They are pinned: a
//! version that can't read them, or gives them another sense, breaks calls that
//! are under way. To change a form, add to it, and add a line here.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

use swarmvia_locks::governor::ids::RequestId;
use swarmvia_locks::protocol::control::ControlCall;
use swarmvia_locks::protocol::directory::DirectoryCall;
use swarmvia_locks::protocol::lock::{LockCall, Verb};
use swarmvia_locks::protocol::log::Batch;
use swarmvia_locks::protocol::status::{ABSENT, AGAIN, DEAD_KEY, INTERNAL, STALE_POLICY};
use swarmvia_locks::protocol::tries;
use swarmvia_locks::wire::problem::Problem;
use swarmvia_locks::wire::request::{
    IDEMPOTENCY_HEADER, KEY_HEADER, NO_QUEUE_HEADER, QUEUE_TIMEOUT_HEADER,
};

const CALLER: &str =
    "request=00000000000000000000000000000001&key=0000000000000002&carrier=swarmvia";

/// Lock calls, each but for its caller.
const LOCK_CALLS: [(&str, &str); 8] = [
    (
        "acquire",
        "&attempt=00000000000000000000000000000009&ip=127.0.0.1&wait=5&waited=6",
    ),
    (
        "acquire",
        "&policy=0000000000000003&attempt=00000000000000000000000000000009&wait=0&waited=0",
    ),
    ("renew", "&wait=0&waited=0"),
    ("renew", "&expires=1710000000000&wait=0&waited=0"),
    (
        "check",
        "&policy=0000000000000003&expires=1710000000000&wait=0&waited=0",
    ),
    (
        "release",
        "&status=200&throttled=2&retryAfter=0&limit=11&remaining=0&reset=13&tokenLimit=14\
         &tokenRemaining=15&tokenReset=16&window=18&concurrency=19&wait=0&waited=0",
    ),
    ("check", "&wait=0&waited=0"),
    ("check", "&outcome=forbidden&ip=::1&wait=0&waited=0"),
];

fn lock_url(verb: &str, rest: &str) -> String {
    format!("http://source/v1/lock/{verb}?{CALLER}{rest}")
}

const CONTROL_CALLS: [&str; 16] = [
    "show?",
    "delete?",
    "reset?",
    "explain?",
    "slots?&limit=5&after=7",
    "keys?&limit=5&after=0000000000000003",
    "log?&limit=5&before=7-8",
    "log?&limit=5&outcome=refused&keyId=0000000000000003&requestId=00000000000000000000000000000004",
    "audit?&limit=5",
    "force?&ref=9",
    "revoke?&key=0000000000000003",
    "mint?&key=0000000000000003&ttl=2&refreshTtl=3&digest=DIGEST",
    "refresh?&key=0000000000000003&shown=DIGEST&successor=DIGEST",
    "put?&source=demo&version=0000000000000004&isNew=false",
    "put?&source=demo&version=0000000000000004&matches=*&isNew=false",
    "put?&source=demo&version=0000000000000004&matches=0000000000000001,0000000000000002&isNew=true",
];
/// Of a refresh token: 32 bytes.
const DIGEST: &str = "BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ";

const DIRECTORY_CALLS: [&str; 11] = [
    "register?source=demo&createdAt=1&updatedAt=2",
    "remove?source=demo",
    "has?source=demo",
    "push?source=demo&at=1&limit=2&inUse=3&depth=4",
    "list?limit=5&after=",
    "metrics?",
    "register?source=demo&createdAt=1&updatedAt=2&request=00000000000000000000000000000001&ip=::1",
    "remove?source=demo&request=00000000000000000000000000000001&ip=::1",
    "refused?credential=admin&count=3&source=demo&ip=::1",
    "refused?credential=refresh&count=1",
    "audit?limit=5&before=7-8",
];

/// As the version before names wrote it: 40 figures, and it reads no more of them.
const TALLY: &str = "12,3,0,0,5,0,0,0,0,0,7,11,2,1,10,2,0,0,0,0,0,0,0,0,0,0,64,\
    11,0,0,0,0,0,0,0,0,0,0,0,42";

#[test]
fn counts_go_between_neighbouring_versions_and_back_without_loss() {
    let url =
        format!("http://directory/v1/push?source=demo&at=1&limit=2&inUse=3&depth=4&tally={TALLY}");
    let call = DirectoryCall::from_url(&url).unwrap();
    let DirectoryCall::Push { summary, .. } = &call else {
        panic!("{call:?}");
    };
    assert_eq!(
        (summary.tally.outcomes[0], summary.tally.released),
        (12, 11)
    );
    // What goes out begins with what the version before reads.
    assert!(
        call.to_url().starts_with(&format!("{url},")),
        "{}",
        call.to_url()
    );
    let newer = format!("{url},granted:12,tokens:5");
    let newer = DirectoryCall::from_url(&newer).unwrap();
    assert!(newer.to_url().contains(",tokens:5"), "{}", newer.to_url());
}

#[test]
fn lock_calls_of_the_released_version_are_read_and_written_again_as_they_were() {
    for (verb, rest) in LOCK_CALLS {
        let url = lock_url(verb, rest);
        let call = LockCall::from_url(&url).unwrap_or_else(|| panic!("{url}"));
        assert_eq!(call.to_url(), url);
    }
}

#[test]
fn what_a_later_version_adds_is_ignored() {
    for (verb, rest) in LOCK_CALLS {
        let url = lock_url(verb, rest);
        let known = LockCall::from_url(&url).unwrap();
        let newer = url.replace('?', "?priority=high&") + "&region=weur&flag";
        let read = LockCall::from_url(&newer).unwrap_or_else(|| panic!("{newer}"));
        assert_eq!(format!("{read:?}"), format!("{known:?}"));
    }
    for path in DIRECTORY_CALLS {
        let url = format!("http://directory/v1/{path}");
        let known = DirectoryCall::from_url(&url).unwrap_or_else(|| panic!("{url}"));
        // What was added since comes after what was there: the tally of a push.
        assert!(known.to_url().starts_with(&url), "{}", known.to_url());
        assert_eq!(
            DirectoryCall::from_url(&format!("{url}&new=1")),
            Some(known)
        );
    }
}

#[test]
fn what_an_earlier_version_does_not_say_has_its_default() {
    // Before learning, a report had a status, throttles and a hint.
    let earlier = lock_url("release", "&status=429&retryAfter=7&wait=0&waited=0");
    let call = LockCall::from_url(&earlier).unwrap();
    let Verb::Release { slot: None, report } = call.verb else {
        panic!("not a release");
    };
    assert_eq!(report.status, Some(429));
    assert_eq!(report.rate.limit, None);
    assert_eq!(call.caller.policy, None);
    // Nor did an acquire that was refused say why, or an acquire where from.
    let acquire = lock_url(
        "acquire",
        "&attempt=00000000000000000000000000000009&wait=0&waited=0",
    );
    assert!(matches!(
        LockCall::from_url(&acquire).unwrap().verb,
        Verb::Acquire { ip: None, .. }
    ));
}

#[test]
fn control_calls_of_the_released_version_are_read_and_written_again_as_they_were() {
    for path in CONTROL_CALLS {
        let (action, rest) = path.split_once('?').unwrap();
        let rest = rest.replace("DIGEST", DIGEST);
        let url = format!(
            "http://source/v1/control/{action}?request=00000000000000000000000000000001&ip=::1{rest}"
        );
        let call = ControlCall::from_url(&url).unwrap_or_else(|| panic!("{url}"));
        assert_eq!(call.to_url(), url);
        assert_eq!(ControlCall::from_url(&format!("{url}&later=1")), Some(call));
    }
}

#[test]
fn batches_leave_out_what_they_do_not_understand() {
    let entry = |word| format!("entry=00000000000000000000000000000001~~{word}~0~7~::1");
    let url = format!(
        "http://source/v1/turned-away?{}&{}&later=1&{}",
        entry("unauthorized"),
        entry("a_word_of_the_future"),
        entry("forbidden"),
    );
    assert_eq!(Batch::from_url(&url).unwrap().0.len(), 2);
}

#[test]
fn a_batch_may_say_which_keys_are_dead_and_earlier_versions_do_not() {
    let entry = |end| {
        format!("entry=00000000000000000000000000000001~0000000000000002~unauthorized~0~7~::1{end}")
    };
    let url = |end| format!("http://source/v1/turned-away?{}", entry(end));
    for (end, is_live) in [("", true), ("~dead", false)] {
        let batch = Batch::from_url(&url(end)).unwrap();
        assert_eq!(batch.0[0].is_live, is_live);
        assert_eq!(batch.0[0].ip.as_deref(), Some("::1"));
        assert_eq!(batch.to_url(), url(end));
    }
    assert_eq!(Batch::from_url(&url("~dead~later")).unwrap().0.len(), 1);
}

#[test]
fn the_statuses_between_worker_and_object_are_pinned() {
    assert_eq!(
        [AGAIN, DEAD_KEY, STALE_POLICY, ABSENT],
        [599, 598, 597, 596]
    );
    assert!(
        [AGAIN, DEAD_KEY, STALE_POLICY, ABSENT]
            .iter()
            .all(|status| *status >= INTERNAL)
    );
}

#[test]
fn what_javascript_says_of_what_both_know_is_what_rust_says() {
    let unavailable = Problem::unavailable(1).into_answer();
    let body: serde_json::Value = serde_json::from_str(&unavailable.body).unwrap();
    let head = unavailable.head(RequestId(7));
    let id_header = head
        .lines()
        .zip(head.lines().skip(1))
        .find(|(_, value)| *value == RequestId(7).to_string())
        .unwrap()
        .0;
    let number = |value: u64| value.to_string();
    let text = |value: &str| format!("{value:?}");
    let said = [
        ("INTERNAL", number(INTERNAL.into())),
        ("AGAIN", number(AGAIN.into())),
        ("PATIENCE_MS", number(tries::PATIENCE.ms())),
        ("MOST_TRIES", number(tries::MOST_TRIES.into())),
        ("FIRST_PAUSE_MS", number(tries::FIRST_PAUSE.ms())),
        ("QUIET_MS", number(tries::QUIET.ms())),
        ("KEY_HEADER", text(KEY_HEADER)),
        ("QUEUE_TIMEOUT_HEADER", text(QUEUE_TIMEOUT_HEADER)),
        ("NO_QUEUE_HEADER", text(NO_QUEUE_HEADER)),
        ("IDEMPOTENCY_HEADER", text(IDEMPOTENCY_HEADER)),
        ("REQUEST_ID_HEADER", text(id_header)),
        ("UNAVAILABLE", text(body["message"].as_str().unwrap())),
    ];
    let agreed: Vec<(&str, String)> = include_str!("../worker/agreed.js")
        .lines()
        .filter_map(|line| {
            let (name, value) = line.strip_prefix("export const ")?.split_once(" = ")?;
            let value = value.strip_suffix(';')?;
            let is_text = value.starts_with('"');
            Some((
                name,
                if is_text {
                    value.to_owned()
                } else {
                    value.replace('_', "")
                },
            ))
        })
        .collect();
    assert_eq!(agreed, said);
}
