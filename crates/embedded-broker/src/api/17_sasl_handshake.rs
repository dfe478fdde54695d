//! SaslHandshake (17), versions 0 and 1: chooses the mechanism. After version 0 the client sends its messages without
//! headers.
//!
//! A listener without SASL returns ILLEGAL_SASL_STATE, as Kafka does. For an unknown mechanism, it returns the list of
//! available ones and closes the connection.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::sasl_handshake::{SaslHandshakeRequest, SaslHandshakeResponse},
};

use crate::{cluster::Cluster, connection::Request, sasl::SaslState};

impl Cluster {
    pub(crate) fn sasl_handshake(
        &mut self,
        request: &mut Request,
        body: SaslHandshakeRequest,
    ) -> SaslHandshakeResponse {
        let Some(listener) = self.sasl_for(request.connection).cloned() else {
            let error_code = ErrorCode::ILLEGAL_SASL_STATE;
            return SaslHandshakeResponse { error_code, ..Default::default() };
        };
        let nonce = format!("{:016x}", self.random.next_u64());
        let mut response =
            SaslHandshakeResponse { error_code: request.injected_error(), mechanisms: listener.names() };
        let server = listener.server(&body.mechanism, nonce);
        if response.error_code == ErrorCode::NONE && server.is_none() {
            response.error_code = ErrorCode::UNSUPPORTED_SASL_MECHANISM;
        }
        let Some(connection) = self.connection_mut(request.connection) else { return response };
        match server {
            Some(server) if response.error_code == ErrorCode::NONE => {
                let before = match std::mem::take(&mut connection.sasl) {
                    SaslState::Done { principal, .. } => Some(principal),
                    _ => None,
                };
                connection.sasl = SaslState::Running { server, is_raw: request.version == 0, before };
            }
            _ => connection.ends_after_response = true,
        }
        response
    }
}
