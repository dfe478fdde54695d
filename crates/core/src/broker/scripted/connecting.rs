//! Lost connections, with requests in flight or idle, and a broker that changes its address.

use std::sync::Arc;

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::api_versions::{ApiVersionsResponse, response::ApiKey as ApiRow},
};

use super::{Script, at, millis};
use crate::{
    config::{KafkaVersion, ProxyUrl},
    connection::{Connection, ConnectionOutput, ConnectionSettings, buffer::BufferPool},
    error::{Error, ErrorKind},
    machine::Instant,
    message::{ConnectionMessage, ConnectionReport, ToBroker, ToCluster},
    produce::{collector::Linger, report::PersistenceStatus, settings::ProducerSettings},
    rng::Rng,
};

fn script(max_retries: u32) -> Script {
    let settings = ProducerSettings { linger: Linger::Broker(millis(5)), max_retries, ..Default::default() };
    let mut script = Script::new(1, settings);
    script.run_until(at(100));
    script
}

#[test]
fn moved_broker_gets_batches_in_flight_at_its_new_address() {
    let mut script = script(5);
    script.send(0, "x");
    script.run_for(millis(5));
    assert_eq!(script.request().values(), ["x"]);
    script.messages(ToBroker::Connection(ConnectionMessage::SetAddress {
        host: "elsewhere".into(),
        port: 9093,
    }));
    let down = script.down();
    assert_eq!(down.kind(), ErrorKind::Disconnected);
    assert!(down.to_string().contains("the broker's address changed"), "{down}");
    let request = script.request_after_back_off();
    assert_eq!(script.hosts.last().map(String::as_str), Some("elsewhere:9093"));
    assert_eq!(request.values(), ["x"]);
    script.accept(&request);
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted], "reported once");
    assert_eq!(script.reported_messages(), 1);
}

#[test]
fn metadata_with_the_same_address_keeps_the_connection() {
    let mut script = script(5);
    script
        .messages(ToBroker::Connection(ConnectionMessage::SetAddress { host: "broker".into(), port: 9092 }));
    assert!(script.is_connected);
    assert_eq!(script.connects, 1);
}

#[test]
fn an_attempt_of_which_no_byte_left_does_not_count() {
    for (takes_bytes, status) in
        [(false, PersistenceStatus::Persisted), (true, PersistenceStatus::PossiblyPersisted)]
    {
        let mut script = script(0);
        script.takes_bytes = takes_bytes;
        script.send(0, "x");
        script.run_for(millis(5));
        assert_eq!(script.requests.len(), usize::from(takes_bytes));
        script.requests.clear();
        script.disconnect();
        script.takes_bytes = true;
        if !takes_bytes {
            let request = script.request_after_back_off();
            assert_eq!(request.values(), ["x"], "although there are no retries");
            script.accept(&request);
        }
        assert_eq!(script.statuses(), [status]);
    }
}

/// A connection over which a record was sent, long ago.
fn used_and_quiet() -> Script {
    let mut script = script(5);
    script.send(0, "x");
    script.run_for(millis(5));
    let request = script.request();
    script.accept(&request);
    script.run_for(millis(61_000));
    script.messages.clear();
    script
}

#[test]
fn used_connection_closed_while_idle_reconnects_once_without_error() {
    let mut script = used_and_quiet();
    script.disconnect();
    assert!(
        matches!(
            script.messages[..],
            [
                ToCluster::Connection(ConnectionReport::Idle { reconnects: true }),
                ToCluster::Connection(ConnectionReport::Up)
            ]
        ),
        "{:?}",
        script.messages
    );
    assert_eq!(script.connects, 2);
    script.messages.clear();
    script.run_for(millis(61_000));
    script.disconnect();
    script.run_for(millis(20_000));
    assert!(
        matches!(script.messages[..], [ToCluster::Connection(ConnectionReport::Idle { reconnects: false })]),
        "{:?}",
        script.messages
    );
    assert_eq!(script.connects, 2, "nobody used it");
    assert_eq!(script.errors(), []);
}

