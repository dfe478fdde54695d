//! InitProducerId (22), versions 0 to 5. For idempotent producers it returns a new producer ID with epoch 0, also if the
//! request names the producer's present ID.
//!
//! For a transactional ID it returns the ID's producer with the next epoch, which fences the producer's earlier instances.
//! An open transaction aborts first, and the producer has to ask again (CONCURRENT_TRANSACTIONS).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
};

use crate::{acls::AclOperation, cluster::Cluster, connection::Request, transactions::ProducerKey};

impl Cluster {
    pub(crate) fn init_producer_id(
        &mut self,
        request: &mut Request,
        body: InitProducerIdRequest,
    ) -> InitProducerIdResponse {
        let mut response = InitProducerIdResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code: request.injected_error(),
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        if response.error_code != ErrorCode::NONE {
            return response;
        }
        let producer = match body.transactional_id.as_deref() {
            None => self.init_idempotent(request),
            Some(id) => self.init_transactional(request, id, &body),
        };
        match producer {
            Ok(producer) => (response.producer_id, response.producer_epoch) = (producer.id, producer.epoch),
            Err(ErrorCode::PRODUCER_FENCED) if request.version < 4 => {
                response.error_code = ErrorCode::INVALID_PRODUCER_EPOCH;
            }
            Err(error) => response.error_code = error,
        }
        response
    }

    fn init_idempotent(&mut self, request: &Request) -> Result<ProducerKey, ErrorCode> {
        self.check_idempotent_write(request)?;
        Ok(ProducerKey { id: self.take_producer_id(), epoch: 0 })
    }

    fn init_transactional(
        &mut self,
        request: &mut Request,
        id: &str,
        body: &InitProducerIdRequest,
    ) -> Result<ProducerKey, ErrorCode> {
        if let Some(error) = self.injected_error(request, id, -1) {
            return Err(error);
        }
        self.check_transaction_access(request, AclOperation::Write, id)?;
        let expected = match (body.producer_id, body.producer_epoch) {
            (-1, -1) => None,
            (-1, _) | (_, -1) => return Err(ErrorCode::INVALID_REQUEST),
            (id, epoch) => Some(ProducerKey { id, epoch }),
        };
        if id.is_empty() {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        if !(1..=self.options.transaction_max_timeout_ms).contains(&body.transaction_timeout_ms) {
            return Err(ErrorCode::INVALID_TRANSACTION_TIMEOUT);
        }
        self.check_transaction_coordinator(request, id)?;
        self.initialize_transactions(id, body.transaction_timeout_ms, expected)
    }
}
