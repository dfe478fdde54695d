//! What the owners tell each other, by value: one cluster's owner, and one owner per broker.

use std::sync::Arc;

use ottla_protocol::{api::ApiKey, primitive::EncodeError, uuid::Uuid};

use crate::{
    broker::connection::Response,
    cluster::metadata::LeaderHint,
    error::Error,
    produce::{partition::PartitionProducer, producer_id::ProducerIdentity, sender::Purge},
    stats::Gather,
};

/// Names a broker's owner within its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerKey(pub u32);

/// From the cluster's owner to a broker's.
#[derive(Debug)]
pub enum ToBroker {
    /// You lead this partition: send its records.
    AdoptProducer(Box<PartitionProducer>),
    /// You don't lead this partition any more: give it back when nothing of it is in flight.
    ReleaseProducer {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
    },
    /// The application paused this partition: take no more of it, and give it back when nothing of it is in flight.
    PauseProducer {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
    },
    /// Send this request and hand the answer back.
    Request(ClusterRequest),
    /// The receiving half's mail.
    Fetch(crate::fetch::FetchMail),
    /// The bootstrap server that you are connected to is this node.
    SetNode(i32),
    /// The broker listens elsewhere now.
    SetAddress {
        /// The host's name or address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Connect even if there is nothing to send.
    Connect,
    /// Resolve the host's name anew and connect again, even if there is a connection.
    Reconnect,
    /// Look at the ready list: somebody flushes.
    Look,
    /// Add what you counted.
    Statistics(Arc<Gather>),
    /// Remove messages.
    Purge(Purge),
    /// Fail everything that is left and close the connection for good.
    Close,
}

/// From a broker's owner to the cluster's.
#[derive(Debug)]
pub enum ToCluster {
    /// The connection is ready.
    Up,
    /// The connection failed.
    Down(Error),
    /// The connection was closed while nobody needed it.
    Idle {
        /// The broker closed it, and is connected to again: it may be gone.
        looks_again: bool,
    },
    /// The answer to a request.
    Answer {
        /// The request's number.
        token: u64,
        /// The answer, or why there is none.
        result: Result<Response, Error>,
    },
    /// A partition that was to leave, with what it still has to send.
    ReleasedProducer(Box<PartitionProducer>),
    /// A partition can't go on with this identity of the producer.
    RenewIdentity(ProducerIdentity),
    /// The producer can't go on.
    FatalProducer(Error),
    /// The broker asks the client to hold back for so many milliseconds, or no longer does.
    Throttled(u32),
    /// An answer is odd, though nothing has to be done about it.
    Odd(Error),
    /// Another broker leads a partition, as this one says.
    LeaderHint(LeaderHint),
    /// A broker does not lead what it was thought to lead.
    RefreshMetadata(Arc<str>),
    /// A broker does not know a topic by this id.
    UnknownTopicId(Arc<str>, Uuid),
    /// The receiving half's mail.
    Fetch(crate::fetch::FetchReply),
}

/// A request of the cluster's owner.
pub struct ClusterRequest {
    /// The request's number.
    pub token: u64,
    /// The API.
    pub api: ApiKey,
    /// The versions that the requester can live with.
    pub versions: std::ops::RangeInclusive<i16>,
    /// How long the broker may take.
    pub timeout: std::time::Duration,
    /// Appends the request's body in a version.
    pub encode: EncodeBody,
}

/// Appends a request's body in the version that was agreed on.
pub type EncodeBody = Box<dyn Fn(i16, &mut Vec<u8>) -> Result<(), EncodeError> + Send>;

impl std::fmt::Debug for ClusterRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterRequest")
            .field("token", &self.token)
            .field("api", &self.api)
            .finish_non_exhaustive()
    }
}
