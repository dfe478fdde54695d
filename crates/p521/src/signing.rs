//! Private keys.

use std::{fmt, sync::Arc};

use p521::{
    SecretKey,
    ecdsa::{DerSignature, SigningKey, signature::Signer as _},
    pkcs8::DecodePrivateKey,
};
use rustls::{
    Error, SignatureAlgorithm, SignatureScheme,
    crypto::{KeyProvider, ring::sign::any_supported_type},
    pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer, alg_id},
    sign::{self, Signer, public_key_to_spki},
};
use zeroize::Zeroizing;

/// Loads private keys of every kind that ring has, and of P-521.
#[derive(Debug)]
pub(crate) struct Keys;

impl KeyProvider for Keys {
    fn load_private_key(&self, der: PrivateKeyDer<'static>) -> Result<Arc<dyn sign::SigningKey>, Error> {
        let der = Zeroizing::new(der);
        any_supported_type(&der).or_else(|error| match P521::parse(&der) {
            Some(key) => Ok(Arc::new(key)),
            None => Err(error),
        })
    }
}

/// A private key of P-521. It signs with nonces of RFC 6979, so that no random number can reveal it.
#[derive(Clone)]
struct P521(Arc<SigningKey>);

impl P521 {
    /// Reads a key in PKCS#8 or SEC1; `None` if it is another one.
    fn parse(der: &PrivateKeyDer<'_>) -> Option<Self> {
        let key = match der {
            PrivateKeyDer::Pkcs8(pkcs8) => SecretKey::from_pkcs8_der(pkcs8.secret_pkcs8_der()).ok()?,
            PrivateKeyDer::Sec1(sec1) => SecretKey::from_sec1_der(sec1.secret_sec1_der()).ok()?,
            _ => return None,
        };
        Some(Self(Arc::new(SigningKey::from(key))))
    }
}

const SCHEME: SignatureScheme = SignatureScheme::ECDSA_NISTP521_SHA512;

impl sign::SigningKey for P521 {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&SCHEME).then(|| Box::new(self.clone()) as _)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(public_key_to_spki(&alg_id::ECDSA_P521, self.0.verifying_key().to_sec1_point(false)))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

impl Signer for P521 {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let signature: DerSignature =
            self.0.try_sign(message).map_err(|_| Error::General("signing failed".to_owned()))?;
        Ok(signature.as_bytes().to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SCHEME
    }
}

impl fmt::Debug for P521 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("P521")
    }
}
