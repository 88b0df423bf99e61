//! The directory's own audit log: who made and who deleted which source, which
//! outlives the source, and tokens that were refused. Both are bounded apart, so
//! that guessing pushes no deletion out.

use wasm_bindgen::JsValue;

use crate::access::refused::{Credential, Refusals};
use crate::edge::sql::{Bindings, Sql};
use crate::edge::store::{Page, newest_first};
use crate::governor::time::{Millis, Span};
use crate::json::object;
use crate::protocol::directory::By;
use crate::wire::paging::Cursor;

/// Entries of sources that were made or deleted that are kept.
const KEEP: u32 = 1000;
/// Entries of refusals that are kept, for each kind of token.
const KEEP_REFUSALS: u32 = 100;
/// Refusals within so long of the first are one entry.
const ONE_ENTRY: Span = Span::from_seconds(60);

pub const CREATE: [&str; 2] = [
    // A count is there for refusals alone.
    "CREATE TABLE IF NOT EXISTS audit (
    ordinal INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    action TEXT NOT NULL,
    source TEXT,
    request TEXT,
    ip TEXT,
    count INTEGER
) STRICT",
    "CREATE TABLE IF NOT EXISTS refusals (
    credential TEXT PRIMARY KEY,
    total INTEGER NOT NULL
) STRICT, WITHOUT ROWID",
];

/// A source was `created` or `deleted`.
pub fn source_was(
    sql: &Sql,
    now: Millis,
    action: &str,
    source: &str,
    by: &By,
) -> Result<(), JsValue> {
    sql.run(
        "INSERT INTO audit (at, action, source, request, ip) VALUES (?, ?, ?, ?, ?)",
        Bindings::new()
            .moment(now)
            .text(action)
            .text(source)
            .optional(by.request, Bindings::id)
            .optional(by.ip.as_deref(), Bindings::text),
    )?;
    sql.run(
        "DELETE FROM audit WHERE ordinal IN (SELECT ordinal FROM audit WHERE count IS NULL
         ORDER BY ordinal DESC LIMIT -1 OFFSET ?)",
        Bindings::new().number(KEEP),
    )
}

/// Counts refusals, and has them in the entry of their minute.
pub fn refused(
    sql: &Sql,
    now: Millis,
    credential: Credential,
    refusals: &Refusals,
) -> Result<(), JsValue> {
    sql.run(
        "INSERT INTO refusals VALUES (?, ?)
         ON CONFLICT (credential) DO UPDATE SET total = total + excluded.total",
        Bindings::new()
            .text(credential.word())
            .number(refusals.count),
    )?;
    let action = credential.action();
    let open = sql.rows(
        "SELECT ordinal FROM audit WHERE action = ? AND at > ? ORDER BY ordinal DESC LIMIT 1",
        Bindings::new().text(action).moment(now.minus(ONE_ENTRY)),
    )?;
    let last = Bindings::new()
        .number(refusals.count)
        .optional(refusals.source.as_deref(), Bindings::text)
        .optional(refusals.ip.as_deref(), Bindings::text);
    if let Some(ordinal) = open.first().and_then(|row| row.natural("ordinal")) {
        return sql.run(
            "UPDATE audit SET count = count + ?, source = ?, ip = ? WHERE ordinal = ?",
            last.number(ordinal),
        );
    }
    sql.run(
        "INSERT INTO audit (count, source, ip, at, action) VALUES (?, ?, ?, ?, ?)",
        last.moment(now).text(action),
    )?;
    sql.run(
        "DELETE FROM audit WHERE ordinal IN (SELECT ordinal FROM audit WHERE action = ?
         ORDER BY ordinal DESC LIMIT -1 OFFSET ?)",
        Bindings::new().text(action).number(KEEP_REFUSALS),
    )
}

/// How many were refused since the directory counts them, at the places of
/// [`Credential::ALL`].
pub fn totals(sql: &Sql) -> Result<[u64; Credential::ALL.len()], JsValue> {
    let mut totals = [0; Credential::ALL.len()];
    for row in sql.rows("SELECT * FROM refusals", Bindings::new())? {
        let credential = row.text("credential");
        let credential = credential.and_then(|word| Credential::of_word(&word));
        let total = credential.and_then(|known| totals.get_mut(known.place()));
        if let Some(total) = total {
            *total = row.natural("total").unwrap_or_default();
        }
    }
    Ok(totals)
}

/// A page of it, newest first.
pub fn page(sql: &Sql, limit: u32, before: Option<Cursor>) -> Result<Page, JsValue> {
    let bindings = Bindings::new();
    newest_first(sql, "SELECT * FROM audit", bindings, limit, before, |row| {
        object! {
            "at": row.natural("at"),
            "requestId": row.text("request"),
            "action": row.text("action"),
            "source": row.text("source"),
            "ip": row.text("ip"),
            "count": row.natural("count"),
        }
    })
}
