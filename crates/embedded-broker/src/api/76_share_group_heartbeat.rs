//! ShareGroupHeartbeat (76), version 1. See `share_groups`. A group of another type with this name is not a share
//! group.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::share_group_heartbeat::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, response},
};

use crate::{
    cluster::Cluster,
    connection::Request,
    provisioning::Refusal,
    share_groups::{Assignment, HeardOf, JOINS, LEAVES, ShareHeartbeat},
};

impl Cluster {
    pub(crate) fn share_group_heartbeat(
        &mut self,
        request: &mut Request,
        body: ShareGroupHeartbeatRequest,
    ) -> ShareGroupHeartbeatResponse {
        let settings = self.share_settings(&body.group_id);
        let (group_id, member_id) = (body.group_id.clone(), body.member_id.clone());
        let mut response =
            ShareGroupHeartbeatResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        match self.hear_of_share_member(request, body) {
            Ok(heard) => {
                let interval = settings.heartbeat_interval.as_millis();
                response.heartbeat_interval_ms = i32::try_from(interval).unwrap_or(i32::MAX);
                response.member_id = Some(member_id);
                response.member_epoch = heard.member_epoch;
                response.assignment =
                    heard.assignment.map(|assignment| self.describe_assignment(&assignment));
            }
            Err((error_code, message)) => {
                response.error_code = error_code;
                response.error_message = Some(message).filter(|message| !message.is_empty());
            }
        }
        self.settle_share_group(&group_id);
        response
    }

    fn hear_of_share_member(
        &mut self,
        request: &mut Request,
        body: ShareGroupHeartbeatRequest,
    ) -> Result<HeardOf, Refusal> {
        let refuse = |error: ErrorCode| (error, error.description().to_owned());
        self.check_group_access(request, &body.group_id).map_err(refuse)?;
        let names = body.subscribed_topic_names.iter().flatten();
        if let Some(error) = names.into_iter().find_map(|name| self.topic_refusal(request, name)) {
            return Err(refuse(error));
        }
        check(&body).map_err(|message| (ErrorCode::INVALID_REQUEST, message.to_owned()))?;
        let group_id = body.group_id;
        self.check_group(request, &group_id).map_err(|error| (error, String::new()))?;
        if self.is_other_group(&group_id) {
            return Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {group_id} is not a share group.")));
        }
        let settings = self.share_settings(&group_id);
        let group = match self.share_groups.groups.get_mut(&group_id) {
            Some(group) => group,
            None if body.member_epoch == JOINS => {
                self.share_groups.groups.entry(group_id.clone()).or_default()
            }
            None => {
                let message = format!("Share group {group_id} not found.");
                return Err((ErrorCode::GROUP_ID_NOT_FOUND, message));
            }
        };
        if body.member_epoch == LEAVES {
            group.leave(&body.member_id)?;
            return Ok(HeardOf { member_epoch: LEAVES, assignment: None });
        }
        let heartbeat = ShareHeartbeat {
            member_id: &body.member_id,
            member_epoch: body.member_epoch,
            client_id: request.client_id.as_deref().unwrap_or_default(),
            rack_id: body.rack_id,
            topics: body.subscribed_topic_names,
        };
        group.heartbeat(self.now, &settings, &self.topics, heartbeat)
    }

    fn describe_assignment(&self, assignment: &Assignment) -> response::Assignment {
        let topics = assignment.iter().filter_map(|(topic, partitions)| {
            let topic_id = self.topics.get(*topic)?.id;
            Some(response::TopicPartition { topic_id, partitions: partitions.iter().copied().collect() })
        });
        response::Assignment { topic_partitions: topics.collect() }
    }
}

fn check(body: &ShareGroupHeartbeatRequest) -> Result<(), &'static str> {
    if body.group_id.is_empty() {
        return Err("GroupId can't be empty.");
    }
    if body.member_id.is_empty() {
        return Err("MemberId can't be empty.");
    }
    if body.rack_id.as_deref() == Some("") {
        return Err("RackId can't be empty.");
    }
    if body.member_epoch < LEAVES {
        return Err("MemberEpoch is invalid.");
    }
    if body.member_epoch == JOINS && body.subscribed_topic_names.as_ref().is_none_or(Vec::is_empty) {
        return Err("SubscribedTopicNames must be set in first request.");
    }
    Ok(())
}
