//! The access log and the audit log, page by page, newest first.

use wasm_bindgen::JsValue;

use super::Store;
use crate::access::trail::Entry;
use crate::edge::Fault;
use crate::edge::sql::{self, Bindings, Row, Sql};
use crate::governor::ids::KeyId;
use crate::governor::time::MAX_SAFE;
use crate::json::{Json, object};
use crate::wire::paging::{Cursor, Sought};

/// Every attempt is looked at for a page, so a filter costs nothing more. What is
/// sought is bound; where nothing is, everything matches. An attempt that took
/// a slot is known to operators by the slot's name, and a repeat by that of the
/// slot that it got.
const SELECT_LOG: &str = "SELECT *, ref AS ordinal,
    CASE WHEN request_deadline IS NOT NULL THEN CAST(ref AS TEXT) ELSE attempt END AS slot_ref
    FROM attempts WHERE (?1 IS NULL OR outcome = ?1 OR (?1 = 'refused' AND outcome <> 'granted'))
    AND (?2 IS NULL OR key = ?2) AND (?3 IS NULL OR request = ?3)";

/// What operators did, and who refreshed. Each has its own ordinals, which are
/// kept apart as even and odd, so that a page ends between any two.
const SELECT_AUDIT: &str =
    "SELECT at, request, action, detail, ip, ordinal * 2 AS ordinal FROM audit";
const SELECT_REFRESHES: &str = "SELECT at, request, 'refreshed',
    json_object('keyId', key, 'count', count, 'lastAt', last_at), ip, ordinal * 2 + 1 FROM refreshes";

impl Store {
    /// The newest entry of a family's refreshes.
    ///
    /// # Errors
    /// If storage can't be read.
    pub fn last_refresh(&self, key: KeyId) -> Result<Option<Entry>, Fault> {
        if !self.has_table("refreshes")? {
            return Ok(None);
        }
        let rows = self.rows(
            "SELECT * FROM refreshes WHERE key = ? ORDER BY ordinal DESC LIMIT 1",
            Bindings::new().id(key),
        )?;
        Ok(rows.first().and_then(|row| {
            Some(Entry {
                ordinal: row.natural("ordinal")?,
                at: row.moment("at")?,
                ip: row.text("ip").map(Box::from),
            })
        }))
    }

    /// A page of the access log, newest first, and whether there is more.
    ///
    /// # Errors
    /// If storage can't be read.
    pub fn log(&self, limit: u32, before: Option<Cursor>, sought: Sought) -> Result<Page, Fault> {
        let sought = Bindings::new()
            .optional(sought.outcome, Bindings::id)
            .optional(sought.key, Bindings::id)
            .optional(sought.request, Bindings::id);
        self.page(SELECT_LOG, sought, limit, before, |row| {
            object! {
                "at": row.natural("at"),
                "requestId": row.text("request"),
                "keyId": row.text("key"),
                "ip": row.text("ip"),
                "status": row.natural("status").filter(|status| *status > 0),
                "outcome": row.text("outcome"),
                "count": row.natural("omitted"),
                "queuedMs": row.natural("queued_ms"),
                "ref": row.text("slot_ref"),
            }
        })
    }

    /// A page of the audit log, newest first, and whether there is more.
    ///
    /// # Errors
    /// If storage can't be read.
    pub fn audit_log(&self, limit: u32, before: Option<Cursor>) -> Result<Page, Fault> {
        let select = if self.has_table("refreshes")? {
            &format!("{SELECT_AUDIT} UNION ALL {SELECT_REFRESHES}")
        } else {
            SELECT_AUDIT
        };
        self.page(select, Bindings::new(), limit, before, |row| {
            let detail = row.text("detail").unwrap_or_default();
            object! {
                "at": row.natural("at"),
                "requestId": row.text("request"),
                "action": row.text("action"),
                "detail": Json::passed_on(&detail),
                "ip": row.text("ip"),
            }
        })
    }

    /// `bindings` are those of `select`.
    fn page(
        &self,
        select: &str,
        bindings: Bindings,
        limit: u32,
        before: Option<Cursor>,
        entry: impl Fn(&Row) -> Json,
    ) -> Result<Page, Fault> {
        newest_first(&self.sql, select, bindings, limit, before, entry)
            .map_err(|error| Fault::because("a read failed", error))
    }
}

/// A page of a log, newest first. `bindings` are those of `select`, whose rows have
/// `at` and `ordinal`.
///
/// # Errors
/// What storage says.
pub fn newest_first(
    sql: &Sql,
    select: &str,
    bindings: Bindings,
    limit: u32,
    before: Option<Cursor>,
    entry: impl Fn(&Row) -> Json,
) -> Result<Page, JsValue> {
    let before = before.unwrap_or(Cursor {
        at: MAX_SAFE,
        ordinal: 0,
    });
    let bindings = bindings
        .number(before.at)
        .number(before.ordinal)
        .number(limit.saturating_add(1));
    let rows = sql.rows(
        &format!(
            "SELECT * FROM ({select}) WHERE (at, ordinal) < (?, ?)
                 ORDER BY at DESC, ordinal DESC LIMIT ?"
        ),
        bindings,
    )?;
    let (page, last) = sql::page(&rows, limit);
    Ok(Page {
        next: last.and_then(|row| {
            Some(Cursor {
                at: row.natural("at")?,
                ordinal: row.natural("ordinal")?,
            })
        }),
        // What isn't known is left out.
        entries: page.iter().map(|row| entry(row).without_nulls()).collect(),
    })
}

/// A page of a log.
pub struct Page {
    pub entries: Vec<Json>,
    /// The value for `before` of the next page.
    pub next: Option<Cursor>,
}
