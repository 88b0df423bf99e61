//! The access log and the audit log, page by page, newest first.

use super::Store;
use crate::edge::Fault;
use crate::edge::sql::{self, Bindings, Row};
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

impl Store {
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
        self.page(
            "SELECT * FROM audit",
            Bindings::new(),
            limit,
            before,
            |row| {
                let detail = row.text("detail").unwrap_or_default();
                object! {
                    "at": row.natural("at"),
                    "requestId": row.text("request"),
                    "action": row.text("action"),
                    "detail": Json::passed_on(&detail),
                    "ip": row.text("ip"),
                }
            },
        )
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
        let before = before.unwrap_or(Cursor {
            at: MAX_SAFE,
            ordinal: 0,
        });
        let bindings = bindings
            .number(before.at)
            .number(before.ordinal)
            .number(limit.saturating_add(1));
        let rows = self.rows(
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
}

/// A page of a log.
pub struct Page {
    pub entries: Vec<Json>,
    /// The value for `before` of the next page.
    pub next: Option<Cursor>,
}
