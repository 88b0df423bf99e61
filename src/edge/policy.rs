//! What a source's policy says of a caller. What an isolate knows of policies is
//! in `door/policies.rs`.

use std::cell::RefCell;

use web_sys::Request;

use super::config::Config;
use super::{Fault, door, js, jwks};
use crate::access::jwt::{Expectation, MOST_TOKEN_BYTES};
use crate::access::policy::KeySource;
use crate::door::policies::{Known, Policies};
use crate::governor::command::Outcome;
use crate::governor::ids::{KeyId, Version};
use crate::wire::problem::Problem;
use crate::wire::request::{Carrier, bearer};

/// Where Cloudflare Access puts its token.
const ACCESS_HEADER: &str = "Cf-Access-Jwt-Assertion";
thread_local! {
    static POLICIES: RefCell<Policies> = const { RefCell::new(Policies::new()) };
}

/// The policy of a source; `None`: none is known, and plain is assumed.
pub fn of(source: &str) -> Option<Known> {
    POLICIES.with_borrow_mut(|policies| policies.of(source))
}

pub fn forget(source: &str) {
    POLICIES.with_borrow_mut(|policies| policies.forget(source));
}

/// Takes over what an object said of its policy to a caller of this key.
///
/// # Errors
/// If it can't be read: Worker and object don't understand each other.
pub fn learn(source: &str, said: &str, key: KeyId) -> Result<(), Fault> {
    let now = js::now();
    POLICIES
        .with_borrow_mut(|policies| policies.learn(source, said, key, now))
        .ok_or_else(|| Fault::because("a policy can't be read", source))
}

/// The object said that the policy stands, and lets this key in.
pub fn stands(source: &str, key: KeyId) {
    let now = js::now();
    POLICIES.with_borrow_mut(|policies| policies.stands(source, key, now));
}

/// Whether a refusal under the known policy may be given without asking.
pub fn may_refuse(source: &str, key: KeyId) -> bool {
    let now = js::now();
    POLICIES.with_borrow_mut(|policies| policies.may_refuse(source, key, now))
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
        return Err(Refusal {
            problem: Problem::forbidden_address(),
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
