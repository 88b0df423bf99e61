//! The only SQL: what a source keeps, as rows, and how it is read back.
//!
//! All writes of a turn are one transaction, and each verb of the lock API
//! writes one row: an attempt's row is its log entry, its slot and its RPM mark
//! at once. Values that come from outside are bound, never written into a
//! statement. The layout carries a version; a later one migrates it.

use std::collections::VecDeque;

use js_sys::{Array, JsString};
use serde_json::{Value, json};
use wasm_bindgen::JsValue;

use super::Fault;
use super::js::{self, Sql, Storage};
use crate::access::families::{Families, Family};
use crate::access::policy::Loopback;
use crate::fields::whole;
use crate::governor::command::{Attempt, Effect};
use crate::governor::ids::{KeyId, Ref, RequestId, SlotSecret, Version};
use crate::governor::ring::{BLOCK, Block, DOORSTEP};
use crate::governor::rpm::WINDOW;
use crate::governor::settings::Settings;
use crate::governor::slots::Slot;
use crate::governor::snapshot::Snapshot;
use crate::governor::time::{MAX_SAFE, Millis, Span};
use crate::wire::paging::Cursor;

/// The version of the layout below.
const LAYOUT: u32 = 1;

const CREATE: [&str; 4] = [
    // One row: the source itself.
    "CREATE TABLE source (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        layout INTEGER NOT NULL,
        name TEXT NOT NULL,
        version TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        settings TEXT NOT NULL,
        cooldown_until INTEGER
    ) STRICT",
    // The ring of attempts. A held slot is a row with a secret; a row with a
    // request deadline took a slot, and so counts in the RPM window. Rows from
    // ring::DOORSTEP on are refusals of callers without a signed key.
    "CREATE TABLE attempts (
        row INTEGER PRIMARY KEY,
        ref INTEGER NOT NULL,
        at INTEGER NOT NULL,
        request TEXT NOT NULL,
        key TEXT,
        ip TEXT,
        status INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        omitted INTEGER,
        queued_ms INTEGER NOT NULL,
        secret TEXT,
        attempt TEXT,
        lease_deadline INTEGER,
        request_deadline INTEGER
    ) STRICT",
    "CREATE TABLE families (
        key TEXT PRIMARY KEY,
        name TEXT,
        created_at INTEGER NOT NULL,
        ttl_ms INTEGER NOT NULL,
        refresh_ttl_ms INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        current TEXT NOT NULL,
        refresh_expires_at INTEGER NOT NULL,
        retired TEXT,
        retired_at INTEGER,
        revoked_at INTEGER
    ) STRICT, WITHOUT ROWID",
    "CREATE TABLE audit (
        ordinal INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        request TEXT NOT NULL,
        action TEXT NOT NULL,
        detail TEXT NOT NULL,
        ip TEXT
    ) STRICT",
];

