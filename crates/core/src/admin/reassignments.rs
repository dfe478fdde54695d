//! Reassignments of replicas to brokers (KIP-455): starts, cancels and lists them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ottla_protocol::{
    generated::{
        alter_partition_reassignments::{
            AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
            request::{Partition, Topic},
        },
        list_partition_reassignments::{ListPartitionReassignmentsRequest, request},
    },
    vocabulary::TopicPartition,
};

use super::{
    AdminCall, by_topic, check,
    item_results::{ItemResults, Items},
    one_result::OneResult,
};
use crate::{completion::Completion, contract::route::Route, error::Error};

/// The replicas of partitions, the preferred leader first; `None` cancels a reassignment in progress.
pub type Reassignments = BTreeMap<TopicPartition, Option<Vec<i32>>>;

/// A reassignment in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OngoingReassignment {
    /// The brokers that have or get a replica: those of the end, and those that are still to be removed.
    pub replicas: Vec<i32>,
    /// The brokers that get a replica.
    pub adding: Vec<i32>,
    /// The brokers whose replica is removed at the end.
    pub removing: Vec<i32>,
}

/// The first version that can refuse a change of the replication factor.
const FIRST_WITH_REPLICATION_FACTOR: i16 = 1;

/// Starts or cancels reassignments. Without `may_change_replication_factor`, the broker refuses a reassignment to a different
/// number of replicas, which needs Kafka 4.1 or later.
pub fn alter_reassignments(
    reassignments: Reassignments,
    may_change_replication_factor: bool,
    timeout: Duration,
    done: Completion<Result<ItemResults<TopicPartition, ()>, Error>>,
) -> AdminCall {
    let first = if may_change_replication_factor { 0 } else { FIRST_WITH_REPLICATION_FACTOR };
    let keys = reassignments.keys().cloned().collect();
    let reassignments = Arc::new(reassignments);
    let request = move |keys: &[TopicPartition], _, timeout_ms| {
        let mut topics = BTreeMap::<&str, Vec<Partition>>::new();
        for key in keys {
            topics.entry(&key.topic).or_default().push(Partition {
                partition_index: key.partition,
                replicas: reassignments.get(key).cloned().flatten(),
            });
        }
        let topic = |(name, partitions): (&str, _)| Topic { name: name.to_owned(), partitions };
        AlterPartitionReassignmentsRequest {
            timeout_ms,
            allow_replication_factor_change: may_change_replication_factor,
            topics: topics.into_iter().map(topic).collect(),
        }
    };
    let call = Items::new(keys, request, |_, response| results(response));
    call.since_version(first).call(timeout, done)
}

fn results(response: AlterPartitionReassignmentsResponse) -> Result<ItemResults<TopicPartition, ()>, Error> {
    check(response.error_code, response.error_message.as_deref())?;
    let mut results = Vec::new();
    for topic in response.responses {
        for one in topic.partitions {
            let result = check(one.error_code, one.error_message.as_deref())
                .map_err(|error| error.with_partition(&*topic.name, one.partition_index));
            results.push((TopicPartition::new(&*topic.name, one.partition_index), result));
        }
    }
    Ok(results)
}

/// Lists the reassignments in progress: of these partitions, or all.
pub fn list_reassignments(
    partitions: Option<Vec<TopicPartition>>,
    timeout: Duration,
    done: Completion<Result<BTreeMap<TopicPartition, OngoingReassignment>, Error>>,
) -> AdminCall {
    let request = move |_, timeout_ms| {
        let topic = |(name, partition_indexes): (&str, _)| request::Topic {
            name: name.to_owned(),
            partition_indexes,
        };
        let topics = partitions.as_ref().map(|all| by_topic(all).into_iter().map(topic).collect());
        ListPartitionReassignmentsRequest { timeout_ms, topics }
    };
    let call = OneResult::new(Route::Controller, request, |response, _| {
        check(response.error_code, response.error_message.as_deref())?;
        let mut found = BTreeMap::new();
        for topic in response.topics {
            let name: Arc<str> = topic.name.into();
            for one in topic.partitions {
                let reassignment = OngoingReassignment {
                    replicas: one.replicas,
                    adding: one.adding_replicas,
                    removing: one.removing_replicas,
                };
                found.insert(TopicPartition::new(Arc::clone(&name), one.partition_index), reassignment);
            }
        }
        Ok(found)
    });
    call.call(timeout, done)
}
