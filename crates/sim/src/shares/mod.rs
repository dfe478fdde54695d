//! Members of a share group, while everything around them fails.
//!
//! A run is a world of its own: a producer writes to one topic, and members of one share group process its records. They
//! join, leave, die, freeze, process too slowly, release, reject, and hold records back. After the faults everything must be
//! finished within a bounded time, and the outcomes that applications got must agree with the brokers' state.
//!
//! | checker | what must hold |
//! |---|---|
//! | held (Q1) | without faults, a record is one member's until its lock ends |
//! | ranges (Q2) | exactly the acquired records are delivered |
//! | drain (Q3, Q11, Q16) | after the faults every record is finished in time |
//! | finished (Q4, Q5, Q8) | a record that was reported as finished is so at the brokers, and without faults never delivered again |
//! | reports (Q6) | each acknowledgement has one outcome |
//! | counts (Q7) | the delivery count is never above the limit, and rises without faults |
//! | verdicts (Q9, Q10) | no record is finished without a verdict, unless it was delivered as often as allowed |
//! | share sessions (Q12, Q13) | on the wire: epochs, one request at a time, ascending ranges, no storm |
//! | close (Q14) | leaving takes no longer than it may, and leaves no record behind |
//! | renewal (Q15) | without faults, no lock ends of a record that is renewed |
//! | limit | with a strict limit no poll returns more records (KIP-1206), except from older brokers |
//!
//! [`checkers::share_sessions`](crate::checkers::share_sessions) checks the requests. Read `setup`, `ledger`, `member`, `events`,
//! `checks`, then [`schedules`].

mod checks;
mod dials;
mod events;
mod ledger;
mod member;
pub mod schedules;
mod setup;

use std::{sync::Arc, time::Duration};

use ottla_core::{
    broker::BrokerParts,
    cluster::{ClusterSettings, command::Command},
    connection::{ConnectionSettings, buffer::BufferPool},
    machine::Instant,
    produce::{record::Record, settings::ProducerSettings, shared::ProducerShared},
    rng::Rng,
    share::{ShareCommand, settings::ShareSettings, shared::ShareShared},
};
use ottla_embedded_broker::{ApiKey, BrokerId, Cluster, ClusterOptions, ShareGroupOptions, ShareOffsetReset};
use ottla_sorted::SortedSet;

use self::{
    ledger::Ledger,
    member::{Member, State},
    setup::Setup,
};
use crate::{
    checkers::Broken,
    client::Client,
    dials::{self as settings, Setting},
    incidents::{Eventful, Incidents},
    plan::{Plan, Ran},
    workload::Reports,
    world::{FIRST_PORT, World},
};

const GROUP: &str = "shares";
const TOPIC: &str = "jobs";
const SESSION: Duration = Duration::from_secs(6);
const REQUEST: Duration = Duration::from_secs(2);
/// The time that leaving may take.
const LEAVE: Duration = Duration::from_secs(4);
/// The most members that run at the same time.
const MEMBERS: usize = 6;

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records that were written.
    pub records: u64,
    /// Deliveries to members.
    pub deliveries: u64,
    /// Acknowledgements that failed.
    pub failed: u64,
    /// Locks that ended while an application had their records.
    pub expired: u64,
    /// Members.
    pub members: usize,
    /// Members whose process died.
    pub killed: u64,
    /// The virtual time that passed.
    pub virtual_time: Duration,
}

struct Run {
    rng: Rng,
    world: World,
    setup: Setup,
    ledger: Ledger,
    producer: Arc<ProducerShared>,
    reports: Arc<Reports>,
    members: Vec<Member>,
    next_write: Instant,
    is_writing: bool,
    cut: Vec<(Instant, usize, BrokerId)>,
    down: Vec<(Instant, BrokerId)>,
    incidents: Incidents,
    summary: Summary,
}

