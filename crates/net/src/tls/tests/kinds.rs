//! Further kinds of certificates: damaged, forged and unusual ones.

use ottla_core::config::{EffectiveConfig, Profile, RawConfig};
use rcgen::{CustomExtension, SanType, string::Ia5String};

use rustls::SignatureScheme;

use super::*;
use crate::{
    credentials::{
        self,
        der::{Der, tag},
    },
    tls::algorithms::Lists,
};

/// A broker's certificate with a change.
fn changed(issuer: &Made, change: impl FnOnce(&mut CertificateParams)) -> Made {
    let mut params = params("broker", &[HOST]);
    change(&mut params);
    made(params, Some(issuer))
}

/// The same certificate with other bytes.
fn altered(made: Made, alter: impl FnOnce(&mut Vec<u8>)) -> Made {
    let mut der = made.der;
    alter(&mut der);
    Made { der, ..made }
}

#[test]
fn damaged_and_forged_certificates_are_refused() {
    let root = ca("Root");
    let broker = || leaf(&[HOST], &root);
    let critical = |params: &mut CertificateParams| {
        let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4, 5], vec![5, 0]);
        extension.set_criticality(true);
        params.custom_extensions.push(extension);
    };
    let forged = {
        // The CA has signed other bytes.
        let (first, second) = (broker(), broker());
        let tail = second.der[second.der.len() - 60..].to_vec();
        altered(first, |der| {
            let start = der.len() - 60;
            der[start..].copy_from_slice(&tail);
        })
    };
    let cases: [(&str, Made, &[&str]); 8] = [
        ("damaged signature", altered(broker(), |der| *der.last_mut().unwrap() ^= 1), &["CN=broker"]),
        ("another signature", forged, &["broker's certificate"]),
        ("cut off", altered(broker(), |der| der.truncate(100)), &["100 bytes"]),
        ("bytes behind it", altered(broker(), |der| der.push(0)), &["CN=broker"]),
        ("junk", altered(broker(), |der| *der = vec![0x55; 300]), &["300 bytes"]),
        ("empty", altered(broker(), Vec::clear), &["0 bytes"]),
        ("unknown critical extension", changed(&root, critical), &["CN=broker", "CriticalExtension"]),
        (
            "never valid",
            changed(&root, |params| {
                params.not_before = date_time_ymd(2099, 1, 1);
                params.not_after = date_time_ymd(2098, 1, 1);
            }),
            &["CN=broker"],
        ),
    ];
    for (case, broker, words) in cases {
        check(case, trusting(&[&root]), server(&[&broker]), HOST, Err(words));
    }
}

#[test]
fn names_with_nul_are_those_of_no_host() {
    let root = ca("Root");
    let name = "kafka.test\0.evil.example";
    let in_common_name = changed(&root, |params| {
        params.subject_alt_names.clear();
        params.distinguished_name.remove(DnType::CommonName);
        params.distinguished_name.push(DnType::CommonName, name);
    });
    let in_names = changed(&root, |params| {
        params.subject_alt_names = vec![SanType::DnsName(Ia5String::try_from(name).unwrap())];
    });
    let pinned = {
        let mut own = ca_params("x");
        own.distinguished_name.remove(DnType::CommonName);
        own.distinguished_name.push(DnType::CommonName, name);
        made(own, None)
    };
    for (case, settings, broker) in [
        ("common name", trusting(&[&root]), &in_common_name),
        ("subjectAltName", trusting(&[&root]), &in_names),
        ("legacy mode", TlsSettings { legacy: true, ..trusting(&[&pinned]) }, &pinned),
    ] {
        let error = shake(settings, server(&[broker]), HOST).map(drop).unwrap_err();
        assert!(error.contains("not for \"kafka.test\""), "{case}: {error}");
        assert!(!error.contains('\0'), "{case}: {error:?}");
    }
}

#[test]
fn partial_wildcards_and_other_constraints_are_refused() {
    let root = ca("Root");
    for name in ["ka*.test", "*", "*.*.test", "*.b.kafka.test"] {
        let broker = changed(&root, |params| {
            params.subject_alt_names = vec![SanType::DnsName(Ia5String::try_from(name).unwrap())];
        });
        check(name, trusting(&[&root]), server(&[&broker]), HOST, Err(&[HOST]));
    }
    let mut excluding = ca_params("Excluding");
    excluding.name_constraints = Some(NameConstraints {
        permitted_subtrees: Vec::new(),
        excluded_subtrees: vec![GeneralSubtree::DnsName("test".to_owned())],
    });
    let excluding = made(excluding, None);
    let broker = leaf(&[HOST], &excluding);
    check("excluded", trusting(&[&excluding]), server(&[&broker]), HOST, Err(&["name constraints"]));
    let mut for_clients = ca_params("For clients");
    for_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let for_clients = made(for_clients, Some(&root));
    let broker = leaf(&[HOST], &for_clients);
    let chain = [&broker, &for_clients];
    check("CA for clients", trusting(&[&root]), server(&chain), HOST, Err(&["serverAuth"]));
}

