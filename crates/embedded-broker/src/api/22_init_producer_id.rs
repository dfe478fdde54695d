//! InitProducerId (22), versions 0 to 5, for idempotent producers: a new id with epoch 0, or from version 3 on the next
//! epoch of the id that is given (KIP-360). Transactional ids are refused: there are no transactions.

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
        let mut answer = InitProducerIdResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code: request.injected_error(),
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        if answer.error_code != ErrorCode::NONE {
            return answer;
        }
        match body.transactional_id.as_deref() {
            None => {}
            Some("") => {
                answer.error_code = ErrorCode::INVALID_REQUEST;
                return answer;
            }
            Some(_) => {
                answer.error_code = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
                return answer;
            }
        }
        if body.producer_id >= 0 && (0..i16::MAX - 1).contains(&body.producer_epoch) {
            (answer.producer_id, answer.producer_epoch) = (body.producer_id, body.producer_epoch + 1);
            return answer;
        }
        (answer.producer_id, answer.producer_epoch) = (self.next_producer_id, 0);
        self.next_producer_id += 1;
        answer
    }
}
