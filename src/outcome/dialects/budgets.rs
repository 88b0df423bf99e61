//! Gathers what single headers say into budgets: the headers whose names differ
//! in their role only belong together, and items of their lists by their place
//! or their window.

use super::groups::{Group, count};
use super::names::{Name, Role};
use super::values::{self, Count, Item, MOST_ITEMS};
use crate::governor::time::Millis;
use crate::outcome::durations::{self, Decimal, When};
use crate::outcome::structured::{self, Entry};
use crate::outcome::windows::{Reset, ResetKind, Window};

/// Budgets of one kind in a response; real ones tell of a dozen. What follows
/// compares them with one another.
const MOST_BUDGETS: usize = 64;

/// Everything that the headers of a response say of budgets.
pub struct Budgets {
    now: Millis,
    groups: Vec<Group>,
    states: Vec<Entry>,
    policies: Vec<Entry>,
}

impl Budgets {
    /// `now`: the server's.
    pub const fn new(now: Millis) -> Self {
        Self {
            now,
            groups: Vec::new(),
            states: Vec::new(),
            policies: Vec::new(),
        }
    }

    pub fn read(&mut self, name: &Name, value: &str) {
        let is_structured = structured::is_structured(value);
        match name.role {
            Role::Policy => put(&mut self.policies, name, value),
            Role::State | Role::Entry if is_structured => put(&mut self.states, name, value),
            // `api-usage=18/5000`, `b=per_hour;q=100;r=99;t=1`
            Role::Limit | Role::Used if is_dictionary(value) => {
                put(&mut self.states, name, value);
            }
            Role::Entry | Role::RetryAfter => {}
            Role::Reset => self.read_reset(name, value),
            Role::Window => {
                let is_bare = name.unit_ms.is_none();
                let length = durations::window(value, name.unit_ms);
                let number = Decimal::parse(value).filter(|_| is_bare);
                let group = self.group(name);
                group.length = group.length.or(length);
                group.bare_length = number.map(|number| number.whole);
            }
            Role::Refill => self.group(name).refill = Decimal::parse(value),
            Role::Limit | Role::Remaining | Role::Used | Role::State => {
                self.read_counts(name, value);
            }
        }
    }

    fn read_counts(&mut self, name: &Name, value: &str) {
        let items = values::items(value);
        let group = self.group(name);
        match name.role {
            Role::Remaining => {
                // `8/40`: the other way round.
                for item in &items {
                    if let Some(of) = item.of {
                        group.limits.push(Item {
                            count: Some(of),
                            ..Item::default()
                        });
                    }
                }
                group.remaining = items;
            }
            _ if items.iter().any(|item| item.of.is_some()) => {
                group.limits.clone_from(&items);
                for item in &mut group.limits {
                    item.count = item.of;
                }
                group.used = items;
            }
            Role::Used => group.used = items,
            _ => group.put_limits(items),
        }
    }

    fn read_reset(&mut self, name: &Name, value: &str) {
        let now = self.now;
        let is_millis =
            |text: &str| Decimal::parse(text).is_some_and(|number| number.whole >= 100_000_000_000);
        let one = |text: &str| {
            reset(
                When::parse(values::unquoted(text), name.unit_ms, name.is_span)?,
                now,
                name.is_span,
            )
        };
        let mut resets: Vec<Reset> = Vec::new();
        resets.extend(one(value));
        if resets.is_empty() {
            for text in values::split_times(value).iter().take(MOST_ITEMS) {
                resets.extend(one(text));
            }
        }
        let group = self.group(name);
        group.has_epoch_ms |= is_millis(value);
        match (group.resets.first(), resets.first()) {
            (Some(known), Some(new)) if new.kind >= known.kind => {}
            (_, Some(_)) => group.resets = resets,
            _ => {}
        }
    }

    /// The group of headers that differ from this one in their role only.
    fn group(&mut self, name: &Name) -> &mut Group {
        let place = self.groups.iter().position(|group| {
            group.unit == name.unit
                && group.scope == name.scope
                && group.window_ms == name.window_ms
                && group.has_x == name.has_x
                && group.is_weak == name.is_weak
        });
        let place = place.unwrap_or_else(|| {
            self.groups.push(Group {
                unit: name.unit,
                scope: name.scope.clone(),
                window_ms: name.window_ms,
                has_x: name.has_x,
                is_weak: name.is_weak,
                ..Group::default()
            });
            self.groups.len().saturating_sub(1)
        });
        #[expect(clippy::indexing_slicing, reason = "found or pushed above")]
        &mut self.groups[place]
    }

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
        let live = windows.len();
        for policy in self.policies.iter().take(MOST_BUDGETS) {
            let mut window = self.window(policy, None);
            window.is_idle = true;
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
            reset: entry.reset.and_then(|when| reset(when, self.now, false)),
            length,
            is_length_stated: length.is_some(),
            ..Window::default()
        };
        count(&mut window, limit, entry.remaining, entry.used);
        window
    }
}

/// Adds the entries of a value, with whose they are.
fn put(entries: &mut Vec<Entry>, name: &Name, value: &str) {
    for mut entry in structured::entries(value) {
        let is_pair = entry.used.is_some() && entry.limit.is_some();
        if is_pair || !name.is_weak {
            entry.unit = entry.unit.or(name.unit);
            entry.scope.clone_from(&name.scope);
            entries.push(entry);
        }
    }
}

/// Whether a value begins with a key, rather than having parameters behind a
/// count.
fn is_dictionary(value: &str) -> bool {
    let first = value.split([',', ';']).next().unwrap_or_default();
    first.contains('=') && !first.starts_with('"')
}

fn reset(when: When, now: Millis, is_span: bool) -> Option<Reset> {
    let kind = match when {
        _ if is_span => ResetKind::After,
        When::In(_) => ResetKind::Span,
        When::At(_) => ResetKind::Moment,
    };
    let span = when.from(now)?;
    Some(Reset { span, kind })
}
