//! Panics on purpose, for the tests of what becomes of them. Only a build with the feature `inject-panics` can make one;
//! elsewhere `reach` is nothing.

use ottla_core::mail::{ToBroker, ToCluster};

use crate::runtime::ClientRoute;

/// Where an I/O thread can be made to panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The cluster's owner has mail.
    ClusterMail,
    /// The cluster's owner was woken.
    ClusterWake,
    /// A broker's owner is made.
    BrokerStart,
    /// A broker's owner has mail.
    BrokerMail,
    /// A broker's owner was woken.
    BrokerWake,
    /// A socket has something to read or room to write.
    Socket,
    /// What an owner wants is carried out.
    Output,
    /// A timer is due.
    Timer,
    /// A broker's owner gives a partition back to the cluster's.
    Released,
    /// A broker's owner is given a partition.
    Adopted,
    /// The resolver's thread looks for a host's addresses.
    Resolve,
    /// What is left of a broken broker's owner is failed.
    Abandon,
}

impl Place {
    /// Those that every client comes to.
    pub const ALL: [Self; 8] = [
        Self::ClusterMail,
        Self::ClusterWake,
        Self::BrokerStart,
        Self::BrokerMail,
        Self::BrokerWake,
        Self::Socket,
        Self::Output,
        Self::Timer,
    ];

    /// Where the cluster's owner has this mail.
    pub(crate) const fn of_cluster_mail(mail: &ToCluster) -> Self {
        match mail {
            ToCluster::ReleasedProducer(_) => Self::Released,
            _ => Self::ClusterMail,
        }
    }

    /// Where a broker's owner has this mail.
    pub(crate) const fn of_broker_mail(mail: &ToBroker) -> Self {
        match mail {
            ToBroker::AdoptProducer(_) => Self::Adopted,
            _ => Self::BrokerMail,
        }
    }
}

#[cfg(feature = "inject-panics")]
static ARMED: parking_lot::Mutex<Vec<(String, Place)>> = parking_lot::Mutex::new(Vec::new());

/// The client of this `client.id` panics when it next comes to this place.
#[cfg(feature = "inject-panics")]
pub fn panic_at(client_id: &str, place: Place) {
    ARMED.lock().push((client_id.to_owned(), place));
}

/// True if the panic is still to come.
#[cfg(feature = "inject-panics")]
pub fn is_armed(client_id: &str, place: Place) -> bool {
    ARMED.lock().iter().any(|armed| armed.0 == client_id && armed.1 == place)
}

/// A client has come to this place.
#[cfg(feature = "inject-panics")]
pub(crate) fn reach(route: &ClientRoute, place: Place) {
    let client_id = &route.parts.connection.client_id;
    let mut armed = ARMED.lock();
    if let Some(found) = armed.iter().position(|armed| armed.0 == *client_id && armed.1 == place) {
        armed.remove(found);
        drop(armed);
        panic!("injected at {place:?}");
    }
}

/// A client has come to this place.
#[cfg(not(feature = "inject-panics"))]
#[inline(always)]
pub(crate) const fn reach(_: &ClientRoute, _: Place) {}
