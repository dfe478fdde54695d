//! Lists, alters and deletes the committed offsets of a group.
//!
//! # Pitfalls
//!
//! - The coordinator refuses to alter offsets of a group with members with UNKNOWN_MEMBER_ID, and to delete offsets of topics
//!   that a member subscribes to with GROUP_SUBSCRIBED_TO_TOPIC. Both are results of partitions, not of the call
//!   (`results_of_partitions_do_not_fail_each_other`).

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        offset_commit::{OffsetCommitRequest, OffsetCommitResponse, request as commit},
        offset_delete::{OffsetDeleteRequest, OffsetDeleteResponse, request as delete},
        offset_fetch::{
            OffsetFetchRequest, OffsetFetchResponse,
            request::{Group, GroupTopic, OffsetFetchTopic},
        },
    },
    primitive::Reader,
    vocabulary::{LeaderEpoch, TopicPartition},
};
use ottla_sorted::SortedMap;

use super::is_temporary;
use crate::{
    admin::{AdminCall, Operation, Verdict, undecodable},
    completion::Completion,
    contract::route::{CoordinatorKey, EncodeBody, Route},
    error::{Error, ErrorKind},
    offsets::committed::GroupOffset,
};

/// The partitions of a call, each with its result.
pub type PartitionResults<T> = Vec<(TopicPartition, Result<T, Error>)>;

/// Lists the committed offsets of a group: those of these partitions, or all. A partition without a committed offset has the
/// result `None`. With `require_stable` the call waits for open transactions that may commit other offsets.
pub fn list_group_offsets(
    group_id: impl Into<Arc<str>>,
    partitions: Option<Vec<TopicPartition>>,
    require_stable: bool,
    timeout: Duration,
    done: Completion<Result<PartitionResults<Option<GroupOffset>>, Error>>,
) -> AdminCall {
    let operation =
        ListOffsets { group_id: group_id.into(), partitions, require_stable, results: None, done };
    AdminCall::operation(operation, timeout)
}

/// Commits offsets for a group without members. The group is created if it does not exist.
pub fn alter_group_offsets(
    group_id: impl Into<Arc<str>>,
    offsets: Vec<GroupOffset>,
    timeout: Duration,
    done: Completion<Result<PartitionResults<()>, Error>>,
) -> AdminCall {
    let partitions = offsets.iter().map(|offset| TopicPartition::new(&*offset.topic, offset.partition));
    let results = Results::new(partitions.collect());
    AdminCall::operation(AlterOffsets { group_id: group_id.into(), offsets, results, done }, timeout)
}

/// Commits offsets like [`alter_group_offsets`], but the first response is the result, also if it is an error that passes by
/// itself.
pub fn alter_group_offsets_once(
    group_id: impl Into<Arc<str>>,
    offsets: Vec<GroupOffset>,
    timeout: Duration,
    done: Completion<Result<PartitionResults<()>, Error>>,
) -> AdminCall {
    let partitions = offsets.iter().map(|offset| TopicPartition::new(&*offset.topic, offset.partition));
    let results = Results { is_final: true, ..Results::new(partitions.collect()) };
    AdminCall::operation(AlterOffsets { group_id: group_id.into(), offsets, results, done }, timeout)
}

/// Deletes the committed offsets of these partitions.
pub fn delete_group_offsets(
    group_id: impl Into<Arc<str>>,
    partitions: Vec<TopicPartition>,
    timeout: Duration,
    done: Completion<Result<PartitionResults<()>, Error>>,
) -> AdminCall {
    let results = Results::new(partitions);
    AdminCall::operation(DeleteOffsets { group_id: group_id.into(), results, done }, timeout)
}

