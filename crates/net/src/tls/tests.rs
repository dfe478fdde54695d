//! Handshakes in memory with good and bad certificates, which are made here.

mod kinds;
mod p521;
mod sessions;

use std::{path::PathBuf, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, RevokedCertParams, SerialNumber,
    SigningKey, date_time_ymd,
};
use rustls::{
    ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    server::WebPkiClientVerifier,
    sign::{CertifiedKey, SingleCertAndKey},
};

use super::{
    CertificateCallback, CertificateInChain, PassedCredentials, TlsContext, TlsSettings, default_provider,
    failure, verify::Broker,
};
use crate::credentials::secret::Secret;

/// A certificate with its key.
struct Made {
    der: Vec<u8>,
    key: KeyPair,
    params: CertificateParams,
}

impl Made {
    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }

    fn pem(&self) -> String {
        pem("CERTIFICATE", &self.der)
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {label}-----\n");
    for part in der.chunks(3) {
        let bits = part.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for index in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * index)) as usize & 63];
            text.push(if index > part.len() { '=' } else { char::from(letter) });
        }
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

fn params(name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2099, 1, 1);
    params
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = params(name, &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn made(params: CertificateParams, issuer: Option<&Made>) -> Made {
    let key = KeyPair::generate().unwrap();
    let certificate = match issuer {
        Some(issuer) => params.signed_by(&key, &issuer.issuer()).unwrap(),
        None => params.self_signed(&key).unwrap(),
    };
    Made { der: certificate.der().to_vec(), key, params }
}

fn ca(name: &str) -> Made {
    made(ca_params(name), None)
}

fn leaf(names: &[&str], issuer: &Made) -> Made {
    made(params("broker", names), Some(issuer))
}

/// The settings of a client that trusts these certificates.
fn trusting(certificates: &[&Made]) -> TlsSettings {
    TlsSettings {
        ca_pem: Some(certificates.iter().map(|made| made.pem()).collect()),
        verifies: true,
        checks_host: true,
        ..TlsSettings::default()
    }
}

fn server(chain: &[&Made]) -> ServerConfig {
    server_with_clients_of(chain, None)
}

fn server_with_clients_of(chain: &[&Made], client_ca: Option<&Made>) -> ServerConfig {
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from(ca.der.clone())).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let certificates = chain.iter().map(|made| CertificateDer::from(made.der.clone())).collect();
    let key = PrivateKeyDer::try_from(chain[0].key.serialize_der()).unwrap();
    let signer = default_provider().key_provider.load_private_key(key).unwrap();
    // Other than `with_single_cert`, this does not parse the certificate, which may be one that rustls refuses.
    let certified = CertifiedKey::new(certificates, signer);
    builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
}

/// Performs a handshake. Error: what the client reports.
fn shake(settings: TlsSettings, server: ServerConfig, host: &str) -> Result<ServerConnection, String> {
    let context = TlsContext::new(settings).map_err(|error| error.to_string())?;
    shake_with(&context, server, host)
}

fn shake_with(
    context: &TlsContext,
    server: impl Into<Arc<ServerConfig>>,
    host: &str,
) -> Result<ServerConnection, String> {
    both_sides(context, server.into(), host).map(|(_, server)| server)
}

/// Performs a handshake and returns both sides.
fn both_sides(
    context: &TlsContext,
    server: Arc<ServerConfig>,
    host: &str,
) -> Result<(ClientConnection, ServerConnection), String> {
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let mut client = ClientConnection::new(
        context.config_for(Broker { address: format!("{HOST}:9093"), node_id: Some(7) }),
        name,
    )
    .unwrap();
    let mut server = ServerConnection::new(server).unwrap();
    let mut bytes = Vec::new();
    for _ in 0..20 {
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            // The client gets the alert of an error.
            let _ = server.process_new_packets();
        }
        bytes.clear();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let is_open = !client.is_handshaking();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client
                .process_new_packets()
                .map_err(|error| failure::explain(&error, None, is_open).to_string())?;
        }
        bytes.clear();
        if !client.wants_write()
            && !server.wants_write()
            && !client.is_handshaking()
            && !server.is_handshaking()
        {
            return Ok((client, server));
        }
    }
    Err("the handshake does not end".to_owned())
}

