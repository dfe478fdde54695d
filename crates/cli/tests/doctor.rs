//! `ottla doctor`: each problem that it recognizes, on an embedded broker that has it.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::{Duration, Instant, SystemTime},
};

use ottla_embedded_broker::{
    ApiKey, Authorizer, BrokerId, ClientAuthentication, ClusterOptions, EmbeddedCluster, ErrorCode, Fault,
    FaultAction, SaslListener, SaslMechanism, ScramHash, Tail, TlsListener,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
};
use serde_json::Value;
use support::{Folder, ReservedPort, ottla};

mod support;

/// A CA, made for a test.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: Vec<u8>,
}

impl Authority {
    fn new(name: &str) -> Self {
        Self::with(name, |_| {})
    }

    fn with(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let (pem, der) = (certificate.pem(), certificate.der().to_vec());
        Self { issuer: Issuer::new(params, key), pem, der }
    }

    /// Issues a certificate. Returns it in PEM and DER, and its key.
    fn issue(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (String, Vec<u8>, KeyPair) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "made for a test");
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), certificate.der().to_vec(), key)
    }

    /// Returns the TLS of a broker with a certificate for these names.
    fn listener(
        &self,
        names: &[&str],
        clients: &ClientAuthentication,
        change: impl FnOnce(&mut CertificateParams),
    ) -> TlsListener {
        let (_, der, key) = self.issue(names, change);
        TlsListener::new(&[der], &key.serialize_der(), clients).unwrap()
    }
}

fn broker(change: impl FnOnce(&mut ClusterOptions)) -> EmbeddedCluster {
    let mut options = ClusterOptions { brokers: 1, ..ClusterOptions::default() };
    change(&mut options);
    EmbeddedCluster::start(options).unwrap()
}

fn tls_broker(tls: TlsListener) -> EmbeddedCluster {
    broker(|options| options.tls = Some(tls))
}

/// What the doctor found with these properties.
struct Examined {
    json: Value,
    code: i32,
}

impl Examined {
    fn of(servers: &str, properties: &[&str]) -> Self {
        Self::with(servers, properties, &[])
    }

    fn with(servers: &str, properties: &[&str], options: &[&str]) -> Self {
        let mut arguments = vec!["doctor", "--json", "-b", servers];
        if !options.contains(&"--timeout") {
            arguments.extend(["--timeout", "20"]);
        }
        for property in properties {
            arguments.extend(["-X", property]);
        }
        arguments.extend(options);
        let output = ottla(&arguments);
        let json =
            serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("{} {}", output.out, output.err));
        Self { json, code: output.code }
    }

    /// Checks that this is the only problem, that the step failed with it, and that its advice has these words.
    fn expect(&self, problem: &str, step: &str, words: &[&str]) {
        let json = &self.json;
        assert_eq!(json["problems"], serde_json::json!([problem]), "{json:#}");
        assert_eq!((self.code, &json["ok"]), (1, &Value::Bool(false)));
        let failed =
            json["checks"].as_array().unwrap().iter().find(|check| check["problem"] == problem).unwrap();
        assert_eq!(failed["step"], step, "{failed:#}");
        let text = failed.to_string();
        for word in words {
            assert!(text.contains(word), "{word:?} is not in {failed:#}");
        }
        assert!(!failed["advice"].as_array().unwrap().is_empty(), "{failed:#}");
    }
}

const TLS: &str = "security.protocol=ssl";
const LOCAL: &[&str] = &["127.0.0.1", "localhost"];

fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3600)
}

#[test]
fn healthy_cluster_passes_every_step() {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    cluster.control(|control| control.create_topic("orders", 6, 3)).unwrap();
    let servers = cluster.bootstrap_servers();
    let options = ["--produce", "orders", "--consume", "orders", "--group", "billing"];
    let examined = Examined::with(&servers, &[], &options);
    assert_eq!((examined.code, &examined.json["ok"]), (0, &Value::Bool(true)), "{:#}", examined.json);
    let checks = examined.json["checks"].as_array().unwrap();
    let count = |step: &str| checks.iter().filter(|check| check["step"] == step).count();
    let counts = ["config", "dns", "tcp", "tls", "api", "metadata", "broker", "topic", "group"].map(count);
    assert_eq!(counts, [1, 3, 3, 0, 3, 1, 3, 1, 1]);
}

