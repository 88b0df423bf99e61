//! The budgets of one response, and which of them governs.
//!
//! A response often tells of the same budget twice, or of one half here and the
//! other there: what agrees is put together, what contradicts stays apart. A
//! budget is never made up of two that may differ.

use super::dialects::names::Unit;
use super::dialects::values;
use super::durations::Decimal;
use crate::governor::time::Span;

/// One budget, as far as the response tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub unit: Unit,
    /// Whose budget, by the words of the headers' names.
    pub scope: String,
    pub limit: Option<u64>,
    pub remaining: Option<u64>,
    pub reset: Option<Reset>,
    pub length: Option<Span>,
    /// The length was stated by a value rather than by a name.
    pub is_length_stated: bool,
    pub standing: Standing,
    /// What a bucket gains in an interval of `length`.
    pub refill: Option<Decimal>,
}

/// What a budget means to the calls that are made now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    #[default]
    InUse,
    /// A policy that nothing says is in use now.
    Idle,
    /// Of a second tier, or of a programme that isn't in force yet.
    Aside,
    /// A limit of nothing, and nothing left of it: who took the call says nothing
    /// by it.
    Void,
}

/// When a window begins anew, and how: the earlier kinds need no clock or less
/// of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResetKind {
    After,
    Span,
    Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    pub span: Span,
    pub kind: ResetKind,
    /// A number whose unit nothing states: seconds, if that makes sense.
    pub is_bare: bool,
}

impl Reset {
    /// The one that leans on clocks least; of two alike, the first.
    pub fn better(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) if other.kind < one.kind => Some(other),
            (one, other) => one.or(other),
        }
    }
}

impl Window {
    fn has_counts(&self) -> bool {
        self.limit.is_some() || self.remaining.is_some()
    }

    fn is_idle(&self) -> bool {
        self.standing == Standing::Idle
    }

    fn is_aside(&self) -> bool {
        self.standing == Standing::Aside
    }

    pub fn is_empty(&self) -> bool {
        !self.has_counts() && self.reset.is_none() && self.length.is_none() && self.refill.is_none()
    }

    /// What a rate without an interval is meant for: a second.
    pub fn interval(&self) -> Span {
        self.length.unwrap_or(Span::from_seconds(1))
    }

    /// A bucket's window is as long as it takes to fill when empty, so that limit
    /// and window tell its rate.
    fn learn_refill(&mut self) {
        if let (Some(refill), Some(limit)) = (self.refill, self.limit)
            && let Some((count, length)) = values::rate(refill, self.interval())
        {
            let ms = length.ms().saturating_mul(limit).div_ceil(count.max(1));
            self.length = Some(Span::from_ms(ms));
            self.is_length_stated = true;
        }
    }

    /// The same budget, told twice: at least one count is the same and nothing
    /// differs.
    fn agrees_with(&self, other: &Self) -> bool {
        let shares = is_shared(self.limit, other.limit)
            || (is_shared(self.remaining, other.remaining)
                && self.limit.is_none() != other.limit.is_none());
        shares && self.may_be(other)
    }

    fn may_be(&self, other: &Self) -> bool {
        self.unit == other.unit
            && fits(self.limit, other.limit)
            && fits(self.remaining, other.remaining)
            && fits(self.length, other.length)
    }

    /// One has the limit, the other what is left of it, and nothing else tells
    /// them apart.
    fn completes(&self, other: &Self) -> bool {
        let are_halves = (self.limit.is_some() && self.remaining.is_none())
            && (other.limit.is_none() && other.remaining.is_some());
        let is_near = self.scope == other.scope || self.scope.is_empty() || other.scope.is_empty();
        are_halves && is_near && !self.is_idle() && self.may_be(other)
    }

    /// What a header beside the counts says of them.
    fn adopt(&mut self, orphan: &Self) {
        let is_near = self.has_counts()
            && self.unit == orphan.unit
            && (self.scope == orphan.scope || orphan.scope.is_empty())
            && (!orphan.is_length_stated || fits(self.length, orphan.length));
        if is_near {
            let reset = orphan.reset.filter(|reset| self.may_reset(*reset, orphan));
            // Its unit can't be told by a window that it may not be of.
            let reset = reset.map(|reset| Reset {
                is_bare: false,
                ..reset
            });
            self.reset = self.reset.or(reset);
            self.refill = self.refill.or(orphan.refill);
            if self.length.is_none() && orphan.is_length_stated {
                self.length = orphan.length;
                self.is_length_stated = true;
            }
        }
    }

    /// Whether a reset that stands alone can be this budget's: not past the end of
    /// its window, nor days ahead where nobody knows how long that is.
    fn may_reset(&self, reset: Reset, orphan: &Self) -> bool {
        let longest = match self.length {
            Some(length) => length.plus(Span::from_seconds(1)),
            None => LONGEST_ORPHAN,
        };
        fits(self.length, orphan.length) && reset.span <= longest
    }

    /// Numbers without a unit are seconds, unless that is absurd beside what else
    /// the budget says: then they are milliseconds.
    fn correct_units(&mut self) {
        if let (Some(reset), Some(length)) = (self.reset, self.length)
            && reset.is_bare
        {
            let span = in_ms_if_absurd(reset.span, length);
            self.reset = Some(Reset { span, ..reset });
        }
    }

    fn absorb(&mut self, other: &Self) {
        self.limit = self.limit.or(other.limit);
        self.remaining = self.remaining.or(other.remaining);
        self.reset = Reset::better(self.reset, other.reset);
        if self.length.is_none() {
            self.length = other.length;
            self.is_length_stated = other.is_length_stated;
        }
        if self.is_idle() {
            self.standing = other.standing;
        }
        self.refill = self.refill.or(other.refill);
    }
}

