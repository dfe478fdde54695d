//! `librdkafka.so.1`: the C interface of librdkafka, thin over `ottla`.
//!
//! ```text
//!  boundary ── panics, handles, texts: what every exported function goes through;  graves: handles that are gone
//!  types ───── the structures that C sees; codes, error: error codes, rd_kafka_error_t, the last error
//!  conf ────── what is said before a client starts, and its callbacks
//!  client ──── rd_kafka_t: the life of a client;  client/core: what runs below it;  client/serve: who calls its callbacks
//!  topic ───── rd_kafka_topic_t
//!  produce ──► produced ──► report: a message on its way and its report;  arena: the memory of both
//!  queue ───── queues, their forwarding and who serves them;  op: what is in them;  event: the same for the application
//!  fetched ─── what a queue took from its consumer;  time: timeouts in milliseconds
//!  consume ──► message: consumed messages in slabs;  offsets: stored and committed;  list, headers
//!  background ─ the thread of background_event_cb;  log: where log lines go;  debug: what `debug` logs;  interceptors: plug-ins;  partitioners
//!  transport ─ the application's functions for sockets and host names;  gate: until when it and interceptors are called
//!  metadata, admin (uuid), mock;  dump: a client's state for people
//!  variadic, not_yet ── functions that Rust can't write, and functions that are not there yet
//! ```
//!
//! `abi/functions.txt` has an entry for each function; the headers in `include/`, STATUS.md and the answers of what is not
//! there yet are made of it. This is one of two crates that may say `unsafe`.
#![allow(clippy::missing_safety_doc, reason = "the headers say what each function demands of its caller")]

mod admin;
mod arena;
mod background;
mod boundary;
mod client;
mod codes;
mod conf;
mod consume;
mod debug;
mod dump;
mod error;
mod event;
mod fetched;
mod gate;
mod graves;
mod headers;
mod interceptors;
mod list;
mod log;
mod message;
mod metadata;
mod misc;
mod mock;
mod not_yet;
mod offset_file;
mod offsets;
mod op;
mod partitioners;
mod produce;
mod produced;
mod queue;
mod report;
mod task;
mod time;
mod topic;
mod transport;
mod types;
mod uuid;
mod variadic;
