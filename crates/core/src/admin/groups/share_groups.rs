//! Describes share groups (KIP-932), and lists, alters and deletes the offsets at which their partitions start.
//!
//! A share group has no committed offsets: the start offset of a partition is that of its first record that is not finished.
//! The lag counts the records from there on that no member has finished (KIP-1226).

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        alter_share_group_offsets::{
            AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, request as alter,
        },
        delete_share_group_offsets::{
            DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse, request as delete,
        },
        describe_share_group_offsets::{
            DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse, request as describe,
        },
        share_group_describe::{ShareGroupDescribeRequest, ShareGroupDescribeResponse, response},
    },
    primitive::{DecodeError, Reader},
    vocabulary::{LeaderEpoch, TopicPartition},
};
use ottla_sorted::SortedMap;

use super::{
    GroupState,
    describe_typed::{DescribedGroup, Included, TypedGroup, check_group, describe_typed},
    is_temporary,
    offsets::PartitionResults,
};
use crate::{
    admin::{
        AdminCall, Operation, Verdict,
        describe::{AuthorizedOperations, BrokerDescription},
        item_results::ItemResults,
        topics::TopicResults,
        undecodable,
    },
    completion::Completion,
    contract::route::{CoordinatorKey, EncodeBody, Route},
    error::{Error, ErrorKind},
};

/// The description of a share group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShareGroupDescription {
    /// The group ID.
    pub group_id: String,
    /// The state: `Empty`, `Stable` or `Dead`.
    pub state: GroupState,
    /// The assignor of the coordinator.
    pub assignor: String,
    /// The coordinator.
    pub coordinator: Option<BrokerDescription>,
    /// The epoch of the group.
    pub group_epoch: i32,
    /// The epoch of the assignment.
    pub assignment_epoch: i32,
    /// The members.
    pub members: Vec<ShareMemberDescription>,
    /// The permitted operations on the group, if they were requested and the broker reports them.
    pub authorized_operations: Option<AuthorizedOperations>,
}

/// The description of a share group's member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShareMemberDescription {
    /// The member ID.
    pub member_id: String,
    /// `client.id`.
    pub client_id: String,
    /// The host that the coordinator sees.
    pub host: String,
    /// `client.rack`, if set.
    pub rack: Option<String>,
    /// The member's epoch.
    pub epoch: i32,
    /// The topics that the member subscribes to.
    pub topics: Vec<String>,
    /// The member's partitions, sorted. Several members may have the same ones.
    pub assignment: Vec<TopicPartition>,
}

/// The start of a share group in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShareOffset {
    /// The offset of the first record that is not finished; `None` if no member has fetched from the partition so far.
    pub start_offset: Option<i64>,
    /// The leader epoch of the state.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The number of records that are not finished, from brokers that report it (Kafka 4.2).
    pub lag: Option<i64>,
}

/// Describes share groups, which are distinct, with one request per coordinator.
pub fn describe_share_groups(
    groups: Vec<Arc<str>>,
    with_operations: bool,
    timeout: Duration,
    done: Completion<ItemResults<String, ShareGroupDescription>>,
) -> AdminCall {
    let included = Included { operations: with_operations, ..Included::default() };
    describe_typed(groups, included, timeout, done)
}

/// Lists where a share group starts in these partitions, or in all partitions that it has a state for.
pub fn list_share_group_offsets(
    group_id: impl Into<Arc<str>>,
    partitions: Option<Vec<TopicPartition>>,
    timeout: Duration,
    done: Completion<Result<PartitionResults<ShareOffset>, Error>>,
) -> AdminCall {
    let operation = ListOffsets { group_id: group_id.into(), partitions, results: None, done };
    AdminCall::operation(operation, timeout)
}

/// Sets where a share group without members starts in partitions. What it has acknowledged there is forgotten.
pub fn alter_share_group_offsets(
    group_id: impl Into<Arc<str>>,
    offsets: Vec<(TopicPartition, i64)>,
    timeout: Duration,
    done: Completion<Result<PartitionResults<()>, Error>>,
) -> AdminCall {
    let operation = AlterOffsets { group_id: group_id.into(), offsets, results: None, done };
    AdminCall::operation(operation, timeout)
}

/// Deletes the state of a share group without members in these topics.
pub fn delete_share_group_offsets(
    group_id: impl Into<Arc<str>>,
    topics: Vec<String>,
    timeout: Duration,
    done: Completion<Result<TopicResults, Error>>,
) -> AdminCall {
    let operation = DeleteOffsets { group_id: group_id.into(), topics, results: None, done };
    AdminCall::operation(operation, timeout)
}

fn coordinator_of(group_id: &Arc<str>) -> Route {
    Route::Coordinator(CoordinatorKey::group(Arc::clone(group_id)))
}

