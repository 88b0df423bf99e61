//! What a simulation really reached: a fault that never happened proves nothing.

use std::fmt;

macro_rules! counters {
    ($($name:ident: $label:literal,)*) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug)]
        pub enum Seen { $($name,)* }

        const ALL: &[(Seen, &str)] = &[$((Seen::$name, $label),)*];
    };
}

counters! {
    Turn: "turns of the object",
    Load: "memory read from storage",
    // Faults.
    Evicted: "fault: evicted",
    CrashLost: "fault: crash before the commit, writes lost",
    CrashKept: "fault: crash after the commit, answers lost",
    CrashIdle: "fault: crash between turns",
    CrashWaiters: "fault: crash while callers wait",
    WriteFailed: "fault: a write fails",
    WriteReported: "fault: a write is done but reported failed",
    LoadBesidePending: "fault: memory read beside writes that are not durable",
    AlarmLate: "fault: alarm late",
    AlarmTwice: "fault: alarm twice",
    AlarmLost: "fault: alarm lost",
    AlarmAgain: "fault: alarm failed and set again",
    RequestLost: "fault: request lost, connection broken",
    RequestGhost: "fault: request reported lost, but delivered",
    RequestSilent: "fault: request lost without a word",
    RequestLate: "fault: request late",
    RequestTwice: "fault: a request meets itself in the queue",
    AnswerLost: "fault: answer lost inside the service",
    AnswerSilent: "fault: answer lost without a word",
    AnswerLostOutside: "fault: answer lost on the way to the caller",
    Overloaded: "fault: object overloaded",
    ClockBack: "fault: clock steps back",
    ClockForward: "fault: clock jumps forward",
    // Operators.
    Configured: "operator: settings changed",
    LimitBelowUse: "operator: limit lowered below what is in use",
    ConfiguredBesideWaiters: "operator: settings changed while callers wait",
    Revoked: "operator: key revoked",
    RevokedWaiters: "operator: key revoked while its callers wait",
    Deleted: "operator: source deleted",
    DeletedWaiters: "operator: source deleted while callers wait",
    DeletedHolders: "operator: source deleted while slots are held",
    Recreated: "operator: source made anew",
    Forced: "operator: slot taken back",
    Reset: "operator: learning reset",
    OperationFailed: "operator: an operation fails",
    // Callers.
    Vanished: "caller: vanishes with its slot",
    LeftNoticed: "caller: leaves the queue, noticed",
    LeftUnnoticed: "caller: leaves the queue, unnoticed",
    LeftUnread: "caller: has left before its request arrives",
    Repeated: "caller: repeats with its Idempotency-Key",
    Stalled: "caller: stalls past its lease",
    Hoarded: "caller: renews until it is capped",
    ReleasedTwice: "caller: releases twice",
    Stray: "caller: names a slot that isn't its own",
    Forged: "caller: forges a slot id",
    DeadKey: "caller: shows a dead key",
    OwnerCrashed: "owner: crashes before it has written its new pair down",
    ThiefFirst: "thief: has an answer for a token that its owner shows again",
    ThiefNoticed: "thief: shows a token whose successor is in use, and ends the family",
    // The Worker.
    Carried: "Worker: carries a waiter over",
    CarriedBeyondDepth: "Worker: carries a waiter over into a full queue",
    CountedAnew: "Worker: counts its tries anew",
    GaveUp: "Worker: gives up, 503",
    GaveUpSlow: "Worker: gives up after slow failures, 503",
    Impatient: "Worker: its patience ends, 503",
    // What came of it.
    GrantedAtOnce: "granted at once",
    GrantedByCall: "a waiter granted by a call",
    GrantedByTimer: "a waiter granted by the timer",
    GrantedByAlarm: "a waiter granted by the alarm",
    GrantedByOperator: "a waiter granted by an operator's doing",
    Retried: "a retry inside the service gets its slot",
    Replayed: "a repeat gets its slot",
    Joined: "a repeat joins its place",
    QueueFull: "refused: queue_full",
    Cooldown: "refused: cooldown",
    Rpm: "refused: rpm",
    NoFreeSlot: "refused: no_free_slot",
    WaitedForGate: "waits for a gate beside a free slot",
    TimedOut: "timed out in the queue",
    TimedOutCarried: "timed out on the way, carried over",
    Dismissed: "turned away while waiting, 401",
    KeyEnded: "the key of a waiter ends, 401",
    Forbidden: "turned away while waiting, 403",
    Asked: "a waiter asked for what a new policy wants",
    Refreshed: "a refresh token traded in",
    RefreshedAgain: "a refresh answered again",
    FirstUse: "the first use of a refreshed key",
    LapsedByCall: "lease ended, seen by a call",
    LapsedByTimer: "lease ended, seen by the timer",
    LapsedByAlarm: "lease ended, seen by the alarm",
    LeaseRevived: "lease whose end was forgotten goes on after a restart",
    Renewed: "renewed, 200",
    Capped: "renewal capped, 409",
    RenewedGone: "renewed too late, 404",
    Released: "released",
    ReleasedGone: "released, already gone",
    CoolingDown: "a report closes the gate",
    LearnedLess: "a report lowers the learned limit",
    LearnedMore: "a report raises the learned limit",
    LearnedKept: "what was learned outlives a restart",
    PassedOver: "a held row passed over when the log comes round",
    Discarded: "rows discarded",
    AtTheDoor: "refused at the door, logged",
}

#[derive(Clone)]
pub struct Coverage {
    counts: [u64; ALL.len()],
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            counts: [0; ALL.len()],
        }
    }
}

impl Coverage {
    pub fn saw(&mut self, what: Seen) {
        self.counts[what as usize] += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, its) in self.counts.iter_mut().zip(other.counts) {
            *mine += its;
        }
    }

    /// What was never reached.
    pub fn missing(&self) -> Vec<&'static str> {
        let all = ALL.iter().zip(self.counts);
        let never = all.filter(|(_, count)| *count == 0);
        never.map(|((_, label), _)| *label).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((_, label), count) in ALL.iter().zip(self.counts) {
            writeln!(f, "{count:>12}  {label}")?;
        }
        Ok(())
    }
}
