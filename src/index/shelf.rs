//! Bounded memory: [`Shelf`] by name, [`Recent`] by number. What was used
//! longest ago makes room for what comes, so that neither a name nor a hash
//! decides who is forgotten.

use std::cmp::Ordering;

use super::{Index, Slab};

/// Values in places, and in the order of their last use.
#[derive(Debug)]
struct Used<K, T> {
    entries: Slab<Entry<K, T>>,
    /// Places by the last use of what lies there.
    order: Index,
    uses: u128,
}

#[derive(Debug)]
struct Entry<K, T> {
    key: K,
    value: T,
    used: u128,
}

impl<K, T> Used<K, T> {
    const fn nothing() -> Self {
        Self {
            entries: Slab {
                places: Vec::new(),
                free: Vec::new(),
            },
            order: Index::EMPTY,
            uses: 0,
        }
    }

    fn put(&mut self, key: K, value: T) -> u32 {
        self.uses = self.uses.saturating_add(1);
        let used = self.uses;
        let place = self.entries.put(Entry { key, value, used });
        self.order.insert(used, place);
        place
    }

    /// What lies there, used now.
    fn recall(&mut self, place: u32) -> Option<&mut T> {
        let entry = self.entries.get_mut(place)?;
        // Whoever was used last already need not be put in order.
        if entry.used != self.uses {
            self.uses = self.uses.saturating_add(1);
            self.order.remove(entry.used);
            self.order.insert(self.uses, place);
            entry.used = self.uses;
        }
        Some(&mut entry.value)
    }

    fn take(&mut self, place: u32) -> Option<(K, T)> {
        let entry = self.entries.take(place)?;
        self.order.remove(entry.used);
        Some((entry.key, entry.value))
    }

    fn oldest(&self) -> Option<u32> {
        self.order.first().map(|(_, place)| place)
    }
}

/// Values by number, so many at the most.
#[derive(Debug)]
pub struct Recent<T> {
    most: usize,
    used: Used<u128, T>,
    places: Index,
}

