//! The state machine of a [`Connection`]: resolving, connecting, negotiating API versions, ready, and backing off.

use core::net::SocketAddr;
use std::{fmt, sync::Arc, time::Duration};

use ottla_protocol::api::ApiKey;

use super::{
    Connection, ConnectionOutput,
    authenticate::{self, Authentication},
    exchange,
};
use crate::{
    config::ProxyUrl,
    connection::{inflight::InFlight, versions::Versions},
    error::{Error, ErrorKind},
    machine::Instant,
    states::See,
};

/// The number of connections in a row that a broker closes on ApiVersions before `broker.version.fallback` is assumed.
const GUESS_AFTER: u32 = 3;

/// The time for an address in the first passes over the addresses of a host that has several: a silent one must not
/// delay the others. The last pass has the time of the connection setup.
const QUICK_PASSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// A connection that is closed after this time without traffic was idle and did not fail. Brokers and load balancers wait
/// at least this long before they close idle connections.
const QUIET: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    BackingOff { until: Instant },
    Resolving { deadline: Instant },
    Connecting { deadline: Instant },
    Tunnelling { deadline: Instant },
    Securing { deadline: Instant },
    AwaitingToken,
    Asking,
    Authenticating,
    Ready,
}

impl Connection {
    /// Shows the states of the connection and of its authentication.
    pub(crate) fn states(&self, see: &mut See<'_>) {
        see("connection", 0, &self.state);
        see("authentication", 0, &self.authentication);
    }

    /// Connects because there is something to send, unless connected, connecting or backing off.
    pub fn want(&mut self, now: Instant) {
        self.is_needed = true;
        if self.state == State::Idle {
            self.start(now);
        }
    }

    /// Changes the broker's address.
    pub fn set_address(&mut self, now: Instant, host: &str, port: u16) {
        if self.host == host && self.port == port {
            return;
        }
        host.clone_into(&mut self.host);
        self.port = port;
        self.addresses.clear();
        self.resolved_at = None;
        match self.state {
            State::Idle | State::AwaitingToken => {}
            State::BackingOff { .. } => self.state = State::BackingOff { until: now },
            _ => self.fail(now, Error::new(ErrorKind::Disconnected, "the broker's address changed")),
        }
    }

    /// Sets the ID of the only cluster that may be on the other end. A connection that was made for another one ends (KIP-1242).
    pub fn set_cluster_id(&mut self, now: Instant, id: Arc<str>) {
        let known = self.cluster_id.replace(Arc::clone(&id));
        let is_other = known.is_some_and(|known| known != id);
        if is_other && matches!(self.state, State::Asking | State::Authenticating | State::Ready) {
            let detail = format!("the bootstrap servers lead to another cluster, \"{id}\"");
            self.fail(now, Error::new(ErrorKind::Disconnected, detail));
        }
    }

    /// Discards the resolved addresses, and reconnects if there is a connection.
    pub fn reconnect(&mut self, now: Instant) {
        self.addresses.clear();
        self.resolved_at = None;
        if matches!(self.state, State::Asking | State::Authenticating | State::Ready) {
            let detail = "starting again from the bootstrap servers";
            self.fail(now, Error::new(ErrorKind::Disconnected, detail));
        }
        self.want(now);
        if let State::BackingOff { .. } = self.state {
            self.state = State::BackingOff { until: now };
        }
    }

    /// Handles the addresses of the host, or the error if it could not be resolved.
    pub fn handle_resolved(&mut self, now: Instant, result: Result<Vec<SocketAddr>, String>) {
        let State::Resolving { .. } = self.state else { return };
        match result {
            Ok(addresses) if !addresses.is_empty() => {
                // Keep the position in the list if it did not change, so that a dead first address is not retried
                // first.
                if !(self.addresses.len() == addresses.len()
                    && addresses.iter().all(|address| self.addresses.contains(address)))
                {
                    self.addresses = addresses.into();
                }
                self.resolved_at = Some(now);
                self.connect_first(now);
            }
            Ok(_) => {
                let reason = format!("{} has no address", self.contact().0);
                self.fail(now, self.setup_error(ErrorKind::Resolve, &reason));
            }
            Err(reason) => self.fail(now, self.setup_error(ErrorKind::Resolve, &reason)),
        }
    }

