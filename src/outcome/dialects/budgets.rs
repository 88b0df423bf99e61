//! Gathers what single headers say into budgets: the headers whose names differ
//! in their role only belong together, and items of their lists by their place
//! or their window.

use super::groups::{Group, count, standing};
use super::names::{self, Name, Role, Unit};
use super::values::{self, Count, Item, MOST_ITEMS};
use super::{pairs, sentences};
use crate::governor::time::{Millis, Span};
use crate::outcome::durations::{self, Decimal, When};
use crate::outcome::structured::{self, Entry};
use crate::outcome::windows::{Reset, ResetKind, Standing, Window};

/// Budgets of one kind in a response; real ones tell of a dozen. What follows
/// compares them with one another.
const MOST_BUDGETS: usize = 64;
/// In the name of a header that tells how a rule stands.
const STATE: &str = "state";

/// Everything that the headers of a response say of budgets.
pub struct Budgets {
    now: Millis,
    groups: Vec<Group>,
    states: Vec<Entry>,
    policies: Vec<Entry>,
    /// For how long the calls are held back now, as their state tells.
    pub penalty: Option<Span>,
}

impl Budgets {
    /// `now`: the server's.
    pub const fn new(now: Millis) -> Self {
        Self {
            now,
            groups: Vec::new(),
            states: Vec::new(),
            policies: Vec::new(),
            penalty: None,
        }
    }

    /// `raw`: the name as it was read.
    pub fn read(&mut self, raw: &str, name: &Name, value: &str) {
        match name.role {
            Role::Policy => self.policies.extend(entries(name, value)),
            Role::State | Role::Entry | Role::Limit | Role::Remaining | Role::Used => {
                self.read_told(raw, name, value);
            }
            _ => self.read_one(name, value),
        }
    }

    /// A value that may tell of a whole budget.
    fn read_told(&mut self, raw: &str, name: &Name, value: &str) {
        let is_whole = matches!(name.role, Role::State | Role::Entry);
        // `api-usage=18/5000`, `b=per_hour;q=100;r=99;t=1`
        let is_dictionary = match name.role {
            Role::Limit | Role::Used => is_dictionary(value),
            _ => is_whole && structured::is_structured(value),
        };
        let told = if is_dictionary {
            entries(name, value)
        } else {
            Vec::new()
        };
        if !told.iter().any(Entry::tells) && self.read_pairs(raw, name, value) {
            return;
        }
        self.states.extend(told);
        if is_dictionary {
            return;
        }
        if is_whole && values::is_of_rules(value) {
            self.read_rules(name, value);
        } else if !self.read_sentence(name, value) {
            self.read_one(name, value);
        }
    }

    /// A value that says one thing, or a list of it.
    fn read_one(&mut self, name: &Name, value: &str) {
        match name.role {
            Role::Reset => self.read_reset(name, value),
            Role::Window => {
                let is_bare = name.unit_ms.is_none();
                let length = durations::window(value, name.unit_ms);
                let number = Decimal::parse(value).filter(|_| is_bare);
                let group = self.group(name);
                group.length = group.length.or(length);
                group.bare_length = number.map(|number| number.times(1).ms());
            }
            Role::Refill => self.group(name).refill = Decimal::parse(value),
            Role::Limit | Role::Remaining | Role::Used | Role::State => {
                self.read_counts(name, value);
            }
            Role::Entry | Role::RetryAfter | Role::Policy => {}
        }
    }

    /// `user-hour-lim:3500;user-hour-rem:500`: each pair as the header that it
    /// could be. True if that is what the value is.
    fn read_pairs(&mut self, raw: &str, name: &Name, value: &str) -> bool {
        let pairs = pairs::of(value);
        let says_what = |key: &str| {
            names::read(&format!("ratelimit-{key}")).is_some_and(|read| match read.role {
                Role::State | Role::Entry => {
                    let is_whole = matches!(name.role, Role::State | Role::Entry);
                    !is_whole && (read.window_ms.is_some() || read.unit.is_some())
                }
                Role::RetryAfter | Role::Policy => false,
                _ => true,
            })
        };
        if name.is_weak || !pairs.iter().any(|(key, _)| says_what(key)) {
            return false;
        }
        for (key, value) in &pairs {
            let Some(name) = names::read(&format!("{raw}-{key}")) else {
                continue;
            };
            // `Remaining: 49 requests`
            let is_count = matches!(name.role, Role::Limit | Role::Remaining | Role::Used);
            if !is_count || !self.read_sentence(&name, value) {
                self.read_one(&name, value);
            }
        }
        true
    }

    /// Pairs under `x-throttle-status`: as under the same name without the word
    /// that makes it none of a number.
    fn read_pairs_of(&mut self, raw: &str, value: &str) -> bool {
        let owner = names::without_denial(raw);
        let Some(name) = names::read(&owner) else {
            return false;
        };
        let is_of_counts = matches!(name.role, Role::State | Role::Entry | Role::Limit);
        is_of_counts && self.read_pairs(&owner, &name, value)
    }