impl<T> Recent<T> {
    /// `most`: how many are kept.
    pub const fn of(most: usize) -> Self {
        Self {
            most,
            used: Used::nothing(),
            places: Index::EMPTY,
        }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The value of a key, used now.
    pub fn recall(&mut self, key: u128) -> Option<&mut T> {
        self.used.recall(self.places.get(key)?)
    }

    pub fn put(&mut self, key: u128, value: T) {
        self.remove(key);
        if self.len() >= self.most {
            self.pop_oldest();
        }
        let place = self.used.put(key, value);
        self.places.insert(key, place);
    }

    pub fn remove(&mut self, key: u128) -> Option<T> {
        let place = self.places.remove(key)?;
        self.used.take(place).map(|(_, value)| value)
    }

    fn pop_oldest(&mut self) {
        if let Some((key, _)) = self.used.oldest().and_then(|place| self.used.take(place)) {
            self.places.remove(key);
        }
    }
}

/// Values by name, so many at the most: for the caches of an isolate.
#[derive(Debug)]
pub struct Shelf<T> {
    most: usize,
    used: Used<Box<str>, T>,
    /// Places, in order of the names.
    places: Vec<u32>,
}

impl<T> Shelf<T> {
    /// `most`: how many may lie on it.
    pub const fn of(most: usize) -> Self {
        Self {
            most,
            used: Used::nothing(),
            places: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.places.binary_search_by(|place| {
            let entry = self.used.entries.get(*place);
            entry.map_or(Ordering::Less, |entry| entry.key.as_ref().cmp(name))
        })
    }

    fn place(&self, name: &str) -> Option<u32> {
        self.places.get(self.find(name).ok()?).copied()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// Only looks: that is no use.
    pub fn get(&self, name: &str) -> Option<&T> {
        let entry = self.used.entries.get(self.place(name)?)?;
        Some(&entry.value)
    }

    /// The value of a name, used now.
    pub fn recall(&mut self, name: &str) -> Option<&mut T> {
        self.used.recall(self.place(name)?)
    }

    pub fn put(&mut self, name: &str, value: T) {
        if let Some(known) = self.recall(name) {
            *known = value;
            return;
        }
        if self.len() >= self.most {
            self.pop_oldest();
        }
        let at = self.find(name).unwrap_or_else(|at| at);
        let place = self.used.put(name.into(), value);
        self.places.insert(at, place);
    }

    pub fn remove(&mut self, name: &str) -> Option<T> {
        let place = self.places.remove(self.find(name).ok()?);
        self.used.take(place).map(|(_, value)| value)
    }

    /// Takes off what was used longest ago.
    pub fn pop_oldest(&mut self) -> Option<(Box<str>, T)> {
        let place = self.used.oldest()?;
        let name = &self.used.entries.get(place)?.key;
        if let Ok(at) = self.find(name) {
            self.places.remove(at);
        }
        self.used.take(place)
    }

    /// In order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let entries = self.places.iter();
        let entries = entries.filter_map(|place| self.used.entries.get(*place));
        entries.map(|entry| (entry.key.as_ref(), &entry.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Names and values, what was used last at the end.
    type Model = Vec<(u128, usize)>;

    fn recall(model: &mut Model, key: u128) -> Option<usize> {
        let at = model.iter().position(|(known, _)| *known == key)?;
        let entry = model.remove(at);
        model.push(entry);
        Some(entry.1)
    }

    proptest! {
        /// Whatever is put, used and taken out: what is there is what a list in
        /// the order of use would hold, and no place is lost.
        #[test]
        fn what_was_used_longest_ago_makes_room(
            most in 1..6_usize,
            steps in prop::collection::vec((0..4_u8, 0..9_u128), 0..200),
        ) {
            let (mut shelf, mut recent, mut model) = (Shelf::of(most), Recent::of(most), Model::new());
            for (step, (what, key)) in steps.into_iter().enumerate() {
                let name = key.to_string();
                match what {
                    0 | 1 => {
                        let is_new = recall(&mut model, key).is_none();
                        if is_new && model.len() == most {
                            model.remove(0);
                        }
                        model.retain(|(known, _)| *known != key);
                        model.push((key, step));
                        shelf.put(&name, step);
                        recent.put(key, step);
                    }
                    2 => {
                        let expected = recall(&mut model, key);
                        prop_assert_eq!(shelf.recall(&name).copied(), expected);
                        prop_assert_eq!(recent.recall(key).copied(), expected);
                    }
                    _ => {
                        let at = model.iter().position(|(known, _)| *known == key);
                        let expected = at.map(|at| model.remove(at).1);
                        prop_assert_eq!(shelf.remove(&name), expected);
                        prop_assert_eq!(recent.remove(key), expected);
                    }
                }
                let mut all: Vec<_> = model.iter().map(|(key, value)| (key.to_string(), *value)).collect();
                all.sort();
                let shown: Vec<_> = shelf.iter().map(|(name, value)| (name.to_owned(), *value)).collect();
                prop_assert_eq!(shown, all);
                prop_assert_eq!(recent.len(), model.len());
                prop_assert!(shelf.used.entries.places.len() <= most);
                prop_assert!(recent.used.entries.places.len() <= most);
                prop_assert_eq!(shelf.used.order.len(), model.len());
            }
            for (key, value) in model {
                let oldest = shelf.pop_oldest().map(|(name, value)| (name.to_string(), value));
                prop_assert_eq!(oldest, Some((key.to_string(), value)));
            }
            prop_assert!(shelf.is_empty() && shelf.pop_oldest().is_none());
        }
    }

    #[test]
    fn looking_is_no_use() {
        let mut shelf = Shelf::of(2);
        shelf.put("a", 1);
        shelf.put("b", 2);
        assert_eq!(shelf.get("a"), Some(&1));
        shelf.put("c", 3);
        assert!(!shelf.contains("a") && shelf.contains("b"));
    }
}
