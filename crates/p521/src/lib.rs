//! ECDSA with the curve P-521 for TLS: ring has no P-521, so the crate `p521` signs and verifies.
//!
//! | file | content |
//! |---|---|
//! | `verification` | signatures of certificates and handshakes |
//! | `signing` | private keys |
//!
//! [`provider`] has everything of rustls with ring, and P-521 as well. A key exchange with P-521 is not included: X25519, P-256
//! and P-384 remain.

#![forbid(unsafe_code)]

mod signing;
mod verification;

use rustls::crypto::{CryptoProvider, ring};

/// Returns the algorithms of rustls with ring, with keys and signatures of P-521.
pub fn provider() -> CryptoProvider {
    let of_ring = ring::default_provider();
    CryptoProvider {
        signature_verification_algorithms: verification::extended(of_ring.signature_verification_algorithms),
        key_provider: &signing::Keys,
        ..of_ring
    }
}

#[cfg(test)]
mod tests;
