//! Draws every knob from the seed.

use std::time::Duration;

use ottla_core::{
    config::{IsolationLevel, OffsetReset, TopicRecreatePolicy},
    fetch::{partition::PrefetchLimits, settings::ConsumerSettings},
    produce::{
        accumulator::BatchLimits, acks::Acks, collector::Linger, settings::ProducerSettings,
        topic_settings::TopicSettings,
    },
    rng::Rng,
};
use ottla_protocol::compress::Compression;

use crate::{
    deadlines::Deadlines,
    faults::{FIRST_KINDS, KINDS, SECOND_KINDS},
    network::NetworkKnobs,
    queries::Queries,
    reader::Habits,
    sasl::SaslKnobs,
    telemetry::TelemetryKnobs,
};

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Knobs {
    /// The seed of all knobs.
    pub seed: u64,
    /// The number of brokers.
    pub brokers: i32,
    /// The number of producers.
    pub producers: u32,
    /// Topics with their numbers of partitions.
    pub topics: Vec<(String, i32)>,
    /// The number of records that each producer sends.
    pub records: u64,
    /// Records are sent evenly over the fault phase; else at its beginning, as fast as the queue allows.
    pub steady: bool,
    /// The duration of the fault phase.
    pub faults_for: Duration,
    /// The mean time between faults.
    pub fault_every: Duration,
    /// The mean time of a step of the applications in the fault phase; `None` is 2,000 steps, each of at least 10 ms.
    pub step: Option<Duration>,
    /// The enabled kinds of faults, as bits.
    pub fault_kinds: u32,
    /// The number of kinds to choose from.
    pub kinds: u32,
    /// Brokers may lose records that their followers do not have.
    pub lossy: bool,
    /// Records are deleted before they are read.
    pub records_deleted: bool,
    /// A replica without the newest records may become the leader.
    pub unclean: bool,
    /// Topics are deleted and recreated.
    pub topics_deleted: bool,
    /// Brokers of every release report topic IDs.
    pub ids_reported: bool,
    /// The duration for which idempotent producers wait for a producer ID.
    pub no_identity_for: Duration,
    /// The duration for which brokers respond to Fetch at once and keep no fetch sessions.
    pub hasty_for: Duration,
    /// Responses to Produce are lost repeatedly, so that it is unknown which batches were written.
    pub doubts: bool,
    /// The least number of in-sync replicas with which brokers take records for `acks=all`.
    pub min_in_sync: i32,
    /// Every second fault is one that only such worlds have.
    pub harsh: bool,
    /// Records are compressed, by workers unless a batch is small.
    pub workers: bool,
    /// Topics have their own settings.
    pub topics_differ: bool,
    /// Clients have to authenticate.
    pub sasl: Option<SaslKnobs>,
    /// Clients push metrics.
    pub telemetry: Option<TelemetryKnobs>,
    /// The lag of followers.
    pub replication_lag: Duration,
    /// What producers' applications do besides sending.
    pub deadlines: Deadlines,
    /// The queries of applications.
    pub queries: Queries,
    /// The network.
    pub network: NetworkKnobs,
    /// The producers' settings.
    pub producer: ProducerSettings,
    /// The number of consumers.
    pub consumers: u32,
    /// The partitions are divided among the consumers; else every consumer reads all.
    pub divided: bool,
    /// How the consumers' applications behave.
    pub habits: Habits,
    /// The consumers' settings.
    pub consumer: ConsumerSettings,
}

