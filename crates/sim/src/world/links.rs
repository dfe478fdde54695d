//! The links between clients and brokers: how connections are opened, cut, stalled and closed, and how bytes travel.

use std::{collections::VecDeque, io::IoSlice, net::SocketAddr, time::Duration};

use ottla_core::contract::broker::BrokerKey;
use ottla_embedded_broker::{BrokerId, ConnectionId};

use super::{Actor, Direction, Event, FIRST_PORT, Resolver, World};
use crate::{
    coverage,
    network::{Link, Stream, cut},
};

/// The last byte of the address at which brokers listen.
const BROKER_ADDRESS: u8 = 1;

/// The broker ID for an address without a listener.
const NOBODY: i32 = 0;

impl World {
    /// Breaks a random connection; the two ends notice it at different times.
    pub fn reset_a_link(&mut self) {
        let open: Vec<u64> = self.links.keys().copied().collect();
        let Some(link) = open.get(self.rng.below(open.len() as u64) as usize).copied() else { return };
        self.trace.note(self.now, format_args!("link {link} is reset"));
        let (a, b) = (self.some_latency(), self.some_latency());
        self.schedule(self.now + a, Event::ClosedAtClient(link));
        self.schedule(self.now + b, Event::ClosedAtBroker(link));
    }

    /// Breaks all connections of a client, as brokers see it.
    pub(super) fn reset_links_of(&mut self, client: usize) {
        let own = self.links.iter().filter(|(_, link)| link.client == client);
        for id in own.map(|(id, _)| *id).collect::<Vec<_>>() {
            let at = self.now + self.some_latency();
            self.schedule(at, Event::ClosedAtBroker(id));
        }
    }

    /// Stalls a random connection for some time, in one direction or both.
    pub fn stall_a_link(&mut self, duration: Duration) {
        let open: Vec<u64> = self.links.keys().copied().collect();
        let Some(id) = open.get(self.rng.below(open.len() as u64) as usize).copied() else { return };
        let until = self.now + duration;
        let which = self.rng.below(3);
        if let Some(link) = self.links.get_mut(&id) {
            self.trace.note(self.now, format_args!("link {id} is stalled ({which}) for {duration:?}"));
            if which != 0 {
                link.to_broker.stall(until);
            }
            if which != 1 {
                link.to_client.stall(until);
            }
        }
    }

    /// Loses all responses to a client, and then breaks its connections. Until then brokers handle its requests, and
    /// the client doesn't notice.
    pub fn lose_responses_to(&mut self, client: usize, after: Duration) {
        self.trace
            .note(self.now, format_args!("client {client} gets no responses, and is cut off in {after:?}"));
        let at = self.now + after;
        let own: Vec<u64> =
            self.links.iter().filter(|(_, link)| link.client == client).map(|(id, _)| *id).collect();
        for id in own {
            if let Some(link) = self.links.get_mut(&id) {
                link.to_client.stall(at + Duration::from_secs(1));
            }
            self.schedule(at, Event::ClosedAtClient(id));
            self.schedule(at, Event::ClosedAtBroker(id));
        }
    }

    /// Makes a broker drop a random connection without notifying the client.
    pub fn half_open_a_link(&mut self) {
        let open: Vec<u64> = self.links.keys().copied().collect();
        let Some(link) = open.get(self.rng.below(open.len() as u64) as usize).copied() else { return };
        self.trace.note(self.now, format_args!("link {link} is half open"));
        self.schedule(self.now, Event::ClosedAtBroker(link));
    }

    fn is_cut(&self, client: usize, broker: BrokerId, direction: Direction) -> bool {
        self.partitioned.contains(&(client, broker)) || self.one_way.contains(&(client, broker, direction))
    }

    /// Opens a connection of another client than ours, without delays; `None` if the broker is down.
    pub fn open_foreign(&mut self, broker: BrokerId) -> Option<ConnectionId> {
        let connection = self.cluster.open(self.now, broker)?;
        self.foreign.insert(connection, VecDeque::new());
        Some(connection)
    }

    /// Sends a request on such a connection.
    pub fn send_foreign(&mut self, connection: ConnectionId, frame: &[u8]) {
        self.cluster.handle_bytes(self.now, connection, frame);
        self.settle_cluster();
    }

    /// Takes the next response of one of these connections.
    pub fn receive_foreign(&mut self, connection: ConnectionId) -> Option<Vec<u8>> {
        self.foreign.get_mut(&connection)?.pop_front()
    }

    /// Returns the number of open links, for checks at the end.
    pub fn open_links(&self) -> usize {
        self.links.len()
    }

