//! The Durable Object of one source: lock calls, control calls, the alarm.
//!
//! The class is written out rather than derived: a lock call that needs no
//! waiting is answered in its turn, without a future of Rust, together with
//! those that came with it; and the answer is not copied on its way.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::{Rc, Weak};

use futures_channel::oneshot::Receiver;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, Request};
use worker::Env;

use super::fault::{self, At};
use super::js::{self, Namespace, ObjectContext};
use super::store::Write;
use super::turn::{Object, Source};
use super::{Fault, operate};
use crate::door::admit::{Standing, admit, mark_live};
use crate::door::dead::Death;
use crate::door::policies;
use crate::governor::command::{Acquire, Answer, Command, Outcome, Reply, TurnedAway};
use crate::governor::ids::{AttemptId, RequestId, SlotSecret};
use crate::governor::time::{Millis, Span};
use crate::json::object;
use crate::protocol::control::ControlCall;
use crate::protocol::lock::{Caller, LockCall, Refused, Verb};
use crate::protocol::log::Batch;
use crate::protocol::request_of;
use crate::protocol::status::{ABSENT, AGAIN, DEAD_KEY, STALE_POLICY};
use crate::wire::answer::{self, HttpAnswer};
use crate::wire::line;
use crate::wire::problem::Problem;

/// When the alarm is tried again after it failed.
const ALARM_RETRY: Span = Span::from_seconds(1);

#[wasm_bindgen(js_name = Source)]
pub struct SourceObject {
    object: Rc<Object>,
}

/// What the URL of each lock call begins with: `worker/objects.js` asks.
#[wasm_bindgen(js_name = lockBase)]
pub fn lock_base() -> String {
    LockCall::BASE.to_owned()
}

/// A turn that a panic cuts off leaves no memory behind (`turn.rs`).
impl UnwindSafe for SourceObject {}
impl RefUnwindSafe for SourceObject {}

#[wasm_bindgen(js_class = Source)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "what JavaScript hands over is owned"
)]
impl SourceObject {
    #[wasm_bindgen(constructor)]
    pub fn new(context: ObjectContext, env: Env) -> Self {
        let directory = js::property(env.as_ref(), "DIRECTORY");
        let directory = directory
            .is_object()
            .then(|| directory.unchecked_into::<Namespace>());
        let setting = js::property(env.as_ref(), "LOG_SHARE").as_string();
        let line_share = line::share(setting.as_deref());
        let object = Rc::new(Object::new(context, directory, line_share));
        let weak: Weak<Object> = Rc::downgrade(&object);
        let ring = Closure::own_assert_unwind_safe(move || {
            if let Some(object) = weak.upgrade() {
                object.ring();
            }
        });
        object.waiting.timer().on_ring(ring);
        let weak: Weak<Object> = Rc::downgrade(&object);
        let tell = Closure::own_assert_unwind_safe(move || {
            if let Some(object) = weak.upgrade() {
                object.tell_news();
            }
        });
        object.news.on_ring(tell);
        Self { object }
    }

    /// Answers a lock call: at once, or with a promise where it waits.
    pub fn lock(&self, url: &str, request: Request) -> Result<JsValue, JsValue> {
        serve_lock(&self.object, url, &request)
    }

    /// Answers any other call: a response, or a promise of one.
    pub fn fetch(&self, request: Request) -> Result<JsValue, JsValue> {
        let url = request.url();
        if let Some(call) = ControlCall::from_url(&url) {
            let object = Rc::clone(&self.object);
            return Ok(js::later_in_object(serve_control(object, request, call)));
        }
        if let Some(batch) = Batch::from_url(&url) {
            return turned_away(&self.object, batch);
        }
        unknown(&url)
    }

    pub fn alarm(&self) {
        let rung = catch_unwind(AssertUnwindSafe(|| self.object.alarm()));
        if !matches!(rung, Ok(Ok(()))) {
            // Retries of the platform are few; ours are not. If even this fails,
            // a lease still ends with the next call.
            let _ = self.object.store.arm(js::now().plus(ALARM_RETRY));
        }
    }
}

