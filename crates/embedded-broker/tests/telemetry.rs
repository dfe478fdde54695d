//! Client metrics (KIP-714): which metrics brokers request, accept and reject.

mod common;

use std::time::Duration;

use common::World;
use ottla_embedded_broker::{
    ApiKey, BrokerId, BrokerRelease, ClientTelemetry, ClusterOptions, ConnectionId, ErrorCode, Fault,
    FaultAction, MetricKind, Tail,
};
use ottla_protocol::{
    compress::{self, Compression},
    generated::{
        api_versions::ApiVersionsRequest,
        describe_configs::{self, DescribeConfigsRequest},
        get_telemetry_subscriptions::{GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse},
        incremental_alter_configs::{self, IncrementalAlterConfigsRequest},
        list_config_resources::ListConfigResourcesRequest,
        push_telemetry::PushTelemetryRequest,
    },
    uuid::Uuid,
};

const INTERVAL: Duration = Duration::from_secs(10);
const MS: Duration = Duration::from_millis(1);
const ID: Uuid = Uuid([7; 16]);

fn world(client_telemetry: ClientTelemetry) -> World {
    let mut world = World::new(ClusterOptions { client_telemetry, ..ClusterOptions::default() });
    let mut control = world.cluster.control();
    control.telemetry().set_requested_metrics(["org.apache.kafka.producer."]);
    control.telemetry().set_push_interval(INTERVAL);
    world
}

fn get(world: &mut World, connection: ConnectionId, id: Uuid) -> GetTelemetrySubscriptionsResponse {
    world.call(connection, 0, &GetTelemetrySubscriptionsRequest { client_instance_id: id })
}

fn push(world: &mut World, connection: ConnectionId, push: PushTelemetryRequest) -> ErrorCode {
    world.call(connection, 0, &push).error_code
}

/// Creates a push of a client that has this subscription.
fn of(subscription: &GetTelemetrySubscriptionsResponse) -> PushTelemetryRequest {
    PushTelemetryRequest {
        client_instance_id: subscription.client_instance_id,
        subscription_id: subscription.subscription_id,
        metrics: one_metric(),
        ..Default::default()
    }
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    out.extend_from_slice(bytes);
    out
}

/// Returns the OTLP encoding of one sum, `x.total`, that grew by 3.
fn one_metric() -> Vec<u8> {
    let point = [&[6 << 3 | 1][..], &3u64.to_le_bytes()].concat();
    let sum = [field(1, &point), vec![2 << 3, 1]].concat();
    let metric = [field(1, b"x.total"), field(7, &sum)].concat();
    field(1, &field(2, &field(2, &metric)))
}

fn compressed(codec: Compression, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    compress::compress(codec, None, [bytes].into_iter(), &mut out).unwrap();
    out
}

#[test]
fn brokers_without_a_telemetry_receiver_do_not_serve_its_apis() {
    for release in [None, Some(BrokerRelease::V4_3_1)] {
        let mut world = world(ClientTelemetry::None);
        if let Some(release) = release {
            world.cluster.control().emulate(release);
        }
        let connection = world.open(1);
        let versions = ApiVersionsRequest {
            client_software_name: "ottla".to_owned(),
            client_software_version: "1".to_owned(),
            ..ApiVersionsRequest::default()
        };
        let reported = world.call(connection, 3, &versions).api_keys;
        assert!(reported.iter().all(|key| !matches!(key.api_key, 71 | 72)), "{release:?}");
        world.send(connection, 0, &GetTelemetrySubscriptionsRequest::default());
        assert!(world.is_closed(connection));
    }
}

#[test]
fn client_gets_an_id_and_a_subscription() {
    let mut world = world(ClientTelemetry::Kafka);
    let connection = world.open(1);
    let reported = get(&mut world, connection, Uuid::ZERO);
    assert_eq!(reported.error_code, ErrorCode::NONE);
    assert_ne!(reported.client_instance_id, Uuid::ZERO);
    assert_eq!(reported.accepted_compression_types, [4, 3, 1, 2]);
    assert_eq!((reported.push_interval_ms, reported.telemetry_max_bytes), (10_000, 1 << 20));
    assert!(reported.delta_temporality);
    assert_eq!(reported.requested_metrics, ["org.apache.kafka.producer."]);
    let other = get(&mut world, connection, Uuid::ZERO);
    assert_ne!(other.client_instance_id, reported.client_instance_id, "another client");
    let known = get(&mut world, connection, ID);
    assert_eq!(known.client_instance_id, ID, "a client that has an id keeps it");
}

