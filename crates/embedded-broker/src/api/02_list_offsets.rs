//! ListOffsets (2), versions 1 to 11 (0 where an older release is emulated). Supports earliest (-2), latest (-1), the
//! record with the largest timestamp (-3), the earliest local offset (-4: the same as earliest), the latest tiered
//! offset (-5: none), the earliest pending upload offset (-6: none), and the first record with at least a given
//! timestamp. For consumers of committed records, the last stable offset takes the place of the high watermark.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::list_offsets::{ListOffsetsRequest, ListOffsetsResponse, request, response},
};

use crate::{batch, cluster::Cluster, connection::Request, log::PartitionLog};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

impl Cluster {
    pub(crate) fn list_offsets(
        &mut self,
        request: &mut Request,
        body: ListOffsetsRequest,
    ) -> ListOffsetsResponse {
        let mut response =
            ListOffsetsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for topic in body.topics {
            let partitions = topic.partitions.iter();
            let partitions = partitions.map(|partition| {
                self.list_offset(request, &topic.name, partition, body.isolation_level == 1).unwrap_or_else(
                    |error_code| response::Partition {
                        partition_index: partition.partition_index,
                        error_code,
                        ..Default::default()
                    },
                )
            });
            let partitions = partitions.collect();
            response.topics.push(response::Topic { name: topic.name, partitions });
        }
        response
    }

    fn list_offset(
        &mut self,
        request: &mut Request,
        topic: &str,
        requested: &request::Partition,
        read_committed: bool,
    ) -> Result<response::Partition, ErrorCode> {
        if let Some(error) = self.topic_error(request, topic, requested.partition_index) {
            return Err(error);
        }
        let index = self.topics.by_name(topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let partition = self.topics.partition(index, requested.partition_index);
        let partition = partition.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        partition.check_leader(request.broker, requested.current_leader_epoch)?;
        let log = &partition.log;
        let end = if read_committed { partition.last_stable_offset() } else { log.high_watermark() };
        let at = |offset: i64| (-1, offset, log.epoch_of(offset).unwrap_or(partition.leader_epoch));
        let (timestamp, offset, leader_epoch) = match requested.timestamp {
            LATEST => (-1, end, partition.leader_epoch),
            EARLIEST | EARLIEST_LOCAL => at(log.start_offset()),
            LATEST_TIERED | EARLIEST_PENDING_UPLOAD => (-1, -1, -1),
            MAX_TIMESTAMP => {
                largest_timestamp(log).filter(|(_, offset, _)| *offset < end).unwrap_or(NOT_FOUND)
            }
            timestamp if timestamp >= 0 => first_reaching(log, timestamp, end),
            _ => return Err(ErrorCode::UNSUPPORTED_VERSION),
        };
        if request.version == 0 {
            let newest_first = [Some(offset), (requested.timestamp == LATEST).then_some(log.start_offset())];
            let most = usize::try_from(requested.max_num_offsets).unwrap_or(0);
            return Ok(response::Partition {
                partition_index: requested.partition_index,
                old_style_offsets: newest_first
                    .into_iter()
                    .flatten()
                    .filter(|o| *o >= 0)
                    .take(most)
                    .collect(),
                ..Default::default()
            });
        }
        Ok(response::Partition {
            partition_index: requested.partition_index,
            timestamp,
            offset,
            leader_epoch: if request.version >= 4 { leader_epoch } else { -1 },
            ..Default::default()
        })
    }
}

const NOT_FOUND: (i64, i64, i32) = (-1, -1, -1);

fn largest_timestamp(log: &PartitionLog) -> Option<(i64, i64, i32)> {
    let stored = log.batch_of_largest_timestamp()?;
    Some(match batch::first_record_reaching(&stored.bytes, stored.max_timestamp) {
        Some((timestamp, offset)) => (timestamp, offset, stored.leader_epoch),
        None => (stored.max_timestamp, stored.last_offset, stored.leader_epoch),
    })
}

/// Returns the first record before `end` whose timestamp is at least `timestamp`.
fn first_reaching(log: &PartitionLog, timestamp: i64, end: i64) -> (i64, i64, i32) {
    for stored in log.batches_reaching(timestamp) {
        if stored.base_offset >= end {
            break;
        }
        if let Some((found, offset)) = batch::first_record_reaching(&stored.bytes, timestamp)
            && offset >= log.start_offset()
        {
            return (found, offset, stored.leader_epoch);
        }
    }
    NOT_FOUND
}
