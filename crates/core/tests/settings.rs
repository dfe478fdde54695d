//! Tests of the machines' settings for given properties: defaults, precedence, and the rules between properties.

use std::{ops::Deref, time::Duration};

use ottla_core::{
    cluster::ClusterSettings,
    config::{ConfigError, EffectiveConfig, IsolationLevel, OffsetReset, Profile, RawConfig},
    connection::ConnectionSettings,
    fetch::settings::ConsumerSettings,
    produce::{
        acks::Acks, collector::Linger, order::QueueOrder, partitioner::Partitioner,
        settings::ProducerSettings, topic_settings::TopicSettings,
    },
    wall_clock::WallClock,
};
use ottla_protocol::compress::Compression;

const MS: Duration = Duration::from_millis(1);

/// The settings of a client's machines, and the warnings.
struct Settings<T> {
    own: T,
    connection: ConnectionSettings,
    warnings: Vec<String>,
}

impl<T> Settings<T> {
    fn new(config: &EffectiveConfig<'_>, own: T) -> Self {
        Self { own, connection: ConnectionSettings::new(config), warnings: config.warnings().to_vec() }
    }
}

impl<T> Deref for Settings<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.own
    }
}

fn set(mut raw: RawConfig, pairs: &[(&str, &str)]) -> RawConfig {
    pairs.iter().for_each(|(name, value)| raw.set(name, value).unwrap());
    raw
}

fn config(pairs: &[(&str, &str)]) -> RawConfig {
    set(RawConfig::new(Profile::Rust), pairs)
}

fn own(pairs: &[(&str, &str)]) -> RawConfig {
    set(RawConfig::topic(Profile::Rust), pairs)
}

fn producer_of(raw: &RawConfig) -> Settings<ProducerSettings> {
    let config = EffectiveConfig::producer(raw).unwrap();
    Settings::new(&config, ProducerSettings::new(&config))
}

fn producer(pairs: &[(&str, &str)]) -> Settings<ProducerSettings> {
    producer_of(&config(pairs))
}

fn producer_error(pairs: &[(&str, &str)]) -> String {
    EffectiveConfig::producer(&config(pairs)).unwrap_err().to_string()
}

fn consumer(pairs: &[(&str, &str)]) -> Settings<ConsumerSettings> {
    let raw = config(pairs);
    let config = EffectiveConfig::consumer(&raw).unwrap();
    Settings::new(&config, ConsumerSettings::new(&config, WallClock::default()))
}

fn topic(client: &RawConfig, own: &RawConfig) -> Result<TopicSettings, ConfigError> {
    let producer = ProducerSettings::new(&EffectiveConfig::producer(client)?);
    Ok(TopicSettings::of_topic(&EffectiveConfig::topic(client, own)?, &producer))
}

#[test]
fn rust_producer_is_safe_by_default_and_has_no_warnings() {
    let settings = producer(&[]);
    assert_eq!((settings.topic.acks, settings.idempotence, settings.max_in_flight), (Acks::All, true, 5));
    assert_eq!(settings.linger, Linger::Broker(5 * MS));
    assert_eq!(settings.sticky_linger, 10 * MS);
    assert_eq!(settings.topic.message_timeout, Some(Duration::from_secs(300)));
    assert_eq!(settings.warnings, Vec::<String>::new());
    let raw = config(&[]);
    let error = EffectiveConfig::producer(&raw).unwrap().require_servers().unwrap_err().to_string();
    assert!(error.starts_with("`bootstrap.servers` isn't set"), "{error}");
}

#[test]
fn defaults_of_c_producer_are_those_of_librdkafka() {
    let settings = producer_of(&RawConfig::new(Profile::Librdkafka));
    assert_eq!(
        (settings.topic.acks, settings.idempotence, settings.max_in_flight),
        (Acks::All, false, 1_000_000)
    );
    assert!(settings.topic.partitioner.is_same(&Partitioner::ConsistentRandom));
    assert_eq!((settings.max_queued_messages, settings.max_queued_bytes), (100_000, 1 << 30));
}

