//! From the acquired ranges and record batches of a response to records for the application.
//!
//! A response contains whole batches, and the ranges of offsets that were acquired. Records outside the ranges belong to
//! other members. Offsets in the ranges without a record are gaps: they must be acknowledged, or they block the window of
//! the partition until their locks have run out several times.
//!
//! # Pitfalls
//!
//! - Offsets that were not decoded are not gaps: acknowledged as gaps, their records would be lost
//!   (`undecoded_records_are_released`).

use std::{ops::RangeInclusive, sync::Arc};

use ottla_protocol::{
    generated::share_fetch::response::{AcquiredRecord, PartitionView},
    vocabulary::NodeId,
};

use super::{
    acknowledgement::{AcknowledgeType, AcknowledgedRange, Verdict},
    acquired::{DamagedRecords, Run},
};
use crate::{
    error::{Error, ErrorKind},
    fetch::{
        decode::{DecodeOptions, Decoded, decode},
        deliver::{FetchBuffer, FetchedRecords},
        partition::PartitionHandle,
    },
};

/// The number of damaged batches of one partition after which the rest of a response is released.
const MAX_DAMAGED: usize = 16;

/// The decoded records of one partition.
#[derive(Debug)]
pub(crate) struct DecodedShare {
    pub(crate) fetched: FetchedRecords,
    /// The acquired records.
    pub(crate) runs: Vec<Run>,
    /// The offsets that the client acknowledges automatically: gaps, and undecodable records. Ascending.
    pub(crate) unusable: Vec<AcknowledgedRange>,
    pub(crate) damaged: Vec<DamagedRecords>,
}

/// Decodes the records of one partition, which are in the buffer. Error: why the acquired ranges are invalid.
pub(crate) fn decode_share(
    handle: &Arc<PartitionHandle>,
    broker: Option<NodeId>,
    buffer: &Arc<FetchBuffer>,
    partition: &PartitionView<'_>,
    options: &mut DecodeOptions,
) -> Result<DecodedShare, String> {
    let (acquired, bytes) = (&partition.acquired_records[..], Some(partition.records));
    check(acquired)?;
    let first = acquired.first().map_or(0, |range| range.first_offset);
    let mut all = decode(buffer, bytes, first, -1, None, options);
    let mut failures = Vec::new();
    let mut undecoded = undecoded_from(&all);
    while let Some(damage) = all.damage.take() {
        let error = Error::new(ErrorKind::BadBatch, damage.reason);
        let next = damage.next_offset.filter(|next| *next > damage.offset.max(all.next_offset - 1));
        let Some(next) = next.filter(|_| failures.len() < MAX_DAMAGED) else {
            undecoded = Some((damage.offset.min(all.next_offset), error));
            break;
        };
        failures.push((damage.offset..=next - 1, error));
        let rest = decode(buffer, bytes, next, -1, None, options);
        undecoded = undecoded_from(&rest);
        all.batches.extend(rest.batches);
        all.messages += rest.messages;
        all.bytes += rest.bytes;
        all.next_offset = rest.next_offset;
        all.damage = rest.damage;
    }
    let runs = runs(&all, acquired);
    let mut covered: Vec<RangeInclusive<i64>> = runs.iter().map(|run| run.offsets.clone()).collect();
    let mut unusable = Vec::new();
    let mut damaged = Vec::new();
    let mut refuse = |offsets: &RangeInclusive<i64>, kind, error: &Error| {
        let mut is_first = true;
        for part in intersect(offsets, acquired) {
            unusable.push(AcknowledgedRange {
                first: *part.start(),
                last: *part.end(),
                verdict: Verdict::Of(kind),
            });
            covered.push(part.clone());
            if std::mem::take(&mut is_first) {
                damaged.push(DamagedRecords { offsets: part, error: error.clone() });
            }
        }
    };
    for (offsets, error) in &failures {
        refuse(offsets, AcknowledgeType::Reject, error);
    }
    if let Some((from, error)) = undecoded {
        refuse(&(from..=i64::MAX), AcknowledgeType::Release, &error);
    }
    covered.sort_unstable_by_key(|range| *range.start());
    unusable.extend(gaps(acquired, &covered));
    unusable.sort_unstable_by_key(|range| range.first);
    let fetched = FetchedRecords::new(Arc::clone(handle), handle.version(), broker, all);
    Ok(DecodedShare { fetched, runs, unusable, damaged })
}

