//! Authentication of a connection: good and hostile brokers, and the old form without headers.

use std::{io::IoSlice, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        api_versions::{ApiVersionsResponse, response::ApiKey as ApiRow},
        sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse},
        sasl_handshake::SaslHandshakeResponse,
    },
    header::RequestHeader,
    primitive::Reader,
};

use super::{at, millis};
use crate::{
    config::{KafkaVersion, sasl::Mechanism},
    connection::{
        Connection, ConnectionOutput, ConnectionSettings, buffer::BufferPool, inflight::RequestTag,
    },
    error::{Error, ErrorKind},
    machine::Instant,
    rng::Rng,
    sasl::{
        SaslSettings, SaslShared, Token,
        gssapi::{Kerberos, Negotiation, Reply},
        shared::Credentials,
    },
    turns::Turns,
};

/// A connection, and the broker that the test plays.
pub(super) struct Peer {
    pub(super) connection: Connection,
    pub(super) shared: Arc<SaslShared>,
    pub(super) now: Instant,
    pub(super) written: Vec<u8>,
    pub(super) down: Option<Error>,
    pub(super) ups: usize,
    pub(super) connects: usize,
}

impl Peer {
    pub(super) fn new(mechanism: &str) -> Self {
        Self::with(mechanism, ConnectionSettings::default())
    }

    pub(super) fn with(mechanism: &str, settings: ConnectionSettings) -> Self {
        let sasl = SaslSettings {
            mechanism: Mechanism::parse(mechanism).unwrap(),
            credentials: Credentials::new("alice", "hunter2".into()),
            ..SaslSettings::default()
        };
        let shared = Arc::new(SaslShared::new(sasl, "a key of 32 bytes, more or less".into()));
        let settings = ConnectionSettings { sasl: Some(Arc::clone(&shared)), ..settings };
        let (buffers, rng) = (BufferPool::default(), Rng::from_seed(1));
        let connection = Connection::new(Arc::new(settings), "b".into(), 9092, None, buffers, rng);
        let (written, down) = (Vec::new(), None);
        Self { connection, shared, now: at(1), written, down, ups: 0, connects: 0 }
    }

    /// Carries out what the connection needs.
    pub(super) fn settle(&mut self) {
        let mut turns = Turns::default();
        loop {
            while let Some(output) = self.connection.poll_output() {
                turns.take(self.now, 10_000);
                match output {
                    ConnectionOutput::Resolve { .. } => {
                        let address = "127.0.0.1:9092".parse().unwrap();
                        self.connection.handle_resolved(self.now, Ok(vec![address]));
                    }
                    ConnectionOutput::Connect(_) => {
                        self.connects += 1;
                        self.connection.handle_connected(self.now);
                    }
                    ConnectionOutput::Up => self.ups += 1,
                    ConnectionOutput::Down { error, .. } => self.down = Some(error),
                    ConnectionOutput::Close | ConnectionOutput::Idle { .. } => self.written.clear(),
                    ConnectionOutput::TimedOut { .. } => {}
                }
            }
            let mut slices = [IoSlice::new(&[]); 16];
            let filled = self.connection.unsent(&mut slices);
            let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            if bytes.is_empty() {
                return;
            }
            self.written.extend(&bytes);
            self.connection.handle_written(self.now, bytes.len(), &mut Vec::new());
        }
    }

    pub(super) fn connect(&mut self) {
        self.connection.want(self.now);
        self.settle();
    }

