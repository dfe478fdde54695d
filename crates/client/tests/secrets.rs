//! Passwords, keys and tokens are in no output of a client. In a process of its own, because it replaces the logger and the
//! panic hook.
//!
//! Producer and consumer run with TLS, client certificates and SASL at `debug=all`, with right and with wrong credentials;
//! everything that they log, report and print is searched for the secrets.

use std::{
    fmt::Debug,
    io::{Read, Write},
    net::TcpListener,
    panic,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use log::kv::{Error, Key, Value, VisitSource};
use ottla::{Admin, Config, Consumer, Offset, Producer, Record};
use ottla_embedded_broker::{
    ClusterOptions, EmbeddedCluster, SaslListener, SaslMechanism, ScramHash, TestAuthority,
};

const SECONDS: Duration = Duration::from_secs(20);
const PASSWORD: &str = "correct-horse-battery";
const WRONG_PASSWORD: &str = "incorrect-horse-battery";
const TOKEN_NAME: &str = "token-of-nobody-else";
/// A token without a signature: {"alg":"none"}.{"sub":"alice","exp":4102444800}.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6NDEwMjQ0NDgwMH0.";

/// All output of the process.
static OUTPUT: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn keep(text: impl Into<String>) {
    OUTPUT.lock().unwrap().push(text.into());
}

fn show(value: &impl Debug) {
    keep(format!("{value:?} {value:#?}"));
}

struct Keeper;

struct Fields<'a>(&'a mut String);

impl<'kvs> VisitSource<'kvs> for Fields<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        self.0.push_str(&format!(" {key}={value}"));
        Ok(())
    }
}

impl log::Log for Keeper {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut line = format!("{} {}", record.target(), record.args());
        record.key_values().visit(&mut Fields(&mut line)).unwrap();
        keep(line);
    }

    fn flush(&self) {}
}

/// The text of a key without its first and last line.
fn key_body(pem: &str) -> String {
    pem.lines().nth(1).unwrap().to_owned()
}

/// Produces a record and consumes it, and shows everything that can be printed. Error: the client does not connect.
fn run(config: &Config) -> Result<(), ()> {
    show(config);
    let producer = Producer::builder(config)
        .on_statistics(|statistics| keep(format!("{statistics:?} {}", statistics.to_json())))
        .build()
        .inspect_err(|error| keep(format!("{error} {error:?}")))
        .map_err(drop)?;
    let sent = producer.deliver("orders", Record::new().value("1").partition(0), Duration::from_secs(4));
    show(&sent);
    show(&producer);
    keep(producer.warnings().join(" "));
    while let Some(event) = producer.poll_event() {
        keep(format!("{event:?}"));
    }
    let consumer = Consumer::new(config).map_err(drop)?;
    let admin = Admin::new(config).map_err(drop)?;
    if sent.is_ok() {
        consumer.assign(&[("orders", 0, Offset::Beginning)]).unwrap();
        let until = Instant::now() + SECONDS;
        while consumer.poll(Duration::from_secs(1)).unwrap().is_empty() {
            assert!(Instant::now() < until, "no record came");
        }
        show(&admin.describe_cluster(SECONDS).map_err(|error| error.to_string()));
        producer.set_sasl_credentials("alice", WRONG_PASSWORD.into()).unwrap();
    }
    show(&consumer);
    show(&admin);
    show(&producer.statistics());
    let failed = producer.close(SECONDS);
    keep(format!("{failed:?}"));
    sent.map(drop).map_err(drop)
}

#[test]
fn no_output_contains_a_secret() {
    log::set_logger(&Keeper).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    panic::set_hook(Box::new(|info| {
        if !info.to_string().contains("on purpose") {
            eprintln!("{info}");
        }
        keep(format!("{info} {}", std::backtrace::Backtrace::force_capture()));
    }));
    let authority = TestAuthority::new("CA").unwrap();
    let client = authority.issue("client", &[]).unwrap();
    let mechanisms =
        [SaslMechanism::Plain, SaslMechanism::Scram(ScramHash::Sha512), SaslMechanism::OauthBearerUnsecured];
    let cluster = EmbeddedCluster::start(ClusterOptions {
        tls: Some(authority.listener(&["127.0.0.1"], true).unwrap()),
        sasl: Some(SaslListener::new(&mechanisms).user("alice", PASSWORD)),
        ..ClusterOptions::default()
    })
    .unwrap();
    let config = |properties: &[(&str, &str)]| {
        let mut config = Config::from_properties([
            ("bootstrap.servers", &*cluster.bootstrap_servers()),
            ("debug", "all"),
            ("security.protocol", "sasl_ssl"),
            ("ssl.ca.pem", authority.pem()),
            ("ssl.certificate.pem", &client.pem),
            ("ssl.key.pem", &client.key_pem),
            ("ssl.key.password", PASSWORD),
            ("statistics.interval.ms", "100"),
            ("message.timeout.ms", "3000"),
        ])
        .unwrap();
        for (name, value) in properties {
            config.set(name, value).unwrap();
        }
        config
    };
    let user = |mechanism, password| {
        config(&[("sasl.mechanisms", mechanism), ("sasl.username", "alice"), ("sasl.password", password)])
    };
    for mechanism in ["PLAIN", "SCRAM-SHA-512"] {
        run(&user(mechanism, PASSWORD)).unwrap();
        run(&user(mechanism, WRONG_PASSWORD)).unwrap_err();
    }
    let jaas = format!(
        "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"alice\" password=\"{PASSWORD}\";"
    );
    run(&config(&[("sasl.mechanism", "PLAIN"), ("sasl.jaas.config", &jaas)])).unwrap();
    let token = format!("principal={TOKEN_NAME}");
    let unsecured = [
        ("sasl.mechanisms", "OAUTHBEARER"),
        ("enable.sasl.oauthbearer.unsecure.jwt", "true"),
        ("sasl.oauthbearer.config", &*token),
    ];
    run(&config(&unsecured)).unwrap();
    with_an_identity_provider(&config);
    let keys = [
        ("sasl.mechanisms", "AWS_MSK_IAM"),
        ("sasl.aws.access.key.id", "AKIDEXAMPLE"),
        ("sasl.aws.secret.access.key", PASSWORD),
        ("sasl.aws.session.token", WRONG_PASSWORD),
        ("sasl.aws.region", "eu-central-1"),
    ];
    run(&config(&keys)).unwrap_err();
    wrong_configurations(config, &client.key_pem);
    a_callback_panics(&user("PLAIN", PASSWORD));

    let output = std::mem::take(&mut *OUTPUT.lock().unwrap());
    let has = |part: &str| output.iter().any(|text| text.contains(part));
    for part in ["SaslAuthenticate", "ottla::", "\"rxbytes\"", "authentication failed", "on purpose"] {
        assert!(has(part), "the output has no {part:?}, so that the test shows nothing");
    }
    let broker_keys = key_body(&client.key_pem);
    // The header `Authorization` of the identity provider's client.
    let basic = "bWU6Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5";
    for secret in [PASSWORD, WRONG_PASSWORD, &broker_keys, "correct-horse", TOKEN, basic] {
        if let Some(text) = output.iter().find(|text| text.contains(secret)) {
            panic!("{secret} is in: {}", text.chars().take(2000).collect::<String>());
        }
    }
}

