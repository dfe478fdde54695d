//! Reads certificates, keys and key stores in all formats that clients use.
//!
//! | file | content |
//! |---|---|
//! | `secret` | passwords and keys, erased after use |
//! | `pem` | PEM blocks |
//! | `der` | values in DER |
//! | `x509` | names, times and keys of a certificate |
//! | `public_key` | kinds of keys and signatures, and which can be used |
//! | `pbe` | decryption with a password |
//! | `pkcs12`, `jks` | key stores |
//!
//! The readers return errors as text without the file's name; `tls` adds the property and the file.

pub(crate) mod der;
mod jks;
pub mod pbe;
pub mod pem;
mod pkcs12;
pub mod public_key;
pub mod secret;
pub mod x509;

use pem::Block;
use secret::Secret;

/// The content of a key store.
#[derive(Debug, Default)]
pub struct Store {
    /// The first private key, in DER.
    pub key: Option<Secret>,
    /// All certificates, in DER.
    pub certificates: Vec<Vec<u8>>,
}

/// Returns the certificates of PEM text or DER bytes.
pub fn certificates(bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    if bytes.first() == Some(&0x30) && x509::Certificate::parse(bytes).is_ok() {
        return Ok(vec![bytes.to_vec()]);
    }
    let blocks = pem::blocks(bytes)?;
    let is_certificate =
        |block: &&Block| matches!(&*block.label, "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE");
    let found: Vec<_> = blocks.iter().filter(is_certificate).map(|it| it.bytes.expose().to_vec()).collect();
    if found.is_empty() {
        return Err(format!("no certificate: {}", pem::describe(bytes, &blocks)));
    }
    Ok(found)
}

/// Returns the private key of PEM text or DER bytes, decrypted, in DER.
pub fn private_key(bytes: &[u8], password: Option<&Secret>) -> Result<Secret, String> {
    const NO_PASSWORD: &str = "the key is encrypted and ssl.key.password is not set";
    if bytes.first() == Some(&0x30) {
        let is_encrypted =
            der::Der::new(bytes).inside(der::tag::SEQUENCE)?.peek() == Some(der::tag::SEQUENCE);
        return match password {
            _ if !is_encrypted => Ok(Secret::new(bytes.to_vec())),
            Some(password) => pbe::decrypt_key(bytes, password),
            None => Err(NO_PASSWORD.to_owned()),
        };
    }
    let blocks = pem::blocks(bytes)?;
    let Some(block) = blocks.iter().find(|block| block.label.ends_with("PRIVATE KEY")) else {
        return Err(format!("no private key: {}", pem::describe(bytes, &blocks)));
    };
    let is_encrypted = block.label == "ENCRYPTED PRIVATE KEY" || block.encryption.is_some();
    if !is_encrypted {
        return Ok(block.bytes.clone());
    }
    let password = password.ok_or(NO_PASSWORD)?;
    let decrypted = match &block.encryption {
        Some(info) => pbe::decrypt_legacy_pem(info, block.bytes.expose(), password),
        None => pbe::decrypt_key(block.bytes.expose(), password),
    };
    let decrypted =
        decrypted.map_err(|why| format!("the key can't be decrypted (ssl.key.password): {why}"))?;
    // A wrong password leaves valid padding once in 256 times.
    if decrypted.expose().first() != Some(&0x30) {
        return Err("the key can't be decrypted: the password is wrong (ssl.key.password)".to_owned());
    }
    Ok(decrypted)
}

/// Reads a key store: PKCS#12, JKS, or PEM with a key and certificates.
pub fn store(bytes: &[u8], password: Option<&Secret>) -> Result<Store, String> {
    const NO_PASSWORD: &str = "the store's password is not set";
    if bytes.starts_with(&jks::MAGIC) {
        // Java reads a trust store without a password, too.
        return jks::read(bytes, password);
    }
    if bytes.first() == Some(&0x30) {
        return pkcs12::read(bytes, password.ok_or(NO_PASSWORD)?);
    }
    let blocks = pem::blocks(bytes)?;
    if blocks.is_empty() {
        let what = pem::describe(bytes, &blocks);
        return Err(format!("neither PKCS#12 nor JKS nor PEM: {what}"));
    }
    let has_key = blocks.iter().any(|block| block.label.ends_with("PRIVATE KEY"));
    Ok(Store {
        key: has_key.then(|| private_key(bytes, password)).transpose()?,
        certificates: certificates(bytes)?,
    })
}

/// Puts the certificates of a key's identity in order: the certificate of the key first, then each issuer. Certificates
/// outside of the chain are left out.
pub fn chain(mut certificates: Vec<Vec<u8>>, is_of_key: impl Fn(&x509::Certificate) -> bool) -> Vec<Vec<u8>> {
    let parsed = |der: &Vec<u8>| x509::Certificate::parse(der).ok();
    let Some(leaf) = certificates.iter().position(|der| parsed(der).is_some_and(|it| is_of_key(&it))) else {
        return certificates;
    };
    let mut chain = vec![certificates.swap_remove(leaf)];
    while let Some(last) = chain.last().and_then(parsed)
        && !last.is_self_issued()
        && let Some(next) = certificates
            .iter()
            .position(|der| parsed(der).is_some_and(|it| it.subject_der == last.issuer_der))
    {
        chain.push(certificates.swap_remove(next));
    }
    chain
}