#[test]
fn pushes_in_every_compression_are_decoded() {
    let mut world = world(ClientTelemetry::Kafka);
    let connection = world.open(2);
    let reported = get(&mut world, connection, ID);
    for codec in Compression::ALL {
        let metrics = compressed(codec, &one_metric());
        let request =
            PushTelemetryRequest { compression_type: codec.id().cast_signed(), metrics, ..of(&reported) };
        assert_eq!(push(&mut world, connection, request), ErrorCode::NONE, "{codec}");
        world.pass(INTERVAL);
    }
    let nothing = PushTelemetryRequest { metrics: Vec::new(), ..of(&reported) };
    assert_eq!(push(&mut world, connection, nothing), ErrorCode::NONE);
    let mut control = world.cluster.control();
    let pushes = control.telemetry().take_pushes();
    assert_eq!(pushes.len(), Compression::ALL.len() + 1);
    for (push, codec) in pushes.iter().zip(Compression::ALL) {
        assert_eq!((push.compression, push.broker, push.client_instance_id), (codec, BrokerId(2), ID));
        assert_eq!(push.client_id.as_deref(), Some("test"));
        let points = push.points();
        assert_eq!(points.len(), 1);
        assert_eq!((points[0].name.as_str(), points[0].value), ("x.total", 3.0));
        assert_eq!(points[0].kind, MetricKind::DeltaSum);
    }
    assert!(pushes.last().unwrap().points().is_empty());
    assert_eq!(control.telemetry().pushes().count(), 0);
}

#[test]
fn push_or_subscription_before_the_interval_is_refused() {
    let mut world = world(ClientTelemetry::Kafka);
    let connection = world.open(1);
    let reported = get(&mut world, connection, ID);
    assert_eq!(get(&mut world, connection, ID).error_code, ErrorCode::THROTTLING_QUOTA_EXCEEDED);
    assert_eq!(
        push(&mut world, connection, of(&reported)),
        ErrorCode::NONE,
        "the first one comes at any time"
    );
    world.pass(INTERVAL - MS);
    assert_eq!(push(&mut world, connection, of(&reported)), ErrorCode::THROTTLING_QUOTA_EXCEEDED);
    assert_eq!(get(&mut world, connection, ID).error_code, ErrorCode::THROTTLING_QUOTA_EXCEEDED);
    world.pass(MS);
    assert_eq!(
        push(&mut world, connection, of(&reported)),
        ErrorCode::NONE,
        "refused pushes count for nothing"
    );
    let other_broker = world.open(2);
    assert_eq!(
        push(&mut world, other_broker, of(&reported)),
        ErrorCode::NONE,
        "each broker has its own clock for a client, and knows the subscription"
    );
    assert_eq!(world.cluster.control().telemetry().pushes().count(), 3);
}

#[test]
fn reconnected_client_gets_a_new_subscription() {
    let mut world = world(ClientTelemetry::Kafka);
    let connection = world.open(1);
    let reported = get(&mut world, connection, ID);
    push(&mut world, connection, of(&reported));
    world.cluster.handle_closed(world.now, connection);
    let connection = world.open(1);
    assert_eq!(push(&mut world, connection, of(&reported)), ErrorCode::NONE);
    assert_eq!(push(&mut world, connection, of(&reported)), ErrorCode::THROTTLING_QUOTA_EXCEEDED);
    world.cluster.control().kill_broker(BrokerId(1), Tail::Kept);
    world.cluster.control().restart_broker(BrokerId(1));
    let connection = world.open(1);
    assert_eq!(push(&mut world, connection, of(&reported)), ErrorCode::NONE);
}

