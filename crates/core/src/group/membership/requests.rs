//! The requests of a member: their contents, and their encoding for brokers of any age.

use std::{ops::RangeInclusive, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    generated::{
        consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
        describe_groups::DescribeGroupsRequest,
        heartbeat::HeartbeatRequest,
        join_group::JoinGroupRequest,
        leave_group::{LeaveGroupRequest, request::Member as LeavingMember},
        metadata::{MetadataRequest, request::Topic},
        sync_group::SyncGroupRequest,
    },
    primitive::EncodeError,
    uuid::Uuid,
};

use crate::contract::route::{EncodeBody, RoutedRequest};

/// A request of a member.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::group) enum MemberRequest {
    /// JoinGroup.
    Join(JoinGroupRequest),
    /// SyncGroup.
    Sync(SyncGroupRequest),
    /// Heartbeat.
    Heartbeat(HeartbeatRequest),
    /// LeaveGroup, of this member.
    Leave {
        /// The group.
        group_id: String,
        /// The member.
        member: LeavingMember,
    },
    /// DescribeGroups, of this group.
    Describe(String),
    /// ConsumerGroupHeartbeat.
    ConsumerHeartbeat {
        /// The request.
        request: Box<ConsumerGroupHeartbeatRequest>,
        /// True if the member joins for the first time, so that a version 0 coordinator chooses the member ID.
        is_new: bool,
    },
    /// Metadata, for the names of topics with these IDs.
    TopicNames(Vec<Uuid>),
}

impl MemberRequest {
    /// Returns the API.
    pub(in crate::group) const fn api(&self) -> ApiKey {
        match self {
            Self::Join(_) => ApiKey::JoinGroup,
            Self::Sync(_) => ApiKey::SyncGroup,
            Self::Heartbeat(_) => ApiKey::Heartbeat,
            Self::Leave { .. } => ApiKey::LeaveGroup,
            Self::Describe(_) => ApiKey::DescribeGroups,
            Self::ConsumerHeartbeat { .. } => ApiKey::ConsumerGroupHeartbeat,
            Self::TopicNames(_) => ApiKey::Metadata,
        }
    }

    /// Returns true if the broker may keep the request until other members have acted.
    pub(in crate::group) const fn may_wait(&self) -> bool {
        matches!(self, Self::Join(_) | Self::Sync(_))
    }

    /// Returns the request as the cluster actor sends it.
    pub(in crate::group) fn routed(self, timeout: Duration) -> RoutedRequest {
        let (api, versions) = (self.api(), self.versions());
        let encode: EncodeBody = Box::new(move |version, out| self.encode(version, out));
        RoutedRequest { api, versions, timeout, encode }
    }

    /// Returns the versions that can carry the request. Static members, for example, need those that have an instance ID
    /// (KIP-345).
    fn versions(&self) -> RangeInclusive<i16> {
        let (first_special, is_special) = match self {
            Self::Join(request) => (5, request.group_instance_id.is_some()),
            Self::Sync(request) => (3, request.group_instance_id.is_some()),
            Self::Heartbeat(request) => (3, request.group_instance_id.is_some()),
            Self::Leave { member, .. } => (3, member.group_instance_id.is_some()),
            Self::Describe(_) => (0, false),
            // Subscriptions to patterns came with version 1.
            Self::ConsumerHeartbeat { request, .. } => (1, request.subscribed_topic_regex.is_some()),
            // Before version 12 a topic has to be named (KIP-516).
            Self::TopicNames(_) => (12, true),
        };
        let all = self.api().versions();
        if is_special { first_special..=*all.end() } else { all }
    }

