//! The entry of a key, whether there is one or not.

use std::mem;

use crate::map::{Place, SortedMap};

/// The entry of a key: [`SortedMap::entry`] returns it.
#[derive(Debug)]
pub enum Entry<'a, K, V> {
    /// The key has a value.
    Occupied(OccupiedEntry<'a, K, V>),
    /// The key has no value.
    Vacant(VacantEntry<'a, K, V>),
}

/// An entry that is there.
#[derive(Debug)]
pub struct OccupiedEntry<'a, K, V> {
    pub(crate) map: &'a mut SortedMap<K, V>,
    pub(crate) place: Place,
}

/// An entry that is not there.
#[derive(Debug)]
pub struct VacantEntry<'a, K, V> {
    pub(crate) map: &'a mut SortedMap<K, V>,
    pub(crate) place: Place,
    pub(crate) key: K,
}

impl<'a, K, V> Entry<'a, K, V> {
    /// Returns the value, and inserts this one before if the key has none.
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// Returns the value, and inserts what the function returns before if the key has none.
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> &'a mut V {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => entry.insert(value()),
        }
    }

    /// Returns the value, and inserts what the function returns for the key before if the key has none.
    pub fn or_insert_with_key(self, value: impl FnOnce(&K) -> V) -> &'a mut V {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => {
                let value = value(entry.key());
                entry.insert(value)
            }
        }
    }

    /// Returns the value, and inserts the default before if the key has none.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value if there is one.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            change(entry.get_mut());
        }
        self
    }
}

impl<'a, K, V> OccupiedEntry<'a, K, V> {
    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.map.pair(self.place).0
    }

    /// Returns the value.
    #[must_use]
    pub fn get(&self) -> &V {
        &self.map.pair(self.place).1
    }

    /// Returns the value; it can be changed.
    pub fn get_mut(&mut self) -> &mut V {
        &mut self.map.pair_mut(self.place).1
    }

    /// Returns the value for as long as the map is borrowed.
    #[must_use]
    pub fn into_mut(self) -> &'a mut V {
        &mut self.map.pair_mut(self.place).1
    }

    /// Sets the value, and returns the one that it had.
    pub fn insert(&mut self, value: V) -> V {
        mem::replace(self.get_mut(), value)
    }

    /// Removes the entry, and returns its value.
    pub fn remove(self) -> V {
        self.remove_entry().1
    }

    /// Removes the entry, and returns it.
    pub fn remove_entry(self) -> (K, V) {
        self.map.take(self.place)
    }
}

impl<'a, K, V> VacantEntry<'a, K, V> {
    /// Returns the key.
    #[must_use]
    pub const fn key(&self) -> &K {
        &self.key
    }

    /// Sets the value.
    pub fn insert(self, value: V) -> &'a mut V {
        let place = self.map.put(self.place, (self.key, value));
        &mut self.map.pair_mut(place).1
    }
}