#[test]
fn consumer_defaults_read_committed_and_fetch_at_most_the_queue() {
    let settings = consumer(&[]);
    assert_eq!(settings.isolation_level, IsolationLevel::ReadCommitted);
    assert_eq!((settings.fetch_max_bytes, settings.connection.max_response_bytes), (52_428_800, 100_000_000));
    assert_eq!(settings.auto_offset_reset, OffsetReset::End);
    assert!(settings.check_crcs);
    assert_eq!(consumer(&[("queued.max.messages.kbytes", "2048")]).fetch_max_bytes, 2_097_152);
}

#[test]
fn linger_alone_is_a_timer_per_partition_with_a_deprecation_warning() {
    let settings = producer(&[("linger.ms", "0.5")]);
    assert_eq!(settings.linger, Linger::Partition(Duration::from_micros(500)));
    assert_eq!(settings.warnings.len(), 1);
    assert!(settings.warnings[0].starts_with("`linger.ms` is deprecated"));
    let settings = producer(&[("queue.buffering.max.ms", "7")]);
    assert!(settings.warnings[0].starts_with("`queue.buffering.max.ms` is deprecated"));
}

#[test]
fn broker_linger_wins_over_linger_with_a_warning_that_names_both() {
    let settings = producer(&[("linger.ms", "100"), ("broker.linger.ms", "7")]);
    assert_eq!(settings.linger, Linger::Broker(7 * MS));
    assert_eq!(settings.warnings, ["`linger.ms` has no effect, because `broker.linger.ms` is set too"]);
    assert_eq!(producer(&[("broker.linger.ms", "auto")]).linger, Linger::Auto);
}

#[test]
fn hard_limit_beside_auto_is_kept_with_a_warning() {
    let settings = producer(&[("broker.linger.ms", "auto"), ("produce.request.max.partitions", "10")]);
    assert_eq!(settings.max_partitions, Some(10));
    assert_eq!(
        settings.warnings,
        ["`produce.request.max.partitions` stays a hard limit beside `broker.linger.ms=auto`"]
    );
    let settings = producer(&[("broker.batch.max.bytes", "10")]);
    assert!(settings.warnings[0].contains("`broker.batch.max.bytes`"));
}

#[test]
fn a_linger_must_be_less_than_the_message_timeout() {
    assert_eq!(
        producer_error(&[("linger.ms", "1000"), ("delivery.timeout.ms", "1000")]),
        "`linger.ms` (1000) must be less than `delivery.timeout.ms` (1000): records would time out while they are \
         gathered"
    );
    let both = [("broker.linger.ms", "900000"), ("message.timeout.ms", "300000")];
    assert!(producer_error(&both).contains("`message.timeout.ms` (300000)"));
    assert_eq!(producer(&[("message.timeout.ms", "4")]).linger, Linger::Broker(2 * MS));
    assert_eq!(producer(&[("message.timeout.ms", "0"), ("linger.ms", "900000")]).topic.message_timeout, None);
}

#[test]
fn a_default_message_timeout_is_raised_above_a_linger() {
    for linger in ["linger.ms", "broker.linger.ms"] {
        let properties = [(linger, "400000"), ("request.timeout.ms", "20000")];
        let settings = producer(&properties);
        assert_eq!(settings.topic.message_timeout, Some(420_000 * MS), "{linger}");
        let warned = settings.warnings.iter().filter(|warning| warning.contains("becomes 420000")).count();
        assert_eq!(warned, 1, "{:?}", settings.warnings);
        let (mut client, topic) = (RawConfig::new(Profile::Rust), RawConfig::topic(Profile::Rust));
        properties.iter().for_each(|(name, value)| client.set(name, value).unwrap());
        let of_topic = EffectiveConfig::topic(&client, &topic).unwrap();
        assert_eq!(of_topic.integer("message.timeout.ms"), 420_000);
        assert!(of_topic.warnings().is_empty(), "the client has warned: {:?}", of_topic.warnings());
    }
    let timeout = |linger, request| {
        producer(&[("linger.ms", linger), ("request.timeout.ms", request)]).topic.message_timeout
    };
    assert_eq!(timeout("280000", "20000"), Some(300_000 * MS), "the default is enough");
    assert_eq!(timeout("280000", "20001"), Some(300_001 * MS), "the linger alone is less than the default");
    assert_eq!(timeout("5", "400000"), Some(400_005 * MS));
    let shorter = [("linger.ms", "5"), ("message.timeout.ms", "1000")];
    assert_eq!(producer(&shorter).topic.message_timeout, Some(1000 * MS), "the application's choice");
    let mut like_librdkafka = RawConfig::new(Profile::Librdkafka);
    like_librdkafka.set("linger.ms", "400000").unwrap();
    EffectiveConfig::producer(&like_librdkafka).expect_err("librdkafka refuses it");
}

