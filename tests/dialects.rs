//! Recorded and documented responses against what a release report makes of
//! them: `tests/dialects.jsonl`, or the file that `DIALECT_CASES` names, and
//! `tests/relatives.jsonl`, of further providers.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

use std::fs;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::{Map, Value, json};
use swarmvia_locks::governor::time::{MAX_SAFE, Millis, Span};
use swarmvia_locks::outcome::Report;
use swarmvia_locks::outcome::rate::Rate;

/// Clocks and rounding may differ by so much.
const TOLERANCE_MS: u64 = 1;

struct Case {
    id: String,
    now: Millis,
    status: Value,
    headers: Value,
    expected: Map<String, Value>,
    soft: Vec<String>,
}

fn cases(path: &str) -> Vec<Case> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(case).collect()
}

fn case(line: &str) -> Case {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let soft = value["soft"].as_array().cloned().unwrap_or_default();
    Case {
        id: value["id"].as_str().unwrap().to_owned(),
        now: moment(value["now"].as_str().unwrap()),
        status: value["status"].clone(),
        headers: value["headers"].clone(),
        expected: value["expected"].as_object().unwrap().clone(),
        soft: soft
            .iter()
            .map(|field| field.as_str().unwrap().to_owned())
            .collect(),
    }
}

fn moment(text: &str) -> Millis {
    let moment: chrono::DateTime<chrono::Utc> = text.parse().unwrap();
    Millis::from_epoch(moment.timestamp_millis().try_into().unwrap())
}

fn read(headers: &Value, now: Millis) -> Rate {
    read_of(&Value::Null, headers, now)
}

fn read_of(status: &Value, headers: &Value, now: Millis) -> Rate {
    let body = json!({ "status": status, "headers": headers }).to_string();
    Report::parse(body.as_bytes(), now)
        .expect("headers are never malformed")
        .rate
}

fn fields(rate: &Rate) -> [(&'static str, Option<u64>); 9] {
    let ms = |span: Option<Span>| span.map(Span::ms);
    [
        ("limit", rate.limit),
        ("remaining", rate.remaining),
        ("resetMs", ms(rate.reset)),
        ("tokenLimit", rate.token_limit),
        ("tokenRemaining", rate.token_remaining),
        ("tokenResetMs", ms(rate.token_reset)),
        ("retryAfterMs", ms(rate.retry_after)),
        ("windowMs", ms(rate.window)),
        ("concurrencyLimit", rate.concurrency_limit),
    ]
}

/// Prints what differs; the ids of those that aren't right, and how many are
/// right in their soft fields too.
fn judge(cases: &[Case]) -> (Vec<&str>, usize) {
    let (mut wrong, mut right_throughout) = (Vec::new(), 0);
    for case in cases {
        let (mut is_right, mut is_right_throughout) = (true, true);
        for (field, got) in fields(&read_of(&case.status, &case.headers, case.now)) {
            let expected = case.expected.get(field).and_then(Value::as_u64);
            let tolerance = if field.ends_with("Ms") {
                TOLERANCE_MS
            } else {
                0
            };
            let is_same = match (expected, got) {
                (Some(expected), Some(got)) => expected.abs_diff(got) <= tolerance,
                (expected, got) => expected == got,
            };
            if !is_same {
                let is_soft = case.soft.iter().any(|soft| soft == field);
                let kind = if is_soft { "soft" } else { "WRONG" };
                println!(
                    "{kind} {} {field}: expected {expected:?}, got {got:?}",
                    case.id
                );
                is_right_throughout = false;
                is_right &= is_soft;
            }
        }
        if !is_right {
            wrong.push(case.id.as_str());
        }
        right_throughout += usize::from(is_right_throughout);
    }
    (wrong, right_throughout)
}

#[test]
fn every_recorded_response_is_read() {
    let named = std::env::var("DIALECT_CASES").ok();
    let cases = cases(named.as_deref().unwrap_or("tests/dialects.jsonl"));
    let (wrong, throughout) = judge(&cases);
    println!("{throughout} right in their soft fields too");
    let right = cases.len() - wrong.len();
    println!(
        "dialects: {right} of {} cases right {}",
        cases.len(),
        wrong.join(" ")
    );
    assert!(named.is_some() || wrong.is_empty());
}

#[test]
fn their_relatives_are_read() {
    let cases = cases("tests/relatives.jsonl");
    let (wrong, throughout) = judge(&cases);
    let right = cases.len() - wrong.len();
    println!(
        "relatives: {right} of {} right, {throughout} throughout",
        cases.len()
    );
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(cases.len() >= 60);
}

type Spelling = fn(&str) -> String;

/// However a gateway spells a name, it is the same name.
#[test]
fn case_separators_and_a_gateways_prefix_never_matter() {
    for case in cases("tests/dialects.jsonl") {
        let before = read(&case.headers, case.now);
        let spellings: [Spelling; 4] = [
            str::to_uppercase,
            str::to_lowercase,
            |name| name.replace('-', "_"),
            |name| format!("llm_provider-{name}"),
        ];
        for (place, spell) in spellings.into_iter().enumerate() {
            let headers: Map<String, Value> = case
                .headers
                .as_object()
                .unwrap()
                .iter()
                // HTTP's own are not of the dialect.
                .map(|(name, value)| match name.to_lowercase().as_str() {
                    "date" | "age" => (name.clone(), value.clone()),
                    name if place > 1 && name.starts_with("retry-after") => {
                        (name.to_owned(), value.clone())
                    }
                    _ => (spell(name), value.clone()),
                })
                .collect();
            let after = read(&Value::Object(headers), case.now);
            assert_eq!(before, after, "{} {place}", case.id);
        }
    }
}

fn name() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "x",
        "rate",
        "limit",
        "ratelimit",
        "remaining",
        "reset",
        "after",
        "used",
        "tokens",
        "input",
        "requests",
        "policy",
        "retry",
        "ms",
        "seconds",
        "minute",
        "10s",
        "window",
        "concurrent",
        "max",
        "total",
        "quota",
        "fill",
        "acme",
        "usage",
        "99999999999999999999d",
        "sforce",
        "time",
        "date",
        "age",
        "bapi",
        "api",
        "state",
        "rules",
        "priority",
        "beta",
        "per",
        "size",
        "until",
    ]);
    let words = prop::collection::vec(word, 1..6);
    prop_oneof![8 => words.prop_map(|words| words.join("-")), 1 => ".{0,20}"]
}

