//! Invalid input from outside the client: each gives an error that names the cause, nothing hangs, and no accepted
//! record is lost.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use ottla::{Config, Culprit, Error, ErrorKind, Event, PersistenceStatus, Producer, Record, SendError};
use ottla_embedded_broker::{Fault, FaultAction};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, FakeServer, Reports, TIMEOUT, config, eventually};

ottla_scenarios::run_on_all!(
    invalid_bootstrap_servers_are_skipped,
    topic_name_of_300_characters_is_refused,
    other_invalid_topic_names_are_refused,
    nonexistent_partition_is_refused,
    record_for_a_nonexistent_partition_fails_once_it_is_known,
    invalid_partitioner_result_fails_the_record,
    unknown_properties_are_reported_with_a_similar_name,
    out_of_range_values_are_reported_with_the_range,
    contradicting_properties_are_reported,
);

ottla_scenarios::run_on_embedded!(
    nobody_listens,
    the_name_does_not_resolve,
    the_server_speaks_http,
    the_server_speaks_tls,
    the_server_sends_garbage,
    the_server_sends_half_a_frame_and_falls_silent,
    the_server_says_nothing,
    the_server_claims_two_gigabytes,
    the_server_claims_a_negative_length,
    server_sends_a_response_that_matches_no_request,
    the_server_closes_at_once,
    no_server_is_named,
    topic_that_is_not_created_fails_its_records,
    garbage_response_is_survived,
    truncated_response_is_survived,
    wrong_correlation_ids_are_survived,
);

fn nobody_listens(_: &Backend) {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let error = first_error(&address);
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::Connect, Culprit::Network));
    assert_names(&error, &[&address, "refused"]);
}

fn the_name_does_not_resolve(_: &Backend) {
    let error = first_error("no-such-host.invalid:9092");
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::Resolve, Culprit::Network));
    assert_names(&error, &["no-such-host.invalid:9092"]);
}

fn the_server_speaks_http(_: &Backend) {
    let server = responding(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let error = first_error(&server.address());
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::NotKafka, Culprit::Network));
    assert_names(&error, &[&server.address(), "HTTP"]);
}

fn the_server_speaks_tls(_: &Backend) {
    // A TLS alert: fatal, handshake failure.
    let server = responding(&[0x15, 3, 3, 0, 2, 2, 40]);
    let error = first_error(&server.address());
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::NotKafka, Culprit::Network));
    assert_names(&error, &[&server.address(), "TLS", "security.protocol"]);
}

fn the_server_sends_garbage(_: &Backend) {
    let mut garbage = vec![0, 0, 0, 40];
    garbage.extend([0xab; 40]);
    let server = responding(&garbage);
    let error = first_error(&server.address());
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::NotKafka, Culprit::Network));
    assert_names(&error, &[&server.address(), "ApiVersions"]);

    // The right correlation ID, and an invalid body.
    let server = FakeServer::start(|mut stream| {
        let Some(id) = read_request(&mut stream) else { return };
        let mut response = vec![0, 0, 0, 20];
        response.extend(id.to_be_bytes());
        response.extend([0xff; 16]);
        let _ = stream.write_all(&response);
        until_closed(stream);
    });
    let error = first_error(&server.address());
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::NotKafka, Culprit::Network));
    assert_names(&error, &[&server.address(), "ApiVersions"]);
}

fn the_server_sends_half_a_frame_and_falls_silent(_: &Backend) {
    let server = responding(&[0, 0, 1, 0, 0, 0]);
    let error = first_error(&server.address());
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::RequestTimedOut, Culprit::Network));
    assert_names(&error, &[&server.address(), "ApiVersions"]);
}

fn the_server_says_nothing(_: &Backend) {
    let server = FakeServer::start(until_closed);
    let error = first_error(&server.address());
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::RequestTimedOut, Culprit::Network));
    assert_names(&error, &[&server.address(), "ApiVersions"]);
}

fn the_server_claims_two_gigabytes(_: &Backend) {
    let server = responding(&[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1]);
    let error = first_error(&server.address());
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::NotKafka, Culprit::Network));
    assert_names(&error, &[&server.address(), "2147483647", "receive.message.max.bytes"]);
}

fn the_server_claims_a_negative_length(_: &Backend) {
    let server = responding(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1]);
    let error = first_error(&server.address());
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::NotKafka, Culprit::Network));
    assert_names(&error, &[&server.address()]);
}

