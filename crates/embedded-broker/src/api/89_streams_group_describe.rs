//! StreamsGroupDescribe (89), versions 0 and 1: streams groups (KIP-1071), with the stored description of their topology
//! (KIP-1331) on request.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        streams_group_describe::{StreamsGroupDescribeRequest, StreamsGroupDescribeResponse, response},
        streams_group_heartbeat::request,
        streams_group_topology_description_update::request as update,
    },
};
use ottla_sorted::{SortedMap, SortedSet};

use super::describe_groups::GROUP_OPERATIONS;
use crate::{
    acls::ResourceType,
    cluster::Cluster,
    connection::Request,
    groups::{Group, GroupKind, StreamsGroup, StreamsMember, Task, Tasks, by_subtopology},
};

/// Copies a node of a description to the struct of the response with the same fields.
macro_rules! copy_node {
    ($node:expr, $struct:path) => {{
        let node = &$node;
        $struct {
            name: node.name.clone(),
            node_type: node.node_type,
            source_topics: node.source_topics.clone(),
            sink_topic: node.sink_topic.clone(),
            stores: node.stores.clone(),
            successors: node.successors.clone(),
        }
    }};
}

impl Cluster {
    pub(crate) fn streams_group_describe(
        &mut self,
        request: &mut Request,
        body: StreamsGroupDescribeRequest,
    ) -> StreamsGroupDescribeResponse {
        let mut response =
            StreamsGroupDescribeResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for name in body.group_ids {
            let mut described = match (self.check_group(request, &name), self.groups.get(&name)) {
                (Err(error_code), _) => response::Group { error_code, ..Default::default() },
                (Ok(()), Some(Group { kind: GroupKind::Streams(group), .. })) => {
                    let mut described = describe(request.version, group);
                    if body.include_topology_description {
                        add_description(&mut described, group);
                    }
                    described
                }
                (Ok(()), Some(_)) => not_found(format!("Group {name} is not a streams group.")),
                (Ok(()), None) => not_found(format!("Group {name} not found.")),
            };
            if body.include_authorized_operations {
                described.authorized_operations = self.permitted_operations(
                    request.connection,
                    GROUP_OPERATIONS,
                    ResourceType::Group,
                    &name,
                );
            }
            response.groups.push(response::Group { group_id: name, ..described });
        }
        response
    }
}

fn not_found(message: String) -> response::Group {
    response::Group {
        error_code: ErrorCode::GROUP_ID_NOT_FOUND,
        error_message: Some(message),
        ..Default::default()
    }
}

fn describe(version: i16, group: &StreamsGroup) -> response::Group {
    response::Group {
        group_state: group.state_name().to_owned(),
        group_epoch: group.epoch,
        assignment_epoch: group.assignment_epoch,
        topology: group.topology.as_ref().map(describe_topology),
        members: group.members.iter().map(|(id, member)| describe_member(id, member)).collect(),
        assignor_name: (version >= 1).then(|| "sticky".to_owned()),
        ..Default::default()
    }
}

/// Adds the stored description of the topology.
fn add_description(described: &mut response::Group, group: &StreamsGroup) {
    const NOT_STORED: i8 = 1;
    const AVAILABLE: i8 = 3;
    let epoch = group.topology.as_ref().map(|topology| topology.epoch);
    let stored = epoch.and_then(|epoch| group.descriptions.of_epoch(epoch));
    described.topology_description_status = if stored.is_some() { AVAILABLE } else { NOT_STORED };
    described.topology_description = stored.map(|stored| response::TopologyDescription {
        subtopologies: stored.subtopologies.iter().map(described_part).collect(),
        global_stores: stored.global_stores.iter().map(described_store).collect(),
    });
}

fn described_part(part: &update::Subtopology) -> response::TopologyDescriptionSubtopology {
    let node = |node: &update::Node| copy_node!(node, response::Node);
    response::TopologyDescriptionSubtopology {
        subtopology_id: part.subtopology_id.clone(),
        nodes: part.nodes.iter().map(node).collect(),
    }
}

fn described_store(store: &update::GlobalStore) -> response::GlobalStore {
    response::GlobalStore {
        source: copy_node!(store.source, response::Source),
        processor: copy_node!(store.processor, response::Processor),
    }
}

