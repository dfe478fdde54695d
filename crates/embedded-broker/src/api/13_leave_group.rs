//! LeaveGroup (13), versions 0 to 5; several members at once from version 3 on. See `groups`.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::leave_group::{LeaveGroupRequest, LeaveGroupResponse, response},
};

use crate::{cluster::Cluster, connection::Request, groups::GroupResponses};

impl Cluster {
    pub(crate) fn leave_group(
        &mut self,
        request: &mut Request,
        body: LeaveGroupRequest,
    ) -> LeaveGroupResponse {
        let mut response =
            LeaveGroupResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        if let Err(error) = self.check_group(request, &body.group_id) {
            response.error_code = error;
            return response;
        }
        let now = self.now;
        let mut responses = GroupResponses::default();
        let mut leave = |member_id: &str, instance_id: Option<&str>| {
            let left = self.groups.leave(now, &body.group_id, (member_id, instance_id), &mut responses);
            left.err().unwrap_or(ErrorCode::NONE)
        };
        if request.version < 3 {
            response.error_code = leave(&body.member_id, None);
        } else {
            for member in body.members {
                response.members.push(response::Member {
                    error_code: leave(&member.member_id, member.group_instance_id.as_deref()),
                    member_id: member.member_id,
                    group_instance_id: member.group_instance_id,
                });
            }
        }
        self.settle_group(&body.group_id, responses);
        response
    }
}
