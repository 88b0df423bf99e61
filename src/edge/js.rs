//! The little of JavaScript that is called directly: bindings that catch what
//! is thrown, answers made in one crossing, the clock, randomness.
//!
//! What is ours of it is in `worker/`; the build puts that folder beside the
//! wasm's script (`scripts/lib/bundle.mjs`).
//!
//! The typed wrappers of the `worker` crate are passed by where they would let
//! an exception through uncaught (which hangs the caller) or copy a body.

use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::task::{Context as Waking, Poll, Wake, Waker};

use js_sys::{Array, JsString, Promise};
use wasm_bindgen::prelude::*;
use web_sys::{ReadableStream, Response, ResponseInit};

use super::Fault;
use crate::governor::ids::RequestId;
use crate::governor::time::Millis;
use crate::wire::answer::HttpAnswer;

#[wasm_bindgen]
extern "C" {
    /// A namespace of objects.
    #[derive(Clone)]
    pub type Namespace;

    #[wasm_bindgen(method, catch, js_name = getByName)]
    pub fn get_by_name(this: &Namespace, name: &str) -> Result<Stub, JsValue>;

    #[wasm_bindgen(method, catch, js_name = getByName)]
    pub fn get_by_name_near(
        this: &Namespace,
        name: &str,
        options: &JsValue,
    ) -> Result<Stub, JsValue>;

    /// What is called by `fetch`: an object, or the assets.
    pub type Stub;

    #[wasm_bindgen(method, catch)]
    pub fn fetch(this: &Stub, url: &str) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch, js_name = fetch)]
    pub fn fetch_with(this: &Stub, url: &str, init: &JsValue) -> Result<Promise, JsValue>;

    /// `ctx` of a call to the Worker.
    #[derive(Clone)]
    pub type Context;

    #[wasm_bindgen(method, catch, js_name = waitUntil)]
    pub fn wait_until(this: &Context, promise: &Promise) -> Result<(), JsValue>;

    /// `ctx` of an object.
    #[wasm_bindgen(extends = Context)]
    pub type ObjectContext;

    #[wasm_bindgen(method, getter)]
    pub fn storage(this: &ObjectContext) -> Storage;

    pub type Storage;

    #[wasm_bindgen(method, getter)]
    pub fn sql(this: &Storage) -> SqlStorage;

    /// `at`: milliseconds since the epoch. Takes effect with the commit.
    #[wasm_bindgen(method, catch, js_name = setAlarm)]
    pub fn set_alarm(this: &Storage, at: f64) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch, js_name = deleteAll)]
    pub fn delete_all(this: &Storage) -> Result<Promise, JsValue>;

    /// Rolls back if `body` throws.
    #[wasm_bindgen(method, catch, js_name = transactionSync)]
    pub fn transaction(
        this: &Storage,
        body: &mut dyn FnMut() -> Result<(), JsValue>,
    ) -> Result<JsValue, JsValue>;

    pub type SqlStorage;

    #[wasm_bindgen(js_namespace = Date, js_name = now)]
    fn date_now() -> f64;

    /// From 0 to below 1; need not be secret.
    #[wasm_bindgen(js_namespace = Math, js_name = random)]
    pub fn math_random() -> f64;

    #[wasm_bindgen(js_namespace = console, js_name = log)]
    pub fn log_line(text: &str);

    #[wasm_bindgen(js_namespace = console, js_name = error)]
    pub fn log_error(text: &str);

    #[wasm_bindgen(catch, js_name = setTimeout)]
    pub fn set_timeout(handler: &js_sys::Function, ms: f64) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(js_name = clearTimeout)]
    pub fn clear_timeout(handle: &JsValue);
}

