//! What can go wrong, named by who is at fault.

use std::{fmt, time::Duration};

use ottla_protocol::error_code::ErrorCode;

/// An error with its culprit, what was tried, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    context: Box<ErrorContext>,
}

/// What went wrong. The variants' grouping is [`ErrorKind::culprit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A broker answered with this error code.
    Broker(ErrorCode),
    /// A host name could not be resolved.
    Resolve,
    /// A connection could not be made.
    Connect,
    /// A connection was lost.
    Disconnected,
    /// A broker did not answer a request in time.
    RequestTimedOut,
    /// No broker could be reached.
    AllBrokersDown,
    /// The peer does not speak Kafka, or not as this client does: TLS or HTTP on a plain port, garbage.
    NotKafka,
    /// The peer's answer can't be decoded or breaks the protocol.
    BadResponse,
    /// A fetched batch is damaged: wrong checksum, lying lengths.
    BadBatch,
    /// The broker offers no version of an API that this client can use.
    UnsupportedVersion,
    /// A message waited in the queue longer than `message.timeout.ms`: it was certainly not written.
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
    /// A message failed for good, which leaves a gap, and `enable.gapless.guarantee` is set.
    Gapless,
    /// The topic does not exist and was not created.
    UnknownTopic,
    /// The topic has no such partition.
    UnknownPartition,
    /// An argument or a property makes no sense.
    InvalidArgument,
    /// The call is not allowed in this state.
    State,
    /// The client was closed.
    Closed,
    /// An offset is out of range and `auto.offset.reset` is `error`.
    OffsetReset,
    /// The partition's log was cut off behind what was read, and `auto.offset.reset` is `error`.
    LogTruncated,
    /// The topic was deleted and made anew under its old name.
    TopicRecreated,
    /// The call's own deadline passed.
    TimedOut,
    /// The client contradicts itself. Please report it.
    Bug,
}

/// Who is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// The broker said so.
    Broker,
    /// The network, or what listens at the other end.
    Network,
    /// The application or its configuration.
    Application,
    /// This library.
    Ottla,
}

/// Where an error happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorContext {
    /// The peer, as `host:port` or `host:port/node`.
    pub peer: Option<String>,
    /// The API that was called.
    pub api: Option<&'static str>,
    /// The topic concerned.
    pub topic: Option<String>,
    /// The partition concerned.
    pub partition: Option<i32>,
    /// What was tried, or what the peer said, in words.
    pub detail: String,
    /// When it will be tried again by itself.
    pub next_attempt: Option<Duration>,
}

/// The result of most calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of this kind; say more with the `with_*` methods.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, context: Box::new(ErrorContext { detail: detail.into(), ..ErrorContext::default() }) }
    }

    /// A broker's error code.
    pub fn broker(code: ErrorCode, message: Option<&str>) -> Self {
        Self::new(ErrorKind::Broker(code), message.unwrap_or_default())
    }

    /// The error without the time of the next attempt: the same each time that it fails in the same way.
    #[must_use]
    pub fn without_next_attempt(mut self) -> Self {
        self.context.next_attempt = None;
        self
    }

    /// What went wrong.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Who is at fault.
    pub const fn culprit(&self) -> Culprit {
        self.kind.culprit()
    }

    /// Where it happened.
    pub fn context(&self) -> &ErrorContext {
        &self.context
    }

    /// True if the same attempt may succeed later.
    pub fn is_retriable(&self) -> bool {
        match self.kind {
            ErrorKind::Broker(code) => code.is_retriable(),
            ErrorKind::Resolve
            | ErrorKind::Connect
            | ErrorKind::Disconnected
            | ErrorKind::RequestTimedOut
            | ErrorKind::AllBrokersDown
            | ErrorKind::QueueFull
            | ErrorKind::TimedOut => true,
            _ => false,
        }
    }

    /// The same of another kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// The sentence as the cause of another error, which has the partition and what happens next itself.
    pub(crate) fn as_cause(&self) -> String {
        let mut cause = self.clone();
        (cause.context.topic, cause.context.partition, cause.context.next_attempt) = (None, None, None);
        format!("last cause: {cause}")
    }

    /// Names the peer.
    #[must_use]
    pub fn with_peer(mut self, peer: impl Into<String>) -> Self {
        self.context.peer = Some(peer.into());
        self
    }

    /// Names the API.
    #[must_use]
    pub fn with_api(mut self, api: &'static str) -> Self {
        self.context.api = Some(api);
        self
    }

    /// Names the topic.
    #[must_use]
    pub fn with_topic(mut self, topic: impl Into<String>) -> Self {
        self.context.topic = Some(topic.into());
        self
    }

    /// Names the topic and the partition.
    #[must_use]
    pub fn with_partition(mut self, topic: impl Into<String>, partition: i32) -> Self {
        self.context.topic = Some(topic.into());
        self.context.partition = Some(partition);
        self
    }

    /// Says when it will be tried again.
    #[must_use]
    pub fn with_next_attempt(mut self, after: Duration) -> Self {
        self.context.next_attempt = Some(after);
        self
    }
}

impl ErrorKind {
    /// Who is at fault.
    pub const fn culprit(self) -> Culprit {
        match self {
            Self::Broker(_)
            | Self::UnsupportedVersion
            | Self::UnknownTopic
            | Self::LogTruncated
            | Self::TopicRecreated => Culprit::Broker,
            Self::Resolve
            | Self::Connect
            | Self::Disconnected
            | Self::RequestTimedOut
            | Self::AllBrokersDown
            | Self::NotKafka
            | Self::BadResponse
            | Self::BadBatch
            | Self::MessageTimedOutInQueue
            | Self::MessageTimedOutInFlight
            | Self::TimedOut => Culprit::Network,
            Self::PurgedFromQueue
            | Self::PurgedInFlight
            | Self::QueueFull
            | Self::MessageTooLarge
            | Self::UnknownPartition
            | Self::InvalidArgument
            | Self::State
            | Self::Gapless
            | Self::Closed
            | Self::OffsetReset => Culprit::Application,
            Self::Bug => Culprit::Ottla,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Broker(code) => {
                return write!(f, "broker answered {}: {}", code.name(), code.description());
            }
            Self::Resolve => "host name not resolved",
            Self::Connect => "connection failed",
            Self::Disconnected => "connection lost",
            Self::RequestTimedOut => "broker did not answer in time",
            Self::AllBrokersDown => "no broker could be reached; check bootstrap.servers and the network",
            Self::NotKafka => {
                "the peer does not speak Kafka's protocol; check host, port and security.protocol"
            }
            Self::BadResponse => "the peer's answer breaks Kafka's protocol",
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
            Self::TopicRecreated => "the topic was deleted and made anew under its old name",
            Self::TimedOut => "timed out",
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
    }
}