#[test]
fn a_message_timeout_ends_with_its_transaction() {
    let properties = [("transactional.id", "x"), ("delivery.timeout.ms", "120000")];
    let settings = producer(&properties);
    assert_eq!(settings.topic.message_timeout, Some(60_000 * MS), "Java's producer has no such rule");
    let warning = "`delivery.timeout.ms` (120000) becomes 60000: a message can't outlive its transaction";
    assert!(settings.warnings.iter().any(|found| found.starts_with(warning)), "{:?}", settings.warnings);
    let mut like_librdkafka = RawConfig::new(Profile::Librdkafka);
    properties.iter().for_each(|(name, value)| {
        like_librdkafka.set(name.replace("delivery", "message").as_str(), value).unwrap()
    });
    EffectiveConfig::producer(&like_librdkafka).expect_err("librdkafka refuses it");
}

#[test]
fn idempotence_that_was_set_contradicts_weaker_settings() {
    for (other, value, demand) in [
        ("acks", "1", "`acks` must be all, not 1, with `enable.idempotence`"),
        ("max.in.flight", "6", "`max.in.flight` must be at most 5, not 6, with `enable.idempotence`"),
        ("retries", "0", "`retries` must be at least 1, not 0, with `enable.idempotence`"),
    ] {
        assert_eq!(producer_error(&[("enable.idempotence", "true"), (other, value)]), demand);
    }
    assert_eq!(producer(&[("enable.idempotence", "true"), ("max.in.flight", "3")]).max_in_flight, 3);
}

#[test]
fn idempotence_by_default_gives_way_to_weaker_settings() {
    let settings = producer(&[("acks", "1")]);
    assert_eq!((settings.topic.acks, settings.idempotence), (Acks::Leader, false));
    assert_eq!(settings.warnings, ["`enable.idempotence` is off: for it `acks` must be all, not 1"]);
    assert!(!producer(&[("max.in.flight", "100")]).idempotence);
    assert!(!producer(&[("retries", "0")]).idempotence);
}

#[test]
fn acks_of_a_number_of_replicas_are_kept_for_the_c_library() {
    let mut raw = RawConfig::new(Profile::Librdkafka);
    raw.set("acks", "2").unwrap();
    assert_eq!(producer_of(&raw).topic.acks, Acks::Replicas(2));
}

#[test]
fn sizes_that_contradict_each_other_are_refused_or_adapted() {
    let settings = producer(&[("max.request.size", "50000")]);
    assert_eq!(
        (settings.max_message_bytes, settings.max_request_bytes, settings.topic.batch.max_bytes),
        (50_000, 50_000, 50_000)
    );
    let settings = producer(&[("message.max.bytes", "100000000")]);
    assert_eq!((settings.max_message_bytes, settings.max_request_bytes), (100_000_000, 100_000_000));
    let both = producer_error(&[("message.max.bytes", "60000"), ("max.request.size", "50000")]);
    assert!(both.contains("`message.max.bytes` (60000)") && both.contains("`max.request.size` (50000)"));
    let both = producer_error(&[("message.max.bytes", "60000"), ("buffer.memory", "32768")]);
    assert!(both.contains("`buffer.memory` (32768 bytes)") && both.contains("`message.max.bytes`"));
    assert_eq!(producer(&[("buffer.memory", "32768")]).warnings.len(), 1);
}

