//! Control routes at the edge: the admin token, the body, then the source's
//! object, and the directory where the list of sources changes.
//!
//! A route that touches both writes the source first; both writes may be
//! repeated.

use std::rc::Rc;

use serde_json::json;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, Response};

use super::config::Config;
use super::{Fault, Reply, door, forward, js};
use crate::access::keys::KeyGrant;
use crate::fields::{FieldError, Fields};
use crate::governor::ids::{KeyId, RequestId, Version};
use crate::governor::settings::Settings;
use crate::governor::time::{Millis, Span};
use crate::protocol::control::{Action, Condition, ControlCall};
use crate::protocol::directory::DirectoryCall;
use crate::wire::answer::HttpAnswer;
use crate::wire::paging::Page;
use crate::wire::problem::{Kind, Problem};
use crate::wire::route::{Control, is_source_name};

/// How long a key lives unless the operator says.
const KEY_TTL: Span = Span::from_seconds(3600);
const LEAST_KEY_TTL_MS: u64 = 1000;
const MOST_KEY_TTL_MS: u64 = 30 * 86_400_000;
/// Characters of a key's name.
const MOST_NAME_CHARS: usize = 100;

/// One control request, and what it may use.
struct Operator<'a> {
    config: &'a Rc<Config>,
    request: &'a Request,
    id: RequestId,
}

pub async fn serve(
    config: &Rc<Config>,
    request: &Request,
    id: RequestId,
    control: Control<'_>,
    query: &str,
) -> Reply {
    if let Err(problem) = door::admin(config, request) {
        return problem.into();
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
        Control::PutSource(source) => operator.put(source, &body).await,
        Control::ShowSource(source) => operator.pass(source, Ok(Action::Show)).await,
        Control::DeleteSource(source) => operator.delete(source).await,
        Control::ListSlots(source) => {
            let action = Page::parse(query).map(|page| Action::Slots {
                limit: page.limit,
                after: page.after.parse().ok(),
            });
            operator.pass(source, action).await
        }
        Control::ForceRelease { source, reference } => match reference.parse() {
            Ok(reference) => operator.pass(source, Ok(Action::Force { reference })).await,
            Err(_) => Err(unknown("slot")),
        },
        Control::MintKey(source) => operator.mint(source, &body).await,
        Control::ListKeys(source) => {
            let action = Page::parse(query).map(|page| Action::Keys {
                limit: page.limit,
                after: page.after.parse().ok(),
            });
            operator.pass(source, action).await
        }
        Control::RevokeKey { source, key } => match key.parse() {
            Ok(key) => operator.pass(source, Ok(Action::Revoke { key })).await,
            Err(_) => Err(unknown("key")),
        },
    };
    done.unwrap_or_else(Reply::from)
}

fn unknown(what: &str) -> Problem {
    Problem::new(Kind::NotFound, format!("There is no such {what}."))
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
            action,
        };
        Ok(forward::control(self.config, source, &call, body, near).await?)
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
        let settings = Settings::parse(body)?;
        let if_match = door::header(self.request, "If-Match");
        let if_none_match = door::header(self.request, "If-None-Match");
        let action = Action::Put {
            source: source.to_owned(),
            version: Version(half(js::random())),
            condition: Condition::parse(if_match.as_deref(), if_none_match.as_deref())?,
        };
        let body = settings.to_json().to_string();
        let response = self
            .call(source, action, Some(&body), settings.location)
            .await?;
        if response.ok() {
            self.register(source, &response).await?;
        }
        Ok(Reply::Passed(response))
    }

    async fn register(&self, source: &str, response: &Response) -> Result<(), Problem> {
        let known = json_of(response.clone()).await?;
        let moment = |name| {
            Millis::from_epoch(
                known
                    .get(name)
                    .and_then(serde_json::Value::as_u64)
                    .unwrap_or(0),
            )
        };
        let call = DirectoryCall::Register {
            source: source.to_owned(),
            created_at: moment("createdAt"),
            updated_at: moment("updatedAt"),
        };
        self.tell_directory(&call).await.map(|_| ())
    }

    async fn tell_directory(&self, call: &DirectoryCall) -> Result<Response, Problem> {
        Ok(forward::directory(self.config, call).await?)
    }

    /// The directory forgets the source also where the source is gone already:
    /// an earlier attempt may have come half way.
    async fn delete(&self, source: &str) -> Result<Reply, Problem> {
        let response = self.call(source, Action::Delete, None, None).await?;
        let source = source.to_owned();
        self.tell_directory(&DirectoryCall::Remove { source })
            .await?;
        Ok(Reply::Passed(response))
    }

    async fn list_sources(&self, query: &str) -> Result<Reply, Problem> {
        let page = Page::parse(query)?;
        // What is no name comes before or after the names, by its bytes; only a
        // name may go on.
        let after = if is_source_name(page.after) {
            page.after
        } else {
            ""
        };
        let call = DirectoryCall::List {
            limit: page.limit,
            after: after.to_owned(),
        };
        let response = self.tell_directory(&call).await?;
        let list = text_of(&response).await?;
        Ok(Reply::Ours(HttpAnswer {
            status: 200,
            headers: Vec::new(),
            body: list,
        }))
    }

    async fn mint(&self, source: &str, body: &[u8]) -> Result<Reply, Problem> {
        let signing = self.config.signing()?;
        let fields = Fields::of_body(body)?;
        let name = fields.text("name", 1, MOST_NAME_CHARS)?;
        let ttl = fields.within("ttlMs", LEAST_KEY_TTL_MS, MOST_KEY_TTL_MS)?;
        fields.no_others()?;
        let grant = KeyGrant {
            source: source.to_owned(),
            key: KeyId(half(js::random())),
            expires_at: js::now().plus(ttl.map_or(KEY_TTL, Span::from_ms)),
        };
        let action = Action::Mint {
            key: grant.key,
            expires_at: grant.expires_at,
        };
        let response = self.call(source, action, name.as_deref(), None).await?;
        if !response.ok() {
            return Ok(Reply::Passed(response));
        }
        let access_key = signing
            .sign(&grant)
            .ok_or_else(|| Fault::because("a key was not signed", grant.key))?;
        let minted = json!({
            "keyId": grant.key.to_string(),
            "accessKey": access_key,
            "expiresAt": grant.expires_at.epoch_ms(),
        });
        Ok(Reply::Ours(HttpAnswer::json(201, &minted)))
    }
}

/// 64 of 128 random bits.
fn half(bits: u128) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "half of the bits is meant")]
    let half = bits as u64;
    half
}

async fn text_of(response: &Response) -> Result<String, Fault> {
    let broken = |error| Fault::because("an object's answer can't be read", error);
    let text = JsFuture::from(response.text().map_err(broken)?).await;
    Ok(text.map_err(broken)?.as_string().unwrap_or_default())
}

async fn json_of(
    response: Result<Response, wasm_bindgen::JsValue>,
) -> Result<serde_json::Value, Fault> {
    let response = response.map_err(|error| Fault::because("an answer was not copied", error))?;
    let text = text_of(&response).await?;
    serde_json::from_str(&text).map_err(|error| Fault::because("an object's answer", error))
}
