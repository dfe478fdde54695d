//! From a configuration to a running client.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ottla_core::{
    broker::{BrokerParts, buffer::BufferPool, connection::ConnectionSettings},
    cluster::{ClusterSettings, StatisticsSettings, command::Command},
    completion::completion,
    config::{
        Acks, AddressFamily, ClientView, CompressionCodec, Linger as LingerView, MetadataRecovery,
        ProducerView, ServerAddress, TopicRecreatePolicy, TopicView,
    },
    error::{Error, ErrorKind, Result},
    event::EventQueue,
    fetch::shared::ConsumerShared,
    observer::Observer,
    produce::{
        accumulator::BatchLimits,
        collector::Linger,
        order::QueueOrder,
        partitioner::Partitioner,
        shared::{ProducerSettings, ProducerShared},
        topic_settings::TopicSettings,
    },
    rng::Rng,
    stats::{Gather, Statistics},
};
use ottla_net::{
    ClientHandle, ClientParts, Runtime, SocketSettings, SystemTransport, Transport, canonical_servers,
};
use ottla_protocol::compress::Compression;

use crate::wait::{check_may_wait, wait_for};

/// Starts a client's owners on the I/O threads.
pub fn client(
    view: &ClientView,
    producer: Option<Arc<ProducerShared>>,
    consumer: Option<Arc<ConsumerShared>>,
    events: Arc<EventQueue>,
    hooks: Hooks,
    seed: u64,
) -> Result<Client> {
    let runtime = Runtime::get()
        .map_err(|error| Error::new(ErrorKind::State, format!("can't start the I/O threads: {error}")))?;
    let auto_create_topics = producer.is_some() || view.allow_auto_create_topics;
    let number = NEXT_CLIENT.fetch_add(1, Ordering::Relaxed) + 1;
    let kind = if producer.is_some() { "producer" } else { "consumer" };
    let identity =
        Identity { name: format!("{}#{kind}-{number}", view.client_id), client_id: view.client_id.clone() };
    let statistics = view.statistics_interval.zip(hooks.statistics).map(|(interval, sink)| {
        let identity = identity.clone();
        let sink = Arc::new(move |statistics| sink(identity.sign(statistics)));
        StatisticsSettings { interval, sink }
    });
    let transport = hooks.transport.unwrap_or_else(|| Arc::new(SystemTransport));
    let servers = Servers {
        canonical: view
            .canonical_bootstrap_names
            .then(|| (view.broker_address_family, Arc::clone(&transport))),
    };
    let handle = runtime.start_client(ClientParts {
        cluster: ClusterSettings {
            bootstrap: servers.names(view.bootstrap_servers.clone()),
            refresh_interval: view.metadata_refresh_interval,
            refresh_all_topics: !view.metadata_refresh_sparse,
            hidden_topics: view.topic_blacklist.clone(),
            fast_refresh: view.metadata_refresh_fast_interval,
            fast_refresh_max: view.retry_backoff_max.max(view.metadata_refresh_fast_interval),
            request_timeout: view.socket_timeout,
            auto_create_topics,
            rebootstrap_after: match view.metadata_recovery {
                MetadataRecovery::Rebootstrap(after) => Some(after),
                MetadataRecovery::None => None,
            },
            leader_discovery: view.metadata_leader_discovery,
            mutation: ottla_core::mutation::Mutation::NONE,
            statistics,
        },
        broker: BrokerParts {
            connection: Arc::new(ConnectionSettings {
                observer: hooks.observer,
                ..connection_settings(view)
            }),
            producer,
            consumer,
            buffers: BufferPool::default(),
        },
        sockets: SocketSettings {
            family: view.broker_address_family,
            no_delay: view.socket_nagle_disable,
            keepalive: view.socket_keepalive,
            send_buffer_bytes: view.socket_send_buffer_bytes,
            receive_buffer_bytes: view.socket_receive_buffer_bytes,
        },
        transport,
        events,
        seed,
    });
    Ok(Client { handle, identity, servers })
}

/// How many threads run in this process for all of its clients; none without clients.
pub fn running_threads() -> usize {
    Runtime::running_threads()
}

/// A running client, and how it calls itself in its statistics.
#[derive(Debug)]
pub struct Client {
    handle: ClientHandle,
    identity: Identity,
    servers: Servers,
}