#[test]
fn push_of_another_subscription_is_rejected_and_may_be_renewed_at_once() {
    let mut world = world(ClientTelemetry::Kafka);
    let connection = world.open(1);
    let reported = get(&mut world, connection, ID);
    assert_eq!(push(&mut world, connection, of(&reported)), ErrorCode::NONE);
    world.cluster.control().telemetry().set_requested_metrics(["*"]);
    assert_eq!(push(&mut world, connection, of(&reported)), ErrorCode::UNKNOWN_SUBSCRIPTION_ID);
    let now = get(&mut world, connection, ID);
    assert_eq!((now.error_code, &now.requested_metrics[..]), (ErrorCode::NONE, &["*".to_owned()][..]));
    assert_ne!(now.subscription_id, reported.subscription_id);
    assert_eq!(
        push(&mut world, connection, of(&now)),
        ErrorCode::THROTTLING_QUOTA_EXCEEDED,
        "the refused push counted for the interval, as Kafka has it"
    );
    world.pass(INTERVAL);
    assert_eq!(push(&mut world, connection, of(&now)), ErrorCode::NONE);
    let wrong = PushTelemetryRequest { subscription_id: now.subscription_id ^ 1, ..of(&now) };
    world.pass(INTERVAL);
    assert_eq!(push(&mut world, connection, wrong), ErrorCode::UNKNOWN_SUBSCRIPTION_ID);
    assert_eq!(get(&mut world, connection, ID).error_code, ErrorCode::NONE, "before the interval has passed");
}

/// Corrupts a push, if requested with data that exceeds the size limit.
type Spoil = fn(&mut PushTelemetryRequest, Vec<u8>);

#[test]
fn invalid_pushes_are_refused_each_with_its_error() {
    let bomb = compressed(Compression::Gzip, &vec![0; (1 << 20) + 1]);
    let cases: [(Spoil, ErrorCode); 8] = [
        (|push, _| push.client_instance_id = Uuid::ZERO, ErrorCode::INVALID_REQUEST),
        (|push, _| push.client_instance_id.0 = 1u128.to_be_bytes(), ErrorCode::INVALID_REQUEST),
        (|push, _| push.compression_type = 9, ErrorCode::UNSUPPORTED_COMPRESSION_TYPE),
        (|push, _| push.compression_type = -1, ErrorCode::UNSUPPORTED_COMPRESSION_TYPE),
        (|push, _| push.metrics = vec![0; (1 << 20) + 1], ErrorCode::TELEMETRY_TOO_LARGE),
        (|push, _| push.metrics = b"no metrics".to_vec(), ErrorCode::INVALID_RECORD),
        (|push, _| push.compression_type = 4, ErrorCode::INVALID_RECORD),
        (
            |push, bomb| {
                push.compression_type = 1;
                push.metrics = bomb;
            },
            ErrorCode::INVALID_RECORD,
        ),
    ];
    for (i, (spoil, expected)) in cases.into_iter().enumerate() {
        let mut world = world(ClientTelemetry::Kafka);
        let connection = world.open(1);
        let reported = get(&mut world, connection, ID);
        let mut request = of(&reported);
        spoil(&mut request, bomb.clone());
        assert_eq!(push(&mut world, connection, request), expected, "case {i}");
        assert_eq!(world.cluster.control().telemetry().pushes().count(), 0, "case {i}");
        world.pass(INTERVAL);
        assert_eq!(push(&mut world, connection, of(&reported)), ErrorCode::NONE, "case {i}: the next one");
    }
}

#[test]
fn terminating_push_is_accepted_at_any_time_and_is_the_last() {
    let mut world = world(ClientTelemetry::Kafka);
    let connection = world.open(1);
    let reported = get(&mut world, connection, ID);
    assert_eq!(push(&mut world, connection, of(&reported)), ErrorCode::NONE);
    let last = PushTelemetryRequest { terminating: true, ..of(&reported) };
    assert_eq!(push(&mut world, connection, last.clone()), ErrorCode::NONE);
    world.pass(INTERVAL);
    assert_eq!(push(&mut world, connection, last), ErrorCode::INVALID_REQUEST);
    let kept: Vec<_> = world.cluster.control().telemetry().pushes().map(|push| push.terminating).collect();
    assert_eq!(kept, [false, true]);
}

#[test]
fn errors_are_injected_into_both_telemetry_apis() {
    let mut world = world(ClientTelemetry::Kafka);
    let connection = world.open(1);
    for api in [ApiKey::GetTelemetrySubscriptions, ApiKey::PushTelemetry] {
        world
            .cluster
            .control()
            .inject(Fault::new(FaultAction::Error(ErrorCode::INVALID_CONFIG)).api(api).times(1));
    }
    assert_eq!(get(&mut world, connection, ID).error_code, ErrorCode::INVALID_CONFIG);
    let reported = get(&mut world, connection, ID);
    assert_eq!(reported.error_code, ErrorCode::NONE);
    assert_eq!(push(&mut world, connection, of(&reported)), ErrorCode::INVALID_CONFIG);
    assert_eq!(push(&mut world, connection, of(&reported)), ErrorCode::NONE);
}

