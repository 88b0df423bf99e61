//! Key sets, fetched and kept; and whether a token that a caller shows is good.
//!
//! A stream or a promise belongs to the request that made it, so requests share
//! nothing but the sets themselves: whoever finds another fetching looks again a
//! little later. Whatever goes wrong here, the answer is no, and nothing of a
//! token is ever logged.

use std::cell::RefCell;
use std::time::Duration;

use futures_util::future::{Either, select};
use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{ReadableStream, Response};
use worker::Delay;

use super::js;
use crate::access::jwt::fetched::Fetched;
use crate::access::jwt::lifetime::lifetime;
use crate::access::jwt::proven::{INLINE, Proven, Scope};
use crate::access::jwt::sets::{FETCH_TIMEOUT, Held, KeySets, Look};
use crate::access::jwt::url::is_key_set_url;
use crate::access::jwt::{Expectation, KeySet, MOST_TOKEN_BYTES, Refused, verify};
use crate::access::policy::{KeySource, Loopback};
use crate::governor::ids::Version;
use crate::governor::time::Span;

/// The largest key set that is read.
const MOST_SET_BYTES: u32 = 256 * 1024;
/// Between two looks while another fetches.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How often to look again: for as long as a fetch may take.
const MOST_LOOKS: u32 = 250;

thread_local! {
    static SETS: RefCell<KeySets> = RefCell::default();
    static PROVEN: RefCell<Proven> = RefCell::default();
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_name = fetch)]
    fn fetch(url: &str, init: &JsValue) -> Result<Promise, JsValue>;

    /// Aborts after so many milliseconds.
    #[wasm_bindgen(catch, js_namespace = AbortSignal, js_name = timeout)]
    fn abort_after(ms: f64) -> Result<JsValue, JsValue>;
}

/// Whether the token that a caller shows to `source` is good. What was found
/// good is not checked again until it expires, the policy or the set changes.
pub async fn admits(
    source: &str,
    version: Version,
    token: &str,
    keys: &KeySource,
    expected: &Expectation,
    loopback: Loopback,
) -> bool {
    if token.len() > MOST_TOKEN_BYTES {
        return false;
    }
    let shown = Shown {
        source,
        version,
        token,
        expected,
    };
    match keys {
        KeySource::Inline(set) => shown.passes_inline(set.keys()),
        KeySource::Url(url) if is_key_set_url(url, loopback) => shown.passes(url).await,
        KeySource::Url(_) => false,
    }
}

/// A token, and what it is shown for.
struct Shown<'a> {
    source: &'a str,
    version: Version,
    token: &'a str,
    expected: &'a Expectation,
}

impl Shown<'_> {
    fn passes_inline(&self, keys: &KeySet) -> bool {
        self.is_proven(INLINE) || self.prove(keys, INLINE).is_ok()
    }

    async fn passes(&self, url: &str) -> bool {
        let found = obtain(url, |sets| sets.look(url, js::now())).await;
        let Some((held, is_new)) = found else {
            return false;
        };
        match self.check(&held) {
            Ok(()) => true,
            Err(Refused::UnknownKey) if !is_new => {
                let seen = held.generation;
                let found = obtain(url, |sets| sets.look_beyond(url, seen, js::now())).await;
                found.is_some_and(|(held, _)| held.generation != seen && self.check(&held).is_ok())
            }
            Err(_) => false,
        }
    }

    fn check(&self, held: &Held) -> Result<(), Refused> {
        if self.is_proven(held.generation) {
            return Ok(());
        }
        self.prove(&held.set, held.generation)
    }

    fn is_proven(&self, generation: u64) -> bool {
        let scope = self.scope(generation);
        PROVEN.with_borrow(|proven| proven.holds(&scope, self.token, js::now()))
    }

    fn prove(&self, set: &KeySet, generation: u64) -> Result<(), Refused> {
        let now = js::now();
        let expires_at = verify(self.token, set, self.expected, now)?;
        let scope = self.scope(generation);
        PROVEN.with_borrow_mut(|proven| proven.remember(&scope, self.token, expires_at, now));
        Ok(())
    }

    fn scope(&self, generation: u64) -> Scope<'_> {
        Scope {
            source: self.source,
            version: self.version,
            expected: self.expected,
            generation,
        }
    }
}

