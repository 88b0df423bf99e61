//! Control routes at the edge: the admin token, the body, then the source's
//! object, and the directory where the list of sources changes.
//!
//! A route that touches both writes the source first; both writes may be
//! repeated.

mod keys;

use std::rc::Rc;

use web_sys::{Request, Response};

use super::config::Config;
use super::js::Context;
use super::{Fault, Reply, door, forward, js, log, policy, refused};
use crate::access::refused::Credential;
use crate::fields::{FieldError, Fields, check_strictly};
use crate::governor::ids::{RequestId, Version};
use crate::governor::settings::Settings;
use crate::governor::time::Millis;
use crate::outcome::Report;
use crate::protocol::control::{Action, Condition, ControlCall};
use crate::protocol::directory::{By, DirectoryCall};
use crate::wire::answer::HttpAnswer;
use crate::wire::paging::{attempts, backwards, forwards};
use crate::wire::problem::{Kind, Problem};
use crate::wire::route::{Control, SourceName};
pub use keys::refresh;

/// One control request, and what it may use.
struct Operator<'a> {
    config: &'a Rc<Config>,
    request: &'a Request,
    id: RequestId,
}

pub async fn serve(
    config: &Rc<Config>,
    context: &Context,
    request: &Request,
    id: RequestId,
    control: Control<'_>,
    query: &str,
) -> Reply {
    if let Err(reply) = door::admin(config, request) {
        // One that was wrong, not none at all.
        if matches!(reply, Reply::Late(..)) {
            let ip = door::address_text(config, request);
            refused::note(config, context, Credential::Admin, control.source(), ip);
        }
        return reply;
    }
    let body = match door::read_body(request).await {
        Ok(body) => body,
        Err(problem) => return problem.into(),
    };
    let operator = Operator {
        config,
        request,
        id,
    };
    let done = match control {
        Control::ListSources => operator.list_sources(query).await,
        Control::Metrics => operator.metrics().await,
        Control::ReadDirectoryAudit => operator.audit(query).await,
        Control::PutSource(source) => operator.put(source, &body).await,
        Control::ShowSource(source) => operator.pass(source, Ok(Action::Show)).await,
        Control::DeleteSource(source) => operator.delete(source).await,
        Control::Reset(source) => operator.pass(source, Ok(Action::Reset)).await,
        Control::Explain(source) => operator.explain(source, &body).await,
        Control::ListSlots(source) => {
            let page = forwards(query).map(|(limit, after)| Action::Slots { limit, after });
            operator.pass(source, page).await
        }
        Control::ForceRelease { source, reference } => match reference.parse() {
            Ok(reference) => operator.pass(source, Ok(Action::Force { reference })).await,
            Err(_) => Err(Problem::unknown("slot")),
        },
        Control::MintKey(source) => operator.mint(source, &body).await,
        Control::ListKeys(source) => {
            let page = forwards(query).map(|(limit, after)| Action::Keys { limit, after });
            operator.pass(source, page).await
        }
        Control::ReadLog(source) => {
            let page = attempts(query).map(|(limit, before, sought)| Action::Log {
                limit,
                before,
                sought,
            });
            operator.pass(source, page).await
        }
        Control::ReadAudit(source) => {
            let page = backwards(query).map(|(limit, before)| Action::Audit { limit, before });
            operator.pass(source, page).await
        }
        Control::RevokeKey { source, key } => match key.parse() {
            Ok(key) => operator.pass(source, Ok(Action::Revoke { key })).await,
            Err(_) => Err(Problem::unknown("key")),
        },
    };
    let done = match done {
        Err(problem) => operator.unless_unknown(control, problem).await,
        done => done,
    };
    done.unwrap_or_else(Reply::from)
        .noted(control.source().unwrap_or("*"), id)
}

