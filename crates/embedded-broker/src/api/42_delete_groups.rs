//! DeleteGroups (42), versions 0 to 3: only groups without members.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse, response},
};

use crate::{
    cluster::Cluster,
    connection::Request,
    provisioning::{Refusal, code_and_message},
};

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
            let result = match (self.check_group(request, &group_id), self.groups.get(&group_id)) {
                (Err(error), _) => Err((error, error.description().to_owned())),
                (Ok(()), None) if share_group == Some(false) => not_empty(&group_id),
                (Ok(()), None) if share_group == Some(true) => {
                    self.share_groups.groups.remove(&group_id);
                    Ok(())
                }
                (Ok(()), None) => {
                    Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {group_id} not found.")))
                }
                (Ok(()), Some(group)) if !group.is_empty() => not_empty(&group_id),
                (Ok(()), Some(_)) => {
                    self.remove_group(&group_id);
                    Ok(())
                }
            };
            let (error_code, error_message) = code_and_message(result);
            response.results.push(response::DeleteGroupsResult { group_id, error_code, error_message });
        }
        response
    }
}

fn not_empty(group_id: &str) -> Result<(), Refusal> {
    Err((ErrorCode::NON_EMPTY_GROUP, format!("Group {group_id} is not empty.")))
}
