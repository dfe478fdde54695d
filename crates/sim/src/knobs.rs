//! Every knob from the seed.

use std::time::Duration;

use ottla_core::{
    config::{IsolationLevel, OffsetReset, TopicRecreatePolicy},
    fetch::{partition::PrefetchLimits, shared::ConsumerSettings},
    mutation::Mutation,
    produce::{
        accumulator::BatchLimits, collector::Linger, shared::ProducerSettings, topic_settings::TopicSettings,
    },
    rng::Rng,
};
use ottla_protocol::compress::Compression;

use crate::{
    curiosity::Curiosity,
    faults::{FIRST_KINDS, KINDS, SECOND_KINDS},
    impatience::Impatience,
    network::NetworkKnobs,
    reader::Habits,
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
    /// They go out evenly over the phase of faults; else in its beginning, as far as there is room in the queue.
    pub steady: bool,
    /// How long the phase of faults lasts.
    pub faults_for: Duration,
    /// A fault comes about this often.
    pub fault_every: Duration,
    /// Which kinds of fault there are, as bits.
    pub fault_kinds: u32,
    /// How many kinds there are to choose from.
    pub kinds: u32,
    /// Brokers may lose what their followers do not have.
    pub lossy: bool,
    /// Records are deleted before others have read them.
    pub records_deleted: bool,
    /// A replica without the newest records may become the leader.
    pub unclean: bool,
    /// Topics are deleted and made anew.
    pub topics_deleted: bool,
    /// Brokers of every release tell the ids of topics.
    pub ids_told: bool,
    /// Whoever wants to be idempotent has to wait for an identity so long.
    pub no_identity_for: Duration,
    /// Answers to Produce are lost one after the other: what was written is not known, again and again.
    pub doubts: bool,
    /// Topics have settings of their own.
    pub topics_differ: bool,
    /// How long followers lag.
    pub replication_lag: Duration,
    /// What producers' applications do besides sending.
    pub impatience: Impatience,
    /// What applications ask beside the traffic.
    pub curiosity: Curiosity,
    /// The network.
    pub network: NetworkKnobs,
    /// The producers' settings.
    pub producer: ProducerSettings,
    /// How many consumers.
    pub consumers: u32,
    /// Each consumer reads partitions of its own; else all read everything.
    pub divided: bool,
    /// How the consumers' applications behave.
    pub habits: Habits,
    /// The consumers' settings.
    pub consumer: ConsumerSettings,
    /// A deliberate mistake of the connections and of the cluster's owner.
    pub mutation: Mutation,
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
        knobs.ids_told = knobs.topics_deleted && Rng::from_seed(seed ^ 0x1d5).chance(1, 2);
        if rng.chance(1, 12) {
            knobs.no_identity_for = Duration::from_millis(rng.below(3_000));
        }
        if rng.chance(1, 6) {
            knobs.producer.linger = Linger::Auto;
        }
        knobs.producer.fail_of_old_topic = rng.chance(1, 2);
        // Who is sent to the end of a new topic can't be told what it missed there.
        if knobs.consumer.auto_offset_reset != OffsetReset::End && rng.chance(1, 2) {
            knobs.consumer.topic_recreate = TopicRecreatePolicy::Reset;
        }
        // Of the constants that would do, one that keeps the stories of the seeds in the tests.
        let mut rng = Rng::from_seed(seed ^ 0x30_c5);
        knobs.steady = rng.chance(1, 3);
        if knobs.steady && knobs.lossy {
            // Brokers that are killed have something to lose.
            knobs.records = knobs.records.max(200);
            knobs.replication_lag = Duration::from_millis([20, 100, 500][rng.below(3) as usize]);
        }
        let mut rng = Rng::from_seed(seed ^ 0xd0_0b7);
        if rng.chance(1, 12) {
            knobs.make_doubtful(&mut rng);
        }
        knobs.impatience = Impatience::from_seed(seed);
        knobs.curiosity = Curiosity::from_seed(seed);
        knobs
    }

    /// Makes it a small world of one topic, in which many batches of few partitions are under way when their answers are
    /// lost, and some of them give up while others behind them do not. All that was sent has to be there once.
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
        producer.acks = -1;
        producer.max_in_flight = 5;
        producer.max_retries = pick(&[2, 2, 3, i32::MAX as u64]) as u32;
        producer.message_timeout = Some(Duration::from_millis(pick(&[2_000, 2_000, 10_000, 60_000])));
        producer.batch.max_records = pick(&[1, 3, 10]) as usize;
        if self.network.latency < Duration::from_millis(50) {
            producer.answer_timeout = Duration::from_millis(pick(&[1_000, 1_000, 5_000]));
            self.consumer.answer_timeout = producer.answer_timeout;
        }
    }

    /// Draws every knob, and lets some brokers tell no ids of topics also where topics are made anew.
    pub fn without_ids(seed: u64) -> Self {
        Self { ids_told: false, ..Self::from_seed(seed) }
    }

    /// Draws every knob, and gives each topic settings of its own.
    pub fn with_differing_topics(seed: u64) -> Self {
        let mut knobs = Self { topics_differ: true, ..Self::from_seed(seed) };
        for number in knobs.topics.len()..4 {
            knobs.topics.push((format!("t{number}"), 1 + number as i32));
        }
        knobs
    }

    /// The settings of each topic, where those without a word of their own have `usual` ones.
    pub fn topic_settings(&self, usual: &TopicSettings) -> Vec<TopicSettings> {
        let mut rng = Rng::from_seed(self.seed ^ 0x0_1d_70);
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let millis = Duration::from_millis;
        let topics = self.topics.iter().map(|_| {
            let mut own = usual.clone();
            if self.topics_differ {
                if !self.producer.idempotence && !self.lossy {
                    own.acks = [-1, 1][pick(&[0, 1]) as usize];
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

    /// Draws the knobs of a world in which only producers change logs and nobody deletes a topic.
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
            answer_timeout: knobs.producer.answer_timeout,
            ..ConsumerSettings::default()
        };
        knobs
    }

    /// Draws the knobs of a world without consumers, as the simulator's first findings were made.
    pub fn producers_only(seed: u64) -> Self {
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
            fault_kinds: rng.next_u64() as u32 & ((1 << FIRST_KINDS) - 1),
            kinds: FIRST_KINDS,
            consumers: 0,
            divided: false,
            habits: Habits { sleeps: false, single_percent: 0, restless: u64::MAX },
            consumer: ConsumerSettings::default(),
            mutation: Mutation::NONE,
            records_deleted: false,
            unclean: false,
            topics_deleted: false,
            ids_told: false,
            doubts: false,
            topics_differ: false,
            steady: false,
            no_identity_for: Duration::ZERO,
            lossy: rng.chance(1, 3),
            replication_lag: millis(pick(&mut rng, &[0, 0, 5, 100])),
            impatience: Impatience::NONE,
            curiosity: Curiosity::NONE,
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
                    sums_early: true,
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
