//! Control calls as the source's object carries them out, each in one turn with
//! its entry in the audit log.

mod keys;
mod learned;
mod refused;
mod views;

use wasm_bindgen_futures::JsFuture;

use super::store::{Audited, Header, Write};
use super::turn::{Object, Source};
use super::{Fault, js};
use crate::access::families::Families;
use crate::access::policy::Loopback;
use crate::governor::Governor;
use crate::governor::command::Command;
use crate::governor::ids::{Ref, Version};
use crate::governor::settings::Settings;
use crate::governor::snapshot::Snapshot;
use crate::governor::time::Millis;
use crate::json::{Json, object};
use crate::outcome::Report;
use crate::protocol::control::{Action, Condition, ControlCall};
use crate::wire::answer::HttpAnswer;
use crate::wire::problem::Problem;

/// # Errors
/// If storage failed; then nothing was changed.
pub async fn serve(object: &Object, call: ControlCall, body: &str) -> Result<HttpAnswer, Fault> {
    let operation = Operation {
        object,
        now: js::now(),
        call: &call,
    };
    match &call.action {
        Action::Put {
            source,
            version,
            condition,
        } => operation.put(source, *version, condition, body),
        Action::Delete { condition } => operation.delete(condition).await,
        action => operation.turn(|source| operation.at_source(source, action, body)),
    }
}

/// One control call at work.
struct Operation<'a> {
    object: &'a Object,
    now: Millis,
    call: &'a ControlCall,
}

