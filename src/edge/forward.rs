//! Calls to objects: a deadline on each, and a retry of what may be retried.
//!
//! Nobody hangs: an object that doesn't answer is given up. A call that may
//! have been delivered is only repeated where that can't do harm: an acquire
//! carries its attempt, renew and release are repeatable by nature. Queued
//! callers of an object that was reset are carried over within their waiting
//! time (`worker/object-call.js`). The waiting call is a plain `fetch`, never inside
//! `waitUntil`, so that the object learns when the caller leaves.

use std::cell::RefCell;
use std::time::Duration;

use futures_util::future::{Either, select};
use js_sys::{Function, Promise};
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, Response};
use worker::Delay;

use super::config::Config;
use super::js::Namespace;
use super::{Fault, js};
use crate::door::dead::{DeadKeys, Death};
use crate::governor::ids::KeyId;
use crate::governor::settings::LONGEST_QUEUE_TIMEOUT;
use crate::governor::time::Span;
use crate::protocol::control::ControlCall;
use crate::protocol::directory::DirectoryCall;
use crate::protocol::lock::LockCall;
use crate::protocol::status::{ABSENT, AGAIN, DEAD_KEY, STALE_POLICY};
use crate::protocol::tries::{FIRST_PAUSE, MOST_TRIES, PATIENCE};

/// What the object said.
pub enum Verdict {
    Answered(Response),
    /// The key's family is dead, or the source isn't there.
    Dead(Death),
    /// The door decided by another policy than stands; this is what stands.
    StalePolicy(String),
}

/// One call, and whether it made it.
enum Try {
    Answered(Response),
    /// The object was reset, or says so itself: call again.
    Again,
    Failed(Fault),
}

/// Sends a lock call off. Nothing of Rust stands while it is under way: the
/// promise is JavaScript's, and what is no plain answer comes to `settle`.
pub fn lock(
    config: &Config,
    source: &str,
    call: &LockCall,
    request: &Request,
    context: &JsValue,
    settle: &Function,
) -> Promise {
    let (wait, _) = call.times();
    #[expect(clippy::cast_precision_loss, reason = "ten minutes at the most")]
    let wait = wait.min(LONGEST_QUEUE_TIMEOUT).ms() as f64;
    let url = call.base_url();
    js::begin(
        &config.sources,
        source,
        &url,
        wait,
        request,
        context,
        settle,
    )
}

/// Asks the object of `source` whether a caller is let in: a call that doesn't
/// wait.
///
/// # Errors
/// If no try was answered.
pub async fn check(config: &Config, source: &str, call: &LockCall) -> Result<Verdict, Fault> {
    let url = call.to_url();
    let fetch = || config.sources.get_by_name(source)?.fetch(&url);
    let response = repeat(MOST_TRIES, fetch).await?;
    match response.status() {
        DEAD_KEY => {
            let said = text_of(&response).await?;
            Ok(Verdict::Dead(remember_dead(call.caller.key, &said)))
        }
        STALE_POLICY => text_of(&response).await.map(Verdict::StalePolicy),
        _ => Ok(Verdict::Answered(response)),
    }
}

/// Calls the object of `source` for an operator.
///
/// # Errors
/// If no try was answered. What may be repeated was.
pub async fn control(
    config: &Config,
    source: &str,
    call: &ControlCall,
    body: Option<&str>,
    near: Option<&str>,
) -> Result<Response, Fault> {
    let url = call.to_url();
    let tries = if call.action.is_repeatable() {
        MOST_TRIES
    } else {
        1
    };
    let get = || match near {
        None => config.sources.get_by_name(source),
        Some(place) => {
            let options = js_object(&[("locationHint", place)]);
            config.sources.get_by_name_near(source, &options)
        }
    };
    let fetch = || {
        let stub = get()?;
        match body {
            None => stub.fetch(&url),
            Some(body) => stub.fetch_with(&url, &js_object(&[("method", "POST"), ("body", body)])),
        }
    };
    repeat(tries, fetch).await
}

/// Hands a batch of refusals to the object of `source`; false if there is no
/// such source.
///
/// # Errors
/// If the one try was not answered: these are not worth a second.
pub async fn batch(config: &Config, source: &str, url: &str) -> Result<bool, Fault> {
    let fetch = || config.sources.get_by_name(source)?.fetch(url);
    let response = repeat(1, fetch).await?;
    Ok(response.status() != ABSENT)
}

