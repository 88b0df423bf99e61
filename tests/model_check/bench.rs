//! What may happen next: the model that stateright walks.

use stateright::{Model, Property};

use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::command::{Acquire, Command};
use swarmvia_locks::governor::ids::{AttemptId, RequestId, SlotSecret};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::outcome::Report;

use crate::promises;
use crate::support::storage::Storage;
use crate::support::{call, limit, ms};
use crate::system::{Caller, Cut, Sabotage, State, TICK, View};
use crate::terms::{Kind, Message, Phase, Said};

pub const SLOTS: usize = 2;
pub const WAIT: u64 = 2 * TICK;
const TERM: u64 = 2 * TICK;
const CAP: u64 = 3 * TICK;
pub const RENEWALS: u8 = 1;
/// Long after everything must be over.
const LAST_TICK: u64 = 16;

/// How far the walk goes.
#[derive(Clone, Debug)]
pub struct Bench {
    pub sabotage: Sabotage,
    pub settings: Settings,
    pub slots: usize,
    pub callers: usize,
    pub sessions: u8,
    pub crashes: u8,
    pub losses: u8,
    pub departures: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Come(usize),
    Renew(usize),
    Release(usize),
    /// A holder is never heard of again.
    Vanish(usize),
    /// A waiting caller goes; the object hears of it or doesn't.
    HangUp(usize, bool),
    Deliver(Message, Cut),
    /// The message is lost and its connection breaks.
    Lose(Message),
    /// The connection breaks, and the message arrives all the same.
    Break(Message),
    /// The answer is lost beyond the Worker; the caller repeats its call.
    LoseOutside(Message),
    Crash,
    /// The object's timer rings.
    Ring,
    Tick,
}

impl Bench {
    pub fn new(sabotage: Sabotage, slots: usize) -> Self {
        let mut settings = limit(u32::try_from(slots).unwrap());
        settings.lease.term = ms(TERM);
        settings.lease.request_timeout = ms(CAP);
        Self {
            sabotage,
            settings,
            slots,
            callers: slots + 1,
            sessions: 1,
            crashes: 1,
            losses: 1,
            departures: 1,
        }
    }

    pub fn is_due(&self, state: &State) -> bool {
        let waits = state.governor.as_ref().filter(|it| it.has_waiters());
        let deadline = waits.and_then(Governor::deadline);
        self.sabotage != Sabotage::NoTimer && deadline.is_some_and(|at| at <= state.clock())
    }

    pub fn is_over(state: &State) -> bool {
        let done = |caller: &Caller| caller.phase == Phase::Done && caller.sessions == 0;
        state.callers.iter().all(done) && state.network.is_empty() && state.view.held.is_empty()
    }
}