/// An attempt that took a slot is known to operators by the slot's name.
const SELECT_LOG: &str = "SELECT *, ref AS ordinal,
    CASE WHEN request_deadline IS NOT NULL THEN CAST(ref AS TEXT) END AS slot_ref
    FROM attempts";

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
    pub detail: Value,
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
            [Write::Create] => self.transaction(writes),
            [write] => self.write(write),
            _ => self.transaction(writes),
        };
        result.map_err(|error| Fault::because("a write failed", error))
    }

    fn transaction(&self, writes: &[Write]) -> Result<(), JsValue> {
        let mut body = || writes.iter().try_for_each(|write| self.write(write));
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
                "INSERT INTO source VALUES (1, ?, ?, ?, ?, ?, ?, NULL)
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

    fn run(&self, query: &str, bindings: &Array) -> Result<(), JsValue> {
        self.sql.exec(&JsString::from(query), bindings).map(|_| ())
    }

    fn rows(&self, query: &str, bindings: &Array) -> Result<Array, Fault> {
        self.sql
            .exec(&JsString::from(query), bindings)
            .and_then(|cursor| cursor.to_array())
            .map_err(|error| Fault::because("a read failed", error))
    }

    /// A page of the access log, newest first, and whether there is more.
    ///
    /// # Errors
    /// If storage can't be read.
    pub fn log(&self, limit: u32, before: Option<Cursor>) -> Result<Page, Fault> {
        self.page(SELECT_LOG, limit, before, |row| {
            json!({
                "at": row.natural("at"),
                "requestId": row.text("request"),
                "keyId": row.text("key"),
                "ip": row.text("ip"),
                "status": row.natural("status").filter(|status| *status > 0),
                "outcome": row.text("outcome"),
                "count": row.natural("omitted"),
                "queuedMs": row.natural("queued_ms"),
                "ref": row.text("slot_ref"),
            })
        })
    }

    /// A page of the audit log, newest first, and whether there is more.
    ///
    /// # Errors
    /// If storage can't be read.
    pub fn audit_log(&self, limit: u32, before: Option<Cursor>) -> Result<Page, Fault> {
        self.page("SELECT * FROM audit", limit, before, |row| {
            let detail = row.text("detail").unwrap_or_default();
            json!({
                "at": row.natural("at"),
                "requestId": row.text("request"),
                "action": row.text("action"),
                "detail": serde_json::from_str::<Value>(&detail).unwrap_or_default(),
                "ip": row.text("ip"),
            })
        })
    }

    /// One more than is asked for is read, to tell whether there are more.
    fn page(
        &self,
        select: &str,
        limit: u32,
        before: Option<Cursor>,
        entry: impl Fn(&Row) -> Value,
    ) -> Result<Page, Fault> {
        let before = before.unwrap_or(Cursor {
            at: MAX_SAFE,
            ordinal: 0,
        });
        let rows = self.rows(
            &format!(
                "SELECT * FROM ({select}) WHERE (at, ordinal) < (?, ?)
                 ORDER BY at DESC, ordinal DESC LIMIT ?"
            ),
            &row([
                number(before.at).into(),
                number(before.ordinal).into(),
                limit.saturating_add(1).into(),
            ]),
        )?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let rows: Vec<Row> = rows.iter().map(Row).collect();
        let page = rows.get(..limit.min(rows.len())).unwrap_or_default();
        let last = page.last().filter(|_| rows.len() > limit);
        Ok(Page {
            next: last.and_then(|row| {
                Some(Cursor {
                    at: row.natural("at")?,
                    ordinal: row.natural("ordinal")?,
                })
            }),
            entries: page.iter().map(|row| without_nulls(entry(row))).collect(),
        })
    }

    /// Everything that is kept; `None` if there is no source. Writes nothing, so
    /// a made-up name creates nothing.
    ///
    /// # Errors
    /// If storage can't be read, or holds what this version can't understand.
    pub fn load(&self, clock: Millis) -> Result<Option<Loaded>, Fault> {
        let tables = self.rows(
            "SELECT name FROM sqlite_master WHERE name = 'source'",
            &Array::new(),
        )?;
        if tables.length() == 0 {
            return Ok(None);
        }
        let sources = self.rows("SELECT * FROM source", &Array::new())?;
        if sources.length() == 0 {
            return Ok(None);
        }
        let source = Row(sources.get(0));
        if source.natural("layout") != Some(LAYOUT.into()) {
            return Err(Fault::because("unknown layout", source.natural("layout")));
        }
        let settings = source.text("settings").unwrap_or_default();
        // Checked when they were put in place.
        let settings = Settings::parse(settings.as_bytes(), Loopback::Allowed)
            .map_err(|error| Fault::because("stored settings", error))?;
        let header = source
            .header()
            .ok_or_else(|| Fault::because("stored source", "malformed"))?;
        let mut snapshot = self.snapshot(clock)?;
        snapshot.cooldown = source.moment("cooldown_until");
        Ok(Some(Loaded {
            header,
            settings,
            snapshot,
            families: self.families()?,
        }))
    }

    fn snapshot(&self, clock: Millis) -> Result<Snapshot, Fault> {
        let mut snapshot = Snapshot {
            seen: clock,
            ..Snapshot::default()
        };
        let blocks = self.rows(
            "SELECT row / ? AS block, MAX(ref) AS last,
                MAX(CASE WHEN request_deadline IS NOT NULL THEN at END) AS last_grant,
                MAX(at) AS at FROM attempts WHERE row < ? GROUP BY 1 ORDER BY 2",
            &row([BLOCK.into(), DOORSTEP.into()]),
        )?;
        let mut used = VecDeque::new();
        for block in blocks.iter().map(Row) {
            let index = block.small("block").ok_or_else(malformed)?;
            used.push_back(Block {
                index,
                last_grant: block.moment("last_grant"),
            });
            snapshot.last = block.natural("last").map(Ref);
            snapshot.seen = snapshot.seen.max(block.moment("at").unwrap_or_default());
        }
        snapshot.blocks = used;
        (snapshot.next_row, _) = self.after_last(0, DOORSTEP)?;
        let last_knock;
        (snapshot.next_doorstep, last_knock) = self.after_last(DOORSTEP, u32::MAX)?;
        snapshot.last = snapshot.last.max(last_knock);
        snapshot.held = self.held(snapshot.seen)?;
        snapshot.window = self.window(snapshot.seen)?;
        Ok(snapshot)
    }

    /// The row after the one written last from `first` to below `end`, and that
    /// one's ordinal.
    fn after_last(&self, first: u32, end: u32) -> Result<(u32, Option<Ref>), Fault> {
        let rows = self.rows(
            "SELECT row, MAX(ref) AS last FROM attempts WHERE row >= ? AND row < ?",
            &row([first.into(), end.into()]),
        )?;
        let found = rows.iter().map(Row).next();
        let last = found.as_ref().and_then(|row| row.natural("last")).map(Ref);
        let row = found.and_then(|row| row.small("row"));
        Ok((row.map_or(0, |row| row.saturating_add(1)), last))
    }

    fn held(&self, now: Millis) -> Result<Vec<Slot>, Fault> {
        let rows = self.rows(
            "SELECT * FROM attempts WHERE secret IS NOT NULL AND lease_deadline > ?",
            &row([moment(now)]),
        )?;
        let slots: Option<Vec<Slot>> = rows.iter().map(|row| Row(row).slot()).collect();
        slots.ok_or_else(malformed)
    }

    fn window(&self, now: Millis) -> Result<Vec<(Millis, u32)>, Fault> {
        let rows = self.rows(
            "SELECT at, COUNT(*) AS grants FROM attempts
             WHERE request_deadline IS NOT NULL AND at > ? GROUP BY at ORDER BY at",
            &row([moment(now.minus(WINDOW))]),
        )?;
        let marks = rows.iter().map(Row);
        let marks: Option<Vec<_>> = marks
            .map(|row| Some((row.moment("at")?, row.small("grants")?)))
            .collect();
        marks.ok_or_else(malformed)
    }

    fn families(&self) -> Result<Families, Fault> {
        let mut families = Families::default();
        for row in self
            .rows("SELECT * FROM families", &Array::new())?
            .iter()
            .map(Row)
        {
            let (key, family) = row.family().ok_or_else(malformed)?;
            families.insert(key, family);
        }
        Ok(families)
    }
}

