//! Balance of bytes: moves that let brokers hold about as much data as the others.

use std::collections::BTreeMap;

use ottla::TopicPartition;

use super::minimal::Placement;

/// Brokers whose bytes differ by less than this part of the average are even: moves for less cost more than they gain.
const TOLERANCE: i64 = 20;

impl Placement {
    /// Moves replicas from the brokers with the most bytes to those with the fewest, each time that which evens the two best, until no
    /// move helps or they differ by at most a twentieth of the average. Partitions of unknown size stay.
    pub fn balance_by_size(&mut self, size: impl Fn(&TopicPartition) -> Option<i64>) {
        let sizes: BTreeMap<TopicPartition, i64> = self
            .plan
            .keys()
            .filter_map(|key| Some((key.clone(), size(key).filter(|bytes| *bytes > 0)?)))
            .collect();
        let mut held: BTreeMap<i32, i64> = self.racks.keys().map(|broker| (*broker, 0)).collect();
        for (key, bytes) in &sizes {
            for broker in self.plan.get(key).into_iter().flatten() {
                if let Some(held) = held.get_mut(broker) {
                    *held = held.saturating_add(*bytes);
                }
            }
        }
        let total = held.values().fold(0i64, |sum, bytes| sum.saturating_add(*bytes));
        let tolerance = total / held.len().max(1) as i64 / TOLERANCE;
        // Each move makes the sum of the squares smaller, so there is an end.
        while let Some((key, from, to)) = self.next_by_size(&sizes, &held, tolerance) {
            let replicas = self.plan.get_mut(&key);
            if let Some(replica) =
                replicas.and_then(|replicas| replicas.iter_mut().find(|broker| **broker == from))
            {
                *replica = to;
            }
            self.add_load(from, -1);
            self.add_load(to, 1);
            let bytes = sizes.get(&key).copied().unwrap_or(0);
            *held.entry(from).or_default() -= bytes;
            *held.entry(to).or_default() += bytes;
        }
    }

    /// Returns the move between the most different brokers that leaves the smallest difference, and loses no rack.
    fn next_by_size(
        &self,
        sizes: &BTreeMap<TopicPartition, i64>,
        held: &BTreeMap<i32, i64>,
        tolerance: i64,
    ) -> Option<(TopicPartition, i32, i32)> {
        let mut by_bytes: Vec<(i64, i32)> = held.iter().map(|(broker, bytes)| (*bytes, *broker)).collect();
        by_bytes.sort_unstable();
        for (most, from) in by_bytes.iter().rev() {
            for (least, to) in &by_bytes {
                let gap = most.saturating_sub(*least);
                if gap <= tolerance {
                    break;
                }
                let fits = |(key, bytes): &(&TopicPartition, &i64)| {
                    **bytes < gap && self.plan.get(*key).is_some_and(|all| self.can_move(all, *from, *to))
                };
                let best = sizes.iter().filter(fits).min_by_key(|(_, bytes)| (gap - 2 * **bytes).abs());
                if let Some((key, _)) = best {
                    return Some((key.clone(), *from, *to));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the replicas after the balance of partitions with replicas and bytes.
    fn balanced(partitions: &[(&[i32], i64)], racks: &[(i32, &str)]) -> Vec<Vec<i32>> {
        let key = |at: usize| TopicPartition::new("t", at as i32);
        let plan = partitions.iter().enumerate().map(|(at, (replicas, _))| (key(at), replicas.to_vec()));
        let racks = racks.iter().map(|(id, rack)| (*id, Some((*rack).to_owned())));
        let mut placement = Placement::new(plan.collect(), racks.collect());
        placement.balance_by_size(|one| partitions.get(one.partition as usize).map(|(_, bytes)| *bytes));
        placement.plan.into_values().collect()
    }

    const THREE: [(i32, &str); 3] = [(1, "a"), (2, "b"), (3, "c")];

    #[test]
    fn bytes_become_even_with_few_moves() {
        // One large partition weighs as much as the three others.
        let all = balanced(&[(&[1], 300), (&[1], 100), (&[1], 100), (&[1], 100)], &THREE[..2]);
        assert_eq!(all, [[2], [1], [1], [1]]);
        let even = [(&[1][..], 100), (&[2], 98), (&[3], 102)];
        assert_eq!(balanced(&even, &THREE), [[1], [2], [3]], "within a twentieth");
        assert_eq!(balanced(&[(&[1], 500)], &THREE), [[1]], "no move would help");
        assert_eq!(balanced(&[(&[1], 0), (&[1], 0)], &THREE), [[1], [1]], "nothing to move");
    }

    #[test]
    fn replicas_stay_on_different_brokers_and_racks() {
        let all = balanced(&[(&[1, 2], 100), (&[1, 2], 100), (&[1, 2], 100)], &THREE);
        assert!(all.iter().all(|replicas| replicas[0] != replicas[1]), "{all:?}");
        let held = |broker| all.iter().filter(|replicas| replicas.contains(&broker)).count();
        assert_eq!([held(1), held(2), held(3)], [2, 2, 2]);
        let racks = [(1, "a"), (2, "b"), (3, "b")];
        let all = balanced(&[(&[1, 2], 100), (&[1, 2], 100)], &racks);
        assert!(all.iter().all(|replicas| replicas.contains(&1)), "the only one of rack a: {all:?}");
        assert!(all.iter().any(|replicas| replicas.contains(&3)), "{all:?}");
    }

    #[test]
    fn many_sizes_end_within_the_tolerance() {
        let mut state = 7u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as i64 % 1000 + 1
        };
        let partitions: Vec<(&[i32], i64)> = (0..300).map(|_| (&[1][..], next())).collect();
        let all = balanced(&partitions, &THREE);
        let held = |broker: i32| -> i64 {
            let of = all.iter().zip(&partitions).filter(|(replicas, _)| replicas.contains(&broker));
            of.map(|(_, (_, bytes))| bytes).sum()
        };
        let held = [held(1), held(2), held(3)];
        let average = held.iter().sum::<i64>() / 3;
        assert!(held.iter().max().unwrap() - held.iter().min().unwrap() <= average / 20, "{held:?}");
    }
}
