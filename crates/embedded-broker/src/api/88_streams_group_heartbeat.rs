//! StreamsGroupHeartbeat (88), versions 0 and 1: members of streams groups (KIP-1071) join, stay and leave by it. This file
//! validates the request, and creates internal topics, before and after `groups::streams` handles it.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::streams_group_heartbeat::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse},
};

use crate::{
    cluster::Cluster,
    connection::Request,
    groups::{GroupResponses, StreamsSettings, is_leaving},
    provisioning::Refusal,
};

/// The first version whose response can ask for a description of the topology.
const FIRST_WITH_DESCRIPTIONS: i16 = 1;

impl Cluster {
    pub(crate) fn streams_group_heartbeat(
        &mut self,
        request: &mut Request,
        body: StreamsGroupHeartbeatRequest,
    ) -> StreamsGroupHeartbeatResponse {
        let name = body.group_id.clone();
        let outcome = self.check_streams_access(request, &body).and_then(|()| {
            check(&body).map_err(|message| (ErrorCode::INVALID_REQUEST, message.to_owned()))?;
            self.check_group(request, &name).map_err(|error| (error, error.description().to_owned()))?;
            self.streams_heartbeat_of(request, &body)
        });
        self.create_internal_topics(&name);
        self.settle_group(&name, GroupResponses::default());
        let mut response = outcome.unwrap_or_else(|(error_code, message)| StreamsGroupHeartbeatResponse {
            error_code,
            error_message: Some(message),
            ..Default::default()
        });
        if request.version == 0 {
            response.acceptable_recovery_lag_legacy =
                i32::try_from(response.acceptable_recovery_lag).unwrap_or(i32::MAX);
            response.acceptable_recovery_lag = -1;
        }
        StreamsGroupHeartbeatResponse { throttle_time_ms: request.throttle_ms(), ..response }
    }

    /// Error: the client may not be a member, or may not describe a topic of the topology.
    fn check_streams_access(
        &self,
        request: &Request,
        body: &StreamsGroupHeartbeatRequest,
    ) -> Result<(), Refusal> {
        let refuse = |error: ErrorCode| (error, error.description().to_owned());
        self.check_group_access(request, &body.group_id).map_err(refuse)?;
        let parts = body.topology.iter().flat_map(|topology| &topology.subtopologies);
        let mut names = parts.flat_map(|part| &part.source_topics);
        match names.find_map(|name| self.topic_refusal(request, name)) {
            Some(error) => Err(refuse(error)),
            None => Ok(()),
        }
    }

    fn streams_heartbeat_of(
        &mut self,
        request: &Request,
        body: &StreamsGroupHeartbeatRequest,
    ) -> Result<StreamsGroupHeartbeatResponse, Refusal> {
        if self.is_share_group(&body.group_id) {
            let message = format!("Group {} is not a streams group.", body.group_id);
            return Err((ErrorCode::GROUP_ID_NOT_FOUND, message));
        }
        if is_leaving(body.member_epoch) {
            return self.groups.streams_leave(body);
        }
        let settings = StreamsSettings {
            session_timeout: self.options.group_streams_session_timeout,
            heartbeat_interval: self.options.group_streams_heartbeat_interval,
            standby_replicas: self.options.group_streams_num_standby_replicas,
            task_offset_interval: self.options.group_streams_task_offset_interval,
            description_interval: self
                .options
                .group_streams_description_interval
                .filter(|_| request.version >= FIRST_WITH_DESCRIPTIONS),
        };
        let client_id = request.client_id.as_deref().unwrap_or_default();
        self.groups.streams_heartbeat(self.now, &self.topics, &settings, client_id, body)
    }

    /// Creates the internal topics that a streams group lacks. Its next heartbeat finds them.
    fn create_internal_topics(&mut self, group: &str) {
        for topic in self.groups.missing_topics(group) {
            // A topic that can't be created stays in the status of the group.
            let _ = self.create_topic(
                &topic.name,
                topic.partitions,
                topic.replication_factor,
                topic.configs,
                false,
            );
        }
    }
}

/// Performs the checks that Kafka makes before it accesses the group.
fn check(body: &StreamsGroupHeartbeatRequest) -> Result<(), &'static str> {
    let is_empty = |text: &Option<String>| text.as_deref() == Some("");
    let tasks = [
        body.active_tasks.as_ref().map(Vec::is_empty),
        body.standby_tasks.as_ref().map(Vec::is_empty),
        body.warmup_tasks.as_ref().map(Vec::is_empty),
    ];
    if body.member_id.is_empty() {
        return Err("MemberId can't be empty.");
    }
    if body.group_id.is_empty() {
        return Err("GroupId can't be empty.");
    }
    if is_empty(&body.instance_id) {
        return Err("InstanceId can't be empty.");
    }
    if is_empty(&body.rack_id) {
        return Err("RackId can't be empty.");
    }
    match body.member_epoch {
        0 if body.rebalance_timeout_ms == -1 => Err("RebalanceTimeoutMs must be provided in first request."),
        0 if tasks != [Some(true); 3] => {
            Err("ActiveTasks, StandbyTasks and WarmupTasks must be empty when (re-)joining.")
        }
        0 if body.topology.is_none() => Err("Topology must be non-null when (re-)joining."),
        0 if has_wrong_changelog(body) => Err("A changelog topic must have an undefined partition count."),
        -2 if body.instance_id.is_none() => Err("InstanceId can't be null."),
        ..-2 => Err("MemberEpoch is less than -2."),
        1.. if body.topology.is_some() => Err("Topology can only be provided when (re-)joining."),
        1.. if tasks.iter().any(Option::is_some) && tasks.iter().any(Option::is_none) => {
            Err("If one task-type is non-null, all must be non-null.")
        }
        _ => Ok(()),
    }
}

fn has_wrong_changelog(body: &StreamsGroupHeartbeatRequest) -> bool {
    let parts = body.topology.iter().flat_map(|topology| &topology.subtopologies);
    parts.flat_map(|part| &part.state_changelog_topics).any(|topic| topic.partitions != 0)
}
