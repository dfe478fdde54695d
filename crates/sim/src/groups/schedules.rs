//! Schedules with names: each brings a group into one situation, at many instants, and then checks everything that a run
//! with a seed checks.
//!
//! | name | situation |
//! |---|---|
//! | join-late | a member joins at any time of another one's rebalance |
//! | leader-dies | the leader dies between the JoinGroup response and its SyncGroup |
//! | half-sync | the response to SyncGroup is lost |
//! | lost-leave | the response to a member that leaves is lost, and it restarts at once |
//! | zombie | a host sleeps for one and a half sessions; its application commits first |
//! | upgrade, downgrade | classic members are replaced by those of the consumer protocol one by one, or the reverse |
//! | id-missing | the target has a topic that no metadata describe for 1, 10 and 40 s |
//! | target-churn | the target changes with every heartbeat |
//! | callback-slow | applications respond 1 ms before and after the rebalance timeout |
//! | epoch-gap | the response with a raised epoch is lost, and the application commits |
//! | static-swap | two members with one instance ID start up to two seconds apart |
//! | coord-move | the coordinator moves every 50 ms while members join |
//! | coord-unknown | no broker knows the coordinator for two sessions |
//! | throttle | every response of the coordinator throttles the client for a second (KIP-219) |
//! | quota | the producer sends more than its `producer_byte_rate` allows, and catches up when the quota is gone |
//! | mixed | members with the encodings of the Java client, librdkafka and franz-go, in subscription versions 0 to 3 |
//! | misrouted | brokers swap their addresses, and another cluster takes the addresses over (KIP-1242) |
//! | mixed-clusters | addresses lead to one of two clusters, for each connection anew (KIP-1242) |
//! | static-return | partitions are added while a static leader is away, which does not assign when it returns (KIP-814) |

use std::time::Duration;

use ottla_core::{
    group::{assignor::Assignor, shared::Answers},
    machine::Instant,
};
use ottla_embedded_broker::{ApiKey, BrokerId, CoordinatorKey, ErrorCode, Fault, FaultAction};
use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::SortedSet;

use super::{
    GROUP, HEARTBEAT, Manners, Pace, Protocol, REBALANCE, Run, SESSION, SETTLE, Setup, Summary,
    foreign::{Client, Foreign},
    member::{Member, State},
    note_topic,
};
use crate::{Broken, network::NetworkKnobs};

/// The names of the schedules.
pub const NAMES: [&str; 20] = [
    "join-late",
    "leader-dies",
    "half-sync",
    "lost-leave",
    "zombie",
    "upgrade",
    "downgrade",
    "id-missing",
    "target-churn",
    "callback-slow",
    "epoch-gap",
    "static-swap",
    "coord-move",
    "coord-unknown",
    "throttle",
    "quota",
    "mixed",
    "static-return",
    "misrouted",
    "mixed-clusters",
];

/// Runs the schedule of this name with each protocol that it concerns; `None` if there is none. The trace is kept if
/// `keeps_trace`.
pub fn run(name: &str, keeps_trace: bool) -> Option<(Result<Summary, Broken>, Vec<String>)> {
    let schedule = schedule(name)?;
    let (mut sum, mut trace) = (Summary::default(), Vec::new());
    for (number, protocol) in schedule.protocols.iter().enumerate() {
        let mut run = Run::new(number as u64, schedule.setup(*protocol), keeps_trace);
        let result = (schedule.carry_out)(&mut run).and_then(|()| run.finish());
        sum.delivered += run.summary.delivered;
        sum.members += run.summary.members;
        sum.changes += run.summary.changes;
        sum.fenced += run.summary.fenced;
        sum.virtual_time += run.world.now - Instant::ZERO;
        trace.extend(run.world.trace.lines().iter().cloned());
        if let Err(Broken { checker, what }) = result {
            return Some((Err(Broken { checker, what: format!("{protocol:?}: {what}") }), trace));
        }
    }
    Some((Ok(sum), trace))
}

struct Schedule {
    protocols: &'static [Protocol],
    is_static: bool,
    has_faults: bool,
    carry_out: fn(&mut Run) -> Result<(), Broken>,
}

const RANGE: Protocol = Protocol::Classic(Assignor::Range);
const COOPERATIVE: Protocol = Protocol::Classic(Assignor::CooperativeSticky);
const CLASSIC: &[Protocol] = &[RANGE, COOPERATIVE];
const ALL: &[Protocol] = &[RANGE, COOPERATIVE, Protocol::Consumer];

