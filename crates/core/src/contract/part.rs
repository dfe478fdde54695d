//! The contract between the cluster actor and its parts.
//!
//! A part is a machine for one concern of the cluster as a whole: the locations of the producer's partitions, the
//! assignment of fetched partitions to brokers, administrative calls. [`ClusterCore`](crate::cluster::ClusterCore) manages
//! metadata, connections and the routing of requests; it passes events to each part and carries out the resulting
//! [`Need`]s.
//!
//! ```text
//!   metadata, time ──► handle_metadata, handle_timeout ──┐
//!   a response ──────► handle_response (typed, per part) ├──► advance ──► poll_need ──► Need: request, message, ...
//!   a message ───────► handle_message (typed, per part) ─┘
//! ```
//!
//! Commands, messages and responses have types of their own per part, so they are inherent methods; the cluster actor has
//! one `match` for each of the three.

use std::{convert::Infallible, sync::Arc};

use ottla_protocol::vocabulary::{NodeId, TopicPartition};
use ottla_sorted::SortedSet;

use super::{
    broker::Broadcast,
    metadata::{Metadata, TopicError},
    route::{Route, RoutedRequest},
};
use crate::{
    contract::purge::Purge,
    error::Error,
    event::{Event, RecreatedTopic},
    machine::Instant,
    states::See,
    stats::{Purpose, Statistics},
};

/// A part of the cluster actor.
pub(crate) trait Part {
    /// Handles new metadata. Returns true if the part misses something in it, so that it should be requested again
    /// soon.
    fn handle_metadata(&mut self, now: Instant, metadata: &Metadata, changes: &MetadataChanges) -> bool;

    /// Handles the names of all topics of the cluster, usually without its internal ones, before [`Part::handle_metadata`].
    fn handle_all_topics(&mut self, _now: Instant, _names: &[Arc<str>]) {}

    /// Handles a newer leader of a partition that was learned without a metadata request (KIP-951).
    fn handle_new_leader(&mut self, _partition: &TopicPartition, _metadata: &Metadata) {}

    /// Handles the periodic refresh of the metadata, before [`Part::add_topics`].
    fn handle_periodic_refresh(&mut self, _now: Instant) {}

    /// Handles the timeouts that are due. `unreachable` is the reason if no broker is connected.
    fn handle_timeout(&mut self, now: Instant, unreachable: Option<&Error>);

    /// Returns when to call [`Part::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;

    /// Turns the events so far into needs.
    fn advance(&mut self, now: Instant, metadata: &Metadata);

    /// Shows the states of the part's machines.
    fn states(&self, _see: &mut See<'_>) {}

    /// Adds the topics whose leaders the part needs.
    fn add_topics(&self, topics: &mut Interest);

    /// Returns true if the part needs the names of all topics.
    fn needs_all_topics(&self) -> bool {
        false
    }

    /// Adds the statistics of the part to a snapshot.
    fn add_statistics(&mut self, _at: SnapshotTime, _statistics: &mut Statistics) {}

    /// Closes the part: ends the calls of the application. The part has no needs afterwards.
    fn close(&mut self);
}

/// The needs of a part. They differ in what the part tells to others.
pub(crate) trait Needs: Part {
    /// A message to a half of a broker actor, or a command for another part.
    type Message;

    /// Returns the next need of the part.
    fn poll_need(&mut self) -> Option<Need<Self::Message>>;
}

/// A message to the half of the broker actor of a node, whose address is in the metadata.
#[derive(Debug)]
pub(crate) struct ToNode<M> {
    /// The node.
    pub(crate) node: NodeId,
    /// The message.
    pub(crate) message: M,
}

/// The time of a snapshot of the statistics, and its purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotTime {
    /// The time.
    pub(crate) now: Instant,
    /// When the client started.
    pub(crate) began: Instant,
    /// The purpose.
    pub(crate) purpose: Purpose,
}

/// An action that a part needs from the cluster actor. Parts that tell nothing to others have no `M`.
#[derive(Debug)]
pub(crate) enum Need<M = Infallible> {
    /// Newer metadata.
    Metadata(Urgency),
    /// A request; its response comes back with `owner`.
    Request {
        /// The destination.
        route: Route,
        /// The request.
        request: RoutedRequest,
        /// The owner.
        owner: RequestOwner,
    },
    /// A message to a half of a broker actor, or a command for another part.
    Tell(M),
    /// A check of the group membership: the coordinator refused a commit.
    CheckMembership,
    /// A message to all broker actors.
    Broadcast(Broadcast),
    /// A purge of the producer's messages.
    Purge(Purge),
    /// The end of the producer, after a fatal error.
    StopProducer(Error),
    /// An event for the application.
    Event(Event),
    /// A snapshot of the statistics for a push of client metrics. It comes back as a command.
    TelemetrySnapshot,
}

