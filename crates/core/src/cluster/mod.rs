//! The cluster actor: manages the state of the cluster as a whole. There is one per client.
//!
//! ```text
//!  application ── commands ──► ClusterCore ── ToBroker ───► BrokerCore (one per connection)
//!                               │  metadata, refresh   ◄─── ToCluster
//!                               │  brokers, coordinators, requests
//!                               └─ parts: ProducerPlacement, Transactions, FetchManager, Group, ShareGroup, StreamsGroup,
//!                                  AdminCalls, Telemetry
//! ```
//!
//! The actor itself manages broker actors, metadata refreshes and the routing of requests. Everything else is a `part`:
//! a machine with the same few methods, called from one loop, whose `Need`s the actor carries out.
//!
//! | file | what it holds |
//! |---|---|
//! | `parts` | the parts, and what they tell to one another; `contract::part` is their contract |
//! | `requests`, `unsent` | requests that wait, and why |
//! | `brokers`, `coordinators` | connections to nodes; the coordinators of groups and transactional IDs |
//! | `metadata_response`, `refresh` | the next view of the cluster; the schedule of metadata requests |
//! | [`command`], `reminders` | commands of the application; timers |
//! | `news` | what brokers say along with responses |
//! | `closing` | the end of broker actors and of the client |
//!
//! # Pitfalls
//!
//! - A cluster takes seconds to notice that a broker is down. Metadata requested when the connection broke still names
//!   the dead leader and looks complete (`unreachable_leader_requests_metadata_until_another_is_elected`).

mod brokers;
mod closing;
pub mod command;
pub(crate) mod controllers;
pub(crate) mod coordinators;
mod dispatch;
mod metadata_response;
mod news;
mod parts;
mod refresh;
pub mod reminders;
mod requests;
#[cfg(test)]
mod scripted;
mod settings;
mod statistics;
mod unsent;

use std::sync::Arc;

pub use self::settings::{ClusterSettings, StatisticsSettings};
use ottla_protocol::vocabulary::NodeId;

use self::{
    brokers::Brokers,
    command::{Command, CommandReader},
    coordinators::Coordinators,
    parts::Tell,
    refresh::Refresh,
    reminders::Reminders,
    requests::{Requests, Sent, Waiting},
};
use crate::{
    admin::AdminCalls,
    config::sasl::Mechanism,
    connection::Response,
    contract::{
        broker::{Broadcast, BrokerKey},
        metadata::Metadata,
        part::{Need, Part, RequestOwner, Urgency},
        route::{Route, RoutedRequest},
    },
    error::{Error, ErrorKind},
    event::{Event, EventQueue},
    fetch::{manager::FetchManager, shared::ConsumerShared},
    group::Group,
    machine::{Instant, earliest},
    message::{ClusterRequest, ConnectionMessage, ConnectionReport, ToBroker, ToCluster},
    produce::{placement::ProducerPlacement, shared::ProducerShared},
    repeats::Repeats,
    rng::Rng,
    sasl::refresh::TokenRefresh,
    share::ShareGroup,
    shown::quoted,
    stats::{Gather, metrics::ClientKind},
    streams::StreamsGroup,
    telemetry::Telemetry,
    txn::Transactions,
};

/// The cluster actor.
#[derive(Debug)]
pub struct ClusterCore {
    settings: ClusterSettings,
    commands: CommandReader,
    events: Arc<EventQueue>,
    metadata: Metadata,
    brokers: Brokers,
    coordinators: Coordinators,
    requests: Requests,
    /// Limits how often the same warning of a broker is reported.
    warnings: Repeats,
    /// Failed connections.
    failures: Repeats,
    refresh: Refresh,
    /// The location of each of the producer's partitions.
    producer: Option<ProducerPlacement>,
    /// The transactional producer.
    transactions: Option<Transactions>,
    /// The consumer's positions, and the broker that each partition is fetched from.
    fetch: Option<FetchManager>,
    /// The consumer's membership in its group.
    group: Option<Group>,
    /// The share consumer's membership in its group.
    share: Option<ShareGroup>,
    /// The membership in a streams group.
    streams: Option<StreamsGroup>,
    admin: AdminCalls,
    /// The metrics that brokers request.
    telemetry: Option<Telemetry>,
    reminders: Reminders,
    /// When to request a token, with OAUTHBEARER.
    tokens: Option<TokenRefresh>,
    /// When the actor ran for the first time, and when the next snapshot is due.
    began: Option<Instant>,
    statistics_at: Option<Instant>,
    /// The error of the last lost connection.
    last_down: Option<Error>,
    /// The contradiction in the last metadata response.
    contradiction: Option<String>,
    metadata_at: Option<Instant>,
    closing: bool,
}

