//! Acquire, renew and release at the edge: the checks of the door, then one
//! call to the source's object.

use std::rc::Rc;

use web_sys::Request;

use super::config::Config;
use super::forward::{self, Verdict};
use super::{Reply, door};
use crate::fields::FieldError;
use crate::governor::ids::{KeyId, RequestId};
use crate::governor::time::Span;
use crate::outcome::Report;
use crate::protocol::lock::{Caller, LockCall, Verb};
use crate::wire::problem::Problem;
use crate::wire::request::{
    self, AcquireHeaders, IDEMPOTENCY_HEADER, NO_QUEUE_HEADER, QUEUE_TIMEOUT_HEADER,
};
use crate::wire::route;

pub async fn serve(
    config: &Rc<Config>,
    request: &Request,
    id: RequestId,
    source: &str,
    verb: route::Verb<'_>,
) -> Reply {
    let (carrier, key) = match door::access_key(config, request, source) {
        Ok(known) => known,
        Err(problem) => return problem.into(),
    };
    let caller = Caller {
        request: id,
        key,
        carrier,
    };
    if forward::is_known_dead(key) {
        return Problem::bad_access_key().into();
    }
    let body = match door::read_body(request).await {
        Ok(body) => body,
        Err(problem) => return refuse(config, source, caller, problem).await,
    };
    let verb = match read(request, id, key, verb, &body) {
        Ok(verb) => verb,
        Err(error) => return refuse(config, source, caller, error.into()).await,
    };
    match forward::lock(config, source, LockCall { caller, verb }).await {
        Ok(Verdict::Answered(response)) => Reply::Passed(response),
        Ok(Verdict::Unauthorized) => Problem::bad_access_key().into(),
        Err(fault) => fault.into(),
    }
}

/// Reads what the call asks for.
fn read(
    request: &Request,
    id: RequestId,
    key: KeyId,
    verb: route::Verb<'_>,
    body: &[u8],
) -> Result<Verb, FieldError> {
    match verb {
        route::Verb::Renew(slot) => Ok(Verb::Renew {
            slot: slot.parse().ok(),
        }),
        route::Verb::Release(slot) => Ok(Verb::Release {
            report: Report::parse(body)?,
            slot: slot.parse().ok(),
        }),
        route::Verb::Acquire => {
            let queue_timeout = door::header(request, QUEUE_TIMEOUT_HEADER);
            let no_queue = door::header(request, NO_QUEUE_HEADER);
            let idempotency_key = door::header(request, IDEMPOTENCY_HEADER);
            let headers = AcquireHeaders {
                queue_timeout: queue_timeout.as_deref(),
                no_queue: no_queue.as_deref(),
                idempotency_key: idempotency_key.as_deref(),
            };
            let wanted = request::acquire(body, headers, key)?;
            Ok(Verb::Acquire {
                attempt: wanted.attempt.unwrap_or_else(|| id.into()),
                ip: door::address(request),
                wait: wanted.wait,
                waited: Span::ZERO,
            })
        }
    }
}

/// Refuses a body. Whether the key is alive comes first in the order of checks,
/// and only the object knows.
async fn refuse(config: &Rc<Config>, source: &str, caller: Caller, problem: Problem) -> Reply {
    let check = LockCall {
        caller,
        verb: Verb::Check,
    };
    match forward::lock(config, source, check).await {
        Ok(Verdict::Answered(response)) if response.ok() => problem.into(),
        Ok(Verdict::Answered(response)) => Reply::Passed(response),
        Ok(Verdict::Unauthorized) => Problem::bad_access_key().into(),
        Err(fault) => fault.into(),
    }
}
