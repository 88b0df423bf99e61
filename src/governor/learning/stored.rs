//! What was learned, as it is kept: one JSON text in the source's row.
//!
//! What can't be read is as good as not learned: nothing here may keep a source
//! from being loaded. Fields that are unknown are ignored, those that are
//! missing have their default, so neighbouring versions read each other's.

use super::budget::Budget;
use super::concurrency::Concurrency;
use super::rate::{Inferred, Rate, Told, Wait};
use super::{Learning, Source};
use crate::fields::{FieldError, Fields};
use crate::governor::cooldown::LONGEST;
use crate::governor::ids::Ref;
use crate::governor::rpm::Rpm;
use crate::governor::settings::Settings;
use crate::governor::time::{Millis, Span};
use crate::json::{Json, object};

impl Learning {
    /// The form that is kept.
    pub fn to_text(&self, grants: &Rpm, now: Millis) -> String {
        let concurrency = object! {
            "level": self.concurrency.level,
            "ceiling": self.concurrency.ceiling,
            "quietUntil": self.concurrency.quiet_until.epoch_ms(),
            "ramp": self.concurrency.ramp,
            "by": self.concurrency_by.map(source),
        };
        let rate = object! {
            "told": self.rate.told.map(|told| object! {
                "limit": told.limit,
                "windowMs": told.window.map(Span::ms),
            }),
            "inferred": self.rate.inferred.map(|inferred| object! {
                "perHour": inferred.per_hour,
                "quietUntil": inferred.quiet_until.epoch_ms(),
            }),
            "wait": self.rate.wait.map(wait),
            "budget": self.rate.budget.map(|budget| object! {
                "left": budget.left(grants),
                "at": now.epoch_ms(),
                "resetsAt": budget.resets_at.epoch_ms(),
            }),
            "by": self.rate_by.map(source),
        };
        object! {
            "concurrency": concurrency,
            "rate": rate,
            "incident": self.incident.0,
        }
        .to_string()
    }

    /// From the form that is kept, as of `now`.
    pub fn restored(
        settings: &Settings,
        text: Option<&str>,
        last: Ref,
        grants: &Rpm,
        now: Millis,
    ) -> Self {
        let new = Self::new(settings);
        text.and_then(|text| new.clone().read(settings, text, last, grants, now).ok())
            .unwrap_or(new)
    }

    fn read(
        mut self,
        settings: &Settings,
        text: &str,
        last: Ref,
        grants: &Rpm,
        now: Millis,
    ) -> Result<Self, FieldError> {
        let fields = Fields::of_body(text.as_bytes())?;
        self.incident = Ref(fields.natural("incident")?.unwrap_or(0)).min(last);
        let part = fields.part("concurrency")?;
        let bounds = &settings.concurrency;
        let level = small(&part, "level")?.unwrap_or(bounds.limit);
        let level = level.clamp(bounds.min, bounds.max);
        let ceiling = small(&part, "ceiling")?.filter(|ceiling| *ceiling > level);
        let quiet_until = moment(&part, "quietUntil")?;
        let ramp = small(&part, "ramp")?;
        self.concurrency = Concurrency::restored(level, ceiling, quiet_until, ramp, last);
        self.concurrency_by = by(&part)?;
        let part = fields.part("rate")?;
        self.rate = rate(&part, grants, now)?;
        self.rate_by = by(&part)?;
        Ok(self)
    }
}

fn source(source: Source) -> Json {
    object! {"ref": source.reference.0, "at": source.at.epoch_ms()}
}

fn wait(wait: Wait) -> Json {
    object! {
        "began": wait.began.epoch_ms(),
        "accepted": wait.accepted,
        "busyMs": wait.busy.ms(),
        "failedAt": wait.failed_at.epoch_ms(),
        "intervalMs": wait.interval.map(Span::ms),
        "nextAt": wait.next_at.epoch_ms(),
    }
}

fn rate(fields: &Fields, grants: &Rpm, now: Millis) -> Result<Rate, FieldError> {
    let told = fields.part("told")?;
    let inferred = fields.part("inferred")?;
    let waited = fields.part("wait")?;
    let budget = fields.part("budget")?;
    let mut rate = Rate::default();
    if let Some(limit) = small(&told, "limit")? {
        rate.told = Some(Told {
            limit,
            window: told.natural("windowMs")?.map(Span::from_ms),
            until: now.plus(LONGEST),
        });
    }
    if let Some(per_hour) = inferred.natural("perHour")? {
        rate.inferred = Some(Inferred {
            per_hour,
            quiet_until: moment(&inferred, "quietUntil")?,
        });
    }
    if let Some(accepted) = small(&waited, "accepted")? {
        rate.wait = Some(Wait {
            began: moment(&waited, "began")?,
            accepted,
            busy: Span::from_ms(waited.natural("busyMs")?.unwrap_or(0)),
            failed_at: moment(&waited, "failedAt")?,
            interval: waited.natural("intervalMs")?.map(Span::from_ms),
            next_at: moment(&waited, "nextAt")?.min(now.plus(LONGEST)),
        });
    }
    if let Some(left) = budget.natural("left")? {
        let resets_at = moment(&budget, "resetsAt")?.min(now.plus(LONGEST));
        let at = moment(&budget, "at")?;
        rate.budget = Some(Budget::restored(left, resets_at, at, grants));
    }
    Ok(rate)
}

fn by(fields: &Fields) -> Result<Option<Source>, FieldError> {
    let by = fields.part("by")?;
    let Some(reference) = by.natural("ref")? else {
        return Ok(None);
    };
    Ok(Some(Source {
        reference: Ref(reference),
        at: moment(&by, "at")?,
    }))
}

fn small(fields: &Fields, name: &'static str) -> Result<Option<u32>, FieldError> {
    let value = fields.natural(name)?;
    Ok(value.map(|value| u32::try_from(value).unwrap_or(u32::MAX)))
}

fn moment(fields: &Fields, name: &'static str) -> Result<Millis, FieldError> {
    Ok(Millis::from_epoch(fields.natural(name)?.unwrap_or(0)))
}
