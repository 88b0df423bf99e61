//! What is checked before a call may reach an object: sizes, secrets, where it
//! comes from. No check here asks an object.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};

use js_sys::Uint8Array;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::Request;

use super::config::Config;
use super::{Reply, js};
use crate::access::ip;
use crate::governor::ids::KeyId;
use crate::wire::MOST_BODY_BYTES;
use crate::wire::problem::{Kind, Problem};
use crate::wire::request::{Carrier, KEY_HEADER, bearer, presented};

/// A header; `None` if it is absent.
pub fn header(request: &Request, name: &str) -> Option<String> {
    request.headers().get(name).ok().flatten()
}

/// Whether the declared length is over the bound: refused before anything is
/// read.
pub fn declares_too_much(request: &Request) -> bool {
    declared_length(request).is_some_and(|length| length > u64::from(MOST_BODY_BYTES))
}

fn declared_length(request: &Request) -> Option<u64> {
    header(request, "Content-Length")?.trim().parse().ok()
}

/// The family of the access key that the caller shows, as far as its text says.
///
/// # Errors
/// 401, the same for every reason; 503 if keys can't be checked at all.
pub fn access_key(
    config: &Config,
    request: &Request,
    source: &str,
) -> Result<(Carrier, KeyId), Problem> {
    let signing = config.signing()?;
    let key_header = header(request, KEY_HEADER);
    let authorization = match key_header {
        Some(_) => None,
        None => header(request, "Authorization"),
    };
    presented(key_header.as_deref(), authorization.as_deref())
        .and_then(|(carrier, key)| Some((carrier, signing.verify(key, source, js::now())?)))
        .ok_or_else(Problem::bad_access_key)
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
        return ip::address(&header(request, "CF-Connecting-IP")?);
    }
    let peer = js::property(&js::property(request, "cf"), "clientIp");
    let peer: SocketAddr = peer.as_string()?.parse().ok()?;
    ip::address(&peer.ip().to_string())
}

/// The same as text, for the logs.
pub fn address_text(config: &Config, request: &Request) -> Option<Box<str>> {
    let address = address(config, request)?;
    Some(address.to_string().into_boxed_str())
}

/// Reads a body of at most 64 KiB.
///
/// # Errors
/// 413 as soon as more has come; 400 if it can't be read to its end.
pub async fn read_body(request: &Request) -> Result<Vec<u8>, Problem> {
    if request.body().is_none() {
        return Ok(Vec::new());
    }
    let read = JsFuture::from(js::read_request(request, MOST_BODY_BYTES)).await;
    body_of(read.map_err(|_| broken_body())?)
}

/// What reading came to.
///
/// # Errors
/// 413 if more came than may; 400 if it can't be read to its end.
pub fn body_of(read: JsValue) -> Result<Vec<u8>, Problem> {
    match read.dyn_into::<Uint8Array>() {
        Ok(bytes) => Ok(bytes.to_vec()),
        Err(why) if why.as_string().as_deref() == Some("large") => {
            Err(Problem::payload_too_large())
        }
        Err(_) => Err(broken_body()),
    }
}

fn broken_body() -> Problem {
    Problem::new(
        Kind::InvalidRequest,
        "The body could not be read to its end; send it again.",
    )
}