    /// Resolves a broker's name as the resolver does at present.
    pub(super) fn resolve(&mut self, client: usize, key: BrokerKey, host: &str, port: u16) {
        let address = |last| SocketAddr::from(([10, 0, 0, last], port));
        let result = match self.resolver {
            Resolver::Works => Ok(vec![address(BROKER_ADDRESS)]),
            Resolver::Down => Err("the resolver is down".to_owned()),
            Resolver::Empty => Ok(Vec::new()),
            Resolver::Several => Ok(vec![address(66), address(BROKER_ADDRESS), address(77)]),
            Resolver::Wrong => Ok(vec![address(66)]),
            Resolver::Silent => {
                return self.trace.note(self.now, format_args!("{client} resolves {host} for ever"));
            }
        };
        self.trace.note(self.now, format_args!("{client} resolves {host}"));
        let at = self.now + self.some_latency();
        self.schedule(at, Event::Resolved(client, key, result));
    }

    /// Restarts the first two brokers, each at the address of the other one.
    pub fn swap_brokers(&mut self) {
        self.is_swapped = !self.is_swapped;
        self.trace.note(self.now, format_args!("brokers 1 and 2 are swapped: {}", self.is_swapped));
        let (one, two) =
            if self.is_swapped { (FIRST_PORT + 1, FIRST_PORT) } else { (FIRST_PORT, FIRST_PORT + 1) };
        let mut control = self.cluster.control();
        control.set_endpoint(BrokerId(1), "broker", one);
        control.set_endpoint(BrokerId(2), "broker", two);
        control.close_connections(None);
    }

    /// Creates a link to the broker at an address.
    pub(super) fn connect(&mut self, client: usize, key: BrokerKey, address: SocketAddr) {
        let is_broker = address == SocketAddr::from(([10, 0, 0, BROKER_ADDRESS], address.port()));
        let number = if is_broker { i32::from(address.port().wrapping_sub(FIRST_PORT)) + 1 } else { NOBODY };
        let number = if self.is_swapped && (1..=2).contains(&number) { 3 - number } else { number };
        let broker = BrokerId(number);
        let id = self.next_link;
        self.next_link += 1;
        self.links.insert(
            id,
            Link {
                client,
                key,
                broker,
                connection: None,
                to_broker: Stream::default(),
                to_client: Stream::default(),
                client_closed: false,
                broker_closed: false,
                sent_to_client: 0,
                read_by_client: 0,
                ends_at: None,
            },
        );
        self.by_actor.insert((client, key), id);
        let checked = self.wire.open(self.now, id, client);
        self.note_broken(checked);
        self.trace.note(self.now, format_args!("{client} connects to {} by link {id}", broker.0));
        let at = self.now + self.some_latency() * 2;
        self.schedule(at, Event::Connecting(id));
    }

    /// Moves bytes from an actor to its link; returns false if there are no bytes or no room.
    pub(super) fn write(&mut self, client: usize, key: BrokerKey) -> bool {
        let Some(id) = self.by_actor.get(&(client, key)).copied() else { return false };
        let Some(link) = self.links.get_mut(&id) else { return false };
        if link.connection.is_none() || link.client_closed {
            return false;
        }
        let Some(core) = self.clients[client].brokers.get_mut(&key) else { return false };
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = core.unsent(&mut slices);
        let available: usize = slices[..filled].iter().map(|slice| slice.len()).sum();
        let count = cut(available.min(link.to_broker.room(&self.network)), &self.network, &mut self.rng);
        if count == 0 {
            return false;
        }
        let bytes: Vec<u8> =
            slices[..filled].iter().flat_map(|slice| slice.iter().copied()).take(count).collect();
        core.handle_written(self.now, count);
        let (now, trace) = (self.now, &mut self.trace);
        if trace.keeps() {
            trace.tell(now, format_args!("{client} writes {count} bytes to link {id}"));
        }
        let checked = self.wire.wrote(now, id, &bytes, |line| trace.note(now, format_args!("{line}")));
        if let Err(broken) = checked {
            self.broken.get_or_insert(broken);
        }
        let arrival = link.to_broker.send(self.now, bytes, &self.network, &mut self.rng);
        self.schedule(arrival, Event::ToBroker(id));
        true
    }

    pub(super) fn accept(&mut self, id: u64) {
        let Some(link) = self.links.get(&id) else { return };
        let (client, key, broker) = (link.client, link.key, link.broker);
        if link.client_closed {
            self.links.remove(&id);
            return;
        }
        if self.is_cut(client, broker, Direction::ToBroker)
            || self.is_cut(client, broker, Direction::ToClient)
        {
            // No response comes, so the client's own timeout ends the attempt. Check again in case the network heals
            // first.
            let at = self.now + Duration::from_millis(500);
            return self.schedule(at, Event::Connecting(id));
        }
        match self.cluster.open(self.now, broker) {
            Some(connection) => {
                self.by_connection.insert(connection, id);
                self.wire.accepted(id, self.cluster.cluster_id(connection));
                if let Some(link) = self.links.get_mut(&id) {
                    link.connection = Some(connection);
                }
                if let Some(core) = self.clients[client].brokers.get_mut(&key) {
                    coverage::note_event("a connection");
                    core.handle_connected(self.now);
                }
            }
            None => {
                self.links.remove(&id);
                self.by_actor.remove(&(client, key));
                if let Some(core) = self.clients[client].brokers.get_mut(&key) {
                    coverage::note_event("a refused connection");
                    core.handle_closed(self.now, "connection refused");
                }
            }
        }
        self.settle(client, Actor::Broker(key));
    }

