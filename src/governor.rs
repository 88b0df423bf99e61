//! The governor of one source: what admits.
//!
//! [`Governor::apply`] is the only way in. A step runs, in this order: take
//! back the leases that have ended, answer the waiters whose time is up, hand
//! free slots to the head of the queue, serve the command, hand over again.
//! After it, [`Governor::deadline`] is the one moment at which time alone
//! changes something. No clock, no randomness, no storage: `now`, ids and
//! secrets come in as arguments, and what must be kept goes out as effects.
//!
//! What holds after every step:
//! - never more slots are granted at once than the limit in force;
//! - nobody is overtaken: while anyone waits, nobody else is granted;
//! - nobody waits while a slot is free and the gates are open;
//! - in no window of 60 s are there more grants than the RPM limit;
//! - a lease ends at its deadline and is never revived;
//! - every waiter is answered by its deadline, once; nobody is granted a slot with
//!   a key that has ended, or as someone who may not come in any more.
//!
//! The governor doesn't know who calls it: the lock API is one caller.

mod admission;
mod audit;
pub mod command;
pub mod cooldown;
mod gauge;
pub mod ids;
mod learn;
pub mod learning;
pub mod queue;
mod record;
pub mod ring;
pub mod rpm;
pub mod settings;
pub mod slots;
pub mod snapshot;
pub mod tally;
pub mod time;

use command::{Command, Dismissal, Effect, Outcome, Renewed, Reply, Verdict};
use cooldown::Cooldown;
use ids::{Ref, SlotId};
use learning::Learning;
use queue::{Caller, Deadline, End, Queue};
use ring::Ring;
use rpm::Rpm;
use settings::Settings;
use slots::{Renewal, Slot, Slots};
use snapshot::Snapshot;
use tally::Tally;
use time::Millis;

use crate::access::policy::Policy;
use crate::outcome::Report;

/// What a command came to: the reply, and what the shell must do before it
/// may give it.
#[derive(Debug)]
pub struct Step {
    pub reply: Reply,
    pub effects: Vec<Effect>,
}

/// A report, and the slot that it came with; only shown.
#[derive(Clone, Copy, Debug)]
pub struct LastReport {
    pub reference: Ref,
    pub at: Millis,
    pub report: Report,
}

#[derive(Clone, Debug)]
pub struct Governor {
    settings: Settings,
    /// The latest moment that it was told of: time never runs backwards here.
    seen: Millis,
    last: Ref,
    slots: Slots,
    queue: Queue,
    rpm: Rpm,
    cooldown: Cooldown,
    learning: Learning,
    last_report: Option<LastReport>,
    tally: Tally,
    ring: Ring,
}

