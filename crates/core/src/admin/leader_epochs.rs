//! The end offsets of leader epochs (KIP-320), at the leaders of partitions.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    generated::offset_for_leader_epoch::{
        OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
        request::{Partition, Topic},
    },
    primitive::Reader,
    vocabulary::LeaderEpoch,
};

use super::{AdminCall, Operation, Verdict, check, undecodable};
use crate::{
    cluster::route::{EncodeBody, Route},
    completion::Completion,
    error::{Error, ErrorKind},
};

/// The end of an epoch in a partition's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochEnd {
    /// The largest epoch that is not larger than the requested one, if the log has one.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The offset after the last record of that epoch; `None` without the epoch.
    pub end_offset: Option<i64>,
}

/// Looks up the end offset of a leader epoch.
pub fn epoch_end(
    topic: Arc<str>,
    partition: i32,
    epoch: LeaderEpoch,
    timeout: Duration,
    done: Completion<Result<EpochEnd, Error>>,
) -> AdminCall {
    AdminCall::operation(FindEnd { topic, partition, epoch, end: None, done }, timeout)
}

/// The first version that names the epoch that was found.
const FIRST_WITH_EPOCHS: i16 = 1;

struct FindEnd {
    topic: Arc<str>,
    partition: i32,
    epoch: LeaderEpoch,
    end: Option<EpochEnd>,
    done: Completion<Result<EpochEnd, Error>>,
}

impl Operation for FindEnd {
    fn api(&self) -> ApiKey {
        ApiKey::OffsetForLeaderEpoch
    }

    fn versions(&self) -> RangeInclusive<i16> {
        FIRST_WITH_EPOCHS..=*self.api().versions().end()
    }

    fn route(&self) -> Route {
        Route::Any
    }

    fn partition(&self) -> Option<(&Arc<str>, i32)> {
        Some((&self.topic, self.partition))
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let partition =
            Partition { partition: self.partition, leader_epoch: self.epoch.get(), ..Partition::default() };
        let topics = vec![Topic { topic: self.topic.to_string(), partitions: vec![partition] }];
        // A consumer has no replica ID.
        let request = OffsetForLeaderEpochRequest { replica_id: -1, topics };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response = OffsetForLeaderEpochResponse::decode(&mut Reader::new(body), version)
            .map_err(|error| undecodable(&error))?;
        let topics = response.topics.iter().filter(|topic| *topic.topic == *self.topic);
        let mut partitions = topics.flat_map(|topic| &topic.partitions);
        let Some(found) = partitions.find(|one| one.partition == self.partition) else {
            return Err(Error::new(ErrorKind::BadResponse, "the response leaves the partition out"));
        };
        check(found.error_code, None).map_err(|error| error.with_partition(&*self.topic, self.partition))?;
        self.end = Some(EpochEnd {
            leader_epoch: LeaderEpoch::from_wire(found.leader_epoch),
            end_offset: (found.end_offset >= 0).then_some(found.end_offset),
        });
        Ok(Verdict::Done)
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let none = || error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result"));
        self.done.complete(self.end.ok_or_else(none));
    }
}
