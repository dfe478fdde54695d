//! Describes a group: its state, its members and their partitions.
//!
//! The coordinator describes groups of the consumer protocol and groups of the classic protocol with different APIs, and the
//! client does not know a group's type. It tries the consumer protocol first.
//!
//! # Pitfalls
//!
//! - The bytes of a classic member's assignment come from another member and may be anything. If they can't be decoded, the
//!   member has no partitions, and the other members are described (`assignment_that_cannot_be_read_is_left_out`).

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    consumer_protocol::{ConsumerProtocolAssignment, ConsumerProtocolSubscription},
    error_code::ErrorCode,
    generated::{
        consumer_group_describe::{
            ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, response as consumer,
        },
        describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse, response as classic},
    },
    primitive::Reader,
    vocabulary::TopicPartition,
};

use super::{GroupState, GroupType, is_temporary};
use crate::{
    admin::{
        AdminCall, Operation, Verdict,
        describe::{AuthorizedOperations, BrokerDescription},
        undecodable,
    },
    completion::Completion,
    contract::route::{Coordinator, CoordinatorKey, EncodeBody, Route},
    error::{Error, ErrorKind},
};

/// The description of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupDescription {
    /// The group ID.
    pub group_id: String,
    /// The protocol of the members: `Consumer` or `Classic`.
    pub group_type: GroupType,
    /// The state; `Dead` if the group does not exist.
    pub state: GroupState,
    /// The kind of application: `consumer` for consumers; empty if the group only has committed offsets.
    pub protocol_type: String,
    /// The assignor; empty while the group has none.
    pub assignor: String,
    /// The coordinator.
    pub coordinator: Option<BrokerDescription>,
    /// Consumer protocol: the epoch of the group.
    pub group_epoch: Option<i32>,
    /// Consumer protocol: the epoch of the target assignment.
    pub target_epoch: Option<i32>,
    /// The members.
    pub members: Vec<MemberDescription>,
    /// The permitted operations on the group, if they were requested and the broker reports them.
    pub authorized_operations: Option<AuthorizedOperations>,
}

/// The description of a group's member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberDescription {
    /// The member ID.
    pub member_id: String,
    /// `group.instance.id`, if the member is static.
    pub instance_id: Option<String>,
    /// `client.id`.
    pub client_id: String,
    /// The host that the coordinator sees, such as `/10.0.0.1`.
    pub host: String,
    /// `client.rack`, if set and reported.
    pub rack: Option<String>,
    /// Consumer protocol: the member's epoch.
    pub epoch: Option<i32>,
    /// Consumer protocol: true if the member itself uses the classic protocol, if reported.
    pub uses_classic: Option<bool>,
    /// The topics that the member subscribes to, as far as they are known.
    pub topics: Vec<String>,
    /// Consumer protocol: the regular expression of the subscription.
    pub topic_regex: Option<String>,
    /// The member's partitions, sorted.
    pub assignment: Vec<TopicPartition>,
    /// Consumer protocol: the partitions that the member will have, sorted.
    pub target_assignment: Option<Vec<TopicPartition>>,
    /// Classic protocol: the subscription as the member sent it.
    pub subscription_bytes: Vec<u8>,
    /// Classic protocol: the assignment as the leader sent it.
    pub assignment_bytes: Vec<u8>,
}

/// Describes a group.
pub fn describe_group(
    group_id: impl Into<Arc<str>>,
    with_operations: bool,
    timeout: Duration,
    done: Completion<Result<GroupDescription, Error>>,
) -> AdminCall {
    let operation = DescribeGroup::new(group_id.into(), with_operations, done);
    AdminCall::operation(operation, timeout)
}

/// Like [`describe_group`], and describes a group that does not exist as `Dead`, as brokers before Kafka 4.0 do.
pub fn describe_group_or_dead(
    group_id: impl Into<Arc<str>>,
    with_operations: bool,
    timeout: Duration,
    done: Completion<Result<GroupDescription, Error>>,
) -> AdminCall {
    let operation = DescribeGroup::new(group_id.into(), with_operations, done);
    AdminCall::operation(DescribeGroup { missing_is_dead: true, ..operation }, timeout)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Consumer,
    Classic,
}

