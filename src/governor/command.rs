//! The vocabulary of the governor: what it is told, what it answers, what the
//! shell must do about it. Plain data, no logic.

use super::ids::{AttemptId, KeyId, Ref, RequestId, SlotId, SlotSecret};
use super::settings::Settings;
use super::time::{Millis, Span};
use crate::outcome::Report;

/// One thing to do, at one moment.
#[derive(Clone, Debug)]
pub enum Command {
    Acquire(Acquire),
    /// The caller of a waiting acquire went away.
    Leave {
        attempt: AttemptId,
        request: RequestId,
    },
    Renew {
        slot: SlotId,
    },
    Release {
        slot: SlotId,
        report: Report,
    },
    /// Time has passed: an alarm, or a timer.
    Tick,
    Configure(Box<Settings>),
    /// What was learned is forgotten, a cool-down too.
    Reset,
    /// An operator takes a slot back.
    Force {
        reference: Ref,
    },
    /// A key family was revoked: its waiters are turned away.
    Dismiss {
        key: KeyId,
    },
    /// Acquires that were refused at the door: only the log hears of them.
    TurnedAway(Vec<TurnedAway>),
    /// The source is about to be deleted: all waiters are turned away.
    Close,
}

/// An acquire that was refused before it came to the governor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnedAway {
    pub request: RequestId,
    /// `None`: the caller showed no validly signed key.
    pub key: Option<KeyId>,
    pub ip: Option<Box<str>>,
    pub outcome: Outcome,
    /// How long ago that was.
    pub ago: Span,
    /// Whether its key is good, as far as whoever says it knows: the others have a
    /// ring of their own.
    pub is_live: bool,
}

impl TurnedAway {
    /// Whether it has a key that was good once and isn't any more.
    pub fn is_dead(&self) -> bool {
        self.key.is_some() && !self.is_live
    }
}

#[derive(Clone, Debug)]
pub struct Acquire {
    pub request: RequestId,
    pub attempt: AttemptId,
    pub key: KeyId,
    /// The address at the door, as text for the access log.
    pub ip: Option<Box<str>>,
    /// How long the caller is ready to queue from now on; zero: fail fast.
    pub wait: Span,
    /// How long it queued before the object was reset and the Worker carried it
    /// over; zero for a newcomer.
    pub waited: Span,
    /// Random bits for the slot, should it be granted.
    pub secret: SlotSecret,
}

/// What a command comes to at once.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Nothing to say: `Leave`, `Tick`, `Configure`, `Reset`, `Dismiss`,
    /// `TurnedAway`, `Close`.
    Done,
    /// An acquire that was decided.
    Acquire(Answer),
    /// An acquire that waits; an [`Effect::Answer`] will follow.
    Queued,
    /// A renewal; `None`: no such slot is held.
    Renew(Option<Renewed>),
    /// Whether the slot was held until now.
    Release(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    Until(Millis),
    Capped,
}

/// What an acquire comes to.
#[derive(Clone, Debug)]
pub struct Answer {
    pub verdict: Verdict,
    /// How long it waited in the queue.
    pub queued: Span,
    /// The state of the governor right after this answer.
    pub gauge: Gauge,
}

#[derive(Clone, Debug)]
pub enum Verdict {
    Granted(Grant),
    /// Not now. The reason says when, where that is known.
    Refused(Refusal),
    /// Waited as long as allowed.
    TimedOut,
    /// The key was revoked, or the source deleted, while it waited.
    Dismissed,
}

#[derive(Clone, Debug)]
pub struct Grant {
    pub slot: SlotId,
    pub lease_deadline: Millis,
    pub request_deadline: Millis,
    pub term: Span,
    pub renew_interval: Span,
    /// A repeat of an attempt that holds its slot already.
    pub replayed: bool,
}

/// Why not now. Where a moment is carried, the same acquire is refused until
/// then and, if nobody else comes first, accepted at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    QueueFull { earliest_end: Option<Millis> },
    Cooldown { opens_at: Millis },
    Rpm { opens_at: Millis },
    NoFreeSlot { earliest_end: Option<Millis> },
}

