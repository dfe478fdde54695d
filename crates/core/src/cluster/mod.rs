//! The owner of everything that concerns the cluster as a whole: which brokers there are, who leads what, and requests
//! that belong to no partition. There is one per client.
//!
//! ```text
//!  application ── commands ──► ClusterCore ── mail ──► BrokerCore (one per broker)
//!                               │  metadata           │
//!                               │  placements  ◄───── mail
//! ```
//!
//! Read [`metadata`], then this file: when the cluster is asked what, and who gets the answer. `brokers` knows whom to
//! ask, `placements` which broker has which of the producer's partitions.

mod brokers;
pub mod command;
pub mod metadata;
mod placements;
pub mod reminders;
#[cfg(test)]
mod scripted;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::metadata::{
        MetadataRequest, MetadataResponse, request::Topic as WantedTopic, response::Topic,
    },
    primitive::Reader,
};

use self::{
    brokers::Brokers,
    command::{Command, CommandQueue},
    metadata::{Applied, HintVerdict, LeaderHint, Metadata},
    placements::Placements,
    reminders::Reminders,
};
use crate::{
    admin::{AdminCalls, AdminOutput},
    backoff::Backoff,
    broker::connection::Response,
    config::TopicPatterns,
    error::{Error, ErrorKind},
    event::{Event, EventQueue, Throttle},
    fetch::{coordinator::FetchCoordinator, shared::ConsumerShared},
    machine::{Instant, earliest},
    mail::{BrokerKey, ClusterRequest, EncodeBody, ToBroker, ToCluster},
    mutation::{Mutant, Mutation},
    produce::shared::ProducerShared,
    rng::Rng,
    stats::{BrokerStatistics, Gather, StatisticsSink},
};

/// What the cluster's owner needs to know of the configuration.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// `bootstrap.servers`.
    pub bootstrap: Vec<(String, u16)>,
    /// `topic.metadata.refresh.interval.ms`; `None` refreshes only on demand.
    pub refresh_interval: Option<Duration>,
    /// `topic.metadata.refresh.sparse=false`: the timer asks for all topics of the cluster.
    pub refresh_all_topics: bool,
    /// `topic.blacklist`: what answers say of these topics is passed over.
    pub hidden_topics: TopicPatterns,
    /// `topic.metadata.refresh.fast.interval.ms`: the first wait while something is unknown.
    pub fast_refresh: Duration,
    /// `retry.backoff.max.ms`: the longest wait while something is unknown.
    pub fast_refresh_max: Duration,
    /// `socket.timeout.ms`.
    pub request_timeout: Duration,
    /// `allow.auto.create.topics`.
    pub auto_create_topics: bool,
    /// `metadata.recovery.rebootstrap.trigger.ms`; `None` if `metadata.recovery.strategy` is `none`.
    pub rebootstrap_after: Option<Duration>,
    /// `metadata.leader.discovery`: go to a new leader as soon as the old one names it (KIP-951).
    pub leader_discovery: bool,
    /// A deliberate mistake, for the simulator's tests.
    pub mutation: Mutation,
    /// `statistics.interval.ms`, and who takes the snapshots.
    pub statistics: Option<StatisticsSettings>,
}

/// The periodic snapshots.
#[derive(Clone)]
pub struct StatisticsSettings {
    /// `statistics.interval.ms`.
    pub interval: Duration,
    /// Who takes them.
    pub sink: Arc<dyn StatisticsSink>,
}

impl std::fmt::Debug for StatisticsSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StatisticsSettings(every {:?})", self.interval)
    }
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            bootstrap: Vec::new(),
            refresh_interval: Some(Duration::from_secs(300)),
            refresh_all_topics: false,
            hidden_topics: TopicPatterns::default(),
            fast_refresh: Duration::from_millis(100),
            fast_refresh_max: Duration::from_secs(1),
            request_timeout: Duration::from_secs(60),
            auto_create_topics: true,
            rebootstrap_after: Some(Duration::from_secs(300)),
            leader_discovery: true,
            mutation: Mutation::NONE,
            statistics: None,
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
    /// The sending half: where each partition is.
    producer: Option<Placements>,
    /// The receiving half: positions, and where partitions are fetched from.
    fetch: Option<FetchCoordinator>,
    admin: AdminCalls,
    reminders: Reminders,
    /// When the first owner ran, and when the next snapshot is due.
    began: Option<Instant>,
    statistics_at: Option<Instant>,
    /// Why no broker is connected.
    last_down: Option<Error>,
    /// What in the last metadata can't be.
    contradiction: Option<String>,
    metadata_at: Option<Instant>,
    closing: bool,
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
    /// Then it is because of the timer alone.
    is_periodic: bool,
    /// The request under way is about all topics of the cluster.
    of_all_topics: bool,
    backoff: Backoff,
    /// Since when somebody is asked and there is no answer.
    failing_since: Option<Instant>,
}

