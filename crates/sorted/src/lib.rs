//! Sorted maps and sets that cost little code per type: [`SortedMap`] and [`SortedSet`] have the methods of `BTreeMap` and
//! `BTreeSet` that Ottla uses, and the same results.
//!
//! A client and a broker have hundreds of maps, each with other types of keys and values, and most have a dozen entries. The
//! compiler writes the code of a B-tree (descent, splits, merges, three kinds of iterators) for each of them: that was half
//! the code of the embedded broker and a fifth of that of the core. A map of this crate is a list of chunks:
//!
//! ```text
//! chunks   [ (1, a) (4, b) (6, c) ]  [ (9, d) (12, e) ]  [ (15, f) ]
//!            all keys are in order; no chunk is empty, none is longer than 4 KB
//! ```
//!
//! A lookup is a binary search among the chunks and one in a chunk. An insertion moves at most a chunk, and now and then the
//! list of chunks: with a million entries that is a few hundred bytes per insertion. Entries that come in order are appended.
//!
//! Reading order: [`map`] has the chunks and everything that needs to know them, [`iter`] what goes through them, [`entry`]
//! and [`set`] are made of these.
//!
//! A loop that takes the first entry moves the rest of its chunk each time; `into_iter` and `retain` do not.

#![forbid(unsafe_code)]

pub mod entry;
pub mod iter;
pub mod map;
pub mod set;

pub use entry::Entry;
pub use map::SortedMap;
pub use set::SortedSet;
