//! Decrypts what a password protects: PKCS#8 keys, PKCS#12 stores and legacy PEM keys.
//!
//! # Pitfalls
//!
//! - The number of rounds is in the file and may be chosen to block the reader: above [`MAX_ROUNDS`] it is an error
//!   (`rounds_above_the_limit_are_an_error`).

use aes::cipher::{Block, BlockCipherDecrypt, KeyInit};
use sha1::{Digest, Sha1};
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::{
    der::{Der, tag},
    secret::Secret,
};

/// The largest number of rounds of a key derivation. OpenSSL and Java use 2,048 to 600,000.
pub const MAX_ROUNDS: u32 = 10_000_000;
/// The largest memory of scrypt in bytes.
const MAX_SCRYPT_BYTES: u64 = 256 << 20;

/// The advice of errors about formats that can't be read.
pub const CONVERT: &str = "convert it with `openssl pkcs8 -topk8 -v2 aes-256-cbc`";

const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 12];
const SCRYPT: &[u8] = &[0x2b, 6, 1, 4, 1, 0xda, 0x47, 4, 11];
/// PKCS#5 version 1; one more byte says which.
const PBES1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5];
/// The schemes of PKCS#12; one more byte says which.
const PKCS12: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 12, 1];
/// HMAC functions; one more byte says which.
const HMAC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2];
const AES: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1];
const DES_EDE3_CBC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 3, 7];

/// A block cipher in CBC mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    TripleDes,
    /// The effective bits of the key.
    Rc2(usize),
}

/// Decrypts an EncryptedPrivateKeyInfo in DER. Returns the PrivateKeyInfo.
pub fn decrypt_key(der: &[u8], password: &Secret) -> Result<Secret, String> {
    let mut body = Der::new(der).inside(tag::SEQUENCE)?;
    let algorithm = body.expect(tag::SEQUENCE)?;
    decrypt(algorithm, body.expect(tag::OCTET_STRING)?, password)
}

/// Decrypts data with an algorithm, which is the content of an AlgorithmIdentifier. Error: the algorithm is unsupported,
/// or the password is wrong.
pub fn decrypt(algorithm: &[u8], data: &[u8], password: &Secret) -> Result<Secret, String> {
    let mut algorithm = Der::new(algorithm);
    let scheme = algorithm.expect(tag::OID)?;
    if scheme == PBES2 {
        return pbes2(algorithm.inside(tag::SEQUENCE)?, data, password);
    }
    if let Some([kind]) = scheme.strip_prefix(PKCS12) {
        let (cipher, key_bytes) = match kind {
            3 => (Cipher::TripleDes, 24),
            4 => (Cipher::TripleDes, 16),
            5 => (Cipher::Rc2(128), 16),
            6 => (Cipher::Rc2(40), 5),
            _ => return Err(format!("it is encrypted with RC4, which is not supported; {CONVERT}")),
        };
        let mut parameters = algorithm.inside(tag::SEQUENCE)?;
        let salt = parameters.expect(tag::OCTET_STRING)?;
        let rounds = rounds(parameters.small()?)?;
        let mut key = pkcs12_derive::<Sha1>(password, salt, 1, rounds, key_bytes)?.expose().to_vec();
        let iv = pkcs12_derive::<Sha1>(password, salt, 2, rounds, 8)?;
        if cipher == Cipher::TripleDes && key.len() == 16 {
            key.extend_from_within(..8);
        }
        return cipher.decrypt(&Secret::new(key), iv.expose(), data);
    }
    if scheme.starts_with(PBES1) {
        return Err(format!("it is encrypted with PBES1 and DES or RC2, which is not supported; {CONVERT}"));
    }
    Err(format!("it is encrypted with an unknown algorithm; {CONVERT}"))
}

