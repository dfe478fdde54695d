//! Links between clients and brokers: two byte streams each, in order, cut anywhere, delayed, stalled, reset.

use std::{collections::VecDeque, time::Duration};

use ottla_core::{machine::Instant, mail::BrokerKey, rng::Rng};
use ottla_embedded_broker::{BrokerId, ConnectionId};

/// One TCP connection.
#[derive(Debug)]
pub struct Link {
    /// The client's place in the world.
    pub client: usize,
    /// The client's owner of the broker.
    pub key: BrokerKey,
    /// The broker.
    pub broker: BrokerId,
    /// The broker's name for it, once it is accepted.
    pub connection: Option<ConnectionId>,
    /// Bytes on their way to the broker.
    pub to_broker: Stream,
    /// Bytes on their way to the client.
    pub to_client: Stream,
    /// The client does not know it any more.
    pub client_closed: bool,
    /// The broker does not know it any more.
    pub broker_closed: bool,
}

/// Bytes that go one way.
#[derive(Debug, Default)]
pub struct Stream {
    pieces: VecDeque<(Instant, Vec<u8>)>,
    in_flight: usize,
    last_arrival: Instant,
    /// Nothing arrives before then.
    stalled_until: Instant,
}

/// What a network is like.
#[derive(Clone, Debug)]
pub struct NetworkKnobs {
    /// One way, at least.
    pub latency: Duration,
    /// On top, at most.
    pub jitter: Duration,
    /// Bytes under way in one direction.
    pub window: usize,
    /// Pieces are cut at random places this often, in percent.
    pub cut_percent: u64,
}

impl Stream {
    /// How many bytes may be sent now.
    pub const fn room(&self, knobs: &NetworkKnobs) -> usize {
        knobs.window.saturating_sub(self.in_flight)
    }

    /// Sends bytes; answers when they arrive.
    pub fn send(&mut self, now: Instant, bytes: Vec<u8>, knobs: &NetworkKnobs, rng: &mut Rng) -> Instant {
        let jitter = Duration::from_nanos(rng.below(knobs.jitter.as_nanos() as u64 + 1));
        let arrival = (now + knobs.latency + jitter).max(self.last_arrival).max(self.stalled_until);
        self.last_arrival = arrival;
        self.in_flight += bytes.len();
        self.pieces.push_back((arrival, bytes));
        arrival
    }

    /// Takes the next piece if it has arrived.
    pub fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.pieces.front()?.0 > now {
            return None;
        }
        let (_, bytes) = self.pieces.pop_front()?;
        self.in_flight -= bytes.len();
        Some(bytes)
    }

    /// Nothing of what is sent from now on arrives before `until`.
    pub fn stall(&mut self, until: Instant) {
        self.stalled_until = self.stalled_until.max(until);
    }
}

/// How many of `available` bytes go in one piece.
pub fn cut(available: usize, knobs: &NetworkKnobs, rng: &mut Rng) -> usize {
    if available > 1 && rng.chance(knobs.cut_percent, 100) {
        1 + rng.below(available as u64 - 1) as usize
    } else {
        available
    }
}
