//! Runs the world of a seed, and returns the outcome.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ottla_core::{
    broker::BrokerParts,
    cluster::{ClusterSettings, command::Command},
    connection::{ConnectionSettings, buffer::BufferPool},
    contract::purge::Purge,
    fetch::shared::ConsumerShared,
    machine::Instant,
    produce::{acks::Acks, shared::ProducerShared},
    rng::Rng,
    sasl::SaslShared,
};
use ottla_embedded_broker::{Cluster, ClusterOptions};

use crate::{
    checkers::{Broken, accounting, consume, delivery, log::Log, memory, wire::Limits},
    client::Client,
    deadlines::Application,
    faults::{self, Heal},
    incidents::Incidents,
    knobs::Knobs,
    plan::Ran,
    queries::Querier,
    reader::Reader,
    sasl::{Authenticators, SaslKnobs},
    telemetry::{self, Operator, TelemetryKnobs},
    workload::{Producer, Reports},
    world::{FIRST_PORT, World},
};

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The first broken guarantee.
    pub broken: Option<Broken>,
    /// The virtual time that passed.
    pub virtual_time: Duration,
    /// The number of transitions.
    pub events: u64,
    /// The hash of the trace.
    pub hash: u64,
    /// The trace, if it was kept.
    pub trace: Vec<String>,
    /// The number of records that were sent.
    pub records: u64,
    /// The number of records that were acknowledged.
    pub acknowledged: u64,
    /// The number of records that consumers received.
    pub read: u64,
    /// The number of times that a connection began to authenticate again.
    pub reauthentications: u64,
    /// Clients that pushed metrics when they were closed.
    pub last_pushes: usize,
}

/// Runs the world of a seed. `keep_trace` keeps the trace.
pub fn run(knobs: &Knobs, keep_trace: bool) -> Outcome {
    let mut run = Run::new(knobs, keep_trace);
    let broken = run.go().err();
    run.outcome(broken)
}

/// Runs a world with these incidents. `keeps` keeps the trace.
pub(crate) fn run_plan(knobs: &Knobs, incidents: Incidents, keeps: bool) -> Ran {
    let mut run = Run::new(knobs, keeps);
    run.incidents = incidents;
    let broken = run.go().err();
    Ran::new(&run.world, &run.incidents, broken)
}

/// A run in progress.
struct Run<'a> {
    knobs: &'a Knobs,
    rng: Rng,
    world: World,
    producers: Vec<Producer>,
    applications: Vec<Application>,
    queriers: Vec<Querier>,
    readers: Vec<Reader>,
    authenticators: Option<Authenticators>,
    operator: Option<Operator>,
    start: Instant,
    heals: Vec<(Instant, Heal)>,
    incidents: Incidents,
}

impl<'a> Run<'a> {
    fn new(knobs: &'a Knobs, keep_trace: bool) -> Self {
        let mut rng = Rng::from_seed(knobs.seed ^ 0x5eed);
        let mut world = world(knobs, keep_trace, &mut rng);
        let producers = producers(knobs, &mut world, &mut rng);
        let readers = readers(knobs, &mut world, &mut rng);
        let application =
            |producer: &Producer| Application::new(knobs.deadlines, knobs.seed, producer.number);
        let applications = producers.iter().map(application).collect();
        let clients = 0..world.clients.len();
        let queriers = clients.map(|client| Querier::new(knobs.queries, knobs.seed, client)).collect();
        let operator =
            knobs.telemetry.as_ref().map(|telemetry| Operator::new(telemetry, knobs.seed, &mut world));
        let authenticators = knobs.sasl.as_ref().map(|sasl| Authenticators::new(sasl, knobs.seed, &world));
        Self {
            knobs,
            rng,
            start: world.now,
            world,
            producers,
            applications,
            queriers,
            readers,
            authenticators,
            operator,
            heals: Vec::new(),
            incidents: Incidents::default(),
        }
    }

    fn go(&mut self) -> Result<(), Broken> {
        self.suffer()?;
        self.heal()?;
        self.check()?;
        match self.operator {
            Some(_) => telemetry::say_goodbye(&mut self.world),
            None => Ok(()),
        }
    }

