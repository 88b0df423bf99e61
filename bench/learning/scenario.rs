//! What is simulated: seven hidden rules, told in five ways.

use crate::flavour::Flavour;

/// Milliseconds of one window of a rate.
pub const WINDOW_MS: u64 = 60_000;
/// Milliseconds between two changes of a rule that changes.
pub const STEP_MS: u64 = 600_000;

/// A hidden rule of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Letter {
    /// Concurrency 20.
    A,
    /// 300 a minute, fixed window.
    B,
    /// 10 a second, token bucket of 20.
    C,
    /// Concurrency 20, and 300 a minute.
    D,
    /// Concurrency 40, 10, 40, … every 10 minutes.
    E,
    /// 300 a minute, of which a neighbour takes half for every second 10 minutes.
    F,
    /// No rule; latency doubles past 30 in flight, and past 60 calls fail.
    G,
}

impl Letter {
    pub const ALL: [Self; 7] = [
        Self::A,
        Self::B,
        Self::C,
        Self::D,
        Self::E,
        Self::F,
        Self::G,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
            Self::D => "d",
            Self::E => "e",
            Self::F => "f",
            Self::G => "g",
        }
    }

    pub const fn what(self) -> &'static str {
        match self {
            Self::A => "concurrency 20",
            Self::B => "300 a minute",
            Self::C => "10 a second, bucket 20",
            Self::D => "concurrency 20, 300 a minute",
            Self::E => "concurrency 40, 10, 40 …",
            Self::F => "300 a minute, a neighbour",
            Self::G => "latency only",
        }
    }

    /// Whether calls are counted in windows of a minute.
    pub const fn has_window(self) -> bool {
        matches!(self, Self::B | Self::D | Self::F)
    }

    /// Calls at once, at `ms` since the start. (g) has no rule; 30 is its best.
    pub const fn concurrency_at(self, ms: u64) -> Option<u32> {
        match self {
            Self::A | Self::D => Some(20),
            Self::E if (ms / STEP_MS).is_multiple_of(2) => Some(40),
            Self::E => Some(10),
            Self::B | Self::C | Self::F | Self::G => None,
        }
    }

    /// When the rule changes, in milliseconds since the start, the start first.
    /// A neighbour comes and goes with a window: `phase` says where they begin.
    pub fn steps(self, phase: u64, end: u64) -> Vec<u64> {
        let marks = (0..).map(|k| k * STEP_MS);
        match self {
            Self::E => marks.take_while(|at| *at < end).collect(),
            Self::F => marks
                .map(|at| match at {
                    0 => 0,
                    at => (at + phase).next_multiple_of(WINDOW_MS) - phase,
                })
                .take_while(|at| *at < end)
                .collect(),
            _ => vec![0],
        }
    }
}

/// A rule and the way in which it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Case {
    pub letter: Letter,
    pub flavour: Flavour,
}

impl Case {
    pub fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for letter in Letter::ALL {
            let of_letter = match letter {
                // There is no rule that anybody could tell.
                Letter::G => &Flavour::ALL[..1],
                _ => &Flavour::ALL[..],
            };
            cases.extend(of_letter.iter().map(|flavour| Self {
                letter,
                flavour: *flavour,
            }));
        }
        cases
    }

    /// Whether somebody else calls the upstream too.
    pub const fn is_shared(self) -> bool {
        matches!(self.letter, Letter::F)
    }

    pub fn name(self) -> String {
        format!("{}-{}", self.letter.name(), self.flavour.name())
    }

    /// Seconds within which a policy must have settled after a step: 30, or two
    /// windows where the upstream counts in windows and doesn't tell how many.
    pub const fn allowed_to_settle(self) -> usize {
        if self.letter.has_window() && !self.flavour.tells() {
            return 120;
        }
        30
    }
}