/// Starts a token endpoint. It issues a token, or repeats the request in its refusal.
fn identity_provider(issues: bool) -> String {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/token", server.local_addr().unwrap());
    thread::spawn(move || {
        for mut socket in server.incoming().flatten() {
            let (mut request, mut part) = (Vec::new(), [0; 4096]);
            while !request.ends_with(b"scope=x") {
                match socket.read(&mut part) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => request.extend_from_slice(&part[..count]),
                }
            }
            let echo = String::from_utf8_lossy(&request).replace(['\r', '\n', '"'], " ");
            let (status, body) = match issues {
                true => ("200 OK", format!("{{\"access_token\":\"{TOKEN}\"}}")),
                false => ("401 No", format!("{{\"error\":\"no\",\"error_description\":\"{echo}\"}}")),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = socket.write_all((head + &body).as_bytes());
        }
    });
    url
}

/// Tokens that the library gets with a client's secret.
fn with_an_identity_provider(config: &impl Fn(&[(&str, &str)]) -> Config) {
    for issues in [true, false] {
        let url = identity_provider(issues);
        let properties = [
            ("sasl.mechanisms", "OAUTHBEARER"),
            ("sasl.oauthbearer.method", "oidc"),
            ("sasl.oauthbearer.client.id", "me"),
            ("sasl.oauthbearer.client.secret", PASSWORD),
            ("sasl.oauthbearer.scope", "x"),
            ("sasl.oauthbearer.token.endpoint.url", &url),
        ];
        assert_eq!(run(&config(&properties)).is_ok(), issues);
    }
}

/// Configurations that are refused, with secrets in their values.
fn wrong_configurations(config: impl Fn(&[(&str, &str)]) -> Config, key: &str) {
    let refused = [
        vec![("sasl.mechanisms", "PLAIN"), ("sasl.jaas.config", "what is this correct-horse?")],
        vec![("sasl.mechanisms", "PLAIN"), ("sasl.username", "alice")],
        vec![
            ("sasl.mechanisms", "OAUTHBEARER"),
            ("enable.sasl.oauthbearer.unsecure.jwt", "true"),
            ("sasl.oauthbearer.config", "principal=a lifeSeconds=0 extension_secret=correct-horse-battery"),
        ],
        vec![
            ("sasl.mechanisms", "PLAIN"),
            ("sasl.username", "a"),
            ("sasl.password", PASSWORD),
            ("ssl.key.pem", "correct-horse"),
        ],
    ];
    for properties in refused {
        let error = Producer::new(&config(&properties)).map(drop).unwrap_err();
        keep(format!("{error} {error:?}"));
    }
    let mut other = Config::new();
    let lines = key.replace('\n', "\n  ");
    for text in [
        format!("sasl.passwort {PASSWORD}"),
        format!("password\n{PASSWORD}"),
        format!("ssl.key.pem={lines}"),
        PASSWORD.to_owned(),
    ] {
        let error = other.load("client.properties", &text).map(drop).unwrap_err();
        keep(format!("{error} {error:?}"));
    }
}

/// A callback that panics: the panic's text and its backtrace are output, too.
fn a_callback_panics(config: &Config) {
    let config = Arc::new(config.clone());
    let held = Arc::clone(&config);
    let producer = Producer::builder(&config)
        .on_delivery(move |reports| {
            let _ = &held;
            panic!("on purpose: {:?}", reports.status());
        })
        .build()
        .unwrap();
    producer.topic("orders").send(Record::new().value("1")).unwrap();
    let until = Instant::now() + SECONDS;
    while !OUTPUT.lock().unwrap().iter().any(|text| text.contains("on purpose")) {
        assert!(Instant::now() < until, "the callback was not called");
        thread::sleep(Duration::from_millis(10));
    }
    drop(producer);
}
