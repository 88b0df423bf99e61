//! The only SQL: what a source keeps, as rows, and how it is read back.
//!
//! All writes of a turn are one transaction, and each verb of the lock API
//! writes one row: an attempt's row is its log entry, its slot and its RPM mark
//! at once. Values that come from outside are bound, never written into a
//! statement. The layout carries a version; a later one migrates it.

mod layout;
mod load;
mod logs;
mod row;

use std::fmt::Display;

use wasm_bindgen::JsValue;

use super::Fault;
use super::fault::{self, At};
use super::js::Storage;
use super::sql::{Bindings, Row, Sql};
use crate::access::families::Family;
use crate::access::trail::{self, KEPT_OF_A_FAMILY};
use crate::governor::command::{Attempt, Effect};
use crate::governor::ids::{KeyId, RequestId, Version};
use crate::governor::settings::Settings;
use crate::governor::time::Millis;
use crate::json::Json;
use crate::protocol::directory::Summary;
use layout::{CREATE, CREATE_REFRESHES, CREATE_TOLD, LAYOUT};
pub use logs::{Page, newest_first};

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
    Refreshed(Refreshed),
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

/// A pair that was handed out for a refresh token, for the audit log.
pub struct Refreshed {
    pub key: KeyId,
    pub at: Millis,
    pub request: RequestId,
    pub ip: Option<Box<str>>,
    /// The newest entry of the family.
    pub before: Option<trail::Entry>,
}

pub struct Store {
    storage: Storage,
    sql: Sql,
}

