//! Client telemetry (KIP-714): pushes metrics to brokers whose operator subscribed to them.
//!
//! [`Telemetry`] is a part of the cluster actor. It does nothing, and has no timer, until a connected broker offers the two
//! APIs, which brokers without a metrics plugin don't.
//!
//! ```text
//!  connection ── OffersTelemetry ──► Exchange ── Ask ─────► GetTelemetrySubscriptions ──► Subscription
//!                                       │
//!                                       ├── Gather ──► snapshot of the statistics ──► Registry ──► points
//!                                       └── Push ────► PushTelemetry ◄── compressed ◄── otlp ◄──────┘
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `exchange` | the state machine: when to ask, when to push, the reactions to errors, the last push |
//! | `subscription` | what a broker subscribed to, from its response |
//! | [`registry`] | metrics from a snapshot: sums, rates, temporality |
//! | `otlp` | the encoding of metrics in protobuf |
//! | [`settings`] | the settings from the configuration |
//!
//! [`stats::metrics`](crate::stats::metrics) is the table of metrics.
//!
//! # Pitfalls
//!
//! - A push of unknown outcome may have arrived. Its increases are not sent again, because they would count twice
//!   (`increases_of_a_lost_push_are_not_sent_twice`).
//! - Requests for metrics must not keep an idle connection open, nor open one (`telemetry_does_not_keep_a_connection`).

pub mod application;
mod exchange;
mod otlp;
pub mod registry;
pub mod settings;
mod subscription;

#[cfg(all(test, not(ottla_loom)))]
mod scripted;

use std::collections::VecDeque;
use std::convert::Infallible;

use ottla_protocol::{
    api::ApiKey,
    compress::{self, Compression},
    error_code::ErrorCode,
    generated::{
        get_telemetry_subscriptions::{GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse},
        push_telemetry::{PushTelemetryRequest, PushTelemetryResponse},
    },
    primitive::Reader,
    uuid::Uuid,
};

use self::{
    application::{ApplicationPoint, ApplicationReader, Totals},
    exchange::{Exchange, Failure, Step},
    registry::{Bases, MetricPoint, Registry},
    settings::TelemetrySettings,
    subscription::Subscription,
};
use crate::{
    completion::Completion,
    connection::Response,
    contract::{
        metadata::Metadata,
        part::{Interest, MetadataChanges, Need, Needs, Part, RequestOwner, SnapshotTime, TelemetryRequest},
        route::{Route, RoutedRequest},
    },
    error::{Error, ErrorKind},
    event::{Event, TelemetryEvent},
    machine::Instant,
    rng::Rng,
    states::See,
    stats::{Statistics, Window, metrics::ClientKind},
};

/// A command for client telemetry.
#[derive(Debug)]
pub enum TelemetryCommand {
    /// Complete with the client instance ID as soon as a broker has assigned one.
    InstanceId(Completion<Uuid>),
    /// The snapshot of the statistics for a push.
    Snapshot(Box<Statistics>),
}

/// Client telemetry.
#[derive(Debug)]
pub struct Telemetry {
    settings: TelemetrySettings,
    exchange: Exchange,
    registry: Registry,
    application: ApplicationReader,
    instance_id: Option<Uuid>,
    /// Calls that wait for the client instance ID.
    waiting: Vec<Completion<Uuid>>,
    /// The push that is being made or in flight.
    push: Option<Push>,
    /// The number of the last request; responses to earlier ones are ignored.
    number: u64,
    /// Metrics that were left out because the broker takes no more bytes.
    drops: u64,
    needs: VecDeque<Need>,
}

/// A push.
#[derive(Debug)]
struct Push {
    codec: Compression,
    bytes: Vec<u8>,
    /// The values to which the next increases refer.
    bases: Bases,
    totals: Totals,
}

impl Telemetry {
    /// Creates the part of a client of this kind.
    pub fn new(settings: TelemetrySettings, kind: ClientKind, rng: Rng) -> Self {
        Self {
            settings,
            exchange: Exchange::new(rng),
            registry: Registry::new(kind),
            application: ApplicationReader::default(),
            instance_id: None,
            waiting: Vec::new(),
            push: None,
            number: 0,
            drops: 0,
            needs: VecDeque::new(),
        }
    }

    /// Carries out a command.
    pub(crate) fn handle_command(&mut self, now: Instant, command: TelemetryCommand) {
        match command {
            TelemetryCommand::InstanceId(done) => match self.instance_id {
                Some(id) => done.complete(id),
                None if self.exchange.is_off() => drop(done),
                None => {
                    self.waiting.retain(Completion::is_awaited);
                    self.waiting.push(done);
                }
            },
            TelemetryCommand::Snapshot(statistics) => self.handle_snapshot(now, &statistics),
        }
    }

