//! How a source is read back. Writes nothing, unless an older version wrote it.

use std::collections::VecDeque;

use super::layout::{LAYOUT, migration};
use super::{Header, Store};
use crate::access::families::Families;
use crate::access::policy::Loopback;
use crate::edge::Fault;
use crate::edge::sql::{Bindings, Row};
use crate::governor::ids::Ref;
use crate::governor::ring::{BLOCK, Block, DOORSTEP};
use crate::governor::rpm::WINDOW;
use crate::governor::settings::Settings;
use crate::governor::slots::Slot;
use crate::governor::snapshot::Snapshot;
use crate::governor::tally::Tally;
use crate::governor::time::{Millis, Span};
use crate::protocol::directory::Summary;

/// A source as it was kept.
pub struct Loaded {
    pub header: Header,
    pub settings: Settings,
    pub snapshot: Snapshot,
    pub families: Families,
    /// What the directory was told last.
    pub told: Option<Summary>,
}

impl Store {
    /// Everything that is kept; `None` if there is no source. Writes nothing but
    /// a migration, so a made-up name creates nothing.
    ///
    /// # Errors
    /// If storage can't be read, or holds what this version can't understand.
    pub fn load(&self, clock: Millis) -> Result<Option<Loaded>, Fault> {
        if !self.has_table("source")? {
            return Ok(None);
        }
        let Some(source) = self.source()? else {
            return Ok(None);
        };
        let source = self.migrated(source)?;
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
        snapshot.learned = source.text("learned");
        let told = self.told()?;
        let counted = told.as_ref().map_or(Millis::EPOCH, |told| told.at);
        snapshot.tally = self.counted_on(told.as_ref(), snapshot.last)?;
        let (held, ended) = self.held(snapshot.seen, counted)?;
        snapshot.held = held;
        snapshot.tally.expired = snapshot.tally.expired.saturating_add(ended);
        Ok(Some(Loaded {
            header,
            settings,
            snapshot,
            families: self.families()?,
            told,
        }))
    }

    pub(super) fn has_table(&self, name: &str) -> Result<bool, Fault> {
        let query = "SELECT 1 FROM sqlite_master WHERE name = ?";
        Ok(!self.rows(query, Bindings::new().text(name))?.is_empty())
    }

    fn source(&self) -> Result<Option<Row>, Fault> {
        let rows = self.rows("SELECT * FROM source", Bindings::new())?;
        Ok(rows.into_iter().next())
    }

    /// What can't be read was not told: it only counts.
    fn told(&self) -> Result<Option<Summary>, Fault> {
        if !self.has_table("told")? {
            return Ok(None);
        }
        let rows = self.rows("SELECT * FROM told", Bindings::new())?;
        Ok(rows.first().and_then(|row| row.summary("at")))
    }

    /// The source's row in today's layout.
    fn migrated(&self, source: Row) -> Result<Row, Fault> {
        let Some(migration) = source.natural("layout").and_then(migration) else {
            return Ok(source);
        };
        let mut migrate = || {
            let mut statements = migration.iter();
            statements.try_for_each(|statement| self.run(statement, Bindings::new()))
        };
        self.storage
            .transaction(&mut migrate)
            .map_err(|error| Fault::because("a migration failed", error))?;
        self.migrated(self.source()?.ok_or_else(malformed)?)
    }

