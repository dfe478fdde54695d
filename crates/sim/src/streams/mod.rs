//! Members of a streams group, while everything around them fails.
//!
//! A run is a world of its own: members of one streams group have the tasks of a topology with two subtopologies. They join,
//! leave, die, freeze, and give up tasks slowly. After the faults each task must be active at one member within a bounded time.
//!
//! | checker | what must hold |
//! |---|---|
//! | tasks | a task is assigned only if the member does not have it, and revoked once after each assignment |
//! | exclusive | the application has an active task only while the coordinator counts it as the member's, and one member has it |
//! | lost | without faults no membership ends |
//! | description | the topology's description is sent when the coordinator asks for it, and only then |
//! | drain | after the faults each task is active at one member in time, and the applications have what the coordinator says |
//! | close | leaving takes no longer than it may, and empties the group |
//!
//! Read `setup`, `member`, `events`, `checks`, then [`schedules`].

mod checks;
mod dials;
mod events;
mod member;
pub mod schedules;
mod setup;

use std::{sync::Arc, time::Duration};

use ottla_core::{
    admin::groups::topology_description::{
        SubtopologyDescription, TopologyDescription, TopologyNode, TopologyNodeKind,
    },
    broker::BrokerParts,
    cluster::{ClusterSettings, command::Command},
    connection::{ConnectionSettings, buffer::BufferPool},
    machine::Instant,
    rng::Rng,
    streams::{
        StreamsCommand,
        settings::StreamsSettings,
        shared::StreamsShared,
        topology::{InternalTopic, Subtopology, Topology},
    },
};
use ottla_embedded_broker::{BrokerId, Cluster, ClusterOptions};

use self::{
    member::{Member, State},
    setup::Setup,
};
use crate::{
    checkers::Broken,
    client::Client,
    dials::{self as settings, Setting},
    incidents::{Eventful, Incidents},
    plan::{Plan, Ran},
    world::{FIRST_PORT, World},
};

const GROUP: &str = "application";
const SOURCE: &str = "in";
const SESSION: Duration = Duration::from_secs(6);
const HEARTBEAT: Duration = Duration::from_millis(500);
const REQUEST: Duration = Duration::from_secs(2);
/// The time in which an application gives up tasks before the coordinator removes the member.
const REBALANCE: Duration = Duration::from_secs(5);
/// The time after which the coordinator asks again for the topology's description.
const ASKS_AGAIN: Duration = Duration::from_secs(60);
/// The time that leaving may take.
const LEAVE: Duration = Duration::from_secs(4);
/// The most members that run at the same time.
const MEMBERS: usize = 6;

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Tasks that members got, in all roles.
    pub assigned: u64,
    /// Tasks that members gave up because others get them.
    pub reassigned: u64,
    /// Tasks that members lost with their membership.
    pub lost: u64,
    /// Members.
    pub members: usize,
    /// Members whose process died.
    pub killed: u64,
    /// Descriptions of the topology that members sent.
    pub pushed: u64,
    /// The virtual time that passed.
    pub virtual_time: Duration,
}

struct Run {
    rng: Rng,
    world: World,
    setup: Setup,
    members: Vec<Member>,
    cut: Vec<(Instant, usize, BrokerId)>,
    down: Vec<(Instant, BrokerId)>,
    killed: u64,
    pushed: u64,
    incidents: Incidents,
}

impl Eventful for Run {
    fn parts(&mut self) -> (&mut Rng, &mut World, &mut Incidents) {
        (&mut self.rng, &mut self.world, &mut self.incidents)
    }
}

/// Runs the streams group of a seed.
pub fn run(seed: u64) -> Result<Summary, Broken> {
    replay(seed, false).0
}

/// Runs the streams group of a seed, and returns the trace if it `keeps` one.
pub fn replay(seed: u64, keeps: bool) -> (Result<Summary, Broken>, Vec<String>) {
    let mut run = Run::new(seed, Setup::from_seed(seed), keeps);
    let result = run.go();
    (result.map(|()| run.summary()), run.world.trace.lines().to_vec())
}

