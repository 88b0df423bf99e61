//! The vocabulary of the governor: what it is told, what it answers, what the
//! shell must do about it. Plain data, no logic.

use super::ids::{AttemptId, KeyId, Ref, RequestId, SlotId, SlotSecret};
use super::settings::Settings;
use super::time::{Millis, Span};
use crate::outcome::Report;
use crate::wire::request::Carrier;

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
    /// When that key ends, where that is known: nobody waits longer.
    pub expires: Option<Millis>,
    /// How it came.
    pub carrier: Carrier,
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

/// Why someone who was let in may not come in any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dismissal {
    KeyEnded,
    KeyRevoked,
    SourceDeleted,
    /// The source doesn't take keys that come this way any more.
    WrongCarrier,
}

#[derive(Clone, Debug)]
pub enum Verdict {
    Granted(Grant),
    /// Not now. The reason says when, where that is known.
    Refused(Refusal),
    /// Waited as long as allowed. Why there was no slot at the end of that time;
    /// never a full queue.
    TimedOut(Refusal),
    /// May not come in any more.
    Dismissed(Dismissal),
    /// Its address may not come in any more.
    Forbidden,
}

#[derive(Clone, Debug)]
pub struct Grant {
    pub slot: SlotId,
    pub lease_deadline: Millis,
    pub request_deadline: Millis,
    pub term: Span,
    pub renew_interval: Span,
    /// The caller repeats an attempt: it holds its slot already, or was queued
    /// before this call joined it.
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
    /// A waiter has left the queue unanswered: it must show more than it did, and
    /// then call again with the time that it has waited.
    Ask { request: RequestId },
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
    /// The slot that a repeat was answered with, which another one took.
    pub replays: Option<Ref>,
}

impl Attempt {
    /// The slot that the caller was told of.
    pub fn slot_reference(&self) -> Option<Ref> {
        self.slot.as_ref().map(|_| self.reference).or(self.replays)
    }
}

/// The part of a row that makes it a slot.
#[derive(Clone, Debug)]
pub struct SlotRow {
    pub secret: SlotSecret,
    pub attempt: AttemptId,
    pub lease_deadline: Millis,
    pub request_deadline: Millis,
}

/// Makes the one table of how an attempt may end out of a line for each word.
macro_rules! outcomes {
    ($($word:ident { $(
        $(#[$doc:meta])* $variant:ident $(($count:ty))? = $status:literal $(at door $door:literal)?
    ),+ })+) => {
        /// How an attempt ended, as the access log says it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Outcome {
            $($($(#[$doc])* $variant $(($count))?,)+)+
        }

        /// The words in their order, so that each has a place.
        #[expect(non_camel_case_types, reason = "a word is written as it is sent")]
        #[derive(Clone, Copy)]
        enum Word {
            $($word,)+
        }

        impl Outcome {
            /// The words of all outcomes. What is stored names them, so their order
            /// may change and new ones may come.
            pub const WORDS: [&str; [$(stringify!($word)),+].len()] = [$(stringify!($word)),+];

            /// What may end an acquire before it came to the governor, each under
            /// a name of its own, where the log may have one word for two.
            pub const AT_DOOR: &[(&str, Self)] = &[$($($(($door, Self::$variant),)?)+)+];

            /// The place of its word among [`Self::WORDS`].
            pub const fn place(self) -> usize {
                let word = match self {
                    $($(Self::$variant { .. } => Word::$word,)+)+
                };
                word as usize
            }

            /// The word in the log, in the counts, and in `reason` of an error body.
            pub const fn word(self) -> &'static str {
                match self {
                    $($(Self::$variant { .. } => stringify!($word),)+)+
                }
            }

            /// The HTTP status that the caller got, 499 where it went away, 0 where
            /// it stands for several.
            pub const fn status(self) -> u16 {
                match self {
                    $($(Self::$variant { .. } => $status,)+)+
                }
            }
        }
    };
}

outcomes! {
    granted { Granted = 200 }
    queue_full { QueueFull = 429 }
    cooldown { Cooldown = 429 }
    rpm { Rpm = 429 }
    no_free_slot { NoFreeSlot = 429 }
    queue_timeout { QueueTimeout = 504 }
    unauthorized {
        /// At the door or while waiting.
        Unauthorized = 401 at door "unauthorized",
        /// At the door or while waiting.
        Forbidden = 403 at door "forbidden"
    }
    invalid_request { InvalidRequest = 400 at door "invalid_request" }
    request_timeout { RequestTimeout = 408 at door "request_timeout" }
    payload_too_large { PayloadTooLarge = 413 at door "payload_too_large" }
    left { Left = 499 at door "left" }
    omitted {
        /// So many refusals at the door were left out of the log here.
        Omitted(u32) = 0
    }
}

impl Outcome {
    /// How many callers it stands for, where that isn't one.
    pub const fn omitted(self) -> Option<u32> {
        match self {
            Self::Omitted(count) => Some(count),
            _ => None,
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
