//! AddOffsetsToTxn (25), versions 0 to 4: adds the offsets of a group to the transaction of a producer.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse},
};

use crate::{
    acls::AclOperation,
    cluster::Cluster,
    connection::Request,
    transactions::{Participant, ProducerKey},
};

impl Cluster {
    pub(crate) fn add_offsets_to_txn(
        &mut self,
        request: &mut Request,
        body: AddOffsetsToTxnRequest,
    ) -> AddOffsetsToTxnResponse {
        let error_code = match self.add_offsets(request, &body).err().unwrap_or_default() {
            ErrorCode::PRODUCER_FENCED if request.version < 2 => ErrorCode::INVALID_PRODUCER_EPOCH,
            error => error,
        };
        AddOffsetsToTxnResponse { throttle_time_ms: request.throttle_ms(), error_code }
    }

    fn add_offsets(&mut self, request: &mut Request, body: &AddOffsetsToTxnRequest) -> Result<(), ErrorCode> {
        let id = &body.transactional_id;
        if let Some(error) = self.injected_error(request, id, -1) {
            return Err(error);
        }
        self.check_transaction_access(request, AclOperation::Write, id)?;
        self.check_group_access(request, &body.group_id)?;
        self.check_transaction_coordinator(request, id)?;
        let producer = ProducerKey { id: body.producer_id, epoch: body.producer_epoch };
        self.add_to_transaction(id, producer, &[Participant::Group(body.group_id.clone())], 0)
    }
}