impl Eventful for Run {
    fn parts(&mut self) -> (&mut Rng, &mut World, &mut Incidents) {
        (&mut self.rng, &mut self.world, &mut self.incidents)
    }
}

/// Runs the share group of a seed.
pub fn run(seed: u64) -> Result<Summary, Broken> {
    replay(seed, false).0
}

/// Runs the share group of a seed, and returns the trace if it `keeps` one.
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
        self.go_with(|run, _| {
            if run.setup.has_faults {
                run.change();
            }
        })
    }
}

impl Run {
    fn new(seed: u64, setup: Setup, keeps_trace: bool) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0x6a6f_6273);
        let mut cluster = Cluster::new(ClusterOptions {
            brokers: setup.brokers,
            host: "broker".to_owned(),
            port: FIRST_PORT,
            replication_factor: setup.brokers as i16,
            auto_create_topics: false,
            seed: Some(rng.next_u64()),
            share_groups: ShareGroupOptions {
                session_timeout: SESSION,
                heartbeat_interval: Duration::from_millis(500),
                delivery_count_limit: setup.delivery_count_limit,
                record_lock_duration: setup.lock,
                partition_max_record_locks: setup.max_record_locks,
                auto_offset_reset: ShareOffsetReset::Earliest,
                renew_acknowledge_enable: setup.permits_renewals,
                ..ShareGroupOptions::default()
            },
            ..ClusterOptions::default()
        });
        // The name is valid and new.
        let _ = cluster.control().create_topic(TOPIC, setup.partitions, setup.brokers as i16);
        for api in [ApiKey::ShareFetch, ApiKey::ShareAcknowledge] {
            cluster.control().set_api_versions(None, api, 1, setup.version);
        }
        let mut world = World::new(cluster, setup.network.clone(), rng.fork(), keeps_trace);
        world.tell_topic(TOPIC);
        world.trace.note(world.now, format_args!("{setup:?}"));
        let reports = Arc::new(Reports::default());
        let sink = Arc::clone(&reports);
        let producer = Arc::new(ProducerShared::new(ProducerSettings::default(), sink, rng.fork()));
        let mut run = Self {
            rng,
            world,
            setup,
            ledger: Ledger::default(),
            producer: Arc::clone(&producer),
            reports,
            members: Vec::new(),
            next_write: Instant::ZERO,
            is_writing: true,
            cut: Vec::new(),
            down: Vec::new(),
            incidents: Incidents::default(),
            summary: Summary::default(),
        };
        run.add_client(Some(producer), None);
        run
    }

    fn summary(&self) -> Summary {
        Summary {
            deliveries: self.ledger.deliveries,
            failed: self.ledger.failed,
            expired: self.members.iter().map(|member| member.expired).sum(),
            members: self.members.len(),
            virtual_time: self.world.now - Instant::from_nanos(1_000_000_000),
            ..self.summary
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
        self.check_renewals()?;
        self.heal();
        self.drain()?;
        self.check_verdicts()?;
        self.leave_all()
    }

    fn heal(&mut self) {
        self.world.trace.note(self.world.now, format_args!("everything heals"));
        self.is_writing = false;
        for (_, client, broker) in std::mem::take(&mut self.cut) {
            self.world.partitioned.remove(&(client, broker));
        }
        self.down.clear();
        let mut control = self.world.cluster.control();
        control.clear_faults();
        control.assign_share_group(GROUP, None);
        for broker in control.brokers() {
            control.restart_broker(broker);
            control.set_latency(broker, Duration::ZERO);
        }
        self.world.settle_cluster();
        for member in &mut self.members {
            member.manners = member.manners.prompt();
        }
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
        self.write();
        for index in 0..self.members.len() {
            self.step_member(index)?;
        }
        self.check_claims()
    }

    fn step_member(&mut self, index: usize) -> Result<(), Broken> {
        let now = self.world.now;
        let commands = Arc::clone(&self.world.clients[self.members[index].client].commands);
        let rules = (self.setup.delivery_count_limit, self.setup.is_calm());
        let member = &mut self.members[index];
        if member.frozen_until > now {
            return Ok(());
        }
        match &member.state {
            State::Running => member.act(now, &mut self.ledger, &commands, &mut self.rng, rules),
            State::Leaving(until, waiting) => {
                let is_late = now > *until + Duration::from_millis(500) && !self.setup.has_faults;
                let has_left = waiting.try_take().is_some();
                member.take_news(now, &mut self.ledger)?;
                if has_left {
                    member.state = State::Left;
                    return Ok(());
                }
                if is_late {
                    return Err(Broken::new("close", format!("member {index} is late")));
                }
                Ok(())
            }
            State::Left => member.take_news(now, &mut self.ledger),
            State::Dead => Ok(()),
        }
    }

    fn write(&mut self) {
        if !self.is_writing || self.world.now < self.next_write {
            return;
        }
        self.next_write = self.world.now + self.rng.jitter(self.setup.writes, 90);
        let commands = Arc::clone(&self.world.clients[0].commands);
        let (topic, is_new) = self.producer.topic(TOPIC);
        if is_new {
            commands.push(Command::Topic(Arc::clone(&topic)));
        }
        for _ in 0..1 + self.rng.below(5) {
            let record =
                Record::new().value("x").partition(self.rng.below(self.setup.partitions as u64) as i32);
            if self.producer.send(&topic, self.world.now, 0, &record, None).is_ok() {
                self.summary.records += 1;
            }
        }
        self.reports.lock().clear();
    }

    // ---- clients

    fn start_member(&mut self) {
        if self.members.iter().filter(|member| member.is_running()).count() >= MEMBERS {
            return;
        }
        let Setup { renews_locks, is_strict, max_poll_records, max_poll_interval, .. } = self.setup;
        let shared = Arc::new(ShareShared::new(ShareSettings {
            is_implicit: self.setup.manners.is_implicit,
            is_strict,
            renews_locks,
            delivery_count_limit: if self.setup.delivery_count_limit < 1_000 {
                self.setup.delivery_count_limit
            } else {
                0
            },
            max_poll_records,
            max_poll_interval,
            fetch_wait_max: self.setup.fetch_wait,
            request_timeout: REQUEST,
            ..ShareSettings::with_defaults(GROUP)
        }));
        let client = self.add_client(None, Some(Arc::clone(&shared)));
        let topics = SortedSet::from([Arc::from(TOPIC)]);
        self.world.clients[client].commands.push(Command::Share(ShareCommand::Subscribe(topics)));
        let index = self.members.len();
        self.world.trace.note(self.world.now, format_args!("client {client} is member {index}"));
        self.members.push(Member::new(index, client, shared, self.setup.manners, self.setup.version));
    }

    /// Adds a client to the world, and returns its index.
    fn add_client(
        &mut self,
        producer: Option<Arc<ProducerShared>>,
        share: Option<Arc<ShareShared>>,
    ) -> usize {
        let settings = ClusterSettings {
            bootstrap: (0..self.setup.brokers)
                .map(|number| ("broker".to_owned(), FIRST_PORT + number as u16))
                .collect(),
            request_timeout: REQUEST,
            refresh_interval: Some(Duration::from_secs(10)),
            share: share.clone(),
            ..ClusterSettings::default()
        };
        let parts = BrokerParts {
            connection: Arc::new(ConnectionSettings {
                setup_timeout: Duration::from_secs(1),
                request_timeout: REQUEST,
                reconnect_backoff_max: Duration::from_secs(1),
                ..ConnectionSettings::default()
            }),
            producer,
            consumer: None,
            share,
            buffers: BufferPool::default(),
        };
        self.world.clients.push(Client::new(settings, parts, self.rng.fork()));
        self.world.clients.len() - 1
    }
}