/// Returns the verdict on an error of the whole group.
fn refused(code: ErrorCode, message: Option<&str>) -> Result<Verdict, Error> {
    let detail = match code {
        ErrorCode::NON_EMPTY_GROUP => Some("stop the group's members first"),
        _ => message,
    };
    let error = Error::broker(code, detail);
    if is_temporary(code) { Ok(Verdict::Again(error)) } else { Err(error) }
}

fn left_out(what: &str) -> Error {
    Error::new(ErrorKind::BadResponse, format!("the response leaves the {what} out"))
}

fn no_result(error: Option<Error>) -> Error {
    error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result"))
}

/// Returns the result of a partition, or of a topic without a number.
fn result_of(
    code: ErrorCode,
    message: Option<&str>,
    topic: &str,
    partition: Option<i32>,
) -> Result<(), Error> {
    if !code.is_error() {
        return Ok(());
    }
    let error = Error::broker(code, message);
    Err(match partition {
        Some(partition) => error.with_partition(topic, partition),
        None => error.with_topic(topic),
    })
}

// ---- describe

impl TypedGroup for ShareGroupDescription {
    const API: ApiKey = ApiKey::ShareGroupDescribe;

    fn encode(group_ids: Vec<String>, included: Included) -> EncodeBody {
        let request =
            ShareGroupDescribeRequest { group_ids, include_authorized_operations: included.operations };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn decode(reader: &mut Reader<'_>, version: i16) -> Result<Vec<DescribedGroup<Self>>, DecodeError> {
        let response = ShareGroupDescribeResponse::decode(reader, version)?;
        let groups = response.groups.into_iter().map(|group| {
            let checked = check_group(group.error_code, group.error_message.as_deref());
            (group.group_id.clone(), checked.map(|()| description_of(group)))
        });
        Ok(groups.collect())
    }

    fn set_coordinator(&mut self, coordinator: BrokerDescription) {
        self.coordinator = Some(coordinator);
    }
}

fn description_of(group: response::Group) -> ShareGroupDescription {
    let member = |member: response::Member| {
        let mut assignment = Vec::new();
        for topic in member.assignment.topic_partitions {
            let name: Arc<str> = topic.topic_name.into();
            assignment.extend(
                topic.partitions.into_iter().map(|number| TopicPartition::new(Arc::clone(&name), number)),
            );
        }
        assignment.sort();
        ShareMemberDescription {
            member_id: member.member_id,
            client_id: member.client_id,
            host: member.client_host,
            rack: member.rack_id.filter(|rack| !rack.is_empty()),
            epoch: member.member_epoch,
            topics: member.subscribed_topic_names,
            assignment,
        }
    };
    ShareGroupDescription {
        group_id: group.group_id,
        state: GroupState::from_name(&group.group_state),
        assignor: group.assignor_name,
        coordinator: None,
        group_epoch: group.group_epoch,
        assignment_epoch: group.assignment_epoch,
        members: group.members.into_iter().map(member).collect(),
        authorized_operations: AuthorizedOperations::new(group.authorized_operations),
    }
}

// ---- list offsets

struct ListOffsets {
    group_id: Arc<str>,
    partitions: Option<Vec<TopicPartition>>,
    results: Option<PartitionResults<ShareOffset>>,
    done: Completion<Result<PartitionResults<ShareOffset>, Error>>,
}

impl Operation for ListOffsets {
    fn api(&self) -> ApiKey {
        ApiKey::DescribeShareGroupOffsets
    }

