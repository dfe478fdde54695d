//! Tests with servers that are not registries, or broken ones.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::{
    http::{Answer, Request},
    *,
};
use crate::{Error, Fault, Reference, wire::SchemaId};

/// A server that gives each request the answer that a function returns for its head, and notes the requests.
struct Scripted {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

fn scripted(answer: impl Fn(&str) -> String + Send + 'static) -> Scripted {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut bytes = vec![0; 65_536];
            let mut read = 0;
            while !bytes[..read].windows(4).any(|it| it == b"\r\n\r\n") {
                match stream.read(&mut bytes[read..]) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => read += count,
                }
            }
            let request = String::from_utf8_lossy(&bytes[..read]).into_owned();
            let response = answer(&request);
            noted.lock().unwrap().push(request);
            let _ = stream.write_all(response.as_bytes());
        }
    });
    Scripted { url, requests }
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}", body.len())
}

fn client(url: &str) -> Client {
    let mut config = Config::new(url);
    config.retries = 0;
    config.backoff = Duration::ZERO;
    config.request_timeout = Duration::from_secs(5);
    Client::new(config).unwrap()
}

#[test]
fn html_is_not_an_answer() {
    for (status, fault) in [("200 OK", Fault::Registry), ("404 Not Found", Fault::Registry)] {
        let page = "<html><head><title>Sign in</title></head></html>";
        let server = scripted(move |_| response(status, "Content-Type: text/html\r\n", page));
        let error = client(&server.url).schema_by_id(1).unwrap_err();
        assert_eq!(error.fault(), fault, "{error}");
        assert!(matches!(error, Error::Answer { .. }), "{error:?}");
        assert!(error.to_string().contains("an HTML page \"Sign in\""), "{error}");
    }
}

#[test]
fn redirect_to_another_host_is_not_followed() {
    let target = scripted(|_| response("200 OK", "", "[]"));
    let to = format!("Location: {}/subjects?secret=1\r\n", target.url);
    let server = scripted(move |_| response("302 Found", &to, ""));
    let error = client(&server.url).subjects("", Deleted::Without).unwrap_err().to_string();
    assert!(error.contains("it redirects to http://127.0.0.1:"), "{error}");
    assert!(error.contains("another host") && !error.contains("secret"), "{error}");
    assert!(target.requests.lock().unwrap().is_empty());
}

#[test]
fn redirect_within_the_host_is_followed_a_few_times() {
    let server = scripted(|request| match request.starts_with("GET /subjects") {
        true => response("308 Permanent Redirect", "Location: /api/subjects\r\n", ""),
        false => response("200 OK", "", "[\"a\"]"),
    });
    assert_eq!(client(&server.url).subjects("", Deleted::Without).unwrap(), ["a"]);
    let endless = scripted(|_| response("301 Moved Permanently", "Location: /subjects\r\n", ""));
    let error = client(&endless.url).subjects("", Deleted::Without).unwrap_err().to_string();
    assert!(error.contains("redirects again and again"), "{error}");
    assert_eq!(endless.requests.lock().unwrap().len(), 4);
}

#[test]
fn registry_that_hangs_meets_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = Config::new(&format!("http://{}", listener.local_addr().unwrap()));
    config.request_timeout = Duration::from_millis(50);
    config.timeout = Duration::from_millis(200);
    config.retries = 1000;
    config.backoff = Duration::from_millis(1);
    let error = Client::new(config).unwrap().schema_by_id(1).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("no complete answer within"), "{error}");
}

