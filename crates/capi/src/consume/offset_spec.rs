//! Offsets as the interface represents them: numbers, some of which have a special meaning.

use ottla_core::fetch::{KnownEpochs, position::Offset};
use ottla_protocol::vocabulary::{LeaderEpoch, TopicPartition};
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

/// The positions that partitions start from.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) starts: Vec<(String, i32, Offset)>,
    /// The leader epochs of the records before them, as far as the application knows them.
    pub(crate) epochs: KnownEpochs,
}

/// Converts the offsets of a list and their leader epochs.
pub(super) fn places(elements: &[rd_kafka_topic_partition_t]) -> Option<Places> {
    let starts = elements
        .iter()
        .map(|element| Some((element.name().to_owned(), element.partition, offset_spec(element.offset)?)))
        .collect::<Option<_>>()?;
    Some(Places { starts, epochs: epochs(elements) })
}

/// Returns the leader epochs of a list, as far as it has some.
pub(super) fn epochs(elements: &[rd_kafka_topic_partition_t]) -> KnownEpochs {
    elements
        .iter()
        .filter_map(|element| {
            let epoch = LeaderEpoch::from_wire(element.leader_epoch())?;
            Some((TopicPartition::new(element.name(), element.partition), epoch))
        })
        .collect()
}

/// Returns true if a partition is in the list twice.
pub(super) fn repeats(elements: &[rd_kafka_topic_partition_t]) -> bool {
    let mut seen = SortedSet::new();
    !elements.iter().all(|element| seen.insert((element.name(), element.partition)))
}
