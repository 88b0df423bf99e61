//! Keys at the edge: minted for operators, refreshed for whoever holds a refresh
//! token. The tokens are written here, and never kept: the source's object knows
//! digests only.

use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast as _, JsValue};
use web_sys::{Request, Response};

use super::{Operator, half, natural, said};
use crate::access::keys::{KeyGrant, SigningKeys};
use crate::access::names::key_name_of;
use crate::access::refresh::RefreshSecret;
use crate::access::refused::Credential;
use crate::edge::config::Config;
use crate::edge::js::Context;
use crate::edge::{Fault, Reply, answered, door, forward, js, refused};
use crate::fields::{FieldError, Fields, check_strictly};
use crate::governor::ids::{KeyId, RequestId};
use crate::governor::time::{Millis, Span};
use crate::json::object;
use crate::protocol::control::Action;
use crate::wire::MOST_BODY_BYTES;
use crate::wire::answer::HttpAnswer;
use crate::wire::problem::{Kind, Problem};

/// How long a key lives unless the operator says.
const KEY_TTL: Span = Span::from_seconds(3600);
const MOST_KEY_TTL_MS: u64 = 30 * 86_400_000;
/// How long a refresh token lives unless the operator says.
const REFRESH_TTL: Span = Span::from_seconds(30 * 86_400);
const MOST_REFRESH_TTL_MS: u64 = 365 * 86_400_000;
const LEAST_TTL_MS: u64 = 1000;
/// Longer than any token that is looked at, so that none is called malformed.
const MOST_TOKEN_CHARS: usize = 4096;

/// A refresh shows its credential in the body: until that is there, nothing of
/// Rust stands.
pub fn refresh(request: &Request, context: &Context, id: RequestId, source: &str) -> Reply {
    REFRESH.with(|settle| {
        let settle = settle.as_ref().unchecked_ref();
        let said = format!("{id} {source}");
        let read = js::read_then(
            request,
            MOST_BODY_BYTES,
            door::STRANGERS_BODY_PATIENCE_MS,
            context,
            &said,
            settle,
        );
        Reply::Promised(read)
    })
}

type Refreshing =
    Closure<dyn Fn(Request, Context, String, JsValue, f64) -> Result<JsValue, JsValue>>;

thread_local! {
    /// One for the isolate: a closure for each call would leak with it.
    static REFRESH: Refreshing = Closure::own_assert_unwind_safe(|request: Request, context: Context, said: String, body, _took| {
        let (id, source) = said.split_once(' ').unwrap_or_default();
        let (id, source) = (id.parse().unwrap_or_else(|_| js::request_id()), source.to_owned());
        answered(id, &context.clone(), async move {
            let Some(config) = Config::known() else {
                return Fault::because("a call without a deployment", id).into();
            };
            let operator = Operator { config: &config, request: &request, id };
            let done = operator.refresh(&source, door::body_of(body)).await;
            if matches!(&done, Err(problem) if problem.kind == Kind::Unauthorized) {
                let ip = door::address_text(&config, &request);
                refused::note(&config, &context, Credential::Refresh, Some(&source), ip);
            }
            done.unwrap_or_else(Reply::from).noted(&source, id)
        })
    });
}

impl Operator<'_> {
    pub(super) async fn mint(&self, source: &str, body: &[u8]) -> Result<Reply, Problem> {
        let signing = self.config.signing()?;
        check_strictly(body)?;
        let fields = Fields::of_body(body)?;
        let name = key_name_of(&fields)?;
        let ttl = fields.within("ttlMs", LEAST_TTL_MS, MOST_KEY_TTL_MS)?;
        let refresh_ttl = fields.within("refreshTtlMs", LEAST_TTL_MS, MOST_REFRESH_TTL_MS)?;
        fields.no_others()?;
        let key = KeyId(half(js::random()));
        let secret = random_secret();
        let action = Action::Mint {
            key,
            ttl: ttl.map_or(KEY_TTL, Span::from_ms),
            refresh_ttl: refresh_ttl.map_or(REFRESH_TTL, Span::from_ms),
            digest: secret.digest(),
        };
        let response = self.call(source, action, name.as_deref(), None).await?;
        self.hand_out(signing, source, key, secret, response).await
    }

    async fn refresh(
        &self,
        source: &str,
        body: Result<Vec<u8>, Problem>,
    ) -> Result<Reply, Problem> {
        let signing = self.config.signing()?;
        let body = body?;
        check_strictly(&body)?;
        let fields = Fields::of_body(&body)?;
        let token = fields.text("refreshToken", 1, MOST_TOKEN_CHARS)?;
        fields.no_others()?;
        let token = token.ok_or_else(|| {
            FieldError::new(
                "refreshToken",
                "refreshToken must be the token that came with the key.",
            )
        })?;
        let shown = signing
            .read_refresh(&token, source)
            .ok_or_else(Problem::bad_refresh_token)?;
        let action = Action::Refresh {
            key: shown.key,
            shown: shown.secret.digest(),
            successor: shown.successor.digest(),
        };
        let response = self.call(source, action, None, None).await?;
        // A source that isn't there is no different from a token that isn't good.
        if response.status() == Kind::NotFound.status() {
            return Err(Problem::bad_refresh_token());
        }
        self.hand_out(signing, source, shown.key, shown.successor, response)
            .await
    }

    /// Writes the tokens of a family that the object has taken note of.
    async fn hand_out(
        &self,
        signing: &SigningKeys,
        source: &str,
        key: KeyId,
        secret: RefreshSecret,
        response: Response,
    ) -> Result<Reply, Problem> {
        if !response.ok() {
            return Ok(Reply::Passed(response));
        }
        let status = response.status();
        let text = forward::text_of(&response).await?;
        let family = said(&text)?;
        let expires_at = natural(&family, "expiresAt");
        let grant = KeyGrant {
            source: source.to_owned(),
            key,
            expires_at: Millis::from_epoch(expires_at.unwrap_or_default()),
        };
        let unsigned = || Fault::because("a key was not signed", key);
        let handed_out = object! {
            "keyId": key.to_string(),
            "accessKey": signing.sign(&grant).ok_or_else(unsigned)?,
            "expiresAt": expires_at,
            "refreshToken": signing.write_refresh(source, key, secret).ok_or_else(unsigned)?,
            "refreshExpiresAt": natural(&family, "refreshExpiresAt"),
        };
        Ok(Reply::Ours(HttpAnswer::json(status, &handed_out)))
    }
}

fn random_secret() -> RefreshSecret {
    let mut secret = [0; 32];
    let (first, second) = secret.split_at_mut(16);
    first.copy_from_slice(&js::random().to_be_bytes());
    second.copy_from_slice(&js::random().to_be_bytes());
    RefreshSecret(secret)
}