    fn route(&self) -> Route {
        coordinator_of(&self.group_id)
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let topics = self.partitions.as_ref().map(|partitions| {
            let by_topic = by_topic(partitions.iter().map(|key| (key, ())));
            let topic = |(topic_name, partitions): (String, Vec<(i32, ())>)| describe::Topic {
                topic_name,
                partitions: partitions.into_iter().map(|(number, ())| number).collect(),
            };
            by_topic.into_iter().map(topic).collect()
        });
        let groups = vec![describe::Group { group_id: self.group_id.to_string(), topics }];
        let request = DescribeShareGroupOffsetsRequest { groups };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response = DescribeShareGroupOffsetsResponse::decode(&mut Reader::new(body), version)
            .map_err(|e| undecodable(&e))?;
        let found = response.groups.into_iter().find(|group| *group.group_id == *self.group_id);
        let group = found.ok_or_else(|| left_out("group"))?;
        if group.error_code.is_error() {
            return refused(group.error_code, group.error_message.as_deref());
        }
        let mut found = SortedMap::new();
        let mut temporary = None;
        for topic in group.topics {
            let name: Arc<str> = topic.topic_name.into();
            for one in topic.partitions {
                let (number, message) = (one.partition_index, one.error_message.as_deref());
                let result = result_of(one.error_code, message, &name, Some(number)).map(|()| ShareOffset {
                    start_offset: Some(one.start_offset).filter(|offset| *offset >= 0),
                    leader_epoch: LeaderEpoch::from_wire(one.leader_epoch),
                    lag: Some(one.lag).filter(|lag| *lag >= 0),
                });
                if let Err(error) = &result
                    && is_temporary(one.error_code)
                {
                    temporary = Some(error.clone());
                }
                found.insert(TopicPartition::new(Arc::clone(&name), number), result);
            }
        }
        self.results = Some(match &self.partitions {
            None => found.into_iter().collect(),
            Some(partitions) => {
                let missing = || Err(left_out("partition"));
                let result = |key: &TopicPartition| (key.clone(), found.remove(key).unwrap_or_else(missing));
                let mut result = result;
                partitions.iter().map(&mut result).collect()
            }
        });
        Ok(temporary.map_or(Verdict::Done, Verdict::Again))
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        self.done.complete(self.results.ok_or_else(|| no_result(error)));
    }
}

fn by_topic<'a, T>(
    partitions: impl Iterator<Item = (&'a TopicPartition, T)>,
) -> SortedMap<String, Vec<(i32, T)>> {
    let mut topics = SortedMap::<String, Vec<(i32, T)>>::new();
    for (key, value) in partitions {
        topics.entry(key.topic.to_string()).or_default().push((key.partition, value));
    }
    topics
}

// ---- alter offsets

struct AlterOffsets {
    group_id: Arc<str>,
    offsets: Vec<(TopicPartition, i64)>,
    results: Option<PartitionResults<()>>,
    done: Completion<Result<PartitionResults<()>, Error>>,
}

impl Operation for AlterOffsets {
    fn api(&self) -> ApiKey {
        ApiKey::AlterShareGroupOffsets
    }

    fn route(&self) -> Route {
        coordinator_of(&self.group_id)
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let topic = |(topic_name, partitions): (String, Vec<(i32, i64)>)| alter::Topic {
            topic_name,
            partitions: partitions
                .into_iter()
                .map(|(partition_index, start_offset)| alter::Partition { partition_index, start_offset })
                .collect(),
        };
        let by_topic = by_topic(self.offsets.iter().map(|(key, offset)| (key, *offset)));
        let request = AlterShareGroupOffsetsRequest {
            group_id: self.group_id.to_string(),
            topics: by_topic.into_iter().map(topic).collect(),
        };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response = AlterShareGroupOffsetsResponse::decode(&mut Reader::new(body), version)
            .map_err(|e| undecodable(&e))?;
        if response.error_code.is_error() {
            return refused(response.error_code, response.error_message.as_deref());
        }
        let mut found = SortedMap::new();
        for topic in response.responses {
            for one in topic.partitions {
                let (number, message) = (one.partition_index, one.error_message.as_deref());
                let result = result_of(one.error_code, message, &topic.topic_name, Some(number));
                found.insert((topic.topic_name.clone(), number), result);
            }
        }
        let mut result = |key: &TopicPartition| {
            let found = found.remove(&(key.topic.to_string(), key.partition));
            (key.clone(), found.unwrap_or_else(|| Err(left_out("partition"))))
        };
        self.results = Some(self.offsets.iter().map(|(key, _)| result(key)).collect());
        Ok(Verdict::Done)
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        self.done.complete(self.results.ok_or_else(|| no_result(error)));
    }
}

// ---- delete offsets

struct DeleteOffsets {
    group_id: Arc<str>,
    topics: Vec<String>,
    results: Option<TopicResults>,
    done: Completion<Result<TopicResults, Error>>,
}

impl Operation for DeleteOffsets {
    fn api(&self) -> ApiKey {
        ApiKey::DeleteShareGroupOffsets
    }

    fn route(&self) -> Route {
        coordinator_of(&self.group_id)
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let topic = |name: &String| delete::Topic { topic_name: name.clone() };
        let request = DeleteShareGroupOffsetsRequest {
            group_id: self.group_id.to_string(),
            topics: self.topics.iter().map(topic).collect(),
        };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response = DeleteShareGroupOffsetsResponse::decode(&mut Reader::new(body), version)
            .map_err(|e| undecodable(&e))?;
        if response.error_code.is_error() {
            return refused(response.error_code, response.error_message.as_deref());
        }
        let result = |name: &String| {
            let found = response.responses.iter().find(|topic| topic.topic_name == *name);
            let result =
                found.map(|topic| result_of(topic.error_code, topic.error_message.as_deref(), name, None));
            (name.clone(), result.unwrap_or_else(|| Err(left_out("topic"))))
        };
        self.results = Some(self.topics.iter().map(result).collect());
        Ok(Verdict::Done)
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        self.done.complete(self.results.ok_or_else(|| no_result(error)));
    }
}