/// The first version of OffsetFetch that reads from Kafka; version 0 reads from ZooKeeper.
const FIRST_IN_KAFKA: i16 = 1;
/// The first version of OffsetFetch that lists all partitions.
const FIRST_WITH_ALL: i16 = 2;
/// The first version of OffsetFetch that waits for open transactions (KIP-447).
const FIRST_WITH_STABLE: i16 = 7;
/// The last version of OffsetFetch for one group; later ones query several groups at once.
const LAST_WITH_ONE_GROUP: i16 = 7;
/// The first version of OffsetCommit without a timestamp for each offset.
const FIRST_COMMIT: i16 = 2;
/// The last versions of OffsetFetch and OffsetCommit with topic names; later ones have topic IDs.
const LAST_WITH_NAMES: i16 = 9;

// ---- list

struct ListOffsets {
    group_id: Arc<str>,
    partitions: Option<Vec<TopicPartition>>,
    require_stable: bool,
    results: Option<PartitionResults<Option<GroupOffset>>>,
    done: Completion<Result<PartitionResults<Option<GroupOffset>>, Error>>,
}

impl Operation for ListOffsets {
    fn api(&self) -> ApiKey {
        ApiKey::OffsetFetch
    }

    fn versions(&self) -> RangeInclusive<i16> {
        let first = if self.require_stable {
            FIRST_WITH_STABLE
        } else if self.partitions.is_none() {
            FIRST_WITH_ALL
        } else {
            FIRST_IN_KAFKA
        };
        first..=LAST_WITH_NAMES
    }

    fn route(&self) -> Route {
        Route::Coordinator(CoordinatorKey::group(Arc::clone(&self.group_id)))
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let topics =
            self.partitions.as_ref().map(|partitions| by_topic(partitions.iter().map(|key| (key, ()))));
        let (group_id, require_stable) = (self.group_id.to_string(), self.require_stable);
        let numbers = |partitions: &Vec<(i32, ())>| partitions.iter().map(|(number, ())| *number).collect();
        Box::new(move |version, out| {
            let mut request = OffsetFetchRequest { require_stable, ..OffsetFetchRequest::default() };
            if version > LAST_WITH_ONE_GROUP {
                let topic = |(name, partitions): (&String, &Vec<(i32, ())>)| GroupTopic {
                    name: name.clone(),
                    partition_indexes: numbers(partitions),
                    ..GroupTopic::default()
                };
                let topics = topics.as_ref().map(|topics| topics.iter().map(topic).collect());
                request.groups = vec![Group { group_id: group_id.clone(), topics, ..Group::default() }];
            } else {
                let topic = |(name, partitions): (&String, &Vec<(i32, ())>)| OffsetFetchTopic {
                    name: name.clone(),
                    partition_indexes: numbers(partitions),
                };
                request.group_id.clone_from(&group_id);
                request.topics = topics.as_ref().map(|topics| topics.iter().map(topic).collect());
            }
            request.encode(version, out)
        })
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response =
            OffsetFetchResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        let code = response.groups.first().map_or(response.error_code, |group| group.error_code);
        match code {
            ErrorCode::NONE => {}
            code if is_temporary(code) => return Ok(Verdict::Again(Error::broker(code, None))),
            code => return Err(Error::broker(code, None)),
        }
        let mut temporary = None;
        let mut found = SortedMap::new();
        for (key, code, offset) in reported(response) {
            let result = match code {
                ErrorCode::NONE => Ok((offset.offset >= 0).then_some(offset)),
                code => Err(Error::broker(code, None).with_partition(&*key.topic, key.partition)),
            };
            if let Err(error) = &result
                && is_temporary(code)
            {
                temporary = Some(error.clone());
            }
            found.insert(key, result);
        }
        self.results = Some(match &self.partitions {
            None => found.into_iter().collect(),
            Some(partitions) => {
                let result =
                    |key: &TopicPartition| (key.clone(), found.get(key).cloned().unwrap_or(Ok(None)));
                partitions.iter().map(result).collect()
            }
        });
        Ok(temporary.map_or(Verdict::Done, Verdict::Again))
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let missing = || error.unwrap_or_else(no_result);
        self.done.complete(self.results.ok_or_else(missing));
    }
}

