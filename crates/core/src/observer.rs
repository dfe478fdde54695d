//! Who wants to see what passes on a client's connections. A client that nobody observes pays a branch per request.

use std::{fmt, time::Duration};

use ottla_protocol::api::ApiKey;

use crate::error::ErrorKind;

/// Sees requests, answers and states of connections, and the threads that serve the client. It is called by the brokers'
/// owners, on I/O threads that other clients share: it must not block.
pub trait Observer: fmt::Debug + Send + Sync {
    /// A request was wholly written to the socket.
    fn request_sent(&self, peer: &Peer<'_>, request: &Exchange) {
        let _ = (peer, request);
    }

    /// An answer was wholly read and belongs to a request; nobody has looked into it yet. `round_trip` counts from the
    /// request's last byte.
    fn response_received(&self, peer: &Peer<'_>, response: &Exchange, round_trip: Duration) {
        let _ = (peer, response, round_trip);
    }

    /// The answer to a request that was wholly written won't come, because the connection is given up: this very request
    /// took too long, or what else `why` says. Each request that expects an answer is received or lost, once.
    fn response_lost(&self, peer: &Peer<'_>, request: &Exchange, why: ErrorKind) {
        let _ = (peer, request, why);
    }

    /// A connection is in another state: `CONNECT`, `APIVERSION_QUERY`, `UP` or `DOWN`, as in the statistics.
    fn state_changed(&self, peer: &Peer<'_>, state: &'static str) {
        let _ = (peer, state);
    }

    /// This thread, of that name, serves the client from now on.
    fn thread_starts(&self, name: &str) {
        let _ = name;
    }

    /// This thread serves the client no more.
    fn thread_ends(&self, name: &str) {
        let _ = name;
    }
}

/// The other end of a connection. It is displayed as errors and logs name it.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// The host's name or address.
    pub host: &'a str,
    /// The port.
    pub port: u16,
    /// The node's id, where it is known: not of a bootstrap server at first.
    pub node_id: Option<i32>,
    /// The socket's number for the system, as the driver told it.
    pub socket: Option<i32>,
}

/// A request or the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The API.
    pub api: ApiKey,
    /// The version.
    pub version: i16,
    /// What the answer has in common with the request.
    pub correlation_id: i32,
    /// Bytes on the wire, those of the length included.
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
