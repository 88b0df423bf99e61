//! The Worker and its objects: where requests meet the platform.
//!
//! Everything here exists for wasm32 only and is thin: what can be decided
//! without the platform is decided in the pure rooms. No borrow of an object's
//! memory ever crosses an await, and no error detail ever reaches a caller: a
//! [`Fault`] is logged where it arises and becomes a 503. So does a panic, in
//! builds that unwind.

mod config;
mod control;
mod directory;
mod door;
mod fault;
mod forward;
mod js;
mod jwks;
mod lock;
mod log;
mod object;
mod operate;
mod page;
mod policy;
mod refused;
mod sql;
mod store;
mod summary;
mod turn;
mod waiting;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::{Request, Response};
use worker::{Env, event};

use crate::governor::ids::RequestId;
use crate::wire::answer::HttpAnswer;
use crate::wire::problem::Problem;
use crate::wire::route::{Route, Target, is_host, route};
use config::Config;
use door::Shown;
use js::Context;

/// Something that is not the caller's fault. Carries nothing: the detail was
/// logged where it arose.
#[derive(Clone, Copy, Debug)]
struct Fault;

impl Fault {
    /// Logs what went wrong, once.
    fn because(what: &str, detail: impl std::fmt::Debug) -> Self {
        js::log_error(&format!("{what}: {detail:?}"));
        Self
    }
}

/// What a handler comes to: an answer of ours, or an object's, passed on.
enum Reply {
    Ours(HttpAnswer),
    /// Ours, held back for so many milliseconds.
    Late(HttpAnswer, u32),
    Passed(Response),
    /// An object's, once it comes.
    Promised(Promise),
}

impl Reply {
    /// Says in the log which call got a 503; what went wrong stands before it.
    fn noted(self, source: &str, id: RequestId) -> Self {
        if matches!(&self, Self::Ours(answer) if answer.status == 503) {
            js::log_error(&format!("503: source {source}, request {id}"));
        }
        self
    }

    /// What is handed to the runtime: a response, or a promise of one, in which
    /// nothing of Rust stands.
    fn into_js(self, id: RequestId) -> Result<JsValue, JsValue> {
        match self {
            Self::Passed(response) => Ok(response.into()),
            Self::Promised(promise) => Ok(promise.into()),
            Self::Ours(answer) => js::respond(&answer, id).map(JsValue::from),
            Self::Late(answer, ms) => {
                let response = js::respond(&answer, id)?;
                Ok(js::later(&response, ms.into()).into())
            }
        }
    }
}

impl From<Fault> for Problem {
    fn from(Fault: Fault) -> Self {
        // 1 to 3 s: enough for an object to start anew, spread over callers.
        Self::unavailable(js::roll().rem_euclid(3).saturating_add(1))
    }
}

impl From<Problem> for Reply {
    fn from(problem: Problem) -> Self {
        Self::Ours(problem.into_answer())
    }
}

impl From<Fault> for Reply {
    fn from(fault: Fault) -> Self {
        Problem::from(fault).into()
    }
}

/// A panic is a bug: it says where it was. The hook of the `worker` crate stays
/// in place, since it has the instance replaced where a build can't unwind.
#[event(start)]
fn start() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        console_error_panic_hook::hook(info);
        previous(info);
    }));
}

/// The entry: exported by hand rather than by `#[event(fetch)]`, so that what is
/// returned can be a promise in which nothing of Rust stands.
#[wasm_bindgen]
pub fn fetch(request: Request, env: Env, context: Context) -> Result<JsValue, JsValue> {
    let id = js::request_id();
    answered(id, &context.clone(), async move {
        match Config::of(&env) {
            Ok(config) => serve(&config, &context, &request, id).await,
            Err(fault) => fault.into(),
        }
    })
}

/// The answer that `work` comes to, or a promise of it: 503 if it panics, in
/// builds that unwind.
fn answered(
    id: RequestId,
    context: &Context,
    work: impl Future<Output = Reply> + 'static,
) -> Result<JsValue, JsValue> {
    js::now_or_later(context, async move {
        let reply = unwound(work).await;
        // The hook has logged what panicked, and where.
        reply.unwrap_or_else(|| Fault.into()).into_js(id)
    })
}

/// What `work` comes to; `None`: it panicked.
async fn unwound<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| {
        // Whatever it had in hand is dropped, and nothing else of it is seen.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
    })
    .await
}

async fn serve(config: &Rc<Config>, context: &Context, request: &Request, id: RequestId) -> Reply {
    let shown = js::shown(request);
    let shown = Shown::of(&shown);
    if !shown.host.is_none_or(is_host) {
        return Problem::bad_host().into();
    }
    let target = Target::of_url(shown.url);
    #[cfg(feature = "fault-injection")]
    if target.path == "/fault" {
        return Reply::Ours(fault::serve(target.query));
    }
    let route = match route(&config.hosts, &target, shown.method) {
        Ok(route) => route,
        Err(problem) => return problem.into(),
    };
    let too_much = shown.declares_too_much();
    match route {
        Route::Lock { source, verb } => {
            let call = lock::Call {
                config,
                context,
                request,
                id,
                source,
                verb,
            };
            if too_much {
                return call.refuse_unread();
            }
            lock::serve(call, &shown).await
        }
        _ if too_much => Problem::payload_too_large().into(),
        Route::Health => Reply::Ours(HttpAnswer {
            status: 200,
            headers: Vec::new(),
            body: r#"{"ok":true}"#.into(),
        }),
        Route::OpenApi => Reply::Ours(HttpAnswer {
            status: 200,
            headers: Vec::new(),
            body: js::openapi(),
        }),
        Route::Page(page) => page::serve(config, page, id).await,
        Route::Refresh { source } => control::refresh(request, context, id, source),
        Route::Control(control) => {
            control::serve(config, context, request, id, control, target.query).await
        }
    }
}
