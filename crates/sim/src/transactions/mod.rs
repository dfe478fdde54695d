//! Transactional producers, and applications that copy records in transactions, while everything around them fails.
//!
//! Each run has its own world. Each of its `transactional.id`s has an application, which may die and be replaced,
//! freeze, or be replaced while it lives. Plain producers write to an input topic; copiers, which are group members,
//! copy its records to other topics, with their offsets in the same transactions; or there are no copiers. Readers of
//! committed records follow all topics. After the faults every application must complete a transaction within a bounded
//! time, and the logs, the readers, the reports and the committed offsets must agree with the results that the
//! applications got.
//!
//! ```text
//!   producers ──► in ──► copiers (a group) ──► out     readers of all topics
//! ```
//!
//! | checker | what must hold |
//! |---|---|
//! | atomicity (E1) | of a transaction, all records and offsets are visible or none |
//! | truth (E2) | a commit that succeeded is visible, an aborted transaction never is |
//! | zombie (E3) | nothing of an earlier instance becomes visible after a later one has its producer ID |
//! | exactly once (E4) | each committed record of the input has one visible copy |
//! | agreement (E5) | the committed offset of an input partition is the offset after the last visible copy |
//! | order (E6) | in a partition, a producer's visible records are in the order in which they were sent |
//! | leak (E7) | no marker ends records of two transactions |
//! | stable (E8) | a reader sees each committed record once and in order, never beyond the last stable offset |
//! | reports (E9) | each accepted record has one report; it is persisted if and only if it is in the log |
//! | epochs (E10) | a transaction has one epoch, and shares it with no request of another one that may still arrive |
//! | calls (E11) | calls fail only with errors that fit their state |
//! | recovery (E12) | after the faults, each producer that was not superseded completes a transaction in time |
//! | storm (E13) | CONCURRENT_TRANSACTIONS leads to a growing back-off |
//! | fatal (E14) | a producer fails for good only if another one took over, or if it exceeded its transaction's timeout |
//!
//! The messages name anomalies as Jepsen does. [`checkers::transactions`](crate::checkers::transactions) checks the requests.
//!
//! Read `ledger`, `application`, `copier`, `reader`, `log`, `steps`, `events`, `checks`, then [`schedules`].

mod application;
mod checks;
mod copier;
mod dials;
mod events;
mod ledger;
mod log;
mod reader;
pub mod schedules;
mod steps;

use std::{sync::Arc, time::Duration};

use ottla_core::{
    broker::BrokerParts,
    cluster::{ClusterSettings, command::Command},
    config::OffsetReset,
    connection::{ConnectionSettings, buffer::BufferPool},
    fetch::{settings::ConsumerSettings, shared::ConsumerShared},
    group::{GroupCommand, GroupProtocol, GroupSettings, assignor::Assignor},
    machine::Instant,
    produce::{collector::Linger, settings::ProducerSettings, shared::ProducerShared},
    rng::Rng,
    txn::call::TransactionCalls,
};
use ottla_embedded_broker::{BrokerId, Cluster, ClusterOptions};
use ottla_protocol::compress::Compression;
use ottla_sorted::{SortedMap, SortedSet};

use self::{
    application::{Application, Manners, State},
    copier::{Copier, Inbox},
    ledger::{Ledger, Place},
    reader::Reader,
};
use crate::{
    checkers::Broken,
    client::Client,
    dials::{self as settings, Setting},
    incidents::{Eventful, Incidents},
    network::NetworkKnobs,
    plan::{Plan, Ran},
    workload::Reports,
    world::{FIRST_PORT, World},
};

const GROUP: &str = "copiers";
const SESSION: Duration = Duration::from_secs(6);
const REBALANCE: Duration = Duration::from_secs(8);
const REQUEST: Duration = Duration::from_secs(2);

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records that were accepted.
    pub records: u64,
    /// Transactions that were begun.
    pub transactions: u64,
    /// Commits and aborts that succeeded.
    pub committed: u64,
    /// See `committed`.
    pub aborted: u64,
    /// Commits that failed, or had no result.
    pub uncertain: u64,
    /// Calls that timed out.
    pub timeouts: u64,
    /// Records that readers saw, with repetitions.
    pub read: u64,
    /// Copies that are visible.
    pub copies: u64,
    /// Instances of applications.
    pub instances: usize,
    /// Instances that failed for good.
    pub fenced: u64,
    /// Instances whose process died.
    pub killed: u64,
    /// Instances whose host slept for longer than `transaction.timeout.ms`.
    pub frozen: u64,
    /// The virtual time that passed.
    pub virtual_time: Duration,
}

