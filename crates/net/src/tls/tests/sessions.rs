//! Sessions: the name in the client's first message, renegotiation, resumption, and where certificates come from.

use ottla_core::observer::Peer;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls::{
    ConnectionTrafficSecrets, HandshakeKind,
    server::Acceptor,
    unbuffered::{ConnectionState, UnbufferedStatus},
};

use super::*;
use crate::tls::algorithms::Lists;

/// Returns the host name in the first message of a session with this host (SNI).
fn name_in_first_message(host: &str) -> Option<String> {
    let context = TlsContext::new(trusting(&[&ca("CA")])).unwrap();
    let mut session = context.session(Peer { host, port: 9093, node_id: None, socket: None }).unwrap();
    let UnbufferedStatus { state, .. } = session.process_tls_records(&mut []);
    let Ok(ConnectionState::EncodeTlsData(mut data)) = state else { panic!("no first message") };
    let mut bytes = vec![0; 4096];
    let size = data.encode(&mut bytes).unwrap();
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut &bytes[..size]).unwrap();
    let accepted = acceptor.accept().map_err(|_| "refused").unwrap().expect("a whole message");
    accepted.client_hello().server_name().map(str::to_owned)
}

#[test]
fn first_message_names_the_host_but_no_address() {
    for (host, name) in [
        (HOST, Some(HOST)),
        ("kafka.test.", Some(HOST)),
        ("broker_1.kafka.test", Some("broker_1.kafka.test")),
        ("127.0.0.1", None),
        ("::1", None),
    ] {
        assert_eq!(name_in_first_message(host).as_deref(), name, "{host}");
    }
}

/// Encrypts a handshake message that asks for a renegotiation (HelloRequest), as a server of TLS 1.2 does.
fn hello_request(secrets: &ConnectionTrafficSecrets, sequence: u64) -> Vec<u8> {
    const MESSAGE: [u8; 4] = [0; 4];
    let ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } = secrets else { panic!("another suite") };
    let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key.as_ref()).unwrap());
    let mut nonce: [u8; 12] = iv.as_ref().try_into().unwrap();
    nonce[4..].iter_mut().zip(sequence.to_be_bytes()).for_each(|(byte, of_sequence)| *byte ^= of_sequence);
    let mut header = sequence.to_be_bytes().to_vec();
    header.extend([0x16, 3, 3, 0, MESSAGE.len() as u8]);
    let mut body = MESSAGE.to_vec();
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(&header), &mut body).unwrap();
    let mut record = vec![0x16, 3, 3, 0, body.len() as u8];
    record.extend(body);
    record
}

#[test]
fn repeated_requests_for_a_renegotiation_end_the_session() {
    let root = ca("Root");
    let lists = Lists {
        versions: Some("TLSv1.2".to_owned()),
        suites: Some("CHACHA20".to_owned()),
        ..Lists::default()
    };
    let context = TlsContext::new(TlsSettings { lists, ..trusting(&[&root]) }).unwrap();
    let mut server = server(&[&leaf(&[HOST], &root)]);
    server.enable_secret_extraction = true;
    let (mut client, server) = both_sides(&context, Arc::new(server), HOST).unwrap();
    let (sequence, secrets) = server.dangerous_extract_secrets().unwrap().tx;
    let mut ask = |number| {
        client.read_tls(&mut &hello_request(&secrets, sequence + number)[..]).unwrap();
        let result = client.process_new_packets().map(drop);
        let mut answer = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut answer).unwrap();
        }
        (result, answer)
    };
    // The first one is answered with the warning no_renegotiation: an alert, and no new handshake.
    let (result, answer) = ask(0);
    result.unwrap();
    assert_eq!(answer.first(), Some(&0x15));
    let error = ask(1).0.unwrap_err();
    let text = failure::explain(&error, None, true).to_string();
    assert!(text.contains("renegotiation") && text.contains("TLS 1.3"), "{text}");
}

#[test]
fn sessions_are_resumed_with_the_same_broker_until_files_are_read_again() {
    let root = ca("Root");
    let context = TlsContext::new(trusting(&[&root])).unwrap();
    let server = Arc::new(server(&[&leaf(&[HOST, "other.test"], &root)]));
    let kind = |host| shake_with(&context, Arc::clone(&server), host).unwrap().handshake_kind();
    assert_eq!(kind(HOST), Some(HandshakeKind::Full));
    assert_eq!(kind(HOST), Some(HandshakeKind::Resumed));
    assert_eq!(kind("other.test"), Some(HandshakeKind::Full));
    context.reload().unwrap();
    assert_eq!(kind(HOST), Some(HandshakeKind::Full), "certificates that were replaced are checked");
}

