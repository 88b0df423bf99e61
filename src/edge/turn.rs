//! One synchronous turn of a source's object: look, decide, write, wake, arm.
//!
//! Nothing in here awaits. Memory is a copy of storage: on any doubt it is
//! forgotten and read again on the next event, and those who wait are sent back
//! to their Workers, which carry them over.

use std::cell::RefCell;

use super::Fault;
use super::fault::{self, At};
use super::js::{self, Namespace, ObjectContext};
use super::store::{Header, Store, Write};
use super::waiting::Waiting;
use crate::access::families::Families;
use crate::governor::Governor;
use crate::governor::command::{Command, Effect, Reply};
use crate::governor::time::{Millis, Span};
use crate::protocol::directory::{DirectoryCall, Summary};
use crate::wire::line;

/// The least time between two summaries of a source.
const SUMMARY_INTERVAL: Span = Span::from_seconds(15);

/// The object of one source.
pub struct Object {
    pub context: ObjectContext,
    pub store: Store,
    pub waiting: Waiting,
    /// Where summaries go.
    pub directory: Option<Namespace>,
    /// The share of attempts that get a line in the platform's log.
    line_share: f64,
    memory: RefCell<Memory>,
}

#[derive(Default)]
enum Memory {
    #[default]
    Unread,
    /// Read: there is no source.
    Absent,
    Present(Box<Source>),
}

/// What the object knows while it lives.
pub struct Source {
    pub header: Header,
    pub governor: Governor,
    pub families: Families,
    /// When the alarm rings, as far as this incarnation knows.
    armed: Option<Millis>,
    /// The last summary that was pushed.
    pushed: Option<Summary>,
}

impl Source {
    pub fn new(header: Header, governor: Governor, families: Families) -> Self {
        Self {
            header,
            governor,
            families,
            armed: None,
            pushed: None,
        }
    }

    /// When the directory is to hear of the source; `None`: it knows.
    fn summary_due(&self, now: Millis) -> Option<Millis> {
        let Some(last) = self.pushed else {
            return Some(now);
        };
        let is_known = Summary { at: now, ..last } == self.summary(now);
        (!is_known).then(|| last.at.plus(SUMMARY_INTERVAL))
    }

    fn summary(&self, now: Millis) -> Summary {
        let gauge = self.governor.gauge();
        Summary {
            at: now,
            limit: gauge.limit,
            in_use: gauge.in_use,
            depth: gauge.depth,
            tally: *self.governor.tally(),
        }
    }
}

/// Forgets what an object knows when it is dropped: a turn that didn't come to
/// its end, whatever cut it off, may have left memory ahead of storage.
struct Forget<'a>(&'a Object);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        if let Ok(mut memory) = self.0.memory.try_borrow_mut() {
            *memory = Memory::Unread;
        }
        self.0.waiting.forget_all();
    }
}

impl Object {
    pub fn new(context: ObjectContext, directory: Option<Namespace>, line_share: f64) -> Self {
        let store = Store::new(context.storage());
        Self {
            context,
            store,
            waiting: Waiting::default(),
            directory,
            line_share,
            memory: RefCell::default(),
        }
    }

