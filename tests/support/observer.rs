//! Someone who sees only commands, replies and effects, keeps their own books
//! by the contract, and objects to the first thing that doesn't agree.

mod effects;
mod replies;
mod settled;

pub use settled::held_slots;

use std::collections::{BTreeMap, BTreeSet};

use swarmvia_locks::access::policy::Policy;
use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::Step;
use swarmvia_locks::governor::command::{Attempt, Command, Gauge, Refusal, Reply, RpmGauge};
use swarmvia_locks::governor::ids::{AttemptId, KeyId, RequestId, SlotId};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::{Millis, Span};
use swarmvia_locks::wire::request::Carrier;

use super::START;

const MINUTE: Span = Span::from_seconds(60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub row: u32,
    pub secret: u128,
    pub reference: u64,
    pub attempt: AttemptId,
    pub request: RequestId,
    /// That request joined the place of another one. Storage doesn't say so.
    pub repeats: bool,
    pub lease_deadline: Millis,
    pub request_deadline: Millis,
}

#[derive(Clone, Debug)]
pub struct Waiter {
    pub request: RequestId,
    pub attempt: AttemptId,
    pub key: KeyId,
    pub expires: Option<Millis>,
    pub carrier: Carrier,
    pub ip: Option<Box<str>>,
    pub arrived: Millis,
    /// The end of its wait or of its key, and whether it is the key's.
    pub deadline: Millis,
    pub ends_with_key: bool,
    /// It joined the place of another one that had come before.
    pub repeats: bool,
}

impl Waiter {
    /// Whether it may be granted at `now`.
    fn may_be_granted(&self, now: Millis) -> bool {
        self.deadline > now || self.deadline == now && !self.ends_with_key
    }

    /// Whether a policy still lets it in, as far as an object can tell.
    fn is_let_in(&self, policy: &Policy) -> bool {
        policy.carries(self.carrier) && policy.admits(self.ip.as_deref())
    }
}

/// The waiters of one attempt, who came together by the first one's arrival.
#[derive(Clone, Debug)]
pub struct Place {
    pub attempt: AttemptId,
    pub arrived: Millis,
    /// When the first of all that were ever in it came.
    pub first: Millis,
    pub waiters: Vec<Waiter>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    reference: u64,
    granted_at: Option<Millis>,
}

#[derive(Clone, Debug)]
pub struct Observer {
    pub now: Millis,
    pub held: Vec<Held>,
    /// Leases that ended by time alone.
    lapsed: Vec<Held>,
    pub places: Vec<Place>,
    settings: Settings,
    /// The policy before the present step.
    policy_before: Policy,
    /// What may apply within the present step: a change of settings comes after
    /// what time did.
    in_force: Vec<Settings>,
    grants: Vec<Millis>,
    cooldown: Millis,
    /// The waiters of the place that is being served.
    served: Vec<Waiter>,
    /// An attempt that was recorded and whose answer has not been seen.
    recorded: Option<Attempt>,
    /// Every id that was ever given out.
    given: BTreeSet<(u32, u128)>,
    rows: BTreeMap<u32, Row>,
    last: u64,
    /// The ordinals of the attempts, and of those that have the doorstep's rows.
    written: Vec<u64>,
    knocks: Vec<u64>,
    /// Rows that were written in this step for callers refused at the door.
    turned_away: usize,
    least_keep: u32,
    most_keep: u32,
    most_pinned: usize,
}

impl Observer {
    pub fn new(settings: &Settings) -> Self {
        Self {
            now: START,
            held: Vec::new(),
            lapsed: Vec::new(),
            places: Vec::new(),
            settings: settings.clone(),
            policy_before: settings.access.clone(),
            in_force: Vec::new(),
            grants: Vec::new(),
            cooldown: Millis::EPOCH,
            served: Vec::new(),
            recorded: None,
            given: BTreeSet::new(),
            rows: BTreeMap::new(),
            last: 0,
            written: Vec::new(),
            knocks: Vec::new(),
            turned_away: 0,
            least_keep: settings.log.keep,
            most_keep: settings.log.keep,
            most_pinned: 0,
        }
    }

    /// Follows one step and checks all that must hold in it and after it.
    pub fn watch(&mut self, clock: Millis, command: &Command, step: &Step, after: &Governor) {
        let time_passed = clock > self.now;
        self.now = self.now.max(clock);
        self.in_force = match command {
            Command::Configure(new) if time_passed => {
                vec![self.settings.clone(), (**new).clone()]
            }
            Command::Configure(new) => vec![(**new).clone()],
            _ => vec![self.settings.clone()],
        };
        self.policy_before = self.settings.access.clone();
        self.settings = self.in_force[self.in_force.len() - 1].clone();
        self.least_keep = self.least_keep.min(self.settings.log.keep);
        self.most_keep = self.most_keep.max(self.settings.log.keep);
        self.lapse();
        match (command, &step.reply) {
            (Command::Acquire(acquire), reply) => self.acquired(command, acquire, reply, step),
            (Command::Renew { slot }, Reply::Renew(renewed)) => {
                self.renewed(command, *slot, *renewed, step);
            }
            (Command::Release { .. } | Command::Force { .. }, Reply::Release(released)) => {
                self.released(command, *released, step);
            }
            (Command::TurnedAway(those), Reply::Done) => {
                self.turned_away = 0;
                self.effects(command, &step.effects);
                assert_eq!(self.turned_away, those.len(), "one row for each");
            }
            (_, Reply::Done) => self.effects(command, &step.effects),
            (command, reply) => panic!("{reply:?} to {command:?}"),
        }
        self.settled(command, after);
    }