#[test]
fn broker_gone_after_closing_an_idle_connection_is_reported() {
    let mut script = used_and_quiet();
    script.is_up = false;
    script.disconnect();
    let down = script.down();
    assert_eq!(down.kind(), ErrorKind::Connect);
    script.run_for(millis(60_000));
    assert!(script.messages.is_empty(), "{:?}", script.messages);
}

#[test]
fn version_fallback_lasts_for_api_version_fallback_ms() {
    for fallback_for in [millis(0), millis(60_000)] {
        let settings = ConnectionSettings {
            fallback_release: KafkaVersion(0, 9, 0),
            fallback_for,
            ..ConnectionSettings::default()
        };
        let (buffers, rng) = (BufferPool::default(), Rng::from_seed(1));
        let mut connection = Connection::new(Arc::new(settings), "b".into(), 9092, None, buffers, rng);
        let mut now = at(1);
        // Connects, and returns whether requests can be sent without an ApiVersions request.
        let mut connect = |connection: &mut Connection, wait| {
            now += wait;
            connection.want(now);
            if connection.is_backing_off() {
                now = connection.poll_timeout().map_or(now, |until| until.max(now));
                connection.handle_timeout(now);
            }
            while let Some(output) = connection.poll_output() {
                match output {
                    ConnectionOutput::Resolve { port, .. } => {
                        connection.handle_resolved(now, Ok(vec![([127, 0, 0, 1], port).into()]));
                    }
                    ConnectionOutput::Connect(_) => connection.handle_connected(now),
                    _ => {}
                }
            }
            let is_guessed = connection.is_ready();
            connection.handle_closed(now, "the peer closed the connection");
            is_guessed
        };
        let mut attempts =
            |wait| [wait, millis(0), millis(0), millis(0)].map(|wait| connect(&mut connection, wait));
        assert_eq!(attempts(millis(0)), [false, false, false, true]);
        let within = fallback_for > millis(0);
        assert_eq!(attempts(millis(0)), [within, within, within, true], "{fallback_for:?}");
        assert_eq!(attempts(millis(60_000)), [false, false, false, true], "it is asked again");
    }
}

/// Connects, and gives each of `bodies` as the response to the next ApiVersions request. Returns the versions that were asked
/// for, and why the connection was closed, if it was.
fn ask(connection: &mut Connection, now: Instant, bodies: &[Vec<u8>]) -> (Vec<i16>, Option<Error>) {
    let (mut asked, mut why) = (Vec::new(), None);
    let mut bodies = bodies.iter();
    connection.want(now);
    loop {
        while let Some(output) = connection.poll_output() {
            match output {
                ConnectionOutput::Resolve { port, .. } => {
                    connection.handle_resolved(now, Ok(vec![([127, 0, 0, 1], port).into()]));
                }
                ConnectionOutput::Connect(_) => connection.handle_connected(now),
                ConnectionOutput::Down { error, .. } => why = Some(error),
                _ => {}
            }
        }
        let Some(request) = connection.in_flight_mut().iter().next() else { break };
        let (id, version, size) = (request.correlation_id, request.version, request.payload.len());
        asked.push(version);
        connection.handle_written(now, size, &mut Vec::new());
        let Some(body) = bodies.next() else { break };
        let mut frame = ((body.len() + 4) as u32).to_be_bytes().to_vec();
        frame.extend(id.to_be_bytes());
        frame.extend(body);
        connection.read_space()[..frame.len()].copy_from_slice(&frame);
        connection.handle_read(now, frame.len());
        assert!(connection.next_response(now).is_none());
    }
    (asked, why)
}

fn connection() -> Connection {
    let (settings, buffers) = (Arc::new(ConnectionSettings::default()), BufferPool::default());
    Connection::new(settings, "b".into(), 9092, None, buffers, Rng::from_seed(1))
}

/// A response in version 0: the error code, and rows of API, lowest and highest version.
fn version_0(code: ErrorCode, rows: &[(ApiKey, i16, i16)]) -> Vec<u8> {
    let row = |(api, min_version, max_version): &(ApiKey, i16, i16)| ApiRow {
        api_key: *api as i16,
        min_version: *min_version,
        max_version: *max_version,
    };
    let response = ApiVersionsResponse {
        error_code: code,
        api_keys: rows.iter().map(row).collect(),
        ..Default::default()
    };
    let mut body = Vec::new();
    response.encode(0, &mut body).expect("it can be encoded");
    body
}

