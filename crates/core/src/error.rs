//! The errors of the client, grouped by the party at fault.

use std::{fmt, time::Duration};

use ottla_protocol::error_code::ErrorCode;

use crate::advice;

/// An error: its kind, what was tried, and where it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    context: Box<ErrorContext>,
}

/// The kind of an error. [`ErrorKind::culprit`] groups the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A broker responded with this error code.
    Broker(ErrorCode),
    /// A host name could not be resolved.
    Resolve,
    /// A connection could not be made.
    Connect,
    /// The proxy of `proxy.url` did not connect the client to the broker: it is not there, refuses, can't reach the broker, or is
    /// not a proxy.
    Proxy,
    /// A connection was lost.
    Disconnected,
    /// The TLS handshake failed, or the TLS connection broke: a certificate is refused, or the peers share no protocol.
    Tls,
    /// SASL failed: the broker refuses the credentials or the mechanism, or has not proved that it knows the password.
    Authentication,
    /// A broker did not respond to a request in time.
    RequestTimedOut,
    /// No broker could be reached.
    AllBrokersDown,
    /// The peer does not speak Kafka, or not as this client does: for example TLS or HTTP on a plaintext port.
    NotKafka,
    /// The peer's response can't be decoded or violates the protocol.
    BadResponse,
    /// A fetched batch is corrupt: its checksum or its lengths are wrong.
    BadBatch,
    /// The broker supports no version of an API that this client can use.
    UnsupportedVersion,
    /// A message waited in the queue longer than `message.timeout.ms`. It was not written.
    MessageTimedOutInQueue,
    /// A message was sent and not acknowledged within `message.timeout.ms`: it may have been written.
    MessageTimedOutInFlight,
    /// A message was removed from the queue by a purge.
    PurgedFromQueue,
    /// A message was purged while it was in flight: it may have been written.
    PurgedInFlight,
    /// The queue is full (`queue.buffering.max.messages` or `queue.buffering.max.kbytes`).
    QueueFull,
    /// A message is larger than `message.max.bytes`.
    MessageTooLarge,
    /// A message failed permanently, which leaves a gap in the sequence, and `enable.gapless.guarantee` is set.
    Gapless,
    /// The topic does not exist and was not created.
    UnknownTopic,
    /// The topic has no such partition.
    UnknownPartition,
    /// An argument or a property is invalid.
    InvalidArgument,
    /// The call is not allowed in this state.
    State,
    /// The client was closed.
    Closed,
    /// An offset is out of range and `auto.offset.reset` is `error`.
    OffsetReset,
    /// The partition's log was truncated below the consumer's position, and `auto.offset.reset` is `error`.
    LogTruncated,
    /// The topic was deleted and recreated under its old name.
    TopicRecreated,
    /// The record is valid, but the broker rejected other records of its batch (KIP-467).
    InvalidDifferentRecord,
    /// The deadline of the call passed.
    TimedOut,
    /// The producer was replaced by another one with the same `transactional.id`, or timed out.
    Fenced,
    /// Messages of a transaction were not delivered, so that it can't be committed.
    Inconsistent,
    /// Another call must be finished first.
    Conflict,
    /// The same call is in progress in another thread.
    PreviousInProgress,
    /// The client is not configured for the call.
    NotConfigured,
    /// The application did not poll within `max.poll.interval.ms`, and the consumer left its group.
    MaxPollExceeded,
    /// An assignor of the application panicked, or returned an assignment that breaks the rules.
    AssignorFailed,
    /// A function that the application passed to the client panicked.
    CallbackPanicked,
    /// An internal invariant of the client is violated. Please report it.
    Bug,
}

/// The party at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Culprit {
    /// The broker reported the error.
    Broker,
    /// The network, or the server at the other end.
    Network,
    /// The proxy between the client and its brokers, or its configuration.
    Proxy,
    /// The application or its configuration.
    Application,
    /// This library.
    Ottla,
}

/// Where an error happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorContext {
    /// The peer, as `host:port` or `host:port/node`.
    pub peer: Option<String>,
    /// The API that was called.
    pub api: Option<&'static str>,
    /// The topic concerned.
    pub topic: Option<String>,
    /// The partition concerned.
    pub partition: Option<i32>,
    /// The attempted operation, or the peer's message.
    pub detail: String,
    /// The code with which a broker would refuse the request, which was not sent.
    pub refusal: Option<ErrorCode>,
    /// The time until the client retries by itself.
    pub next_attempt: Option<Duration>,
    /// The call of the application that helps, if the kind does not say it.
    pub next_call: Option<NextCall>,
}