impl Knobs {
    /// Draws every knob.
    pub fn from_seed(seed: u64) -> Self {
        let mut knobs = Self::untouched_logs(seed);
        let mut rng = Rng::from_seed(seed ^ 0x10_65);
        knobs.kinds = KINDS;
        knobs.records_deleted = rng.chance(1, 3);
        knobs.unclean = rng.chance(1, 6);
        knobs.topics_deleted = rng.chance(1, 4);
        knobs.ids_reported = knobs.topics_deleted && Rng::from_seed(seed ^ 0x1d5).chance(1, 2);
        if rng.chance(1, 12) {
            knobs.no_identity_for = Duration::from_millis(rng.below(3_000));
        }
        if rng.chance(1, 6) {
            knobs.producer.linger = Linger::Auto;
        }
        knobs.producer.topic_recreate =
            if rng.chance(1, 2) { TopicRecreatePolicy::Error } else { TopicRecreatePolicy::Reset };
        // A consumer that resets to the end of a recreated topic can't know which records it skipped.
        let resets = knobs.consumer.auto_offset_reset != OffsetReset::End && rng.chance(1, 2);
        knobs.consumer.topic_recreate =
            if resets { TopicRecreatePolicy::Reset } else { TopicRecreatePolicy::Error };
        // A constant that keeps the traces of the seeds in the tests.
        let mut rng = Rng::from_seed(seed ^ 0x30_c5);
        knobs.steady = rng.chance(1, 3);
        if knobs.steady && knobs.lossy {
            // Killed brokers have records to lose.
            knobs.records = knobs.records.max(200);
            knobs.replication_lag = Duration::from_millis([20, 100, 500][rng.below(3) as usize]);
        }
        let mut rng = Rng::from_seed(seed ^ 0xd0_0b7);
        if rng.chance(1, 12) {
            knobs.make_doubtful(&mut rng);
        }
        let mut rng = Rng::from_seed(seed ^ 0x4a57);
        if knobs.consumers > 0 && rng.chance(1, 10) {
            knobs.hasty_for = knobs.faults_for.mul_f64([0.3, 1.0][rng.below(2) as usize]);
        }
        knobs.deadlines = Deadlines::from_seed(seed);
        knobs.queries = Queries::from_seed(seed);
        if Rng::from_seed(seed ^ 0x0c_0dec).chance(1, 4) {
            knobs.hire_workers();
        }
        knobs
    }

    /// Lets workers compress records.
    fn hire_workers(&mut self) {
        self.workers = true;
        self.producer.topic.compression = Compression::Lz4;
        self.producer.topic.batch.sums_early = false;
    }

    /// Creates a small world of one topic, in which many batches of few partitions are in flight when their responses
    /// are lost, and some fail while later ones don't. Every record must be written exactly once.
    fn make_doubtful(&mut self, rng: &mut Rng) {
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        self.doubts = true;
        self.steady = true;
        self.lossy = false;
        self.unclean = false;
        self.topics_deleted = false;
        self.topics = vec![("t0".to_owned(), pick(&[1, 1, 2, 4]) as i32)];
        self.producers = self.producers.min(2);
        self.records = self.records.min(200);
        self.faults_for = Duration::from_secs(pick(&[5, 20]));
        self.fault_every = Duration::from_millis(pick(&[100, 300, 1_000]));
        let producer = &mut self.producer;
        producer.idempotence = true;
        producer.topic.acks = Acks::All;
        producer.max_in_flight = 5;
        producer.max_retries = pick(&[2, 2, 3, i32::MAX as u64]) as u32;
        producer.topic.message_timeout = Some(Duration::from_millis(pick(&[2_000, 2_000, 10_000, 60_000])));
        producer.topic.batch.max_records = pick(&[1, 3, 10]) as usize;
        if self.network.latency < Duration::from_millis(50) {
            producer.response_timeout = Duration::from_millis(pick(&[1_000, 1_000, 5_000]));
            self.consumer.response_timeout = producer.response_timeout;
        }
    }

    /// Draws every knob, and lets some brokers report no topic IDs even if topics are recreated.
    pub fn without_ids(seed: u64) -> Self {
        Self { ids_reported: false, ..Self::from_seed(seed) }
    }

    /// Draws every knob of a world with hardships: damaged bytes, full disks, lost quorums, jobs that never return, and others.
    pub fn with_hardships(seed: u64) -> Self {
        let mut knobs = Self { harsh: true, ..Self::from_seed(seed) };
        let mut rng = Rng::from_seed(seed ^ 0x4a_c5);
        if knobs.brokers > 1 {
            knobs.min_in_sync = 1 + rng.below(2) as i32;
        }
        if rng.chance(1, 2) {
            knobs.hire_workers();
        }
        // Without it applications get what the network made of a record.
        knobs.consumer.check_crcs = true;
        knobs
    }

    /// Draws every knob, and gives each topic its own settings.
    pub fn with_differing_topics(seed: u64) -> Self {
        let mut knobs = Self { topics_differ: true, ..Self::from_seed(seed) };
        for number in knobs.topics.len()..4 {
            knobs.topics.push((format!("t{number}"), 1 + number as i32));
        }
        knobs
    }

    /// Draws every knob, and makes clients authenticate.
    pub fn with_sasl(seed: u64) -> Self {
        Self { sasl: Some(SaslKnobs::from_seed(seed)), ..Self::from_seed(seed) }
    }

    /// Draws every knob, and makes an identity provider fail for an hour while records flow.
    pub fn with_outage(seed: u64) -> Self {
        Self::undisturbed(seed, Duration::from_secs(9_000), SaslKnobs::with_outage())
    }

    /// Draws every knob, and makes clients authenticate for a week.
    pub fn with_sasl_for_a_week(seed: u64) -> Self {
        Self::undisturbed(seed, Duration::from_secs(7 * 86_400), SaslKnobs::for_a_week(seed))
    }

