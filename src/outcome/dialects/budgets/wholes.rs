//! Values that tell of a whole budget: dictionaries, pairs, rules and sentences.

use super::Budgets;
use crate::governor::time::Span;
use crate::outcome::dialects::names::{self, Name, Role, Unit};
use crate::outcome::dialects::values::{self, Item};
use crate::outcome::dialects::{pairs, sentences};
use crate::outcome::durations;
use crate::outcome::structured::{self, Entry};

/// In the name of a header that tells how a rule stands.
const STATE: &str = "state";

impl Budgets {
    /// A value that may tell of a whole budget.
    pub(super) fn read_told(&mut self, raw: &str, name: &Name, value: &str) {
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
}

/// The entries of a value, with whose they are.
pub(super) fn entries(name: &Name, value: &str) -> Vec<Entry> {
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

/// Whether a value begins with a key, rather than having parameters behind a
/// count.
fn is_dictionary(value: &str) -> bool {
    let first = value.split([',', ';']).next().unwrap_or_default();
    first.contains('=') && !first.starts_with('"')
}
