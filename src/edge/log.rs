//! Refusals at the door, gathered per source and isolate, on their way into the
//! source's log.
//!
//! An attack must not become as many object calls: a batch goes out at most
//! twice a second, holds a bounded number of entries, and says how many were
//! left out. Names that no source has create nothing, and soon cost nothing.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use wasm_bindgen::JsValue;
use worker::Delay;

use super::config::Config;
use super::js::Context;
use super::{Fault, forward, js};
use crate::governor::command::{Outcome, TurnedAway};
use crate::governor::ids::RequestId;
use crate::governor::time::{Millis, Span};
use crate::index::Shelf;
use crate::protocol::log::Batch;

/// How long refusals are gathered.
const GATHER: Duration = Duration::from_millis(500);
/// A batch that wasn't sent by then won't be.
const OVERDUE: Span = Span::from_seconds(2);
/// Entries of a batch, for callers with and without a validly signed key each.
const MOST_ENTRIES: usize = 16;
/// Sources with a batch under way that are not known to exist.
const MOST_UNKNOWN: usize = 16;
/// Sources that an isolate knows to exist, or not to.
const MOST_NAMES: usize = 4096;
/// For how long a name counts as no source.
const ABSENT_FOR: Span = Span::from_seconds(2);

#[derive(Default)]
struct Gathered {
    since: Millis,
    /// Callers with a validly signed key, and without.
    known: Class,
    unknown: Class,
}

#[derive(Default)]
struct Class {
    /// Each with the moment of its refusal.
    entries: Vec<(Millis, TurnedAway)>,
    omitted: u32,
}

struct Log {
    gathered: Shelf<Gathered>,
    present: Shelf<()>,
    absent: Shelf<Millis>,
}

thread_local! {
    static LOG: RefCell<Log> = const {
        RefCell::new(Log {
            gathered: Shelf::of(usize::MAX),
            present: Shelf::of(MOST_NAMES),
            absent: Shelf::of(MOST_NAMES),
        })
    };
}

/// Notes that the source is there.
pub fn is_present(source: &str) {
    LOG.with_borrow_mut(|log| {
        if !log.present.contains(source) {
            log.present.put(source, ());
            log.absent.remove(source);
        }
    });
}

/// Notes a refusal; the first of a batch sends it off after a while.
pub fn note(config: &Rc<Config>, context: &Context, source: &str, one: TurnedAway) {
    let is_first = LOG.with_borrow_mut(|log| log.gather(source, one));
    if is_first {
        let (config, source) = (Rc::clone(config), source.to_owned());
        let sending = js::promise(async move {
            Delay::from(GATHER).await;
            send(&config, &source).await;
            Ok(JsValue::UNDEFINED)
        });
        if let Err(error) = context.wait_until(&sending) {
            Fault::because("a batch of refusals may get lost", error);
        }
    }
}

impl Log {
    fn forget(&mut self, source: &str) {
        self.present.remove(source);
        self.absent.put(source, js::now());
    }

    /// True if this is the first of a batch.
    fn gather(&mut self, source: &str, one: TurnedAway) -> bool {
        let now = js::now();
        let absent = self.absent.get(source);
        if absent.is_some_and(|at| now.since(*at) < ABSENT_FOR) {
            return false;
        }
        // A batch whose sender was cut off is taken over.
        let is_first = self
            .gathered
            .get(source)
            .is_none_or(|gathered| now.since(gathered.since) > OVERDUE);
        let strangers = self.gathered.len() >= MOST_UNKNOWN;
        if is_first && strangers && !self.present.contains(source) {
            return false;
        }
        if !self.gathered.contains(source) {
            self.gathered.put(source, Gathered::default());
        }
        let Some(gathered) = self.gathered.get_mut(source) else {
            return false;
        };
        if is_first {
            gathered.since = now;
        }
        let class = if one.key.is_some() {
            &mut gathered.known
        } else {
            &mut gathered.unknown
        };
        if class.entries.len() < MOST_ENTRIES {
            class.entries.push((now, one));
        } else {
            class.omitted = class.omitted.saturating_add(1);
        }
        is_first
    }
}

impl Class {
    /// The entries, and one for those that were left out.
    fn into_entries(self, now: Millis) -> Vec<TurnedAway> {
        let key = self.entries.last().and_then(|(_, last)| last.key);
        let omitted = TurnedAway {
            request: RequestId(js::random()),
            key,
            ip: None,
            outcome: Outcome::Omitted(self.omitted),
            ago: Span::ZERO,
        };
        let entries = self.entries.into_iter().map(|(at, one)| TurnedAway {
            ago: now.since(at),
            ..one
        });
        entries
            .chain((self.omitted > 0).then_some(omitted))
            .collect()
    }
}

async fn send(config: &Config, source: &str) {
    let gathered = LOG.with_borrow_mut(|log| log.gathered.remove(source));
    let Some(Gathered { known, unknown, .. }) = gathered else {
        return;
    };
    let now = js::now();
    let mut entries = known.into_entries(now);
    entries.extend(unknown.into_entries(now));
    // An object that is only looked at leaves a trace, so the directory is asked.
    let is_known = LOG.with_borrow(|log| log.present.contains(source));
    let listed = if is_known {
        Ok(true)
    } else {
        forward::is_listed(config, source).await
    };
    let is_there = match listed {
        Ok(true) => forward::batch(config, source, &Batch(entries).to_url()).await,
        other => other,
    };
    match is_there {
        Ok(true) => is_present(source),
        Ok(false) => LOG.with_borrow_mut(|log| log.forget(source)),
        // Logged where it arose; these entries are lost, the calls were not.
        Err(_) => {}
    }
}
