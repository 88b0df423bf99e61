//! Gathers what single headers say into budgets: the headers whose names differ
//! in their role only belong together, and items of their lists by their place
//! or their window.

use super::names::{Name, Role, Unit, is_secondary};
use super::values::{self, Count, Item};
use crate::governor::time::{Millis, Span};
use crate::outcome::durations::{self, Decimal, SECOND, When};
use crate::outcome::structured::{self, Entry};
use crate::outcome::windows::{Reset, ResetKind, Window};

/// Items of one value that are looked at.
const MOST_ITEMS: usize = 16;

/// A group of headers that tell of one budget, or of a list of them.
#[derive(Default)]
struct Group {
    unit: Option<Unit>,
    scope: String,
    has_x: bool,
    window_ms: Option<u64>,
    limits: Vec<Item>,
    remaining: Vec<Item>,
    used: Vec<Item>,
    resets: Vec<Reset>,
    /// Policies of drafts 02 and 03, behind the limit.
    policies: Vec<Entry>,
    length: Option<Span>,
    /// A window without a unit of its own.
    bare_length: Option<u64>,
    has_epoch_ms: bool,
    refill: Option<Decimal>,
}

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
        if name.is_weak && items.iter().any(|item| item.of.is_none()) {
            return;
        }
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
        });
        let place = place.unwrap_or_else(|| {
            self.groups.push(Group {
                unit: name.unit,
                scope: name.scope.clone(),
                window_ms: name.window_ms,
                has_x: name.has_x,
                ..Group::default()
            });
            self.groups.len().saturating_sub(1)
        });
        #[expect(clippy::indexing_slicing, reason = "found or pushed above")]
        &mut self.groups[place]
    }

    pub fn into_windows(self) -> Vec<Window> {
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
        for group in &self.groups {
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
        windows
    }
}

/// The entries of a value, with whose they are.
fn tagged(name: &Name, value: &str) -> Vec<(String, Entry)> {
    let mut entries = structured::entries(value);
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

/// Fills in the counts, by what each means beside the others.
fn count(window: &mut Window, limit: Option<Count>, remaining: Option<Count>, used: Option<Count>) {
    let used = used.and_then(Count::whole);
    window.limit = limit.and_then(Count::whole).filter(|limit| *limit > 0);
    window.remaining = match remaining {
        Some(Count::Number(number)) => Some(number.whole),
        // Used up and more; without a limit it means that there is none.
        Some(Count::Negative) => window.limit.map(|_| 0),
        Some(Count::Unlimited) => None,
        None => window
            .limit
            .zip(used)
            .map(|(limit, used)| limit.saturating_sub(used)),
    };
    if limit.is_none()
        && let (Some(used), Some(left)) = (used, window.remaining)
    {
        let sum = used.saturating_add(left);
        window.limit = (1..=crate::governor::time::MAX_SAFE)
            .contains(&sum)
            .then_some(sum);
    }
}

impl Group {
    /// A list whose first item is plain and whose rest have windows is drafts'
    /// 02 and 03: a limit, and the policies that it may come from.
    fn put_limits(&mut self, mut items: Vec<Item>) {
        let is_plain = items.first().is_some_and(|item| !item.is_policy);
        if is_plain && items.iter().skip(1).any(|item| item.is_policy) {
            let rest = items.split_off(1);
            self.policies = rest
                .into_iter()
                .filter(|item| item.is_policy)
                .map(|item| Entry {
                    limit: item.count,
                    window: item.window,
                    ..Entry::default()
                })
                .collect();
        }
        self.limits = items;
    }

    fn windows(&self, policies: &[Entry]) -> Vec<Window> {
        let places = self
            .limits
            .len()
            .max(self.remaining.len())
            .max(self.used.len())
            .max(1);
        (0..places)
            .map(|place| self.window(place, policies))
            .filter(|window| !window.is_empty())
            .collect()
    }

    fn window(&self, place: usize, policies: &[Entry]) -> Window {
        let limit = nth(&self.limits, place, None);
        let stated = limit.and_then(|item| item.window);
        let remaining = nth(&self.remaining, place, stated);
        let used = nth(&self.used, place, stated);
        let in_item = [limit, remaining, used]
            .into_iter()
            .flatten()
            .find_map(|item| item.window);
        let mut window = Window {
            unit: self.unit.unwrap_or_default(),
            scope: self.scope.clone(),
            reset: self.resets.get(place).or(self.resets.first()).copied(),
            length: in_item.or(self.stated_length()),
            is_idle: is_secondary(&self.scope, self.window_ms),
            ..Window::default()
        };
        window.is_length_stated = window.length.is_some();
        window.length = window.length.or(self.window_ms.map(Span::from_ms));
        let limit = limit.and_then(|item| item.count);
        count(
            &mut window,
            limit,
            remaining.and_then(|item| item.count),
            used.and_then(|item| item.count),
        );
        self.learn_rate(&mut window, limit);
        if window.length.is_none()
            && let Some(policy) = structured::policy_of(None, window.limit, policies)
        {
            window.length = policy.window;
            window.is_length_stated = policy.window.is_some();
            if limit.is_none() {
                window.limit = policy
                    .limit
                    .and_then(Count::whole)
                    .filter(|limit| *limit > 0);
            }
        }
        // `-1` tokens of `-1` are no budget, and their reset is none either.
        let is_no_limit = |count| matches!(count, Some(Count::Negative | Count::Unlimited));
        if is_no_limit(limit) && window.remaining.is_none() {
            window.reset = None;
        }
        window
    }

    /// The window that a header of its own states.
    fn stated_length(&self) -> Option<Span> {
        match self.bare_length {
            // Whoever counts the epoch in milliseconds does so here too.
            Some(number) if self.has_epoch_ms && number >= SECOND => Some(Span::from_ms(number)),
            _ => self.length,
        }
    }

    /// Limits that are rates: `0.5` a second, or what a bucket gains.
    fn learn_rate(&self, window: &mut Window, limit: Option<Count>) {
        window.refill = self.refill;
        // A decimal point, and no count beside it.
        if self.refill.is_none()
            && window.remaining.is_none()
            && self.used.is_empty()
            && let Some(Count::Number(number)) = limit
            && number.has_point
            && let Some((count, length)) = values::rate(number, window.interval())
        {
            window.limit = Some(count);
            window.length = Some(length);
            window.is_length_stated = true;
        }
    }
}

/// The item at a place of a list, or the one of the same window; a single one
/// stands for all.
fn nth(items: &[Item], place: usize, window: Option<Span>) -> Option<&Item> {
    if window.is_some()
        && let Some(item) = items.iter().find(|item| item.window == window)
    {
        return Some(item);
    }
    match items {
        [only] => Some(only),
        _ => items.get(place),
    }
}
