//! Sockets and threads: the driver that runs the machines of `ottla-core` in real time.
//!
//! ```text
//!   Runtime, one per process while there are clients
//!     ├─ I/O thread 0   reactor: epoll, timers, inbox ─┬─ cluster actor of client A
//!     │                                                ├─ broker actor A/0 ── socket
//!     │                                                └─ broker actor B/3 ── socket
//!     ├─ I/O thread 1   ...
//!     └─ resolver       getaddrinfo blocks, so it has its own thread, started at the first name
//! ```
//!
//! The number of threads depends on the machine, not on the number of brokers or clients. Read [`clock`], [`mailbox`]
//! (how threads wake each other), [`reactor`] (the machines), `driver` (the loop, and the threads of the application that take its
//! place), with `lead` and `caller`, [`runtime`]. [`Transport`] contains the system calls that an
//! application may replace.

mod aws;
mod caller;
pub mod cancel;
mod canonical;
pub mod clock;
pub mod credentials;
mod driver;
#[cfg(all(test, ottla_loom))]
mod eventfd;
mod gssapi;
pub mod injection;
mod issuer;
mod lead;
mod link;
pub mod mailbox;
mod oidc;
mod platform;
pub mod process;
mod proxy;
pub mod reactor;
mod resolver;
pub mod runtime;
pub mod sasl;
mod socket;
mod tls;
mod transport;
mod workers;

pub use aws::{AwsClient, FoundKeys};
pub use caller::{InCaller, call_out, notes_wait, running};
pub use canonical::canonical_servers;
pub use credentials::secret::Secret;
pub use driver::Drivers;
pub use gssapi::KerberosThread;
pub use issuer::Issuer;
pub use lead::Sleeper;
pub use oidc::{Answer, IssuedToken, TokenClient, TokenFailure, read_answer};
pub use proxy::open_tunnel;
pub use runtime::{ClientHandle, ClientParts, Runtime, SocketSettings, is_io_thread};
pub use tls::{
    CertificateCallback, CertificateInChain, ClientCertificate, PassedCredentials, Shown, TlsContext,
    TlsFailure, TlsProbe, TlsProblem, TlsSettings, Watcher,
};
pub use transport::{SystemTransport, Transport};