/// Whether the directory knows of `source`.
///
/// # Errors
/// If the directory didn't answer.
pub async fn is_listed(config: &Config, source: &str) -> Result<bool, Fault> {
    let source = source.to_owned();
    let response = directory(&config.directory, &DirectoryCall::Has { source }).await?;
    Ok(response.status() != ABSENT)
}

/// Calls the directory.
///
/// # Errors
/// If no try was answered.
pub async fn directory(directory: &Namespace, call: &DirectoryCall) -> Result<Response, Fault> {
    let url = call.to_url();
    let fetch = || directory.get_by_name("directory")?.fetch(&url);
    repeat(MOST_TRIES, fetch).await
}

async fn repeat(
    tries: u32,
    fetch: impl Fn() -> Result<Promise, JsValue>,
) -> Result<Response, Fault> {
    let mut pause = FIRST_PAUSE;
    let started = js::now();
    for _ in 0..tries {
        match attempt(fetch(), PATIENCE).await {
            Try::Answered(response) => return Ok(response),
            Try::Failed(fault) => return Err(fault),
            Try::Again => pause = rest(pause).await,
        }
        // Failures that are slow, each within its deadline, must not add up.
        if js::now().since(started) > PATIENCE {
            break;
        }
    }
    Err(Fault::because("an object kept failing", tries))
}

async fn attempt(promise: Result<Promise, JsValue>, deadline: Span) -> Try {
    let promise = match promise {
        Ok(promise) => promise,
        Err(error) => return failed(&error),
    };
    let timer = Delay::from(Duration::from_millis(deadline.ms()));
    match select(JsFuture::from(promise), timer).await {
        Either::Left((Ok(value), _)) => {
            let response: Response = value.unchecked_into();
            if response.status() == AGAIN {
                Try::Again
            } else {
                Try::Answered(response)
            }
        }
        Either::Left((Err(error), _)) => failed(&error),
        Either::Right(_) => Try::Failed(Fault::because("an object did not answer", deadline)),
    }
}

/// An overloaded object is left alone; everything else is worth another try.
fn failed(error: &JsValue) -> Try {
    let fault = Fault::because("a call to an object failed", error);
    if js::property(error, "overloaded").is_truthy() {
        Try::Failed(fault)
    } else {
        Try::Again
    }
}

/// Pauses for about `pause`; returns the next pause.
async fn rest(pause: Span) -> Span {
    let whole = pause.ms().max(1);
    let half = whole.div_euclid(2).max(1);
    let jittered = half.saturating_add(u64::from(js::roll()).rem_euclid(whole));
    Delay::from(Duration::from_millis(jittered)).await;
    pause.plus(pause)
}

/// The text of an object's answer.
///
/// # Errors
/// If it can't be read to its end in time.
pub async fn text_of(response: &Response) -> Result<String, Fault> {
    let broken = |error| Fault::because("an object's answer can't be read", error);
    let text = JsFuture::from(response.text().map_err(broken)?);
    let timer = Delay::from(Duration::from_millis(PATIENCE.ms()));
    match select(text, timer).await {
        Either::Left((text, _)) => Ok(text.map_err(broken)?.as_string().unwrap_or_default()),
        Either::Right(_) => Err(Fault::because("an object's answer did not end", PATIENCE)),
    }
}

fn js_object(pairs: &[(&str, &str)]) -> JsValue {
    let object = js_sys::Object::new();
    for (name, value) in pairs {
        // Setting a plain property of a plain object can't fail.
        let _ = js_sys::Reflect::set(&object, &(*name).into(), &(*value).into());
    }
    object.into()
}

thread_local! {
    static DEAD: RefCell<DeadKeys> = const { RefCell::new(DeadKeys::new()) };
}

/// Why the family is dead, if it is known to be: that is for good, so it need not
/// be asked again.
pub fn known_death(key: KeyId) -> Option<Death> {
    DEAD.with_borrow_mut(|dead| dead.recall(key))
}

/// `said`: the word of the object.
pub fn remember_dead(key: KeyId, said: &str) -> Death {
    let why = Death::of_word(said);
    DEAD.with_borrow_mut(|dead| dead.remember(key, why));
    why
}
