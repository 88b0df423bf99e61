//! Acquire, renew and release at the edge: the checks of the door, then one
//! call to the source's object.
//!
//! The order is the contract's: access key, address, Cloudflare Access, JWT,
//! body, admission. A policy is decided here, by what this isolate knows of it;
//! the object refuses a decision by a stale one, and it is made anew.

mod later;

use std::rc::Rc;

use web_sys::Request;

use super::config::Config;
use super::door::{Aside, NoKey, Shown};
use super::fault::{self, At};
use super::forward::{self, Verdict};
use super::js::{Context, PendingCall};
use super::policy::{self, Refusal};
use super::{Fault, Reply, door, js, log};
use crate::door::dead::Death;
use crate::door::policies::Known;
use crate::fields::FieldError;
use crate::governor::command::{Outcome, TurnedAway};
use crate::governor::ids::{KeyId, RequestId};
use crate::governor::time::{Millis, Span};
use crate::outcome::Report;
use crate::protocol::lock::{Caller, LockCall, Refused, Verb};
use crate::wire::problem::{Kind, Problem};
use crate::wire::request::{self, Carrier};
use crate::wire::route;
use later::MOST_DECISIONS;

/// One lock call at the door.
pub struct Call<'a> {
    pub config: &'a Rc<Config>,
    pub context: &'a Context,
    pub request: &'a Request,
    pub id: RequestId,
    pub source: &'a str,
    pub verb: route::Verb<'a>,
}

/// Why a call ends at the edge.
enum End {
    /// Refused; an acquire is to be logged by us.
    Refused(Refusal, Option<KeyId>),
    /// The caller's key was good once, and isn't any more.
    Dead(KeyId, Death),
    /// Refused, and the object has logged it if it had to.
    Settled(Reply),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Settled(fault.into())
    }
}

/// What a call asks for, or why its body is refused.
type Read = Result<Verb, (Problem, Outcome)>;

pub async fn serve(call: Call<'_>, shown: &Shown<'_>) -> Reply {
    fault::strike(At::Worker);
    call.finish(call.pass(shown, None, None).await)
}