    /// Runs the fault phase.
    fn suffer(&mut self) -> Result<(), Broken> {
        let knobs = self.knobs;
        let end = self.start + knobs.faults_for;
        let mut next_fault = self.start + knobs.fault_every;
        let step = knobs.step();
        for reader in &mut self.readers {
            let commands = Arc::clone(&self.world.clients[reader.client].commands);
            reader.assign(&mut self.world.cluster, &commands, 90, &mut self.rng);
        }
        if !knobs.no_identity_for.is_zero() {
            let until = faults::refuse_identities(&mut self.world, knobs.no_identity_for);
            self.heals.push(until);
        }
        if !knobs.hasty_for.is_zero() {
            let until = faults::hurry(&mut self.world, knobs.hasty_for);
            self.heals.push(until);
        }
        while self.world.now < end {
            let until = (self.world.now + self.rng.jitter(step, 90)).min(end);
            self.world.run_until(until)?;
            for producer in &mut self.producers {
                if self.rng.chance(1, 3) {
                    let count = if knobs.steady {
                        let part = (self.world.now - self.start).as_nanos() as f64
                            / knobs.faults_for.as_nanos() as f64;
                        ((knobs.records as f64 * part) as u64).saturating_sub(producer.sent)
                    } else {
                        1 + self.rng.below(knobs.records / 10 + 1)
                    };
                    let commands = Arc::clone(&self.world.clients[producer.client].commands);
                    producer.send(
                        self.world.now,
                        self.world.wall_skew_ms,
                        count,
                        &knobs.topics,
                        &commands,
                        &mut self.rng,
                    );
                }
            }
            self.step_applications(true)?;
            for reader in &mut self.readers {
                let commands = Arc::clone(&self.world.clients[reader.client].commands);
                reader.step(&mut self.world.cluster, &commands, &mut self.rng)?;
            }
            self.strike(&mut next_fault);
            let now = self.world.now;
            let due = self.heals.extract_if(.., |(at, _)| *at <= now).map(|(_, heal)| heal).collect();
            faults::apply(&mut self.world, due);
        }
        Ok(())
    }

    /// Injects the faults whose time has come; `next` is the time of the next one that is drawn.
    fn strike(&mut self, next: &mut Instant) {
        let now = self.world.now;
        while self.incidents.are_given()
            && let Some(incident) = self.incidents.next(now)
        {
            let lines = self.world.trace.lines().len();
            faults::strike(self.knobs, &mut self.world, &mut incident.rng(), &mut self.heals);
            self.tell_readers();
            incident.pass(&mut self.rng);
            self.incidents.note_given(incident, self.world.trace.first_since(lines));
        }
        while !self.incidents.are_given() && now >= *next {
            let (before, lines) = (self.rng.clone(), self.world.trace.lines().len());
            faults::strike(self.knobs, &mut self.world, &mut self.rng, &mut self.heals);
            self.tell_readers();
            *next += self.rng.jitter(self.knobs.fault_every, 90);
            if self.world.trace.keeps() {
                self.incidents.note(now, before, &self.rng, self.world.trace.first_since(lines));
            }
        }
    }

    /// Tells the readers which logs a fault has changed.
    fn tell_readers(&mut self) {
        for change in self.world.history.take_changes() {
            self.readers.iter_mut().for_each(|reader| reader.changed(change));
        }
    }

    /// Heals all faults, sends the remaining records, and reads everything.
    fn heal(&mut self) -> Result<(), Broken> {
        let knobs = self.knobs;
        let rest = self.heals.drain(..).map(|(_, heal)| heal).collect();
        faults::apply(&mut self.world, rest);
        faults::heal_all(knobs, &mut self.world);
        for producer in &self.producers {
            producer.shared.flushing.fetch_add(1, Ordering::SeqCst);
            self.world.clients[producer.client].commands.push(Command::Flush);
        }
        for reader in &mut self.readers {
            let commands = Arc::clone(&self.world.clients[reader.client].commands);
            reader.settle(&mut self.world.cluster, &commands, &mut self.rng);
        }
        let time_limit = self.time_limit();
        let deadline = self.world.now + time_limit;
        // Readers poll more often than producers need to.
        let step = Duration::from_millis(if self.readers.is_empty() { 500 } else { 50 });
        while self.world.now < deadline {
            self.world.run_until((self.world.now + step).min(deadline))?;
            for producer in &mut self.producers {
                let commands = Arc::clone(&self.world.clients[producer.client].commands);
                producer.send(
                    self.world.now,
                    self.world.wall_skew_ms,
                    u64::MAX,
                    &knobs.topics,
                    &commands,
                    &mut self.rng,
                );
            }
            self.step_applications(false)?;
            for reader in &mut self.readers {
                let commands = Arc::clone(&self.world.clients[reader.client].commands);
                reader.poll(&commands, &mut self.rng)?;
            }
            if self.producers.iter().all(|p| p.is_done() && p.shared.budget.messages() == 0)
                && self.readers.iter().all(|reader| reader.is_done(&mut self.world.cluster))
                && self.applications.iter().all(Application::is_idle)
                && self.queriers.iter().all(Querier::is_idle)
            {
                return Ok(());
            }
        }
        for (number, client) in self.world.clients.iter().enumerate() {
            self.world
                .trace
                .remark(|| format!("client {number}: {:#?}\n{:#?}", client.cluster, client.brokers));
        }
        for reader in &self.readers {
            let reported =
                || format!("consumer {} received these errors: {:#?}", reader.number, reader.errors());
            self.world.trace.remark(reported);
        }
        Err(Broken::new("liveness", self.unfinished(time_limit)))
    }

