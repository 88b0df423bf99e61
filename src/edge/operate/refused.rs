//! Refresh tokens that were refused by the source's object: written here, but good
//! no more. They are counted, and said in the platform's log now and then; they
//! cost no row.

use super::Operation;
use crate::access::refused::Refusals;
use crate::edge::js;
use crate::edge::turn::Source;
use crate::governor::ids::KeyId;
use crate::governor::time::Span;
use crate::wire::answer::HttpAnswer;
use crate::wire::line;
use crate::wire::problem::Problem;

/// The least time between two lines of a source.
const QUIET: Span = Span::from_seconds(10);

impl Operation<'_> {
    /// The answer to such a token of the family `key`.
    pub(super) fn refuse_refresh(
        &self,
        source: &mut Source,
        key: KeyId,
        problem: Problem,
    ) -> HttpAnswer {
        source.governor.count_refused_refresh();
        source.refusals_unsaid = source.refusals_unsaid.saturating_add(1);
        self.object.watch_for_news(source, self.now);
        let quiet_since = source.refusal_said.plus(QUIET);
        if quiet_since <= self.now || source.refusal_said > self.now {
            let refusals = Refusals {
                count: source.refusals_unsaid,
                ip: self.call.ip.clone(),
                source: Some(source.header.name.clone()),
            };
            js::log_line(&line::of_refused_refreshes(key, &refusals));
            source.refusals_unsaid = 0;
            source.refusal_said = self.now;
        }
        problem.into_answer()
    }
}
