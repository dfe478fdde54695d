//! The owner of everything that concerns the cluster as a whole: which brokers there are, who leads what, and requests
//! that belong to no partition. There is one per client.
//!
//! ```text
//!  application ── commands ──► ClusterCore ── mail ──► BrokerCore (one per broker)
//!                               │  metadata           │
//!                               │  placements  ◄───── mail
//! ```
//!
//! Read [`metadata`], then this file: how a broker to ask is found, how answers move partitions to their leaders.

pub mod command;
pub mod metadata;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::metadata::{MetadataRequest, MetadataResponse, request::Topic as WantedTopic},
    primitive::Reader,
};

use self::{
    command::{Command, CommandQueue},
    metadata::{Applied, HintVerdict, LeaderHint, Metadata},
};
use crate::{
    admin::{AdminCalls, AdminOutput},
    backoff::Backoff,
    broker::connection::Response,
    error::{Error, ErrorKind},
    event::{Event, EventQueue},
    fetch::{coordinator::FetchCoordinator, shared::ConsumerShared},
    machine::{Instant, earliest},
    mail::{BrokerKey, ClusterRequest, EncodeBody, ToBroker, ToCluster},
    produce::{
        accumulator::OpenBatch,
        partition::PartitionProducer,
        producer_id::{ProducerId, ProducerIdAnswer},
        sender::Purge,
        shared::{ProducerShared, unknown_topic_error},
        topic::ProducerTopic,
    },
    rng::Rng,
};

/// What the cluster's owner needs to know of the configuration.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// `bootstrap.servers`.
    pub bootstrap: Vec<(String, u16)>,
    /// `topic.metadata.refresh.interval.ms`; `None` refreshes only on demand.
    pub refresh_interval: Option<Duration>,
    /// `topic.metadata.refresh.fast.interval.ms`: the first wait while something is unknown.
    pub fast_refresh: Duration,
    /// `retry.backoff.max.ms`: the longest wait while something is unknown.
    pub fast_refresh_max: Duration,
    /// `socket.timeout.ms`.
    pub request_timeout: Duration,
    /// `allow.auto.create.topics`.
    pub auto_create_topics: bool,
    /// `metadata.leader.discovery`: go to a new leader as soon as the old one names it (KIP-951).
    pub leader_discovery: bool,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            bootstrap: Vec::new(),
            refresh_interval: Some(Duration::from_secs(300)),
            fast_refresh: Duration::from_millis(100),
            fast_refresh_max: Duration::from_secs(1),
            request_timeout: Duration::from_secs(60),
            auto_create_topics: true,
            leader_discovery: true,
        }
    }
}

/// The cluster's owner.
#[derive(Debug)]
pub struct ClusterCore {
    settings: ClusterSettings,
    commands: Arc<CommandQueue>,
    events: Arc<EventQueue>,
    metadata: Metadata,
    brokers: Brokers,
    requests: Requests,
    refresh: Refresh,
    producer: Option<ProducerSide>,
    /// The receiving half: positions, and where partitions are fetched from.
    fetch: Option<FetchCoordinator>,
    admin: AdminCalls,
    outputs: VecDeque<ClusterOutput>,
    closing: bool,
    rng: Rng,
}

/// What the cluster's owner wants from its driver.
#[derive(Debug)]
pub enum ClusterOutput {
    /// Start a [`BrokerCore`](crate::broker::BrokerCore) under this key.
    StartBroker {
        /// Its name from now on.
        key: BrokerKey,
        /// The host's name or address.
        host: String,
        /// The port.
        port: u16,
        /// The node's id, where it is known.
        node_id: Option<i32>,
        /// Its random numbers.
        rng: Rng,
    },
    /// Mail for a broker.
    ToBroker(BrokerKey, ToBroker),
    /// Everything is over and may be dropped.
    Done,
}

/// Where a request may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Any broker.
    Any,
    /// The controller.
    Controller,
    /// This node.
    Node(i32),
    /// This node, over a second connection that no fetch holds up.
    SecondToNode(i32),
}

/// Who asked.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// The metadata refresh.
    Metadata,
    /// The idempotent producer's identity.
    ProducerId,
    /// An administrative call, by its number there.
    Admin(u64),
    /// The receiving half, by its number there.
    Fetch(u64),
}

/// A request with all that is needed to send it anywhere.
pub struct RoutedRequest {
    pub(crate) api: ApiKey,
    pub(crate) versions: std::ops::RangeInclusive<i16>,
    pub(crate) timeout: Duration,
    pub(crate) encode: EncodeBody,
}

impl std::fmt::Debug for RoutedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoutedRequest").field("api", &self.api).finish_non_exhaustive()
    }
}

