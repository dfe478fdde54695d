//! The hash functions of SCRAM, HMAC with them, and the derivation of a key from a password.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256, Sha512};
use zeroize::Zeroize;

use crate::secret::Secret;

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// The largest size of a digest in bytes.
const LARGEST: usize = 64;

impl Hash {
    /// Returns the size of a digest in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// Returns the digest of bytes.
    pub fn digest(self, bytes: &[u8]) -> Secret {
        match self {
            Self::Sha256 => Secret::new(Sha256::digest(bytes).to_vec()),
            Self::Sha512 => Secret::new(Sha512::digest(bytes).to_vec()),
        }
    }

    /// Returns the HMAC of a message under a key.
    pub fn hmac(self, key: &[u8], message: &[u8]) -> Secret {
        let mut out = [0; LARGEST];
        Keyed::new(self, key).mac(&[message], &mut out);
        let mac = Secret::new(out[..self.size()].to_vec());
        out.zeroize();
        mac
    }

    /// Returns true if `mac` is the HMAC of a message under a key. The time of the comparison does not depend on the
    /// bytes.
    pub fn verify(self, key: &[u8], message: &[u8], mac: &[u8]) -> bool {
        match Keyed::new(self, key) {
            Keyed::Sha256(state) => state.chain_update(message).verify_slice(mac).is_ok(),
            Keyed::Sha512(state) => state.chain_update(message).verify_slice(mac).is_ok(),
        }
    }
}

/// HMAC with its key.
#[derive(Clone)]
enum Keyed {
    Sha256(Hmac<Sha256>),
    Sha512(Hmac<Sha512>),
}

impl Keyed {
    fn new(hash: Hash, key: &[u8]) -> Self {
        // HMAC accepts keys of every length.
        match hash {
            Hash::Sha256 => Self::Sha256(Hmac::new_from_slice(key).expect("HMAC takes a key of any length")),
            Hash::Sha512 => Self::Sha512(Hmac::new_from_slice(key).expect("HMAC takes a key of any length")),
        }
    }

    /// Writes the HMAC of the parts to the start of `out`.
    fn mac(&self, parts: &[&[u8]], out: &mut [u8; LARGEST]) {
        match self {
            Self::Sha256(state) => {
                let mut state = state.clone();
                parts.iter().for_each(|part| state.update(part));
                out[..32].copy_from_slice(&state.finalize().into_bytes());
            }
            Self::Sha512(state) => {
                let mut state = state.clone();
                parts.iter().for_each(|part| state.update(part));
                out.copy_from_slice(&state.finalize().into_bytes());
            }
        }
    }
}

/// PBKDF2 with a key as long as the digest, in slices: a broker chooses the number of iterations, and an I/O thread serves
/// all clients of the process.
pub struct Derivation {
    hash: Hash,
    keyed: Keyed,
    state: Blocks,
    left: u32,
}

struct Blocks {
    last: [u8; LARGEST],
    sum: [u8; LARGEST],
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.last.zeroize();
        self.sum.zeroize();
    }
}

impl Derivation {
    /// Starts to derive a key with at least one iteration.
    pub fn new(hash: Hash, password: &Secret, salt: &[u8], iterations: u32) -> Self {
        let keyed = Keyed::new(hash, password.expose());
        let mut last = [0; LARGEST];
        keyed.mac(&[salt, &1u32.to_be_bytes()], &mut last);
        Self { hash, keyed, state: Blocks { last, sum: last }, left: iterations.saturating_sub(1) }
    }

    /// Does up to this number of iterations. Returns the key when all are done.
    pub fn advance(&mut self, iterations: u32) -> Option<Secret> {
        let turn = iterations.min(self.left);
        for _ in 0..turn {
            let mut next = [0; LARGEST];
            self.keyed.mac(&[&self.state.last[..self.hash.size()]], &mut next);
            self.state.last = next;
            self.state.sum.iter_mut().zip(next).for_each(|(sum, byte)| *sum ^= byte);
        }
        self.left -= turn;
        (self.left == 0).then(|| Secret::new(self.state.sum[..self.hash.size()].to_vec()))
    }
}

impl fmt::Debug for Derivation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Derivation").field("left", &self.left).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn derivation_continues_in_slices() {
        // Known answers for PBKDF2-HMAC-SHA-256, computed by Python's hashlib.pbkdf2_hmac.
        let password = Secret::from("passwd");
        let mut whole = Derivation::new(Hash::Sha256, &password, b"salt", 1);
        let key = whole.advance(u32::MAX).unwrap();
        assert_eq!(hex(key.expose()), "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc");
        let mut sliced = Derivation::new(Hash::Sha256, &password, b"salt", 1000);
        let mut turns = 1;
        let key = loop {
            match sliced.advance(300) {
                Some(key) => break key,
                None => turns += 1,
            }
        };
        assert_eq!(turns, 4);
        assert_eq!(hex(key.expose()), "fa9c158e678bfe94189b0b1a707a0921672fdc9f11fa978805969df312c2c8ef");
        let long = Derivation::new(Hash::Sha512, &password, b"salt", 1000).advance(u32::MAX).unwrap();
        assert_eq!(
            hex(long.expose()),
            "9b24b69e88dfa45d31e06a6dd20bc963268c0a94924677f76d4b2f02e5a105a7\
             f65fca857a354cb2e5069580b8b8457cb5b40da49084e4d75c39b31ac1f356d5"
        );
    }

    #[test]
    fn hmac_is_verified_only_if_every_byte_is_right() {
        for hash in [Hash::Sha256, Hash::Sha512] {
            let mac = hash.hmac(b"key", b"message");
            assert!(hash.verify(b"key", b"message", mac.expose()));
            for index in 0..hash.size() {
                let mut wrong = mac.expose().to_vec();
                wrong[index] ^= 1;
                assert!(!hash.verify(b"key", b"message", &wrong), "byte {index}");
            }
            assert!(!hash.verify(b"key", b"message", &mac.expose()[1..]));
            assert!(!hash.verify(b"key", b"message", b""));
        }
    }
}
