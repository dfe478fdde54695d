//! Tests of the linger properties: precedence, warnings and errors. If two properties contradict each other, the
//! message names both with the spelling that the application used.

use std::time::Duration;

use ottla_core::{
    config::{EffectiveConfig, Profile, RawConfig},
    produce::{collector::Linger, settings::ProducerSettings},
};

fn config(pairs: &[(&str, &str)]) -> RawConfig {
    let mut raw = RawConfig::new(Profile::Rust);
    pairs.iter().for_each(|(name, value)| raw.set(name, value).unwrap_or_else(|error| panic!("{error}")));
    raw
}

fn settings(pairs: &[(&str, &str)]) -> ProducerSettings {
    let raw = config(pairs);
    let config = EffectiveConfig::producer(&raw).unwrap_or_else(|error| panic!("{error}"));
    ProducerSettings::new(&config)
}

fn warnings(pairs: &[(&str, &str)]) -> Vec<String> {
    let raw = config(pairs);
    let config = EffectiveConfig::producer(&raw).unwrap_or_else(|error| panic!("{error}"));
    config.warnings().to_vec()
}

/// Returns the error of these properties, either when they are set or when the producer's configuration is created.
fn refusal(pairs: &[(&str, &str)]) -> String {
    let mut raw = RawConfig::new(Profile::Rust);
    for (name, value) in pairs {
        if let Err(error) = raw.set(name, value) {
            return error.to_string();
        }
    }
    EffectiveConfig::producer(&raw).expect_err("it is refused").to_string()
}

