//! Observers of a client's connections, for logs and traces. Without an observer a request costs one branch.

use std::{fmt, time::Duration};

use ottla_protocol::api::ApiKey;

use crate::error::ErrorKind;

/// Observes requests, responses and states of connections, and the threads that serve the client. Broker actors call it
/// on I/O threads that other clients share: it must not block.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Called when the last byte of a request was written to the socket.
    fn request_sent(&self, peer: &Peer<'_>, request: &Exchange) {
        let _ = (peer, request);
    }

    /// Called when a response was read completely and matched to its request, before it is decoded. `round_trip` counts
    /// from the last byte of the request.
    fn response_received(&self, peer: &Peer<'_>, response: &Exchange, round_trip: Duration) {
        let _ = (peer, response, round_trip);
    }

    /// Called when the response to a completely written request will not arrive because the connection was closed: this
    /// request timed out, or `why` names another reason. Each request that expects a response is reported exactly once,
    /// as received or as lost.
    fn response_lost(&self, peer: &Peer<'_>, request: &Exchange, why: ErrorKind) {
        let _ = (peer, request, why);
    }

    /// Called when a connection changes its state to `CONNECT`, `APIVERSION_QUERY`, `UP` or `DOWN`, as in the
    /// statistics.
    fn state_changed(&self, peer: &Peer<'_>, state: &'static str) {
        let _ = (peer, state);
    }

    /// Called when a connection failed, could not be established, or was closed because it was idle, with the cause.
    fn connection_ended(&self, peer: &Peer<'_>, cause: &dyn fmt::Display) {
        let _ = (peer, cause);
    }

    /// Called when this thread, with that name, starts to serve the client.
    fn thread_starts(&self, name: &str) {
        let _ = name;
    }

    /// Called when this thread stops serving the client.
    fn thread_ends(&self, name: &str) {
        let _ = name;
    }
}

/// The other end of a connection. It is displayed as in errors and logs.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// The host's name or address.
    pub host: &'a str,
    /// The port.
    pub port: u16,
    /// The node ID, if known; a bootstrap server has none at first.
    pub node_id: Option<i32>,
    /// The socket's file descriptor, as the driver reported it.
    pub socket: Option<i32>,
}

/// A request or its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The API.
    pub api: ApiKey,
    /// The version.
    pub version: i16,
    /// The correlation ID that request and response share.
    pub correlation_id: i32,
    /// The number of bytes on the wire, including the length prefix.
    pub size: usize,
}

impl fmt::Display for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node_id {
            Some(id) => write!(f, "{}:{}/{id}", self.host, self.port),
            None => write!(f, "{}:{}/bootstrap", self.host, self.port),
        }
    }
}
