//! Files of certificates and keys. The first byte chooses the reader, and whether there is a password.

use ottla_core::secret::Secret;
use ottla_net::credentials::{self, x509::Certificate};
use sha1::{Digest, Sha1};

use super::bytes::Bytes;

/// The password of all files.
pub const PASSWORD: &str = "changeit";

/// Runs the target.
pub fn run(input: &[u8]) {
    let mut input = Bytes::new(input);
    let mode = input.byte();
    let password = Secret::from(PASSWORD);
    let password = (mode & 0x80 == 0).then_some(&password);
    let bytes = input.rest();
    let error = match mode % 5 {
        0 => match credentials::certificates(bytes) {
            Ok(certificates) => {
                let chain = credentials::chain(certificates.clone(), |leaf| leaf.is_self_issued());
                assert!(chain.len() <= certificates.len());
                return;
            }
            Err(error) => error,
        },
        1 => credentials::private_key(bytes, password).map(drop).err().unwrap_or_default(),
        2 => credentials::store(bytes, password).map(drop).err().unwrap_or_default(),
        3 => {
            // The hash at the end hides the rest of a store from a fuzzer.
            let bytes = with_jks_hash(bytes);
            credentials::store(&bytes, password).map(drop).err().unwrap_or_default()
        }
        _ => match Certificate::parse(bytes) {
            Ok(certificate) => return drop(format!("{certificate:?}")),
            Err(error) => error.to_owned(),
        },
    };
    assert!(error.len() < 1000, "{error}");
}

/// Adds the hash that a JKS store of these bytes has.
fn with_jks_hash(bytes: &[u8]) -> Vec<u8> {
    let password: Vec<u8> = PASSWORD.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let hash =
        Sha1::new().chain_update(password).chain_update(b"Mighty Aphrodite").chain_update(bytes).finalize();
    [bytes, &hash[..]].concat()
}