/// What becomes of the servers to start from: `client.dns.lookup`.
#[derive(Debug)]
struct Servers {
    /// They are replaced by the names of their addresses.
    canonical: Option<(AddressFamily, Arc<dyn Transport>)>,
}

impl Servers {
    fn names(&self, servers: Vec<ServerAddress>) -> Vec<(String, u16)> {
        let servers = servers.into_iter().map(|server| (server.host, server.port)).collect();
        match &self.canonical {
            Some((family, transport)) => canonical_servers(servers, *family, &**transport),
            None => servers,
        }
    }
}

#[derive(Clone, Debug)]
struct Identity {
    name: String,
    client_id: String,
}

/// What an application may do itself.
#[derive(Default)]
pub struct Hooks {
    /// Takes the statistics.
    pub statistics: Option<Box<StatisticsCallback>>,
    /// Makes the sockets.
    pub transport: Option<Arc<dyn Transport>>,
    /// Sees what passes on the connections.
    pub observer: Option<Arc<dyn Observer>>,
}

/// Takes snapshots of the statistics.
pub type StatisticsCallback = dyn Fn(Statistics) + Send + Sync;

/// How long closing waits for the I/O threads. They need milliseconds, unless a function of the application's that one of
/// them called does not return.
pub const CLOSING: Duration = Duration::from_secs(10);

/// Counts the clients of the process, for their names.
static NEXT_CLIENT: AtomicU64 = AtomicU64::new(0);

impl Client {
    /// More servers to start from.
    pub fn add_servers(&self, servers: &str) -> Result<()> {
        let servers = ServerAddress::parse_list(servers).map_err(|why| {
            Error::new(ErrorKind::InvalidArgument, format!("no servers to start from: {why}"))
        })?;
        self.handle.command(Command::AddServers(self.servers.names(servers)));
        Ok(())
    }

    /// What was counted so far. The I/O threads are asked: not to be called from a callback, which is on one of them.
    pub fn statistics(&self, timeout: Duration) -> Result<Statistics> {
        check_may_wait("statistics")?;
        if self.handle.is_closing() {
            return Err(Error::new(ErrorKind::Closed, ""));
        }
        let (done, waiting) = completion();
        self.handle.command(Command::Statistics(Arc::new(Gather::for_caller(done))));
        match wait_for(waiting, timeout) {
            Some(Some(statistics)) => Ok(self.identity.sign(statistics)),
            Some(None) => Err(Error::new(ErrorKind::Closed, "")),
            None => {
                Err(Error::new(ErrorKind::TimedOut, "the I/O threads did not answer with their statistics"))
            }
        }
    }

    /// Closes, and waits until nothing of the client runs any more. Whoever has waited for [`CLOSING`] in vain gives the
    /// threads up: new clients get others.
    pub fn end(&self, timeout: Duration) -> Result<()> {
        if self.handle.close().is_none_or(|done| wait_for(done, timeout).is_some()) {
            return Ok(());
        }
        if timeout >= CLOSING {
            self.handle.give_up();
        }
        let detail = "an I/O thread did not come to it, perhaps because a function of the application's that it called \
                      does not return; what the thread uses stays in memory until then";
        Err(Error::new(ErrorKind::TimedOut, detail))
    }
}

impl Deref for Client {
    type Target = ClientHandle;

    fn deref(&self) -> &ClientHandle {
        &self.handle
    }
}

impl Identity {
    fn sign(&self, mut statistics: Statistics) -> Statistics {
        statistics.name.clone_from(&self.name);
        statistics.client_id.clone_from(&self.client_id);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        statistics.time = wall.as_secs() as i64;
        statistics
    }
}

