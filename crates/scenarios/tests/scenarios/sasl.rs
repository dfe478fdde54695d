//! Authentication at embedded brokers: every mechanism, wrong credentials, tokens, and re-authentication.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ottla::{
    Admin, Config, Consumer, Delivery, Error, ErrorKind, Event, OauthToken, Offset, Producer, Record,
};
use ottla_embedded_broker::{
    ApiKey, ClusterOptions, EmbeddedCluster, Fault, FaultAction, RequestRecord, SaslListener, SaslMechanism,
    ScramHash, TestAuthority,
};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{sasl_authenticate::SaslAuthenticateRequest, sasl_handshake::SaslHandshakeRequest},
};
use ottla_scenarios::{TIMEOUT, eventually, raw::RawClient};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};

const PASSWORD: &str = "se,cr=et-ä";
const UNSECURED: &str = "principal=alice scope=a,b extension_traceId=1";

pub fn listener() -> SaslListener {
    SaslListener::new(&SaslMechanism::ALL).user("alice", PASSWORD)
}

pub fn cluster(sasl: SaslListener) -> EmbeddedCluster {
    EmbeddedCluster::start(ClusterOptions { sasl: Some(sasl), ..ClusterOptions::default() }).unwrap()
}

pub fn config(cluster: &EmbeddedCluster, mechanism: &str) -> Config {
    let mut config = Config::from_properties([
        ("bootstrap.servers", &*cluster.bootstrap_servers()),
        ("security.protocol", "sasl_plaintext"),
        ("sasl.mechanisms", mechanism),
        ("linger.ms", "1"),
    ])
    .unwrap();
    if mechanism != "OAUTHBEARER" {
        config.set("sasl.username", "alice").unwrap();
        config.set("sasl.password", PASSWORD).unwrap();
    }
    config
}

/// The sessions of clients that authenticate again. The broker waits for those that a busy machine delays.
const SESSION: Duration = Duration::from_secs(3);

fn with_sessions() -> EmbeddedCluster {
    cluster(listener().max_session(SESSION).grace(TIMEOUT))
}

fn unsecured(cluster: &EmbeddedCluster) -> Config {
    let mut config = config(cluster, "OAUTHBEARER");
    config.set("enable.sasl.oauthbearer.unsecure.jwt", "true").unwrap();
    config.set("sasl.oauthbearer.config", UNSECURED).unwrap();
    config
}

/// Returns the text of an unsecured token for alice that ends at this time.
pub fn token(expires_ms: i64) -> OauthToken {
    let claims =
        format!("{{\"sub\":\"alice\",\"iat\":1,\"exp\":{}.{:03}}}", expires_ms / 1000, expires_ms % 1000);
    let value = format!("eyJhbGciOiJub25lIn0.{}.", url_base64(claims.as_bytes()));
    OauthToken { value: (&*value).into(), expires_ms, principal: "alice".into(), extensions: Vec::new() }
}

fn url_base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let digit = |six: &[u8]| (0..6).fold(0, |sum, bit| sum << 1 | usize::from(*six.get(bit).unwrap_or(&0)));
    bits.chunks(6).map(|six| LETTERS[digit(six)] as char).collect()
}

pub fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

/// Writes a record and reads it back.
fn round_trip(config: &Config, topic: &str) {
    let producer = Producer::new(config).unwrap();
    producer.deliver(topic, Record::new().value("hello").partition(0), TIMEOUT).unwrap();
    let consumer = Consumer::new(config).unwrap();
    consumer.assign(&[(topic, 0, Offset::Beginning)]).unwrap();
    let until = Instant::now() + TIMEOUT;
    while consumer.poll(TIMEOUT).unwrap().iter().count() == 0 {
        assert!(Instant::now() < until);
    }
    consumer.close(TIMEOUT).unwrap();
    producer.close(TIMEOUT).unwrap();
}

/// Returns the first authentication error of a client.
pub fn authentication_error(producer: &Producer) -> Error {
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        match producer.poll_event() {
            Some(Event::Error(error)) if error.kind() == ErrorKind::Authentication => return error,
            _ => thread::sleep(Duration::from_millis(2)),
        }
    }
    panic!("no error within {TIMEOUT:?}");
}

fn impatient(mut config: Config) -> Producer {
    config.set("drop.timeout.ms", "0").unwrap();
    Producer::new(&config).unwrap()
}