    /// Lets time pass.
    pub(super) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        let mut turns = Turns::default();
        while let Some(next) = self.connection.poll_timeout().filter(|next| *next <= until) {
            turns.take(next.max(self.now), 1000);
            self.now = self.now.max(next);
            self.connection.handle_timeout(self.now);
            self.settle();
        }
        self.now = until;
    }

    /// Takes the next frame without its length.
    pub(super) fn frame(&mut self) -> Vec<u8> {
        let length = self.written.first_chunk::<4>().expect("a request was written");
        let end = 4 + u32::from_be_bytes(*length) as usize;
        self.written.drain(..end).skip(4).collect()
    }

    pub(super) fn request(&mut self) -> (RequestHeader, Vec<u8>) {
        let frame = self.frame();
        let mut reader = Reader::new(&frame);
        let header = RequestHeader::decode(&mut reader).expect("a header");
        let body = frame[reader.position()..].to_vec();
        (header, body)
    }

    pub(super) fn send(&mut self, frame: &[u8]) {
        let mut bytes = (frame.len() as u32).to_be_bytes().to_vec();
        bytes.extend(frame);
        let mut bytes = &bytes[..];
        while !bytes.is_empty() {
            let space = self.connection.read_space();
            let n = space.len().min(bytes.len());
            space[..n].copy_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            self.connection.handle_read(self.now, n);
            while self.connection.next_response(self.now).is_some() {}
        }
        self.settle();
    }

    pub(super) fn respond(&mut self, header: &RequestHeader, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut frame = header.correlation_id.to_be_bytes().to_vec();
        let is_flexible = header.api_key == ApiKey::SaslAuthenticate as i16 && header.api_version >= 2;
        frame.extend(is_flexible.then_some(0));
        encode(&mut frame);
        self.send(&frame);
    }

    /// Connects, and reports these versions.
    pub(super) fn ask(&mut self, rows: &[(ApiKey, i16)]) {
        self.connect();
        let (header, _) = self.request();
        assert_eq!(header.api_key, ApiKey::ApiVersions as i16);
        let row =
            |(api, max): &(ApiKey, i16)| ApiRow { api_key: *api as i16, min_version: 0, max_version: *max };
        let response = ApiVersionsResponse { api_keys: rows.iter().map(row).collect(), ..Default::default() };
        self.respond(&header, |out| response.encode(header.api_version, out).unwrap());
    }

    /// Runs until the client's first message, which it returns.
    pub(super) fn handshake(&mut self) -> (RequestHeader, Vec<u8>) {
        self.ask(&NEW);
        self.accept_mechanism()
    }

    pub(super) fn accept_mechanism(&mut self) -> (RequestHeader, Vec<u8>) {
        let (header, _) = self.request();
        assert_eq!((header.api_key, header.api_version), (ApiKey::SaslHandshake as i16, 1));
        let response = SaslHandshakeResponse::default();
        self.respond(&header, |out| response.encode(1, out).unwrap());
        self.message()
    }

    pub(super) fn message(&mut self) -> (RequestHeader, Vec<u8>) {
        let (header, body) = self.request();
        assert_eq!((header.api_key, header.api_version), (ApiKey::SaslAuthenticate as i16, 2));
        let request = SaslAuthenticateRequest::decode(&mut Reader::new(&body), 2).unwrap();
        (header, request.auth_bytes)
    }

    pub(super) fn answer(&mut self, header: &RequestHeader, bytes: &[u8], lifetime_ms: i64) {
        let response = SaslAuthenticateResponse {
            auth_bytes: bytes.to_vec(),
            session_lifetime_ms: lifetime_ms,
            ..Default::default()
        };
        self.respond(header, |out| response.encode(2, out).unwrap());
    }

    /// Queues a request of the client's.
    pub(super) fn queue(&mut self) {
        assert!(self.connection.may_send());
        let (api, tag) = (ApiKey::Metadata, RequestTag::Cluster(1));
        self.connection.send(self.now, api, 0, tag, Duration::from_secs(60), |_| Ok(())).unwrap();
        self.settle();
    }

    pub(super) fn token(&self, lifetime_ms: i64) {
        let token = Token::new(self.now, 0, "x.y.".into(), lifetime_ms, "alice", Vec::new()).unwrap();
        self.shared.set_token(token);
    }

    pub(super) fn set_token(&mut self, lifetime_ms: i64) {
        self.token(lifetime_ms);
        self.connection.handle_credentials(self.now);
        self.settle();
    }

    pub(super) fn failed(&mut self) -> String {
        assert!(self.connection.is_backing_off() && self.ups == 0);
        let error = self.down.take().expect("the connection failed");
        let text = error.to_string();
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(error.kind(), ErrorKind::Authentication, "{text}");
        text
    }
}

