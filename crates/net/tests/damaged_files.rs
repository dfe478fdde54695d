//! Damaged files of certificates and keys: random mutations of every format end with a result, in bounded time and memory.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use ottla_core::rng::Rng;
use ottla_net::{Secret, credentials};
use rcgen::{CertificateParams, KeyPair};
use sha1::{Digest, Sha1};

/// Counts the bytes that are allocated, and the most at a time.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Mutations of each sample.
const MUTATIONS: usize = 400;
/// Nothing that is read takes longer: 10,000,000 rounds of a key derivation in a build without optimization are the worst.
const LONGEST: Duration = Duration::from_secs(60);
/// scrypt may use 256 MiB.
const MEMORY: usize = 300 << 20;

/// Encodes a DER value.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let [_, _, high, low] = (content.len() as u32).to_be_bytes();
    let mut bytes = match content.len() {
        0..0x80 => vec![tag, low],
        _ => vec![tag, 0x82, high, low],
    };
    bytes.extend(content);
    bytes
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    der(0x30, parts)
}

const OID_DATA: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1];
const OID_ENCRYPTED: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 6];
const OID_PBES2: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13];
const OID_PBKDF2: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 12];
const OID_HMAC_SHA256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 9];
const OID_AES_256: &[u8] = &[6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 42];
const OID_SCRYPT: &[u8] = &[6, 9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 4, 11];
const OID_X509: &[u8] = &[6, 10, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 22, 1];
const OID_SHA1: &[u8] = &[6, 5, 0x2b, 14, 3, 2, 26];

/// The identifier of PKCS#12's encryption with SHA-1 and this cipher: 3 is 3DES, 6 is RC2 with 40 bits.
fn pkcs12_cipher(which: u8) -> Vec<u8> {
    der(6, &[&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 12, 1, which]])
}

fn bag(which: u8, value: &[u8]) -> Vec<u8> {
    let kind = der(6, &[&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 12, 10, 1, which]]);
    sequence(&[&kind, &der(0xa0, &[value])])
}

fn octets(bytes: &[u8]) -> Vec<u8> {
    der(4, &[bytes])
}

fn number(value: u16) -> Vec<u8> {
    der(2, &[&value.to_be_bytes()])
}

/// A key that is encrypted with PBES2: the structure of one, with a text that is not its own.
fn pbes2(derivation: &[u8]) -> Vec<u8> {
    let cipher = sequence(&[OID_AES_256, &octets(&[7; 16])]);
    let algorithm = sequence(&[OID_PBES2, &sequence(&[derivation, &cipher])]);
    sequence(&[&algorithm, &octets(&[9; 64])])
}

fn pbkdf2() -> Vec<u8> {
    let function = sequence(&[OID_HMAC_SHA256, &[5, 0]]);
    sequence(&[OID_PBKDF2, &sequence(&[&octets(&[1; 8]), &number(500), &function])])
}

fn scrypt() -> Vec<u8> {
    sequence(&[OID_SCRYPT, &sequence(&[&octets(&[1; 8]), &number(1024), &number(8), &number(1)])])
}

fn pkcs12(certificate: &[u8], key: &[u8], has_mac: bool) -> Vec<u8> {
    let certificate = bag(3, &sequence(&[OID_X509, &der(0xa0, &[&octets(certificate)])]));
    let bags = sequence(&[&bag(1, key), &certificate]);
    let data = sequence(&[OID_DATA, &der(0xa0, &[&octets(&bags)])]);
    let algorithm = sequence(&[&pkcs12_cipher(6), &sequence(&[&octets(&[1; 8]), &number(300)])]);
    let content = sequence(&[OID_DATA, &algorithm, &der(0x80, &[&[3; 32]])]);
    let encrypted = sequence(&[OID_ENCRYPTED, &der(0xa0, &[&sequence(&[&[2, 1, 0], &content])])]);
    let safe = if has_mac { sequence(&[&data, &encrypted]) } else { sequence(&[&data]) };
    let safe = sequence(&[OID_DATA, &der(0xa0, &[&octets(&safe)])]);
    let digest = sequence(&[&sequence(&[OID_SHA1, &[5, 0]]), &octets(&[5; 20])]);
    let mac = sequence(&[&digest, &octets(&[1; 8]), &number(300)]);
    if has_mac { sequence(&[&[2, 1, 3], &safe, &mac]) } else { sequence(&[&[2, 1, 3], &safe]) }
}