/// Does what `look` says until there is a set, or none to be had. Also tells
/// whether the set was fetched just now.
async fn obtain(url: &str, look: impl Fn(&mut KeySets) -> Look) -> Option<(Held, bool)> {
    for _ in 0..MOST_LOOKS {
        match SETS.with_borrow_mut(&look) {
            Look::Use(held) => return Some((held, false)),
            Look::Unavailable => return None,
            Look::Wait => Delay::from(LOOK_AGAIN).await,
            Look::Fetch => {
                let is_new = renew(url).await;
                let held = SETS.with_borrow(|sets| sets.held(url, js::now()))?;
                return Some((held, is_new));
            }
        }
    }
    None
}

/// Fetches a set and keeps it; whether there was one. What was found good by a
/// set that is no more is forgotten.
async fn renew(url: &str) -> bool {
    let fetched = within(FETCH_TIMEOUT, fetch_set(url)).await;
    let fetched = fetched.unwrap_or(Fetched::Failed("it took too long"));
    if let Some(why) = fetched.complaint() {
        let shown = url.split('?').next().unwrap_or_default();
        js::log_error(&format!("the key set at {shown} was not fetched: {why}"));
    }
    let is_new = matches!(fetched, Fetched::Set(_));
    let gone = SETS.with_borrow_mut(|sets| sets.settle(url, fetched, js::now()));
    if let Some(generation) = gone {
        PROVEN.with_borrow_mut(|proven| proven.forget(generation));
    }
    is_new
}

async fn within<T>(span: Span, future: impl Future<Output = T>) -> Option<T> {
    let timer = Delay::from(Duration::from_millis(span.ms()));
    match select(std::pin::pin!(future), timer).await {
        Either::Left((value, _)) => Some(value),
        Either::Right(_) => None,
    }
}

async fn fetch_set(url: &str) -> Fetched {
    let promise = init().and_then(|init| fetch(url, &init));
    let answer = match promise {
        Ok(promise) => JsFuture::from(promise).await,
        Err(error) => Err(error),
    };
    let Ok(response) = answer.map(JsCast::unchecked_into::<Response>) else {
        return Fetched::Failed("its server did not answer");
    };
    if let Some(said) = Fetched::of_status(response.status()) {
        if let Some(stream) = response.body() {
            leave(&stream);
        }
        return said;
    }
    let header = |name| response.headers().get(name).ok().flatten();
    let lifetime = lifetime(header("Cache-Control").as_deref(), header("Age").as_deref());
    match read(&response).await {
        Ok(body) => Fetched::of_body(&body, lifetime),
        Err(why) => Fetched::Failed(why),
    }
}

/// A redirect is an answer like any other, and not followed: whoever can make
/// one must not be able to say where the keys are.
fn init() -> Result<JsValue, JsValue> {
    let headers = js_sys::Object::new();
    js_sys::Reflect::set(&headers, &"Accept".into(), &"application/json".into())?;
    let init = js_sys::Object::new();
    let ms = u32::try_from(FETCH_TIMEOUT.ms()).unwrap_or(u32::MAX);
    js_sys::Reflect::set(&init, &"headers".into(), &headers)?;
    js_sys::Reflect::set(&init, &"redirect".into(), &"manual".into())?;
    js_sys::Reflect::set(&init, &"signal".into(), &abort_after(ms.into())?)?;
    Ok(init.into())
}

/// Reads a body of at most [`MOST_SET_BYTES`].
async fn read(response: &Response) -> Result<Vec<u8>, &'static str> {
    const BROKEN: &str = "its body ended too soon";
    let Some(stream) = response.body() else {
        return Err("it is empty");
    };
    let read = JsFuture::from(js::read_stream(&stream, MOST_SET_BYTES)).await;
    match read.map_err(|_| BROKEN)?.dyn_into::<Uint8Array>() {
        Ok(bytes) => Ok(bytes.to_vec()),
        Err(why) if why.as_string().as_deref() == Some("large") => Err("it is too large"),
        Err(_) => Err(BROKEN),
    }
}

/// Gives up a body.
fn leave(stream: &ReadableStream) {
    let cancelled = JsFuture::from(stream.cancel());
    // Nobody waits for it, but unheard a failure would count as unhandled.
    wasm_bindgen_futures::spawn_local(async {
        let _ = cancelled.await;
    });
}
