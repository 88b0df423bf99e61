//! The only SQL: what a source keeps, as rows, and how it is read back.
//!
//! All writes of a turn are one transaction, and each verb of the lock API
//! writes one row: an attempt's row is its log entry, its slot and its RPM mark
//! at once. Values that come from outside are bound, never written into a
//! statement. The layout carries a version; a later one migrates it.

mod layout;
mod load;
mod logs;
pub mod row;

use js_sys::{Array, JsString};
use wasm_bindgen::JsValue;

use super::Fault;
use super::fault::{self, At};
use super::js::{Sql, Storage};
use crate::access::families::Family;
use crate::governor::command::{Attempt, Effect};
use crate::governor::ids::{KeyId, RequestId, Version};
use crate::governor::settings::Settings;
use crate::governor::time::Millis;
use crate::json::Json;
use crate::protocol::directory::Summary;
use layout::{CREATE, CREATE_TOLD, LAYOUT};
pub use logs::Page;
use row::{moment, number, optional, row};

/// Entries of the audit log that are kept.
const AUDIT_KEEP: u32 = 1000;

/// What is known of a source beside its governor.
#[derive(Clone, Debug)]
pub struct Header {
    pub name: String,
    pub version: Version,
    pub created_at: Millis,
    pub updated_at: Millis,
}

