//! Starting a client from its configuration.

use std::{
    collections::hash_map::RandomState,
    fmt,
    future::{Future, poll_fn},
    hash::BuildHasher,
    ops::Deref,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ottla_core::{
    broker::BrokerParts,
    cluster::{ClusterSettings, StatisticsSettings, command::Command, reminders::Reminder},
    completion::completion,
    config::{AddressFamily, EffectiveConfig, ServerAddress},
    connection::{ConnectionSettings, buffer::BufferPool},
    error::{Error, ErrorKind, Result},
    event::{Event, EventQueue},
    fetch::shared::ConsumerShared,
    group::GroupSettings,
    observer::Observer,
    produce::shared::ProducerShared,
    rng::Rng,
    share::shared::ShareShared,
    stats::{Gather, Statistics, StatisticsSink, metrics::ClientKind},
    streams::shared::StreamsShared,
    telemetry::{
        TelemetryCommand,
        application::ApplicationMetrics,
        settings::{TelemetrySettings, WallClock},
    },
};
use ottla_net::{
    ClientHandle, ClientParts, PassedCredentials, Runtime, Secret, SocketSettings, SystemTransport,
    TlsContext, TlsSettings, Transport, Watcher, call_out, canonical_servers, clock,
};
use ottla_protocol::uuid::Uuid;

use crate::metrics::{MetricsCallback, MetricsHook};
use crate::{
    guard::Guard,
    logging::Logger,
    sasl::{self, OauthToken, Sasl, TokenSource},
    wait::{check_may_wait, wait_for},
};

/// The kind of a client, with what its application's threads share with its actors.
#[derive(Debug)]
pub enum Role {
    /// Administrative calls only.
    Admin,
    /// A producer.
    Producer(Arc<ProducerShared>),
    /// A consumer, and its membership in a group.
    Consumer(Arc<ConsumerShared>, Option<Box<GroupSettings>>),
    /// A share consumer.
    ShareConsumer(Arc<ShareShared>),
    /// A member of a streams group.
    StreamsMember(Arc<StreamsShared>),
}

impl Role {
    /// Returns the kind of the client, by which its metrics differ.
    const fn kind(&self) -> ClientKind {
        match self {
            Self::Admin | Self::StreamsMember(_) => ClientKind::Admin,
            Self::Producer(_) => ClientKind::Producer,
            Self::Consumer(..) => ClientKind::Consumer,
            Self::ShareConsumer(_) => ClientKind::ShareConsumer,
        }
    }
}

/// Returns the receiver of periodic statistics, if the application has one.
fn statistics_sink(
    identity: &Identity,
    hooks: &mut Hooks,
    kind: ClientKind,
    events: &Arc<EventQueue>,
) -> Option<Arc<dyn StatisticsSink>> {
    let guard = Guard(Arc::clone(events));
    let identity = identity.clone();
    let sink = hooks.statistics.take();
    if let Some(callback) = hooks.metrics.take() {
        let hook = MetricsHook::new(kind, callback);
        return Some(Arc::new(move |statistics| {
            guard.call("on_metrics", || hook.take(&statistics));
            if let Some(sink) = &sink {
                guard.call("on_statistics", || sink(identity.sign(statistics)));
            }
        }));
    }
    let _ = kind;
    sink.map(|sink| {
        let on_statistics = move |statistics| {
            guard.call("on_statistics", || sink(identity.sign(statistics)));
        };
        Arc::new(on_statistics) as _
    })
}

/// Logs each event. The log belongs to the application, which no thread of another client calls.
fn log_events(logger: &Arc<Logger>, events: &EventQueue) {
    let Some(listener) = Logger::listener(logger) else { return };
    let listener = Arc::new(listener);
    events.listen(Box::new(move |event| {
        let (listener, event) = (Arc::clone(&listener), event.clone());
        call_out(move || listener(&event));
    }));
}

/// Starts a client's actors on the I/O threads.
pub fn client(
    config: &EffectiveConfig<'_>,
    logger: Arc<Logger>,
    role: Role,
    events: Arc<EventQueue>,
    mut hooks: Hooks,
    seed: u64,
) -> Result<Client> {
    let kind = role.kind();
    let calls_out = hooks.call_out() || !logger.is_silent();
    let (mut producer, mut consumer, mut group, mut share, mut streams) = (None, None, None, None, None);
    match role {
        Role::Admin => {}
        Role::Producer(shared) => producer = Some(shared),
        Role::Consumer(shared, settings) => {
            (consumer, group) = (Some(shared), settings.map(|settings| *settings))
        }
        Role::ShareConsumer(shared) => share = Some(shared),
        Role::StreamsMember(shared) => streams = Some(shared),
    }
    let runtime = Runtime::get()
        .map_err(|error| Error::new(ErrorKind::State, format!("can't start the I/O threads: {error}")))?;
    let client_id = config.text("client.id").to_owned();
    let identity = Identity { name: logger.client().to_owned(), client_id };
    logger.started(config.warnings());
    log_events(&logger, &events);
    let statistics = config.positive_millis("statistics.interval.ms").and_then(|interval| {
        let sink = statistics_sink(&identity, &mut hooks, kind, &events)?;
        Some(StatisticsSettings { interval, sink })
    });
    let transport = hooks.transport.unwrap_or_else(|| Arc::new(SystemTransport));
    let sockets = SocketSettings::new(config);
    // A proxy resolves the names of brokers.
    let is_canonical = config.text("client.dns.lookup") == "resolve_canonical_bootstrap_servers_only"
        && config.text("proxy.url").is_empty();
    let servers = Servers { canonical: is_canonical.then(|| (sockets.family, Arc::clone(&transport))) };
    let mut cluster =
        ClusterSettings { statistics, group, streams, share: share.clone(), ..ClusterSettings::new(config) };
    cluster.telemetry = TelemetrySettings::new(config, WallClock::new(clock::unix_nanos));
    if let (Some(telemetry), Some(application)) = (&mut cluster.telemetry, hooks.application) {
        telemetry.application = application;
    }
    let has_telemetry = cluster.telemetry.is_some();
    cluster.bootstrap = servers.canonical(cluster.bootstrap);
    let observer = Logger::beside(&logger, hooks.observer);
    let sasl = sasl::shared(config)?;
    let connection = ConnectionSettings { observer, sasl: sasl.clone(), ..ConnectionSettings::new(config) };
    cluster.sasl.clone_from(&sasl);
    let issuer = sasl::issuer(sasl.as_ref(), hooks.tokens.as_ref())?;
    let tls = TlsSettings::new(config, hooks.credentials).map(TlsContext::new).transpose()?.map(Arc::new);
    let watcher = match &tls {
        None => None,
        Some(tls) => {
            logger.warn(&tls.warnings());
            let events = Arc::clone(&events);
            let report = Box::new(move |news| events.push(Event::Credentials(news)));
            Watcher::start(tls, config.positive_millis("ssl.reload.interval.ms"), report).map_err(
                |error| {
                    Error::new(
                        ErrorKind::State,
                        format!("can't start the thread that watches certificates: {error}"),
                    )
                },
            )?
        }
    };
    let handle = runtime.start_client(ClientParts {
        cluster,
        broker: BrokerParts {
            connection: Arc::new(connection),
            producer,
            consumer,
            share,
            buffers: buffers(config),
        },
        sockets,
        transport,
        tls: tls.clone(),
        events,
        seed,
        leads: config.boolean("io.on.waiting.threads"),
        calls_out,
    });
    let sasl = sasl.map(|shared| Sasl::new(shared, Arc::clone(handle.commands())));
    sasl.as_ref().map_or(Ok(()), Sasl::start_kerberos)?;
    sasl.as_ref().map_or(Ok(()), |sasl| sasl.obtain_tokens(hooks.tokens, issuer))?;
    let of_tls = tls.as_ref().map_or_else(Vec::new, |tls| tls.warnings());
    let warnings = [config.warnings(), &of_tls].concat();
    Ok(Client { handle, identity, servers, logger, warnings, tls, sasl, has_telemetry, _watcher: watcher })
}

/// Returns the pool of a client's read buffers. Idle ones would be in the way of a ceiling of the client's memory.
fn buffers(config: &EffectiveConfig<'_>) -> BufferPool {
    match config.positive("client.memory.max.bytes") {
        Some(_) => BufferPool::without_idle(),
        None => BufferPool::default(),
    }
}

/// Returns a name for a new client, unique in the process: `client.id`, the kind and a number.
pub fn new_name(config: &EffectiveConfig<'_>, kind: &str) -> String {
    let number = NEXT_CLIENT.fetch_add(1, Ordering::Relaxed) + 1;
    format!("{}#{kind}-{number}", config.text("client.id"))
}

/// A running client with its name.
#[derive(Debug)]
pub struct Client {
    handle: ClientHandle,
    identity: Identity,
    servers: Servers,
    logger: Arc<Logger>,
    warnings: Vec<String>,
    tls: Option<Arc<TlsContext>>,
    sasl: Option<Sasl>,
    /// `enable.metrics.push`.
    has_telemetry: bool,
    _watcher: Option<Watcher>,
}

/// How bootstrap servers are treated: `client.dns.lookup`.
#[derive(Debug)]
struct Servers {
    /// Replaces each server by the canonical names of its addresses.
    canonical: Option<(AddressFamily, Arc<dyn Transport>)>,
}

impl Servers {
    fn canonical(&self, servers: Vec<(String, u16)>) -> Vec<(String, u16)> {
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

/// Declares the setters of a builder for the [`Hooks`] that all clients have.
macro_rules! hook_setters {
    ($builder:ty) => {
        impl $builder {
            /// Calls `on_statistics` every `statistics.interval.ms`, on an I/O thread. The function must not block.
            #[must_use]
            pub fn on_statistics(
                mut self,
                on_statistics: impl Fn(Statistics) + Send + Sync + 'static,
            ) -> Self {
                self.hooks.statistics = Some(Box::new(on_statistics));
                self
            }

            /// Calls `on_metrics` every `statistics.interval.ms` with the client's metrics, on an I/O thread. The function
            /// must not block.
            #[must_use]
            pub fn on_metrics(
                mut self,
                on_metrics: impl Fn(&$crate::MetricsSnapshot) + Send + Sync + 'static,
            ) -> Self {
                self.hooks.metrics = Some(Box::new(on_metrics));
                self
            }

            /// Pushes metrics of the application to brokers with the client's own, as far as their operators subscribe to
            /// them (KIP-1076). Several clients can push the same ones.
            #[must_use]
            pub fn application_metrics(mut self, metrics: &$crate::ApplicationMetrics) -> Self {
                self.hooks.application = Some(metrics.clone());
                self
            }

            /// Opens and closes sockets and resolves host names with `transport` instead of the operating system.
            #[must_use]
            pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
                self.hooks.transport = Some(transport);
                self
            }

            /// Uses these certificates, this key and this check of brokers' certificates with `security.protocol=ssl`,
            /// beside those of the configuration.
            #[must_use]
            pub fn credentials(mut self, credentials: PassedCredentials) -> Self {
                self.hooks.credentials = credentials;
                self
            }

            /// Sets the function that gets tokens for OAUTHBEARER. It runs on a thread of its own and may block. It excludes
            /// `enable.sasl.oauthbearer.unsecure.jwt`, and replaces `sasl.oauthbearer.method=oidc`.
            #[must_use]
            pub fn token_provider(
                mut self,
                provider: impl Fn() -> Result<crate::OauthToken, String> + Send + Sync + 'static,
            ) -> Self {
                self.hooks.tokens = Some($crate::sasl::TokenSource::Provider(Arc::new(provider)));
                self
            }

            /// Sets the function that is called, on an I/O thread, when a token is needed.
            #[cfg(feature = "capi")]
            #[must_use]
            pub fn token_notification(mut self, notify: Arc<dyn Fn() + Send + Sync>) -> Self {
                self.hooks.tokens = Some($crate::sasl::TokenSource::Notify(notify));
                self
            }

            /// Shows `observer` the requests, responses and states of the connections.
            #[must_use]
            pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
                self.hooks.observer = Some(observer);
                self
            }
        }
    };
}
pub(crate) use hook_setters;

/// The functions of the application that a client calls.
#[derive(Default)]
pub struct Hooks {
    /// Receives statistics.
    pub statistics: Option<Box<StatisticsCallback>>,
    /// Receives metrics.
    pub metrics: Option<Box<MetricsCallback>>,
    /// Opens sockets and resolves host names.
    pub transport: Option<Arc<dyn Transport>>,
    /// Observes the connections.
    pub observer: Option<Arc<dyn Observer>>,
    /// Certificates and keys that the application passes instead of properties.
    pub credentials: PassedCredentials,
    /// The source of tokens for OAUTHBEARER.
    pub tokens: Option<TokenSource>,
    /// Metrics that are pushed with the client's.
    pub application: Option<ApplicationMetrics>,
    /// The client's actors call other functions of the application, too.
    pub others: bool,
}

impl Hooks {
    /// Returns whether the client's actors call functions of the application.
    fn call_out(&self) -> bool {
        let periodic = self.statistics.is_some() || self.metrics.is_some() || self.application.is_some();
        let of_connections = self.transport.is_some() || self.observer.is_some();
        let of_security = self.tokens.is_some() || self.credentials.callback.is_some();
        periodic || of_connections || of_security || self.others
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("statistics", &self.statistics.is_some())
            .field("transport", &self.transport)
            .field("observer", &self.observer)
            .field("credentials", &self.credentials)
            .field("tokens", &self.tokens)
            .finish()
    }
}

/// A function that receives snapshots of the statistics.
pub type StatisticsCallback = dyn Fn(Statistics) + Send + Sync;

/// The time that closing waits for the I/O threads. They need milliseconds, unless a callback of the application blocks one
/// of them.
pub const CLOSING: Duration = Duration::from_secs(10);

/// Returns the time for a last push of client metrics, when closing may take this long.
pub const fn last_push(timeout: Duration) -> Duration {
    timeout.saturating_sub(Duration::from_millis(20))
}

/// Counts the clients of the process, for their names.
static NEXT_CLIENT: AtomicU64 = AtomicU64::new(0);

impl Client {
    /// Returns the client's name in statistics and logs: `client.id`, the kind and a number.
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// Returns the writer of the client's log lines.
    pub fn logger(&self) -> &Logger {
        &self.logger
    }

    /// Returns warnings about the configuration and the files that it names.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Reads the files of certificates and keys again; new connections use them. Error: what is wrong with which property;
    /// then nothing changes. Without TLS there is nothing to do.
    pub fn reload_credentials(&self) -> Result<()> {
        self.tls.as_ref().map_or(Ok(()), |tls| tls.reload())
    }

    /// Returns the credentials of SASL, if it is in use.
    #[cfg(feature = "capi")]
    pub const fn sasl(&self) -> Option<&Sasl> {
        self.sasl.as_ref()
    }

    /// Replaces user name and password. Error: the protocol has no SASL.
    pub fn set_sasl_credentials(&self, username: &str, password: Secret) -> Result<()> {
        self.require_sasl()?.set_credentials(username, password);
        Ok(())
    }

    /// Sets the token. Error: OAUTHBEARER is not in use, or what is wrong with the token.
    pub fn set_oauth_token(&self, token: OauthToken) -> Result<()> {
        self.require_sasl()?.set_token(token)
    }

    fn require_sasl(&self) -> Result<&Sasl> {
        let detail = "security.protocol has no SASL; set it to sasl_ssl or sasl_plaintext";
        self.sasl.as_ref().ok_or_else(|| Error::new(ErrorKind::State, detail))
    }

    /// Adds servers to those that the client starts from.
    pub fn add_servers(&self, servers: &str) -> Result<()> {
        let servers = ServerAddress::parse_list(servers)
            .map_err(|why| Error::new(ErrorKind::InvalidArgument, format!("bootstrap servers: {why}")))?;
        let servers = servers.into_iter().map(|server| (server.host, server.port)).collect();
        self.command(Command::AddServers(self.servers.canonical(servers)))
    }

    /// Sends a command to the cluster actor. Error: the client is closed. The command is dropped then, which ends the wait for
    /// its result.
    pub fn command(&self, command: Command) -> Result<()> {
        if self.handle.command(command) { Ok(()) } else { Err(Error::new(ErrorKind::Closed, "")) }
    }

    /// Returns the counters. Blocks until the I/O threads have responded: an error in a callback, which runs on one of them.
    pub fn statistics(&self, timeout: Duration) -> Result<Statistics> {
        check_may_wait("statistics")?;
        if self.handle.is_closing() {
            return Err(Error::new(ErrorKind::Closed, ""));
        }
        let (done, waiting) = completion();
        self.command(Command::Statistics(Arc::new(Gather::for_caller(done))))?;
        match wait_for(waiting, timeout) {
            Some(Some(statistics)) => Ok(self.identity.sign(statistics)),
            Some(None) => Err(Error::new(ErrorKind::Closed, "")),
            None => Err(Error::new(
                ErrorKind::TimedOut,
                "statistics: no response from the I/O threads; a callback may block them",
            )),
        }
    }

    /// Returns the client instance ID. Blocks until a broker has assigned one.
    pub fn client_instance_id(&self, timeout: Duration) -> Result<Uuid> {
        check_may_wait("client_instance_id")?;
        if self.handle.is_closing() {
            return Err(Error::new(ErrorKind::Closed, ""));
        }
        if !self.has_telemetry {
            let detail = "the client pushes no metrics; set enable.metrics.push=true";
            return Err(Error::new(ErrorKind::NotConfigured, detail));
        }
        let (done, waiting) = completion();
        self.command(Command::Telemetry(TelemetryCommand::InstanceId(done)))?;
        match wait_for(waiting, timeout) {
            Some(Some(id)) => Ok(id),
            Some(None) => {
                let detail = "the client pushes no metrics any more, because brokers refused it or the client is closed";
                Err(Error::new(ErrorKind::State, detail))
            }
            None => {
                let detail = "client_instance_id: no connected broker takes client metrics; its metric.reporters must \
                              include one that implements ClientTelemetry";
                Err(Error::new(ErrorKind::TimedOut, detail))
            }
        }
    }

    /// Closes, and waits until no actor of the client runs. A last push of client metrics may take `last_push`. After
    /// [`CLOSING`] it abandons the I/O threads: new clients get
    /// new ones.
    pub fn end(&self, timeout: Duration, last_push: Duration) -> Result<()> {
        if self.handle.close(last_push).is_none_or(|done| wait_for(done, timeout).is_some()) {
            self.logger.closed();
            return Ok(());
        }
        if timeout >= CLOSING {
            self.handle.give_up();
        }
        let detail = "close: an I/O thread did not respond, perhaps because a callback of the application blocks it; the \
                      thread keeps its memory until the callback returns";
        Err(Error::new(ErrorKind::TimedOut, detail))
    }
}

impl Client {
    /// Runs a future for at most this time. Returns `None` after it. A client that ends has no timers any more.
    pub async fn within<F: Future>(&self, time: Duration, future: F) -> Option<F::Output> {
        let (done, mut timer) = completion();
        let _ = self.command(Command::Remind(Reminder { at: clock::now() + time, done }));
        let mut future = pin!(future);
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            match Pin::new(&mut timer).poll(context) {
                Poll::Ready(Some(())) => Poll::Ready(None),
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Does what [`Client::end`] does, without blocking. It waits for the I/O threads without a limit: they need milliseconds,
    /// unless a callback of the application blocks one of them.
    pub async fn end_async(&self, last_push: Duration) {
        if let Some(done) = self.handle.close(last_push) {
            done.await;
        }
        self.logger.closed();
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

/// Returns a generator of random numbers that differ from client to client.
pub fn seeded_rng() -> Rng {
    // A forked child has its parent's random keys: only its process ID and the time differ.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    Rng::from_seed(RandomState::new().hash_one((std::process::id(), now)))
}
