//! The states of machines, seen from outside: the simulator counts which transitions its worlds take, by
//! [`ClusterCore::states`](crate::cluster::ClusterCore::states) and [`BrokerCore::states`](crate::broker::BrokerCore::states).

use std::{
    fmt::Debug,
    hash::{DefaultHasher, Hash, Hasher},
};

/// Receives the kind of a machine, its number among those of the actor, and its state, whose name is the first word of `{:?}`.
pub type See<'a> = dyn FnMut(&'static str, u64, &dyn Debug) + 'a;

/// Returns the number of the machine of a key, which stays the same while others come and go.
pub(crate) fn number_of(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
