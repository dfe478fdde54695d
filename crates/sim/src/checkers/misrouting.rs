//! Checks that clients write nothing through connections that may lead to another cluster (KIP-1242).
//!
//! A client that knows its cluster states the IDs in the first request of each connection to a node. A connection to a
//! bootstrap server states nothing; the client may write through it once its broker has sent metadata.

use ottla_protocol::{api::ApiKey, generated::api_versions::ApiVersionsRequest};
use ottla_sorted::SortedSet;

/// The connections of all clients.
#[derive(Debug, Default)]
pub(super) struct Misrouting {
    /// The clients that know the ID of their cluster.
    informed: SortedSet<usize>,
    /// The connections whose brokers do not know yet whom the client expects.
    unchecked: SortedSet<u64>,
}

/// The first version of ApiVersions with the IDs.
pub(super) const FIRST_WITH_IDS: i16 = 5;

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
        } else if version >= FIRST_WITH_IDS && self.informed.contains(&client) {
            self.unchecked.insert(link);
        }
    }

    /// Handles metadata that name the cluster.
    pub(super) fn received(&mut self, client: usize, link: u64) {
        self.informed.insert(client);
        self.unchecked.remove(&link);
    }

    /// Checks a request.
    pub(super) fn asked(&self, link: u64, api: ApiKey) -> Result<(), String> {
        if WRITES.contains(&api) && self.unchecked.contains(&link) {
            return Err(format!("{} on a connection that may lead to another cluster", api.name()));
        }
        Ok(())
    }

    /// Forgets a connection.
    pub(super) fn close(&mut self, link: u64) {
        self.unchecked.remove(&link);
    }
}
