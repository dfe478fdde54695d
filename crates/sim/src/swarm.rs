//! Every knob from the seed, a run from the knobs, and what became of it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ottla_core::{
    broker::{BrokerParts, buffer::BufferPool, connection::ConnectionSettings},
    cluster::{ClusterSettings, command::Command},
    machine::Instant,
    produce::{
        accumulator::BatchLimits,
        collector::Linger,
        partitioner::Partitioner,
        shared::{ProducerSettings, ProducerShared},
    },
    rng::Rng,
};
use ottla_embedded_broker::{BrokerId, Cluster, ClusterOptions, Fault, FaultAction, Tail};
use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

use crate::{
    checkers::{Broken, accounting, delivery},
    client::Client,
    network::NetworkKnobs,
    workload::{Producer, Reports},
    world::{FIRST_PORT, World},
};

/// What a run is like.
#[derive(Clone, Debug)]
pub struct Knobs {
    /// The seed that they come from.
    pub seed: u64,
    /// How many brokers.
    pub brokers: i32,
    /// How many producers.
    pub producers: u32,
    /// Topics with their partitions.
    pub topics: Vec<(String, i32)>,
    /// How many records each producer sends.
    pub records: u64,
    /// How long the phase of faults lasts.
    pub faults_for: Duration,
    /// A fault comes about this often.
    pub fault_every: Duration,
    /// Which kinds of fault there are, as bits.
    pub fault_kinds: u32,
    /// Brokers may lose what their followers do not have.
    pub lossy: bool,
    /// How long followers lag.
    pub replication_lag: Duration,
    /// The network.
    pub network: NetworkKnobs,
    /// The producers' settings.
    pub producer: ProducerSettings,
}

/// What became of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The first broken promise.
    pub broken: Option<Broken>,
    /// How much virtual time passed.
    pub virtual_time: Duration,
    /// How many transitions there were.
    pub events: u64,
    /// The hash of the story.
    pub hash: u64,
    /// The story, if it was kept.
    pub trace: Vec<String>,
    /// Records that were sent.
    pub records: u64,
    /// Records that were acknowledged.
    pub acknowledged: u64,
}

const KINDS: u32 = 12;

impl Knobs {
    /// Draws every knob.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed);
        let pick = |rng: &mut Rng, choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let idempotence = rng.chance(2, 3);
        let acks = if idempotence { -1 } else { [-1, -1, 1][rng.below(3) as usize] };
        let millis = |n: u64| Duration::from_millis(n);
        let linger = millis(pick(&mut rng, &[0, 0, 1, 5, 50, 500]));
        let message_timeout = millis(pick(&mut rng, &[2_000, 10_000, 60_000, 300_000]));
        let topics = (0..1 + rng.below(3)).map(|i| (format!("t{i}"), 1 + rng.below(12) as i32)).collect();
        let mut knobs = Self {
            seed,
            brokers: 1 + rng.below(4) as i32,
            producers: 1 + rng.below(2) as u32,
            topics,
            records: pick(&mut rng, &[20, 200, 1000]),
            faults_for: Duration::from_secs(pick(&mut rng, &[5, 20, 60])),
            fault_every: millis(pick(&mut rng, &[50, 300, 2_000, 10_000])),
            fault_kinds: rng.next_u64() as u32 & ((1 << KINDS) - 1),
            lossy: rng.chance(1, 3),
            replication_lag: millis(pick(&mut rng, &[0, 0, 5, 100])),
            network: NetworkKnobs {
                latency: Duration::from_micros(pick(&mut rng, &[20, 500, 5_000, 100_000])),
                jitter: Duration::from_micros(pick(&mut rng, &[0, 50, 2_000, 50_000])),
                window: pick(&mut rng, &[500, 20_000, 1_000_000]) as usize,
                cut_percent: pick(&mut rng, &[0, 5, 50]),
            },
            producer: ProducerSettings {
                acks,
                idempotence,
                acks_timeout: millis(pick(&mut rng, &[500, 5_000, 30_000])),
                answer_timeout: millis(pick(&mut rng, &[1_000, 5_000, 60_000])),
                message_timeout: Some(message_timeout),
                max_retries: if rng.chance(1, 8) { 2 } else { i32::MAX as u32 },
                max_in_flight: pick(&mut rng, &[1, 5, 5]) as usize,
                linger: if rng.chance(1, 2) { Linger::Broker(linger) } else { Linger::Partition(linger) },
                max_partitions: rng.chance(1, 4).then(|| 1 + rng.below(5) as usize),
                max_bytes: rng.chance(1, 4).then(|| 200 + rng.below(5_000)),
                batch: BatchLimits {
                    max_bytes: pick(&mut rng, &[300, 2_000, 1_000_000]) as usize,
                    max_records: pick(&mut rng, &[1, 10, 10_000]) as usize,
                    max_age_nanos: (message_timeout / 20).as_nanos() as u64,
                },
                max_request_bytes: pick(&mut rng, &[500, 10_000, 1_000_000]) as usize,
                max_queued_messages: pick(&mut rng, &[5, 100, 100_000]),
                ..ProducerSettings::default()
            },
        };
        // A request of ten kilobytes on a link that carries four a second has no chance within a second.
        let bytes_per_second = knobs.network.window as u128 * 1_000_000_000
            / (knobs.network.latency + knobs.network.jitter).as_nanos().max(1);
        if bytes_per_second < 100_000 {
            knobs.producer.answer_timeout = Duration::from_secs(60);
        }
        knobs
    }
}

