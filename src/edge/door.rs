//! What is checked before a call may reach an object: sizes, secrets, where it
//! comes from. No check here asks an object.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};

use js_sys::Uint8Array;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::Request;

use super::config::Config;
use super::{Reply, js};
use crate::access::ip;
use crate::access::keys::KnownKeys;
use crate::governor::ids::KeyId;
use crate::governor::time::Millis;
use crate::wire::MOST_BODY_BYTES;
use crate::wire::problem::{Kind, Problem};
use crate::wire::request::{AcquireHeaders, Carrier, bearer, presented};

/// A header; `None` if it is absent.
pub fn header(request: &Request, name: &str) -> Option<String> {
    request.headers().get(name).ok().flatten()
}

thread_local! {
    static KNOWN_KEYS: RefCell<KnownKeys> = RefCell::default();
}

/// What every call shows, taken over in one crossing (`worker/crossing.js`).
pub struct Shown<'a> {
    pub method: &'a str,
    pub url: &'a str,
    /// As the caller sent it, where the runtime shows it.
    pub host: Option<&'a str>,
    declared_length: Option<&'a str>,
    key_header: Option<&'a str>,
    /// Not looked at where the key has a header of its own.
    authorization: Option<&'a str>,
}

impl<'a> Shown<'a> {
    pub fn of(text: &'a str) -> Self {
        let mut lines = text.split('\n');
        Self {
            method: lines.next().unwrap_or_default(),
            url: lines.next().unwrap_or_default(),
            host: value(lines.next()),
            declared_length: value(lines.next()),
            key_header: value(lines.next()),
            authorization: value(lines.next()),
        }
    }

    /// Whether the declared length is over the bound: refused before anything is
    /// read.
    pub fn declares_too_much(&self) -> bool {
        self.length()
            .is_some_and(|length| length > u64::from(MOST_BODY_BYTES))
    }

    /// Whether it says that no body comes.
    pub fn declares_nothing(&self) -> bool {
        self.length() == Some(0)
    }

    fn length(&self) -> Option<u64> {
        self.declared_length?.trim().parse().ok()
    }

    /// The family of the access key that the caller shows, as far as its text
    /// says, and when that key ends.
    ///
    /// # Errors
    /// If it shows none, one that isn't signed, or whose life is over; or if keys
    /// can't be checked at all.
    pub fn access_key(
        &self,
        config: &Config,
        source: &str,
    ) -> Result<(Carrier, KeyId, Millis), NoKey> {
        let signing = config.signing().map_err(NoKey::Misconfigured)?;
        let bad = |key: Option<KeyId>| key.map_or(NoKey::Stranger, NoKey::Expired);
        let shown = presented(self.key_header, self.authorization);
        let (carrier, key) = shown.ok_or(NoKey::Stranger)?;
        let verified =
            KNOWN_KEYS.with_borrow_mut(|known| known.verify(signing, key, source, js::now()));
        let (key, expires) = verified.map_err(bad)?;
        Ok((carrier, key, expires))
    }
}

/// Why no family is known of a caller.
pub enum NoKey {
    /// No key of this source that we signed.
    Stranger,
    Expired(KeyId),
    /// Keys can't be checked.
    Misconfigured(Problem),
}

/// What an acquire says beside its body, taken over in one crossing.
pub struct Aside<'a> {
    pub headers: AcquireHeaders<'a>,
    pub ip: Option<Box<str>>,
}

impl<'a> Aside<'a> {
    pub fn of(text: &'a str, config: &Config) -> Self {
        let mut lines = text.split('\n');
        let ip = value(lines.next()).and_then(|text| told(config, text));
        Self {
            ip: ip.map(|address| address.to_string().into_boxed_str()),
            headers: AcquireHeaders {
                queue_timeout: value(lines.next()),
                no_queue: value(lines.next()),
                idempotency_key: value(lines.next()),
            },
        }
    }
}

/// The value in a line; `None`: it isn't there.
fn value(line: Option<&str>) -> Option<&str> {
    line?.strip_prefix('=')
}

/// A wrong token is answered slowly, and the slower the more of them an isolate
/// sees; a right one never waits. `Err` is the answer to those who may not in:
/// 401 without a good token, 503 if there is none to compare with.
pub fn admin(config: &Config, request: &Request) -> Result<(), Reply> {
    let tokens = config.admin()?;
    let authorization = header(request, "Authorization");
    match bearer(authorization.as_deref()) {
        Some(token) if tokens.admits(token) => {
            WRONG_ADMIN_TOKENS.set(0);
            Ok(())
        }
        Some(_) => {
            let wrong = WRONG_ADMIN_TOKENS.get().saturating_add(1);
            WRONG_ADMIN_TOKENS.set(wrong);
            let pause = wrong.saturating_mul(10).min(LONGEST_PAUSE_MS);
            Err(Reply::Late(Problem::bad_admin_token().into_answer(), pause))
        }
        None => Err(Problem::bad_admin_token().into()),
    }
}

/// The longest that the answer to a wrong admin token is held back.
const LONGEST_PAUSE_MS: u32 = 250;

thread_local! {
    /// Wrong admin tokens since the last right one.
    static WRONG_ADMIN_TOKENS: Cell<u32> = const { Cell::new(0) };
}

/// The caller's address: as Cloudflare tells it, or the peer of the connection
/// where nobody is in front.
pub fn address(config: &Config, request: &Request) -> Option<IpAddr> {
    if !config.address_is_peer {
        return told(config, &header(request, "CF-Connecting-IP")?);
    }
    let peer = js::property(&js::property(request, "cf"), "clientIp");
    told(config, &peer.as_string()?)
}

/// The address in what is told of it: an address, or a peer with its port.
fn told(config: &Config, text: &str) -> Option<IpAddr> {
    if !config.address_is_peer {
        return ip::address(text);
    }
    let peer: SocketAddr = text.parse().ok()?;
    ip::address(&peer.ip().to_string())
}

/// The same as text, for the logs.
pub fn address_text(config: &Config, request: &Request) -> Option<Box<str>> {
    let address = address(config, request)?;
    Some(address.to_string().into_boxed_str())
}

/// How long the body of a caller may take who has shown a credential.
pub const BODY_PATIENCE_MS: u32 = 30_000;
/// How long one may take that is read before any credential was seen.
pub const STRANGERS_BODY_PATIENCE_MS: u32 = 10_000;

/// Reads a body of at most 64 KiB.
///
/// # Errors
/// 413 as soon as more has come; 408 if it takes too long; 400 if it can't be
/// read to its end.
pub async fn read_body(request: &Request) -> Result<Vec<u8>, Problem> {
    if request.body().is_none() {
        return Ok(Vec::new());
    }
    let read = JsFuture::from(js::read_request(request, MOST_BODY_BYTES, BODY_PATIENCE_MS)).await;
    body_of(read.map_err(|_| broken_body())?)
}

/// What reading came to.
///
/// # Errors
/// 413 if more came than may; 408 if it took too long; 400 if it can't be read
/// to its end.
pub fn body_of(read: JsValue) -> Result<Vec<u8>, Problem> {
    match read.dyn_into::<Uint8Array>() {
        Ok(bytes) => Ok(bytes.to_vec()),
        Err(why) => Err(match why.as_string().as_deref() {
            Some("large") => Problem::payload_too_large(),
            Some("slow") => Problem::request_timeout(),
            _ => broken_body(),
        }),
    }
}

fn broken_body() -> Problem {
    Problem::new(
        Kind::InvalidRequest,
        "The body could not be read to its end; send it again.",
    )
}