/// A broker of today.
pub(super) const NEW: [(ApiKey, i16); 4] = [
    (ApiKey::Metadata, 12),
    (ApiKey::SaslHandshake, 1),
    (ApiKey::ApiVersions, 4),
    (ApiKey::SaslAuthenticate, 2),
];

#[test]
fn plain_is_ready_after_the_response() {
    let mut peer = Peer::new("PLAIN");
    let (header, message) = peer.handshake();
    assert_eq!(message, b"\0alice\0hunter2");
    assert!(!peer.connection.is_ready() && !peer.connection.may_send());
    peer.answer(&header, b"", 0);
    assert!(peer.connection.is_ready() && peer.connection.may_send());
    assert_eq!((peer.ups, peer.connection.poll_timeout()), (1, None));
}

#[test]
fn broker_of_0_10_gets_messages_without_headers() {
    let mut peer = Peer::new("PLAIN");
    peer.ask(&[(ApiKey::Metadata, 1), (ApiKey::SaslHandshake, 0), (ApiKey::ApiVersions, 0)]);
    let (header, _) = peer.request();
    assert_eq!((header.api_key, header.api_version), (ApiKey::SaslHandshake as i16, 0));
    peer.respond(&header, |out| SaslHandshakeResponse::default().encode(0, out).unwrap());
    assert_eq!(peer.frame(), b"\0alice\0hunter2");
    peer.send(b"");
    assert_eq!((peer.ups, peer.connection.is_ready()), (1, true));
    peer.queue();
    let (header, _) = peer.request();
    assert_eq!(header.api_key, ApiKey::Metadata as i16, "requests have headers again");
}

#[test]
fn broker_without_sasl_handshake_is_an_error() {
    let mut peer = Peer::new("PLAIN");
    peer.ask(&[(ApiKey::Metadata, 1), (ApiKey::ApiVersions, 0)]);
    assert!(peer.failed().contains("does not support SaslHandshake"));
    let settings = ConnectionSettings {
        ask_versions: false,
        fallback_release: KafkaVersion(0, 9, 0),
        ..ConnectionSettings::default()
    };
    let mut peer = Peer::with("PLAIN", settings);
    peer.connect();
    assert!(peer.failed().contains("broker.version.fallback"));
}

/// Kerberos with two tokens, and a third message after the broker's protection levels.
#[derive(Debug)]
struct Tickets;

#[derive(Debug, Default)]
struct Tokens {
    replies: usize,
    reply: Option<Reply>,
}

impl Kerberos for Tickets {
    fn start(&self, host: &str) -> Box<dyn Negotiation> {
        assert_eq!(host, "b");
        Box::new(Tokens::default())
    }
}

impl Negotiation for Tokens {
    fn pass(&mut self, message: &[u8]) {
        let (expected, reply) = [
            (&b""[..], Reply::Message("token".into())),
            (b"accepted", Reply::Message("".into())),
            (b"levels", Reply::Last("none".into())),
        ][self.replies]
            .clone();
        assert_eq!(message, expected);
        self.replies += 1;
        self.reply = Some(reply);
    }

    fn take(&mut self) -> Option<Result<Reply, String>> {
        self.reply.take().map(Ok)
    }
}