#[test]
fn missing_client_certificate_is_named_with_every_version() {
    let root = ca("Root");
    let broker = leaf(&[HOST], &root);
    for version in ["TLSv1.2", "TLSv1.3"] {
        let lists = Lists { versions: Some(version.to_owned()), ..Lists::default() };
        let settings = TlsSettings { lists, ..trusting(&[&root]) };
        let server = server_with_clients_of(&[&broker], Some(&root));
        let words = ["requires a client certificate", "ssl.certificate.location"];
        check(version, settings, server, HOST, Err(&words));
    }
}

#[test]
fn client_certificate_of_version_1_is_refused_at_the_start() {
    let key = KeyPair::generate().unwrap();
    let settings = TlsSettings {
        certificate_pem: Some(pem("CERTIFICATE", &version_1("client", &key))),
        key_pem: Some(Secret::from(&*key.serialize_pem())),
        ..trusting(&[&ca("Root")])
    };
    let error = TlsContext::new(settings).unwrap_err().to_string();
    assert!(error.contains("ssl.certificate.pem") || error.contains("ssl.key.pem"), "{error}");
    assert!(error.contains("CN=client") && error.contains("version 1"), "{error}");
}

#[test]
fn trust_comes_from_file_and_text_or_from_a_call() {
    let (first, second) = (ca("First"), ca("Second"));
    let folder = Folder::new("sources");
    let ca_location = Some(folder.write("ca.pem", &first.pem()));
    let both = TlsSettings { ca_location, ..trusting(&[&second]) };
    for root in [&first, &second] {
        check("file and text", both.clone(), server(&[&leaf(&[HOST], root)]), HOST, Ok(()));
    }
    let passed = PassedCredentials { ca: vec![first.der.clone()], ..PassedCredentials::default() };
    let error = TlsContext::new(TlsSettings { passed, ..both }).unwrap_err().to_string();
    assert!(error.contains("ssl.ca.location or ssl.ca.pem"), "{error}");
    let der = folder.path.join("ca.der");
    std::fs::write(&der, &second.der).unwrap();
    let ca_location = Some(der.display().to_string());
    let settings = TlsSettings { ca_location, ca_pem: None, ..trusting(&[]) };
    check("DER", settings, server(&[&leaf(&[HOST], &second)]), HOST, Ok(()));
}

#[test]
fn usual_places_of_certificates_are_probed() {
    let settings = TlsSettings { ca_location: Some("probe".to_owned()), ca_pem: None, ..trusting(&[]) };
    let context = TlsContext::new(settings).unwrap();
    let (certificates, origin) = context.trusted();
    match context.warnings().iter().find(|warning| warning.contains("usual places")) {
        Some(_) => assert!(certificates.is_empty(), "{origin}"),
        None => assert!(!certificates.is_empty() && origin.contains("ssl.ca.location=/"), "{origin}"),
    }
    let broker = leaf(&[HOST], &ca("Nobody's"));
    let error = shake_with(&context, server(&[&broker]), HOST).map(drop).unwrap_err();
    assert!(error.contains("CN=Nobody's") && error.contains("not trusted"), "{error}");
}

#[test]
fn texts_win_over_files_and_a_store_needs_its_password() {
    let root = ca("Root");
    let (client, other) = (made(params("client", &[]), Some(&root)), made(params("other", &[]), Some(&root)));
    let folder = Folder::new("texts");
    let settings = TlsSettings {
        certificate_location: Some(folder.write("other.pem", &other.pem())),
        key_location: Some(folder.write("other.key", &other.key.serialize_pem())),
        certificate_pem: Some(client.pem()),
        key_pem: Some(Secret::from(&*client.key.serialize_pem())),
        ..trusting(&[&root])
    };
    let broker = leaf(&[HOST], &root);
    let session = shake(settings, server_with_clients_of(&[&broker], Some(&root)), HOST).unwrap();
    assert_eq!(session.peer_certificates().unwrap()[0].as_ref(), client.der);
    let store = folder.path.join("client.p12");
    std::fs::write(&store, [0x30, 0x03, 2, 1, 3]).unwrap();
    let settings = TlsSettings { key_store: Some(store.display().to_string()), ..trusting(&[&root]) };
    let error = TlsContext::new(settings).unwrap_err().to_string();
    assert!(error.contains("client.p12") && error.contains("set ssl.keystore.password"), "{error}");
}
