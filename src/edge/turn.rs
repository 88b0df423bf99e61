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
use super::waiting::{Timer, Waiting};
use crate::access::families::Families;
use crate::governor::Governor;
use crate::governor::command::{Command, Effect, Reply};
use crate::governor::time::{Millis, Span};
use crate::protocol::directory::Summary;
use crate::wire::line;

/// The object of one source.
pub struct Object {
    pub context: ObjectContext,
    pub store: Store,
    pub waiting: Waiting,
    /// Where summaries go.
    pub directory: Option<Namespace>,
    /// Rings when the directory is to hear of what is new (`summary.rs`).
    pub news: Timer,
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
    /// What the directory was told last, as it is stored.
    pub told: Option<Summary>,
    /// When a refused refresh was last said in the platform's log, and how many
    /// were refused since.
    pub refusal_said: Millis,
    pub refusals_unsaid: u32,
}

impl Source {
    pub fn new(header: Header, governor: Governor, families: Families) -> Self {
        Self {
            header,
            governor,
            families,
            armed: None,
            told: None,
            refusal_said: Millis::EPOCH,
            refusals_unsaid: 0,
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
            news: Timer::default(),
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
        let result = work(&mut source).inspect_err(|Fault| {
            if let Some(source) = &source {
                js::log_error(&format!("a turn failed: source {}", source.header.name));
            }
        })?;
        *memory = source.map_or(Memory::Absent, Memory::Present);
        Ok(result)
    }

    fn load(&self, now: Millis) -> Result<Option<Box<Source>>, Fault> {
        let Some(loaded) = self.store.load(now)? else {
            return Ok(None);
        };
        let governor = Governor::load(loaded.settings, loaded.snapshot)
            .map_err(|broken| Fault::because("the stored state is broken", broken))?;
        let source = Source {
            told: loaded.told,
            ..Source::new(loaded.header, governor, loaded.families)
        };
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
        let is_row =
            |effect: &&Effect| !matches!(effect, Effect::Answer { .. } | Effect::Ask { .. });
        all.extend(step.effects.iter().filter(is_row).map(Write::Effect));
        self.store.commit(&all)?;
        fault::strike(At::Written);
        self.watch_for_news(source, now);
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
            match effect {
                Effect::Answer { request, answer } => self.waiting.answer(request, answer),
                // Its Worker calls again, by the policy that stands.
                Effect::Ask { request } => self.waiting.forget(request),
                _ => {}
            }
        }
    }

    /// The alarm stands at the first lease's end or earlier; the timer stands at
    /// the governor's deadline while anyone waits. Both are only ever moved
    /// forward: one that comes too early finds nothing to do and is set anew.
    fn arm(&self, source: &mut Source, now: Millis) -> Result<(), Fault> {
        if let Some(end) = source.governor.earliest_lease_end()
            && source.armed.is_none_or(|armed| end < armed)
        {
            // An alarm at the present moment may get lost.
            self.store.arm(end.max(now.plus(Span::from_ms(1))))?;
            source.armed = Some(end);
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

    /// The timer has rung.
    pub fn ring(&self) {
        self.waiting.timer().has_rung();
        // A failure was logged, and has sent the waiters back.
        let _ = self.tick();
    }

    /// The alarm has rung: it stands nowhere until it is set again.
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
            self.apply(source, now, Command::Tick, |_| Vec::new())
                .map(|_| ())
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
}
