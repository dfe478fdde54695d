//! Decodes a partition's bytes in a Fetch response into batches for the application. It checks each batch and copies
//! only the batches that need decompression or conversion.
//!
//! # Pitfalls
//!
//! - The header of a damaged batch may itself be damaged. The end of the batch is the start of the next intact batch,
//!   or the high watermark (`where_a_damaged_batch_ends_is_not_believed_but_found_out`).
//! - A header may count fewer records than the batch has. So that the others are not lost, a batch with fewer records than
//!   offsets is read to its end first (`batch_that_counts_too_few_records_is_damaged`).
//! - With `check.crcs=false` a batch with a wrong checksum is delivered if its records can be read. Nobody finds that out
//!   before the application reaches them. It stops at the first one that can't be read, and the batch is fetched again and
//!   read to its end (`damaged_record_stops_behind_the_records_before_it`).
//! - Even with `check.crcs=false` a batch with fewer records than offsets is verified: compaction makes such batches,
//!   and so does a damaged header (`without_checksums_a_wrong_last_offset_does_not_skip_records`).

use std::{ops::Range, sync::Arc};

use ottla_protocol::{
    batch::{
        self, Batch, BatchError, BatchHeader, Batches, ControlRecord, LegacyMessage, LegacyRecords,
        RecordView, Records, layout,
    },
    compress::{Compression, decompress},
    generated::fetch::response::AbortedTransaction,
    primitive::Writer,
    vocabulary::LeaderEpoch,
};

use super::{
    deliver::{FetchBuffer, RecordBatch},
    isolation::AbortedTransactions,
};
use crate::connection::buffer::BufferPool;

/// Settings for decoding.
#[derive(Debug)]
pub(crate) struct DecodeOptions {
    /// `check.crcs`.
    pub(crate) check_crcs: bool,
    /// The offset of a record that could not be read: its batch is read to its end now.
    pub(crate) suspect: Option<i64>,
    /// `isolation.level=read_committed`.
    pub(crate) read_committed: bool,
    /// The maximum size of a batch after decompression, in bytes.
    pub(crate) max_batch_bytes: usize,
    /// The number of bytes that may be decompressed; the remaining batches are left for the next fetch.
    pub(crate) decompressed_room: usize,
    /// True if there is a ceiling of the client's memory: only the first batch of a response may exceed the room.
    pub(crate) is_limited: bool,
    /// The number of bytes that were decompressed.
    pub(crate) decompressed: usize,
    /// True once a batch of the response was decoded.
    pub(crate) has_batches: bool,
    /// The memory pool for decompressed records.
    pub(crate) buffers: BufferPool,
}

/// The result of decoding a partition's bytes.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) batches: Vec<RecordBatch>,
    /// The offset to fetch next.
    pub(crate) next_offset: i64,
    /// The leader epoch in which the last batch was written; messages of the old formats have none.
    pub(crate) last_epoch: Option<LeaderEpoch>,
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    /// The damaged batch that ended the decoding early.
    pub(crate) damage: Option<Damage>,
    /// True if the last batch is incomplete.
    pub(crate) cut_off: bool,
    /// The size of the incomplete batch according to its header, in bytes.
    pub(crate) cut_off_size: usize,
}

/// A batch that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The first offset of the batch, or the offset at which the batch should begin.
    pub(crate) offset: i64,
    /// The offset after the damaged batch, if other bytes than the batch itself confirm it.
    pub(crate) next_offset: Option<i64>,
    /// The description of the damage.
    pub(crate) reason: String,
}

/// The size of the smallest record, in bytes: a length, attributes, two deltas, two lengths and the number of headers.
const SMALLEST_RECORD: usize = 7;

