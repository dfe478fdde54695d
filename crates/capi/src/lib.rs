//! `librdkafka.so.1`: the C interface of librdkafka. The clients are those of `ottla`; everything else comes from its core.
//!
//! | folder | content |
//! |---|---|
//! | `ffi` | the types that C sees and the parts that exports share: `export!`, handles, texts, structures, error codes and objects, lists, locks |
//! | `client` | `rd_kafka_t`, its configuration, topics, queues, events, callbacks, logs, interceptors, metadata |
//! | `produce` | a message until its report; the memory of both; partitioners |
//! | `consume` | the assigned consumer and the older calls, consumed messages in slabs, stored and committed offsets |
//! | `group` | the consumer as a member of a group: subscriptions, rebalances, closing |
//! | `txn` | the transactional producer |
//! | `admin` | admin calls, their options and results, UUIDs |
//! | `mock` | clusters inside the process |
//!
//! `variadic` has the functions that Rust can't write, `unimplemented` those that are unimplemented.
//!
//! `abi/functions.txt` has an entry for each function; the headers in `include/`, STATUS.md, the functions' documentation and
//! the unimplemented functions are generated from it. This is one of two crates that may say `unsafe`.
#![allow(clippy::missing_safety_doc, reason = "the headers say what each function demands of its caller")]

mod admin;
mod client;
mod consume;
mod ffi;
mod group;
mod mock;
mod produce;
mod self_test;
mod txn;
mod unimplemented;
mod variadic;