    /// Memory and waiters are lost; the books are not. Time starts from what
    /// storage speaks of: a lease whose end nobody knows of any more goes on.
    pub fn reloaded(&mut self, clock: Millis, stored: Millis) {
        self.now = clock.max(stored);
        self.places.clear();
        self.lapse();
        let now = self.now;
        let (back, gone) = self
            .lapsed
            .drain(..)
            .partition(|slot| slot.lease_deadline > now);
        self.lapsed = gone;
        self.held.extend::<Vec<_>>(back);
        self.held.iter_mut().for_each(|slot| slot.repeats = false);
        self.held.sort_by_key(|slot| slot.reference);
    }

    fn lapse(&mut self) {
        let now = self.now;
        let (ended, held) = self
            .held
            .drain(..)
            .partition(|slot| slot.lease_deadline <= now);
        self.held = held;
        self.lapsed.extend::<Vec<_>>(ended);
    }

    pub fn held_by(&self, id: SlotId) -> Option<&Held> {
        let mut all = self.held.iter();
        all.find(|slot| slot.row == id.row && slot.secret == id.secret.0)
    }

    fn rpm_used(&self) -> u32 {
        self.rpm_used_by(self.now)
    }

    fn rpm_used_by(&self, now: Millis) -> u32 {
        let gone = self.grants.partition_point(|at| at.plus(MINUTE) <= now);
        u32::try_from(self.grants.len() - gone).unwrap()
    }

    fn rpm_open(&self, settings: &Settings) -> bool {
        settings
            .rpm
            .limit
            .is_none_or(|limit| self.rpm_used() < limit)
    }

    /// When the RPM gate opens, as it stands at `now`: once fewer than the limit
    /// are in the window.
    fn rpm_opens_at(&self, settings: &Settings, now: Millis) -> Option<Millis> {
        let limit = settings.rpm.limit? as usize;
        let used = self.rpm_used_by(now) as usize;
        let surplus = used.checked_sub(limit)?;
        let first = self.grants.len() - used;
        Some(self.grants[first + surplus].plus(MINUTE))
    }

    pub fn opens_at(&self) -> Option<Millis> {
        let cooldown = Some(self.cooldown).filter(|until| *until > self.now);
        cooldown.max(self.rpm_opens_at(&self.settings, self.now))
    }

    /// Why nothing is granted at `now`: the gate that opens last, the cool-down
    /// where both open at once.
    fn refusal(&self, settings: &Settings, now: Millis) -> Refusal {
        let cooldown = Some(self.cooldown).filter(|until| *until > now);
        let rpm = self.rpm_opens_at(settings, now);
        match (cooldown, rpm) {
            (Some(opens_at), _) if rpm.is_none_or(|rpm| rpm <= opens_at) => {
                Refusal::Cooldown { opens_at }
            }
            (_, Some(opens_at)) => Refusal::Rpm { opens_at },
            _ => Refusal::NoFreeSlot {
                earliest_end: self.earliest_end(),
            },
        }
    }

    fn earliest_end(&self) -> Option<Millis> {
        self.held.iter().map(|slot| slot.lease_deadline).min()
    }

    fn has_room(&self, settings: &Settings) -> bool {
        self.held.len() < settings.concurrency.limit as usize
    }

    fn gauge(&self, settings: &Settings) -> Gauge {
        Gauge {
            limit: settings.concurrency.limit,
            in_use: u32::try_from(self.held.len()).unwrap(),
            depth: u32::try_from(self.places.len()).unwrap(),
            rpm: settings.rpm.limit.map(|limit| RpmGauge {
                limit,
                remaining: limit.saturating_sub(self.rpm_used()),
            }),
        }
    }

    fn waiters(&self) -> impl Iterator<Item = &Waiter> {
        self.places.iter().flat_map(|place| &place.waiters)
    }

    /// Whether what the row holds is needed: a slot, or a mark in the window.
    fn pinned(&self, row: u32) -> bool {
        let counts = |row: &Row| row.granted_at.is_some_and(|at| at.plus(MINUTE) > self.now);
        self.held.iter().any(|slot| slot.row == row) || self.rows.get(&row).is_some_and(counts)
    }
}