#[test]
fn mock_cluster_accepts_any_valid_push_at_any_time() {
    let mut world =
        World::new(ClusterOptions { client_telemetry: ClientTelemetry::Mock, ..ClusterOptions::default() });
    let connection = world.open(1);
    let reported = get(&mut world, connection, Uuid::ZERO);
    assert_eq!(
        (reported.subscription_id, reported.push_interval_ms, reported.telemetry_max_bytes),
        (0, 300_000, 10_000)
    );
    assert_eq!(reported.requested_metrics, [""; 0], "nothing is asked for unless it is set");
    assert_eq!(get(&mut world, connection, reported.client_instance_id).error_code, ErrorCode::NONE);
    for subscription_id in [0, 1] {
        for terminating in [true, false] {
            let request = PushTelemetryRequest { subscription_id, terminating, ..of(&reported) };
            assert_eq!(push(&mut world, connection, request), ErrorCode::NONE);
        }
    }
    let broken = PushTelemetryRequest { metrics: vec![255; 20], ..of(&reported) };
    assert_eq!(push(&mut world, connection, broken), ErrorCode::INVALID_RECORD);
    let unknown = PushTelemetryRequest { compression_type: 9, ..of(&reported) };
    assert_eq!(push(&mut world, connection, unknown), ErrorCode::UNSUPPORTED_COMPRESSION_TYPE);
    world.cluster.control().telemetry().set_requested_metrics(["*"]);
    world.cluster.control().telemetry().set_push_interval(Duration::from_millis(5));
    let reported = get(&mut world, connection, reported.client_instance_id);
    assert_eq!((reported.subscription_id, reported.push_interval_ms), (0, 5));
    assert_eq!(reported.requested_metrics, ["*"]);
}

const CLIENT_METRICS: i8 = 16;

