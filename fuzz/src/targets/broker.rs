//! A cluster of three embedded brokers. The input is a program: requests on three connections, noise, ends of connections, time, and
//! what happens to brokers.
//!
//! Each response has the correlation ID of a request that waits for one, in their order, and decodes to its last byte. A run has
//! bounds on its memory, on what it allocates in all, and on the timers that fire.

use std::{collections::VecDeque, path::Path, sync::LazyLock, time::Duration};

use ottla_embedded_broker::{
    Authorizer, BrokerId, ClientTelemetry, Cluster, ClusterOptions, ConnectionId, Output, SaslListener,
    SaslMechanism, Tail,
};
use ottla_protocol::{
    api::ApiKey,
    header::{RequestHeader, ResponseHeader},
    primitive::Reader,
    time::Instant,
};

use super::{
    body::{body, schemas},
    bytes::Bytes,
    codecs::{Codec, codecs},
    corpus,
    learned::Learned,
    memory,
    schema::Schema,
};

/// The most steps of a program.
const MOST_STEPS: usize = 60;
/// The most timers that may fire while time passes.
const MOST_TIMERS: usize = 20_000;
/// What a step may allocate in all. A new topic may have 10,000 partitions.
const MOST_ALLOCATED: usize = 64 << 20;

struct Api {
    schema: Schema,
    /// Decodes a response.
    response: Codec,
}

static APIS: LazyLock<Vec<Api>> = LazyLock::new(|| {
    let root = corpus::folder(env!("CARGO_MANIFEST_DIR"));
    let schemas = schemas(&root.parent().unwrap_or(Path::new(".")).join("schema"));
    let codecs = codecs();
    let response = |schema: &Schema| {
        let is_it = |codec: &&Codec| Some(codec.api.as_i16()) == schema.api_key && codec.kind == "response";
        *codecs.iter().find(is_it).expect("each API has a response")
    };
    schemas.into_iter().map(|schema| Api { response: response(&schema), schema }).collect()
});

/// Its users are derived once.
static SASL: LazyLock<SaslListener> =
    LazyLock::new(|| SaslListener::new(&SaslMechanism::ALL).user("alice", "secret"));

/// Returns a request with its length and its header.
pub fn framed(api: i16, version: i16, correlation_id: i32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 4];
    let client_id = Some("fuzz".to_owned());
    let header = RequestHeader { api_key: api, api_version: version, correlation_id, client_id };
    header.encode(&mut out).expect("the header can be encoded");
    out.extend(body);
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

/// Runs the target.
pub fn run(input: &[u8]) {
    let mut input = Bytes::new(input);
    let mut run = Run::new(input.byte());
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            break;
        }
        let ((), used) = memory::count(|| run.step(&mut input));
        assert!(used.total <= MOST_ALLOCATED, "a step allocates {} bytes", used.total);
    }
    // What waits ends by itself.
    run.pass(Duration::from_secs(3600));
}

struct Run {
    cluster: Cluster,
    now: Instant,
    connections: [Connection; 3],
    learned: Learned,
    next_id: i32,
}

#[derive(Default)]
struct Connection {
    id: Option<ConnectionId>,
    /// The API, version and correlation ID of each request that may get a response.
    waiting: VecDeque<(usize, i16, i32)>,
    /// Noise was sent: what follows may be read in another way than it was written.
    is_spoiled: bool,
}

impl Run {
    fn new(mode: u8) -> Self {
        let options = ClusterOptions {
            brokers: 3,
            partitions: 2,
            client_telemetry: if mode & 1 == 0 { ClientTelemetry::Kafka } else { ClientTelemetry::Mock },
            replication_lag: if mode & 2 == 0 { Duration::ZERO } else { Duration::from_millis(100) },
            transaction_version: i16::from(mode >> 2 & 3).min(2),
            authorizer: (mode & 16 != 0).then(Authorizer::default),
            sasl: (mode & 32 != 0).then(|| SASL.clone()),
            partial_batches: mode & 64 != 0,
            ..ClusterOptions::default()
        };
        let mut cluster = Cluster::new(options);
        for name in ["t", "u"] {
            let _ = cluster.control().create_topic(name, 2, 2);
        }
        let now = Instant::from_nanos(1_000_000_000);
        let mut learned = Learned::default();
        learned.ids.extend(["t", "u"].iter().filter_map(|name| Some(cluster.control().topic_id(name)?.0)));
        Self { cluster, now, connections: Default::default(), learned, next_id: 1 }
    }

