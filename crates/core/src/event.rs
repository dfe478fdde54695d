//! Events: errors and other notifications that belong to no call of the application.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, OnceLock},
    task::Waker,
    time::Duration,
};

use ottla_protocol::{uuid::Uuid, vocabulary::NodeId};

use crate::{
    error::Error,
    sync::{
        Mutex,
        atomic::{AtomicI32, Ordering},
    },
    waiters::{WaitPlace, Waiter, Waiters},
};

/// A notification for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A connection failed, or a broker violates the protocol. The client recovers by itself.
    Error(Error),
    /// A fatal producer error; every further `send` returns it.
    Fatal(Error),
    /// No broker can be reached at the moment. The client keeps trying.
    AllBrokersDown(Error),
    /// A topic was deleted and recreated under its old name. Offsets and sequence numbers of the old topic are invalid.
    TopicRecreated(RecreatedTopic),
    /// A broker throttles the client, or stops throttling it.
    Throttled(Throttle),
    /// The application has not polled for half of `max.poll.interval.ms`, or for four fifths of it: after the rest of it the
    /// consumer leaves its group.
    PollOverdue(PollOverdue),
    /// A transaction has been open for four fifths of `transaction.timeout.ms`.
    TransactionOverdue(TransactionOverdue),
    /// A broker reported a cluster ID that differs from the known one. The client adopts the new ID.
    ClusterChanged(ClusterChange),
    /// News of client telemetry (KIP-714).
    Telemetry(TelemetryEvent),
    /// Files of certificates or keys have changed, or the client's certificate expires soon.
    Credentials(CredentialsEvent),
}

/// A topic that was recreated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecreatedTopic {
    /// The topic's name.
    pub name: Arc<str>,
    /// The id of the topic that was deleted; zero if the brokers have no ids.
    pub old_id: Uuid,
    /// The id of the new topic; zero if the brokers have no ids.
    pub new_id: Uuid,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) | Self::Fatal(error) | Self::AllBrokersDown(error) => error.fmt(f),
            Self::TopicRecreated(RecreatedTopic { name, old_id, new_id }) => {
                write!(f, "{name}: the topic was deleted and recreated (ID {old_id}, now {new_id})")
            }
            Self::Throttled(throttle) => throttle.fmt(f),
            Self::PollOverdue(overdue) => overdue.fmt(f),
            Self::TransactionOverdue(overdue) => overdue.fmt(f),
            Self::ClusterChanged(change) => change.fmt(f),
            Self::Telemetry(news) => news.fmt(f),
            Self::Credentials(news) => news.fmt(f),
        }
    }
}

impl fmt::Display for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.millis {
            0 => write!(f, "{}: the broker throttles the client no longer", self.broker),
            millis => write!(f, "{}: the broker throttles the client for {millis} ms", self.broker),
        }
    }
}

/// News of client telemetry. None of it is an error of the application's calls.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TelemetryEvent {
    /// A broker assigned this client instance ID, under which it receives the client's metrics.
    Identified(Uuid),
    /// The client pushes no more metrics, for this reason.
    Stopped(Error),
}

impl fmt::Display for TelemetryEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identified(id) => write!(f, "client instance ID {id}"),
            Self::Stopped(error) => write!(f, "client metrics: {error}"),
        }
    }
}

/// News of a client's certificates and keys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CredentialsEvent {
    /// The files have changed and were read; new connections use them.
    Reloaded,
    /// The files have changed and can't be used, for this reason; new connections use what was read before.
    Refused(Error),
    /// The client's certificate expires soon, or has expired.
    Expiring {
        /// The certificate in words.
        certificate: String,
        /// At most this many days are left: 30, 7 or 1.
        days: i64,
        /// The end of its validity in UTC.
        at: String,
    },
}

impl fmt::Display for CredentialsEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reloaded => f.write_str("certificates and keys have changed; new connections use them"),
            Self::Refused(error) => write!(
                f,
                "certificates and keys have changed and can't be used, so that new connections use the old ones: {error}"
            ),
            Self::Expiring { certificate, days, at } => write!(
                f,
                "the client's certificate {certificate} expires at {at}, in {days} day{} or less: renew it",
                if *days == 1 { "" } else { "s" }
            ),
        }
    }
}

/// A change of the cluster ID: `bootstrap.servers` or the advertised listeners mix clusters, or another cluster took
/// over an address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterChange {
    /// The reporting broker's host and port.
    pub broker: String,
    /// The cluster ID that brokers reported before.
    pub known: String,
    /// The cluster ID that this broker reports.
    pub reported: String,
}

impl fmt::Display for ClusterChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { broker, known, reported } = self;
        write!(
            f,
            "{broker}: the broker belongs to cluster \"{reported}\", but earlier responses came from cluster \"{known}\"; \
             connect a client to the brokers of one cluster only (check bootstrap.servers and advertised.listeners)"
        )
    }
}

/// The application has not polled for half of `max.poll.interval.ms`, or for four fifths of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PollOverdue {
    /// The time since the last poll.
    pub since: Duration,
    /// `max.poll.interval.ms`: the consumer leaves its group this long after the last poll.
    pub limit: Duration,
}

