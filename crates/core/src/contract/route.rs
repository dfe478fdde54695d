//! The destination of a request, and the request itself. The parts of the cluster actor use both without the actor.

use std::{fmt, ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{api::ApiKey, primitive::EncodeError, vocabulary::NodeId};

/// The versions of DescribeCluster that state the kind of nodes.
pub(crate) const OF_CONTROLLERS: RangeInclusive<i16> = 1..=2;
/// Controllers, as DescribeCluster numbers the kinds of nodes.
pub(crate) const CONTROLLERS: i8 = 2;

/// The destination of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Any broker that is connected.
    Any,
    /// The controller.
    Controller,
    /// A connected broker that takes client metrics. Without one the request fails at once.
    Telemetry,
    /// The node with this ID, which the application may have chosen. If partitions are fetched from the node, the
    /// request uses a second connection if that is up: a broker handles one request per connection at a time, and a
    /// Fetch may wait there.
    Node(i32),
    /// This node, always over the second connection.
    PastFetch(NodeId),
    /// The coordinator of a group or of a transactional ID, over a connection of its own.
    Coordinator(CoordinatorKey),
    /// The coordinator of a group, over a further connection: the broker keeps JoinGroup and SyncGroup until other members
    /// have acted, and handles nothing else on that connection meanwhile.
    Rebalance(CoordinatorKey),
}

impl Route {
    /// Returns the coordinator key if the route leads to a coordinator.
    pub(crate) const fn coordinator(&self) -> Option<&CoordinatorKey> {
        match self {
            Self::Coordinator(key) | Self::Rebalance(key) => Some(key),
            _ => None,
        }
    }
}

/// The key of a coordinator: a group or a transactional ID.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoordinatorKey {
    /// The kind of coordinator.
    pub kind: CoordinatorKind,
    /// The group's ID or the transactional ID.
    pub id: Arc<str>,
}

/// The kinds of coordinators, as FindCoordinator numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoordinatorKind {
    /// The coordinator of a group.
    Group = 0,
    /// The coordinator of a transactional ID.
    Transaction = 1,
}

impl CoordinatorKey {
    /// Returns the key of the group `id`.
    pub fn group(id: impl Into<Arc<str>>) -> Self {
        Self { kind: CoordinatorKind::Group, id: id.into() }
    }

    /// Returns the key of the transactional ID `id`.
    pub fn transaction(id: impl Into<Arc<str>>) -> Self {
        Self { kind: CoordinatorKind::Transaction, id: id.into() }
    }
}

impl fmt::Debug for CoordinatorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CoordinatorKind::Group => "group",
            CoordinatorKind::Transaction => "transaction",
        };
        write!(f, "{kind} {:?}", self.id)
    }
}

/// The location of a coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Coordinator {
    /// The node.
    pub(crate) node: NodeId,
    /// The host's name or address.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
}

/// Appends a request's body in the negotiated version.
pub type EncodeBody = Box<dyn Fn(i16, &mut Vec<u8>) -> Result<(), EncodeError> + Send>;

/// The minimum timeout of a request whose call ends earlier.
const MIN_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the timeout of a request for a call that has this time left. A request that times out closes its connection.
/// The deadline of a call shall not close one, so the request is given a little longer than its call, and a late response is dropped.
pub(crate) fn request_timeout(longest: Duration, left: Duration) -> Duration {
    longest.min(left.max(MIN_REQUEST_TIMEOUT))
}

/// A request with everything that is needed to send it to any broker.
pub struct RoutedRequest {
    /// The API.
    pub(crate) api: ApiKey,
    /// The versions that support everything the request contains.
    pub(crate) versions: RangeInclusive<i16>,
    /// The time that the broker has to respond.
    pub(crate) timeout: Duration,
    /// Appends the encoded body in a given version.
    pub(crate) encode: EncodeBody,
}

impl fmt::Debug for RoutedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutedRequest").field("api", &self.api).finish_non_exhaustive()
    }
}
