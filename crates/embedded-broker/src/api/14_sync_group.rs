//! SyncGroup (14), versions 0 to 5. See `groups`.

use ottla_protocol::generated::sync_group::{SyncGroupRequest, SyncGroupResponse};

use crate::{
    cluster::Cluster,
    connection::{Pending, Request},
    groups::{GroupResponses, sync_error},
};

impl Cluster {
    pub(crate) fn sync_group(&mut self, mut request: Request, body: SyncGroupRequest) {
        let name = body.group_id.clone();
        if let Err(error) = self.check_group(&mut request, &name) {
            self.respond_to_sync(&request, sync_error(error));
            return;
        }
        let mut responses = GroupResponses::default();
        let (now, waiter) = (self.now, request.waiter());
        match self.groups.sync(now, &self.topics, waiter, body, &mut responses) {
            Some(response) => self.respond_to_sync(&request, response),
            None => self.wait(Pending::Group(request)),
        }
        self.settle_group(&name, responses);
    }

    fn respond_to_sync(&mut self, request: &Request, mut response: SyncGroupResponse) {
        response.throttle_time_ms = request.throttle_ms();
        self.respond_with(request, &response);
    }
}