fn server_sends_a_response_that_matches_no_request(_: &Backend) {
    let server = FakeServer::start(|mut stream| {
        let Some(id) = read_request(&mut stream) else { return };
        let mut response = vec![0, 0, 0, 10];
        response.extend((id + 77).to_be_bytes());
        response.extend([0; 6]);
        let _ = stream.write_all(&response);
        until_closed(stream);
    });
    let error = first_error(&server.address());
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::NotKafka, Culprit::Network));
    assert_names(&error, &[&server.address(), "correlation id", "ApiVersions"]);
}

fn the_server_closes_at_once(_: &Backend) {
    let server = FakeServer::start(drop);
    let error = first_error(&server.address());
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::Disconnected, Culprit::Network));
    assert_names(&error, &[&server.address()]);
    assert!(server.accepted() < 100, "{} connections: it must back off", server.accepted());
}

fn no_server_is_named(_: &Backend) {
    let error = Producer::new(&Config::new()).unwrap_err();
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::InvalidArgument, Culprit::Application));
    assert_names(&error, &["bootstrap.servers"]);
    for wrong in
        ["localhost:99999", "localhost:port", ":9092", "[::1:9092", "ftp://localhost:9092", "a b:9092"]
    {
        let mut config = Config::new();
        let set = config.set("bootstrap.servers", wrong).map(|_| ()).map_err(|error| error.to_string());
        let built = set.and_then(|()| Producer::new(&config).map(|_| ()).map_err(|error| error.to_string()));
        let error = built.expect_err(wrong);
        assert!(error.contains("bootstrap.servers"), "{wrong}: {error}");
    }
}

