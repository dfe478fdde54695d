//! Combines many sealed batches into one ProduceRequest without copying them.
//!
//! ```text
//!   scratch:  [length, header, acks, topic, partition 0, size)      [partition 1, size)      [tail]
//!   on the wire: ─────────── scratch ─────────── batch of 0 ─ scratch ─ batch of 1 ─ ... ─ scratch
//! ```
//!
//! The frame owns its batches until the request is complete. Small batches are copied into the scratch: a copy of a few
//! hundred bytes is cheaper than one more slice for the kernel.
//!
//! # Pitfalls
//!
//! - A broker that finds a partition twice in a Produce request takes the last batch and responds once. The first batch
//!   would be reported as written and be lost (`batches_of_one_partition_go_in_separate_requests`).

use std::io::IoSlice;

use ottla_protocol::{
    batch::{LegacyFormat, SealOptions},
    compress::Compression,
    generated::produce::ProduceResponseView,
    primitive::{DecodeError, EncodeError, Reader, Writer},
    uuid::Uuid,
};

use super::batch::ReadyBatch;
use crate::connection::inflight::{SegmentedFrame, WriteCursor};

/// A ProduceRequest in flight, with the batches that it carries.
#[derive(Debug)]
pub struct ProduceFrame {
    scratch: Vec<u8>,
    parts: Vec<Part>,
    len: usize,
    /// The number of its partitions; some of their batches may have been taken back since.
    pub partitions: usize,
    /// The batches, in the order of the request.
    pub batches: Vec<ProduceBatch>,
}

/// A batch in a request.
#[derive(Debug)]
pub struct ProduceBatch {
    /// The partition's slot at its sender, which is kept while anything of it is in flight.
    pub slot: usize,
    /// The topic ID.
    pub topic_id: Uuid,
    /// The batch.
    pub batch: ReadyBatch,
    /// True if it was reported as timed out or purged while in flight; its response is ignored then.
    pub reported: bool,
}

/// The bytes in front of a batch.
#[derive(Clone, Copy, Debug)]
struct Part {
    scratch_end: usize,
    /// The batch whose segments follow; `None` if it was copied into the scratch, or at the tail.
    batch: Option<usize>,
}

/// The fields of a request besides its batches.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The version to encode.
    pub version: i16,
    /// `acks`: 0, 1 or -1.
    pub acks: i16,
    /// `request.timeout.ms`: the time that the broker may wait for its followers.
    pub timeout_ms: i32,
    /// `transactional.id`.
    pub transactional_id: Option<&'a str>,
}

/// The destination of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchTarget<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: i32,
    /// The compression and its level for a message set, which replaces the batch for brokers before 0.11.
    pub compression: (Compression, Option<i32>),
}

const COPIED_UP_TO: usize = 1024;
/// The bytes before and after a batch: a partition number, a length, no tagged fields.
const PLACE_BYTES: usize = 12;