fn value() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "0",
        "1",
        "100",
        "-1",
        "0.5",
        "1e9",
        "9007199254740991",
        "9007199254740993",
        "unlimited",
        "1791201660",
        "1791201660000",
        "99999999999999999999999",
        ", ",
        ";",
        "w=60",
        "=",
        "\"",
        "\"a\"",
        ";q=0",
        ";r=9007199254740992",
        ";t=5",
        ":",
        "/",
        "/minute",
        "ms",
        "6m0s",
        "Mon, 05 Oct 2026 12:10:00 GMT",
        "2026-10-05T12:00Z",
        "(",
        "{\"limit\":0}",
        "5:10:60",
        "4,999",
        "00:00:05",
        "limit:5",
        "left",
        "remaining ",
        " in 5 seconds",
        "P1DT2H",
        "é",
        " ",
        ".",
    ]);
    let pieces = prop::collection::vec(piece, 0..8);
    prop_oneof![8 => pieces.prop_map(|pieces| pieces.concat()), 1 => ".{0,40}"]
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/proptest-regressions/dialects.txt"
        )))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_headers_make_it_panic_or_a_limit_impossible(
        headers in prop::collection::vec((name(), value()), 0..12),
        now in 0..MAX_SAFE,
    ) {
        let headers: Map<String, Value> =
            headers.into_iter().map(|(name, value)| (name, value.into())).collect();
        let rate = read(&Value::Object(headers), Millis::from_epoch(now));
        for limit in [rate.limit, rate.token_limit, rate.concurrency_limit] {
            prop_assert_ne!(limit, Some(0));
        }
        for (_, value) in fields(&rate) {
            prop_assert!(value.is_none_or(|value| value <= MAX_SAFE));
        }
    }

    #[test]
    fn any_http_date_is_read_as_httpdate_reads_it(seconds in 0..4_000_000_000_u64) {
        let moment = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let date = httpdate::fmt_http_date(moment);
        let headers = json!({ "retry-after": date });
        let now = Millis::from_epoch(seconds.saturating_sub(7) * 1000);
        let read = read(&headers, now).retry_after;
        prop_assert_eq!(read, Some(Span::from_seconds(seconds.min(7))));
    }
}

/// 64 KiB is the most that a report can bring; a value is cut long before. The
/// bound is a debug build's on a busy machine: what is quadratic is far past it.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a native test of how long it takes"
)]
fn a_report_full_of_one_mark_is_soon_read() {
    let marks = [
        ",",
        ";",
        "=",
        ":",
        "/",
        " ",
        "&",
        "|",
        "\"",
        "(",
        "[",
        "{",
        "{\"a\":",
        "-",
        "9",
        "9,",
        "9 ",
        "9:",
        "9.",
        "a=",
        "a:1;",
        "a=1,",
        "\"a\";r=0,",
        "1,234",
        "1 234 ",
        "5:10:60,",
        "remaining ",
        "5 of 6 ",
        "per 5 minute ",
        "Mon, ",
        "00:",
        "1ms ",
        "é",
        "\u{a0}",
    ];
    let names = [
        "x-ratelimit",
        "x-ratelimit-limit",
        "ratelimit-remaining",
        "x-rate-limit-used",
        "x-ratelimit-reset",
        "ratelimit-policy",
        "retry-after",
        "x-ratelimit-window",
        "x-ratelimit-status",
        "x-acme-quota",
        "x-rate-limit-ip-state",
        "date",
    ];
    let now = Millis::from_epoch(1_791_201_600_000);
    let mut slowest = (std::time::Duration::ZERO, "");
    for mark in marks {
        for length in [4096, 65_536] {
            let value = mark.repeat(length / mark.len());
            let chosen = names
                .iter()
                .take(if length > 4096 { 1 } else { names.len() });
            let headers: Map<String, Value> = chosen
                .map(|name| ((*name).to_owned(), value.clone().into()))
                .collect();
            let began = std::time::Instant::now();
            let _ = read(&Value::Object(headers), now);
            slowest = slowest.max((began.elapsed(), mark));
        }
    }
    println!("slowest: {slowest:?}");
    assert!(slowest.0 < std::time::Duration::from_secs(2), "{slowest:?}");
}