const PASSWORD: &str = "changeit";

/// A JKS store without its last bytes, which [`with_jks_hash`] adds.
fn jks(certificate: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 2];
    let certificate_entry = |bytes: &mut Vec<u8>| {
        bytes.extend(*b"\0\x05X.509");
        bytes.extend((certificate.len() as u32).to_be_bytes());
        bytes.extend(certificate);
    };
    bytes.extend([0, 0, 0, 2, 0, 1, b'a', 0, 0, 0, 0, 0, 0, 0, 0]);
    certificate_entry(&mut bytes);
    bytes.extend([0, 0, 0, 1, 0, 1, b'b', 0, 0, 0, 0, 0, 0, 0, 0]);
    let sun = der(6, &[&[0x2b, 6, 1, 4, 1, 0x2a, 2, 0x11, 1, 1]]);
    let key = sequence(&[&sequence(&[&sun, &[5, 0]]), &octets(&[6; 80])]);
    bytes.extend((key.len() as u32).to_be_bytes());
    bytes.extend(key);
    bytes.extend([0, 0, 0, 1]);
    certificate_entry(&mut bytes);
    bytes
}

/// Adds the hash that a store of these bytes has: damage behind a right hash reaches the reader.
fn with_jks_hash(mut bytes: Vec<u8>) -> Vec<u8> {
    let password: Vec<u8> = PASSWORD.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let hash =
        Sha1::new().chain_update(password).chain_update(b"Mighty Aphrodite").chain_update(&bytes).finalize();
    bytes.extend(&hash[..]);
    bytes
}

/// Damages bytes in one to three places.
fn mutate(rng: &mut Rng, sample: &[u8]) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..=rng.below(3) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = rng.below(bytes.len() as u64) as usize;
        match rng.below(7) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0x84, 0xff][rng.below(6) as usize],
            2 => bytes.truncate(at),
            3 => drop(bytes.remove(at)),
            4 => bytes.insert(at, rng.below(256) as u8),
            5 => {
                let end = (at + rng.below(64) as usize).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            _ => {
                let end = (at + 4).min(bytes.len());
                bytes[at..end].fill(0xff);
            }
        }
    }
    bytes
}

/// Returns how long this thread has run, which does not depend on other programs; `None` where the system does not tell.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Reads bytes in every way. Returns the number of ways that ended with a value.
fn read(what: &str, bytes: &[u8]) -> usize {
    let password = Secret::from(PASSWORD);
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let (start, used) = (Instant::now(), processor_time());
    let results = [
        credentials::certificates(bytes).map(drop),
        credentials::private_key(bytes, Some(&password)).map(drop),
        credentials::private_key(bytes, None).map(drop),
        credentials::store(bytes, Some(&password)).map(drop),
        credentials::x509::Certificate::parse(bytes).map(drop).map_err(str::to_owned),
    ];
    let took = match (used, processor_time()) {
        (Some(before), Some(after)) => after - before,
        _ => start.elapsed(),
    };
    let shown = &bytes[..bytes.len().min(200)];
    assert!(took < LONGEST, "{what}: {took:?} for {} bytes, {shown:?}", bytes.len());
    let most = MOST.load(Ordering::Relaxed).saturating_sub(before);
    assert!(most < MEMORY, "{what}: {most} bytes for {} bytes, {shown:?}", bytes.len());
    for error in results.iter().filter_map(|result| result.as_ref().err()) {
        assert!(error.len() < 1000, "{what}: {error}");
    }
    results.iter().filter(|result| result.is_ok()).count()
}