impl ProduceFrame {
    /// Builds a frame after `scratch`, which holds room for the length and the request header. `targets` belong to the
    /// batches; those of one topic are adjacent. If a name or a length can't be encoded, the batches are returned.
    pub fn build(
        scratch: Vec<u8>,
        head: RequestHead<'_>,
        targets: &[BatchTarget<'_>],
        batches: Vec<ProduceBatch>,
    ) -> Result<Box<Self>, Box<(Vec<ProduceBatch>, EncodeError)>> {
        let partitions = batches.len();
        let mut frame =
            Self { partitions, scratch, parts: Vec::with_capacity(batches.len() + 1), len: 0, batches };
        match frame.encode(head, targets) {
            Ok(()) => Ok(Box::new(frame)),
            Err(error) => Err(Box::new((frame.batches, error))),
        }
    }

    fn encode(&mut self, head: RequestHead<'_>, targets: &[BatchTarget<'_>]) -> Result<(), EncodeError> {
        let Self { scratch, parts, batches, .. } = self;
        let flexible = head.version >= 9;
        let copied = batches.iter().map(|batch| batch.batch.sealed.len()).filter(|len| *len <= COPIED_UP_TO);
        scratch.reserve(copied.sum::<usize>() + batches.len() * PLACE_BYTES + 128);
        let mut out = Writer::new(scratch, flexible);
        if head.version >= 3 {
            out.at("transactional_id").nullable_string(head.transactional_id)?;
        }
        out.i16(head.acks);
        out.i32(head.timeout_ms);
        let topics = || targets.chunk_by(|a, b| a.topic == b.topic);
        out.at("topics").length(Some(topics().count()))?;
        let mut referenced = 0;
        let mut next = 0;
        for topic in topics() {
            if head.version >= 13 {
                out.uuid(batches[next].topic_id);
            } else {
                out.at("topic").string(topic[0].topic)?;
            }
            out.at("partitions").length(Some(topic.len()))?;
            for target in topic {
                out.i32(target.partition);
                let sealed = &batches[next].batch.sealed;
                next += 1;
                // A batch that can't be converted, which is a bug, is sent unchanged: a broker that needs the older format
                // rejects it.
                let message_set = LegacyFormat::of_produce(head.version).and_then(|format| {
                    let (compression, level) = target.compression;
                    let options = SealOptions { compression, level, ..SealOptions::default() };
                    sealed.to_message_set(format, &options).ok()
                });
                if let Some(set) = message_set {
                    out.at("records").bytes(&set)?;
                    continue;
                }
                out.at("records").length(Some(sealed.len()))?;
                if sealed.len() <= COPIED_UP_TO {
                    sealed.segments().for_each(|segment| out.raw(segment));
                } else {
                    parts.push(Part { scratch_end: out.position(), batch: Some(next - 1) });
                    referenced += sealed.len();
                }
                out.no_tagged_fields();
            }
            out.no_tagged_fields();
        }
        out.no_tagged_fields();
        parts.push(Part { scratch_end: out.position(), batch: None });
        self.len = self.scratch.len() + referenced;
        self.scratch[..4].copy_from_slice(&((self.len - 4) as u32).to_be_bytes());
        Ok(())
    }

    /// Returns the segments of a part from the one at an index on: first its bytes of the scratch, then its batch.
    #[inline]
    fn segments_from(&self, part: usize, index: usize) -> impl Iterator<Item = &[u8]> {
        let Part { scratch_end, batch } = self.parts[part];
        let scratch = (index == 0).then(|| {
            let start = if part == 0 { 0 } else { self.parts[part - 1].scratch_end };
            &self.scratch[start..scratch_end]
        });
        let batch =
            batch.map(|batch| self.batches[batch].batch.sealed.segments_from(index.saturating_sub(1)));
        scratch.into_iter().chain(batch.into_iter().flatten())
    }
}

impl SegmentedFrame for ProduceFrame {
    fn byte_len(&self) -> usize {
        self.len
    }

    fn messages(&self) -> usize {
        self.batches.iter().map(|batch| batch.batch.sealed.record_count() as usize).sum()
    }

    fn fill<'a>(&'a self, cursor: WriteCursor, slices: &mut [IoSlice<'a>]) -> usize {
        let (mut filled, mut index, mut offset) = (0, cursor.segment, cursor.offset);
        for part in cursor.part..self.parts.len() {
            for segment in self.segments_from(part, index) {
                if filled == slices.len() {
                    return filled;
                }
                slices[filled] = IoSlice::new(&segment[offset..]);
                filled += 1;
                offset = 0;
            }
            index = 0;
        }
        filled
    }

    fn advance(&self, cursor: &mut WriteCursor, mut n: usize) -> Option<usize> {
        while cursor.part < self.parts.len() {
            for segment in self.segments_from(cursor.part, cursor.segment) {
                let left = segment.len() - cursor.offset;
                if n < left {
                    cursor.offset += n;
                    return None;
                }
                n -= left;
                cursor.segment += 1;
                cursor.offset = 0;
            }
            cursor.part += 1;
            cursor.segment = 0;
        }
        Some(n)
    }
}

/// Decodes the response.
pub fn decode_response(body: &[u8], version: i16) -> Result<ProduceResponseView<'_>, DecodeError> {
    ProduceResponseView::decode(&mut Reader::new(body), version)
}
