//! Typical files of properties of the Java clients, and the configurations that result.

use std::time::Duration;

use ottla_core::{
    config::{
        EffectiveConfig, Profile, RawConfig,
        sasl::{kerberos::Login, mechanism::Mechanism, oidc::Grant},
    },
    produce::{partitioner::Partitioner, settings::ProducerSettings},
    sasl::settings::SaslSettings,
    secret::Secret,
};

fn load(name: &str, text: &str) -> RawConfig {
    let mut raw = RawConfig::new(Profile::Rust);
    raw.load(name, text).unwrap_or_else(|error| panic!("{error}"));
    raw
}

/// Loads a file of this folder.
macro_rules! file {
    ($name:literal) => {
        load($name, include_str!(concat!("java_files/", $name, ".properties")))
    };
}

fn producer(raw: &RawConfig) -> EffectiveConfig<'_> {
    EffectiveConfig::producer(raw).unwrap_or_else(|error| panic!("{error}"))
}

fn consumer(raw: &RawConfig) -> EffectiveConfig<'_> {
    EffectiveConfig::consumer(raw).unwrap_or_else(|error| panic!("{error}"))
}

fn sasl(config: &EffectiveConfig<'_>) -> SaslSettings {
    SaslSettings::new(config).expect("the protocol has SASL")
}

/// Checks the values of properties.
fn check(config: &EffectiveConfig<'_>, expected: &[(&'static str, &str)]) {
    for (name, value) in expected {
        assert_eq!(config.text(name), *value, "{name}");
    }
}

#[test]
fn amazon_msk_with_iam() {
    let raw = file!("msk_iam");
    let config = consumer(&raw);
    assert_eq!(config.warnings(), &[] as &[String]);
    assert_eq!(config.servers().len(), 2);
    let sasl = sasl(&config);
    assert_eq!(sasl.mechanism, Mechanism::AwsMskIam);
    assert_eq!(sasl.aws.and_then(|aws| aws.profile).as_deref(), Some("orders"));
}

#[test]
fn amazon_msk_with_scram() {
    let raw = file!("msk_scram");
    let config = producer(&raw);
    assert_eq!(config.warnings(), &[] as &[String]);
    let sasl = sasl(&config);
    assert_eq!(sasl.mechanism.name(), "SCRAM-SHA-512");
    assert_eq!(sasl.credentials.username, "alice");
    assert_eq!(sasl.credentials.password, Secret::from("alice's \"secret\""));
    check(&config, &[("ssl.truststore.location", "/tmp/kafka.client.truststore.jks")]);
}

#[test]
fn confluent_cloud_with_plain() {
    let raw = file!("confluent_plain");
    let config = producer(&raw);
    let belongs = "`session.timeout.ms` belongs to a consumer and has no effect on a producer";
    assert_eq!(config.warnings(), [belongs]);
    let sasl = sasl(&config);
    assert_eq!((sasl.mechanism, &*sasl.credentials.username), (Mechanism::Plain, "ABCDEFGHIJKLMNOP"));
    assert_eq!(sasl.credentials.password, Secret::from("abc/+def=="));
    check(
        &config,
        &[("acks", "-1"), ("client.id", "ccloud-java-client-5e6f"), ("security.protocol", "sasl_ssl")],
    );
}

