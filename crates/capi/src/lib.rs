//! `librdkafka.so.1`: the C interface of librdkafka. Its clients are those of the crate `ottla`; it uses the core for
//! everything else.
//!
//! | folder | content |
//! |---|---|
//! | `ffi` | the types that C sees and the parts that exports share: `export!`, handles, texts, structures, error codes and objects, lists, locks |
//! | `client` | `rd_kafka_t`, its configuration, topics, queues, events, callbacks, logs, interceptors, metadata |
//! | `produce` | produced messages from the call to the report, their memory, partitioners |
//! | `consume` | the assigned consumer and the older calls, consumed messages in slabs, stored and committed offsets |
//! | `group` | the consumer as a member of a group: subscriptions, rebalances, closing |
//! | `txn` | the transactional producer |
//! | `share` | the share consumer |
//! | `admin` | admin calls, their options and results, UUIDs |
//! | `mock` | clusters inside the process |
//!
//! `variadic` has the functions that Rust can't write.
//!
//! `abi/functions.txt` has an entry for each function; the headers in `include/`, STATUS.md and the functions' documentation
//! are generated from it. This is one of two crates that may say `unsafe`.
#![allow(clippy::missing_safety_doc, reason = "the headers say what each function demands of its caller")]

mod admin;
mod client;
mod consume;
mod ffi;
mod group;
mod mock;
mod platform;
mod produce;
mod self_test;
mod share;
mod txn;
mod variadic;
