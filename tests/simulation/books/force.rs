//! What is in force within one step.

use swarmvia_locks::governor::command::{Command, Reply};
use swarmvia_locks::governor::settings::Settings;

/// The limits that may be in force at a grant of this step.
pub struct Force {
    pub limit: usize,
    pub rpm: usize,
}

impl Force {
    pub fn of(command: &Command, before: &Settings, learned: (u32, u32)) -> Self {
        let rpm = |settings: &Settings| settings.rpm.limit.map_or(usize::MAX, |it| it as usize);
        // Only within these two is there a before and an after: what time did
        // comes first.
        let (limit, rpm) = match command {
            Command::Configure(after) => (learned.0.max(learned.1), rpm(before).max(rpm(after))),
            Command::Release { .. } | Command::Reset => (learned.0.max(learned.1), rpm(before)),
            _ => (learned.1, rpm(before)),
        };
        Self {
            limit: limit as usize,
            rpm,
        }
    }
}

/// Whether a report, or an operator, has something to say in this step.
pub fn counts(command: &Command, reply: &Reply) -> bool {
    match command {
        Command::Release { .. } => matches!(reply, Reply::Release(true)),
        Command::Configure(_) | Command::Reset => true,
        _ => false,
    }
}