/// Returns where the undecoded rest begins, and why it is undecoded.
fn undecoded_from(decoded: &Decoded) -> Option<(i64, Error)> {
    decoded.cut_off.then(|| {
        let detail = "the last batch of the response is incomplete; its records were released";
        (decoded.next_offset, Error::new(ErrorKind::BadBatch, detail))
    })
}

/// Checks that the ranges are ascending and don't overlap.
fn check(acquired: &[AcquiredRecord]) -> Result<(), String> {
    let mut end = -1;
    for range in acquired {
        let AcquiredRecord { first_offset: first, last_offset: last, .. } = *range;
        if first <= end || last < first || last == i64::MAX {
            return Err(format!("acquired offsets {first} to {last} after offset {end}"));
        }
        end = last;
    }
    Ok(())
}

/// Returns the acquired records: one run per part of a batch that is acquired.
fn runs(decoded: &Decoded, acquired: &[AcquiredRecord]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut add = |offsets: &RangeInclusive<i64>| {
        let from = acquired.partition_point(|range| range.last_offset < *offsets.start());
        for range in &acquired[from..] {
            if range.first_offset > *offsets.end() {
                break;
            }
            let first = range.first_offset.max(*offsets.start());
            let last = range.last_offset.min(*offsets.end());
            match runs.last_mut() {
                Some(run)
                    if *run.offsets.end() + 1 == first && run.delivery_count == range.delivery_count =>
                {
                    run.offsets = *run.offsets.start()..=last;
                }
                Some(run) if *run.offsets.end() >= first => {}
                _ => runs.push(Run { offsets: first..=last, delivery_count: range.delivery_count }),
            }
        }
    };
    for batch in &decoded.batches {
        let header = batch.header();
        let is_dense = i64::from(header.record_count) == i64::from(header.last_offset_delta) + 1;
        if is_dense {
            add(&(header.base_offset..=header.last_offset()));
        } else {
            for record in batch.walk().flatten() {
                add(&(record.offset..=record.offset));
            }
        }
    }
    runs
}

/// Returns the acquired parts of a range.
fn intersect<'a>(
    offsets: &'a RangeInclusive<i64>,
    acquired: &'a [AcquiredRecord],
) -> impl Iterator<Item = RangeInclusive<i64>> + 'a {
    acquired.iter().filter_map(|range| {
        let first = range.first_offset.max(*offsets.start());
        let last = range.last_offset.min(*offsets.end());
        (first <= last).then_some(first..=last)
    })
}

/// Returns the acquired offsets that no range in `covered` contains, which is ascending.
fn gaps(acquired: &[AcquiredRecord], covered: &[RangeInclusive<i64>]) -> Vec<AcknowledgedRange> {
    let mut gaps = Vec::new();
    let mut covered = covered.iter().peekable();
    for range in acquired {
        let mut from = range.first_offset;
        while from <= range.last_offset {
            while covered.peek().is_some_and(|next| *next.end() < from) {
                covered.next();
            }
            let next = covered.peek().map_or(i64::MAX, |next| *next.start());
            if next > from {
                let last = (next - 1).min(range.last_offset);
                gaps.push(AcknowledgedRange { first: from, last, verdict: Verdict::Gap });
                from = last + 1;
            } else {
                from = covered.peek().map_or(i64::MAX, |next| next.end().saturating_add(1));
            }
        }
    }
    gaps
}
