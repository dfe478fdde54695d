//! Reads the files that the settings name.

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use ottla_core::error::{Error, ErrorKind};
use rustls::{crypto::CryptoProvider, pki_types::CertificateDer};
use webpki::{CertRevocationList, OwnedCertRevocationList};

use super::{TlsSettings, identity::Identity, verify::Trusted};
use crate::credentials::{self, pem, secret::Secret};

/// The places of CA certificates that `ssl.ca.location=probe` tries.
const PROBED: &[&str] = &[
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/certs/ca-bundle.crt",
    "/etc/pki/tls/certs/ca-bundle.trust.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/cacert.pem",
    "/etc/certs/ca-certificates.crt",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/certs",
    "/usr/local/etc/ssl/cert.pem",
    "/usr/local/etc/ssl/cacert.pem",
    "/usr/local/etc/ssl/certs/cert.pem",
    "/usr/local/etc/ssl/certs/cacert.pem",
    "/etc/openssl/certs/ca-certificates.crt",
    "/etc/openssl/certs",
    "/var/ssl/certs",
];

/// The highest number of files that are read of a folder.
const MAX_FILES: usize = 10_000;

/// Returns the error of a property.
pub fn invalid(property: &str, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("{property}: {why}"))
}

/// Reads a file of bounded size.
pub fn read(property: &str, path: &str) -> Result<Secret, Error> {
    let failed = |error: io::Error| invalid(property, format_args!("can't read \"{path}\": {error}"));
    if fs::metadata(path).map_err(failed)?.is_dir() {
        return Err(invalid(property, format_args!("\"{path}\" is a folder and not a file")));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(pem::MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > pem::MAX_BYTES {
        return Err(invalid(property, format_args!("\"{path}\" has more than {} bytes", pem::MAX_BYTES)));
    }
    Ok(Secret::new(bytes))
}

/// Returns the certificates that brokers are checked against, and notes for the application's log.
pub fn trusted(settings: &TlsSettings, notes: &mut Vec<String>) -> Result<Trusted, Error> {
    let mut found = Trusted::default();
    let mut origins = Vec::new();
    let mut ders = settings.passed.ca.clone();
    let by_property = settings.ca_location.is_some() || settings.ca_pem.is_some();
    if !ders.is_empty() {
        if by_property {
            let text = "trusted certificates come from a call and from ssl.ca.location or ssl.ca.pem; use one of the two";
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        origins.push("the application's calls".to_owned());
    }
    if let Some(location) = &settings.ca_location {
        ders.extend(at_location("ssl.ca.location", location, &mut origins, notes)?);
    }
    if let Some(text) = &settings.ca_pem {
        let certificates =
            credentials::certificates(text.as_bytes()).map_err(|why| invalid("ssl.ca.pem", why))?;
        ders.extend(certificates);
        origins.push("ssl.ca.pem".to_owned());
    }
    if let Some((location, password)) = &settings.trust_store {
        let name = "ssl.truststore.location";
        let bytes = read(name, location)?;
        // Java's trust stores of PEM blocks have no password.
        let store = credentials::store(bytes.expose(), password.as_ref())
            .map_err(|why| invalid(name, format_args!("\"{location}\": {why} (ssl.truststore.password)")))?;
        ders.extend(store.certificates);
        origins.push(format!("ssl.truststore.location={location}"));
    }
    if origins.is_empty() {
        let native = rustls_native_certs::load_native_certs();
        ders.extend(native.certs.iter().map(|der| der.to_vec()));
        origins.push("the system".to_owned());
        if ders.is_empty() {
            notes.push(
                "the system has no CA certificates, so that no broker can be verified: set ssl.ca.location"
                    .to_owned(),
            );
        }
    }
    found.origin = origins.join(" and ");
    let mut refused = 0;
    for der in ders {
        let der = CertificateDer::from(der);
        match webpki::anchor_from_trusted_cert(&der) {
            Ok(anchor) => found.anchors.push(anchor.to_owned()),
            Err(_) => refused += 1,
        }
        found.certificates.push(der);
    }
    if found.anchors.is_empty() && found.certificates.is_empty() && settings.verifies && by_property {
        return Err(invalid("ssl.ca.location", format_args!("no certificate in {}", found.origin)));
    }
    if refused > 0 && !settings.legacy {
        notes.push(format!(
            "{refused} certificates of {} can't verify others, because they are malformed or unsupported",
            found.origin
        ));
    }
    Ok(found)
}

/// Returns the certificates that HTTPS servers are checked against: `https.ca.location` and `https.ca.pem`, or the system's.
pub fn https_roots(location: Option<&str>, text: Option<&str>) -> Result<Vec<Vec<u8>>, Error> {
    let mut ders = Vec::new();
    if let Some(location) = location {
        ders.extend(at_location("https.ca.location", location, &mut Vec::new(), &mut Vec::new())?);
    }
    if let Some(text) = text {
        ders.extend(credentials::certificates(text.as_bytes()).map_err(|why| invalid("https.ca.pem", why))?);
    }
    if location.is_none() && text.is_none() {
        let native = rustls_native_certs::load_native_certs();
        ders.extend(native.certs.iter().map(|der| der.to_vec()));
    }
    Ok(ders)
}

/// Returns the certificates of a file or folder.
fn at_location(
    property: &str,
    location: &str,
    origins: &mut Vec<String>,
    notes: &mut Vec<String>,
) -> Result<Vec<Vec<u8>>, Error> {
    if location == "probe" {
        let Some(found) = PROBED.iter().find(|path| Path::new(path).exists()) else {
            notes.push("ssl.ca.location=probe found no CA certificates in the usual places".to_owned());
            origins.push("none of the usual places".to_owned());
            return Ok(Vec::new());
        };
        return at_location(property, found, origins, notes);
    }
    origins.push(format!("{property}={location}"));
    if !Path::new(location).is_dir() {
        let bytes = read(property, location)?;
        return credentials::certificates(bytes.expose())
            .map_err(|why| invalid(property, format_args!("\"{location}\": {why}")));
    }
    let failed = |error: io::Error| invalid(property, format_args!("can't read \"{location}\": {error}"));
    let entries: io::Result<Vec<PathBuf>> =
        fs::read_dir(location).map_err(failed)?.take(MAX_FILES).map(|entry| Ok(entry?.path())).collect();
    let mut paths = entries.map_err(failed)?;
    paths.sort();
    let mut all: Vec<Vec<u8>> = Vec::new();
    for path in paths.iter().filter(|path| path.is_file()) {
        // A folder of certificates has other files, too, such as lists of revoked certificates.
        if let Ok(bytes) = read(property, &path.to_string_lossy())
            && let Ok(certificates) = credentials::certificates(bytes.expose())
        {
            all.extend(certificates);
        }
    }
    // Folders of OpenSSL have each certificate under two names.
    all.sort();
    all.dedup();
    if all.is_empty() {
        return Err(invalid(
            property,
            format_args!("no file in the folder \"{location}\" has a certificate"),
        ));
    }
    Ok(all)
}

/// Returns the lists of revoked certificates.
pub fn revoked(settings: &TlsSettings) -> Result<Vec<CertRevocationList<'static>>, Error> {
    let name = "ssl.crl.location";
    let Some(location) = &settings.crl_location else { return Ok(Vec::new()) };
    let bytes = read(name, location)?;
    let wrong = |why: String| invalid(name, format_args!("\"{location}\": {why}"));
    let ders = if bytes.expose().first() == Some(&0x30) {
        vec![bytes.expose().to_vec()]
    } else {
        let blocks = pem::blocks(bytes.expose()).map_err(wrong)?;
        let lists = blocks.iter().filter(|block| block.label == "X509 CRL");
        let ders: Vec<_> = lists.map(|block| block.bytes.expose().to_vec()).collect();
        if ders.is_empty() {
            return Err(wrong(format!("no X509 CRL: {}", pem::describe(bytes.expose(), &blocks))));
        }
        ders
    };
    let parse = |der: Vec<u8>| {
        OwnedCertRevocationList::from_der(&der)
            .map(CertRevocationList::from)
            .map_err(|why| wrong(format!("a list can't be read: {why:?}")))
    };
    ders.into_iter().map(parse).collect()
}

/// Returns the client's certificate and key, if there are any.
pub fn identity(settings: &TlsSettings, provider: &CryptoProvider) -> Result<Option<Identity>, Error> {
    if let Some(location) = &settings.key_store {
        let name = "ssl.keystore.location";
        let bytes = read(name, location)?;
        let is_pem = !matches!(bytes.expose().first(), Some(0x30 | 0xfe));
        let password = settings.key_store_password.as_ref();
        if password.is_none() && !is_pem {
            let text = format!("{name} \"{location}\" is encrypted; set ssl.keystore.password");
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        let password = if is_pem { settings.key_password.as_ref().or(password) } else { password };
        return credentials::store(bytes.expose(), password)
            .and_then(|store| Identity::of_store(store, provider))
            .map(Some)
            .map_err(|why| invalid(name, format_args!("\"{location}\": {why}")));
    }
    let certificate = certificate(settings)?;
    let key = key(settings)?;
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some((_, certificates)), Some((name, key))) => {
            Identity::new(certificates, &key, provider).map(Some).map_err(|why| invalid(&name, why))
        }
        (Some((name, _)), None) => {
            Err(invalid(&name, "a certificate needs its private key: set ssl.key.location or ssl.key.pem"))
        }
        (None, Some((name, _))) => Err(invalid(
            &name,
            "a private key needs its certificate: set ssl.certificate.location or ssl.certificate.pem",
        )),
    }
}

type Named<T> = (String, T);

fn certificate(settings: &TlsSettings) -> Result<Option<Named<Vec<Vec<u8>>>>, Error> {
    // The PEM text wins over the file, as in librdkafka.
    let (name, found) = if let Some(text) = &settings.certificate_pem {
        ("ssl.certificate.pem".to_owned(), credentials::certificates(text.as_bytes()))
    } else if let Some(location) = &settings.certificate_location {
        let bytes = read("ssl.certificate.location", location)?;
        (format!("ssl.certificate.location: \"{location}\""), credentials::certificates(bytes.expose()))
    } else if settings.passed.certificate.is_empty() {
        return Ok(None);
    } else {
        ("ssl_certificate".to_owned(), Ok(settings.passed.certificate.clone()))
    };
    let found = found.map_err(|why| invalid(&name, why))?;
    Ok(Some((name, found)))
}

fn key(settings: &TlsSettings) -> Result<Option<Named<Secret>>, Error> {
    let password = settings.key_password.as_ref();
    let (name, found) = if let Some(text) = &settings.key_pem {
        ("ssl.key.pem".to_owned(), credentials::private_key(text.expose(), password))
    } else if let Some(location) = &settings.key_location {
        let bytes = read("ssl.key.location", location)?;
        (format!("ssl.key.location: \"{location}\""), credentials::private_key(bytes.expose(), password))
    } else if let Some(key) = &settings.passed.key {
        ("ssl_key".to_owned(), Ok(key.clone()))
    } else {
        return Ok(None);
    };
    let found = found.map_err(|why| invalid(&name, why))?;
    Ok(Some((name, found)))
}

/// Returns the files and folders that the settings name, to watch them.
pub fn files(settings: &TlsSettings) -> Vec<PathBuf> {
    let locations = [
        &settings.ca_location,
        &settings.crl_location,
        &settings.certificate_location,
        &settings.key_location,
        &settings.key_store,
    ];
    let stores = settings.trust_store.iter().map(|(location, _)| location);
    let named = locations.into_iter().flatten().chain(stores);
    named.filter(|location| *location != "probe").map(PathBuf::from).collect()
}
