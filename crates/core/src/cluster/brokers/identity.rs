//! The cluster that the connections to nodes must lead to (KIP-1242).
//!
//! Addresses that the client learned from metadata may lead elsewhere later: to another node, or to a node of another cluster.
//! Therefore a connection to a node states both IDs in its first request, and a broker with other ones refuses it. Then the
//! client forgets the nodes and starts again from the bootstrap servers, whose connections state nothing.
//!
//! # Pitfalls
//!
//! - The connection to a bootstrap server becomes that of its node, with the node's partitions. When the client starts again, the
//!   server gets a connection of its own: on the old one, batches for the known cluster might reach whichever cluster responds
//!   (`node_of_a_bootstrap_server_stays_bound_to_its_cluster`).

use std::sync::Arc;

use super::Brokers;
use crate::{
    contract::broker::BrokerKey,
    message::{ConnectionMessage, ToBroker},
};

/// The identity of the cluster, if it is checked.
#[derive(Debug, Default)]
pub(super) struct Identity {
    /// The ID that metadata reported last.
    id: Option<Arc<str>>,
    /// False after the client went back to the bootstrap servers, until metadata arrives.
    is_current: bool,
}

impl Identity {
    /// Returns true if metadata has reported an ID.
    pub(super) const fn is_known(&self) -> bool {
        self.id.is_some()
    }
}

impl Brokers {
    /// Sets the ID of the cluster, as metadata reports it. An empty ID is not one.
    pub(in crate::cluster) fn set_cluster(&mut self, id: Option<&str>) {
        let Some(id) = id.filter(|id| !id.is_empty()) else { return };
        self.identity.is_current = true;
        if self.identity.id.as_deref() == Some(id) {
            return;
        }
        self.identity.id = Some(Arc::from(id));
        let of_nodes: Vec<BrokerKey> = self.lanes.values().copied().collect();
        of_nodes.into_iter().for_each(|key| self.expect_cluster(key));
    }

    /// Tells the connection to a node the ID of its cluster.
    pub(super) fn expect_cluster(&mut self, key: BrokerKey) {
        if let Some(id) = self.identity.id.clone() {
            self.send(key, ToBroker::Connection(ConnectionMessage::SetCluster(id)));
        }
    }

    /// Lets the bootstrap servers decide which cluster is the right one. Until then connections to nodes accept only the
    /// previous one.
    pub(super) fn forget_cluster(&mut self) {
        self.identity.is_current = false;
        if self.identity.is_known() {
            let lanes = &self.lanes;
            self.bootstrap.retain(|_, key| !lanes.values().any(|of_node| of_node == key));
        }
    }

    /// Returns true if the client did not go back to the bootstrap servers since it learned the address of this broker.
    pub(in crate::cluster) fn is_trusted(&self, key: BrokerKey) -> bool {
        self.identity.is_current && self.entries.get(&key).is_some_and(|entry| !entry.given_up)
    }
}
