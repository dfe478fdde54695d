//! Log lines of a client, through the `log` facade (feature `log`) or as events of `tracing` (feature `tracing`).
//!
//! | what | target | level |
//! |---|---|---|
//! | fatal errors, no broker reachable | `ottla` | error |
//! | other events of the client, warnings about the configuration | `ottla` | warn |
//! | the contexts of the property `debug` | `ottla::broker`, `ottla::fetch` and so on | debug |
//!
//! Lines have the fields `client`, `broker`, `api`, `topic`, `partition` and others as far as they apply. Without `debug`
//! nothing is observed, which costs a branch per request. No line is written while a lock is held.

mod contexts;
#[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "fewer receivers read fewer fields"))]
mod line;
mod sink;
#[cfg(feature = "log")]
mod to_log;
#[cfg(feature = "tracing")]
mod to_tracing;

use std::{fmt, sync::Arc, time::Duration};

use ottla_core::{
    config::RawConfig,
    error::ErrorKind,
    event::{CredentialsEvent, Event, Listener, TelemetryEvent},
    fetch::position::Offset,
    observer::{Exchange, Observer, Peer},
    produce::report::{DeliveryBatch, DeliverySink},
};

pub(crate) use self::contexts::Context;
use self::{
    contexts::Contexts,
    line::{Level, Line, Origin},
    sink::LoggedSink,
};

/// Writes the log lines of a client.
#[derive(Debug)]
pub struct Logger {
    origin: Origin,
    contexts: Contexts,
}

impl Logger {
    /// The logger of a client of this name and configuration.
    pub(crate) fn new(client: String, config: &RawConfig) -> Arc<Self> {
        let contexts = match line::IS_ON {
            true => Contexts::parse(config.get("debug").unwrap_or_default()),
            false => Contexts::default(),
        };
        Arc::new(Self { origin: Origin::new(client), contexts })
    }

    /// Returns the client's name.
    pub(crate) fn client(&self) -> &str {
        &self.origin.client
    }

    /// Returns a function that logs the client's events; `None` without the features.
    pub(crate) fn listener(this: &Arc<Self>) -> Option<Box<Listener>> {
        let this = Arc::clone(this);
        line::IS_ON.then(|| Box::new(move |event: &Event| this.event(event)) as Box<Listener>)
    }

    /// Returns true if `debug` selects nothing: then only events are logged.
    pub(crate) const fn is_silent(&self) -> bool {
        self.contexts.is_empty()
    }

    /// Returns an observer that logs and passes everything on to `other`; `other` itself if `debug` selects nothing.
    pub(crate) fn beside(this: &Arc<Self>, other: Option<Arc<dyn Observer>>) -> Option<Arc<dyn Observer>> {
        if this.contexts.is_empty() {
            return other;
        }
        Some(Arc::new(LoggedConnections { logger: Arc::clone(this), other }))
    }

    /// Returns a sink that logs and passes everything on to `sink`; `sink` itself if `debug` does not select `msg`.
    pub(crate) fn before(this: &Arc<Self>, sink: Arc<dyn DeliverySink>) -> Arc<dyn DeliverySink> {
        if this.contexts.has(Context::Msg) { Arc::new(LoggedSink::new(Arc::clone(this), sink)) } else { sink }
    }

    /// Logs the start of the client, and the warnings about its configuration.
    pub(crate) fn started(&self, warnings: &[String]) {
        self.warn(warnings);
        self.debug(Context::Generic, |line| line.write(format_args!("client started")));
    }

    /// Logs warnings about the configuration.
    pub(crate) fn warn(&self, warnings: &[String]) {
        for warning in warnings {
            Line::new(Level::Warn, line::TARGET, "CONFWARN", &self.origin)
                .write(format_args!("configuration: {warning}"));
        }
    }

    /// Logs the end of the client.
    pub(crate) fn closed(&self) {
        self.debug(Context::Generic, |line| line.write(format_args!("client closed")));
    }

    /// Logs that a producer uses a topic.
    pub(crate) fn topic(&self, topic: &str) {
        self.debug(Context::Topic, |line| line.topic(topic).write(format_args!("topic \"{topic}\" is used")));
    }

    /// Logs what the application does with partitions of a consumer.
    pub(crate) fn partitions<'a>(
        &self,
        action: &str,
        partitions: impl IntoIterator<Item = (&'a str, i32, Option<Offset>)>,
    ) {
        if !self.contexts.has(Context::Consumer) {
            return;
        }
        for (topic, partition, offset) in partitions {
            let line = self.debug_line(Context::Consumer).topic(topic).partition(partition);
            match offset {
                Some(offset) => line.write(format_args!("{action} {topic} [{partition}] at {offset:?}")),
                None => line.write(format_args!("{action} {topic} [{partition}]")),
            }
        }
    }

    /// Logs the result of a batch.
    fn delivery(&self, batch: &DeliveryBatch) {
        self.debug(Context::Msg, |line| {
            let (topic, partition, count) = (batch.topic(), batch.partition(), batch.len());
            let line = line.topic(topic).partition(partition).number("records", count as i64);
            match (batch.error(), batch.base_offset()) {
                (Some(error), _) => {
                    line.write(format_args!("{count} records failed: {error}"));
                }
                (None, Some(offset)) => line.number("offset", offset).write(format_args!(
                    "{topic} [{partition}]: {count} records delivered from offset {offset} on"
                )),
                (None, None) => line.write(format_args!("{topic} [{partition}]: {count} records sent")),
            }
        });
    }

