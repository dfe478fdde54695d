//! The partitions in turn, whatever the key, as Java's RoundRobinPartitioner takes them.

use ottla_sorted::SortedMap;

use crate::lock::Mutex;

/// The next number of each topic.
#[derive(Debug, Default)]
pub struct Turns(Mutex<SortedMap<String, u32>>);

impl Turns {
    /// Returns the next partition of a topic that has a leader, or the next one if none has.
    pub fn next(&self, topic: &str, partition_count: i32, is_available: &dyn Fn(i32) -> bool) -> i32 {
        let mut turns = self.0.lock();
        let turn = match turns.get_mut(topic) {
            Some(turn) => turn,
            None => turns.entry(topic.to_owned()).or_default(),
        };
        let at = |number: u32| (number % partition_count.max(1) as u32) as i32;
        let first = *turn;
        let numbers = (0..partition_count.max(1) as u32).map(|step| first.wrapping_add(step));
        let chosen = numbers.into_iter().find(|number| is_available(at(*number))).unwrap_or(first);
        *turn = chosen.wrapping_add(1);
        at(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_topic_has_a_turn_and_leaderless_partitions_miss_theirs() {
        let turns = Turns::default();
        let all = |_| true;
        let found: Vec<_> = (0..4).map(|_| (turns.next("a", 3, &all), turns.next("b", 2, &all))).collect();
        assert_eq!(found, [(0, 0), (1, 1), (2, 0), (0, 1)]);
        let odd = |partition| partition % 2 == 1;
        assert_eq!([turns.next("a", 3, &odd), turns.next("a", 3, &odd)], [1, 1]);
        let none = |_| false;
        assert_eq!([turns.next("a", 3, &none), turns.next("a", 3, &none)], [2, 0]);
    }
}
