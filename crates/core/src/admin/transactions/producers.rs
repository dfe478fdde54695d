//! Describes the producers that write to a partition.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::describe_producers::{DescribeProducersRequest, DescribeProducersResponse, request, response},
    primitive::Reader,
};

use crate::{
    admin::{AdminCall, Operation, Verdict, undecodable},
    cluster::route::{EncodeBody, Route},
    completion::Completion,
    error::{Error, ErrorKind},
};

/// An idempotent or transactional producer that has written to a partition lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActiveProducer {
    /// The producer ID.
    pub producer_id: i64,
    /// The producer epoch.
    pub producer_epoch: i32,
    /// The sequence number of its last record; `None` if its last record was a marker.
    pub last_sequence: Option<i32>,
    /// The time of its last record, in milliseconds since 1970.
    pub last_timestamp: Option<i64>,
    /// The epoch of the coordinator that wrote its last marker; `None` before the first one.
    pub coordinator_epoch: Option<i32>,
    /// The offset of the first record of its open transaction.
    pub transaction_start: Option<i64>,
}

/// Describes the producers of a partition, as its leader knows them.
pub fn describe_producers(
    topic: Arc<str>,
    partition: i32,
    timeout: Duration,
    done: Completion<Result<Vec<ActiveProducer>, Error>>,
) -> AdminCall {
    AdminCall::operation(DescribeProducers { topic, partition, producers: None, done }, timeout)
}

struct DescribeProducers {
    topic: Arc<str>,
    partition: i32,
    producers: Option<Vec<ActiveProducer>>,
    done: Completion<Result<Vec<ActiveProducer>, Error>>,
}

impl From<&response::ActiveProducer> for ActiveProducer {
    fn from(one: &response::ActiveProducer) -> Self {
        Self {
            producer_id: one.producer_id,
            producer_epoch: one.producer_epoch,
            last_sequence: (one.last_sequence >= 0).then_some(one.last_sequence),
            last_timestamp: (one.last_timestamp >= 0).then_some(one.last_timestamp),
            coordinator_epoch: (one.coordinator_epoch >= 0).then_some(one.coordinator_epoch),
            transaction_start: (one.current_txn_start_offset >= 0).then_some(one.current_txn_start_offset),
        }
    }
}

impl Operation for DescribeProducers {
    fn api(&self) -> ApiKey {
        ApiKey::DescribeProducers
    }

    fn route(&self) -> Route {
        Route::Any
    }

    fn partition(&self) -> Option<(&Arc<str>, i32)> {
        Some((&self.topic, self.partition))
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let topic = request::Topic { name: self.topic.to_string(), partition_indexes: vec![self.partition] };
        let request = DescribeProducersRequest { topics: vec![topic] };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response = DescribeProducersResponse::decode(&mut Reader::new(body), version)
            .map_err(|e| undecodable(&e))?;
        let of_topic = response.topics.iter().filter(|topic| *topic.name == *self.topic);
        let one = of_topic
            .flat_map(|topic| &topic.partitions)
            .find(|partition| partition.partition_index == self.partition);
        let Some(one) = one else {
            return Err(Error::new(ErrorKind::BadResponse, "the response omits the partition"));
        };
        let error = || {
            let error = Error::broker(one.error_code, one.error_message.as_deref());
            error.with_partition(&*self.topic, self.partition)
        };
        match one.error_code {
            ErrorCode::NONE => {
                self.producers = Some(one.active_producers.iter().map(ActiveProducer::from).collect());
                Ok(Verdict::Done)
            }
            code if code.is_retriable() => Ok(Verdict::Again(error())),
            _ => Err(error()),
        }
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let none = || error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result"));
        self.done.complete(self.producers.ok_or_else(none));
    }
}
