//! Headers that tell of one budget, or of a list of them, put together item by
//! item.
//!
//! What a count means is decided here, by what stands beside it: a negative rest
//! of a sane limit is none, one without a limit is no budget.

use super::names::{Family, Unit, is_aside};
use super::values::{self, Count, Item};
use super::vendors;
use crate::governor::time::{MAX_SAFE, Span};
use crate::outcome::durations::{Decimal, SECOND};
use crate::outcome::structured::{self, Entry};
use crate::outcome::windows::{Reset, Standing, Window};

/// A group of headers that tell of one budget, or of a list of them.
#[derive(Default)]
pub struct Group {
    pub unit: Option<Unit>,
    pub scope: String,
    pub family: Family,
    /// No name of the group says that it is about limits.
    pub is_weak: bool,
    pub window_ms: Option<u64>,
    pub limits: Vec<Item>,
    pub remaining: Vec<Item>,
    pub used: Vec<Item>,
    pub resets: Vec<Reset>,
    /// Policies of drafts 02 and 03, behind the limit.
    pub policies: Vec<Entry>,
    pub length: Option<Span>,
    /// A window without a unit of its own.
    pub bare_length: Option<u64>,
    pub has_epoch_ms: bool,
    pub refill: Option<Decimal>,
}

impl Group {
    /// A list whose first item is plain and whose rest have windows is drafts'
    /// 02 and 03: a limit, and the policies that it may come from.
    pub fn put_limits(&mut self, mut items: Vec<Item>) {
        let is_plain = items.first().is_some_and(|item| !item.is_policy);
        if is_plain && items.iter().skip(1).any(|item| item.is_policy) {
            for item in items.iter().skip(1).filter(|item| item.is_policy) {
                self.policies.push(Entry {
                    limit: item.count,
                    window: item.window,
                    ..Entry::default()
                });
            }
            items.truncate(1);
        }
        self.limits = items;
    }

    /// Adds what the group tells of, among `policies` of the same scope.
    pub fn tell(&self, policies: &[&Entry], windows: &mut Vec<Window>) {
        let places = self
            .limits
            .len()
            .max(self.remaining.len())
            .max(self.used.len())
            .max(1);
        for place in 0..places {
            let window = self.window(place, policies);
            if !window.is_empty() {
                windows.push(window);
            }
        }
    }

    /// `x-acme-limit` alone can be anything; beside `x-acme-remaining`, or with a
    /// value of `used/limit`, it is a budget.
    pub fn is_believed(&self) -> bool {
        let is_pair = self.used.iter().any(|item| item.of.is_some());
        let is_whole =
            !self.scope.is_empty() && !self.limits.is_empty() && !self.remaining.is_empty();
        // `bucket-level` beside `bucket-size`.
        let is_bucket = self.scope.split('-').any(|word| word == "bucket")
            && !self.limits.is_empty()
            && !self.used.is_empty();
        !self.is_weak || is_pair || is_whole || is_bucket
    }

    /// A limit of nothing, and no word of what is left of it.
    pub fn is_of_nothing(&self) -> bool {
        let is_zero = |item: &Item| {
            item.count
                .and_then(Count::number)
                .is_some_and(Decimal::is_zero)
        };
        let is_alone = self.remaining.is_empty() && self.used.is_empty();
        is_alone && !self.limits.is_empty() && self.limits.iter().all(is_zero)
    }

    fn window(&self, place: usize, policies: &[&Entry]) -> Window {
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
            standing: self.standing(),
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

    fn standing(&self) -> Standing {
        if vendors::is_secondary(&self.scope, self.window_ms) {
            return Standing::Idle;
        }
        standing(&self.scope, None)
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
        // A decimal point, and no count beside it. Without a length it is a rate
        // only where it can't be a count, or its vendor says so.
        let is_rate = |number: Decimal| {
            number.whole == 0 || window.length.is_some() || vendors::speaks_in_rates(&self.scope)
        };
        if self.refill.is_none()
            && window.remaining.is_none()
            && self.used.is_empty()
            && let Some(Count::Number(number)) = limit
            && number.has_point
            && is_rate(number)
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

/// What a budget is by the words of its owner and of its own name.
pub fn standing(scope: &str, name: Option<&str>) -> Standing {
    if is_aside(scope) || name.is_some_and(is_aside) {
        Standing::Aside
    } else {
        Standing::InUse
    }
}

/// Fills in the counts, by what each means beside the others.
pub fn count(
    window: &mut Window,
    limit: Option<Count>,
    remaining: Option<Count>,
    used: Option<Count>,
) {
    // A part of a call that is used leaves no whole one.
    let used = used.and_then(Count::whole_up);
    // `0` of `0`: whether it says anything, is for those to say who know more.
    let is_none = |count: Option<Count>| count.and_then(Count::number).map(Decimal::is_zero);
    let is_void = match limit {
        Some(_) => is_none(limit),
        None => used.map(|used| used == 0),
    };
    if is_void == Some(true) && is_none(remaining) == Some(true) {
        window.standing = Standing::Void;
    }
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
        window.limit = (1..=MAX_SAFE).contains(&sum).then_some(sum);
    }
}