#[test]
fn pipe_gets_a_line_per_step_and_the_exit_code() {
    let cluster = broker(|_| {});
    let output = ottla(&["doctor", "-b", &cluster.bootstrap_servers()]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.contains(": tcp: ok: connected to 127.0.0.1:"), "{}", output.out);
    assert!(output.out.ends_with("no problem found\n") && !output.out.contains('\x1b'), "{}", output.out);
    let output = ottla(&["doctor", "-b", "127.0.0.1:1"]);
    assert_eq!((output.code, output.err.as_str()), (1, "ottla: doctor: connection_refused\n"));
    assert!(output.out.contains("127.0.0.1:1: tcp: FAILED connection_refused: "), "{}", output.out);
    assert_eq!(ottla(&["doctor"]).code, 2, "without a server");
    assert_eq!(ottla(&["doctor", "-b", "a:1", "-X", "no.such.property=1"]).code, 2);
}

#[test]
fn unknown_host_and_missing_server_have_different_findings() {
    Examined::of("no-such-host.invalid:9092", &[]).expect("unknown_host", "dns", &["getent hosts"]);
    Examined::of("127.0.0.1:1", &[]).expect("connection_refused", "tcp", &["no process listens"]);
}

/// Starts a server that reads a little and responds with these bytes; without any it stays silent.
fn server(response: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let mut silent = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.read(&mut [0; 1000]);
            let _ = stream.write_all(response);
            if response.is_empty() {
                silent.push(stream);
            }
        }
    });
    address
}

/// Starts a server that responds to requests of HTTP only. It closes other connections, or stays silent.
fn picky_http_server(is_silent: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let mut silent = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            let mut start = [0; 4];
            let _ = stream.read_exact(&mut start);
            if &start == b"GET " {
                let _ = stream.write_all(b"HTTP/1.0 404 Not Found\r\n\r\n");
            } else if is_silent {
                silent.push(stream);
            }
        }
    });
    address
}