impl Governor {
    /// A new source, or one as it was persisted.
    ///
    /// # Errors
    /// Says which invariant the persisted form breaks.
    pub fn load(settings: Settings, snapshot: Snapshot) -> Result<Self, &'static str> {
        let keep = settings.log.keep;
        let mut rpm = Rpm::default();
        for (at, count) in snapshot.window {
            rpm.mark(at, count);
        }
        let last = snapshot.last.unwrap_or(Ref(0));
        let learned = snapshot.learned.as_deref();
        let learning = Learning::restored(&settings, learned, last, &rpm, snapshot.seen);
        let mut governor = Self {
            settings,
            seen: snapshot.seen,
            last,
            slots: Slots::default(),
            queue: Queue::default(),
            rpm,
            cooldown: Cooldown::restored(snapshot.cooldown),
            learning,
            last_report: None,
            tally: snapshot.tally,
            ring: Ring::restored(keep, snapshot.blocks, snapshot.next_row)
                .with_doorstep_at(snapshot.next_doorstep),
        };
        // All that is stored is counted now.
        governor.tally.counted = Some(last);
        for slot in snapshot.held {
            governor.slots.insert(slot);
        }
        governor.audit()?;
        Ok(governor)
    }

    /// Does one thing at `now`. A moment before the last one counts as that.
    pub fn apply(&mut self, now: Millis, command: Command) -> Step {
        let now = now.max(self.seen);
        self.seen = now;
        let mut effects = Vec::new();
        if matches!(command, Command::Close) {
            // Nobody is granted a slot of what is about to end.
            let reply = self.serve(now, command, &mut effects);
            self.pass_time(now, &mut effects);
            return Step { reply, effects };
        }
        self.pass_time(now, &mut effects);
        let reply = self.serve(now, command, &mut effects);
        self.hand_over(now, &mut effects);
        if let Some(rows) = self.ring.surplus(now, |row| self.slots.holds_row(row)) {
            effects.push(Effect::Discard { rows });
        }
        Step { reply, effects }
    }

    /// The next moment at which time alone changes something.
    pub fn deadline(&self) -> Option<Millis> {
        let slot = self.slots.earliest_end();
        let Some(waiter) = self.queue.earliest_deadline() else {
            return slot;
        };
        let gate = self.closed(self.seen).map(|(_, opens_at)| opens_at);
        [slot, Some(waiter), gate].into_iter().flatten().min()
    }

    /// When the first lease ends: what the alarm stands for.
    pub fn earliest_lease_end(&self) -> Option<Millis> {
        self.slots.earliest_end()
    }

    /// Whether anyone waits: then the deadline needs a timer, not just an alarm.
    pub fn has_waiters(&self) -> bool {
        !self.queue.is_empty()
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Held slots in the order of their grants.
    pub fn slots(&self) -> Vec<&Slot> {
        self.slots.by_age()
    }

    /// The held slot of this name.
    pub fn find(&self, reference: Ref) -> Option<&Slot> {
        self.slots.find_ref(reference)
    }

    fn serve(&mut self, now: Millis, command: Command, effects: &mut Vec<Effect>) -> Reply {
        match command {
            Command::Acquire(acquire) => self.acquire(now, acquire, effects),
            Command::Leave { attempt, request } => {
                if let Some(caller) = self.queue.leave(attempt, request) {
                    self.record_unserved(now, &caller, Outcome::Left, effects);
                }
                Reply::Done
            }
            Command::Renew { slot } => Reply::Renew(self.renew(now, slot, effects)),
            Command::Release { slot, report } => {
                Reply::Release(self.release(now, slot, &report, effects))
            }
            Command::Tick => Reply::Done,
            Command::Configure(settings) => {
                self.ring.set_keep(settings.log.keep);
                self.admit_anew(now, &settings.access, effects);
                self.reconfigure(now, *settings, effects);
                Reply::Done
            }
            Command::Reset => {
                self.forget_learned(now, effects);
                Reply::Done
            }
            Command::Force { reference } => {
                let row = self.slots.find_ref(reference).map(|slot| slot.row);
                Reply::Release(row.is_some_and(|row| self.end(row, effects)))
            }
            Command::Dismiss { key } => {
                let callers = self.queue.take_all(|caller| caller.key == key);
                self.dismiss(now, &callers, Dismissal::KeyRevoked, effects);
                Reply::Done
            }
            Command::TurnedAway(those) => {
                for one in those {
                    self.turned_away(now, one, effects);
                }
                Reply::Done
            }
            Command::Close => {
                let callers = self.queue.take_all(|_| true);
                self.dismiss(now, &callers, Dismissal::SourceDeleted, effects);
                Reply::Done
            }
        }
    }

    /// Takes back ended leases, lets RPM marks go, answers waiters in time.
    fn pass_time(&mut self, now: Millis, effects: &mut Vec<Effect>) {
        while self.slots.expire(now).is_some() {
            self.tally.expired = self.tally.expired.saturating_add(1);
        }
        // Whoever is past its deadline, or at the end of its key, can't be granted
        // any more; whoever is just at the end of its wait is granted if it can be.
        self.time_out(now, End::Key, effects);
        self.rpm.forget(now);
        self.hand_over(now, effects);
        self.time_out(now, End::Wait, effects);
    }

    fn time_out(&mut self, at: Millis, of: End, effects: &mut Vec<Effect>) {
        while let Some(caller) = self.queue.expire(Deadline { at, of }) {
            let verdict = match caller.deadline.of {
                End::Key => Verdict::Dismissed(Dismissal::KeyEnded),
                // What kept it waiting to the end, though it may be over since.
                End::Wait => Verdict::TimedOut(self.refusal(caller.deadline.at)),
            };
            self.turn_away(self.seen, &caller, verdict, effects);
        }
    }

    /// Decides about those who wait by another policy than let them in: as far as
    /// it can be told from here they are turned away, and where they must show more
    /// or something else they are asked for it.
    fn admit_anew(&mut self, now: Millis, policy: &Policy, effects: &mut Vec<Effect>) {
        if self.queue.is_empty() || *policy == self.settings.access {
            return;
        }
        let carries = |caller: &Caller| policy.carries(caller.carrier);
        let callers = self.queue.take_all(|caller| !carries(caller));
        self.dismiss(now, &callers, Dismissal::WrongCarrier, effects);
        for caller in self
            .queue
            .take_all(|caller| !policy.admits(caller.ip.as_deref()))
        {
            self.turn_away(now, &caller, Verdict::Forbidden, effects);
        }
        if policy.asks_anew(&self.settings.access) {
            let all = self.queue.take_all(|_| true);
            effects.extend(all.into_iter().map(|caller| Effect::Ask {
                request: caller.request,
            }));
        }
    }

    fn dismiss(
        &mut self,
        now: Millis,
        callers: &[Caller],
        why: Dismissal,
        effects: &mut Vec<Effect>,
    ) {
        for caller in callers {
            self.turn_away(now, caller, Verdict::Dismissed(why), effects);
        }
    }

    fn renew(&mut self, now: Millis, id: SlotId, effects: &mut Vec<Effect>) -> Option<Renewed> {
        let row = self.slots.find(id)?.row;
        let term = self.settings.lease.term;
        match self.slots.renew(row, now, term)? {
            Renewal::Capped => Some(Renewed::Capped),
            Renewal::Extended { deadline, moved } => {
                if moved {
                    effects.push(Effect::Extend {
                        row,
                        lease_deadline: deadline,
                    });
                }
                Some(Renewed::Until(deadline))
            }
        }
    }

    fn release(
        &mut self,
        now: Millis,
        id: SlotId,
        report: &Report,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(slot) = self.slots.find(id).cloned() else {
            return false;
        };
        self.end(slot.row, effects);
        self.tally
            .release(now.since(slot.granted_at), report.signal());
        self.learn(now, &slot, report, effects);
        if *report != Report::default() {
            self.last_report = Some(LastReport {
                reference: slot.reference,
                at: now,
                report: *report,
            });
        }
        true
    }

    /// The one way in which a held slot comes back before its lease ends.
    fn end(&mut self, row: u32, effects: &mut Vec<Effect>) -> bool {
        let ended = self.slots.remove(row).is_some();
        if ended {
            effects.push(Effect::End { row });
        }
        ended
    }
}
