//! Offsets as the interface writes them: numbers, of which some have a meaning of their own.

use std::collections::BTreeSet;

use ottla_core::fetch::position::Offset;

use crate::ffi::types::{
    OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED, OFFSET_TAIL_BASE, rd_kafka_topic_partition_t,
};

/// A place in the interface's numbers.
pub(super) fn offset_spec(offset: i64) -> Option<Offset> {
    match offset {
        0.. => Some(Offset::At(offset)),
        OFFSET_END => Some(Offset::End),
        OFFSET_BEGINNING => Some(Offset::Beginning),
        OFFSET_STORED | OFFSET_INVALID => Some(Offset::Committed),
        ..=OFFSET_TAIL_BASE => Some(Offset::Tail(OFFSET_TAIL_BASE.saturating_sub(offset))),
        _ => None,
    }
}

/// A list as places to fetch from.
pub(super) fn offset_specs(elements: &[rd_kafka_topic_partition_t]) -> Option<Vec<(String, i32, Offset)>> {
    elements
        .iter()
        .map(|element| Some((element.name().to_owned(), element.partition, offset_spec(element.offset)?)))
        .collect()
}

/// True if a partition stands there twice.
pub(super) fn repeats(elements: &[rd_kafka_topic_partition_t]) -> bool {
    let mut seen = BTreeSet::new();
    !elements.iter().all(|element| seen.insert((element.name(), element.partition)))
}
