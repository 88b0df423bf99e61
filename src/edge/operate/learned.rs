//! What a source has learned, as operators see it, and what a report would
//! teach it. Nothing here changes anything.

use super::views;
use crate::governor::cooldown::LONGEST;
use crate::governor::learning::Source;
use crate::governor::time::{Millis, Span};
use crate::governor::{Governor, LastReport};
use crate::json::{Json, object};
use crate::outcome::Report;
use crate::wire::answer::HttpAnswer;

/// What was learned, from which report, when; `null` for what isn't learned.
pub fn learned(governor: &Governor) -> Json {
    let settings = governor.settings();
    let learned = governor.learned();
    let concurrency = settings.concurrency.adaptive.then(|| {
        let known = &learned.concurrency;
        by(
            object! {"limit": known.level, "throttledAt": known.ceiling},
            learned.concurrency_by,
        )
    });
    let rate = settings.rpm.adaptive.then(|| {
        let known = &learned.rate;
        let told = known
            .told
            .map(|told| object! {"limit": told.limit, "windowMs": told.window.map(Span::ms)});
        let inferred = known.inferred.map(|inferred| {
            let gate = inferred.gate();
            object! {"limit": gate.limit, "windowMs": gate.window.ms(), "perHour": inferred.per_hour}
        });
        let waiting = known.wait.map(|wait| wait.began.epoch_ms());
        let resets_at = known.budget.map(|budget| budget.resets_at.epoch_ms());
        by(
            object! {
                "stated": told,
                "inferred": inferred,
                "throttledSince": waiting,
                "resetsAt": resets_at,
            },
            learned.rate_by,
        )
    });
    object! {"concurrency": concurrency, "rate": rate}
}

/// With the report that taught it: the `ref` of its slot, and when it came.
fn by(mut value: Json, source: Option<Source>) -> Json {
    value.put("ref", source.map(|source| source.reference.to_string()));
    value.put("at", source.map(|source| source.at.epoch_ms()));
    value
}

/// What the last report was read as. Names in `…Ms` are spans from when it came.
pub fn last_report(last: &LastReport) -> Json {
    object! {
        "ref": last.reference.to_string(),
        "at": last.at.epoch_ms(),
        "signal": last.report.signal().word(),
        "read": read(&last.report),
    }
}

/// What `report` is read as, and what it would change.
pub fn explanation(governor: &Governor, report: &Report, now: Millis) -> HttpAnswer {
    let before = views::state(governor, now);
    let after = views::state(&governor.explained(now, report), now);
    // Both have the same members, in the same order.
    let pairs = before.members().iter().zip(after.members());
    let changes: Vec<&str> = pairs
        .filter(|(before, after)| before != after)
        .map(|((name, _), _)| name.as_ref())
        .collect();
    HttpAnswer::json(
        200,
        &object! {
            "read": read(report),
            "signal": report.signal().word(),
            "closesGateForMs": report.closes_gate_for().map(|span| span.min(LONGEST).ms()),
            "changes": changes,
            "before": before,
            "after": after,
        },
    )
}

fn read(report: &Report) -> Json {
    let rate = &report.rate;
    object! {
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
    }
}
