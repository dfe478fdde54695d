//! Exchanges with token endpoints, good and hostile, on sockets of this machine.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use ottla_core::{
    base64::{self, Alphabet},
    config::sasl::oidc::{
        Algorithm, Assertion, AssertionKey, AssertionSettings, Endpoint, Grant, OidcSettings,
    },
    rng::Rng,
    secret::Secret,
};
use rcgen::{CertificateParams, KeyPair};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use rustls::{ServerConfig, ServerConnection, StreamOwned, pki_types::PrivateKeyDer};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use super::{IssuedToken, TokenClient, TokenFailure, answer, http::Answer, unix_ms};

const SECRET: &str = "hunter2 ü";
const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A token endpoint.
pub(crate) struct Idp {
    pub url: String,
    requests: mpsc::Receiver<String>,
}

impl Idp {
    /// Starts an endpoint that passes each request to `answer`. Its thread ends with the process.
    pub fn start(answer: impl Fn(&str, &mut dyn Stream) + Send + 'static) -> Self {
        Self::with("http", |socket| Box::new(socket), answer)
    }

    fn with(
        protocol: &str,
        accept: impl Fn(TcpStream) -> Box<dyn Stream> + Send + 'static,
        answer: impl Fn(&str, &mut dyn Stream) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{protocol}://localhost:{}/token", listener.local_addr().unwrap().port());
        let (sender, requests) = mpsc::channel();
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let mut stream = accept(socket);
                if let Some(request) = read_request(&mut *stream) {
                    let _ = sender.send(request.clone());
                    answer(&request, &mut *stream);
                    let _ = stream.flush();
                }
            }
        });
        Self { url, requests }
    }

    pub fn answering(answer: Vec<u8>) -> Self {
        Self::start(move |_, stream| drop(stream.write_all(&answer)))
    }

    fn settings(&self, grant: Grant) -> OidcSettings {
        OidcSettings {
            endpoint: Endpoint::parse(&self.url).unwrap(),
            grant,
            scope: "a b&c".to_owned(),
            extensions: vec![("pool".to_owned(), "1".to_owned())],
            subject_claim: "sub".to_owned(),
            ca_location: None,
            ca_pem: None,
            connect_timeout: TIMEOUT,
            exchange_timeout: TIMEOUT,
            backoff: (Duration::ZERO, Duration::ZERO),
        }
    }

    fn fetch(&self) -> Result<IssuedToken, TokenFailure> {
        TokenClient::new(self.settings(credentials())).unwrap().fetch()
    }

    pub fn request(&self) -> String {
        self.requests.recv_timeout(TIMEOUT).unwrap()
    }
}

fn read_request(stream: &mut dyn Stream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length:").and_then(|it| it.trim().parse().ok())
        });
        if body.len() >= length.unwrap_or(0) {
            return Some(text);
        }
    }
}

fn credentials() -> Grant {
    Grant::ClientCredentials { id: "me".to_owned(), secret: SECRET.into(), is_encoded: false }
}

fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn json_response(status: &str, body: &Value) -> Vec<u8> {
    response(status, "Content-Type: application/json\r\n", &body.to_string())
}

fn token_with(claims: &Value) -> String {
    let part = |text: &str| base64::encode(Alphabet::Url, text.as_bytes());
    format!("{}.{}.c2ln", part("{\"alg\":\"RS256\"}"), part(&claims.to_string()))
}

fn exp() -> i64 {
    unix_ms() / 1000 + 3600
}

#[test]
fn client_credentials_get_a_token_with_encoded_parameters() {
    let exp = exp();
    let token = token_with(&json!({ "sub": "alice", "exp": exp }));
    let idp = Idp::answering(json_response("200 OK", &json!({ "access_token": token })));
    let issued = idp.fetch().unwrap();
    assert_eq!(issued.value.expose(), token.as_bytes());
    assert_eq!((issued.expires_ms, &*issued.principal), (exp * 1000, "alice"));
    assert_eq!(issued.extensions, [("pool".to_owned(), "1".to_owned())]);
    let request = idp.request();
    let basic = base64::encode(Alphabet::Standard, format!("me:{SECRET}").as_bytes());
    assert!(request.starts_with("POST /token HTTP/1.1\r\n"), "{request}");
    assert!(
        request.to_ascii_lowercase().contains("content-type: application/x-www-form-urlencoded\r\n"),
        "{request}"
    );
    assert!(request.contains(&format!("Basic {basic}\r\n")), "{request}");
    assert!(request.ends_with("\r\n\r\ngrant_type=client_credentials&scope=a+b%26c"), "{request}");
    let encoded = Grant::ClientCredentials { id: "m/e".to_owned(), secret: SECRET.into(), is_encoded: true };
    TokenClient::new(idp.settings(encoded)).unwrap().fetch().unwrap();
    let basic = base64::encode(Alphabet::Standard, b"m%2Fe:hunter2+%C3%BC");
    assert!(idp.request().contains(&format!("Basic {basic}\r\n")));
}

