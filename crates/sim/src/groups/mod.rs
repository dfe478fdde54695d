//! Members of a group of either protocol, or of both, that come, go, freeze and lose their connections while they consume.
//!
//! Each run has its own world. In its first phase, members subscribe, leave, die, stop and are suspended, and the
//! network and the coordinator fail, while applications respond to rebalances late or in parts, stop polling, and
//! commit at any time. Then all faults end, and the group must settle and read everything within a bounded time. Then
//! members join and leave one by one, without faults.
//!
//! | checker | what must hold |
//! |---|---|
//! | two holders | no partition is held by two members that could reach the brokers for a session (I1) |
//! | taken away | a member keeps a partition that it has before and after a cooperative rebalance (I3) |
//! | pairs | each partition that is assigned is revoked or lost before it is assigned again (I2) |
//! | asked | no record is delivered while the application has to respond to a rebalance (I3, I11) |
//! | continuity | a member receives the records of a partition in order, each once, from the committed offset on (I4, I6) |
//! | skipped | every record is delivered to some member, whatever was committed in between (I7) |
//! | convergence | after the faults, each partition is held by exactly one member, within a bound (I8) |
//! | storm | a settled group sends no JoinGroup, and no more heartbeats than its interval asks for (I9) |
//! | close | a member that closes is done within its bound (I10) |
//! | rewound | no commit lowers an offset of the group (I5) |
//! | ahead | no offset is committed whose records no member received (I5) |
//! | commits | an offset whose commit succeeded is committed |
//! | committed | the offsets that the members committed when they left are complete: their successor gets nothing (I5) |
//! | session | a classic member whose session ended has no partitions |
//! | polls | a member whose application does not poll has no partitions |
//! | fatal | only a member whose instance ID another member uses fails permanently |
//! | errors | no error is reported twice within a second (I15) |
//! | statistics | the statistics of a settled member agree with its assignment (I17) |
//! | assignor | a cooperative or sticky assignor moves no more partitions than it must (I14) |
//!
//! [`membership`](crate::checkers::membership) checks the requests. [`schedules`] has the schedules with names, [`crowd`]
//! a group of 500 members, and [`steady`] the pauses of partitions that stay with their members.

mod checks;
pub mod crowd;
mod dials;
mod events;
mod foreign;
mod member;
pub mod schedules;
pub mod steady;

use std::{sync::Arc, time::Duration};

use ottla_embedded_broker::{ApiKey, BrokerId, Cluster, ClusterOptions};
use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::{SortedMap, SortedSet};

use self::member::{Inbox, Manners, Member, Parts, State};
use crate::{
    checkers::{Broken, membership::Terms},
    client::Client,
    dials::{self as settings, Setting},
    incidents::{Eventful, Incidents},
    network::NetworkKnobs,
    plan::{Plan, Ran},
    workload::Reports,
    world::{FIRST_PORT, World},
};
use ottla_core::{
    broker::BrokerParts,
    cluster::{ClusterSettings, command::Command},
    completion::completion,
    config::OffsetReset,
    connection::{ConnectionSettings, buffer::BufferPool},
    event::Event,
    fetch::{deliver::Records, settings::ConsumerSettings, shared::ConsumerShared},
    group::{
        GroupCommand, GroupProtocol, GroupSettings, assignor::Assignor, departure::GroupMembershipOperation,
    },
    machine::Instant,
    produce::{record::Record, settings::ProducerSettings, shared::ProducerShared},
    rng::Rng,
};

const GROUP: &str = "g";
const SESSION: Duration = Duration::from_secs(6);
const HEARTBEAT: Duration = Duration::from_millis(500);
const REBALANCE: Duration = Duration::from_secs(8);
const REQUEST: Duration = Duration::from_secs(4);
/// A member that closes takes at most five seconds to commit and five to leave.
const CLOSE: Duration = Duration::from_secs(11);
/// The time limit for a group to settle after the faults: a request in flight, a session, a rebalance, and lookups.
const SETTLE: Duration = Duration::from_secs(60);

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records in the logs.
    pub records: u64,
    /// Records that members received, with repetitions.
    pub delivered: u64,
    /// Members that joined.
    pub members: usize,
    /// Changes of the members' assignments.
    pub changes: u64,
    /// Members that were suspended for longer than a session.
    pub frozen: u64,
    /// Members whose process died.
    pub killed: u64,
    /// Commits of applications that succeeded, and that failed.
    pub commits: (u64, u64),
    /// Rebalances to which applications responded.
    pub answers: u64,
    /// Members that left because their applications did not poll.
    pub expired: u64,
    /// Members that failed because of their instance ID.
    pub fenced: u64,
    /// The virtual time that passed.
    pub virtual_time: Duration,
}

