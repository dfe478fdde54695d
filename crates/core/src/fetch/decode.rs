//! From a partition's bytes in a response to batches that may be handed out: checked, decompressed where needed, and
//! otherwise where they were.

use std::sync::Arc;

use ottla_protocol::{
    batch::{
        self, Batch, BatchError, BatchHeader, Batches, ControlRecord, LegacyMessage, LegacyRecords,
        RecordView, Records, layout,
    },
    compress::{Compression, decompress},
    generated::fetch::response::AbortedTransaction,
    primitive::Writer,
};

use super::{
    deliver::{FetchBuffer, RecordBatch},
    isolation::AbortedTransactions,
};
use crate::broker::buffer::BufferPool;

/// How to decode.
#[derive(Debug)]
pub(crate) struct DecodeOptions {
    /// `check.crcs`.
    pub(crate) check_crcs: bool,
    /// `isolation.level=read_committed`.
    pub(crate) read_committed: bool,
    /// No batch may decompress to more.
    pub(crate) max_batch_bytes: usize,
    /// How many more bytes may come out of codecs before the rest is left for the next fetch.
    pub(crate) decompressed_room: usize,
    /// Memory for decompressed records.
    pub(crate) buffers: BufferPool,
}

/// What a partition's bytes are.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) batches: Vec<RecordBatch>,
    /// Where to go on.
    pub(crate) next_offset: i64,
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    /// What ended the decoding early.
    pub(crate) damage: Option<Damage>,
    /// The last batch was not whole.
    pub(crate) cut_off: bool,
    /// The size that it claims to have.
    pub(crate) cut_off_size: usize,
}

/// A batch that can't be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Its first offset, or where it would have been.
    pub(crate) offset: i64,
    /// The first offset behind it, as far as that can be told.
    pub(crate) next_offset: i64,
    /// What is wrong.
    pub(crate) reason: String,
}

/// The smallest record: a length, attributes, two deltas, two lengths and a number of headers.
const SMALLEST_RECORD: usize = 7;

/// Decodes what a fetch from offset `from` brought.
pub(crate) fn decode(
    buffer: &Arc<FetchBuffer>,
    bytes: Option<&[u8]>,
    from: i64,
    aborted: Option<&[AbortedTransaction]>,
    options: &mut DecodeOptions,
) -> Decoded {
    let mut decoder = Decoder {
        buffer,
        options,
        aborted: AbortedTransactions::new(aborted),
        decoded: Decoded {
            batches: Vec::new(),
            next_offset: from,
            messages: 0,
            bytes: 0,
            damage: None,
            cut_off: false,
            cut_off_size: 0,
        },
        legacy: None,
    };
    let bytes = bytes.unwrap_or_default();
    let mut batches = Batches::new(bytes);
    loop {
        let at = batches.position();
        match batches.next() {
            Some(Ok(Batch::V2(batch))) => {
                decoder.finish_legacy();
                if !decoder.batch(&batch) {
                    break;
                }
            }
            Some(Ok(Batch::Legacy(message))) => {
                if !decoder.legacy(&message) {
                    break;
                }
            }
            Some(Err(error)) => {
                let offset = bytes[at..].first_chunk().map_or(from, |offset| i64::from_be_bytes(*offset));
                decoder.damage(offset, None, error.to_string());
                break;
            }
            None => {
                let rest = &bytes[at..];
                let length = rest.get(8..12).and_then(|length| length.first_chunk().copied());
                let length = length.map_or(0, i32::from_be_bytes);
                decoder.decoded.cut_off = !rest.is_empty();
                decoder.decoded.cut_off_size = usize::try_from(length).unwrap_or(0).saturating_add(12);
                break;
            }
        }
    }
    decoder.finish_legacy();
    decoder.decoded
}

struct Decoder<'a> {
    buffer: &'a Arc<FetchBuffer>,
    options: &'a mut DecodeOptions,
    aborted: AbortedTransactions,
    decoded: Decoded,
    legacy: Option<LegacyRun>,
}

/// Messages of the old formats that follow each other, on the way into a batch of format 2.
struct LegacyRun {
    records: Vec<u8>,
    header: BatchHeader,
    first_offset: i64,
}