const ALL: [(ApiKey, i16, i16); 2] = [(ApiKey::Metadata, 0, 12), (ApiKey::ApiVersions, 0, 3)];

#[test]
fn error_35_is_acted_on_whatever_body_follows() {
    let newest = *ApiKey::ApiVersions.versions().end();
    let bodies = [
        (vec![0, 35], 0),
        (vec![0, 35, 0x7f, 0xff, 0xff, 0xff, 1], 0),
        (vec![0, 35, 0, 0, 0, 0], 0),
        (vec![0, 35, 1, 0, 0, 0, 0, 0], 0),
        (version_0(ErrorCode::UNSUPPORTED_VERSION, &[(ApiKey::ApiVersions, 0, 2)]), 2),
    ];
    for (body, next) in bodies {
        let mut connection = connection();
        let (asked, why) = ask(&mut connection, at(1), std::slice::from_ref(&body));
        assert_eq!((asked, why), (vec![newest, next], None), "{body:?}");
    }
    let mut connection = connection();
    let (_, why) = ask(&mut connection, at(1), &[vec![0, 35], version_0(ErrorCode::NONE, &ALL)]);
    assert_eq!((why, connection.is_ready()), (None, true));
}

#[test]
fn malformed_versions_close_the_connection_and_are_asked_for_again() {
    let bad = [
        vec![],
        vec![0],
        vec![0, 35, 1],
        version_0(ErrorCode::NONE, &[]),
        version_0(ErrorCode::NONE, &[ALL[0], (ApiKey::InitProducerId, 5, 0)]),
        version_0(ErrorCode::NONE, &[ALL[0], (ApiKey::InitProducerId, -2, 5)]),
    ];
    for body in bad {
        let mut connection = connection();
        let (_, why) = ask(&mut connection, at(1), &[vec![0, 35], body.clone()]);
        let why = why.unwrap_or_else(|| panic!("{body:?} closes the connection"));
        assert!(matches!(why.kind(), ErrorKind::NotKafka | ErrorKind::BadResponse), "{why}");
        assert!(!why.to_string().contains("bug"), "{why}");
        assert!(connection.is_backing_off());
        connection.want(at(1));
        let again = connection.poll_timeout().expect("it is tried again");
        assert!(again >= at(50), "after a back-off");
        connection.handle_timeout(again);
        let (_, why) = ask(&mut connection, again, &[vec![0, 35], version_0(ErrorCode::NONE, &ALL)]);
        assert_eq!((why, connection.is_ready()), (None, true), "after {body:?}");
    }
}

#[test]
fn versions_are_asked_for_again_on_a_connection_that_is_ready() {
    let mut connection = connection();
    let good = [&ALL[..], &[(ApiKey::InitProducerId, 0, 5)]].concat();
    ask(&mut connection, at(1), &[vec![0, 35], version_0(ErrorCode::NONE, &ALL)]);
    assert_eq!(connection.versions().pick_any(ApiKey::InitProducerId), None);
    connection.ask_versions_again(at(2));
    connection.ask_versions_again(at(2));
    assert_eq!(connection.in_flight_mut().iter().count(), 1, "one at a time");
    let (asked, why) = ask(&mut connection, at(2), &[vec![0, 35], version_0(ErrorCode::NONE, &good)]);
    assert_eq!((asked, why), (vec![3, 0], None));
    assert_eq!(connection.versions().pick_any(ApiKey::InitProducerId), Some(5));
    assert!(connection.is_ready());
}