/// Returns the offsets of a response in any version.
fn reported(response: OffsetFetchResponse) -> Vec<(TopicPartition, ErrorCode, GroupOffset)> {
    let offset = |topic: &Arc<str>, partition, code, offset, leader_epoch, metadata: Option<String>| {
        let metadata = metadata.unwrap_or_default();
        let new = GroupOffset::new(Arc::clone(topic), partition, offset);
        let offset = GroupOffset { leader_epoch, metadata, ..new };
        (TopicPartition::new(Arc::clone(topic), partition), code, offset)
    };
    let mut all = Vec::new();
    for topic in response.topics {
        let name: Arc<str> = topic.name.into();
        all.extend(topic.partitions.into_iter().map(|one| {
            let epoch = LeaderEpoch::from_wire(one.committed_leader_epoch);
            offset(&name, one.partition_index, one.error_code, one.committed_offset, epoch, one.metadata)
        }));
    }
    for topic in response.groups.into_iter().flat_map(|group| group.topics) {
        let name: Arc<str> = topic.name.into();
        all.extend(topic.partitions.into_iter().map(|one| {
            let epoch = LeaderEpoch::from_wire(one.committed_leader_epoch);
            offset(&name, one.partition_index, one.error_code, one.committed_offset, epoch, one.metadata)
        }));
    }
    all
}

// ---- alter and delete

/// The results of partitions that are requested again until each has one.
struct Results {
    partitions: Vec<TopicPartition>,
    results: SortedMap<TopicPartition, Result<(), Error>>,
    /// True if the first response is the result of each partition, whatever it says.
    is_final: bool,
}

impl Results {
    fn new(partitions: Vec<TopicPartition>) -> Self {
        Self { partitions, results: SortedMap::new(), is_final: false }
    }

    /// Returns true if the partition has no result.
    fn lacks(&self, key: &TopicPartition) -> bool {
        !self.results.contains_key(key)
    }

    /// Adds the codes of a response, each with an explanation. Partitions with a temporary error keep lacking a result.
    fn add(&mut self, codes: impl Iterator<Item = (TopicPartition, ErrorCode)>) -> Verdict {
        let mut temporary = None;
        for (key, code) in codes {
            let result = match code {
                ErrorCode::NONE => Ok(()),
                code => {
                    Err(Error::broker(code, explanation(code)).with_partition(&*key.topic, key.partition))
                }
            };
            match result {
                Err(error) if is_temporary(code) => {
                    if self.is_final {
                        self.results.insert(key, Err(error.clone()));
                    }
                    temporary = Some(error);
                }
                result => drop(self.results.insert(key, result)),
            }
        }
        let lacks = self.partitions.iter().any(|key| self.lacks(key));
        match temporary {
            Some(error) if self.is_final => Verdict::Failed(error),
            Some(error) if lacks => Verdict::Again(error),
            None if lacks => {
                Verdict::Again(Error::new(ErrorKind::BadResponse, "the response leaves a partition out"))
            }
            _ => Verdict::Done,
        }
    }

    /// Returns the results. With an error, partitions without a result have that, or the call if no partition has one.
    fn finish(self, error: Option<Error>) -> Result<PartitionResults<()>, Error> {
        let Self { partitions, mut results, .. } = self;
        let missing = error.unwrap_or_else(no_result);
        if results.is_empty() {
            return Err(missing);
        }
        let result = |key: TopicPartition| {
            let result = results.remove(&key).unwrap_or_else(|| Err(missing.clone()));
            (key, result)
        };
        Ok(partitions.into_iter().map(result).collect())
    }
}

fn no_result() -> Error {
    Error::new(ErrorKind::Bug, "a call ended without a result")
}

/// Returns what the user can do about an error code, if it does not say so itself.
const fn explanation(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::UNKNOWN_MEMBER_ID => Some("the group has members; stop them first"),
        ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC => {
            Some("members of the group subscribe to the topic; stop them first")
        }
        _ => None,
    }
}