impl Decoder<'_> {
    /// Takes in a batch; false if nothing after it can be used now.
    fn batch(&mut self, batch: &batch::RecordBatch<'_>) -> bool {
        let header = batch.header();
        let Some(next_offset) = header.last_offset().checked_add(1).filter(|_| header.base_offset >= 0)
        else {
            self.damage(header.base_offset, None, format!("the batch's offset is {}", header.base_offset));
            return false;
        };
        if next_offset <= self.decoded.next_offset {
            // It is wholly before what was asked for.
            return true;
        }
        if self.options.check_crcs
            && let Err(error) = batch.verify_crc()
        {
            self.damage(header.base_offset, Some(next_offset), error.to_string());
            return false;
        }
        let records = &batch.bytes()[layout::RECORDS..];
        if header.is_control() {
            if control_batch_aborts(header, records) {
                self.aborted.ended(header.producer_id, header.base_offset);
            }
            self.decoded.next_offset = next_offset;
            return true;
        }
        if self.options.read_committed
            && header.is_transactional()
            && self.aborted.covers(header.producer_id, header.last_offset())
        {
            self.decoded.next_offset = next_offset;
            return true;
        }
        let (buffer, bytes) = match header.compression() {
            Ok(Compression::None) => (Arc::clone(self.buffer), self.buffer.range_of(records)),
            Ok(_) if self.options.decompressed_room == 0 && !self.decoded.batches.is_empty() => return false,
            Ok(codec) => match self.decompress(codec, records) {
                Ok(buffer) => {
                    let len = buffer.bytes().len();
                    (buffer, 0..len)
                }
                Err(reason) => {
                    self.damage(header.base_offset, Some(next_offset), reason);
                    return false;
                }
            },
            Err(error) => {
                self.damage(header.base_offset, Some(next_offset), error.to_string());
                return false;
            }
        };
        let count = usize::try_from(header.record_count).unwrap_or(0);
        if count > bytes.len() / SMALLEST_RECORD {
            let reason = format!("{count} records in {} bytes", bytes.len());
            self.damage(header.base_offset, Some(next_offset), reason);
            return false;
        }
        self.decoded.messages += count;
        self.decoded.bytes += bytes.len();
        self.decoded.batches.push(RecordBatch::new(buffer, bytes, *header, self.decoded.next_offset));
        self.decoded.next_offset = next_offset;
        true
    }

    /// Takes in a message of an old format, with what it wraps; false if nothing after it can be used now.
    fn legacy(&mut self, message: &LegacyMessage<'_>) -> bool {
        let room = self.options.max_batch_bytes;
        let result = (|| {
            if self.options.check_crcs {
                message.verify_crc()?;
            }
            let records = message.records(room)?;
            for record in LegacyRecords::new(message, &records) {
                self.legacy_record(&record?);
            }
            Ok::<_, BatchError>(())
        })();
        if let Err(error) = result {
            // The offset of a wrapper is that of its last message.
            self.damage(message.offset, None, error.to_string());
        }
        self.decoded.damage.is_none()
    }

    fn legacy_record(&mut self, record: &RecordView<'_>) {
        if record.offset < self.decoded.next_offset || record.offset == i64::MAX {
            return;
        }
        let first_offset = self.decoded.next_offset;
        let run = self.legacy.get_or_insert_with(|| {
            let mut records = self.options.buffers.take();
            records.clear();
            let header = BatchHeader {
                base_offset: record.offset,
                size: 0,
                partition_leader_epoch: -1,
                crc: 0,
                attributes: 0,
                last_offset_delta: 0,
                base_timestamp: record.timestamp,
                max_timestamp: record.timestamp,
                producer_id: -1,
                producer_epoch: -1,
                base_sequence: -1,
                record_count: 0,
            };
            LegacyRun { records, header, first_offset }
        });
        run.push(record);
        self.decoded.next_offset = record.offset + 1;
    }

    fn finish_legacy(&mut self) {
        let Some(run) = self.legacy.take() else { return };
        let len = run.records.len();
        self.decoded.messages += run.header.record_count as usize;
        self.decoded.bytes += len;
        let buffer = Arc::new(FetchBuffer::new(run.records, self.options.buffers.clone()));
        self.decoded.batches.push(RecordBatch::new(buffer, 0..len, run.header, run.first_offset));
    }

    fn decompress(&mut self, codec: Compression, bytes: &[u8]) -> Result<Arc<FetchBuffer>, String> {
        let mut out = self.options.buffers.take();
        out.clear();
        match decompress(codec, bytes, self.options.max_batch_bytes, &mut out) {
            Ok(()) => {
                self.options.decompressed_room = self.options.decompressed_room.saturating_sub(out.len());
                Ok(Arc::new(FetchBuffer::new(out, self.options.buffers.clone())))
            }
            Err(error) => {
                self.options.buffers.put(out);
                Err(error.to_string())
            }
        }
    }

    fn damage(&mut self, offset: i64, next_offset: Option<i64>, reason: String) {
        let offset = offset.max(self.decoded.next_offset);
        let next_offset = next_offset.unwrap_or(offset).max(offset.saturating_add(1));
        self.decoded.damage = Some(Damage { offset, next_offset, reason });
    }
}

impl LegacyRun {
    fn push(&mut self, record: &RecordView<'_>) {
        let mut body = Vec::with_capacity(32);
        let mut writer = Writer::new(&mut body, false);
        writer.i8(0);
        writer.varlong(record.timestamp.wrapping_sub(self.header.base_timestamp));
        writer.varlong(record.offset - self.header.base_offset);
        for field in [record.key, record.value] {
            writer.varlong(field.map_or(-1, |field| field.len() as i64));
            writer.raw(field.unwrap_or_default());
        }
        writer.varlong(0);
        let mut writer = Writer::new(&mut self.records, false);
        writer.varlong(body.len() as i64);
        writer.raw(&body);
        self.header.record_count += 1;
    }
}

/// True if a control batch ends a transaction that was aborted.
fn control_batch_aborts(header: &BatchHeader, records: &[u8]) -> bool {
    let Some(Ok(record)) = Records::new(header, records).next() else { return false };
    let end = ControlRecord::parse(record.key, record.value);
    matches!(end, Ok(ControlRecord::EndTransaction { committed: false, .. }))
}
