//! Heartbeat (12), versions 0 to 4. See `groups`.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::heartbeat::{HeartbeatRequest, HeartbeatResponse},
};

use crate::{cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn heartbeat(&mut self, request: &mut Request, body: HeartbeatRequest) -> HeartbeatResponse {
        let now = self.now;
        let beaten = self.check_group(request, &body.group_id).and_then(|()| {
            let member = (&*body.member_id, body.group_instance_id.as_deref());
            self.groups.heartbeat(now, &body.group_id, member, body.generation_id)
        });
        self.settle_group(&body.group_id, Default::default());
        HeartbeatResponse {
            error_code: beaten.err().unwrap_or(ErrorCode::NONE),
            throttle_time_ms: request.throttle_ms(),
        }
    }
}