    fn snapshot(&self, clock: Millis) -> Result<Snapshot, Fault> {
        let mut snapshot = Snapshot {
            seen: clock,
            ..Snapshot::default()
        };
        let blocks = self.rows(
            // What is bound is real, and so its quotient would be.
            "SELECT CAST(row / ? AS INTEGER) AS block, MAX(ref) AS last,
                MAX(CASE WHEN request_deadline IS NOT NULL THEN at END) AS last_grant,
                MAX(at) AS at FROM attempts WHERE row < ? GROUP BY 1 ORDER BY 2",
            Bindings::new().number(BLOCK).number(DOORSTEP),
        )?;
        let mut used = VecDeque::new();
        for block in blocks {
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
        snapshot.window = self.window(snapshot.seen)?;
        Ok(snapshot)
    }

    /// The row after the one written last from `first` to below `end`, and that
    /// one's ordinal.
    fn after_last(&self, first: u32, end: u32) -> Result<(u32, Option<Ref>), Fault> {
        let rows = self.rows(
            "SELECT row, MAX(ref) AS last FROM attempts WHERE row >= ? AND row < ?",
            Bindings::new().number(first).number(end),
        )?;
        let last = rows.first().and_then(|row| row.natural("last")).map(Ref);
        let row = rows.first().and_then(|row| row.small("row"));
        Ok((row.map_or(0, |row| row.saturating_add(1)), last))
    }

    /// What was counted by the time that the directory was `told`, and the attempts
    /// that the log has since: an object that was cut off couldn't tell of them.
    /// Nothing is written, so loading again counts no more. What was written before
    /// there were names doesn't say where it ended, and is taken as it is.
    fn counted_on(&self, told: Option<&Summary>, last: Option<Ref>) -> Result<Tally, Fault> {
        let mut tally = told.map(|told| told.tally.clone()).unwrap_or_default();
        let counted = told.map_or(Some(Ref(0)), |told| told.tally.counted);
        let Some(Ref(counted)) = counted.filter(|counted| Some(*counted) < last) else {
            return Ok(tally);
        };
        let rows = self.rows(
            "SELECT outcome, CASE WHEN request_deadline IS NOT NULL THEN queued_ms END AS queued,
                CAST(SUM(COALESCE(omitted, 1)) AS INTEGER) AS times
             FROM attempts WHERE ref > ? GROUP BY 1, 2",
            Bindings::new().number(counted),
        )?;
        for row in rows {
            let word = row.text("outcome").ok_or_else(malformed)?;
            let times = row.natural("times").ok_or_else(malformed)?;
            let queued = Span::from_ms(row.natural("queued").unwrap_or_default());
            tally.recount(&word, times, queued);
        }
        Ok(tally)
    }

    /// Who holds a slot, and how many leases ended by time after `counted`, when
    /// what was counted last was written down: with nobody there to count them, or
    /// by one who was cut off.
    fn held(&self, now: Millis, counted: Millis) -> Result<(Vec<Slot>, u64), Fault> {
        let rows = self.rows(
            "SELECT * FROM attempts WHERE secret IS NOT NULL AND lease_deadline > ?",
            Bindings::new().moment(now.min(counted)),
        )?;
        let slots: Option<Vec<Slot>> = rows.iter().map(Row::slot).collect();
        let (held, ended): (Vec<Slot>, Vec<Slot>) = slots
            .ok_or_else(malformed)?
            .into_iter()
            .partition(|slot| slot.lease_deadline > now);
        let uncounted = ended.iter().filter(|slot| slot.lease_deadline > counted);
        Ok((held, uncounted.count() as u64))
    }

    fn window(&self, now: Millis) -> Result<Vec<(Millis, u32)>, Fault> {
        let rows = self.rows(
            "SELECT at, COUNT(*) AS grants FROM attempts
             WHERE request_deadline IS NOT NULL AND at > ? GROUP BY at ORDER BY at",
            Bindings::new().moment(now.minus(WINDOW)),
        )?;
        let marks: Option<Vec<_>> = rows
            .iter()
            .map(|row| Some((row.moment("at")?, row.small("grants")?)))
            .collect();
        marks.ok_or_else(malformed)
    }

    fn families(&self) -> Result<Families, Fault> {
        let mut families = Families::default();
        for row in self.rows("SELECT * FROM families", Bindings::new())? {
            let (key, family) = row.family().ok_or_else(malformed)?;
            families.insert(key, family);
        }
        Ok(families)
    }
}

fn malformed() -> Fault {
    Fault::because("a stored row", "malformed")
}
