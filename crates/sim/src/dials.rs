//! Dials: numbers among the knobs of a world that a [plan](crate::plan) names and changes.

/// A number among the knobs of a kind of world.
#[derive(Debug)]
pub struct Dial<K> {
    /// The name, with its unit unless it is a number of things.
    pub name: &'static str,
    /// The value with which a world is simplest.
    pub simplest: u64,
    /// Reads it.
    pub get: fn(&K) -> u64,
    /// Changes it.
    pub set: fn(&mut K, u64),
}

/// The value of a dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The dial's name.
    pub name: &'static str,
    /// The value.
    pub value: u64,
    /// The value with which a world is simplest.
    pub simplest: u64,
}

impl<K> Dial<K> {
    /// Creates a dial.
    pub const fn new(name: &'static str, simplest: u64, get: fn(&K) -> u64, set: fn(&mut K, u64)) -> Self {
        Self { name, simplest, get, set }
    }
}

/// Returns the values of all dials.
pub fn read<K>(dials: &[Dial<K>], knobs: &K) -> Vec<Setting> {
    let setting =
        |dial: &Dial<K>| Setting { name: dial.name, value: (dial.get)(knobs), simplest: dial.simplest };
    dials.iter().map(setting).collect()
}

/// Changes the dials whose values differ from these settings. Dials without a setting stay.
pub fn apply<K>(dials: &[Dial<K>], knobs: &mut K, settings: &[Setting]) {
    for dial in dials {
        let setting = settings.iter().find(|setting| setting.name == dial.name);
        if let Some(setting) = setting.filter(|setting| setting.value != (dial.get)(knobs)) {
            (dial.set)(knobs, setting.value);
        }
    }
}

/// Keeps at most this number of topics, and at least one.
pub fn keep_topics(topics: &mut Vec<(String, i32)>, count: u64) {
    topics.truncate(count.max(1) as usize);
}

/// Keeps at most this number of partitions of each topic, and at least one.
pub fn keep_partitions(topics: &mut [(String, i32)], count: u64) {
    topics.iter_mut().for_each(|(_, partitions)| *partitions = (*partitions).min(count.max(1) as i32));
}

/// Returns the number of partitions of the largest topic.
pub fn most_partitions(topics: &[(String, i32)]) -> u64 {
    topics.iter().map(|(_, partitions)| *partitions as u64).max().unwrap_or_default()
}
