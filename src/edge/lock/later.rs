//! Calls that go on later: when their body was read, or their object gave no
//! plain answer.
//!
//! What is waited for is waited for in JavaScript (`worker/`), and nothing of
//! Rust stands meanwhile: all that a call is made of again is in what it left
//! there. Nothing here checks a caller; that is for the door, once more.

use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast as _, JsValue};
use web_sys::Request;

use super::{Call, End};
use crate::edge::config::Config;
use crate::edge::door::{self, BODY_PATIENCE_MS, Shown};
use crate::edge::fault::{self, At};
use crate::edge::js::{self, Context, PendingCall};
use crate::edge::{Fault, Reply, answered, forward, policy};
use crate::protocol::lock::{Caller, LockCall, Verb};
use crate::protocol::status::{DEAD_KEY, STALE_POLICY};
use crate::wire::MOST_BODY_BYTES;
use crate::wire::route::{self, Route, Target};

/// How often a call is decided anew because the policy had changed.
pub const MOST_DECISIONS: u32 = 5;
/// A body that took this long may have outlived what was shown at the door.
const SLOW_BODY_MS: f64 = 1000.0;

type GoOn = Closure<dyn Fn(Request, Context, String, JsValue, f64) -> Result<JsValue, JsValue>>;
type Settle = Closure<dyn Fn(PendingCall, u16, String) -> Result<JsValue, JsValue>>;

thread_local! {
    // One of each for the isolate: a closure for each call would leak with it.
    static GO_ON: GoOn = Closure::own_assert_unwind_safe(|request, context: Context, said: String, body, took| {
        let caller = Caller::from_query(&said);
        let id = caller.as_ref().map_or_else(js::request_id, |caller| caller.request);
        answered(id, &context.clone(), go_on(request, context, caller, body, took))
    });
    static SETTLE: Settle = Closure::own_assert_unwind_safe(|pending: PendingCall, status, said| {
        let url = format!("{}&wait={}&waited=0", pending.url(), pending.wait());
        let call = LockCall::from_url(&url);
        let id = call.as_ref().map_or_else(js::request_id, |call| call.caller.request);
        let context: Context = pending.context().unchecked_into();
        answered(id, &context.clone(), settle(pending, context, call, status, said))
    });
}

/// Has the body of a call read; `caller` is who calls, as far as the door could
/// tell.
pub fn have_body_read(call: &Call, caller: &Caller) -> Reply {
    GO_ON.with(|go_on| {
        let go_on = go_on.as_ref().unchecked_ref();
        let (request, context) = (call.request, call.context);
        let caller = caller.to_query();
        let read = js::read_then(
            request,
            MOST_BODY_BYTES,
            BODY_PATIENCE_MS,
            context,
            &caller,
            go_on,
        );
        Reply::Promised(read)
    })
}

/// Sends a call off; `pending` is the one that goes on with it, if there is one.
pub fn send(call: &Call, lock_call: &LockCall, pending: Option<&PendingCall>) -> Reply {
    SETTLE.with(|settle| {
        let settle = settle.as_ref().unchecked_ref();
        let (request, context) = (call.request, call.context);
        Reply::Promised(match pending {
            Some(pending) => js::go_on(pending, &lock_call.base_url(), settle),
            None => forward::lock(
                call.config,
                call.source,
                lock_call,
                request,
                context,
                settle,
            ),
        })
    })
}

/// Goes on with a call whose body was read, in `took` ms.
async fn go_on(
    request: Request,
    context: Context,
    caller: Option<Caller>,
    body: JsValue,
    took: f64,
) -> Reply {
    let url = request.url();
    let (Some(config), Some(caller)) = (Config::known(), caller) else {
        return Fault::because("a call that can't be gone on with", url).into();
    };
    let route = route::route(&config.hosts, &Target::of_url(&url), "POST");
    let Ok(Route::Lock { source, verb }) = route else {
        return Fault::because("a call that has another route now", url).into();
    };
    let call = Call {
        config: &config,
        context: &context,
        request: &request,
        id: caller.request,
        source,
        verb,
    };
    let end = match call.read(door::body_of(body), caller.key) {
        Ok(verb) if took < SLOW_BODY_MS => Ok(send(&call, &LockCall { caller, verb }, None)),
        read => {
            let shown = js::shown(&request);
            call.pass(&Shown::of(&shown), Some(read), None).await
        }
    };
    call.finish(end)
}

/// Goes on with a call whose object gave no plain answer: `status` is one of
/// `protocol::status`, or 0 where it gave none at all.
async fn settle(
    pending: PendingCall,
    context: Context,
    lock_call: Option<LockCall>,
    status: u16,
    said: String,
) -> Reply {
    fault::strike(At::Settle);
    let (Some(config), Some(LockCall { caller, verb })) = (Config::known(), lock_call) else {
        return Fault::because("a call that can't be settled", said).into();
    };
    let (source, request) = (pending.source(), pending.request());
    let call = Call {
        config: &config,
        context: &context,
        request: &request,
        id: caller.request,
        source: &source,
        verb: match verb {
            Verb::Acquire { .. } => route::Verb::Acquire,
            _ => route::Verb::Renew(""),
        },
    };
    let end = match status {
        DEAD_KEY => {
            let why = forward::remember_dead(caller.key, &said);
            Err(End::Dead(caller.key, why))
        }
        STALE_POLICY if pending.decisions() < MOST_DECISIONS => {
            match policy::learn(&source, &said, caller.key) {
                Ok(()) => {
                    let shown = js::shown(&request);
                    call.pass(&Shown::of(&shown), Some(Ok(verb)), Some(&pending))
                        .await
                }
                Err(fault) => Err(fault.into()),
            }
        }
        _ => Err(Fault::because("a lock call failed", said).into()),
    };
    call.finish(end)
}
