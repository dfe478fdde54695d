//! TLS below the frames of a connection, with rustls.
//!
//! | file | content |
//! |---|---|
//! | [`settings`] | the properties |
//! | [`context`] | what all connections of a client share |
//! | [`load`] | reads the files that the properties name |
//! | [`identity`] | the client's certificate and key |
//! | [`algorithms`] | lists of cipher suites, curves and signature algorithms |
//! | [`verify`], [`refusal`] | verification of a broker's certificate, and why one is refused |
//! | [`socket`] | one connection: handshake, decryption, encryption |
//! | [`buffers`] | the buffers that connections borrow from their I/O thread |
//! | [`watch`] | notices changed files and certificates that expire soon |
//! | [`failure`] | errors of sessions in words |
//! | [`probe`] | one handshake that blocks, for a diagnosis |
//!
//! The core does not know of TLS: a connection is in the state `Securing` until the driver reports that it is connected.

mod algorithms;
mod buffers;
mod context;
mod failure;
mod identity;
mod load;
mod probe;
mod refusal;
mod settings;
mod socket;
#[cfg(test)]
mod tests;
mod verify;
mod watch;

pub use context::TlsContext;
pub use failure::TlsProblem;
pub(crate) use load::{https_roots, invalid, read as read_file};
pub use probe::{ClientCertificate, Shown, TlsFailure, TlsProbe};
pub use settings::{PassedCredentials, TlsSettings};
pub(crate) use socket::TlsSocket;
pub use verify::{CertificateCallback, CertificateInChain};
pub use watch::Watcher;

/// The implementation of all algorithms.
pub(crate) fn default_provider() -> rustls::crypto::CryptoProvider {
    #[cfg(feature = "aws-lc-rs")]
    return rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(not(feature = "aws-lc-rs"))]
    return ottla_p521::provider();
}
