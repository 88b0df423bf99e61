//! Control calls as the source's object carries them out.

use serde_json::{Value, json};
use wasm_bindgen_futures::JsFuture;

use super::store::{Header, Write};
use super::turn::{Object, Source};
use super::{Fault, js};
use crate::access::families::{Families, Family};
use crate::governor::Governor;
use crate::governor::command::{Command, Reply};
use crate::governor::ids::{KeyId, Ref, Version};
use crate::governor::settings::Settings;
use crate::governor::slots::Slot;
use crate::governor::snapshot::Snapshot;
use crate::governor::time::Millis;
use crate::protocol::control::{Action, Condition, ControlCall};
use crate::wire::answer::HttpAnswer;
use crate::wire::problem::{Kind, Problem};

/// # Errors
/// If storage failed; then nothing was changed.
pub async fn serve(object: &Object, call: ControlCall, body: &str) -> Result<HttpAnswer, Fault> {
    let now = js::now();
    match call.action {
        Action::Put {
            source,
            version,
            condition,
        } => {
            let settings = match Settings::parse(body.as_bytes()) {
                Ok(settings) => settings,
                Err(error) => return Ok(Problem::from(error).into_answer()),
            };
            let wanted = Wanted {
                name: source,
                version,
                settings,
            };
            object.turn(now, |place| put(object, place, now, wanted, &condition))
        }
        Action::Delete => delete(object, now).await,
        Action::Show => at_source(object, now, |source| Ok(document(200, source, now))),
        Action::Slots { limit, after } => {
            at_source(object, now, |source| Ok(slots(source, limit, after)))
        }
        Action::Keys { limit, after } => {
            at_source(object, now, |source| Ok(keys(source, now, limit, after)))
        }
        Action::Force { reference } => {
            at_source(object, now, |source| force(object, source, now, reference))
        }
        Action::Mint { key, expires_at } => {
            let name = Some(body.to_owned()).filter(|name| !name.is_empty());
            let family = Family {
                name,
                created_at: now,
                expires_at,
                revoked_at: None,
            };
            at_source(object, now, |source| mint(object, source, now, key, family))
        }
        Action::Revoke { key } => at_source(object, now, |source| revoke(object, source, now, key)),
    }
}

fn at_source(
    object: &Object,
    now: Millis,
    work: impl FnOnce(&mut Source) -> Result<HttpAnswer, Fault>,
) -> Result<HttpAnswer, Fault> {
    object.turn(now, |place| match place {
        Some(source) => work(source),
        None => Ok(unknown("source")),
    })
}

fn unknown(what: &str) -> HttpAnswer {
    let message = format!("There is no such {what}.");
    Problem::new(Kind::NotFound, message).into_answer()
}

struct Wanted {
    name: String,
    version: Version,
    settings: Settings,
}

fn put(
    object: &Object,
    place: &mut Option<Box<Source>>,
    now: Millis,
    wanted: Wanted,
    condition: &Condition,
) -> Result<HttpAnswer, Fault> {
    if !condition.holds(place.as_ref().map(|source| source.header.version)) {
        return Ok(Problem::new(
            Kind::PreconditionFailed,
            "The settings are not at that version; read them again and decide anew.",
        )
        .into_answer());
    }
    let Wanted {
        name,
        version,
        settings,
    } = wanted;
    if let Some(source) = place {
        change(object, source, now, version, settings)?;
        return Ok(document(200, source, now));
    }
    let header = Header {
        name,
        version,
        created_at: now,
        updated_at: now,
    };
    let source = create(object, header, settings)?;
    let answer = document(201, &source, now);
    *place = Some(source);
    Ok(answer)
}

fn create(object: &Object, header: Header, settings: Settings) -> Result<Box<Source>, Fault> {
    let snapshot = Snapshot {
        seen: header.created_at,
        ..Snapshot::default()
    };
    let write = Write::Source {
        header: &header,
        settings: &settings,
    };
    object.store.commit(&[Write::Create, write])?;
    let governor = Governor::load(settings, snapshot)
        .map_err(|broken| Fault::because("a new governor is broken", broken))?;
    Ok(Box::new(Source::new(header, governor, Families::default())))
}

/// Takes effect at once, for waiters too. The same settings again change
/// nothing, and keep their version.
fn change(
    object: &Object,
    source: &mut Source,
    now: Millis,
    version: Version,
    settings: Settings,
) -> Result<(), Fault> {
    if *source.governor.settings() == settings {
        return Ok(());
    }
    source.header.version = version;
    source.header.updated_at = now;
    let command = Command::Configure(Box::new(settings));
    object.apply(source, now, command, |source| {
        let settings = source.governor.settings();
        vec![Write::Source {
            header: &source.header,
            settings,
        }]
    })?;
    Ok(())
}

async fn delete(object: &Object, now: Millis) -> Result<HttpAnswer, Fault> {
    let deleting = object.turn(now, |place| {
        let Some(source) = place else {
            return Ok(None);
        };
        let step = source.governor.apply(now, Command::Close);
        let deleting = object.store.delete_all()?;
        *place = None;
        object.waiting.timer().stop();
        object.answer_waiters(step.effects);
        Ok(Some(deleting))
    })?;
    let Some(deleting) = deleting else {
        return Ok(unknown("source"));
    };
    JsFuture::from(deleting)
        .await
        .map_err(|error| Fault::because("the storage was not deleted", error))?;
    Ok(HttpAnswer::json(200, &json!({"deleted": true})))
}

