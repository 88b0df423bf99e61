//! What the callers and the object say to each other.

use swarmvia_locks::governor::command::{Answer, Renewed, Reply, Verdict};
use swarmvia_locks::governor::time::Millis;

use crate::support::START;

/// Where a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Idle,
    /// It came at that tick; carried over: it has queued before.
    Asking {
        since: u64,
        carried: bool,
    },
    /// It holds its slot until then, in ms since the start.
    Holding {
        until: u64,
        renewals: u8,
    },
    Renewing {
        until: u64,
    },
    Releasing,
    Done,
}

/// A slot as a message names it: by its secret. Rows come with the order of
/// what happened, which says nothing of what can happen.
pub type Name = u128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Said {
    Granted {
        slot: Name,
        until: u64,
    },
    /// No slot: refused or timed out.
    Refused,
    Until(u64),
    Capped,
    Gone,
    Released,
    Again,
}

impl Said {
    pub fn of(answer: &Answer) -> Self {
        match &answer.verdict {
            Verdict::Granted(grant) => Self::Granted {
                slot: grant.slot.secret.0,
                until: since_start(grant.lease_deadline),
            },
            _ => Self::Refused,
        }
    }

    pub fn reply(reply: &Reply) -> Self {
        match reply {
            Reply::Acquire(answer) => Self::of(answer),
            Reply::Renew(None) => Self::Gone,
            Reply::Renew(Some(Renewed::Capped)) => Self::Capped,
            Reply::Renew(Some(Renewed::Until(until))) => Self::Until(since_start(*until)),
            Reply::Release(_) => Self::Released,
            other => panic!("{other:?}"),
        }
    }
}

pub fn since_start(at: Millis) -> u64 {
    at.since(START).ms()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Acquire {
        attempt: u8,
        request: u8,
        wait: u64,
        waited: u64,
    },
    Renew(Name),
    Release(Name),
    Answer(Said),
}

/// One message of a try, and when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    pub at: u64,
    pub caller: usize,
    pub number: u8,
    pub kind: Kind,
}

impl Message {
    pub fn answer((caller, number): (usize, u8), said: Said, at: u64) -> Self {
        let kind = Kind::Answer(said);
        Self {
            at,
            caller,
            number,
            kind,
        }
    }

    pub fn by(self) -> (usize, u8) {
        (self.caller, self.number)
    }

    pub fn is_answer(self) -> bool {
        matches!(self.kind, Kind::Answer(_))
    }
}
