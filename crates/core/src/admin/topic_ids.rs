//! Describes and deletes topics by ID, so that a topic that was recreated under the same name is another one.

use std::time::Duration;

use ottla_protocol::{
    generated::{
        delete_topics::{DeleteTopicsRequest, request},
        metadata::{self, MetadataRequest, MetadataResponse},
    },
    uuid::Uuid,
};

use super::{
    AdminCall, check,
    describe::{TopicDescription, topic_description},
    item_results::{ItemResults, Items},
};
use crate::{completion::Completion, contract::route::Route, error::Error};

/// The first version of Metadata in which topics can be described by ID: before, a request by ID had no valid name.
const FIRST_WITH_IDS_ALONE: i16 = 12;
/// The first version of DeleteTopics with topic IDs (KIP-516).
const FIRST_WITH_IDS: i16 = 6;

/// Describes the topics with these distinct IDs.
pub fn describe_topics_by_id(
    ids: Vec<Uuid>,
    with_operations: bool,
    timeout: Duration,
    done: Completion<Result<ItemResults<Uuid, TopicDescription>, Error>>,
) -> AdminCall {
    let request = move |ids: &[Uuid], _, _| {
        let topic = |id: &Uuid| metadata::request::Topic { topic_id: *id, name: None };
        MetadataRequest {
            topics: Some(ids.iter().map(topic).collect()),
            allow_auto_topic_creation: false,
            include_topic_authorized_operations: with_operations,
            include_cluster_authorized_operations: false,
        }
    };
    let call = Items::new(ids, request, |_, response: MetadataResponse| {
        check(response.error_code, None)?;
        let one = |topic: metadata::response::Topic| {
            let id = topic.topic_id;
            let checked = check(topic.error_code, None).map_err(|error| match &topic.name {
                Some(name) => error.with_topic(&**name),
                None => error,
            });
            (id, checked.map(|()| topic_description(topic)))
        };
        Ok(response.topics.into_iter().map(one).collect())
    });
    call.to(Route::Any).since_version(FIRST_WITH_IDS_ALONE).call(timeout, done)
}

/// Deletes the topics with these distinct IDs.
pub fn delete_topics_by_id(
    ids: Vec<Uuid>,
    timeout: Duration,
    done: Completion<Result<ItemResults<Uuid, ()>, Error>>,
) -> AdminCall {
    let request = |ids: &[Uuid], _, timeout_ms| {
        let topic = |id: &Uuid| request::Topic { name: None, topic_id: *id };
        DeleteTopicsRequest {
            topics: ids.iter().map(topic).collect(),
            timeout_ms,
            ..DeleteTopicsRequest::default()
        }
    };
    let call = Items::new(ids, request, |_, response| {
        let results = response.responses.into_iter();
        Ok(results.map(|one| (one.topic_id, check(one.error_code, one.error_message.as_deref()))).collect())
    });
    call.since_version(FIRST_WITH_IDS).call(timeout, done)
}
