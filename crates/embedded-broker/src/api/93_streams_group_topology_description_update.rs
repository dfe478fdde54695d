//! StreamsGroupTopologyDescriptionUpdate (93), version 0: a member of a streams group sends the description of its topology
//! (KIP-1331), if the brokers store descriptions.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::streams_group_topology_description_update::{
        StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse, request,
    },
};

use crate::{cluster::Cluster, connection::Request, provisioning::Refusal};

const SOURCE: i8 = 1;
const PROCESSOR: i8 = 2;
const SINK: i8 = 3;

impl Cluster {
    pub(crate) fn streams_group_topology_description_update(
        &mut self,
        request: &mut Request,
        body: StreamsGroupTopologyDescriptionUpdateRequest,
    ) -> StreamsGroupTopologyDescriptionUpdateResponse {
        let checked = self.check_description(request, &body);
        let stored = checked.and_then(|()| self.groups.store_topology_description(body));
        let (error_code, error_message) = match stored {
            Ok(()) => (ErrorCode::NONE, None),
            Err((error_code, message)) => (error_code, Some(message)),
        };
        let throttle_time_ms = request.throttle_ms();
        StreamsGroupTopologyDescriptionUpdateResponse { throttle_time_ms, error_code, error_message }
    }

    /// Performs the checks that Kafka makes before it accesses the group.
    fn check_description(
        &mut self,
        request: &mut Request,
        body: &StreamsGroupTopologyDescriptionUpdateRequest,
    ) -> Result<(), Refusal> {
        let refuse = |error: ErrorCode| (error, error.description().to_owned());
        self.check_group_access(request, &body.group_id).map_err(refuse)?;
        if self.options.group_streams_description_interval.is_none() {
            let message = "The broker has no streams group topology description plugin configured.";
            return Err((ErrorCode::UNSUPPORTED_VERSION, message.to_owned()));
        }
        check(body).map_err(|message| (ErrorCode::INVALID_REQUEST, message.to_owned()))?;
        self.check_group(request, &body.group_id).map_err(refuse)
    }
}

fn check(body: &StreamsGroupTopologyDescriptionUpdateRequest) -> Result<(), &'static str> {
    if body.member_id.is_empty() {
        return Err("MemberId can't be empty.");
    }
    if body.group_id.is_empty() {
        return Err("GroupId can't be empty.");
    }
    let request::TopologyDescription { subtopologies, global_stores } = &body.topology_description;
    let mut types = subtopologies.iter().flat_map(|part| &part.nodes).map(|node| node.node_type);
    if !types.all(|node_type| matches!(node_type, SOURCE | PROCESSOR | SINK)) {
        return Err("Unknown topology description node type.");
    }
    let mut stores = global_stores.iter().map(|store| (store.source.node_type, store.processor.node_type));
    if !stores.all(|types| types == (SOURCE, PROCESSOR)) {
        return Err("Global store must be composed of a source and a processor node.");
    }
    Ok(())
}
