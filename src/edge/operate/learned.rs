//! What a source has learned, as operators see it, and what a report would
//! teach it. Nothing here changes anything.

use serde_json::{Value, json};

use super::views;
use crate::governor::Governor;
use crate::governor::learning::Source;
use crate::governor::time::{Millis, Span};
use crate::outcome::Report;
use crate::outcome::signal::Signal;
use crate::wire::answer::HttpAnswer;

/// What was learned, from which report, when; `null` for what isn't learned.
pub fn learned(governor: &Governor) -> Value {
    let settings = governor.settings();
    let learned = governor.learned();
    let concurrency = settings.concurrency.adaptive.then(|| {
        let known = &learned.concurrency;
        by(
            json!({"limit": known.level, "throttledAt": known.ceiling}),
            learned.concurrency_by,
        )
    });
    let rate = settings.rpm.adaptive.then(|| {
        let known = &learned.rate;
        let told = known
            .told
            .map(|told| json!({"limit": told.limit, "windowMs": told.window.map(Span::ms)}));
        let inferred = known.inferred.map(|inferred| {
            let gate = inferred.gate();
            json!({"limit": gate.limit, "windowMs": gate.window.ms(), "perHour": inferred.per_hour})
        });
        let waiting = known.wait.map(|wait| wait.began.epoch_ms());
        let resets_at = known.budget.map(|budget| budget.resets_at.epoch_ms());
        by(
            json!({
                "stated": told,
                "inferred": inferred,
                "throttledSince": waiting,
                "resetsAt": resets_at,
            }),
            learned.rate_by,
        )
    });
    json!({"concurrency": concurrency, "rate": rate})
}

/// With the report that taught it: the `ref` of its slot, and when it came.
fn by(mut value: Value, source: Option<Source>) -> Value {
    if let Some(fields) = value.as_object_mut() {
        let reference = source.map(|source| source.reference.to_string());
        fields.insert("ref".to_owned(), json!(reference));
        fields.insert("at".to_owned(), json!(source.map(|s| s.at.epoch_ms())));
    }
    value
}

/// What `report` is read as, and what it would change.
pub fn explanation(governor: &Governor, report: &Report, now: Millis) -> HttpAnswer {
    let before = views::state(governor, now);
    let after = views::state(&governor.explained(now, report), now);
    let changes: Vec<&String> = before
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| after.get(name.as_str()) != Some(value))
        .map(|(name, _)| name)
        .collect();
    HttpAnswer::json(
        200,
        &json!({
            "read": read(report),
            "signal": match report.signal() {
                Signal::Throttled => "throttled",
                Signal::Served => "served",
                Signal::Silent => "silent",
            },
            "closesGateForMs": report.closes_gate_for().map(Span::ms),
            "changes": changes,
            "before": before,
            "after": after,
        }),
    )
}

fn read(report: &Report) -> Value {
    let rate = &report.rate;
    json!({
        "status": report.status,
        "throttled": report.throttled,
        "limit": rate.limit,
        "remaining": rate.remaining,
        "resetMs": rate.reset.map(Span::ms),
        "tokenLimit": rate.token_limit,
        "tokenRemaining": rate.token_remaining,
        "tokenResetMs": rate.token_reset.map(Span::ms),
        "retryAfterMs": rate.retry_after.map(Span::ms),
        "windowMs": rate.window.map(Span::ms),
        "concurrencyLimit": rate.concurrency_limit,
    })
}