/// Checks one case of a matrix: the handshake succeeds, or the error contains all of these words.
fn check(case: &str, settings: TlsSettings, server: ServerConfig, host: &str, expected: Result<(), &[&str]>) {
    match (shake(settings, server, host), expected) {
        (Ok(_), Ok(())) => {}
        (Ok(_), Err(_)) => panic!("{case}: the certificate is accepted"),
        (Err(error), Ok(())) => panic!("{case}: {error}"),
        (Err(error), Err(words)) => {
            for word in words {
                assert!(error.contains(word), "{case}: {error:?} does not contain {word:?}");
            }
            assert!(error.len() < 1000, "{case}: {error}");
        }
    }
}

const HOST: &str = "kafka.test";

#[test]
fn names_of_certificates_are_checked() {
    let ca = ca("CA");
    let names_only = |names: &[&str]| leaf(names, &ca);
    let no_names = made(params(HOST, &[]), Some(&ca));
    let not = |words: &'static [&'static str]| Err(words);
    for (case, broker, host, expected) in [
        ("name", names_only(&[HOST]), HOST, Ok(())),
        ("one of two names", names_only(&["other.test", HOST]), HOST, Ok(())),
        ("upper case", names_only(&["KAFKA.test"]), HOST, Ok(())),
        ("trailing dot", names_only(&[HOST]), "kafka.test.", Ok(())),
        ("address", names_only(&["127.0.0.1"]), "127.0.0.1", Ok(())),
        ("IPv6 address", names_only(&["::1"]), "::1", Ok(())),
        ("wildcard", names_only(&["*.kafka.test"]), "a.kafka.test", Ok(())),
        ("wildcard below a top level", names_only(&["*.test"]), HOST, not(&["*.test"])),
        (
            "wildcard for two labels",
            names_only(&["*.test"]),
            "a.kafka.test",
            not(&["a.kafka.test", "*.test"]),
        ),
        (
            "other name",
            names_only(&["other.test"]),
            HOST,
            not(&["\"kafka.test\"", "other.test", "subjectAltName"]),
        ),
        ("other address", names_only(&["127.0.0.2"]), "127.0.0.1", not(&["127.0.0.1"])),
        ("address by name", names_only(&["localhost"]), "127.0.0.1", not(&["localhost", "127.0.0.1"])),
        ("common name only", no_names, HOST, not(&["no subjectAltName", "common name \"kafka.test\""])),
    ] {
        check(case, trusting(&[&ca]), server(&[&broker]), host, expected);
        let unchecked = TlsSettings { checks_host: false, ..trusting(&[&ca]) };
        check(case, unchecked, server(&[&broker]), host, Ok(()));
    }
}

#[test]
fn chains_are_checked() {
    let (root, stranger) = (ca("Root"), ca("Root"));
    let intermediate = made(ca_params("Intermediate"), Some(&root));
    let broker = leaf(&[HOST], &root);
    let deep = leaf(&[HOST], &intermediate);
    let not_ca = leaf(&[HOST], &root);
    let by_leaf = leaf(&[HOST], &not_ca);
    let mut short = ca_params("Short");
    short.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let short = made(short, Some(&root));
    let below = made(ca_params("Below"), Some(&short));
    let too_deep = leaf(&[HOST], &below);
    let self_signed = made(params("self", &[HOST]), None);
    let own_ca = made(
        {
            let mut own = ca_params("own");
            own.subject_alt_names = params("", &[HOST]).subject_alt_names;
            own
        },
        None,
    );
    check("direct", trusting(&[&root]), server(&[&broker]), HOST, Ok(()));
    check("with intermediate", trusting(&[&root]), server(&[&deep, &intermediate]), HOST, Ok(()));
    check("with root", trusting(&[&root]), server(&[&deep, &intermediate, &root]), HOST, Ok(()));
    check("intermediate trusted", trusting(&[&intermediate]), server(&[&deep]), HOST, Ok(()));
    check("self-signed and trusted", trusting(&[&self_signed]), server(&[&self_signed]), HOST, Ok(()));
    for (case, trusted, chain, words) in [
        ("no intermediate", &root, vec![&deep], ["CN=Intermediate", "not trusted"]),
        ("unknown CA", &intermediate, vec![&broker], ["CN=Root", "ssl.ca.location"]),
        ("CA of the same name", &stranger, vec![&broker], ["signature", "created again"]),
        ("self-signed", &root, vec![&self_signed], ["self-signed", "CN=self"]),
        ("root of a stranger", &intermediate, vec![&broker, &root], ["root certificate", "not trusted"]),
        ("CA as broker", &own_ca, vec![&own_ca], ["CA:TRUE", "ssl.legacy.certificates"]),
        ("issued by a broker", &root, vec![&by_leaf, &not_ca], ["not a CA", "CN=broker"]),
        ("path length", &root, vec![&too_deep, &below, &short], ["path length", "CN=broker"]),
    ] {
        check(case, trusting(&[trusted]), server(&chain), HOST, Err(&words));
        let unverified = TlsSettings { verifies: false, ..trusting(&[trusted]) };
        check(case, unverified, server(&chain), HOST, Ok(()));
    }
}