impl Operator<'_> {
    async fn call(
        &self,
        source: &str,
        action: Action,
        body: Option<&str>,
        near: Option<&str>,
    ) -> Result<Response, Problem> {
        let call = ControlCall {
            request: self.id,
            ip: door::address_text(self.config, self.request),
            action,
        };
        Ok(forward::control(self.config, source, &call, body, near).await?)
    }

    /// The source comes before what is wrong with the rest of the request: where
    /// there is none, that is the answer. Only then it is asked for.
    async fn unless_unknown(
        &self,
        control: Control<'_>,
        problem: Problem,
    ) -> Result<Reply, Problem> {
        let Some(source) = control.needs().filter(|_| problem.is_of_request()) else {
            return Err(problem);
        };
        let response = self.call(source, Action::Show, None, None).await?;
        if response.status() == Kind::NotFound.status() {
            return Ok(Reply::Passed(response));
        }
        // To its end: an answer that stands would hold its object.
        forward::text_of(&response).await?;
        Err(problem)
    }

    /// One call to the source, whose answer is the caller's.
    async fn pass(
        &self,
        source: &str,
        action: Result<Action, FieldError>,
    ) -> Result<Reply, Problem> {
        let response = self.call(source, action?, None, None).await?;
        Ok(Reply::Passed(response))
    }

    async fn put(&self, source: &str, body: &[u8]) -> Result<Reply, Problem> {
        if self.config.hosts.reserves(source) {
            let message = format!(
                "{source} is reserved: it is the label of an API host; choose another name."
            );
            let mut problem = Problem::new(Kind::InvalidRequest, message);
            problem.field = Some("source".into());
            return Err(problem);
        }
        // Nothing at all would put every setting back to its default.
        if matches!(body.trim_ascii(), b"" | b"null") {
            let message = "The body must be the settings as a JSON object; {} for all defaults.";
            return Err(FieldError::new("", message).into());
        }
        check_strictly(body)?;
        let settings = Settings::parse(body, self.config.loopback)?;
        let action = Action::Put {
            source: source.to_owned(),
            version: Version(half(js::random())),
            condition: self.condition()?,
        };
        let body = settings.to_json().to_string();
        let response = self
            .call(source, action, Some(&body), settings.location)
            .await?;
        if response.ok() {
            // Other isolates learn of a changed policy from the object.
            policy::forget(source);
            // Its name may have been knocked at before.
            log::is_present(source);
            self.register(source, &response).await?;
        }
        Ok(Reply::Passed(response))
    }

    /// What the caller guards a change with.
    fn condition(&self) -> Result<Condition, FieldError> {
        let if_match = door::header(self.request, "If-Match");
        let if_none_match = door::header(self.request, "If-None-Match");
        Condition::parse(if_match.as_deref(), if_none_match.as_deref())
    }

    async fn explain(&self, source: &str, body: &[u8]) -> Result<Reply, Problem> {
        Report::parse(body, js::now())?;
        let body = String::from_utf8_lossy(body);
        let response = self.call(source, Action::Explain, Some(&body), None);
        Ok(Reply::Passed(response.await?))
    }

    async fn register(&self, source: &str, response: &Response) -> Result<(), Problem> {
        let copy = response.clone();
        let copy = copy.map_err(|error| Fault::because("an answer was not copied", error))?;
        let text = forward::text_of(&copy).await?;
        let known = said(&text)?;
        let moment = |name| Millis::from_epoch(natural(&known, name).unwrap_or(0));
        let call = DirectoryCall::Register {
            source: source.to_owned(),
            created_at: moment("createdAt"),
            updated_at: moment("updatedAt"),
            by: self.by(),
        };
        self.tell_directory(&call).await.map(|_| ())
    }

    fn by(&self) -> By {
        By {
            request: Some(self.id),
            ip: door::address_text(self.config, self.request),
        }
    }

    async fn tell_directory(&self, call: &DirectoryCall) -> Result<Response, Problem> {
        Ok(forward::directory(&self.config.directory, call).await?)
    }

    /// The directory forgets the source also where the source is gone already:
    /// an earlier attempt may have come half way.
    async fn delete(&self, source: &str) -> Result<Reply, Problem> {
        let action = Action::Delete {
            condition: self.condition()?,
        };
        let response = self.call(source, action, None, None).await?;
        if response.status() == Kind::PreconditionFailed.status() {
            return Ok(Reply::Passed(response));
        }
        let source = source.to_owned();
        let by = self.by();
        self.tell_directory(&DirectoryCall::Remove { source, by })
            .await?;
        Ok(Reply::Passed(response))
    }

    async fn list_sources(&self, query: &str) -> Result<Reply, Problem> {
        let (limit, after) = forwards::<SourceName>(query)?;
        let call = DirectoryCall::List {
            limit,
            after: after.map_or_else(String::new, |name| name.0),
        };
        self.list(&call).await
    }

    async fn audit(&self, query: &str) -> Result<Reply, Problem> {
        let (limit, before) = backwards(query)?;
        self.list(&DirectoryCall::Audit { limit, before }).await
    }

    async fn metrics(&self) -> Result<Reply, Problem> {
        let text = self.ask_directory(&DirectoryCall::Metrics).await?;
        Ok(Reply::Ours(HttpAnswer::metrics(text)))
    }

    /// A list as the directory wrote it, under the id of this request.
    async fn list(&self, call: &DirectoryCall) -> Result<Reply, Problem> {
        Ok(Reply::Ours(HttpAnswer {
            status: 200,
            headers: Vec::new(),
            body: self.ask_directory(call).await?,
        }))
    }

    async fn ask_directory(&self, call: &DirectoryCall) -> Result<String, Problem> {
        let response = self.tell_directory(call).await?;
        if !response.ok() {
            // Of the version before, it doesn't know what it is asked for.
            let status = response.status();
            return Err(Fault::because("the directory can't say", status).into());
        }
        Ok(forward::text_of(&response).await?)
    }
}

/// 64 of 128 random bits.
fn half(bits: u128) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "half of the bits is meant")]
    let half = bits as u64;
    half
}

/// What an object's answer says.
fn said(text: &str) -> Result<Fields<'_>, Fault> {
    Fields::of_body(text.as_bytes())
        .map_err(|error| Fault::because("an object's answer can't be read", error.message))
}

fn natural(said: &Fields<'_>, name: &'static str) -> Option<u64> {
    said.natural(name).ok().flatten()
}
