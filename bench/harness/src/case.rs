//! The cases: the work that is measured.

/// The work of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Produce,
    Consume,
    Latency,
}

/// The servers of the case, always in other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Ottla's embedded broker, which acknowledges and discards records.
    Discard,
    /// A small program of its own, on franz-go's message types, that acknowledges and discards records.
    Null,
    /// Ottla's embedded broker.
    Embedded,
    /// Ottla's embedded broker, which writes the markers of a transaction at once.
    Prompt,
    /// Ottla's embedded brokers, whose metadata is stale for a while after a leader election.
    Lagging { brokers: usize },
    /// Apache Kafka with this number of brokers.
    Kafka { brokers: usize },
    /// Apache Kafka, whose followers wait 10 ms instead of a second when a new leader is not ready yet.
    QuickFollowers { brokers: usize },
}

/// The work of a case, which all peers do.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub kind: Kind,
    pub against: Against,
    pub size: usize,
    pub codec: &'static str,
    pub acks: &'static str,
    pub partitions: usize,
    pub replicas: usize,
    pub messages: u64,
    /// Partition 0, 1, 2, ... in turn, in place of the client's own partitioner.
    pub round_robin: bool,
    /// The clients encrypt (TLS 1.3, AES), and check the brokers' certificate.
    pub tls: bool,
    /// The measured calls of the C interface; only the C program runs these cases, and it runs no others.
    pub calls: Option<Calls>,
    /// The messages are, or were, produced in parts; only some peers run these cases.
    pub parts: Option<Parts>,
    /// `isolation.level` of consumers.
    pub isolation: Option<&'static str>,
}

/// Parts of the produced messages, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    pub kind: PartKind,
    pub size: u64,
}

/// The kinds of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Committed transactions.
    Committed,
    /// Transactions of which every other one is aborted. The aborted messages are not counted.
    HalfAborted,
    /// Idempotent messages with a flush at the end of each part, which waits as often.
    Flushed,
}

impl Parts {
    const fn of(kind: PartKind, size: u64) -> Option<Self> {
        Some(Self { kind, size })
    }

    fn what(self) -> String {
        match self.kind {
            PartKind::Committed => format!(", transactions of {} messages", self.size),
            PartKind::HalfAborted => {
                format!(", transactions of {} messages, every other one aborted", self.size)
            }
            PartKind::Flushed => format!(", idempotent, flushed after {} messages", self.size),
        }
    }
}

/// A set of calls of the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// The name of the mode in `peer.c`.
    pub mode: &'static str,
    pub what: &'static str,
    pub reports: bool,
    pub threads: usize,
}

const SINGLE: Calls =
    Calls { mode: "single", what: "rd_kafka_produce with F_COPY", reports: true, threads: 1 };
const BATCH: Calls =
    Calls { mode: "batch", what: "rd_kafka_produce_batch, 100 at a time", reports: true, threads: 1 };
const TRANSACTIONS: Calls =
    Calls { mode: "transactions", what: "rd_kafka_produce with F_COPY", reports: true, threads: 1 };
/// The same waits as in transactions.
const FLUSHES: Calls =
    Calls { mode: "flushes", what: "rd_kafka_produce with F_COPY", reports: true, threads: 1 };
/// The mode of a share group's member, which only librdkafka 2.16 has.
pub const SHARE_POLL: &str = "share-poll";
const CONSUMING: [Calls; 6] = [
    Calls { mode: "callback", what: "rd_kafka_consume_callback_queue", reports: true, threads: 1 },
    Calls { mode: "batch", what: "rd_kafka_consume_batch_queue, 1000 at a time", reports: true, threads: 1 },
    Calls { mode: "poll", what: "rd_kafka_consumer_poll", reports: true, threads: 1 },
    Calls {
        mode: "member-poll",
        what: "rd_kafka_consumer_poll, a member of a group",
        reports: true,
        threads: 1,
    },
    Calls {
        mode: "member-batch",
        what: "rd_kafka_consume_batch_queue, 1000 at a time, a member of a group",
        reports: true,
        threads: 1,
    },
    Calls {
        mode: SHARE_POLL,
        what: "rd_kafka_share_poll with implicit acknowledgement, a member of a share group",
        reports: true,
        threads: 1,
    },
];