/// The protocol of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Classic(Assignor),
    Consumer,
    /// Each member uses either; the group is converted whenever the kinds come and go.
    Mixed(Assignor),
}

/// The properties of a world that its seed decides.
#[derive(Clone, Debug)]
struct Setup {
    brokers: i32,
    topics: Vec<(String, i32)>,
    protocol: Protocol,
    has_faults: bool,
    /// True if members have an instance ID.
    is_static: bool,
    manners: Manners,
    network: NetworkKnobs,
    relaxed_commits: bool,
    initial_delay: Duration,
    pace: Pace,
}

/// How long the first phase takes, and how much is written in it.
#[derive(Clone, Copy, Debug)]
struct Pace {
    suffers: Duration,
    /// Records are written once in this number of steps.
    send_every: u64,
    /// The largest number of records that are written at once.
    records: u64,
}

impl Pace {
    const USUAL: Self = Self { suffers: Duration::from_secs(60), send_every: 10, records: 20 };
}

struct Run {
    rng: Rng,
    world: World,
    setup: Setup,
    producer: Arc<ProducerShared>,
    members: Vec<Member>,
    delivered: SortedSet<(TopicPartition, i64)>,
    /// The offset after the last delivered record of each partition.
    received: SortedMap<TopicPartition, i64>,
    /// The committed offset of each partition.
    committed: SortedMap<TopicPartition, i64>,
    /// Connections that are cut, and until when.
    cut: Vec<(Instant, usize, BrokerId)>,
    incidents: Incidents,
    summary: Summary,
}

impl Eventful for Run {
    fn parts(&mut self) -> (&mut Rng, &mut World, &mut Incidents) {
        (&mut self.rng, &mut self.world, &mut self.incidents)
    }
}

/// Runs the group of a seed.
pub fn run(seed: u64) -> Result<Summary, Broken> {
    replay(seed, false).0
}

/// Runs the group of a seed, and returns its trace if it `keeps` one.
pub fn replay(seed: u64, keeps: bool) -> (Result<Summary, Broken>, Vec<String>) {
    let mut run = Run::new(seed, Setup::from_seed(seed), keeps);
    let result = run.go();
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
    plan.run_in(Run::new(plan.salted_seed(), setup, keeps), Run::go)
}

impl Setup {
    fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0x6e0);
        let brokers = 1 + rng.below(3) as i32;
        let topics =
            (0..=rng.below(3)).map(|number| (format!("t{number}"), 1 + rng.below(6) as i32)).collect();
        let protocol = match rng.below(8) {
            number @ 0..4 => Protocol::Classic(Assignor::ALL[number as usize]),
            4..6 => Protocol::Consumer,
            number => Protocol::Mixed(Assignor::ALL[if number == 6 { 0 } else { 3 }]),
        };
        let (has_faults, is_static) = (rng.chance(2, 3), rng.chance(1, 4));
        let manners = Manners::draw(&mut rng);
        // A generator of its own, so that all other worlds stay as they are.
        let polls_while_asked = Rng::from_seed(seed ^ 0x9011).chance(1, 3);
        let manners = Manners { polls_while_asked, ..manners };
        Self {
            brokers,
            topics,
            protocol,
            has_faults,
            is_static,
            manners,
            network: NetworkKnobs {
                latency: Duration::from_millis(1 + rng.below(10)),
                jitter: Duration::from_millis(rng.below(20)),
                window: 1 << 20,
                cut_percent: rng.below(30),
            },
            relaxed_commits: rng.chance(1, 2),
            initial_delay: Duration::from_millis(rng.below(2) * 500),
            pace: Pace::USUAL,
        }
    }
}