    pub(super) fn arrive_at_broker(&mut self, id: u64) {
        let Some(link) = self.links.get(&id) else { return };
        let (client, key, broker) = (link.client, link.key, link.broker);
        if self.is_cut(client, broker, Direction::ToBroker) {
            let at = self.now + Duration::from_millis(100);
            let Some(link) = self.links.get_mut(&id) else { return };
            link.to_broker.stall(at);
            return self.schedule(at, Event::ToBroker(id));
        }
        while let Some(mut bytes) = self.links.get_mut(&id).and_then(|link| link.to_broker.receive(self.now))
        {
            if !self.damage.is_empty() {
                self.damage_request(&mut bytes);
            }
            let Some(connection) = self.links.get(&id).and_then(|link| link.connection) else { return };
            if self.by_connection.contains_key(&connection) {
                self.trace.note(self.now, format_args!("link {id}: {} bytes to the broker", bytes.len()));
                self.cluster.handle_bytes(self.now, connection, &bytes);
                self.settle_cluster();
            }
        }
        // There is room again.
        coverage::note_event("room in a socket");
        self.settle(client, Actor::Broker(key));
    }

    pub(super) fn send_to_client(&mut self, connection: ConnectionId, mut bytes: Vec<u8>) {
        if let Some(responses) = self.foreign.get_mut(&connection) {
            return responses.push_back(bytes);
        }
        let Some(id) = self.by_connection.get(&connection).copied() else { return };
        if !self.damage.is_empty() {
            self.damage_response(id, &mut bytes);
        }
        if let Some(link) = self.links.get_mut(&id) {
            link.sent_to_client += bytes.len() as u64;
        }
        while !bytes.is_empty() {
            let count = cut(bytes.len(), &self.network, &mut self.rng);
            let rest = bytes.split_off(count);
            let Some(link) = self.links.get_mut(&id) else { return };
            let arrival = link.to_client.send(self.now, bytes, &self.network, &mut self.rng);
            self.schedule(arrival, Event::ToClient(id));
            bytes = rest;
        }
    }

    pub(super) fn arrive_at_client(&mut self, id: u64) {
        let Some(link) = self.links.get(&id) else { return };
        let (client, key, broker) = (link.client, link.key, link.broker);
        if self.is_cut(client, broker, Direction::ToClient) {
            let at = self.now + Duration::from_millis(100);
            return self.schedule(at, Event::ToClient(id));
        }
        while let Some(bytes) = self.links.get_mut(&id).and_then(|link| link.to_client.receive(self.now)) {
            let is_current = self.by_actor.get(&(client, key)) == Some(&id);
            if !is_current {
                continue;
            }
            self.trace.note(self.now, format_args!("link {id}: {} bytes to the client", bytes.len()));
            let (now, trace) = (self.now, &mut self.trace);
            let unsent = self.clients[client].brokers.get(&key).map_or(0, |core| core.unsent_bytes());
            let mut first = None;
            let checked = self.wire.reads(now, id, &bytes, unsent, |line| {
                if first.is_none() && coverage::is_on() {
                    first = coverage::response_in(line);
                }
                trace.note(now, format_args!("{line}"));
            });
            self.note_broken(checked);
            let event = first.unwrap_or_else(|| "a part of a response".to_owned());
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                if self.by_actor.get(&(client, key)) != Some(&id) {
                    break;
                }
                let Some(core) = self.clients[client].brokers.get_mut(&key) else { return };
                let space = core.read_space();
                let count = space.len().min(rest.len());
                space[..count].copy_from_slice(&rest[..count]);
                core.handle_read(self.now, count);
                coverage::note_event(&event);
                rest = &rest[count..];
                self.settle(client, Actor::Broker(key));
            }
            self.check_end(id, bytes.len());
        }
    }

    pub(super) fn close_at_client(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let (client, key) = (link.client, link.key);
        let was_open = !std::mem::replace(&mut link.client_closed, true);
        self.forget_if_over(id);
        if was_open && self.by_actor.get(&(client, key)) == Some(&id) {
            self.by_actor.remove(&(client, key));
            if let Some(core) = self.clients[client].brokers.get_mut(&key) {
                coverage::note_event("a reset connection");
                core.handle_closed(self.now, "connection reset");
            }
            self.settle(client, Actor::Broker(key));
        }
    }

    pub(super) fn close_at_broker(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.broker_closed = true;
        if let Some(connection) = link.connection
            && self.by_connection.remove(&connection).is_some()
        {
            self.cluster.handle_closed(self.now, connection);
            self.settle_cluster();
        }
        self.forget_if_over(id);
    }

    fn forget_if_over(&mut self, id: u64) {
        if self.links.get(&id).is_some_and(|link| link.client_closed && link.broker_closed) {
            self.links.remove(&id);
            self.wire.close(id);
        }
    }
}