fn assertion(algorithm: Algorithm, pem: &str) -> AssertionSettings {
    AssertionSettings {
        algorithm,
        key: AssertionKey::Pem(pem.into()),
        passphrase: None,
        template: None,
        audience: Some("https://idp.test".to_owned()),
        issuer: Some("me".to_owned()),
        subject: Some("alice".to_owned()),
        life_seconds: 300,
        valid_before_seconds: 60,
        has_id: true,
    }
}

#[test]
fn es256_signature_is_two_numbers_of_32_bytes() {
    let key = KeyPair::generate().unwrap();
    let exp = exp();
    let token = token_with(&json!({ "sub": "alice", "exp": exp }));
    let idp = Idp::answering(json_response("200 OK", &json!({ "id_token": token })));
    let folder = std::env::temp_dir().join(format!("ottla-oidc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let template = folder.join("template.json");
    std::fs::write(&template, r#"{"header":{"kid":"k1","alg":"none"},"payload":{"role":"x","exp":1}}"#)
        .unwrap();
    let mut settings = assertion(Algorithm::Es256, &key.serialize_pem());
    settings.template = Some(template.to_string_lossy().into_owned());
    let client =
        TokenClient::new(idp.settings(Grant::JwtBearer(Assertion::Signed(Box::new(settings))))).unwrap();
    // Many signatures, because every 256th number has less than 32 bytes.
    for _ in 0..300 {
        client.fetch().unwrap();
        let request = idp.request();
        assert!(!request.contains("Authorization"), "{request}");
        let body = request.split("\r\n\r\n").nth(1).unwrap();
        let text = body
            .strip_prefix("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=")
            .and_then(|rest| rest.strip_suffix("&scope=a+b%26c"))
            .unwrap();
        let (signed, signature) = text.rsplit_once('.').unwrap();
        let signature = base64::decode(Alphabet::Url, signature).unwrap();
        assert_eq!(signature.len(), 64);
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key_raw());
        public.verify(signed.as_bytes(), &signature).unwrap();
        let part = |part: &str| -> Value {
            serde_json::from_slice(&base64::decode(Alphabet::Url, part).unwrap()).unwrap()
        };
        let (header, claims) = signed.split_once('.').unwrap();
        assert_eq!(part(header), json!({ "alg": "ES256", "typ": "JWT", "kid": "k1" }));
        let claims = part(claims);
        let issued_at = claims["iat"].as_i64().unwrap();
        assert_eq!(
            (claims["exp"].as_i64(), claims["nbf"].as_i64()),
            (Some(issued_at + 300), Some(issued_at - 60))
        );
        assert_eq!(
            (&claims["sub"], &claims["role"], &claims["iss"]),
            (&json!("alice"), &json!("x"), &json!("me"))
        );
        assert_eq!(claims["jti"].as_str().unwrap().len(), 36);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn unusable_keys_and_templates_are_errors_of_their_property() {
    let idp = Idp::answering(Vec::new());
    let key = KeyPair::generate().unwrap().serialize_pem();
    let failure = |settings: AssertionSettings| {
        let grant = Grant::JwtBearer(Assertion::Signed(Box::new(settings)));
        TokenClient::new(idp.settings(grant)).unwrap_err().to_string()
    };
    assert!(failure(assertion(Algorithm::Rs256, &key)).contains("RSA key"));
    assert!(failure(assertion(Algorithm::Es256, "junk")).contains("private.key.pem"));
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let text = failure(assertion(Algorithm::Es256, encrypted));
    assert!(text.contains("assertion.private.key.passphrase is not set"), "{text}");
    let file = |name: &str| AssertionSettings {
        key: AssertionKey::File(name.to_owned()),
        ..assertion(Algorithm::Es256, "")
    };
    assert!(failure(file("/no/such.pem")).contains("/no/such.pem"));
    let template = std::env::temp_dir().join(format!("ottla-template-{}", std::process::id()));
    for text in ["", "junk", "[]", "1", r#"{"header":1}"#, r#"{"payload":[]}"#] {
        std::fs::write(&template, text).unwrap();
        let template = Some(template.to_string_lossy().into_owned());
        let text = failure(AssertionSettings { template, ..assertion(Algorithm::Es256, &key) });
        assert!(text.contains("jwt.template.file"), "{text}");
    }
    std::fs::remove_file(template).unwrap();
    let settings =
        OidcSettings { ca_location: Some("/no/such.pem".to_owned()), ..idp.settings(credentials()) };
    assert!(TokenClient::new(settings).unwrap_err().to_string().contains("https.ca.location"));
}

#[test]
fn assertion_of_a_file_is_read_for_each_token() {
    let token = token_with(&json!({ "sub": "alice", "exp": exp() }));
    let idp = Idp::answering(json_response("200 OK", &json!({ "access_token": token })));
    let path = std::env::temp_dir().join(format!("ottla-assertion-{}", std::process::id()));
    let grant = Grant::JwtBearer(Assertion::File(path.to_string_lossy().into_owned()));
    let client = TokenClient::new(idp.settings(grant)).unwrap();
    assert!(client.fetch().unwrap_err().reason.contains("assertion.file"));
    for text in ["a.b.c\n", "d.e.f"] {
        std::fs::write(&path, text).unwrap();
        client.fetch().unwrap();
        assert!(idp.request().contains(&format!("&assertion={}&", text.trim())));
    }
    std::fs::write(&path, "two\nlines").unwrap();
    assert!(client.fetch().unwrap_err().reason.contains("one line"));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn assertion_replaces_the_secret_of_client_credentials() {
    let token = token_with(&json!({ "sub": "alice", "exp": exp() }));
    let idp = Idp::answering(json_response("200 OK", &json!({ "access_token": token })));
    let path = std::env::temp_dir().join(format!("ottla-client-assertion-{}", std::process::id()));
    std::fs::write(&path, "a.b.c\n").unwrap();
    let expected = "grant_type=client_credentials&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3A\
                    client-assertion-type%3Ajwt-bearer&client_assertion=a.b.c";
    for (id, of_id) in [(None, ""), (Some("m/e".to_owned()), "&client_id=m%2Fe")] {
        let assertion = Assertion::File(path.to_string_lossy().into_owned());
        let client = TokenClient::new(idp.settings(Grant::ClientAssertion { id, assertion })).unwrap();
        client.fetch().unwrap();
        let request = idp.request();
        assert!(!request.contains("Authorization"), "{request}");
        let body = request.split("\r\n\r\n").nth(1).unwrap();
        assert_eq!(body, format!("{expected}{of_id}&scope=a+b%26c"));
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn azure_is_asked_with_its_query_and_header() {
    let token = token_with(&json!({ "sub": "machine", "exp": exp().to_string() }));
    let idp = Idp::answering(json_response("200 OK", &json!({ "access_token": token })));
    let query = Some("api-version=2018-02-01&resource=api://x".to_owned());
    let client = TokenClient::new(idp.settings(Grant::AzureImds(query))).unwrap();
    assert_eq!(client.fetch().unwrap().principal, "machine");
    let request = idp.request();
    assert!(
        request.starts_with("GET /token?api-version=2018-02-01&resource=api://x HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.to_ascii_lowercase().contains("\r\nmetadata: true\r\n"), "{request}");
}

#[test]
fn responses_without_a_usable_token_are_errors() {
    let exp = exp();
    let ok = |body: Value| json_response("200 OK", &body);
    let token = |claims: Value| ok(json!({ "access_token": token_with(&claims) }));
    let html = response("200 OK", "Content-Type: text/html\r\n", "<html>login</html>");
    let redirect = response("302 Found", "Location: https://evil.test/x?code=hunter2\r\n", "");
    let unauthorized =
        json!({ "error": "invalid_client", "error_description": "the client\u{7} is unknown" });
    for (answer, part, is_transient) in [
        (html, "text/html", false),
        (redirect, "https://evil.test/x are not followed", false),
        (ok(json!({})), "no access_token", false),
        (ok(json!({ "access_token": 1 })), "no access_token", false),
        (ok(json!({ "access_token": "opaque" })), "expires_in", false),
        (ok(json!({ "access_token": "opaque", "expires_in": -5 })), "already expired", false),
        (token(json!({ "sub": "alice" })), "`exp`", false),
        (token(json!({ "exp": exp })), "`sub`", false),
        (token(json!({ "sub": 1, "exp": exp })), "`sub`", false),
        (token(json!({ "sub": "alice", "exp": 1 })), "already expired", false),
        (token(json!({ "sub": "alice", "exp": -1e300 })), "already expired", false),
        (
            json_response("401 Unauthorized", &unauthorized),
            "invalid_client (the client  is unknown); check",
            false,
        ),
        (response("403 Forbidden", "", "junk"), "client.secret", false),
        (response("404 Not Found", "", ""), "token.endpoint.url", false),
        (response("429 Too Many Requests", "", ""), "429", true),
        (response("503 Service Unavailable", "Retry-After: 1000000\r\n", "<html>"), "503", true),
        (b"junk\r\n\r\n".to_vec(), "not valid HTTP", false),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_vec(), "connection failed", true),
        (Vec::new(), "connection failed", true),
    ] {
        let shown = String::from_utf8_lossy(&answer).chars().take(100).collect::<String>();
        let idp = Idp::answering(answer);
        let failure = idp.fetch().unwrap_err();
        assert!(failure.reason.starts_with(&idp.url), "{}", failure.reason);
        assert!(failure.reason.contains(part), "{shown}: {}", failure.reason);
        assert_eq!(failure.is_transient, is_transient, "{shown}: {}", failure.reason);
        assert!(!failure.reason.contains("hunter2") && failure.reason.len() < 700, "{}", failure.reason);
    }
    let opaque = ok(json!({ "access_token": "opaque", "expires_in": "3600" }));
    let left = Idp::answering(opaque).fetch().unwrap().expires_ms - unix_ms();
    assert!((3_500_000..=3_600_000).contains(&left), "{left}");
}

#[test]
fn mutated_responses_have_a_result() {
    let idp = Idp::answering(Vec::new());
    let settings = idp.settings(credentials());
    let now_ms = unix_ms();
    let body = json!({ "access_token": token_with(&json!({ "sub": "alice", "exp": exp(), "x": [1, {}] })), "expires_in": 60 });
    let sample = body.to_string().into_bytes();
    let (mut rng, mut tokens) = (Rng::from_seed(14), 0);
    for number in 0..20_000 {
        let mut bytes = sample.clone();
        for _ in 0..=rng.below(3) {
            let at = rng.below(bytes.len() as u64) as usize;
            match rng.below(4) {
                0 => bytes[at] = b"\"{}[].,:0e-\\\0"[rng.below(13) as usize],
                1 => drop(bytes.drain(at..(at + 8).min(bytes.len()))),
                2 => bytes.extend_from_within(at..),
                _ => bytes[at] ^= 1 << rng.below(8),
            }
            if bytes.is_empty() {
                bytes.push(b'{');
            }
        }
        let status = if number % 4 == 0 { 400 } else { 200 };
        let content_type = "application/json".to_owned();
        let answer = Answer { status, content_type, location: None, body: Secret::new(bytes) };
        match answer::token(&answer, &settings, now_ms) {
            Ok(issued) => {
                assert!(issued.expires_ms > now_ms);
                tokens += 1;
            }
            Err(failure) => assert!(failure.reason.len() < 700, "{}", failure.reason),
        }
    }
    assert!((100..19_000).contains(&tokens), "{tokens} tokens");
}

#[test]
fn secret_in_a_description_is_not_quoted() {
    let token = "x".repeat(200);
    for text in
        [format!("no client with {SECRET}"), "Basic bWU6aHVudGVyMg==".to_owned(), format!("bad {token}")]
    {
        let body = json!({ "error": "invalid_client", "error_description": text });
        let reason = Idp::answering(json_response("401 Unauthorized", &body)).fetch().unwrap_err().reason;
        assert!(reason.contains("401; check") && !reason.contains("invalid_client"), "{reason}");
    }
}

#[test]
fn hostile_endpoints_are_bounded_errors() {
    let endless = |stream: &mut dyn Stream| {
        let chunk = [b'x'; 1 << 16];
        let mut written = 0u64;
        while written < 1 << 30 && stream.write_all(&chunk).is_ok() {
            written += chunk.len() as u64;
        }
        // Sockets have buffers of some megabytes.
        assert!(written < 64 << 20, "{written} bytes were taken");
    };
    let (tested, passed) = mpsc::channel();
    let body = Idp::start(move |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n");
        endless(stream);
        tested.send(()).unwrap();
    });
    let reason = body.fetch().unwrap_err().reason;
    assert!(reason.contains("more than 1048576 bytes"), "{reason}");
    passed.recv_timeout(TIMEOUT).unwrap();
    let header = Idp::start(move |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
        endless(stream);
    });
    let reason = header.fetch().unwrap_err().reason;
    assert!(reason.contains("more than 32768 bytes"), "{reason}");
    let silent = Idp::start(|_, stream| drop(stream.read(&mut [0])));
    let dripping = Idp::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    });
    for idp in [silent, dripping] {
        let exchange_timeout = Duration::from_millis(300);
        let settings = OidcSettings { exchange_timeout, ..idp.settings(credentials()) };
        let started = Instant::now();
        let failure = TokenClient::new(settings).unwrap().fetch().unwrap_err();
        assert!(started.elapsed() < TIMEOUT / 2, "{:?}", started.elapsed());
        assert!(failure.is_transient && failure.reason.contains("within 300 ms"), "{}", failure.reason);
    }
    // A socket that is bound but does not listen refuses connections, and keeps its port from other tests.
    let closed = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    closed.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    let url = format!("http://{}/token", closed.local_addr().unwrap().as_socket().unwrap());
    let refused = Idp { url, ..Idp::answering(Vec::new()) }.fetch().unwrap_err();
    assert!(refused.is_transient, "{}", refused.reason);
}

/// Starts an endpoint with TLS, whose certificate is for this host. Returns the certificate, too.
fn start_https(name: &str) -> (Idp, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
    let der = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crate::tls::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], der)
        .unwrap();
    let config = Arc::new(config);
    let accept = move |socket| -> Box<dyn Stream> {
        Box::new(StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), socket))
    };
    let token = token_with(&json!({ "sub": "alice", "exp": exp() }));
    let answer = json_response("200 OK", &json!({ "access_token": token }));
    (Idp::with("https", accept, move |_, stream| drop(stream.write_all(&answer))), certificate.pem())
}