#[wasm_bindgen(raw_module = "./worker/object-call.js")]
extern "C" {
    /// A lock call on its way to its object; see `worker/object-call.js`.
    pub type PendingCall;

    #[wasm_bindgen(method, getter)]
    pub fn source(this: &PendingCall) -> String;
    /// Without the waiting time.
    #[wasm_bindgen(method, getter)]
    pub fn url(this: &PendingCall) -> String;
    #[wasm_bindgen(method, getter)]
    pub fn wait(this: &PendingCall) -> f64;
    #[wasm_bindgen(method, getter)]
    pub fn request(this: &PendingCall) -> web_sys::Request;
    #[wasm_bindgen(method, getter)]
    pub fn context(this: &PendingCall) -> JsValue;
    /// How often it was decided anew.
    #[wasm_bindgen(method, getter)]
    pub fn decisions(this: &PendingCall) -> u32;

    pub fn begin(
        namespace: &Namespace,
        source: &str,
        url: &str,
        wait: f64,
        request: &web_sys::Request,
        context: &JsValue,
        settle: &js_sys::Function,
    ) -> Promise;

    #[wasm_bindgen(js_name = goOn)]
    pub fn go_on(call: &PendingCall, url: &str, settle: &js_sys::Function) -> Promise;
}

#[wasm_bindgen(raw_module = "./worker/bodies.js")]
extern "C" {
    /// The bytes of a stream, or in a word why not: `large` or `broken`.
    #[wasm_bindgen(js_name = readStream)]
    pub fn read_stream(stream: &ReadableStream, most: u32) -> Promise;

    /// The same of a body, which may also be `slow`: not at its end in `patience`
    /// milliseconds.
    #[wasm_bindgen(js_name = readRequest)]
    pub fn read_request(request: &web_sys::Request, most: u32, patience: u32) -> Promise;

    /// Reads the body, and hands the call on: `go_on` gets the request, what
    /// else is given here, what was read or the word why not, and the time that
    /// it took in milliseconds.
    #[wasm_bindgen(js_name = readThen)]
    pub fn read_then(
        request: &web_sys::Request,
        most: u32,
        patience: u32,
        known: &JsValue,
        said: &str,
        go_on: &js_sys::Function,
    ) -> Promise;
}

#[wasm_bindgen(raw_module = "./worker/promises.js")]
extern "C" {
    #[wasm_bindgen(js_name = keepInWorker)]
    fn keep_in_worker(promise: &Promise, context: &JsValue) -> Promise;

    #[wasm_bindgen(js_name = keepInObject)]
    fn keep_in_object(promise: &Promise) -> Promise;

    /// Holds an answer back for `ms`.
    pub fn later(response: &Response, ms: f64) -> Promise;
}

#[wasm_bindgen(raw_module = "./worker/crossing.js")]
extern "C" {
    /// What a call shows, by lines; see `Shown` in `door.rs`.
    pub fn shown(request: &web_sys::Request) -> String;

    /// What an acquire says beside its body, by lines; see `Aside` in `door.rs`.
    pub fn aside(request: &web_sys::Request, is_peer: bool) -> String;

    #[wasm_bindgen(catch, js_name = respond)]
    fn respond_with(body: &str, head: &str) -> Result<Response, JsValue>;

    #[wasm_bindgen(catch, js_name = respond)]
    fn respond_with_stream(body: Option<&ReadableStream>, head: &str) -> Result<Response, JsValue>;

    /// Runs a statement. `bindings`: a list as JSON.
    #[wasm_bindgen(catch)]
    pub fn run(sql: &SqlStorage, statement: &JsString, bindings: &str) -> Result<(), JsValue>;

    /// Runs a query: the names of its columns and its rows, each a list, in JSON.
    #[wasm_bindgen(catch)]
    pub fn rows(sql: &SqlStorage, query: &str, bindings: &str) -> Result<String, JsValue>;
}

#[wasm_bindgen(raw_module = "./worker/document.js")]
extern "C" {
    /// The API's document as JSON.
    pub fn openapi() -> String;
}

/// Has the runtime see `work` through though its call is answered; `loss`: what
/// is said in the log where it can't.
pub fn see_through(context: &Context, loss: &str, work: impl Future<Output = ()> + 'static) {
    let working = promise(async move {
        work.await;
        Ok(JsValue::UNDEFINED)
    });
    if let Err(error) = context.wait_until(&working) {
        Fault::because(loss, error);
    }
}

/// What `work` comes to. If it panics in a build that unwinds, the promise is
/// rejected: a turn that is cut off leaves no memory behind (`turn.rs`), so
/// nothing broken can be seen afterwards.
pub fn promise(work: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    wasm_bindgen_futures::future_to_promise(AssertUnwindSafe(work))
}

