//! JoinGroup (11), versions 0 to 9. From version 4 on a new member is first given its id. See `groups`.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::join_group::{JoinGroupRequest, JoinGroupResponse},
};

use crate::{
    cluster::Cluster,
    connection::{Pending, Request},
    groups::{Asker, GroupAnswers, join_error},
};

/// `group.max.session.timeout.ms`; the least is 1 here, because tests have no time.
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
            self.answer_join(&request, join_error(error, &body.member_id));
            return;
        }
        let client_id = request.client_id.clone().unwrap_or_default();
        let asker = Asker { waiter: request.waiter(), version: request.version, client_id: &client_id };
        let mut answers = GroupAnswers::default();
        let delay = self.options.group_initial_rebalance_delay;
        match self.groups.join(self.now, delay, asker, &body, &mut answers) {
            Some(answer) => self.answer_join(&request, answer),
            None => self.wait(Pending::Group(request)),
        }
        self.settle_group(&body.group_id, answers);
    }

    fn answer_join(&mut self, request: &Request, mut answer: JoinGroupResponse) {
        answer.throttle_time_ms = request.throttle_ms();
        self.answer_with(request, &answer);
    }
}
