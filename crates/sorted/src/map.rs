//! The map.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    mem,
    ops::{Bound, Index, RangeBounds},
};

use crate::{
    entry::{Entry, OccupiedEntry, VacantEntry},
    iter::{IntoIter, IntoValues, Iter, IterMut, Keys, Values},
};

/// The bytes of the entries of a full chunk.
const CHUNK_BYTES: usize = 4096;

/// The entries of a full chunk, however large they are.
const SMALLEST_CHUNK: usize = 16;

/// Where an entry is, or would be inserted: its chunk, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub chunk: usize,
    pub at: usize,
}

/// A map whose entries are in the order of their keys. See the [`crate`] for how it is built.
#[derive(Clone)]
pub struct SortedMap<K, V> {
    /// None of them is empty.
    pub(crate) chunks: Vec<Vec<(K, V)>>,
    len: usize,
}

impl<K, V> SortedMap<K, V> {
    /// The entries of a full chunk.
    const FULL: usize = {
        let size = if size_of::<(K, V)>() == 0 { 1 } else { size_of::<(K, V)>() };
        let fitting = CHUNK_BYTES / size;
        if fitting < SMALLEST_CHUNK { SMALLEST_CHUNK } else { fitting }
    };

    /// Creates an empty map. It allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    /// Returns the number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the map is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.len = 0;
    }

    /// Returns the entries, in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::of(&self.chunks, self.len)
    }

    /// Returns the entries, in order; the values can be changed.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut::of(&mut self.chunks)
    }

    /// Returns the keys, in order.
    #[must_use]
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys(self.iter())
    }

    /// Returns the values, in the order of their keys.
    #[must_use]
    pub fn values(&self) -> Values<'_, K, V> {
        Values(self.iter())
    }

    /// Returns the values, in the order of their keys; they can be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// Returns the keys, in order.
    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = K> {
        self.into_iter().map(|(key, _)| key)
    }

    /// Returns the values, in the order of their keys.
    pub fn into_values(self) -> IntoValues<K, V> {
        IntoValues(self.into_iter())
    }

    /// Returns the entry with the lowest key.
    #[must_use]
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        let (key, value) = self.chunks.first()?.first()?;
        Some((key, value))
    }

    /// Returns the entry with the highest key.
    #[must_use]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        let (key, value) = self.chunks.last()?.last()?;
        Some((key, value))
    }

    /// Removes the entry with the lowest key and returns it.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (self.len > 0).then(|| self.take(Place { chunk: 0, at: 0 }))
    }

    /// Removes the entry with the highest key and returns it.
    pub fn pop_last(&mut self) -> Option<(K, V)> {
        let chunk = self.chunks.len().checked_sub(1)?;
        Some(self.take(Place { chunk, at: self.chunks[chunk].len() - 1 }))
    }

    /// Keeps the entries for which this is true. Asks for each entry once, in order.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        for chunk in &mut self.chunks {
            chunk.retain_mut(|(key, value)| keep(key, value));
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        self.count();
    }

    /// Removes the entries for which this is true, and returns them in order.
    pub fn extract(&mut self, mut is_taken: impl FnMut(&K, &mut V) -> bool) -> Vec<(K, V)> {
        let mut taken = Vec::new();
        for chunk in &mut self.chunks {
            taken.extend(chunk.extract_if(.., |(key, value)| is_taken(key, value)));
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        self.count();
        taken
    }

    fn count(&mut self) {
        self.len = self.chunks.iter().map(Vec::len).sum();
    }

    pub(crate) fn pair(&self, place: Place) -> &(K, V) {
        &self.chunks[place.chunk][place.at]
    }

    pub(crate) fn pair_mut(&mut self, place: Place) -> &mut (K, V) {
        &mut self.chunks[place.chunk][place.at]
    }

    /// Inserts an entry at the place that its key has, and returns where it is.
    pub(crate) fn put(&mut self, mut place: Place, entry: (K, V)) -> Place {
        self.len += 1;
        let is_last_chunk = place.chunk + 1 == self.chunks.len();
        let Some(chunk) = self.chunks.get_mut(place.chunk) else {
            self.chunks.push(vec![entry]);
            return place;
        };
        if chunk.len() < Self::FULL {
            chunk.insert(place.at, entry);
            return place;
        }
        // What comes in order fills its chunks.
        let split = if is_last_chunk && place.at == chunk.len() { place.at } else { chunk.len() / 2 };
        let mut second = chunk.split_off(split);
        if place.at < split {
            chunk.insert(place.at, entry);
        } else {
            second.insert(place.at - split, entry);
        }
        self.chunks.insert(place.chunk + 1, second);
        if place.at >= split {
            place = Place { chunk: place.chunk + 1, at: place.at - split };
        }
        place
    }

    /// Removes an entry.
    pub(crate) fn take(&mut self, place: Place) -> (K, V) {
        self.len -= 1;
        let chunk = &mut self.chunks[place.chunk];
        let taken = chunk.remove(place.at);
        if chunk.is_empty() {
            self.chunks.remove(place.chunk);
        } else if chunk.len() < Self::FULL / 4 {
            self.join(place.chunk);
            self.join(place.chunk.saturating_sub(1));
        }
        taken
    }

    /// Joins a chunk with the next one if they fill half a chunk at most: a map that shrinks does not keep a chunk per entry.
    fn join(&mut self, at: usize) {
        let [chunk, next, ..] = &mut self.chunks[at..] else { return };
        if chunk.len() + next.len() <= Self::FULL / 2 {
            chunk.append(next);
            self.chunks.remove(at + 1);
        }
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// Returns where a key is, or where it would be inserted.
    pub(crate) fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<Place, Place>
    where
        K: Borrow<Q>,
    {
        // The last chunk that begins at the key or before it.
        let following = self.chunks.partition_point(|chunk| chunk[0].0.borrow() <= key);
        let chunk = following.saturating_sub(1);
        let Some(entries) = self.chunks.get(chunk) else { return Err(Place { chunk: 0, at: 0 }) };
        match entries.binary_search_by(|(known, _)| known.borrow().cmp(key)) {
            Ok(at) => Ok(Place { chunk, at }),
            Err(at) => Err(Place { chunk, at }),
        }
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|place| &self.pair(place).1)
    }

    /// Returns the value of a key; it can be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|place| &mut self.pair_mut(place).1)
    }

    /// Returns the entry of a key.
    #[must_use]
    pub fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let (known, value) = self.pair(self.find(key).ok()?);
        Some((known, value))
    }

    /// Returns true if the map contains the key.
    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Sets the value of a key, and returns the value that it had. The key of an entry that is there stays.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(place) => Some(mem::replace(&mut self.pair_mut(place).1, value)),
            Err(place) => {
                self.put(place, (key, value));
                None
            }
        }
    }

    /// Removes the entry of a key and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes the entry of a key and returns it.
    pub fn remove_entry<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|place| self.take(place))
    }

    /// Returns the entry of a key, whether there is one or not.
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        match self.find(&key) {
            Ok(place) => Entry::Occupied(OccupiedEntry { map: self, place }),
            Err(place) => Entry::Vacant(VacantEntry { map: self, place, key }),
        }
    }

    /// Returns the entry with the lowest key.
    pub fn first_entry(&mut self) -> Option<OccupiedEntry<'_, K, V>> {
        (self.len > 0).then_some(OccupiedEntry { map: self, place: Place { chunk: 0, at: 0 } })
    }

    /// Returns the entries whose keys are in this range, in order; none if it ends before it begins.
    pub fn range<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let (start, end) = self.bounds(range);
        Iter::between(&self.chunks, start, end)
    }

    /// The same as [`range`](Self::range); the values can be changed.
    pub fn range_mut<Q: Ord + ?Sized>(&mut self, range: impl RangeBounds<Q>) -> IterMut<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let (start, end) = self.bounds(range);
        IterMut::between(&mut self.chunks, start, end)
    }

    /// Returns where a range begins, and the place behind its last entry.
    fn bounds<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> (Place, Place)
    where
        K: Borrow<Q>,
    {
        let before = |key: &Q| self.find(key).unwrap_or_else(|place| place);
        let behind = |key: &Q| match self.find(key) {
            Ok(place) => Place { at: place.at + 1, ..place },
            Err(place) => place,
        };
        let start = match range.start_bound() {
            Bound::Included(key) => before(key),
            Bound::Excluded(key) => behind(key),
            Bound::Unbounded => Place { chunk: 0, at: 0 },
        };
        let end = match range.end_bound() {
            Bound::Included(key) => behind(key),
            Bound::Excluded(key) => before(key),
            Bound::Unbounded => Place { chunk: self.chunks.len(), at: 0 },
        };
        (start, end.max(start))
    }

    /// Removes the entries from this key on, and returns them.
    #[must_use = "the entries that are split off are dropped"]
    pub fn split_off<Q: Ord + ?Sized>(&mut self, key: &Q) -> Self
    where
        K: Borrow<Q>,
    {
        let place = self.find(key).unwrap_or_else(|place| place);
        let mut other = Self::new();
        if place.chunk < self.chunks.len() {
            other.chunks = self.chunks.split_off(place.chunk);
            let kept = other.chunks[0].drain(..place.at).collect::<Vec<_>>();
            self.chunks.push(kept);
        }
        for map in [&mut *self, &mut other] {
            map.chunks.retain(|chunk| !chunk.is_empty());
            map.count();
        }
        other
    }

    /// Moves all entries of another map here. Where both have a key, the value of the other one counts.
    pub fn append(&mut self, other: &mut Self) {
        self.extend(mem::take(other));
    }

    /// Sets the value of a key that is usually higher than all others.
    fn insert_in_order(&mut self, key: K, value: V) {
        match self.last_key_value() {
            Some((last, _)) if *last >= key => {
                self.insert(key, value);
            }
            _ => {
                let chunk = self.chunks.len().saturating_sub(1);
                let at = self.chunks.last().map_or(0, Vec::len);
                self.put(Place { chunk, at }, (key, value));
            }
        }
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SortedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for SortedMap<K, V> {}

impl<K: PartialOrd, V: PartialOrd> PartialOrd for SortedMap<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.iter().partial_cmp(other.iter())
    }
}

