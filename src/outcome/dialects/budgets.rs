//! Gathers what single headers say into budgets: the headers whose names differ
//! in their role only belong together, and items of their lists by their place
//! or their window.

use super::groups::{Group, count};
use super::names::{Name, Role};
use super::values::{self, Count, Item};
use crate::governor::time::Millis;
use crate::outcome::durations::{self, Decimal, When};
use crate::outcome::structured::{self, Entry};
use crate::outcome::windows::{Reset, ResetKind, Window};

/// Items of one value that are looked at.
const MOST_ITEMS: usize = 16;
/// Budgets of one kind in a response; real ones tell of a dozen. What follows
/// compares them with one another.
const MOST_BUDGETS: usize = 64;

/// Everything that the headers of a response say of budgets.
pub struct Budgets {
    now: Millis,
    groups: Vec<Group>,
    states: Vec<(String, Entry)>,
    policies: Vec<(String, Entry)>,
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
            Role::Policy => self.policies.extend(tagged(name, value)),
            Role::State | Role::Entry if is_structured => self.states.extend(tagged(name, value)),
            // `api-usage=18/5000`, `b=per_hour;q=100;r=99;t=1`
            Role::Limit | Role::Used if is_dictionary(value) => {
                self.states.extend(tagged(name, value));
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
        let mut items = values::items(value);
        items.truncate(MOST_ITEMS);
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
                group.limits = items
                    .iter()
                    .map(|item| Item {
                        count: item.of,
                        ..item.clone()
                    })
                    .collect();
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
        let resets: Vec<Reset> = one(value).map_or_else(
            || {
                let times = values::split_times(value);
                let times = times.iter().take(MOST_ITEMS);
                times.filter_map(|text| one(text)).collect()
            },
            |reset| vec![reset],
        );
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

    pub fn into_windows(mut self) -> Vec<Window> {
        self.states.truncate(MOST_BUDGETS);
        self.policies.truncate(MOST_BUDGETS);
        self.groups.truncate(MOST_BUDGETS);
        let mut windows = Vec::new();
        let mut idle = Vec::new();
        for (scope, policy) in &self.policies {
            let mut window = of_entry(policy, scope, self.now);
            window.is_idle = true;
            idle.push((policy, window));
        }
        let policies = |scope: &str| -> Vec<Entry> {
            let same = self.policies.iter().filter(|(other, _)| other == scope);
            same.map(|(_, policy)| policy.clone()).collect()
        };
        for (scope, state) in &self.states {
            let limit = state.limit.and_then(Count::whole);
            let policies = policies(scope);
            let policy = structured::policy_of(state.name.as_deref(), limit, &policies);
            windows.push(of_entry(&with_policy(state, policy), scope, self.now));
        }
        for group in self.groups.iter().filter(|group| group.is_believed()) {
            let mut policies = policies(&group.scope);
            policies.extend(group.policies.iter().cloned());
            windows.extend(group.windows(&policies));
        }
        // A policy that a state or a triple speaks of is told already.
        let is_told = |window: &Window| {
            windows.iter().any(|other| {
                !other.is_empty() && other.unit == window.unit && other.scope == window.scope
            })
        };
        let told: Vec<Window> = idle
            .into_iter()
            .map(|(_, window)| window)
            .filter(|window| !is_told(window))
            .collect();
        windows.extend(told);
        windows.truncate(MOST_BUDGETS);
        windows
    }
}

/// The entries of a value, with whose they are.
fn tagged(name: &Name, value: &str) -> Vec<(String, Entry)> {
    let mut entries = structured::entries(value);
    if name.is_weak {
        entries.retain(|entry| entry.used.is_some() && entry.limit.is_some());
    }
    entries.truncate(MOST_ITEMS);
    entries
        .into_iter()
        .map(|mut entry| {
            entry.unit = entry.unit.or(name.unit);
            (name.scope.clone(), entry)
        })
        .collect()
}

/// Whether a value begins with a key, rather than having parameters behind a
/// count.
fn is_dictionary(value: &str) -> bool {
    let first = value.split([',', ';']).next().unwrap_or_default();
    first.contains('=') && !first.starts_with('"')
}

fn with_policy(state: &Entry, policy: Option<&Entry>) -> Entry {
    let mut entry = state.clone();
    if let Some(policy) = policy {
        entry.limit = entry.limit.or(policy.limit);
        entry.window = policy.window.or(entry.window);
        entry.unit = policy.unit.or(entry.unit);
    }
    entry
}

fn of_entry(entry: &Entry, scope: &str, now: Millis) -> Window {
    let mut window = Window {
        unit: entry.unit.unwrap_or_default(),
        scope: scope.to_owned(),
        reset: entry.reset.and_then(|when| reset(when, now, false)),
        length: entry.window,
        is_length_stated: entry.window.is_some(),
        ..Window::default()
    };
    count(&mut window, entry.limit, entry.remaining, entry.used);
    window
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