fn pem(label: &str, header: &str) -> String {
    format!("-----BEGIN {label}-----\n{header}{}\n-----END {label}-----\n", "MIIBAAAA".repeat(8))
}

#[test]
fn damaged_files_end_with_a_result_in_bounded_time_and_memory() {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["kafka.test".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let both = format!("{}{}", key.serialize_pem(), certificate.pem());
    let legacy = pem(
        "RSA PRIVATE KEY",
        "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00112233445566778899aabbccddeeff\n\n",
    );
    let pbes1 = |which| {
        let algorithm = sequence(&[&pkcs12_cipher(which), &sequence(&[&octets(&[1; 8]), &number(300)])]);
        sequence(&[&algorithm, &octets(&[9; 64])])
    };
    let samples = [
        ("certificate", certificate.der().to_vec(), 1),
        ("key", key.serialize_der(), 2),
        ("PEM", both.into_bytes(), 4),
        ("legacy PEM", legacy.into_bytes(), 0),
        ("PBES2", pbes2(&pbkdf2()), 0),
        ("scrypt", pbes2(&scrypt()), 0),
        ("3DES", pbes1(3), 0),
        ("RC2", pbes1(6), 0),
        ("PKCS#12", pkcs12(certificate.der(), &key.serialize_der(), false), 1),
        ("PKCS#12 with MAC", pkcs12(certificate.der(), &key.serialize_der(), true), 0),
    ];
    let mut rng = Rng::from_seed(14);
    for (what, sample, least) in &samples {
        assert!(read(what, sample) >= *least, "{what} is read when it is not damaged");
        for _ in 0..MUTATIONS {
            read(what, &mutate(&mut rng, sample));
        }
    }
    let store = jks(certificate.der());
    for _ in 0..MUTATIONS {
        read("JKS", &with_jks_hash(mutate(&mut rng, &store)));
    }
}

#[test]
fn trusted_certificates_of_a_jks_store_are_read() {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::default().self_signed(&key).unwrap();
    let der = certificate.der();
    let mut store =
        vec![0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, b'a', 0, 0, 0, 0, 0, 0, 0, 0];
    store.extend(*b"\0\x05X.509");
    store.extend((der.len() as u32).to_be_bytes());
    store.extend(&der[..]);
    let store = with_jks_hash(store);
    let found = credentials::store(&store, Some(&Secret::from(PASSWORD))).unwrap();
    assert_eq!(found.certificates, [der.to_vec()]);
    let error = credentials::store(&store, Some(&Secret::from("other"))).unwrap_err();
    assert!(error.contains("password is wrong"), "{error}");
    // Java reads the certificates of a trust store without a password, too.
    let found = credentials::store(&store, None).unwrap();
    assert!(found.key.is_none() && !found.certificates.is_empty());
}

#[test]
fn stores_that_announce_more_than_they_have_are_errors() {
    let password = Secret::from(PASSWORD);
    let endless = |rest: &[u8]| {
        let mut bytes = vec![0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff];
        bytes.extend(rest);
        with_jks_hash(bytes)
    };
    // A key entry with four billion certificates of no byte each.
    let mut entry = vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
    entry.extend(vec![0; 1 << 20]);
    for bytes in [endless(&[]), endless(&[0; 100_000]), endless(&entry)] {
        credentials::store(&bytes, Some(&password)).map(drop).unwrap_err();
    }
    for bytes in [&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff][..], &[0x30, 0x80], &[0x30; 100_000]] {
        read("DER", bytes);
    }
}

#[test]
fn large_texts_are_read_or_refused_quickly() {
    let line = "-----BEGIN CERTIFICATE-----\n";
    for text in [
        "A".repeat(10 << 20),
        line.repeat(10 << 15),
        "\0".repeat(10 << 20),
        format!("{line}{}", "A\n".repeat(5 << 20)),
    ] {
        assert_eq!(read("text", text.as_bytes()), 0);
    }
}