impl Case {
    /// Returns the description.
    pub fn what(&self) -> String {
        let against = match self.against {
            Against::Discard => "the discarding broker".to_owned(),
            Against::Null => "the null broker".to_owned(),
            Against::Embedded => "the embedded broker".to_owned(),
            Against::Prompt => "the embedded broker without a delay of markers".to_owned(),
            Against::Lagging { brokers } => {
                format!("{brokers} embedded brokers with delayed metadata")
            }
            Against::Kafka { brokers } | Against::QuickFollowers { brokers } => {
                format!("{brokers} real brokers")
            }
        };
        let against = if self.tls { format!("{against} over TLS") } else { against };
        let Self { messages, size, codec, acks, partitions, .. } = self;
        let calls = match &self.calls {
            None => String::new(),
            Some(Calls { what, reports, threads, .. }) => {
                let reports = match (self.kind, reports) {
                    (Kind::Consume, _) => "",
                    (_, true) => ", delivery callback",
                    (_, false) => ", no reports",
                };
                let threads = if *threads > 1 { format!(", {threads} threads") } else { String::new() };
                format!(" (C: {what}{reports}{threads})")
            }
        };
        let isolation = self.isolation.map_or_else(String::new, |level| format!(", {level}"));
        let calls = format!("{}{isolation}{calls}", self.parts.map_or_else(String::new, Parts::what));
        let spread = if self.round_robin { "round robin over" } else { "over" };
        match self.kind {
            Kind::Produce => format!(
                "produce {messages} x {size} B, {codec}, acks={acks}, {spread} {partitions} partitions, to {against}{calls}"
            ),
            Kind::Consume => {
                format!(
                    "consume {messages} x {size} B, {codec}, {partitions} partitions, from {against}{calls}"
                )
            }
            Kind::Latency => {
                format!(
                    "{messages} messages of {size} B one at a time, acks={acks}, linger 0, to {against}{calls}"
                )
            }
        }
    }
}

/// Returns all cases; those with the same server are adjacent.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    // There are fewer large records, because Kafka stores them on disk and the embedded broker in memory.
    let sizes = [(100, 5_000_000), (1000, 1_500_000)];
    let discarded_sizes = [(100, 5_000_000), (1000, 5_000_000)];
    let codecs = ["none", "lz4", "zstd"];
    let base = Case {
        name: String::new(),
        kind: Kind::Produce,
        against: Against::Discard,
        size: 100,
        codec: "none",
        acks: "1",
        partitions: 2,
        replicas: 1,
        messages: 5_000_000,
        round_robin: false,
        tls: false,
        calls: None,
        parts: None,
        isolation: None,
    };
    let kafka = Against::Kafka { brokers: 3 };
    for (against, end) in [(Against::Discard, "discard"), (kafka, "kafka")] {
        for (size, messages) in if against == Against::Discard { discarded_sizes } else { sizes } {
            for codec in codecs {
                for acks in ["1", "all"] {
                    let name = format!("produce-{size}-{codec}-acks{acks}-{end}");
                    let replicas = if end == "kafka" && acks == "all" { 3 } else { 1 };
                    cases.push(Case { name, against, size, codec, acks, messages, replicas, ..base.clone() });
                }
            }
        }
        if against == Against::Discard {
            for partitions in [2, 1000] {
                let name = format!("partitions-{partitions}");
                cases.push(Case { name, partitions, round_robin: true, ..base.clone() });
            }
        }
    }
    for (against, end) in [(kafka, "kafka"), (Against::Embedded, "embedded")] {
        for (size, messages) in sizes {
            for codec in codecs {
                let name = format!("consume-{size}-{codec}-{end}");
                cases.push(Case {
                    name,
                    kind: Kind::Consume,
                    against,
                    size,
                    codec,
                    messages,
                    ..base.clone()
                });
            }
        }
    }
    // The same work for members of groups and assigned consumers.
    let (name, kind) = ("consume-100-none-member-embedded".to_owned(), Kind::Consume);
    cases.push(Case { name, kind, against: Against::Embedded, ..base.clone() });
    let (kind, against) = (Kind::Latency, Against::Embedded);
    cases.push(Case { name: "latency".to_owned(), kind, against, messages: 20_000, ..base.clone() });
    for (size, messages) in sizes {
        // Shows that Ottla's discarding broker does not suit Ottla's clients better than others.
        let name = format!("produce-{size}-none-acks1-null");
        cases.push(Case { name, against: Against::Null, size, messages, ..base.clone() });
    }
    let (against, partitions) = (Against::Embedded, 1);
    cases.push(Case { name: "start".to_owned(), against, partitions, messages: 1, ..base.clone() });
    for codec in ["none", "snappy", "gzip", "lz4", "zstd"] {
        // The measurement that librdkafka's INTRODUCTION.md publishes.
        let (name, against) = (format!("published-{codec}"), Against::Kafka { brokers: 2 });
        cases.push(Case { name, against, codec, messages: 500_000, ..base.clone() });
    }
    cases.extend(of_the_c_interface(&base));
    cases.extend(over_tls(&base));
    cases.extend(in_transactions(&base));
    cases
}