#[test]
fn versions_are_asked_for_unless_the_fallback_release_has_none() {
    const OLD: KafkaVersion = KafkaVersion(0, 9, 0);
    const NEW: KafkaVersion = KafkaVersion(0, 10, 0);
    for (ask_versions, release, is_asked) in
        [(false, NEW, true), (false, OLD, false), (true, OLD, true), (true, NEW, true)]
    {
        let settings =
            ConnectionSettings { ask_versions, fallback_release: release, ..ConnectionSettings::default() };
        let (buffers, rng) = (BufferPool::default(), Rng::from_seed(1));
        let mut connection = Connection::new(Arc::new(settings), "b".into(), 9092, None, buffers, rng);
        let (asked, _) = ask(&mut connection, at(1), &[]);
        assert_eq!((!asked.is_empty(), connection.is_ready()), (is_asked, !is_asked), "{release}");
    }
}

#[test]
fn unsent_requests_delay_the_next_up_to_the_threshold() {
    for (max_unsent_requests, unsent) in [(None, 3), (Some(1), 1), (Some(2), 2)] {
        let settings =
            ProducerSettings { linger: Linger::Broker(millis(5)), max_unsent_requests, ..Default::default() };
        let mut script = Script::new(3, settings);
        script.run_until(at(100));
        script.takes_bytes = false;
        for partition in 0..3 {
            script.send(partition, "x");
            script.run_for(millis(10));
        }
        assert_eq!(script.core.connection.unsent_requests(), unsent, "{max_unsent_requests:?}");
        script.takes_bytes = true;
        script.messages(ToBroker::Connection(ConnectionMessage::Connect));
        script.run_for(millis(10));
        let sent: usize = script.requests.iter().map(|request| request.partitions().len()).sum();
        assert_eq!(sent, 3, "nothing stays behind");
    }
}

#[test]
fn setup_timeout_doubles_with_each_failure_up_to_its_maximum() {
    for (max, expected) in [(1, [1, 1, 1, 1]), (3, [1, 2, 3, 3])] {
        let settings = ConnectionSettings {
            setup_timeout: millis(1_000),
            setup_timeout_max: millis(max * 1_000),
            ..ConnectionSettings::default()
        };
        let (host, pool) = ("broker".into(), BufferPool::default());
        let mut connection = Connection::new(Arc::new(settings), host, 9092, None, pool, Rng::from_seed(1));
        let mut now = at(1);
        let took = expected.map(|_| {
            connection.want(now);
            connection.handle_resolved(now, Ok(vec!["127.0.0.1:9092".parse().unwrap()]));
            let deadline = connection.poll_timeout().unwrap();
            let took = (deadline - now).as_secs();
            connection.handle_timeout(deadline);
            assert!(connection.is_backing_off());
            now = connection.poll_timeout().unwrap();
            connection.handle_timeout(now);
            took
        });
        assert_eq!(took, expected);
    }
}

/// Runs a connection that is always wanted for `time`. `act` plays the driver. Returns the number of attempts to connect.
fn attempts_within(
    connection: &mut Connection,
    time: u64,
    mut act: impl FnMut(&mut Connection, Instant, &ConnectionOutput),
) -> usize {
    let mut now = at(1);
    let mut attempts = 0;
    while now < at(time) {
        connection.want(now);
        while let Some(output) = connection.poll_output() {
            attempts += usize::from(matches!(output, ConnectionOutput::Connect(_)));
            if let ConnectionOutput::Resolve { port, .. } = output {
                connection.handle_resolved(now, Ok(vec![([127, 0, 0, 1], port).into()]));
            }
            act(connection, now, &output);
        }
        now = connection.poll_timeout().map_or(now, |next| next.max(now)).max(now + millis(1));
        connection.handle_timeout(now);
    }
    attempts
}

#[test]
fn attempts_without_a_back_off_are_no_storm() {
    for (first, longest, at_most) in [(0, 10_000, 20), (0, 0, 60), (1, 1, 60), (100, 10_000, 10)] {
        let settings = ConnectionSettings {
            reconnect_backoff: millis(first),
            reconnect_backoff_max: millis(longest),
            ..ConnectionSettings::default()
        };
        let (host, pool) = ("broker".into(), BufferPool::default());
        let mut connection = Connection::new(Arc::new(settings), host, 9092, None, pool, Rng::from_seed(1));
        let attempts = attempts_within(&mut connection, 3_000, |connection, now, output| {
            if matches!(output, ConnectionOutput::Connect(_)) {
                connection.handle_closed(now, "connection refused");
            }
        });
        assert!((4..=at_most).contains(&attempts), "{attempts} in 3 s with {first} to {longest} ms");
    }
}

