//! The directory: one object that lists the sources, with the summary that each
//! active one pushed last. It is off the path of lock calls.

mod audit;

use std::cell::Cell;
use std::panic::{RefUnwindSafe, UnwindSafe};

use wasm_bindgen::prelude::*;
use web_sys::{Request, Response};

use super::Fault;
use super::js::{self, ObjectContext, Storage};
use super::sql::{self, Bindings, Row, Sql};
use crate::governor::ids::RequestId;
use crate::governor::tally::Tally;
use crate::governor::time::Millis;
use crate::json::{Json, object};
use crate::protocol::directory::{By, DirectoryCall, Summary};
use crate::protocol::status::{ABSENT, AGAIN};
use crate::wire::answer::HttpAnswer;
use crate::wire::metrics::{self, Figures};
use crate::wire::problem::Problem;

const CREATE: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS sources (
    name TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    summary_at INTEGER,
    effective_limit INTEGER,
    in_use INTEGER,
    depth INTEGER
) STRICT, WITHOUT ROWID",
    // What each source counted, as `Tally::to_text` says it.
    "CREATE TABLE IF NOT EXISTS tallies (
    name TEXT PRIMARY KEY,
    tally TEXT NOT NULL
) STRICT, WITHOUT ROWID",
];

const REMOVE: [&str; 2] = [
    "DELETE FROM sources WHERE name = ?",
    "DELETE FROM tallies WHERE name = ?",
];

/// What a call comes to.
enum Said {
    Done,
    /// There is no such source.
    Absent,
    List(Json),
    Metrics(String),
}

#[wasm_bindgen]
pub struct Directory {
    storage: Storage,
    sql: Sql,
    /// Whether the tables are known to be there.
    has_tables: Cell<bool>,
}

/// What it knows is set when it has become so, and never before.
impl UnwindSafe for Directory {}
impl RefUnwindSafe for Directory {}

#[wasm_bindgen]
#[expect(
    clippy::needless_pass_by_value,
    reason = "what JavaScript hands over is owned"
)]
impl Directory {
    #[wasm_bindgen(constructor)]
    pub fn new(context: ObjectContext, _env: worker::Env) -> Self {
        let storage = context.storage();
        let sql = Sql::of(&storage);
        Self {
            storage,
            sql,
            has_tables: Cell::new(false),
        }
    }

    pub fn fetch(&self, request: Request) -> Result<Response, JsValue> {
        let Some(call) = DirectoryCall::from_url(&request.url()) else {
            return js::respond(&Problem::not_found().into_answer(), RequestId(0));
        };
        match self.serve(&call) {
            Ok(Said::Absent) => js::signal(ABSENT, None),
            Ok(Said::List(list)) => js::respond(&HttpAnswer::json(200, &list), RequestId(0)),
            Ok(Said::Metrics(text)) => js::respond(&HttpAnswer::metrics(text), RequestId(0)),
            Ok(Said::Done) => js::signal(204, None),
            Err(error) => {
                Fault::because("the directory failed", error);
                js::signal(AGAIN, None)
            }
        }
    }

    fn serve(&self, call: &DirectoryCall) -> Result<Said, JsValue> {
        self.make_tables()?;
        match call {
            DirectoryCall::Register {
                source,
                created_at,
                updated_at,
                by,
            } => {
                self.at_once(|| self.register(source, *created_at, *updated_at, by))?;
                Ok(Said::Done)
            }
            DirectoryCall::Remove { source, by } => {
                self.at_once(|| self.remove(source, by))?;
                Ok(Said::Done)
            }
            DirectoryCall::Refused {
                credential,
                refusals,
            } => {
                let now = js::now();
                self.at_once(|| audit::refused(&self.sql, now, *credential, refusals))?;
                Ok(Said::Done)
            }
            DirectoryCall::Audit { limit, before } => {
                let page = audit::page(&self.sql, *limit, *before)?;
                let next = page.next.map(|next| next.to_string());
                Ok(Said::List(object! {"entries": page.entries, "next": next}))
            }
            DirectoryCall::Has { source } => Ok(if self.has(source)? {
                Said::Done
            } else {
                Said::Absent
            }),
            DirectoryCall::Push { source, summary } => {
                self.push(source, summary)?;
                Ok(Said::Done)
            }
            DirectoryCall::Metrics => self.metrics().map(Said::Metrics),
            DirectoryCall::List { limit, after } => self.list(*limit, after).map(Said::List),
        }
    }

