//! Verification of signatures.

use std::sync::OnceLock;

use p521::ecdsa::{DerSignature, VerifyingKey, signature::hazmat::PrehashVerifier};
use rustls::{
    SignatureScheme,
    crypto::WebPkiSupportedAlgorithms,
    pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id},
};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// ECDSA with P-521 and one hash.
#[derive(Debug)]
struct P521 {
    hash: fn(&[u8]) -> Vec<u8>,
    signature: AlgorithmIdentifier,
}

type Algorithm = &'static dyn SignatureVerificationAlgorithm;

const SHA256: Algorithm =
    &P521 { hash: |message| Sha256::digest(message).to_vec(), signature: alg_id::ECDSA_SHA256 };
const SHA384: Algorithm =
    &P521 { hash: |message| Sha384::digest(message).to_vec(), signature: alg_id::ECDSA_SHA384 };
const SHA512: Algorithm =
    &P521 { hash: |message| Sha512::digest(message).to_vec(), signature: alg_id::ECDSA_SHA512 };

impl SignatureVerificationAlgorithm for P521 {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let key = VerifyingKey::from_sec1_bytes(public_key).map_err(|_| InvalidSignature)?;
        let signature = DerSignature::from_bytes(signature).map_err(|_| InvalidSignature)?;
        key.verify_prehash(&(self.hash)(message), &signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_P521
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.signature
    }
}

/// Returns ring's algorithms with those of this file. rustls wants static slices, so they exist once per process.
pub(crate) fn extended(of_ring: WebPkiSupportedAlgorithms) -> WebPkiSupportedAlgorithms {
    static EXTENDED: OnceLock<WebPkiSupportedAlgorithms> = OnceLock::new();
    *EXTENDED.get_or_init(|| {
        let all = [of_ring.all, &[SHA256, SHA384, SHA512]].concat();
        let mut mapping = of_ring.mapping.to_vec();
        // In TLS 1.2 a scheme has no curve, and each algorithm of its row is tried; TLS 1.3 uses the first.
        for (scheme, algorithms) in &mut mapping {
            let more = match scheme {
                SignatureScheme::ECDSA_NISTP256_SHA256 => SHA256,
                SignatureScheme::ECDSA_NISTP384_SHA384 => SHA384,
                _ => continue,
            };
            *algorithms = Vec::leak([*algorithms, &[more]].concat());
        }
        mapping.push((SignatureScheme::ECDSA_NISTP521_SHA512, &[SHA512]));
        WebPkiSupportedAlgorithms { all: Vec::leak(all), mapping: Vec::leak(mapping) }
    })
}
