//! Acquire, renew and release at the edge: the checks of the door, then one
//! call to the source's object.
//!
//! The order is the contract's: access key, address, Cloudflare Access, JWT,
//! body, admission. A policy is decided here, by what this isolate knows of it;
//! the object refuses a decision by a stale one, and it is made anew.

use std::rc::Rc;

use web_sys::Request;
use worker::Context;

use super::config::Config;
use super::forward::{self, Verdict};
use super::policy::{self, Known, Refusal};
use super::{Fault, Reply, door, log};
use crate::governor::command::{Outcome, TurnedAway};
use crate::governor::ids::{KeyId, RequestId};
use crate::governor::time::Span;
use crate::outcome::Report;
use crate::protocol::lock::{Caller, LockCall, Refused, Verb};
use crate::wire::problem::{Kind, Problem};
use crate::wire::request::{
    self, AcquireHeaders, Carrier, IDEMPOTENCY_HEADER, NO_QUEUE_HEADER, QUEUE_TIMEOUT_HEADER,
};
use crate::wire::route;

/// How often a call is decided anew because the policy had changed.
const MOST_DECISIONS: u32 = 5;

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
    /// Refused, and the object has logged it if it had to.
    Settled(Reply),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Settled(fault.into())
    }
}

pub async fn serve(call: Call<'_>) -> Reply {
    match call.pass().await {
        Ok(reply) | Err(End::Settled(reply)) => reply,
        Err(End::Refused(refusal, key)) => {
            call.note(key, refusal.outcome);
            refusal.problem.into()
        }
    }
}

impl Call<'_> {
    /// A body that was declared too large is refused before anything else.
    pub fn refuse_unread(&self) -> Reply {
        self.note(None, Outcome::PayloadTooLarge);
        Problem::payload_too_large().into()
    }

    /// Has a refused acquire logged.
    fn note(&self, key: Option<KeyId>, outcome: Outcome) {
        if self.verb == route::Verb::Acquire {
            let one = TurnedAway {
                request: self.id,
                key,
                ip: self.ip(),
                outcome,
                ago: Span::ZERO,
            };
            log::note(self.config, self.context, self.source, one);
        }
    }

    fn ip(&self) -> Option<Box<str>> {
        let address = door::address(self.config, self.request)?;
        Some(address.to_string().into_boxed_str())
    }

    async fn pass(&self) -> Result<Reply, End> {
        let key = door::access_key(self.config, self.request, self.source);
        let (carrier, key) = key.map_err(|problem| match problem.kind {
            Kind::Unauthorized => End::Refused(Refusal::unauthorized(problem), None),
            // Keys can't be checked at all.
            _ => End::Settled(problem.into()),
        })?;
        if forward::is_known_dead(key) {
            return Err(dead(key));
        }
        let mut read: Option<Verb> = None;
        for _ in 0..MOST_DECISIONS {
            let known = policy::of(self.source);
            if let Some(known) = &known
                && let Err(refusal) = self.check(carrier, known).await
            {
                if known.is_fresh() {
                    return Err(End::Refused(refusal, Some(key)));
                }
                self.read_policy_again(self.caller(carrier, key, None))
                    .await?;
                continue;
            }
            let caller = self.caller(carrier, key, known.as_ref());
            let verb = match read.take() {
                Some(verb) => verb,
                None => match self.read(key).await {
                    Ok(verb) => verb,
                    Err((problem, outcome)) => {
                        self.refuse_body(caller, problem, outcome).await?;
                        continue;
                    }
                },
            };
            read = Some(verb.clone());
            match forward::lock(self.config, self.source, LockCall { caller, verb }).await? {
                Verdict::Answered(response) => {
                    log::is_present(self.source);
                    return Ok(Reply::Passed(response));
                }
                Verdict::Unauthorized => return Err(dead(key)),
                Verdict::StalePolicy(said) => policy::learn(self.source, &said)?,
            }
        }
        Err(Fault::because("a policy changed too often", self.source).into())
    }

    fn caller(&self, carrier: Carrier, key: KeyId, known: Option<&Known>) -> Caller {
        Caller {
            request: self.id,
            key,
            carrier,
            policy: known.map(|known| known.version),
        }
    }

    async fn check(&self, carrier: Carrier, known: &Known) -> Result<(), Refusal> {
        policy::check(self.config, self.request, self.source, carrier, known).await
    }

    /// Before a caller is refused under a policy that may have changed.
    async fn read_policy_again(&self, caller: Caller) -> Result<(), End> {
        let key = caller.key;
        let verb = Verb::Check { refused: None };
        match forward::lock(self.config, self.source, LockCall { caller, verb }).await? {
            Verdict::StalePolicy(said) => Ok(policy::learn(self.source, &said)?),
            Verdict::Unauthorized => Err(dead(key)),
            // Nothing is asked of callers any more.
            Verdict::Answered(_) => {
                policy::forget(self.source);
                Ok(())
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
            ip: self.ip(),
        });
        let verb = Verb::Check { refused };
        match forward::lock(self.config, self.source, LockCall { caller, verb }).await? {
            Verdict::StalePolicy(said) => Ok(policy::learn(self.source, &said)?),
            Verdict::Unauthorized => Err(dead(key)),
            Verdict::Answered(response) if response.ok() => Err(End::Settled(problem.into())),
            Verdict::Answered(response) => Err(End::Settled(Reply::Passed(response))),
        }
    }

    /// Reads what the call asks for.
    async fn read(&self, key: KeyId) -> Result<Verb, (Problem, Outcome)> {
        let body = door::read_body(self.request)
            .await
            .map_err(|problem| match problem.kind {
                Kind::PayloadTooLarge => (problem, Outcome::PayloadTooLarge),
                _ => (problem, Outcome::InvalidRequest),
            })?;
        let invalid = |error| (Problem::from(error), Outcome::InvalidRequest);
        match self.verb {
            route::Verb::Renew(slot) => Ok(Verb::Renew {
                slot: slot.parse().ok(),
            }),
            route::Verb::Release(slot) => Ok(Verb::Release {
                report: Report::parse(&body).map_err(invalid)?,
                slot: slot.parse().ok(),
            }),
            route::Verb::Acquire => self.acquire(&body, key).map_err(invalid),
        }
    }

    fn acquire(&self, body: &[u8], key: KeyId) -> Result<Verb, crate::fields::FieldError> {
        let queue_timeout = door::header(self.request, QUEUE_TIMEOUT_HEADER);
        let no_queue = door::header(self.request, NO_QUEUE_HEADER);
        let idempotency_key = door::header(self.request, IDEMPOTENCY_HEADER);
        let headers = AcquireHeaders {
            queue_timeout: queue_timeout.as_deref(),
            no_queue: no_queue.as_deref(),
            idempotency_key: idempotency_key.as_deref(),
        };
        let wanted = request::acquire(body, headers, key)?;
        Ok(Verb::Acquire {
            attempt: wanted.attempt.unwrap_or_else(|| self.id.into()),
            ip: self.ip(),
            wait: wanted.wait,
            waited: Span::ZERO,
        })
    }
}

/// The caller's key was good once; its family isn't any more.
fn dead(key: KeyId) -> End {
    End::Refused(Refusal::unauthorized(Problem::bad_access_key()), Some(key))
}
