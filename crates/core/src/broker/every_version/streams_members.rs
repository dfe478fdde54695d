//! The requests of members of streams groups.

use ottla_protocol::generated::{
    streams_group_heartbeat::StreamsGroupHeartbeatRequest,
    streams_group_topology_description_update::StreamsGroupTopologyDescriptionUpdateRequest,
};

use super::{Case, TIMEOUT};
use crate::streams;

pub(super) fn heartbeat() -> Case {
    let request = StreamsGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: "m".into(),
        member_epoch: 3,
        active_tasks: Some(vec![]),
        standby_tasks: Some(vec![]),
        warmup_tasks: Some(vec![]),
        ..Default::default()
    };
    Case::new("a member that stays", streams::heartbeat_sample(request, TIMEOUT))
}

pub(super) fn description() -> Case {
    let request = StreamsGroupTopologyDescriptionUpdateRequest {
        group_id: "g".into(),
        member_id: "m".into(),
        ..Default::default()
    };
    Case::new("a description", streams::push_sample(request, TIMEOUT))
}