impl<K: Ord, V: Ord> Ord for SortedMap<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl<K: Hash, V: Hash> Hash for SortedMap<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len);
        self.iter().for_each(|entry| entry.hash(state));
    }
}

impl<K: Borrow<Q> + Ord, Q: Ord + ?Sized, V> Index<&Q> for SortedMap<K, V> {
    type Output = V;

    /// Returns the value of a key.
    ///
    /// # Panics
    ///
    /// Panics if the map does not contain the key.
    fn index(&self, key: &Q) -> &V {
        self.find(key).map_or_else(|_| panic!("the map has no such key"), |place| &self.pair(place).1)
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| self.insert_in_order(key, value));
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for SortedMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter::of(self.chunks, self.len)
    }
}

impl<'a, K, V> IntoIterator for &'a SortedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut SortedMap<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_that_shrinks_keeps_few_chunks() {
        // 16 of these fill a chunk.
        let mut map: SortedMap<u32, [u64; 32]> = (0..1_000).map(|key| (key, [0; 32])).collect();
        assert!(map.chunks.len() >= 60, "{} chunks", map.chunks.len());
        (0..1_000).filter(|key| key % 100 != 0).for_each(|key| assert!(map.remove(&key).is_some()));
        assert!(map.keys().copied().eq((0..10).map(|count| count * 100)));
        assert!(map.chunks.len() <= 3, "{} chunks", map.chunks.len());
    }
}