/// Returns the linger of a topic; `None` if it is the client's.
fn topic(client: &[(&str, &str)], own: &[(&str, &str)]) -> Result<Option<Duration>, String> {
    let mut raw = RawConfig::topic(Profile::Rust);
    for (name, value) in own {
        raw.set(name, value).map_err(|error| error.to_string())?;
    }
    let client = config(client);
    let config = EffectiveConfig::topic(&client, &raw).map_err(|error| error.to_string())?;
    Ok(Linger::of_topic(&config))
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn old_linger_name_alone_sets_a_partition_timer_and_warns_once() {
    for name in ["linger.ms", "queue.buffering.max.ms"] {
        assert_eq!(settings(&[(name, "20")]).linger, Linger::Partition(ms(20)));
        let said = warnings(&[(name, "20")]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with(&format!("`{name}` is deprecated")) && said[0].contains("`broker.linger.ms`")
        );
    }
}

#[test]
fn beside_the_brokers_linger_the_old_one_has_no_effect_and_one_warning() {
    for name in ["linger.ms", "queue.buffering.max.ms"] {
        for (value, linger) in [("7", Linger::Broker(ms(7))), ("auto", Linger::Auto)] {
            let properties = [(name, "20"), ("broker.linger.ms", value)];
            assert_eq!(settings(&properties).linger, linger);
            let expected = format!("`{name}` has no effect, because `broker.linger.ms` is set too");
            assert_eq!(warnings(&properties), [expected]);
        }
    }
}

#[test]
fn of_two_names_for_the_same_the_last_one_counts_with_one_warning() {
    let properties = [("queue.buffering.max.ms", "20"), ("linger.ms", "30")];
    assert_eq!(settings(&properties).linger, Linger::Partition(ms(30)));
    assert_eq!(warnings(&properties).len(), 1);
    assert!(warnings(&properties)[0].starts_with("`linger.ms` is deprecated"));
    let properties = [("broker.batch.max.partitions", "5"), ("produce.request.max.partitions", "9")];
    assert_eq!(settings(&properties).max_partitions, Some(9));
    assert!(warnings(&properties).is_empty());
}

#[test]
fn explicit_default_of_an_old_linger_is_warned_of() {
    assert_eq!(settings(&[("linger.ms", "5")]).linger, Linger::Partition(ms(5)));
    assert_eq!(settings(&[("linger.ms", "5"), ("broker.linger.ms", "5")]).linger, Linger::Broker(ms(5)));
}

#[test]
fn linger_accepts_fractions_and_partition_limits_do_not() {
    assert_eq!(settings(&[("broker.linger.ms", "0.25")]).linger, Linger::Broker(Duration::from_micros(250)));
    assert_eq!(settings(&[("broker.linger.ms", "0")]).linger, Linger::Broker(Duration::ZERO));
    assert_eq!(settings(&[("broker.linger.ms", "0.0000001")]).linger, Linger::Broker(Duration::ZERO));
    for name in ["broker.batch.max.partitions", "produce.request.max.partitions", "broker.batch.max.bytes"] {
        let said = refusal(&[(name, "1.5")]);
        assert!(said.starts_with(&format!("`{name}` is \"1.5\", but must be")), "{said}");
    }
}

#[test]
fn invalid_linger_values_are_refused_with_the_valid_range() {
    for name in ["broker.linger.ms", "linger.ms", "queue.buffering.max.ms"] {
        for value in
            ["-1", "-0.001", "900000.5", "1e300", "1e999", "99999999999999999999", "inf", "NaN", "-inf"]
        {
            let said = refusal(&[(name, value)]);
            assert!(
                said.starts_with(&format!("`{name}` is ")) && said.contains("0 .. 900000"),
                "{value}: {said}"
            );
        }
        for value in ["", "5ms", "5,5", "five", "1 2"] {
            let said = refusal(&[(name, value)]);
            assert!(
                said.starts_with(&format!("`{name}` is ")) && said.contains("must be"),
                "{value}: {said}"
            );
        }
    }
    for name in ["broker.batch.max.partitions", "broker.batch.max.bytes"] {
        for value in ["-2", "1000000001", "99999999999999999999", "1e3", "auto"] {
            let said = refusal(&[(name, value)]);
            assert!(
                said.starts_with(&format!("`{name}` is ")) && said.contains("must be"),
                "{value}: {said}"
            );
        }
        let none = [(name, "0")];
        assert!(settings(&none).max_partitions.is_none() && settings(&none).max_bytes.is_none());
    }
    assert!(
        refusal(&[("linger.ms", "auto")]).contains("`linger.ms`"),
        "only the broker's linger tunes itself"
    );
}

#[test]
fn a_linger_that_outlives_its_messages_is_refused_with_both_names() {
    for name in ["broker.linger.ms", "linger.ms", "queue.buffering.max.ms"] {
        for timeout in ["message.timeout.ms", "delivery.timeout.ms"] {
            let said = refusal(&[(name, "2000"), (timeout, "2000")]);
            assert!(
                said.contains(&format!("`{name}` (2000)")) && said.contains(&format!("`{timeout}` (2000)")),
                "{said}"
            );
            settings(&[(name, "1999.5"), (timeout, "2000")]);
        }
    }
    assert_eq!(settings(&[("broker.linger.ms", "auto"), ("message.timeout.ms", "1")]).linger, Linger::Auto);
    assert_eq!(settings(&[("message.timeout.ms", "1")]).linger, Linger::Broker(Duration::from_micros(500)));
}

#[test]
fn cap_beside_auto_is_kept_and_warned_of() {
    for name in ["broker.batch.max.partitions", "produce.request.max.partitions", "broker.batch.max.bytes"] {
        let said = warnings(&[("broker.linger.ms", "auto"), (name, "100000")]);
        assert_eq!(said, [format!("`{name}` stays a hard limit beside `broker.linger.ms=auto`")]);
        assert!(warnings(&[("broker.linger.ms", "auto"), (name, "-1")]).is_empty());
    }
}

#[test]
fn useless_cap_warns_with_both_property_names() {
    let said = warnings(&[("broker.batch.max.bytes", "10")]);
    assert!(
        said[0].contains("`broker.batch.max.bytes` (10)") && said[0].contains("`batch.size`"),
        "{said:?}"
    );
    let said = warnings(&[("broker.batch.max.bytes", "40000000"), ("buffer.memory", "33554432")]);
    assert_eq!(
        said,
        [
            "`broker.batch.max.bytes` (40000000) is never reached, because `buffer.memory` (33554432 bytes) is less"
        ]
    );
}

#[test]
fn a_topic_may_have_a_linger_of_its_own_within_its_messages_time() {
    assert_eq!(topic(&[], &[]).unwrap(), None);
    assert_eq!(topic(&[], &[("broker.linger.ms", "0.5")]).unwrap(), Some(Duration::from_micros(500)));
    assert_eq!(topic(&[("linger.ms", "20")], &[("broker.linger.ms", "5")]).unwrap(), Some(ms(5)));
    let said = topic(&[("delivery.timeout.ms", "1000")], &[("broker.linger.ms", "1000")]).unwrap_err();
    assert!(
        said.contains("`broker.linger.ms` (1000)") && said.contains("`delivery.timeout.ms` (1000)"),
        "{said}"
    );
    let own = [("broker.linger.ms", "1000"), ("message.timeout.ms", "500")];
    assert!(topic(&[], &own).unwrap_err().contains("`message.timeout.ms` (500)"));
    let said = topic(&[("broker.linger.ms", "auto")], &[("broker.linger.ms", "5")]).unwrap_err();
    assert!(said.contains("(5)") && said.contains("`broker.linger.ms=auto`"), "{said}");
    assert!(topic(&[], &[("broker.linger.ms", "-1")]).unwrap_err().contains("0 .. 900000"));
    assert!(topic(&[], &[("broker.linger.ms", "auto")]).unwrap_err().contains("`broker.linger.ms`"));
}

#[test]
fn strict_configuration_turns_warnings_into_errors() {
    let said = refusal(&[("linger.ms", "5"), ("config.strict", "true")]);
    assert!(said.contains("`linger.ms`") && said.contains("`config.strict`"), "{said}");
}
