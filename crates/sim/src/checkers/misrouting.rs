//! Checks that clients write nothing through connections that lead, or may lead, to another cluster (KIP-1242).
//!
//! A client that knows its cluster states the IDs in the first request of each connection to a node. A connection to a
//! bootstrap server states nothing; the client may write through it once its broker has sent metadata. A client that learns of
//! another cluster writes nothing more to the nodes of the previous one.

use std::time::Duration;

use ottla_core::machine::Instant;
use ottla_protocol::{api::ApiKey, generated::api_versions::ApiVersionsRequest};
use ottla_sorted::{SortedMap, SortedSet};

/// The connections of all clients.
#[derive(Debug, Default)]
pub(super) struct Misrouting {
    /// For each client that knows it, the ID of its cluster, and since when it knows it.
    informed: SortedMap<usize, (String, Instant)>,
    /// The connections whose brokers do not know yet whom the client expects.
    unchecked: SortedSet<u64>,
    /// The IDs of the clusters that the connections lead to.
    ends: SortedMap<u64, String>,
}

/// The first version of ApiVersions with the IDs.
pub(super) const FIRST_WITH_IDS: i16 = 5;

/// The time in which the threads of a client learn of another cluster. Requests that are built already leave meanwhile.
const GRACE: Duration = Duration::from_millis(20);

/// The requests that change something in the cluster.
const WRITES: [ApiKey; 6] = [
    ApiKey::Produce,
    ApiKey::OffsetCommit,
    ApiKey::TxnOffsetCommit,
    ApiKey::AddPartitionsToTxn,
    ApiKey::EndTxn,
    ApiKey::ShareAcknowledge,
];

impl Misrouting {
    /// Handles a connection that the broker of a cluster has accepted.
    pub(super) fn accepted(&mut self, link: u64, cluster: &str) {
        self.ends.insert(link, cluster.to_owned());
    }

    /// Handles the first request of a connection.
    pub(super) fn asked_versions(
        &mut self,
        client: usize,
        link: u64,
        version: i16,
        request: &ApiVersionsRequest,
    ) {
        let states = request.cluster_id.is_some() && request.node_id >= 0;
        if states {
            self.unchecked.remove(&link);
        } else if version >= FIRST_WITH_IDS && self.informed.contains_key(&client) {
            self.unchecked.insert(link);
        }
    }

    /// Handles metadata that name the cluster.
    pub(super) fn received(&mut self, now: Instant, client: usize, link: u64, cluster: String) {
        self.unchecked.remove(&link);
        if self.informed.get(&client).is_none_or(|(known, _)| *known != cluster) {
            self.informed.insert(client, (cluster, now));
        }
    }

    /// Checks a request.
    pub(super) fn asked(&self, now: Instant, client: usize, link: u64, api: ApiKey) -> Result<(), String> {
        if !WRITES.contains(&api) {
            return Ok(());
        }
        if self.unchecked.contains(&link) {
            return Err(format!("{} on a connection that may lead to another cluster", api.name()));
        }
        let (Some((known, since)), Some(end)) = (self.informed.get(&client), self.ends.get(&link)) else {
            return Ok(());
        };
        if known != end && now > *since + GRACE {
            return Err(format!("{} on a connection to {end}: the client's cluster is {known}", api.name()));
        }
        Ok(())
    }

    /// Forgets a connection.
    pub(super) fn close(&mut self, link: u64) {
        self.unchecked.remove(&link);
        self.ends.remove(&link);
    }
}