fn pbes2(mut parameters: Der<'_>, data: &[u8], password: &Secret) -> Result<Secret, String> {
    let mut derivation = parameters.inside(tag::SEQUENCE)?;
    let mut encryption = parameters.inside(tag::SEQUENCE)?;
    let (cipher, key_bytes) = match encryption.expect(tag::OID)? {
        [prefix @ .., 2] if prefix == AES => (Cipher::Aes128, 16),
        [prefix @ .., 22] if prefix == AES => (Cipher::Aes192, 24),
        [prefix @ .., 42] if prefix == AES => (Cipher::Aes256, 32),
        DES_EDE3_CBC => (Cipher::TripleDes, 24),
        _ => return Err(format!("its cipher is neither AES-CBC nor 3DES-CBC; {CONVERT}")),
    };
    let iv = encryption.expect(tag::OCTET_STRING)?;
    let mut key = vec![0; key_bytes];
    match derivation.expect(tag::OID)? {
        PBKDF2 => {
            let mut parameters = derivation.inside(tag::SEQUENCE)?;
            let salt = parameters.expect(tag::OCTET_STRING)?;
            let rounds = rounds(parameters.small()?)?;
            parameters.optional(tag::INTEGER)?;
            let function = match parameters.optional(tag::SEQUENCE)? {
                Some(function) => Der::new(function).expect(tag::OID)?.strip_prefix(HMAC).unwrap_or(&[]),
                None => &[7],
            };
            let password = password.expose();
            match function {
                [7] => pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, rounds, &mut key),
                [8] => pbkdf2::pbkdf2_hmac::<Sha224>(password, salt, rounds, &mut key),
                [9] => pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, rounds, &mut key),
                [10] => pbkdf2::pbkdf2_hmac::<Sha384>(password, salt, rounds, &mut key),
                [11] => pbkdf2::pbkdf2_hmac::<Sha512>(password, salt, rounds, &mut key),
                _ => return Err(format!("its key derivation uses an unknown function; {CONVERT}")),
            }
        }
        SCRYPT => scrypt_derive(derivation.inside(tag::SEQUENCE)?, password, &mut key)?,
        _ => return Err(format!("its key derivation is neither PBKDF2 nor scrypt; {CONVERT}")),
    }
    cipher.decrypt(&Secret::new(key), iv, data)
}

fn scrypt_derive(mut parameters: Der<'_>, password: &Secret, key: &mut [u8]) -> Result<(), String> {
    const BAD: &str = "the parameters of scrypt are out of range";
    let salt = parameters.expect(tag::OCTET_STRING)?;
    let (cost, block, parallel) = (parameters.small()?, parameters.small()?, parameters.small()?);
    let memory = 128 * u64::from(cost) * u64::from(block);
    if !cost.is_power_of_two() || memory > MAX_SCRYPT_BYTES || parallel > 16 {
        return Err(BAD.to_owned());
    }
    let parameters = scrypt::Params::new(cost.ilog2() as u8, block, parallel).map_err(|_| BAD.to_owned())?;
    scrypt::scrypt(password.expose(), salt, &parameters, key).map_err(|_| BAD.to_owned())
}

/// Returns the number of rounds, unless it is zero or too large.
pub fn rounds(rounds: u32) -> Result<u32, String> {
    if (1..=MAX_ROUNDS).contains(&rounds) {
        return Ok(rounds);
    }
    Err(format!("its key derivation has {rounds} rounds; the limit is {MAX_ROUNDS}"))
}

/// Decrypts a legacy PEM key; `info` is the value of its header `DEK-Info`.
pub fn decrypt_legacy_pem(info: &str, data: &[u8], password: &Secret) -> Result<Secret, String> {
    let (name, iv) = info.split_once(',').ok_or("its header DEK-Info is malformed")?;
    let iv = unhex(iv.trim()).ok_or("its header DEK-Info is malformed")?;
    let (cipher, key_bytes) = match name.trim() {
        "AES-128-CBC" => (Cipher::Aes128, 16),
        "AES-192-CBC" => (Cipher::Aes192, 24),
        "AES-256-CBC" => (Cipher::Aes256, 32),
        "DES-EDE3-CBC" => (Cipher::TripleDes, 24),
        other => {
            let other: String = other.chars().take(40).collect();
            return Err(format!("its cipher {other} is not supported; {CONVERT}"));
        }
    };
    let salt = iv.get(..8).ok_or("its header DEK-Info is malformed")?;
    let mut key: Vec<u8> = Vec::with_capacity(48);
    let mut last = Vec::new();
    while key.len() < key_bytes {
        let mut hash = md5::Md5::new();
        hash.update(&last);
        hash.update(password.expose());
        hash.update(salt);
        last = hash.finalize().to_vec();
        key.extend_from_slice(&last);
    }
    key.truncate(key_bytes);
    cipher.decrypt(&Secret::new(key), &iv, data)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if digits.len() > 64 || !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    digits.chunks(2).map(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)).collect()
}