/// Returns the settings of the world of a seed.
pub fn settings_of(seed: u64) -> Vec<Setting> {
    settings::read(dials::DIALS, &Setup::from_seed(seed))
}

/// Runs the world of a plan.
pub fn run_plan(plan: &Plan, keeps: bool) -> Ran {
    let setup = plan.set(dials::DIALS, Setup::from_seed(plan.seed));
    plan.run_in(Run::new(plan.salted_seed(), setup, keeps), Run::go)
}

impl Run {
    fn go(&mut self) -> Result<(), Broken> {
        self.go_with(|run, _| run.change())
    }
}

impl Run {
    fn new(seed: u64, setup: Setup, keeps_trace: bool) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0x0074_6173_6b73);
        let mut cluster = Cluster::new(ClusterOptions {
            brokers: setup.brokers,
            host: "broker".to_owned(),
            port: FIRST_PORT,
            replication_factor: setup.brokers as i16,
            auto_create_topics: false,
            seed: Some(rng.next_u64()),
            group_streams_session_timeout: SESSION,
            group_streams_heartbeat_interval: HEARTBEAT,
            group_streams_num_standby_replicas: setup.standby_replicas,
            group_streams_description_interval: Some(ASKS_AGAIN),
            ..ClusterOptions::default()
        });
        // The name is valid and new.
        let _ = cluster.control().create_topic(SOURCE, setup.partitions, setup.brokers as i16);
        let mut world = World::new(cluster, setup.network.clone(), rng.fork(), keeps_trace);
        world.trace.note(world.now, format_args!("{setup:?}"));
        Self {
            rng,
            world,
            setup,
            members: Vec::new(),
            cut: Vec::new(),
            down: Vec::new(),
            killed: 0,
            pushed: 0,
            incidents: Incidents::default(),
        }
    }

    fn summary(&self) -> Summary {
        let sum = |of: fn(&Member) -> u64| self.members.iter().map(of).sum();
        Summary {
            assigned: sum(|member| member.assigned),
            reassigned: sum(|member| member.reassigned),
            lost: sum(|member| member.lost),
            members: self.members.len(),
            killed: self.killed,
            pushed: self.pushed,
            virtual_time: self.world.now - Instant::from_nanos(1_000_000_000),
        }
    }

    // ---- the phases

    /// Runs with these events in the first phase, each with its number.
    fn go_with(&mut self, mut event: impl FnMut(&mut Self, u64)) -> Result<(), Broken> {
        (0..self.setup.members).for_each(|_| self.start_member());
        let end = self.world.now + self.setup.suffers;
        let (mut next_event, mut number) = (self.world.now, 0);
        while self.world.now < end {
            self.step()?;
            let interval = self.setup.event_interval;
            self.incur(&mut next_event, interval, |run| {
                event(run, number);
                number += 1;
            });
        }
        self.heal();
        self.drain()?;
        self.check_descriptions()?;
        self.leave_all()
    }

    fn heal(&mut self) {
        self.world.trace.note(self.world.now, format_args!("everything heals"));
        for (_, client, broker) in std::mem::take(&mut self.cut) {
            self.world.partitioned.remove(&(client, broker));
        }
        self.down.clear();
        let mut control = self.world.cluster.control();
        control.clear_faults();
        for broker in control.brokers() {
            control.restart_broker(broker);
            control.set_latency(broker, Duration::ZERO);
        }
        self.world.settle_cluster();
        if !self.members.iter().any(Member::is_running) {
            self.start_member();
        }
    }

    // ---- steps

    fn step(&mut self) -> Result<(), Broken> {
        let time = self.rng.jitter(Duration::from_millis(8), 90);
        self.world.run_until(self.world.now + time)?;
        let now = self.world.now;
        self.end_faults(now);
        for index in 0..self.members.len() {
            self.step_member(index)?;
        }
        self.check_owners()
    }

    fn step_member(&mut self, index: usize) -> Result<(), Broken> {
        let now = self.world.now;
        let commands = Arc::clone(&self.world.clients[self.members[index].client].commands);
        let member = &mut self.members[index];
        if member.frozen_until > now {
            return Ok(());
        }
        match &member.state {
            State::Running => member.act(now, &commands, &mut self.rng, &self.setup),
            State::Leaving(until, waiting) => {
                if waiting.try_take().is_some() {
                    member.state = State::Left;
                } else if now > *until + Duration::from_millis(500) && !self.setup.has_faults {
                    return Err(Broken::new("close", format!("member {index} is late")));
                }
                Ok(())
            }
            State::Left | State::Dead => Ok(()),
        }
    }

    // ---- clients

    fn start_member(&mut self) {
        if self.members.iter().filter(|member| member.is_running()).count() >= MEMBERS {
            return;
        }
        let index = self.members.len();
        let shared = Arc::new(StreamsShared::new(StreamsSettings {
            rebalance_timeout: REBALANCE,
            request_timeout: REQUEST,
            endpoint: Some((format!("host-{index}"), 70)),
            description: Some(description()),
            ..StreamsSettings::with_defaults(GROUP, topology())
        }));
        let client = self.add_client(&shared);
        self.world.clients[client].commands.push(Command::Streams(StreamsCommand::Join));
        self.world.trace.note(self.world.now, format_args!("client {client} is member {index}"));
        self.members.push(Member::new(index, client, shared));
    }

    /// Adds a client to the world, and returns its index.
    fn add_client(&mut self, shared: &Arc<StreamsShared>) -> usize {
        let settings = ClusterSettings {
            bootstrap: (0..self.setup.brokers)
                .map(|number| ("broker".to_owned(), FIRST_PORT + number as u16))
                .collect(),
            request_timeout: REQUEST,
            refresh_interval: Some(Duration::from_secs(10)),
            streams: Some(Arc::clone(shared)),
            ..ClusterSettings::default()
        };
        let parts = BrokerParts {
            connection: Arc::new(ConnectionSettings {
                setup_timeout: Duration::from_secs(1),
                request_timeout: REQUEST,
                reconnect_backoff_max: Duration::from_secs(1),
                ..ConnectionSettings::default()
            }),
            producer: None,
            consumer: None,
            share: None,
            buffers: BufferPool::default(),
        };
        self.world.clients.push(Client::new(settings, parts, self.rng.fork()));
        self.world.clients.len() - 1
    }
}