    /// Steps the applications; they begin new operations where they `may`.
    fn step_applications(&mut self, may: bool) -> Result<(), Broken> {
        self.producers.iter().try_for_each(memory::check)?;
        self.readers.iter().try_for_each(|reader| memory::check_reader(reader, &self.knobs.producer))?;
        if let Some(authenticators) = &mut self.authenticators {
            authenticators.step(&mut self.world, may);
        }
        if let Some(operator) = &mut self.operator {
            operator.step(&mut self.world, may, self.knobs.brokers);
        }
        let mut pairs = self.applications.iter_mut().zip(&mut self.producers);
        pairs.try_for_each(|(application, producer)| application.step(producer, &mut self.world, may))?;
        let knobs = self.knobs;
        let mut queriers = self.queriers.iter_mut();
        queriers.try_for_each(|querier| querier.step(&mut self.world, &knobs.topics, knobs.brokers, may))
    }

    /// Returns the maximum duration of everything after the faults have healed.
    fn time_limit(&self) -> Duration {
        let knobs = self.knobs;
        // A small queue takes many round trips.
        let queued = knobs.producer.max_memory.map_or(u64::MAX, |bytes| (bytes as u64 / 1_000).max(1));
        let round_trips = (knobs.records / knobs.producer.max_queued_messages.min(queued) + 1) as u32;
        let round_trip = (knobs.network.latency + knobs.network.jitter) * 4 + knobs.replication_lag * 2;
        let fetches = if knobs.consumers > 0 { knobs.records as u32 * knobs.producers } else { 0 };
        knobs.producer.topic.message_timeout.unwrap_or_default()
            // The client detects half-open connections one after the other, each by a request timeout.
            + (knobs.producer.response_timeout * (knobs.brokers as u32 + 2)).max(Duration::from_secs(120))
            + (round_trip + Duration::from_millis(500)) * round_trips
            // A broker handles the requests of a connection one after the other, and a request may carry a single
            // record.
            + knobs.replication_lag * knobs.records as u32
            // A fetch that returns one record may wait for more up to its maximum wait time.
            + (round_trip + knobs.consumer.fetch_wait_max + Duration::from_millis(200)) * fetches
    }

    fn unfinished(&mut self, time_limit: Duration) -> String {
        let after = format!("{} s after everything healed", time_limit.as_secs());
        for producer in &self.producers {
            let waiting = producer.shared.budget.messages();
            if !producer.is_done() || waiting > 0 {
                return format!(
                    "producer {}: {} of {} records sent and {waiting} without a report {after}",
                    producer.number, producer.sent, producer.goal
                );
            }
        }
        for reader in &self.readers {
            if let Some((topic, partition, next, end, visible)) = reader.behind(&mut self.world.cluster) {
                return format!(
                    "consumer {}: {topic} [{partition}] is at {next:?} of {end} ({visible} visible) {after}",
                    reader.number
                );
            }
        }
        format!("some work is unfinished {after}")
    }

    fn check(&mut self) -> Result<(), Broken> {
        let knobs = self.knobs;
        let guarantees = delivery::Guarantees {
            durable: !knobs.lossy || knobs.producer.topic.acks == Acks::All,
            idempotent: knobs.producer.idempotence && !knobs.lossy,
        };
        self.producers.iter().try_for_each(accounting::check)?;
        self.readers.iter().try_for_each(accounting::check_reader)?;
        let history = std::mem::take(&mut self.world.history);
        let sends = self.world.wire.take_sends();
        let log = Log::read(&mut self.world.cluster, &knobs.topics, history, sends)?;
        delivery::check(&self.producers, &log, &knobs.topics, guarantees)?;
        consume::check(&self.readers, &self.producers, &log, guarantees.durable)
    }

    fn outcome(self, broken: Option<Broken>) -> Outcome {
        let acknowledged = |producer: &Producer| {
            let reports = producer.reports.lock();
            reports.values().flatten().filter(|report| report.error.is_none()).count() as u64
        };
        Outcome {
            broken,
            virtual_time: self.world.now - self.start,
            events: self.world.trace.events(),
            hash: self.world.trace.hash(),
            records: self.producers.iter().map(|p| p.sent).sum(),
            acknowledged: self.producers.iter().map(acknowledged).sum(),
            reauthentications: self.world.wire.reauthentications(),
            last_pushes: self.world.wire.telemetry.last_pushes(),
            read: self.readers.iter().map(Reader::records).sum(),
            trace: self.world.trace.lines().to_vec(),
        }
    }
}

