//! The properties of the Java clients: each has a row of the table, and its values and defaults are accepted.

use ottla_core::config::{
    ConfigError, EffectiveConfig, Profile, RawConfig,
    java::properties::{JavaKind, JavaProperty, PROPERTIES},
    table::{self, Kind, Origin, Scope, Side},
};

type Effective = fn(&RawConfig) -> Result<EffectiveConfig<'_>, ConfigError>;

/// Returns the warnings of a client with a property.
fn warnings(client: char, name: &str, value: &str) -> Result<Vec<String>, ConfigError> {
    let mut raw = RawConfig::new(Profile::Rust);
    raw.set(name, value)?;
    let kinds: &[Effective] = match client {
        'P' => &[|raw| EffectiveConfig::producer(raw)],
        'C' => &[|raw| EffectiveConfig::consumer(raw), |raw| EffectiveConfig::share_consumer(raw)],
        _ => &[|raw| EffectiveConfig::admin(raw)],
    };
    let mut warnings = Vec::new();
    for effective in kinds {
        warnings.extend_from_slice(effective(&raw)?.warnings());
    }
    // Tests without TLS and SASL set their properties, and `linger.ms` has a better sibling.
    warnings.retain(|warning| {
        !warning.starts_with("no effect with `security.protocol") && !warning.contains("is deprecated")
    });
    Ok(warnings)
}

