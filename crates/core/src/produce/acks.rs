//! `acks`: the replicas that must have a record before it counts as delivered.

use crate::config::EffectiveConfig;

/// The replicas that must have a record before it counts as delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acks {
    /// No replicas: the broker sends no response.
    None,
    /// The leader.
    Leader,
    /// All in-sync replicas.
    All,
    /// A number of replicas, in the C library only: brokers respond with INVALID_REQUIRED_ACKS.
    Replicas(i16),
}

impl Acks {
    /// Reads `acks`.
    pub fn new(config: &EffectiveConfig<'_>) -> Self {
        i16::try_from(config.integer("acks")).map_or(Self::All, Self::from_wire)
    }

    /// Returns the meaning of the number in a ProduceRequest.
    pub const fn from_wire(number: i16) -> Self {
        match number {
            0 => Self::None,
            1 => Self::Leader,
            2.. => Self::Replicas(number),
            _ => Self::All,
        }
    }

    /// Returns the number in a ProduceRequest.
    pub const fn to_wire(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
            Self::Replicas(number) => number,
        }
    }
}
