//! The algorithms of a certificate: its key, and what it is signed with. They say why a certificate can't be used.

use std::fmt;

use super::der::{Der, DerError, tag};

/// The kind of a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA with this number of bits.
    Rsa(usize),
    /// An elliptic curve, by its name; empty if it is an unknown one.
    Ec(&'static str),
    /// Ed25519.
    Ed25519,
    /// Another one.
    Other,
}

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

const CURVES: &[(&[u8], &str)] = &[
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], "P-256"),
    (&[0x2b, 0x81, 4, 0, 0x22], "P-384"),
    (&[0x2b, 0x81, 4, 0, 0x23], "P-521"),
    (&[0x2b, 0x81, 4, 0, 0x21], "P-224"),
    (&[0x2b, 0x81, 4, 0, 0x0a], "secp256k1"),
];

/// Signature algorithms with hashes that are not secure.
const WEAK: &[(&[u8], &str)] = &[
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], "SHA-1"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1], "SHA-1"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x38, 4, 3], "SHA-1"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4], "MD5"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 2], "MD2"),
];

/// The fewest bits of an RSA key.
const MIN_RSA_BITS: usize = 2048;
/// The most bits of an RSA key.
const MAX_RSA_BITS: usize = 8192;

impl KeyKind {
    /// Reads the kind of a public key in DER (SubjectPublicKeyInfo).
    pub fn parse(public_key: &[u8]) -> Result<Self, DerError> {
        let mut body = Der::new(public_key).inside(tag::SEQUENCE)?;
        let mut algorithm = body.inside(tag::SEQUENCE)?;
        match algorithm.expect(tag::OID)? {
            RSA => {
                let bits = body.expect(tag::BIT_STRING)?;
                let mut key = Der::new(bits.get(1..).unwrap_or_default()).inside(tag::SEQUENCE)?;
                let modulus = key.expect(tag::INTEGER)?;
                let leading = modulus.iter().take_while(|byte| **byte == 0).count();
                let first = modulus.get(leading).map_or(0, |byte| byte.leading_zeros() as usize);
                Ok(Self::Rsa((modulus.len() - leading) * 8 - first))
            }
            EC => {
                let curve = algorithm.optional(tag::OID)?.unwrap_or_default();
                Ok(Self::Ec(CURVES.iter().find(|(oid, _)| *oid == curve).map_or("", |(_, name)| name)))
            }
            ED25519 => Ok(Self::Ed25519),
            _ => Ok(Self::Other),
        }
    }

    /// Returns the rule that keys of this kind break; `None` if the client can use them.
    pub fn broken_rule(self) -> Option<String> {
        match self {
            Self::Rsa(MIN_RSA_BITS..=MAX_RSA_BITS)
            | Self::Ec("P-256" | "P-384" | "P-521")
            | Self::Ed25519 => None,
            Self::Rsa(_) => Some(format!("is {self}, and RSA keys need 2048 to 8192 bits")),
            Self::Ec(_) => Some(format!("is {self}, and EC keys need the curve P-256, P-384 or P-521")),
            Self::Other => Some("is of a kind that is not supported: use RSA, EC or Ed25519".to_owned()),
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa(bits) => write!(f, "an RSA key of {bits} bits"),
            Self::Ec("") => f.write_str("an EC key with an unknown curve"),
            Self::Ec(curve) => write!(f, "an EC key with the curve {curve}"),
            Self::Ed25519 => f.write_str("an Ed25519 key"),
            Self::Other => f.write_str("a key of an unknown kind"),
        }
    }
}

/// Returns the hash of a signature algorithm that is not secure.
pub fn weak_hash(algorithm: &[u8]) -> Option<&'static str> {
    WEAK.iter().find(|(oid, _)| *oid == algorithm).map(|(_, name)| *name)
}