/// A reset that belongs to no count is not believed to be so far ahead.
const LONGEST_ORPHAN: Span = Span::from_seconds(2 * 86_400);

/// What was taken for seconds, in milliseconds if it ends long past `length` and
/// then lies within it.
pub fn in_ms_if_absurd(span: Span, length: Span) -> Span {
    let is_absurd = span.ms() > length.ms().saturating_mul(2);
    let shorter = Span::from_ms(span.ms().div_ceil(1000));
    if is_absurd && shorter <= length {
        shorter
    } else {
        span
    }
}

fn is_shared<T: PartialEq + Copy>(one: Option<T>, other: Option<T>) -> bool {
    one.is_some() && one == other
}

fn fits<T: PartialEq + Copy>(one: Option<T>, other: Option<T>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// Puts together what tells of the same budget.
pub fn merge(mut windows: Vec<Window>) -> Vec<Window> {
    let is_usual =
        |window: &Window| !window.is_aside() && window.has_counts() && window.unit != Unit::Other;
    if windows.iter().any(is_usual) {
        windows.retain(|window| !window.is_aside());
    }
    for window in &mut windows {
        window.correct_units();
    }
    let merged = fold(windows, Window::agrees_with);
    let mut merged = fold(merged, |one, other| {
        one.completes(other) || other.completes(one)
    });
    share_orphans(&mut merged);
    for window in &mut merged {
        window.learn_refill();
    }
    merged
}

fn fold(windows: Vec<Window>, is_same: impl Fn(&Window, &Window) -> bool) -> Vec<Window> {
    let mut merged: Vec<Window> = Vec::new();
    for window in windows {
        match merged.iter_mut().find(|one| is_same(one, &window)) {
            Some(one) => one.absorb(&window),
            None => merged.push(window),
        }
    }
    merged
}

/// A reset or a length that stands alone belongs to the counts beside it.
fn share_orphans(windows: &mut [Window]) {
    for place in 0..windows.len() {
        let Some(orphan) = windows.get(place).filter(|window| !window.has_counts()) else {
            continue;
        };
        let orphan = orphan.clone();
        for window in windows.iter_mut() {
            window.adopt(&orphan);
        }
    }
}

/// The budget of `unit` that governs: the one with the least left, on a tie the
/// one that resets later; where nothing says what is left, the tightest rate.
pub fn governing(windows: &[Window], unit: Unit) -> Option<&Window> {
    let of_unit = || windows.iter().filter(|window| window.unit == unit);
    let with_remaining = of_unit()
        .filter_map(|window| Some((window.remaining?, window)))
        .min_by(|(least, one), (left, other)| {
            let later = |window: &Window| (window.reset.map(|reset| reset.span), window.length);
            least.cmp(left).then_with(|| later(other).cmp(&later(one)))
        });
    if let Some((_, window)) = with_remaining {
        return Some(window);
    }
    let is_any_live = of_unit().any(|window| !window.is_idle());
    of_unit()
        .filter(|window| !(is_any_live && window.is_idle()))
        .min_by_key(|window| tightness(window))
        .filter(|window| !window.is_empty())
}

/// Calls in a million milliseconds; a limit of an unknown window is compared as
/// if it were a minute's.
fn tightness(window: &Window) -> u64 {
    let length = window.length.map_or(60_000, Span::ms).max(1);
    match window.limit {
        Some(limit) => limit.saturating_mul(1_000_000).div_ceil(length),
        None => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(limit: u64, remaining: u64, reset: u64, length: u64) -> Window {
        let some = |number: u64| (number != 0).then_some(number);
        Window {
            limit: some(limit),
            remaining: remaining.checked_sub(1),
            reset: some(reset).map(|ms| Reset {
                span: Span::from_ms(ms),
                kind: ResetKind::Span,
                is_bare: false,
            }),
            length: some(length).map(Span::from_ms),
            ..Window::default()
        }
    }

    fn governs(windows: &[Window]) -> Window {
        governing(windows, Unit::Requests).unwrap().clone()
    }

    #[test]
    fn the_least_that_is_left_governs_and_the_later_reset_on_a_tie() {
        let (hour, minute) = (window(1000, 6, 900, 3_600_000), window(10, 10, 20, 60_000));
        assert_eq!(governs(&[minute.clone(), hour.clone()]), hour);
        let (soon, late) = (window(10, 1, 5, 0), window(20, 1, 50, 0));
        assert_eq!(governs(&[soon.clone(), late.clone()]), late);
        assert_eq!(governs(&[late.clone(), soon]), late);
    }

    #[test]
    fn with_nothing_left_known_the_tightest_rate_governs() {
        let (day, second) = (window(1000, 0, 0, 86_400_000), window(10, 0, 0, 1000));
        assert_eq!(governs(&[second, day.clone()]), day);
    }

    #[test]
    fn the_same_budget_told_twice_is_one() {
        let merged = merge(vec![window(3, 3, 41, 0), window(3, 3, 0, 60_000)]);
        assert_eq!(merged, [window(3, 3, 41, 60_000)]);
        let apart = merge(vec![window(100, 96, 0, 0), window(10, 10, 0, 0)]);
        assert_eq!(apart.len(), 2);
    }

    #[test]
    fn halves_and_orphans_find_their_budget() {
        let halves = merge(vec![window(5000, 0, 0, 86_400_000), window(0, 9, 70, 0)]);
        assert_eq!(halves, [window(5000, 9, 70, 86_400_000)]);
        let orphan = merge(vec![window(10, 3, 0, 1000), window(0, 0, 7, 0)]);
        assert_eq!(governs(&orphan), window(10, 3, 7, 1000));
    }
}
