//! What must hold in every state, and what must have been reached.

use stateright::{Model as _, Property};

use crate::bench::{Bench, WAIT};
use crate::system::{State, TICK};
use crate::terms::Phase;

pub fn all() -> Vec<Property<Bench>> {
    vec![
        Property::always(
            "never more granted than the limit",
            |bench: &Bench, state: &State| state.view.held.len() <= bench.slots,
        ),
        Property::always(
            "never more holders than the limit",
            |bench: &Bench, state: &State| state.holders().count() <= bench.slots,
        ),
        Property::always(
            "a holder's slot is its own as long as promised",
            |_, state: &State| {
                state.holders().all(|(caller, until)| {
                    let mut held = state.view.held.iter();
                    held.any(|(_, name, lease, _)| {
                        state.slots[caller] == Some(*name) && *lease >= until
                    })
                })
            },
        ),
        Property::always("storage tells the whole story", |_, state: &State| {
            state.is_whole()
        }),
        Property::always(
            "nobody waits beside a free slot",
            |bench: &Bench, state: &State| {
                let waits = state.governor.as_ref().filter(|it| it.has_waiters());
                let free = state.view.held.len() < bench.slots;
                waits.is_none() || !free || bench.is_due(state)
            },
        ),
        Property::always("whoever waits is known to wait", |_, state: &State| {
            state.everyone_is_known()
        }),
        Property::always("answered in time", |_, state: &State| {
            state.callers.iter().all(|caller| match caller.phase {
                // A tick for the way there, one for the way back, one for
                // each failure.
                Phase::Asking { since, .. } => state.tick <= since + WAIT / TICK + 4,
                _ => true,
            })
        }),
        Property::always(
            "in the end everyone is answered and everything is free",
            |bench: &Bench, state: &State| {
                let mut actions = Vec::new();
                bench.actions(state, &mut actions);
                !actions.is_empty() || Bench::is_over(state)
            },
        ),
        Property::sometimes(
            "all slots are held while someone waits",
            |bench: &Bench, state: &State| {
                state.view.held.len() == bench.slots && !state.view.queue.is_empty()
            },
        ),
        Property::sometimes(
            "a waiter is carried over, if it can be",
            |bench: &Bench, state: &State| {
                let carried = |(_, waited): &(u128, u64)| !waited.is_multiple_of(TICK);
                bench.crashes + bench.losses == 0 || state.view.queue.iter().any(carried)
            },
        ),
    ]
}