fn describe_topology(topology: &request::Topology) -> response::Topology {
    let subtopologies = topology.subtopologies.iter().map(|part| response::TopologySubtopology {
        subtopology_id: part.subtopology_id.clone(),
        source_topics: part.source_topics.clone(),
        repartition_sink_topics: part.repartition_sink_topics.clone(),
        state_changelog_topics: part
            .state_changelog_topics
            .iter()
            .map(|topic| response::StateChangelogTopic {
                name: topic.name.clone(),
                partitions: topic.partitions,
                replication_factor: topic.replication_factor,
                topic_configs: configs(&topic.topic_configs),
            })
            .collect(),
        repartition_source_topics: part
            .repartition_source_topics
            .iter()
            .map(|topic| response::RepartitionSourceTopic {
                name: topic.name.clone(),
                partitions: topic.partitions,
                replication_factor: topic.replication_factor,
                topic_configs: configs(&topic.topic_configs),
            })
            .collect(),
    });
    response::Topology { epoch: topology.epoch, subtopologies: Some(subtopologies.collect()) }
}

fn configs(configs: &[request::TopicConfig]) -> Vec<response::TopicConfig> {
    let pair =
        |it: &request::TopicConfig| response::TopicConfig { key: it.key.clone(), value: it.value.clone() };
    configs.iter().map(pair).collect()
}

fn describe_member(id: &str, member: &StreamsMember) -> response::Member {
    let offsets = |offsets: &SortedMap<Task, i64>| {
        let offset = |((subtopology_id, partition), offset): (&Task, &i64)| response::TaskOffset {
            subtopology_id: subtopology_id.clone(),
            partition: *partition,
            offset: *offset,
        };
        offsets.iter().map(offset).collect::<Vec<_>>()
    };
    let ends = offsets(&member.end_offsets).into_iter().map(|it| response::TaskEndOffset {
        subtopology_id: it.subtopology_id,
        partition: it.partition,
        offset: it.offset,
    });
    let tags = member.client_tags.iter();
    response::Member {
        member_id: id.to_owned(),
        member_epoch: member.epoch,
        instance_id: member.instance_id.clone(),
        rack_id: member.rack_id.clone(),
        client_id: member.client_id.clone(),
        client_host: "/127.0.0.1".to_owned(),
        topology_epoch: member.topology_epoch,
        process_id: member.process_id.clone(),
        user_endpoint: member.endpoint.clone().map(|(host, port)| response::UserEndpoint { host, port }),
        client_tags: tags
            .map(|(key, value)| response::ClientTag { key: key.clone(), value: value.clone() })
            .collect(),
        task_offsets: offsets(&member.offsets),
        task_end_offsets: ends.collect(),
        assignment: assignment(&member.assigned),
        target_assignment: target(&member.target),
        is_classic: false,
    }
}

/// The tasks of a description, by role.
type Described = (Vec<response::ActiveTask>, Vec<response::StandbyTask>, Vec<response::WarmupTask>);

fn by_role(tasks: &Tasks) -> Described {
    let by = |tasks: &SortedSet<Task>| by_subtopology(tasks).collect::<Vec<_>>().into_iter();
    let active = by(&tasks.active);
    let standby = by(&tasks.standby);
    let warmup = by(&tasks.warmup);
    (
        active
            .map(|(subtopology_id, partitions)| response::ActiveTask { subtopology_id, partitions })
            .collect(),
        standby
            .map(|(subtopology_id, partitions)| response::StandbyTask { subtopology_id, partitions })
            .collect(),
        warmup
            .map(|(subtopology_id, partitions)| response::WarmupTask { subtopology_id, partitions })
            .collect(),
    )
}

fn assignment(tasks: &Tasks) -> response::Assignment {
    let (active_tasks, standby_tasks, warmup_tasks) = by_role(tasks);
    response::Assignment { active_tasks, standby_tasks, warmup_tasks }
}

fn target(tasks: &Tasks) -> response::TargetAssignment {
    let (active_tasks, standby_tasks, warmup_tasks) = by_role(tasks);
    response::TargetAssignment { active_tasks, standby_tasks, warmup_tasks }
}