    /// Handles a connection to a broker that takes client metrics.
    pub(crate) fn handle_broker(&mut self, now: Instant) {
        self.exchange.handle_broker(now);
    }

    /// Begins to close: a client that pushes metrics pushes once more, until the deadline. Returns false if there is
    /// nothing to push.
    pub(crate) fn begin_close(&mut self, now: Instant, deadline: Instant) -> bool {
        self.exchange.begin_close(now, deadline)
    }

    /// Returns true if the last push has ended.
    pub(crate) const fn has_ended(&self) -> bool {
        self.exchange.has_ended()
    }

    /// Handles a response, or the error instead of one. Returns true if the broker does not take client metrics after
    /// all.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        request: TelemetryRequest,
        result: Result<Response, Error>,
    ) -> bool {
        let (TelemetryRequest::Subscription(number) | TelemetryRequest::Push(number)) = request;
        if number != self.number {
            return false;
        }
        let result = result.map_err(|error| Failure::of(&error));
        match request {
            TelemetryRequest::Subscription(_) => self.handle_subscription(now, result),
            TelemetryRequest::Push(_) => self.handle_pushed(now, result),
        }
        self.exchange.take_refused_broker()
    }

    fn handle_subscription(&mut self, now: Instant, result: Result<Response, Failure>) {
        let response = result.and_then(|response| {
            let mut reader = Reader::new(response.body());
            GetTelemetrySubscriptionsResponse::decode(&mut reader, response.request.version)
                .map_err(|_| Failure::BadResponse)
        });
        let outcome = response.and_then(|response| match response.error_code {
            ErrorCode::NONE if response.client_instance_id.is_zero() => Err(Failure::BadResponse),
            ErrorCode::NONE => {
                let refused = self.exchange.refused_codecs();
                let subscription = Subscription::new(&response, self.registry.kind(), refused);
                Ok((response.client_instance_id, subscription))
            }
            code => Err(Failure::Code(code)),
        });
        let outcome = outcome.map(|(instance_id, subscription)| {
            if self.instance_id.is_none() {
                self.instance_id = Some(instance_id);
                self.waiting.drain(..).for_each(|done| done.complete(instance_id));
                let subscribed = TelemetryEvent::Identified(instance_id);
                self.needs.push_back(Need::Event(Event::Telemetry(subscribed)));
            }
            subscription
        });
        let outcome = self.exchange.handle_subscription(now, outcome);
        self.stop_if(outcome, ApiKey::GetTelemetrySubscriptions);
    }

    fn handle_snapshot(&mut self, now: Instant, statistics: &Statistics) {
        if !self.exchange.handle_snapshot() {
            return;
        }
        let Some(subscription) = self.exchange.subscription() else { return };
        let clock = |at| self.settings.wall_clock.unix_nanos(at);
        let (mut points, bases) = self.registry.read(
            now,
            &clock,
            statistics,
            &subscription.metrics,
            subscription.temporality,
            Window::since_push,
        );
        let (mut of_application, errors, totals) = self.application.read(
            &self.settings.application,
            &subscription.prefixes,
            subscription.temporality,
            clock(now),
        );
        self.needs.extend(errors.into_iter().map(|error| Need::Event(Event::Error(error))));
        let all = points.len() + of_application.len();
        let (codec, bytes) = self.encode(&mut points, &mut of_application, subscription, statistics);
        self.drops += (all - points.len() - of_application.len()) as u64;
        self.push = Some(Push { codec, bytes, bases, totals });
    }

    /// Encodes and compresses as many of the points as fit into a push, and removes the others: those of the application first.
    fn encode(
        &self,
        points: &mut Vec<MetricPoint>,
        of_application: &mut Vec<ApplicationPoint>,
        subscription: &Subscription,
        statistics: &Statistics,
    ) -> (Compression, Vec<u8>) {
        let limit = subscription.max_bytes.min(self.exchange.size_limit());
        loop {
            if points.is_empty() && of_application.is_empty() {
                return (Compression::None, Vec::new());
            }
            let kind = self.registry.kind();
            let plain = otlp::encode(points, of_application, kind, &self.settings, &statistics.member_id);
            // Brokers limit the decompressed size, too.
            if plain.len() <= limit {
                let mut bytes = Vec::new();
                let codec = subscription.codec;
                let compressed =
                    compress::compress(codec, None, std::iter::once(&plain[..]), &mut bytes).is_ok();
                if compressed && bytes.len() <= limit {
                    return (codec, bytes);
                }
                return (Compression::None, plain);
            }
            match of_application.len() {
                0 => points.truncate(points.len() / 2),
                count => of_application.truncate(count / 2),
            }
        }
    }

    fn handle_pushed(&mut self, now: Instant, result: Result<Response, Failure>) {
        let Some(push) = self.push.take() else { return };
        let code = result.and_then(|response| {
            let mut reader = Reader::new(response.body());
            PushTelemetryResponse::decode(&mut reader, response.request.version)
                .map(|response| response.error_code)
                .map_err(|_| Failure::BadResponse)
        });
        let outcome = match code {
            Ok(ErrorCode::NONE) => Ok(()),
            Ok(code) => Err(Failure::Code(code)),
            Err(failure) => Err(failure),
        };
        // Increases of a push that may have arrived must not count twice.
        if matches!(outcome, Ok(()) | Err(Failure::Lost)) {
            self.registry.confirm(push.bases);
            self.application.confirm(push.totals);
        }
        let outcome = self.exchange.handle_pushed(now, push.bytes.len(), outcome);
        self.stop_if(outcome, ApiKey::PushTelemetry);
    }

    /// Ends telemetry for good after an error that no repetition can mend.
    fn stop_if(&mut self, outcome: Result<(), Failure>, api: ApiKey) {
        let Err(failure) = outcome else { return };
        self.waiting.clear();
        let detail = "the client pushes no more metrics; enable.metrics.push=false avoids the attempt";
        let error = match failure {
            Failure::Code(code) => Error::broker(code, Some(detail)),
            _ => Error::new(ErrorKind::BadResponse, detail),
        };
        let stopped = TelemetryEvent::Stopped(error.with_api(api.name()));
        self.needs.push_back(Need::Event(Event::Telemetry(stopped)));
    }

    fn carry_out_steps(&mut self) {
        while let Some(step) = self.exchange.poll_step() {
            match step {
                Step::Ask => {
                    self.number += 1;
                    let request = GetTelemetrySubscriptionsRequest {
                        client_instance_id: self.instance_id.unwrap_or(Uuid::ZERO),
                    };
                    let owner = TelemetryRequest::Subscription(self.number);
                    self.send(
                        owner,
                        ApiKey::GetTelemetrySubscriptions,
                        Box::new(move |version, out| request.encode(version, out)),
                    );
                }
                Step::Gather => self.needs.push_back(Need::TelemetrySnapshot),
                Step::Push { is_last } => self.send_push(is_last),
            }
        }
    }

    fn send_push(&mut self, is_last: bool) {
        let (Some(push), Some(subscription)) = (&mut self.push, self.exchange.subscription()) else { return };
        self.number += 1;
        let request = PushTelemetryRequest {
            client_instance_id: self.instance_id.unwrap_or(Uuid::ZERO),
            subscription_id: subscription.id,
            terminating: is_last,
            compression_type: push.codec.id().cast_signed(),
            metrics: push.bytes.clone(),
        };
        let owner = TelemetryRequest::Push(self.number);
        self.send(owner, ApiKey::PushTelemetry, Box::new(move |version, out| request.encode(version, out)));
    }

    fn send(&mut self, owner: TelemetryRequest, api: ApiKey, encode: crate::contract::route::EncodeBody) {
        let request =
            RoutedRequest { api, versions: api.versions(), timeout: self.settings.request_timeout, encode };
        let owner = RequestOwner::Telemetry(owner);
        self.needs.push_back(Need::Request { route: Route::Telemetry, request, owner });
    }
}