/// A request of the cluster actor to its driver.
#[derive(Debug)]
pub enum ClusterOutput {
    /// Start a [`BrokerCore`](crate::broker::BrokerCore) under this key.
    StartBroker {
        /// The key of the broker actor.
        key: BrokerKey,
        /// The host's name or address.
        host: String,
        /// The port.
        port: u16,
        /// The node ID, if known.
        node_id: Option<NodeId>,
        /// The actor's random numbers.
        rng: Rng,
    },
    /// A message for a broker actor.
    ToBroker(BrokerKey, ToBroker),
    /// The client is closed and may be dropped.
    Done,
}

impl ClusterCore {
    /// Creates the cluster actor of a client without metadata.
    pub fn new(
        settings: ClusterSettings,
        producer: Option<Arc<ProducerShared>>,
        consumer: Option<Arc<ConsumerShared>>,
        commands: CommandReader,
        events: Arc<EventQueue>,
        mut rng: Rng,
    ) -> Self {
        let timeout = settings.request_timeout;
        let backoff = (settings.fast_refresh, settings.fast_refresh_max);
        let kind = match (&producer, &consumer, &settings.share) {
            (Some(_), ..) => ClientKind::Producer,
            (None, Some(_), _) => ClientKind::Consumer,
            (None, None, Some(_)) => ClientKind::ShareConsumer,
            (None, None, None) => ClientKind::Admin,
        };
        Self {
            refresh: Refresh::new(settings.refresh_interval, backoff, rng.fork()),
            coordinators: Coordinators::new(timeout, backoff, rng.fork()),
            admin: AdminCalls::new(timeout, backoff, rng.fork()).of_controllers(settings.of_controllers),
            transactions: Transactions::new(producer.as_ref(), timeout, &mut rng),
            producer: producer.map(|shared| ProducerPlacement::new(shared, timeout, rng.fork())),
            group: consumer
                .as_ref()
                .zip(settings.group.clone())
                .map(|(shared, of_group)| Group::new(Arc::clone(shared), of_group, rng.fork())),
            fetch: consumer.map(FetchManager::new),
            share: settings.share.clone().map(|shared| ShareGroup::new(shared, rng.fork())),
            streams: settings.streams.clone().map(|shared| StreamsGroup::new(shared, rng.fork())),
            telemetry: settings.telemetry.clone().map(|settings| Telemetry::new(settings, kind, rng.fork())),
            brokers: Brokers::new(settings.bootstrap.clone(), settings.rebootstrap_after.is_some(), rng),
            tokens: settings
                .sasl
                .as_ref()
                .filter(|sasl| sasl.settings().mechanism.needs_token())
                .map(|_| TokenRefresh::default()),
            settings,
            commands,
            events,
            metadata: Metadata::default(),
            requests: Requests::default(),
            warnings: Repeats::of_warnings(),
            failures: Repeats::of_failures(),
            reminders: Reminders::default(),
            began: None,
            statistics_at: None,
            last_down: None,
            contradiction: None,
            metadata_at: None,
            closing: false,
        }
    }

    /// Returns the client's view of the cluster.
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Handles the queued commands of the application.
    pub fn handle_wake(&mut self, now: Instant) {
        while let Some(command) = self.commands.pop() {
            self.handle_command(now, command);
            // A later command may rely on the messages of this one: statistics requested after a purge must arrive
            // after it.
            self.carry_out_needs(now, |_, _| {});
        }
        self.advance(now);
    }

    /// Handles a message from a broker actor.
    pub fn handle_message(&mut self, now: Instant, from: BrokerKey, message: ToCluster) {
        match message {
            ToCluster::Produce(report) => {
                if let Some(producer) = &mut self.producer {
                    producer.handle_report(now, report, &self.metadata);
                }
            }
            ToCluster::Fetch(report) => {
                if let Some(fetch) = &mut self.fetch {
                    fetch.handle_report(now, report);
                }
            }
            ToCluster::Share(report) => {
                if let Some(share) = &mut self.share {
                    share.handle_report(&report);
                }
            }
            ToCluster::Response { token, result } => self.handle_response(now, from, token, result),
            ToCluster::Connection(ConnectionReport::Features(features)) => {
                if let Some(transactions) = &mut self.transactions {
                    transactions.handle_features(from, features);
                }
            }
            ToCluster::Connection(ConnectionReport::Up) => self.handle_up(from),
            ToCluster::Connection(ConnectionReport::OffersTelemetry) => {
                self.brokers.set_offers_telemetry(from);
                if let Some(telemetry) = &mut self.telemetry {
                    telemetry.handle_broker(now);
                }
            }
            ToCluster::Connection(ConnectionReport::Down(error)) => self.handle_down(now, from, error),
            ToCluster::Connection(ConnectionReport::Idle { reconnects }) => {
                self.brokers.handle_idle(from, reconnects);
            }
            ToCluster::News(news) => self.handle_news(now, from, news),
        }
        self.advance(now);
    }

