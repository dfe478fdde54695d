//! The client of a registry. It blocks, and is used from any number of threads.
//!
//! ```text
//! Client: subjects, schemas, compatibility, modes     one file per group of calls
//!   └─ cache: answers that never change, one request in flight per key
//!   └─ call: addresses in turn, repetitions, deadline; errors of the registry
//!        └─ auth: headers          └─ http: one exchange
//! ```

mod addresses;
pub(crate) mod auth;
pub(crate) mod cache;
mod call;
mod compatibility;
pub(crate) mod config;
mod http;
mod modes;
mod path;
mod references;
mod schemas;
mod subjects;

use std::sync::Arc;

use self::{
    addresses::Addresses,
    auth::Authenticator,
    cache::Cache,
    http::{Exchange, Http},
};
pub use self::{
    auth::{Auth, OAuth},
    compatibility::CompatibilityReport,
    config::{Config, Secret, Tls},
    schemas::{Registered, Version},
    subjects::Deleted,
};
use crate::{Result, Schema, wire::Guid};

/// A client of a schema registry. Clones share the connections and what is remembered.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    addresses: Addresses,
    authenticator: Authenticator,
    http: Box<dyn Exchange>,
    by_id: Cache<u32, Arc<Schema>>,
    by_guid: Cache<Guid, Arc<Schema>>,
    registered: Cache<(String, Schema, Question), Registered>,
    latest: Cache<String, Registered>,
    versions: Cache<(String, i32), Registered>,
}

/// What is asked about a subject and a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Question {
    registers: bool,
    normalizes: bool,
}

impl Client {
    /// Creates a client. It connects with its first request.
    ///
    /// # Errors
    ///
    /// An address or a certificate is wrong.
    pub fn new(config: Config) -> Result<Self> {
        let http = Http::new(&config.tls)?;
        Self::over(config, Box::new(http))
    }

    fn over(mut config: Config, http: Box<dyn Exchange>) -> Result<Self> {
        let addresses = Addresses::new(&config.addresses, &mut config.auth, config.context.as_deref())?;
        let capacity = config.cache_capacity;
        Ok(Self {
            inner: Arc::new(Inner {
                authenticator: Authenticator::new(config.auth.clone()),
                addresses,
                http,
                by_id: Cache::new(capacity),
                by_guid: Cache::new(capacity),
                registered: Cache::new(capacity),
                latest: Cache::new(capacity),
                versions: Cache::new(capacity),
                config,
            }),
        })
    }
}

#[cfg(any(feature = "avro", feature = "protobuf", feature = "json"))]
impl Client {
    /// The number of schemas that are remembered.
    pub(crate) fn cache_capacity(&self) -> usize {
        self.inner.config.cache_capacity
    }

    /// How long the latest version of a subject is believed.
    pub(crate) fn latest_ttl(&self) -> std::time::Duration {
        self.inner.config.latest_ttl
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod tls_tests;
