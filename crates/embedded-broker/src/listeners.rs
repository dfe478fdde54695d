//! The listeners of the brokers: their ports, TLS and SASL.
//!
//! Every broker has the same listeners. The first one is described by the fields of [`ClusterOptions`] itself, further ones
//! by [`ClusterOptions::listeners`]. As in Kafka, responses name brokers with the ports of the listener that the client is
//! connected to, and leave out brokers without that listener.

use ottla_protocol::time::Instant;

use crate::{
    cluster::{Broker, Cluster},
    connection::ConnectionId,
    control::Control,
    options::{BrokerId, ClusterOptions},
    sasl::SaslListener,
    tls::TlsListener,
};

/// The number of a listener: 0 is the first one, 1 the first of [`ClusterOptions::listeners`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub usize);

/// A further listener of every broker. The host is the same as that of the first one.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    /// The port of the first broker; the others have the following ports. With 0 the system chooses (over TCP).
    pub port: u16,
    /// The advertised port of the first broker; the others have the following ports. The default are the ports that brokers
    /// listen on.
    pub advertised_port: Option<u16>,
    /// The TLS (over TCP); without it the listener is plaintext.
    pub tls: Option<TlsListener>,
    /// The SASL; without it clients need not authenticate.
    pub sasl: Option<SaslListener>,
}

/// The distance between the ports of two listeners of a cluster that does not listen over TCP.
const PORTS_PER_LISTENER: u16 = 10_000;

impl ClusterOptions {
    /// Returns all listeners in the order of their numbers.
    pub(crate) fn all_listeners(&self) -> Vec<(ListenerId, Listener)> {
        let (tls, sasl) = (self.tls.clone(), self.sasl.clone());
        let first = Listener { port: self.port, advertised_port: self.advertised_port, tls, sasl };
        let all = std::iter::once(first).chain(self.listeners.iter().cloned());
        all.enumerate().map(|(number, listener)| (ListenerId(number), listener)).collect()
    }

    /// Returns a listener's TLS.
    pub(crate) fn tls_of(&self, id: ListenerId) -> Option<&TlsListener> {
        match id.0 {
            0 => self.tls.as_ref(),
            number => self.listeners.get(number - 1)?.tls.as_ref(),
        }
    }

    /// Returns a listener's SASL.
    pub(crate) fn sasl_of(&self, id: ListenerId) -> Option<&SaslListener> {
        match id.0 {
            0 => self.sasl.as_ref(),
            number => self.listeners.get(number - 1)?.sasl.as_ref(),
        }
    }

    /// Returns a listener's SASL, to change it.
    pub(crate) fn sasl_of_mut(&mut self, id: ListenerId) -> Option<&mut SaslListener> {
        match id.0 {
            0 => self.sasl.as_mut(),
            number => self.listeners.get_mut(number - 1)?.sasl.as_mut(),
        }
    }

    /// Returns the security protocol of a listener, as Kafka names it.
    pub(crate) fn protocol_of(&self, id: ListenerId) -> &'static str {
        match (self.tls_of(id).is_some(), self.sasl_of(id).is_some()) {
            (false, false) => "PLAINTEXT",
            (true, false) => "SSL",
            (false, true) => "SASL_PLAINTEXT",
            (true, true) => "SASL_SSL",
        }
    }

    /// Returns the ports of the further listeners of a broker that does not listen over TCP. `place` is the broker's
    /// index among the brokers.
    pub(crate) fn further_ports(&self, place: u16) -> Vec<u16> {
        let ports = (1u16..).zip(&self.listeners).map(|(number, listener)| match listener.port {
            0 => 9092u16.saturating_add(PORTS_PER_LISTENER.saturating_mul(number)).saturating_add(place),
            first => first.saturating_add(place),
        });
        ports.collect()
    }
}

impl Broker {
    /// Returns the port of a listener; `None` if the broker lacks it.
    pub(crate) fn port_of(&self, id: ListenerId) -> Option<u16> {
        match id.0 {
            0 => Some(self.port),
            number => self.further_ports.get(number - 1).copied(),
        }
    }
}

impl Cluster {
    /// Opens a connection to a listener; returns `None` if the broker is down or lacks it.
    pub fn open_on(&mut self, now: Instant, broker: BrokerId, listener: ListenerId) -> Option<ConnectionId> {
        self.brokers.get(&broker)?.port_of(listener)?;
        let connection = self.open(now, broker)?;
        self.connection_mut(connection)?.listener = listener;
        Some(connection)
    }

    /// Sets the port of a listener that clients receive for a broker.
    pub fn set_listener_port(&mut self, broker: BrokerId, listener: ListenerId, port: u16) {
        let Some(broker) = self.brokers.get_mut(&broker) else { return };
        match listener.0 {
            0 => broker.port = port,
            number => {
                if let Some(known) = broker.further_ports.get_mut(number - 1) {
                    *known = port;
                }
            }
        }
    }

    /// Returns the port at which the client of a connection reaches a broker: that of the same listener.
    pub(crate) fn port_for(&self, connection: ConnectionId, broker: BrokerId) -> Option<i32> {
        let listener = self.connection(connection).map(|connection| connection.listener).unwrap_or_default();
        self.brokers.get(&broker)?.port_of(listener).map(i32::from)
    }

    /// Returns the SASL of a connection's listener.
    pub(crate) fn sasl_for(&self, connection: ConnectionId) -> Option<&SaslListener> {
        self.options.sasl_of(self.connection(connection)?.listener)
    }
}

impl Control<'_> {
    /// Sets the ports of a broker's further listeners.
    pub(crate) fn set_further_ports(&mut self, broker: BrokerId, ports: &[u16]) {
        if let Some(broker) = self.cluster.brokers.get_mut(&broker) {
            broker.further_ports = ports.to_vec();
        }
    }
}