fn schedule(name: &str) -> Option<Schedule> {
    let new = |protocols, has_faults, carry_out| {
        Some(Schedule { protocols, is_static: false, has_faults, carry_out })
    };
    match name {
        "join-late" => new(ALL, false, join_late),
        "leader-dies" => new(CLASSIC, true, leader_dies),
        "half-sync" => new(CLASSIC, true, half_sync),
        "lost-leave" => new(ALL, true, lost_leave),
        "zombie" => new(ALL, true, zombie),
        "upgrade" => new(CLASSIC, false, upgrade),
        "downgrade" => new(CLASSIC, false, downgrade),
        "id-missing" => new(&[Protocol::Consumer], true, id_missing),
        "target-churn" => new(&[Protocol::Consumer], false, target_churn),
        "callback-slow" => new(ALL, true, callback_slow),
        "epoch-gap" => new(&[Protocol::Consumer], true, epoch_gap),
        "static-swap" => static_swap_schedule(),
        "coord-move" => new(ALL, true, coord_move),
        "coord-unknown" => new(ALL, true, coord_unknown),
        "throttle" => new(ALL, true, throttle),
        "quota" => new(&[RANGE], false, quota),
        "misrouted" => new(ALL, true, misrouted),
        "mixed-clusters" => new(ALL, true, mixed_clusters),
        "mixed" => new(CLASSIC, false, mixed),
        "static-return" => {
            Some(Schedule { protocols: CLASSIC, is_static: true, has_faults: true, carry_out: static_return })
        }
        _ => None,
    }
}

fn static_swap_schedule() -> Option<Schedule> {
    Some(Schedule { protocols: ALL, is_static: true, has_faults: true, carry_out: static_swap })
}