/// The brokers that there is an owner for.
#[derive(Debug, Default)]
struct Brokers {
    entries: BTreeMap<BrokerKey, BrokerEntry>,
    by_node: BTreeMap<i32, BrokerKey>,
    /// Second connections to nodes that are fetched from, for what must not wait behind a fetch.
    lookups: BTreeMap<i32, BrokerKey>,
    next_key: u32,
    /// The servers of `bootstrap.servers` that have an owner, by their place in the list.
    bootstrap: BTreeMap<usize, BrokerKey>,
    /// The candidate that is being connected to because nobody is up.
    candidate: Option<usize>,
    all_down_told: bool,
    failures_since_up: usize,
}

#[derive(Debug)]
struct BrokerEntry {
    host: String,
    port: u16,
    up: bool,
}

/// Requests that wait for a broker or for an answer.
#[derive(Default)]
struct Requests {
    next_token: u64,
    sent: BTreeMap<u64, Purpose>,
    waiting: VecDeque<(Instant, Route, RoutedRequest, Purpose)>,
}

/// When the metadata is asked for next. At most one request is under way; whoever needs one meanwhile shares it or the
/// one after it.
#[derive(Debug)]
struct Refresh {
    under_way: bool,
    again: bool,
    /// Again, but after a back-off: the answer under way may be what was missed.
    again_soon: bool,
    at: Option<Instant>,
    backoff: Backoff,
}

/// The sending half: where each partition is.
#[derive(Debug)]
struct ProducerSide {
    shared: Arc<ProducerShared>,
    topics: BTreeMap<Arc<str>, TopicEntry>,
    placements: BTreeMap<(Arc<str>, i32), Placement>,
    next_expiry: Instant,
    /// When memory that nobody needed lately is given back.
    trim_at: Instant,
    /// The idempotent producer's identity, if it is one.
    identity: Option<ProducerId>,
}

#[derive(Debug)]
struct TopicEntry {
    topic: Arc<ProducerTopic>,
    wanted_since: Instant,
}

#[derive(Debug)]
enum Placement {
    /// Nobody leads it, as far as is known.
    Unassigned(Box<PartitionProducer>),
    /// This broker sends its records.
    At(BrokerKey),
    /// This broker is giving it back.
    Leaving,
}

/// How often the batches' memory is looked at.
const TRIM_EVERY: Duration = Duration::from_secs(30);

impl ClusterCore {
    /// The owner of a cluster that nothing is known of yet.
    pub fn new(
        settings: ClusterSettings,
        producer: Option<Arc<ProducerShared>>,
        consumer: Option<Arc<ConsumerShared>>,
        commands: Arc<CommandQueue>,
        events: Arc<EventQueue>,
        mut rng: Rng,
    ) -> Self {
        let mut settings = settings;
        rng.shuffle(&mut settings.bootstrap);
        Self {
            refresh: Refresh {
                under_way: false,
                again: false,
                again_soon: false,
                at: None,
                backoff: Backoff::new(settings.fast_refresh, settings.fast_refresh_max),
            },
            admin: AdminCalls::new(settings.request_timeout, settings.fast_refresh),
            settings,
            commands,
            events,
            metadata: Metadata { controller_id: -1, ..Metadata::default() },
            brokers: Brokers::default(),
            requests: Requests::default(),
            producer: producer.map(|shared| ProducerSide {
                identity: shared.settings.idempotence.then(|| {
                    ProducerId::new(shared.settings.retry_backoff, shared.settings.retry_backoff_max)
                }),
                shared,
                topics: BTreeMap::new(),
                placements: BTreeMap::new(),
                next_expiry: Instant::ZERO,
                trim_at: Instant::ZERO,
            }),
            fetch: consumer.map(FetchCoordinator::new),
            outputs: VecDeque::new(),
            closing: false,
            rng,
        }
    }

    /// What is known of the cluster.
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Somebody woke this owner: look at the commands.
    pub fn handle_wake(&mut self, now: Instant) {
        while let Some(command) = self.commands.pop() {
            self.handle_command(now, command);
        }
        self.advance(now);
    }