/// Runs the world of a seed. `keep_trace` keeps the story.
pub fn run(knobs: &Knobs, keep_trace: bool) -> Outcome {
    let mut rng = Rng::from_seed(knobs.seed ^ 0x5eed);
    let mut world = world(knobs, keep_trace, &mut rng);
    let mut producers = producers(knobs, &mut world, &mut rng);
    let mut broken = None;
    let start = world.now;
    let end_of_faults = start + knobs.faults_for;
    let mut next_fault = start + knobs.fault_every;
    let mut heals: Vec<(Instant, Heal)> = Vec::new();
    let step = Duration::from_millis(10).max(knobs.faults_for / 2000);
    while world.now < end_of_faults && broken.is_none() {
        let until = (world.now + rng.jitter(step, 90)).min(end_of_faults);
        if !world.run_until(until) {
            broken = Some(Broken::new("busy", "events without end while time stands still"));
        }
        for producer in &mut producers {
            if rng.chance(1, 3) {
                let count = 1 + rng.below(knobs.records / 10 + 1);
                let client = producer.client;
                let commands = Arc::clone(&world.clients[client].commands);
                producer.send(world.now, count, &knobs.topics, &commands, &mut rng);
            }
        }
        while world.now >= next_fault {
            fault(knobs, &mut world, &mut rng, &mut heals);
            next_fault += rng.jitter(knobs.fault_every, 90);
        }
        let now = world.now;
        let due = heals.extract_if(.., |(at, _)| *at <= now).map(|(_, heal)| heal).collect();
        apply(&mut world, due);
    }
    // Everything heals; whatever was not sent yet is sent now.
    let rest = heals.drain(..).map(|(_, heal)| heal).collect();
    apply(&mut world, rest);
    heal_all(&mut world);
    for producer in &producers {
        producer.shared.flushing.fetch_add(1, Ordering::SeqCst);
        world.clients[producer.client].commands.push(Command::Flush);
    }
    // A small queue takes many round trips.
    let round_trips = (knobs.records / knobs.producer.max_queued_messages + 1) as u32;
    let round_trip = (knobs.network.latency + knobs.network.jitter) * 4 + knobs.replication_lag * 2;
    let patience = knobs.producer.message_timeout.unwrap_or_default()
        + Duration::from_secs(120)
        + (round_trip + Duration::from_millis(500)) * round_trips;
    let deadline = world.now + patience;
    while broken.is_none() && world.now < deadline {
        let until = (world.now + Duration::from_millis(500)).min(deadline);
        if !world.run_until(until) {
            broken = Some(Broken::new("busy", "events without end while time stands still"));
        }
        for producer in &mut producers {
            let commands = Arc::clone(&world.clients[producer.client].commands);
            producer.send(world.now, u64::MAX, &knobs.topics, &commands, &mut rng);
        }
        if producers.iter().all(|p| p.is_done() && p.shared.budget.messages() == 0) {
            break;
        }
    }
    for producer in &producers {
        if broken.is_none() && !(producer.is_done() && producer.shared.budget.messages() == 0) {
            let what = format!(
                "producer {}: {} of {} records sent and {} without a report {} s after everything healed",
                producer.number,
                producer.sent,
                producer.goal,
                producer.shared.budget.messages(),
                patience.as_secs()
            );
            broken = Some(Broken::new("liveness", what));
        }
    }
    let promises = delivery::Promises {
        durable: !knobs.lossy || knobs.producer.acks == -1,
        idempotent: knobs.producer.idempotence && !knobs.lossy,
    };
    if broken.is_none() {
        broken = producers.iter().find_map(|producer| accounting::check(producer).err());
    }
    if broken.is_none() {
        broken = delivery::check(&producers, &mut world.cluster, &knobs.topics, promises).err();
    }
    let acknowledged = producers
        .iter()
        .map(|p| {
            let reports = p.reports.lock();
            reports.values().flatten().filter(|report| report.error.is_none()).count() as u64
        })
        .sum();
    Outcome {
        broken,
        virtual_time: world.now - start,
        events: world.trace.events(),
        hash: world.trace.hash(),
        records: producers.iter().map(|p| p.sent).sum(),
        acknowledged,
        trace: world.trace.lines().to_vec(),
    }
}