#[test]
fn every_mechanism_authenticates_with_and_without_tls() {
    let authority = TestAuthority::new("Test CA").unwrap();
    let tls = authority.listener(&["127.0.0.1"], false).unwrap();
    for tls in [None, Some(tls)] {
        let options =
            ClusterOptions { sasl: Some(listener()), tls: tls.clone(), ..ClusterOptions::default() };
        let cluster = EmbeddedCluster::start(options).unwrap();
        let mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"].map(|name| config(&cluster, name));
        for (number, mut config) in mechanisms.into_iter().chain([unsecured(&cluster)]).enumerate() {
            if tls.is_some() {
                config.set("security.protocol", "sasl_ssl").unwrap();
                config.set("ssl.ca.pem", authority.pem()).unwrap();
            }
            round_trip(&config, &format!("t{number}"));
        }
    }
}

#[test]
fn java_spelling_and_delegation_tokens_authenticate() {
    let cluster = cluster(listener().delegation_token("token-id", "aG1hYw==", "alice"));
    let mut java = Config::from_properties([
        ("bootstrap.servers", &*cluster.bootstrap_servers()),
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanism", "SCRAM-SHA-512"),
    ])
    .unwrap();
    let module = "org.apache.kafka.common.security.scram.ScramLoginModule required";
    java.set("sasl.jaas.config", &format!("{module} username=\"alice\" password=\"{PASSWORD}\";")).unwrap();
    round_trip(&java, "java");
    let jaas = format!("{module} username=\"token-id\" password=\"aG1hYw==\" tokenauth=\"true\";");
    java.set("sasl.jaas.config", &jaas).unwrap();
    round_trip(&java, "java");
    let mut ours = config(&cluster, "SCRAM-SHA-256");
    for (name, value) in
        [("sasl.username", "token-id"), ("sasl.password", "aG1hYw=="), ("sasl.delegation.token", "true")]
    {
        ours.set(name, value).unwrap();
    }
    round_trip(&ours, "java");
}

#[test]
fn wrong_password_is_an_error_and_a_new_one_is_used_at_once() {
    for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
        let cluster = cluster(listener());
        let mut config = config(&cluster, mechanism);
        config.set("sasl.password", "wrong-hunter2").unwrap();
        // Without the notification, the next attempt would be too late.
        config.set("reconnect.backoff.ms", "600000").unwrap();
        config.set("reconnect.backoff.max.ms", "600000").unwrap();
        // A call that can't be made fails with the reason.
        let admin = Admin::new(&config).unwrap();
        let is_refused = || {
            let error = admin.describe_cluster(Duration::from_secs(1)).unwrap_err();
            error.to_string().contains("Authentication failed")
        };
        assert!(eventually(is_refused));
        let producer = impatient(config);
        let delivery = producer.topic("t").send_tracked(Record::new().value("x")).unwrap();
        let error = authentication_error(&producer);
        let text = error.to_string();
        assert!(text.contains(mechanism) && text.contains("Authentication failed"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
        producer.set_sasl_credentials("alice", PASSWORD.into()).unwrap();
        delivery.wait(TIMEOUT).unwrap();
    }
}

#[test]
fn connection_can_not_authenticate_again_as_another_user() {
    let cluster = cluster(listener().user("bob", PASSWORD));
    let mut client = RawClient::connect(&cluster.bootstrap_servers()).authenticate("alice", PASSWORD);
    let request = SaslHandshakeRequest { mechanism: "PLAIN".to_owned() };
    assert_eq!(client.call(1, &request).error_code, ErrorCode::NONE);
    let request = SaslAuthenticateRequest { auth_bytes: format!("\0bob\0{PASSWORD}").into_bytes() };
    let response = client.call(2, &request);
    assert_eq!(response.error_code, ErrorCode::SASL_AUTHENTICATION_FAILED);
    assert!(response.error_message.unwrap_or_default().contains("Cannot change principals"));
}

#[test]
fn broker_without_the_mechanism_is_asked_what_it_has() {
    let scram = SaslMechanism::Scram(ScramHash::Sha512);
    let cluster = cluster(SaslListener::new(&[SaslMechanism::Plain, scram]).user("alice", PASSWORD));
    let producer = impatient(config(&cluster, "SCRAM-SHA-256"));
    let text = authentication_error(&producer).to_string();
    assert!(text.contains("supported mechanisms: PLAIN,SCRAM-SHA-512"), "{text}");
}

#[test]
fn listener_without_sasl_is_named_in_the_error() {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let producer = impatient(config(&cluster, "PLAIN"));
    let text = authentication_error(&producer).to_string();
    assert!(text.contains("does not use SASL") && text.contains("security.protocol"), "{text}");
}

#[test]
fn client_waits_for_its_first_token_and_gets_it_from_a_provider() {
    let cluster = cluster(listener());
    let config = config(&cluster, "OAUTHBEARER");
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let producer = Producer::builder(&config)
        .token_provider(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(token(unix_ms() + 600_000))
        })
        .build()
        .unwrap();
    producer.deliver("t", Record::new().value("x"), TIMEOUT).unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let by_call = impatient(config);
    let delivery = by_call.topic("t").send_tracked(Record::new().value("x")).unwrap();
    for (wrong, part) in [
        (token(unix_ms() - 1), "unexpired"),
        (OauthToken { value: (&*"x".repeat(10_000_000)).into(), ..token(unix_ms() + 600_000) }, "bytes"),
        (OauthToken { extensions: vec![("auth".into(), "x".into())], ..token(unix_ms() + 600_000) }, "auth"),
    ] {
        let error = by_call.set_oauth_token(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(part), "{error}");
    }
    by_call.set_oauth_token(token(unix_ms() + 600_000)).unwrap();
    delivery.wait(TIMEOUT).unwrap();
    let without = impatient(self::config(&cluster, "PLAIN"));
    assert_eq!(without.set_oauth_token(token(unix_ms() + 600_000)).unwrap_err().kind(), ErrorKind::State);
}

