//! The policies of sources as this isolate knows them, and what they say of a
//! caller.
//!
//! A cached policy never lets anyone in, since the object refuses a stale one;
//! and it never keeps anyone out for long, since a refusal under it is only
//! given if it was read within the last second.

use std::cell::RefCell;
use std::rc::Rc;

use web_sys::Request;

use super::config::Config;
use super::{Fault, door, js, jwks};
use crate::access::jwt::{Expectation, MOST_TOKEN_BYTES};
use crate::access::policy::{KeySource, Loopback, Policy};
use crate::fields::Fields;
use crate::governor::command::Outcome;
use crate::governor::ids::Version;
use crate::governor::time::{Millis, Span};
use crate::index::Shelf;
use crate::json::object;
use crate::wire::problem::{Kind, Problem};
use crate::wire::request::{Carrier, bearer};

/// Where Cloudflare Access puts its token.
const ACCESS_HEADER: &str = "Cf-Access-Jwt-Assertion";
/// Sources whose policy an isolate remembers; one with inline keys may take as
/// much as a body.
const MOST_POLICIES: usize = 250;
/// For how long a refusal may rest on a policy.
const FRESH: Span = Span::from_seconds(1);

/// A policy and when it was read.
#[derive(Clone)]
pub struct Known {
    pub version: Version,
    pub policy: Rc<Policy>,
    read_at: Millis,
}

impl Known {
    pub fn is_fresh(&self) -> bool {
        js::now().since(self.read_at) < FRESH
    }
}

thread_local! {
    static KNOWN: RefCell<Shelf<Known>> = const { RefCell::new(Shelf::of(MOST_POLICIES)) };
}

/// The policy of a source; `None`: none is known, and plain is assumed.
pub fn of(source: &str) -> Option<Known> {
    KNOWN.with_borrow(|known| known.get(source).cloned())
}

pub fn forget(source: &str) {
    KNOWN.with_borrow_mut(|known| known.remove(source));
}

/// Takes over what an object said of its policy.
///
/// # Errors
/// If it can't be read: Worker and object don't understand each other.
pub fn learn(source: &str, said: &str) -> Result<(), Fault> {
    let known =
        read(source, said).ok_or_else(|| Fault::because("a policy can't be read", source))?;
    KNOWN.with_borrow_mut(|all| all.put(source, known));
    Ok(())
}

/// A version that is known already is not read again: keys take their time.
fn read(source: &str, said: &str) -> Option<Known> {
    let fields = Fields::of_body(said.as_bytes()).ok()?;
    let version: String = fields.text("version", 1, 32).ok()??;
    let version = version.parse().ok()?;
    let known = of(source).filter(|known| known.version == version);
    let policy = match known {
        Some(known) => known.policy,
        // Checked when it was put in place.
        None => Policy::parse(&fields.part("access").ok()?, Loopback::Allowed)
            .ok()?
            .into(),
    };
    Some(Known {
        version,
        policy,
        read_at: js::now(),
    })
}

/// The form in which an object says its policy.
pub fn said(version: Version, policy: &Policy) -> String {
    object! {"version": version.to_string(), "access": policy.to_json()}.to_string()
}

/// A refusal, and what the log says of it.
pub struct Refusal {
    pub problem: Problem,
    pub outcome: Outcome,
}

impl Refusal {
    pub fn unauthorized(problem: Problem) -> Self {
        Self {
            problem,
            outcome: Outcome::Unauthorized,
        }
    }
}

/// Checks a caller against a policy: carrier, address, Cloudflare Access, JWT.
pub async fn check(
    config: &Config,
    request: &Request,
    source: &str,
    carrier: Carrier,
    known: &Known,
) -> Result<(), Refusal> {
    let policy = &known.policy;
    if !policy.carries(carrier) {
        return Err(Refusal::unauthorized(Problem::bad_access_key()));
    }
    if !policy.ip_allowlist.admits(door::address(config, request)) {
        let problem = Problem::new(
            Kind::Forbidden,
            "Your address is not on the allowlist of this source; ask its operator to add it.",
        );
        return Err(Refusal {
            problem,
            outcome: Outcome::Forbidden,
        });
    }
    if let Some(access) = &policy.cloudflare_access {
        let demand = Demand {
            header: ACCESS_HEADER,
            keys: &access.keys(),
            expected: &access.expectation(),
        };
        demand.check(config, request, source, known.version).await?;
    }
    if let Some(jwt) = &policy.jwt {
        let demand = Demand {
            header: &jwt.header,
            keys: &jwt.keys,
            expected: &jwt.expectation(),
        };
        demand.check(config, request, source, known.version).await?;
    }
    Ok(())
}

/// A token that a policy asks for.
struct Demand<'a> {
    header: &'a str,
    keys: &'a KeySource,
    expected: &'a Expectation,
}

impl Demand<'_> {
    async fn check(
        &self,
        config: &Config,
        request: &Request,
        source: &str,
        version: Version,
    ) -> Result<(), Refusal> {
        let shown = door::header(request, self.header);
        let token = if self.header.eq_ignore_ascii_case("Authorization") {
            bearer(shown.as_deref())
        } else {
            shown.as_deref().map(str::trim)
        };
        let is_good = match token {
            None => false,
            Some(token) if token.len() > MOST_TOKEN_BYTES => {
                return Err(Refusal::unauthorized(Problem::token_too_long(self.header)));
            }
            Some(token) => {
                let loopback = config.loopback;
                jwks::admits(source, version, token, self.keys, self.expected, loopback).await
            }
        };
        if is_good {
            Ok(())
        } else {
            Err(Refusal::unauthorized(Problem::bad_token(self.header)))
        }
    }
}
