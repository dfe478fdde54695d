//! Sockets and threads: the driver that runs the machines of `ottla-core` on real time.
//!
//! ```text
//!   Runtime, one per process while there are clients
//!     ├─ I/O thread 0   reactor: epoll, timers, inbox ─┬─ cluster owner of client A
//!     │                                                ├─ broker owner A/0 ── socket
//!     │                                                └─ broker owner B/3 ── socket
//!     ├─ I/O thread 1   ...
//!     └─ resolver       getaddrinfo blocks, so it has a thread of its own, started when it is first needed
//! ```
//!
//! How many threads there are depends on the machine, not on the number of brokers or clients. Read [`clock`],
//! [`mailbox`] (how threads wake each other), [`reactor`] (the loop), [`runtime`]. [`Transport`] is what an application may do
//! itself of it.

mod canonical;
pub mod clock;
pub mod injection;
pub mod mailbox;
pub mod reactor;
mod resolver;
pub mod runtime;
mod socket;
mod transport;

pub use canonical::canonical_servers;
pub use runtime::{ClientHandle, ClientParts, Runtime, SocketSettings};
pub use transport::{SystemTransport, Transport};