/// What a call of a form comes to that isn't known here.
fn unknown(url: &str) -> Result<JsValue, JsValue> {
    let id = request_of(url).unwrap_or_else(js::request_id);
    js::respond(&Problem::not_found().into_answer(), id).map(JsValue::from)
}

fn serve_lock(object: &Rc<Object>, url: &str, request: &Request) -> Result<JsValue, JsValue> {
    let Some(call) = LockCall::from_url(url) else {
        return unknown(url);
    };
    let id = call.caller.request;
    match lock(object, call) {
        Ok(Come::Answer(answer)) => js::respond(&answer, id).map(JsValue::from),
        Ok(Come::DeadKey(why)) => js::signal(DEAD_KEY, Some(why.word())).map(JsValue::from),
        Ok(Come::StalePolicy(said)) => js::signal(STALE_POLICY, Some(&said)).map(JsValue::from),
        Ok(Come::Waits(attempt, receiver)) => {
            let waits = wait(Rc::clone(object), request.signal(), attempt, id, receiver);
            Ok(js::promise(waits).into())
        }
        Err(Fault) => js::signal(AGAIN, None).map(JsValue::from),
    }
}

/// What a lock call comes to in its turn.
enum Come {
    Answer(HttpAnswer),
    DeadKey(Death),
    /// What stands.
    StalePolicy(String),
    Waits(AttemptId, Receiver<Answer>),
}

fn lock(object: &Object, call: LockCall) -> Result<Come, Fault> {
    let now = js::now();
    object.turn(now, |source| {
        let Some(source) = source else {
            return Ok(Come::DeadKey(Death::Unknown));
        };
        let policy = &source.governor.settings().access;
        let version = source.header.version;
        match admit(&source.families, version, policy, &call.caller) {
            Standing::Dead(why) => Ok(Come::DeadKey(why)),
            Standing::Stale => Ok(Come::StalePolicy(policies::said(version, policy))),
            Standing::WrongCarrier => {
                if let Some(refused) = call.verb.refused(Outcome::Unauthorized) {
                    log(object, source, now, &call.caller, refused)?;
                }
                Ok(Come::Answer(Problem::bad_access_key().into_answer()))
            }
            Standing::Admitted => {
                see(object, source, &call.caller)?;
                serve_verb(object, source, now, &call.caller, call.verb)
            }
        }
    })
}

/// A caller was let in: where that is the first of a family's newest key, the
/// refresh token before it has had its answer. A row, once for each refresh; it
/// is on disk before this call is answered, as all that its turn writes.
fn see(object: &Object, source: &mut Source, caller: &Caller) -> Result<(), Fault> {
    let key = caller.key;
    if !source.families.see(key, caller.expires) {
        return Ok(());
    }
    let family = source.families.find(key);
    let write = family.map(|family| Write::Family { key, family });
    object.store.commit(write.as_slice())
}

/// Takes an acquire that is refused into the log.
fn log(
    object: &Object,
    source: &mut Source,
    now: Millis,
    caller: &Caller,
    refused: Refused,
) -> Result<(), Fault> {
    let one = TurnedAway {
        request: caller.request,
        key: Some(caller.key),
        ip: refused.ip,
        outcome: refused.outcome,
        ago: Span::ZERO,
        is_live: true,
    };
    let command = Command::TurnedAway(vec![one]);
    object
        .apply(source, now, command, |_| Vec::new())
        .map(|_| ())
}

