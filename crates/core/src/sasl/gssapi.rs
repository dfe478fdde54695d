//! GSSAPI (Kerberos): the interface to the library that speaks it.
//!
//! The calls of a Kerberos library wait for its servers, so that `ottla-net` makes them on a thread of its own:
//!
//! ```text
//!   Exchange ── pass(message) ──► Negotiation ── thread ──► Kerberos library
//!      ▲                              │
//!      └── take ◄── Command::SaslReply ┘
//! ```

use std::fmt;

use crate::secret::Secret;

/// Makes the calls of a Kerberos library.
pub trait Kerberos: Send + Sync + fmt::Debug {
    /// Starts an authentication at the broker with this name.
    fn start(&self, host: &str) -> Box<dyn Negotiation>;
}

/// One authentication.
pub trait Negotiation: Send + fmt::Debug {
    /// Passes a message of the broker, an empty one at first. The reply follows later.
    fn pass(&mut self, message: &[u8]);

    /// Takes the reply, if it is there. Error: why the authentication has failed.
    fn take(&mut self) -> Option<Result<Reply, String>>;
}

/// The reply to a message of the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The next message to the broker.
    Message(Secret),
    /// The last message: the broker then accepts the client, or refuses it.
    Last(Secret),
}
