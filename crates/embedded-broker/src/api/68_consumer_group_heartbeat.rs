//! ConsumerGroupHeartbeat (68), versions 0 and 1: members of the consumer protocol (KIP-848) join, stay and leave by
//! it. In version 0 the broker generates the member ID; from version 1 on the member does, and it may subscribe to a
//! regular expression. This file validates the request before `groups::consumer` handles it.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse},
    uuid::Uuid,
};

use crate::{
    cluster::Cluster,
    connection::Request,
    groups::{Assignor, GroupResponses, Heartbeat, LEAVES, LEAVES_FOR_A_WHILE, Settings, TopicRegex},
    provisioning::Refusal,
};

impl Cluster {
    pub(crate) fn consumer_group_heartbeat(
        &mut self,
        request: &mut Request,
        body: ConsumerGroupHeartbeatRequest,
    ) -> ConsumerGroupHeartbeatResponse {
        let name = body.group_id.clone();
        let mut responses = GroupResponses::default();
        let outcome = self.check_heartbeat_access(request, &body).and_then(|()| {
            check(request.version, &body)?;
            self.check_group(request, &name).map_err(|error| (error, error.description().to_owned()))?;
            self.heartbeat_of(request, body, &mut responses)
        });
        self.settle_group(&name, responses);
        let response = outcome.unwrap_or_else(|(error_code, message)| ConsumerGroupHeartbeatResponse {
            error_code,
            error_message: Some(message),
            ..Default::default()
        });
        ConsumerGroupHeartbeatResponse { throttle_time_ms: request.throttle_ms(), ..response }
    }

    /// Error: the client may not be a member, or may not describe a topic that it subscribes to.
    fn check_heartbeat_access(
        &self,
        request: &Request,
        body: &ConsumerGroupHeartbeatRequest,
    ) -> Result<(), Refusal> {
        self.check_group_access(request, &body.group_id)
            .map_err(|error| (error, error.description().to_owned()))?;
        let names = body.subscribed_topic_names.iter().flatten();
        match names.into_iter().find_map(|name| self.topic_refusal(request, name)) {
            Some(error) => Err((error, error.description().to_owned())),
            None => Ok(()),
        }
    }

    fn heartbeat_of(
        &mut self,
        request: &Request,
        mut body: ConsumerGroupHeartbeatRequest,
        responses: &mut GroupResponses,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        if self.is_share_group(&body.group_id) {
            let message = format!("Group {} is not a consumer group.", body.group_id);
            return Err((ErrorCode::GROUP_ID_NOT_FOUND, message));
        }
        let assignor = body.server_assignor.as_deref().map(assignor).transpose()?;
        if matches!(body.member_epoch, LEAVES | LEAVES_FOR_A_WHILE) {
            return self.groups.consumer_leave(&body);
        }
        if body.member_id.is_empty() {
            body.member_id = Uuid(self.random.uuid_bytes()).to_string();
        }
        let topic_regex = body.subscribed_topic_regex.as_deref().map(|text| match text {
            "" => Ok(None),
            text => TopicRegex::new(text).map(Some),
        });
        let settings = Settings {
            session_timeout: self.options.group_consumer_session_timeout,
            heartbeat_interval: self.options.group_consumer_heartbeat_interval,
            assignor: self.options.group_consumer_assignor,
            max_size: self.options.group_consumer_max_size,
            is_migrating: self.options.group_consumer_migration,
            manual: None,
        };
        let client_id = request.client_id.clone().unwrap_or_default();
        let heartbeat = Heartbeat { body, client_id, assignor, topic_regex: topic_regex.transpose() };
        self.groups.consumer_heartbeat(self.now, &self.topics, settings, heartbeat, responses)
    }
}

fn assignor(name: &str) -> Result<Assignor, Refusal> {
    Assignor::named(name).ok_or_else(|| {
        let message = format!("ServerAssignor {name} is not supported. Supported assignors: uniform, range.");
        (ErrorCode::UNSUPPORTED_ASSIGNOR, message)
    })
}

/// Performs the checks that Kafka makes before it accesses the group.
fn check(version: i16, body: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
    let invalid = |message: &str| Err((ErrorCode::INVALID_REQUEST, message.to_owned()));
    let is_empty = |text: &Option<String>| text.as_deref() == Some("");
    if body.member_id.is_empty() && (version >= 1 || body.member_epoch != 0) {
        return invalid("MemberId can't be empty.");
    }
    if body.group_id.is_empty() {
        return invalid("GroupId can't be empty.");
    }
    if is_empty(&body.instance_id) {
        return invalid("InstanceId can't be empty.");
    }
    if is_empty(&body.rack_id) {
        return invalid("RackId can't be empty.");
    }
    match body.member_epoch {
        0 if body.rebalance_timeout_ms == -1 => {
            invalid("RebalanceTimeoutMs must be provided in first request.")
        }
        0 if body.topic_partitions.as_ref().is_none_or(|owned| !owned.is_empty()) => {
            invalid("TopicPartitions must be empty when (re-)joining.")
        }
        0 if body.subscribed_topic_names.is_none() && body.subscribed_topic_regex.is_none() => {
            invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
        }
        LEAVES_FOR_A_WHILE if body.instance_id.is_none() => invalid("InstanceId can't be null."),
        ..LEAVES_FOR_A_WHILE => invalid("MemberEpoch is invalid."),
        _ => Ok(()),
    }
}