    /// Lets `work` at the source, or at the place where there is none. If it
    /// fails or panics, memory is forgotten.
    ///
    /// # Errors
    /// What `work` says, or that storage can't be read.
    pub fn turn<T>(
        &self,
        now: Millis,
        work: impl FnOnce(&mut Option<Box<Source>>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let unless_done = Forget(self);
        let result = self.try_turn(now, work);
        if result.is_ok() {
            std::mem::forget(unless_done);
        }
        result
    }

    fn try_turn<T>(
        &self,
        now: Millis,
        work: impl FnOnce(&mut Option<Box<Source>>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let memory = self.memory.try_borrow_mut();
        let mut memory = memory.map_err(|error| Fault::because("a turn within a turn", error))?;
        let mut source = match std::mem::take(&mut *memory) {
            Memory::Unread => self.load(now)?,
            Memory::Absent => None,
            Memory::Present(source) => Some(source),
        };
        fault::strike(At::Turn);
        let result = work(&mut source)?;
        *memory = source.map_or(Memory::Absent, Memory::Present);
        Ok(result)
    }

    fn load(&self, now: Millis) -> Result<Option<Box<Source>>, Fault> {
        let Some(loaded) = self.store.load(now)? else {
            return Ok(None);
        };
        let governor = Governor::load(loaded.settings, loaded.snapshot)
            .map_err(|broken| Fault::because("the stored state is broken", broken))?;
        let source = Source::new(loaded.header, governor, loaded.families);
        Ok(Some(Box::new(source)))
    }

    /// Applies a command and carries out what it comes to, together with the
    /// `writes` that belong to it.
    ///
    /// # Errors
    /// If a write failed. Then no row was written and nobody was answered.
    pub fn apply(
        &self,
        source: &mut Source,
        now: Millis,
        command: Command,
        writes: impl FnOnce(&Source) -> Vec<Write<'_>>,
    ) -> Result<Reply, Fault> {
        let step = source.governor.apply(now, command);
        // The rows last: what fails before them leaves nothing behind, and an
        // alarm that comes in vain does no harm.
        self.arm(source, now)?;
        let mut all = writes(source);
        let is_row = |effect: &&Effect| !matches!(effect, Effect::Answer { .. });
        all.extend(step.effects.iter().filter(is_row).map(Write::Effect));
        self.store.commit(&all)?;
        fault::strike(At::Written);
        self.push_summary(source, now);
        self.log_attempts(&source.header.name, &step.effects);
        self.answer_waiters(step.effects);
        Ok(step.reply)
    }

    /// A line in the platform's log for a share of the attempts.
    fn log_attempts(&self, source: &str, effects: &[Effect]) {
        if self.line_share <= 0.0 {
            return;
        }
        for effect in effects {
            if let Effect::Record(attempt) = effect
                && js::math_random() < self.line_share
            {
                js::log_line(&line::of(source, attempt));
            }
        }
    }

    pub fn answer_waiters(&self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Answer { request, answer } = effect {
                self.waiting.answer(request, answer);
            }
        }
    }

    /// The alarm stands at the first lease's end or earlier; the timer stands at
    /// the governor's deadline while anyone waits. Both are only ever moved
    /// forward: one that comes too early finds nothing to do and is set anew.
    fn arm(&self, source: &mut Source, now: Millis) -> Result<(), Fault> {
        if let Some(end) = source.governor.earliest_lease_end() {
            self.arm_by(source, end, now)?;
        }
        let timer = self.waiting.timer();
        match source.governor.deadline() {
            Some(at) if source.governor.has_waiters() => timer
                .set_at(at, now)
                .map_err(|error| Fault::because("no timer", error)),
            _ => {
                timer.stop();
                Ok(())
            }
        }
    }

    /// Has the alarm ring at `at` or earlier.
    fn arm_by(&self, source: &mut Source, at: Millis, now: Millis) -> Result<(), Fault> {
        if source.armed.is_none_or(|armed| at < armed) {
            // An alarm at the present moment may get lost.
            self.store.arm(at.max(now.plus(Span::from_ms(1))))?;
            source.armed = Some(at);
        }
        Ok(())
    }

    /// The timer has rung.
    pub fn ring(&self) {
        self.waiting.timer().has_rung();
        // A failure was logged, and has sent the waiters back.
        let _ = self.tick();
    }

    /// The alarm has rung: it stands nowhere until it is set again. It also sees
    /// to it that the last word on a source reaches the directory.
    ///
    /// # Errors
    /// If storage failed; the alarm must be set again by the caller.
    pub fn alarm(&self) -> Result<(), Fault> {
        let now = js::now();
        fault::strike(At::Alarm);
        self.turn(now, |source| {
            let Some(source) = source else {
                return Ok(());
            };
            source.armed = None;
            self.apply(source, now, Command::Tick, |_| Vec::new())?;
            if let Some(due) = source.summary_due(now) {
                self.arm_by(source, due, now)?;
            }
            Ok(())
        })
    }

    fn tick(&self) -> Result<(), Fault> {
        let now = js::now();
        self.turn(now, |source| match source {
            None => Ok(()),
            Some(source) => self
                .apply(source, now, Command::Tick, |_| Vec::new())
                .map(|_| ()),
        })
    }

    /// Tells the directory how the source does, at most every 15 s.
    fn push_summary(&self, source: &mut Source, now: Millis) {
        let is_due = source.summary_due(now).is_some_and(|due| due <= now);
        let Some(directory) = self.directory.as_ref().filter(|_| is_due) else {
            return;
        };
        let summary = source.summary(now);
        source.pushed = Some(summary);
        let call = DirectoryCall::Push {
            source: source.header.name.clone(),
            summary: Box::new(summary),
        };
        let stub = directory.get_by_name("directory");
        let pushed = stub
            .and_then(|stub| stub.fetch(&call.to_url()))
            .and_then(|promise| self.context.wait_until(&promise));
        if let Err(error) = pushed {
            // The next one may make it; the lock path goes on.
            Fault::because("a summary was not pushed", error);
        }
    }
}
