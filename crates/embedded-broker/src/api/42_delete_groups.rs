//! DeleteGroups (42), versions 0 to 2: only groups without members.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse, response},
};

use crate::{cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn delete_groups(
        &mut self,
        request: &mut Request,
        body: DeleteGroupsRequest,
    ) -> DeleteGroupsResponse {
        let mut response =
            DeleteGroupsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for group_id in body.groups_names {
            let share_group = self.share_groups.groups.get(&group_id);
            let share_group = share_group.map(|group| group.members.is_empty());
            let error_code = match (self.check_group(request, &group_id), self.groups.get(&group_id)) {
                (Err(error), _) => error,
                (Ok(()), None) if share_group == Some(false) => ErrorCode::NON_EMPTY_GROUP,
                (Ok(()), None) if share_group == Some(true) => {
                    self.share_groups.groups.remove(&group_id);
                    ErrorCode::NONE
                }
                (Ok(()), None) => ErrorCode::GROUP_ID_NOT_FOUND,
                (Ok(()), Some(group)) if !group.is_empty() => ErrorCode::NON_EMPTY_GROUP,
                (Ok(()), Some(_)) => {
                    self.groups.remove(&group_id);
                    ErrorCode::NONE
                }
            };
            response.results.push(response::DeleteGroupsResult { group_id, error_code });
        }
        response
    }
}