    /// Mail from a broker's owner.
    pub fn handle_mail(&mut self, now: Instant, from: BrokerKey, mail: ToCluster) {
        match mail {
            ToCluster::Up => self.handle_up(from),
            ToCluster::Down(error) => self.handle_down(now, from, error),
            ToCluster::Answer { token, result } => self.handle_answer(now, from, token, result),
            ToCluster::ReleasedProducer(partition) => self.place(partition),
            ToCluster::RefreshMetadata(_) => self.refresh_soon(now),
            ToCluster::LeaderHint(hint) => {
                if self.settings.leader_discovery {
                    self.handle_hint(from, hint);
                }
            }
            ToCluster::RenewIdentity(used) => {
                let renewed = self.producer.as_mut().is_some_and(|producer| {
                    let shared = &producer.shared.identity;
                    producer.identity.as_mut().is_some_and(|identity| identity.renew(now, used, shared))
                });
                if renewed {
                    self.mail_all(|| ToBroker::Look);
                }
            }
            ToCluster::Fetch(reply) => {
                if let Some(fetch) = &mut self.fetch {
                    fetch.handle_reply(now, reply);
                }
            }
        }
        self.advance(now);
    }

    /// The driver dropped a broker's owner that said it was done.
    pub fn handle_broker_done(&mut self, key: BrokerKey) {
        self.brokers.entries.remove(&key);
        self.brokers.by_node.retain(|_, known| *known != key);
        self.brokers.lookups.retain(|_, known| *known != key);
        self.brokers.bootstrap.retain(|_, known| *known != key);
        if self.closing && self.brokers.entries.is_empty() {
            self.fail_placements();
            self.outputs.push_back(ClusterOutput::Done);
        }
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.closing {
            return;
        }
        if self.refresh.at.is_some_and(|at| at <= now) {
            self.refresh.at = None;
            self.request_metadata(now);
        }
        self.expire_waiting_requests(now);
        self.expire_messages(now);
        if let Some(producer) = &mut self.producer
            && producer.trim_at <= now
        {
            producer.trim_at = now + TRIM_EVERY;
            producer.shared.pool.trim();
        }
        self.admin.handle_timeout(now);
        if let Some(fetch) = &mut self.fetch {
            fetch.handle_timeout(now);
        }
        self.advance(now);
    }

