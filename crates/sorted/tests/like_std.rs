//! The map and the set do what those of the standard library do, with random calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use arbtest::arbitrary::{Result, Unstructured};
use ottla_sorted::{Entry, SortedMap, SortedSet};

/// Large enough that 16 fill a chunk, so that few calls make many chunks.
type Value = [u64; 32];

fn value(of: u64) -> Value {
    [of; 32]
}

/// Both maps have the same entries, from both ends.
fn same(map: &SortedMap<u16, Value>, model: &BTreeMap<u16, Value>) {
    assert_eq!(map.len(), model.len());
    assert_eq!(map.is_empty(), model.is_empty());
    assert!(map.iter().eq(model.iter()));
    assert!(map.iter().rev().eq(model.iter().rev()));
    assert!(map.keys().eq(model.keys()));
    assert!(map.values().eq(model.values()));
    assert_eq!(map.iter().len(), model.len());
    assert_eq!(map.first_key_value(), model.first_key_value());
    assert_eq!(map.last_key_value(), model.last_key_value());
    assert_eq!(format!("{map:?}"), format!("{model:?}"));
}

fn bounds(u: &mut Unstructured<'_>) -> Result<(Bound<u16>, Bound<u16>)> {
    let (low, high) = (u.int_in_range(0..=300)?, u.int_in_range(0..=300)?);
    // The standard library panics if a range ends before it begins, or is empty with both ends excluded.
    let (low, high) = (low.min(high), low.max(high) + 1);
    let start = *u.choose(&[Bound::Included(low), Bound::Excluded(low), Bound::Unbounded])?;
    let end = *u.choose(&[Bound::Included(high), Bound::Excluded(high), Bound::Unbounded])?;
    Ok((start, end))
}

/// Makes a random call to both, and compares what they return.
fn call(
    u: &mut Unstructured<'_>,
    map: &mut SortedMap<u16, Value>,
    model: &mut BTreeMap<u16, Value>,
) -> Result<()> {
    let key = u.int_in_range(0..=300)?;
    match u.int_in_range(0..=18)? {
        0..=4 => assert_eq!(map.insert(key, value(1)), model.insert(key, value(1))),
        5..=6 => assert_eq!(map.remove(&key), model.remove(&key)),
        7 => {
            let first = u.int_in_range(0..=300)?;
            let many = u.int_in_range(0..=120)?;
            map.extend((first..first + many).map(|key| (key, value(2))));
            model.extend((first..first + many).map(|key| (key, value(2))));
        }
        8 => {
            *map.entry(key).or_default() = value(3);
            *model.entry(key).or_default() = value(3);
        }
        9 => {
            let change = |known: &mut Value| known[0] += 1;
            assert_eq!(
                map.entry(key).and_modify(change).or_insert(value(4)),
                model.entry(key).and_modify(change).or_insert(value(4))
            );
        }
        10 => {
            let taken = match map.entry(key) {
                Entry::Occupied(entry) => Some(entry.remove()),
                Entry::Vacant(_) => None,
            };
            assert_eq!(taken, model.remove(&key));
        }
        11 => {
            assert_eq!(map.pop_first(), model.pop_first());
            assert_eq!(map.pop_last(), model.pop_last());
        }
        12 => {
            let (start, end) = bounds(u)?;
            assert!(map.range((start, end)).eq(model.range((start, end))));
            assert!(map.range((start, end)).rev().eq(model.range((start, end)).rev()));
            assert_eq!(map.range((start, end)).len(), model.range((start, end)).count());
        }
        13 => {
            let (start, end) = bounds(u)?;
            map.range_mut((start, end)).for_each(|(key, value)| value[1] = u64::from(*key));
            model.range_mut((start, end)).for_each(|(key, value)| value[1] = u64::from(*key));
            assert!(map.range_mut((start, end)).rev().eq(model.range_mut((start, end)).rev()));
        }
        14 => {
            let (mut tail, mut tail_of_model) = (map.split_off(&key), model.split_off(&key));
            same(map, model);
            same(&tail, &tail_of_model);
            if u.arbitrary()? {
                map.append(&mut tail);
                model.append(&mut tail_of_model);
                assert!(tail.is_empty());
            }
        }
        15 => {
            let modulus = u.int_in_range(2..=40)?;
            map.retain(|key, _| key % modulus == 0);
            model.retain(|key, _| key % modulus == 0);
        }
        16 => {
            let taken = map.extract(|known, _| *known < key);
            let kept = model.split_off(&key);
            assert!(taken.into_iter().eq(std::mem::replace(model, kept)));
        }
        17 => {
            assert_eq!(map.get(&key), model.get(&key));
            assert_eq!(map.get_mut(&key), model.get_mut(&key));
            assert_eq!(map.contains_key(&key), model.contains_key(&key));
            if model.contains_key(&key) {
                assert_eq!(map[&key], model[&key]);
            }
        }
        _ => {
            // From both ends, until they meet.
            let (mut entries, mut expected) = (map.clone().into_iter(), model.clone().into_iter());
            while let Some(front) = expected.next() {
                assert_eq!(entries.next(), Some(front));
                assert_eq!(entries.next_back(), expected.next_back());
            }
            assert_eq!((entries.next(), entries.next_back()), (None, None));
            map.values_mut().for_each(|value| value[2] += 1);
            model.values_mut().for_each(|value| value[2] += 1);
        }
    }
    Ok(())
}

#[test]
fn map_does_what_the_standard_one_does() {
    arbtest::arbtest(|u| {
        let (mut map, mut model) = (SortedMap::new(), BTreeMap::new());
        while !u.is_empty() {
            call(u, &mut map, &mut model)?;
            same(&map, &model);
        }
        let again: SortedMap<u16, Value> = model.clone().into_iter().rev().collect();
        assert_eq!(again, map);
        assert_eq!(again.cmp(&map), std::cmp::Ordering::Equal);
        Ok(())
    })
    .budget_ms(1500);
}

#[test]
fn set_does_what_the_standard_one_does() {
    arbtest::arbtest(|u| {
        let (one, other): (Vec<u8>, Vec<u8>) = (u.arbitrary()?, u.arbitrary()?);
        let models: [BTreeSet<u8>; 2] = [one.iter().copied().collect(), other.iter().copied().collect()];
        let [a, b]: [SortedSet<u8>; 2] = [one.into_iter().collect(), other.into_iter().collect()];
        let [x, y] = &models;
        assert!(a.iter().eq(x) && b.iter().rev().eq(y.iter().rev()));
        assert!((&a - &b).iter().eq(&(x - y)));
        assert!((&a & &b).iter().eq(&(x & y)));
        assert!((&a | &b).iter().eq(&(x | y)));
        assert_eq!(a.is_subset(&b), x.is_subset(y));
        assert_eq!(a.is_superset(&b), x.is_superset(y));
        assert_eq!(a.is_disjoint(&b), x.is_disjoint(y));
        assert_eq!(a.cmp(&b), x.cmp(y));
        assert_eq!(format!("{a:?}"), format!("{x:?}"));
        Ok(())
    })
    .budget_ms(500);
}

#[test]
fn range_that_ends_before_it_begins_is_empty() {
    let set: SortedSet<i32> = (0..10_000).collect();
    let (low, high) = (100, 9_000);
    assert_eq!(set.range(high..low).len(), 0);
    let mut map: SortedMap<i32, ()> = (0..10_000).map(|key| (key, ())).collect();
    assert_eq!(map.range_mut(high..low).count(), 0);
    assert_eq!(map.range_mut(..).count(), 10_000);
}