#[test]
fn unusual_and_valid_certificates_are_accepted() {
    let root = ca("Root");
    let names: Vec<String> = (0..99).map(|number| format!("broker-{number}.test")).collect();
    let many: Vec<&str> = names.iter().map(String::as_str).chain([HOST]).collect();
    let mut nameless = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
    nameless.distinguished_name = rcgen::DistinguishedName::new();
    let mut old_root = ca_params("Old root");
    old_root.not_after = date_time_ymd(2021, 1, 1);
    let old_root = made(old_root, None);
    let with_key = |algorithm| {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = params("broker", &[HOST]);
        Made { der: params.signed_by(&key, &root.issuer()).unwrap().der().to_vec(), key, params }
    };
    for (case, trusted, broker) in [
        ("a hundred names", &root, leaf(&many, &root)),
        ("no subject", &root, made(nameless, Some(&root))),
        ("an expired root that is trusted", &old_root, leaf(&[HOST], &old_root)),
        ("P-384", &root, with_key(&rcgen::PKCS_ECDSA_P384_SHA384)),
        ("Ed25519", &root, with_key(&rcgen::PKCS_ED25519)),
    ] {
        check(case, trusting(&[trusted]), server(&[&broker]), HOST, Ok(()));
    }
}

/// A broker's certificate and its CA's, and the key of the broker's, all made with OpenSSL: rcgen does not make such keys.
fn of_openssl(pem: &str) -> (Made, String) {
    let certificates = credentials::certificates(pem.as_bytes()).unwrap();
    let key = KeyPair::from_pem(include_str!("kinds/broker.key")).unwrap();
    let [leaf, ca] = certificates.try_into().unwrap();
    (Made { der: leaf, key, params: params("broker", &[HOST]) }, super::pem("CERTIFICATE", &ca))
}

#[test]
fn certificates_of_weak_or_unsupported_authorities_are_refused() {
    for (case, pem, expected) in [
        ("RSA-2048", include_str!("kinds/rsa-2048.pem"), Ok(())),
        ("RSA-1024", include_str!("kinds/rsa-1024.pem"), Err(&["CN=broker", "RSA key of 1024 bits"][..])),
        (
            "SHA-1",
            include_str!("kinds/sha-1.pem"),
            Err(&["CN=broker", "is signed with SHA-1", "create it with SHA-256"][..]),
        ),
        ("P-521", include_str!("kinds/p-521.pem"), Ok(())),
        (
            "P-224",
            include_str!("kinds/p-224.pem"),
            Err(&["CN=broker", "issued", "the curve P-224", "P-521"][..]),
        ),
    ] {
        let (broker, ca) = of_openssl(pem);
        let settings = TlsSettings { ca_pem: Some(ca), ..trusting(&[]) };
        check(case, settings, server(&[&broker]), HOST, expected);
    }
}

#[test]
fn post_quantum_key_exchange_needs_aws_lc() {
    let root = ca("Root");
    let broker = leaf(&[HOST], &root);
    let lists = Lists { curves: Some("X25519MLKEM768".to_owned()), ..Lists::default() };
    let shaken = shake(TlsSettings { lists, ..trusting(&[&root]) }, server(&[&broker]), HOST);
    if cfg!(feature = "aws-lc-rs") {
        let group = shaken.unwrap().negotiated_key_exchange_group().map(|group| group.name());
        assert_eq!(group, Some(rustls::NamedGroup::X25519MLKEM768));
    } else {
        let error = shaken.unwrap_err();
        assert!(error.contains("ssl.curves.list") && error.contains("feature aws-lc-rs"), "{error}");
    }
}

#[test]
fn client_keys_that_can_not_sign_are_errors_at_the_start() {
    let root = ca("Root");
    for (case, pem, rule) in [
        (
            "RSA-1024",
            include_str!("kinds/client-rsa-1024.pem"),
            "RSA keys need 2048 to 8192 bits, EC keys the curve P-256",
        ),
        ("P-224", include_str!("kinds/client-p-224.pem"), "EC keys the curve P-256, P-384 or P-521"),
    ] {
        let settings = TlsSettings {
            certificate_pem: Some(pem.to_owned()),
            key_pem: Some(Secret::from(pem)),
            ..trusting(&[&root])
        };
        let error = TlsContext::new(settings).map(drop).unwrap_err().to_string();
        assert!(error.contains(rule), "{case}: {error}");
        assert!(!error.contains("PRIVATE KEY"), "{case}: {error}");
    }
}

/// A broker that signs handshakes whatever the client accepts.
#[derive(Debug)]
struct Stubborn(Arc<CertifiedKey>);

impl rustls::server::ResolvesServerCert for Stubborn {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct AnySignature(SignatureScheme);

impl rustls::sign::SigningKey for AnySignature {
    fn choose_scheme(&self, _: &[SignatureScheme]) -> Option<Box<dyn rustls::sign::Signer>> {
        Some(Box::new(Self(self.0)))
    }

