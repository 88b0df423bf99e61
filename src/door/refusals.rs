//! Refusals at the door, gathered by source on their way into the source's log.
//!
//! An attack must not become as many calls: a batch goes out some time after its
//! first refusal, holds a bounded number of entries, and says how many were left
//! out. Names that no source is known to have are asked about, so many at a time;
//! the others wait, and of their refusals only the number is kept, so that noise
//! at made-up names hides nothing of a source that is there.

mod batch;

use crate::governor::command::TurnedAway;
use crate::governor::ids::RequestId;
use crate::governor::time::{Millis, Span};
use crate::index::Shelf;
use batch::Gathered;

/// A batch that wasn't sent by then won't be.
const OVERDUE: Span = Span::from_seconds(2);
/// Names that are asked about at once.
const MOST_ASKED: usize = 16;
/// Names that wait to be asked about.
const MOST_WAITING: usize = 4096;
/// Sources that an isolate knows to exist, or not to.
const MOST_NAMES: usize = 4096;
/// For how long a name counts as no source.
const ABSENT_FOR: Span = Span::from_seconds(2);

/// All refusals of an isolate.
#[derive(Debug)]
pub struct Refusals {
    present: Shelf<()>,
    absent: Shelf<Millis>,
    /// Of which a batch is about to be sent.
    sending: Shelf<Gathered>,
    /// Names not known to exist that are being asked about, since when.
    asked: Shelf<Millis>,
    /// Names not known to exist that wait for their turn.
    waiting: Shelf<Gathered>,
    /// Whose turn is next: whoever has most refusals, or has waited longest.
    longest_is_next: bool,
}

impl Default for Refusals {
    fn default() -> Self {
        Self::new()
    }
}

impl Refusals {
    pub const fn new() -> Self {
        Self {
            present: Shelf::of(MOST_NAMES),
            absent: Shelf::of(MOST_NAMES),
            sending: Shelf::of(MOST_NAMES),
            asked: Shelf::of(MOST_ASKED),
            waiting: Shelf::of(MOST_WAITING),
            longest_is_next: false,
        }
    }

    /// The source is there.
    pub fn is_present(&mut self, source: &str) {
        if self.present.recall(source).is_none() {
            self.present.put(source, ());
            self.absent.remove(source);
        }
    }

    /// The source was ended, or there never was one.
    pub fn is_absent(&mut self, source: &str, now: Millis) {
        self.present.remove(source);
        self.absent.put(source, now);
        self.sending.remove(source);
        self.waiting.remove(source);
    }

    /// Whether the source is known to be there.
    pub fn knows(&self, source: &str) -> bool {
        self.present.contains(source)
    }

    /// Takes a refusal. True: the caller has the source's batch sent after a while,
    /// and then asks what is [`Self::next`].
    pub fn gather(&mut self, source: &str, one: TurnedAway, now: Millis) -> bool {
        let absent = self.absent.get(source);
        if absent.is_some_and(|at| now.since(*at) < ABSENT_FOR) {
            return false;
        }
        if let Some(gathered) = self.sending.recall(source) {
            gathered.add(one, now);
            // A batch whose sender was cut off is taken over.
            return gathered.restart(now, OVERDUE);
        }
        let is_asked = self.asked.contains(source);
        if !self.knows(source) && !is_asked && !self.has_room(now) {
            self.wait(source, |gathered| gathered.count(&one, now), now);
            return false;
        }
        self.begin(source, now);
        if let Some(gathered) = self.sending.recall(source) {
            gathered.add(one, now);
        }
        // Whoever asks about it sends this too.
        !is_asked
    }

    /// The batch of a source, to be sent now; `id` names what was left out.
    pub fn take(
        &mut self,
        source: &str,
        now: Millis,
        id: impl FnMut() -> RequestId,
    ) -> Option<Vec<TurnedAway>> {
        let gathered = self.sending.remove(source)?;
        Some(gathered.into_entries(now, id))
    }

    /// Nothing of a batch was delivered, since nobody could tell whether there is
    /// such a source: its number is kept.
    pub fn put_back(&mut self, source: &str, batch: &[TurnedAway], now: Millis) {
        self.asked.remove(source);
        let count_all = |gathered: &mut Gathered| {
            for one in batch {
                gathered.count(one, now);
            }
        };
        self.wait(source, count_all, now);
    }

    /// What whoever has sent the batch of `source` sends next, after a while.
    pub fn next(&mut self, source: &str, now: Millis) -> Option<String> {
        let was_asked = self.asked.remove(source).is_some();
        if was_asked && self.sending.contains(source) {
            // Gathered while it was asked about.
            return Some(source.to_owned());
        }
        if !self.has_room(now) {
            return None;
        }
        let by_count = |(_, one): &(&str, &Gathered)| one.total();
        let by_age = |(_, one): &(&str, &Gathered)| one.since();
        let next = if self.longest_is_next {
            self.waiting.iter().min_by_key(by_age)
        } else {
            self.waiting.iter().max_by_key(by_count)
        };
        let next = next.map(|(name, _)| name.to_owned())?;
        self.longest_is_next = !self.longest_is_next;
        self.begin(&next, now);
        Some(next)
    }

    /// Whether one more name may be asked about.
    fn has_room(&mut self, now: Millis) -> bool {
        if self.asked.len() < MOST_ASKED {
            return true;
        }
        // One whose sender was cut off makes room, and waits again.
        let is_overdue = |(_, since): &(&str, &Millis)| now.since(**since) > OVERDUE;
        let cut_off = self.asked.iter().find(is_overdue);
        let Some(name) = cut_off.map(|(name, _)| name.to_owned()) else {
            return false;
        };
        self.asked.remove(&name);
        if let Some(cut_off) = self.sending.remove(&name) {
            self.waiting.put(&name, cut_off.counted());
        }
        true
    }

    fn wait(&mut self, source: &str, count: impl FnOnce(&mut Gathered), now: Millis) {
        if !self.waiting.contains(source) {
            self.waiting.put(source, Gathered::since_then(now));
        }
        if let Some(gathered) = self.waiting.recall(source) {
            count(gathered);
        }
    }

    /// A batch begins with what was counted while it waited.
    fn begin(&mut self, source: &str, now: Millis) {
        if !self.knows(source) {
            self.asked.put(source, now);
        }
        let waited = self.waiting.remove(source);
        let mut gathered = waited.unwrap_or_else(|| Gathered::since_then(now));
        gathered.restart(now, Span::ZERO);
        self.sending.put(source, gathered);
    }
}

#[cfg(test)]
mod tests;