#[test]
fn timeout_bounds_the_whole_examination() {
    let servers = [server(b""), server(b""), server(b"")].join(",");
    let start = Instant::now();
    let examined = Examined::with(&servers, &[], &["--timeout", "4"]);
    assert_eq!(examined.code, 1);
    let silent = examined.json["checks"].as_array().unwrap().iter();
    assert_eq!(silent.filter(|check| check["step"] == "api").count(), 3, "{:#}", examined.json);
    // With 4 s for each wait it would take 24 s.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn servers_that_are_no_brokers_are_recognized() {
    let http = server(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    Examined::of(&http, &[]).expect("http_server", "api", &["8081"]);
    for is_silent in [false, true] {
        let examined = Examined::with(&picky_http_server(is_silent), &[], &["--timeout", "8"]);
        examined.expect("http_server", "api", &["8081"]);
    }
    Examined::of(&http, &[TLS]).expect("http_server", "tls", &["8081"]);
    let silent = server(b"");
    Examined::with(&silent, &[], &["--timeout", "1"]).expect("silent", "api", &["--timeout"]);
    let other = server(b"\0\0\0\x0aSSH or so.");
    Examined::of(&other, &[]).expect("not_kafka", "api", &["security.protocol"]);
    let controller = broker(|options| {
        options.api_versions.insert(ApiKey::Metadata as i16, (1, 0));
    });
    Examined::of(&controller.bootstrap_servers(), &[]).expect(
        "controller_listener",
        "api",
        &["KRaft controller"],
    );
}

#[test]
fn plaintext_client_on_a_tls_port_is_recognized() {
    let ca = Authority::new("CA");
    let cluster = tls_broker(ca.listener(LOCAL, &ClientAuthentication::None, |_| {}));
    let advice = "set security.protocol=ssl";
    Examined::of(&cluster.bootstrap_servers(), &[]).expect(
        "tls_listener",
        "api",
        &[advice, "ssl.ca.location"],
    );
    let sasl = SaslListener::new(&[SaslMechanism::Plain]).user("alice", "secret");
    let cluster = broker(|options| {
        options.tls = Some(ca.listener(LOCAL, &ClientAuthentication::None, |_| {}));
        options.sasl = Some(sasl);
    });
    let words = ["set security.protocol=sasl_ssl", "SASL with PLAIN"];
    Examined::of(&cluster.bootstrap_servers(), &[]).expect("tls_listener", "api", &words);
}

#[test]
fn tls_client_on_a_plaintext_port_is_recognized() {
    let cluster = broker(|_| {});
    let words = ["set security.protocol=plaintext"];
    Examined::of(&cluster.bootstrap_servers(), &[TLS]).expect("plaintext_listener", "tls", &words);
    let sasl = SaslListener::new(&[SaslMechanism::Plain]).user("alice", "secret");
    let cluster = broker(|options| options.sasl = Some(sasl));
    let words = ["set security.protocol=sasl_plaintext", "SASL with PLAIN"];
    Examined::of(&cluster.bootstrap_servers(), &[TLS]).expect("plaintext_listener", "tls", &words);
}

#[test]
fn certificates_with_a_wrong_time_are_recognized() {
    let ca = Authority::new("Test CA");
    let trusted = format!("ssl.ca.pem={}", ca.pem);
    let examine = |change: fn(&mut CertificateParams)| {
        let cluster = tls_broker(ca.listener(LOCAL, &ClientAuthentication::None, change));
        Examined::of(&cluster.bootstrap_servers(), &[TLS, &trusted])
    };
    let examined = examine(|params| params.not_after = rcgen::date_time_ymd(2022, 3, 4));
    examined.expect("certificate_expired", "tls", &["2022-03-04", "renew", "made for a test"]);
    let chain = &examined.json["checks"][3]["data"]["chain"][0];
    assert_eq!(
        (&chain["names"][0], &chain["names"][1]),
        (&"127.0.0.1".into(), &"localhost".into()),
        "{chain}"
    );
    let examined = examine(|params| params.not_before = (SystemTime::now() + hours(24 * 300)).into());
    examined.expect("certificate_not_yet_valid", "tls", &["valid before", "date -u"]);
    // A certificate that was made an hour from now.
    let examined = examine(|params| params.not_before = (SystemTime::now() + hours(1)).into());
    examined.expect("clock_skew", "tls", &["date -u", "NTP"]);
}

#[test]
fn clock_that_is_years_ahead_is_recognized_by_the_trusted_certificates() {
    let old = |params: &mut CertificateParams| params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let ca = Authority::with("Old CA", old);
    let cluster = tls_broker(ca.listener(LOCAL, &ClientAuthentication::None, old));
    let trusted = format!("ssl.ca.pem={}", ca.pem);
    Examined::of(&cluster.bootstrap_servers(), &[TLS, &trusted]).expect(
        "clock_skew",
        "tls",
        &["expired at 2021"],
    );
}

#[test]
fn wrong_host_and_unknown_ca_are_recognized() {
    let (ca, other) = (Authority::new("Test CA"), Authority::new("Other CA"));
    let trusting = |ca: &Authority| format!("ssl.ca.pem={}", ca.pem);
    let cluster = tls_broker(ca.listener(&["kafka.example"], &ClientAuthentication::None, |_| {}));
    let servers = cluster.bootstrap_servers();
    let words = ["connect by a name of the certificate: kafka.example", "san=dns"];
    Examined::of(&servers, &[TLS, &trusting(&ca)]).expect("wrong_host", "tls", &words);
    let words = ["certificate of \\\"CN=Test CA\\\"", "ssl.ca.location"];
    Examined::of(&servers, &[TLS, &trusting(&other)]).expect("unknown_ca", "tls", &words);
}

#[test]
fn revoked_certificate_of_a_broker_is_recognized() {
    let ca = Authority::new("Test CA");
    let with_serial = |serial: u8| {
        let change =
            |params: &mut CertificateParams| params.serial_number = Some(SerialNumber::from(vec![serial]));
        tls_broker(ca.listener(LOCAL, &ClientAuthentication::None, change))
    };
    let revoked = RevokedCertParams {
        serial_number: SerialNumber::from(vec![7]),
        revocation_time: rcgen::date_time_ymd(2024, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let list = CertificateRevocationListParams {
        this_update: rcgen::date_time_ymd(2024, 1, 1),
        next_update: rcgen::date_time_ymd(2099, 1, 1),
        crl_number: SerialNumber::from(vec![1]),
        issuing_distribution_point: None,
        revoked_certs: vec![revoked],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let folder = Folder::new("revoked");
    let list = folder.file("crl.pem", &list.signed_by(&ca.issuer).unwrap().pem().unwrap());
    let (list, trusted) = (format!("ssl.crl.location={list}"), format!("ssl.ca.pem={}", ca.pem));
    let cluster = with_serial(7);
    let examined = Examined::of(&cluster.bootstrap_servers(), &[TLS, &trusted, &list]);
    examined.expect("certificate_revoked", "tls", &["is revoked", "made for a test", "ssl.crl.location"]);
    let cluster = with_serial(8);
    let examined = Examined::of(&cluster.bootstrap_servers(), &[TLS, &trusted, &list]);
    assert_eq!(examined.code, 0, "{:#}", examined.json);
}

#[test]
fn client_and_broker_with_nothing_in_common_are_recognized() {
    let ca = Authority::new("Test CA");
    // The broker's certificate has an EC key.
    let cluster = tls_broker(ca.listener(LOCAL, &ClientAuthentication::None, |_| {}));
    let (servers, trusted) = (cluster.bootstrap_servers(), format!("ssl.ca.pem={}", ca.pem));
    for only in
        ["ssl.sigalgs.list=RSA+SHA256:RSA-PSS+SHA256", "ssl.cipher.suites=ECDHE-RSA-AES128-GCM-SHA256"]
    {
        let properties = [TLS, &trusted, only, "ssl.enabled.protocols=TLSv1.2"];
        let words = ["remove ssl.cipher.suites", "ssl.sigalgs.list", "on the broker"];
        Examined::of(&servers, &properties).expect("nothing_in_common", "tls", &words);
    }
}

#[test]
fn client_certificate_that_the_broker_refuses_is_recognized() {
    // Another CA has the name of the one that the broker trusts.
    let (ca, impostor) = (Authority::new("Test CA"), Authority::new("Test CA"));
    let clients = ClientAuthentication::Required(vec![ca.der.clone()]);
    let cluster = tls_broker(ca.listener(LOCAL, &clients, |_| {}));
    let (pem, _, key) = impostor.issue(&[], |_| {});
    let properties = [
        TLS.to_owned(),
        format!("ssl.ca.pem={}", ca.pem),
        format!("ssl.certificate.pem={pem}"),
        format!("ssl.key.pem={}", key.serialize_pem()),
    ];
    let properties = properties.each_ref().map(String::as_str);
    let words = ["ssl.truststore.location", "ssl.certificate.location"];
    Examined::of(&cluster.bootstrap_servers(), &properties).expect(
        "client_certificate_refused",
        "api",
        &words,
    );
}

#[test]
fn broker_that_wants_a_client_certificate_is_recognized() {
    let (ca, other) = (Authority::new("Test CA"), Authority::new("Other CA"));
    let clients = ClientAuthentication::Required(vec![ca.der.clone()]);
    let cluster = tls_broker(ca.listener(LOCAL, &clients, |_| {}));
    let (servers, trusted) = (cluster.bootstrap_servers(), format!("ssl.ca.pem={}", ca.pem));
    let words = ["accepts those issued by CN=Test CA", "ssl.certificate.location"];
    Examined::of(&servers, &[TLS, &trusted]).expect("client_certificate_missing", "api", &words);
    let with = |authority: &Authority, change: fn(&mut CertificateParams)| {
        let (pem, _, key) = authority.issue(&[], change);
        let (certificate, key) =
            (format!("ssl.certificate.pem={pem}"), format!("ssl.key.pem={}", key.serialize_pem()));
        Examined::of(&servers, &[TLS, &trusted, &certificate, &key])
    };
    with(&other, |_| {}).expect("client_certificate_missing", "api", &["CN=Test CA"]);
    let examined = with(&ca, |_| {});
    assert_eq!(examined.code, 0, "{:#}", examined.json);
    assert!(examined.json.to_string().contains("asked for the client's certificate and got it"));
    // The doctor notices before it connects.
    let examined = with(&ca, |params| params.not_after = rcgen::date_time_ymd(2022, 3, 4));
    examined.expect("client_certificate_expired", "config", &["renew"]);
    let examined = with(&ca, |params| params.not_before = (SystemTime::now() + hours(1)).into());
    examined.expect("clock_skew", "config", &["NTP"]);
}

const USER: &[&str] = &["sasl.username=alice", "sasl.password=hunter2"];

fn sasl_broker() -> EmbeddedCluster {
    let mechanisms = [SaslMechanism::Plain, SaslMechanism::Scram(ScramHash::Sha512)];
    let sasl = SaslListener::new(&mechanisms).user("alice", "hunter2");
    broker(|options| options.sasl = Some(sasl))
}

#[test]
fn wrong_mechanism_and_wrong_password_are_recognized() {
    let cluster = sasl_broker();
    let servers = cluster.bootstrap_servers();
    let with = |mechanism: &str, password: &str| {
        let properties = ["security.protocol=sasl_plaintext", mechanism, "sasl.username=alice", password];
        let examined = Examined::of(&servers, &properties);
        assert!(!examined.json.to_string().contains("hunter"), "{:#}", examined.json);
        examined
    };
    for mechanism in ["sasl.mechanisms=PLAIN", "sasl.mechanisms=SCRAM-SHA-512"] {
        assert_eq!(with(mechanism, "sasl.password=hunter2").code, 0);
        let examined = with(mechanism, "sasl.password=hunter3");
        examined.expect("wrong_credentials", "sasl", &["sasl.password"]);
    }
    let examined = with("sasl.mechanisms=SCRAM-SHA-256", "sasl.password=hunter2");
    examined.expect("wrong_mechanism", "sasl", &["set sasl.mechanisms to one of PLAIN, SCRAM-SHA-512"]);
}

#[test]
fn listener_with_or_without_sasl_is_recognized() {
    let cluster = sasl_broker();
    let words = ["set security.protocol=sasl_plaintext", "one of PLAIN, SCRAM-SHA-512"];
    Examined::of(&cluster.bootstrap_servers(), &[]).expect("sasl_listener", "metadata", &words);
    let cluster = broker(|_| {});
    let properties = [&["security.protocol=sasl_plaintext", "sasl.mechanisms=PLAIN"], USER].concat();
    let words = ["set security.protocol=plaintext"];
    Examined::of(&cluster.bootstrap_servers(), &properties).expect("no_sasl_listener", "sasl", &words);
}

#[test]
fn missing_source_of_tokens_is_recognized() {
    let sasl = SaslListener::new(&[SaslMechanism::OauthBearerUnsecured]);
    let cluster = broker(|options| options.sasl = Some(sasl));
    let properties = ["security.protocol=sasl_plaintext", "sasl.mechanisms=OAUTHBEARER"];
    Examined::of(&cluster.bootstrap_servers(), &properties).expect("no_token", "sasl", &["callback"]);
    let unsecured = ["enable.sasl.oauthbearer.unsecure.jwt=true", "sasl.oauthbearer.config=principal=alice"];
    let examined = Examined::of(&cluster.bootstrap_servers(), &[properties, unsecured].concat());
    assert_eq!(examined.code, 0, "{:#}", examined.json);
}

#[test]
fn identity_provider_that_gives_no_token_is_recognized() {
    let sasl = SaslListener::new(&[SaslMechanism::OauthBearerUnsecured]);
    let cluster = broker(|options| options.sasl = Some(sasl));
    let closed = ReservedPort::new();
    let endpoint = format!("sasl.oauthbearer.token.endpoint.url=http://{}/token", closed.servers());
    let properties = [
        "security.protocol=sasl_plaintext",
        "sasl.mechanisms=OAUTHBEARER",
        "sasl.oauthbearer.method=oidc",
        "sasl.oauthbearer.client.id=me",
        "sasl.oauthbearer.client.secret=hunter2",
        &endpoint,
    ];
    let examined = Examined::of(&cluster.bootstrap_servers(), &properties);
    examined.expect("no_token", "sasl", &["identity provider"]);
    assert!(!examined.json.to_string().contains("hunter2"), "{:#}", examined.json);
}

#[test]
fn wrong_advertised_address_is_recognized() {
    let cluster = broker(|options| options.advertised_host = Some("no-such-host.invalid".to_owned()));
    let address = cluster.addresses()[0].1.to_string();
    Examined::of(&address, &[]).expect(
        "broker_unreachable",
        "broker",
        &["no-such-host.invalid", "advertised.listeners"],
    );
}

#[test]
fn topics_that_can_not_be_used_are_recognized() {
    let cluster = EmbeddedCluster::start(ClusterOptions { brokers: 2, ..ClusterOptions::default() }).unwrap();
    cluster.control(|control| {
        control.create_topic("alone", 2, 1).unwrap();
        control.create_topic("secret", 1, 1).unwrap();
        control.set_topic_error("secret", Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED));
    });
    let servers = cluster.bootstrap_servers();
    let topic = |option: &str, name: &str| Examined::with(&servers, &[], &[option, name]);
    topic("--topic", "nothing").expect("unknown_topic", "topic", &["ottla topics create nothing"]);
    let words = ["--operation Write --topic 'secret'", "ottla acls add"];
    topic("--produce", "secret").expect("not_authorized", "topic", &words);
    let first = servers.split(',').next().unwrap().to_owned();
    cluster.control(|control| control.kill_broker(BrokerId(2), Tail::Kept));
    Examined::with(&first, &[], &["--topic", "alone"]).expect("no_leader", "topic", &["1 of 2 (1)"]);
}

/// Starts a server that reads a little and closes the connection.
fn closing_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1000]);
        }
    });
    address
}