impl<M> Need<M> {
    /// Converts what the part tells to others.
    pub(crate) fn map<N>(self, convert: impl FnOnce(M) -> N) -> Need<N> {
        match self {
            Self::Tell(message) => Need::Tell(convert(message)),
            Self::Metadata(urgency) => Need::Metadata(urgency),
            Self::Request { route, request, owner } => Need::Request { route, request, owner },
            Self::CheckMembership => Need::CheckMembership,
            Self::Broadcast(broadcast) => Need::Broadcast(broadcast),
            Self::Purge(purge) => Need::Purge(purge),
            Self::StopProducer(error) => Need::StopProducer(error),
            Self::Event(event) => Need::Event(event),
            Self::TelemetrySnapshot => Need::TelemetrySnapshot,
        }
    }
}

/// How soon metadata is needed; the maximum of several is the most urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// After a backoff that all parts share: a broker rejected a request that the metadata led to. Without the common
    /// backoff, the request rate would grow with the number of partitions.
    Soon,
    /// Immediately: the needed metadata was never requested.
    Now,
}

/// The owner of a request: a part, and one of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOwner {
    /// The metadata refresh.
    Metadata,
    /// The lookup of coordinators.
    Coordinators,
    /// The idempotent producer's identity.
    ProducerId,
    /// The transactional producer.
    Transaction(TransactionRequest),
    /// The consuming half.
    Fetch(FetchRequest),
    /// The group's membership.
    Group(GroupRequest),
    /// The membership in a share group; the number identifies its term.
    Share(u64),
    /// The membership in a streams group; the number identifies its term.
    Streams(u64),
    /// The push of a topology's description, with its number.
    StreamsDescription(u64),
    /// Administrative calls.
    Admin(AdminRequest),
    /// Client metrics.
    Telemetry(TelemetryRequest),
}

/// The operation of client telemetry that owns a request, with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TelemetryRequest {
    /// GetTelemetrySubscriptions.
    Subscription(u64),
    /// PushTelemetry.
    Push(u64),
}

/// The operation of the transactional producer that owns a request, with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionRequest {
    /// InitProducerId or EndTxn.
    Coordinator(u64),
    /// AddPartitionsToTxn.
    Partitions(u64),
    /// AddOffsetsToTxn or TxnOffsetCommit.
    Offsets(u64),
    /// DescribeTransactions.
    Markers(u64),
}

/// The operation of a group member that owns a request. The number identifies the term of the membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupRequest {
    /// JoinGroup.
    Join(u64),
    /// SyncGroup.
    Sync(u64),
    /// Heartbeat.
    Heartbeat(u64),
    /// LeaveGroup.
    Leave(u64),
    /// DescribeGroups, for the assignment of a group whose leader did not compute it.
    Describe(u64),
    /// ConsumerGroupHeartbeat.
    ConsumerHeartbeat(u64),
    /// Metadata, for the names of assigned topics.
    TopicNames(u64),
}

/// The operation of the fetch manager that owns a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchRequest {
    /// Offsets of partitions, from their leader (ListOffsets).
    Offsets(u64),
    /// Check whether the log was truncated (OffsetForLeaderEpoch).
    Epochs(u64),
    /// Committed offsets, from the group's coordinator.
    Committed(u64),
}

/// The administrative operation that owns a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdminRequest {
    /// A call.
    Call(u64),
    /// A call to every broker: the request to one of them.
    OfBroker {
        /// The call.
        call: u64,
        /// The broker.
        node: NodeId,
    },
    /// A call about many groups: one of its requests.
    OfGroups {
        /// The call.
        call: u64,
        /// The request.
        request: u64,
    },
    /// A call about many partitions: the request to one of their leaders.
    OfLeader {
        /// The call.
        call: u64,
        /// The request.
        request: u64,
    },
    /// Offsets of partitions, from their leader (ListOffsets).
    Offsets(u64),
}

/// The changes of new metadata besides leaders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MetadataChanges {
    /// The topics that can't be used, each with the reason.
    pub(crate) errors: Vec<TopicError>,
    /// The topics that were deleted and recreated.
    pub(crate) recreated: Vec<RecreatedTopic>,
}

/// The topics of the next metadata request.
#[derive(Debug, Default)]
pub(crate) struct Interest {
    /// Topics in use. Requesting them may create them.
    pub(crate) used: SortedSet<Arc<str>>,
    /// Topics that are only queried. Requesting them must not create them.
    pub(crate) asked: SortedSet<Arc<str>>,
}
