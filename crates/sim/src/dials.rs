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

/// Declares the dials of a kind of world: a name with its unit, the simplest value, the kind of number, and the field.
///
/// | kind | field |
/// |---|---|
/// | `number`, `flag` | a number; a `bool`, which is 0 or 1 |
/// | `ms`, `us` | a `Duration` |
/// | `derived_us` | an `Option<Duration>` with a method of the same name that returns the time in use |
/// | `topics`, `partitions` | names of topics with their partitions: how many topics, and partitions of the largest one |
macro_rules! dials {
    (
        $(#[$doc:meta])* $visible:vis $table:ident: $knobs:ty;
        $($name:literal $simplest:tt $kind:ident $($field:ident).+;)*
    ) => {
        $(#[$doc])*
        $visible const $table: &[$crate::dials::Dial<$knobs>] = &[$($crate::dials::Dial::new(
            $name,
            $simplest,
            |knobs| $crate::dials::value_of!($kind, knobs, $($field).+),
            |knobs, value| $crate::dials::change!($kind, knobs, $($field).+, value, $simplest),
        )),*];
    };
}

/// Reads a field of a kind of [`dials`].
macro_rules! value_of {
    (number, $knobs:ident, $($field:ident).+) => { $knobs.$($field).+ as u64 };
    (flag, $knobs:ident, $($field:ident).+) => { u64::from($knobs.$($field).+) };
    (ms, $knobs:ident, $($field:ident).+) => { $knobs.$($field).+.as_millis() as u64 };
    (us, $knobs:ident, $($field:ident).+) => { $knobs.$($field).+.as_micros() as u64 };
    (derived_us, $knobs:ident, $($field:ident).+) => { $knobs.$($field).+().as_micros() as u64 };
    (topics, $knobs:ident, $($field:ident).+) => { $knobs.$($field).+.len() as u64 };
    (partitions, $knobs:ident, $($field:ident).+) => { $crate::dials::most_partitions(&$knobs.$($field).+) };
}

/// Changes a field of a kind of [`dials`].
macro_rules! change {
    (number, $knobs:ident, $($field:ident).+, $value:ident, $simplest:tt) => { $knobs.$($field).+ = $value as _ };
    (flag, $knobs:ident, $($field:ident).+, $value:ident, $simplest:tt) => { $knobs.$($field).+ = $value != 0 };
    (ms, $knobs:ident, $($field:ident).+, $value:ident, $simplest:tt) => {
        $knobs.$($field).+ = std::time::Duration::from_millis($value)
    };
    (us, $knobs:ident, $($field:ident).+, $value:ident, $simplest:tt) => {
        $knobs.$($field).+ = std::time::Duration::from_micros($value)
    };
    (derived_us, $knobs:ident, $($field:ident).+, $value:ident, $simplest:tt) => {
        $knobs.$($field).+ = Some(std::time::Duration::from_micros($value))
    };
    (topics, $knobs:ident, $($field:ident).+, $value:ident, $simplest:tt) => {
        // Some worlds need more than one topic.
        $crate::dials::keep_topics(&mut $knobs.$($field).+, $value.max($simplest))
    };
    (partitions, $knobs:ident, $($field:ident).+, $value:ident, $simplest:tt) => {
        $crate::dials::keep_partitions(&mut $knobs.$($field).+, $value)
    };
}

pub(crate) use {change, dials, value_of};

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
