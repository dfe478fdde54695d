//! Describes streams groups (KIP-1071): the applications of Kafka Streams whose tasks the coordinator assigns.
//!
//! A streams group has committed offsets as a consumer group has: [`offsets`](super::offsets) lists and changes them, and
//! [`delete`](super::delete) deletes the group.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    generated::streams_group_describe::{
        StreamsGroupDescribeRequest, StreamsGroupDescribeResponse, response,
    },
    primitive::{DecodeError, Reader},
};

use super::{
    GroupState,
    describe_typed::{DescribedGroup, Included, TypedGroup, check_group, describe_typed},
    topology_description::StoredDescription,
};
use crate::{
    admin::{
        AdminCall,
        describe::{AuthorizedOperations, BrokerDescription},
        item_results::ItemResults,
    },
    completion::Completion,
    contract::route::EncodeBody,
};

/// The description of a streams group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamsGroupDescription {
    /// The group ID, which is the application's `application.id`.
    pub group_id: String,
    /// The state.
    pub state: GroupState,
    /// The coordinator.
    pub coordinator: Option<BrokerDescription>,
    /// The epoch of the group.
    pub group_epoch: i32,
    /// The epoch of the target assignment.
    pub target_epoch: i32,
    /// The topology, once a member has sent it.
    pub topology: Option<StreamsTopology>,
    /// The description of the topology's nodes, if it was requested (Kafka 4.4).
    pub topology_description: StoredDescription,
    /// The members.
    pub members: Vec<StreamsMemberDescription>,
    /// The name of the assignor that assigns the tasks, if the coordinator reports it (Kafka 4.4).
    pub assignor: Option<String>,
    /// The permitted operations on the group, if they were requested and the broker reports them.
    pub authorized_operations: Option<AuthorizedOperations>,
}

/// The topology of a streams group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamsTopology {
    /// The epoch of the topology.
    pub epoch: i32,
    /// The parts whose tasks are assigned independently.
    pub subtopologies: Vec<StreamsSubtopology>,
}

/// A part of a topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamsSubtopology {
    /// The ID.
    pub id: String,
    /// The topics that it reads.
    pub source_topics: Vec<String>,
    /// The repartition topics that it writes to.
    pub repartition_sink_topics: Vec<String>,
    /// The repartition topics that it reads.
    pub repartition_source_topics: Vec<StreamsInternalTopic>,
    /// The changelogs of its state.
    pub state_changelog_topics: Vec<StreamsInternalTopic>,
}

/// A topic that a streams group creates for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamsInternalTopic {
    /// The name.
    pub name: String,
    /// The number of partitions, unless it follows from that of other topics.
    pub partitions: Option<i32>,
    /// The replication factor, unless it is the brokers' default.
    pub replication_factor: Option<i16>,
    /// The topic's configuration.
    pub configs: BTreeMap<String, String>,
}

/// The description of a streams group's member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamsMemberDescription {
    /// The member ID.
    pub member_id: String,
    /// `group.instance.id`, if the member is static.
    pub instance_id: Option<String>,
    /// `client.id`.
    pub client_id: String,
    /// The host that the coordinator sees.
    pub host: String,
    /// `client.rack`, if set.
    pub rack: Option<String>,
    /// The member's epoch.
    pub epoch: i32,
    /// The epoch of the topology that the member runs.
    pub topology_epoch: i32,
    /// The process, whose members share its state on disk.
    pub process_id: String,
    /// Host and port of the application's interactive queries, if set.
    pub user_endpoint: Option<(String, u16)>,
    /// The tags by which standby tasks are spread over racks and zones.
    pub client_tags: BTreeMap<String, String>,
    /// How far the member has restored its tasks.
    pub task_offsets: BTreeMap<StreamsTask, i64>,
    /// The ends of the changelogs of these tasks.
    pub task_end_offsets: BTreeMap<StreamsTask, i64>,
    /// The member's tasks.
    pub assignment: StreamsTasks,
    /// The tasks that the member will have.
    pub target_assignment: StreamsTasks,
    /// True if the member uses the classic protocol.
    pub is_classic: bool,
}

/// A task: a subtopology's work on the partitions of one number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamsTask {
    /// The ID of the subtopology.
    pub subtopology_id: String,
    /// The number of the partitions.
    pub partition: i32,
}

/// The tasks of a member, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamsTasks {
    /// The tasks that process records.
    pub active: Vec<StreamsTask>,
    /// The tasks that keep a copy of the state of another member's task.
    pub standby: Vec<StreamsTask>,
    /// The tasks that restore their state, to become active later.
    pub warmup: Vec<StreamsTask>,
}

/// Describes streams groups, which are distinct, with one request per coordinator.
pub fn describe_streams_groups(
    groups: Vec<Arc<str>>,
    included: Included,
    timeout: Duration,
    done: Completion<ItemResults<String, StreamsGroupDescription>>,
) -> AdminCall {
    describe_typed(groups, included, timeout, done)
}

impl TypedGroup for StreamsGroupDescription {
    const API: ApiKey = ApiKey::StreamsGroupDescribe;

