//! What decides who may call: ours, and what it is measured against.

use swarmvia_locks::outcome::rate::Rate;

use crate::aimd::Aimd;
use crate::governed::Governed;
use crate::gradient2::Gradient2;
use crate::limited::Limited;
use crate::oracle::Oracle;
use crate::scenario::Letter;
use crate::vegas::Vegas;

/// Closed-loop callers.
pub const CALLERS: usize = 64;
/// One way between a caller and the service, in milliseconds.
pub const NETWORK_MS: u64 = 2;

/// What a caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Granted,
    /// Come back after so many milliseconds; `None`: nobody knows when.
    Later(Option<u64>),
}

/// Callers that were answered, in order.
pub type Answers = Vec<(usize, Answer)>;

/// What a caller saw of its call.
#[derive(Clone, Copy, Default)]
pub struct Seen {
    pub status: u16,
    pub rate: Rate,
}

impl Seen {
    pub const fn throttled(&self) -> bool {
        matches!(self.status, 429 | 503)
    }
}

#[derive(Clone, Copy, Default)]
pub struct Gauge {
    pub limit: u32,
    /// Calls a minute: the limit, and how many of them are used.
    pub rpm: Option<(u32, u32)>,
}

/// Times are milliseconds since the start of the run.
pub trait Policy {
    /// A caller asks. It is answered now, or later by any of the others.
    fn acquire(&mut self, now: u64, caller: usize, answers: &mut Answers);
    /// A caller that was granted is done.
    fn release(&mut self, now: u64, caller: usize, seen: &Seen, answers: &mut Answers);
    fn renew(&mut self, _now: u64, _caller: usize) {}
    fn tick(&mut self, _now: u64, _answers: &mut Answers) {}
    /// When [`Self::tick`] is due.
    fn deadline(&self) -> Option<u64> {
        None
    }
    fn gauge(&self) -> Gauge;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Oracle,
    Ours,
    FixedRight,
    FixedTwice,
    Aimd,
    Vegas,
    Gradient2,
}

impl Kind {
    /// All but the oracle.
    pub const MEASURED: [Self; 6] = [
        Self::Ours,
        Self::FixedRight,
        Self::FixedTwice,
        Self::Aimd,
        Self::Vegas,
        Self::Gradient2,
    ];
    pub const NETFLIX: [Self; 3] = [Self::Aimd, Self::Vegas, Self::Gradient2];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::Ours => "ours",
            Self::FixedRight => "fixed-right",
            Self::FixedTwice => "fixed-twice",
            Self::Aimd => "aimd",
            Self::Vegas => "vegas",
            Self::Gradient2 => "gradient2",
        }
    }

    /// Whether what the headers say reaches it.
    pub const fn reads_headers(self) -> bool {
        matches!(self, Self::Ours | Self::FixedRight | Self::FixedTwice)
    }

    /// Whether a caller that was throttled must hold back by itself: for as long
    /// as `Retry-After` says, else for a second. With ours, the service does.
    pub const fn leaves_pause_to_callers(self) -> bool {
        !matches!(self, Self::Ours)
    }

    /// `skew`: how wrong the oracle is; 1 but for a test of the bars.
    pub fn policy(self, letter: Letter, phase: u64, seed: u64, skew: f64) -> Box<dyn Policy> {
        match self {
            Self::Oracle => Box::new(Oracle::new(letter, phase, skew)),
            Self::Ours => Box::new(Governed::learning()),
            Self::FixedRight => Box::new(Governed::fixed(letter, 1)),
            Self::FixedTwice => Box::new(Governed::fixed(letter, 2)),
            Self::Aimd => Box::new(Limited::new(Aimd::default())),
            Self::Vegas => Box::new(Limited::new(Vegas::new(seed))),
            Self::Gradient2 => Box::new(Limited::new(Gradient2::default())),
        }
    }
}
