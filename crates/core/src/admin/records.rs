//! Deleting the oldest records of a partition.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::delete_records::{DeleteRecordsRequest, DeleteRecordsResponse, request},
    primitive::Reader,
};

use super::{AdminCall, Operation, Verdict, undecodable};
use crate::{
    cluster::Route,
    completion::Completion,
    error::{Error, ErrorKind},
    mail::EncodeBody,
};

/// Deletes the records of a partition before an offset (-1: all that consumers may read); the answer is the offset of
/// the first that is left.
pub fn delete_records(
    topic: Arc<str>,
    partition: i32,
    before: i64,
    timeout: Duration,
    done: Completion<Result<i64, Error>>,
) -> AdminCall {
    AdminCall::operation(DeleteRecords { topic, partition, before, low: None, done }, timeout)
}

struct DeleteRecords {
    topic: Arc<str>,
    partition: i32,
    before: i64,
    low: Option<i64>,
    done: Completion<Result<i64, Error>>,
}

impl Operation for DeleteRecords {
    fn api(&self) -> ApiKey {
        ApiKey::DeleteRecords
    }

    fn route(&self) -> Route {
        Route::Any
    }

    fn partition(&self) -> Option<(&Arc<str>, i32)> {
        Some((&self.topic, self.partition))
    }

    fn encode(&self, timeout: Duration) -> EncodeBody {
        let partition = request::Partition { partition_index: self.partition, offset: self.before };
        let topic = request::Topic { name: self.topic.to_string(), partitions: vec![partition] };
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_answer(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let reader = &mut Reader::new(body);
        let answer = DeleteRecordsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
        let topic = answer.topics.iter().find(|topic| *topic.name == *self.topic);
        let of_it = |topic: &ottla_protocol::generated::delete_records::response::Topic| {
            topic.partitions.iter().find(|one| one.partition_index == self.partition).cloned()
        };
        let Some(one) = topic.and_then(of_it) else {
            return Err(Error::new(ErrorKind::BadResponse, "the answer leaves the partition out"));
        };
        let error = || Error::broker(one.error_code, None).with_partition(&*self.topic, self.partition);
        match one.error_code {
            ErrorCode::NONE => {
                self.low = Some(one.low_watermark);
                Ok(Verdict::Done)
            }
            code if code.is_retriable() => Ok(Verdict::Again(error())),
            _ => Err(error()),
        }
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let none = || error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without an answer"));
        self.done.complete(self.low.ok_or_else(none));
    }
}