impl Run {
    fn new(seed: u64, setup: Setup, keeps_trace: bool) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0x67726f7570);
        let brokers = setup.brokers;
        let mut cluster = Cluster::new(ClusterOptions {
            group_consumer_relaxed_commits: setup.relaxed_commits,
            brokers,
            host: "broker".to_owned(),
            port: FIRST_PORT,
            replication_factor: brokers as i16,
            auto_create_topics: false,
            seed: Some(rng.next_u64()),
            group_consumer_session_timeout: SESSION,
            group_consumer_heartbeat_interval: HEARTBEAT,
            group_initial_rebalance_delay: setup.initial_delay,
            ..ClusterOptions::default()
        });
        for (name, partitions) in &setup.topics {
            // The names are valid and new.
            let _ = cluster.control().create_topic(name, *partitions, brokers as i16);
        }
        let mut world = World::new(cluster, setup.network.clone(), rng.fork(), keeps_trace);
        for (name, count) in &setup.topics {
            note_topic(&mut world, Instant::ZERO, name, *count);
        }
        let settings = ProducerSettings { idempotence: false, ..ProducerSettings::default() };
        let reports = Arc::new(Reports::default());
        let producer = Arc::new(ProducerShared::new(settings, reports, rng.fork()));
        let parts = parts(Some(Arc::clone(&producer)), None);
        world.clients.push(Client::new(cluster_settings(brokers, None), parts, rng.fork()));
        Self {
            rng,
            world,
            setup,
            producer,
            members: Vec::new(),
            delivered: SortedSet::new(),
            received: SortedMap::new(),
            committed: SortedMap::new(),
            cut: Vec::new(),
            incidents: Incidents::default(),
            summary: Summary::default(),
        }
    }

    // ---- the phases

    fn go(&mut self) -> Result<(), Broken> {
        self.suffer()?;
        self.settle()?;
        self.change_calmly()?;
        self.stay_calm()?;
        self.check_statistics()?;
        self.close_all()?;
        self.check_successor()
    }

    fn suffer(&mut self) -> Result<(), Broken> {
        let end = self.world.now + self.setup.pace.suffers;
        self.start_member(None);
        let mut next_change = self.world.now;
        while self.world.now < end {
            self.step()?;
            if self.rng.chance(1, self.setup.pace.send_every) {
                self.send();
            }
            self.incur(&mut next_change, Duration::from_secs(2), Self::change);
        }
        Ok(())
    }

    /// Heals everything and waits until the group has settled and read everything.
    fn settle(&mut self) -> Result<(), Broken> {
        self.heal();
        if !self.members.iter().any(Member::is_subscribed) {
            self.start_member(None);
        }
        self.send();
        self.wait_until_settled(SETTLE + CLOSE)
    }

    fn heal(&mut self) {
        for (_, client, broker) in std::mem::take(&mut self.cut) {
            self.world.partitioned.remove(&(client, broker));
        }
        let mut control = self.world.cluster.control();
        control.clear_faults();
        control.thaw_metadata();
        let now = self.world.now;
        for member in &mut self.members {
            // A suspended host still sleeps until its own time.
            member.manners = member.manners.prompt();
            member.busy_until = now;
        }
        self.setup.manners = self.setup.manners.prompt();
    }

    /// Waits until each partition has one member and each record was delivered.
    fn wait_until_settled(&mut self, time: Duration) -> Result<(), Broken> {
        let deadline = self.world.now + time;
        loop {
            self.step()?;
            if self.members.iter().all(|member| matches!(member.state, State::Gone | State::Failed)) {
                // The last one was killed, and its successor with the same instance ID came too early.
                self.start_member(None);
            }
            if self.producer.budget.messages() == 0 && self.is_settled() && self.missing().is_none() {
                return Ok(());
            }
            if self.world.now > deadline {
                let missing = self.missing();
                let checker = if self.is_settled() { "skipped" } else { "convergence" };
                let held: Vec<_> =
                    self.members.iter().map(|member| (&member.state, member.held.keys())).collect();
                let what = format!("missing {missing:?}; the members hold {held:?}");
                return Err(Broken::new(checker, what));
            }
        }
    }

    /// Members come and go one by one.
    fn change_calmly(&mut self) -> Result<(), Broken> {
        for _ in 0..2 {
            // The coordinator removes dead members when their sessions end.
            self.run_for(SESSION + REBALANCE)?;
            self.wait_until_settled(SETTLE)?;
            let before = self.holders();
            let subscribed: Vec<usize> =
                (0..self.members.len()).filter(|index| self.members[*index].is_subscribed()).collect();
            let leaves = subscribed.len() > 1 && (subscribed.len() > 4 || self.rng.chance(1, 2));
            let index = if leaves {
                let index = subscribed[self.rng.below(subscribed.len() as u64) as usize];
                self.close(index);
                index
            } else {
                self.start_member(None);
                self.members.len() - 1
            };
            self.run_for(Duration::from_secs(6))?;
            // A static member that closes stays in the group until its session ends.
            self.wait_until_settled(SESSION + SETTLE)?;
            self.run_for(Duration::from_secs(2))?;
            self.check_moves(&before, index)?;
        }
        Ok(())
    }

    /// Nothing happens, and the members must be quiet.
    fn stay_calm(&mut self) -> Result<(), Broken> {
        let window = Duration::from_secs(10);
        self.run_for(SESSION + REBALANCE)?;
        self.world.cluster.control().record_requests();
        self.run_for(window)?;
        let requests = self.world.cluster.control().take_requests();
        self.world.cluster.control().stop_recording();
        let count = |api| requests.iter().filter(|request| request.api == api).count();
        let members = self.members.iter().filter(|member| member.is_subscribed()).count();
        let most = members * (window.as_millis() / HEARTBEAT.as_millis() + 2) as usize;
        let [joins, syncs, lookups] =
            [ApiKey::JoinGroup, ApiKey::SyncGroup, ApiKey::FindCoordinator].map(count);
        let heartbeats = count(ApiKey::Heartbeat) + count(ApiKey::ConsumerGroupHeartbeat);
        if joins + syncs + lookups > 0 || heartbeats > most || heartbeats < most / 2 {
            let what = format!(
                "{members} settled members sent {joins} JoinGroup, {syncs} SyncGroup, {lookups} FindCoordinator and \
                 {heartbeats} Heartbeat requests in {window:?}, where {most} heartbeats are enough"
            );
            return Err(Broken::new("storm", what));
        }
        Ok(())
    }

    fn close_all(&mut self) -> Result<(), Broken> {
        for index in 0..self.members.len() {
            if self.members[index].is_subscribed() {
                self.close(index);
            }
        }
        self.run_for(CLOSE + Duration::from_secs(4))?;
        let is_gone = |member: &Member| matches!(member.state, State::Gone | State::Failed);
        if self.members.iter().all(is_gone) { Ok(()) } else { Err(Broken::new("close", "a member is left")) }
    }

    /// Another member must find everything committed.
    fn check_successor(&mut self) -> Result<(), Broken> {
        let before = self.summary.delivered;
        self.start_member(None);
        self.run_for(SESSION + REBALANCE + Duration::from_secs(5))?;
        let again = self.summary.delivered - before;
        let partitions: usize = self.setup.topics.iter().map(|(_, count)| *count as usize).sum();
        let holds = self.members.last().map_or(0, |member| member.held.len());
        // The coordinator refuses the last commit of a classic member while others convert the group.
        let is_mixed = matches!(self.setup.protocol, Protocol::Mixed(_));
        if again > 0 && !is_mixed || holds != partitions {
            let what = format!("the successor of all members got {again} records and {holds} partitions");
            return Err(Broken::new("committed", what));
        }
        Ok(())
    }

    // ---- steps

    fn run_for(&mut self, time: Duration) -> Result<(), Broken> {
        let until = self.world.now + time;
        while self.world.now < until {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Broken> {
        let time = self.rng.jitter(Duration::from_millis(20), 90);
        self.step_by(time)
    }

    /// Runs for this time, and then lets every application act.
    fn step_by(&mut self, time: Duration) -> Result<(), Broken> {
        let until = self.world.now + time;
        self.world.run_until(until)?;
        let now = self.world.now;
        for (_, client, broker) in self.cut.extract_if(.., |(until, ..)| *until <= now).collect::<Vec<_>>() {
            self.world.partitioned.remove(&(client, broker));
        }
        self.check_commits()?;
        for index in 0..self.members.len() {
            self.step_member(index)?;
        }
        self.check_holders()
    }

    fn step_member(&mut self, index: usize) -> Result<(), Broken> {
        let now = self.world.now;
        let is_cut = self.cut.iter().any(|(_, client, _)| *client == self.members[index].client);
        let member = &mut self.members[index];
        if is_cut {
            member.well_since = now;
        }
        match &member.state {
            State::Gone | State::Failed => return Ok(()),
            State::Suspended(until) if *until > now => return Ok(()),
            State::Suspended(_) => {
                (member.well_since, member.awake_since) = (now, now);
                member.state = State::Subscribed;
            }
            State::Committing(until) if *until <= now || member.commits.is_empty() => self.end(index),
            State::Closing(deadline, waiting) => {
                if waiting.try_take().is_some() {
                    member.state = State::Gone;
                    member.held.clear();
                    self.world.clients[member.client]
                        .commands
                        .push(Command::Close { timeout: Duration::ZERO });
                    return Ok(());
                }
                if now > *deadline {
                    return Err(Broken::new("close", format!("member {index} did not close in time")));
                }
            }
            State::Committing(_) | State::Subscribed => {}
        }
        self.observe(index)?;
        if matches!(self.members[index].state, State::Failed) {
            return Ok(());
        }
        let member = &mut self.members[index];
        let commands = Arc::clone(&self.world.clients[member.client].commands);
        if let Some(event) = member.answer(now, &commands, &mut self.rng) {
            member.check_event(index, &event)?;
        }
        let idle = now - member.polled;
        if member.poll(now, &commands, &mut self.rng) {
            if idle >= REBALANCE {
                // The member has expired, and joins again when its application has responded.
                self.world.wire.membership.rest(self.members[index].client);
            }
            self.take_records(index)?;
        }
        let member = &mut self.members[index];
        let Manners { commits, .. } = member.manners;
        if commits > 0 && member.is_subscribed() && self.rng.chance(1, commits) {
            member.commit(&commands);
        }
        self.check_outcomes(index)?;
        self.check_absence(index)
    }

    /// Takes the available records.
    fn take_records(&mut self, index: usize) -> Result<(), Broken> {
        let mut records = Records::default();
        self.members[index].shared.queue.take(1 << 20, &mut records);
        for message in &records {
            let place = TopicPartition::new(message.topic(), message.partition());
            self.check_delivery(index, &place, message.offset())?;
            let received = self.received.entry(Clone::clone(&place)).or_default();
            *received = (*received).max(message.offset() + 1);
            self.delivered.insert((place, message.offset()));
            self.summary.delivered += 1;
        }
        Ok(())
    }

    // ---- members

    /// Starts a member, with the instance ID of another one if that is given.
    fn start_member(&mut self, instance: Option<String>) {
        let mut protocol = self.setup.protocol;
        if let Protocol::Mixed(assignor) = protocol {
            protocol = if self.rng.chance(1, 2) { Protocol::Classic(assignor) } else { Protocol::Consumer };
        }
        self.start_member_of(protocol, instance);
    }

    fn start_member_of(&mut self, protocol: Protocol, instance: Option<String>) {
        let brokers = self.setup.brokers;
        let manners = self.setup.manners;
        let settings = ConsumerSettings {
            group_id: Some(GROUP.to_owned()),
            auto_offset_reset: OffsetReset::Beginning,
            response_timeout: REQUEST,
            ..ConsumerSettings::default()
        };
        let shared = Arc::new(ConsumerShared::new(settings));
        let (group_protocol, assignors) = match protocol {
            Protocol::Classic(assignor) => (GroupProtocol::Classic, vec![assignor.into()]),
            Protocol::Consumer | Protocol::Mixed(_) => (GroupProtocol::Consumer, Vec::new()),
        };
        let own = self.setup.is_static.then(|| format!("instance-{}", self.summary.members));
        let instance = instance.or(own);
        let group = GroupSettings {
            group_protocol,
            assignors,
            instance_id: instance.clone(),
            session_timeout: SESSION,
            heartbeat_interval: HEARTBEAT,
            max_poll_interval: REBALANCE,
            auto_commit: !manners.is_manual,
            auto_commit_interval: Some(manners.commit_interval).filter(|interval| !interval.is_zero()),
            request_timeout: REQUEST,
            ..GroupSettings::with_defaults(GROUP)
        };
        let inbox = Arc::new(Inbox::new(manners.answers));
        group.shared.set_sink(Arc::clone(&inbox) as _);
        let of_group = Arc::clone(&group.shared);
        let parts = parts(None, Some(Arc::clone(&shared)));
        let client = Client::new(cluster_settings(brokers, Some(group)), parts, self.rng.fork());
        let topics = self.setup.topics.iter().map(|(name, _)| Arc::from(&**name)).collect();
        client.commands.push(Command::Group(GroupCommand::Subscribe(topics)));
        self.world.clients.push(client);
        self.summary.members += 1;
        let now = self.world.now;
        let client = self.world.clients.len() - 1;
        let (is_static, has_faults) = (instance.is_some(), self.setup.has_faults);
        let terms = Terms { session: SESSION, heartbeat: HEARTBEAT, is_static, has_faults };
        self.world.wire.membership.expect(client, terms);
        let parts = Parts { client, shared, group: of_group, inbox, protocol, instance, manners };
        let index = self.members.len();
        self.world.tell(format_args!("client {client} is member {index}"));
        self.world.tell(format_args!("member {index} joins, {protocol:?}"));
        self.members.push(Member::new(now, parts));
    }

    /// Closes a member; an application with manual commits commits before.
    fn close(&mut self, index: usize) {
        self.world.tell(format_args!("member {index} closes"));
        let member = &mut self.members[index];
        member.busy_until = self.world.now;
        member.manners = member.manners.prompt();
        member.state = State::Committing(self.world.now + Duration::from_secs(3));
        if member.manners.is_manual && !member.is_asked() {
            let commands = Arc::clone(&self.world.clients[member.client].commands);
            member.commit(&commands);
        }
    }

    fn end(&mut self, index: usize) {
        let member = &mut self.members[index];
        let (done, waiting) = completion();
        self.world.clients[member.client]
            .commands
            .push(Command::Group(GroupCommand::Close(GroupMembershipOperation::Default, done)));
        member.state = State::Closing(self.world.now + CLOSE, waiting);
    }

    /// Handles the events of a member's client.
    fn take_events(&mut self, index: usize) -> Result<(), Broken> {
        let now = self.world.now;
        while let Some(event) = self.world.clients[self.members[index].client].events.pop() {
            let Event::Fatal(error) = event else { continue };
            let instance = self.members[index].instance.clone();
            let others = self.members.iter().filter(|other| other.instance == instance).count();
            if instance.is_none() || others < 2 {
                return Err(Broken::new("fatal", format!("member {index}: {error}")));
            }
            let member = &mut self.members[index];
            member.state = State::Failed;
            member.held.clear();
            self.summary.fenced += 1;
            self.world.wire.membership.fail(now, member.client);
        }
        Ok(())
    }

    fn send(&mut self) {
        let commands = Arc::clone(&self.world.clients[0].commands);
        for _ in 0..1 + self.rng.below(self.setup.pace.records) {
            let topics: Vec<_> = self.setup.topics.iter().filter(|(_, count)| *count > 0).collect();
            let (name, partitions) = topics[self.rng.below(topics.len() as u64) as usize];
            let (topic, is_new) = self.producer.topic(name);
            if is_new {
                commands.push(Command::Topic(Arc::clone(&topic)));
            }
            let record = Record::new().value("x").partition(self.rng.below(*partitions as u64) as i32);
            if self.producer.send(&topic, self.world.now, 0, &record, None).is_ok() {
                self.summary.records += 1;
            }
        }
    }
}

fn cluster_settings(brokers: i32, group: Option<GroupSettings>) -> ClusterSettings {
    ClusterSettings {
        bootstrap: (0..brokers).map(|number| ("broker".to_owned(), FIRST_PORT + number as u16)).collect(),
        request_timeout: REQUEST,
        refresh_interval: Some(Duration::from_secs(10)),
        group,
        ..ClusterSettings::default()
    }
}

/// Notes for the checkers that a topic has this number of partitions from now on.
fn note_topic(world: &mut World, now: Instant, name: &str, partitions: i32) {
    let id = world.cluster.control().topic_id(name).unwrap_or_default();
    world.wire.membership.set_topic(now, name, id, partitions);
    world.tell(format_args!("{name} has {partitions} partitions"));
    world.tell_topic(name);
}

fn parts(producer: Option<Arc<ProducerShared>>, consumer: Option<Arc<ConsumerShared>>) -> BrokerParts {
    BrokerParts {
        connection: Arc::new(ConnectionSettings {
            setup_timeout: Duration::from_secs(2),
            request_timeout: REQUEST,
            reconnect_backoff_max: Duration::from_secs(1),
            ..ConnectionSettings::default()
        }),
        producer,
        consumer,
        share: None,
        buffers: BufferPool::default(),
    }
}