/// The call of the application that helps after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextCall {
    /// The same call again.
    Again,
    /// Continue the commit or the abort that is not finished: `Producer::resume_transaction`.
    ResumeTransaction,
    /// Abort the transaction: `Transaction::abort`.
    AbortTransaction,
    /// Begin another transaction: the last one was aborted.
    BeginTransaction,
    /// Close the client, which can't be used any more.
    Close,
}

/// The result of most calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error of this kind; the `with_*` methods add details.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, context: Box::new(ErrorContext { detail: detail.into(), ..ErrorContext::default() }) }
    }

    /// Creates an error from a broker's error code and message.
    pub fn broker(code: ErrorCode, message: Option<&str>) -> Self {
        Self::new(ErrorKind::Broker(code), message.unwrap_or_default())
    }

    /// Returns the error without the time of the next attempt, so that repeated failures of the same kind compare
    /// equal.
    #[must_use]
    pub fn without_next_attempt(mut self) -> Self {
        self.context.next_attempt = None;
        self
    }

    /// Adds the code with which a broker would refuse the request, which was not sent.
    pub(crate) fn with_refusal(mut self, code: ErrorCode) -> Self {
        self.context.refusal = Some(code);
        self
    }

    /// Returns the kind of the error.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns what to do about an error that a broker reported, as a sentence. The texts of other errors say it themselves.
    pub fn advice(&self) -> Option<&'static str> {
        match self.kind {
            ErrorKind::Broker(code) => advice::of_broker(code).map(|advice| advice.what_to_do),
            _ => None,
        }
    }

    /// Returns the party at fault.
    pub const fn culprit(&self) -> Culprit {
        self.kind.culprit()
    }

    /// Returns where the error happened.
    pub fn context(&self) -> &ErrorContext {
        &self.context
    }

    /// Returns true if the same attempt may succeed later.
    pub fn is_retriable(&self) -> bool {
        match self.kind {
            ErrorKind::Broker(code) => code.is_retriable(),
            ErrorKind::Resolve
            | ErrorKind::Connect
            | ErrorKind::Proxy
            | ErrorKind::Disconnected
            | ErrorKind::Tls
            | ErrorKind::Authentication
            | ErrorKind::RequestTimedOut
            | ErrorKind::AllBrokersDown
            | ErrorKind::QueueFull
            | ErrorKind::TimedOut => true,
            _ => false,
        }
    }

    /// Changes the kind and keeps the context.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Formats this error as the cause of another one that already names the partition and the next step.
    pub(crate) fn as_cause(&self) -> String {
        let mut cause = self.clone();
        (cause.context.topic, cause.context.partition, cause.context.next_attempt) = (None, None, None);
        format!("last cause: {cause}")
    }

    /// Replaces the detail: what was tried, or what the peer reported.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.context.detail = detail.into();
        self
    }

    /// Adds the call that helps.
    #[must_use]
    pub fn with_next_call(mut self, call: NextCall) -> Self {
        self.context.next_call = Some(call);
        self
    }

    /// Adds the peer.
    #[must_use]
    pub fn with_peer(mut self, peer: impl Into<String>) -> Self {
        self.context.peer = Some(peer.into());
        self
    }

    /// Adds the API.
    #[must_use]
    pub fn with_api(mut self, api: &'static str) -> Self {
        self.context.api = Some(api);
        self
    }

    /// Adds the topic.
    #[must_use]
    pub fn with_topic(mut self, topic: impl Into<String>) -> Self {
        self.context.topic = Some(topic.into());
        self
    }

    /// Adds the topic and the partition.
    #[must_use]
    pub fn with_partition(mut self, topic: impl Into<String>, partition: i32) -> Self {
        self.context.topic = Some(topic.into());
        self.context.partition = Some(partition);
        self
    }

    /// Adds the time until the next attempt.
    #[must_use]
    pub fn with_next_attempt(mut self, after: Duration) -> Self {
        self.context.next_attempt = Some(after);
        self
    }
}

