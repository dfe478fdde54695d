//! CreatePartitions (37), versions 0 to 3. The cluster chooses the replicas of the new partitions.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::create_partitions::{CreatePartitionsRequest, CreatePartitionsResponse, request, response},
};

use crate::{
    cluster::Cluster,
    connection::Request,
    provisioning::{Refusal, code_and_message},
};

impl Cluster {
    pub(crate) fn create_partitions_api(
        &mut self,
        request: &mut Request,
        body: CreatePartitionsRequest,
    ) -> CreatePartitionsResponse {
        let mut response =
            CreatePartitionsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for topic in body.topics {
            let done = self.add_partitions(request, &topic, body.validate_only);
            let (error_code, error_message) = code_and_message(done);
            let name = topic.name;
            response.results.push(response::CreatePartitionsResult { name, error_code, error_message });
        }
        response.throttle_time_ms = request.throttle_ms();
        response
    }

    fn add_partitions(
        &mut self,
        request: &mut Request,
        topic: &request::Topic,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        if let Some(error) = self.injected_error(request, &topic.name, -1) {
            return Err((error, "A fault was injected.".to_owned()));
        }
        if let Some(error) = self.topic_refusal(request, &topic.name) {
            return Err((error, error.description().to_owned()));
        }
        let Some(index) = self.topics.by_name(&topic.name) else {
            return Err((
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.".to_owned(),
            ));
        };
        self.create_partitions(index, topic.count, true)?;
        let before = self.topics.get(index).map_or(0, |topic| topic.partitions.len());
        let added = usize::try_from(topic.count).unwrap_or(0).saturating_sub(before);
        let is_strict = request.version >= 3;
        self.charge_mutation(request, added, is_strict)?;
        self.create_partitions(index, topic.count, validate_only)
    }
}