/// The properties of a world that its seed decides.
#[derive(Clone, Debug)]
struct Setup {
    brokers: i32,
    topics: Vec<(String, i32)>,
    /// The number of plain producers, and of copiers.
    producers: usize,
    copiers: usize,
    protocol: Option<Assignor>,
    readers: usize,
    /// The feature `transaction.version` at the start.
    version: i16,
    /// The feature changes while the world runs.
    is_switched: bool,
    /// The number of messages with which a batch of a producer is full.
    batch_messages: usize,
    has_faults: bool,
    /// Nothing keeps the readers from their brokers.
    is_calm: bool,
    /// Workers compress the batches.
    workers: bool,
    /// Killed brokers may lose records that followers do not have.
    loses_tails: bool,
    timeout: Duration,
    timeout_interval: Duration,
    marker_delay: Duration,
    replication_lag: Duration,
    linger: Duration,
    message_timeout: Duration,
    manners: Manners,
    network: NetworkKnobs,
    rereads: u64,
    /// The duration of the faults, and the mean time between them.
    suffers: Duration,
    fault_interval: Duration,
}

struct Run {
    rng: Rng,
    world: World,
    setup: Setup,
    ledger: Ledger,
    applications: Vec<Application>,
    readers: Vec<Reader>,
    /// Per instance that obtained its producer ID: the ends of all logs at that time.
    fences: Vec<(usize, SortedMap<Place, i64>)>,
    /// Connections that are cut, and until when.
    cut: Vec<(Instant, usize, BrokerId)>,
    /// True if requests of the older protocol that register partitions or groups may have been delivered late.
    registers_late: bool,
    /// True if an EndTxn may have been delivered late.
    ends_late: bool,
    /// The slots whose producer ID has used its epochs up.
    exhausted: SortedSet<usize>,
    /// Set when the faults end.
    healed: Option<Instant>,
    /// 1 when plain producers stop, 2 when copiers do.
    stage: u8,
    incidents: Incidents,
    summary: Summary,
}

impl Eventful for Run {
    fn parts(&mut self) -> (&mut Rng, &mut World, &mut Incidents) {
        (&mut self.rng, &mut self.world, &mut self.incidents)
    }
}

/// Runs the transactions of a seed.
pub fn run(seed: u64) -> Result<Summary, Broken> {
    replay(seed, false).0
}

/// Runs the transactions of a seed, and returns the trace if it `keeps` one.
pub fn replay(seed: u64, keeps: bool) -> (Result<Summary, Broken>, Vec<String>) {
    let mut run = Run::new(seed, Setup::from_seed(seed), keeps);
    let result = run.go_unless_excused();
    let summary = Summary { virtual_time: run.world.now - Instant::from_nanos(1_000_000_000), ..run.summary };
    (result.map(|()| summary), run.world.trace.lines().to_vec())
}

/// Returns the settings of the world of a seed.
pub fn settings_of(seed: u64) -> Vec<Setting> {
    settings::read(dials::DIALS, &Setup::from_seed(seed))
}

/// Runs the world of a plan.
pub fn run_plan(plan: &Plan, keeps: bool) -> Ran {
    let setup = plan.set(dials::DIALS, Setup::from_seed(plan.seed));
    plan.run_in(Run::new(plan.salted_seed(), setup, keeps), Run::go_unless_excused)
}