/// The first version of DescribeGroups that reports the permitted operations.
pub(super) const FIRST_WITH_OPERATIONS: i16 = 3;

pub(super) struct DescribeGroup {
    group_id: Arc<str>,
    with_operations: bool,
    missing_is_dead: bool,
    /// The protocol that is tried.
    protocol: Protocol,
    coordinator: Option<BrokerDescription>,
    description: Option<GroupDescription>,
    done: Completion<Result<GroupDescription, Error>>,
}

impl DescribeGroup {
    pub(super) const fn new(
        group_id: Arc<str>,
        with_operations: bool,
        done: Completion<Result<GroupDescription, Error>>,
    ) -> Self {
        Self {
            group_id,
            with_operations,
            missing_is_dead: false,
            protocol: Protocol::Consumer,
            coordinator: None,
            description: None,
            done,
        }
    }

    /// Returns the description, once the coordinator has responded.
    pub(super) const fn description(&self) -> Option<&GroupDescription> {
        self.description.as_ref()
    }

    fn handle_consumer(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response = ConsumerGroupDescribeResponse::decode(&mut Reader::new(body), version)
            .map_err(|e| undecodable(&e))?;
        let Some(group) = response.groups.into_iter().find(|group| *group.group_id == *self.group_id) else {
            return Err(left_out());
        };
        match group.error_code {
            ErrorCode::NONE => self.description = Some(of_consumer_protocol(group)),
            // The group has another type, or does not exist.
            ErrorCode::GROUP_ID_NOT_FOUND | ErrorCode::UNSUPPORTED_VERSION => {
                self.protocol = Protocol::Classic;
                return Ok(Verdict::Next);
            }
            code => return refused(code, group.error_message.as_deref()),
        }
        Ok(Verdict::Done)
    }

    fn handle_classic(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response =
            DescribeGroupsResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        let Some(group) = response.groups.into_iter().find(|group| *group.group_id == *self.group_id) else {
            return Err(left_out());
        };
        match group.error_code {
            ErrorCode::NONE => self.description = Some(of_classic_protocol(group)),
            ErrorCode::GROUP_ID_NOT_FOUND if self.missing_is_dead => {
                let group = classic::Group { group_state: GroupState::Dead.name().to_owned(), ..group };
                self.description = Some(of_classic_protocol(group));
            }
            code => return refused(code, group.error_message.as_deref()),
        }
        Ok(Verdict::Done)
    }
}

impl Operation for DescribeGroup {
    fn api(&self) -> ApiKey {
        match self.protocol {
            Protocol::Consumer => ApiKey::ConsumerGroupDescribe,
            Protocol::Classic => ApiKey::DescribeGroups,
        }
    }

    fn versions(&self) -> RangeInclusive<i16> {
        self.api().versions()
    }

    fn route(&self) -> Route {
        Route::Coordinator(CoordinatorKey::group(Arc::clone(&self.group_id)))
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let (group, with_operations) = (self.group_id.to_string(), self.with_operations);
        match self.protocol {
            Protocol::Consumer => Box::new(move |version, out| {
                let request = ConsumerGroupDescribeRequest {
                    group_ids: vec![group.clone()],
                    include_authorized_operations: with_operations,
                };
                request.encode(version, out)
            }),
            Protocol::Classic => Box::new(move |version, out| {
                let request = DescribeGroupsRequest {
                    groups: vec![group.clone()],
                    include_authorized_operations: with_operations && version >= FIRST_WITH_OPERATIONS,
                };
                request.encode(version, out)
            }),
        }
    }

    fn handle_coordinator(&mut self, coordinator: &Coordinator) {
        self.coordinator = Some(BrokerDescription {
            id: coordinator.node.get(),
            host: coordinator.host.clone(),
            port: i32::from(coordinator.port),
            rack: None,
            is_fenced: false,
        });
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        match self.protocol {
            Protocol::Consumer => self.handle_consumer(body, version),
            Protocol::Classic => self.handle_classic(body, version),
        }
    }

