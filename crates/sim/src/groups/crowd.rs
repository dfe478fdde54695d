//! A group of 500 members: it must settle within a bound, one member that comes and goes must not cause a storm, and all
//! must survive a move of the coordinator.

use std::{sync::Arc, time::Duration};

use ottla_core::{
    cluster::command::Command,
    completion::completion,
    fetch::{settings::ConsumerSettings, shared::ConsumerShared},
    group::{GroupCommand, GroupProtocol, GroupSettings, assignor::Assignor},
    rng::Rng,
};
use ottla_embedded_broker::{ApiKey, BrokerId, Cluster, ClusterOptions, CoordinatorKey};

use super::{GROUP, cluster_settings, parts};
use crate::{
    Broken,
    client::Client,
    network::NetworkKnobs,
    world::{FIRST_PORT, World},
};
use ottla_core::group::departure::GroupMembershipOperation;

/// The number of members of the largest group.
pub const MEMBERS: usize = 500;
const SESSION: Duration = Duration::from_secs(45);
const HEARTBEAT: Duration = Duration::from_secs(3);
const BROKERS: i32 = 3;
/// The time limit for the group to settle: the members learn of a rebalance by their heartbeats, and cooperative ones
/// rebalance twice.
const SETTLE: Duration = Duration::from_secs(60);

struct Crowd {
    world: World,
    rng: Rng,
    assignor: Option<Assignor>,
    /// A fifth more than the members.
    partitions: usize,
    members: Vec<(usize, Arc<ConsumerShared>)>,
}

/// Runs a group of this number of members; returns the virtual time that passed.
pub fn run(seed: u64, members: usize) -> Result<Duration, Broken> {
    let mut crowd = Crowd::new(seed, members);
    let start = crowd.world.now;
    for _ in 0..members {
        crowd.start();
        crowd.pass(Duration::from_millis(5))?;
    }
    crowd.settle("at the start")?;
    for _ in 0..3 {
        crowd.flap()?;
    }
    crowd.world.cluster.control().set_coordinator(CoordinatorKey::Group(GROUP), BrokerId(BROKERS));
    crowd.world.settle_cluster();
    crowd.watch("while the coordinator moves", 1)?;
    crowd.settle("after the coordinator moved")?;
    Ok(crowd.world.now - start)
}

impl Crowd {
    fn new(seed: u64, members: usize) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0x500);
        let partitions = members + members / 5;
        let mut cluster = Cluster::new(ClusterOptions {
            brokers: BROKERS,
            host: "broker".to_owned(),
            port: FIRST_PORT,
            replication_factor: 1,
            auto_create_topics: false,
            seed: Some(rng.next_u64()),
            group_consumer_session_timeout: SESSION,
            group_consumer_heartbeat_interval: HEARTBEAT,
            group_initial_rebalance_delay: Duration::from_secs(3),
            ..ClusterOptions::default()
        });
        // The name is valid and new.
        let _ = cluster.control().create_topic("t", partitions as i32, 1);
        let network = NetworkKnobs {
            latency: Duration::from_millis(1),
            jitter: Duration::from_millis(1),
            window: 1 << 20,
            cut_percent: 0,
        };
        let world = World::new(cluster, network, rng.fork(), false);
        let assignor = [None, Some(Assignor::Range), Some(Assignor::CooperativeSticky)][seed as usize % 3];
        Self { world, rng, assignor, partitions, members: Vec::new() }
    }

    fn start(&mut self) {
        let settings = ConsumerSettings {
            group_id: Some(GROUP.to_owned()),
            // Fetches that return nothing are not what this run is about.
            fetch_wait_max: Duration::from_secs(20),
            ..ConsumerSettings::default()
        };
        let shared = Arc::new(ConsumerShared::new(settings));
        let group = GroupSettings {
            group_protocol: if self.assignor.is_some() {
                GroupProtocol::Classic
            } else {
                GroupProtocol::Consumer
            },
            assignors: self.assignor.into_iter().map(Into::into).collect(),
            session_timeout: SESSION,
            heartbeat_interval: HEARTBEAT,
            ..GroupSettings::with_defaults(GROUP)
        };
        group.shared.begin_blocking();
        let parts = parts(None, Some(Arc::clone(&shared)));
        let client = Client::new(cluster_settings(BROKERS, Some(group)), parts, self.rng.fork());
        client.commands.push(Command::Group(GroupCommand::Subscribe([Arc::from("t")].into_iter().collect())));
        self.world.clients.push(client);
        self.members.push((self.world.clients.len() - 1, shared));
    }

    /// The first member leaves, and another one joins.
    fn flap(&mut self) -> Result<(), Broken> {
        let (done, waiting) = completion();
        let (client, _) = self.members[0];
        self.world.clients[client]
            .commands
            .push(Command::Group(GroupCommand::Close(GroupMembershipOperation::Default, done)));
        self.pass(Duration::from_secs(12))?;
        if waiting.try_take().is_none() {
            return Err(Broken::new("close", "a member of the crowd did not close in time"));
        }
        self.world.clients[client].commands.push(Command::Close { timeout: Duration::ZERO });
        self.members.remove(0);
        self.watch("after a member left", 3)?;
        self.settle("after a member left")?;
        self.start();
        self.watch("after a member came", 3)?;
        self.settle("after a member came")
    }

    fn pass(&mut self, time: Duration) -> Result<(), Broken> {
        let until = self.world.now + time;
        self.world.run_until(until)
    }

    /// Waits until each partition has one member.
    fn settle(&mut self, when: &str) -> Result<(), Broken> {
        let deadline = self.world.now + SETTLE;
        loop {
            let held: usize = self.members.iter().map(|(_, shared)| shared.assignment().len()).sum();
            let least = self.members.iter().map(|(_, shared)| shared.assignment().len()).min().unwrap_or(0);
            if held == self.partitions && least >= 1 {
                return Ok(());
            }
            if self.world.now > deadline {
                let what =
                    format!("{when}: {held} of {} partitions have members, one has {least}", self.partitions);
                return Err(Broken::new("convergence", what));
            }
            self.pass(Duration::from_millis(500))?;
        }
    }

    /// Runs for 20 s; no member may join more often than `rebalances` allow, or send more heartbeats than its interval.
    fn watch(&mut self, when: &str, rebalances: usize) -> Result<(), Broken> {
        let window = Duration::from_secs(20);
        self.world.cluster.control().record_requests();
        self.pass(window)?;
        let requests = self.world.cluster.control().take_requests();
        self.world.cluster.control().stop_recording();
        let count = |api| requests.iter().filter(|request| request.api == api).count();
        let members = self.members.len() + 1;
        let joins = count(ApiKey::JoinGroup);
        let beats = count(ApiKey::Heartbeat) + count(ApiKey::ConsumerGroupHeartbeat);
        let lookups = count(ApiKey::FindCoordinator);
        let most_beats =
            members * ((window.as_millis() / HEARTBEAT.as_millis()) as usize + 3 * rebalances + 2);
        if joins > members * rebalances + 10 || beats > most_beats || lookups > members * 3 {
            let what = format!(
                "{when} {members} members sent {joins} JoinGroup, {beats} heartbeats and {lookups} FindCoordinator \
                 requests in {window:?}"
            );
            return Err(Broken::new("storm", what));
        }
        Ok(())
    }
}