impl ClusterCore {
    /// The owner of a cluster that nothing is known of yet.
    pub fn new(
        settings: ClusterSettings,
        producer: Option<Arc<ProducerShared>>,
        consumer: Option<Arc<ConsumerShared>>,
        commands: Arc<CommandQueue>,
        events: Arc<EventQueue>,
        rng: Rng,
    ) -> Self {
        let mut settings = settings;
        if settings.mutation.is(Mutant::OwnOrder) && settings.mutation.unforeseen().is_multiple_of(2) {
            settings.bootstrap.reverse();
        }
        Self {
            refresh: Refresh {
                under_way: false,
                again: false,
                again_soon: false,
                at: None,
                is_periodic: false,
                of_all_topics: false,
                backoff: Backoff::new(settings.fast_refresh, settings.fast_refresh_max),
                failing_since: None,
            },
            admin: AdminCalls::new(
                settings.request_timeout,
                settings.fast_refresh,
                settings.fast_refresh_max,
            ),
            brokers: Brokers::new(settings.bootstrap.clone(), settings.rebootstrap_after.is_some(), rng),
            settings,
            commands,
            events,
            metadata: Metadata { controller_id: -1, ..Metadata::default() },
            requests: Requests::default(),
            producer: producer.map(Placements::new),
            fetch: consumer.map(FetchCoordinator::new),
            reminders: Reminders::default(),
            began: None,
            statistics_at: None,
            last_down: None,
            contradiction: None,
            metadata_at: None,
            closing: false,
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
            ToCluster::Idle { looks_again } => self.brokers.handle_idle(from, looks_again),
            ToCluster::Answer { token, result } => self.handle_answer(now, from, token, result),
            ToCluster::ReleasedProducer(partition) => {
                if let Some(producer) = &mut self.producer {
                    producer.place(partition, &self.metadata, &mut self.brokers);
                }
            }
            ToCluster::RefreshMetadata(_) => self.refresh_soon(now),
            ToCluster::UnknownTopicId(topic, id) => self.metadata.doubt_id(&topic, id),
            ToCluster::LeaderHint(hint) => {
                if self.settings.leader_discovery {
                    self.handle_hint(from, hint);
                }
            }
            ToCluster::FatalProducer(error) => {
                if let Some(producer) = &mut self.producer
                    && producer.stop(&error, &mut self.brokers)
                {
                    self.events.push(Event::Fatal(error));
                }
            }
            ToCluster::Throttled(millis) => {
                let throttle = Throttle {
                    broker: self.brokers.address(from).unwrap_or_default(),
                    node_id: self.brokers.node_id(from),
                    millis,
                };
                self.events.push(Event::Throttled(throttle));
            }
            ToCluster::Odd(error) => self.events.push(Event::Error(error)),
            ToCluster::RenewIdentity(used) => {
                if let Some(producer) = &mut self.producer {
                    producer.renew_identity(now, used, &mut self.brokers);
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
        self.brokers.handle_done(key);
        if self.closing && self.brokers.is_empty() {
            self.end();
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
        if self.rebootstrap_at().is_some_and(|at| at <= now) {
            let detail = "no known broker answered for metadata.recovery.rebootstrap.trigger.ms; starting again from \
                          bootstrap.servers";
            self.rebootstrap(Error::new(ErrorKind::AllBrokersDown, detail));
            self.refresh_now(now);
        }
        if let Some(settings) = &self.settings.statistics
            && self.statistics_at.is_some_and(|at| at <= now)
        {
            let gather = Arc::new(Gather::for_sink(Arc::clone(&settings.sink)));
            self.statistics_at = Some(now + settings.interval);
            self.gather_statistics(now, gather);
        }
        self.expire_waiting_requests(now);
        if let Some(producer) = &mut self.producer {
            producer.handle_timeout(now, self.last_down.as_ref());
        }
        self.admin.handle_timeout(now);
        self.reminders.handle_timeout(now);
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
        let producer = self.producer.as_ref().and_then(Placements::poll_timeout);
        let fetch = self.fetch.as_ref().and_then(FetchCoordinator::poll_timeout);
        // The interval begins when the owner runs for the first time, even if nobody asks anything of it.
        let first = (self.began.is_none() && self.settings.statistics.is_some()).then_some(Instant::ZERO);
        let fetch = earliest(fetch, self.statistics_at.or(first));
        earliest(
            earliest(earliest(self.refresh.at, requests), earliest(producer, fetch)),
            earliest(
                earliest(self.admin.poll_timeout(), self.rebootstrap_at()),
                self.reminders.poll_timeout(),
            ),
        )
    }

    /// What the driver has to do next.
    pub fn poll_output(&mut self) -> Option<ClusterOutput> {
        self.brokers.poll_output()
    }

    fn handle_command(&mut self, now: Instant, command: Command) {
        if self.closing {
            return;
        }
        match command {
            Command::Topic(topic) => {
                if let Some(producer) = &mut self.producer {
                    producer.add_topic(now, topic);
                }
                self.refresh_now(now);
            }
            Command::Flush => self.brokers.mail_all(|| ToBroker::Look),
            Command::Purge(purge) => {
                if let Some(producer) = &mut self.producer {
                    producer.purge(purge, &mut self.brokers);
                }
            }
            Command::Admin(call) => self.admin.start(now, call),
            Command::Pause { partitions, is_paused } => {
                if let Some(producer) = &mut self.producer {
                    for place in partitions {
                        producer.pause(place, is_paused, &self.metadata, &mut self.brokers);
                    }
                }
            }
            Command::AddServers(servers) => self.brokers.add_servers(servers, &self.metadata),
            Command::Statistics(gather) => self.gather_statistics(now, gather),
            Command::Remind(reminder) => self.reminders.add(now, reminder),
            Command::Fetch(command) => {
                if let Some(fetch) = &mut self.fetch {
                    fetch.handle_command(now, command);
                }
            }
            Command::Close => self.close(),
        }
    }

    /// Adds what this owner knows, and has every broker's owner add its part.
    fn gather_statistics(&mut self, now: Instant, gather: Arc<Gather>) {
        let micros =
            |since: Instant| i64::try_from(now.saturating_since(since).as_micros()).unwrap_or(i64::MAX);
        gather.add(|statistics| {
            statistics.ts = (now.as_nanos() / 1000) as i64;
            statistics.age = self.began.map_or(0, micros);
            statistics.metadata_cache_cnt = self.metadata.topics.len() as i64;
            statistics.replyq = self.events.len() as i64;
            statistics.kind = if self.producer.is_some() { "producer" } else { "consumer" };
            if let Some(producer) = &self.producer {
                producer.add_statistics(now, self.began.unwrap_or(now), statistics);
            }
            if let Some(fetch) = &self.fetch {
                fetch.add_statistics(statistics);
            }
            let metadata_age = self.metadata_at.map_or(0, |at| micros(at) / 1000);
            for (name, topic) in &mut statistics.topics {
                topic.metadata_age = metadata_age;
                let Some(known) = self.metadata.topics.get(name) else { continue };
                for (index, partition) in &mut topic.partitions {
                    match usize::try_from(*index).ok().and_then(|index| known.partitions.get(index)) {
                        Some(known) => partition.leader = i64::from(known.leader),
                        None => partition.unknown = true,
                    }
                }
            }
        });
        gather.add(|statistics| {
            let without_owner =
                self.metadata.nodes.iter().filter(|(node, _)| !self.brokers.has_owner(**node));
            statistics.brokers.extend(without_owner.map(|(node, address)| {
                let nodename = format!("{}:{}", address.host, address.port);
                BrokerStatistics {
                    name: format!("{nodename}/{node}"),
                    nodeid: i64::from(*node),
                    nodename,
                    source: "learned",
                    state: "INIT",
                    tx_idle: -1,
                    rx_idle: -1,
                    ..BrokerStatistics::default()
                }
            }));
        });
        self.brokers.mail_all(|| ToBroker::Statistics(Arc::clone(&gather)));
    }

    /// Passes on what the parts want: metadata, requests, mail.
    fn advance(&mut self, now: Instant) {
        if self.began.is_none() {
            self.began = Some(now);
            self.statistics_at = self.settings.statistics.as_ref().map(|settings| now + settings.interval);
        }
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
        if let Some(producer) = &mut self.producer
            && let Some(request) = producer.poll_identity_request(now, timeout)
        {
            self.route(now, Route::Any, request, Purpose::ProducerId);
        }
        self.admin.advance(now, &self.metadata);
        while let Some(output) = self.admin.poll_output() {
            match output {
                AdminOutput::RefreshMetadata => self.refresh_now(now),
                AdminOutput::RefreshMetadataSoon => self.refresh_soon(now),
                AdminOutput::Request(id, route, request) => {
                    self.route(now, route, request, Purpose::Admin(id))
                }
            }
        }
        if !self.requests.waiting.is_empty() && !self.brokers.any_up() {
            self.brokers.find(&self.metadata);
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
            Output::RefreshMetadataSoon => self.refresh_soon(now),
            Output::ToNode(node, mail) => {
                if let Some(key) = self.brokers.of_node(node, &self.metadata) {
                    self.brokers.mail(key, ToBroker::Fetch(mail));
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
                if let Some(producer) = &mut self.producer {
                    producer.move_to_leader(place, &self.metadata, &mut self.brokers);
                }
            }
            (HintVerdict::Unreachable, Some(address)) => {
                let detail = format!(
                    "it names node {} as the new leader, at `{address}`, which is no address; asking for metadata \
                     instead",
                    hint.leader
                );
                let mut error =
                    Error::new(ErrorKind::BadResponse, detail).with_partition(&*hint.topic, hint.partition);
                if let Some(peer) = self.brokers.address(from) {
                    error = error.with_peer(peer);
                }
                self.events.push(Event::Error(error));
            }
            _ => {}
        }
    }

    /// Tells what in the metadata can't be, once for as long as it stays so.
    fn tell_contradiction(&mut self, from: BrokerKey, contradiction: Option<String>) {
        if contradiction != self.contradiction
            && let Some(detail) = &contradiction
        {
            let mut error = Error::new(ErrorKind::BadResponse, detail).with_api("Metadata");
            if let Some(peer) = self.brokers.address(from) {
                error = error.with_peer(peer);
            }
            self.events.push(Event::Error(error));
        }
        self.contradiction = contradiction;
    }

    fn handle_up(&mut self, from: BrokerKey) {
        self.last_down = None;
        self.brokers.handle_up(from);
        self.send_waiting();
    }

    /// Sends the requests that waited for a broker, as far as there is one now.
    fn send_waiting(&mut self) {
        self.note_fetched_from();
        for (deadline, route, request, purpose) in std::mem::take(&mut self.requests.waiting) {
            match self.brokers.target(route, &self.metadata) {
                Some(key) => self.send(key, request, purpose),
                None => self.requests.waiting.push_back((deadline, route, request, purpose)),
            }
        }
    }

    fn handle_down(&mut self, now: Instant, from: BrokerKey, error: Error) {
        let Some(loss) = self.brokers.handle_down(from, &self.metadata) else { return };
        let mut has_partitions = self.producer.as_ref().is_some_and(|producer| producer.sends_to(from));
        if let (Some(node), Some(fetch)) = (self.brokers.node_id(from), &mut self.fetch) {
            has_partitions |= fetch.nodes().contains(&node);
            fetch.handle_unreachable(node);
        }
        self.last_down = (!self.brokers.any_up()).then(|| error.clone());
        self.events.push(Event::Error(error.clone()));
        // Its partitions may have moved. A cluster takes seconds to notice that a broker is gone, so every attempt to connect
        // that fails asks again. Whoever is only tried in search of somebody is nobody's reason to ask.
        if loss.was_up || loss.was_idle || has_partitions || self.brokers.any_up() {
            self.refresh_soon(now);
        }
        if let Some(tried) = loss.all_down {
            let detail = format!("{tried} servers tried; the last said: {error}");
            self.events.push(Event::AllBrokersDown(Error::new(ErrorKind::AllBrokersDown, detail)));
        }
        let wanted = !self.requests.waiting.is_empty();
        self.brokers.find_another(&self.metadata, wanted);
    }

    fn handle_answer(&mut self, now: Instant, from: BrokerKey, token: u64, result: Result<Response, Error>) {
        let Some(purpose) = self.requests.sent.remove(&token) else { return };
        match purpose {
            Purpose::Metadata => self.handle_metadata(now, from, result),
            Purpose::ProducerId => self.handle_producer_id(now, result),
            Purpose::Admin(id) => {
                self.admin.handle_answer(now, id, result, &mut self.brokers.rng);
            }
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
        self.refresh.is_periodic = false;
        self.request_metadata(now);
    }

    /// Asks after a back-off: what is wrong may take a moment to be mended.
    fn refresh_soon(&mut self, now: Instant) {
        if self.refresh.under_way {
            self.refresh.again_soon = true;
            return;
        }
        let mut at = now + self.refresh.backoff.next(&mut self.brokers.rng);
        if self.settings.mutation.is(Mutant::RefreshWithoutBackoff) {
            at = now;
        }
        self.refresh.at = Some(self.refresh.at.map_or(at, |known| known.min(at)));
        self.refresh.is_periodic = false;
    }

    fn request_metadata(&mut self, now: Instant) {
        let is_periodic = std::mem::take(&mut self.refresh.is_periodic);
        if self.refresh.under_way {
            self.refresh.again = true;
            return;
        }
        let mut names = self.wanted_topics();
        let mut asked_about = BTreeSet::new();
        self.admin.wanted_topics(&mut asked_about);
        // Asking about a topic must not create it.
        let is_only_asked =
            |name: &Arc<str>| !names.contains(name) && !self.metadata.topics.contains_key(name);
        let auto_create = self.settings.auto_create_topics && !asked_about.iter().any(is_only_asked);
        names.append(&mut asked_about);
        self.refresh.under_way = true;
        self.refresh.failing_since.get_or_insert(now);
        let of_all_topics = is_periodic && self.settings.refresh_all_topics;
        self.refresh.of_all_topics = of_all_topics;
        let encode: EncodeBody = Box::new(move |version, out| {
            // Before version 1 an empty list meant all topics.
            let topics = names
                .iter()
                .filter(|_| !of_all_topics)
                .map(|name| WantedTopic { name: Some(name.to_string()), ..WantedTopic::default() });
            let request = MetadataRequest {
                topics: Some(topics.collect()).filter(|_| !of_all_topics || version == 0),
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
        self.metadata_at = Some(now);
        let answer = result.and_then(|response| {
            MetadataResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()).with_api("Metadata"))
        });
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.events.push(Event::Error(error));
                self.refresh_soon(now);
                return;
            }
        };
        if answer.error_code != ErrorCode::NONE {
            let error = Error::broker(answer.error_code, None).with_api("Metadata");
            if answer.error_code == ErrorCode::REBOOTSTRAP_REQUIRED
                && self.settings.rebootstrap_after.is_some()
            {
                self.rebootstrap(error);
            } else {
                self.events.push(Event::Error(error));
            }
            return self.refresh_soon(now);
        }
        self.refresh.failing_since = None;
        self.brokers.trust_all();
        self.pass_over_topics(&mut answer);
        let Applied { errors, recreated, outdated, contradiction } = self.metadata.apply(&answer);
        self.events.set_controller_id(self.metadata.controller_id);
        self.events.set_cluster_id(self.metadata.cluster_id.as_deref());
        self.tell_contradiction(from, contradiction);
        self.brokers.adopt_nodes(from, &self.metadata);
        let mut incomplete = outdated;
        for topic in recreated {
            if let Some(fetch) = &mut self.fetch {
                fetch.handle_recreated(now, &topic);
            }
            if let Some(producer) = &mut self.producer {
                producer.handle_recreated(&topic.name, &mut self.brokers);
            }
            self.events.push(Event::TopicRecreated(topic));
        }
        if let Some(producer) = &mut self.producer {
            for error in &errors {
                incomplete |= producer.handle_topic_error(now, &error.name, error.code);
            }
            incomplete |= producer.update(&self.metadata, &mut self.brokers);
        }
        if let Some(fetch) = &mut self.fetch {
            incomplete |= fetch.handle_metadata(now, &self.metadata, &errors);
        }
        incomplete |= self.admin.handle_metadata(now, &self.metadata, &errors);
        self.send_waiting();
        if std::mem::take(&mut self.refresh.again) {
            // At once the first time; where each answer makes somebody ask again, at leisure.
            if self.refresh.backoff.failures() > 0 {
                return self.refresh_soon(now);
            }
            self.refresh.backoff.next(&mut self.brokers.rng);
            return self.request_metadata(now);
        }
        if std::mem::take(&mut self.refresh.again_soon) | incomplete {
            self.refresh_soon(now);
        } else {
            self.refresh.backoff.reset();
            self.refresh.at = self.settings.refresh_interval.map(|interval| now + interval);
            self.refresh.is_periodic = true;
        }
    }

    /// Leaves of an answer what it says of topics in use that aren't hidden. A topic in use that all topics of the cluster
    /// don't include is one that doesn't exist.
    fn pass_over_topics(&mut self, answer: &mut MetadataResponse) {
        let hidden = &self.settings.hidden_topics;
        if !hidden.is_empty() {
            answer.topics.retain(|topic| topic.name.as_deref().is_none_or(|name| !hidden.matches(name)));
        }
        if !std::mem::take(&mut self.refresh.of_all_topics) {
            return;
        }
        let mut missing = self.wanted_topics();
        missing.extend(self.metadata.topics.keys().cloned());
        answer.topics.retain(|topic| topic.name.as_deref().is_some_and(|name| missing.remove(name)));
        for name in missing.into_iter().filter(|name| !self.settings.hidden_topics.matches(name)) {
            answer.topics.push(Topic {
                name: Some(name.to_string()),
                error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                ..Topic::default()
            });
        }
    }

    /// The topics in use.
    fn wanted_topics(&self) -> BTreeSet<Arc<str>> {
        let mut names = BTreeSet::new();
        if let Some(producer) = &self.producer {
            names.extend(producer.topic_names().cloned());
        }
        if let Some(fetch) = &self.fetch {
            fetch.wanted_topics(&mut names);
        }
        names
    }

    /// When to give up on the known nodes (KIP-899).
    fn rebootstrap_at(&self) -> Option<Instant> {
        let after = self.settings.rebootstrap_after.filter(|_| !self.metadata.nodes.is_empty())?;
        self.refresh.failing_since.map(|since| since + after)
    }

    /// Forgets which nodes there are and starts again from the bootstrap servers.
    fn rebootstrap(&mut self, why: Error) {
        self.events.push(Event::Error(why));
        self.metadata.forget_nodes();
        self.events.set_controller_id(self.metadata.controller_id);
        self.brokers.start_again();
        // Whoever is asked now is not waited for.
        self.requests.sent.retain(|_, purpose| !matches!(purpose, Purpose::Metadata));
        self.requests.waiting.retain(|(.., purpose)| !matches!(purpose, Purpose::Metadata));
        self.refresh.under_way = false;
        self.refresh.failing_since = None;
    }

    fn handle_producer_id(&mut self, now: Instant, result: Result<Response, Error>) {
        let Some(producer) = &mut self.producer else { return };
        if let Some(event) = producer.handle_identity(now, result, &mut self.brokers) {
            self.events.push(event);
        }
    }

    // ---- requests

    /// Sends a request to where it may go, as soon as somebody there is up.
    fn route(&mut self, now: Instant, route: Route, request: RoutedRequest, purpose: Purpose) {
        self.note_fetched_from();
        match self.brokers.target(route, &self.metadata) {
            Some(key) => self.send(key, request, purpose),
            None => {
                // Metadata can wait for ever: it is what finds a broker.
                let deadline = match purpose {
                    Purpose::Metadata => Instant::FAR_FUTURE,
                    _ => now + request.timeout,
                };
                self.requests.waiting.push_back((deadline, route, request, purpose));
                self.brokers.find(&self.metadata);
            }
        }
    }

    fn note_fetched_from(&mut self) {
        if let Some(fetch) = &self.fetch {
            self.brokers.set_fetched_from(fetch.nodes());
        }
    }

    fn send(&mut self, key: BrokerKey, request: RoutedRequest, purpose: Purpose) {
        let token = self.requests.next_token;
        self.requests.next_token += 1;
        self.requests.sent.insert(token, purpose);
        let RoutedRequest { api, versions, timeout, encode } = request;
        self.brokers.mail(key, ToBroker::Request(ClusterRequest { token, api, versions, timeout, encode }));
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

    // ---- the end

    fn close(&mut self) {
        self.closing = true;
        self.admin.close();
        self.reminders.close();
        if let Some(fetch) = &mut self.fetch {
            fetch.close();
        }
        self.requests.waiting.clear();
        if let Some(producer) = &mut self.producer {
            producer.close();
        }
        if self.brokers.is_empty() {
            self.end();
        }
        self.brokers.close();
    }

    /// A part of the client panicked: ends what was asked of this owner, and fails what no broker has. The owner is of no
    /// use afterwards.
    pub fn abandon(&mut self) {
        self.closing = true;
        self.requests.waiting.clear();
        if let Some(producer) = &mut self.producer {
            producer.close();
            producer.abandon();
        }
        if let Some(fetch) = &mut self.fetch {
            fetch.close();
        }
        self.admin.close();
        self.reminders.close();
    }

    /// The last broker's owner is gone, and all partitions came back.
    fn end(&mut self) {
        if let Some(producer) = &mut self.producer {
            producer.end();
        }
        self.brokers.done();
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
