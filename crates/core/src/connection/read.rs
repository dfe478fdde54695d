//! Reading: turns frames into responses and matches each to its request.

use ottla_protocol::{api::ApiKey, header::ResponseHeader, primitive::Reader};

use super::{Connection, Response, State, exchange};
use crate::{
    connection::{
        frame::{Frame, FrameError},
        inflight::RequestTag,
    },
    error::{Error, ErrorKind},
    machine::Instant,
};

/// The size of the length prefix of a frame.
const LENGTH_BYTES: usize = 4;

impl Connection {
    /// Returns the buffer that the driver reads the next bytes into.
    pub fn read_space(&mut self) -> &mut [u8] {
        self.incoming.space()
    }

    /// Accepts `n` bytes that the driver read into [`Connection::read_space`]; call [`Connection::next_response`] until
    /// `None`.
    pub fn handle_read(&mut self, now: Instant, n: usize) {
        self.last_activity = now;
        self.counters.received_bytes += n as i64;
        self.counters.received_at = Some(now);
        self.incoming.filled(n);
    }

    /// Returns the next response if one is complete. An error closes the connection.
    pub fn next_response(&mut self, now: Instant) -> Option<Response> {
        loop {
            if !matches!(self.state, State::Asking | State::Authenticating | State::Ready) {
                return None;
            }
            let frame = match self.incoming.next_frame() {
                Ok(frame) => frame?,
                Err(error) => {
                    let kind = match error {
                        FrameError::Http | FrameError::Tls => ErrorKind::NotKafka,
                        _ if !self.has_response => ErrorKind::NotKafka,
                        _ => ErrorKind::BadResponse,
                    };
                    self.fail(now, Error::new(kind, error.to_string()));
                    return None;
                }
            };
            let matched = self.match_response(frame);
            if let Ok(response) = &matched {
                self.count_response(now, &response.request, response.frame.len);
                if let Some(observer) = &self.settings.observer {
                    let round_trip = now.saturating_since(response.request.written_at);
                    let size = LENGTH_BYTES + response.frame.len;
                    observer.response_received(&self.peer(), &exchange(&response.request, size), round_trip);
                }
            }
            match matched {
                Ok(response) if response.request.tag == RequestTag::Versions => {
                    self.handle_versions(now, &response);
                }
                Ok(response) if response.request.tag == RequestTag::Sasl => {
                    self.handle_authentication(now, response);
                }
                Ok(response) => {
                    self.has_response = true;
                    self.handle_telemetry_response(response.request.api);
                    self.has_served = true;
                    return Some(response);
                }
                Err(error) => {
                    self.fail(now, error);
                    return None;
                }
            }
        }
    }

    pub(super) fn match_response(&mut self, frame: Frame) -> Result<Response, Error> {
        let bytes = &frame.bytes[..frame.len];
        let kind = if self.has_response { ErrorKind::BadResponse } else { ErrorKind::NotKafka };
        let Some(expected) = self.in_flight.front() else {
            self.counters.unexpected_responses += 1;
            return Err(Error::new(kind, "a response that matches no request"));
        };
        if self.authentication.is_raw() && expected.api == ApiKey::SaslAuthenticate {
            let Some(request) = self.in_flight.pop_written() else {
                return Err(Error::new(kind, "a message of SASL out of turn"));
            };
            return Ok(Response { request, frame, body: 0 });
        }
        let mut reader = Reader::new(bytes);
        let header = ResponseHeader::decode(&mut reader, expected.api, expected.version)
            .map_err(|error| Error::new(kind, format!("the response header can't be decoded: {error}")))?;
        if header.correlation_id != expected.correlation_id {
            let detail = format!(
                "correlation id {} where {} was expected",
                header.correlation_id, expected.correlation_id
            );
            return Err(Error::new(kind, detail).with_api(expected.api.name()));
        }
        let body = reader.position();
        let Some(request) = self.in_flight.pop_written() else {
            return Err(Error::new(kind, "a response to a request that was not sent yet"));
        };
        Ok(Response { request, frame, body })
    }
}
