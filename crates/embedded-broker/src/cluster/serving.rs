//! Serving requests: from the frames in a connection's inbox to the response.

use ottla_protocol::{api::ApiKey, header::RequestHeader, primitive::Reader};

use super::{Cluster, LateRequest, Output, RequestRecord, Timer, count};
use crate::{
    api,
    connection::{ConnectionId, Pending, Request, Waiter},
    faults::Struck,
    frame::{Frame, FrameWriter},
    inbox::{FrameBytes, Inbox},
    sasl::SaslState,
};

impl Cluster {
    /// Parks a request. Its response is sent with [`send_response`](Self::send_response).
    pub(crate) fn wait(&mut self, pending: Pending) {
        let id = pending.request().connection;
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.pending = Some(pending);
            self.end_wait(id);
        }
    }

    /// Returns the request of `waiter`, if it still waits.
    pub(crate) fn pending_mut(&mut self, waiter: Waiter) -> Option<&mut Pending> {
        let pending = self.connections.get_mut(&waiter.connection)?.pending.as_mut()?;
        (pending.request().number == waiter.request).then_some(pending)
    }

    /// Ends the wait of the request of `waiter`, and returns the request.
    pub(crate) fn take_pending(&mut self, waiter: Waiter) -> Option<Pending> {
        self.pending_mut(waiter)?;
        let pending = self.connections.get_mut(&waiter.connection)?.pending.take();
        self.continue_with(waiter.connection);
        pending
    }

    /// Sends the response to a request, subject to the faults injected into it.
    pub(crate) fn send_response(&mut self, request: &Request, response: FrameWriter) {
        self.continue_with(request.connection);
        if request.struck.lose_response {
            self.close(request.connection, "an injected fault dropped the response");
            return;
        }
        let Some(broker) = self.brokers.get(&request.broker) else { return };
        let delay = broker.latency.max(request.struck.delay);
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&request.connection) else { return };
        connection.closing |= std::mem::take(&mut connection.ends_after_response);
        if request.struck.never_respond {
            connection.mute = true;
            return;
        }
        self.note_traffic(request, true);
        self.throttle(request);
        let Some(connection) = self.connections.get_mut(&request.connection) else { return };
        let mut frame = response.finish();
        if let Some(bytes) = &request.struck.replace {
            frame = Frame::from_raw(bytes.clone());
        }
        if let Some(len) = request.struck.truncate {
            frame = frame.truncated(len);
            connection.closing = true;
        }
        let due = connection.outbox.back().map_or(now, |(due, _)| *due).max(now + delay);
        if due <= now && connection.outbox.is_empty() && !connection.closing {
            connection.untaken += frame.len();
            self.outputs.push_back(Output::Send { connection: request.connection, frame });
            return;
        }
        connection.outbox.push_back((due, frame));
        self.timers.set(due, Timer::Deliver(request.connection));
    }

    /// Handles no further request of a connection during the throttle time of its last one.
    pub(crate) fn throttle(&mut self, request: &Request) {
        let mute_time = request.mute_time();
        if let Some(connection) = self.connections.get_mut(&request.connection)
            && !mute_time.is_zero()
        {
            let until = self.now + mute_time;
            connection.throttled_until = connection.throttled_until.max(Some(until));
            self.timers.set(until, Timer::Unthrottle(request.connection));
        }
    }

    /// Queues the connection, so that its next requests are handled.
    pub(crate) fn continue_with(&mut self, connection: ConnectionId) {
        if let Some(state) = self.connections.get_mut(&connection)
            && !state.ready
        {
            state.ready = true;
            self.ready.push_back(connection);
        }
    }

    /// Handles the requests of all queued connections.
    pub(crate) fn run(&mut self) {
        loop {
            let Some(id) = self.ready.pop_front() else {
                if self.finish_satisfied() {
                    continue;
                }
                return;
            };
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            connection.ready = false;
            let mut inbox = std::mem::replace(&mut connection.inbox, Inbox::new());
            let handled = self.handle_frames(id, &mut inbox);
            let now = self.now;
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.unfinished_since = match connection.unfinished_since {
                    _ if inbox.is_empty() => None,
                    Some(since) if !handled => Some(since),
                    _ => Some(now),
                };
                connection.inbox = inbox;
                count(&mut self.request_bytes, connection);
            }
        }
    }

    /// Handles the complete frames of a connection that is not busy. Returns true if there were any.
    fn handle_frames(&mut self, id: ConnectionId, inbox: &mut Inbox) -> bool {
        let mut handled = false;
        while self.connections.get(&id).is_some_and(|connection| !connection.is_busy()) {
            let frame = match inbox.next_frame(self.options.max_request_bytes) {
                Ok(None) => return handled,
                Ok(Some(frame)) => frame,
                Err(_) => {
                    self.close(id, "the client sent a frame of a negative or too large length");
                    return handled;
                }
            };
            handled = true;
            match self.handle_frame(id, frame) {
                Ok(None) => {}
                Ok(Some(unused)) => inbox.recycle(unused),
                Err(reason) => {
                    self.close(id, reason);
                    return handled;
                }
            }
        }
        handled
    }

    /// Handles one request. Returns an owned buffer of which no part is retained.
    fn handle_frame(
        &mut self,
        id: ConnectionId,
        frame: FrameBytes<'_>,
    ) -> Result<Option<bytes::BytesMut>, &'static str> {
        let Some(broker) = self.connections.get(&id).map(|connection| connection.broker) else {
            return Ok(None);
        };
        let bytes = frame.as_slice();
        if self.handle_raw_sasl(id, bytes)? {
            return Ok(frame.into_unused());
        }
        let Some(fixed) = bytes.first_chunk::<8>() else {
            return Err("the client sent an incomplete request header");
        };
        let key = i16::from_be_bytes([fixed[0], fixed[1]]);
        let version = i16::from_be_bytes([fixed[2], fixed[3]]);
        let correlation_id = i32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
        let Some(api) = ApiKey::from_i16(key) else {
            return Err("the client sent a request of an unknown API");
        };
        let mut request = Request {
            number: self.next_request,
            connection: id,
            broker,
            api,
            version,
            correlation_id,
            client_id: None,
            struck: Struck::default(),
            quota_throttle: std::time::Duration::ZERO,
        };
        self.next_request += 1;
        self.note_traffic(&request, false);
        if self.is_recording {
            self.request_log.push(RequestRecord {
                at: self.now,
                broker,
                connection: id,
                api,
                version,
                correlation_id,
            });
        }
        self.check_authentication(id, api)?;
        let served = api::served_versions(&self.brokers[&broker], key);
        let is_served = served.is_some_and(|(min, max)| (min..=max).contains(&version));
        let has_error_response = api == ApiKey::ApiVersions && served.is_some();
        if !is_served && !has_error_response {
            return Err("the client sent a request of an API or version that is not served");
        }
        self.faults.strike_request(api, broker, &mut request.struck);
        if request.struck.close {
            return Err("a fault closed the connection");
        }
        if !is_served {
            self.unsupported_api_versions(&request);
            return Ok(frame.into_unused());
        }
        let mut reader = Reader::new(bytes);
        let Ok(header) = RequestHeader::decode(&mut reader) else {
            return Err("the client sent a request header that can't be decoded");
        };
        request.client_id = header.client_id;
        self.charge_request(&mut request);
        let at = reader.position();
        if let Some(delay) = request.struck.late.take() {
            let number = request.number;
            let late = LateRequest { request, frame: frame.as_slice().to_vec(), body_at: at };
            self.late.insert(number, late);
            self.timers.set(self.now + delay, Timer::DeliverLate(number));
            return Err("a fault delays the request beyond its connection");
        }
        self.dispatch(request, frame, at).map_err(|_| "the client sent a request that can't be decoded")
    }

    /// Checks that the client may send a request of this API. Error: why its connection ends.
    fn check_authentication(&mut self, id: ConnectionId, api: ApiKey) -> Result<(), &'static str> {
        let now = self.now;
        let Some(connection) = self.connections.get(&id).filter(|_| self.sasl_for(id).is_some()) else {
            return Ok(());
        };
        match (&connection.sasl, api) {
            (SaslState::None, ApiKey::ApiVersions | ApiKey::SaslHandshake) => Ok(()),
            (SaslState::None, _) => Err("the client sent a request before it authenticated"),
            (SaslState::Running { .. }, ApiKey::SaslAuthenticate) => Ok(()),
            (SaslState::Running { .. }, _) => Err("the client sent a request during its authentication"),
            (SaslState::Done { .. }, ApiKey::SaslHandshake) => Ok(()),
            (SaslState::Done { until: Some(until), .. }, _) if *until <= now => {
                Err("the client sent a request after the end of its session")
            }
            (SaslState::Done { .. }, _) => Ok(()),
        }
    }

    /// Handles a frame as a message of SASL without a header, after a handshake of version 0. Returns false if it is a
    /// request.
    fn handle_raw_sasl(&mut self, id: ConnectionId, bytes: &[u8]) -> Result<bool, &'static str> {
        let Some(connection) = self.connections.get(&id) else { return Ok(false) };
        if !matches!(connection.sasl, SaslState::Running { is_raw: true, .. }) {
            return Ok(false);
        }
        let (answer, _) = self.answer_sasl(id, bytes).map_err(|_| "the client was refused")?;
        let mut writer = FrameWriter::new();
        writer.buffer.extend_from_slice(&answer);
        let frame = writer.finish();
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.untaken += frame.len();
        }
        self.outputs.push_back(Output::Send { connection: id, frame });
        Ok(true)
    }

    /// Handles a request whose connection is closed. There is no response.
    pub(super) fn deliver_late(&mut self, number: u64) {
        let Some(LateRequest { request, mut frame, body_at }) = self.late.remove(&number) else { return };
        if self.brokers.get(&request.broker).is_some_and(|broker| broker.alive) {
            // A body that can't be decoded changes nothing, and there is no connection to close.
            let _ = self.dispatch(request, FrameBytes::Borrowed(&mut frame), body_at);
        }
    }

    /// Sends the delayed responses that are due.
    pub(super) fn deliver(&mut self, id: ConnectionId) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        while connection.outbox.front().is_some_and(|(due, _)| *due <= now) {
            let (_, frame) = connection.outbox.pop_front().expect("the queue has a first response");
            connection.untaken += frame.len();
            self.outputs.push_back(Output::Send { connection: id, frame });
        }
        if connection.closing && connection.outbox.is_empty() {
            self.close(id, "a fault closed the connection");
        } else {
            self.continue_with(id);
        }
    }

    /// Handles the requests of a connection again whose throttle time has passed.
    pub(super) fn unthrottle(&mut self, id: ConnectionId) {
        let now = self.now;
        let connection = self.connections.get_mut(&id);
        if connection
            .and_then(|connection| connection.throttled_until.take_if(|until| *until <= now))
            .is_some()
        {
            self.continue_with(id);
        }
    }

    /// Responds to a request whose maximum wait time has passed.
    pub(super) fn expire(&mut self, waiter: Waiter) {
        match self.take_pending(waiter) {
            Some(Pending::Fetch(pending)) => self.finish_fetch(pending),
            Some(Pending::Produce(pending)) => self.finish_produce(pending),
            Some(Pending::Admission(pending)) => self.produce_again(pending),
            Some(Pending::ShareFetch(pending)) => self.finish_share_fetch(pending),
            Some(Pending::Group(_)) | None => {}
        }
    }
}
