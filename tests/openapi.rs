//! The API document and the routes say the same, both ways.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

use std::collections::BTreeSet;

use serde_yaml_ng::{Mapping, Value};
use swarmvia_locks::governor::command::Outcome;
use swarmvia_locks::wire::problem::Kind;
use swarmvia_locks::wire::route::{Control, Hosts, Route, Target, Verb, route};

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "patch", "head", "options"];

/// The `operationId` of each route. A new route must be given one here.
fn operation_of(route: Route) -> &'static str {
    match route {
        // Pages are for people, and no operations.
        Route::Page(_) => "page",
        Route::Health => "getHealth",
        Route::OpenApi => "getOpenapi",
        Route::Refresh { .. } => "refreshKey",
        Route::Lock { verb, .. } => match verb {
            Verb::Acquire => "acquireSlot",
            Verb::Renew(_) => "renewSlot",
            Verb::Release(_) => "releaseSlot",
        },
        Route::Control(control) => match control {
            Control::ListSources => "listSources",
            Control::PutSource(_) => "putSource",
            Control::ShowSource(_) => "getSource",
            Control::DeleteSource(_) => "deleteSource",
            Control::Metrics => "getMetrics",
            Control::Reset(_) => "resetLearned",
            Control::Explain(_) => "explainReport",
            Control::ListSlots(_) => "listSlots",
            Control::ForceRelease { .. } => "forceReleaseSlot",
            Control::MintKey(_) => "mintKey",
            Control::ListKeys(_) => "listKeys",
            Control::RevokeKey { .. } => "revokeKey",
            Control::ReadLog(_) => "getAccessLog",
            Control::ReadAudit(_) => "getControlLog",
            Control::ReadDirectoryAudit => "getDirectoryLog",
        },
    }
}

fn document() -> Value {
    let text = std::fs::read_to_string("openapi.yaml").unwrap();
    serde_yaml_ng::from_str(&text).unwrap()
}

fn paths(document: &Value) -> &Mapping {
    document["paths"].as_mapping().unwrap()
}

/// A concrete URL for a path of the document.
fn url(path: &str) -> String {
    let path = path
        .replace("{source}", "demo")
        .replace("{slotId}", "some-slot")
        .replace("{keyId}", "some-key")
        .replace("{ref}", "7");
    assert!(
        !path.contains('{'),
        "{path}: give its parameter a value here"
    );
    format!("https://api.swarmvia.cloud{path}")
}

#[test]
fn every_documented_operation_is_routed_and_every_other_method_refused() {
    let hosts = Hosts::parse("api.swarmvia.cloud", "swarmvia.cloud");
    let document = document();
    for (path, item) in paths(&document) {
        let (path, item) = (path.as_str().unwrap(), item.as_mapping().unwrap());
        let url = url(path);
        let target = Target::of_url(&url);
        let documented: BTreeSet<String> = METHODS
            .iter()
            .filter(|method| item.contains_key(**method))
            .map(|method| method.to_uppercase())
            .collect();
        for method in METHODS.map(str::to_uppercase) {
            let name = format!("{method} {path}");
            match route(&hosts, &target, &method) {
                Ok(found) => {
                    // Where there is GET, there is HEAD; the document says it once for all.
                    let documented = if method == "HEAD" {
                        "get"
                    } else {
                        &method.to_lowercase()
                    };
                    let operation = &item[documented]["operationId"];
                    assert_eq!(operation.as_str(), Some(operation_of(found)), "{name}");
                }
                Err(problem) => {
                    assert!(!documented.contains(&method), "{name} is not routed");
                    assert_eq!(problem.kind.status(), 405, "{name}");
                    let allow: BTreeSet<String> = problem.headers[0]
                        .1
                        .split(", ")
                        .map(str::to_owned)
                        .collect();
                    let head = documented.contains("GET").then(|| "HEAD".to_owned());
                    let allowed = documented.iter().cloned().chain(head).collect();
                    assert_eq!(allow, allowed, "{name}: Allow");
                }
            }
        }
    }
}

