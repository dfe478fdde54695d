//! Support for tests of the client's behaviour. The scenarios are in `tests/scenarios/`, one file per subject.
//!
//! A scenario is a function over a [`Backend`], named as a sentence. [`run_on_all!`] makes two tests of it: one on the
//! embedded brokers, one on the brokers of Apache Kafka that the environment variable `OTTLA_BOOTSTRAP` names (without
//! it, and on older brokers that lack what the scenario is about, that test is counted as [not checked](fn@not_checked); `cargo xtask test`
//! sets it). A scenario that injects faults uses [`Backend::control`]
//! and is listed in [`run_on_embedded!`].
//!
//! [`raw`] reads the brokers' logs with its own client, so that errors of producer and consumer can't cancel each
//! other. [`FakeServer`] is a server that is not a broker.

#![forbid(unsafe_code)]

mod backend;
mod fake_server;
mod not_checked;
pub mod raw;
mod reports;
mod requirements;

pub use backend::{Backend, TIMEOUT, config, eventually, unused_topic_name};
pub use fake_server::FakeServer;
pub use not_checked::not_checked;
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
                let test = concat!("test ", module_path!(), "::", stringify!($scenario));
                if let Some(backend) = $crate::Backend::apache_kafka(test) {
                    super::$scenario(&backend);
                }
            })*
        }
    };
}

/// Makes tests of scenarios that control the embedded brokers.
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