    fn encode(group_ids: Vec<String>, included: Included) -> EncodeBody {
        let request = StreamsGroupDescribeRequest {
            group_ids,
            include_authorized_operations: included.operations,
            ..StreamsGroupDescribeRequest::default()
        };
        Box::new(move |version, out| {
            let include_topology_description = included.topology_description && version >= 1;
            let request = StreamsGroupDescribeRequest { include_topology_description, ..request.clone() };
            request.encode(version, out)
        })
    }

    fn decode(reader: &mut Reader<'_>, version: i16) -> Result<Vec<DescribedGroup<Self>>, DecodeError> {
        let response = StreamsGroupDescribeResponse::decode(reader, version)?;
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

fn description_of(group: response::Group) -> StreamsGroupDescription {
    StreamsGroupDescription {
        group_id: group.group_id,
        state: GroupState::from_name(&group.group_state),
        coordinator: None,
        group_epoch: group.group_epoch,
        target_epoch: group.assignment_epoch,
        topology: group.topology.map(topology_of),
        topology_description: StoredDescription::of_response(
            group.topology_description_status,
            group.topology_description,
        ),
        members: group.members.into_iter().map(member_of).collect(),
        assignor: group.assignor_name,
        authorized_operations: AuthorizedOperations::new(group.authorized_operations),
    }
}

fn topology_of(topology: response::Topology) -> StreamsTopology {
    let subtopology = |part: response::TopologySubtopology| StreamsSubtopology {
        id: part.subtopology_id,
        source_topics: part.source_topics,
        repartition_sink_topics: part.repartition_sink_topics,
        repartition_source_topics: part
            .repartition_source_topics
            .into_iter()
            .map(|topic| {
                internal_topic(topic.name, topic.partitions, topic.replication_factor, topic.topic_configs)
            })
            .collect(),
        state_changelog_topics: part
            .state_changelog_topics
            .into_iter()
            .map(|topic| {
                internal_topic(topic.name, topic.partitions, topic.replication_factor, topic.topic_configs)
            })
            .collect(),
    };
    let subtopologies = topology.subtopologies.unwrap_or_default();
    StreamsTopology {
        epoch: topology.epoch,
        subtopologies: subtopologies.into_iter().map(subtopology).collect(),
    }
}

fn internal_topic(
    name: String,
    partitions: i32,
    replication_factor: i16,
    configs: Vec<response::TopicConfig>,
) -> StreamsInternalTopic {
    StreamsInternalTopic {
        name,
        partitions: (partitions > 0).then_some(partitions),
        replication_factor: (replication_factor > 0).then_some(replication_factor),
        configs: configs.into_iter().map(|config| (config.key, config.value)).collect(),
    }
}

fn member_of(member: response::Member) -> StreamsMemberDescription {
    let (now, target) = (member.assignment, member.target_assignment);
    let offset = |(subtopology_id, partition, offset)| (StreamsTask { subtopology_id, partition }, offset);
    let offsets = member.task_offsets.into_iter();
    let ends = member.task_end_offsets.into_iter();
    StreamsMemberDescription {
        member_id: member.member_id,
        instance_id: member.instance_id,
        client_id: member.client_id,
        host: member.client_host,
        rack: member.rack_id.filter(|rack| !rack.is_empty()),
        epoch: member.member_epoch,
        topology_epoch: member.topology_epoch,
        process_id: member.process_id,
        user_endpoint: member.user_endpoint.map(|endpoint| (endpoint.host, endpoint.port)),
        client_tags: member.client_tags.into_iter().map(|tag| (tag.key, tag.value)).collect(),
        task_offsets: offsets.map(|one| offset((one.subtopology_id, one.partition, one.offset))).collect(),
        task_end_offsets: ends.map(|one| offset((one.subtopology_id, one.partition, one.offset))).collect(),
        assignment: StreamsTasks {
            active: tasks(now.active_tasks.into_iter().map(|t| (t.subtopology_id, t.partitions))),
            standby: tasks(now.standby_tasks.into_iter().map(|t| (t.subtopology_id, t.partitions))),
            warmup: tasks(now.warmup_tasks.into_iter().map(|t| (t.subtopology_id, t.partitions))),
        },
        target_assignment: StreamsTasks {
            active: tasks(target.active_tasks.into_iter().map(|t| (t.subtopology_id, t.partitions))),
            standby: tasks(target.standby_tasks.into_iter().map(|t| (t.subtopology_id, t.partitions))),
            warmup: tasks(target.warmup_tasks.into_iter().map(|t| (t.subtopology_id, t.partitions))),
        },
        is_classic: member.is_classic,
    }
}

fn tasks(of_subtopologies: impl Iterator<Item = (String, Vec<i32>)>) -> Vec<StreamsTask> {
    let mut tasks: Vec<StreamsTask> = of_subtopologies
        .flat_map(|(id, partitions)| {
            partitions.into_iter().map(move |partition| StreamsTask { subtopology_id: id.clone(), partition })
        })
        .collect();
    tasks.sort_unstable();
    tasks
}