    /// Once while the object lives.
    fn make_tables(&self) -> Result<(), JsValue> {
        if !self.has_tables.get() {
            for table in CREATE.into_iter().chain(audit::CREATE) {
                self.sql.run(table, Bindings::new())?;
            }
            self.has_tables.set(true);
        }
        Ok(())
    }

    /// All or nothing: a call that failed is made again, and is one entry.
    fn at_once(&self, mut work: impl FnMut() -> Result<(), JsValue>) -> Result<(), JsValue> {
        self.storage.transaction(&mut work).map(|_| ())
    }

    fn register(
        &self,
        source: &str,
        created_at: Millis,
        updated_at: Millis,
        by: &By,
    ) -> Result<(), JsValue> {
        let query = "SELECT created_at FROM sources WHERE name = ?";
        let known = self.sql.rows(query, Bindings::new().text(source))?;
        let known = known.first().and_then(|row| row.moment("created_at"));
        if known != Some(created_at) {
            // What a source of this name counted before is not this one's.
            self.forget(source)?;
            audit::source_was(&self.sql, js::now(), "created", source, by)?;
        }
        self.sql.run(
            "INSERT INTO sources (name, created_at, updated_at) VALUES (?, ?, ?)
             ON CONFLICT (name) DO UPDATE SET updated_at = excluded.updated_at",
            Bindings::new()
                .text(source)
                .moment(created_at)
                .moment(updated_at),
        )
    }

    fn remove(&self, source: &str, by: &By) -> Result<(), JsValue> {
        if self.has(source)? {
            audit::source_was(&self.sql, js::now(), "deleted", source, by)?;
        }
        self.forget(source)
    }

    fn forget(&self, source: &str) -> Result<(), JsValue> {
        let mut all = REMOVE.into_iter();
        all.try_for_each(|delete| self.sql.run(delete, Bindings::new().text(source)))
    }

    fn has(&self, source: &str) -> Result<bool, JsValue> {
        let query = "SELECT 1 FROM sources WHERE name = ?";
        let found = self.sql.rows(query, Bindings::new().text(source))?;
        Ok(!found.is_empty())
    }

    fn push(&self, source: &str, summary: &Summary) -> Result<(), JsValue> {
        self.sql.run(
            "UPDATE sources SET summary_at = ?, effective_limit = ?, in_use = ?, depth = ?
             WHERE name = ?",
            Bindings::new()
                .moment(summary.at)
                .number(summary.limit)
                .number(summary.in_use)
                .number(summary.depth)
                .text(source),
        )?;
        if summary.tally == Tally::default() {
            // Nothing was counted, or it can't be read here: no count goes back.
            return Ok(());
        }
        self.sql.run(
            "INSERT INTO tallies SELECT name, ? FROM sources WHERE name = ?
             ON CONFLICT (name) DO UPDATE SET tally = excluded.tally",
            Bindings::new().text(&summary.tally.to_text()).text(source),
        )
    }

    fn metrics(&self) -> Result<String, JsValue> {
        let rows = self.sql.rows(
            "SELECT sources.*, tally FROM sources LEFT JOIN tallies USING (name)
             WHERE summary_at IS NOT NULL ORDER BY name",
            Bindings::new(),
        )?;
        let all: Vec<Figures> = rows.iter().filter_map(figures).collect();
        Ok(metrics::text(&all, audit::totals(&self.sql)?))
    }

    fn list(&self, limit: u32, after: &str) -> Result<Json, JsValue> {
        let rows = self.sql.rows(
            "SELECT sources.*, tally FROM sources LEFT JOIN tallies USING (name)
             WHERE name > ? ORDER BY name LIMIT ?",
            Bindings::new().text(after).number(limit.saturating_add(1)),
        )?;
        let (page, last) = sql::page(&rows, limit);
        let next = last.and_then(|row| row.text("name"));
        let pools: Vec<Json> = page.iter().map(entry).collect();
        Ok(object! {"pools": pools, "next": next})
    }
}

fn figures(row: &Row) -> Option<Figures> {
    Some(Figures {
        source: row.text("name")?,
        summary: row.summary("summary_at")?,
    })
}

fn entry(row: &Row) -> Json {
    let natural = |name| row.natural(name);
    let summary = row.summary("summary_at").map(|summary| {
        let tally = summary.tally;
        object! {
            "at": summary.at.epoch_ms(),
            "effectiveLimit": summary.limit,
            "inUse": summary.in_use,
            "queueDepth": summary.depth,
            "counters": object! {"released": tally.released, "throttled": tally.throttled},
        }
    });
    object! {
        "source": row.text("name"),
        "createdAt": natural("created_at"),
        "updatedAt": natural("updated_at"),
        "summary": summary,
    }
}
