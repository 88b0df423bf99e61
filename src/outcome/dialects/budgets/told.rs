//! What was gathered, as windows: each state with its policy, each group with
//! those of its scope, and the policies that nothing speaks of.

use super::{Budgets, MOST_BUDGETS, reset};
use crate::outcome::dialects::groups::{Group, count, standing};
use crate::outcome::dialects::values::Count;
use crate::outcome::structured::{self, Entry};
use crate::outcome::windows::{Standing, Window};

impl Budgets {
    pub fn into_windows(self) -> Vec<Window> {
        let mut windows = Vec::new();
        for state in self.states.iter().take(MOST_BUDGETS) {
            let limit = state.limit.and_then(Count::whole);
            let policies = self.policies_of(&state.scope);
            let policy = structured::policy_of(state.name.as_deref(), limit, &policies);
            windows.push(self.window(state, policy));
        }
        for group in self.groups.iter().take(MOST_BUDGETS) {
            if group.is_believed() {
                let mut policies = self.policies_of(&group.scope);
                policies.extend(&group.policies);
                group.tell(&policies, &mut windows);
            }
        }
        self.void_halves(&mut windows);
        let live = windows.len();
        for policy in self.policies.iter().take(MOST_BUDGETS) {
            let mut window = self.window(policy, None);
            if window.standing == Standing::InUse {
                window.standing = Standing::Idle;
            }
            // One that a state or a triple speaks of is told already.
            let is_same = |other: &Window| {
                !other.is_empty() && other.unit == window.unit && other.scope == window.scope
            };
            if !windows.iter().take(live).any(is_same) {
                windows.push(window);
            }
        }
        windows.truncate(MOST_BUDGETS);
        windows
    }

    /// Nothing left under one name, of a limit of nothing under another: as void as
    /// under one, unless a third has a limit.
    fn void_halves(&self, windows: &mut [Window]) {
        let groups = || self.groups.iter().take(MOST_BUDGETS);
        for place in 0..windows.len() {
            let Some(window) = windows.get(place) else {
                return;
            };
            let is_near =
                |scope: &str| window.scope == scope || window.scope.is_empty() || scope.is_empty();
            let is_half = window.limit.is_none() && window.remaining == Some(0);
            let of_nothing = |group: &Group| {
                group.is_of_nothing()
                    && group.unit.unwrap_or_default() == window.unit
                    && is_near(&group.scope)
            };
            let has_limit = |other: &Window| {
                other.unit == window.unit && other.limit.is_some() && is_near(&other.scope)
            };
            let is_void = is_half && groups().any(of_nothing) && !windows.iter().any(has_limit);
            if let Some(window) = windows.get_mut(place).filter(|_| is_void) {
                window.standing = Standing::Void;
            }
        }
    }

    fn policies_of(&self, scope: &str) -> Vec<&Entry> {
        let mut policies = Vec::new();
        for policy in self.policies.iter().take(MOST_BUDGETS) {
            if policy.scope == scope {
                policies.push(policy);
            }
        }
        policies
    }

    /// The window of a state, with what its policy adds.
    fn window(&self, entry: &Entry, policy: Option<&Entry>) -> Window {
        let unit = policy.and_then(|policy| policy.unit).or(entry.unit);
        let length = policy.and_then(|policy| policy.window).or(entry.window);
        let limit = entry.limit.or(policy.and_then(|policy| policy.limit));
        let mut window = Window {
            unit: unit.unwrap_or_default(),
            scope: entry.scope.clone(),
            reset: entry
                .reset
                .and_then(|when| reset(when, self.now, false, false)),
            length,
            is_length_stated: length.is_some(),
            standing: standing(&entry.scope, entry.name.as_deref()),
            ..Window::default()
        };
        count(&mut window, limit, entry.remaining, entry.used);
        window
    }
}