#[test]
fn closed_connections_and_unreachable_addresses_are_told_apart() {
    let words = ["security.protocol", "broker.version.fallback"];
    Examined::of(&closing_server(), &[]).expect("closed", "api", &words);
    // No connection is possible to a broadcast address.
    Examined::of("255.255.255.255:9092", &[]).expect("unreachable", "tcp", &["firewall"]);
}

#[test]
fn failed_handshake_of_another_protocol_is_recognized() {
    let other = server(b"220 mail.example ESMTP ready\r\n");
    Examined::of(&other, &[TLS]).expect("tls_failed", "tls", &["does not respond in TLS", "host and port"]);
    Examined::of(&closing_server(), &[TLS]).expect("tls_failed", "tls", &["security.protocol"]);
}

#[test]
fn certificate_that_breaks_a_rule_is_recognized() {
    let ca = Authority::new("Test CA");
    let own_ca = |params: &mut CertificateParams| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cluster = tls_broker(ca.listener(LOCAL, &ClientAuthentication::None, own_ca));
    let trusted = format!("ssl.ca.pem={}", ca.pem);
    let words = ["CA:TRUE", "made for a test", "issue a new certificate"];
    Examined::of(&cluster.bootstrap_servers(), &[TLS, &trusted]).expect("bad_certificate", "tls", &words);
}

