//! The configuration of clients. The first byte chooses what the others are: a file, one value, JAAS, or a small text.

use std::sync::LazyLock;

use ottla_core::{
    cluster::ClusterSettings,
    config::{
        EffectiveConfig, KafkaVersion, Profile, ProxyUrl, RawConfig, ServerAddress, TopicPatterns, is_secret,
        sasl::{jaas::JaasConfig, mechanism::Mechanism, oidc::Endpoint, unsecured::UnsecuredToken},
        table::{self, Property},
    },
    connection::ConnectionSettings,
    produce::settings::ProducerSettings,
    sasl::SaslSettings,
};

use super::bytes::Bytes;

static PROPERTIES: LazyLock<Vec<&'static Property>> = LazyLock::new(|| table::properties().collect());

const MECHANISMS: [&str; 5] = ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI"];

/// The longest error, which quotes values of at most a few hundred bytes; servers and patterns are quoted whole.
const LONGEST_ERROR: usize = 4000;

/// Runs the target.
pub fn run(input: &[u8]) {
    let mut input = Bytes::new(input);
    let mode = input.byte();
    let profile = if mode & 0x80 == 0 { Profile::Rust } else { Profile::Librdkafka };
    match mode % 4 {
        0 => file(profile, &String::from_utf8_lossy(input.rest())),
        1 => values(profile, &mut input),
        2 => {
            let mechanism = Mechanism::parse(MECHANISMS[input.below(MECHANISMS.len())]).expect("it is known");
            let _ = JaasConfig::parse(&String::from_utf8_lossy(input.rest()), mechanism);
        }
        _ => small_text(input.below(6), &String::from_utf8_lossy(input.rest())),
    }
}

/// Reads a file, and a client's settings if it has no error.
fn file(profile: Profile, text: &str) {
    let mut config = RawConfig::new(profile);
    if let Err(error) = config.load("client.properties", text) {
        let shown = error.to_string();
        assert!(shown.contains("client.properties"), "{shown}");
        return;
    }
    settings(&config);
}

/// Sets properties by their numbers.
fn values(profile: Profile, input: &mut Bytes<'_>) {
    let mut config = RawConfig::new(profile);
    while !input.is_empty() {
        let property = PROPERTIES[input.below_many(PROPERTIES.len())];
        let value = String::from_utf8_lossy(input.piece());
        if let Err(error) = config.set(property.name, &value) {
            let shown = error.to_string();
            assert!(shown.contains(property.name), "{}: {shown}", property.name);
            assert!(
                shown.len() < LONGEST_ERROR + 4 * value.len(),
                "{}: {} bytes",
                property.name,
                shown.len()
            );
            let hides =
                is_secret(property.name) && value.len() >= 12 && value.chars().all(char::is_alphanumeric);
            assert!(!hides || !shown.contains(&*value), "{shown}");
        }
    }
    settings(&config);
}

fn settings(config: &RawConfig) {
    let _ = format!("{config:?}");
    let effective = [
        EffectiveConfig::producer(config),
        EffectiveConfig::consumer(config),
        EffectiveConfig::admin(config),
        EffectiveConfig::share_consumer(config),
    ];
    for effective in effective {
        match effective {
            Ok(effective) => {
                drop((effective.servers(), effective.unusable_servers(), effective.warnings().len()));
                drop((ConnectionSettings::new(&effective), ClusterSettings::new(&effective)));
                drop((ProducerSettings::new(&effective), SaslSettings::new(&effective)));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn small_text(which: usize, text: &str) {
    match which {
        0 => {
            for server in ServerAddress::parse_list(text).unwrap_or_default() {
                assert!(!server.host.is_empty(), "{text:?}: {server:?}");
            }
            drop(ServerAddress::parse_usable(text));
        }
        1 => drop(ProxyUrl::parse(text)),
        2 => {
            let (patterns, topic) = text.split_once('\n').unwrap_or((text, "orders"));
            match TopicPatterns::parse(patterns) {
                Ok(patterns) => drop(patterns.matches(topic)),
                Err(error) => drop(error.to_string()),
            }
        }
        3 => drop(KafkaVersion::parse(text)),
        4 => {
            if let Ok(endpoint) = Endpoint::parse(text) {
                drop((endpoint.url(Some("a=b")), endpoint.host().len(), endpoint.is_loopback()));
            }
        }
        _ => drop(UnsecuredToken::parse(text)),
    }
}