fn world(knobs: &Knobs, keep_trace: bool, rng: &mut Rng) -> World {
    let mut cluster = Cluster::new(ClusterOptions {
        brokers: knobs.brokers,
        host: "broker".to_owned(),
        port: FIRST_PORT,
        replication_factor: knobs.brokers.min(3) as i16,
        replication_lag: knobs.replication_lag,
        auto_create_topics: false,
        seed: rng.next_u64(),
        ..ClusterOptions::default()
    });
    for (name, partitions) in &knobs.topics {
        // The names are valid and new.
        let _ = cluster.control().create_topic(name, *partitions, knobs.brokers.min(3) as i16);
    }
    World::new(cluster, knobs.network.clone(), rng.fork(), keep_trace)
}

fn producers(knobs: &Knobs, world: &mut World, rng: &mut Rng) -> Vec<Producer> {
    let mut producers = Vec::new();
    for number in 0..knobs.producers {
        let reports = Arc::new(Reports::default());
        let sink = Arc::clone(&reports);
        let shared =
            Arc::new(ProducerShared::new(knobs.producer.clone(), Partitioner::default(), sink, rng.fork()));
        let settings = ClusterSettings {
            bootstrap: (0..knobs.brokers).map(|i| ("broker".to_owned(), FIRST_PORT + i as u16)).collect(),
            request_timeout: knobs.producer.answer_timeout,
            refresh_interval: Some(Duration::from_secs(30)),
            ..ClusterSettings::default()
        };
        let parts = BrokerParts {
            connection: Arc::new(ConnectionSettings {
                setup_timeout: Duration::from_secs(3),
                request_timeout: knobs.producer.answer_timeout,
                reconnect_backoff_max: Duration::from_secs(2),
                max_idle: rng.chance(1, 4).then(|| Duration::from_secs(2)),
                ..ConnectionSettings::default()
            }),
            producer: Some(Arc::clone(&shared)),
            consumer: None,
            buffers: BufferPool::default(),
        };
        world.clients.push(Client::new(settings, parts, rng.fork()));
        producers.push(Producer {
            number,
            client: world.clients.len() - 1,
            shared,
            reports,
            sent: 0,
            goal: knobs.records,
            destinations: Vec::new(),
        });
    }
    producers
}

/// What ends a fault.
#[derive(Debug)]
enum Heal {
    Restart(BrokerId),
    Connect(usize, BrokerId),
    Resolver,
    Latency(BrokerId),
    Thaw,
}

fn fault(knobs: &Knobs, world: &mut World, rng: &mut Rng, heals: &mut Vec<(Instant, Heal)>) {
    let kind = rng.below(u64::from(KINDS)) as u32;
    if knobs.fault_kinds & (1 << kind) == 0 {
        return;
    }
    let broker = BrokerId(1 + rng.below(knobs.brokers as u64) as i32);
    let for_a_while = Duration::from_millis(10 + rng.below(4_000));
    let until = world.now + for_a_while;
    let now = world.now;
    let (topic, partitions) = knobs.topics[rng.below(knobs.topics.len() as u64) as usize].clone();
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
            world.trace.note(now, format_args!("broker {} is killed ({tail:?})", broker.0));
            world.cluster.control().kill_broker(broker, tail);
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
            world.trace.note(now, format_args!("some request will meet {action:?}"));
            world.cluster.control().inject(Fault::new(action).skip(rng.below(4) as u32).times(1));
        }
        9 => {
            world.trace.note(now, format_args!("no name is resolved"));
            world.resolver_down = true;
            heals.push((until, Heal::Resolver));
        }
        10 => {
            world.trace.note(now, format_args!("broker {} is slow", broker.0));
            world.cluster.control().set_latency(broker, for_a_while / 4);
            heals.push((until, Heal::Latency(broker)));
        }
        _ => {
            world.trace.note(now, format_args!("metadata is frozen"));
            world.cluster.control().freeze_metadata();
            heals.push((until, Heal::Thaw));
        }
    }
    world.settle_cluster();
}

fn apply(world: &mut World, heals: Vec<Heal>) {
    for heal in heals {
        world.trace.note(world.now, format_args!("healed: {heal:?}"));
        match heal {
            Heal::Restart(broker) => world.cluster.control().restart_broker(broker),
            Heal::Connect(client, broker) => {
                world.partitioned.remove(&(client, broker));
            }
            Heal::Resolver => world.resolver_down = false,
            Heal::Latency(broker) => world.cluster.control().set_latency(broker, Duration::ZERO),
            Heal::Thaw => world.cluster.control().thaw_metadata(),
        }
    }
    world.settle_cluster();
}

fn heal_all(world: &mut World) {
    world.trace.note(world.now, format_args!("everything heals"));
    world.partitioned.clear();
    world.resolver_down = false;
    let mut control = world.cluster.control();
    control.clear_faults();
    control.thaw_metadata();
    for broker in control.brokers() {
        control.restart_broker(broker);
        control.set_latency(broker, Duration::ZERO);
    }
    world.settle_cluster();
}