impl Part for Telemetry {
    fn states(&self, see: &mut See<'_>) {
        self.exchange.states(see);
    }

    fn handle_metadata(&mut self, _now: Instant, _metadata: &Metadata, _changes: &MetadataChanges) -> bool {
        false
    }

    fn handle_timeout(&mut self, now: Instant, _unreachable: Option<&Error>) {
        self.exchange.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.exchange.poll_timeout()
    }

    fn advance(&mut self, now: Instant, _metadata: &Metadata) {
        self.registry.begin(now);
        self.carry_out_steps();
    }

    fn add_topics(&self, _topics: &mut Interest) {}

    fn add_statistics(&mut self, _at: SnapshotTime, statistics: &mut Statistics) {
        statistics.telemetry_drops = i64::try_from(self.drops).unwrap_or(i64::MAX);
    }

    fn close(&mut self) {
        self.exchange.end();
        self.waiting.clear();
        self.needs.clear();
        self.push = None;
    }
}

impl Needs for Telemetry {
    type Message = Infallible;

    fn poll_need(&mut self) -> Option<Need> {
        self.needs.pop_front()
    }
}

/// Returns the requests that telemetry sends, for the test that encodes every request.
#[cfg(all(test, not(ottla_loom)))]
pub(crate) fn sample_requests() -> Vec<RoutedRequest> {
    scripted::sample_requests()
}