#[test]
fn confluent_cloud_with_tokens() {
    let raw = file!("confluent_oauth");
    let config = producer(&raw);
    assert_eq!(config.warnings(), &[] as &[String]);
    let oidc = sasl(&config).oidc.expect("tokens come from the identity provider");
    assert_eq!(oidc.scope, "api://kafka/.default");
    assert_eq!(oidc.connect_timeout, Duration::from_secs(15));
    let extensions = [("logicalCluster", "lkc-a1b2c3"), ("identityPoolId", "pool-d4e5")];
    assert_eq!(oidc.extensions, extensions.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let Grant::ClientCredentials { id, secret, .. } = oidc.grant else { panic!("{:?}", oidc.grant) };
    assert_eq!((&*id, secret), ("orders", Secret::from("s3cr3t")));
}

#[test]
fn azure_event_hubs() {
    let raw = file!("event_hubs");
    let config = consumer(&raw);
    assert_eq!(config.warnings(), &[] as &[String]);
    let sasl = sasl(&config);
    assert_eq!(sasl.credentials.username, "$ConnectionString");
    let password = "Endpoint=sb://orders.servicebus.windows.net/;SharedAccessKeyName=RootManageSharedAccessKey;\
                    SharedAccessKey=AbC+/dEf=";
    assert_eq!(sasl.credentials.password, Secret::from(password));
    check(
        &config,
        &[
            ("bootstrap.servers", "orders.servicebus.windows.net:9093"),
            ("socket.timeout.ms", "60000"),
            ("topic.metadata.refresh.interval.ms", "180000"),
            ("connections.max.idle.ms", "180000"),
        ],
    );
}

#[test]
fn strimzi_with_certificates_as_pem() {
    let raw = file!("strimzi_pem");
    let config = consumer(&raw);
    assert_eq!(config.warnings(), &[] as &[String]);
    check(
        &config,
        &[
            (
                "ssl.ca.pem",
                "-----BEGIN CERTIFICATE----- MIIBszCCAVmgAwIBAgIUQ2x1c3RlckNB AAECAwQFBgcICQoLDA0ODw== -----END CERTIFICATE-----",
            ),
            (
                "ssl.certificate.pem",
                "-----BEGIN CERTIFICATE-----\nMIIBtDCCAVmgAwIBAgIU\n-----END CERTIFICATE-----\n",
            ),
            ("ssl.key.pem", "-----BEGIN PRIVATE KEY-----MIGHAgEAMBMGByqGSM49-----END PRIVATE KEY-----"),
            ("ssl.endpoint.identification.algorithm", "https"),
            ("auto.offset.reset", "earliest"),
            ("enable.auto.commit", "false"),
        ],
    );
}

#[test]
fn strimzi_with_pkcs12_stores() {
    let raw = file!("strimzi_pkcs12");
    let config = producer(&raw);
    assert_eq!(config.warnings(), &[] as &[String]);
    check(
        &config,
        &[
            ("ssl.truststore.location", "/opt/kafka/cluster-ca/ca.p12"),
            ("ssl.truststore.password", "pAssw0rdé=1"),
            ("ssl.keystore.location", "/opt/kafka/user/user.p12"),
            ("ssl.keystore.password", "user p12"),
            ("ssl.endpoint.identification.algorithm", "none"),
            ("ssl.enabled.protocols", "TLSv1.2,TLSv1.1,TLSv1"),
        ],
    );
}

#[test]
fn kerberos_with_a_key_table() {
    let raw = file!("kerberos");
    let config = consumer(&raw);
    assert_eq!(config.warnings(), &[] as &[String]);
    let kerberos = sasl(&config).kerberos.expect("the mechanism is Kerberos");
    assert_eq!(kerberos.login, Login::KeyTable("/etc/security/keytabs/orders.keytab".to_owned()));
    assert_eq!((&*kerberos.principal, &*kerberos.service), ("orders/host.example.com@EXAMPLE.COM", "kafka"));
}

#[test]
fn java_key_stores() {
    let raw = file!("jks_trust_store");
    let config = EffectiveConfig::admin(&raw).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.warnings(), &[] as &[String]);
    assert_eq!(config.servers().len(), 2);
    check(
        &config,
        &[
            ("ssl.truststore.location", "/var/private/ssl/kafka.client.truststore.jks"),
            ("ssl.truststore.password", "test1234"),
            ("ssl.keystore.location", "/var/private/ssl/kafka.client.keystore.jks"),
            ("ssl.key.password", "test1234"),
        ],
    );
}

#[test]
fn producer_with_all_usual_properties_of_performance() {
    let raw = file!("fast_producer");
    let config = producer(&raw);
    assert!(config.warnings().len() == 1 && config.warnings()[0].starts_with("`linger.ms` is deprecated"));
    check(
        &config,
        &[
            ("acks", "-1"),
            ("retries", "2147483647"),
            ("batch.size", "131072"),
            ("queue.buffering.max.ms", "20"),
            ("queue.buffering.max.kbytes", "65536"),
            ("compression.codec", "lz4"),
            ("max.in.flight.requests.per.connection", "5"),
            ("max.request.size", "5242880"),
            ("message.timeout.ms", "120000"),
            ("socket.send.buffer.bytes", "0"),
            ("enable.idempotence", "true"),
        ],
    );
    let settings = ProducerSettings::new(&config);
    assert!(
        matches!(*settings.topic.partitioner, Partitioner::RoundRobin(_)),
        "{:?}",
        settings.topic.partitioner
    );
}
