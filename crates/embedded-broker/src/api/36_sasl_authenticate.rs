//! SaslAuthenticate (36), versions 0 to 2: one message of the client in an authentication, and the broker's response.
//!
//! A refusal ends the connection. A client that authenticates again must prove the same principal.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse},
};

use crate::{
    cluster::Cluster,
    connection::{ConnectionId, Request},
    sasl::{Accepted, Answer, SaslState},
};

impl Cluster {
    pub(crate) fn sasl_authenticate(
        &mut self,
        request: &mut Request,
        body: SaslAuthenticateRequest,
    ) -> SaslAuthenticateResponse {
        let injected = request.injected_error();
        let answer = match injected {
            ErrorCode::NONE => self.answer_sasl(request.connection, &body.auth_bytes),
            code => Err((code, "an injected fault refused the authentication".to_owned())),
        };
        match answer {
            Ok((auth_bytes, session_lifetime_ms)) => {
                SaslAuthenticateResponse { auth_bytes, session_lifetime_ms, ..Default::default() }
            }
            Err((error_code, text)) => {
                if let Some(connection) = self.connection_mut(request.connection) {
                    connection.ends_after_response = true;
                }
                SaslAuthenticateResponse { error_code, error_message: Some(text), ..Default::default() }
            }
        }
    }

    /// Handles a message of the client. Returns the broker's response and the lifetime of the session in milliseconds.
    pub(crate) fn answer_sasl(
        &mut self,
        id: ConnectionId,
        message: &[u8],
    ) -> Result<(Vec<u8>, i64), (ErrorCode, String)> {
        let failed = |text: String| (ErrorCode::SASL_AUTHENTICATION_FAILED, text);
        let (now, unix_ms) = (self.now, self.unix_ms());
        let illegal = || (ErrorCode::ILLEGAL_SASL_STATE, "there was no SaslHandshake request".to_owned());
        let listener = self.sasl_for(id).cloned().ok_or_else(illegal)?;
        let listener = self.scram_listener(listener);
        let connection = self.connection_mut(id).ok_or_else(illegal)?;
        let SaslState::Running { server, before, .. } = &mut connection.sasl else { return Err(illegal()) };
        match server.handle(&listener, message, unix_ms).map_err(failed)? {
            Answer::Next(bytes) => Ok((bytes, 0)),
            Answer::Accepted(bytes, accepted) => {
                let session = listener.session(now, unix_ms, &accepted);
                let Accepted { principal, .. } = accepted;
                if before.as_ref().is_some_and(|before| *before != principal) {
                    return Err(failed("Cannot change principals during re-authentication".to_owned()));
                }
                connection.principal = Some(principal.clone());
                let until = session.map(|(_, until)| until);
                connection.sasl = SaslState::Done { principal, until };
                Ok((bytes, session.map_or(0, |(millis, _)| millis)))
            }
        }
    }
}
