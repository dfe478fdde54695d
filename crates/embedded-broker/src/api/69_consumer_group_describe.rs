//! ConsumerGroupDescribe (69), versions 0 and 1: groups of the consumer protocol (KIP-848).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::consumer_group_describe::{
        ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, response,
    },
};

use super::describe_groups::GROUP_OPERATIONS;
use crate::{
    acls::ResourceType,
    cluster::Cluster,
    connection::Request,
    groups::{ConsumerGroup, ConsumerMember, Group, GroupKind, Partitions},
    topics::Topics,
};

/// The member uses the consumer protocol; 0 would be a member that uses the classic protocol in this group.
const OF_THE_CONSUMER_PROTOCOL: i8 = 1;

impl Cluster {
    pub(crate) fn consumer_group_describe(
        &mut self,
        request: &mut Request,
        body: ConsumerGroupDescribeRequest,
    ) -> ConsumerGroupDescribeResponse {
        let mut response =
            ConsumerGroupDescribeResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for name in body.group_ids {
            let mut described = match (self.check_group(request, &name), self.groups.get(&name)) {
                (Err(error_code), _) => response::Group { error_code, ..Default::default() },
                (Ok(()), Some(Group { kind: GroupKind::Consumer(group), .. })) => {
                    describe(request.version, &self.topics, group)
                }
                (Ok(()), Some(_)) => not_found(format!("Group {name} is not a consumer group.")),
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

fn describe(version: i16, topics: &Topics, group: &ConsumerGroup) -> response::Group {
    response::Group {
        group_state: group.state_name().to_owned(),
        group_epoch: group.epoch,
        assignment_epoch: group.assignment_epoch,
        assignor_name: group.assignor().name().to_owned(),
        members: group
            .members
            .iter()
            .map(|(id, member)| describe_member(version, topics, id, member))
            .collect(),
        ..Default::default()
    }
}

fn describe_member(version: i16, topics: &Topics, id: &str, member: &ConsumerMember) -> response::Member {
    response::Member {
        member_id: id.to_owned(),
        instance_id: member.instance_id.clone(),
        rack_id: member.rack_id.clone(),
        member_epoch: member.epoch,
        client_id: member.client_id.clone(),
        client_host: "/127.0.0.1".to_owned(),
        subscribed_topic_names: member.topic_names.iter().cloned().collect(),
        // Kafka writes an empty rack ID if the member has no rack.
        subscribed_topic_regex: Some(
            member.topic_regex.as_ref().map(|regex| regex.text.clone()).unwrap_or_default(),
        ),
        assignment: response::Assignment { topic_partitions: named(topics, &member.owned()) },
        target_assignment: response::TargetAssignment { topic_partitions: named(topics, &member.target) },
        member_type: if version >= 1 { OF_THE_CONSUMER_PROTOCOL } else { -1 },
    }
}

/// Returns the partitions with topic names. Topics that were deleted in the meantime have no name and are omitted.
fn named(topics: &Topics, partitions: &Partitions) -> Vec<response::TopicPartition> {
    let named = partitions.iter().filter_map(|(topic_id, partitions)| {
        let topic = topics.by_id(*topic_id).and_then(|index| topics.get(index))?;
        Some(response::TopicPartition {
            topic_id: *topic_id,
            topic_name: topic.name.clone(),
            partitions: partitions.iter().copied().collect(),
        })
    });
    named.collect()
}