fn invalid_bootstrap_servers_are_skipped(backend: &Backend) {
    let http = responding(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    let silent = FakeServer::start(until_closed);
    let servers = [
        "no-such-host.invalid:9092".to_owned(),
        "127.0.0.1:1".to_owned(),
        http.address(),
        silent.address(),
        backend.bootstrap_servers(),
    ];
    let topic = backend.topic(3);
    let (producer, reports) = Reports::of(&config(&servers.join(","), &QUICK));
    for n in 0..100 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(100);
    backend.assert_complete_and_in_order(&topic, 3, 100);
}

fn topic_name_of_300_characters_is_refused(backend: &Backend) {
    let producer = backend.producer(&[]);
    let error = refused(&producer, &"x".repeat(300));
    assert_names(&error, &["300 characters", "249"]);
    assert!(error.to_string().len() < 300, "the name is not repeated: {error}");
}

fn other_invalid_topic_names_are_refused(backend: &Backend) {
    let producer = backend.producer(&[]);
    for (name, says) in
        [("", "empty"), (".", "."), ("..", ".."), ("a/b", "'/'"), ("ü", "'ü'"), ("a b", "' '")]
    {
        assert_names(&refused(&producer, name), &[says]);
    }
    assert_eq!(producer.in_queue(), 0);
}

fn nonexistent_partition_is_refused(backend: &Backend) {
    let topic = backend.topic(3);
    let producer = backend.producer(&[]);
    producer.partition_count(&topic, TIMEOUT).unwrap();
    for partition in [3, 1000, i32::MAX, -2] {
        let error = producer.send(&topic, Record::new().partition(partition)).unwrap_err();
        assert_eq!(error, SendError::UnknownPartition { partition, count: 3 });
        let error = Error::from(error);
        assert_eq!((error.kind(), error.culprit()), (ErrorKind::UnknownPartition, Culprit::Application));
        assert_names(&error, &[&partition.to_string(), "3"]);
    }
}

fn record_for_a_nonexistent_partition_fails_once_it_is_known(backend: &Backend) {
    let topic = backend.topic(3);
    let (producer, reports) = backend.producer_with_reports(&[]);
    // The client has no metadata of the topic.
    for n in 0..10 {
        producer
            .send(&topic, Record::new().value(&n.to_string()).opaque(n).partition((n % 5) as i32))
            .unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_one_each(10);
    for report in reports.all() {
        if report.opaque % 5 < 3 {
            assert_eq!(report.error, None);
            continue;
        }
        let error = report.error.expect("there is no such partition");
        assert_eq!(error.kind(), ErrorKind::UnknownPartition);
        assert_eq!(report.status, PersistenceStatus::NotPersisted);
        assert_names(&error, &[&topic]);
    }
}

fn invalid_partitioner_result_fails_the_record(backend: &Backend) {
    let topic = backend.topic(3);
    let nonsense = ottla::Partitioner::Custom(Box::new(|_| 17));
    let producer = Producer::builder(&backend.config(&[])).partitioner(nonsense).build().unwrap();
    producer.partition_count(&topic, TIMEOUT).unwrap();
    let error = producer.send(&topic, Record::new().value("x")).unwrap_err();
    assert!(error.to_string().contains("17"), "{error}");
    producer.send(&topic, Record::new().value("said").partition(1)).unwrap();
    producer.flush(TIMEOUT).unwrap();
    assert_eq!(backend.values(&topic, 1), ["said"]);
}

fn unknown_properties_are_reported_with_a_similar_name(_: &Backend) {
    for (wrong, right) in [
        ("bootstrap.server", "bootstrap.servers"),
        ("linger", "linger.ms"),
        ("compresion.type", "compression.type"),
    ] {
        let error = Config::new().set(wrong, "1").unwrap_err().to_string();
        assert!(error.contains(wrong) && error.contains(right), "{error}");
    }
    let error = Config::new().set("nothing.like.it.at.all", "1").unwrap_err().to_string();
    assert!(error.contains("nothing.like.it.at.all"), "{error}");
}

fn out_of_range_values_are_reported_with_the_range(_: &Backend) {
    for (name, value, says) in [
        ("linger.ms", "-1", "0"),
        ("linger.ms", "soon", "soon"),
        ("message.max.bytes", "999", "1000"),
        ("message.max.bytes", "99999999999999999999", "1000000000"),
        ("acks", "5000", "all"),
        ("acks", "2", "all"),
        ("acks", "-2", "all"),
        ("compression.type", "rar", "zstd"),
        ("enable.idempotence", "perhaps", "true"),
        ("queue.buffering.max.kbytes", "0", "1"),
        ("partitioner", "fair", "murmur2"),
    ] {
        let error = Config::new().set(name, value).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(says), "{name}={value}: {error}");
    }
}

fn contradicting_properties_are_reported(backend: &Backend) {
    for (properties, names) in [
        ([("enable.idempotence", "true"), ("acks", "1")], ["enable.idempotence", "acks"]),
        ([("message.timeout.ms", "10"), ("linger.ms", "1000")], ["message.timeout.ms", "linger.ms"]),
        ([("enable.idempotence", "true"), ("max.in.flight", "100")], ["enable.idempotence", "max.in.flight"]),
    ] {
        let error = Producer::new(&backend.config(&properties)).unwrap_err();
        assert_eq!((error.kind(), error.culprit()), (ErrorKind::InvalidArgument, Culprit::Application));
        assert_names(&error, &names);
    }
}

fn topic_that_is_not_created_fails_its_records(backend: &Backend) {
    backend.control(|control| control.options().auto_create_topics = false);
    let (producer, reports) = backend
        .producer_with_reports(&[("topic.metadata.propagation.max.ms", "300"), ("broker.linger.ms", "0")]);
    let began = Instant::now();
    let tracked = producer.topic("missing").send_tracked(Record::new().opaque(0)).unwrap();
    let error = tracked.wait(TIMEOUT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownTopic);
    assert_names(&error, &["missing"]);
    assert!((290..15_000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    // From now on the call returns the error.
    let error = Error::from(producer.send("missing", Record::new()).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::UnknownTopic);
    assert_names(&error, &["missing"]);
    producer.flush(TIMEOUT).unwrap();
    reports.assert_one_each(1);
    // The error ends when the topic is created.
    backend.control(|control| control.create_topic("missing", 1, 1)).unwrap();
    assert!(eventually(|| producer.send("missing", Record::new().value("at last")).is_ok()));
    producer.flush(TIMEOUT).unwrap();
    assert_eq!(backend.values("missing", 0), ["at last"]);
}

fn garbage_response_is_survived(backend: &Backend) {
    let mut claims_too_much = vec![0x7f, 0xff, 0xff, 0xff];
    claims_too_much.extend([1; 60]);
    for garbage in
        [vec![0, 0, 0, 3, 1, 2, 3], claims_too_much, vec![0xff; 100], b"HTTP/1.1 200 OK\r\n\r\n".to_vec()]
    {
        for api in [ApiKey::Metadata, ApiKey::Produce] {
            disturbed(backend, api, FaultAction::ReplaceResponse(garbage.clone()), None);
        }
    }
}

fn truncated_response_is_survived(backend: &Backend) {
    for bytes in [0, 2, 4, 9, 20] {
        for api in [ApiKey::Metadata, ApiKey::Produce, ApiKey::ApiVersions, ApiKey::InitProducerId] {
            disturbed(backend, api, FaultAction::TruncateResponse(bytes), None);
        }
    }
}

fn wrong_correlation_ids_are_survived(backend: &Backend) {
    let error =
        disturbed(backend, ApiKey::Produce, FaultAction::ShiftCorrelationId(3), Some(ErrorKind::BadResponse));
    assert_names(&error.unwrap(), &["127.0.0.1", "Produce", "correlation id"]);
    disturbed(backend, ApiKey::Metadata, FaultAction::ShiftCorrelationId(-3), None);
}

const QUICK: [(&str, &str); 6] = [
    ("api.version.request.timeout.ms", "400"),
    ("socket.connection.setup.timeout.ms", "1000"),
    ("reconnect.backoff.ms", "20"),
    ("reconnect.backoff.max.ms", "200"),
    ("retry.backoff.ms", "20"),
    ("broker.linger.ms", "0"),
];

/// Returns the first error that a producer reports for a server; checks that a waiting record is reported in time, and
/// that nothing hangs.
fn first_error(servers: &str) -> Error {
    let mut config = config(servers, &QUICK);
    config.set("message.timeout.ms", "2500").unwrap();
    let (producer, reports) = Reports::of(&config);
    producer.send("topic", Record::new().value("waiting").opaque(0)).unwrap();
    let mut first = None;
    let mut is_reported = || {
        first = std::iter::from_fn(|| producer.poll_event()).find_map(|event| match event {
            Event::Error(error) => Some(error),
            _ => None,
        });
        first.is_some()
    };
    assert!(eventually(&mut is_reported), "an error is reported");
    let began = Instant::now();
    producer.flush(TIMEOUT).unwrap();
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    reports.assert_one_each(1);
    let report = &reports.all()[0];
    assert_eq!(report.status, PersistenceStatus::NotPersisted);
    assert_eq!(report.error.as_ref().unwrap().kind(), ErrorKind::MessageTimedOutInQueue);
    let began = Instant::now();
    producer.close(TIMEOUT).unwrap();
    assert!(began.elapsed() < Duration::from_secs(10));
    first.unwrap()
}

/// Produces while an API sometimes returns bad responses. No record may be lost, duplicated or out of order. Returns
/// whether the producer reported an error of `kind`.
fn disturbed(backend: &Backend, api: ApiKey, action: FaultAction, kind: Option<ErrorKind>) -> Option<Error> {
    let topic = backend.topic(3);
    backend.control(|control| control.inject(Fault::new(action.clone()).api(api).skip(1).times(2)));
    let (producer, reports) = backend.producer_with_reports(&QUICK);
    for n in 0..60 {
        producer
            .send(&topic, Record::new().value(&n.to_string()).opaque(n).partition((n % 3) as i32))
            .unwrap();
        if n % 20 == 19 && producer.flush(TIMEOUT).is_err() {
            let events: Vec<_> = std::iter::from_fn(|| producer.poll_event()).collect();
            panic!("{api:?} {action:?}: {} are stuck after {events:#?}", producer.in_queue());
        }
    }
    reports.assert_all_delivered(60);
    backend.control(|control| control.clear_faults());
    backend.assert_complete_and_in_order(&topic, 3, 60);
    let mut errors = std::iter::from_fn(|| producer.poll_event()).filter_map(|event| match event {
        Event::Error(error) => Some(error),
        _ => None,
    });
    let found = kind.map(|kind| (kind, errors.find(|error| error.kind() == kind)));
    found.map(|(kind, error)| error.unwrap_or_else(|| panic!("no error of kind {kind:?}")))
}

fn refused(producer: &Producer, topic: &str) -> Error {
    let error = Error::from(producer.send(topic, Record::new().value("x")).expect_err(topic));
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::InvalidArgument, Culprit::Application));
    error
}

fn assert_names(error: &Error, names: &[&str]) {
    let sentence = error.to_string();
    for name in names {
        assert!(sentence.contains(name), "`{sentence}` doesn't say `{name}`");
    }
}

/// Starts a server that responds to everything with the same bytes, once per connection, and keeps the connection open.
fn responding(bytes: &[u8]) -> FakeServer {
    let bytes = bytes.to_vec();
    FakeServer::start(move |mut stream| {
        if read_request(&mut stream).is_some() && stream.write_all(&bytes).is_ok() {
            until_closed(stream);
        }
    })
}

/// Reads a request and returns its correlation ID.
fn read_request(stream: &mut TcpStream) -> Option<i32> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut request = vec![0; u32::from_be_bytes(length).min(1 << 20) as usize];
    stream.read_exact(&mut request).ok()?;
    request[4..].first_chunk::<4>().map(|id| i32::from_be_bytes(*id))
}

fn until_closed(mut stream: TcpStream) {
    let mut bytes = [0; 1024];
    while matches!(stream.read(&mut bytes), Ok(1..)) {
        thread::yield_now();
    }
}