/// Sets (0), deletes (1), or appends to (2) an entry of a subscription; returns error and message.
fn alter(world: &mut World, name: &str, entries: &[(&str, i8, Option<&str>)]) -> (i16, Option<String>) {
    let connection = world.open(1);
    let configs =
        entries.iter().map(|(name, config_operation, value)| incremental_alter_configs::request::Config {
            name: (*name).to_owned(),
            config_operation: *config_operation,
            value: value.map(str::to_owned),
        });
    let resource = incremental_alter_configs::request::Resource {
        resource_type: CLIENT_METRICS,
        resource_name: name.to_owned(),
        configs: configs.collect(),
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let response = world.call(connection, 1, &request).responses.remove(0);
    (response.error_code.0, response.error_message)
}

/// Returns name, value and source of a subscription's entries.
fn describe(world: &mut World, name: &str) -> (i16, Vec<(String, String, i8)>) {
    let connection = world.open(1);
    let resource = describe_configs::request::Resource {
        resource_type: CLIENT_METRICS,
        resource_name: name.to_owned(),
        configuration_keys: None,
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let response = world.call(connection, 4, &request).results.remove(0);
    let entries = response.configs.into_iter();
    let entries = entries.map(|entry| (entry.name, entry.value.unwrap_or_default(), entry.config_source));
    (response.error_code.0, entries.collect())
}

fn list(world: &mut World, version: i16, resource_types: &[i8]) -> (i16, Vec<(String, i8)>) {
    let connection = world.open(1);
    let request = ListConfigResourcesRequest { resource_types: resource_types.to_vec() };
    let response = world.call(connection, version, &request);
    let resources = response.config_resources.into_iter();
    (response.error_code.0, resources.map(|one| (one.resource_name, one.resource_type)).collect())
}

#[test]
fn subscriptions_behave_as_in_apache_kafka() {
    let mut world = World::new(ClusterOptions { brokers: 1, ..ClusterOptions::default() });
    let entry = |name: &str, value: &str, source| (name.to_owned(), value.to_owned(), source);
    let nothing = vec![entry("interval.ms", "300000", 5), entry("match", "", 5), entry("metrics", "", 5)];
    assert_eq!(list(&mut world, 0, &[]), (0, vec![]));
    assert_eq!(describe(&mut world, "nobody"), (0, nothing.clone()));
    assert_eq!(describe(&mut world, ""), (42, vec![]));
    let set = |name, value| [(name, 0, Some(value))];
    assert_eq!(
        alter(&mut world, "", &set("metrics", "*")),
        (42, Some("Subscription name can't be empty".to_owned()))
    );
    let both = [("metrics", 0, Some("org.apache.kafka.producer.")), ("interval.ms", 0, Some("1000"))];
    assert_eq!(alter(&mut world, "s1", &both), (0, None));
    assert_eq!(alter(&mut world, "s1", &set("match", "client_id=a.*,client_software_name=b")), (0, None));
    let expected = vec![
        entry("interval.ms", "1000", 7),
        entry("match", "client_id=a.*,client_software_name=b", 7),
        entry("metrics", "org.apache.kafka.producer.", 7),
    ];
    for (name, value, error) in [
        ("nope", "x", (42, "Unknown client metrics configuration: nope")),
        (
            "interval.ms",
            "99",
            (42, "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)"),
        ),
        (
            "interval.ms",
            "3600001",
            (42, "Invalid value 3600001 for interval.ms, interval must be between 100 and 3600000 (1 hour)"),
        ),
        ("interval.ms", "x", (40, "Invalid value x for configuration interval.ms: Not a number of type INT")),
        ("match", "client_id", (40, "Illegal client matching pattern: client_id")),
        ("match", "who=a", (40, "Illegal client matching pattern: who=a")),
        ("match", "client_id=[", (40, "Illegal client matching pattern: client_id=[")),
    ] {
        let (code, message) = error;
        assert_eq!(alter(&mut world, "s1", &set(name, value)), (code, Some(message.to_owned())), "{name}");
        assert_eq!(describe(&mut world, "s1"), (0, expected.clone()), "{name}={value} changed nothing");
    }
    assert_eq!(alter(&mut world, "s1", &[("metrics", 2, Some("a"))]).0, 40, "it can't be appended to");
    assert_eq!(list(&mut world, 0, &[]), (0, vec![("s1".to_owned(), 16)]));
    assert_eq!(list(&mut world, 1, &[16]), (0, vec![("s1".to_owned(), 16)]));
    assert_eq!(list(&mut world, 1, &[2]), (0, vec![]));
    assert_eq!(list(&mut world, 1, &[4]), (0, vec![("1".to_owned(), 4)]));
    assert_eq!(list(&mut world, 1, &[]).1.len(), 2);
    assert_eq!(list(&mut world, 1, &[99]), (35, vec![]));
    let away = [("metrics", 1, None), ("interval.ms", 1, None), ("match", 1, None)];
    assert_eq!(alter(&mut world, "s1", &away), (0, None));
    assert_eq!((list(&mut world, 0, &[]), describe(&mut world, "s1")), ((0, vec![]), (0, nothing)));
}

#[test]
fn matching_subscriptions_are_merged_at_their_shortest_interval() {
    let mut world =
        World::new(ClusterOptions { client_telemetry: ClientTelemetry::Kafka, ..ClusterOptions::default() });
    let connection = world.open(1);
    let peer = std::net::SocketAddr::from(([10, 1, 2, 3], 4567));
    world.cluster.set_peer(connection, peer);
    let software = ApiVersionsRequest {
        client_software_name: "ottla".to_owned(),
        client_software_version: "1.2".to_owned(),
        ..ApiVersionsRequest::default()
    };
    world.call(connection, 3, &software);
    let mut subscribe = |name: &str, metrics: &str, interval: &str, matching: &str| {
        let entries =
            [("metrics", 0, Some(metrics)), ("interval.ms", 0, Some(interval)), ("match", 0, Some(matching))];
        assert_eq!(alter(&mut world, name, &entries), (0, None), "{name}");
        let reported = get(&mut world, connection, ID);
        assert_eq!(reported.error_code, ErrorCode::NONE);
        (reported.requested_metrics, reported.push_interval_ms)
    };
    let metrics = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(subscribe("all", "b., a.", "60000", ""), (metrics(&["a.", "b."]), 60_000));
    let about_it = format!(
        "client_id=te.t,client_software_name=ottla,client_software_version=1\\..,client_instance_id={ID}"
    );
    assert_eq!(subscribe("it", "c.", "5000", &about_it), (metrics(&["a.", "b.", "c."]), 5000));
    let others = ["client_id=te", "client_source_address=10\\.1\\.2\\.4", "client_source_port=4568"];
    for other in others {
        assert_eq!(subscribe("other", "d.", "100", other).1, 5000, "{other} is another client");
    }
    let here = "client_source_address=10\\.1\\..*,client_source_port=4567";
    assert_eq!(subscribe("other", "*,d.", "100", here), (metrics(&["*"]), 100));
}