fn each(mut check: impl FnMut(&'static JavaProperty, char)) {
    for property in PROPERTIES {
        property.clients.chars().for_each(|client| check(property, client));
    }
}

#[test]
fn every_property_of_the_java_clients_has_a_row_of_its_type() {
    for java in PROPERTIES {
        let JavaProperty { name, clients, kind, .. } = *java;
        let row = table::find(Scope::Global, name).unwrap_or_else(|| panic!("{name} has no row"));
        let fits = match (kind, row.kind) {
            (JavaKind::Boolean, Kind::Boolean)
            | (JavaKind::Whole(..), Kind::Integer { .. })
            | (JavaKind::Fraction(..), Kind::Float { .. })
            | (JavaKind::Text | JavaKind::List | JavaKind::Password | JavaKind::Class, Kind::Text) => true,
            // Milliseconds may have a fraction here.
            (JavaKind::Whole(..), Kind::Float { .. }) => name == "linger.ms",
            (JavaKind::Words(words), Kind::OneOf(ours)) => words
                .iter()
                .all(|word| word.contains(':') || ours.iter().any(|our| our.eq_ignore_ascii_case(word))),
            (JavaKind::Words(_), Kind::Integer { names, .. }) => name == "acks" && names[0].0 == "all",
            (JavaKind::Words(_), Kind::Text) => {
                ["metrics.recording.level", "share.acknowledgement.mode"].contains(&name)
            }
            (JavaKind::Text, Kind::OneOf(_)) => name == "ssl.endpoint.identification.algorithm",
            _ => false,
        };
        assert!(fits, "{name}: {kind:?} is {:?}", row.kind);
        // Java's consumers and admin clients have these two properties of producers, too.
        let is_wider = ["request.timeout.ms", "retries"].contains(&name);
        let is_for = |side| row.side == Side::Both || row.side == side || is_wider;
        assert!(!clients.contains('P') || is_for(Side::Producer), "{name} is for producers");
        assert!(!clients.contains('C') || is_for(Side::Consumer), "{name} is for consumers");
    }
}

#[test]
fn defaults_of_java_are_those_of_rows_that_only_java_has() {
    for row in table::properties().filter(|row| row.origin == Origin::Java && row.alias.is_none()) {
        // It left Kafka with version 4.0.
        if row.name == "auto.include.jmx.reporter" {
            continue;
        }
        let java =
            PROPERTIES.iter().find(|java| java.name == row.name).unwrap_or_else(|| panic!("{}", row.name));
        match java.defaults {
            [] => assert!(row.default.is_empty() || row.name.contains(".timeout.ms"), "{}", row.name),
            defaults => assert!(defaults.contains(&row.default), "{}: {:?}", row.name, row.default),
        }
    }
}

#[test]
fn defaults_of_java_are_accepted_without_a_warning() {
    each(|java, client| {
        for default in java.defaults {
            let found = warnings(client, java.name, default).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(found, Vec::<String>::new(), "{}={default} of {client}", java.name);
        }
    });
}

#[test]
fn values_of_java_are_accepted_by_every_client_that_has_them() {
    let accept = |client, java: &JavaProperty, value: &str| {
        if let Err(error) = warnings(client, java.name, value) {
            panic!("{}={value} of {client}: {error}", java.name);
        }
    };
    each(|java, client| match java.kind {
        JavaKind::Boolean => {
            ["true", "false", "TRUE", " False "].iter().for_each(|value| accept(client, java, value))
        }
        JavaKind::Whole(min, max) => {
            // Numbers below the limits of types have no meaning, except for -1 in some properties.
            let min = if min < -200_000 { 0 } else { min };
            for number in [min, max, 2_147_483_647.min(max)] {
                accept(client, java, &number.to_string());
            }
        }
        JavaKind::Fraction(min, max) => {
            for number in [min.max(0.0), max.min(1.0)] {
                accept(client, java, &number.to_string());
            }
        }
        JavaKind::Words(words) => {
            for word in words {
                let word = word.replace("PnDTnHnMn.nS", "PT1H");
                accept(client, java, &word);
                if !word.contains(':') {
                    accept(client, java, &word.to_uppercase());
                    accept(client, java, &word.to_lowercase());
                }
            }
        }
        JavaKind::Class if java.name == "partitioner.class" => {
            let package = "org.apache.kafka.clients.producer";
            accept(client, java, &format!("{package}.RoundRobinPartitioner"));
            accept(client, java, &format!("{package}.UniformStickyPartitioner"));
            accept(client, java, &format!("{package}.internals.DefaultPartitioner"));
        }
        JavaKind::Class => accept(client, java, "com.example.Own"),
        JavaKind::Text | JavaKind::List | JavaKind::Password => {}
    });
}

#[test]
fn numbers_beyond_a_range_become_the_nearest_one_in_rust_only() {
    for (client, name, written, value) in [
        ('P', "linger.ms", "9223372036854775807", "900000"),
        ('P', "retry.backoff.ms", "0", "1"),
        ('C', "metadata.max.age.ms", "9223372036854775807", "86400000"),
        ('C', "session.timeout.ms", "2147483647", "3600000"),
        ('P', "batch.size", "0", "1"),
    ] {
        let mut raw = RawConfig::new(Profile::Rust);
        raw.set(name, written).expect("Java permits it");
        assert_eq!(raw.get(name), Ok(value), "{name}");
        let found = warnings(client, name, written).expect("it is accepted");
        let expected =
            format!("`{name}` is {value} and not {written}: it is the nearest value that this client has");
        assert!(found.contains(&expected), "{found:?}");
        RawConfig::new(Profile::Librdkafka).set(name, written).expect_err("librdkafka refuses it");
    }
    let mut raw = RawConfig::new(Profile::Rust);
    for (name, value) in
        [("max.poll.interval.ms", "2147483647"), ("retries", "2147483647"), ("connections.max.idle.ms", "0")]
    {
        raw.set(name, if name == "connections.max.idle.ms" { "-1" } else { value }).expect("Java permits it");
        assert_eq!(raw.get(name), Ok(value), "the client has the value itself");
    }
    for (name, value) in [
        ("linger.ms", "-1"),
        ("session.timeout.ms", "-5"),
        ("max.poll.records", "0"),
        ("retries", "2147483648"),
    ] {
        raw.set(name, value).expect_err("Java refuses it, or it has no meaning");
    }
}

#[test]
fn a_value_without_effect_has_a_warning() {
    for (client, name, value) in [
        ('P', "value.serializer", "io.confluent.kafka.serializers.KafkaAvroSerializer"),
        ('P', "transaction.two.phase.commit.enable", "true"),
        (
            'P',
            "interceptor.classes",
            "io.confluent.monitoring.clients.interceptor.MonitoringProducerInterceptor",
        ),
        ('C', "key.deserializer", "org.apache.kafka.common.serialization.LongDeserializer"),
        ('C', "metrics.num.samples", "7"),
        ('A', "security.providers", "org.example.Provider"),
        ('A', "config.providers", "env"),
    ] {
        let found = warnings(client, name, value).expect("it is accepted");
        assert!(
            found.iter().any(|warning| warning.starts_with(&format!("`{name}` has no effect: "))),
            "{found:?}"
        );
    }
    for (client, name, value) in [
        ('P', "key.serializer", "org.apache.kafka.common.serialization.StringSerializer"),
        ('C', "value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer"),
        ('P', "partitioner.rack.aware", "true"),
        ('A', "bootstrap.controllers", "c:9093"),
    ] {
        assert_eq!(warnings(client, name, value), Ok(Vec::new()), "{name}");
    }
}

#[test]
fn a_value_that_a_provider_would_replace_is_refused() {
    let mut raw = RawConfig::new(Profile::Rust);
    let file = "config.providers = env, file\n\
                config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n\
                ssl.key.password=${env:SECRET}\n";
    raw.load("client.properties", file).expect("it is accepted");
    let error = EffectiveConfig::admin(&raw).map(drop).expect_err("it is refused").to_string();
    assert!(
        error.contains("`ssl.key.password`") && error.contains("`env`") && !error.contains("SECRET"),
        "{error}"
    );
    RawConfig::new(Profile::Librdkafka).set("config.providers.env.class", "x").expect_err("it is unknown");
}

#[test]
fn request_timeout_bounds_the_requests_of_consumers_and_admin_clients() {
    let mut raw = RawConfig::new(Profile::Rust);
    raw.set("request.timeout.ms", "20000").expect("a valid value");
    for config in [EffectiveConfig::consumer(&raw), EffectiveConfig::admin(&raw)] {
        let config = config.expect("a valid configuration");
        assert_eq!((config.integer("socket.timeout.ms"), config.warnings()), (20_000, &[][..]));
    }
    raw.set("socket.timeout.ms", "5000").expect("a valid value");
    assert_eq!(EffectiveConfig::consumer(&raw).expect("valid").integer("socket.timeout.ms"), 5000);
    let mut c = RawConfig::new(Profile::Librdkafka);
    c.set("request.timeout.ms", "20000").expect("a valid value");
    let config = EffectiveConfig::consumer(&c).expect("a valid configuration");
    assert!(
        config.integer("socket.timeout.ms") == 60_000
            && config.warnings()[0].contains("belongs to a producer")
    );
}
