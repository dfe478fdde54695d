//! The values of properties that permit a few words, as enums. Several machines share them.

use std::time::Duration;

use super::{
    EffectiveConfig,
    java::{duration, reading::BY_DURATION},
};

/// `broker.address.family`: the address families that are used for brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFamily {
    /// IPv4 and IPv6.
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// `topic.recreate.policy`: the reaction to a topic that was deleted and recreated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicRecreatePolicy {
    /// Stop with an error.
    Error,
    /// Continue according to `auto.offset.reset`.
    Reset,
}

/// `fetch.damaged.batch.policy`: the reaction to a fetched batch that can't be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedBatchPolicy {
    /// Stand still and report an error after each back-off.
    Stop,
    /// Fetch it a few times, then continue behind it.
    Skip,
}

/// `auto.offset.reset`: the position from which to continue when the current one does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetReset {
    /// At the first offset.
    Beginning,
    /// At the end of the log.
    End,
    /// At the first record whose age is at most this.
    Since(Duration),
    /// No position: report an error.
    Error,
}

/// `isolation.level`: which records a consumer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    /// All records.
    ReadUncommitted,
    /// Records of committed transactions only.
    ReadCommitted,
}

impl AddressFamily {
    /// Reads `broker.address.family`.
    pub fn new(config: &EffectiveConfig<'_>) -> Self {
        match config.text("broker.address.family") {
            "v4" => Self::V4,
            "v6" => Self::V6,
            _ => Self::Any,
        }
    }
}

impl TopicRecreatePolicy {
    /// Reads `topic.recreate.policy`.
    pub fn new(config: &EffectiveConfig<'_>) -> Self {
        match config.text("topic.recreate.policy") {
            "error" => Self::Error,
            _ => Self::Reset,
        }
    }
}

impl DamagedBatchPolicy {
    /// Reads `fetch.damaged.batch.policy`.
    pub fn new(config: &EffectiveConfig<'_>) -> Self {
        match config.text("fetch.damaged.batch.policy") {
            "skip" => Self::Skip,
            _ => Self::Stop,
        }
    }
}

impl OffsetReset {
    /// Parses a value of `auto.offset.reset`.
    pub fn of(value: &str) -> Self {
        match value {
            "smallest" | "earliest" | "beginning" => Self::Beginning,
            "error" | "none" => Self::Error,
            _ => match value.strip_prefix(BY_DURATION).and_then(duration::parse) {
                Some(duration) => Self::Since(duration),
                None => Self::End,
            },
        }
    }
}

impl IsolationLevel {
    /// Reads `isolation.level`.
    pub fn new(config: &EffectiveConfig<'_>) -> Self {
        match config.text("isolation.level") {
            "read_uncommitted" => Self::ReadUncommitted,
            _ => Self::ReadCommitted,
        }
    }
}
