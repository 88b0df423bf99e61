//! The ordered collections of the crate: [`Index`] and [`Table`], and, bounded,
//! [`Shelf`] and [`Recent`].
//!
//! Each pair of types that a `BTreeMap` is used with is compiled anew, some
//! 10 KB of wasm apiece, and every cold start pays for it. So the tree is here
//! once, over plain numbers, and what it finds lies in a row of slots. Nothing
//! here knows what the numbers or the values mean. Order is by key, always, so
//! that the same inputs give the same outputs.

mod shelf;

use std::collections::BTreeMap;

pub use shelf::{Recent, Shelf};

/// Places by key, in order of the keys. Every question is O(log n).
#[derive(Clone, Debug, Default)]
pub struct Index(BTreeMap<u128, u32>);

impl Index {
    pub const EMPTY: Self = Self(BTreeMap::new());

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, key: u128) -> Option<u32> {
        self.0.get(&key).copied()
    }

    /// Returns the place that the key had before.
    pub fn insert(&mut self, key: u128, place: u32) -> Option<u32> {
        self.0.insert(key, place)
    }

    pub fn remove(&mut self, key: u128) -> Option<u32> {
        self.0.remove(&key)
    }

    /// The lowest key with its place.
    pub fn first(&self) -> Option<(u128, u32)> {
        self.0.first_key_value().map(|(key, place)| (*key, *place))
    }

    /// Keys from `least` on, in their order, with their places.
    pub fn range_from(&self, least: u128) -> impl Iterator<Item = (u128, u32)> {
        self.0.range(least..).map(|(key, place)| (*key, *place))
    }
}

/// Values in places that stay the same while they are taken; a place that came
/// free is taken again.
#[derive(Clone, Debug)]
struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    fn get(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)?.as_ref()
    }

    fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    fn put(&mut self, value: T) -> u32 {
        let end = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        let place = self.free.pop().unwrap_or(end);
        match self.places.get_mut(place as usize) {
            Some(free) => *free = Some(value),
            None => self.places.push(Some(value)),
        }
        place
    }

    fn take(&mut self, place: u32) -> Option<T> {
        let value = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(value)
    }
}

/// Values by key, in order of the keys. Every question is O(log n).
#[derive(Clone, Debug)]
pub struct Table<T> {
    index: Index,
    values: Slab<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            index: Index::default(),
            values: Slab {
                places: Vec::new(),
                free: Vec::new(),
            },
        }
    }
}

impl<T> Table<T> {
    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    pub fn contains(&self, key: u128) -> bool {
        self.index.get(key).is_some()
    }

    pub fn get(&self, key: u128) -> Option<&T> {
        self.at(self.index.get(key)?)
    }

    pub fn get_mut(&mut self, key: u128) -> Option<&mut T> {
        self.values.get_mut(self.index.get(key)?)
    }

    /// The value in a place, for indexes of one's own.
    pub fn at(&self, place: u32) -> Option<&T> {
        self.values.get(place)
    }

    pub fn at_mut(&mut self, place: u32) -> Option<&mut T> {
        self.values.get_mut(place)
    }

    /// Returns the place, which is the value's until it is removed, and the
    /// value that the key had before.
    pub fn insert(&mut self, key: u128, value: T) -> (u32, Option<T>) {
        let displaced = self.remove(key);
        let place = self.values.put(value);
        self.index.insert(key, place);
        (place, displaced)
    }

    pub fn remove(&mut self, key: u128) -> Option<T> {
        self.values.take(self.index.remove(key)?)
    }

    /// Takes out the value with the lowest key.
    pub fn pop_first(&mut self) -> Option<T> {
        self.remove(self.index.first()?.0)
    }

    /// In order of the keys, from `least` on.
    pub fn range_from(&self, least: u128) -> impl Iterator<Item = (u128, &T)> {
        let entries = self.index.range_from(least);
        entries.filter_map(|(key, place)| Some((key, self.at(place)?)))
    }

    /// All, in order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (u128, &T)> {
        self.range_from(0)
    }

    /// Takes out everything for which `keep` says no; returns the keys.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) -> Vec<u128> {
        let gone = self.iter().filter(|(_, value)| !keep(value));
        let gone: Vec<u128> = gone.map(|(key, _)| key).collect();
        for key in &gone {
            self.remove(*key);
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is put in and taken out, it is what a map would hold, and
        /// no more places are taken than values were there at once.
        #[test]
        fn a_table_is_a_map(steps in prop::collection::vec((any::<bool>(), 0..20_u128), 0..200)) {
            let (mut table, mut map) = (Table::default(), BTreeMap::new());
            let mut most = 0;
            for (step, (puts, key)) in steps.into_iter().enumerate() {
                if puts {
                    let (place, displaced) = table.insert(key, step);
                    prop_assert_eq!(displaced, map.insert(key, step));
                    prop_assert_eq!(table.at(place), Some(&step));
                } else {
                    prop_assert_eq!(table.remove(key), map.remove(&key));
                }
                most = most.max(map.len());
                let all: Vec<_> = table.iter().map(|(key, value)| (key, *value)).collect();
                prop_assert_eq!(all, map.clone().into_iter().collect::<Vec<_>>());
                prop_assert!(table.values.places.len() <= most.max(1));
            }
            let odd = table.retain(|step| step % 2 == 0);
            prop_assert!(odd.iter().all(|key| map.get(key).is_some_and(|step| step % 2 == 1)));
            prop_assert_eq!(table.len(), map.values().filter(|step| *step % 2 == 0).count());
        }
    }
}