#[test]
fn time_and_purpose_are_checked() {
    let root = ca("Root");
    let with = |change: fn(&mut CertificateParams)| {
        let mut params = params("broker", &[HOST]);
        change(&mut params);
        made(params, Some(&root))
    };
    let mut old = ca_params("Old");
    old.not_after = date_time_ymd(2021, 1, 1);
    let old = made(old, Some(&root));
    let below_old = leaf(&[HOST], &old);
    for (case, chain, expected) in [
        ("expired", vec![&with(|it| it.not_after = date_time_ymd(2022, 3, 4))], Err(["2022-03-04", "renew"])),
        (
            "not yet valid",
            vec![&with(|it| it.not_before = date_time_ymd(2098, 3, 4))],
            Err(["2098-03-04", "clocks"]),
        ),
        (
            "end before its start",
            vec![&with(|it| {
                (it.not_before, it.not_after) = (date_time_ymd(2026, 1, 2), date_time_ymd(2026, 1, 1))
            })],
            Err(["ends before it begins", "CN=broker"]),
        ),
        ("expired intermediate", vec![&below_old, &old], Err(["\"CN=Old\"", "2021-01-01"])),
        (
            "for clients",
            vec![&with(|it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth])],
            Err(["serverAuth", "CN=broker"]),
        ),
        (
            "for servers",
            vec![&with(|it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth])],
            Ok(()),
        ),
    ] {
        let expected = expected.as_ref().copied().map_err(|words| &words[..]);
        check(case, trusting(&[&root]), server(&chain), HOST, expected);
    }
}

#[test]
fn name_constraints_are_checked() {
    let constrained = |domain: &str| {
        let mut params = ca_params("Constrained");
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: vec![GeneralSubtree::DnsName(domain.to_owned())],
            excluded_subtrees: Vec::new(),
        });
        made(params, None)
    };
    let (inside, outside) = (constrained("test"), constrained("example"));
    check("inside", trusting(&[&inside]), server(&[&leaf(&[HOST], &inside)]), HOST, Ok(()));
    let words = ["name constraints"];
    check("outside", trusting(&[&outside]), server(&[&leaf(&[HOST], &outside)]), HOST, Err(&words));
}