    /// Handles the timeouts that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.closing {
            return;
        }
        if let Some(is_periodic) = self.refresh.take_due(now) {
            self.request_metadata(now, is_periodic);
        }
        if self.rebootstrap_at().is_some_and(|at| at <= now) {
            let detail = "no known broker responded for metadata.recovery.rebootstrap.trigger.ms; starting again from \
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
        for late in self.requests.take_late(now) {
            let error = self.not_sent(&late.route);
            self.dispatch(now, late.owner, Err(error.with_api(late.request.api.name())));
        }
        if let (Some(tokens), Some(sasl)) = (&mut self.tokens, &self.settings.sasl)
            && tokens.take_due(now)
        {
            sasl.request_token();
        }
        self.brokers.handle_timeout(now, &self.metadata, self.requests.any_waiting());
        self.coordinators.handle_timeout(now);
        self.reminders.handle_timeout(now);
        let unreachable = self.last_down.clone().or_else(|| {
            let detail = "no server is known; set bootstrap.servers or add brokers";
            self.brokers.has_no_server().then(|| Error::new(ErrorKind::AllBrokersDown, detail))
        });
        for part in self.parts_mut() {
            part.handle_timeout(now, unreachable.as_ref());
        }
        self.advance(now);
    }

    /// Returns when to call [`ClusterCore::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.closing {
            return None;
        }
        // The actor runs at once, even if nothing is asked of it: it connects, and the statistics interval begins.
        let first = self.began.is_none().then_some(Instant::ZERO);
        let own = [
            self.refresh.poll_timeout(),
            self.brokers.poll_timeout(),
            self.requests.poll_timeout(),
            self.coordinators.poll_timeout(),
            self.reminders.poll_timeout(),
            self.rebootstrap_at(),
            self.statistics_at,
            self.tokens.as_ref().and_then(TokenRefresh::poll_timeout),
            first,
        ];
        let parts = self.parts().filter_map(|part| part.poll_timeout());
        parts.fold(own.into_iter().flatten().min(), |first, at| earliest(first, Some(at)))
    }

    /// Returns the next action for the driver.
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
            Command::Flush => self.brokers.send_all(|| Broadcast::Flush.into()),
            Command::Purge(purge) => {
                if let Some(producer) = &mut self.producer {
                    producer.purge(purge);
                }
            }
            Command::Admin(call) => self.admin.start(now, call),
            Command::Pause { partitions, is_paused } => {
                if let Some(producer) = &mut self.producer {
                    for partition in partitions {
                        producer.pause(partition, is_paused, &self.metadata);
                    }
                }
            }
            Command::AddServers(servers) => self.brokers.add_servers(now, servers, &self.metadata),
            Command::Statistics(gather) => self.gather_statistics(now, gather),
            Command::Remind(reminder) => self.reminders.add(reminder),
            Command::Fetch(command) => {
                if let Some(fetch) = &mut self.fetch {
                    fetch.handle_command(now, command);
                }
            }
            Command::Transaction(command) => {
                if let Some(transactions) = &mut self.transactions {
                    transactions.handle_command(now, command);
                }
            }
            Command::Group(command) => {
                if let Some(group) = &mut self.group {
                    group.handle_command(now, command);
                }
            }
            Command::Share(command) => {
                if let Some(share) = &mut self.share {
                    share.handle_command(now, command);
                }
            }
            Command::Streams(command) => {
                if let Some(streams) = &mut self.streams {
                    streams.handle_command(now, command);
                }
            }
            Command::Credentials => {
                let token = self.settings.sasl.as_ref().and_then(|sasl| sasl.token());
                if let (Some(tokens), Some(token)) = (&mut self.tokens, token) {
                    tokens.handle_token(now, token.expires_at());
                }
                self.brokers.send_all(|| ToBroker::Connection(ConnectionMessage::Credentials));
            }
            Command::SaslReply => {
                self.brokers.send_all(|| ToBroker::Connection(ConnectionMessage::SaslReply))
            }
            Command::RequestToken => {
                self.settings.sasl.iter().for_each(|sasl| sasl.request_token());
            }
            Command::TokenFailed { reason, retry_in } => {
                if let Some(tokens) = &mut self.tokens
                    && tokens.handle_failure(now, &reason, retry_in)
                {
                    let mechanism = self.settings.sasl.as_ref().map(|sasl| sasl.settings().mechanism);
                    let what = match mechanism {
                        Some(Mechanism::AwsMskIam) => "keys for SASL AWS_MSK_IAM",
                        _ => "SASL OAUTHBEARER token",
                    };
                    let detail = format!("Failed to acquire {what}: {}", quoted(&reason));
                    self.events.push(Event::Error(Error::new(ErrorKind::Authentication, detail)));
                }
            }
            Command::Telemetry(command) => {
                if let Some(telemetry) = &mut self.telemetry {
                    telemetry.handle_command(now, command);
                }
            }
            Command::Close { timeout } => self.begin_close(now, timeout),
        }
    }

    /// Carries out what the parts need.
    fn advance(&mut self, now: Instant) {
        let is_first = self.began.is_none();
        if is_first {
            self.began = Some(now);
            self.settings.wrong_servers.drain(..).for_each(|event| self.events.push(event));
            self.statistics_at = self.settings.statistics.as_ref().map(|settings| now + settings.interval);
        }
        if self.closing {
            return;
        }
        self.carry_out_needs(now, |part, metadata| part.advance(now, metadata));
        while let Some(request) = self.coordinators.poll_request() {
            self.route(now, Route::Any, request, RequestOwner::Coordinators);
        }
        // The client connects before the application asks for anything: a wrong address is reported early, and the first
        // request need not wait for the connection.
        if is_first && !self.refresh.is_in_flight() {
            self.refresh_now(now);
        }
        if self.requests.any_waiting() && !self.brokers.any_up() {
            self.brokers.find(now, &self.metadata);
        }
        if self.telemetry.as_ref().is_some_and(Telemetry::has_ended) {
            self.close();
        }
    }

    /// Carries out what the parts need after `advance`. The parts behind one that commands another have to handle the command
    /// before they send anything.
    fn carry_out_needs(&mut self, now: Instant, advance: impl Fn(&mut dyn Part, &Metadata)) {
        let mut has_commands = true;
        while has_commands && !self.closing {
            let mut needs = Vec::new();
            let (metadata, mut parts) = self.metadata_and_parts();
            has_commands = parts.any(|part| {
                advance(part, metadata);
                let begin = needs.len();
                needs.extend(std::iter::from_fn(|| part.poll_any_need()));
                needs[begin..].iter().any(Need::is_command)
            });
            drop(parts);
            for need in needs {
                self.carry_out(now, need);
            }
        }
    }

    fn carry_out(&mut self, now: Instant, need: Need<Tell>) {
        match need {
            Need::Metadata(Urgency::Now) => self.refresh_now(now),
            Need::Metadata(Urgency::Soon) => self.refresh_soon(now),
            Need::Request { route, request, owner } => self.route(now, route, request, owner),
            Need::Tell(Tell::Broker(node, message)) => match self.brokers.of_node(node, &self.metadata) {
                Some(key) => self.brokers.send(key, message),
                None => debug_assert!(false, "a part sent a message to node {node}, which metadata lacks"),
            },
            Need::Tell(Tell::Fetch(command)) => {
                if let Some(fetch) = &mut self.fetch {
                    fetch.handle_command(now, command);
                }
            }
            Need::CheckMembership => {
                if let Some(group) = &mut self.group {
                    group.check_membership(now);
                }
            }
            Need::Purge(purge) => self.producer.iter_mut().for_each(|producer| producer.purge(purge)),
            Need::StopProducer(error) => {
                if let Some(producer) = &mut self.producer {
                    producer.stop(error);
                }
            }
            Need::Broadcast(broadcast) => self.brokers.send_all(|| broadcast.into()),
            Need::Event(event) => self.events.push(event),
            Need::TelemetrySnapshot => {
                let commands = Arc::clone(self.commands.queue());
                let sink = Arc::new(move |snapshot| commands.push_snapshot(snapshot));
                self.gather_statistics(now, Arc::new(Gather::for_push(sink)));
            }
        }
    }

    // ---- connections

    fn handle_up(&mut self, from: BrokerKey) {
        self.last_down = None;
        self.brokers.handle_up(from);
        self.send_waiting();
    }

    fn handle_down(&mut self, now: Instant, from: BrokerKey, error: Error) {
        let Some(loss) = self.brokers.handle_down(from, &self.metadata) else { return };
        let node = self.brokers.node_id(from);
        let mut has_partitions = false;
        if let (Some(node), Some(producer)) = (node, &self.producer) {
            has_partitions |= producer.sends_to(node);
        }
        if let (Some(node), Some(share)) = (node, &self.share) {
            has_partitions |= share.nodes().contains(&node);
        }
        if let (Some(node), Some(fetch)) = (node, &mut self.fetch) {
            has_partitions |= fetch.nodes().contains(&node);
            fetch.handle_unreachable(node);
        }
        self.last_down = (!self.brokers.any_up()).then(|| error.clone());
        if self.handle_misrouted(now, from, &error) {
            return;
        }
        // Partitions of the broker may have moved. A cluster takes seconds to notice that a broker is gone, so every attempt
        // to connect that fails asks again. A server that is only probed in search of any broker is not a reason to ask.
        if loss.was_reachable || has_partitions || self.brokers.any_up() {
            self.refresh_soon(now);
        }
        if let Some(tried) = loss.all_down {
            let detail = format!("servers tried: {tried}; the last error: {error}");
            self.events.push(Event::AllBrokersDown(Error::new(ErrorKind::AllBrokersDown, detail)));
        }
        self.brokers.find_another(now, from, &self.metadata, self.requests.any_waiting());
    }

    // ---- requests

    /// Sends a request by its route, as soon as a broker there can take it.
    fn route(&mut self, now: Instant, route: Route, request: RoutedRequest, owner: RequestOwner) {
        // Metadata requests have no deadline: they are needed to find a broker.
        let is_free = owner == RequestOwner::Metadata;
        let deadline = if is_free { Instant::FAR_FUTURE } else { now + request.timeout };
        let waiting = Waiting { deadline, route: self.past_standby(route, owner), request, owner };
        if let Some(waiting) = self.try_send(waiting) {
            if waiting.route == Route::Telemetry {
                let error = self.not_sent(&waiting.route);
                self.dispatch(now, waiting.owner, Err(error));
                return;
            }
            let is_unknown = self.is_unknown(&waiting.route);
            self.requests.wait(waiting);
            self.brokers.find(now, &self.metadata);
            // The response to a refresh in flight may name the node; if it does not, `handle_metadata` keeps asking.
            if is_unknown && !self.refresh.is_in_flight() {
                self.refresh_now(now);
            }
        }
    }

    /// Sends the waiting requests whose brokers are known now.
    fn send_waiting(&mut self) {
        for waiting in self.requests.take_waiting() {
            let waiting = self.with_current_topics(waiting);
            if let Some(waiting) = self.try_send(waiting) {
                self.requests.wait(waiting);
            }
        }
    }

    /// Sends a request, or returns it if its broker is unknown or not connected.
    fn try_send(&mut self, waiting: Waiting) -> Option<Waiting> {
        if let Some(fetch) = &self.fetch {
            self.brokers.set_fetched_from(fetch.nodes());
        } else if let Some(share) = &self.share {
            self.brokers.set_fetched_from(share.nodes().clone());
        }
        let (key, coordinator) = match &waiting.route {
            route @ (Route::Coordinator(requested) | Route::Rebalance(requested)) => {
                let Some(found) = self.coordinators.find(requested) else { return Some(waiting) };
                (Some(self.brokers.coordinator(&found, route)), Some((requested.clone(), found.node)))
            }
            route => (self.brokers.target(route, &self.metadata), None),
        };
        let Some(key) = key else { return Some(waiting) };
        let token = self.requests.sent(Sent { owner: waiting.owner, coordinator });
        let RoutedRequest { api, versions, timeout, encode } = waiting.request;
        self.brokers.send(key, ToBroker::Request(ClusterRequest { token, api, versions, timeout, encode }));
        None
    }

    fn handle_response(
        &mut self,
        now: Instant,
        from: BrokerKey,
        token: u64,
        result: Result<Response, Error>,
    ) {
        let Some(sent) = self.requests.take(token) else { return };
        if sent.owner == RequestOwner::Metadata {
            return self.handle_metadata(now, from, result);
        }
        if let (RequestOwner::Admin(request), Some((key, _))) = (sent.owner, &sent.coordinator)
            && let Some(coordinator) = self.coordinators.find(key)
        {
            self.admin.handle_coordinator(request, &coordinator);
        }
        let has_responded = result.is_ok();
        let lost = self.dispatch(now, sent.owner, result);
        if let Some((key, node)) = sent.coordinator {
            if lost || !has_responded {
                self.coordinators.invalidate(now, &key, node);
            } else {
                self.coordinators.confirm(&key);
            }
        }
    }
}
