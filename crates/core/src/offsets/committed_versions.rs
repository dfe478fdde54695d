//! The versions of OffsetFetch with which its fields change.

/// The first version that reads from Kafka; version 0 reads from ZooKeeper.
pub(crate) const FIRST_IN_KAFKA: i16 = 1;
/// The first version with `RequireStable`, which waits for open transactions (KIP-447).
pub(crate) const FIRST_WITH_STABLE_OFFSETS: i16 = 7;
/// The last version for one group; later ones query several groups at once.
pub(crate) const LAST_WITH_ONE_GROUP: i16 = 7;
/// The last version with topic names.
pub(crate) const LAST_WITH_NAMES: i16 = 9;
/// The first version with topic IDs.
pub(crate) const FIRST_WITH_IDS: i16 = 10;