/// The settings of a source and its state.
fn document(status: u16, source: &Source, now: Millis) -> HttpAnswer {
    let header = &source.header;
    let body = json!({
        "source": header.name,
        "version": header.version.to_string(),
        "createdAt": header.created_at.epoch_ms(),
        "updatedAt": header.updated_at.epoch_ms(),
        "settings": source.governor.settings().to_json(),
        "state": state(&source.governor, now),
    });
    HttpAnswer::json(status, &body).with_header("ETag", format!("\"{}\"", header.version))
}

fn state(governor: &Governor, now: Millis) -> Value {
    let gauge = governor.gauge();
    let rpm = gauge.rpm.map(|rpm| {
        json!({
            "limit": rpm.limit,
            "used": rpm.used,
            "remaining": rpm.limit.saturating_sub(rpm.used),
            "opensAt": governor.rpm_opens_at().map(Millis::epoch_ms),
        })
    });
    json!({
        "at": now.epoch_ms(),
        "effectiveLimit": gauge.limit,
        "inUse": gauge.in_use,
        "remainingSlots": gauge.remaining(),
        "queueDepth": gauge.depth,
        "rpm": rpm,
        "cooldownUntil": governor.cooldown().map(Millis::epoch_ms),
    })
}

fn slots(source: &Source, limit: u32, after: Option<Ref>) -> HttpAnswer {
    let held = source.governor.slots();
    let later = held
        .iter()
        .filter(|slot| after.is_none_or(|after| slot.reference > after));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let page: Vec<&&Slot> = later.clone().take(limit).collect();
    let is_more = later.count() > page.len();
    let next = page.last().filter(|_| is_more);
    let entries: Vec<Value> = page.iter().map(|slot| slot_entry(slot)).collect();
    let next = next.map(|slot| slot.reference.to_string());
    HttpAnswer::json(200, &json!({"slots": entries, "next": next}))
}

fn slot_entry(slot: &Slot) -> Value {
    json!({
        "ref": slot.reference.to_string(),
        "keyId": slot.key.to_string(),
        "since": slot.granted_at.epoch_ms(),
        "leaseDeadline": slot.lease_deadline.epoch_ms(),
        "requestDeadline": slot.request_deadline.epoch_ms(),
    })
}

fn force(
    object: &Object,
    source: &mut Source,
    now: Millis,
    reference: Ref,
) -> Result<HttpAnswer, Fault> {
    match object.apply(source, now, Command::Force { reference }, |_| Vec::new())? {
        Reply::Release(true) => Ok(HttpAnswer::json(200, &json!({"released": true}))),
        _ => Ok(unknown("slot")),
    }
}

fn mint(
    object: &Object,
    source: &mut Source,
    now: Millis,
    key: KeyId,
    family: Family,
) -> Result<HttpAnswer, Fault> {
    let pruned = source.families.prune(now);
    let is_full = source.families.is_full();
    let mut writes: Vec<Write> = pruned.into_iter().map(Write::ForgetFamily).collect();
    if !is_full {
        writes.push(Write::Family {
            key,
            family: &family,
        });
    }
    object.store.commit(&writes)?;
    if is_full {
        return Ok(Problem::new(
            Kind::TooManyKeys,
            "The source has as many keys as it can keep; wait until some have expired for a day.",
        )
        .into_answer());
    }
    source.families.insert(key, family);
    Ok(HttpAnswer::json(201, &json!({"keyId": key.to_string()})))
}

fn keys(source: &Source, now: Millis, limit: u32, after: Option<KeyId>) -> HttpAnswer {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (page, is_more) = source.families.page(after, limit);
    let next = page
        .last()
        .filter(|_| is_more)
        .map(|(key, _)| key.to_string());
    let entries: Vec<Value> = page
        .iter()
        .map(|(key, family)| {
            json!({
                "keyId": key.to_string(),
                "name": family.name,
                "createdAt": family.created_at.epoch_ms(),
                "expiresAt": family.expires_at.epoch_ms(),
                "revokedAt": family.revoked_at.map(Millis::epoch_ms),
                "state": family.state(now).word(),
            })
        })
        .collect();
    HttpAnswer::json(200, &json!({"keys": entries, "next": next}))
}

fn revoke(
    object: &Object,
    source: &mut Source,
    now: Millis,
    key: KeyId,
) -> Result<HttpAnswer, Fault> {
    if !source.families.revoke(key, now) {
        return Ok(unknown("live key"));
    }
    object.apply(source, now, Command::Dismiss { key }, |source| {
        let family = source.families.find(key);
        family
            .map(|family| Write::Family { key, family })
            .into_iter()
            .collect()
    })?;
    let body = json!({"keyId": key.to_string(), "revoked": true});
    Ok(HttpAnswer::json(200, &body))
}
