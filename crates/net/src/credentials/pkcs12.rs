//! Reads PKCS#12 stores, as OpenSSL and Java's keytool write them.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use super::{
    Store,
    der::{Der, tag},
    pbe,
    secret::Secret,
};

const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1];
const ENCRYPTED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 6];
/// The kinds of bags; one more byte says which.
const BAG: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 12, 10, 1];
const SHA1: &[u8] = &[0x2b, 14, 3, 2, 26];
/// SHA-2; one more byte says which.
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2];

/// The highest number of entries of a store.
const MAX_BAGS: usize = 10_000;
/// The highest number of encrypted parts of a store. Each of them may take the time of a key derivation.
const MAX_ENCRYPTED: usize = 16;

/// Reads a store. Error: the password is wrong, or what is wrong with the store.
pub fn read(bytes: &[u8], password: &Secret) -> Result<Store, String> {
    let mut store = Der::new(bytes).inside(tag::SEQUENCE)?;
    if store.small()? != 3 {
        return Err("it is not a PKCS#12 store of version 3".to_owned());
    }
    let mut safe = store.inside(tag::SEQUENCE)?;
    if safe.expect(tag::OID)? != DATA {
        return Err("the PKCS#12 store is signed with a public key, which is not supported".to_owned());
    }
    let safe = safe.inside(tag::CONTEXT_0)?.expect(tag::OCTET_STRING)?;
    if let Some(mac) = store.optional(tag::SEQUENCE)? {
        check_mac(Der::new(mac), safe, password)?;
    }
    let mut found = Store::default();
    let mut contents = Der::new(safe).inside(tag::SEQUENCE)?;
    let mut encrypted_parts = 0;
    while !contents.is_empty() {
        let mut content = contents.inside(tag::SEQUENCE)?;
        let kind = content.expect(tag::OID)?;
        let mut value = content.inside(tag::CONTEXT_0)?;
        if kind == DATA {
            read_bags(value.expect(tag::OCTET_STRING)?, password, &mut found)?;
        } else if kind == ENCRYPTED_DATA {
            encrypted_parts += 1;
            if encrypted_parts > MAX_ENCRYPTED {
                return Err(format!("the PKCS#12 store has more than {MAX_ENCRYPTED} encrypted parts"));
            }
            let mut encrypted = value.inside(tag::SEQUENCE)?;
            encrypted.small()?;
            let mut encrypted = encrypted.inside(tag::SEQUENCE)?;
            encrypted.expect(tag::OID)?;
            let algorithm = encrypted.expect(tag::SEQUENCE)?;
            let data = encrypted.expect(0x80)?;
            read_bags(pbe::decrypt(algorithm, data, password)?.expose(), password, &mut found)?;
        } else {
            return Err("the PKCS#12 store is encrypted with a public key, which is not supported".to_owned());
        }
    }
    Ok(found)
}

fn check_mac(mut mac: Der<'_>, safe: &[u8], password: &Secret) -> Result<(), String> {
    let mut digest = mac.inside(tag::SEQUENCE)?;
    let algorithm = digest.inside(tag::SEQUENCE)?.expect(tag::OID)?;
    let expected = digest.expect(tag::OCTET_STRING)?;
    let salt = mac.expect(tag::OCTET_STRING)?;
    let rounds = pbe::rounds(if mac.is_empty() { 1 } else { mac.small()? })?;
    macro_rules! holds {
        ($digest:ty, $bytes:expr) => {{
            let key = pbe::pkcs12_derive::<$digest>(password, salt, 3, rounds, $bytes)?;
            let mac =
                Hmac::<$digest>::new_from_slice(key.expose()).map_err(|_| "a key has a wrong length")?;
            mac.chain_update(safe).verify_slice(expected).is_ok()
        }};
    }
    let holds = match algorithm.strip_prefix(SHA2) {
        None if algorithm == SHA1 => holds!(Sha1, 20),
        Some([1]) => holds!(Sha256, 32),
        Some([2]) => holds!(Sha384, 48),
        Some([3]) => holds!(Sha512, 64),
        _ => {
            return Err(
                "the integrity algorithm of the PKCS#12 store is unknown; export it with -macalg sha256"
                    .to_owned(),
            );
        }
    };
    if holds { Ok(()) } else { Err("the password is wrong, or the PKCS#12 store is damaged".to_owned()) }
}

fn read_bags(bytes: &[u8], password: &Secret, found: &mut Store) -> Result<(), String> {
    let mut bags = Der::new(bytes).inside(tag::SEQUENCE)?;
    let mut count = 0;
    while !bags.is_empty() {
        count += 1;
        if count > MAX_BAGS {
            return Err(format!("the PKCS#12 store has more than {MAX_BAGS} entries"));
        }
        let mut bag = bags.inside(tag::SEQUENCE)?;
        let kind = bag.expect(tag::OID)?;
        let value = bag.expect(tag::CONTEXT_0)?;
        match kind.strip_prefix(BAG) {
            Some([1]) if found.key.is_none() => found.key = Some(Secret::new(value.to_vec())),
            Some([2]) if found.key.is_none() => found.key = Some(pbe::decrypt_key(value, password)?),
            Some([3]) => {
                let mut certificate = Der::new(value).inside(tag::SEQUENCE)?;
                certificate.expect(tag::OID)?;
                let certificate = certificate.inside(tag::CONTEXT_0)?.expect(tag::OCTET_STRING)?;
                found.certificates.push(certificate.to_vec());
            }
            _ => {}
        }
    }
    Ok(())
}
