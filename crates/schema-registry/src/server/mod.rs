//! A registry for tests and for `ottla broker --schema-registry`.
//!
//! ```text
//! http: tiny_http, worker threads ──> routes: path and query ──> registry: subjects, IDs, levels, modes
//!                                                                   ├─ compiled: is it a schema, is it compatible
//!                                                                   └─ records ──> Storage: memory, or the topic `_schemas`
//! ```
//!
//! It answers as Confluent's registry does, with the same codes. It has one node, no authentication, no schema linking and no rules.

mod compiled;
mod http;
mod lookups;
mod records;
mod refusal;
mod registry;
mod routes;
mod storage;

pub use http::EmbeddedRegistry;
pub use storage::{MemoryStorage, Storage, StoredRecord};

#[cfg(all(test, feature = "client"))]
mod tests;
