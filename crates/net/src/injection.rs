//! Injects panics, to test how a client handles them. Only a build with debug assertions can panic here; in an optimised
//! build `reach` does nothing. It is not a feature: tests and what they link would be compiled twice.

use ottla_core::{
    message::{ToBroker, ToCluster},
    produce::message::{ProduceMessage, ProduceReport},
};

use crate::runtime::ClientRoute;

/// The points at which a test can make an I/O thread panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectionPoint {
    /// The cluster actor receives a message.
    ClusterMessage,
    /// The cluster actor was woken.
    ClusterWake,
    /// A broker actor is created.
    BrokerStart,
    /// A broker actor receives a message.
    BrokerMessage,
    /// A broker actor was woken.
    BrokerWake,
    /// A socket is readable or writable.
    Socket,
    /// The outputs of an actor are carried out.
    Output,
    /// A timer is due.
    Timer,
    /// A broker actor returns a partition to the cluster actor.
    Released,
    /// A broker actor receives a partition.
    Adopted,
    /// The resolver's thread looks up a host's addresses.
    Resolve,
    /// The remaining records and requests of a broken client's broker actor are failed.
    Abandon,
}

impl InjectionPoint {
    /// The points that every client passes.
    pub const ALL: [Self; 8] = [
        Self::ClusterMessage,
        Self::ClusterWake,
        Self::BrokerStart,
        Self::BrokerMessage,
        Self::BrokerWake,
        Self::Socket,
        Self::Output,
        Self::Timer,
    ];

    /// Returns the point for a message to the cluster actor.
    pub(crate) const fn of_cluster_message(message: &ToCluster) -> Self {
        match message {
            ToCluster::Produce(ProduceReport::Released(_)) => Self::Released,
            _ => Self::ClusterMessage,
        }
    }

    /// Returns the point for a message to a broker actor.
    pub(crate) const fn of_broker_message(message: &ToBroker) -> Self {
        match message {
            ToBroker::Produce(ProduceMessage::Adopt(_)) => Self::Adopted,
            _ => Self::BrokerMessage,
        }
    }
}

/// The panics to come. Each I/O thread looks here all the time: a fork would often find the lock of its parent locked.
#[cfg(debug_assertions)]
static ARMED: crate::process::PerProcess<ottla_core::lock::Mutex<Vec<(String, InjectionPoint)>>> =
    crate::process::PerProcess::new();

/// Makes the client with this `client.id` panic when it next reaches this point.
#[cfg(debug_assertions)]
pub fn panic_at(client_id: &str, point: InjectionPoint) {
    ARMED.get().lock().push((client_id.to_owned(), point));
}

/// Panics itself: this build can't inject panics.
#[cfg(not(debug_assertions))]
pub fn panic_at(_: &str, _: InjectionPoint) {
    panic!("only a build with debug assertions can inject panics");
}

/// Returns true if the panic is still to come.
#[cfg(debug_assertions)]
pub fn is_armed(client_id: &str, point: InjectionPoint) -> bool {
    ARMED.get().lock().iter().any(|armed| armed.0 == client_id && armed.1 == point)
}

/// Returns false in this build.
#[cfg(not(debug_assertions))]
pub const fn is_armed(_: &str, _: InjectionPoint) -> bool {
    false
}

/// Panics if a test injected a panic at this point.
#[cfg(debug_assertions)]
pub(crate) fn reach(route: &ClientRoute, point: InjectionPoint) {
    let client_id = &route.parts.connection.client_id;
    let mut armed = ARMED.get().lock();
    if let Some(found) = armed.iter().position(|armed| armed.0 == *client_id && armed.1 == point) {
        armed.remove(found);
        drop(armed);
        panic!("injected at {point:?}");
    }
}

/// Does nothing in this build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) const fn reach(_: &ClientRoute, _: InjectionPoint) {}