    /// Appends the request in a version, without the fields that the version lacks.
    fn encode(&self, version: i16, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Join(request) => {
                let mut request = request.clone();
                request.reason = request.reason.filter(|_| version >= 8);
                request.encode(version, out)
            }
            Self::Sync(request) => {
                let mut request = request.clone();
                request.protocol_type = request.protocol_type.filter(|_| version >= 5);
                request.protocol_name = request.protocol_name.filter(|_| version >= 5);
                request.encode(version, out)
            }
            Self::Heartbeat(request) => request.encode(version, out),
            Self::Leave { group_id, member } => {
                let mut request = LeaveGroupRequest { group_id: group_id.clone(), ..Default::default() };
                if version >= 3 {
                    let reason = member.reason.clone().filter(|_| version >= 5);
                    request.members = vec![LeavingMember { reason, ..member.clone() }];
                } else {
                    request.member_id.clone_from(&member.member_id);
                }
                request.encode(version, out)
            }
            Self::Describe(group_id) => {
                let groups = vec![group_id.clone()];
                DescribeGroupsRequest { groups, ..Default::default() }.encode(version, out)
            }
            Self::ConsumerHeartbeat { request, is_new } => {
                let mut request = request.clone();
                if version == 0 && *is_new {
                    request.member_id.clear();
                }
                request.encode(version, out)
            }
            Self::TopicNames(ids) => {
                let topics = ids.iter().map(|id| Topic { topic_id: *id, name: None });
                MetadataRequest {
                    topics: Some(topics.collect()),
                    allow_auto_topic_creation: false,
                    ..MetadataRequest::default()
                }
                .encode(version, out)
            }
        }
    }
}

/// Returns a request of each API with everything set that a dynamic or a static member sets.
#[cfg(all(test, not(ottla_loom)))]
pub(crate) fn samples(instance: Option<&str>) -> Vec<RoutedRequest> {
    use ottla_protocol::generated::join_group::request::Protocol;

    let instance = instance.map(str::to_owned);
    let requests = vec![
        MemberRequest::Join(JoinGroupRequest {
            group_id: "g".into(),
            session_timeout_ms: 45_000,
            rebalance_timeout_ms: 300_000,
            member_id: "m".into(),
            group_instance_id: instance.clone(),
            protocol_type: "consumer".into(),
            protocols: vec![Protocol { name: "range".into(), metadata: vec![0, 3] }],
            reason: Some("because".into()),
        }),
        MemberRequest::Sync(SyncGroupRequest {
            group_id: "g".into(),
            generation_id: 4,
            member_id: "m".into(),
            group_instance_id: instance.clone(),
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            assignments: Vec::new(),
        }),
        MemberRequest::Heartbeat(HeartbeatRequest {
            group_id: "g".into(),
            generation_id: 4,
            member_id: "m".into(),
            group_instance_id: instance.clone(),
        }),
        MemberRequest::Leave {
            group_id: "g".into(),
            member: LeavingMember {
                member_id: "m".into(),
                group_instance_id: instance.clone(),
                reason: Some("because".into()),
            },
        },
        MemberRequest::Describe("g".into()),
        MemberRequest::ConsumerHeartbeat {
            request: Box::new(heartbeat(instance.clone(), None)),
            is_new: true,
        },
        MemberRequest::ConsumerHeartbeat {
            request: Box::new(heartbeat(instance.clone(), Some("t.*"))),
            is_new: false,
        },
    ];
    requests.into_iter().map(|request| request.routed(Duration::from_secs(1))).collect()
}

#[cfg(all(test, not(ottla_loom)))]
fn heartbeat(instance_id: Option<String>, pattern: Option<&str>) -> ConsumerGroupHeartbeatRequest {
    use ottla_protocol::generated::consumer_group_heartbeat::request::TopicPartition;

    ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: "m".into(),
        member_epoch: 3,
        instance_id,
        rack_id: Some("r".into()),
        rebalance_timeout_ms: 300_000,
        subscribed_topic_names: Some(vec!["t".into()]),
        subscribed_topic_regex: pattern.map(str::to_owned),
        server_assignor: Some("uniform".into()),
        topic_partitions: Some(vec![TopicPartition { topic_id: Uuid([1; 16]), partitions: vec![0] }]),
    }
}