#[test]
fn listener_that_closes_after_api_versions_is_backed_off_from() {
    // The versions are guessed, so that the connection is ready at once.
    let settings = ConnectionSettings {
        ask_versions: false,
        fallback_release: KafkaVersion(0, 9, 0),
        ..ConnectionSettings::default()
    };
    let (host, pool) = ("broker".into(), BufferPool::default());
    let mut connection = Connection::new(Arc::new(settings), host, 9092, None, pool, Rng::from_seed(1));
    let attempts = attempts_within(&mut connection, 60_000, |connection, now, output| match output {
        ConnectionOutput::Connect(_) => connection.handle_connected(now),
        ConnectionOutput::Up => connection.handle_closed(now, "the peer closed the connection"),
        _ => {}
    });
    assert!((8..=20).contains(&attempts), "{attempts} in 60 s, with waits from 100 ms to 10 s");
}

/// Starts a connection to a host with these addresses.
fn resolved(connection: &mut Connection, now: Instant, addresses: &[&str]) {
    connection.want(now);
    let addresses = addresses.iter().map(|address| address.parse().expect("an address")).collect();
    connection.handle_resolved(now, Ok(addresses));
}

/// The addresses that the connection opened sockets to, since the last call.
fn opened(connection: &mut Connection) -> Vec<String> {
    std::iter::from_fn(|| connection.poll_output())
        .filter_map(|output| match output {
            ConnectionOutput::Connect(address) => Some(address.ip().to_string()),
            _ => None,
        })
        .collect()
}

#[test]
fn silent_address_gives_way_to_the_next_of_its_host() {
    let mut connection = connection();
    resolved(&mut connection, at(1), &["10.0.0.1:9092", "10.0.0.2:9092"]);
    assert_eq!(opened(&mut connection), ["10.0.0.1"]);
    let (mut now, mut began) = (at(1), Vec::new());
    while connection.poll_timeout().is_some() && !connection.is_backing_off() {
        now = connection.poll_timeout().expect("a deadline");
        connection.handle_timeout(now);
        began.extend(opened(&mut connection).into_iter().map(|address| (address, (now - at(1)).as_millis())));
    }
    let expected = [
        ("10.0.0.2", 250),
        ("10.0.0.1", 500),
        ("10.0.0.2", 1_500),
        ("10.0.0.1", 2_500),
        ("10.0.0.2", 32_500),
    ];
    let began: Vec<(&str, u128)> = began.iter().map(|(address, at)| (&**address, *at)).collect();
    assert_eq!(began, expected, "then longer, for a slow network");
    assert_eq!((now - at(1)).as_millis(), 62_500, "each has the time of the setup once");
}

#[test]
fn addresses_that_refuse_are_tried_once() {
    let mut connection = connection();
    resolved(&mut connection, at(1), &["10.0.0.1:9092", "10.0.0.2:9092"]);
    connection.handle_closed(at(2), "connection refused");
    connection.handle_closed(at(3), "connection refused");
    assert_eq!(opened(&mut connection), ["10.0.0.1", "10.0.0.2"]);
    assert!(connection.is_backing_off());
}

#[test]
fn connection_that_another_beat_is_closed_unless_it_is_needed() {
    for is_needed in [false, true] {
        let mut script = Script::unconnected(1, ProducerSettings::default());
        script.takes_bytes = false;
        script.messages(ToBroker::Connection(ConnectionMessage::Connect));
        script.adopt_all();
        if is_needed {
            script.send(0, "x");
        }
        script.messages(ToBroker::Connection(ConnectionMessage::StopConnecting));
        script.takes_bytes = true;
        script.settle();
        script.run_for(millis(1_000));
        let closed = script.messages.iter().any(|message| {
            matches!(message, ToCluster::Connection(ConnectionReport::Idle { reconnects: false }))
        });
        assert_eq!((closed, script.connects, script.requests.len()), (!is_needed, 1, usize::from(is_needed)));
    }
}