/// Returns the cases of transactions, for all interfaces.
fn in_transactions(base: &Case) -> Vec<Case> {
    use PartKind::{Committed, Flushed, HalfAborted};
    let mut cases = Vec::new();
    let kafka = Against::Kafka { brokers: 3 };
    let base = Case { against: Against::Embedded, acks: "all", ..base.clone() };
    let mut add = |name: &str, calls: Option<Calls>, case: Case| {
        cases.push(Case { name: format!("transactions-{name}"), ..case.clone() });
        cases.extend(calls.map(|calls| Case {
            name: format!("c-transactions-{name}"),
            calls: Some(calls),
            ..case
        }));
    };
    let produce = |kind, size, messages| Case { parts: Parts::of(kind, size), messages, ..base.clone() };
    add("produce-1000", Some(TRANSACTIONS), produce(Committed, 1000, 2_000_000));
    add("produce-1000-flushed", Some(FLUSHES), produce(Flushed, 1000, 2_000_000));
    // One partition, so that the requests of a commit follow each other.
    let commits = Case { against: Against::Prompt, partitions: 1, ..produce(Committed, 10, 20_000) };
    add("commit-latency", Some(TRANSACTIONS), commits);
    for partitions in [1, 6] {
        let rate = Case { against: kafka, replicas: 3, partitions, ..produce(Committed, 10, 5_000) };
        add(&format!("rate-kafka-{partitions}"), Some(TRANSACTIONS), rate);
    }
    for (name, codec, kind, level) in [
        ("consume-uncommitted", "none", Committed, "read_uncommitted"),
        ("consume-committed", "none", Committed, "read_committed"),
        ("consume-committed-lz4", "lz4", Committed, "read_committed"),
        ("consume-half-aborted-lz4", "lz4", HalfAborted, "read_committed"),
    ] {
        let case = Case { kind: Kind::Consume, codec, ..produce(kind, 1000, 3_000_000) };
        add(name, None, Case { isolation: Some(level), ..case });
    }
    cases
}

/// Returns the cases over TLS, for the Rust and the C interface.
fn over_tls(base: &Case) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: String, case: Case| {
        cases.push(Case { name: format!("tls-{name}"), ..case.clone() });
        let calls = Some(if case.kind == Kind::Produce { SINGLE } else { CONSUMING[2] });
        cases.push(Case { name: format!("c-tls-{name}"), calls, ..case });
    };
    let kafka = Against::Kafka { brokers: 1 };
    for (size, messages) in [(100, 5_000_000), (1000, 1_500_000)] {
        let base = Case { size, messages, tls: true, ..base.clone() };
        let (produce, consume) = (Kind::Produce, Kind::Consume);
        add(format!("produce-{size}"), Case { kind: produce, against: Against::Discard, ..base.clone() });
        add(format!("consume-{size}"), Case { kind: consume, against: Against::Embedded, ..base.clone() });
        add(format!("produce-{size}-kafka"), Case { kind: produce, against: kafka, ..base.clone() });
        add(format!("consume-{size}-kafka"), Case { kind: consume, against: kafka, ..base.clone() });
    }
    cases
}

/// Returns the cases of the C program: the same work with different calls of the library that it is linked to.
fn of_the_c_interface(base: &Case) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: &str, calls: Calls, case: Case| {
        cases.push(Case { name: format!("c-{name}"), calls: Some(calls), ..case });
    };
    add("produce", SINGLE, base.clone());
    add("produce-null", SINGLE, Case { against: Against::Null, ..base.clone() });
    add("produce-no-reports", Calls { reports: false, ..SINGLE }, base.clone());
    add("produce-4-threads", Calls { threads: 4, ..SINGLE }, base.clone());
    add("produce-1000-partitions", SINGLE, Case { partitions: 1000, round_robin: true, ..base.clone() });
    add("produce-batch", BATCH, base.clone());
    add("produce-batch-no-reports", Calls { reports: false, ..BATCH }, base.clone());
    for codec in ["none", "lz4", "zstd", "gzip"] {
        let messages = if codec == "gzip" { 500_000 } else { 2_000_000 };
        add(&format!("produce-1000-{codec}"), SINGLE, Case { size: 1000, codec, messages, ..base.clone() });
    }
    for calls in CONSUMING {
        let (kind, against) = (Kind::Consume, Against::Embedded);
        // A request of a share group's member returns few messages.
        let messages = if calls.mode == SHARE_POLL { 1_000_000 } else { base.messages };
        add(&format!("consume-{}", calls.mode), calls, Case { kind, against, messages, ..base.clone() });
    }
    let latency = Case { kind: Kind::Latency, against: Against::Embedded, messages: 20_000, ..base.clone() };
    add("latency", SINGLE, latency);
    cases
}
