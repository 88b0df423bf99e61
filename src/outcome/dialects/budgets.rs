//! Gathers what single headers say into budgets: the headers whose names differ
//! in their role only belong together, and items of their lists by their place
//! or their window.

mod told;
mod wholes;

use super::groups::Group;
use super::names::{Name, Role};
use super::sentences;
use super::values::{self, Item, MOST_ITEMS};
use crate::governor::time::{Millis, Span};
use crate::outcome::durations::{self, Decimal, When};
use crate::outcome::structured::Entry;
use crate::outcome::windows::{Reset, ResetKind};

use self::wholes::entries;

/// Budgets of one kind in a response; real ones tell of a dozen. What follows
/// compares them with one another.
const MOST_BUDGETS: usize = 64;

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
}

/// `resets-after: 00:00:05`; under other names it could be a time of the day.
pub fn countdown(name: &Name, text: &str) -> Option<When> {
    let is_clock = name.is_countdown && text.contains(':');
    is_clock.then(|| durations::clock(text).map(When::In))?
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
