//! SyncGroup (14), versions 0 to 5. See `groups`.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::sync_group::{SyncGroupRequest, SyncGroupResponse},
};

use crate::{
    cluster::Cluster,
    connection::{Pending, Request},
    groups::{GroupAnswers, sync_error},
};

impl Cluster {
    pub(crate) fn sync_group(&mut self, mut request: Request, body: SyncGroupRequest) {
        let name = body.group_id.clone();
        if let Err(error) = self.check_group(&mut request, &name) {
            self.answer_sync(&request, sync_error(error));
            return;
        }
        let mut answers = GroupAnswers::default();
        let (now, waiter) = (self.now, request.waiter());
        let answer = match self.groups.classic_mut(&name) {
            Some(group) => group.sync(now, waiter, body, &mut answers),
            None => Some(sync_error(ErrorCode::UNKNOWN_MEMBER_ID)),
        };
        match answer {
            Some(answer) => self.answer_sync(&request, answer),
            None => self.wait(Pending::Group(request)),
        }
        self.settle_group(&name, answers);
    }

    fn answer_sync(&mut self, request: &Request, mut answer: SyncGroupResponse) {
        answer.throttle_time_ms = request.throttle_ms();
        self.answer_with(request, &answer);
    }
}