impl Model for Bench {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let caller = || Caller {
            phase: Phase::Idle,
            sessions: self.sessions - 1,
            attempt: 0,
            request: 0,
            number: 0,
        };
        vec![State {
            tick: 0,
            callers: (0..self.callers).map(|_| caller()).collect(),
            network: [].into(),
            crashes: self.crashes,
            losses: self.losses,
            departures: self.departures,
            waiting: [].into(),
            governor: None,
            disk: Storage::default(),
            slots: vec![None; self.callers],
            view: View::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let came = |index: usize| state.callers[index].phase != Phase::Idle;
        for (index, caller) in state.callers.iter().enumerate() {
            match caller.phase {
                // They are alike: the first comes first.
                Phase::Idle if index == 0 || came(index - 1) => actions.push(Action::Come(index)),
                Phase::Holding { renewals, .. } => {
                    if renewals > 0 {
                        actions.push(Action::Renew(index));
                    }
                    actions.push(Action::Release(index));
                    if state.departures > 0 {
                        actions.push(Action::Vanish(index));
                    }
                }
                Phase::Asking { .. } if state.departures > 0 => {
                    actions.push(Action::HangUp(index, false));
                    if state.waiting.values().any(|(waits, _)| *waits == index) {
                        actions.push(Action::HangUp(index, true));
                    }
                }
                Phase::Done if caller.sessions > 0 => actions.push(Action::Come(index)),
                _ => {}
            }
        }
        for message in &state.network {
            actions.push(Action::Deliver(*message, Cut::Nowhere));
            if state.crashes > 0 && !message.is_answer() {
                actions.push(Action::Deliver(*message, Cut::BeforeCommit));
                actions.push(Action::Deliver(*message, Cut::AfterCommit));
            }
            if state.losses > 0 {
                actions.push(Action::Lose(*message));
                let acquires = matches!(message.kind, Kind::Acquire { .. });
                let granted = matches!(message.kind, Kind::Answer(Said::Granted { .. }));
                if acquires {
                    actions.push(Action::Break(*message));
                }
                if granted {
                    actions.push(Action::LoseOutside(*message));
                }
            }
        }
        if state.crashes > 0 && state.governor.is_some() {
            actions.push(Action::Crash);
        }
        let is_due = self.is_due(state);
        if is_due {
            actions.push(Action::Ring);
        }
        // Messages arrive in any order, but before the next tick: callers tarry
        // enough themselves. One whose connection broke may take a tick longer.
        let mut network = state.network.iter();
        let late = network.any(|message| {
            let is_present = state.callers[message.caller].number == message.number;
            is_present || message.at < state.tick
        });
        let idle = state.callers.iter().any(|caller| match caller.phase {
            Phase::Idle => state.tick >= 1,
            Phase::Holding { until, .. } => until + TICK <= state.tick * TICK,
            Phase::Done => caller.sessions > 0,
            _ => false,
        });
        let goes_on = state.tick < LAST_TICK && !Self::is_over(state);
        if !is_due && !late && !idle && goes_on {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Come(caller) => state.come(caller),
            Action::Renew(caller) => state.renew(caller),
            Action::Release(caller) => state.release(caller),
            Action::Vanish(caller) => {
                state.departures -= 1;
                state.callers[caller].phase = Phase::Done;
            }
            Action::HangUp(caller, noticed) => {
                state.departures -= 1;
                state.hang_up(self, caller, noticed);
            }
            Action::Deliver(message, cut) => {
                state.network.remove(&message);
                state.crashes -= u8::from(cut != Cut::Nowhere);
                self.deliver(&mut state, message, cut);
            }
            Action::Lose(message) => {
                state.losses -= 1;
                state.network.remove(&message);
                state.broken(message.by());
            }
            Action::Break(message) => {
                state.losses -= 1;
                state.broken(message.by());
            }
            Action::LoseOutside(message) => {
                state.losses -= 1;
                state.network.remove(&message);
                state.repeat(message.by());
            }
            Action::Crash => {
                state.crashes -= 1;
                state.crash();
            }
            Action::Ring => state.turn(self, &Command::Tick, None, Cut::Nowhere),
            Action::Tick => state.tick += 1,
        }
        state.look();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises::all()
    }
}

impl Bench {
    fn deliver(&self, state: &mut State, message: Message, cut: Cut) {
        let (caller, number) = message.by();
        let by = Some((caller, number));
        let command = match message.kind {
            Kind::Answer(said) => {
                if state.callers[caller].number == number {
                    state.hear(caller, said);
                }
                return;
            }
            Kind::Acquire {
                attempt,
                request,
                wait,
                waited,
            } => {
                let name = |of: u8| (u128::try_from(caller).unwrap() << 8) + u128::from(of);
                let request = RequestId(name(request));
                Command::Acquire(Acquire {
                    request,
                    attempt: AttemptId(name(attempt)),
                    wait: ms(wait),
                    waited: ms(waited),
                    secret: SlotSecret((request.0 << 8) + u128::from(number)),
                    ..call(0)
                })
            }
            Kind::Renew(slot) => Command::Renew {
                slot: state.slot(slot),
            },
            Kind::Release(slot) => Command::Release {
                slot: state.slot(slot),
                report: Report::default(),
            },
        };
        state.turn(self, &command, by, cut);
    }
}
