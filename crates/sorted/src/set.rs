//! The set: a map without values.

use std::{
    borrow::Borrow,
    fmt,
    ops::{BitAnd, BitOr, RangeBounds, Sub},
};

use crate::{iter, map::SortedMap};

/// A set whose elements are in order. See the [`crate`] for how it is built.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortedSet<T> {
    map: SortedMap<T, ()>,
}

impl<T> SortedSet<T> {
    /// Creates an empty set. It allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { map: SortedMap::new() }
    }

    /// Returns the number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.map.clear();
    }

    /// Returns the elements, in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self.map.iter())
    }

    /// Returns the lowest element.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.map.first_key_value().map(|(element, ())| element)
    }

    /// Returns the highest element.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.map.last_key_value().map(|(element, ())| element)
    }

    /// Removes the lowest element and returns it.
    pub fn pop_first(&mut self) -> Option<T> {
        self.map.pop_first().map(|(element, ())| element)
    }

    /// Removes the highest element and returns it.
    pub fn pop_last(&mut self) -> Option<T> {
        self.map.pop_last().map(|(element, ())| element)
    }

    /// Keeps the elements for which this is true. Asks for each once, in order.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.map.retain(|element, ()| keep(element));
    }

    /// Removes the elements for which this is true, and returns them in order.
    pub fn extract(&mut self, mut is_taken: impl FnMut(&T) -> bool) -> Vec<T> {
        let taken = self.map.extract(|element, ()| is_taken(element));
        taken.into_iter().map(|(element, ())| element).collect()
    }
}

impl<T: Ord> SortedSet<T> {
    /// Returns true if the set contains the element.
    #[must_use]
    pub fn contains<Q: Ord + ?Sized>(&self, element: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.map.contains_key(element)
    }

    /// Returns the element that is equal to this one.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, element: &Q) -> Option<&T>
    where
        T: Borrow<Q>,
    {
        self.map.get_key_value(element).map(|(known, ())| known)
    }

    /// Adds an element. Returns true if it is new; an equal one stays as it is.
    pub fn insert(&mut self, element: T) -> bool {
        self.map.insert(element, ()).is_none()
    }

    /// Removes an element. Returns true if the set contained it.
    pub fn remove<Q: Ord + ?Sized>(&mut self, element: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.map.remove(element).is_some()
    }

    /// Removes an element and returns it.
    pub fn take<Q: Ord + ?Sized>(&mut self, element: &Q) -> Option<T>
    where
        T: Borrow<Q>,
    {
        self.map.remove_entry(element).map(|(known, ())| known)
    }

    /// Returns the elements in this range, in order; none if it ends before it begins.
    pub fn range<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> Iter<'_, T>
    where
        T: Borrow<Q>,
    {
        Iter(self.map.range(range))
    }

    /// Removes the elements from this one on, and returns them.
    #[must_use = "the elements that are split off are dropped"]
    pub fn split_off<Q: Ord + ?Sized>(&mut self, element: &Q) -> Self
    where
        T: Borrow<Q>,
    {
        Self { map: self.map.split_off(element) }
    }

    /// Moves all elements of another set here.
    pub fn append(&mut self, other: &mut Self) {
        self.map.append(&mut other.map);
    }

    /// Returns true if the other set contains all elements.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.len() <= other.len() && self.iter().all(|element| other.contains(element))
    }

    /// Returns true if this set contains all elements of the other one.
    #[must_use]
    pub fn is_superset(&self, other: &Self) -> bool {
        other.is_subset(self)
    }

    /// Returns true if the sets have no element in common.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        !self.iter().any(|element| other.contains(element))
    }

    /// Returns the elements that are not in the other set, in order.
    pub fn difference<'a>(&'a self, other: &'a Self) -> impl DoubleEndedIterator<Item = &'a T> + Clone {
        self.iter().filter(|element| !other.contains(*element))
    }

    /// Returns the elements that are in both sets, in order.
    pub fn intersection<'a>(&'a self, other: &'a Self) -> impl DoubleEndedIterator<Item = &'a T> + Clone {
        self.iter().filter(|element| other.contains(*element))
    }
}

impl<T> Default for SortedSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for SortedSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<T: Ord> Extend<T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        self.map.extend(elements.into_iter().map(|element| (element, ())));
    }
}

impl<'a, T: Ord + Copy + 'a> Extend<&'a T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, elements: I) {
        self.extend(elements.into_iter().copied());
    }
}

impl<T: Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut set = Self::new();
        set.extend(elements);
        set
    }
}

impl<T: Ord, const N: usize> From<[T; N]> for SortedSet<T> {
    fn from(elements: [T; N]) -> Self {
        elements.into_iter().collect()
    }
}

impl<T: Ord + Clone> Sub for &SortedSet<T> {
    type Output = SortedSet<T>;

    fn sub(self, other: Self) -> SortedSet<T> {
        self.difference(other).cloned().collect()
    }
}

impl<T: Ord + Clone> BitAnd for &SortedSet<T> {
    type Output = SortedSet<T>;

    fn bitand(self, other: Self) -> SortedSet<T> {
        self.intersection(other).cloned().collect()
    }
}

impl<T: Ord + Clone> BitOr for &SortedSet<T> {
    type Output = SortedSet<T>;

    fn bitor(self, other: Self) -> SortedSet<T> {
        self.iter().chain(other).cloned().collect()
    }
}

impl<T> IntoIterator for SortedSet<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self.map.into_iter())
    }
}

impl<'a, T> IntoIterator for &'a SortedSet<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The elements of a [`SortedSet`], in order.
#[derive(Debug)]
pub struct Iter<'a, T>(iter::Iter<'a, T, ()>);

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.0.next().map(|(element, ())| element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T> DoubleEndedIterator for Iter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(element, ())| element)
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

/// The elements of a [`SortedSet`] that is used up, in order.
#[derive(Debug)]
pub struct IntoIter<T>(iter::IntoIter<T, ()>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next().map(|(element, ())| element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T> DoubleEndedIterator for IntoIter<T> {
    fn next_back(&mut self) -> Option<T> {
        self.0.next_back().map(|(element, ())| element)
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}
