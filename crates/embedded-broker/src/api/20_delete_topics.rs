//! DeleteTopics (20), versions 1 to 6; by name or by id from version 6 on.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::delete_topics::{DeleteTopicsRequest, DeleteTopicsResponse, request, response},
    uuid::Uuid,
};

use crate::{cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn delete_topics(
        &mut self,
        request: &mut Request,
        body: DeleteTopicsRequest,
    ) -> DeleteTopicsResponse {
        let mut response =
            DeleteTopicsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        let mut requested = body.topics;
        for name in body.topic_names {
            requested.push(request::Topic { name: Some(name), ..Default::default() });
        }
        for topic in requested {
            response.responses.push(self.delete_requested(request, topic));
        }
        response.throttle_time_ms = request.throttle_ms();
        response
    }

    fn delete_requested(&mut self, request: &mut Request, requested: request::Topic) -> response::Response {
        let found = match &requested.name {
            Some(_) if requested.topic_id != Uuid::ZERO => Err(ErrorCode::INVALID_REQUEST),
            Some(name) => self.topics.by_name(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            None => self.topics.by_id(requested.topic_id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID),
        };
        let topic = found.ok().and_then(|index| self.topics.get(index));
        let name = requested.name.or_else(|| topic.map(|topic| topic.name.clone()));
        let topic_id = topic.map_or(requested.topic_id, |topic| topic.id);
        let error = match &name {
            Some(name) => self.topic_error(request, name, -1),
            None => self.injected_error(request, "", -1),
        };
        let mut response = response::Response { name, ..Default::default() };
        match error.map_or(found, Err) {
            Ok(index) => {
                let partitions = self.topics.get(index).map_or(0, |topic| topic.partitions.len());
                let is_strict = request.version >= 5;
                match self.charge_mutation(request, partitions, is_strict) {
                    Ok(()) => self.delete_topic(index),
                    Err((error, message)) => {
                        (response.error_code, response.error_message) = (error, Some(message));
                    }
                }
            }
            Err(error) => response.error_code = error,
        }
        if request.version >= 6 {
            response.topic_id = topic_id;
        }
        response
    }
}