    /// Rules of `hits:seconds:penalty` in a header that is named after whom they
    /// bind (another may list those names), and their state in one beside it.
    fn read_rules(&mut self, name: &Name, value: &str) {
        let owners = name.scope.split('-').filter(|word| *word != STATE);
        let scope = owners.collect::<Vec<_>>().join("-");
        let is_state = scope.len() != name.scope.len();
        // A credential: rules count calls.
        let scope = match name.unit {
            Some(Unit::Tokens) => format!("{scope}-token"),
            _ => scope,
        };
        let rule = Name {
            unit: name.unit.filter(|unit| *unit != Unit::Tokens),
            role: if is_state { Role::Used } else { Role::Limit },
            scope,
            ..name.clone()
        };
        if is_state {
            let waits = values::items(value).into_iter();
            let penalty = waits.filter_map(|item| item.penalty).max();
            let penalty = penalty.filter(|span| durations::is_plausible(*span));
            self.penalty = self.penalty.max(penalty.filter(|span| !span.is_zero()));
        }
        self.read_counts(&rule, value);
    }

    /// A sentence, or pairs, under a name that has no number: it must say what
    /// remains.
    pub fn read_message(&mut self, raw: &str, value: &str) {
        if pairs::tell_rest(value) && self.read_pairs_of(raw, value) {
            return;
        }
        if sentences::is_sentence(value)
            && let Some(entry) = sentences::budget(value)
            && entry.remaining.is_some()
        {
            self.states.push(entry);
        }
    }

    /// A value in words. True if that is what it is.
    fn read_sentence(&mut self, name: &Name, value: &str) -> bool {
        let is_read = |item: &Item| item.count.is_some() || item.window.is_some();
        if !sentences::is_sentence(value)
            || (name.role != Role::Entry && values::items(value).iter().all(is_read))
        {
            return false;
        }
        let told = sentences::budget(value).or_else(|| {
            // `42 requests`
            let count = sentences::counted(value)?;
            let mut entry = Entry::default();
            match name.role {
                Role::Limit => entry.limit = Some(count),
                Role::Remaining => entry.remaining = Some(count),
                _ => return None,
            }
            Some(entry)
        });
        let Some(mut entry) = told else { return false };
        // A name of anything is believed if the value leaves no doubt.
        if name.is_weak && (entry.remaining.is_none() || !entry.has_more_than_remaining()) {
            return false;
        }
        match name.role {
            // `0 left until …` under `quota`: the words behind it come first.
            Role::Limit if entry.remaining.is_none() && entry.used.is_none() => {
                entry.limit = entry.limit.or(sentences::leading(value));
            }
            Role::Remaining => entry.remaining = entry.remaining.or(sentences::leading(value)),
            _ => {}
        }
        entry.unit = entry.unit.or(name.unit);
        entry.scope.clone_from(&name.scope);
        entry.window = entry.window.or(name.window_ms.map(Span::from_ms));
        self.states.push(entry);
        true
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
            let text = values::unquoted(text);
            let when = When::parse(text, name.unit_ms, name.is_span)
                .or_else(|| countdown(name, text))
                .or_else(|| sentences::time(text))?;
            let is_bare = name.unit_ms.is_none() && Decimal::parse(text).is_some();
            reset(when, now, name.is_span, is_bare)
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
                && group.family == name.family
                && group.is_weak == name.is_weak
        });
        let place = place.unwrap_or_else(|| {
            self.groups.push(Group {
                unit: name.unit,
                scope: name.scope.clone(),
                window_ms: name.window_ms,
                family: name.family,
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

/// The entries of a value, with whose they are.
fn entries(name: &Name, value: &str) -> Vec<Entry> {
    let mut entries = structured::entries(value);
    entries.retain(|entry| {
        let is_pair = entry.used.is_some() && entry.limit.is_some();
        is_pair || !name.is_weak
    });
    for entry in &mut entries {
        entry.unit = entry.unit.or(name.unit);
        entry.scope.clone_from(&name.scope);
    }
    entries
}

/// `resets-after: 00:00:05`; under other names it could be a time of the day.
pub fn countdown(name: &Name, text: &str) -> Option<When> {
    let is_clock = name.is_countdown && text.contains(':');
    is_clock.then(|| durations::clock(text).map(When::In))?
}

/// Whether a value begins with a key, rather than having parameters behind a
/// count.
fn is_dictionary(value: &str) -> bool {
    let first = value.split([',', ';']).next().unwrap_or_default();
    first.contains('=') && !first.starts_with('"')
}

fn reset(when: When, now: Millis, is_span: bool, is_bare: bool) -> Option<Reset> {
    let kind = match when {
        _ if is_span => ResetKind::After,
        When::In(_) => ResetKind::Span,
        When::At(_) => ResetKind::Moment,
    };
    let span = when.from(now)?;
    let is_bare = is_bare && matches!(when, When::In(_));
    Some(Reset {
        span,
        kind,
        is_bare,
    })
}