impl PollOverdue {
    /// Creates the warning.
    pub const fn new(since: Duration, limit: Duration) -> Self {
        Self { since, limit }
    }

    /// Returns the time that is left for a poll.
    pub const fn time_left(&self) -> Duration {
        self.limit.saturating_sub(self.since)
    }
}

impl fmt::Display for PollOverdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the application has not polled for {} ms; {} ms after its last poll (max.poll.interval.ms) the consumer leaves \
             its group",
            self.since.as_millis(),
            self.limit.as_millis()
        )
    }
}

/// A transaction has been open for four fifths of `transaction.timeout.ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionOverdue {
    /// The time since the first partition or group was added.
    pub since: Duration,
    /// `transaction.timeout.ms`: shortly before that time the transaction can only be aborted.
    pub limit: Duration,
}

impl TransactionOverdue {
    pub(crate) const fn new(since: Duration, limit: Duration) -> Self {
        Self { since, limit }
    }
}

impl fmt::Display for TransactionOverdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the transaction has been open for {} ms; shortly before {} ms (transaction.timeout.ms) it can only be aborted",
            self.since.as_millis(),
            self.limit.as_millis()
        )
    }
}

/// A change of a broker's throttle time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Throttle {
    /// The broker's host and port.
    pub broker: String,
    /// The broker's node ID, if known.
    pub node_id: Option<i32>,
    /// The throttle time in milliseconds; zero when throttling ends.
    pub millis: u32,
}

/// The queue of a client's events for the application. It holds at most [`EventQueue::LIMIT`] events and drops the
/// oldest one beyond that. It also holds the cluster ID and the controller ID of the last metadata.
pub struct EventQueue {
    state: Mutex<State>,
    controller_id: AtomicI32,
    listener: OnceLock<Box<Listener>>,
}

/// A function that sees each event before it is queued, on the thread that reports it; it must not block.
pub type Listener = dyn Fn(&Event) + Send + Sync;

impl Default for EventQueue {
    fn default() -> Self {
        Self { state: Mutex::default(), controller_id: AtomicI32::new(-1), listener: OnceLock::new() }
    }
}

impl fmt::Debug for EventQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventQueue")
            .field("len", &self.len())
            .field("controller_id", &self.controller_id())
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    wakers: Waiters,
    cluster_id: Option<String>,
}

impl EventQueue {
    /// The highest number of queued events.
    pub const LIMIT: usize = 1000;

    /// Sets the function that sees each event, for logs. Later calls have no effect.
    pub fn listen(&self, listener: Box<Listener>) {
        let _ = self.listener.set(listener);
    }

    /// Appends an event.
    pub fn push(&self, event: Event) {
        if let Some(listener) = self.listener.get() {
            listener(&event);
        }
        let wakers = {
            let mut state = self.state.lock();
            if state.events.len() == Self::LIMIT {
                state.events.pop_front();
            }
            state.events.push_back(event);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes the oldest event.
    pub fn pop(&self) -> Option<Event> {
        self.state.lock().events.pop_front()
    }

    /// Returns the controller's node ID according to the last metadata; `None` if it named no controller.
    pub fn controller_id(&self) -> Option<i32> {
        NodeId::from_wire(self.controller_id.load(Ordering::Relaxed)).map(NodeId::get)
    }

    /// Stores the controller that the newest metadata names.
    pub fn set_controller_id(&self, id: Option<NodeId>) {
        self.controller_id.store(NodeId::to_wire(id), Ordering::Relaxed);
    }

    /// Returns the cluster ID; `None` until metadata reports one.
    pub fn cluster_id(&self) -> Option<String> {
        self.state.lock().cluster_id.clone()
    }

    /// Stores the cluster ID that a broker reported.
    pub fn set_cluster_id(&self, id: Option<&str>) {
        let mut state = self.state.lock();
        if id.is_some() && state.cluster_id.as_deref() != id {
            state.cluster_id = id.map(str::to_owned);
        }
    }

    /// Returns the number of queued events.
    pub fn len(&self) -> usize {
        self.state.lock().events.len()
    }

    /// Returns true if no event is queued.
    pub fn is_empty(&self) -> bool {
        self.state.lock().events.is_empty()
    }

    /// Registers a waker for the next event. Returns true if the queue is empty.
    pub fn register(self: &Arc<Self>, waiter: &mut Waiter<Self>, waker: &Waker) -> bool {
        waiter.register(self, waker);
        self.is_empty()
    }
}

impl WaitPlace for EventQueue {
    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R {
        act(&mut self.state.lock().wakers)
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use super::*;

    #[test]
    fn event_is_shown_as_a_sentence() {
        let throttle = |millis| Throttle { broker: "a:9092".to_owned(), node_id: Some(1), millis };
        let shown = [
            Event::Throttled(throttle(5)).to_string(),
            Event::Throttled(throttle(0)).to_string(),
            Event::Error(crate::error::Error::new(crate::error::ErrorKind::Closed, "")).to_string(),
        ];
        let expected = [
            "a:9092: the broker throttles the client for 5 ms",
            "a:9092: the broker throttles the client no longer",
            "the client is closed",
        ];
        assert_eq!(shown, expected);
    }
}
