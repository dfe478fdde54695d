//! What goes wrong, and how it heals.

use std::time::Duration;

use ottla_core::{machine::Instant, rng::Rng};
use ottla_embedded_broker::{BrokerId, Fault, FaultAction, Tail};
use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

use crate::{
    knobs::Knobs,
    world::{Direction, Resolver, World},
};

/// How many kinds of fault there are.
pub const KINDS: u32 = 25;
/// How many there were when topics and logs were not changed by anybody but producers.
pub const SECOND_KINDS: u32 = 21;
/// How many there were when there were no consumers.
pub const FIRST_KINDS: u32 = 12;

/// Lowest and some highest versions of releases.
const SOME_VERSIONS: [(ApiKey, i16, &[i16]); 5] = [
    (ApiKey::Produce, 3, &[3, 7, 9, 12, 13]),
    (ApiKey::Fetch, 4, &[4, 7, 11, 12, 13, 15, 18]),
    (ApiKey::Metadata, 0, &[4, 7, 9, 12, 13]),
    (ApiKey::ListOffsets, 1, &[1, 2, 5, 9, 11]),
    (ApiKey::InitProducerId, 0, &[0, 2, 4, 5]),
];

/// A version of Metadata answers that tells ids of topics.
const FIRST_WITH_IDS: i16 = 10;
/// The last version in which both Produce and Fetch call topics by their names.
const LAST_BY_NAME: i16 = 12;

/// Errors that pass by themselves.
const SOME_ERRORS: [(ApiKey, &[ErrorCode]); 4] = [
    (
        ApiKey::Fetch,
        &[
            ErrorCode::NOT_LEADER_OR_FOLLOWER,
            ErrorCode::FENCED_LEADER_EPOCH,
            ErrorCode::UNKNOWN_LEADER_EPOCH,
            ErrorCode::KAFKA_STORAGE_ERROR,
            ErrorCode::OFFSET_NOT_AVAILABLE,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode::UNKNOWN_SERVER_ERROR,
        ],
    ),
    (
        ApiKey::ListOffsets,
        &[
            ErrorCode::NOT_LEADER_OR_FOLLOWER,
            ErrorCode::LEADER_NOT_AVAILABLE,
            ErrorCode::OFFSET_NOT_AVAILABLE,
            ErrorCode::UNKNOWN_LEADER_EPOCH,
        ],
    ),
    (ApiKey::Metadata, &[ErrorCode::LEADER_NOT_AVAILABLE]),
    (
        ApiKey::InitProducerId,
        &[
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode::CONCURRENT_TRANSACTIONS,
            ErrorCode::REQUEST_TIMED_OUT,
        ],
    ),
];

/// Errors that a batch ends with, or is not sent again as it was.
const SOME_VERDICTS: [ErrorCode; 6] = [
    ErrorCode::MESSAGE_TOO_LARGE,
    ErrorCode::INVALID_RECORD,
    ErrorCode::TOPIC_AUTHORIZATION_FAILED,
    ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode::UNKNOWN_PRODUCER_ID,
    ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND,
];

/// What ends a fault.
#[derive(Debug)]
pub enum Heal {
    /// A broker comes back.
    Restart(BrokerId),
    /// A client reaches a broker again.
    Connect(usize, BrokerId),
    /// Names are resolved again.
    Resolver,
    /// A broker is as quick as before.
    Latency(BrokerId),
    /// Packets go both ways again.
    TwoWays(usize, BrokerId, Direction),
    /// Metadata tells the truth again.
    Thaw,
    /// A topic that was deleted is made anew: its place in the list of topics, and its partitions.
    Create(u32, i32),
    /// No request is refused any more.
    Refusals,
}

