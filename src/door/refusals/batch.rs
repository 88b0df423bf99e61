//! What was gathered of one source: entries, and how many were left out.
//!
//! Callers whose key may be alive, callers of dead keys and strangers each have
//! room of their own: none can use up another's. The first have far more of it: a
//! key that lives is worth an entry for each call, and a tightened policy refuses
//! a whole queue at once.

use crate::governor::command::{Outcome, TurnedAway};
use crate::governor::ids::{KeyId, RequestId};
use crate::governor::time::{Millis, Span};

/// Entries of a batch, of callers of dead keys and of strangers each.
pub const MOST_ENTRIES: usize = 16;
/// Entries of a batch, of callers whose key may be alive: more than come to one
/// source in the time. Each has its line in the log, as if it had got further.
pub const MOST_LIVE_ENTRIES: usize = 1024;

/// In a batch, in this order.
#[derive(Debug)]
pub struct Gathered {
    since: Millis,
    live: Class,
    dead: Class,
    strangers: Class,
}

#[derive(Debug, Default)]
struct Class {
    /// Each with the moment of its refusal.
    entries: Vec<(Millis, TurnedAway)>,
    omitted: u32,
    /// Of those that were left out: when the last was refused, and its key.
    last: Millis,
    key: Option<KeyId>,
}

impl Gathered {
    pub fn since_then(now: Millis) -> Self {
        Self {
            since: now,
            live: Class::default(),
            dead: Class::default(),
            strangers: Class::default(),
        }
    }

    pub fn since(&self) -> Millis {
        self.since
    }

    /// How many refusals it stands for.
    pub fn total(&self) -> u32 {
        let classes = [&self.live, &self.dead, &self.strangers];
        let total = |sum: u32, class: &Class| sum.saturating_add(class.total());
        classes.into_iter().fold(0, total)
    }

    /// Begins anew if it began more than so long ago.
    pub fn restart(&mut self, now: Millis, after: Span) -> bool {
        let is_due = now.since(self.since) > after;
        if is_due {
            self.since = now;
        }
        is_due
    }

    pub fn add(&mut self, one: TurnedAway, now: Millis) {
        let is_live = one.key.is_some() && one.is_live;
        let most = if is_live {
            MOST_LIVE_ENTRIES
        } else {
            MOST_ENTRIES
        };
        let class = self.class_of(&one);
        if class.entries.len() < most {
            class.entries.push((now, one));
        } else {
            class.omit(&one, now);
        }
    }

    /// Takes the number of it only.
    pub fn count(&mut self, one: &TurnedAway, now: Millis) {
        self.class_of(one).omit(one, now);
    }

    /// The numbers only.
    pub fn counted(mut self) -> Self {
        for class in [&mut self.live, &mut self.dead, &mut self.strangers] {
            for (at, one) in std::mem::take(&mut class.entries) {
                class.omit(&one, at);
            }
        }
        self
    }

    fn class_of(&mut self, one: &TurnedAway) -> &mut Class {
        match one.key {
            None => &mut self.strangers,
            Some(_) if one.is_live => &mut self.live,
            Some(_) => &mut self.dead,
        }
    }

    /// The entries, and one of each class for those that were left out.
    pub fn into_entries(self, now: Millis, mut id: impl FnMut() -> RequestId) -> Vec<TurnedAway> {
        let mut all = Vec::new();
        for (class, is_live) in [
            (self.live, true),
            (self.dead, false),
            (self.strangers, false),
        ] {
            let omitted = (class.omitted > 0).then(|| TurnedAway {
                request: id(),
                key: class.key,
                ip: None,
                outcome: Outcome::Omitted(class.omitted),
                ago: now.since(class.last),
                is_live,
            });
            let entries = class.entries.into_iter();
            all.extend(entries.map(|(at, one)| TurnedAway {
                ago: now.since(at),
                ..one
            }));
            all.extend(omitted);
        }
        all
    }
}

impl Class {
    fn omit(&mut self, one: &TurnedAway, at: Millis) {
        let stands_for = one.outcome.omitted().unwrap_or(1);
        self.omitted = self.omitted.saturating_add(stands_for);
        self.last = self.last.max(at);
        self.key = one.key;
    }

    fn total(&self) -> u32 {
        let entries = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        entries.saturating_add(self.omitted)
    }
}
