//! The end offsets of leader epochs (KIP-320), with one request to each leader of the partitions.

use std::{ops::RangeInclusive, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    generated::offset_for_leader_epoch::{
        OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
        request::{Partition, Topic},
    },
    primitive::Reader,
    vocabulary::{LeaderEpoch, TopicPartition},
};
use ottla_sorted::SortedMap;

use super::{
    AdminCall, by_topic, check,
    leader_batches::{Collected, PartitionsOperation, Results},
    undecodable,
};
use crate::{completion::Completion, contract::route::EncodeBody, error::Error};

/// The end of an epoch in a partition's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochEnd {
    /// The largest epoch that is not larger than the requested one, if the log has one.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The offset after the last record of that epoch; `None` without the epoch.
    pub end_offset: Option<i64>,
}

/// The end of the epoch of each partition, in the order of the arguments.
pub type EpochEnds = Vec<Result<EpochEnd, Error>>;

/// Looks up the end offsets of leader epochs. No partition is named twice.
pub fn epoch_ends(
    epochs: Vec<(TopicPartition, LeaderEpoch)>,
    timeout: Duration,
    done: Completion<EpochEnds>,
) -> AdminCall {
    let partitions: Vec<TopicPartition> = epochs.iter().map(|(key, _)| key.clone()).collect();
    let results = Collected::new(partitions.clone(), done);
    let operation = FindEnds { epochs: epochs.into_iter().collect(), results };
    AdminCall::of_partitions(operation, partitions, timeout)
}

/// The first version that names the epoch that was found.
const FIRST_WITH_EPOCHS: i16 = 1;

struct FindEnds {
    epochs: SortedMap<TopicPartition, LeaderEpoch>,
    results: Collected<EpochEnd>,
}

impl PartitionsOperation for FindEnds {
    fn api(&self) -> ApiKey {
        ApiKey::OffsetForLeaderEpoch
    }

    fn versions(&self) -> RangeInclusive<i16> {
        FIRST_WITH_EPOCHS..=*self.api().versions().end()
    }

    fn encode(&self, partitions: &[TopicPartition], _timeout: Duration) -> EncodeBody {
        let partition = |name: &str, partition| {
            let epoch = self.epochs.get(&TopicPartition::new(name, partition)).copied();
            Partition { partition, leader_epoch: LeaderEpoch::to_wire(epoch), ..Partition::default() }
        };
        let topics = by_topic(partitions).into_iter().map(|(name, partitions)| Topic {
            topic: name.to_owned(),
            partitions: partitions.into_iter().map(|index| partition(name, index)).collect(),
        });
        // A client has no replica ID.
        let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: topics.collect() };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Results, Error> {
        let response = OffsetForLeaderEpochResponse::decode(&mut Reader::new(body), version)
            .map_err(|error| undecodable(&error))?;
        let mut results = Results::new();
        for topic in response.topics {
            for one in topic.partitions {
                let key = TopicPartition::new(topic.topic.as_str(), one.partition);
                let end = EpochEnd {
                    leader_epoch: LeaderEpoch::from_wire(one.leader_epoch),
                    end_offset: (one.end_offset >= 0).then_some(one.end_offset),
                };
                let result = check(one.error_code, None)
                    .map(|()| end)
                    .map_err(|error| error.with_partition(&*key.topic, key.partition));
                results.push(self.results.add(key, result));
            }
        }
        Ok(results)
    }

    fn finish(self: Box<Self>, failed: SortedMap<TopicPartition, Error>) {
        self.results.finish(failed);
    }
}
