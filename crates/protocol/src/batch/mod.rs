//! Record batches: the layout of records in a Produce request, in a log and in a Fetch response.
//!
//! ```text
//!   append ──► RecordBatchBuilder ── seal ──► SealedBatch ──► wire ──► Batches ──► RecordBatch ──► Records ──► RecordView
//!               chunks of a pool    header,    segments                walk a      check, un-      walk in
//!                                   CRC        for writev              response    compress        place
//! ```
//!
//! Read [`layout`] (the header's fields), [`chunk`] and [`pool`] (the memory), [`builder`], [`sealed`], [`kept`], [`reader`]; [`legacy`] for
//! the message sets of brokers before 0.11, [`control`] for the markers of transactions.

pub mod builder;
mod checksum;
pub mod chunk;
pub mod control;
pub mod kept;
pub mod layout;
pub mod legacy;
pub mod pool;
mod prefetch;
pub mod reader;
pub mod sealed;
mod varint;

pub use builder::{CopiedRecords, RecordBatchBuilder};
pub use chunk::SMALL_CHUNK_BYTES;
pub use control::{ControlRecord, ControlRecordError};
pub use kept::{KeptRecords, RecordPosition};
pub use legacy::{LegacyFormat, LegacyMessage, LegacyRecords, put_message_set};
pub use pool::ChunkPool;
pub use reader::{
    Batch, BatchError, BatchErrorKind, BatchHeader, Batches, Headers, RecordBatch, RecordView, Records,
};
pub use sealed::{MessageSetError, SealError, SealErrorKind, SealOptions, SealedBatch};

use std::borrow::Cow;

/// A record's header. Keys may repeat, and need not be UTF-8 if another client wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderRef<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: Option<&'a [u8]>,
}

impl<'a> HeaderRef<'a> {
    /// The key as text.
    pub fn key_str(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.key)
    }
}
