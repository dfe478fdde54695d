//! The data that a broker stores for a SCRAM password.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};

/// The hash function of a SCRAM mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScramHash {
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl ScramHash {
    pub(super) const fn size(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    pub(super) fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }

    pub(super) fn hmac(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        const ANY: &str = "HMAC takes a key of any length";
        match self {
            Self::Sha256 => {
                let mac = Hmac::<Sha256>::new_from_slice(key).expect(ANY);
                mac.chain_update(message).finalize().into_bytes().to_vec()
            }
            Self::Sha512 => {
                let mac = Hmac::<Sha512>::new_from_slice(key).expect(ANY);
                mac.chain_update(message).finalize().into_bytes().to_vec()
            }
        }
    }
}

/// The stored keys of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    pub salt: Vec<u8>,
    pub iterations: u32,
    pub stored_key: Vec<u8>,
    pub server_key: Vec<u8>,
}

impl Keys {
    pub fn new(hash: ScramHash, password: &[u8], salt: Vec<u8>, iterations: u32) -> Self {
        let mut salted = vec![0; hash.size()];
        match hash {
            ScramHash::Sha256 => pbkdf2::pbkdf2_hmac::<Sha256>(password, &salt, iterations, &mut salted),
            ScramHash::Sha512 => pbkdf2::pbkdf2_hmac::<Sha512>(password, &salt, iterations, &mut salted),
        }
        Self::of_salted_password(hash, &salted, salt, iterations)
    }

    /// Returns the keys of a salted password.
    pub fn of_salted_password(hash: ScramHash, salted: &[u8], salt: Vec<u8>, iterations: u32) -> Self {
        let stored_key = hash.digest(&hash.hmac(salted, b"Client Key"));
        Self { salt, iterations, stored_key, server_key: hash.hmac(salted, b"Server Key") }
    }
}

/// Compares in a time that depends on the lengths only.
pub(super) fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (a, b)| std::hint::black_box(sum | (a ^ b)));
    one.len() == other.len() && difference == 0
}
