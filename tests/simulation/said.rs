//! What is said to a caller, as far as a caller minds.

use swarmvia_locks::governor::command::{Answer, Renewed, Verdict};
use swarmvia_locks::governor::ids::SlotId;
use swarmvia_locks::governor::time::{Millis, Span};

#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub id: SlotId,
    pub until: Millis,
    pub term: Span,
    pub interval: Span,
}

#[derive(Clone, Copy, Debug)]
pub enum Said {
    Granted(Slot),
    Refused,
    TimedOut,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    Renewed(Option<Renewed>),
    Released(bool),
    /// The end of the new access key.
    Refreshed(Millis),
    /// Between Worker and object: memory was lost, call again.
    Again,
    /// Between Worker and object: the family is dead.
    DeadKey,
    /// 503.
    Failed,
    /// Nothing: the connection broke.
    Broken,
}

impl Said {
    pub fn of(answer: &Answer) -> Self {
        match &answer.verdict {
            Verdict::Granted(grant) => Self::Granted(Slot {
                id: grant.slot,
                until: grant.lease_deadline,
                term: grant.term,
                interval: grant.renew_interval,
            }),
            Verdict::Refused(_) => Self::Refused,
            Verdict::TimedOut(_) => Self::TimedOut,
            Verdict::Dismissed(_) => Self::Unauthorized,
            Verdict::Forbidden => Self::Forbidden,
        }
    }
}