/// What the sending half needs of a producer's configuration.
pub fn producer_settings(view: &ProducerView) -> ProducerSettings {
    let message_timeout = view.topic.message_timeout;
    ProducerSettings {
        acks: acks_number(view.topic.acks),
        acks_timeout: view.topic.request_timeout,
        answer_timeout: view.client.socket_timeout,
        message_timeout,
        max_retries: view.retries,
        retry_backoff: view.client.retry_backoff,
        retry_backoff_max: view.client.retry_backoff_max,
        max_in_flight: view.client.max_in_flight,
        compression: codec(view.topic.compression.codec),
        compression_level: view.topic.compression.level,
        linger: match view.linger {
            LingerView::PerPartition(linger) => Linger::Partition(linger),
            LingerView::PerBroker(linger) => Linger::Broker(linger),
            LingerView::Auto => Linger::Auto,
        },
        max_partitions: view.broker_batch_max_partitions,
        max_bytes: view.broker_batch_max_bytes.map(|bytes| bytes as u64),
        batch: BatchLimits {
            max_bytes: view.batch_size,
            max_records: view.batch_num_messages,
            max_age_nanos: max_age_nanos(message_timeout),
            sums_early: view.topic.compression.codec == CompressionCodec::None,
        },
        max_message_bytes: view.message_max_bytes,
        max_request_bytes: view.max_request_size,
        max_queued_messages: view.queue_max_messages.unwrap_or(0) as u64,
        max_queued_bytes: view.queue_max_bytes as u64,
        topic_propagation: view.client.metadata_propagation_max,
        sticky_linger: view.sticky_partitioning_linger,
        sticky_is_timed: view.sticky_partitioning_is_timed,
        idempotence: view.idempotence,
        gapless: view.gapless,
        fail_of_old_topic: view.topic_recreate == TopicRecreatePolicy::Error,
        newest_first: view.topic.newest_first,
        keep_opaques: true,
        mutation: ottla_core::mutation::Mutation::NONE,
    }
}

/// What it needs of a topic's own; without a partitioner it is that of the producer's other topics.
pub fn topic_settings(
    view: &TopicView,
    of_producer: &TopicSettings,
    partitioner: Option<Arc<Partitioner>>,
    order: Option<Arc<QueueOrder>>,
) -> TopicSettings {
    TopicSettings {
        acks: acks_number(view.acks),
        acks_timeout: view.request_timeout,
        message_timeout: view.message_timeout,
        compression: codec(view.compression.codec),
        compression_level: view.compression.level,
        batch: BatchLimits {
            max_age_nanos: max_age_nanos(view.message_timeout),
            sums_early: view.compression.codec == CompressionCodec::None,
            ..of_producer.batch
        },
        partitioner: partitioner.unwrap_or_else(|| Arc::clone(&of_producer.partitioner)),
        order: order.or_else(|| view.newest_first.then(|| Arc::new(QueueOrder::NewestFirst))),
    }
}

const fn acks_number(acks: Acks) -> i16 {
    match acks {
        Acks::None => 0,
        Acks::Leader => 1,
        Acks::All => -1,
    }
}

const fn codec(codec: CompressionCodec) -> Compression {
    match codec {
        CompressionCodec::None => Compression::None,
        CompressionCodec::Gzip => Compression::Gzip,
        CompressionCodec::Snappy => Compression::Snappy,
        CompressionCodec::Lz4 => Compression::Lz4,
        CompressionCodec::Zstd => Compression::Zstd,
    }
}

/// How long a batch may collect, so that its records time out close to their own time.
fn max_age_nanos(message_timeout: Option<Duration>) -> u64 {
    message_timeout.and_then(|timeout| u64::try_from((timeout / 20).as_nanos()).ok()).unwrap_or(u64::MAX)
}

/// Random numbers that differ from client to client.
pub fn seeded_rng() -> Rng {
    Rng::from_seed(RandomState::new().build_hasher().finish())
}

fn connection_settings(view: &ClientView) -> ConnectionSettings {
    ConnectionSettings {
        client_id: view.client_id.clone(),
        software_name: view.client_software_name.clone(),
        software_version: view.client_software_version.clone(),
        max_response_bytes: view.receive_message_max_bytes,
        setup_timeout: view.connection_setup_timeout,
        request_timeout: view.socket_timeout,
        reconnect_backoff: view.reconnect_backoff,
        reconnect_backoff_max: view.reconnect_backoff_max,
        max_idle: view.connections_max_idle,
        address_ttl: view.broker_address_ttl,
        ask_versions: view.api_version_request,
        ask_versions_timeout: view.api_version_request_timeout,
        fallback_release: view.broker_version_fallback.to_string(),
        fallback_for: view.api_version_fallback,
        version_caps: Vec::new(),
        observer: None,
        mutation: ottla_core::mutation::Mutation::NONE,
    }
}