/// What `work` comes to in the Worker: itself where it need not wait, which most
/// lock calls needn't, else a promise of it, which is kept though the caller
/// leaves.
///
/// # Errors
/// What `work` says. It panics as [`promise`] does.
pub fn now_or_later(
    context: &JsValue,
    work: impl Future<Output = Result<JsValue, JsValue>> + 'static,
) -> Result<JsValue, JsValue> {
    let mut work = Box::pin(work);
    let relay = Arc::new(Relay::default());
    let waker = Waker::from(Arc::clone(&relay));
    if let Poll::Ready(done) = work.as_mut().poll(&mut Waking::from_waker(&waker)) {
        return done;
    }
    let rest = poll_fn(move |waking| {
        relay.wakes(waking.waker());
        work.as_mut().poll(&mut Waking::from_waker(&waker))
    });
    Ok(keep_in_worker(&promise(listed(rest)), context).into())
}

/// A promise of what `work` comes to in an object.
pub fn later_in_object(work: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> JsValue {
    keep_in_object(&promise(listed(work))).into()
}

/// In a list, so that what is a promise itself is not waited for.
async fn listed(work: impl Future<Output = Result<JsValue, JsValue>>) -> Result<JsValue, JsValue> {
    work.await.map(|done| Array::of1(&done).into())
}

/// A waker that wakes whoever asked last. Not all futures take over a new one:
/// a timer of the `worker` crate keeps the first that it saw.
#[derive(Default)]
struct Relay(Mutex<Option<Waker>>);

impl Relay {
    fn wakes(&self, waker: &Waker) {
        if let Ok(mut asked) = self.0.lock() {
            *asked = Some(waker.clone());
        }
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        let asked = self.0.lock().ok().and_then(|mut asked| asked.take());
        if let Some(waker) = asked {
            waker.wake();
        }
    }
}

/// The moment of the event that is being handled.
pub fn now() -> Millis {
    Millis::from_epoch(crate::fields::whole(date_now()))
}

/// A number that need not be secret.
pub fn roll() -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and the value is within 32 bits"
    )]
    let roll = (math_random() * f64::from(u32::MAX)) as u32;
    roll
}

/// How many numbers are fetched from the runtime at once.
const STOCK: usize = 32;

thread_local! {
    static RANDOM: RefCell<Vec<u128>> = RefCell::default();
}

/// 128 random bits, fit for secrets: from the runtime's generator, each given
/// out once.
pub fn random() -> u128 {
    RANDOM.with_borrow_mut(|stock| {
        stock.pop().unwrap_or_else(|| {
            let mut bytes = [[0; 16]; STOCK];
            if let Err(error) = getrandom::fill(bytes.as_flattened_mut()) {
                // Never go on with a guessable secret: no answer is safer.
                log_error(&format!("no randomness: {error}"));
                wasm_bindgen::throw_str("no randomness");
            }
            let [first, rest @ ..] = bytes.map(u128::from_be_bytes);
            stock.extend(rest);
            first
        })
    })
}

/// A new id for an attempt.
pub fn request_id() -> RequestId {
    RequestId(random())
}

/// Makes the response in one crossing of the border.
pub fn respond(answer: &HttpAnswer, request: RequestId) -> Result<Response, JsValue> {
    respond_with(&answer.body, &answer.head(request))
}

/// The same, with a body that is read from a stream in place of the answer's.
pub fn respond_with_body(
    body: Option<&ReadableStream>,
    answer: &HttpAnswer,
    request: RequestId,
) -> Result<Response, JsValue> {
    respond_with_stream(body, &answer.head(request))
}

/// A status between Worker and object, which no caller sees.
pub fn signal(status: u16, body: Option<&str>) -> Result<Response, JsValue> {
    let init = ResponseInit::new();
    init.set_status(status);
    Response::new_with_opt_str_and_init(body, &init)
}

/// A property of an error or a row; `undefined` if there is none.
pub fn property(value: &JsValue, name: &str) -> JsValue {
    js_sys::Reflect::get(value, &name.into()).unwrap_or(JsValue::UNDEFINED)
}