/// A connection through a proxy.
fn proxied() -> Connection {
    let proxy = ProxyUrl::parse("socks5://gate:1080").ok().map(Arc::new);
    let settings = ConnectionSettings { proxy, ..ConnectionSettings::default() };
    let (host, pool) = ("broker".into(), BufferPool::default());
    Connection::new(Arc::new(settings), host, 9092, None, pool, Rng::from_seed(1))
}

/// Returns the error that ended the connection.
fn end_of(connection: &mut Connection) -> Error {
    let mut outputs = std::iter::from_fn(|| connection.poll_output());
    let down = outputs.find_map(|output| match output {
        ConnectionOutput::Down { error, .. } => Some(error),
        _ => None,
    });
    down.expect("the connection has failed")
}

#[test]
fn proxy_is_resolved_and_the_name_of_the_broker_is_not() {
    let mut connection = proxied();
    connection.want(at(1));
    let Some(ConnectionOutput::Resolve { host, port }) = connection.poll_output() else {
        panic!("no look-up")
    };
    assert_eq!((host.as_str(), port), ("gate", 1080));
    assert_eq!(connection.name(), "broker:9092/bootstrap");
}

#[test]
fn proxy_is_named_by_every_failure_on_the_way_to_the_broker() {
    let text = |act: &dyn Fn(&mut Connection)| {
        let mut connection = proxied();
        connection.want(at(1));
        act(&mut connection);
        let error = end_of(&mut connection);
        (error.kind(), error.to_string())
    };
    let resolved = |connection: &mut Connection| resolved(connection, at(1), &["10.0.0.1:1080"]);
    for (act, reason) in [
        (
            &(|it: &mut Connection| it.handle_resolved(at(2), Err("unknown".into())))
                as &dyn Fn(&mut Connection),
            "unknown",
        ),
        (&|it| it.handle_resolved(at(2), Ok(Vec::new())), "gate has no address"),
        (&|it| it.handle_timeout(at(30_001)), "the resolver did not respond"),
        (
            &|it| {
                resolved(it);
                it.handle_closed(at(2), "refused");
            },
            "refused",
        ),
        (
            &|it| {
                resolved(it);
                it.handle_timeout(at(30_001));
            },
            "no connection after 30000 ms",
        ),
        (
            &|it| {
                resolved(it);
                it.handle_tunnelling(at(20_000));
                it.handle_timeout(at(30_001));
            },
            "no connection to the broker after 30000 ms (socket.connection.setup.timeout.ms)",
        ),
        (
            &|it| {
                resolved(it);
                it.handle_tunnelling(at(2));
                it.handle_closed(at(3), "reset");
            },
            "reset",
        ),
    ] {
        let (kind, text) = text(act);
        assert_eq!(kind, ErrorKind::Proxy, "{text}");
        assert!(text.contains("SOCKS5 proxy gate:1080") && text.contains(reason), "{text}");
    }
    // The proxy has connected, so that the fault may be the broker's.
    let (kind, text) = text(&|it| {
        resolved(it);
        it.handle_tunnelling(at(2));
        it.handle_connected(at(3));
        it.handle_closed(at(4), "closed by the peer");
    });
    assert_eq!(kind, ErrorKind::Disconnected);
    assert!(text.contains("the SOCKS5 proxy gate:1080 is between"), "{text}");
}

#[test]
fn handshakes_have_more_time_than_one_of_several_addresses() {
    let mut connection = connection();
    resolved(&mut connection, at(1), &["10.0.0.1:9092", "10.0.0.2:9092"]);
    connection.handle_securing(at(200));
    assert_eq!(connection.poll_timeout(), Some(at(30_200)), "250 ms are for the connection");
    let mut connection = proxied();
    resolved(&mut connection, at(1), &["10.0.0.1:1080", "10.0.0.2:1080"]);
    connection.handle_tunnelling(at(200));
    connection.handle_securing(at(300));
    assert_eq!(connection.poll_timeout(), Some(at(30_200)), "both handshakes share it");
}