fn world(knobs: &Knobs, keep_trace: bool, rng: &mut Rng) -> World {
    let mut cluster = Cluster::new(ClusterOptions {
        brokers: knobs.brokers,
        host: "broker".to_owned(),
        port: FIRST_PORT,
        replication_factor: knobs.brokers.min(3) as i16,
        replication_lag: knobs.replication_lag,
        min_insync_replicas: knobs.min_in_sync.min(knobs.brokers),
        auto_create_topics: false,
        sasl: knobs.sasl.as_ref().map(SaslKnobs::listener),
        client_telemetry: knobs.telemetry.as_ref().map(TelemetryKnobs::of_brokers).unwrap_or_default(),
        seed: Some(rng.next_u64()),
        ..ClusterOptions::default()
    });
    for (name, partitions) in &knobs.topics {
        // The names are valid and new.
        let _ = cluster.control().create_topic(name, *partitions, knobs.brokers.min(3) as i16);
    }
    let mut world = World::new(cluster, knobs.network.clone(), rng.fork(), keep_trace);
    knobs.topics.iter().for_each(|(name, _)| world.tell_topic(name));
    world.slow_threads = knobs.deadlines.slow_threads;
    world.purges_moves = knobs.deadlines.purges_moves;
    world
}

fn producers(knobs: &Knobs, world: &mut World, rng: &mut Rng) -> Vec<Producer> {
    let mut producers = Vec::new();
    for number in 0..knobs.producers {
        let reports = Arc::new(Reports::default());
        let sink = Arc::clone(&reports);
        let shared = Arc::new(ProducerShared::new(knobs.producer.clone(), sink, rng.fork()));
        let settings = knobs.topic_settings(shared.topic_settings());
        let parts = parts(knobs, Some(Arc::clone(&shared)), None, rng);
        let of_cluster = cluster_settings(knobs, parts.connection.sasl.clone());
        let mut client = Client::new(of_cluster, parts, rng.fork());
        if knobs.workers {
            client.hire_workers();
        }
        world.clients.push(client);
        world.trace.tell(world.now, format_args!("client {number} is producer {number}"));
        world.wire.allow(
            world.clients.len() - 1,
            Limits {
                producer: Some(number),
                max_in_flight: knobs.producer.max_in_flight,
                max_request_bytes: knobs.producer.max_request_bytes,
                max_batch_bytes: knobs.producer.topic.batch.max_bytes,
                max_batch_records: knobs.producer.topic.batch.max_records,
                topics: settings.clone(),
            },
        );
        producers.push(Producer {
            number,
            client: world.clients.len() - 1,
            shared,
            reports,
            sent: 0,
            goal: knobs.records,
            destinations: Vec::new(),
            settings,
            purged: Purge::default(),
        });
    }
    producers
}

fn readers(knobs: &Knobs, world: &mut World, rng: &mut Rng) -> Vec<Reader> {
    let mut readers = Vec::new();
    for number in 0..knobs.consumers {
        let shared = Arc::new(ConsumerShared::new(knobs.consumer.clone()));
        let parts = parts(knobs, None, Some(Arc::clone(&shared)), rng);
        let of_cluster = cluster_settings(knobs, parts.connection.sasl.clone());
        world.clients.push(Client::new(of_cluster, parts, rng.fork()));
        let share = |topic: u32, partition: i32| {
            !knobs.divided || (topic + partition as u32) % knobs.consumers == number
        };
        let client = world.clients.len() - 1;
        world.trace.tell(world.now, format_args!("client {client} is consumer {number}"));
        readers.push(Reader::new(number, client, shared, knobs.habits, &knobs.topics, share));
    }
    readers
}

fn cluster_settings(knobs: &Knobs, sasl: Option<Arc<SaslShared>>) -> ClusterSettings {
    ClusterSettings {
        sasl,
        telemetry: knobs.telemetry.as_ref().map(|_| TelemetryKnobs::of_client()),
        bootstrap: (0..knobs.brokers).map(|i| ("broker".to_owned(), FIRST_PORT + i as u16)).collect(),
        request_timeout: knobs.producer.response_timeout,
        refresh_interval: Some(Duration::from_secs(30)),
        ..ClusterSettings::default()
    }
}

fn parts(
    knobs: &Knobs,
    producer: Option<Arc<ProducerShared>>,
    consumer: Option<Arc<ConsumerShared>>,
    rng: &mut Rng,
) -> BrokerParts {
    BrokerParts {
        connection: Arc::new(ConnectionSettings {
            setup_timeout: Duration::from_secs(3),
            request_timeout: knobs.producer.response_timeout,
            reconnect_backoff_max: Duration::from_secs(2),
            max_idle: rng.chance(1, 4).then(|| Duration::from_secs(2)),
            sasl: knobs.sasl.as_ref().map(|sasl| sasl.client(rng)),
            ..ConnectionSettings::default()
        }),
        producer,
        consumer,
        share: None,
        buffers: BufferPool::default(),
    }
}
