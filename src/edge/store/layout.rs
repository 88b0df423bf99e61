//! The tables of a source's object, and the version of their layout.
//!
//! Storage outlives the code: whoever changes a table here gives the layout a
//! new version and migrates the old one.

/// The version of the layout below.
pub const LAYOUT: u32 = 2;

/// What turns the layout of this version into the next one's.
pub fn migration(layout: u64) -> Option<&'static [&'static str]> {
    match layout {
        // Learning came.
        1 => Some(&[
            "ALTER TABLE source ADD COLUMN learned TEXT",
            "UPDATE source SET layout = 2",
        ]),
        _ => None,
    }
}

/// One row: what the directory was told last, from which counting goes on. Made
/// when it is first written, and no part of the layout: a version that doesn't
/// know it, as after a rollback, needs nothing of it.
pub const CREATE_TOLD: &str = "CREATE TABLE IF NOT EXISTS told (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL,
    effective_limit INTEGER NOT NULL,
    in_use INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    tally TEXT NOT NULL
) STRICT";

/// The trail of refreshes (`access/trail.rs`), for the audit log: how many of a
/// family there were in an hour from one address. Made when it is first written,
/// as `told` is.
pub const CREATE_REFRESHES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS refreshes (
        ordinal INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        at INTEGER NOT NULL,
        request TEXT NOT NULL,
        ip TEXT,
        count INTEGER NOT NULL,
        last_at INTEGER NOT NULL
    ) STRICT",
    "CREATE INDEX IF NOT EXISTS refreshes_of_key ON refreshes (key, ordinal)",
];

pub const CREATE: [&str; 4] = [
    // One row: the source itself.
    "CREATE TABLE source (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        layout INTEGER NOT NULL,
        name TEXT NOT NULL,
        version TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        settings TEXT NOT NULL,
        cooldown_until INTEGER,
        learned TEXT
    ) STRICT",
    // The ring of attempts. A held slot is a row with a secret; a row with a
    // request deadline took a slot, and so counts in the RPM window. Rows from
    // ring::DOORSTEP on are refusals of callers without a live key. `attempt`
    // is what makes two acquires the same one; in the row of a repeat, which took
    // no slot, the `ref` of the slot that it got.
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
    // `retired`: the refresh token before the current one, while nothing was seen
    // of the pair that it brought. `retired_at`: when it was traded in, or the
    // moment ten seconds before it stops being answered again, if that is later;
    // a version that knows only the first reads the second rightly too.
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