    /// Handles the established TCP connection to the proxy, which the driver asks for a connection to the broker.
    pub fn handle_tunnelling(&mut self, now: Instant) {
        let State::Connecting { deadline } = self.state else { return };
        self.last_activity = now;
        self.state = State::Tunnelling { deadline: self.handshake_deadline(now, deadline) };
    }

    /// Handles the established TCP connection on which the driver begins a TLS handshake.
    pub fn handle_securing(&mut self, now: Instant) {
        let deadline = match self.state {
            State::Connecting { deadline } => self.handshake_deadline(now, deadline),
            State::Tunnelling { deadline } => deadline,
            _ => return,
        };
        self.last_activity = now;
        self.state = State::Securing { deadline };
    }

    /// Returns the deadline of the handshakes on a connection that was to be made until `deadline`: the time for one of several
    /// addresses is too short for them.
    fn handshake_deadline(&self, now: Instant, deadline: Instant) -> Instant {
        if self.addresses.len() > 1 { now + self.setup_timeout() } else { deadline }
    }

    /// Handles the established connection: TCP, and TLS if the driver uses it.
    pub fn handle_connected(&mut self, now: Instant) {
        let (State::Connecting { .. } | State::Tunnelling { .. } | State::Securing { .. }) = self.state
        else {
            return;
        };
        self.last_activity = now;
        self.untried_addresses = 0;
        self.has_response = false;
        self.has_served = false;
        self.incoming.reset();
        let has_given_up = self.closed_while_asking >= GUESS_AFTER;
        if has_given_up {
            self.closed_while_asking = 0;
            self.guess_until = now + self.settings.fallback_for;
        }
        let fallback = Versions::of_release(self.settings.fallback_release);
        // A release that has ApiVersions is asked in any case: a newer broker may have dropped that release's versions
        // of other APIs.
        let is_asked = self.settings.ask_versions || fallback.pick_any(ApiKey::ApiVersions).is_some();
        if !is_asked || has_given_up || now < self.guess_until {
            self.versions = fallback;
            self.state = State::Authenticating;
            self.authenticate(now);
            return;
        }
        self.state = State::Asking;
        self.ask_versions(now, *ApiKey::ApiVersions.versions().end());
    }

    /// Handles a socket that was closed or could not be opened.
    pub fn handle_closed(&mut self, now: Instant, reason: &str) {
        match self.state {
            State::Connecting { .. } => {
                if !self.connect_another(now) {
                    self.fail(now, self.setup_error(ErrorKind::Connect, reason));
                }
            }
            State::Tunnelling { .. } => self.fail(now, self.setup_error(ErrorKind::Proxy, reason)),
            State::Securing { .. } => {
                let detail = format!(
                    "{reason}, during the TLS handshake; a plaintext listener does that, and a broker that stops: check the \
                     port and security.protocol, and the broker's log{}",
                    self.proxy_between()
                );
                self.fail(now, Error::new(ErrorKind::Tls, detail));
            }
            State::Asking => {
                // A broker before 0.10 closes the connection on an unknown request; a network failure looks the same.
                if !self.has_versions {
                    self.closed_while_asking += 1;
                }
                let detail = format!(
                    "{reason}, while asking for the broker's API versions; a broker before 0.10 does that, \
                     and so does a listener that wants TLS{}",
                    self.proxy_between()
                );
                self.fail(now, Error::new(ErrorKind::Disconnected, detail));
            }
            State::Authenticating => {
                let detail = format!(
                    "{reason}, during the authentication; see the broker's log, and check sasl.mechanisms and the \
                     credentials"
                );
                self.fail(now, Error::new(ErrorKind::Disconnected, detail));
            }
            // A connection that is closed within `QUIET` has failed.
            State::Ready if self.in_flight.is_empty() && now - self.last_activity >= QUIET => {
                // The broker may also be down, which would stay unnoticed until the next request. One attempt is
                // enough: a broker that closes an unused connection again is alive.
                let looks_again = self.was_used;
                self.become_idle(looks_again, &format_args!("{reason}, while the connection was idle"));
                if looks_again {
                    self.want(now);
                }
            }
            State::Ready if !self.has_served && self.settings.sasl.is_none() => {
                let detail = format!(
                    "{reason}, before the first response; a listener that requires SASL does that: check security.protocol"
                );
                self.fail(now, Error::new(ErrorKind::Disconnected, detail));
            }
            State::Ready => self.fail(now, Error::new(ErrorKind::Disconnected, reason)),
            State::Idle | State::BackingOff { .. } | State::AwaitingToken | State::Resolving { .. } => {}
        }
    }

