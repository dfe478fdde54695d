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
        let mut answer =
            DeleteTopicsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        let mut wanted = body.topics;
        for name in body.topic_names {
            wanted.push(request::Topic { name: Some(name), ..Default::default() });
        }
        for topic in wanted {
            answer.responses.push(self.delete_wanted(request, topic));
        }
        answer
    }

    fn delete_wanted(&mut self, request: &mut Request, wanted: request::Topic) -> response::Response {
        let found = match &wanted.name {
            Some(_) if wanted.topic_id != Uuid::ZERO => Err(ErrorCode::INVALID_REQUEST),
            Some(name) => self.topics.by_name(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            None => self.topics.by_id(wanted.topic_id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID),
        };
        let topic = found.ok().and_then(|index| self.topics.get(index));
        let name = wanted.name.or_else(|| topic.map(|topic| topic.name.clone()));
        let topic_id = topic.map_or(wanted.topic_id, |topic| topic.id);
        let injected = self.injected_error(request, name.as_deref().unwrap_or_default(), -1);
        let mut answer = response::Response { name, ..Default::default() };
        match injected.map_or(found, Err) {
            Ok(index) => self.delete_topic(index),
            Err(error) => answer.error_code = error,
        }
        if request.version >= 6 {
            answer.topic_id = topic_id;
        }
        answer
    }
}
