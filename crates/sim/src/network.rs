//! Links between clients and brokers: two byte streams each, in order, split anywhere, delayed, stalled, reset.

use std::{collections::VecDeque, time::Duration};

use ottla_core::{contract::broker::BrokerKey, machine::Instant, rng::Rng};
use ottla_embedded_broker::{BrokerId, ConnectionId};

/// One TCP connection.
#[derive(Debug)]
pub struct Link {
    /// The client's index in the world.
    pub client: usize,
    /// The client's key of the broker actor.
    pub key: BrokerKey,
    /// The broker.
    pub broker: BrokerId,
    /// The broker's connection ID, once it has accepted the connection.
    pub connection: Option<ConnectionId>,
    /// Bytes in transit to the broker.
    pub to_broker: Stream,
    /// Bytes in transit to the client.
    pub to_client: Stream,
    /// The client has closed its end.
    pub client_closed: bool,
    /// The broker has closed its end.
    pub broker_closed: bool,
    /// The number of bytes that were sent to the client, and that it has read.
    pub sent_to_client: u64,
    /// The bytes that the client has read.
    pub read_by_client: u64,
    /// The client must close the connection once it has read this number of bytes: they end with an impossible length.
    pub ends_at: Option<u64>,
}

/// Bytes in one direction.
#[derive(Debug, Default)]
pub struct Stream {
    pieces: VecDeque<(Instant, Vec<u8>)>,
    in_flight: usize,
    last_arrival: Instant,
    /// No byte arrives before this time.
    stalled_until: Instant,
}

/// The properties of a network.
#[derive(Clone, Debug)]
pub struct NetworkKnobs {
    /// The minimum latency in one direction.
    pub latency: Duration,
    /// The maximum additional latency.
    pub jitter: Duration,
    /// The maximum number of bytes in transit in one direction.
    pub window: usize,
    /// The percentage of chunks that are split at random positions.
    pub cut_percent: u64,
}

impl Stream {
    /// Returns the number of bytes that may be sent now.
    pub const fn room(&self, knobs: &NetworkKnobs) -> usize {
        knobs.window.saturating_sub(self.in_flight)
    }

    /// Sends bytes; returns their time of arrival.
    pub fn send(&mut self, now: Instant, bytes: Vec<u8>, knobs: &NetworkKnobs, rng: &mut Rng) -> Instant {
        let jitter = Duration::from_nanos(rng.below(knobs.jitter.as_nanos() as u64 + 1));
        let arrival = (now + knobs.latency + jitter).max(self.last_arrival).max(self.stalled_until);
        self.last_arrival = arrival;
        self.in_flight += bytes.len();
        self.pieces.push_back((arrival, bytes));
        arrival
    }

    /// Takes the next chunk if it has arrived.
    pub fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.pieces.front()?.0 > now {
            return None;
        }
        let (_, bytes) = self.pieces.pop_front()?;
        self.in_flight -= bytes.len();
        Some(bytes)
    }

    /// Delays all bytes that are sent from now on until `until`.
    pub fn stall(&mut self, until: Instant) {
        self.stalled_until = self.stalled_until.max(until);
    }
}

/// Returns how many of `available` bytes the next chunk has.
pub fn cut(available: usize, knobs: &NetworkKnobs, rng: &mut Rng) -> usize {
    if available > 1 && rng.chance(knobs.cut_percent, 100) {
        1 + rng.below(available as u64 - 1) as usize
    } else {
        available
    }
}