#[test]
fn revoked_certificates_are_refused() {
    let (root, other) = (ca("Root"), ca("Other"));
    let with_serial = |serial: u8| {
        let mut params = params("broker", &[HOST]);
        params.serial_number = Some(SerialNumber::from(vec![serial]));
        made(params, Some(&root))
    };
    let list = |issuer: &Made, serials: &[u8], until: i32| {
        let revoked = |serial: &u8| RevokedCertParams {
            serial_number: SerialNumber::from(vec![*serial]),
            revocation_time: date_time_ymd(2021, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(vec![1]),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        pem("X509 CRL", params.signed_by(&issuer.issuer()).unwrap().der())
    };
    let folder = Folder::new("crl");
    for (case, crl, serial, expected) in [
        ("revoked", list(&root, &[7], 2099), 7, Err(["is revoked", "ssl.crl.location"])),
        ("not revoked", list(&root, &[8], 2099), 7, Ok(())),
        ("list of another CA", list(&other, &[7], 2099), 7, Err(["revocation", "ssl.crl.location"])),
        ("old list", list(&root, &[8], 2022), 7, Err(["expired at 2022-01-01", "ssl.crl.location"])),
    ] {
        let settings =
            TlsSettings { crl_location: Some(folder.write("crl.pem", &crl)), ..trusting(&[&root]) };
        let expected = expected.as_ref().copied().map_err(|words| &words[..]);
        check(case, settings, server(&[&with_serial(serial)]), HOST, expected);
    }
}

#[test]
fn legacy_mode_accepts_only_the_pinned_certificate() {
    let with_name = |name: &str| {
        let mut own = ca_params(name);
        own.subject_alt_names = params("", &[HOST]).subject_alt_names;
        made(own, None)
    };
    let (own, copy) = (with_name("own"), with_name("own"));
    let legacy = |trusted| TlsSettings { legacy: true, ..trusting(&[trusted]) };
    check("pinned CA", legacy(&own), server(&[&own]), HOST, Ok(()));
    check("same name", legacy(&own), server(&[&copy]), HOST, Err(&["CN=own"]));
    check("other host", legacy(&own), server(&[&own]), "other.test", Err(&["other.test"]));
    let by_name = made(ca_params(HOST), None);
    check("common name", legacy(&by_name), server(&[&by_name]), HOST, Ok(()));
    check("other common name", legacy(&by_name), server(&[&by_name]), "x.test", Err(&["x.test"]));
    let mut old = ca_params(HOST);
    old.not_after = date_time_ymd(2022, 1, 1);
    let old = made(old, None);
    check("expired", legacy(&old), server(&[&old]), HOST, Err(&["expired at 2022-01-01"]));
    let key = KeyPair::generate().unwrap();
    let v1 = Made { der: version_1(HOST, &key), key, params: ca_params(HOST) };
    check("version 1", legacy(&v1), server(&[&v1]), HOST, Ok(()));
    check("version 1 without legacy mode", trusting(&[&own]), server(&[&v1]), HOST, Err(&["version 1"]));
    // A certificate that the pinned one issued is checked like any other.
    check(
        "issued by the pinned one",
        legacy(&own),
        server(&[&leaf(&["x.test"], &own)]),
        HOST,
        Err(&["x.test"]),
    );
}

/// Returns a self-signed certificate of version 1, which `rcgen` can't make.
fn version_1(name: &str, key: &KeyPair) -> Vec<u8> {
    fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let length = content.len() as u16;
        let [high, low] = length.to_be_bytes();
        let header = if length < 128 { vec![tag, low] } else { vec![tag, 0x82, high, low] };
        [header, content].concat()
    }
    let ecdsa_sha256 = value(0x30, &[&value(6, &[&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]])]);
    let pair = value(0x30, &[&value(6, &[&[0x55, 4, 3]]), &value(0x0c, &[name.as_bytes()])]);
    let name = value(0x30, &[&value(0x31, &[&pair])]);
    let validity = value(0x30, &[&value(0x17, &[b"200101000000Z"]), &value(0x18, &[b"20990101000000Z"])]);
    let public = rcgen::PublicKeyData::subject_public_key_info(key);
    let body = value(0x30, &[&value(2, &[&[1]]), &ecdsa_sha256, &name, &validity, &name, &public]);
    let signature = key.sign(&body).unwrap();
    value(0x30, &[&body, &ecdsa_sha256, &value(3, &[&[0], &signature])])
}

#[test]
fn client_certificates_are_presented_when_the_broker_asks() {
    let (root, other) = (ca("Root"), ca("Other"));
    let broker = leaf(&[HOST], &root);
    let client = made(params("client", &[]), Some(&root));
    let with = |identity: &Made| TlsSettings {
        certificate_pem: Some(identity.pem()),
        key_pem: Some(Secret::from(&*identity.key.serialize_pem())),
        ..trusting(&[&root])
    };
    let server = || server_with_clients_of(&[&broker], Some(&root));
    let session = shake(with(&client), server(), HOST).unwrap();
    assert_eq!(session.peer_certificates().unwrap()[0].as_ref(), client.der);
    let without = shake(trusting(&[&root]), server(), HOST).unwrap_err();
    assert!(without.contains("ssl.certificate.location") && without.contains("requires"), "{without}");
    // The broker names the CAs that it accepts, and this certificate is of none of them.
    let foreign = shake(with(&made(params("client", &[]), Some(&other))), server(), HOST).unwrap_err();
    assert!(foreign.contains("ssl.certificate.location"), "{foreign}");
}

