//! Reads JKS stores, the format of Java's keytool before version 9.

use sha1::{Digest, Sha1};

use super::{
    Store,
    der::{Der, tag},
    secret::Secret,
};

/// The first bytes of every store.
pub const MAGIC: [u8; 4] = [0xfe, 0xed, 0xfe, 0xed];

const SUN_PROTECTION: &[u8] = &[0x2b, 6, 1, 4, 1, 0x2a, 2, 0x11, 1, 1];
const HASH_BYTES: usize = 20;
/// The highest number of certificates of a store.
const MAX_CERTIFICATES: usize = 20_000;

/// Reads a store. Without a password its hash is not checked, and keys are left out. Error: the password is wrong, or what is
/// wrong with the store.
pub fn read(bytes: &[u8], password: Option<&Secret>) -> Result<Store, String> {
    let password = password.map(utf16).transpose()?;
    let (body, hash) = bytes.split_last_chunk::<HASH_BYTES>().ok_or("the JKS store ends too early")?;
    if let Some(password) = &password {
        let computed = Sha1::new()
            .chain_update(password.expose())
            .chain_update(b"Mighty Aphrodite")
            .chain_update(body)
            .finalize();
        if computed[..] != hash[..] {
            return Err("the password is wrong, or the JKS store is damaged".to_owned());
        }
    }
    let mut body = Bytes(body);
    body.take(MAGIC.len())?;
    let version = body.number()?;
    let mut found = Store::default();
    for _ in 0..body.number()? {
        let kind = body.number()?;
        body.text()?;
        body.take(8)?;
        match kind {
            1 => {
                let length = body.number()? as usize;
                let key = body.take(length)?;
                if let Some(password) = &password
                    && found.key.is_none()
                {
                    found.key = Some(decrypt(key, password)?);
                }
                for _ in 0..body.number()? {
                    let certificate = body.certificate(version, found.certificates.len())?;
                    found.certificates.push(certificate);
                }
            }
            2 => {
                let certificate = body.certificate(version, found.certificates.len())?;
                found.certificates.push(certificate);
            }
            _ => return Err("the JKS store has an entry of an unknown kind".to_owned()),
        }
    }
    Ok(found)
}

/// Decrypts a key with Sun's algorithm: a stream of SHA-1 hashes, and a hash of the result.
fn decrypt(der: &[u8], password: &Secret) -> Result<Secret, String> {
    let mut body = Der::new(der).inside(tag::SEQUENCE)?;
    if body.inside(tag::SEQUENCE)?.expect(tag::OID)? != SUN_PROTECTION {
        return Err("the key in the JKS store is encrypted with an unknown algorithm".to_owned());
    }
    let data = body.expect(tag::OCTET_STRING)?;
    let (salt, data) = data.split_first_chunk::<HASH_BYTES>().ok_or("the key in the JKS store is cut off")?;
    let (data, check) = data.split_last_chunk::<HASH_BYTES>().ok_or("the key in the JKS store is cut off")?;
    let mut plain = Vec::with_capacity(data.len());
    let mut mask = salt.to_vec();
    for part in data.chunks(HASH_BYTES) {
        mask = Sha1::new().chain_update(password.expose()).chain_update(&mask).finalize().to_vec();
        plain.extend(part.iter().zip(&mask).map(|(byte, mask)| byte ^ mask));
    }
    let plain = Secret::new(plain);
    let computed = Sha1::new().chain_update(password.expose()).chain_update(plain.expose()).finalize();
    if computed[..] != check[..] {
        return Err("the password of the key in the JKS store is another one".to_owned());
    }
    Ok(plain)
}

fn utf16(password: &Secret) -> Result<Secret, String> {
    let text = std::str::from_utf8(password.expose()).map_err(|_| "the password is not UTF-8")?;
    Ok(Secret::new(text.encode_utf16().flat_map(u16::to_be_bytes).collect()))
}

/// Reads big-endian numbers and counted bytes.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("the JKS store ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, String> {
        Ok(self.take(4)?.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
    }

    fn text(&mut self) -> Result<&'a [u8], String> {
        let length = self.take(2)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        self.take(length)
    }

    fn certificate(&mut self, version: u32, before: usize) -> Result<Vec<u8>, String> {
        if before == MAX_CERTIFICATES {
            return Err(format!("the JKS store has more than {MAX_CERTIFICATES} certificates"));
        }
        if version > 1 {
            self.text()?;
        }
        let length = self.number()? as usize;
        Ok(self.take(length)?.to_vec())
    }
}