    /// When to call [`ClusterCore::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.closing {
            return None;
        }
        let requests = self.requests.waiting.iter().map(|(deadline, ..)| *deadline).min();
        let expiry = self.producer.as_ref().filter(|producer| producer.has_waiting()).map(|p| p.next_expiry);
        let identity = self
            .producer
            .as_ref()
            .filter(|producer| !producer.topics.is_empty())
            .and_then(|producer| producer.identity.as_ref())
            .and_then(ProducerId::poll_timeout);
        let fetch = earliest(identity, self.fetch.as_ref().and_then(FetchCoordinator::poll_timeout));
        let trim = self.producer.as_ref().filter(|p| p.shared.pool.idle_bytes() > 0).map(|p| p.trim_at);
        let fetch = earliest(fetch, trim);
        earliest(
            earliest(earliest(self.refresh.at, requests), earliest(expiry, fetch)),
            self.admin.poll_timeout(),
        )
    }

    /// What the driver has to do next.
    pub fn poll_output(&mut self) -> Option<ClusterOutput> {
        self.outputs.pop_front()
    }

    fn handle_command(&mut self, now: Instant, command: Command) {
        if self.closing {
            return;
        }
        match command {
            Command::Topic(topic) => {
                if let Some(producer) = &mut self.producer {
                    let entry = TopicEntry { topic: Arc::clone(&topic), wanted_since: now };
                    producer.topics.insert(Arc::clone(topic.name()), entry);
                }
                self.refresh_now(now);
            }
            Command::Flush => self.mail_all(|| ToBroker::Look),
            Command::Purge(purge) => {
                self.mail_all(|| ToBroker::Purge(purge));
                if purge.queue {
                    self.fail_unassigned(None, ErrorKind::PurgedFromQueue);
                }
            }
            Command::Admin(call) => self.admin.start(now, call),
            Command::Fetch(command) => {
                if let Some(fetch) = &mut self.fetch {
                    fetch.handle_command(now, command);
                }
            }
            Command::Close => self.close(),
        }
    }

    /// Passes on what the parts want: metadata, requests, mail.
    fn advance(&mut self, now: Instant) {
        if self.closing {
            return;
        }
        if let Some(fetch) = &mut self.fetch {
            fetch.advance(now, &self.metadata);
        }
        while let Some(output) = self.fetch.as_mut().and_then(FetchCoordinator::poll_output) {
            self.handle_fetch_output(now, output);
        }
        let timeout = self.settings.request_timeout;
        let wanted = self.producer.as_mut().filter(|producer| !producer.topics.is_empty());
        if let Some(identity) = wanted.and_then(|producer| producer.identity.as_mut())
            && let Some(request) = identity.poll_request(now, timeout)
        {
            self.route(now, Route::Any, request, Purpose::ProducerId);
        }
        self.admin.advance(now, &self.metadata);
        while let Some(output) = self.admin.poll_output() {
            match output {
                AdminOutput::RefreshMetadata => self.refresh_now(now),
                AdminOutput::Request(id, route, request) => {
                    self.route(now, route, request, Purpose::Admin(id))
                }
            }
        }
        if !self.requests.waiting.is_empty() && !self.brokers.any_up() {
            self.find_a_broker(now);
        }
    }

    fn handle_fetch_output(
        &mut self,
        now: Instant,
        output: crate::fetch::coordinator::FetchCoordinatorOutput,
    ) {
        use crate::fetch::coordinator::FetchCoordinatorOutput as Output;
        match output {
            Output::RefreshMetadata => self.refresh_now(now),
            Output::ToNode(node, mail) => {
                if let Some(key) = self.broker_of(node) {
                    self.mail(key, ToBroker::Fetch(mail));
                }
            }
            Output::Request(id, route, request) => match route {
                // A fetch may wait for records, and answers come in order.
                Route::Node(node) if self.fetch.as_ref().is_some_and(|fetch| fetch.fetches_from(node)) => {
                    self.route(now, Route::SecondToNode(node), request, Purpose::Fetch(id));
                }
                route => self.route(now, route, request, Purpose::Fetch(id)),
            },
        }
    }

    /// A broker named the leader of a partition (KIP-951).
    fn handle_hint(&mut self, from: BrokerKey, hint: LeaderHint) {
        match (self.metadata.apply_hint(&hint), hint.refused_address) {
            (HintVerdict::Taken, _) => {
                let place = (hint.topic, hint.partition);
                if let Some(fetch) = &mut self.fetch {
                    fetch.handle_new_leader(&place, &self.metadata);
                }
                self.move_to_leader(place);
            }
            (HintVerdict::Unreachable, Some(address)) => {
                let detail = format!(
                    "it names node {} as the new leader, at `{address}`, which is no address; asking for metadata \
                     instead",
                    hint.leader
                );
                let mut error =
                    Error::new(ErrorKind::BadResponse, detail).with_partition(&*hint.topic, hint.partition);
                if let Some(entry) = self.brokers.entries.get(&from) {
                    error = error.with_peer(format!("{}:{}", entry.host, entry.port));
                }
                self.events.push(Event::Error(error));
            }
            _ => {}
        }
    }

    fn handle_up(&mut self, from: BrokerKey) {
        if let Some(entry) = self.brokers.entries.get_mut(&from) {
            entry.up = true;
        }
        self.brokers.candidate = None;
        self.brokers.failures_since_up = 0;
        self.brokers.all_down_told = false;
        self.send_waiting();
    }

    /// Sends the requests that waited for a broker, as far as there is one now.
    fn send_waiting(&mut self) {
        for (deadline, route, request, purpose) in std::mem::take(&mut self.requests.waiting) {
            match self.target(route) {
                Some(key) => self.send(key, request, purpose),
                None => self.requests.waiting.push_back((deadline, route, request, purpose)),
            }
        }
    }

    fn handle_down(&mut self, now: Instant, from: BrokerKey, error: Error) {
        let Some(entry) = self.brokers.entries.get_mut(&from) else { return };
        let was_up = std::mem::replace(&mut entry.up, false);
        self.brokers.failures_since_up += 1;
        self.events.push(Event::Error(error.clone()));
        if was_up {
            // Its partitions may have moved.
            self.refresh_soon(now);
        } else if self.brokers.failures_since_up >= self.candidates()
            && !self.brokers.any_up()
            && !std::mem::replace(&mut self.brokers.all_down_told, true)
        {
            let detail = format!("{} servers tried; the last said: {error}", self.brokers.failures_since_up);
            self.events.push(Event::AllBrokersDown(Error::new(ErrorKind::AllBrokersDown, detail)));
        }
        if let Some(index) = self.brokers.candidate
            && !self.requests.waiting.is_empty()
            && !self.brokers.any_up()
        {
            self.try_candidate(index + 1);
        }
    }

    fn handle_answer(&mut self, now: Instant, from: BrokerKey, token: u64, result: Result<Response, Error>) {
        let Some(purpose) = self.requests.sent.remove(&token) else { return };
        match purpose {
            Purpose::Metadata => self.handle_metadata(now, from, result),
            Purpose::ProducerId => self.handle_producer_id(now, result),
            Purpose::Admin(id) => self.admin.handle_answer(now, id, result),
            Purpose::Fetch(id) => {
                if let Some(fetch) = &mut self.fetch {
                    fetch.handle_answer(now, id, result);
                }
            }
        }
    }

    // ---- metadata

    fn refresh_now(&mut self, now: Instant) {
        self.refresh.at = None;
        self.request_metadata(now);
    }

    /// Asks after a back-off: what is wrong may take a moment to be mended.
    fn refresh_soon(&mut self, now: Instant) {
        if self.refresh.under_way {
            self.refresh.again_soon = true;
            return;
        }
        let at = now + self.refresh.backoff.next(&mut self.rng);
        self.refresh.at = Some(self.refresh.at.map_or(at, |known| known.min(at)));
    }

    fn request_metadata(&mut self, now: Instant) {
        if self.refresh.under_way {
            self.refresh.again = true;
            return;
        }
        let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
        if let Some(producer) = &self.producer {
            names.extend(producer.topics.keys().cloned());
        }
        if let Some(fetch) = &self.fetch {
            fetch.wanted_topics(&mut names);
        }
        self.admin.wanted_topics(&mut names);
        self.refresh.under_way = true;
        let auto_create = self.settings.auto_create_topics;
        let encode: EncodeBody = Box::new(move |version, out| {
            // Before version 1 an empty list meant all topics.
            let topics = names
                .iter()
                .map(|name| WantedTopic { name: Some(name.to_string()), ..WantedTopic::default() });
            let request = MetadataRequest {
                topics: Some(topics.collect()),
                allow_auto_topic_creation: auto_create || version < 4,
                ..MetadataRequest::default()
            };
            request.encode(version, out)
        });
        let request = RoutedRequest {
            api: ApiKey::Metadata,
            versions: ApiKey::Metadata.versions(),
            timeout: self.settings.request_timeout,
            encode,
        };
        self.route(now, Route::Any, request, Purpose::Metadata);
    }

    fn handle_metadata(&mut self, now: Instant, from: BrokerKey, result: Result<Response, Error>) {
        self.refresh.under_way = false;
        let answer = result.and_then(|response| {
            MetadataResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()).with_api("Metadata"))
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.events.push(Event::Error(error));
                self.refresh_soon(now);
                return;
            }
        };
        let Applied { errors, recreated, outdated } = self.metadata.apply(&answer);
        self.adopt_nodes(from);
        let mut incomplete = outdated;
        for topic in recreated {
            if let Some(fetch) = &mut self.fetch {
                fetch.handle_recreated(now, &topic);
            }
            self.events.push(Event::TopicRecreated(topic));
        }
        for error in &errors {
            incomplete |= self.handle_topic_error(now, &error.name, error.code);
        }
        incomplete |= self.update_placements(now);
        if let Some(fetch) = &mut self.fetch {
            incomplete |= fetch.handle_metadata(now, &self.metadata, &errors);
        }
        incomplete |= self.admin.handle_metadata(now, &self.metadata, &errors);
        self.send_waiting();
        if std::mem::take(&mut self.refresh.again) {
            return self.request_metadata(now);
        }
        if std::mem::take(&mut self.refresh.again_soon) | incomplete {
            self.refresh_soon(now);
        } else {
            self.refresh.backoff.reset();
            self.refresh.at = self.settings.refresh_interval.map(|interval| now + interval);
        }
    }

    /// A topic can't be used; true if that may change soon.
    fn handle_topic_error(&mut self, now: Instant, name: &Arc<str>, code: ErrorCode) -> bool {
        let Some(producer) = &mut self.producer else { return false };
        let Some(entry) = producer.topics.get(name) else { return false };
        if entry.topic.partition_count().is_some() {
            // It was known: it may have been deleted, or the answer is from before its creation.
            return true;
        }
        let patience = producer.shared.settings.topic_propagation;
        let error = match code {
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION if now - entry.wanted_since >= patience => {
                unknown_topic_error()
            }
            code if code.is_retriable() => return true,
            code => Error::broker(code, None).with_api("Metadata"),
        };
        let error = error.with_topic(&**name);
        let failed = entry.topic.set_error(Some(error.clone()));
        let failed = failed.into_iter().map(|record| (record, error.clone())).collect();
        producer.shared.fail_waiting(name, failed);
        true
    }

    /// Creates owners' entries for addresses that changed, and makes the bootstrap server that is a known node that
    /// node's owner instead of connecting to it twice.
    fn adopt_nodes(&mut self, from: BrokerKey) {
        if let Some(entry) = self.brokers.entries.get(&from)
            && !self.brokers.by_node.values().chain(self.brokers.lookups.values()).any(|key| *key == from)
        {
            let node = self.metadata.nodes.iter().find(|(id, node)| {
                node.host == entry.host && node.port == entry.port && !self.brokers.by_node.contains_key(id)
            });
            if let Some((id, _)) = node {
                self.brokers.by_node.insert(*id, from);
            }
        }
        let mut moved = Vec::new();
        for (id, key) in self.brokers.by_node.iter().chain(&self.brokers.lookups) {
            if let (Some(node), Some(entry)) =
                (self.metadata.nodes.get(id), self.brokers.entries.get_mut(key))
                && (node.host != entry.host || node.port != entry.port)
            {
                entry.host.clone_from(&node.host);
                entry.port = node.port;
                moved.push((*key, node.host.clone(), node.port));
            }
        }
        for (key, host, port) in moved {
            self.mail(key, ToBroker::SetAddress { host, port });
        }
    }

    // ---- the sending half

    fn handle_producer_id(&mut self, now: Instant, result: Result<Response, Error>) {
        let Some(producer) = &mut self.producer else { return };
        let Some(identity) = &mut producer.identity else { return };
        match identity.handle_answer(now, result, &producer.shared.identity, &mut self.rng) {
            ProducerIdAnswer::Known => self.mail_all(|| ToBroker::Look),
            ProducerIdAnswer::Later => {}
            ProducerIdAnswer::Fatal(error) => {
                producer.identity = None;
                producer.shared.close(Some(error.clone()));
                self.events.push(Event::Fatal(error));
                self.mail_all(|| ToBroker::Purge(Purge::QUEUE));
                self.fail_unassigned(None, ErrorKind::PurgedFromQueue);
            }
        }
    }

    /// Moves partitions to their leaders; true if some leader is unknown.
    fn update_placements(&mut self, _now: Instant) -> bool {
        if self.closing {
            // The brokers' owners are going: what they were given now would never be reported.
            return false;
        }
        let Some(mut producer) = self.producer.take() else { return false };
        let mut incomplete = false;
        let mut failed = Vec::new();
        for (name, entry) in &producer.topics {
            let Some(known) = self.metadata.topics.get(name) else {
                incomplete |= entry.topic.partition_count().is_none();
                continue;
            };
            let count = known.partitions.len() as i32;
            if count == 0 {
                incomplete = true;
                continue;
            }
            if entry.topic.partition_count().is_none_or(|old| old < count) {
                entry.topic.set_partitions(
                    count,
                    |accumulator| {
                        let partition =
                            Box::new(PartitionProducer::new(Arc::clone(accumulator), known.id, -1));
                        let place = (Arc::clone(name), accumulator.partition());
                        producer.placements.insert(place, Placement::Unassigned(partition));
                    },
                    |records| {
                        let unplaced = producer.shared.append_waiting(&entry.topic, count, records);
                        failed.push((Arc::clone(name), unplaced));
                    },
                );
            }
        }
        for (name, records) in failed {
            producer.shared.fail_waiting(&name, records);
        }
        let places: Vec<(Arc<str>, i32)> = producer.placements.keys().cloned().collect();
        self.producer = Some(producer);
        for place in places {
            incomplete |= !self.move_to_leader(place);
        }
        incomplete
    }

    /// Gives a partition to the broker that leads it, or asks for it back from one that does not any more. False if
    /// nobody is known to lead it.
    fn move_to_leader(&mut self, place: (Arc<str>, i32)) -> bool {
        let leader = self.metadata.leader(&place.0, place.1).map(|(node, _)| node);
        let target = leader.and_then(|node| self.broker_of(node));
        let placement = self.producer.as_mut().and_then(|producer| producer.placements.get_mut(&place));
        let Some(placement) = placement else { return leader.is_some() };
        match (&*placement, target) {
            (Placement::Unassigned(_), Some(key)) => {
                if let Placement::Unassigned(partition) = std::mem::replace(placement, Placement::At(key)) {
                    self.give(key, partition);
                }
            }
            (Placement::At(current), Some(key)) if *current != key => {
                let current = *current;
                *placement = Placement::Leaving;
                let (topic, partition) = place;
                self.mail(current, ToBroker::ReleaseProducer { topic, partition });
            }
            _ => {}
        }
        leader.is_some()
    }

    /// A partition came back from a broker: give it to whoever leads it now.
    fn place(&mut self, partition: Box<PartitionProducer>) {
        let place = (Arc::clone(partition.topic()), partition.partition());
        let leader = self.metadata.leader(&place.0, place.1).map(|(node, _)| node);
        let target = if self.closing { None } else { leader.and_then(|node| self.broker_of(node)) };
        let placement = match target {
            Some(key) => {
                self.give(key, partition);
                Placement::At(key)
            }
            None => Placement::Unassigned(partition),
        };
        if let Some(producer) = &mut self.producer {
            producer.placements.insert(place, placement);
        }
    }

    fn give(&mut self, key: BrokerKey, mut partition: Box<PartitionProducer>) {
        if let Some(topic) = self.metadata.topics.get(partition.topic()) {
            partition.topic_id = topic.id;
            if let Some(known) = topic.partitions.get(partition.partition() as usize) {
                partition.leader_epoch = known.leader_epoch;
            }
        }
        self.mail(key, ToBroker::AdoptProducer(partition));
    }

    fn expire_messages(&mut self, now: Instant) {
        let Some(producer) = &mut self.producer else { return };
        let Some(timeout) = producer.shared.settings.message_timeout else { return };
        if producer.next_expiry > now {
            return;
        }
        producer.next_expiry = now + (timeout / 20).clamp(Duration::from_millis(1), Duration::from_secs(1));
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let limit = Instant::from_nanos(now.as_nanos().saturating_sub(nanos));
        for (name, entry) in &producer.topics {
            let expired = entry.topic.expire_waiting(limit);
            let error =
                Error::new(ErrorKind::MessageTimedOutInQueue, "the topic's partitions are not known yet");
            let failed = expired.into_iter().map(|record| (record, error.clone())).collect();
            producer.shared.fail_waiting(name, failed);
        }
        self.fail_unassigned(Some(limit), ErrorKind::MessageTimedOutInQueue);
    }

    /// Fails what waits in partitions without a leader, up to `limit` or all of it.
    fn fail_unassigned(&mut self, limit: Option<Instant>, kind: ErrorKind) {
        let Some(producer) = &mut self.producer else { return };
        for ((topic, index), placement) in &mut producer.placements {
            let Placement::Unassigned(partition) = placement else { continue };
            let mut retries = Vec::new();
            let mut open: Vec<OpenBatch> = Vec::new();
            match limit {
                Some(limit) => {
                    partition.expire_retries(limit, &mut retries);
                    partition.accumulator().take_older_than(limit, &mut open);
                }
                None => {
                    retries.extend(partition.take_retries());
                    partition.accumulator().take_all(self.closing, &mut open);
                }
            }
            let detail = "the partition has no leader";
            for batch in retries {
                let error = Error::new(kind, detail).with_partition(&**topic, *index);
                let status = batch.failure_status();
                producer.shared.report(batch.into_report(topic, *index, Err(error), status));
            }
            for batch in open {
                let error = Error::new(kind, detail).with_partition(&**topic, *index);
                producer.shared.report_unsent(topic, *index, batch.into(), error);
            }
        }
        if limit.is_none() {
            for (name, entry) in &producer.topics {
                let error = Error::new(kind, "the topic's partitions are not known yet");
                let waiting = entry.topic.expire_waiting(Instant::FAR_FUTURE);
                let failed = waiting.into_iter().map(|record| (record, error.clone())).collect();
                producer.shared.fail_waiting(name, failed);
            }
        }
    }

    // ---- requests and brokers

    /// Sends a request to where it may go, as soon as somebody there is up.
    fn route(&mut self, now: Instant, route: Route, request: RoutedRequest, purpose: Purpose) {
        match self.target(route) {
            Some(key) => self.send(key, request, purpose),
            None => {
                // Metadata can wait for ever: it is what finds a broker.
                let deadline = match purpose {
                    Purpose::Metadata => Instant::FAR_FUTURE,
                    _ => now + request.timeout,
                };
                self.requests.waiting.push_back((deadline, route, request, purpose));
                self.find_a_broker(now);
            }
        }
    }

    fn target(&mut self, route: Route) -> Option<BrokerKey> {
        let node = match route {
            Route::Any => {
                let up: Vec<BrokerKey> = self.brokers.up().collect();
                let pick = self.rng.below(up.len() as u64) as usize;
                return up.get(pick).copied();
            }
            Route::Controller => self.metadata.controller_id,
            Route::Node(node) => node,
            Route::SecondToNode(node) => return self.second_to(node),
        };
        if self.metadata.nodes.contains_key(&node) { self.broker_of(node) } else { None }
    }

    fn send(&mut self, key: BrokerKey, request: RoutedRequest, purpose: Purpose) {
        let token = self.requests.next_token;
        self.requests.next_token += 1;
        self.requests.sent.insert(token, purpose);
        let RoutedRequest { api, versions, timeout, encode } = request;
        self.mail(key, ToBroker::Request(ClusterRequest { token, api, versions, timeout, encode }));
    }

    fn expire_waiting_requests(&mut self, now: Instant) {
        let (late, waiting): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.requests.waiting)
            .into_iter()
            .partition(|(deadline, ..)| *deadline <= now);
        self.requests.waiting = waiting;
        for (_, _, request, purpose) in late {
            let error = Error::new(ErrorKind::AllBrokersDown, "").with_api(request.api.name());
            let token = self.requests.next_token;
            self.requests.next_token += 1;
            self.requests.sent.insert(token, purpose);
            self.handle_answer(now, BrokerKey(u32::MAX), token, Err(error));
        }
    }

    /// The owner of a node's connection, started if there is none yet.
    fn broker_of(&mut self, node: i32) -> Option<BrokerKey> {
        if let Some(key) = self.brokers.by_node.get(&node) {
            return Some(*key);
        }
        let address = self.metadata.nodes.get(&node)?.clone();
        let key = self.start_broker(address.host, address.port, Some(node));
        self.brokers.by_node.insert(node, key);
        Some(key)
    }

    /// The owner of the second connection to a node, started if there is none yet.
    fn second_to(&mut self, node: i32) -> Option<BrokerKey> {
        let address = self.metadata.nodes.get(&node)?.clone();
        if let Some(key) = self.brokers.lookups.get(&node) {
            return Some(*key);
        }
        let key = self.start_broker(address.host, address.port, Some(node));
        self.brokers.lookups.insert(node, key);
        Some(key)
    }

    fn start_broker(&mut self, host: String, port: u16, node_id: Option<i32>) -> BrokerKey {
        let key = BrokerKey(self.brokers.next_key);
        self.brokers.next_key += 1;
        self.brokers.entries.insert(key, BrokerEntry { host: host.clone(), port, up: false });
        let rng = self.rng.fork();
        self.outputs.push_back(ClusterOutput::StartBroker { key, host, port, node_id, rng });
        if self.closing {
            // It came too late for the letter that ended the others.
            self.mail(key, ToBroker::Close);
        }
        key
    }

    /// Nobody is up: connect to one candidate after the other, known nodes first, then the bootstrap servers.
    fn find_a_broker(&mut self, now: Instant) {
        let _ = now;
        if self.brokers.candidate.is_none() && !self.brokers.any_up() && self.candidates() > 0 {
            let first = self.rng.below(self.metadata.nodes.len() as u64) as usize;
            self.try_candidate(first);
        }
    }

    fn candidates(&self) -> usize {
        self.metadata.nodes.len() + self.settings.bootstrap.len()
    }

    fn try_candidate(&mut self, index: usize) {
        if self.closing {
            return;
        }
        let index = index % self.candidates().max(1);
        self.brokers.candidate = Some(index);
        let nodes = self.metadata.nodes.len();
        let key = if index < nodes {
            let node = self.metadata.nodes.keys().nth(index).copied();
            node.and_then(|node| self.broker_of(node))
        } else {
            let place = index - nodes;
            match (self.brokers.bootstrap.get(&place), self.settings.bootstrap.get(place).cloned()) {
                (Some(key), _) => Some(*key),
                (None, Some((host, port))) => {
                    let key = self.start_broker(host, port, None);
                    self.brokers.bootstrap.insert(place, key);
                    Some(key)
                }
                (None, None) => None,
            }
        };
        if let Some(key) = key {
            self.mail(key, ToBroker::Connect);
        }
    }

    fn mail(&mut self, key: BrokerKey, mail: ToBroker) {
        self.outputs.push_back(ClusterOutput::ToBroker(key, mail));
    }

    fn mail_all(&mut self, mail: impl Fn() -> ToBroker) {
        for key in self.brokers.entries.keys() {
            self.outputs.push_back(ClusterOutput::ToBroker(*key, mail()));
        }
    }

    // ---- the end

    fn close(&mut self) {
        self.closing = true;
        self.admin.close();
        if let Some(fetch) = &mut self.fetch {
            fetch.close();
        }
        self.requests.waiting.clear();
        if self.brokers.entries.is_empty() {
            self.fail_placements();
            self.outputs.push_back(ClusterOutput::Done);
        }
        self.mail_all(|| ToBroker::Close);
    }

    fn fail_placements(&mut self) {
        self.fail_unassigned(None, ErrorKind::Closed);
        if let Some(producer) = &self.producer {
            let error = Error::new(ErrorKind::Closed, "the topic's partitions are not known yet");
            producer.shared.fail_all_waiting(&error);
        }
    }
}

impl ProducerSide {
    /// True if records wait where no broker looks after their time.
    fn has_waiting(&self) -> bool {
        self.shared.budget.messages() > 0
            && (self.topics.values().any(|entry| entry.topic.waiting_since().is_some())
                || self.placements.values().any(|p| matches!(p, Placement::Unassigned(_))))
    }
}

impl Brokers {
    fn up(&self) -> impl Iterator<Item = BrokerKey> {
        self.entries.iter().filter(|(_, entry)| entry.up).map(|(key, _)| *key)
    }

    fn any_up(&self) -> bool {
        self.up().next().is_some()
    }
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Requests")
            .field("sent", &self.sent.len())
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}