/// A topology that counts: it reads the source, writes a repartition topic, and keeps counts of that.
fn topology() -> Topology {
    let named = |name: &str| InternalTopic { name: name.to_owned(), ..InternalTopic::default() };
    let reading = Subtopology {
        id: "0".to_owned(),
        source_topics: vec![SOURCE.to_owned()],
        repartition_sink_topics: vec!["keys".to_owned()],
        ..Subtopology::default()
    };
    let counting = Subtopology {
        id: "1".to_owned(),
        repartition_source_topics: vec![named("keys")],
        changelog_topics: vec![named("counts")],
        ..Subtopology::default()
    };
    Topology { epoch: 0, subtopologies: vec![reading, counting] }
}

/// The nodes of [`topology`].
fn description() -> TopologyDescription {
    let node = |name: &str, kind, next: &[&str]| TopologyNode {
        name: name.to_owned(),
        kind,
        successors: next.iter().map(|name| (*name).to_owned()).collect(),
    };
    let source = |topic: &str| TopologyNodeKind::Source { topics: vec![topic.to_owned()] };
    let sink = TopologyNodeKind::Sink { topic: Some("keys".to_owned()) };
    let count = TopologyNodeKind::Processor { stores: vec!["counts".to_owned()] };
    let part = |id: &str, nodes| SubtopologyDescription { id: id.to_owned(), nodes };
    let reading = part("0", vec![node("lines", source(SOURCE), &["keys"]), node("keys", sink, &[])]);
    let counting = part("1", vec![node("words", source("keys"), &["count"]), node("count", count, &[])]);
    TopologyDescription { subtopologies: vec![reading, counting], global_stores: Vec::new() }
}
