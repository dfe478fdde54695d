//! What goes through the entries of a map: a front, whole chunks, and a back.

use std::{fmt, slice, vec};

use crate::map::Place;

/// The entries of a [`SortedMap`](crate::SortedMap), in order.
#[derive(Debug)]
pub struct Iter<'a, K, V> {
    front: slice::Iter<'a, (K, V)>,
    chunks: slice::Iter<'a, Vec<(K, V)>>,
    back: slice::Iter<'a, (K, V)>,
    left: usize,
}

impl<'a, K, V> Iter<'a, K, V> {
    pub(crate) fn of(chunks: &'a [Vec<(K, V)>], left: usize) -> Self {
        Self { front: [].iter(), chunks: chunks.iter(), back: [].iter(), left }
    }

    pub(crate) fn between(chunks: &'a [Vec<(K, V)>], start: Place, end: Place) -> Self {
        let chunk = |at: usize| chunks.get(at).map_or(&[][..], Vec::as_slice);
        let (front, chunks, back) = if start.chunk == end.chunk {
            (&chunk(start.chunk)[start.at..end.at], &[][..], &[][..])
        } else {
            (
                &chunk(start.chunk)[start.at..],
                &chunks[start.chunk + 1..end.chunk],
                &chunk(end.chunk)[..end.at],
            )
        };
        let left = front.len() + chunks.iter().map(Vec::len).sum::<usize>() + back.len();
        Self { front: front.iter(), chunks: chunks.iter(), back: back.iter(), left }
    }
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            front: self.front.clone(),
            chunks: self.chunks.clone(),
            back: self.back.clone(),
            left: self.left,
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.front.next() {
                self.left -= 1;
                return Some((key, value));
            }
            self.front = match self.chunks.next() {
                Some(chunk) => chunk.iter(),
                None if self.back.len() > 0 => std::mem::take(&mut self.back),
                None => return None,
            };
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.back.next_back() {
                self.left -= 1;
                return Some((key, value));
            }
            self.back = match self.chunks.next_back() {
                Some(chunk) => chunk.iter(),
                None if self.front.len() > 0 => std::mem::take(&mut self.front),
                None => return None,
            };
        }
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

/// The keys of a [`SortedMap`](crate::SortedMap), in order.
pub struct Keys<'a, K, V>(pub(crate) Iter<'a, K, V>);

/// The values of a [`SortedMap`](crate::SortedMap), in the order of their keys.
pub struct Values<'a, K, V>(pub(crate) Iter<'a, K, V>);

macro_rules! one_half {
    ($name:ident, $item:ident, $place:tt) => {
        impl<K, V> Clone for $name<'_, K, V> {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }
        }

        impl<K, V> fmt::Debug for $name<'_, K, V>
        where
            $item: fmt::Debug,
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.clone()).finish()
            }
        }

        impl<'a, K, V> Iterator for $name<'a, K, V> {
            type Item = &'a $item;

            fn next(&mut self) -> Option<&'a $item> {
                self.0.next().map(|entry| entry.$place)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }
        }

        impl<K, V> DoubleEndedIterator for $name<'_, K, V> {
            fn next_back(&mut self) -> Option<Self::Item> {
                self.0.next_back().map(|entry| entry.$place)
            }
        }

        impl<K, V> ExactSizeIterator for $name<'_, K, V> {}
    };
}

one_half!(Keys, K, 0);
one_half!(Values, V, 1);

/// The entries of a [`SortedMap`](crate::SortedMap), in order, with values that can be changed.
#[derive(Debug)]
pub struct IterMut<'a, K, V> {
    front: slice::IterMut<'a, (K, V)>,
    chunks: slice::IterMut<'a, Vec<(K, V)>>,
    back: slice::IterMut<'a, (K, V)>,
}

impl<'a, K, V> IterMut<'a, K, V> {
    pub(crate) fn of(chunks: &'a mut [Vec<(K, V)>]) -> Self {
        Self { front: [].iter_mut(), chunks: chunks.iter_mut(), back: [].iter_mut() }
    }

    pub(crate) fn between(chunks: &'a mut [Vec<(K, V)>], start: Place, end: Place) -> Self {
        let (before, behind) = chunks.split_at_mut(end.chunk);
        let last = behind.first_mut().map_or(&mut [][..], Vec::as_mut_slice);
        let Some((first, chunks)) = before.get_mut(start.chunk..).and_then(<[_]>::split_first_mut) else {
            return Self { front: last[start.at..end.at].iter_mut(), ..Self::of(&mut []) };
        };
        Self {
            front: first[start.at..].iter_mut(),
            chunks: chunks.iter_mut(),
            back: last[..end.at].iter_mut(),
        }
    }
}

impl<'a, K, V> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.front.next() {
                return Some((key, value));
            }
            self.front = match self.chunks.next() {
                Some(chunk) => chunk.iter_mut(),
                None if self.back.len() > 0 => std::mem::take(&mut self.back),
                None => return None,
            };
        }
    }
}

impl<K, V> DoubleEndedIterator for IterMut<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.back.next_back() {
                return Some((key, value));
            }
            self.back = match self.chunks.next_back() {
                Some(chunk) => chunk.iter_mut(),
                None if self.front.len() > 0 => std::mem::take(&mut self.front),
                None => return None,
            };
        }
    }
}

/// The entries of a [`SortedMap`](crate::SortedMap) that is used up, in order.
#[derive(Debug)]
pub struct IntoIter<K, V> {
    front: vec::IntoIter<(K, V)>,
    chunks: vec::IntoIter<Vec<(K, V)>>,
    back: vec::IntoIter<(K, V)>,
    left: usize,
}

impl<K, V> IntoIter<K, V> {
    pub(crate) fn of(chunks: Vec<Vec<(K, V)>>, left: usize) -> Self {
        Self { front: Vec::new().into_iter(), chunks: chunks.into_iter(), back: Vec::new().into_iter(), left }
    }
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        loop {
            if let Some(entry) = self.front.next() {
                self.left -= 1;
                return Some(entry);
            }
            self.front = match self.chunks.next() {
                Some(chunk) => chunk.into_iter(),
                None if self.back.len() > 0 => std::mem::take(&mut self.back),
                None => return None,
            };
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> DoubleEndedIterator for IntoIter<K, V> {
    fn next_back(&mut self) -> Option<(K, V)> {
        loop {
            if let Some(entry) = self.back.next_back() {
                self.left -= 1;
                return Some(entry);
            }
            self.back = match self.chunks.next_back() {
                Some(chunk) => chunk.into_iter(),
                None if self.front.len() > 0 => std::mem::take(&mut self.front),
                None => return None,
            };
        }
    }
}

impl<K, V> ExactSizeIterator for IntoIter<K, V> {}

/// The values of a [`SortedMap`](crate::SortedMap) that is used up, in the order of their keys.
#[derive(Debug)]
pub struct IntoValues<K, V>(pub(crate) IntoIter<K, V>);

impl<K, V> Iterator for IntoValues<K, V> {
    type Item = V;

    fn next(&mut self) -> Option<V> {
        self.0.next().map(|(_, value)| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for IntoValues<K, V> {
    fn next_back(&mut self) -> Option<V> {
        self.0.next_back().map(|(_, value)| value)
    }
}

impl<K, V> ExactSizeIterator for IntoValues<K, V> {}