    /// Draws every knob of a world in which records flow evenly for a long time, and nothing but authentication may fail.
    fn undisturbed(seed: u64, time: Duration, sasl: SaslKnobs) -> Self {
        let mut knobs = Self::from_seed(seed);
        // A response to Fetch at the least every half minute.
        knobs.consumer.fetch_wait_max = Duration::from_secs(30);
        Self {
            sasl: Some(sasl),
            steady: true,
            records: 2_000,
            faults_for: time,
            fault_every: time,
            fault_kinds: 0,
            lossy: false,
            doubts: false,
            no_identity_for: Duration::ZERO,
            hasty_for: Duration::ZERO,
            queries: Queries::NONE,
            ..knobs
        }
    }

    /// Draws every knob, and makes clients push metrics.
    pub fn with_telemetry(seed: u64) -> Self {
        Self { telemetry: Some(TelemetryKnobs::from_seed(seed)), ..Self::from_seed(seed) }
    }

    /// Draws every knob, and gives each client a ceiling of its memory. Applications take records and never put them back.
    pub fn with_ceilings(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0xce_111);
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let mut knobs = Self::from_seed(seed);
        knobs.consumers = knobs.consumers.max(1);
        knobs.habits.restless = u64::MAX;
        knobs.producer.max_memory = Some(pick(&[1, 3_000, 30_000, 1_000_000]) as usize);
        knobs.producer.topic.compression =
            [Compression::None, Compression::Lz4, Compression::Snappy][pick(&[0, 1, 2]) as usize];
        knobs.producer.topic.batch.sums_early = knobs.producer.topic.compression == Compression::None;
        knobs.consumer.max_memory = Some(pick(&[1, 1_000, 10_000, 100_000]) as usize);
        knobs
    }

    /// Returns the mean time of a step of the applications in the fault phase.
    pub fn step(&self) -> Duration {
        self.step.unwrap_or_else(|| Duration::from_millis(10).max(self.faults_for / 2000))
    }

    /// Returns the settings of each topic; topics without their own have `usual` ones.
    pub fn topic_settings(&self, usual: &TopicSettings) -> Vec<TopicSettings> {
        let mut rng = Rng::from_seed(self.seed ^ 0x0_1d_70);
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let millis = Duration::from_millis;
        let topics = self.topics.iter().map(|_| {
            let mut own = usual.clone();
            if self.topics_differ {
                if !self.producer.idempotence && !self.lossy {
                    own.acks = [Acks::All, Acks::Leader][pick(&[0, 1]) as usize];
                }
                own.acks_timeout = millis(pick(&[500, 5_000, 30_000]));
                let timeout = millis(pick(&[2_000, 10_000, 300_000]));
                own.message_timeout = own.message_timeout.map(|usual| usual.min(timeout));
                let codecs = [Compression::None, Compression::Lz4, Compression::Snappy];
                own.compression = codecs[pick(&[0, 1, 2]) as usize];
                own.batch.sums_early = own.compression == Compression::None;
            }
            own
        });
        topics.collect()
    }

    /// Draws the knobs of a world in which only producers change logs and topics are not deleted.
    pub fn untouched_logs(seed: u64) -> Self {
        let mut knobs = Self::producers_only(seed);
        let mut rng = Rng::from_seed(seed ^ 0xc0_45_0e);
        let pick = |rng: &mut Rng, choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let millis = |n: u64| Duration::from_millis(n);
        knobs.brokers = pick(&mut rng, &[1, 2, 3, 3, 3, 4, 5]) as i32;
        knobs.producers = pick(&mut rng, &[1, 2, 2, 3]) as u32;
        let topics = 1 + rng.below(4);
        let partitions = pick(&mut rng, &[1, 12, 24, 24, 36]).max(topics);
        knobs.topics = (0..topics)
            .map(|i| (format!("t{i}"), (partitions / topics + u64::from(i < partitions % topics)) as i32))
            .collect();
        knobs.fault_kinds = rng.next_u64() as u32;
        knobs.kinds = SECOND_KINDS;
        knobs.consumers = pick(&mut rng, &[0, 1, 2, 2, 2, 3]) as u32;
        knobs.divided = rng.chance(1, 2);
        knobs.habits = Habits {
            sleeps: rng.chance(1, 2),
            single_percent: pick(&mut rng, &[0, 50, 100]),
            restless: pick(&mut rng, &[5, 30, 300, u64::MAX]),
        };
        knobs.consumer = ConsumerSettings {
            fetch_wait_max: millis(pick(&mut rng, &[10, 100, 500])),
            fetch_min_bytes: pick(&mut rng, &[1, 1, 1_000, 100_000]) as i32,
            fetch_max_bytes: pick(&mut rng, &[1, 5_000, 52_428_800]) as i32,
            partition_fetch_max_bytes: pick(&mut rng, &[1, 1_000, 1_048_576]) as i32,
            fetch_error_backoff: millis(pick(&mut rng, &[50, 500])),
            prefetch: PrefetchLimits {
                messages: pick(&mut rng, &[1, 30, 100_000]) as usize,
                bytes: pick(&mut rng, &[300, 10_000, 65_536 * 1024]) as usize,
            },
            auto_offset_reset: [OffsetReset::Beginning, OffsetReset::End, OffsetReset::Error]
                [rng.below(3) as usize],
            partition_eof: rng.chance(1, 2),
            check_crcs: rng.chance(3, 4),
            isolation_level: if rng.chance(1, 2) {
                IsolationLevel::ReadCommitted
            } else {
                IsolationLevel::ReadUncommitted
            },
            response_timeout: knobs.producer.response_timeout,
            ..ConsumerSettings::default()
        };
        knobs
    }

    /// Draws the knobs of a world without consumers, for the seeds from before there were any.
    pub fn producers_only(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed);
        let pick = |rng: &mut Rng, choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let idempotence = rng.chance(2, 3);
        let acks =
            if idempotence { Acks::All } else { [Acks::All, Acks::All, Acks::Leader][rng.below(3) as usize] };
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
            step: None,
            fault_kinds: rng.next_u64() as u32 & ((1 << FIRST_KINDS) - 1),
            kinds: FIRST_KINDS,
            consumers: 0,
            divided: false,
            habits: Habits { sleeps: false, single_percent: 0, restless: u64::MAX },
            consumer: ConsumerSettings::default(),
            records_deleted: false,
            unclean: false,
            topics_deleted: false,
            ids_reported: false,
            doubts: false,
            min_in_sync: 1,
            harsh: false,
            sasl: None,
            telemetry: None,
            workers: false,
            topics_differ: false,
            steady: false,
            no_identity_for: Duration::ZERO,
            hasty_for: Duration::ZERO,
            lossy: rng.chance(1, 3),
            replication_lag: millis(pick(&mut rng, &[0, 0, 5, 100])),
            deadlines: Deadlines::NONE,
            queries: Queries::NONE,
            network: NetworkKnobs {
                latency: Duration::from_micros(pick(&mut rng, &[20, 500, 5_000, 100_000])),
                jitter: Duration::from_micros(pick(&mut rng, &[0, 50, 2_000, 50_000])),
                window: pick(&mut rng, &[500, 20_000, 1_000_000]) as usize,
                cut_percent: pick(&mut rng, &[0, 5, 50]),
            },
            producer: ProducerSettings {
                idempotence,
                topic: TopicSettings {
                    acks,
                    acks_timeout: millis(pick(&mut rng, &[500, 5_000, 30_000])),
                    message_timeout: Some(message_timeout),
                    ..TopicSettings::default()
                },
                response_timeout: millis(pick(&mut rng, &[1_000, 5_000, 60_000])),
                max_retries: if rng.chance(1, 8) { 2 } else { i32::MAX as u32 },
                max_in_flight: pick(&mut rng, &[1, 5, 5]) as usize,
                linger: if rng.chance(1, 2) { Linger::Broker(linger) } else { Linger::Partition(linger) },
                max_partitions: rng.chance(1, 4).then(|| 1 + rng.below(5) as usize),
                max_bytes: rng.chance(1, 4).then(|| 200 + rng.below(5_000)),
                ..ProducerSettings::default()
            },
        };
        knobs.producer.topic.batch = BatchLimits {
            max_bytes: pick(&mut rng, &[300, 2_000, 1_000_000]) as usize,
            max_records: pick(&mut rng, &[1, 10, 10_000]) as usize,
            max_age_nanos: (message_timeout / 20).as_nanos() as u64,
            sums_early: true,
        };
        knobs.producer.max_request_bytes = pick(&mut rng, &[500, 10_000, 1_000_000]) as usize;
        knobs.producer.max_queued_messages = pick(&mut rng, &[5, 100, 100_000]);
        // A request of ten kilobytes can't be sent within a second on a link that carries four kilobytes a second.
        let bytes_per_second = knobs.network.window as u128 * 1_000_000_000
            / (knobs.network.latency + knobs.network.jitter).as_nanos().max(1);
        if bytes_per_second < 100_000 {
            knobs.producer.response_timeout = Duration::from_secs(60);
        }
        knobs
    }
}