/// Decodes the bytes of a fetch from offset `from`; `high_watermark` is -1 if unknown.
///
/// A damaged batch ends the decoding. The header of the batch contains its end, but the header itself may be damaged.
/// The next intact batch therefore determines where to continue; without one the header is used if it agrees with the
/// high watermark. Otherwise the next offset stays unknown.
pub(crate) fn decode(
    buffer: &Arc<FetchBuffer>,
    bytes: Option<&[u8]>,
    from: i64,
    high_watermark: i64,
    aborted: Option<&[AbortedTransaction]>,
    options: &mut DecodeOptions,
) -> Decoded {
    let mut decoder = Decoder {
        buffer,
        options,
        high_watermark,
        end_of_last: 0,
        claimed_end: None,
        unpacked: Vec::new(),
        unpacked_batches: Vec::new(),
        aborted: AbortedTransactions::new(aborted),
        decoded: Decoded {
            batches: Vec::new(),
            next_offset: from,
            last_epoch: None,
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
                if !decoder.is_in_place(&batch, &batches) || !decoder.batch(&batch) {
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
                if !batches.skip_damaged() {
                    return decoder.finish();
                }
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
    decoder.find_way_on(batches, bytes.len());
    decoder.finish()
}

struct Decoder<'a> {
    buffer: &'a Arc<FetchBuffer>,
    options: &'a mut DecodeOptions,
    high_watermark: i64,
    /// The end offset of the last batch; no later batch may begin before it.
    end_of_last: i64,
    /// The end offset in the header of a damaged batch.
    claimed_end: Option<i64>,
    /// The decompressed records of all batches, one batch after the other.
    unpacked: Vec<u8>,
    /// The indexes of the decompressed batches among the decoded ones.
    unpacked_batches: Vec<usize>,
    aborted: AbortedTransactions,
    decoded: Decoded,
    legacy: Option<LegacyRun>,
}

/// Consecutive messages of the old formats that are converted into one batch of format 2.
struct LegacyRun {
    records: Vec<u8>,
    header: BatchHeader,
    first_offset: i64,
}

impl Decoder<'_> {
    /// Returns false if a batch's base offset, which no checksum covers, leaves a gap that contradicts the other
    /// offsets.
    fn is_in_place(&mut self, batch: &batch::RecordBatch<'_>, behind: &Batches<'_>) -> bool {
        let from = self.decoded.next_offset;
        let base_offset = batch.header().base_offset;
        if base_offset <= from {
            return true;
        }
        let end = batch.header().last_offset().saturating_add(1);
        if let Some(Ok(Batch::V2(next))) = behind.clone().next()
            && (from..end).contains(&next.header().base_offset)
        {
            let next = next.header().base_offset;
            self.damage(
                base_offset,
                None,
                format!("it claims offset {base_offset}, but offset {next} follows"),
            );
            return false;
        }
        if (0..end).contains(&self.high_watermark) {
            let reason =
                format!("it claims offset {base_offset}, but the high watermark is {}", self.high_watermark);
            self.damage(base_offset, None, reason);
            return false;
        }
        true
    }

    /// Decodes a batch. Returns false if nothing after it can be used now.
    fn batch(&mut self, batch: &batch::RecordBatch<'_>) -> bool {
        let header = batch.header();
        let base_offset = header.base_offset;
        let Some(next_offset) = header.last_offset().checked_add(1).filter(|_| base_offset >= 0) else {
            self.damage(base_offset, None, format!("the batch's offset is {base_offset}"));
            return false;
        };
        if base_offset < self.end_of_last {
            let reason = format!("offsets go backwards, from {} to {base_offset}", self.end_of_last);
            self.damage(base_offset, None, reason);
            return false;
        }
        self.end_of_last = next_offset;
        if next_offset <= self.decoded.next_offset {
            // The whole batch is before the requested offset.
            return true;
        }
        // Without a checksum the header is plausible if it has as many offsets as records. Only compaction leaves gaps.
        let is_odd = i64::from(header.record_count) != i64::from(header.last_offset_delta) + 1;
        let is_checked = self.options.check_crcs || is_odd;
        if is_checked && let Err(error) = batch.verify_crc() {
            self.damage(base_offset, Some(next_offset), error.to_string());
            return false;
        }
        let records = &batch.bytes()[layout::RECORDS..];
        if header.is_control() {
            if control_batch_aborts(header, records) {
                self.aborted.ended(header.producer_id, base_offset);
            }
            self.pass(header);
            return true;
        }
        if self.options.read_committed
            && header.is_transactional()
            && self.aborted.covers(header.producer_id, header.last_offset())
        {
            self.pass(header);
            return true;
        }
        let unpacked = match header.compression() {
            Ok(Compression::None) => Ok(None),
            Ok(_) if self.options.decompressed_room == 0 && self.has_progress() => return false,
            Ok(codec) => match self.unpack(codec, records) {
                Err(_) if self.lacks_room() => return self.leave_rest(),
                unpacked => unpacked.map(Some),
            },
            Err(error) => Err(error.to_string()),
        };
        let unpacked = unpacked.and_then(|unpacked| {
            let size = unpacked.as_ref().map_or(records.len(), Range::len);
            let count = usize::try_from(header.record_count).unwrap_or(0);
            if count > size / SMALLEST_RECORD {
                return Err(format!("{count} records in {size} bytes"));
            }
            let is_suspect = |offset| (base_offset..next_offset).contains(&offset);
            if is_odd || self.options.suspect.is_some_and(is_suspect) {
                let bytes = unpacked.as_ref().map_or(records, |range| &self.unpacked[range.clone()]);
                let unreadable = Records::new(header, bytes).find_map(Result::err);
                unreadable.map_or(Ok(()), |error| Err(error.to_string()))?;
            }
            Ok((unpacked, count))
        });
        let (unpacked, count) = match unpacked {
            Ok(unpacked) => unpacked,
            Err(reason) => {
                self.damage(base_offset, Some(next_offset), reason);
                if is_checked || batch.verify_crc().is_ok() {
                    // The batch is intact on the broker, so its header is correct.
                    self.trust_claimed_end();
                }
                return false;
            }
        };
        let bytes = match unpacked {
            Some(range) => {
                self.unpacked_batches.push(self.decoded.batches.len());
                range
            }
            None => self.buffer.range_of(records),
        };
        self.decoded.messages += count;
        self.decoded.bytes += bytes.len();
        let buffer = Arc::clone(self.buffer);
        let first_offset = self.decoded.next_offset;
        self.decoded.batches.push(RecordBatch::new(buffer, bytes, *header, first_offset));
        self.options.has_batches = true;
        self.pass(header);
        true
    }

    /// Advances the position past a batch.
    fn pass(&mut self, header: &BatchHeader) {
        self.decoded.next_offset = header.last_offset() + 1;
        self.decoded.last_epoch = LeaderEpoch::from_wire(header.partition_leader_epoch);
    }

    /// Decodes a message of an old format, including wrapped messages. Returns false if nothing after it can be used
    /// now.
    fn legacy(&mut self, message: &LegacyMessage<'_>) -> bool {
        let room = self.options.max_batch_bytes;
        let result = (|| {
            if self.options.check_crcs {
                message.verify_crc()?;
            }
            let records = message.records(room)?;
            for record in LegacyRecords::new(message, &records) {
                self.legacy_record(&record?, message.is_log_append_time());
            }
            Ok::<_, BatchError>(())
        })();
        if let Err(error) = result {
            // The offset of a wrapper message is the offset of its last inner message.
            self.damage(message.offset, message.offset.checked_add(1), error.to_string());
        }
        self.decoded.damage.is_none()
    }

    /// Appends a message to the present run. The type of the timestamps belongs to a whole batch, and a log append time is that
    /// of the batch.
    fn legacy_record(&mut self, record: &RecordView<'_>, is_appended: bool) {
        if record.offset < self.decoded.next_offset || record.offset == i64::MAX {
            return;
        }
        if self.legacy.as_ref().is_some_and(|run| {
            let is_other_time = is_appended && run.header.max_timestamp != record.timestamp;
            run.header.is_log_append_time() != is_appended || is_other_time
        }) {
            self.finish_legacy();
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
                attributes: if is_appended { layout::LOG_APPEND_TIME } else { 0 },
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
        self.decoded.last_epoch = None;
    }

    fn finish_legacy(&mut self) {
        let Some(run) = self.legacy.take() else { return };
        let len = run.records.len();
        self.decoded.messages += run.header.record_count as usize;
        self.decoded.bytes += len;
        let buffer = Arc::new(FetchBuffer::new(run.records, self.options.buffers.clone()));
        self.decoded.batches.push(RecordBatch::new(buffer, 0..len, run.header, run.first_offset));
        self.options.has_batches = true;
    }

    /// Decompresses records and appends them to `unpacked`. Returns their range.
    fn unpack(&mut self, codec: Compression, bytes: &[u8]) -> Result<Range<usize>, String> {
        if self.unpacked_batches.is_empty() && self.unpacked.capacity() == 0 {
            self.unpacked = self.options.buffers.take();
            self.unpacked.clear();
        }
        let start = self.unpacked.len();
        let is_limited = self.options.is_limited && self.has_progress();
        let most = if is_limited { self.options.decompressed_room } else { usize::MAX };
        decompress(codec, bytes, self.options.max_batch_bytes.min(most), &mut self.unpacked)
            .inspect_err(|_| self.unpacked.truncate(start))
            .map_err(|error| error.to_string())?;
        let size = self.unpacked.len() - start;
        self.options.decompressed += size;
        self.options.decompressed_room = self.options.decompressed_room.saturating_sub(size);
        Ok(start..start + size)
    }

    /// Returns true if the rest may be left for the next fetch, which then gets further than this one.
    const fn has_progress(&self) -> bool {
        if self.options.is_limited { self.options.has_batches } else { !self.decoded.batches.is_empty() }
    }

    /// Returns true if a batch may have failed to decompress for want of room, and may be left.
    const fn lacks_room(&self) -> bool {
        let has_room_for_any = self.options.decompressed_room >= self.options.max_batch_bytes;
        self.options.is_limited && self.has_progress() && !has_room_for_any
    }

    /// Leaves the batches from here on for the next fetch.
    const fn leave_rest(&mut self) -> bool {
        self.options.decompressed_room = 0;
        false
    }

    /// Stores a damaged batch and the end offset that it claims.
    fn damage(&mut self, offset: i64, claimed_end: Option<i64>, reason: String) {
        let from = self.decoded.next_offset;
        let limit = if self.high_watermark < 0 { i64::MAX } else { self.high_watermark.max(from) };
        let offset = if (from..=limit).contains(&offset) { offset } else { from };
        self.claimed_end = claimed_end.filter(|end| *end > from);
        self.decoded.damage = Some(Damage { offset, next_offset: None, reason });
    }

    fn trust_claimed_end(&mut self) {
        if let Some(damage) = &mut self.decoded.damage {
            damage.next_offset = self.claimed_end;
        }
    }

    /// Finds the next intact batch after a damaged one.
    fn find_way_on(&mut self, mut batches: Batches<'_>, len: usize) {
        let Some(Damage { next_offset: None, .. }) = &self.decoded.damage else { return };
        let from = self.decoded.next_offset;
        let is_last = batches.position() == len;
        if is_last && self.claimed_end == Some(self.high_watermark) {
            return self.trust_claimed_end();
        }
        let next_offset = loop {
            let next = match batches.next() {
                Some(Ok(Batch::V2(batch))) if batch.verify_crc().is_ok() => {
                    let header = batch.header();
                    Some(header.base_offset).filter(|_| {
                        self.high_watermark < 0 || (0..self.high_watermark).contains(&header.last_offset())
                    })
                }
                Some(Ok(Batch::Legacy(message))) if message.verify_crc().is_ok() => {
                    let plain = matches!(message.compression(), Ok(Compression::None));
                    let claimed = self.claimed_end.filter(|end| *end <= message.offset);
                    claimed.or(plain.then_some(message.offset))
                }
                Some(Ok(_)) => None,
                Some(Err(_)) if batches.skip_damaged() => None,
                Some(Err(_)) | None => break None,
            };
            if next.is_some_and(|next| next > from) {
                break next;
            }
        };
        if let Some(damage) = &mut self.decoded.damage {
            damage.next_offset = next_offset;
        }
    }

    fn finish(mut self) -> Decoded {
        self.finish_legacy();
        if self.unpacked_batches.is_empty() {
            if self.unpacked.capacity() > 0 {
                self.options.buffers.put(self.unpacked);
            }
            return self.decoded;
        }
        let buffer = Arc::new(FetchBuffer::new(self.unpacked, self.options.buffers.clone()));
        for place in self.unpacked_batches {
            self.decoded.batches[place].move_to(&buffer);
        }
        self.decoded
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

/// True if a control batch ends an aborted transaction.
fn control_batch_aborts(header: &BatchHeader, records: &[u8]) -> bool {
    let Some(Ok(record)) = Records::new(header, records).next() else { return false };
    let end = ControlRecord::parse(record.key, record.value);
    matches!(end, Ok(ControlRecord::EndTransaction { committed: false, .. }))
}
