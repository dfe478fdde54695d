//! ShareGroupDescribe (77), version 1.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::share_group_describe::{ShareGroupDescribeRequest, ShareGroupDescribeResponse, response},
};

use crate::{
    acls::ResourceType,
    cluster::Cluster,
    connection::Request,
    share_groups::{ShareGroup, ShareMember},
};

/// The operations that exist for groups, as bits.
const GROUP_OPERATIONS: i32 = 3400;

impl Cluster {
    pub(crate) fn share_group_describe(
        &mut self,
        request: &mut Request,
        body: ShareGroupDescribeRequest,
    ) -> ShareGroupDescribeResponse {
        let mut response =
            ShareGroupDescribeResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for group_id in body.group_ids {
            let checked = self.check_group(request, &group_id);
            let mut described = match (checked, self.share_groups.groups.get(&group_id)) {
                (Err(error_code), _) => response::Group { error_code, ..Default::default() },
                (Ok(()), Some(group)) => self.describe_share_group(group),
                (Ok(()), None) => {
                    let reason =
                        if self.is_other_group(&group_id) { "is not a share group" } else { "not found" };
                    response::Group {
                        error_code: ErrorCode::GROUP_ID_NOT_FOUND,
                        error_message: Some(format!("Group {group_id} {reason}.")),
                        group_state: "Dead".to_owned(),
                        ..Default::default()
                    }
                }
            };
            if body.include_authorized_operations && described.error_code == ErrorCode::NONE {
                described.authorized_operations = self.permitted_operations(
                    request.connection,
                    GROUP_OPERATIONS,
                    ResourceType::Group,
                    &group_id,
                );
            }
            response.groups.push(response::Group { group_id, ..described });
        }
        response
    }

    fn describe_share_group(&self, group: &ShareGroup) -> response::Group {
        let members = group.members.iter().map(|(id, member)| response::Member {
            member_id: id.clone(),
            rack_id: member.rack_id.clone(),
            member_epoch: member.epoch,
            client_id: member.client_id.clone(),
            client_host: "/127.0.0.1".to_owned(),
            subscribed_topic_names: member.topics.iter().cloned().collect(),
            assignment: self.describe_share_assignment(member),
        });
        response::Group {
            group_state: group.state().to_owned(),
            group_epoch: group.epoch,
            assignment_epoch: group.assignment_epoch,
            assignor_name: "simple".to_owned(),
            members: members.collect(),
            ..Default::default()
        }
    }

    fn describe_share_assignment(&self, member: &ShareMember) -> response::Assignment {
        let topics = member.assignment.iter().filter_map(|(index, partitions)| {
            let topic = self.topics.get(*index)?;
            Some(response::TopicPartition {
                topic_id: topic.id,
                topic_name: topic.name.clone(),
                partitions: partitions.iter().copied().collect(),
            })
        });
        response::Assignment { topic_partitions: topics.collect() }
    }
}
