//! Refusals at the door, on their way into a source's log: what sends them. What
//! is sent, and when, is decided in `door/refusals.rs`.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use worker::Delay;

use super::config::Config;
use super::js::Context;
use super::{Fault, forward, js};
use crate::door::refusals::Refusals;
use crate::governor::command::TurnedAway;
use crate::governor::ids::RequestId;
use crate::protocol::log::Batch;

/// How long refusals are gathered.
const GATHER: Duration = Duration::from_millis(500);
/// Batches that are sent one after the other on behalf of one request: the
/// runtime sees it through for half a minute.
const MOST_ROUNDS: u32 = 40;

thread_local! {
    static REFUSALS: RefCell<Refusals> = const { RefCell::new(Refusals::new()) };
}

/// Notes that the source is there.
pub fn is_present(source: &str) {
    REFUSALS.with_borrow_mut(|refusals| refusals.is_present(source));
}

/// Notes a refusal; the first of a batch has it sent after a while, and what
/// waits after it.
pub fn note(config: &Rc<Config>, context: &Context, source: &str, one: TurnedAway) {
    let now = js::now();
    let is_first = REFUSALS.with_borrow_mut(|refusals| refusals.gather(source, one, now));
    if is_first {
        let (config, source) = (Rc::clone(config), source.to_owned());
        js::see_through(context, "a batch of refusals may get lost", async move {
            let mut next = Some(source);
            for _ in 0..MOST_ROUNDS {
                let Some(source) = next else {
                    break;
                };
                Delay::from(GATHER).await;
                next = send(&config, &source).await;
            }
        });
    }
}

/// Sends the batch of a source; returns whose is to be sent next.
async fn send(config: &Config, source: &str) -> Option<String> {
    let now = js::now();
    let (batch, is_known) = REFUSALS.with_borrow_mut(|refusals| {
        let batch = refusals.take(source, now, || RequestId(js::random()));
        (batch, refusals.knows(source))
    });
    // `None`: another sender took it over.
    let batch = Batch(batch?);
    // An object that is only looked at leaves a trace, so the directory is asked.
    let listed = if is_known {
        Ok(true)
    } else {
        forward::is_listed(config, source).await
    };
    let is_there = match listed {
        Ok(true) => deliver(config, source, batch).await,
        Ok(false) => Ok(false),
        Err(Fault) => {
            // The next refusal tries again.
            REFUSALS.with_borrow_mut(|refusals| refusals.put_back(source, &batch.0, js::now()));
            return None;
        }
    };
    let now = js::now();
    REFUSALS.with_borrow_mut(|refusals| {
        match is_there {
            Ok(true) => refusals.is_present(source),
            Ok(false) => refusals.is_absent(source, now),
            // Logged where it arose. It may have been delivered, and is not worth
            // being counted twice: these entries are lost, the calls were not.
            Err(Fault) => {}
        }
        refusals.next(source, now)
    })
}

/// Hands a batch over; false if there is no such source. What can't be delivered
/// is not worth a second try, nor is what would come after it.
async fn deliver(config: &Config, source: &str, batch: Batch) -> Result<bool, Fault> {
    for call in batch.into_calls() {
        if !forward::batch(config, source, &call.to_url()).await? {
            return Ok(false);
        }
    }
    Ok(true)
}