#[test]
fn key_of_another_certificate_is_an_error_at_the_start() {
    let root = ca("Root");
    let (client, other) = (leaf(&["a"], &root), leaf(&["b"], &root));
    let settings = TlsSettings {
        certificate_pem: Some(client.pem()),
        key_pem: Some(Secret::from(&*other.key.serialize_pem())),
        ..trusting(&[&root])
    };
    let error = TlsContext::new(settings.clone()).unwrap_err().to_string();
    assert!(error.contains("ssl.key.pem") && error.contains("does not belong to"), "{error}");
    let alone = TlsSettings { key_pem: None, ..settings.clone() };
    let error = TlsContext::new(alone).unwrap_err().to_string();
    assert!(error.contains("needs its private key"), "{error}");
    let shown = format!("{settings:?}");
    assert!(!shown.contains("PRIVATE KEY"), "{shown}");
}

#[test]
fn certificates_may_stand_in_any_order_behind_the_key() {
    let root = ca("Root");
    let intermediate = made(ca_params("Intermediate"), Some(&root));
    let client = leaf(&[], &intermediate);
    let folder = Folder::new("order");
    let text = format!("{}{}{}", client.key.serialize_pem(), intermediate.pem(), client.pem());
    let path = folder.write("all.pem", &text);
    let settings = TlsSettings {
        certificate_location: Some(path.clone()),
        key_location: Some(path),
        ..trusting(&[&root])
    };
    let broker = leaf(&[HOST], &root);
    let session = shake(settings, server_with_clients_of(&[&broker], Some(&root)), HOST).unwrap();
    assert_eq!(session.peer_certificates().unwrap()[0].as_ref(), client.der);
}

