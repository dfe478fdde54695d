//! The checkers of the client's guarantees, one file each.

pub mod accounting;
mod assignments;
mod authentication;
pub mod busy;
pub mod consume;
pub mod delivery;
pub mod group_messages;
pub mod log;
mod member_rates;
pub mod membership;
pub mod memory;
mod messages;
mod misrouting;
mod openings;
pub mod share_sessions;
pub mod telemetry;
mod transaction_messages;
pub mod transactions;
pub mod wire;

use std::fmt;

/// A broken guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The checker that found it.
    pub checker: &'static str,
    /// What it found.
    pub what: String,
}

impl Broken {
    /// A finding.
    pub fn new(checker: &'static str, what: impl Into<String>) -> Self {
        Self { checker, what: what.into() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.checker, self.what)
    }
}