/// Lets something go wrong; `heals` gets what ends it, and when.
pub fn strike(knobs: &Knobs, world: &mut World, rng: &mut Rng, heals: &mut Vec<(Instant, Heal)>) {
    if knobs.doubts && rng.chance(1, 2) {
        return lose_answers(knobs, world, rng);
    }
    if knobs.steady && knobs.lossy && rng.chance(1, 4) {
        return lose_a_tail(knobs, world, rng, heals);
    }
    let kind = rng.below(u64::from(knobs.kinds)) as u32;
    if knobs.fault_kinds & (1 << kind) == 0 {
        return;
    }
    let broker = BrokerId(1 + rng.below(knobs.brokers as u64) as i32);
    let for_a_while = Duration::from_millis(10 + rng.below(4_000));
    let until = world.now + for_a_while;
    let now = world.now;
    let index = rng.below(knobs.topics.len() as u64) as usize;
    let (topic, partitions) = knobs.topics[index].clone();
    let index = index as u32;
    let partition = rng.below(partitions as u64) as i32;
    match kind {
        0 => world.reset_a_link(),
        1 => world.stall_a_link(for_a_while),
        2 => {
            let client = rng.below(world.clients.len() as u64) as usize;
            world.trace.note(now, format_args!("client {client} can't reach broker {}", broker.0));
            world.partitioned.insert((client, broker));
            heals.push((until, Heal::Connect(client, broker)));
        }
        3 => {
            let tail = if knobs.lossy && rng.chance(1, 2) { Tail::Lost } else { Tail::Kept };
            kill(knobs, world, broker, tail);
            heals.push((until, Heal::Restart(broker)));
        }
        4 => {
            world.trace.note(now, format_args!("all leaders rotate"));
            world.cluster.control().rotate_leaders();
        }
        5 => {
            world.trace.note(now, format_args!("{topic} [{partition}] goes to broker {}", broker.0));
            if world.cluster.control().is_alive(broker) {
                world.cluster.control().move_leader(&topic, partition, Some(broker));
            }
        }
        6 => {
            let codes = [
                ErrorCode::NOT_LEADER_OR_FOLLOWER,
                ErrorCode::NOT_ENOUGH_REPLICAS,
                ErrorCode::KAFKA_STORAGE_ERROR,
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode::REQUEST_TIMED_OUT,
                ErrorCode::CORRUPT_MESSAGE,
            ];
            let code = codes[rng.below(codes.len() as u64) as usize];
            world.trace.note(now, format_args!("Produce to {topic} will be answered {}", code.name()));
            let times = 1 + rng.below(3) as u32;
            let fault = Fault::new(FaultAction::Error(code)).api(ApiKey::Produce).topic(&topic).times(times);
            world.cluster.control().inject(fault);
        }
        7 => {
            world.trace.note(now, format_args!("the next answer to Produce is lost"));
            let fault = Fault::new(FaultAction::LoseAnswer).api(ApiKey::Produce).times(1);
            world.cluster.control().inject(fault);
        }
        8 => {
            let actions = [
                FaultAction::Delay(for_a_while),
                FaultAction::CloseConnection,
                FaultAction::Throttle(for_a_while),
                FaultAction::NeverAnswer,
                FaultAction::TruncateAnswer(rng.below(20) as usize),
                FaultAction::ShiftCorrelationId(1),
            ];
            let action = actions[rng.below(actions.len() as u64) as usize].clone();
            if matches!(action, FaultAction::TruncateAnswer(_) | FaultAction::ShiftCorrelationId(_)) {
                world.wire.expect_spoiled_answers();
            }
            world.trace.note(now, format_args!("some request will meet {action:?}"));
            world.cluster.control().inject(Fault::new(action).skip(rng.below(4) as u32).times(1));
        }
        9 => {
            world.trace.note(now, format_args!("no name is resolved"));
            world.resolver = Resolver::Down;
            heals.push((until, Heal::Resolver));
        }
        10 => {
            world.trace.note(now, format_args!("broker {} is slow", broker.0));
            world.cluster.control().set_latency(broker, for_a_while / 4);
            heals.push((until, Heal::Latency(broker)));
        }
        11 => {
            world.trace.note(now, format_args!("metadata is frozen"));
            world.cluster.control().freeze_metadata();
            heals.push((until, Heal::Thaw));
        }
        12 => {
            // A rolling upgrade, or one that is taken back.
            let mut versions = SOME_VERSIONS
                .map(|(api, min, choices)| (api, min, choices[rng.below(choices.len() as u64) as usize]));
            let tells_ids = versions.iter().any(|of| of.0 == ApiKey::Metadata && of.2 >= FIRST_WITH_IDS);
            if knobs.ids_told {
                let metadata = versions.iter_mut().filter(|of| of.0 == ApiKey::Metadata);
                metadata.for_each(|of| of.2 = of.2.max(FIRST_WITH_IDS));
            } else if knobs.topics_deleted && !tells_ids {
                // No release wants topics to be called by ids that it does not tell.
                let by_id = versions.iter_mut().filter(|of| matches!(of.0, ApiKey::Produce | ApiKey::Fetch));
                by_id.for_each(|of| of.2 = of.2.min(LAST_BY_NAME));
            }
            world.trace.note(now, format_args!("broker {} is replaced by one with {versions:?}", broker.0));
            let mut control = world.cluster.control();
            control.kill_broker(broker, Tail::Kept);
            for (api, min, max) in versions {
                control.set_api_versions(Some(broker), api, min, max);
            }
            heals.push((until, Heal::Restart(broker)));
        }
        13 => {
            world.trace.note(now, format_args!("broker {} forgets fetch sessions", broker.0));
            world.cluster.control().evict_fetch_sessions(broker);
        }
        14 => {
            let client = rng.below(world.clients.len() as u64) as usize;
            let direction = [Direction::ToBroker, Direction::ToClient][rng.below(2) as usize];
            world
                .trace
                .note(now, format_args!("client {client}, broker {}: nothing goes {direction:?}", broker.0));
            world.one_way.insert((client, broker, direction));
            heals.push((until, Heal::TwoWays(client, broker, direction)));
        }
        15 => world.half_open_a_link(),
        16 => {
            world.trace.note(now, format_args!("broker {} becomes the controller", broker.0));
            world.cluster.control().move_controller(broker);
        }
        17 => {
            let answers = [Resolver::Empty, Resolver::Several, Resolver::Several, Resolver::Wrong];
            world.resolver = answers[rng.below(answers.len() as u64) as usize];
            world.trace.note(now, format_args!("the name server's answers are {:?}", world.resolver));
            heals.push((until, Heal::Resolver));
        }
        18 => {
            let (api, codes) = SOME_ERRORS[rng.below(SOME_ERRORS.len() as u64) as usize];
            let code = codes[rng.below(codes.len() as u64) as usize];
            let mut fault = Fault::new(FaultAction::Error(code)).api(api).times(1 + rng.below(3) as u32);
            if api != ApiKey::InitProducerId {
                fault = fault.topic(&topic);
            }
            world
                .trace
                .note(now, format_args!("{} about {topic} will be answered {}", api.name(), code.name()));
            world.cluster.control().inject(fault);
        }
        19 => {
            let client = rng.below(world.clients.len() as u64) as usize;
            world.trace.note(now, format_args!("client {client} sleeps for {for_a_while:?}"));
            world.suspend(client, until);
        }
        20 => {
            world.wall_skew_ms = rng.below(7_200_000) as i64 - 3_600_000;
            world.trace.note(now, format_args!("the wall clocks jump to {} ms", world.wall_skew_ms));
        }
        21 => {
            let (api, code) = [
                (ApiKey::InitProducerId, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
                (ApiKey::InitProducerId, ErrorCode::NOT_COORDINATOR),
                (ApiKey::ListOffsets, ErrorCode::LEADER_NOT_AVAILABLE),
                (ApiKey::Fetch, ErrorCode::NOT_LEADER_OR_FOLLOWER),
                (ApiKey::Produce, ErrorCode::NOT_LEADER_OR_FOLLOWER),
            ][rng.below(5) as usize];
            world.trace.note(now, format_args!("every {} is answered {}", api.name(), code.name()));
            world.cluster.control().inject(Fault::new(FaultAction::Error(code)).api(api));
            heals.push((until, Heal::Refusals));
        }
        22 if knobs.records_deleted => {
            let Some(state) = world.cluster.control().partition(&topic, partition) else { return };
            let room = (state.high_watermark - state.log_start_offset).max(0) as u64;
            let start = state.log_start_offset + rng.below(room + 1) as i64;
            world.trace.note(now, format_args!("{topic} [{partition}] loses what is before {start}"));
            world.history.delete(&mut world.cluster, &topic, index, partition, start);
        }
        23 if knobs.unclean => {
            let Some(state) = world.cluster.control().partition(&topic, partition) else { return };
            let room = (state.log_end_offset - state.log_start_offset).max(0) as u64;
            let end = state.log_start_offset + rng.below(room + 1) as i64;
            world.trace.note(
                now,
                format_args!("{topic} [{partition}]: {broker:?} is elected and has no more than {end}"),
            );
            if world.cluster.control().is_alive(broker) {
                world.cluster.control().move_leader(&topic, partition, Some(broker));
            }
            world.history.cut(&mut world.cluster, &topic, index, partition, end);
        }
        24 if knobs.topics_deleted => {
            if world.cluster.control().topic_id(&topic).is_none() {
                return;
            }
            world.trace.note(now, format_args!("{topic} is deleted"));
            world.history.delete_topic(&mut world.cluster, &topic, index, partitions);
            let at = if rng.chance(1, 2) { now } else { until };
            heals.push((at, Heal::Create(index, partitions)));
        }
        _ => {}
    }
    world.settle_cluster();
}

/// Answers to Produce are lost: perhaps all that are under way to a producer, while what it sends still arrives for a
/// moment; then some more, one by one, so that what is sent again is not answered either.
fn lose_answers(knobs: &Knobs, world: &mut World, rng: &mut Rng) {
    let client = rng.below(u64::from(knobs.producers)) as usize;
    if rng.chance(1, 2) {
        world.lose_answers_to(client, Duration::from_millis(10 + rng.below(500)));
    }
    let (done, lost) = (rng.below(6) as u32, rng.below(5) as u32);
    if lost > 0 {
        world
            .trace
            .note(world.now, format_args!("{done} requests to Produce are answered, {lost} more are not"));
        let fault = Fault::new(FaultAction::LoseAnswer).api(ApiKey::Produce).skip(done).times(lost);
        world.cluster.control().inject(fault);
    }
    if rng.chance(1, 4) {
        let code = SOME_VERDICTS[rng.below(SOME_VERDICTS.len() as u64) as usize];
        world.trace.note(world.now, format_args!("a batch will be answered {}", code.name()));
        let fault = Fault::new(FaultAction::Error(code)).api(ApiKey::Produce).topic(&topic_name(0));
        world.cluster.control().inject(fault.skip(rng.below(4) as u32).times(1));
    }
}

/// A broker that leads a partition with records that no follower has yet is killed, and they are lost.
fn lose_a_tail(knobs: &Knobs, world: &mut World, rng: &mut Rng, heals: &mut Vec<(Instant, Heal)>) {
    let control = world.cluster.control();
    let partitions =
        knobs.topics.iter().flat_map(|(topic, count)| (0..*count).map(move |index| (topic, index)));
    let states = partitions.filter_map(|(topic, index)| control.partition(topic, index));
    let tails = states.filter(|state| state.log_end_offset > state.high_watermark);
    let leaders: Vec<BrokerId> = tails.filter_map(|state| state.leader).collect();
    let Some(broker) = leaders.get(rng.below(leaders.len() as u64) as usize).copied() else { return };
    kill(knobs, world, broker, Tail::Lost);
    heals.push((world.now + Duration::from_millis(10 + rng.below(4_000)), Heal::Restart(broker)));
    world.settle_cluster();
}

/// Kills a broker.
fn kill(knobs: &Knobs, world: &mut World, broker: BrokerId, tail: Tail) {
    let before = written(knobs, world);
    world.cluster.control().kill_broker(broker, tail);
    let lost = before - written(knobs, world);
    let what = format_args!("broker {} is killed ({tail:?}), {lost} records are lost", broker.0);
    world.trace.note(world.now, what);
}

/// No producer gets an identity for a while; answers what ends that, and when.
pub fn refuse_identities(world: &mut World, duration: Duration) -> (Instant, Heal) {
    world.trace.note(world.now, format_args!("nobody gets an identity for {duration:?}"));
    let refusal = FaultAction::Error(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    world.cluster.control().inject(Fault::new(refusal).api(ApiKey::InitProducerId));
    (world.now + duration, Heal::Refusals)
}

/// Creates a topic on the brokers that are up; if none is, the topic has to wait.
fn create(world: &mut World, name: &str, partitions: i32) {
    let mut control = world.cluster.control();
    let up = control.brokers().into_iter().filter(|broker| control.is_alive(*broker)).count();
    if up > 0 && control.topic_id(name).is_none() {
        // The name is valid, and it is not there.
        let _ = control.create_topic(name, partitions, up.min(3) as i16);
    }
}

/// How many records were written to the logs as they are.
fn written(knobs: &Knobs, world: &mut World) -> i64 {
    let partitions =
        knobs.topics.iter().flat_map(|(topic, count)| (0..*count).map(move |index| (topic, index)));
    let control = world.cluster.control();
    partitions.filter_map(|(topic, index)| control.partition(topic, index)).map(|it| it.log_end_offset).sum()
}

/// The name of a topic by its place in the list of topics.
pub fn topic_name(index: u32) -> String {
    format!("t{index}")
}

/// Ends faults.
pub fn apply(world: &mut World, heals: Vec<Heal>) {
    for heal in heals {
        world.trace.note(world.now, format_args!("healed: {heal:?}"));
        match heal {
            Heal::Restart(broker) => world.cluster.control().restart_broker(broker),
            Heal::Connect(client, broker) => {
                world.partitioned.remove(&(client, broker));
            }
            Heal::Resolver => world.resolver = Resolver::Works,
            Heal::Latency(broker) => world.cluster.control().set_latency(broker, Duration::ZERO),
            Heal::TwoWays(client, broker, direction) => {
                world.one_way.remove(&(client, broker, direction));
            }
            Heal::Thaw => world.cluster.control().thaw_metadata(),
            Heal::Refusals => world.cluster.control().clear_faults(),
            Heal::Create(index, partitions) => create(world, &topic_name(index), partitions),
        }
    }
    world.settle_cluster();
}

/// Ends all faults.
pub fn heal_all(knobs: &Knobs, world: &mut World) {
    world.trace.note(world.now, format_args!("everything heals"));
    world.partitioned.clear();
    world.one_way.clear();
    world.resolver = Resolver::Works;
    let mut control = world.cluster.control();
    control.clear_faults();
    control.thaw_metadata();
    for broker in control.brokers() {
        control.restart_broker(broker);
        control.set_latency(broker, Duration::ZERO);
    }
    for (name, partitions) in &knobs.topics {
        create(world, name, *partitions);
    }
    world.settle_cluster();
}
