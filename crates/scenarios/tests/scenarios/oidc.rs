//! Tokens that clients get from an identity provider: refresh, failures, and closing while the provider hangs.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ottla::{Config, Event, Producer, Record};
use ottla_embedded_broker::EmbeddedCluster;
use ottla_scenarios::TIMEOUT;

use crate::sasl::{authentication_error, cluster, config, listener, token, unix_ms};

/// Starts a token endpoint. Returns its URL, and the number of its requests.
fn idp(answer: impl Fn(usize, &mut TcpStream) + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/token", server.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for mut socket in server.incoming().flatten() {
            let (mut request, mut part) = (Vec::new(), [0; 4096]);
            while !request.ends_with(b"grant_type=client_credentials") {
                match socket.read(&mut part) {
                    Ok(0) | Err(_) => break,
                    Ok(bytes) => request.extend_from_slice(&part[..bytes]),
                }
            }
            answer(counted.fetch_add(1, Ordering::SeqCst), &mut socket);
        }
    });
    (url, count)
}

fn issue(socket: &mut TcpStream, life: Duration) {
    let token = token(unix_ms() + life.as_millis() as i64);
    let body = format!("{{\"access_token\":\"{}\"}}", String::from_utf8_lossy(token.value.expose()));
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = socket.write_all((head + &body).as_bytes());
}

fn client(cluster: &EmbeddedCluster, url: &str) -> Config {
    let mut config = config(cluster, "OAUTHBEARER");
    for (name, value) in [
        ("sasl.oauthbearer.method", "oidc"),
        ("sasl.oauthbearer.client.id", "me"),
        ("sasl.oauthbearer.client.secret", "hunter2"),
        ("sasl.oauthbearer.token.endpoint.url", url),
    ] {
        config.set(name, value).unwrap();
    }
    config
}

#[test]
fn tokens_of_an_identity_provider_are_refreshed_while_records_flow() {
    let cluster = cluster(listener());
    let (url, count) = idp(|_, socket| issue(socket, Duration::from_secs(5)));
    let producer = Producer::new(&client(&cluster, &url)).unwrap();
    let (topic, until) = (producer.topic("t"), Instant::now() + TIMEOUT);
    let mut sent = 0u64;
    while count.load(Ordering::SeqCst) < 4 {
        assert!(Instant::now() < until, "{count:?}");
        topic.send_blocking(Record::new().value("x").partition(0), TIMEOUT).unwrap();
        sent += 1;
        thread::sleep(Duration::from_millis(1));
    }
    producer.flush(TIMEOUT).unwrap();
    while let Some(event) = producer.poll_event() {
        assert!(!matches!(event, Event::Error(_)), "{event:?}");
    }
    let written = cluster.control(|control| control.partition("t", 0).map(|state| state.log_end_offset));
    assert_eq!(written, Some(sent as i64));
}

#[test]
fn failing_identity_provider_is_an_event_and_is_asked_again() {
    let cluster = cluster(listener());
    let (url, count) = idp(|number, socket| match number {
        0 => {
            let body = "{\"error\":\"temporarily_unavailable\"}";
            let head = format!("HTTP/1.1 503 Busy\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = socket.write_all((head + body).as_bytes());
        }
        // Closes without a response.
        1 => {}
        _ => issue(socket, Duration::from_secs(600)),
    });
    let producer = Producer::new(&client(&cluster, &url)).unwrap();
    producer.deliver("t", Record::new().value("x"), TIMEOUT).unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 3);
    let text = authentication_error(&producer).to_string();
    assert!(text.contains("Failed to acquire") && text.contains(&url) && text.contains("503"), "{text}");
    assert!(text.contains("temporarily_unavailable") && !text.contains("hunter2"), "{text}");
}

#[test]
fn client_closes_while_its_identity_provider_hangs() {
    let cluster = cluster(listener());
    let (url, count) = idp(|_, socket| drop(socket.read(&mut [0])));
    let producer = Producer::new(&client(&cluster, &url)).unwrap();
    let until = Instant::now() + TIMEOUT;
    while count.load(Ordering::SeqCst) == 0 {
        assert!(Instant::now() < until);
        thread::sleep(Duration::from_millis(1));
    }
    let started = Instant::now();
    producer.close(Duration::from_secs(1)).unwrap();
    assert!(started.elapsed() < TIMEOUT / 2, "{:?}", started.elapsed());
}

#[test]
fn function_of_the_application_replaces_the_identity_provider() {
    let cluster = cluster(listener());
    let (url, count) = idp(|_, _| {});
    let provider = || Ok(token(unix_ms() + 600_000));
    let producer = Producer::builder(&client(&cluster, &url)).token_provider(provider).build().unwrap();
    producer.deliver("t", Record::new().value("x"), TIMEOUT).unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[test]
fn unusable_certificates_of_https_are_an_error_at_the_start() {
    let cluster = cluster(listener());
    let mut config = client(&cluster, "https://idp.test/token");
    config.set("https.ca.location", "/no/such.pem").unwrap();
    let error = Producer::new(&config).unwrap_err().to_string();
    assert!(error.contains("https.ca.location") && error.contains("/no/such.pem"), "{error}");
}
