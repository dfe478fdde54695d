//! JoinGroup (11), versions 0 to 9. From version 4 on, a new member first receives its ID. See `groups`.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::join_group::{JoinGroupRequest, JoinGroupResponse},
};

use crate::{
    cluster::Cluster,
    connection::{Pending, Request},
    groups::{GroupResponses, Joiner, join_error},
};

/// `group.max.session.timeout.ms`. The minimum is 1 ms here, so that tests can use short timeouts.
const MAX_SESSION_TIMEOUT_MS: i32 = 1_800_000;

impl Cluster {
    pub(crate) fn join_group(&mut self, mut request: Request, body: JoinGroupRequest) {
        let checked = self.check_group(&mut request, &body.group_id).and_then(|()| {
            if self.is_share_group(&body.group_id) {
                return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
            }
            if (1..=MAX_SESSION_TIMEOUT_MS).contains(&body.session_timeout_ms) {
                Ok(())
            } else {
                Err(ErrorCode::INVALID_SESSION_TIMEOUT)
            }
        });
        if let Err(error) = checked {
            self.respond_to_join(&request, join_error(error, &body.member_id));
            return;
        }
        let client_id = request.client_id.clone().unwrap_or_default();
        let joiner = Joiner { waiter: request.waiter(), version: request.version, client_id: &client_id };
        let mut responses = GroupResponses::default();
        let delay = self.options.group_initial_rebalance_delay;
        match self.groups.join(self.now, &self.topics, delay, joiner, &body, &mut responses) {
            Some(response) => self.respond_to_join(&request, response),
            None => self.wait(Pending::Group(request)),
        }
        self.settle_group(&body.group_id, responses);
    }

    fn respond_to_join(&mut self, request: &Request, mut response: JoinGroupResponse) {
        response.throttle_time_ms = request.throttle_ms();
        self.respond_with(request, &response);
    }
}