/// A page of a log.
pub struct Page {
    pub entries: Vec<Value>,
    /// The value for `before` of the next page.
    pub next: Option<Cursor>,
}

/// What isn't known is left out.
fn without_nulls(entry: Value) -> Value {
    match entry {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect(),
        other => other,
    }
}

/// A source as it was kept.
pub struct Loaded {
    pub header: Header,
    pub settings: Settings,
    pub snapshot: Snapshot,
    pub families: Families,
}

fn optional<T>(value: Option<T>, write: impl FnOnce(T) -> JsValue) -> JsValue {
    value.map_or(JsValue::NULL, write)
}

fn malformed() -> Fault {
    Fault::because("a stored row", "malformed")
}

fn row<const N: usize>(values: [JsValue; N]) -> Array {
    values.into_iter().collect()
}

/// Exact: nothing here is above 2^53.
#[expect(clippy::cast_precision_loss, reason = "values stay below 2^53")]
fn number(value: u64) -> f64 {
    value as f64
}

fn moment(at: Millis) -> JsValue {
    number(at.epoch_ms()).into()
}

/// One row as it was read.
struct Row(JsValue);

impl Row {
    fn natural(&self, name: &str) -> Option<u64> {
        js::property(&self.0, name).as_f64().map(whole)
    }

    fn small(&self, name: &str) -> Option<u32> {
        u32::try_from(self.natural(name)?).ok()
    }

    fn moment(&self, name: &str) -> Option<Millis> {
        self.natural(name).map(Millis::from_epoch)
    }

    fn text(&self, name: &str) -> Option<String> {
        js::property(&self.0, name).as_string()
    }

    fn header(&self) -> Option<Header> {
        Some(Header {
            name: self.text("name")?,
            version: self.text("version")?.parse().ok()?,
            created_at: self.moment("created_at")?,
            updated_at: self.moment("updated_at")?,
        })
    }

    fn slot(&self) -> Option<Slot> {
        let secret = u128::from_str_radix(&self.text("secret")?, 16).ok()?;
        Some(Slot {
            row: self.small("row")?,
            reference: Ref(self.natural("ref")?),
            secret: SlotSecret(secret),
            attempt: self.text("attempt")?.parse().ok()?,
            request: self.text("request")?.parse().ok()?,
            key: self.text("key")?.parse().ok()?,
            granted_at: self.moment("at")?,
            lease_deadline: self.moment("lease_deadline")?,
            request_deadline: self.moment("request_deadline")?,
        })
    }

    fn family(&self) -> Option<(KeyId, Family)> {
        let key = self.text("key")?.parse().ok()?;
        let retired = self.text("retired").and_then(|digest| digest.parse().ok());
        let family = Family {
            name: self.text("name"),
            created_at: self.moment("created_at")?,
            ttl: Span::from_ms(self.natural("ttl_ms")?),
            refresh_ttl: Span::from_ms(self.natural("refresh_ttl_ms")?),
            expires_at: self.moment("expires_at")?,
            current: self.text("current")?.parse().ok()?,
            refresh_expires_at: self.moment("refresh_expires_at")?,
            retired: retired.zip(self.moment("retired_at")),
            revoked_at: self.moment("revoked_at"),
        };
        Some((key, family))
    }
}