/// Sends the messages of Kerberos without headers, and checks that the connection is used after the last one.
fn exchange_tickets(peer: &mut Peer) {
    for (message, response) in [(&b"token"[..], &b"accepted"[..]), (b"", b"levels")] {
        peer.connection.handle_sasl_reply(peer.now);
        peer.settle();
        assert_eq!(peer.frame(), message);
        assert!(!peer.connection.is_ready());
        peer.send(response);
    }
    peer.connection.handle_sasl_reply(peer.now);
    peer.settle();
    assert_eq!(peer.frame(), b"none");
    assert_eq!((peer.ups, peer.connection.is_ready()), (1, true), "no response comes");
    peer.queue();
    let (header, _) = peer.request();
    assert_eq!(header.api_key, ApiKey::Metadata as i16);
}

#[test]
fn kerberos_of_kafka_0_9_begins_without_a_handshake() {
    let settings = ConnectionSettings {
        ask_versions: false,
        fallback_release: KafkaVersion(0, 9, 0),
        ..ConnectionSettings::default()
    };
    let mut peer = Peer::with("GSSAPI", settings);
    peer.shared.set_kerberos(Box::new(Tickets));
    peer.connect();
    exchange_tickets(&mut peer);
}

#[test]
fn broker_of_0_10_does_not_respond_to_the_last_message_of_kerberos() {
    let mut peer = Peer::new("GSSAPI");
    peer.shared.set_kerberos(Box::new(Tickets));
    peer.ask(&[(ApiKey::Metadata, 1), (ApiKey::SaslHandshake, 0), (ApiKey::ApiVersions, 0)]);
    let (header, _) = peer.request();
    assert_eq!((header.api_key, header.api_version), (ApiKey::SaslHandshake as i16, 0));
    peer.respond(&header, |out| SaslHandshakeResponse::default().encode(0, out).unwrap());
    exchange_tickets(&mut peer);
}

#[test]
fn refused_credentials_are_an_error_and_new_ones_are_tried_at_once() {
    let mut peer = Peer::new("PLAIN");
    let (header, _) = peer.handshake();
    let response = SaslAuthenticateResponse {
        error_code: ErrorCode::SASL_AUTHENTICATION_FAILED,
        error_message: Some("Invalid username or password\u{1b}[31m".into()),
        ..Default::default()
    };
    peer.respond(&header, |out| response.encode(2, out).unwrap());
    let text = peer.failed();
    assert!(text.contains("PLAIN: Invalid username or password [31m"), "{text}");
    peer.connection.want(peer.now);
    peer.shared.set_credentials("bob", "other".into());
    peer.connection.handle_credentials(peer.now);
    peer.run_for(millis(0));
    assert_eq!(peer.connects, 2);
    let (header, message) = peer.handshake();
    assert_eq!(message, b"\0bob\0other");
    peer.answer(&header, b"", 0);
    assert!(peer.connection.is_ready());
}

/// Returns the client's nonce in its first SCRAM message.
pub(super) fn nonce(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message).into_owned();
    text.strip_prefix("n,,n=alice,r=").expect("a first message").to_owned()
}

#[test]
fn hostile_scram_brokers_are_refused() {
    let first = |nonce: &str, salt: &str, count: &str| format!("r={nonce},s={salt},i={count}").into_bytes();
    type Hostile<'a> = (&'a str, &'a dyn Fn(&str) -> Vec<u8>);
    let hostile: [Hostile<'_>; 9] = [
        ("iterations", &|nonce| first(&format!("{nonce}x"), "c2FsdA==", "0")),
        ("iterations", &|nonce| first(&format!("{nonce}x"), "c2FsdA==", "2147483648")),
        ("iterations", &|nonce| first(&format!("{nonce}x"), "c2FsdA==", "1000000000")),
        ("nonce", &|nonce| first(nonce, "c2FsdA==", "4096")),
        ("nonce", &|_| first("other", "c2FsdA==", "4096")),
        ("salt", &|nonce| first(&format!("{nonce}x"), "", "4096")),
        ("not text", &|_| vec![0xff; 1000]),
        ("too long", &|_| vec![b'x'; 900_000]),
        ("bytes", &|_| vec![b'x'; 10_000_000]),
    ];
    for (part, message) in hostile {
        let mut peer = Peer::new("SCRAM-SHA-256");
        let (header, first) = peer.handshake();
        peer.answer(&header, &message(&nonce(&first)), 0);
        let text = peer.failed();
        assert!(text.contains(part) && text.len() < 1000, "{part}: {text}");
    }
}

