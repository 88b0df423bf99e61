//! A source as operators see it: its document, its lists. Nothing here changes
//! anything, and no secret is shown.

use super::learned;
use crate::edge::store::Page;
use crate::edge::turn::Source;
use crate::governor::Governor;
use crate::governor::command::Outcome;
use crate::governor::ids::{KeyId, Ref};
use crate::governor::slots::Slot;
use crate::governor::tally::Tally;
use crate::governor::time::Millis;
use crate::json::{Json, object};
use crate::wire::answer::HttpAnswer;

/// The settings of a source and its state.
pub fn document(status: u16, source: &Source, now: Millis) -> HttpAnswer {
    let header = &source.header;
    let body = object! {
        "source": header.name.as_str(),
        "version": header.version.to_string(),
        "createdAt": header.created_at.epoch_ms(),
        "updatedAt": header.updated_at.epoch_ms(),
        "settings": source.governor.settings().to_json(),
        "state": state(&source.governor, now),
    };
    HttpAnswer::json(status, &body).with_header("ETag", format!("\"{}\"", header.version))
}

pub fn state(governor: &Governor, now: Millis) -> Json {
    let gauge = governor.gauge();
    let rpm = gauge.rpm.map(|rpm| {
        object! {
            "limit": rpm.limit,
            "used": governor.granted_within_a_minute(),
            "remaining": rpm.remaining,
            "opensAt": governor.rpm_opens_at().map(Millis::epoch_ms),
        }
    });
    object! {
        "at": now.epoch_ms(),
        "effectiveLimit": gauge.limit,
        "inUse": gauge.in_use,
        "remainingSlots": gauge.remaining(),
        "queueDepth": gauge.depth,
        "rpm": rpm,
        "cooldownUntil": governor.cooldown().map(Millis::epoch_ms),
        "learned": learned::learned(governor),
        "lastReport": governor.last_report().map(learned::last_report),
        "counters": counters(governor.tally()),
    }
}

/// What happened since the source was made.
fn counters(tally: &Tally) -> Json {
    let outcomes = Outcome::WORDS.into_iter().zip(tally.outcomes);
    let outcomes = outcomes.map(|(word, count)| (word, count.into()));
    object! {
        "acquires": Json::object(outcomes.collect()),
        "released": tally.released,
        "expired": tally.expired,
        "throttled": tally.throttled,
        "refreshRefused": tally.refresh_refused,
    }
}

pub fn slots(source: &Source, limit: u32, after: Option<Ref>) -> HttpAnswer {
    let held = source.governor.slots();
    let later = held
        .iter()
        .filter(|slot| after.is_none_or(|after| slot.reference > after));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let page: Vec<&&Slot> = later.clone().take(limit).collect();
    let is_more = later.count() > page.len();
    let next = page.last().filter(|_| is_more);
    let entries: Vec<Json> = page.iter().map(|slot| slot_entry(source, slot)).collect();
    let next = next.map(|slot| slot.reference.to_string());
    HttpAnswer::json(200, &object! {"slots": entries, "next": next})
}

fn slot_entry(source: &Source, slot: &Slot) -> Json {
    // A family that was pruned has none any more.
    let family = source.families.find(slot.key);
    object! {
        "ref": slot.reference.to_string(),
        "keyId": slot.key.to_string(),
        "keyName": family.and_then(|family| family.name.as_deref()),
        "since": slot.granted_at.epoch_ms(),
        "leaseDeadline": slot.lease_deadline.epoch_ms(),
        "requestDeadline": slot.request_deadline.epoch_ms(),
    }
}

pub fn keys(source: &Source, now: Millis, limit: u32, after: Option<KeyId>) -> HttpAnswer {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (page, is_more) = source.families.page(after, limit);
    let next = page
        .last()
        .filter(|_| is_more)
        .map(|(key, _)| key.to_string());
    let entries: Vec<Json> = page
        .iter()
        .map(|(key, family)| {
            object! {
                "keyId": key.to_string(),
                "name": family.name.as_deref(),
                "createdAt": family.created_at.epoch_ms(),
                "expiresAt": family.expires_at.epoch_ms(),
                "refreshExpiresAt": family.refresh_expires_at.epoch_ms(),
                "revokedAt": family.revoked_at.map(Millis::epoch_ms),
                "state": family.state(now).word(),
            }
        })
        .collect();
    HttpAnswer::json(200, &object! {"keys": entries, "next": next})
}

/// A page of a log.
pub fn entries(page: Page) -> HttpAnswer {
    let next = page.next.map(|next| next.to_string());
    HttpAnswer::json(200, &object! {"entries": page.entries, "next": next})
}