#[test]
fn failures_of_a_provider_are_events_with_its_reason() {
    let cluster = cluster(listener());
    let mut config = config(&cluster, "OAUTHBEARER");
    config.set("drop.timeout.ms", "0").unwrap();
    let provider = || Err("the identity provider is down".to_owned());
    let producer = Producer::builder(&config).token_provider(provider).build().unwrap();
    let text = authentication_error(&producer).to_string();
    assert!(text.contains("Failed to acquire") && text.contains("is down"), "{text}");
}

#[test]
fn refused_token_is_an_error_with_the_reason_of_the_broker() {
    let cluster = cluster(listener());
    let producer = impatient(config(&cluster, "OAUTHBEARER"));
    let value = "hunter2.junk.".into();
    producer.set_oauth_token(OauthToken { value, ..token(unix_ms() + 600_000) }).unwrap();
    let text = authentication_error(&producer).to_string();
    assert!(text.contains("invalid_token") && !text.contains("hunter2"), "{text}");
}

/// Returns a token that this key has signed, and the key set of the broker.
fn signed(expires_ms: i64, audience: &str) -> (OauthToken, String) {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
    let claims = format!("{{\"sub\":\"alice\",\"aud\":\"{audience}\",\"exp\":{}}}", expires_ms / 1000);
    let text = format!("{}.{}", url_base64(b"{\"alg\":\"ES256\"}"), url_base64(claims.as_bytes()));
    let value = format!("{text}.{}", url_base64(key.sign(&random, text.as_bytes()).unwrap().as_ref()));
    let point = key.public_key().as_ref();
    let (x, y) = (url_base64(&point[1..33]), url_base64(&point[33..]));
    let keys = format!("{{\"keys\":[{{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"{x}\",\"y\":\"{y}\"}}]}}");
    (OauthToken { value: (&*value).into(), ..token(expires_ms) }, keys)
}

#[test]
fn broker_with_keys_accepts_tokens_that_they_have_signed() {
    let (token, keys) = signed(unix_ms() + 600_000, "kafka");
    let sasl =
        SaslListener::new(&[SaslMechanism::OauthBearer]).expected_audience("kafka").jwks(&keys).unwrap();
    let cluster = cluster(sasl);
    let config = config(&cluster, "OAUTHBEARER");
    let producer = impatient(config.clone());
    producer.set_oauth_token(token).unwrap();
    producer.deliver("t", Record::new().value("x"), TIMEOUT).unwrap();
    let principal = cluster.control(|control| {
        let connections = control.connections(None);
        connections.into_iter().find_map(|connection| control.principal(connection).map(str::to_owned))
    });
    assert_eq!(principal.as_deref(), Some("alice"));
    let (foreign, _) = signed(unix_ms() + 600_000, "kafka");
    for wrong in [foreign, self::token(unix_ms() + 600_000)] {
        let producer = impatient(config.clone());
        producer.set_oauth_token(wrong).unwrap();
        let text = authentication_error(&producer).to_string();
        assert!(text.contains("invalid_token"), "{text}");
    }
}

