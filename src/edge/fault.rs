//! Panics on purpose, to see what becomes of one. Exists only in builds with
//! the feature `fault-injection`; in others [`strike`] is nothing at all.
//!
//! `POST /fault?at=turn&times=2` on any host has the next two turns panic. One
//! list for the isolate, so Worker and objects must share it, as they do in a
//! local run. Never deploy such a build: the route asks for no credentials.

/// Where a panic may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    /// A lock call in the Worker.
    Worker,
    /// The Worker, after its object gave no plain answer.
    Settle,
    /// An object's turn, before anything was done.
    Turn,
    /// An object's turn, after its rows were written.
    Written,
    /// Between the rows of one transaction.
    Transaction,
    /// The alarm of an object, before its turn.
    Alarm,
    /// A caller who has waited, before it is answered.
    Wait,
    /// A control call in the object.
    Control,
}

#[cfg(not(feature = "fault-injection"))]
pub const fn strike(_: At) {}

#[cfg(feature = "fault-injection")]
pub use on_purpose::{serve, strike};

#[cfg(feature = "fault-injection")]
mod on_purpose {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::At;
    use crate::json::object;
    use crate::wire::answer::HttpAnswer;
    use crate::wire::paging::pairs;

    thread_local! {
        static ARMED: RefCell<BTreeMap<At, u32>> = const { RefCell::new(BTreeMap::new()) };
    }

    /// Panics if that was asked for.
    #[expect(clippy::panic, reason = "it is what this is for")]
    pub fn strike(at: At) {
        let strikes = ARMED.with_borrow_mut(|armed| {
            let left = armed.get_mut(&at);
            left.is_some_and(|left| {
                let strikes = *left > 0;
                *left = left.saturating_sub(1);
                strikes
            })
        });
        if strikes {
            panic!("injected fault: {at:?}");
        }
    }

    /// Takes over what a query asks for; 400 if it can't be read. Also says how
    /// many bytes of memory the wasm has.
    pub fn serve(query: &str) -> HttpAnswer {
        let status = if arm(query) { 200 } else { 400 };
        let memory = (core::arch::wasm32::memory_size(0) as u64).saturating_mul(65_536);
        HttpAnswer::json(status, &object! {"memory": memory})
    }

    fn arm(query: &str) -> bool {
        const ALL: [At; 8] = [
            At::Worker,
            At::Settle,
            At::Turn,
            At::Written,
            At::Transaction,
            At::Alarm,
            At::Wait,
            At::Control,
        ];
        let text = |name| pairs(query).find(|(known, _)| *known == name);
        let at = text("at").and_then(|(_, word)| {
            let is_it = |at: &At| format!("{at:?}").eq_ignore_ascii_case(word);
            ALL.into_iter().find(is_it)
        });
        let times = text("times").and_then(|(_, times)| times.parse().ok());
        let (Some(at), Some(times)) = (at, times) else {
            return false;
        };
        ARMED.with_borrow_mut(|armed| armed.insert(at, times));
        true
    }
}