#[test]
fn bad_files_are_errors_that_name_property_and_file() {
    let root = ca("Root");
    let folder = Folder::new("bad");
    let many = root.pem().repeat(100);
    let large = "junk that is not PEM\n".repeat(500_000);
    let bundle = |text: &str| TlsSettings {
        ca_pem: None,
        ca_location: Some(folder.write("ca.pem", text)),
        ..trusting(&[&root])
    };
    for (text, expected) in [
        ("", "it is empty"),
        ("hello", "no PEM block"),
        (&*large, "no PEM block"),
        ("\u{1}\0\u{2}", "no PEM block"),
        ("-----BEGIN CERTIFICATE-----\nAA\0A\n-----END CERTIFICATE-----\n", "NUL"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n", "no end"),
        (&root.key.serialize_pem(), "other kinds (PRIVATE KEY)"),
    ] {
        let error = TlsContext::new(bundle(text)).unwrap_err().to_string();
        assert!(error.contains("ssl.ca.location") && error.contains("ca.pem"), "{error}");
        assert!(error.contains(expected) && error.len() < 500, "{error}");
    }
    TlsContext::new(bundle(&many)).unwrap();
    // Certificates that can't be read are skipped, as OpenSSL does, and a warning counts them.
    let damaged = format!("{}{}", root.pem(), pem("CERTIFICATE", b"junk"));
    assert!(TlsContext::new(bundle(&damaged)).unwrap().warnings()[0].starts_with("1 certificates"));
    let missing = TlsSettings { ca_location: Some("/no/such/file".to_owned()), ..TlsSettings::default() };
    assert!(TlsContext::new(missing).unwrap_err().to_string().contains("/no/such/file"));
}

#[test]
fn folder_of_certificates_is_read_without_its_other_files() {
    let (first, second) = (ca("First"), ca("Second"));
    let folder = Folder::new("folder");
    folder.write("a.pem", &first.pem());
    folder.write("b.crt", &second.pem());
    folder.write("README", "no certificate");
    let settings = TlsSettings {
        ca_pem: None,
        ca_location: Some(folder.path.display().to_string()),
        ..trusting(&[&first])
    };
    for root in [&first, &second] {
        check("folder", settings.clone(), server(&[&leaf(&[HOST], root)]), HOST, Ok(()));
    }
}

#[test]
fn chain_of_a_hundred_certificates_ends_with_an_error() {
    let root = ca("0");
    let mut chain = vec![made(ca_params("1"), Some(&root))];
    for number in 2..100 {
        let next = made(ca_params(&number.to_string()), chain.last());
        chain.push(next);
    }
    let broker = leaf(&[HOST], &chain[chain.len() - 1]);
    let sent: Vec<&Made> = std::iter::once(&broker).chain(chain.iter().rev()).collect();
    check("long chain", trusting(&[&root]), server(&sent), HOST, Err(&["CN=broker"]));
}

#[test]
fn rotated_files_are_used_after_reload_and_bad_ones_are_not() {
    let (first, second) = (ca("First"), ca("Second"));
    let folder = Folder::new("rotation");
    let path = folder.write("ca.pem", &first.pem());
    let settings = TlsSettings { ca_pem: None, ca_location: Some(path), ..trusting(&[&first]) };
    let context = TlsContext::new(settings).unwrap();
    let by_first = || server(&[&leaf(&[HOST], &first)]);
    let by_second = || server(&[&leaf(&[HOST], &second)]);
    shake_with(&context, by_first(), HOST).unwrap();
    shake_with(&context, by_second(), HOST).unwrap_err();
    folder.write("ca.pem", "half a fi");
    context.reload().unwrap_err();
    shake_with(&context, by_first(), HOST).unwrap();
    folder.write("ca.pem", &second.pem());
    context.reload().unwrap();
    shake_with(&context, by_second(), HOST).unwrap();
    shake_with(&context, by_first(), HOST).unwrap_err();
}

/// Records calls, and permits or refuses.
struct Recorder {
    calls: ottla_core::lock::Mutex<Vec<(usize, i32)>>,
    decide: fn(usize, &mut i32) -> Result<(), String>,
}

impl CertificateCallback for Recorder {
    fn check(&self, certificate: CertificateInChain<'_>, error: &mut i32) -> Result<(), String> {
        let CertificateInChain { broker, node_id, depth, der } = certificate;
        assert!(broker == format!("{HOST}:9093") && node_id == Some(7) && !der.is_empty());
        self.calls.lock().push((depth, *error));
        (self.decide)(depth, error)
    }
}

#[test]
fn callback_sees_root_to_leaf_and_may_overrule() {
    let root = ca("Root");
    let (good, bad) = (leaf(&[HOST], &root), leaf(&["other.test"], &root));
    let run = |broker: &Made, decide| {
        let recorder = Arc::new(Recorder { calls: ottla_core::lock::Mutex::new(Vec::new()), decide });
        let passed = PassedCredentials {
            callback: Some(Arc::clone(&recorder) as Arc<dyn CertificateCallback>),
            ..Default::default()
        };
        let result = shake(TlsSettings { passed, ..trusting(&[&root]) }, server(&[broker]), HOST);
        (result.map(drop), std::mem::take(&mut *recorder.calls.lock()))
    };
    assert_eq!(run(&good, |_, _| Ok(())), (Ok(()), vec![(1, 0), (0, 0)]));
    let (result, calls) = run(&bad, |_, _| Ok(()));
    assert!(result.unwrap_err().contains("other.test"));
    assert_eq!(calls, [(1, 0), (0, 62)]);
    let (result, _) = run(&bad, |_, error| {
        *error = 0;
        Ok(())
    });
    assert_eq!(result, Ok(()));
    let (result, calls) = run(&good, |_, _| Err("not today".to_owned()));
    assert!(result.unwrap_err().contains("not today"));
    assert_eq!(calls, [(1, 0)]);
}

#[test]
fn key_formats_of_rcgen_are_read() {
    let root = ca("Root");
    for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = params("client", &[]);
        let client =
            Made { der: params.signed_by(&key, &root.issuer()).unwrap().der().to_vec(), key, params };
        let settings = TlsSettings {
            passed: PassedCredentials {
                certificate: vec![client.der.clone()],
                key: Some(Secret::new(client.key.serialize_der())),
                ..PassedCredentials::default()
            },
            ..trusting(&[&root])
        };
        let broker = leaf(&[HOST], &root);
        shake(settings, server_with_clients_of(&[&broker], Some(&root)), HOST).unwrap();
    }
}

/// A folder that is removed at the end of a test.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ottla-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self { path }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
