//! What behaviours of the client are tested with; the behaviours are in `tests/scenarios/`, one file per subject.
//!
//! A scenario is a function over a [`Backend`], named as a sentence. [`run_on_all!`] makes two tests of it: one on the
//! embedded brokers, one on the brokers of Apache Kafka that the environment variable `OTTLA_BOOTSTRAP` names (without
//! it, that test does nothing; `cargo xtask test` sets it). A scenario that needs to break something takes the power to
//! do so from [`Backend::control`] and is listed in [`run_on_embedded!`].
//!
//! What is in the brokers' logs is read by [`raw`], a client of its own, so that producer and consumer don't vouch for
//! each other. [`FakeServer`] is what isn't a broker at all.

#![forbid(unsafe_code)]

mod backend;
mod fake_server;
pub mod raw;
mod reports;

pub use backend::{Backend, PATIENCE, config, eventually, unused_topic_name};
pub use fake_server::FakeServer;
pub use reports::{Report, Reports};

/// Makes tests of scenarios, on the embedded brokers and on Apache Kafka.
#[macro_export]
macro_rules! run_on_all {
    ($($scenario:ident),* $(,)?) => {
        mod on_embedded_brokers {
            $(#[test]
            fn $scenario() {
                super::$scenario(&$crate::Backend::embedded());
            })*
        }
        mod on_apache_kafka {
            $(#[test]
            fn $scenario() {
                if let Some(backend) = $crate::Backend::apache_kafka() {
                    super::$scenario(&backend);
                }
            })*
        }
    };
}

/// Makes tests of scenarios that need the embedded brokers' control.
#[macro_export]
macro_rules! run_on_embedded {
    ($($scenario:ident),* $(,)?) => {
        mod only_on_embedded_brokers {
            $(#[test]
            fn $scenario() {
                super::$scenario(&$crate::Backend::embedded());
            })*
        }
    };
}
