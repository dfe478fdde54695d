//! Writing: turns requests into frames and writes them as the socket accepts bytes.

use std::{io::IoSlice, time::Duration};

use ottla_protocol::{api::ApiKey, header::RequestHeader};

use super::{
    Connection,
    authenticate::{Authentication, erase},
};
use crate::{
    connection::{
        inflight::{InFlight, Payload, RequestTag, SegmentedFrame},
        versions::is_telemetry,
    },
    error::{Error, ErrorKind},
    machine::Instant,
    observer::Exchange,
    stats::requests,
};

impl Connection {
    /// Queues a request; `encode` appends its body. Requires [`Connection::is_ready`].
    pub fn send(
        &mut self,
        now: Instant,
        api: ApiKey,
        version: i16,
        tag: RequestTag,
        timeout: Duration,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), ottla_protocol::primitive::EncodeError>,
    ) -> Result<(), Error> {
        #[cfg(debug_assertions)]
        assert!(
            crate::connection::versions::SENT.contains(&api),
            "{} needs a row in `SENT`, and a test in each version",
            api.name()
        );
        let correlation_id = self.next_correlation_id();
        let mut bytes = vec![0; 4];
        self.request_header(api, version, correlation_id, &mut bytes);
        encode(&mut bytes).map_err(|error| {
            Error::new(ErrorKind::Bug, format!("can't encode {} v{version}: {error}", api.name()))
        })?;
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        self.push(now, api, version, tag, Payload::Bytes(bytes), correlation_id, true, timeout);
        Ok(())
    }

    /// Queues a ProduceRequest. `build` gets the start of the frame: room for the length, and the header.
    pub fn send_produce<E>(
        &mut self,
        now: Instant,
        version: i16,
        expects_response: bool,
        timeout: Duration,
        build: impl FnOnce(Vec<u8>) -> Result<Box<dyn SegmentedFrame>, E>,
    ) -> Result<(), E> {
        let correlation_id = self.next_correlation_id();
        let mut bytes = vec![0; 4];
        self.request_header(ApiKey::Produce, version, correlation_id, &mut bytes);
        let payload = Payload::Segments(build(bytes)?);
        let tag = RequestTag::Produce;
        self.push(now, ApiKey::Produce, version, tag, payload, correlation_id, expects_response, timeout);
        Ok(())
    }

    /// Fills `slices` with the bytes to write next.
    pub fn unsent<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.in_flight.fill(slices)
    }

    /// Accepts that the socket took `n` bytes; moves completely written requests that expect no response to `over`.
    pub fn handle_written(&mut self, now: Instant, n: usize, over: &mut Vec<InFlight>) {
        self.last_activity = now;
        let (before, over_before) = (self.in_flight.written(), over.len());
        self.in_flight.advance(now, n, over);
        let counters = &mut *self.counters;
        counters.sent_bytes += n as i64;
        counters.sent_at = Some(now);
        let written = self.in_flight.iter().take(self.in_flight.written()).skip(before);
        for request in written.chain(&over[over_before..]) {
            counters.sent += 1;
            *counters.requests.entry(requests::name(request.api)).or_default() += 1;
            counters.to_write.record_micros(now.saturating_since(request.queued_at));
        }
        if let Some(observer) = &self.settings.observer {
            let written = self.in_flight.iter().take(self.in_flight.written()).skip(before);
            for request in written.chain(&over[over_before..]) {
                observer.request_sent(&self.peer(), &exchange(request, request.payload.len()));
            }
        }
        if over.len() > over_before {
            // The last message of Kerberos to an old broker, which has no response.
            over[over_before..].iter_mut().for_each(erase);
            over.retain(|request| request.tag != RequestTag::Sasl);
        }
    }

    pub(super) fn next_correlation_id(&mut self) -> i32 {
        let id = self.next_correlation_id;
        self.next_correlation_id = self.next_correlation_id.checked_add(1).unwrap_or(1);
        id
    }

    pub(super) fn request_header(&self, api: ApiKey, version: i16, correlation_id: i32, out: &mut Vec<u8>) {
        let mut header = RequestHeader {
            api_key: api as i16,
            api_version: version,
            correlation_id,
            client_id: Some(self.settings.client_id.clone()),
        };
        // Only a client ID above 32,767 bytes can't be encoded; the client ID is optional.
        if header.encode(out).is_err() {
            header.client_id = None;
            let _ = header.encode(out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one struct, from two callers")]
    pub(super) fn push(
        &mut self,
        now: Instant,
        api: ApiKey,
        version: i16,
        tag: RequestTag,
        payload: Payload,
        correlation_id: i32,
        expects_response: bool,
        timeout: Duration,
    ) {
        if is_telemetry(api) {
            if self.in_flight.is_empty() {
                self.active_before_telemetry = Some(self.last_activity);
            }
        } else {
            self.active_before_telemetry = None;
            self.was_used |= api != ApiKey::ApiVersions && tag != RequestTag::Sasl;
        }
        if let Authentication::Done(session) = &mut self.authentication {
            session.was_used = true;
        }
        self.in_flight.push(InFlight {
            correlation_id,
            api,
            version,
            tag,
            payload,
            expects_response,
            queued_at: now,
            written_at: now,
            timeout,
        });
    }
}

pub(super) const fn exchange(request: &InFlight, size: usize) -> Exchange {
    Exchange { api: request.api, version: request.version, correlation_id: request.correlation_id, size }
}
