//! Deletes the oldest records of a partition.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::delete_records::{DeleteRecordsRequest, DeleteRecordsResponse, request},
    primitive::Reader,
};

use super::{AdminCall, Operation, Verdict, undecodable};
use crate::{
    cluster::route::{EncodeBody, Route},
    completion::Completion,
    error::{Error, ErrorKind},
};

/// Deletes the records of a partition before an offset (-1: all records that consumers may read). The result is the
/// offset of the first remaining record.
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

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let reader = &mut Reader::new(body);
        let response = DeleteRecordsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
        let topic = response.topics.iter().find(|topic| *topic.name == *self.topic);
        let of_it = |topic: &ottla_protocol::generated::delete_records::response::Topic| {
            topic.partitions.iter().find(|one| one.partition_index == self.partition).cloned()
        };
        let Some(one) = topic.and_then(of_it) else {
            return Err(Error::new(ErrorKind::BadResponse, "the response omits the partition"));
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
        let none = || error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result"));
        self.done.complete(self.low.ok_or_else(none));
    }
}