/// One thing to write.
pub enum Write<'a> {
    /// Creates the tables.
    Create,
    Source {
        header: &'a Header,
        settings: &'a Settings,
    },
    Family {
        key: KeyId,
        family: &'a Family,
    },
    ForgetFamily(KeyId),
    Audit(Audited),
    /// What the directory is told next.
    Told(&'a Summary),
    Effect(&'a Effect),
}

/// What an operator did, for the audit log.
#[derive(Clone, Debug)]
pub struct Audited {
    pub at: Millis,
    pub request: RequestId,
    pub ip: Option<Box<str>>,
    pub action: &'static str,
    /// What it was done to; never a secret.
    pub detail: Json,
}

pub struct Store {
    storage: Storage,
    sql: Sql,
}

impl Store {
    pub fn new(storage: Storage) -> Self {
        let sql = storage.sql();
        Self { storage, sql }
    }

    /// Writes all or nothing.
    ///
    /// # Errors
    /// If anything failed; then nothing was written, and memory may be ahead of
    /// storage: forget it.
    pub fn commit(&self, writes: &[Write]) -> Result<(), Fault> {
        let result = match writes {
            [] => Ok(()),
            // One statement is atomic by itself.
            [Write::Create | Write::Told(_)] => self.transaction(writes),
            [write] => self.write(write),
            _ => self.transaction(writes),
        };
        result.map_err(|error| Fault::because("a write failed", error))
    }

    fn transaction(&self, writes: &[Write]) -> Result<(), JsValue> {
        let mut body = || {
            writes.iter().try_for_each(|write| {
                self.write(write)?;
                fault::strike(At::Transaction);
                Ok(())
            })
        };
        self.storage.transaction(&mut body).map(|_| ())
    }

    /// Has an alarm ring at `at`. A write like any other of this turn.
    pub fn arm(&self, at: Millis) -> Result<(), Fault> {
        let set = self.storage.set_alarm(number(at.epoch_ms()));
        set.map(|_| ())
            .map_err(|error| Fault::because("the alarm was not set", error))
    }

    /// Deletes everything, the alarm too.
    pub fn delete_all(&self) -> Result<js_sys::Promise, Fault> {
        self.storage
            .delete_all()
            .map_err(|error| Fault::because("the storage was not deleted", error))
    }

    fn write(&self, write: &Write) -> Result<(), JsValue> {
        match write {
            Write::Create => CREATE
                .iter()
                .try_for_each(|statement| self.run(statement, &Array::new())),
            Write::Source { header, settings } => self.run(
                "INSERT INTO source VALUES (1, ?, ?, ?, ?, ?, ?, NULL, NULL)
                 ON CONFLICT (id) DO UPDATE SET version = excluded.version,
                 updated_at = excluded.updated_at, settings = excluded.settings",
                &row([
                    LAYOUT.into(),
                    header.name.as_str().into(),
                    header.version.to_string().into(),
                    moment(header.created_at),
                    moment(header.updated_at),
                    settings.to_json().to_string().into(),
                ]),
            ),
            Write::Family { key, family } => self.run(
                "INSERT OR REPLACE INTO families VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                &row([
                    key.to_string().into(),
                    optional(family.name.as_deref(), JsValue::from_str),
                    moment(family.created_at),
                    number(family.ttl.ms()).into(),
                    number(family.refresh_ttl.ms()).into(),
                    moment(family.expires_at),
                    family.current.to_string().into(),
                    moment(family.refresh_expires_at),
                    optional(family.retired, |(digest, _)| digest.to_string().into()),
                    optional(family.retired, |(_, at)| moment(at)),
                    optional(family.revoked_at, moment),
                ]),
            ),
            Write::Audit(audited) => self.audit(audited),
            Write::Told(summary) => self.write_told(summary),
            Write::ForgetFamily(key) => self.run(
                "DELETE FROM families WHERE key = ?",
                &row([key.to_string().into()]),
            ),
            Write::Effect(effect) => self.write_effect(effect),
        }
    }

    fn write_effect(&self, effect: &Effect) -> Result<(), JsValue> {
        match effect {
            Effect::Record(attempt) => self.record(attempt),
            Effect::Extend {
                row: at,
                lease_deadline,
            } => self.run(
                "UPDATE attempts SET lease_deadline = ? WHERE row = ?",
                &row([moment(*lease_deadline), (*at).into()]),
            ),
            Effect::End { row: at } => self.run(
                "UPDATE attempts SET secret = NULL WHERE row = ?",
                &row([(*at).into()]),
            ),
            Effect::Discard { rows } => self.run(
                "DELETE FROM attempts WHERE row >= ? AND row < ?",
                &row([rows.start.into(), rows.end.into()]),
            ),
            Effect::Learned { text } => self.run(
                "UPDATE source SET learned = ? WHERE id = 1",
                &row([text.as_str().into()]),
            ),
            Effect::Cooldown { until } => self.run(
                "UPDATE source SET cooldown_until = ?",
                &row([optional(*until, moment)]),
            ),
            Effect::Answer { .. } => Ok(()),
        }
    }

    fn record(&self, attempt: &Attempt) -> Result<(), JsValue> {
        let slot = attempt.slot.as_ref();
        self.run(
            "INSERT OR REPLACE INTO attempts
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &row([
                attempt.row.into(),
                number(attempt.reference.0).into(),
                moment(attempt.at),
                attempt.request.to_string().into(),
                optional(attempt.key, |key| key.to_string().into()),
                optional(attempt.ip.as_deref(), JsValue::from_str),
                attempt.outcome.status().into(),
                attempt.outcome.word().into(),
                optional(attempt.outcome.omitted(), JsValue::from),
                number(attempt.queued.ms()).into(),
                optional(slot, |slot| format!("{:032x}", slot.secret.0).into()),
                optional(slot, |slot| slot.attempt.to_string().into()),
                optional(slot, |slot| moment(slot.lease_deadline)),
                optional(slot, |slot| moment(slot.request_deadline)),
            ]),
        )
    }

    /// Adds an entry and drops the one that is too many.
    fn audit(&self, audited: &Audited) -> Result<(), JsValue> {
        self.run(
            "INSERT INTO audit (at, request, action, detail, ip) VALUES (?, ?, ?, ?, ?)",
            &row([
                moment(audited.at),
                audited.request.to_string().into(),
                audited.action.into(),
                audited.detail.to_string().into(),
                optional(audited.ip.as_deref(), JsValue::from_str),
            ]),
        )?;
        self.run(
            "DELETE FROM audit WHERE ordinal <= (SELECT MAX(ordinal) FROM audit) - ?",
            &row([AUDIT_KEEP.into()]),
        )
    }

    fn write_told(&self, summary: &Summary) -> Result<(), JsValue> {
        self.run(CREATE_TOLD, &Array::new())?;
        self.run(
            "INSERT OR REPLACE INTO told VALUES (1, ?, ?, ?, ?, ?)",
            &row([
                moment(summary.at),
                summary.limit.into(),
                summary.in_use.into(),
                summary.depth.into(),
                summary.tally.to_text().into(),
            ]),
        )
    }

    fn run(&self, query: &str, bindings: &Array) -> Result<(), JsValue> {
        self.sql.exec(&JsString::from(query), bindings).map(|_| ())
    }

    fn rows(&self, query: &str, bindings: &Array) -> Result<Array, Fault> {
        self.sql
            .exec(&JsString::from(query), bindings)
            .and_then(|cursor| cursor.to_array())
            .map_err(|error| Fault::because("a read failed", error))
    }
}
