//! The little of JavaScript that is called directly: bindings that catch what
//! is thrown, answers made in one crossing, the clock, randomness.
//!
//! The typed wrappers of the `worker` crate are passed by where they would let
//! an exception through uncaught (which hangs the caller) or copy a body.

use std::panic::AssertUnwindSafe;

use js_sys::{Array, JSON, JsString, Promise};
use wasm_bindgen::prelude::*;
use web_sys::{Response, ResponseInit};

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
    pub fn sql(this: &Storage) -> Sql;

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

    pub type Sql;

    #[wasm_bindgen(method, catch, variadic)]
    pub fn exec(this: &Sql, query: &JsString, bindings: &Array) -> Result<Cursor, JsValue>;

    pub type Cursor;

    #[wasm_bindgen(method, catch, js_name = toArray)]
    pub fn to_array(this: &Cursor) -> Result<Array, JsValue>;

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

#[wasm_bindgen(module = "/src/edge/waits.js")]
extern "C" {
    /// A lock call on its way to its object; see `waits.js`.
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
    #[wasm_bindgen(method, getter)]
    pub fn id(this: &PendingCall) -> String;
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
        id: &str,
        settle: &js_sys::Function,
    ) -> Promise;

    #[wasm_bindgen(js_name = goOn)]
    pub fn go_on(call: &PendingCall, url: &str, settle: &js_sys::Function) -> Promise;

    /// The bytes of a stream, or in a word why not: `large` or `broken`.
    #[wasm_bindgen(js_name = readStream)]
    pub fn read_stream(stream: &web_sys::ReadableStream, most: u32) -> Promise;

    #[wasm_bindgen(js_name = readRequest)]
    pub fn read_request(request: &web_sys::Request, most: u32) -> Promise;

    #[wasm_bindgen(js_name = readThen)]
    pub fn read_then(
        request: &web_sys::Request,
        most: u32,
        source: &str,
        id: &str,
        settle: &js_sys::Function,
    ) -> Promise;

    /// Holds an answer back for `ms`.
    pub fn later(response: &Response, ms: f64) -> Promise;
}

#[wasm_bindgen(module = "/src/edge/together.js")]
extern "C" {
    /// Gathers the calls that arrive together; see `together.js`.
    pub type Together;

    #[wasm_bindgen(constructor)]
    pub fn new(storage: &Storage, serve: &js_sys::Function) -> Together;

    /// A promise of a response.
    #[wasm_bindgen(method, catch)]
    pub fn arrive(this: &Together, request: &web_sys::Request) -> Result<JsValue, JsValue>;
}

#[wasm_bindgen(module = "/src/edge/document.js")]
extern "C" {
    /// The API's document as JSON.
    pub fn openapi() -> String;
}

/// What `work` comes to. If it panics in a build that unwinds, the promise is
/// rejected: a turn that is cut off leaves no memory behind (`turn.rs`), so
/// nothing broken can be seen afterwards.
pub fn promise(work: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    wasm_bindgen_futures::future_to_promise(AssertUnwindSafe(work))
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

/// 128 random bits, fit for secrets.
pub fn random() -> u128 {
    let mut bytes = [0; 16];
    if let Err(error) = getrandom::fill(&mut bytes) {
        // Never go on with a guessable secret: no answer is safer.
        log_error(&format!("no randomness: {error}"));
        wasm_bindgen::throw_str("no randomness");
    }
    u128::from_be_bytes(bytes)
}

/// Makes the response in one crossing of the border.
pub fn respond(answer: &HttpAnswer, request: RequestId) -> Result<Response, JsValue> {
    let init = JSON::parse(&answer.init_json(request))?;
    let init: &ResponseInit = init.unchecked_ref();
    Response::new_with_opt_str_and_init(Some(&answer.body), init)
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
