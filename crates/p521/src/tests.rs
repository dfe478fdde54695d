//! Keys and certificates of OpenSSL.

use std::sync::Arc;

use rustls::{
    SignatureScheme,
    pki_types::{AlgorithmIdentifier, CertificateDer, PrivateKeyDer, alg_id, pem::PemObject},
    sign::SigningKey,
};

use super::provider;

const CA: &str = include_str!("../../net/src/tls/tests/kinds/p-521-ca.pem");
/// A key in PKCS#8, and a certificate that the CA has signed with SHA-512.
const BROKER: &str = include_str!("../../net/src/tls/tests/kinds/p-521-broker.pem");
/// A key in SEC1, and a certificate that the CA has signed with SHA-384.
const CLIENT: &str = include_str!("../../net/src/tls/tests/kinds/p-521-client.pem");
/// A key in PKCS#8, and a certificate that the key itself has signed with SHA-256.
const OTHER: &str = include_str!("../../net/src/tls/tests/kinds/client-p-521.pem");
/// A key with P-256.
const P256: &str = include_str!("../../net/src/tls/tests/kinds/broker.key");

const ALL: [SignatureScheme; 4] = [
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP521_SHA512,
];

fn key(pem: &str) -> Arc<dyn SigningKey> {
    let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
    provider().key_provider.load_private_key(der).unwrap()
}

/// Verifies as a certificate is verified, by the identifiers of the key and of the signature.
fn verify(
    key: AlgorithmIdentifier,
    point: &[u8],
    hash: AlgorithmIdentifier,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let all = provider().signature_verification_algorithms.all;
    let algorithm = all.iter().find(|it| it.public_key_alg_id() == key && it.signature_alg_id() == hash);
    algorithm.unwrap().verify_signature(point, message, signature).is_ok()
}

/// An element of DER: all its bytes, their content, and what follows.
fn element(der: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (head, length) = match der[1] {
        0x81 => (3, usize::from(der[2])),
        0x82 => (4, usize::from(der[2]) << 8 | usize::from(der[3])),
        short => (2, usize::from(short)),
    };
    (&der[..head + length], &der[head..head + length], &der[head + length..])
}

/// The signed bytes of a certificate, and the signature.
fn signed(certificate: &[u8]) -> (&[u8], &[u8]) {
    let (message, _, rest) = element(element(certificate).1);
    let (_, bits, _) = element(element(rest).2);
    (message, &bits[1..])
}

/// The point in the DER of a public key of P-521.
fn point(public_key: &[u8]) -> Vec<u8> {
    public_key[public_key.len() - 133..].to_vec()
}

#[test]
fn certificates_are_verified_with_each_hash() {
    // The CA's key is in its certificate only.
    let ca = CertificateDer::from_pem_slice(CA.as_bytes()).unwrap();
    let start = ca.windows(5).position(|window| window == [3, 0x81, 0x86, 0, 4]).unwrap() + 4;
    let ca_point = ca[start..start + 133].to_vec();
    let other_point = point(&key(OTHER).public_key().unwrap());
    for (pem, signer, hash) in [
        (CA, &ca_point, alg_id::ECDSA_SHA512),
        (BROKER, &ca_point, alg_id::ECDSA_SHA512),
        (CLIENT, &ca_point, alg_id::ECDSA_SHA384),
        (OTHER, &other_point, alg_id::ECDSA_SHA256),
    ] {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let (message, signature) = signed(&der);
        let verified = |point: &[u8], message: &[u8], signature: &[u8]| {
            verify(alg_id::ECDSA_P521, point, hash, message, signature)
        };
        assert!(verified(signer, message, signature), "{hash:?}");
        let tampered = |bytes: &[u8], index: usize| {
            let mut bytes = bytes.to_vec();
            bytes[index] ^= 1;
            bytes
        };
        assert!(!verified(signer, &tampered(message, 40), signature));
        for index in [0, 4, signature.len() - 1] {
            assert!(!verified(signer, message, &tampered(signature, index)), "{hash:?}: byte {index}");
        }
        assert!(!verified(signer, message, &[signature, &[0]].concat()), "bytes behind the signature");
        assert!(!verified(&point(&key(BROKER).public_key().unwrap()), message, signature), "another key");
        assert!(!verified(&tampered(signer, 132), message, signature), "no point of the curve");
        assert!(!verified(&signer[..65], message, signature), "a point as short as those of P-256");
        assert!(!verified(&[0], message, signature) && !verified(&[], message, signature));
    }
}

#[test]
fn keys_in_both_formats_sign() {
    for pem in [BROKER, CLIENT, OTHER] {
        let key = key(pem);
        assert!(key.choose_scheme(&ALL[..3]).is_none(), "a scheme of another curve");
        let signer = key.choose_scheme(&ALL).unwrap();
        assert_eq!(signer.scheme(), SignatureScheme::ECDSA_NISTP521_SHA512);
        let point = point(&key.public_key().unwrap());
        let signature = signer.sign(b"hello").unwrap();
        let verified =
            |message| verify(alg_id::ECDSA_P521, &point, alg_id::ECDSA_SHA512, message, &signature);
        assert!(verified(b"hello") && !verified(b"hullo"));
        assert!(!format!("{key:?} {signer:?}").contains('['));
    }
}

#[test]
fn keys_of_other_kinds_belong_to_ring() {
    let key = key(P256);
    let signer = key.choose_scheme(&ALL).unwrap();
    assert_eq!(signer.scheme(), SignatureScheme::ECDSA_NISTP256_SHA256);
    let mut damaged = PrivateKeyDer::from_pem_slice(CLIENT.as_bytes()).unwrap().secret_der().to_vec();
    let curve = damaged.windows(5).position(|window| window == [0x2b, 0x81, 4, 0, 0x23]).unwrap();
    damaged[curve + 4] = 0x22;
    let of_p384 = PrivateKeyDer::try_from(damaged).unwrap();
    assert!(provider().key_provider.load_private_key(of_p384).is_err(), "a key that names another curve");
}

#[test]
fn scheme_of_p521_is_offered_last() {
    let schemes = provider().signature_verification_algorithms.supported_schemes();
    assert_eq!(schemes.last(), Some(&SignatureScheme::ECDSA_NISTP521_SHA512));
    assert_eq!(
        schemes.len(),
        rustls::crypto::ring::default_provider().signature_verification_algorithms.mapping.len() + 1
    );
}
