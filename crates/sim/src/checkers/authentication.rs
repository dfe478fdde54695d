//! The order of the requests of an authentication on one connection.
//!
//! The first one goes step by step. A re-authentication may send SaslHandshake and the first message together, and other
//! requests behind the client's last message.

use ottla_protocol::{
    api::ApiKey, generated::sasl_handshake::SaslHandshakeRequest, header::RequestHeader, primitive::Reader,
};

/// The authentications of a connection.
#[derive(Debug, Default)]
pub(super) struct Authentication {
    /// The number of handshakes.
    handshakes: u64,
    /// The messages that the client has to send before other requests; none if it has to wait for each response.
    last: Option<u32>,
    /// The messages sent since the handshake.
    sent: u32,
}

impl Authentication {
    /// Checks a request behind requests of SASL without a response; `open` is their number.
    pub(super) fn check(&mut self, api: ApiKey, open: usize, frame: &[u8]) -> Result<(), String> {
        match api {
            ApiKey::SaslHandshake => {
                self.handshakes += 1;
                self.sent = 0;
                self.last = match mechanism(frame)?.as_str() {
                    "PLAIN" => Some(1),
                    "SCRAM-SHA-256" | "SCRAM-SHA-512" => Some(2),
                    _ => None,
                };
                if open > 0 {
                    return Err("begins an authentication before the end of the last one".to_owned());
                }
            }
            ApiKey::SaslAuthenticate => {
                self.sent += 1;
                if open > 0 && !(self.is_again() && open == 1 && self.sent == 1) {
                    return Err("sends a message of SASL before the response to the last one".to_owned());
                }
            }
            _ => {
                let has_sent_last = self.last.is_some_and(|last| self.sent >= last);
                if open > 0 && !(self.is_again() && has_sent_last) {
                    return Err(format!("sends {} during an authentication", api.name()));
                }
            }
        }
        Ok(())
    }

    /// Returns true if the current authentication is not the first one.
    pub(super) const fn is_again(&self) -> bool {
        self.handshakes > 1
    }
}

/// Returns the mechanism of a SaslHandshake request.
fn mechanism(frame: &[u8]) -> Result<String, String> {
    let reader = &mut Reader::new(frame);
    let header = RequestHeader::decode(reader).map_err(|error| error.to_string())?;
    let request = SaslHandshakeRequest::decode(reader, header.api_version);
    request.map(|request| request.mechanism).map_err(|error| error.to_string())
}