#[test]
fn answer_with_another_schema_is_refused() {
    let server = scripted(|_| response("200 OK", "", r#"{"schema": "\"int\"", "id": 8}"#));
    let error = client(&server.url).schema_by_id(7).unwrap_err().to_string();
    assert!(error.contains("it is the schema of another ID"), "{error}");
    let server = scripted(|request| match request.starts_with("POST") {
        true => response("200 OK", "", r#"{"id": 1}"#),
        false => response("200 OK", "", r#"{"schema": "syntax = \"proto3\";", "schemaType": "PROTOBUF"}"#),
    });
    let client = client(&server.url);
    client.schema_by_id(1).unwrap();
    let error = client.register("s", &Schema::avro("\"int\""), false).unwrap_err().to_string();
    assert!(error.contains("the ID 1 is that of another schema, in PROTOBUF"), "{error}");
}

#[test]
fn cyclic_references_are_refused() {
    let server = scripted(|request| {
        let (subject, other) = if request.contains("/subjects/a/") { ("a", "b") } else { ("b", "a") };
        let body = format!(
            r#"{{"subject": "{subject}", "version": 1, "id": 1, "schema": "\"int\"",
                "references": [{{"name": "n", "subject": "{other}", "version": 1}}]}}"#
        );
        response("200 OK", "", &body)
    });
    let schema = Schema::avro("\"int\"").with_reference(Reference::new("n", "a", 1));
    let error = client(&server.url).references(&schema).unwrap_err();
    assert_eq!(error.fault(), Fault::Application);
    assert!(error.to_string().contains("its references are cyclic: a 1, b 1 refers to a 1"), "{error}");
}

#[test]
fn schema_and_answer_beyond_the_limits_are_refused() {
    let error =
        client("http://127.0.0.1:1").register("s", &Schema::avro("x".repeat(10 << 20)), false).unwrap_err();
    assert_eq!(error.fault(), Fault::Application);
    let server =
        scripted(|_| response("200 OK", "", &format!(r#"{{"schema": "{}"}}"#, "x".repeat(10 << 20))));
    let error = client(&server.url).schema_by_id(1).unwrap_err();
    assert_eq!(error.fault(), Fault::Registry);
    assert!(error.to_string().contains("10485760 bytes"), "{error}");
    let server = scripted(|_| response("200 OK", "", &" ".repeat(17 << 20)));
    let error = client(&server.url).schema_by_id(1).unwrap_err().to_string();
    assert!(error.contains("more than 16777216 bytes"), "{error}");
}

#[test]
fn credentials_are_sent_and_never_shown() {
    let server =
        scripted(|_| response("401 Unauthorized", "", r#"{"error_code": 401, "message": "Unauthorized"}"#));
    let url = server.url.replace("http://", "http://alice:secret@");
    let error = client(&url).subjects("", Deleted::Without).unwrap_err().to_string();
    assert!(error.contains("check the user, password or token") && !error.contains("secret"), "{error}");
    let requests = server.requests.lock().unwrap();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].to_lowercase().contains("authorization: basic ywxpy2u6c2vjcmv0"), "{}", requests[0]);
}

#[test]
fn token_of_an_identity_provider_is_kept_and_renewed() {
    let provider = scripted(|_| response("200 OK", "", r#"{"access_token": "t1", "expires_in": 3600}"#));
    let server = scripted(|request| match request.to_lowercase().contains("authorization: bearer t1") {
        true => response("200 OK", "", "[]"),
        false => response("401 Unauthorized", "", ""),
    });
    let oauth = OAuth {
        token_endpoint: format!("{}/token", provider.url),
        client_id: "id".to_owned(),
        client_secret: "hidden".into(),
        scope: Some("a b".to_owned()),
        logical_cluster: Some("lsrc-1".to_owned()),
        identity_pool: None,
    };
    let client = Client::new(Config::new(&server.url).with_auth(Auth::OAuth(oauth.clone()))).unwrap();
    for _ in 0..3 {
        client.subjects("", Deleted::Without).unwrap();
    }
    assert_eq!(provider.requests.lock().unwrap().len(), 1);
    assert!(server.requests.lock().unwrap()[0].contains("target-sr-cluster: lsrc-1"));
    // A token that the registry does not accept is fetched once more.
    let refuses = scripted(|_| response("401 Unauthorized", "", r#"{"message": "expired"}"#));
    let client = Client::new(Config::new(&refuses.url).with_auth(Auth::OAuth(oauth))).unwrap();
    assert_eq!(client.subjects("", Deleted::Without).unwrap_err().fault(), Fault::Application);
    assert_eq!(refuses.requests.lock().unwrap().len(), 2);
}

#[test]
fn provider_without_a_token_is_named() {
    let provider = scripted(|_| response("400 Bad Request", "", r#"{"error": "invalid_client"}"#));
    let oauth = OAuth { token_endpoint: provider.url.clone(), ..OAuth::default() };
    let client = Client::new(Config::new("http://127.0.0.1:1").with_auth(Auth::OAuth(oauth))).unwrap();
    let error = client.subjects("", Deleted::Without).unwrap_err().to_string();
    assert!(error.contains("gave no token") && error.contains("invalid_client"), "{error}");
}

#[test]
fn failing_registry_is_asked_again() {
    let count = Arc::new(Mutex::new(0));
    let server = scripted(move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        match *count {
            1 => response("503 Service Unavailable", "", ""),
            _ => response("200 OK", "", "[]"),
        }
    });
    let mut config = Config::new(&server.url);
    config.backoff = Duration::ZERO;
    let client = Client::new(config).unwrap();
    client.subjects("", Deleted::Without).unwrap();
    assert_eq!(server.requests.lock().unwrap().len(), 2);
    assert!(client.schema(SchemaId::Id(1)).is_err());
}

/// A registry that is overloaded, and a clock that only pauses move.
#[derive(Debug)]
struct Overloaded {
    began: Instant,
    pauses: Arc<Mutex<Vec<Duration>>>,
}

impl Exchange for Overloaded {
    fn exchange(&self, _: &Request) -> Result<Answer, String> {
        Ok(Answer { status: 503, content_type: String::new(), location: None, body: Vec::new() })
    }

    fn now(&self) -> Instant {
        self.began + self.pauses.lock().unwrap().iter().sum::<Duration>()
    }

    fn pause(&self, time: Duration) {
        self.pauses.lock().unwrap().push(time);
    }
}

#[test]
fn call_is_repeated_with_growing_pauses_until_its_deadline() {
    let pauses = Arc::<Mutex<Vec<Duration>>>::default();
    let overloaded = Overloaded { began: Instant::now(), pauses: Arc::clone(&pauses) };
    let mut config = Config::new("http://registry");
    config.retries = u32::MAX;
    let (backoff, timeout) = (config.backoff, config.timeout);
    let error =
        Client::over(config, Box::new(overloaded)).unwrap().subjects("", Deleted::Without).unwrap_err();
    assert!(matches!(error, Error::Refused { status: 503, .. }), "{error}");
    let pauses = pauses.lock().unwrap();
    assert_eq!(pauses[..3], [backoff, 2 * backoff, 4 * backoff]);
    assert!(pauses.iter().sum::<Duration>() < timeout && pauses.len() > 5, "{pauses:?}");
}