#[test]
fn broker_that_can_not_authenticate_is_recognized() {
    let cluster = sasl_broker();
    let error = FaultAction::Error(ErrorCode::UNKNOWN_SERVER_ERROR);
    cluster.control(|control| control.inject(Fault::new(error).api(ApiKey::SaslHandshake)));
    let properties = [&["security.protocol=sasl_plaintext", "sasl.mechanisms=PLAIN"], USER].concat();
    let examined = Examined::of(&cluster.bootstrap_servers(), &properties);
    examined.expect("authentication_failed", "sasl", &["UNKNOWN_SERVER_ERROR", "broker's log"]);
}

#[test]
fn replicas_that_are_behind_are_a_warning() {
    let cluster = EmbeddedCluster::start(ClusterOptions { brokers: 2, ..ClusterOptions::default() }).unwrap();
    cluster.control(|control| control.create_topic("t", 2, 2)).unwrap();
    let first = cluster.bootstrap_servers().split(',').next().unwrap().to_owned();
    cluster.control(|control| control.kill_broker(BrokerId(2), Tail::Kept));
    let examined = Examined::with(&first, &[], &["--topic", "t"]);
    let json = &examined.json;
    assert_eq!((examined.code, &json["ok"]), (0, &Value::Bool(true)), "{json:#}");
    assert_eq!(json["warnings"], serde_json::json!(["under_replicated"]));
    assert!(json.to_string().contains("2 of 2 (0, 1)") && json.to_string().contains("min.insync.replicas"));
}

