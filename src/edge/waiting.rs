//! Those who wait in an object: how each is woken, and the one timer that
//! stands while anyone does.
//!
//! A waiter here is a promise that may have no one behind it: the governor
//! decides who is answered, this only carries the answer. Forgetting a waiter
//! wakes it with nothing, and its Worker calls again.

use std::cell::RefCell;

use futures_channel::oneshot::{Receiver, Sender, channel};
use wasm_bindgen::JsCast as _;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::Closure;

use super::js;
use crate::governor::command::Answer;
use crate::governor::ids::RequestId;
use crate::governor::time::Millis;
use crate::index::Table;

#[derive(Default)]
pub struct Waiting {
    waiters: RefCell<Table<Sender<Answer>>>,
    timer: Timer,
}

impl Waiting {
    pub fn add(&self, request: RequestId) -> Receiver<Answer> {
        let (sender, receiver) = channel();
        self.waiters.borrow_mut().insert(request.0, sender);
        receiver
    }

    /// Answers a waiter; nothing happens if it isn't there any more.
    pub fn answer(&self, request: RequestId, answer: Answer) {
        let waiter = self.waiters.borrow_mut().remove(request.0);
        if let Some(waiter) = waiter {
            // It fails if the waiter is gone: its slot ends with its lease.
            let _ = waiter.send(answer);
        }
    }

    /// Wakes a waiter with nothing, if it is there.
    pub fn forget(&self, request: RequestId) {
        self.waiters.borrow_mut().remove(request.0);
    }

    /// Wakes all with nothing: memory was lost.
    pub fn forget_all(&self) {
        // Woken when nothing is borrowed any more.
        drop(self.waiters.take());
        self.timer.stop();
    }

    pub fn timer(&self) -> &Timer {
        &self.timer
    }
}

/// A timer that stands at one moment at a time.
#[derive(Default)]
pub struct Timer {
    armed: RefCell<Option<(Millis, JsValue)>>,
    ring: RefCell<Option<Closure<dyn FnMut()>>>,
}

impl Timer {
    /// What to do when it rings. Must be told once, before it is set.
    pub fn on_ring(&self, ring: Closure<dyn FnMut()>) {
        *self.ring.borrow_mut() = Some(ring);
    }

    pub fn is_set(&self) -> bool {
        self.armed.borrow().is_some()
    }

    /// Has it ring at `at`, if it doesn't ring earlier anyway.
    pub fn set_at(&self, at: Millis, now: Millis) -> Result<(), JsValue> {
        if self
            .armed
            .borrow()
            .as_ref()
            .is_some_and(|(armed, _)| *armed <= at)
        {
            return Ok(());
        }
        self.stop();
        let ring = self.ring.borrow();
        let Some(ring) = ring.as_ref() else {
            return Ok(());
        };
        // At most a queue time-out away, so a plain 32-bit delay.
        let delay = f64::from(u32::try_from(at.since(now).ms().max(1)).unwrap_or(u32::MAX));
        let handle = js::set_timeout(ring.as_ref().unchecked_ref(), delay)?;
        *self.armed.borrow_mut() = Some((at, handle));
        Ok(())
    }

    /// It has rung: it stands nowhere now.
    pub fn has_rung(&self) {
        *self.armed.borrow_mut() = None;
    }

    pub fn stop(&self) {
        if let Some((_, handle)) = self.armed.borrow_mut().take() {
            js::clear_timeout(&handle);
        }
    }
}
