//! Key families at the source's object: mint, refresh, revoke. Only digests
//! come here.

use super::Operation;
use crate::access::families::{Family, Refresh, Trade};
use crate::access::refresh::SecretDigest;
use crate::edge::Fault;
use crate::edge::store::{Refreshed, Write};
use crate::edge::turn::Source;
use crate::governor::command::Command;
use crate::governor::ids::KeyId;
use crate::governor::time::Span;
use crate::json::object;
use crate::wire::answer::HttpAnswer;
use crate::wire::problem::{Kind, Problem};

impl Operation<'_> {
    pub(super) fn family(
        &self,
        name: &str,
        ttl: Span,
        refresh_ttl: Span,
        digest: SecretDigest,
    ) -> Family {
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        Family::minted(name, self.now, ttl, refresh_ttl, digest)
    }

    pub(super) fn mint(
        &self,
        source: &mut Source,
        key: KeyId,
        family: Family,
    ) -> Result<HttpAnswer, Fault> {
        let pruned = source.families.prune(self.now);
        let is_full = source.families.is_full();
        let detail = object! {"keyId": key.to_string(), "name": family.name.as_deref()};
        let audited = self.audited("minted", detail);
        let mut writes: Vec<Write> = pruned.into_iter().map(Write::ForgetFamily).collect();
        if !is_full {
            let family = &family;
            writes.push(Write::Family { key, family });
            writes.push(Write::Audit(audited));
        }
        self.object.store.commit(&writes)?;
        if is_full {
            return Ok(Problem::new(
                Kind::TooManyKeys,
                "The source has as many keys as it can keep; wait until some have expired for a day.",
            )
            .into_answer());
        }
        let answer = handed_out(201, &family);
        source.families.insert(key, family);
        Ok(answer)
    }

    pub(super) fn refresh(
        &self,
        source: &mut Source,
        key: KeyId,
        shown: SecretDigest,
        successor: SecretDigest,
    ) -> Result<HttpAnswer, Fault> {
        let policy = &source.governor.settings().access;
        let traded = Trade {
            shown,
            successor,
            is_admitted: policy.admits(self.call.ip.as_deref()),
        };
        let problem = match source.families.refresh(key, &traded, self.now) {
            Refresh::Rotated => return self.hand_out(source, key, true),
            Refresh::Again => return self.hand_out(source, key, false),
            Refresh::Refused(why) => Problem::dead_refresh_token(why),
            Refresh::Forbidden => Problem::forbidden_address(),
            Refresh::Reused => {
                self.dismiss(source, key, "a retired refresh token was used again")?;
                Problem::reused_refresh_token()
            }
        };
        Ok(self.refuse_refresh(source, key, problem))
    }

    /// Answers a refresh, with its entry in the audit log.
    fn hand_out(
        &self,
        source: &Source,
        key: KeyId,
        has_changed: bool,
    ) -> Result<HttpAnswer, Fault> {
        let Some(family) = source.families.find(key) else {
            return Ok(Problem::bad_refresh_token().into_answer());
        };
        let refreshed = Refreshed {
            key,
            at: self.now,
            request: self.call.request,
            ip: self.call.ip.clone(),
            before: self.object.store.last_refresh(key)?,
        };
        let changed = has_changed.then_some(Write::Family { key, family });
        let refreshed = Write::Refreshed(refreshed);
        let writes: Vec<Write> = changed.into_iter().chain([refreshed]).collect();
        self.object.store.commit(&writes)?;
        Ok(handed_out(200, family))
    }

    pub(super) fn revoke(&self, source: &mut Source, key: KeyId) -> Result<HttpAnswer, Fault> {
        if !source.families.revoke(key, self.now) {
            return Ok(Problem::unknown("live key").into_answer());
        }
        self.dismiss(source, key, "by an operator")?;
        let body = object! {"keyId": key.to_string(), "revoked": true};
        Ok(HttpAnswer::json(200, &body))
    }

    /// Writes down that a family is revoked, and turns its waiters away.
    fn dismiss(&self, source: &mut Source, key: KeyId, why: &str) -> Result<(), Fault> {
        let audited = self.audited("revoked", object! {"keyId": key.to_string(), "why": why});
        let command = Command::Dismiss { key };
        self.object.apply(source, self.now, command, |source| {
            let family = source.families.find(key);
            let write = family.map(|family| Write::Family { key, family });
            write.into_iter().chain([Write::Audit(audited)]).collect()
        })?;
        Ok(())
    }
}

/// What the Worker needs to write the tokens.
fn handed_out(status: u16, family: &Family) -> HttpAnswer {
    let body = object! {
        "expiresAt": family.expires_at.epoch_ms(),
        "refreshExpiresAt": family.refresh_expires_at.epoch_ms(),
    };
    HttpAnswer::json(status, &body)
}