#[test]
fn every_route_is_documented() {
    let document = document();
    let documented: BTreeSet<&str> = paths(&document)
        .values()
        .flat_map(|item| item.as_mapping().unwrap().values())
        .filter_map(|operation| operation.get("operationId")?.as_str())
        .collect();
    let (source, reference, key) = ("demo", "7", "k");
    let lock = |verb| Route::Lock { source, verb };
    let control = [
        Control::ListSources,
        Control::PutSource(source),
        Control::ShowSource(source),
        Control::DeleteSource(source),
        Control::Metrics,
        Control::Reset(source),
        Control::Explain(source),
        Control::ListSlots(source),
        Control::ForceRelease { source, reference },
        Control::MintKey(source),
        Control::ListKeys(source),
        Control::RevokeKey { source, key },
        Control::ReadLog(source),
        Control::ReadAudit(source),
        Control::ReadDirectoryAudit,
    ];
    let routed: BTreeSet<&str> = control
        .map(Route::Control)
        .into_iter()
        .chain([Verb::Acquire, Verb::Renew("s"), Verb::Release("s")].map(lock))
        .chain([Route::Health, Route::OpenApi, Route::Refresh { source }])
        .map(operation_of)
        .collect();
    assert_eq!(documented, routed);
}

/// The words of a list in the document, sorted.
fn words(list: &Value) -> BTreeSet<&str> {
    let list = list.as_sequence().unwrap();
    list.iter().map(|word| word.as_str().unwrap()).collect()
}

#[test]
fn the_document_and_the_dashboard_have_the_word_of_every_outcome() {
    let document = document();
    let all = BTreeSet::from(Outcome::WORDS);
    assert_eq!(all.len(), Outcome::WORDS.len(), "a word has one counter");
    let components = &document["components"];
    let counted = &components["schemas"]["Counters"]["properties"]["acquires"]["required"];
    assert_eq!(words(counted), all);
    let sought = words(&components["parameters"]["SoughtOutcome"]["schema"]["enum"]);
    assert_eq!(&sought - &all, BTreeSet::from(["refused"]));
    assert_eq!(&all - &sought, BTreeSet::new());
    let entry = &components["schemas"]["AccessLogEntry"]["oneOf"][0]["properties"];
    let logged = words(&entry["outcome"]["enum"]);
    assert_eq!(&all - &logged, BTreeSet::from(["omitted"]));
    let dashboard = std::fs::read_to_string("dashboard/app/source/attempts.tsx").unwrap();
    for word in all {
        assert!(dashboard.contains(&format!("\"{word}\"")), "{word}");
    }
}

#[test]
fn every_outcome_has_a_word_a_status_and_a_counter_and_says_what_its_error_says() {
    let all = Outcome::AT_DOOR.iter().map(|(_, outcome)| *outcome).chain([
        Outcome::Granted,
        Outcome::QueueFull,
        Outcome::Cooldown,
        Outcome::Rpm,
        Outcome::NoFreeSlot,
        Outcome::QueueTimeout,
        Outcome::Left,
        Outcome::Omitted(3),
    ]);
    let mut places = BTreeSet::new();
    for outcome in all {
        assert_eq!(Outcome::WORDS[outcome.place()], outcome.word());
        assert_eq!(outcome.status() == 0, outcome.omitted().is_some());
        places.insert(outcome.place());
    }
    assert_eq!(places, (0..Outcome::WORDS.len()).collect());
    for (outcome, kind) in [
        (Outcome::Unauthorized, Kind::Unauthorized),
        (Outcome::Forbidden, Kind::Forbidden),
        (Outcome::InvalidRequest, Kind::InvalidRequest),
        (Outcome::PayloadTooLarge, Kind::PayloadTooLarge),
        (Outcome::QueueTimeout, Kind::QueueTimeout),
        (Outcome::QueueFull, Kind::TooManyRequests),
    ] {
        assert_eq!(outcome.status(), kind.status(), "{outcome:?}");
    }
}