impl Operation<'_> {
    fn turn(
        &self,
        work: impl FnOnce(&mut Source) -> Result<HttpAnswer, Fault>,
    ) -> Result<HttpAnswer, Fault> {
        self.object.turn(self.now, |place| match place {
            Some(source) => {
                // What is shown and done is as of now, not as of the last call.
                self.object
                    .apply(source, self.now, Command::Tick, |_| Vec::new())?;
                work(source)
            }
            None => Ok(Problem::unknown("source").into_answer()),
        })
    }

    fn at_source(
        &self,
        source: &mut Source,
        action: &Action,
        body: &str,
    ) -> Result<HttpAnswer, Fault> {
        match action {
            Action::Slots { limit, after } => Ok(views::slots(source, *limit, *after)),
            Action::Keys { limit, after } => Ok(views::keys(source, self.now, *limit, *after)),
            Action::Log {
                limit,
                before,
                sought,
            } => {
                let page = self.object.store.log(*limit, *before, *sought)?;
                Ok(views::entries(page))
            }
            Action::Audit { limit, before } => {
                let page = self.object.store.audit_log(*limit, *before)?;
                Ok(views::entries(page))
            }
            Action::Force { reference } => self.force(source, *reference),
            Action::Mint {
                key,
                ttl,
                refresh_ttl,
                digest,
            } => self.mint(source, *key, self.family(body, *ttl, *refresh_ttl, *digest)),
            Action::Refresh {
                key,
                shown,
                successor,
            } => self.refresh(source, *key, *shown, *successor),
            Action::Revoke { key } => self.revoke(source, *key),
            Action::Reset => self.reset(source),
            Action::Explain => Ok(self.explain(source, body)),
            Action::Show | Action::Put { .. } | Action::Delete { .. } => {
                Ok(views::document(200, source, self.now))
            }
        }
    }

    fn audited(&self, action: &'static str, detail: Json) -> Audited {
        Audited {
            at: self.now,
            request: self.call.request,
            ip: self.call.ip.clone(),
            action,
            detail,
        }
    }

    fn put(
        &self,
        name: &str,
        version: Version,
        condition: &Condition,
        body: &str,
    ) -> Result<HttpAnswer, Fault> {
        // Checked at the door; it can only fail where two versions meet.
        let settings = match Settings::parse(body.as_bytes(), Loopback::Allowed) {
            Ok(settings) => settings,
            Err(error) => return Ok(Problem::from(error).into_answer()),
        };
        self.object.turn(self.now, |place| {
            if !condition.holds(place.as_ref().map(|source| source.header.version)) {
                return Ok(Problem::precondition_failed().into_answer());
            }
            if let Some(source) = place {
                self.change(source, version, settings)?;
                return Ok(views::document(200, source, self.now));
            }
            let source = self.create(name, version, settings)?;
            let answer = views::document(201, &source, self.now);
            *place = Some(source);
            Ok(answer)
        })
    }

    fn create(
        &self,
        name: &str,
        version: Version,
        settings: Settings,
    ) -> Result<Box<Source>, Fault> {
        let header = Header {
            name: name.to_owned(),
            version,
            created_at: self.now,
            updated_at: self.now,
        };
        let audited = self.audited("created", settings.to_json());
        let write = Write::Source {
            header: &header,
            settings: &settings,
        };
        self.object
            .store
            .commit(&[Write::Create, write, Write::Audit(audited)])?;
        let snapshot = Snapshot {
            seen: self.now,
            ..Snapshot::default()
        };
        let governor = Governor::load(settings, snapshot)
            .map_err(|broken| Fault::because("a new governor is broken", broken))?;
        Ok(Box::new(Source::new(header, governor, Families::default())))
    }

    /// Takes effect at once, for waiters too. The same settings again change
    /// nothing, and keep their version.
    fn change(
        &self,
        source: &mut Source,
        version: Version,
        settings: Settings,
    ) -> Result<(), Fault> {
        if *source.governor.settings() == settings {
            return Ok(());
        }
        let audited = self.audited("changed", settings.to_json());
        source.header.version = version;
        source.header.updated_at = self.now;
        let command = Command::Configure(Box::new(settings));
        self.object.apply(source, self.now, command, |source| {
            let settings = source.governor.settings();
            let header = &source.header;
            vec![Write::Source { header, settings }, Write::Audit(audited)]
        })?;
        Ok(())
    }

    async fn delete(&self, condition: &Condition) -> Result<HttpAnswer, Fault> {
        let deleting = self.object.turn(self.now, |place| {
            let Some(source) = place else {
                return Ok(Err(Problem::unknown("source")));
            };
            if !condition.holds(Some(source.header.version)) {
                return Ok(Err(Problem::precondition_failed()));
            }
            let step = source.governor.apply(self.now, Command::Close);
            let deleting = self.object.store.delete_all()?;
            *place = None;
            self.object.waiting.timer().stop();
            self.object.news.stop();
            self.object.answer_waiters(step.effects);
            Ok(Ok(deleting))
        })?;
        let deleting = match deleting {
            Ok(deleting) => deleting,
            Err(problem) => return Ok(problem.into_answer()),
        };
        JsFuture::from(deleting)
            .await
            .map_err(|error| Fault::because("the storage was not deleted", error))?;
        Ok(HttpAnswer::json(200, &object! {"deleted": true}))
    }

    fn reset(&self, source: &mut Source) -> Result<HttpAnswer, Fault> {
        let audited = self.audited("reset", object! {});
        self.object.apply(source, self.now, Command::Reset, |_| {
            vec![Write::Audit(audited)]
        })?;
        Ok(HttpAnswer::json(200, &object! {"reset": true}))
    }

    fn explain(&self, source: &Source, body: &str) -> HttpAnswer {
        // Checked at the door; it can only fail where two versions meet.
        match Report::parse(body.as_bytes(), self.now) {
            Ok(report) => learned::explanation(&source.governor, &report, self.now),
            Err(error) => Problem::from(error).into_answer(),
        }
    }

    fn force(&self, source: &mut Source, reference: Ref) -> Result<HttpAnswer, Fault> {
        if source.governor.find(reference).is_none() {
            return Ok(Problem::unknown("slot").into_answer());
        }
        let audited = self.audited("forced", object! {"ref": reference.to_string()});
        let command = Command::Force { reference };
        self.object
            .apply(source, self.now, command, |_| vec![Write::Audit(audited)])?;
        Ok(HttpAnswer::json(200, &object! {"released": true}))
    }
}