#[test]
fn groups_that_can_not_be_used_are_recognized() {
    let group = |cluster: &EmbeddedCluster| {
        Examined::with(&cluster.bootstrap_servers(), &[], &["--group", "billing"])
    };
    let cluster = broker(|options| options.authorizer = Some(Authorizer::default()));
    let words = ["--operation Read --group 'billing'", "ottla acls add"];
    group(&cluster).expect("not_authorized", "group", &words);
    let cluster = broker(|_| {});
    let error = FaultAction::Error(ErrorCode::COORDINATOR_NOT_AVAILABLE);
    cluster.control(|control| control.inject(Fault::new(error).api(ApiKey::FindCoordinator)));
    let words = ["COORDINATOR_NOT_AVAILABLE", "__consumer_offsets"];
    group(&cluster).expect("group_unavailable", "group", &words);
}

#[test]
fn responses_that_make_no_sense_are_recognized() {
    let cluster = broker(|_| {});
    cluster.control(|control| {
        control.create_topic("odd", 1, 1).unwrap();
        control.set_topic_error("odd", Some(ErrorCode::INVALID_TOPIC_EXCEPTION));
    });
    let odd = Examined::with(&cluster.bootstrap_servers(), &[], &["--topic", "odd"]);
    odd.expect("bad_response", "topic", &["INVALID_TOPIC_EXCEPTION"]);
    let cluster = broker(|_| {});
    let short = FaultAction::TruncateResponse(9);
    cluster.control(|control| control.inject(Fault::new(short).api(ApiKey::ApiVersions)));
    Examined::of(&cluster.bootstrap_servers(), &[]).expect("closed", "api", &["within a response"]);
}