/// Figures that every acquire answer carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    pub limit: u32,
    pub in_use: u32,
    pub depth: u32,
    pub rpm: Option<RpmGauge>,
}

impl Gauge {
    pub fn remaining(&self) -> u32 {
        self.limit.saturating_sub(self.in_use)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpmGauge {
    /// Grants a minute that the tightest gate in force lets through.
    pub limit: u32,
    /// Grants that all gates would let through now.
    pub remaining: u32,
}

/// What the shell must do after a step, in this order, in one transaction.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Write an attempt to its row, whatever stood there.
    Record(Attempt),
    /// A lease was extended: update its row.
    Extend { row: u32, lease_deadline: Millis },
    /// A slot came back before its lease ended: take it out of its row.
    End { row: u32 },
    /// These rows are not needed any more: delete them.
    Discard { rows: std::ops::Range<u32> },
    /// The gate opens at another moment: keep that.
    Cooldown { until: Option<Millis> },
    /// Something was learned: keep this text of it.
    Learned { text: String },
    /// A waiter is answered.
    Answer { request: RequestId, answer: Answer },
}

/// One acquire attempt as it is kept: log entry, slot and RPM mark in one row.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub row: u32,
    /// Ordinal among the attempts of the source, from 1.
    pub reference: Ref,
    pub at: Millis,
    pub request: RequestId,
    /// `None`: the caller showed no validly signed key.
    pub key: Option<KeyId>,
    pub ip: Option<Box<str>>,
    pub outcome: Outcome,
    pub queued: Span,
    /// Present where the attempt took a slot.
    pub slot: Option<SlotRow>,
}

/// The part of a row that makes it a slot.
#[derive(Clone, Debug)]
pub struct SlotRow {
    pub secret: SlotSecret,
    pub attempt: AttemptId,
    pub lease_deadline: Millis,
    pub request_deadline: Millis,
}

/// How an attempt ended, as the access log says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Granted,
    QueueFull,
    Cooldown,
    Rpm,
    NoFreeSlot,
    QueueTimeout,
    /// 401, at the door or while waiting.
    Unauthorized,
    /// 403 at the door.
    Forbidden,
    InvalidRequest,
    PayloadTooLarge,
    Left,
    /// So many refusals at the door were left out of the log here.
    Omitted(u32),
}

impl Outcome {
    /// How many callers it stands for, where that isn't one.
    pub const fn omitted(self) -> Option<u32> {
        match self {
            Self::Omitted(count) => Some(count),
            _ => None,
        }
    }

    /// The word in the log, and in `reason` of an error body.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::QueueFull => "queue_full",
            Self::Cooldown => "cooldown",
            Self::Rpm => "rpm",
            Self::NoFreeSlot => "no_free_slot",
            Self::QueueTimeout => "queue_timeout",
            Self::Unauthorized | Self::Forbidden => "unauthorized",
            Self::InvalidRequest => "invalid_request",
            Self::PayloadTooLarge => "payload_too_large",
            Self::Omitted(_) => "omitted",
            Self::Left => "left",
        }
    }

    /// The HTTP status that the caller got, 499 where it went away, 0 where it
    /// stands for several.
    pub const fn status(self) -> u16 {
        match self {
            Self::Omitted(_) => 0,
            Self::Granted => 200,
            Self::InvalidRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::PayloadTooLarge => 413,
            Self::QueueFull | Self::Cooldown | Self::Rpm | Self::NoFreeSlot => 429,
            Self::Left => 499,
            Self::QueueTimeout => 504,
        }
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::QueueFull { .. } => Self::QueueFull,
            Refusal::Cooldown { .. } => Self::Cooldown,
            Refusal::Rpm { .. } => Self::Rpm,
            Refusal::NoFreeSlot { .. } => Self::NoFreeSlot,
        }
    }
}
