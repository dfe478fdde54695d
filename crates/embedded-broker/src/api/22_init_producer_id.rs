//! InitProducerId (22), versions 0 to 5, for idempotent producers: returns a new producer ID with epoch 0, or from
//! version 3 on the next epoch of a given ID (KIP-360). Transactional IDs are rejected: there are no transactions.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
};

use crate::{cluster::Cluster, connection::Request};

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
        match body.transactional_id.as_deref() {
            None => {
                if let Err(error_code) = self.check_idempotent_write(request) {
                    response.error_code = error_code;
                    return response;
                }
            }
            Some("") => {
                response.error_code = ErrorCode::INVALID_REQUEST;
                return response;
            }
            Some(_) => {
                response.error_code = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
                return response;
            }
        }
        if body.producer_id >= 0 && (0..i16::MAX - 1).contains(&body.producer_epoch) {
            (response.producer_id, response.producer_epoch) = (body.producer_id, body.producer_epoch + 1);
            return response;
        }
        (response.producer_id, response.producer_epoch) = (self.next_producer_id, 0);
        self.next_producer_id += 1;
        response
    }
}
