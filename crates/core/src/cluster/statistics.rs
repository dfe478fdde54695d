//! The cluster actor's share of a statistics snapshot.

use std::sync::Arc;

use ottla_protocol::vocabulary::NodeId;

use super::ClusterCore;
use crate::{
    contract::part::SnapshotTime,
    fetch::manager::FetchManager,
    machine::Instant,
    stats::{BrokerStatistics, Gather, Purpose},
};

impl ClusterCore {
    /// Adds what the cluster actor knows, and has every broker actor add its part.
    pub(super) fn gather_statistics(&mut self, now: Instant, gather: Arc<Gather>) {
        let micros =
            |since: Instant| i64::try_from(now.saturating_since(since).as_micros()).unwrap_or(i64::MAX);
        gather.add(|statistics| {
            statistics.ts = (now.as_nanos() / 1000) as i64;
            statistics.age = self.began.map_or(0, micros);
            statistics.metadata_cache_cnt = self.metadata.topics.len() as i64;
            statistics.replyq = self.events.len() as i64;
            statistics.kind = if self.producer.is_some() { "producer" } else { "consumer" };
            let at = SnapshotTime { now, began: self.began.unwrap_or(now), purpose: gather.purpose };
            for part in self.parts_mut() {
                part.add_statistics(at, statistics);
            }
            statistics.nodes =
                self.metadata_at.map(|at| (self.metadata.nodes.keys().copied().collect(), micros(at)));
            let metadata_age = self.metadata_at.map_or(0, |at| micros(at) / 1000);
            for (name, topic) in &mut statistics.topics {
                topic.metadata_age = metadata_age;
                let Some(known) = self.metadata.topics.get(name) else { continue };
                for (index, partition) in &mut topic.partitions {
                    match usize::try_from(*index).ok().and_then(|index| known.partitions.get(index)) {
                        Some(known) => partition.leader = i64::from(NodeId::to_wire(known.leader)),
                        None => partition.unknown = true,
                    }
                }
            }
        });
        if gather.purpose == Purpose::Push {
            return self.brokers.gather_statistics(&gather);
        }
        gather.add(|statistics| {
            let without_actor =
                self.metadata.nodes.iter().filter(|(node, _)| !self.brokers.has_actor(**node));
            statistics.brokers.extend(without_actor.map(|(node, address)| {
                let nodename = format!("{}:{}", address.host, address.port);
                BrokerStatistics {
                    name: format!("{nodename}/{node}"),
                    nodeid: i64::from(node.get()),
                    nodename,
                    source: "learned",
                    state: "INIT",
                    tx_idle: -1,
                    rx_idle: -1,
                    ..BrokerStatistics::default()
                }
            }));
            if self.fetch.as_ref().is_some_and(FetchManager::has_group) {
                statistics.brokers.push(BrokerStatistics::of_unused_coordinator());
            }
        });
        self.brokers.gather_statistics(&gather);
    }
}