impl Setup {
    fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0x7278);
        let brokers = [1, 2, 3, 3][rng.below(4) as usize];
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let copiers = pick(&[0, 0, 1, 2, 3]) as usize;
        let mut topics = vec![("in".to_owned(), pick(&[1, 2, 4]) as i32)];
        topics.extend((0..pick(&[1, 1, 2])).map(|number| (format!("out{number}"), pick(&[1, 3]) as i32)));
        let (version, is_switched) = [(2, false), (2, false), (1, false), (0, false), (2, true), (1, true)]
            [pick(&[0, 1, 2, 3, 4, 5]) as usize];
        let timeout = Duration::from_millis(pick(&[1_500, 4_000, 20_000]));
        let has_faults = pick(&[0, 1, 1, 1]) == 1;
        let loses_tails = brokers > 1 && pick(&[0, 0, 1]) == 1;
        let protocol = match pick(&[0, 1, 2, 3, 4, 4]) {
            4 => None,
            number => Some(Assignor::ALL[number as usize]),
        };
        Self {
            brokers,
            topics,
            producers: pick(&[1, 1, 2, 3]) as usize,
            copiers,
            protocol,
            readers: pick(&[1, 1, 2]) as usize,
            version,
            is_switched,
            has_faults,
            is_calm: !has_faults,
            workers: Rng::from_seed(seed ^ 0x0c_0dec).chance(1, 3),
            loses_tails,
            timeout,
            timeout_interval: Duration::from_millis(pick(&[10, 100, 1_000])),
            marker_delay: Duration::from_millis(pick(&[0, 1, 5, 50])),
            replication_lag: Duration::from_millis(pick(&[0, 0, 5, 50])),
            linger: Duration::from_millis(pick(&[0, 5, 50])),
            message_timeout: timeout.min(Duration::from_millis(pick(&[700, 20_000, 20_000]))),
            network: NetworkKnobs {
                latency: Duration::from_micros(pick(&[100, 1_000, 10_000])),
                jitter: Duration::from_micros(pick(&[50, 2_000, 20_000])),
                window: 1 << 20,
                cut_percent: pick(&[0, 5, 30]),
            },
            rereads: pick(&[0, 0, 200]),
            suffers: Duration::from_secs(pick(&[20, 40])),
            fault_interval: Duration::from_millis(pick(&[100, 500, 2_000])),
            manners: Manners::draw(&mut rng, timeout),
            batch_messages: if rng.chance(1, 8) { 2 } else { usize::MAX },
        }
    }
}