fn serve_verb(
    object: &Object,
    source: &mut Source,
    now: Millis,
    caller: &Caller,
    verb: Verb,
) -> Result<Come, Fault> {
    let id = caller.request;
    let (attempt, command) = match verb {
        Verb::Check { refused } => {
            if let Some(refused) = refused {
                log(object, source, now, caller, refused)?;
            }
            return Ok(Come::Answer(HttpAnswer::json(200, &object! {})));
        }
        // Nothing can have such an id.
        Verb::Renew { slot: None } => return Ok(Come::Answer(answer::renew(None))),
        Verb::Release { slot: None, .. } => return Ok(Come::Answer(answer::release(false))),
        Verb::Renew { slot: Some(slot) } => (id.into(), Command::Renew { slot }),
        Verb::Release {
            slot: Some(slot),
            report,
        } => (id.into(), Command::Release { slot, report }),
        Verb::Acquire {
            attempt,
            ip,
            wait,
            waited,
        } => {
            let acquire = Acquire {
                request: id,
                attempt,
                key: caller.key,
                expires: caller.expires,
                carrier: caller.carrier,
                ip,
                wait,
                waited,
                secret: SlotSecret(js::random()),
            };
            (attempt, Command::Acquire(acquire))
        }
    };
    match object.apply(source, now, command, |_| Vec::new())? {
        Reply::Acquire(reply) => Ok(Come::Answer(answer::acquire(&reply, now, js::roll()))),
        Reply::Renew(renewed) => Ok(Come::Answer(answer::renew(renewed))),
        Reply::Release(released) => Ok(Come::Answer(answer::release(released))),
        Reply::Queued => Ok(Come::Waits(attempt, object.waiting.add(id))),
        Reply::Done => Err(Fault::because("no reply to a lock call", id)),
    }
}

/// Waits for the answer to a queued acquire, and takes the caller out of the
/// queue when it goes away.
async fn wait(
    object: Rc<Object>,
    signal_of_caller: AbortSignal,
    attempt: AttemptId,
    request: RequestId,
    receiver: Receiver<Answer>,
) -> Result<JsValue, JsValue> {
    let leaver = Rc::clone(&object);
    let leave = Closure::<dyn FnMut()>::own_assert_unwind_safe(move || {
        leave(&leaver, attempt, request);
    });
    let listener: &js_sys::Function = leave.as_ref().unchecked_ref();
    signal_of_caller.add_event_listener_with_callback("abort", listener)?;
    if signal_of_caller.aborted() {
        self::leave(&object, attempt, request);
    }
    let answer = receiver.await;
    fault::strike(At::Wait);
    signal_of_caller.remove_event_listener_with_callback("abort", listener)?;
    match answer {
        Ok(answer) => {
            let http = answer::acquire(&answer, js::now(), js::roll());
            js::respond(&http, request).map(JsValue::from)
        }
        // Memory was lost, or nobody is there to read this.
        Err(_) => js::signal(AGAIN, None).map(JsValue::from),
    }
}

fn leave(object: &Object, attempt: AttemptId, request: RequestId) {
    object.waiting.forget(request);
    let now = js::now();
    // A failure was logged; nobody is left to tell.
    let _ = object.turn(now, |source| match source {
        None => Ok(()),
        Some(source) => {
            let command = Command::Leave { attempt, request };
            object
                .apply(source, now, command, |_| Vec::new())
                .map(|_| ())
        }
    });
}

async fn serve_control(
    object: Rc<Object>,
    request: Request,
    call: ControlCall,
) -> Result<JsValue, JsValue> {
    let id = call.request;
    // Awaited first: the turn that follows must not be interrupted.
    let body = JsFuture::from(request.text()?).await?;
    let body = body.as_string().unwrap_or_default();
    fault::strike(At::Control);
    match operate::serve(&object, call, &body).await {
        Ok(answer) => js::respond(&answer, id).map(JsValue::from),
        Err(Fault) => js::signal(AGAIN, None).map(JsValue::from),
    }
}

/// Takes refusals at the door into the log.
fn turned_away(object: &Object, batch: Batch) -> Result<JsValue, JsValue> {
    let now = js::now();
    let taken = object.turn(now, |source| match source {
        None => Ok(ABSENT),
        Some(source) => {
            let mut entries = batch.since(source.header.created_at, now);
            if entries.is_empty() {
                return Ok(204);
            }
            mark_live(&mut entries, &source.families, now);
            object
                .apply(source, now, Command::TurnedAway(entries), |_| Vec::new())
                .map(|_| 204)
        }
    });
    js::signal(taken.unwrap_or(AGAIN), None).map(JsValue::from)
}