    fn step(&mut self, input: &mut Bytes<'_>) {
        let choice = input.byte();
        let index = usize::from(choice) % 3;
        match choice / 3 {
            0..64 => self.request(index, input),
            64..66 => {
                let bytes = input.piece();
                self.connections[index].is_spoiled = true;
                self.send(index, bytes);
            }
            66..68 => {
                if let Some(id) = self.connections[index].id {
                    self.cluster.handle_end(self.now, id);
                }
            }
            68..70 => {
                if let Some(id) = self.connections[index].id.take() {
                    self.cluster.handle_closed(self.now, id);
                }
            }
            70..80 => self.pass(Duration::from_millis(1 << (choice % 18))),
            _ => self.incident(input),
        }
        self.drain();
    }

    fn incident(&mut self, input: &mut Bytes<'_>) {
        let (what, which) = (input.below(8), input.byte());
        let broker = BrokerId(i32::from(which % 4) + 1);
        let tail = if which & 0x80 == 0 { Tail::Kept } else { Tail::Lost };
        let mut control = self.cluster.control();
        match what {
            0 => control.kill_broker(broker, tail),
            1 => control.restart_broker(broker),
            2 => drop(control.move_leader("t", i32::from(which / 4 % 2), (which < 128).then_some(broker))),
            3 => drop(control.recreate_topic("t", i32::from(which % 8), 2)),
            4 => control.truncate_log("t", 0, i64::from(which)),
            5 => control.delete_records("t", 0, i64::from(which)),
            6 => control.evict_fetch_sessions(broker),
            _ => control.move_controller(broker),
        }
    }

    fn request(&mut self, index: usize, input: &mut Bytes<'_>) {
        let apis = &*APIS;
        let which = input.below(apis.len());
        let schema = &apis[which].schema;
        let versions = schema.versions;
        let version = versions.low + i16::from(input.byte()) % (versions.high - versions.low + 1);
        let body = body(&schema.messages[0].fields, schema, version, input, &self.learned);
        let id = self.next_id;
        self.next_id += 1;
        let bytes = framed(schema.api_key.unwrap_or(0), version, id, &body);
        self.open(index);
        self.connections[index].waiting.push_back((which, version, id));
        self.send(index, &bytes);
    }

    fn open(&mut self, index: usize) {
        if self.connections[index].id.is_none() {
            let id = self.cluster.open(self.now, BrokerId(index as i32 + 1));
            self.connections[index] = Connection { id, ..Connection::default() };
        }
    }

    fn send(&mut self, index: usize, bytes: &[u8]) {
        if let Some(id) = self.connections[index].id {
            self.cluster.handle_bytes(self.now, id, bytes);
        }
    }

    /// Lets time pass, and timers fire.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut fired = 0;
        while let Some(due) = self.cluster.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.cluster.handle_timeout(self.now);
            self.drain();
            fired += 1;
            assert!(fired < MOST_TIMERS, "timers fire without end");
        }
        self.now = end;
    }

    fn drain(&mut self) {
        while let Some(output) = self.cluster.poll_output() {
            match output {
                Output::Send { connection, frame } => self.respond(connection, &frame.to_vec()),
                Output::Close { connection, reason } => {
                    assert!(!reason.is_empty());
                    if let Some(it) = self.connections.iter_mut().find(|it| it.id == Some(connection)) {
                        it.id = None;
                    }
                }
                Output::StopListening { .. } | Output::StartListening { .. } => {}
            }
        }
    }

    /// Checks a response.
    fn respond(&mut self, id: ConnectionId, frame: &[u8]) {
        let Some(connection) = self.connections.iter_mut().find(|it| it.id == Some(id)) else { return };
        if connection.is_spoiled {
            return;
        }
        let (length, bytes) = frame.split_first_chunk().expect("a response has a length");
        assert_eq!(u32::from_be_bytes(*length) as usize, bytes.len(), "the length of a response");
        let (correlation_id, _) = bytes.split_first_chunk().expect("a response has a header");
        let correlation_id = i32::from_be_bytes(*correlation_id);
        // A Produce request with acks=0 gets no response.
        while connection.waiting.front().is_some_and(|(.., id)| *id < correlation_id) {
            connection.waiting.pop_front();
        }
        let (which, version, expected) = connection.waiting.pop_front().expect("a request waits");
        assert_eq!(correlation_id, expected, "the order of responses");
        let api = &APIS[which];
        // A broker answers ApiVersions of an unknown version in version 0.
        let key = ApiKey::from_i16(api.schema.api_key.unwrap_or(0)).expect("the API is known");
        let mut reader = Reader::new(bytes);
        ResponseHeader::decode(&mut reader, key, version).expect("the header of a response is valid");
        let start = reader.position();
        let decoded = (api.response.decode)(&mut reader, version);
        assert!(decoded.is_ok() && reader.finish().is_ok(), "{key} v{version}: {decoded:?} {bytes:02x?}");
        self.learned.learn(&api.schema.messages[1].fields, &api.schema, version, &bytes[start..]);
    }
}
