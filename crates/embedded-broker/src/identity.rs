//! The ID of the cluster, and addresses that lead to several clusters.
//!
//! A load balancer may mix two clusters: each connection to the same address then leads to one of them. The clusters of the
//! simulation differ in their IDs only; they share topics and groups, so that a test sees at once what was written for another one.

use crate::{
    cluster::Cluster,
    connection::{Connection, ConnectionId},
    control::Control,
    options::BrokerId,
};

/// The clusters that the addresses lead to.
#[derive(Debug, Default)]
pub(crate) struct MixedClusters {
    /// Their IDs; empty if there is only one cluster.
    ids: Vec<String>,
    opened: usize,
}

impl MixedClusters {
    /// Creates a connection, which leads to the next cluster.
    pub(crate) fn connect(&mut self, broker: BrokerId) -> Connection {
        let cluster = self.ids.get(self.opened % self.ids.len().max(1)).cloned();
        self.opened += 1;
        Connection { cluster, ..Connection::new(broker) }
    }
}

impl Cluster {
    /// Returns the ID of the cluster that a connection leads to.
    pub fn cluster_id(&self, connection: ConnectionId) -> &str {
        let own = self.connection(connection).and_then(|connection| connection.cluster.as_deref());
        own.unwrap_or(&self.cluster_id)
    }
}

impl Control<'_> {
    /// Replaces the ID of the cluster, as if another cluster had taken over its addresses. Open connections stay.
    pub fn set_cluster_id(&mut self, id: &str) {
        id.clone_into(&mut self.cluster.cluster_id);
    }

    /// Lets new connections lead to clusters with these IDs in turn, as behind a load balancer that mixes them. Without IDs they
    /// lead to the one cluster again. Open connections stay.
    pub fn mix_clusters(&mut self, ids: &[&str]) {
        self.cluster.mixed.ids = ids.iter().map(|id| (*id).to_owned()).collect();
    }
}
