//! The statistics of a [`Connection`].

use ottla_protocol::{api::ApiKey, vocabulary::NodeId};
use ottla_sorted::SortedMap;

use super::{Connection, State};
use crate::{
    connection::inflight::InFlight,
    machine::Instant,
    stats::{BrokerStatistics, Purpose, Window},
};

/// The counters of a connection, by API.
#[derive(Debug)]
pub(super) struct ConnectionCounters {
    /// The state when it was last checked, and since when.
    pub(super) state: &'static str,
    pub(super) state_since: Instant,
    pub(super) requests: SortedMap<&'static str, i64>,
    pub(super) sent: i64,
    pub(super) sent_bytes: i64,
    pub(super) sent_at: Option<Instant>,
    pub(super) lost: i64,
    pub(super) timeouts: i64,
    pub(super) received: i64,
    pub(super) received_bytes: i64,
    pub(super) received_at: Option<Instant>,
    pub(super) bad_responses: i64,
    pub(super) unexpected_responses: i64,
    pub(super) connects: i64,
    pub(super) disconnects: i64,
    pub(super) to_write: Window,
    pub(super) round_trip: Window,
    pub(super) throttle: Window,
    pub(super) data_latency: Window,
    pub(super) fetch_size: Window,
}

impl Default for ConnectionCounters {
    fn default() -> Self {
        Self {
            state: "INIT",
            state_since: Instant::ZERO,
            requests: SortedMap::new(),
            sent: 0,
            sent_bytes: 0,
            sent_at: None,
            lost: 0,
            timeouts: 0,
            received: 0,
            received_bytes: 0,
            received_at: None,
            bad_responses: 0,
            unexpected_responses: 0,
            connects: 0,
            disconnects: 0,
            to_write: Window::default(),
            round_trip: Window::default(),
            throttle: Window::default(),
            data_latency: Window::default(),
            fetch_size: Window::default(),
        }
    }
}

impl Connection {
    /// Records the time of a state change; called after every event.
    pub fn note_state(&mut self, now: Instant) {
        let state = match self.state {
            State::Idle if self.counters.connects == 0 => "INIT",
            State::Idle | State::BackingOff { .. } => "DOWN",
            State::Resolving { .. } | State::Connecting { .. } | State::Tunnelling { .. } => "CONNECT",
            State::Securing { .. } => "SSL_HANDSHAKE",
            State::Asking => "APIVERSION_QUERY",
            State::AwaitingToken => "TRY_CONNECT",
            State::Authenticating => "AUTH_REQ",
            State::Ready if self.authentication.is_running() => "REAUTH",
            State::Ready => "UP",
        };
        if self.counters.state != state
            && let Some(observer) = &self.settings.observer
        {
            observer.state_changed(&self.peer(), state);
        }
        if self.counters.state != state || self.counters.state_since == Instant::ZERO {
            self.counters.state = state;
            self.counters.state_since = now;
        }
    }

    /// Counts a response of this size.
    pub(super) fn count_response(&mut self, now: Instant, request: &InFlight, size: usize) {
        let counters = &mut *self.counters;
        let latency = now.saturating_since(request.queued_at);
        self.timeouts_in_a_row = 0;
        counters.received += 1;
        counters.round_trip.record_micros(latency);
        match request.api {
            ApiKey::Produce => counters.data_latency.record_micros(latency),
            ApiKey::Fetch | ApiKey::ShareFetch => {
                counters.data_latency.record_micros(latency);
                counters.fetch_size.record(size as u64);
            }
            _ => {}
        }
    }

    /// Returns the connection's statistics; windows restart as the purpose demands.
    pub fn statistics(&mut self, now: Instant, purpose: Purpose) -> BrokerStatistics {
        let age = |since: Instant| i64::try_from(now.saturating_since(since).as_micros()).unwrap_or(i64::MAX);
        let written = self.in_flight.written();
        let messages = |requests: &mut dyn Iterator<Item = &InFlight>| {
            requests.map(|r| r.payload.messages() as i64).sum()
        };
        let name = self.name();
        let counters = &mut *self.counters;
        BrokerStatistics {
            nodeid: i64::from(NodeId::to_wire(self.node_id)),
            nodename: format!("{}:{}", self.host, self.port),
            source: if self.node_id.is_some() { "learned" } else { "configured" },
            state: counters.state,
            stateage: age(counters.state_since),
            outbuf_cnt: (self.in_flight.iter().count() - written) as i64,
            outbuf_msg_cnt: messages(&mut self.in_flight.iter().skip(written)),
            waitresp_cnt: written as i64,
            waitresp_msg_cnt: messages(&mut self.in_flight.iter().take(written)),
            tx: counters.sent,
            tx_bytes: counters.sent_bytes,
            tx_errors: counters.lost,
            tx_idle: counters.sent_at.map_or(-1, age),
            request_timeouts: counters.timeouts,
            rx: counters.received,
            rx_bytes: counters.received_bytes,
            rx_errors: counters.bad_responses,
            rx_correlation_id_errors: counters.unexpected_responses,
            rx_idle: counters.received_at.map_or(-1, age),
            requests: counters.requests.clone().into_iter().collect(),
            connects: counters.connects,
            disconnects: counters.disconnects,
            outbuf_latency: counters.to_write.snapshot(purpose),
            rtt: counters.round_trip.snapshot(purpose),
            throttle: counters.throttle.snapshot(purpose),
            data_latency: counters.data_latency.snapshot(purpose),
            fetch_size: counters.fetch_size.snapshot(purpose),
            name,
            ..BrokerStatistics::default()
        }
    }
}
