//! Timeouts of connection setup, of requests, and of idle connections.

use ottla_protocol::api::ApiKey;

use super::{Connection, ConnectionOutput, State, exchange};
use crate::{
    connection::{inflight::Overdue, versions::is_telemetry},
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
};

impl Connection {
    /// Handles the timeouts that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.throttled_until.is_some_and(|until| until <= now) {
            self.throttled_until = None;
        }
        match self.state {
            State::BackingOff { until } if until <= now => {
                if self.is_needed {
                    self.start(now);
                } else {
                    self.state = State::Idle;
                }
            }
            State::Resolving { deadline } if deadline <= now => {
                self.fail(now, self.setup_error(ErrorKind::Resolve, "the resolver did not respond in time"));
            }
            State::Connecting { deadline } if deadline <= now => {
                self.is_address_silent = self.addresses.len() > 1;
                if !self.connect_another(now) {
                    let detail = format!("no connection after {} ms", self.setup_timeout().as_millis());
                    self.fail(now, self.setup_error(ErrorKind::Connect, &detail));
                }
            }
            State::Tunnelling { deadline } if deadline <= now => {
                let limit = self.setup_timeout().as_millis();
                let reason = format!(
                    "no connection to the broker after {limit} ms (socket.connection.setup.timeout.ms), because the proxy does not \
                     answer or waits for the broker"
                );
                self.fail(now, self.setup_error(ErrorKind::Proxy, &reason));
            }
            State::Securing { deadline } if deadline <= now => {
                let limit = self.setup_timeout().as_millis();
                let detail = format!(
                    "no TLS handshake after {limit} ms (socket.connection.setup.timeout.ms); a plaintext listener may \
                     wait for more bytes: check the port and security.protocol"
                );
                self.fail(now, Error::new(ErrorKind::Tls, detail));
            }
            State::Asking | State::Authenticating | State::Ready => {
                if let Some(Overdue { api, since, unsent }) = self.in_flight.overdue(now) {
                    let waited = (now - since).as_millis();
                    let detail = if unsent {
                        format!("the request could not be written: the peer took no byte for {waited} ms")
                    } else {
                        format!("no response for {waited} ms")
                    };
                    let error = Error::new(ErrorKind::RequestTimedOut, detail).with_api(api.name());
                    if unsent || !self.give_up_overdue(now, &error) {
                        self.fail(now, error);
                    }
                } else if let Some(idle_at) = self.idle_at()
                    && idle_at <= now
                {
                    self.counters.disconnects += 1;
                    let idle = (now - self.last_activity).as_millis();
                    let cause =
                        format_args!("Connection max idle time exceeded ({idle}ms since last activity)");
                    self.become_idle(false, &cause);
                } else {
                    self.handle_authentication_timeout(now);
                }
            }
            _ => {}
        }
    }

    /// Returns when to call [`Connection::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Idle | State::AwaitingToken => None,
            State::BackingOff { until } => Some(until),
            State::Resolving { deadline }
            | State::Connecting { deadline }
            | State::Tunnelling { deadline }
            | State::Securing { deadline } => Some(deadline),
            State::Asking | State::Authenticating | State::Ready => {
                let idle_or_sending = earliest(self.idle_at(), self.throttled_until);
                let authentication =
                    self.authentication.poll_timeout(self.last_activity, self.throttled_until);
                let idle_or_sending = earliest(idle_or_sending, authentication);
                earliest(self.in_flight.earliest_deadline(), idle_or_sending)
            }
        }
    }

    /// Gives up the requests that are overdue, and keeps the connection. Returns false if the connection is to be closed:
    /// `socket.max.fails` requests in a row have timed out, or the connection is not ready.
    fn give_up_overdue(&mut self, now: Instant, error: &Error) -> bool {
        let limit = self.settings.max_timeouts;
        if limit == 1 || !self.is_ready() || self.authentication.is_running() {
            return false;
        }
        self.timeouts_in_a_row = self.timeouts_in_a_row.saturating_add(1);
        if limit > 0 && self.timeouts_in_a_row >= limit {
            return false;
        }
        while let Some(request) = self.in_flight.give_up_overdue(now) {
            self.counters.timeouts += 1;
            if let Some(observer) = &self.settings.observer {
                let lost = exchange(&request, request.payload.len());
                observer.response_lost(&self.peer(), &lost, ErrorKind::RequestTimedOut);
            }
            let error = error.clone().with_peer(self.name());
            self.outputs.push_back(ConnectionOutput::TimedOut { error, request });
        }
        true
    }

    /// Restores the time of the last activity after a response about client metrics, which does not keep an idle
    /// connection open.
    pub(super) fn handle_telemetry_response(&mut self, api: ApiKey) {
        if is_telemetry(api)
            && self.in_flight.is_empty()
            && let Some(at) = self.active_before_telemetry.take()
        {
            self.last_activity = at;
        }
    }

    pub(super) fn idle_at(&self) -> Option<Instant> {
        let max_idle = self.settings.max_idle?;
        // A connection that authenticates may wait for the end of a throttle time, with nothing in flight.
        let is_quiet = self.is_ready() && self.in_flight.is_empty() && !self.authentication.is_holding();
        is_quiet.then(|| self.last_activity + max_idle)
    }
}