    fn event(&self, event: &Event) {
        match event {
            Event::Fatal(error) | Event::AllBrokersDown(error) => {
                self.line(Level::Error).error(error).write(format_args!("{error}"));
            }
            Event::Error(error) => {
                self.line(Level::Warn).error(error).write(format_args!("{error}"));
            }
            Event::TopicRecreated(recreated) => {
                let name = &*recreated.name;
                let text = "the topic was deleted and recreated; offsets of the old topic are invalid";
                self.line(Level::Warn).topic(name).write(format_args!("{name}: {text}"));
            }
            Event::ClusterChanged(change) => {
                self.line(Level::Warn).broker(&change.broker).write(format_args!("{change}"));
            }
            Event::Credentials(CredentialsEvent::Reloaded) => {
                self.line(Level::Info).write(format_args!("{}", CredentialsEvent::Reloaded));
            }
            Event::Credentials(news) => self.line(Level::Warn).write(format_args!("{news}")),
            Event::Telemetry(news @ TelemetryEvent::Stopped(_)) => {
                self.line(Level::Warn).write(format_args!("{news}"));
            }
            Event::Telemetry(news) => {
                self.debug(Context::Telemetry, |line| line.write(format_args!("{news}")));
            }
            Event::Throttled(throttle) => self.debug(Context::Broker, |line| {
                let millis = throttle.millis;
                line.broker(&throttle.broker)
                    .number("throttle_ms", i64::from(millis))
                    .write(format_args!("{}: throttled for {millis} ms", throttle.broker));
            }),
            Event::PollOverdue(overdue) => {
                self.line(Level::Warn).write(format_args!("{overdue}"));
            }
            Event::TransactionOverdue(overdue) => {
                self.line(Level::Warn).write(format_args!("{overdue}"));
            }
            other => self.line(Level::Warn).write(format_args!("{other:?}")),
        }
    }

    fn debug(&self, context: Context, write: impl FnOnce(Line<'_>)) {
        if self.contexts.has(context) {
            write(self.debug_line(context));
        }
    }

    fn line(&self, level: Level) -> Line<'_> {
        let facility = if level == Level::Error { "ERROR" } else { "EVENT" };
        Line::new(level, line::TARGET, facility, &self.origin)
    }

    fn debug_line(&self, context: Context) -> Line<'_> {
        Line::new(Level::Debug, context.target(), context.facility(), &self.origin)
    }

    /// Logs a request or its response: in the context of its API, and in `protocol`.
    fn exchange(&self, peer: &Peer<'_>, exchange: &Exchange, text: fmt::Arguments<'_>) {
        let context = Context::of_api(exchange.api);
        let context = if self.contexts.has(context) { context } else { Context::Protocol };
        self.debug(context, |line| {
            let Exchange { api, version, correlation_id, size } = *exchange;
            let peer = peer.to_string();
            line.broker(&peer)
                .api(api.name())
                .number("version", i64::from(version))
                .number("correlation_id", i64::from(correlation_id))
                .number("bytes", size as i64)
                .write(format_args!("{peer}: {text}"));
        });
    }
}

/// Logs what an observer sees, and passes it on to the application's observer.
#[derive(Debug)]
struct LoggedConnections {
    logger: Arc<Logger>,
    other: Option<Arc<dyn Observer>>,
}

impl Observer for LoggedConnections {
    fn request_sent(&self, peer: &Peer<'_>, request: &Exchange) {
        let (api, version, id) = (request.api.name(), request.version, request.correlation_id);
        self.logger.exchange(peer, request, format_args!("sent {api} v{version} ({id})"));
        if let Some(other) = &self.other {
            other.request_sent(peer, request);
        }
    }

    fn response_received(&self, peer: &Peer<'_>, response: &Exchange, round_trip: Duration) {
        let (api, version, id) = (response.api.name(), response.version, response.correlation_id);
        let micros = round_trip.as_micros();
        let text = format_args!("received {api} v{version} ({id}) after {micros} us");
        self.logger.exchange(peer, response, text);
        if let Some(other) = &self.other {
            other.response_received(peer, response, round_trip);
        }
    }

    fn response_lost(&self, peer: &Peer<'_>, request: &Exchange, why: ErrorKind) {
        let (api, version, id) = (request.api.name(), request.version, request.correlation_id);
        self.logger.exchange(peer, request, format_args!("no response to {api} v{version} ({id}): {why}"));
        if let Some(other) = &self.other {
            other.response_lost(peer, request, why);
        }
    }

    fn state_changed(&self, peer: &Peer<'_>, state: &'static str) {
        self.logger.debug(Context::Broker, |line| {
            let peer = peer.to_string();
            line.broker(&peer).text("state", state).write(format_args!("{peer}: connection state {state}"));
        });
        if let Some(other) = &self.other {
            other.state_changed(peer, state);
        }
    }

    fn connection_ended(&self, peer: &Peer<'_>, cause: &dyn fmt::Display) {
        self.logger.debug(Context::Broker, |line| {
            let peer = peer.to_string();
            line.broker(&peer).write(format_args!("{peer}: connection ended: {cause}"));
        });
        if let Some(other) = &self.other {
            other.connection_ended(peer, cause);
        }
    }

    fn thread_starts(&self, name: &str) {
        self.logger.debug(Context::Generic, |line| {
            line.text("thread", name).write(format_args!("thread {name} starts serving the client"));
        });
        if let Some(other) = &self.other {
            other.thread_starts(name);
        }
    }

    fn thread_ends(&self, name: &str) {
        self.logger.debug(Context::Generic, |line| {
            line.text("thread", name).write(format_args!("thread {name} stops serving the client"));
        });
        if let Some(other) = &self.other {
            other.thread_ends(name);
        }
    }
}