#[test]
fn broker_that_does_not_know_the_password_is_refused() {
    let mut peer = Peer::new("SCRAM-SHA-512");
    let (header, first) = peer.handshake();
    let challenge = format!("r={}more,s=c2FsdA==,i=4096", nonce(&first));
    peer.answer(&header, challenge.as_bytes(), 0);
    assert!(!peer.connection.is_ready());
    peer.run_for(millis(0));
    let (header, proof) = peer.message();
    assert!(proof.starts_with(b"c=biws,r="));
    peer.answer(&header, b"v=AAAA", 0);
    assert!(peer.failed().contains("signature is wrong"));
}

#[test]
fn scram_never_sends_the_same_nonce_twice() {
    let mut peer = Peer::new("SCRAM-SHA-256");
    let (_, first) = peer.handshake();
    peer.connection.handle_closed(peer.now, "reset");
    peer.settle();
    assert_eq!(peer.down.as_ref().map(Error::kind), Some(ErrorKind::Disconnected));
    peer.connection.want(peer.now);
    peer.run_for(millis(200));
    let (_, again) = peer.handshake();
    assert_ne!(nonce(&first), nonce(&again));
}

#[test]
fn connection_waits_for_a_token() {
    let mut peer = Peer::new("OAUTHBEARER");
    peer.connect();
    assert_eq!((peer.connects, peer.connection.poll_timeout()), (0, None));
    peer.set_token(60_000);
    assert_eq!(peer.connects, 1);
    let (header, message) = peer.handshake();
    assert_eq!(message, b"n,,\x01auth=Bearer x.y.\x01\x01");
    peer.answer(&header, b"", 0);
    assert!(peer.connection.is_ready());
    peer.connection.handle_closed(peer.now, "reset");
    peer.run_for(Duration::from_secs(60));
    peer.connect();
    assert_eq!(peer.connects, 1, "the token has expired");
    peer.set_token(60_000);
    assert_eq!(peer.connects, 2);
}

#[test]
fn authentication_waits_for_the_end_of_a_throttle_time() {
    let settings = ConnectionSettings { max_idle: Some(millis(300)), ..Default::default() };
    let mut peer = Peer::with("PLAIN", settings);
    peer.connect();
    let (header, _) = peer.request();
    let row = |(api, max): &(ApiKey, i16)| ApiRow { api_key: *api as i16, min_version: 0, max_version: *max };
    let response = ApiVersionsResponse {
        api_keys: NEW.iter().map(row).collect(),
        throttle_time_ms: 500,
        ..Default::default()
    };
    peer.respond(&header, |out| response.encode(header.api_version, out).unwrap());
    peer.run_for(millis(499));
    assert!(peer.written.is_empty());
    peer.run_for(millis(1));
    let (header, _) = peer.accept_mechanism();
    peer.answer(&header, b"", 1_000);
    assert!(peer.connection.is_ready());
}

#[test]
fn malformed_responses_are_errors() {
    for bytes in [&b""[..], b"\0", b"\0\0\0\0\0\x05abc", &[0xff; 30]] {
        let mut peer = Peer::new("PLAIN");
        peer.ask(&NEW);
        let (header, _) = peer.request();
        peer.respond(&header, |out| out.extend(bytes));
        let error = peer.down.take().expect("an error");
        assert!(matches!(error.kind(), ErrorKind::BadResponse | ErrorKind::Authentication), "{error}");
        let mut peer = Peer::new("PLAIN");
        let (header, _) = peer.handshake();
        peer.respond(&header, |out| out.extend(bytes));
        assert!(peer.down.is_some(), "{bytes:?}");
    }
}