    /// Handles a connection that the driver gives up for this reason, and closes it.
    pub fn handle_failed(&mut self, now: Instant, error: Error) {
        if self.has_socket() {
            self.fail(now, error);
        }
    }

    /// Closes the connection because the broker actor found a protocol violation.
    pub fn handle_misbehaviour(&mut self, now: Instant, error: Error) {
        if matches!(self.state, State::Asking | State::Authenticating | State::Ready) {
            self.fail(now, error);
        }
    }

    /// Stops connecting because another broker responded first. A connection that is ready stays if it was used.
    pub fn stop_connecting(&mut self, now: Instant) {
        self.is_needed = false;
        match self.state {
            State::Idle | State::BackingOff { .. } => {}
            State::AwaitingToken => self.state = State::Idle,
            State::Ready if self.was_used || !self.in_flight.is_empty() => {}
            State::Resolving { .. }
            | State::Connecting { .. }
            | State::Tunnelling { .. }
            | State::Securing { .. }
            | State::Asking
            | State::Authenticating
            | State::Ready => {
                // Only ApiVersions and messages of SASL can be in flight.
                self.lose(now, ErrorKind::Closed);
                self.become_idle(false, &"another broker responded first");
            }
        }
    }

    /// Closes permanently and returns the requests in flight.
    pub fn shut_down(&mut self, now: Instant) -> Vec<(InFlight, bool)> {
        if !matches!(self.state, State::Idle | State::BackingOff { .. } | State::AwaitingToken) {
            self.outputs.push_back(ConnectionOutput::Close);
        }
        self.state = State::Idle;
        self.is_needed = false;
        self.lose(now, ErrorKind::Closed)
    }

    pub(super) fn start(&mut self, now: Instant) {
        self.was_used = false;
        if !authenticate::is_prepared(self.settings.sasl.as_ref(), now) {
            self.state = State::AwaitingToken;
            return;
        }
        let fresh = self.resolved_at.is_some_and(|at| now - at < self.settings.address_ttl);
        if fresh && !self.addresses.is_empty() {
            self.connect_first(now);
        } else {
            self.state = State::Resolving { deadline: now + self.setup_timeout() };
            let (host, port) = self.contact();
            self.outputs.push_back(ConnectionOutput::Resolve { host: host.to_owned(), port });
        }
    }

    /// Returns the host and the port that the socket connects to: the broker's, or the proxy's.
    fn contact(&self) -> (&str, u16) {
        match &self.settings.proxy {
            Some(proxy) => (&proxy.server.host, proxy.server.port),
            None => (&self.host, self.port),
        }
    }

    /// Returns the error of a connection that was not made: of this kind, or the proxy's.
    pub(super) fn setup_error(&self, kind: ErrorKind, reason: &str) -> Error {
        match &self.settings.proxy {
            Some(proxy) => {
                let detail =
                    format!("{proxy}: {reason}; check that the proxy runs, and its address in proxy.url");
                Error::new(ErrorKind::Proxy, detail)
            }
            None => Error::new(kind, reason),
        }
    }

    /// Returns a hint for errors soon after the proxy has connected: many proxies accept first, and close if they can't connect.
    fn proxy_between(&self) -> String {
        self.settings.proxy.as_ref().map_or_else(String::new, |proxy| {
            format!("; the {proxy} is between, and may have closed because it can't reach the broker: see the proxy's log")
        })
    }

    /// Returns the proxy through which the broker is reached.
    pub fn proxy(&self) -> Option<&Arc<ProxyUrl>> {
        self.settings.proxy.as_ref()
    }

    fn connect_first(&mut self, now: Instant) {
        self.untried_addresses = self.addresses.len();
        self.pass = 0;
        self.is_address_silent = false;
        self.connect_next(now);
    }