#[test]
fn ca_of_an_endpoint_is_read_again_for_each_token() {
    let (idp, pem) = start_https("localhost");
    let (_, other) = start_https("localhost");
    let path = std::env::temp_dir().join(format!("ottla-https-ca-{}", std::process::id()));
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    write(&other);
    let location = Some(path.to_string_lossy().into_owned());
    let client =
        TokenClient::new(OidcSettings { ca_location: location, ..idp.settings(credentials()) }).unwrap();
    assert!(client.fetch().unwrap_err().reason.contains("https.ca.location"));
    write(&pem);
    assert_eq!(client.fetch().unwrap().principal, "alice");
    // A file that can't be used changes nothing.
    for text in ["", "junk", "-----BEGIN CERTIFICATE-----\nMAA=\n"] {
        write(text);
        assert_eq!(client.fetch().unwrap().principal, "alice", "{text:?}");
    }
    write(&other);
    client.fetch().unwrap_err();
    // The failure names the file that could not be read, too.
    std::fs::remove_file(&path).unwrap();
    let reason = client.fetch().unwrap_err().reason;
    assert!(reason.contains("former certificates are in use"), "{reason}");
}

#[test]
fn https_endpoint_is_checked_against_its_own_ca() {
    let fetch_within = |idp: &Idp, pem: &str, exchange_timeout| {
        let settings =
            OidcSettings { ca_pem: Some(pem.to_owned()), exchange_timeout, ..idp.settings(credentials()) };
        TokenClient::new(settings).unwrap().fetch()
    };
    let fetch = |idp: &Idp, pem: &str| fetch_within(idp, pem, TIMEOUT);
    let (idp, pem) = start_https("localhost");
    assert_eq!(fetch(&idp, &pem).unwrap().principal, "alice");
    let (elsewhere, other_pem) = start_https("idp.test");
    for (idp, pem) in [(&idp, &other_pem), (&elsewhere, &other_pem)] {
        let failure = fetch(idp, pem).unwrap_err();
        assert!(failure.reason.contains("https.ca.location") && !failure.is_transient, "{}", failure.reason);
    }
    // TLS at a port without it, which waits for the end of a request.
    let plain = Idp::answering(Vec::new());
    let plain = Idp { url: plain.url.replace("http:", "https:"), ..plain };
    assert!(fetch_within(&plain, &pem, Duration::from_millis(300)).is_err());
}
