//! Admin and refresh tokens that were refused at the door, on their way to the
//! directory: a call every few seconds for each isolate at the most, and as many
//! lines in the platform's log. Nobody waits for it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use worker::Delay;

use super::config::Config;
use super::js::Context;
use super::{forward, js};
use crate::access::refused::{Credential, Gathered, Refusals};
use crate::protocol::directory::DirectoryCall;
use crate::wire::line;

/// How long refusals are gathered.
const GATHER: Duration = Duration::from_secs(3);

thread_local! {
    static REFUSED: RefCell<[Gathered; Credential::ALL.len()]> =
        const { RefCell::new([Gathered::none(), Gathered::none()]) };
}

fn with<T>(credential: Credential, work: impl FnOnce(&mut Gathered) -> T) -> Option<T> {
    REFUSED.with_borrow_mut(|all| all.get_mut(credential.place()).map(work))
}

/// Notes a refusal; the first of a while has all of it told.
pub fn note(
    config: &Rc<Config>,
    context: &Context,
    credential: Credential,
    source: Option<&str>,
    ip: Option<Box<str>>,
) {
    let one = Refusals {
        count: 1,
        ip,
        source: source.map(str::to_owned),
    };
    let is_first = with(credential, |gathered| gathered.note(js::now(), one));
    if is_first != Some(true) {
        return;
    }
    let config = Rc::clone(config);
    js::see_through(context, "refusals may go uncounted", async move {
        Delay::from(GATHER).await;
        tell(&config, credential).await;
    });
}

async fn tell(config: &Config, credential: Credential) {
    let Some(refusals) = with(credential, Gathered::take).filter(|known| known.count > 0) else {
        return;
    };
    js::log_line(&line::of_refusals(credential, &refusals));
    let call = DirectoryCall::Refused {
        credential,
        refusals: refusals.clone(),
    };
    // A directory of the version before doesn't know of them.
    let is_told = forward::directory(&config.directory, &call)
        .await
        .is_ok_and(|response| response.ok());
    if !is_told {
        with(credential, |gathered| gathered.put_back(refusals));
    }
}
