//! Deletes topics by ID, so that a topic that was recreated under the same name stays.

use std::time::Duration;

use ottla_protocol::{
    generated::delete_topics::{DeleteTopicsRequest, request},
    uuid::Uuid,
};

use super::{
    AdminCall, check,
    item_results::{ItemResults, Items},
};
use crate::{completion::Completion, error::Error};

/// The first version with topic IDs (KIP-516).
const FIRST_WITH_IDS: i16 = 6;

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