/// Derives a key as PKCS#12 does (RFC 7292, appendix B). `purpose` is 1 for keys, 2 for initialization vectors and 3 for
/// integrity.
pub fn pkcs12_derive<D: Digest>(
    password: &Secret,
    salt: &[u8],
    purpose: u8,
    rounds: u32,
    bytes: usize,
) -> Result<Secret, String> {
    // SHA-384 and SHA-512 have blocks of 128 bytes.
    let block = if <D as Digest>::output_size() > 32 { 128 } else { 64 };
    let password = std::str::from_utf8(password.expose()).map_err(|_| "the password is not UTF-8")?;
    let password: Vec<u8> = password.encode_utf16().chain([0]).flat_map(u16::to_be_bytes).collect();
    if salt.len() > 1024 || password.len() > 4096 {
        return Err("its salt or the password is too long".to_owned());
    }
    let filled = |source: &[u8]| -> Vec<u8> {
        source.iter().copied().cycle().take(source.len().div_ceil(block) * block).collect()
    };
    let mut input = Secret::new([filled(salt), filled(&password)].concat()).expose().to_vec();
    let mut derived = Vec::with_capacity(bytes + 64);
    loop {
        let mut hash = D::new().chain_update(vec![purpose; block]).chain_update(&input).finalize();
        for _ in 1..rounds {
            hash = D::digest(&hash);
        }
        derived.extend_from_slice(&hash);
        if derived.len() >= bytes {
            derived.truncate(bytes);
            return Ok(Secret::new(derived));
        }
        let addend: Vec<u8> = hash.iter().copied().cycle().take(block).collect();
        for part in input.chunks_mut(block) {
            let mut carry = 1u16;
            for (byte, added) in part.iter_mut().zip(&addend).rev() {
                carry += u16::from(*byte) + u16::from(*added);
                *byte = carry as u8;
                carry >>= 8;
            }
        }
    }
}

impl Cipher {
    fn decrypt(self, key: &Secret, iv: &[u8], data: &[u8]) -> Result<Secret, String> {
        match self {
            Self::Aes128 => cbc(aes::Aes128::new_from_slice(key.expose()).ok(), iv, data),
            Self::Aes192 => cbc(aes::Aes192::new_from_slice(key.expose()).ok(), iv, data),
            Self::Aes256 => cbc(aes::Aes256::new_from_slice(key.expose()).ok(), iv, data),
            Self::TripleDes => cbc(des::TdesEde3::new_from_slice(key.expose()).ok(), iv, data),
            Self::Rc2(bits) => cbc(Some(rc2::Rc2::new_with_eff_key_len(key.expose(), bits)), iv, data),
        }
    }
}

/// Decrypts blocks in CBC mode and removes the padding.
fn cbc<C: BlockCipherDecrypt>(cipher: Option<C>, iv: &[u8], data: &[u8]) -> Result<Secret, String> {
    const WRONG: &str = "the password is wrong, or the data is damaged";
    let cipher = cipher.ok_or("a key has a wrong length")?;
    let size = C::block_size();
    if iv.len() < size || data.is_empty() || !data.len().is_multiple_of(size) {
        return Err("the encrypted data is damaged".to_owned());
    }
    let mut plain = Vec::with_capacity(data.len());
    let mut previous = &iv[..size];
    for part in data.chunks(size) {
        let mut block = Block::<C>::try_from(part).map_err(|_| WRONG)?;
        cipher.decrypt_block(&mut block);
        plain.extend(block.iter().zip(previous).map(|(byte, mask)| byte ^ mask));
        previous = part;
    }
    let padding = usize::from(plain[plain.len() - 1]);
    let content = plain.len().checked_sub(padding).filter(|_| (1..=size).contains(&padding)).ok_or(WRONG)?;
    if plain[content..].iter().any(|byte| usize::from(*byte) != padding) {
        return Err(WRONG.to_owned());
    }
    plain.truncate(content);
    Ok(Secret::new(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_above_the_limit_are_an_error() {
        assert!(rounds(0).is_err() && rounds(MAX_ROUNDS + 1).is_err());
        assert_eq!(rounds(2048), Ok(2048));
    }

    #[test]
    fn legacy_headers_are_read_strictly() {
        let password = Secret::from("x");
        for info in ["AES-128-CBC", "AES-128-CBC,zz", "AES-128-CBC,00", "IDEA-CBC,0011223344556677"] {
            assert!(decrypt_legacy_pem(info, &[0; 16], &password).is_err(), "{info}");
        }
    }
}