struct AlterOffsets {
    group_id: Arc<str>,
    offsets: Vec<GroupOffset>,
    results: Results,
    done: Completion<Result<PartitionResults<()>, Error>>,
}

impl Operation for AlterOffsets {
    fn api(&self) -> ApiKey {
        ApiKey::OffsetCommit
    }

    fn versions(&self) -> RangeInclusive<i16> {
        FIRST_COMMIT..=LAST_WITH_NAMES
    }

    fn route(&self) -> Route {
        Route::Coordinator(CoordinatorKey::group(Arc::clone(&self.group_id)))
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let keyed = self.offsets.iter().zip(&self.results.partitions);
        let lacking = keyed.filter(|(_, key)| self.results.lacks(key)).map(|(offset, key)| (key, offset));
        let topics = by_topic(lacking).into_iter().map(|(name, offsets)| commit::Topic {
            name,
            partitions: offsets.into_iter().map(|(_, offset)| to_commit(offset)).collect(),
            ..commit::Topic::default()
        });
        let group_id = self.group_id.to_string();
        let request =
            OffsetCommitRequest { group_id, topics: topics.collect(), ..OffsetCommitRequest::default() };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response =
            OffsetCommitResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        Ok(self.results.add(response.topics.iter().flat_map(|topic| {
            let name: Arc<str> = Arc::from(&*topic.name);
            let code = move |one: &ottla_protocol::generated::offset_commit::response::Partition| {
                (TopicPartition::new(Arc::clone(&name), one.partition_index), one.error_code)
            };
            topic.partitions.iter().map(code)
        })))
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        self.done.complete(self.results.finish(error));
    }
}

fn to_commit(offset: &GroupOffset) -> commit::Partition {
    commit::Partition {
        partition_index: offset.partition,
        committed_offset: offset.offset,
        committed_leader_epoch: LeaderEpoch::to_wire(offset.leader_epoch),
        committed_metadata: Some(offset.metadata.clone()),
        ..commit::Partition::default()
    }
}

struct DeleteOffsets {
    group_id: Arc<str>,
    results: Results,
    done: Completion<Result<PartitionResults<()>, Error>>,
}

impl Operation for DeleteOffsets {
    fn api(&self) -> ApiKey {
        ApiKey::OffsetDelete
    }

    fn route(&self) -> Route {
        Route::Coordinator(CoordinatorKey::group(Arc::clone(&self.group_id)))
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let lacking =
            self.results.partitions.iter().filter(|key| self.results.lacks(key)).map(|key| (key, ()));
        let topics = by_topic(lacking).into_iter().map(|(name, partitions)| delete::Topic {
            name,
            partitions: partitions
                .into_iter()
                .map(|(partition_index, ())| delete::Partition { partition_index })
                .collect(),
        });
        let request = OffsetDeleteRequest { group_id: self.group_id.to_string(), topics: topics.collect() };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response =
            OffsetDeleteResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        match response.error_code {
            ErrorCode::NONE => {}
            code if is_temporary(code) => return Ok(Verdict::Again(Error::broker(code, None))),
            code => return Err(Error::broker(code, explanation(code))),
        }
        Ok(self.results.add(response.topics.iter().flat_map(|topic| {
            let name: Arc<str> = Arc::from(&*topic.name);
            let code = move |one: &ottla_protocol::generated::offset_delete::response::Partition| {
                (TopicPartition::new(Arc::clone(&name), one.partition_index), one.error_code)
            };
            topic.partitions.iter().map(code)
        })))
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        self.done.complete(self.results.finish(error));
    }
}

/// Groups values by topic, each with its partition.
fn by_topic<'a, T>(
    values: impl Iterator<Item = (&'a TopicPartition, T)>,
) -> SortedMap<String, Vec<(i32, T)>> {
    let mut topics: SortedMap<String, Vec<(i32, T)>> = SortedMap::new();
    for (key, value) in values {
        topics.entry(key.topic.to_string()).or_default().push((key.partition, value));
    }
    topics
}
