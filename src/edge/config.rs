//! What a deployment is told: hosts, secrets, where the objects are. Read once
//! per isolate.
//!
//! A missing or malformed secret is kept as such: the routes that need it
//! answer 503 and say so; they are never open.

use std::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::{JsCast, JsValue};
use worker::Env;

use super::Fault;
use super::js::{self, Namespace, Stub};
use crate::access::admin::AdminTokens;
use crate::access::keys::SigningKeys;
use crate::access::policy::Loopback;
use crate::wire::problem::Problem;
use crate::wire::route::Hosts;

pub struct Config {
    pub hosts: Hosts,
    pub sources: Namespace,
    pub directory: Namespace,
    /// Where the files of the pages are, if they were deployed.
    pub assets: Option<Stub>,
    /// Whether key sets may be read from this machine.
    pub loopback: Loopback,
    /// Whether the caller's address is the connection's peer, since no proxy in
    /// front tells it.
    pub address_is_peer: bool,
    admin: Option<AdminTokens>,
    signing: Option<SigningKeys>,
}

thread_local! {
    static CONFIG: RefCell<Option<Rc<Config>>> = const { RefCell::new(None) };
}

impl Config {
    /// # Errors
    /// If a binding is missing: the deployment is broken.
    pub fn of(env: &Env) -> Result<Rc<Self>, Fault> {
        CONFIG.with(|cell| {
            if let Some(known) = cell.borrow().as_ref() {
                return Ok(Rc::clone(known));
            }
            let read = Rc::new(Self::read(env)?);
            *cell.borrow_mut() = Some(Rc::clone(&read));
            Ok(read)
        })
    }

    /// What was read, once it was.
    pub fn known() -> Option<Rc<Self>> {
        CONFIG.with(|cell| cell.borrow().clone())
    }

    fn read(env: &Env) -> Result<Self, Fault> {
        let text = |name| {
            js::property(env.as_ref(), name)
                .as_string()
                .unwrap_or_default()
        };
        let namespace = |name| {
            let binding = js::property(env.as_ref(), name);
            if binding.is_object() {
                Ok(binding.unchecked_into::<Namespace>())
            } else {
                Err(Fault::because("no binding", name))
            }
        };
        // Said by `npm start` and `npm run serve`, never in a deployment.
        let runs_as = text("RUNS_AS");
        Ok(Self {
            hosts: Hosts::parse(&text("API_HOST"), &text("SOURCE_DOMAIN")),
            sources: namespace("SOURCES")?,
            directory: namespace("DIRECTORY")?,
            assets: Some(js::property(env.as_ref(), "ASSETS"))
                .filter(JsValue::is_object)
                .map(JsCast::unchecked_into),
            loopback: match runs_as.as_str() {
                "start" | "serve" => Loopback::Allowed,
                _ => Loopback::Refused,
            },
            address_is_peer: runs_as == "serve" && text("TRUST_CF_CONNECTING_IP") != "1",
            admin: AdminTokens::parse(&text("ADMIN_TOKEN")).ok(),
            signing: SigningKeys::parse(&text("SIGNING_KEYS")).ok(),
        })
    }

    /// # Errors
    /// 503 if the secret is unset or too short.
    pub fn admin(&self) -> Result<&AdminTokens, Problem> {
        self.admin.as_ref().ok_or_else(|| {
            Problem::misconfigured(
                "The secret ADMIN_TOKEN of this deployment is unset or under 32 characters; set it.",
            )
        })
    }

    /// # Errors
    /// 503 if the secret is unset or malformed.
    pub fn signing(&self) -> Result<&SigningKeys, Problem> {
        self.signing.as_ref().ok_or_else(|| {
            Problem::misconfigured(
                "The secret SIGNING_KEYS of this deployment is unset or malformed; \
                 set it to kid:base64 with at least 32 bytes.",
            )
        })
    }
}