impl Run {
    fn new(seed: u64, setup: Setup, keeps_trace: bool) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0x7472616e73);
        let brokers = setup.brokers;
        let mut cluster = Cluster::new(ClusterOptions {
            brokers,
            host: "broker".to_owned(),
            port: FIRST_PORT,
            replication_factor: brokers as i16,
            replication_lag: setup.replication_lag,
            auto_create_topics: false,
            seed: Some(rng.next_u64()),
            transaction_version: setup.version,
            transaction_timeout_interval: setup.timeout_interval,
            transaction_marker_delay: setup.marker_delay,
            group_consumer_session_timeout: SESSION,
            group_consumer_heartbeat_interval: Duration::from_millis(500),
            group_initial_rebalance_delay: Duration::ZERO,
            ..ClusterOptions::default()
        });
        for (name, partitions) in &setup.topics {
            // The names are valid and new.
            let _ = cluster.control().create_topic(name, *partitions, brokers as i16);
        }
        let mut world = World::new(cluster, setup.network.clone(), rng.fork(), keeps_trace);
        for (index, (name, _)) in setup.topics.iter().enumerate() {
            world.wire.transactions.set_topic(name, index as u32);
        }
        setup.topics.iter().for_each(|(name, _)| world.tell_topic(name));
        world.trace.note(world.now, format_args!("{setup:?}"));
        Self {
            rng,
            world,
            setup,
            ledger: Ledger::default(),
            applications: Vec::new(),
            readers: Vec::new(),
            fences: Vec::new(),
            cut: Vec::new(),
            registers_late: false,
            ends_late: false,
            exhausted: SortedSet::new(),
            healed: None,
            stage: 0,
            incidents: Incidents::default(),
            summary: Summary::default(),
        }
    }

    // ---- the phases

    /// Runs. Nothing holds for a producer that was told another one's epoch, and no client can notice that.
    fn go_unless_excused(&mut self) -> Result<(), Broken> {
        let result = self.go();
        let is_excused = self.setup.is_switched && self.world.cluster.control().has_confused_producers();
        if is_excused { Ok(()) } else { result }
    }

    fn go(&mut self) -> Result<(), Broken> {
        self.go_with(|run, _| run.change())
    }

    /// Runs with these events in the first phase, each with its number.
    fn go_with(&mut self, mut event: impl FnMut(&mut Self, u64)) -> Result<(), Broken> {
        (0..self.setup.readers).for_each(|_| self.start_reader());
        (0..self.setup.producers + self.setup.copiers).for_each(|slot| self.start(slot));
        let end = self.world.now + self.setup.suffers;
        let (mut next_event, mut number) = (self.world.now, 0);
        while self.world.now < end {
            self.step()?;
            let interval = self.setup.fault_interval;
            self.incur(&mut next_event, interval, |run| {
                event(run, number);
                number += 1;
            });
        }
        self.recover()?;
        self.read_everything()?;
        self.check_everything()
    }

    /// Ends the faults, and waits until each producer has completed a transaction.
    fn recover(&mut self) -> Result<(), Broken> {
        self.heal();
        let alive = self.applications.iter().filter(|application| !application.is_over());
        let awake = alive.map(|application| application.frozen_until).max();
        let start = awake.unwrap_or(self.world.now).max(self.world.now);
        let deadline = start + self.setup.timeout + Duration::from_secs(10);
        loop {
            self.step()?;
            self.replace_failed();
            let late = (0..self.setup.producers + self.setup.copiers).find(|slot| !self.has_recovered(*slot));
            let Some(slot) = late else { return Ok(()) };
            if self.world.now > deadline {
                let states: Vec<_> = self
                    .applications
                    .iter()
                    .filter(|application| application.slot == slot)
                    .map(|application| (application.state, application.calls.state()))
                    .collect();
                let what = format!("no producer of slot {slot} has committed a transaction: {states:?}");
                return Err(Broken::new("recovery", what));
            }
        }
    }

    /// Waits until the applications rest, everything is copied, and all is read.
    fn read_everything(&mut self) -> Result<(), Broken> {
        for stage in 1..=2 {
            self.stage = stage;
            // A member that died stays in the group for a session.
            let patience = self.setup.timeout + SESSION + REBALANCE + Duration::from_secs(60);
            // One copier may have to copy what three producers wrote.
            let end = self.world.now + 10 * patience;
            let mut waits = (String::new(), self.world.now);
            loop {
                let until = self.world.now + Duration::from_millis(300);
                while self.world.now < until {
                    self.step()?;
                }
                self.replace_failed();
                let Some(what) = self.unfinished() else { break };
                if waits.0 != what {
                    waits = (what, self.world.now);
                }
                if self.world.now > end.min(waits.1 + patience) {
                    return Err(Broken::new("recovery", waits.0));
                }
            }
        }
        Ok(())
    }

    /// Returns the work that is not finished.
    fn unfinished(&mut self) -> Option<String> {
        let (stage, producers) = (self.stage, self.setup.producers);
        let is_busy = |it: &&Application| {
            let stops = stage == 2 || it.slot < producers;
            stops && !it.is_over() && (it.transaction.is_some() || it.is_calling())
        };
        let busy = self.applications.iter().find(is_busy);
        if let Some(busy) = busy {
            return Some(format!("a producer of slot {} is in state {:?}", busy.slot, busy.state));
        }
        if let Some(missing) = self.missing_copy() {
            return Some(missing);
        }
        if stage < 2 {
            return None;
        }
        let cluster = &mut self.world.cluster;
        self.readers.iter().find_map(|reader| reader.behind(cluster))
    }

    fn heal(&mut self) {
        self.world.trace.note(self.world.now, format_args!("everything heals"));
        for (_, client, broker) in std::mem::take(&mut self.cut) {
            self.world.partitioned.remove(&(client, broker));
        }
        let mut control = self.world.cluster.control();
        control.clear_faults();
        control.thaw_metadata();
        control.mix_clusters(&[]);
        for broker in control.brokers() {
            control.restart_broker(broker);
            control.set_latency(broker, Duration::ZERO);
        }
        for (topic, count) in &self.setup.topics {
            (0..*count).for_each(|partition| control.delay_markers(topic, partition, None));
        }
        self.world.settle_cluster();
        self.healed = Some(self.world.now);
        self.setup.manners = self.setup.manners.prompt();
        for application in &mut self.applications {
            application.manners = application.manners.prompt();
        }
    }

    // ---- clients

    /// Starts an instance of an application.
    fn start(&mut self, slot: usize) {
        let settings = ProducerSettings {
            transactional_id: Some(transactional_id(slot).into()),
            transaction_timeout: self.setup.timeout,
            response_timeout: self.request_timeout(),
            linger: Linger::Broker(self.setup.linger),
            ..ProducerSettings::default()
        };
        let mut settings = settings;
        settings.topic.message_timeout = Some(self.setup.message_timeout);
        // The requests of a copier wait behind its Fetch, so that few of them are sent in a second.
        if slot < self.setup.producers {
            settings.topic.batch.max_records =
                settings.topic.batch.max_records.min(self.setup.batch_messages);
        }
        settings.topic.acks_timeout = Duration::from_secs(1);
        if self.setup.workers {
            settings.topic.compression = Compression::Lz4;
            settings.topic.batch.sums_early = false;
        }
        let reports = Arc::new(Reports::default());
        let sink = Arc::clone(&reports);
        let producer = Arc::new(ProducerShared::new(settings, sink, self.rng.fork()));
        let (mut group, mut copier, mut consumer) = (None, None, None);
        if slot >= self.setup.producers {
            let (settings, half) = self.copier();
            (group, consumer, copier) = (Some(settings), Some(Arc::clone(&half.shared)), Some(half));
        }
        let client = self.add_client(group, Some(Arc::clone(&producer)), consumer);
        self.world.wire.transactions.expect(client);
        let commands = &self.world.clients[client].commands;
        let Ok(calls) = TransactionCalls::new(&producer, Arc::clone(commands) as _) else { return };
        if copier.is_some() {
            let topics = std::iter::once(Arc::from(&*self.setup.topics[0].0)).collect();
            commands.push(Command::Group(GroupCommand::Subscribe(topics)));
        }
        let now = self.world.now;
        self.world.trace.note(now, format_args!("client {client} is an instance of slot {slot}"));
        self.applications.push(Application {
            slot,
            client,
            producer,
            reports,
            calls,
            copier,
            manners: self.setup.manners,
            state: State::Starting,
            running: None,
            transaction: None,
            sent: 0,
            started: now,
            ready: None,
            identity: None,
            ended: None,
            frozen_until: now,
            calm_commits: 0,
        });
        self.summary.instances += 1;
    }

    fn copier(&self) -> (GroupSettings, Copier) {
        let shared = Arc::new(ConsumerShared::new(ConsumerSettings {
            group_id: Some(GROUP.to_owned()),
            auto_offset_reset: OffsetReset::Beginning,
            response_timeout: REQUEST,
            ..ConsumerSettings::default()
        }));
        let (group_protocol, assignors) = match self.setup.protocol {
            Some(assignor) => (GroupProtocol::Classic, vec![assignor.into()]),
            None => (GroupProtocol::Consumer, Vec::new()),
        };
        let group = GroupSettings {
            group_protocol,
            assignors,
            session_timeout: SESSION,
            heartbeat_interval: Duration::from_millis(500),
            max_poll_interval: REBALANCE,
            auto_commit: false,
            request_timeout: REQUEST,
            ..GroupSettings::with_defaults(GROUP)
        };
        let inbox = Arc::new(Inbox::default());
        group.shared.set_sink(Arc::clone(&inbox) as _);
        let copier = Copier::new(shared, Arc::clone(&group.shared), inbox, None);
        (group, copier)
    }

    fn start_reader(&mut self) {
        let shared = Arc::new(ConsumerShared::new(ConsumerSettings {
            auto_offset_reset: OffsetReset::Beginning,
            response_timeout: REQUEST,
            partition_eof: true,
            ..ConsumerSettings::default()
        }));
        let client = self.add_client(None, None, Some(Arc::clone(&shared)));
        let Setup { topics, rereads, is_calm, .. } = &self.setup;
        let reader = Reader::new(client, shared, topics, *rereads, *is_calm);
        reader.start(&self.world.clients[client].commands);
        self.readers.push(reader);
    }

    /// Adds a client to the world, and returns its index.
    fn add_client(
        &mut self,
        group: Option<GroupSettings>,
        producer: Option<Arc<ProducerShared>>,
        consumer: Option<Arc<ConsumerShared>>,
    ) -> usize {
        let request_timeout = self.request_timeout();
        let settings = ClusterSettings {
            bootstrap: (0..self.setup.brokers)
                .map(|number| ("broker".to_owned(), FIRST_PORT + number as u16))
                .collect(),
            request_timeout,
            refresh_interval: Some(Duration::from_secs(10)),
            group,
            ..ClusterSettings::default()
        };
        let parts = BrokerParts {
            connection: Arc::new(ConnectionSettings {
                setup_timeout: Duration::from_secs(1),
                request_timeout,
                reconnect_backoff_max: Duration::from_secs(1),
                ..ConnectionSettings::default()
            }),
            producer,
            consumer,
            share: None,
            buffers: BufferPool::default(),
        };
        let mut client = Client::new(settings, parts, self.rng.fork());
        if self.setup.workers {
            client.hire_workers();
        }
        self.world.clients.push(client);
        self.world.clients.len() - 1
    }

    /// `socket.timeout.ms` of a producer is lower than `transaction.timeout.ms`.
    fn request_timeout(&self) -> Duration {
        REQUEST.min(self.setup.timeout - Duration::from_millis(100))
    }
}

fn transactional_id(slot: usize) -> String {
    format!("transactional-{slot}")
}
