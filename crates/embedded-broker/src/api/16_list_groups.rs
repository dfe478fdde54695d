//! ListGroups (16), versions 0 to 5: the groups that the broker coordinates. Requests can filter by state from version
//! 4 on and by type from version 5 on.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::list_groups::{ListGroupsRequest, ListGroupsResponse, response},
};

use crate::{acls::AclOperation, cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn list_groups(
        &mut self,
        request: &mut Request,
        body: ListGroupsRequest,
    ) -> ListGroupsResponse {
        let mut response = ListGroupsResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code: request.injected_error(),
            ..Default::default()
        };
        if response.error_code != ErrorCode::NONE {
            return response;
        }
        let sees_all = self.permits_on_cluster(request.connection, AclOperation::Describe);
        let in_filter = |filter: &[String], is: &str| {
            filter.is_empty() || filter.iter().any(|f| f.eq_ignore_ascii_case(is))
        };
        let groups =
            self.groups.iter().map(|(name, g)| (name, g.state_name(), g.type_name(), g.protocol_type()));
        let share = self.share_groups.groups.iter().map(|(name, g)| (name, g.state(), "share", "share"));
        for (name, state, group_type, protocol_type) in groups.chain(share) {
            if self.coordinator_of(0, name) != Some(request.broker)
                || !in_filter(&body.states_filter, state)
                || !in_filter(&body.types_filter, group_type)
                || !sees_all && self.check_group_access(request, name).is_err()
            {
                continue;
            }
            let mut listed = response::Group {
                group_id: name.clone(),
                protocol_type: protocol_type.to_owned(),
                ..Default::default()
            };
            if request.version >= 4 {
                listed.group_state = state.to_owned();
            }
            if request.version >= 5 {
                listed.group_type = group_type.to_owned();
            }
            response.groups.push(listed);
        }
        response
    }
}
