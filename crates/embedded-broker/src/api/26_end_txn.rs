//! EndTxn (26), versions 0 to 5: commits or aborts the transaction of a producer. The response is sent when the decision
//! is made; the markers follow. From version 5 on the epoch rises with each end, and the response names the next producer
//! ID and epoch (KIP-890).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::end_txn::{EndTxnRequest, EndTxnResponse},
};

use crate::{acls::AclOperation, cluster::Cluster, connection::Request, transactions::ProducerKey};

impl Cluster {
    pub(crate) fn end_txn(&mut self, request: &mut Request, body: EndTxnRequest) -> EndTxnResponse {
        let mut response = EndTxnResponse {
            throttle_time_ms: request.throttle_ms(),
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        match self.end_txn_of(request, &body) {
            Ok(producer) if request.version >= 5 => {
                (response.producer_id, response.producer_epoch) = (producer.id, producer.epoch);
            }
            Ok(_) => {}
            Err(ErrorCode::PRODUCER_FENCED) if request.version < 2 => {
                response.error_code = ErrorCode::INVALID_PRODUCER_EPOCH;
            }
            Err(error) => response.error_code = error,
        }
        response
    }

    fn end_txn_of(&mut self, request: &mut Request, body: &EndTxnRequest) -> Result<ProducerKey, ErrorCode> {
        let id = &body.transactional_id;
        if let Some(error) = self.injected_error(request, id, -1) {
            return Err(error);
        }
        self.check_transaction_access(request, AclOperation::Write, id)?;
        self.check_transaction_coordinator(request, id)?;
        let producer = ProducerKey { id: body.producer_id, epoch: body.producer_epoch };
        let version = if request.version >= 5 { 2 } else { 0 };
        self.end_transaction(id, producer, body.committed, version)
    }
}