    fn algorithm(&self) -> rustls::SignatureAlgorithm {
        match self.0 {
            SignatureScheme::RSA_PSS_SHA256 => rustls::SignatureAlgorithm::RSA,
            _ => rustls::SignatureAlgorithm::ECDSA,
        }
    }
}

impl rustls::sign::Signer for AnySignature {
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        Ok(vec![7; 128])
    }

    fn scheme(&self) -> SignatureScheme {
        self.0
    }
}

/// A public key whose private key nobody has here.
struct RsaKey(Vec<u8>);

impl rcgen::PublicKeyData for RsaKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_RSA_SHA256
    }
}

#[test]
fn broker_that_can_not_prove_its_key_is_refused_with_the_rule() {
    let root = ca("Root");
    let small = {
        // rcgen makes no such keys; the CA signs a public key of OpenSSL's.
        let pem = include_str!("kinds/client-rsa-1024.pem");
        let der = credentials::certificates(pem.as_bytes()).unwrap().remove(0);
        let info = credentials::x509::Certificate::parse(&der).unwrap().public_key;
        let mut body = Der::new(&info).inside(tag::SEQUENCE).unwrap();
        body.any().unwrap();
        let key = RsaKey(body.expect(tag::BIT_STRING).unwrap()[1..].to_vec());
        params("broker", &[HOST]).signed_by(&key, &root.issuer()).unwrap().der().to_vec()
    };
    for (case, der, scheme, words) in [
        (
            "RSA-1024",
            small,
            SignatureScheme::RSA_PSS_SHA256,
            &["CN=broker", "RSA key of 1024 bits", "2048"][..],
        ),
        (
            "another key",
            leaf(&[HOST], &root).der,
            SignatureScheme::ECDSA_NISTP256_SHA256,
            &["CN=broker", "does not belong to its certificate"],
        ),
    ] {
        let certified = CertifiedKey::new(vec![CertificateDer::from(der)], Arc::new(AnySignature(scheme)));
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
                .with_protocol_versions(&[version])
                .unwrap()
                .with_no_client_auth()
                .with_cert_resolver(Arc::new(Stubborn(Arc::new(certified.clone()))));
            let error = shake(trusting(&[&root]), config, HOST).map(drop).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{case}: {error}");
            assert!(!error.contains("BadSignature"), "{case}: {error}");
        }
    }
}

#[test]
fn intermediate_certificate_without_the_right_to_issue_is_refused() {
    let root = ca("Root");
    let intermediate = |usages: Vec<KeyUsagePurpose>| {
        let mut params = ca_params("Intermediate");
        params.key_usages = usages;
        made(params, Some(&root))
    };
    let lacking = intermediate(vec![KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature]);
    let broker = leaf(&[HOST], &lacking);
    let words = ["\"CN=Intermediate\"", "keyCertSign"];
    check("without keyCertSign", trusting(&[&root]), server(&[&broker, &lacking]), HOST, Err(&words));
    let without_usage = intermediate(Vec::new());
    let broker = leaf(&[HOST], &without_usage);
    check("without keyUsage", trusting(&[&root]), server(&[&broker, &without_usage]), HOST, Ok(()));
    // That a certificate is trusted is explicit.
    let broker = leaf(&[HOST], &lacking);
    check("trusted", trusting(&[&lacking]), server(&[&broker]), HOST, Ok(()));
}

#[test]
fn first_certificate_behind_a_byte_order_mark_is_read() {
    let (first, second) = (ca("First"), ca("Second"));
    let text = format!("\u{feff}{}\u{feff}{}", first.pem(), second.pem());
    for root in [&first, &second] {
        let settings = TlsSettings { ca_pem: Some(text.clone()), ..trusting(&[]) };
        check("byte order mark", settings, server(&[&leaf(&[HOST], root)]), HOST, Ok(()));
    }
}

#[test]
fn identity_and_trust_of_java_properties_may_be_on_one_line() {
    let root = ca("Root");
    let client = leaf(&["client.test"], &root);
    let key = pem("PRIVATE KEY", &client.key.serialize_der());
    let forms: [fn(&str) -> String; 4] = [
        |pem| pem.trim_end().replace('\n', "\\n"),
        |pem| pem.trim_end().replace('\n', "\\n\\\n  "),
        |pem| pem.trim_end().replace('\n', " \\\n "),
        |pem| pem.trim_end().replace('\n', ""),
    ];
    for form in forms {
        let text = format!(
            "security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.certificate.chain={}\nssl.keystore.key={}\n\
             ssl.truststore.type=PEM\nssl.truststore.certificates={}\n",
            form(&(client.pem() + &root.pem())),
            form(&key),
            form(&root.pem()),
        );
        let mut raw = RawConfig::new(Profile::Rust);
        raw.load("client.properties", &text).unwrap();
        let config = EffectiveConfig::admin(&raw).unwrap();
        let settings = TlsSettings::new(&config, PassedCredentials::default()).unwrap();
        let broker = server_with_clients_of(&[&leaf(&[HOST], &root)], Some(&root));
        let shaken = shake(settings, broker, HOST).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(shaken.peer_certificates().map(<[_]>::len), Some(2));
    }
}