    /// Connects to the next address instead of the present one. Returns false after each has refused, or was tried for
    /// the whole time of the connection setup.
    pub(super) fn connect_another(&mut self, now: Instant) -> bool {
        if self.untried_addresses == 0 {
            if !std::mem::take(&mut self.is_address_silent) || self.pass >= QUICK_PASSES.len() {
                return false;
            }
            self.pass += 1;
            self.untried_addresses = self.addresses.len();
        }
        self.outputs.push_back(ConnectionOutput::Close);
        self.connect_next(now);
        true
    }

    fn connect_next(&mut self, now: Instant) {
        let address = self.addresses[0];
        self.addresses.rotate_left(1);
        self.untried_addresses -= 1;
        let limit = match QUICK_PASSES.get(self.pass).filter(|_| self.addresses.len() > 1) {
            Some(limit) => self.setup_timeout().min(*limit),
            None => self.setup_timeout(),
        };
        self.state = State::Connecting { deadline: now + limit };
        self.counters.connects += 1;
        self.outputs.push_back(ConnectionOutput::Connect(address));
    }

    /// Returns the time for setting up the next connection: longer after each failure in a row (KIP-601).
    pub(super) fn setup_timeout(&self) -> Duration {
        let longer = self.settings.setup_timeout.saturating_mul(1 << self.failed_setups.min(20));
        longer.min(self.settings.setup_timeout_max).max(self.settings.setup_timeout)
    }

    pub(super) fn fail(&mut self, now: Instant, error: Error) {
        let was_connected = matches!(self.state, State::Asking | State::Authenticating | State::Ready);
        if self.has_socket() {
            self.outputs.push_back(ConnectionOutput::Close);
        }
        self.reauthenticates_in_steps |= self.state == State::Ready && self.authentication.is_running();
        if self.state == State::Ready && (self.has_served || now - self.ready_at >= QUIET) {
            self.backoff.reset();
        }
        let wait = self.backoff.next(&mut self.rng);
        if !was_connected {
            self.failed_setups = self.failed_setups.saturating_add(1);
        }
        self.timeouts_in_a_row = 0;
        self.state = State::BackingOff { until: now + wait };
        self.is_needed = false;
        self.incoming.reset();
        let lost = self.lose(now, error.kind());
        self.counters.disconnects += i64::from(was_connected);
        self.counters.lost += lost.len() as i64;
        match error.kind() {
            ErrorKind::RequestTimedOut => self.counters.timeouts += 1,
            ErrorKind::BadResponse | ErrorKind::NotKafka => self.counters.bad_responses += 1,
            _ => {}
        }
        let error = error.with_peer(self.name());
        self.note_end(&error);
        let error = error.with_next_attempt(wait);
        self.outputs.push_back(ConnectionOutput::Down { error, lost });
    }

    fn note_end(&self, cause: &dyn fmt::Display) {
        if let Some(observer) = &self.settings.observer {
            observer.connection_ended(&self.peer(), cause);
        }
    }

    /// Takes all requests in flight, and reports to the observer which responses will not arrive.
    pub(super) fn lose(&mut self, now: Instant, why: ErrorKind) -> Vec<(InFlight, bool)> {
        if let Some(observer) = &self.settings.observer {
            let written = self.in_flight.iter().take(self.in_flight.written());
            for request in written.filter(|request| request.expects_response) {
                let why = match why {
                    // This request did not time out; it shares the connection with the one that did.
                    ErrorKind::RequestTimedOut if !request.is_overdue(now) => ErrorKind::Disconnected,
                    why => why,
                };
                observer.response_lost(&self.peer(), &exchange(request, request.payload.len()), why);
            }
        }
        self.authentication = Authentication::None;
        let mut lost = self.in_flight.drain();
        lost.iter_mut().for_each(|(request, _)| authenticate::erase(request));
        lost
    }

    /// Returns true if a socket is open or is being opened.
    const fn has_socket(&self) -> bool {
        !matches!(
            self.state,
            State::Idle | State::BackingOff { .. } | State::AwaitingToken | State::Resolving { .. }
        )
    }

    /// Closes the connection because it was idle; `cause` is for observers.
    pub(super) fn become_idle(&mut self, looks_again: bool, cause: &dyn fmt::Display) {
        self.note_end(cause);
        self.authentication = Authentication::None;
        self.state = State::Idle;
        self.is_needed = false;
        self.incoming.reset();
        self.outputs.push_back(ConnectionOutput::Close);
        self.outputs.push_back(ConnectionOutput::Idle { looks_again });
    }
}