impl Schedule {
    fn setup(&self, protocol: Protocol) -> Setup {
        Setup {
            brokers: 2,
            topics: vec![("t0".to_owned(), 4), ("t1".to_owned(), 3)],
            protocol,
            has_faults: self.has_faults,
            is_static: self.is_static,
            manners: Manners { commits: 20, ..Manners::PLAIN },
            network: NetworkKnobs {
                latency: Duration::from_millis(3),
                jitter: Duration::from_millis(3),
                window: 1 << 20,
                cut_percent: 5,
            },
            relaxed_commits: true,
            initial_delay: Duration::ZERO,
            pace: Pace::USUAL,
        }
    }
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Run {
    /// Ends all faults, and checks what a run with a seed checks in its calm phase.
    fn finish(&mut self) -> Result<(), Broken> {
        self.settle()?;
        self.run_for(SESSION + REBALANCE)?;
        self.wait_until_settled(SETTLE)?;
        self.stay_calm()?;
        self.check_statistics()?;
        self.close_all()?;
        self.check_successor()
    }

    /// Starts members, and waits until they have settled.
    fn start(&mut self, count: usize) -> Result<(), Broken> {
        for _ in 0..count {
            self.start_member(None);
        }
        self.send();
        self.wait_until_settled(SETTLE)
    }

    /// Sends for this time, and returns how much the logs grow per second, in bytes.
    fn stored_per_second(&mut self, time: Duration) -> Result<f64, Broken> {
        let (began, before) = (self.world.now, self.stored());
        while self.world.now - began < time {
            self.send();
            self.step()?;
        }
        Ok((self.stored() - before) as f64 / (self.world.now - began).as_secs_f64())
    }

    /// Returns the size of all logs in bytes.
    fn stored(&mut self) -> u64 {
        let control = self.world.cluster.control();
        let partitions = self.setup.topics.iter();
        let partitions = partitions.flat_map(|(name, count)| (0..*count).map(move |number| (name, number)));
        partitions.filter_map(|(name, number)| control.partition(name, number)).map(|state| state.bytes).sum()
    }

    /// Closes the oldest member.
    fn close_first(&mut self) {
        if let Some(first) = self.members.iter().position(Member::is_subscribed) {
            self.close(first);
        }
    }

    /// Runs in small steps until a request of this API arrives at a broker.
    fn run_until_asked(&mut self, api: ApiKey) -> Result<(), Broken> {
        self.world.cluster.control().record_requests();
        let until = self.world.now + SETTLE;
        while self.world.now < until {
            let next = self.world.now + millis(1);
            self.world.run_until(next)?;
            let requests = self.world.cluster.control().take_requests();
            if requests.iter().any(|request| request.api == api) {
                break;
            }
        }
        self.world.cluster.control().stop_recording();
        Ok(())
    }
}

fn join_late(run: &mut Run) -> Result<(), Broken> {
    run.start(1)?;
    for delay in 0..30 {
        run.start_member(None);
        run.run_for(millis(delay * 20))?;
        run.start(1)?;
        run.close_first();
        run.run_for(millis(delay * 10))?;
        run.close_first();
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

fn leader_dies(run: &mut Run) -> Result<(), Broken> {
    run.start(2)?;
    for _ in 0..5 {
        run.world.cluster.control().inject(Fault::new(FaultAction::CloseConnection).api(ApiKey::SyncGroup));
        run.start_member(None);
        run.run_until_asked(ApiKey::SyncGroup)?;
        // The oldest member leads.
        if let Some(first) = run.members.iter().position(Member::is_subscribed) {
            run.kill(first);
        }
        run.world.cluster.control().clear_faults();
        run.send();
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

fn half_sync(run: &mut Run) -> Result<(), Broken> {
    run.start(2)?;
    for times in 1..6 {
        run.lose_responses(ApiKey::SyncGroup, times);
        run.start(1)?;
        run.close_first();
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

fn lost_leave(run: &mut Run) -> Result<(), Broken> {
    run.start(2)?;
    for delay in 0..5 {
        run.close_first();
        run.run_for(millis(delay * 5))?;
        run.lose_responses(ApiKey::LeaveGroup, 1);
        run.lose_responses(ApiKey::ConsumerGroupHeartbeat, 1);
        run.start(1)?;
    }
    Ok(())
}

fn zombie(run: &mut Run) -> Result<(), Broken> {
    run.start(3)?;
    for _ in 0..4 {
        let Some(index) = run.members.iter().position(Member::is_subscribed) else { break };
        run.send();
        run.run_for(millis(300))?;
        run.suspend(index, SESSION * 3 / 2);
        run.run_for(SESSION)?;
        run.send();
        run.run_for(SESSION / 2)?;
        let member = &mut run.members[index];
        let commands = run.world.clients[member.client].commands.clone();
        member.commit(&commands);
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

/// Replaces the members by those of another protocol one by one, while records are sent.
fn replace(run: &mut Run, protocol: Protocol) -> Result<(), Broken> {
    for _ in 0..3 {
        run.start_member_of(protocol, None);
        run.send();
        run.wait_until_settled(SETTLE)?;
        run.close_first();
        run.send();
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

fn upgrade(run: &mut Run) -> Result<(), Broken> {
    run.start(3)?;
    replace(run, Protocol::Consumer)
}

fn downgrade(run: &mut Run) -> Result<(), Broken> {
    let classic = run.setup.protocol;
    run.setup.protocol = Protocol::Consumer;
    run.start(3)?;
    run.setup.protocol = classic;
    replace(run, classic)
}

fn id_missing(run: &mut Run) -> Result<(), Broken> {
    for number in 0..3 {
        run.setup.topics.push((format!("late{number}"), 0));
    }
    run.start(2)?;
    for (number, seconds) in [1, 10, 40].into_iter().enumerate() {
        run.world.cluster.control().freeze_metadata();
        let (name, count) = (format!("late{number}"), 3);
        // The name is new.
        let _ = run.world.cluster.control().create_topic(&name, count, 2);
        let now = run.world.now;
        note_topic(&mut run.world, now, &name, count);
        run.setup.topics[2 + number].1 = count;
        run.run_for(Duration::from_secs(seconds))?;
        run.world.cluster.control().thaw_metadata();
        run.send();
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

fn target_churn(run: &mut Run) -> Result<(), Broken> {
    run.start(3)?;
    for number in 0..40 {
        match number % 4 {
            0 => run.start_member(None),
            2 => run.close_first(),
            _ => run.send(),
        }
        run.run_for(HEARTBEAT)?;
    }
    Ok(())
}

fn callback_slow(run: &mut Run) -> Result<(), Broken> {
    for thinks in [REBALANCE - millis(1), REBALANCE + millis(1)] {
        run.setup.manners =
            Manners { answers: Answers::Application, thinks, is_exact: true, ..run.setup.manners };
        run.start_member(None);
        run.send();
        run.run_for(REBALANCE * 3)?;
    }
    Ok(())
}

fn epoch_gap(run: &mut Run) -> Result<(), Broken> {
    run.start(2)?;
    for delay in 0..20 {
        run.start_member(None);
        run.send();
        run.run_for(millis(delay * 10))?;
        run.lose_responses(ApiKey::ConsumerGroupHeartbeat, 1);
        for index in 0..run.members.len() {
            let member = &mut run.members[index];
            if member.is_subscribed() {
                let commands = run.world.clients[member.client].commands.clone();
                member.commit(&commands);
            }
        }
        run.run_for(HEARTBEAT)?;
        run.close_first();
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

fn static_swap(run: &mut Run) -> Result<(), Broken> {
    for delay in [0, 20, 500, 2_000] {
        run.start_member(None);
        let instance = run.members.last().and_then(|member| member.instance.clone());
        run.run_for(millis(delay))?;
        run.start_member(instance.clone());
        run.run_for(SESSION)?;
        let twins = run.members.iter().filter(|member| member.instance == instance);
        let living = twins.filter(|member| !matches!(member.state, State::Failed)).count();
        if living != 1 {
            let what = format!("{living} members of one instance ID live, {delay} ms apart");
            return Err(Broken::new("fatal", what));
        }
        run.send();
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

fn coord_move(run: &mut Run) -> Result<(), Broken> {
    run.start(2)?;
    for _ in 0..4 {
        run.start_member(None);
        for _ in 0..20 {
            run.move_coordinator();
            run.run_for(millis(50))?;
        }
        run.send();
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

/// Learned addresses lead to other nodes, and then to nodes of another cluster.
fn misrouted(run: &mut Run) -> Result<(), Broken> {
    run.start(2)?;
    for round in 0..6 {
        run.send();
        if round % 2 == 0 {
            run.world.swap_brokers();
        } else {
            let mut control = run.world.cluster.control();
            control.set_cluster_id(&format!("cluster-{round}"));
            control.close_connections(None);
        }
        run.run_for(SESSION)?;
        run.send();
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

/// A load balancer mixes two clusters, whose connections it also closes at times, and then leads to one of them again.
fn mixed_clusters(run: &mut Run) -> Result<(), Broken> {
    run.start(2)?;
    for round in 0..6 {
        run.world.cluster.control().mix_clusters(&["one", "two"]);
        for _ in 0..4 {
            run.send();
            run.world.reset_a_link();
            run.run_for(millis(400))?;
        }
        let mut control = run.world.cluster.control();
        control.mix_clusters(&[["one", "two"][round % 2]]);
        control.close_connections(None);
        run.run_for(SESSION)?;
        run.send();
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

/// Members look for their coordinator with back-offs, and go on when it is known again.
fn coord_unknown(run: &mut Run) -> Result<(), Broken> {
    run.start(2)?;
    run.send();
    run.wait_until_settled(SETTLE)?;
    let refused = FaultAction::Error(ErrorCode::COORDINATOR_NOT_AVAILABLE);
    run.world.cluster.control().inject(Fault::new(refused).api(ApiKey::FindCoordinator));
    let brokers = run.world.cluster.control().brokers();
    for broker in brokers {
        // One of them is another than before.
        run.world.cluster.control().set_coordinator(CoordinatorKey::Group(GROUP), broker);
        run.run_for(HEARTBEAT * 2)?;
    }
    run.start_member(None);
    // Their sessions end at the coordinator, which they can't reach.
    let until = run.world.now + SESSION * 2;
    run.members.iter_mut().for_each(|member| member.well_since = until);
    run.run_for(SESSION * 2)?;
    run.world.cluster.control().clear_faults();
    run.wait_until_settled(SETTLE)
}

fn throttle(run: &mut Run) -> Result<(), Broken> {
    let apis = [
        ApiKey::JoinGroup,
        ApiKey::SyncGroup,
        ApiKey::Heartbeat,
        ApiKey::ConsumerGroupHeartbeat,
        ApiKey::OffsetCommit,
        ApiKey::OffsetFetch,
    ];
    let action = || FaultAction::Throttle(Duration::from_secs(1));
    for api in apis {
        run.world.cluster.control().inject(Fault::new(action()).api(api));
    }
    run.start(3)?;
    run.run_for(SESSION)?;
    run.wait_until_settled(SETTLE)?;
    let before = run.holders();
    run.run_for(SESSION * 4)?;
    let after = run.holders();
    if before.keys().ne(after.keys()) || before.values().zip(after.values()).any(|(a, b)| a.0 != b.0) {
        return Err(Broken::new("convergence", "throttled members lost their partitions"));
    }
    Ok(())
}

/// A quota slows the producer down.
fn quota(run: &mut Run) -> Result<(), Broken> {
    const RATE: f64 = 1000.0;
    let of_all = [("client-id", None)];
    run.start(2)?;
    let unlimited = run.stored_per_second(SESSION * 5)?;
    run.world.cluster.control().set_quota(&of_all, "producer_byte_rate", Some(RATE));
    let limited = run.stored_per_second(SESSION * 20)?;
    run.world.cluster.control().set_quota(&of_all, "producer_byte_rate", None);
    // Each broker measures for itself. As in Kafka, requests of more than ten seconds' worth exceed the quota by up to those.
    let quota = f64::from(run.setup.brokers) * RATE;
    if limited > quota * 1.5 || limited < quota / 2.0 || unlimited < quota * 1.6 {
        let what = format!("{limited} bytes per second with a quota of {quota}, {unlimited} without");
        return Err(Broken::new("convergence", what));
    }
    Ok(())
}

/// The leader dies, partitions are added, and the leader returns before its session ends: it does not assign.
fn static_return(run: &mut Run) -> Result<(), Broken> {
    run.start(2)?;
    for _ in 0..3 {
        let Some(first) = run.members.iter().position(Member::is_subscribed) else { break };
        let instance = run.members[first].instance.clone();
        run.kill(first);
        let (name, count) = &mut run.setup.topics[0];
        *count += 1;
        // The topic exists.
        let _ = run.world.cluster.control().create_partitions(name, *count);
        let now = run.world.now;
        note_topic(&mut run.world, now, name, *count);
        run.world.settle_cluster();
        run.run_for(millis(200))?;
        run.start_member(instance);
        run.send();
        run.wait_until_settled(SETTLE)?;
    }
    Ok(())
}

/// Members of other clients join and leave one by one between our own; in an eager group they also lead.
fn mixed(run: &mut Run) -> Result<(), Broken> {
    let is_cooperative = run.setup.protocol == COOPERATIVE;
    run.world.cluster.control().set_coordinator(CoordinatorKey::Group(GROUP), BrokerId(1));
    // The name is new. Every member can have some of its partitions.
    let (name, count) = ("wide", 24);
    let _ = run.world.cluster.control().create_topic(name, count, 2);
    let now = run.world.now;
    note_topic(&mut run.world, now, name, count);
    run.setup.topics.push((name.to_owned(), count));
    run.world.settle_cluster();
    run.start(2)?;
    let mut others = Vec::new();
    for client in Client::ALL.into_iter().filter(|client| !is_cooperative || client.is_cooperative()) {
        let topics = run.setup.topics.clone();
        let member = Foreign::join(&mut run.world, client, &topics, is_cooperative);
        others.push(member.ok_or_else(|| Broken::new("convergence", "the coordinator is down"))?);
        run.share(&mut others)?;
    }
    // A new member of ours joins, and those from the start leave.
    run.start_member(None);
    run.share(&mut others)?;
    if !is_cooperative {
        for _ in 0..2 {
            run.close_first();
            run.share(&mut others)?;
        }
    }
    while let Some(mut member) = others.pop() {
        member.leave(&mut run.world)?;
        member.step(&mut run.world)?;
        run.share(&mut others)?;
    }
    run.send();
    run.wait_until_settled(SETTLE)
}

impl Run {
    /// Waits until our members and the others have all partitions, each once.
    fn share(&mut self, others: &mut [Foreign]) -> Result<(), Broken> {
        let deadline = self.world.now + SETTLE;
        let partitions: usize = self.setup.topics.iter().map(|(_, count)| *count as usize).sum();
        loop {
            self.step()?;
            for other in &mut *others {
                other.step(&mut self.world)?;
            }
            let own = self.members.iter().flat_map(|member| member.held.keys());
            let held: Vec<&TopicPartition> = own.chain(others.iter().flat_map(Foreign::assigned)).collect();
            let distinct: SortedSet<&TopicPartition> = held.iter().copied().collect();
            if distinct.len() < held.len() {
                return Err(Broken::new("two holders", format!("{held:?} are held in a mixed group")));
            }
            let is_idle = others.iter().all(Foreign::is_idle)
                && self.members.iter().all(|member| matches!(member.state, State::Gone | State::Subscribed));
            let all_have_some = others.iter().all(|other| !other.assigned().is_empty());
            if is_idle && all_have_some && distinct.len() == partitions {
                return Ok(());
            }
            if self.world.now > deadline {
                let clients: Vec<_> =
                    others.iter().map(|other| (other.client(), other.assigned().len())).collect();
                let what = format!("{held:?} of {partitions} partitions are held; others are {clients:?}");
                return Err(Broken::new("convergence", what));
            }
        }
    }
}