#[test]
fn response_has_room_for_the_requested_bytes() {
    let settings = consumer(&[("fetch.max.bytes", "200000000")]);
    assert_eq!(
        (settings.fetch_max_bytes, settings.connection.max_response_bytes),
        (200_000_000, 200_000_512)
    );
    let settings = consumer(&[("receive.message.max.bytes", "2000000")]);
    assert_eq!((settings.fetch_max_bytes, settings.connection.max_response_bytes), (1_999_488, 2_000_000));
    let both = config(&[("fetch.max.bytes", "2000000"), ("receive.message.max.bytes", "2000000")]);
    let error = EffectiveConfig::consumer(&both).unwrap_err().to_string();
    assert!(error.contains("`receive.message.max.bytes` (2000000)") && error.contains("`fetch.max.bytes`"));
    let largest = consumer(&[("fetch.max.bytes", "2147483135")]);
    assert_eq!(largest.connection.max_response_bytes, 2_147_483_647);
}

#[test]
fn maximum_delay_is_at_least_the_first_delay() {
    let settings = producer(&[("reconnect.backoff.ms", "20000"), ("retry.backoff.max.ms", "10")]);
    assert_eq!(settings.connection.reconnect_backoff_max, Duration::from_secs(20));
    assert_eq!(settings.retry_backoff, 10 * MS);
    assert_eq!(
        producer_error(&[("retry.backoff.ms", "20"), ("retry.backoff.max.ms", "10")]),
        "`retry.backoff.max.ms` (10) must not be less than `retry.backoff.ms` (20)"
    );
}

#[test]
fn properties_of_other_protocols_are_warned_of() {
    let mut config = RawConfig::new(Profile::Librdkafka);
    for (name, value) in [("bootstrap.servers", "a"), ("sasl.username", "u"), ("ssl.ca.location", "/ca")] {
        config.set(name, value).unwrap();
    }
    let settings = producer_of(&config);
    assert_eq!(
        settings.warnings,
        ["no effect with `security.protocol=plaintext`: `sasl.username`, `ssl.ca.location`"]
    );
    for protocol in ["sasl_plaintext", "SASL_SSL"] {
        config.set("security.protocol", protocol).unwrap();
        assert_eq!(EffectiveConfig::producer(&config).unwrap().text("sasl.mechanisms"), "GSSAPI");
    }
}

#[test]
fn tls_is_permitted_but_not_what_only_openssl_has() {
    let mut config = RawConfig::new(Profile::Librdkafka);
    config.set("bootstrap.servers", "a").unwrap();
    config.set("security.protocol", "SSL").unwrap();
    assert_eq!(producer_of(&config).warnings, [""; 0]);
    for (name, value) in [("ssl.providers", "legacy"), ("ssl.engine.location", "/e")] {
        let mut config = config.clone();
        config.set(name, value).unwrap();
        let error = EffectiveConfig::producer(&config).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("no OpenSSL"), "{error}");
    }
}

