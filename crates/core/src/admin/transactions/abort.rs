//! Ends a transaction that hangs in a partition.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::write_txn_markers::{WriteTxnMarkersRequest, WriteTxnMarkersResponse, request},
    primitive::Reader,
};

use crate::{
    admin::{AdminCall, Operation, Verdict, undecodable},
    completion::Completion,
    contract::route::{EncodeBody, Route},
    error::{Error, ErrorKind},
};

/// A transaction that hangs in a partition. [`ActiveProducer`](super::producers::ActiveProducer) has the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HangingTransaction {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The producer ID.
    pub producer_id: i64,
    /// The producer epoch.
    pub producer_epoch: i16,
    /// The epoch of the coordinator that wrote the producer's last marker in the partition; `None` if there is no marker.
    pub coordinator_epoch: Option<i32>,
}

/// Writes the abort marker of a transaction to one partition, without its coordinator. The coordinator does not learn of it:
/// a transaction that it still knows loses the records of this partition, and keeps the others.
pub fn abort_transaction(
    transaction: HangingTransaction,
    timeout: Duration,
    done: Completion<Result<(), Error>>,
) -> AdminCall {
    AdminCall::operation(AbortTransaction { transaction, is_done: false, done }, timeout)
}

struct AbortTransaction {
    transaction: HangingTransaction,
    is_done: bool,
    done: Completion<Result<(), Error>>,
}

impl Operation for AbortTransaction {
    fn api(&self) -> ApiKey {
        ApiKey::WriteTxnMarkers
    }

    fn route(&self) -> Route {
        Route::Any
    }

    fn partition(&self) -> Option<(&Arc<str>, i32)> {
        Some((&self.transaction.topic, self.transaction.partition))
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let of = &self.transaction;
        let topic = request::Topic { name: of.topic.to_string(), partition_indexes: vec![of.partition] };
        let marker = request::Marker {
            producer_id: of.producer_id,
            producer_epoch: of.producer_epoch,
            transaction_result: false,
            topics: vec![topic],
            coordinator_epoch: of.coordinator_epoch.unwrap_or(0),
            ..request::Marker::default()
        };
        let request = WriteTxnMarkersRequest { markers: vec![marker] };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response =
            WriteTxnMarkersResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        let HangingTransaction { topic, partition, producer_id, .. } = &self.transaction;
        let markers = response.markers.iter().filter(|marker| marker.producer_id == *producer_id);
        let topics = markers.flat_map(|marker| &marker.topics).filter(|one| *one.name == **topic);
        let mut partitions = topics.flat_map(|one| &one.partitions);
        let Some(found) = partitions.find(|one| one.partition_index == *partition) else {
            return Err(Error::new(ErrorKind::BadResponse, "the response omits the partition"));
        };
        let error = |detail| Error::broker(found.error_code, detail).with_partition(&**topic, *partition);
        match found.error_code {
            ErrorCode::NONE => {
                self.is_done = true;
                Ok(Verdict::Done)
            }
            ErrorCode::INVALID_PRODUCER_EPOCH => Err(error(Some(
                "the producer has a newer epoch in this partition; describe its producers again",
            ))),
            ErrorCode::TRANSACTION_COORDINATOR_FENCED => Err(error(Some(
                "a newer coordinator has written to this partition; describe its producers again",
            ))),
            ErrorCode::CLUSTER_AUTHORIZATION_FAILED => {
                Err(error(Some("writing markers needs the permission Alter on the cluster")))
            }
            code if code.is_retriable() => Ok(Verdict::Again(error(None))),
            _ => Err(error(None)),
        }
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let none = || error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result"));
        self.done.complete(if self.is_done { Ok(()) } else { Err(none()) });
    }
}