impl Store {
    pub fn new(storage: Storage) -> Self {
        let sql = Sql::of(&storage);
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
            [Write::Create | Write::Told(_) | Write::Refreshed(_) | Write::ForgetFamily(_)] => {
                self.transaction(writes)
            }
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
        let set = self.storage.set_alarm(in_js(at));
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
                .try_for_each(|statement| self.run(statement, Bindings::new())),
            Write::Source { header, settings } => self.run(
                "INSERT INTO source VALUES (1, ?, ?, ?, ?, ?, ?, NULL, NULL)
                 ON CONFLICT (id) DO UPDATE SET version = excluded.version,
                 updated_at = excluded.updated_at, settings = excluded.settings",
                Bindings::new()
                    .number(LAYOUT)
                    .text(&header.name)
                    .id(header.version)
                    .moment(header.created_at)
                    .moment(header.updated_at)
                    .text(&settings.to_json().to_string()),
            ),
            Write::Family { key, family } => self.run(
                "INSERT OR REPLACE INTO families VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                Bindings::new()
                    .id(key)
                    .optional(family.name.as_deref(), Bindings::text)
                    .moment(family.created_at)
                    .number(family.ttl.ms())
                    .number(family.refresh_ttl.ms())
                    .moment(family.expires_at)
                    .id(family.current)
                    .moment(family.refresh_expires_at)
                    .optional(family.retired, |row, (digest, _)| row.id(digest))
                    .optional(family.retired, |row, (_, at)| row.moment(at))
                    .optional(family.revoked_at, Bindings::moment),
            ),
            Write::Audit(audited) => self.audit(audited),
            Write::Told(summary) => self.write_told(summary),
            Write::Refreshed(refreshed) => self.refreshed(refreshed),
            Write::ForgetFamily(key) => {
                self.create_refreshes()?;
                self.run(
                    "DELETE FROM refreshes WHERE key = ?",
                    Bindings::new().id(key),
                )?;
                self.run(
                    "DELETE FROM families WHERE key = ?",
                    Bindings::new().id(key),
                )
            }
            Write::Effect(effect) => self.write_effect(effect),
        }
    }

    fn write_effect(&self, effect: &Effect) -> Result<(), JsValue> {
        match effect {
            Effect::Record(attempt) => self.record(attempt),
            Effect::Extend {
                row,
                lease_deadline,
            } => self.run(
                "UPDATE attempts SET lease_deadline = ? WHERE row = ?",
                Bindings::new().moment(*lease_deadline).number(*row),
            ),
            Effect::End { row } => self.run(
                "UPDATE attempts SET secret = NULL WHERE row = ?",
                Bindings::new().number(*row),
            ),
            Effect::Discard { rows } => self.run(
                "DELETE FROM attempts WHERE row >= ? AND row < ?",
                Bindings::new().number(rows.start).number(rows.end),
            ),
            Effect::Learned { text } => self.run(
                "UPDATE source SET learned = ? WHERE id = 1",
                Bindings::new().text(text),
            ),
            Effect::Cooldown { until } => self.run(
                "UPDATE source SET cooldown_until = ?",
                Bindings::new().optional(*until, Bindings::moment),
            ),
            Effect::Answer { .. } | Effect::Ask { .. } => Ok(()),
        }
    }

    fn record(&self, attempt: &Attempt) -> Result<(), JsValue> {
        let slot = attempt.slot.as_ref();
        // In the row of a repeat stands which slot it got.
        let named: Option<&dyn Display> = match (slot, &attempt.replays) {
            (Some(slot), _) => Some(&slot.attempt),
            (None, Some(replayed)) => Some(replayed),
            (None, None) => None,
        };
        self.run(
            "INSERT OR REPLACE INTO attempts
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            Bindings::new()
                .number(attempt.row)
                .number(attempt.reference.0)
                .moment(attempt.at)
                .id(attempt.request)
                .optional(attempt.key, Bindings::id)
                .optional(attempt.ip.as_deref(), Bindings::text)
                .number(attempt.outcome.status())
                .text(attempt.outcome.word())
                .optional(attempt.outcome.omitted(), Bindings::number)
                .number(attempt.queued.ms())
                .optional(slot, |row, slot| {
                    row.id(format_args!("{:032x}", slot.secret.0))
                })
                .optional(named, Bindings::id)
                .optional(slot, |row, slot| row.moment(slot.lease_deadline))
                .optional(slot, |row, slot| row.moment(slot.request_deadline)),
        )
    }

    /// Adds an entry and drops the one that is too many.
    fn audit(&self, audited: &Audited) -> Result<(), JsValue> {
        self.run(
            "INSERT INTO audit (at, request, action, detail, ip) VALUES (?, ?, ?, ?, ?)",
            Bindings::new()
                .moment(audited.at)
                .id(audited.request)
                .text(audited.action)
                .text(&audited.detail.to_string())
                .optional(audited.ip.as_deref(), Bindings::text),
        )?;
        self.run(
            "DELETE FROM audit WHERE ordinal <= (SELECT MAX(ordinal) FROM audit) - ?",
            Bindings::new().number(AUDIT_KEEP),
        )
    }

    fn create_refreshes(&self) -> Result<(), JsValue> {
        CREATE_REFRESHES
            .iter()
            .try_for_each(|statement| self.run(statement, Bindings::new()))
    }

    /// Counts a refresh in its family's newest entry, or adds one and drops the
    /// one that is too many.
    fn refreshed(&self, refreshed: &Refreshed) -> Result<(), JsValue> {
        let ip = refreshed.ip.as_deref();
        let before = refreshed.before.as_ref();
        if let Some(entry) = before.filter(|entry| entry.takes(refreshed.at, ip)) {
            return self.run(
                "UPDATE refreshes SET count = count + 1, last_at = ? WHERE ordinal = ?",
                Bindings::new().moment(refreshed.at).number(entry.ordinal),
            );
        }
        self.create_refreshes()?;
        self.run(
            "INSERT INTO refreshes (at, last_at, request, key, ip, count) VALUES (?, ?, ?, ?, ?, 1)",
            Bindings::new()
                .moment(refreshed.at)
                .moment(refreshed.at)
                .id(refreshed.request)
                .id(refreshed.key)
                .optional(ip, Bindings::text),
        )?;
        self.run(
            "DELETE FROM refreshes WHERE key = ?1 AND ordinal <= (SELECT ordinal FROM refreshes
             WHERE key = ?1 ORDER BY ordinal DESC LIMIT 1 OFFSET ?2)",
            Bindings::new().id(refreshed.key).number(KEPT_OF_A_FAMILY),
        )
    }

    fn write_told(&self, summary: &Summary) -> Result<(), JsValue> {
        self.run(CREATE_TOLD, Bindings::new())?;
        self.run(
            "INSERT OR REPLACE INTO told VALUES (1, ?, ?, ?, ?, ?)",
            Bindings::new()
                .moment(summary.at)
                .number(summary.limit)
                .number(summary.in_use)
                .number(summary.depth)
                .text(&summary.tally.to_text()),
        )
    }

    fn run(&self, statement: &'static str, bindings: Bindings) -> Result<(), JsValue> {
        self.sql.run(statement, bindings)
    }

    fn rows(&self, query: &str, bindings: Bindings) -> Result<Vec<Row>, Fault> {
        self.sql
            .rows(query, bindings)
            .map_err(|error| Fault::because("a read failed", error))
    }
}

/// Exact: no moment is above 2^53.
#[expect(clippy::cast_precision_loss, reason = "moments stay below 2^53")]
fn in_js(at: Millis) -> f64 {
    at.epoch_ms() as f64
}