impl Call<'_> {
    /// A body that was declared too large is refused before anything else.
    pub fn refuse_unread(&self) -> Reply {
        self.note(None, Outcome::PayloadTooLarge, false);
        Problem::payload_too_large().into()
    }

    fn finish(&self, end: Result<Reply, End>) -> Reply {
        match end {
            Ok(reply) | Err(End::Settled(reply)) => reply.noted(self.source, self.id),
            Err(End::Refused(refusal, key)) => {
                self.note(key, refusal.outcome, key.is_some());
                refusal.problem.into()
            }
            Err(End::Dead(key, why)) => {
                self.note(Some(key), Outcome::Unauthorized, false);
                Problem::dead_access_key(why).into()
            }
        }
    }

    /// Has a refused acquire logged; `is_live`: as far as is known here.
    fn note(&self, key: Option<KeyId>, outcome: Outcome, is_live: bool) {
        if self.verb == route::Verb::Acquire {
            let one = TurnedAway {
                request: self.id,
                key,
                ip: door::address_text(self.config, self.request),
                outcome,
                ago: Span::ZERO,
                is_live,
            };
            log::note(self.config, self.context, self.source, one);
        }
    }

    /// Passes the checks and sends the call off, or has its body read first.
    /// `read` is what the body came to where it was read before, `pending` the
    /// call that goes on.
    async fn pass(
        &self,
        shown: &Shown<'_>,
        mut read: Option<Read>,
        pending: Option<&PendingCall>,
    ) -> Result<Reply, End> {
        let mut has_asked = false;
        for _ in 0..MOST_DECISIONS {
            let (carrier, key, expires) = self.let_in(shown)?;
            let known = policy::of(self.source);
            if let Some(known) = &known
                && let Err(refusal) = self.check(carrier, known).await
            {
                if !has_asked && !policy::may_refuse(self.source, key) {
                    has_asked = true;
                    let caller = self.caller(carrier, key, expires, Some(known));
                    if !self.still_stands(caller).await? {
                        continue;
                    }
                }
                return Err(End::Refused(refusal, Some(key)));
            }
            if known.is_some() && self.request.signal().aborted() {
                // It left while its token was checked; nobody reads this.
                self.note(Some(key), Outcome::Left, true);
                return Err(Fault::because("a caller left", self.source).into());
            }
            let caller = self.caller(carrier, key, expires, known.as_ref());
            if read.is_none() && shown.declares_nothing() {
                read = Some(self.understand(&[], key));
            }
            match &read {
                None => return Ok(later::have_body_read(self, &caller)),
                Some(Ok(verb)) => {
                    let verb = verb.clone();
                    return Ok(later::send(self, &LockCall { caller, verb }, pending));
                }
                Some(Err((problem, outcome))) => {
                    self.refuse_body(caller, problem.clone(), *outcome).await?;
                }
            }
        }
        Err(Fault::because("a policy changed too often", self.source).into())
    }

    /// Who calls, by the key that is shown, and when that key ends.
    fn let_in(&self, shown: &Shown) -> Result<(Carrier, KeyId, Millis), End> {
        let shown = shown.access_key(self.config, self.source);
        let (carrier, key, expires) = shown.map_err(|why| match why {
            NoKey::Stranger => End::Refused(Refusal::unauthorized(Problem::bad_access_key()), None),
            NoKey::Expired(key) => End::Dead(key, Death::Expired),
            NoKey::Misconfigured(problem) => End::Settled(problem.into()),
        })?;
        if let Some(why) = forward::known_death(key) {
            return Err(End::Dead(key, why));
        }
        // Only for a source that is there was a key ever signed.
        log::is_present(self.source);
        Ok((carrier, key, expires))
    }

    fn caller(
        &self,
        carrier: Carrier,
        key: KeyId,
        expires: Millis,
        known: Option<&Known>,
    ) -> Caller {
        Caller {
            request: self.id,
            key,
            expires: Some(expires),
            carrier,
            policy: known.map(|known| known.version),
        }
    }

    async fn check(&self, carrier: Carrier, known: &Known) -> Result<(), Refusal> {
        policy::check(self.config, self.request, self.source, carrier, known).await
    }

    /// Before a caller is refused: its key comes first, so is its family alive? And
    /// does the policy still stand? False: it doesn't, and the new one is known now.
    async fn still_stands(&self, caller: Caller) -> Result<bool, End> {
        let key = caller.key;
        let verb = Verb::Check { refused: None };
        match forward::check(self.config, self.source, &LockCall { caller, verb }).await? {
            Verdict::StalePolicy(said) => {
                policy::learn(self.source, &said, key)?;
                Ok(false)
            }
            Verdict::Dead(why) => Err(End::Dead(key, why)),
            Verdict::Answered(_) => {
                policy::stands(self.source, key);
                Ok(true)
            }
        }
    }

    /// Refuses a body, unless the object says that the caller isn't let in at
    /// all. `Ok`: the policy had changed.
    async fn refuse_body(
        &self,
        caller: Caller,
        problem: Problem,
        outcome: Outcome,
    ) -> Result<(), End> {
        let key = caller.key;
        let is_acquire = self.verb == route::Verb::Acquire;
        let refused = is_acquire.then(|| Refused {
            outcome,
            ip: door::address_text(self.config, self.request),
        });
        let verb = Verb::Check { refused };
        match forward::check(self.config, self.source, &LockCall { caller, verb }).await? {
            Verdict::StalePolicy(said) => Ok(policy::learn(self.source, &said, key)?),
            Verdict::Dead(why) => Err(End::Dead(key, why)),
            Verdict::Answered(response) if response.ok() => Err(End::Settled(problem.into())),
            Verdict::Answered(response) => Err(End::Settled(Reply::Passed(response))),
        }
    }

    /// What a body that was read, or wasn't, comes to.
    fn read(&self, body: Result<Vec<u8>, Problem>, key: KeyId) -> Read {
        match body {
            Ok(body) => self.understand(&body, key),
            Err(problem) => {
                let outcome = match problem.kind {
                    Kind::PayloadTooLarge => Outcome::PayloadTooLarge,
                    Kind::RequestTimeout => Outcome::RequestTimeout,
                    _ => Outcome::InvalidRequest,
                };
                Err((problem, outcome))
            }
        }
    }

    /// What the call asks for.
    fn understand(&self, body: &[u8], key: KeyId) -> Read {
        let invalid = |error| (Problem::from(error), Outcome::InvalidRequest);
        match self.verb {
            route::Verb::Renew(slot) => Ok(Verb::Renew {
                slot: slot.parse().ok(),
            }),
            route::Verb::Release(slot) => Ok(Verb::Release {
                report: Report::parse(body, js::now()).map_err(invalid)?,
                slot: slot.parse().ok(),
            }),
            route::Verb::Acquire => self.acquire(body, key).map_err(invalid),
        }
    }

    fn acquire(&self, body: &[u8], key: KeyId) -> Result<Verb, FieldError> {
        let aside = js::aside(self.request, self.config.address_is_peer);
        let aside = Aside::of(&aside, self.config);
        let wanted = request::acquire(body, aside.headers, key)?;
        Ok(Verb::Acquire {
            attempt: wanted.attempt.unwrap_or_else(|| self.id.into()),
            ip: aside.ip,
            wait: wanted.wait,
            waited: Span::ZERO,
        })
    }
}