#[test]
fn bad_file_is_a_problem_of_the_configuration() {
    let folder = Folder::new("doctor");
    let file = folder.file("ca.pem", "no certificate");
    let location = format!("ssl.ca.location={file}");
    let examined = Examined::of("127.0.0.1:1", &[TLS, &location]);
    assert_eq!(examined.json["problems"], serde_json::json!(["bad_configuration"]));
    assert!(examined.json.to_string().contains("ca.pem"), "{:#}", examined.json);
}

#[test]
fn proxy_is_a_step_of_its_own_and_its_refusal_a_problem() {
    let cluster = broker(|_| {});
    let servers = cluster.bootstrap_servers();
    for (status, is_healthy) in [("200 OK", true), ("403 Forbidden", false)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = format!("proxy.url=http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    client.read_exact(&mut byte).unwrap();
                    request.push(byte[0]);
                }
                let request = String::from_utf8(request).unwrap();
                let target = request.split(' ').nth(1).unwrap();
                write!(client, "HTTP/1.1 {status}\r\n\r\n").unwrap();
                let mut broker = std::net::TcpStream::connect(target).unwrap();
                let (mut back, mut there) = (broker.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || std::io::copy(&mut back, &mut there));
                thread::spawn(move || std::io::copy(&mut client, &mut broker));
            }
        });
        let examined = Examined::of(&servers, &[&proxy]);
        if is_healthy {
            let checks = examined.json["checks"].as_array().unwrap();
            assert!(checks.iter().any(|check| check["step"] == "proxy"), "{:#}", examined.json);
            assert_eq!(examined.code, 0, "{:#}", examined.json);
        } else {
            examined.expect("proxy_failed", "proxy", &["403 Forbidden", "permit CONNECT", "proxy.url"]);
        }
    }
}
