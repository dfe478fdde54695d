//! Elections of partition leaders (KIP-460).

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::elect_leaders::{
        ElectLeadersRequest, ElectLeadersResponse, request::TopicPartition as RequestedPartitions,
    },
    vocabulary::TopicPartition,
};

use super::{
    AdminCall, by_topic, check,
    item_results::{ItemResults, Items},
    one_result::OneResult,
};
use crate::{completion::Completion, contract::route::Route, error::Error};

/// The kind of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionType {
    /// The preferred leader, which is the first replica, becomes the leader if it is in sync.
    Preferred = 0,
    /// If no replica is in sync, another one becomes the leader, and records are lost. Needs Kafka 2.4 or later.
    Unclean = 1,
}

/// The outcome of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Election {
    /// The partition has a new leader.
    Elected,
    /// The leader is the right one already.
    NotNeeded,
}

/// The outcome of the election in each partition.
pub type ElectionResults = ItemResults<TopicPartition, Election>;

/// The first version with types of elections.
const FIRST_WITH_TYPES: i16 = 1;

/// Elects leaders of these partitions, or of all. The result of all partitions omits those that need no election.
pub fn elect_leaders(
    election: ElectionType,
    partitions: Option<Vec<TopicPartition>>,
    timeout: Duration,
    done: Completion<Result<ElectionResults, Error>>,
) -> AdminCall {
    let first = if election == ElectionType::Preferred { 0 } else { FIRST_WITH_TYPES };
    let election_type = move |version| if version >= FIRST_WITH_TYPES { election as i8 } else { 0 };
    let Some(partitions) = partitions else {
        let request = move |version, timeout_ms| ElectLeadersRequest {
            election_type: election_type(version),
            topic_partitions: None,
            timeout_ms,
        };
        let call = OneResult::new(Route::Controller, request, |response, _| results(response));
        return call.since_version(first).call(timeout, done);
    };
    let request = move |partitions: &[TopicPartition], version, timeout_ms| ElectLeadersRequest {
        election_type: election_type(version),
        topic_partitions: Some(
            by_topic(partitions)
                .into_iter()
                .map(|(topic, partitions)| RequestedPartitions { topic: topic.to_owned(), partitions })
                .collect(),
        ),
        timeout_ms,
    };
    let call = Items::new(partitions, request, |_, response| results(response));
    call.since_version(first).call(timeout, done)
}

fn results(response: ElectLeadersResponse) -> Result<ElectionResults, Error> {
    check(response.error_code, None)?;
    let mut results = Vec::new();
    for topic in response.replica_election_results {
        for one in topic.partition_result {
            let key = TopicPartition::new(&*topic.topic, one.partition_id);
            let result = match one.error_code {
                ErrorCode::NONE => Ok(Election::Elected),
                ErrorCode::ELECTION_NOT_NEEDED => Ok(Election::NotNeeded),
                code => Err(Error::broker(code, one.error_message.as_deref())
                    .with_partition(&*topic.topic, one.partition_id)),
            };
            results.push((key, result));
        }
    }
    Ok(results)
}
