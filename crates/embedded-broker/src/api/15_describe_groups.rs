//! DescribeGroups (15), versions 0 to 6: groups of the classic protocol. Groups of the consumer protocol are not found
//! here; `consumer_group_describe` serves them.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse, response},
};

use crate::{
    acls::ResourceType,
    cluster::Cluster,
    connection::Request,
    groups::{ClassicGroup, Group, GroupKind, GroupState},
};

/// The operations that every client may perform on a group: there are no access rules.
pub(crate) const GROUP_OPERATIONS: i32 = 3400;

impl Cluster {
    pub(crate) fn describe_groups(
        &mut self,
        request: &mut Request,
        body: DescribeGroupsRequest,
    ) -> DescribeGroupsResponse {
        let mut response =
            DescribeGroupsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for name in body.groups {
            let checked = self.check_group(request, &name);
            let group = self.groups.get(&name);
            let mut described = match (checked, group) {
                (Err(error_code), _) => response::Group { error_code, ..Default::default() },
                (Ok(()), Some(Group { kind: GroupKind::Classic(group), .. })) => describe(group),
                (Ok(()), _) => not_found(request.version, &name, group.is_some()),
            };
            if body.include_authorized_operations && request.version >= 3 {
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

fn not_found(version: i16, name: &str, is_another: bool) -> response::Group {
    let mut described = response::Group { group_state: "Dead".to_owned(), ..Default::default() };
    if version >= 6 {
        let why = if is_another { "is not a classic group" } else { "not found" };
        described.error_code = ErrorCode::GROUP_ID_NOT_FOUND;
        described.error_message = Some(format!("Group {name} {why}."));
    }
    described
}

fn describe(group: &ClassicGroup) -> response::Group {
    let protocol = group.protocol.clone().unwrap_or_default();
    let stable = group.state == GroupState::Stable;
    let members = group.members.iter().map(|(id, member)| {
        let chosen = member.protocols.iter().find(|(name, _)| *name == protocol);
        response::Member {
            member_id: id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: "/127.0.0.1".to_owned(),
            member_metadata: chosen.map(|(_, metadata)| metadata.clone()).unwrap_or_default(),
            member_assignment: if stable { member.assignment.clone() } else { Vec::new() },
        }
    });
    response::Group {
        group_state: group.state.name().to_owned(),
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        members: members.collect(),
        protocol_data: if stable { protocol } else { String::new() },
        ..Default::default()
    }
}