impl ErrorKind {
    /// Returns the party at fault.
    pub const fn culprit(self) -> Culprit {
        match self {
            Self::Broker(_)
            | Self::UnsupportedVersion
            | Self::UnknownTopic
            | Self::LogTruncated
            | Self::Fenced
            | Self::TopicRecreated
            | Self::InvalidDifferentRecord => Culprit::Broker,
            Self::Resolve
            | Self::Connect
            | Self::Disconnected
            | Self::Tls
            | Self::RequestTimedOut
            | Self::AllBrokersDown
            | Self::NotKafka
            | Self::BadResponse
            | Self::BadBatch
            | Self::MessageTimedOutInQueue
            | Self::MessageTimedOutInFlight
            | Self::TimedOut => Culprit::Network,
            Self::Proxy => Culprit::Proxy,
            Self::PurgedFromQueue
            | Self::PurgedInFlight
            | Self::QueueFull
            | Self::MessageTooLarge
            | Self::UnknownPartition
            | Self::InvalidArgument
            | Self::State
            | Self::Inconsistent
            | Self::Conflict
            | Self::PreviousInProgress
            | Self::NotConfigured
            | Self::Gapless
            | Self::Closed
            | Self::MaxPollExceeded
            | Self::AssignorFailed
            | Self::CallbackPanicked
            | Self::Authentication
            | Self::OffsetReset => Culprit::Application,
            Self::Bug => Culprit::Ottla,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Broker(code) => {
                return write!(f, "broker returned {}: {}", code.name(), code.description());
            }
            Self::Resolve => "host name not resolved",
            Self::Connect => "connection failed",
            Self::Proxy => "no connection through the proxy",
            Self::Disconnected => "connection lost",
            Self::Tls => "TLS failed",
            Self::Authentication => "authentication failed",
            Self::RequestTimedOut => "broker did not respond in time",
            Self::AllBrokersDown => "no broker could be reached; check bootstrap.servers and the network",
            Self::NotKafka => {
                "the peer does not speak Kafka's protocol; check host, port and security.protocol"
            }
            Self::BadResponse => "the peer's response violates Kafka's protocol",
            Self::BadBatch => "a fetched batch is damaged",
            Self::UnsupportedVersion => "the broker offers no usable version of this API",
            Self::MessageTimedOutInQueue => {
                "message timed out in the queue and was not sent (message.timeout.ms)"
            }
            Self::MessageTimedOutInFlight => {
                "message timed out before it was acknowledged and may have been written (message.timeout.ms)"
            }
            Self::PurgedFromQueue => "message purged from the queue",
            Self::PurgedInFlight => "message purged in flight; it may have been written",
            Self::QueueFull => {
                "the queue is full (queue.buffering.max.messages, queue.buffering.max.kbytes); \
                 wait for deliveries or raise the limits"
            }
            Self::MessageTooLarge => "message larger than message.max.bytes",
            Self::UnknownTopic => "the topic does not exist",
            Self::UnknownPartition => "the topic has no such partition",
            Self::InvalidArgument => "invalid argument",
            Self::State => "not allowed in this state",
            Self::Gapless => "a message failed, which would leave a gap (enable.gapless.guarantee)",
            Self::Closed => "the client is closed",
            Self::OffsetReset => "no valid offset and auto.offset.reset is error",
            Self::LogTruncated => "the partition's log was cut off behind what was read of it",
            Self::TopicRecreated => "the topic was deleted and recreated with the same name",
            Self::InvalidDifferentRecord => {
                "not written because the broker refused another record of the same batch; send it again"
            }
            Self::TimedOut => "timed out",
            Self::Fenced => "the producer is fenced",
            Self::Inconsistent => "the transaction is incomplete",
            Self::Conflict => "another call must be finished first",
            Self::PreviousInProgress => "the same call is in progress",
            Self::NotConfigured => "the client is not configured for this call",
            Self::MaxPollExceeded => "the application did not poll within max.poll.interval.ms",
            Self::AssignorFailed => "the application's assignor failed",
            Self::CallbackPanicked => "a function of the application panicked",
            Self::Bug => "a bug in this library; please report it",
        };
        f.write_str(text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context = &self.context;
        if let Some(peer) = &context.peer {
            write!(f, "{peer}: ")?;
        }
        if let Some(api) = context.api {
            write!(f, "{api}: ")?;
        }
        match (&context.topic, context.partition) {
            (Some(topic), _) if topic.is_empty() => {}
            (Some(topic), Some(partition)) => write!(f, "{topic} [{partition}]: ")?,
            (Some(topic), None) => write!(f, "{topic}: ")?,
            _ => {}
        }
        write!(f, "{}", self.kind)?;
        if !context.detail.is_empty() {
            write!(f, " ({})", context.detail)?;
        }
        if let Some(after) = context.next_attempt {
            write!(f, "; next attempt in {} ms", after.as_millis())?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_peer_api_partition_and_next_attempt() {
        let error = Error::new(ErrorKind::Disconnected, "closed by peer")
            .with_peer("a:9092/1")
            .with_api("Produce")
            .with_partition("t", 3)
            .with_next_attempt(Duration::from_millis(100));
        assert_eq!(
            error.to_string(),
            "a:9092/1: Produce: t [3]: connection lost (closed by peer); next attempt in 100 ms"
        );
        assert_eq!(error.culprit(), Culprit::Network);
        let unnamed = Error::new(ErrorKind::InvalidArgument, "it is empty").with_topic("");
        assert_eq!(unnamed.to_string(), "invalid argument (it is empty)");
    }
}
