//! What to do about an error: a row for every error code of Kafka, and for every code of the C interface that the client itself sets.
//!
//! docs/guide/errors.md is generated from the rows, and [`Error::advice`](crate::error::Error::advice) returns them. `broker` and `local` are
//! the tables.

mod broker;
mod local;

use std::fmt;

use ottla_protocol::error_code::ErrorCode;

/// Who can change something about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The program that calls the client.
    Application,
    /// The configuration of the client.
    Configuration,
    /// Whoever grants rights and users on the cluster.
    Permission,
    /// Whoever operates the cluster.
    Cluster,
    /// The network between client and cluster.
    Network,
    /// Nobody: it passes, or the client deals with it.
    Nobody,
    /// This library.
    Ottla,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Application => "application",
            Self::Configuration => "configuration",
            Self::Permission => "permissions",
            Self::Cluster => "cluster",
            Self::Network => "network",
            Self::Nobody => "nobody",
            Self::Ottla => "Ottla",
        })
    }
}

/// A row of the tables.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// Who can change something.
    pub fault: Fault,
    /// What to do, as a sentence.
    pub what_to_do: &'static str,
}

/// Returns the advice for an error code of Kafka.
pub fn of_broker(code: ErrorCode) -> Option<Advice> {
    let row = broker::ROWS.iter().find(|row| row.0 == code.0)?;
    Some(Advice { fault: row.1, what_to_do: row.2 })
}

/// Returns the advice for a code of the C interface that the client sets, by its name without `RD_KAFKA_RESP_ERR_`.
pub fn of_library(name: &str) -> Option<Advice> {
    let row = local::ROWS.iter().find(|row| row.0 == name)?;
    Some(Advice { fault: row.1, what_to_do: row.2 })
}

/// Returns the names of the codes that have a row in the table of the client's own codes.
pub fn library_names() -> impl Iterator<Item = &'static str> {
    local::ROWS.iter().map(|row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_kafka_has_one_advice() {
        for code in ErrorCode::all().filter(|code| code.is_error()) {
            assert!(of_broker(code).is_some(), "{} {}", code.0, code.name());
        }
        let rows = broker::ROWS.iter().map(|row| row.0);
        assert!(rows.clone().zip(rows.skip(1)).all(|(one, next)| one < next), "the rows are in order");
        assert!(broker::ROWS.iter().all(|row| ErrorCode(row.0).is_known()));
    }

    #[test]
    fn advice_is_a_sentence() {
        let all = broker::ROWS.iter().map(|row| row.2).chain(local::ROWS.iter().map(|row| row.2));
        for text in all {
            assert!(text.ends_with('.') && text.starts_with(char::is_uppercase), "{text}");
            assert!(!text.contains('|'), "it stands in a table: {text}");
        }
    }
}
