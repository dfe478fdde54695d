//! Outages inside the cluster, while its brokers are up: followers that fall behind, a controller quorum that can't decide, and
//! brokers of several releases.

use crate::{
    control::{Control, Tail},
    options::BrokerId,
    releases::BrokerRelease,
};

/// The controller that brokers report while no quorum can elect one.
const NO_CONTROLLER: BrokerId = BrokerId(-1);

impl Control<'_> {
    /// Removes a broker from the in-sync replicas of all partitions that another one leads, as when it can't fetch from them.
    pub fn fall_behind(&mut self, broker: BrokerId) {
        for (topic, partition) in self.all_partitions() {
            let Some(state) = self.cluster.topics.partition_mut(topic, partition) else { continue };
            if state.leader.is_some_and(|leader| leader != broker) {
                state.in_sync.retain(|id| *id != broker);
            }
            self.cluster.wake_partition(topic, partition);
        }
        self.cluster.run();
    }

    /// Lets a broker catch up with the leaders of all its partitions. A broker that is down stays behind.
    pub fn catch_up(&mut self, broker: BrokerId) {
        if !self.is_alive(broker) {
            return;
        }
        for (topic, partition) in self.all_partitions() {
            let Some(state) = self.cluster.topics.partition_mut(topic, partition) else { continue };
            if state.leader.is_some() && state.replicas.contains(&broker) && !state.in_sync.contains(&broker)
            {
                state.in_sync.push(broker);
            }
        }
        self.cluster.run();
    }

    /// Stops the controller quorum: no leader is elected for the partitions of a broker that is killed, and no broker is the
    /// controller, so that administration is refused.
    pub fn lose_quorum(&mut self) {
        self.cluster.has_quorum = false;
        self.cluster.controller = NO_CONTROLLER;
    }

    /// Starts the controller quorum again, which elects leaders for the partitions that lost theirs meanwhile.
    pub fn restore_quorum(&mut self) {
        if std::mem::replace(&mut self.cluster.has_quorum, true) {
            return;
        }
        for broker in self.brokers() {
            if self.is_alive(broker) {
                if self.cluster.controller == NO_CONTROLLER {
                    self.cluster.controller = broker;
                }
                continue;
            }
            for (topic, partition) in self.all_partitions() {
                self.lose_replica(topic, partition, broker, Tail::Kept);
            }
        }
        self.cluster.run();
    }

    /// Returns true unless the controller quorum is lost.
    pub fn has_quorum(&self) -> bool {
        self.cluster.has_quorum
    }

    /// Limits a broker to the versions that this release served, as in the middle of a rolling upgrade. Features of the cluster, such
    /// as `transaction.version`, stay.
    pub fn emulate_at(&mut self, broker: BrokerId, release: BrokerRelease) {
        if let Some(broker) = self.cluster.brokers.get_mut(&broker) {
            broker.api_versions = release.api_versions().into_iter().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cluster, ClusterOptions};

    fn cluster() -> Cluster {
        let mut cluster = Cluster::new(ClusterOptions { brokers: 3, ..ClusterOptions::default() });
        cluster.control().create_topic("t", 3, 3).expect("the topic is new");
        cluster
    }

    #[test]
    fn broker_without_quorum_keeps_its_partitions_after_its_death() {
        let mut cluster = cluster();
        let mut control = cluster.control();
        let leader = control.partition("t", 0).and_then(|it| it.leader).expect("a leader");
        control.lose_quorum();
        control.kill_broker(leader, Tail::Kept);
        assert_eq!(control.partition("t", 0).map(|it| it.leader), Some(Some(leader)));
        control.restore_quorum();
        let state = control.partition("t", 0).expect("the partition exists");
        assert!(state.leader.is_some_and(|it| it != leader) && !state.in_sync.contains(&leader), "{state:?}");
        assert!(control.has_quorum());
    }

    #[test]
    fn broker_that_restarts_without_quorum_does_not_become_the_controller() {
        let mut cluster = cluster();
        let mut control = cluster.control();
        control.lose_quorum();
        control.kill_broker(BrokerId(1), Tail::Kept);
        control.restart_broker(BrokerId(1));
        control.move_controller(BrokerId(2));
        assert_eq!(control.cluster.controller, NO_CONTROLLER);
        control.restore_quorum();
        assert!(control.is_alive(control.cluster.controller));
    }

    #[test]
    fn follower_that_falls_behind_is_not_in_sync_until_it_catches_up() {
        let mut cluster = cluster();
        let mut control = cluster.control();
        let leader = control.partition("t", 0).and_then(|it| it.leader).expect("a leader");
        let others: Vec<_> = control.brokers().into_iter().filter(|id| *id != leader).collect();
        others.iter().for_each(|id| control.fall_behind(*id));
        assert_eq!(control.partition("t", 0).expect("it exists").in_sync, [leader]);
        others.iter().for_each(|id| control.catch_up(*id));
        assert_eq!(control.partition("t", 0).expect("it exists").in_sync.len(), 3);
    }
}
