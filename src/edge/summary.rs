//! What the directory is told of a source: a line of state, and all that was
//! counted since the source was made.
//!
//! It is told by a timer, not by a call: soon after something new happened in a
//! quiet time, and at most every 15 s. The timer keeps the object in memory until
//! it rings, so the last word on a burst is told too. What is told is stored
//! first, in one row, with the last attempt that is in it, and counting goes on
//! from there when the object is loaded: so counts never go back, a word that comes
//! twice does no harm, and one that gets lost is in the next. What an object had not
//! told when it was cut off (a crash, a deployment) is counted from its log
//! (`store/load.rs`), but for what the log doesn't say: releases, reports and
//! refreshes, and attempts that were overwritten.

use wasm_bindgen::JsValue;

use super::store::Write;
use super::turn::{Object, Source};
use super::{Fault, forward, js};
use crate::governor::command::Command;
use crate::governor::time::{Millis, Span};
use crate::protocol::directory::{DirectoryCall, Summary};

/// From the first news to the word on them, so that a short burst is one word.
const DELAY: Span = Span::from_seconds(2);
/// The least time between two words.
const INTERVAL: Span = Span::from_seconds(15);

impl Source {
    fn summary(&self, now: Millis) -> Summary {
        let gauge = self.governor.gauge();
        Summary {
            at: now,
            limit: gauge.limit,
            in_use: gauge.in_use,
            depth: gauge.depth,
            tally: self.governor.tally().clone(),
        }
    }

    /// What the directory was not told.
    fn news(&self, now: Millis) -> Option<Summary> {
        let summary = self.summary(now);
        let is_known = self
            .told
            .as_ref()
            .is_some_and(|told| told.says_as(&summary));
        (!is_known).then_some(summary)
    }
}

impl Object {
    /// Sets the timer if there are news. Most calls find it set already.
    pub fn watch_for_news(&self, source: &Source, now: Millis) {
        if self.news.is_set() || self.directory.is_none() || source.news(now).is_none() {
            return;
        }
        let last = source.told.as_ref();
        let last = last.map_or(Millis::EPOCH, |told| told.at);
        // A clock that stepped back must not put it off.
        let due = last
            .plus(INTERVAL)
            .clamp(now.plus(DELAY), now.plus(INTERVAL));
        if let Err(error) = self.news.set_at(due, now) {
            // The next call tries again; the lock path goes on.
            Fault::because("no timer", error);
        }
    }

    /// The timer has rung.
    pub fn tell_news(&self) {
        self.news.has_rung();
        let now = js::now();
        let told = self.turn(now, |source| {
            let Some(source) = source else {
                return Ok(());
            };
            // Told is what is, not what was at the last call.
            self.apply(source, now, Command::Tick, |_| Vec::new())?;
            if let Some(summary) = source.news(now) {
                self.store.commit(&[Write::Told(&summary)])?;
                self.push(source.header.name.clone(), Box::new(summary.clone()));
                source.told = Some(summary);
            }
            Ok(())
        });
        if told.is_ok() {
            // Set by that turn, for what has just been told.
            self.news.stop();
        }
    }

    /// Leaves the object when the row is durable, as all that leaves it does.
    fn push(&self, source: String, summary: Box<Summary>) {
        let Some(directory) = self.directory.clone() else {
            return;
        };
        let call = DirectoryCall::Push { source, summary };
        let pushing = js::promise(async move {
            // A failure was logged, and the next word will say this too.
            let _ = forward::directory(&directory, &call).await;
            Ok(JsValue::UNDEFINED)
        });
        if let Err(error) = self.context.wait_until(&pushing) {
            Fault::because("a summary may get lost", error);
        }
    }
}