#[test]
fn traffic_continues_during_reauthentication() {
    for mechanism in ["SCRAM-SHA-256", "OAUTHBEARER"] {
        let cluster = with_sessions();
        cluster.control(|control| control.record_requests());
        let config = match mechanism {
            "OAUTHBEARER" => unsecured(&cluster),
            _ => config(&cluster, mechanism),
        };
        let producer = Producer::new(&config).unwrap();
        let topic = producer.topic("t");
        let until = Instant::now() + TIMEOUT;
        let mut sent = 0u64;
        loop {
            topic.send_blocking(Record::new().value("x").partition(0), TIMEOUT).unwrap();
            sent += 1;
            let requests = cluster.control(|control| control.requests().to_vec());
            let mut handshakes = BTreeMap::<_, usize>::new();
            let is_handshake = |request: &&RequestRecord| request.api == ApiKey::SaslHandshake;
            requests
                .iter()
                .filter(is_handshake)
                .for_each(|one| *handshakes.entry(one.connection).or_default() += 1);
            if handshakes.values().any(|count| *count >= 3) {
                break;
            }
            assert!(Instant::now() < until, "{handshakes:?}");
            thread::sleep(Duration::from_millis(1));
        }
        producer.flush(TIMEOUT).unwrap();
        while let Some(event) = producer.poll_event() {
            assert!(!matches!(event, Event::Error(_)), "{event:?}");
        }
        let written = cluster.control(|control| control.partition("t", 0).map(|state| state.log_end_offset));
        assert_eq!(written, Some(sent as i64));
    }
}

/// Re-authentications that a producer is watched for, over all its connections.
const HANDSHAKES: usize = 4;

/// Sends a record every 50 ms through a network with this round trip until its connections have authenticated again.
/// Returns the largest latency of each row of records that took noticeably longer than a round trip. Error: the first one
/// that the producer reported.
fn slow_rows(mechanism: &str, round_trip: Duration) -> Result<Vec<Duration>, Error> {
    let cluster = with_sessions();
    let config = match mechanism {
        "OAUTHBEARER" => unsecured(&cluster),
        _ => config(&cluster, mechanism),
    };
    let producer = Producer::new(&config).unwrap();
    producer.deliver("t", Record::new().value("x").partition(0), TIMEOUT).unwrap();
    cluster.control(|control| {
        control.inject(Fault::new(FaultAction::Delay(round_trip)));
        control.record_requests();
    });
    let topic = producer.topic("t");
    let (records, delivered) = mpsc::channel::<(Instant, Delivery)>();
    let latencies = thread::spawn(move || {
        let latency = |(at, delivery): (Instant, Delivery)| {
            delivery.wait(TIMEOUT).unwrap();
            at.elapsed()
        };
        delivered.into_iter().map(latency).collect::<Vec<_>>()
    });
    let is_handshake = |request: &&RequestRecord| request.api == ApiKey::SaslHandshake;
    let handshakes = || cluster.control(|control| control.requests().iter().filter(is_handshake).count());
    let until = Instant::now() + TIMEOUT;
    while handshakes() < HANDSHAKES {
        assert!(Instant::now() < until, "{mechanism}: {} handshakes", handshakes());
        records
            .send((Instant::now(), topic.send_tracked(Record::new().value("x").partition(0)).unwrap()))
            .unwrap();
        thread::sleep(Duration::from_millis(50));
    }
    drop(records);
    let latencies = latencies.join().unwrap();
    while let Some(event) = producer.poll_event() {
        if let Event::Error(error) = event {
            return Err(error);
        }
    }
    let is_slow = |latency: &Duration| *latency > round_trip * 3 / 2;
    let rows = latencies.chunk_by(|a, b| is_slow(a) == is_slow(b)).filter(|row| is_slow(&row[0]));
    Ok(rows.filter_map(|row| row.iter().max().copied()).collect())
}

/// Prints how long records were delayed, which depends on the machine; `tests/kafka/sasl.sh` has a limit for it.
fn authenticate_again(mechanism: &str, round_trip: Duration) {
    let rows = slow_rows(mechanism, round_trip).unwrap_or_else(|error| panic!("{mechanism}: {error}"));
    println!("{mechanism}: round trip {round_trip:?}, slow records: {rows:?}");
}

#[test]
fn records_flow_while_clients_authenticate_again_through_a_slow_network() {
    let round_trip = Duration::from_millis(200);
    thread::scope(|scope| {
        for mechanism in ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"] {
            scope.spawn(move || authenticate_again(mechanism, round_trip));
        }
    });
}
