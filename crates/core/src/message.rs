//! The messages between the actors of a client, moved by value: one cluster actor, and one broker actor per connection.
//!
//! ```text
//!   ToBroker                          ToCluster
//!    ├ Produce(ProduceMessage)         ├ Produce(ProduceReport)       the producing half
//!    ├ Fetch(FetchMessage)             ├ Fetch(FetchReport)           the consuming half
//!    ├ Share(ShareMessage)             ├ Share(ShareReport)           the share half
//!    ├ Request(ClusterRequest)         ├ Response { token, result }   requests that belong to no partition
//!    ├ Connection(ConnectionMessage)   ├ Connection(ConnectionReport) the connection itself
//!    └ Statistics, Close               └ News(BrokerNews)             what a broker said along with a response
//! ```

use std::{fmt, ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{api::ApiKey, vocabulary::NodeId};

use crate::{
    connection::Response,
    contract::{
        broker::{Broadcast, BrokerNews, TransactionFeatures},
        route::EncodeBody,
    },
    error::Error,
    fetch::message::{FetchMessage, FetchReport},
    produce::message::{ProduceMessage, ProduceReport},
    share::message::{ShareMessage, ShareReport},
    stats::{BrokerEntryKind, Gather},
};

/// A message from the cluster actor to a broker actor.
#[derive(Debug)]
pub enum ToBroker {
    /// A message for the producing half.
    Produce(ProduceMessage),
    /// A message for the consuming half.
    Fetch(FetchMessage),
    /// A message for the share half.
    Share(ShareMessage),
    /// Send this request and return the response.
    Request(ClusterRequest),
    /// A message for the connection.
    Connection(ConnectionMessage),
    /// Add the statistics of this broker.
    Statistics(Arc<Gather>, BrokerEntryKind),
    /// Fail everything that is pending and close the connection permanently.
    Close,
}

/// A message from a broker actor to the cluster actor.
#[derive(Debug)]
pub enum ToCluster {
    /// A report of the producing half.
    Produce(ProduceReport),
    /// A report of the consuming half.
    Fetch(FetchReport),
    /// A report of the share half.
    Share(ShareReport),
    /// The response to a request.
    Response {
        /// The request's token.
        token: u64,
        /// The response, or the error that replaced it.
        result: Result<Response, Error>,
    },
    /// A report of the connection.
    Connection(ConnectionReport),
    /// Information that came along with a response.
    News(BrokerNews),
}

impl From<ShareReport> for ToCluster {
    fn from(report: ShareReport) -> Self {
        Self::Share(report)
    }
}

impl From<FetchReport> for ToCluster {
    fn from(report: FetchReport) -> Self {
        Self::Fetch(report)
    }
}

impl From<ProduceReport> for ToCluster {
    fn from(report: ProduceReport) -> Self {
        Self::Produce(report)
    }
}

impl From<Broadcast> for ToBroker {
    fn from(broadcast: Broadcast) -> Self {
        Self::Produce(match broadcast {
            Broadcast::Flush => ProduceMessage::Flush,
            Broadcast::Purge(purge) => ProduceMessage::Purge(purge),
        })
    }
}

/// A message from the cluster actor to a connection.
#[derive(Debug)]
pub enum ConnectionMessage {
    /// The bootstrap server of this connection is this node.
    SetNode(NodeId),
    /// The broker has a new address.
    SetAddress {
        /// The host's name or address.
        host: String,
        /// The port.
        port: u16,
    },
    /// The connection to a node must lead to this cluster (KIP-1242).
    SetCluster(Arc<str>),
    /// Connect even if there is nothing to send.
    Connect,
    /// Stop connecting, or close a connection that was never used: another broker responded first. Does nothing if the
    /// connection is needed.
    StopConnecting,
    /// The credentials have changed, or a new token is there.
    Credentials,
    /// The Kerberos library has replied to a message of an authentication.
    SaslReply,
    /// Resolve the host's name again and reconnect, even if there is a connection.
    Reconnect,
}

/// A report from a connection to the cluster actor.
#[derive(Debug)]
pub enum ConnectionReport {
    /// The transactional features of the broker whose connection becomes ready. Only for transactional producers.
    Features(TransactionFeatures),
    /// The connection is ready.
    Up,
    /// The broker whose connection became ready takes client metrics (KIP-714).
    OffersTelemetry,
    /// The connection failed.
    Down(Error),
    /// The connection was closed while it was idle.
    Idle {
        /// True if the broker closed it and the connection reconnects, in case the broker is down.
        reconnects: bool,
    },
}

/// A request of the cluster actor.
pub struct ClusterRequest {
    /// Identifies the response that belongs to this request.
    pub token: u64,
    /// The API.
    pub api: ApiKey,
    /// The versions that support everything the request contains.
    pub versions: RangeInclusive<i16>,
    /// The time that the broker has to respond.
    pub timeout: Duration,
    /// Appends the encoded body in a given version.
    pub encode: EncodeBody,
}

impl fmt::Debug for ClusterRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterRequest")
            .field("token", &self.token)
            .field("api", &self.api)
            .finish_non_exhaustive()
    }
}
