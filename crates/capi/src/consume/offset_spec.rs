//! Offsets as the interface represents them: numbers, some of which have a special meaning.

use ottla_core::fetch::position::Offset;
use ottla_sorted::SortedSet;

use crate::ffi::types::{
    OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED, OFFSET_TAIL_BASE, rd_kafka_topic_partition_t,
};

/// Converts an offset of the interface.
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

/// Converts the offsets of a list.
pub(super) fn offset_specs(elements: &[rd_kafka_topic_partition_t]) -> Option<Vec<(String, i32, Offset)>> {
    elements
        .iter()
        .map(|element| Some((element.name().to_owned(), element.partition, offset_spec(element.offset)?)))
        .collect()
}

/// Returns true if a partition is in the list twice.
pub(super) fn repeats(elements: &[rd_kafka_topic_partition_t]) -> bool {
    let mut seen = SortedSet::new();
    !elements.iter().all(|element| seen.insert((element.name(), element.partition)))
}