    /// Tries the classic protocol with a broker that does not know the other one.
    fn handle_failure(&mut self, error: Error) -> Result<Verdict, Error> {
        if error.kind() == ErrorKind::UnsupportedVersion && self.protocol == Protocol::Consumer {
            self.protocol = Protocol::Classic;
            return Ok(Verdict::Next);
        }
        Err(error)
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let missing = || error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result"));
        let coordinator = self.coordinator;
        let description = self.description.map(|found| GroupDescription { coordinator, ..found });
        self.done.complete(description.ok_or_else(missing));
    }
}

fn left_out() -> Error {
    Error::new(ErrorKind::BadResponse, "the response leaves the group out")
}

fn refused(code: ErrorCode, message: Option<&str>) -> Result<Verdict, Error> {
    let error = Error::broker(code, message);
    if is_temporary(code) { Ok(Verdict::Again(error)) } else { Err(error) }
}

pub(super) fn of_consumer_protocol(group: consumer::Group) -> GroupDescription {
    GroupDescription {
        group_id: group.group_id,
        group_type: GroupType::Consumer,
        state: GroupState::from_name(&group.group_state),
        protocol_type: "consumer".to_owned(),
        assignor: group.assignor_name,
        coordinator: None,
        group_epoch: Some(group.group_epoch),
        target_epoch: Some(group.assignment_epoch),
        members: group.members.into_iter().map(consumer_member).collect(),
        authorized_operations: AuthorizedOperations::new(group.authorized_operations),
    }
}

fn consumer_member(member: consumer::Member) -> MemberDescription {
    let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
    MemberDescription {
        member_id: member.member_id,
        instance_id: member.instance_id,
        client_id: member.client_id,
        host: member.client_host,
        rack: non_empty(member.rack_id),
        epoch: Some(member.member_epoch),
        uses_classic: (member.member_type >= 0).then_some(member.member_type == 0),
        topics: member.subscribed_topic_names,
        topic_regex: non_empty(member.subscribed_topic_regex),
        assignment: partitions(member.assignment.topic_partitions),
        target_assignment: Some(partitions(member.target_assignment.topic_partitions)),
        subscription_bytes: Vec::new(),
        assignment_bytes: Vec::new(),
    }
}

fn partitions(topics: Vec<consumer::TopicPartition>) -> Vec<TopicPartition> {
    flattened(topics.into_iter().map(|topic| (topic.topic_name, topic.partitions)))
}

/// Returns the partitions, sorted.
fn flattened(topics: impl Iterator<Item = (String, Vec<i32>)>) -> Vec<TopicPartition> {
    let mut all: Vec<_> = topics
        .flat_map(|(topic, partitions)| {
            let topic: Arc<str> = topic.into();
            partitions.into_iter().map(move |number| TopicPartition::new(Arc::clone(&topic), number))
        })
        .collect();
    all.sort_unstable();
    all
}

pub(super) fn of_classic_protocol(group: classic::Group) -> GroupDescription {
    let is_of_consumers = group.protocol_type == "consumer";
    let member = |member| classic_member(member, is_of_consumers);
    GroupDescription {
        group_id: group.group_id,
        group_type: GroupType::Classic,
        state: GroupState::from_name(&group.group_state),
        assignor: group.protocol_data,
        coordinator: None,
        group_epoch: None,
        target_epoch: None,
        members: group.members.into_iter().map(member).collect(),
        authorized_operations: AuthorizedOperations::new(group.authorized_operations),
        protocol_type: group.protocol_type,
    }
}

fn classic_member(member: classic::Member, is_of_consumers: bool) -> MemberDescription {
    let mut described = MemberDescription {
        member_id: member.member_id,
        instance_id: member.group_instance_id,
        client_id: member.client_id,
        host: member.client_host,
        subscription_bytes: member.member_metadata,
        assignment_bytes: member.member_assignment,
        ..MemberDescription::default()
    };
    if !is_of_consumers {
        return described;
    }
    if let Ok((_, subscription)) = ConsumerProtocolSubscription::from_bytes(&described.subscription_bytes) {
        described.topics = subscription.topics;
        described.rack = subscription.rack_id.filter(|rack| !rack.is_empty());
    }
    if let Ok((_, assignment)) = ConsumerProtocolAssignment::from_bytes(&described.assignment_bytes) {
        let topics = assignment.assigned_partitions.into_iter();
        described.assignment = flattened(topics.map(|assigned| (assigned.topic, assigned.partitions)));
    }
    described
}
