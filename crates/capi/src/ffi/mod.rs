//! The types that C sees, and the parts that exported functions share. Nothing here depends on a client.
//!
//! | file | content |
//! |---|---|
//! | `export` | `export!`, `getters!` and `destroyers!`, which declare exported functions |
//! | `boundary`, `argument` | panics, handles, texts; handles as arguments |
//! | `quarantine` | the memory of destroyed handles |
//! | `types`, `list`, `headers` | the structures that C sees |
//! | `codes`, `error`, `last_error` | error codes, `rd_kafka_error_t`, the last error of a thread |
//! | `lock`, `gate`, `task` | locks that detect callbacks under them, calls that a client's end waits for, futures without a thread |
//! | `object` | counted objects whose type is hidden from their holder |
//! | `time` | timeouts in milliseconds |

pub(crate) mod argument;
pub(crate) mod boundary;
pub(crate) mod cancel;
pub(crate) mod codes;
pub(crate) mod error;
#[cfg(test)]
mod error_page;
pub(crate) mod export;
pub(crate) mod gate;
pub(crate) mod headers;
pub(crate) mod injection;
pub(crate) mod last_error;
pub(crate) mod list;
pub(crate) mod lock;
pub(crate) mod object;
pub(crate) mod quarantine;
pub(crate) mod task;
pub(crate) mod time;
pub(crate) mod types;

pub(crate) use export::{destroyers, export, getters, or_null, text_or_null};