#[test]
fn c_library_checks_defaults_against_values_that_were_set() {
    let errors = |name: &str, value: &str| {
        let mut config = RawConfig::new(Profile::Librdkafka);
        config.set("bootstrap.servers", "a").unwrap();
        config.set(name, value).unwrap();
        EffectiveConfig::consumer(&config).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(errors("max.poll.interval.ms", "1000").contains("`session.timeout.ms`"));
    assert!(errors("session.timeout.ms", "600000").contains("`max.poll.interval.ms`"));
    assert!(errors("fetch.max.bytes", "1000").contains("`message.max.bytes`"));
    assert!(errors("receive.message.max.bytes", "1000").contains("`fetch.max.bytes`"));
    assert_eq!(errors("heartbeat.interval.ms", "60000"), "");
    assert_eq!(errors("fetch.max.bytes", "200000000"), "");
}

#[test]
fn group_times_that_contradict_each_other_are_refused() {
    let raw = config(&[("session.timeout.ms", "6000"), ("max.poll.interval.ms", "5000")]);
    let error = EffectiveConfig::consumer(&raw).unwrap_err().to_string();
    assert_eq!(error, "`max.poll.interval.ms` (5000) must not be less than `session.timeout.ms` (6000)");
}

#[test]
fn age_of_metadata_limits_refresh_interval() {
    let times = |pairs: &[(&str, &str)]| {
        let raw = config(pairs);
        let config = EffectiveConfig::producer(&raw).unwrap();
        (ClusterSettings::new(&config).refresh_interval, config.millis("metadata.max.age.ms"))
    };
    assert_eq!(times(&[]), (Some(300_000 * MS), 900_000 * MS));
    assert_eq!(times(&[("metadata.max.age.ms", "1000")]), (Some(1000 * MS), 1000 * MS));
    assert_eq!(times(&[("topic.metadata.refresh.interval.ms", "-1")]), (None, 900_000 * MS));
}

#[test]
fn properties_without_effect_cause_warnings() {
    let settings = producer(&[("fetch.min.bytes", "2"), ("key.serializer", "x")]);
    assert_eq!(
        settings.warnings,
        [
            "`fetch.min.bytes` belongs to a consumer and has no effect on a producer",
            "`key.serializer` has no effect: keys and values are plain bytes in Ottla",
        ]
    );
    let settings = consumer(&[("acks", "1"), ("group.id", "g"), ("coordinator.query.interval.ms", "1000")]);
    assert_eq!(settings.group_id.as_deref(), Some("g"));
    for expected in [
        "`acks` belongs to a producer and has no effect on a consumer",
        "`coordinator.query.interval.ms` has no effect: the coordinator is looked up when there is a request for it, and again \
         when it has moved",
    ] {
        assert!(settings.warnings.iter().any(|warning| warning == expected), "{:?}", settings.warnings);
    }
    let strict = producer_error(&[("fetch.min.bytes", "2"), ("config.strict", "true")]);
    assert!(strict.contains("`fetch.min.bytes`") && strict.contains("`config.strict`"));
}

#[test]
fn properties_of_a_topic_override_those_of_the_client() {
    let client = config(&[("acks", "1"), ("compression.type", "lz4"), ("compression.level", "12")]);
    let inherited = topic(&client, &own(&[])).unwrap();
    assert!(inherited.is_same(&producer_of(&client).topic));
    assert_eq!((inherited.compression, inherited.compression_level), (Compression::Lz4, Some(12)));
    let changed = [("acks", "0"), ("compression.codec", "gzip"), ("partitioner", "murmur2")];
    let settings = topic(&client, &own(&changed)).unwrap();
    assert_eq!(settings.acks, Acks::None);
    assert!(settings.partitioner.is_same(&Partitioner::Murmur2));
    assert_eq!((settings.compression, settings.compression_level), (Compression::Gzip, Some(9)));
    let settings = topic(&client, &own(&[("compression.codec", "inherit")])).unwrap();
    assert_eq!(settings.compression, Compression::Lz4);
}

#[test]
fn idempotence_demands_first_in_first_out() {
    let newest_first = [("queuing.strategy", "lifo")];
    let demand = "`queuing.strategy` must be fifo, not lifo, with `enable.idempotence`";
    assert_eq!(producer_error(&[("enable.idempotence", "true"), newest_first[0]]), demand);
    let settings = producer(&newest_first);
    assert!(matches!(settings.topic.order.as_deref(), Some(QueueOrder::NewestFirst)));
    assert!(!settings.idempotence, "a default gives way");
    let error = topic(&config(&[]), &own(&newest_first)).unwrap_err().to_string();
    assert!(error.contains("must be fifo, not lifo, with the client's `enable.idempotence`"), "{error}");
    let settings = topic(&config(&[("enable.idempotence", "false")]), &own(&newest_first)).unwrap();
    assert!(matches!(settings.order.as_deref(), Some(QueueOrder::NewestFirst)));
}

#[test]
fn acks_of_a_topic_contradict_idempotence_that_was_set() {
    let client = config(&[("enable.idempotence", "true")]);
    let error = topic(&client, &own(&[("acks", "1")])).unwrap_err().to_string();
    assert!(error.contains("`enable.idempotence`"), "{error}");
}

#[test]
fn acks_of_a_topic_contradict_default_idempotence() {
    let error = topic(&config(&[]), &own(&[("acks", "1")])).unwrap_err();
    assert_eq!(error.property, "acks");
    let text = error.to_string();
    assert!(text.contains("`acks` must be all, not 1, with the client's `enable.idempotence`"), "{text}");
    assert_eq!(topic(&config(&[("acks", "0")]), &own(&[("acks", "1")])).unwrap().acks, Acks::Leader);
}

#[test]
fn compression_levels_are_limited_to_the_range_of_the_codec() {
    let level = |pairs| producer(pairs).topic.compression_level;
    assert_eq!(level(&[("compression.type", "gzip")]), None);
    assert_eq!(level(&[("compression.type", "gzip"), ("compression.level", "12")]), Some(9));
    assert_eq!(level(&[("compression.type", "zstd"), ("compression.zstd.level", "-7")]), Some(-7));
    assert_eq!(level(&[("compression.type", "snappy"), ("compression.level", "3")]), None);
}

#[test]
fn broker_versions_before_0_8_are_refused() {
    assert!(producer_error(&[("broker.version.fallback", "0.7.2")]).contains("from 0.8.0 on"));
}

#[test]
fn transactional_id_implies_idempotence_and_adapts_timeouts() {
    for profile in [Profile::Rust, Profile::Librdkafka] {
        let raw =
            |pairs: &[(&str, &str)]| set(set(RawConfig::new(profile), &[("transactional.id", "x")]), pairs);
        let settings = producer_of(&raw(&[]));
        assert!(settings.idempotence && settings.topic.acks == Acks::All && settings.max_in_flight <= 5);
        assert_eq!(settings.transactional_id.as_deref(), Some("x"));
        let minute = 60_000 * MS;
        assert_eq!((settings.transaction_timeout, settings.topic.message_timeout), (minute, Some(minute)));
        assert_eq!(settings.response_timeout, 59_900 * MS);
        let settings = producer_of(&raw(&[("transaction.timeout.ms", "120000")]));
        assert_eq!(settings.topic.message_timeout, Some(120_000 * MS));
        assert_eq!(settings.response_timeout, 119_900 * MS, "the default is raised, too");
        let settings = producer_of(&raw(&[("transaction.timeout.ms", "1000")]));
        assert_eq!(settings.response_timeout, 900 * MS);
        let accepted = [("message.timeout.ms", "60000"), ("socket.timeout.ms", "60100")];
        assert_eq!(producer_of(&raw(&accepted)).response_timeout, 60_100 * MS);
        let endless = [("message.timeout.ms", "0")];
        assert_eq!(producer_of(&raw(&endless)).topic.message_timeout, None);
    }
    assert_eq!(producer(&[]).transactional_id, None);
}

#[test]
fn transactional_id_contradicts_settings_that_weaken_it() {
    let cases = [
        ("enable.idempotence", "false", "`transactional.id` needs `enable.idempotence`"),
        ("acks", "1", "`acks` must be all, not 1, with `enable.idempotence`"),
        ("retries", "0", "`retries` must be at least 1, not 0"),
        ("max.in.flight", "6", "`max.in.flight` must be at most 5, not 6"),
        ("queuing.strategy", "lifo", "must be fifo"),
        (
            "message.timeout.ms",
            "60001",
            "`message.timeout.ms` (60001) must be at most 60000, because `transaction.timeout.ms` is 60000",
        ),
        ("socket.timeout.ms", "60101", "`socket.timeout.ms` (60101) must be at most 60100"),
    ];
    for (name, value, sentence) in cases {
        for profile in [Profile::Rust, Profile::Librdkafka] {
            if (profile, name) == (Profile::Rust, "message.timeout.ms") {
                // As in Java; see `a_message_timeout_ends_with_its_transaction`.
                continue;
            }
            let raw = set(RawConfig::new(profile), &[("transactional.id", "x"), (name, value)]);
            let error = EffectiveConfig::producer(&raw).unwrap_err().to_string();
            assert!(error.contains(sentence), "{name}={value}: {error}");
        }
    }
}

#[test]
fn topic_of_a_transactional_producer_keeps_to_its_timeout() {
    let client = config(&[("transactional.id", "x"), ("transaction.timeout.ms", "5000")]);
    assert_eq!(topic(&client, &own(&[])).unwrap().message_timeout, Some(5000 * MS));
    let error = topic(&client, &own(&[("message.timeout.ms", "5001")])).unwrap_err().to_string();
    assert!(error.contains("must be at most 5000"), "{error}");
    assert!(topic(&client, &own(&[("acks", "1")])).is_err());
}
