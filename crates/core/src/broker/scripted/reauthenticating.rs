//! Re-authentication (KIP-368): what is sent together, what waits, and sessions that end.

use std::time::Duration;

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{sasl_authenticate::SaslAuthenticateResponse, sasl_handshake::SaslHandshakeResponse},
    header::RequestHeader,
};

use super::{
    authenticating::{Peer, nonce},
    millis,
};
use crate::{
    base64::{self, Alphabet},
    connection::{ConnectionSettings, inflight::RequestTag},
    error::ErrorKind,
    hash::{Derivation, Hash},
};

/// The salt and iterations of the broker.
const CHALLENGE: &str = "s=c2FsdA==,i=4096";

impl Peer {
    /// Connects, with a session of 10 s.
    fn with_session(mechanism: &str) -> Self {
        let mut peer = Self::new(mechanism);
        if mechanism == "OAUTHBEARER" {
            peer.set_token(600_000);
        }
        let first = peer.handshake();
        peer.accept(&first, 10_000);
        assert!(peer.connection.may_send() && peer.written.is_empty());
        peer
    }

    /// Accepts an authentication that began with this message.
    fn accept(&mut self, (header, message): &(RequestHeader, Vec<u8>), lifetime_ms: i64) {
        if !message.starts_with(b"n,,n=") {
            return self.answer(header, b"", lifetime_ms);
        }
        let (header, auth_message) = self.challenge(header, message);
        self.sign(&header, &auth_message, lifetime_ms);
    }

    /// Answers the first message of SCRAM. Returns the header of the next one, and what the broker has to sign.
    fn challenge(&mut self, header: &RequestHeader, first: &[u8]) -> (RequestHeader, Vec<u8>) {
        let challenge = format!("r={}more,{CHALLENGE}", nonce(first));
        self.answer(header, challenge.as_bytes(), 0);
        self.run_for(millis(0));
        let (header, last) = self.message();
        let last = String::from_utf8(last).unwrap();
        let (without_proof, _) = last.split_once(",p=").expect("a proof");
        let parts = [&first[3..], challenge.as_bytes(), without_proof.as_bytes()];
        (header, parts.join(&b","[..]))
    }

    fn sign(&mut self, header: &RequestHeader, auth_message: &[u8], lifetime_ms: i64) {
        let salted = Derivation::new(Hash::Sha256, &"hunter2".into(), b"salt", 4096).advance(4096).unwrap();
        let key = Hash::Sha256.hmac(salted.expose(), b"Server Key");
        let signature = Hash::Sha256.hmac(key.expose(), auth_message);
        let text = format!("v={}", base64::encode(Alphabet::Standard, signature.expose()));
        self.answer(header, text.as_bytes(), lifetime_ms);
    }

    /// Takes SaslHandshake, without an answer.
    fn take_handshake(&mut self) -> RequestHeader {
        let (header, _) = self.request();
        assert_eq!(header.api_key, ApiKey::SaslHandshake as i16);
        header
    }

    fn accept_handshake(&mut self, header: &RequestHeader) {
        self.respond(header, |out| SaslHandshakeResponse::default().encode(1, out).unwrap());
    }

    fn take_metadata(&mut self) -> RequestHeader {
        let (header, _) = self.request();
        assert_eq!(header.api_key, ApiKey::Metadata as i16);
        header
    }
}

#[test]
fn re_authentication_sends_handshake_and_first_message_together() {
    for (mechanism, start) in [
        ("PLAIN", "\0alice\0hunter2"),
        ("OAUTHBEARER", "n,,\x01auth=Bearer x.y."),
        ("SCRAM-SHA-256", "n,,n=alice,r="),
    ] {
        let mut peer = Peer::with_session(mechanism);
        peer.run_for(millis(8_400));
        peer.queue();
        let before = peer.take_metadata();
        peer.run_for(millis(1_100));
        let handshake = peer.take_handshake();
        let first = peer.message();
        assert!(first.1.starts_with(start.as_bytes()), "{mechanism}");
        assert!(peer.written.is_empty());
        peer.respond(&before, |out| out.extend([0; 8]));
        peer.accept_handshake(&handshake);
        assert!(peer.written.is_empty(), "the first message is not sent twice");
        peer.accept(&first, 10_000);
        assert!(peer.connection.may_send() && peer.down.is_none());
        assert_eq!((peer.ups, peer.connects), (1, 1), "it is the same connection");
        peer.queue();
        peer.take_metadata();
        peer.run_for(millis(9_500));
        peer.take_handshake();
    }
}

#[test]
fn requests_wait_while_a_connection_authenticates_again() {
    let mut peer = Peer::with_session("SCRAM-SHA-256");
    peer.run_for(millis(9_500));
    assert!(peer.connection.is_ready() && !peer.connection.may_send());
    let (handshake, (header, first)) = (peer.take_handshake(), peer.message());
    peer.accept_handshake(&handshake);
    assert!(!peer.connection.may_send());
    let (header, auth_message) = peer.challenge(&header, &first);
    assert!(peer.connection.may_send(), "the client's last message is sent");
    peer.queue();
    let behind = peer.take_metadata();
    peer.sign(&header, &auth_message, 10_000);
    peer.respond(&behind, |out| out.extend([0; 8]));
    assert!(peer.connection.may_send() && peer.down.is_none());
}

#[test]
fn requests_follow_a_password_that_is_sent_in_one_message() {
    let mut peer = Peer::with_session("PLAIN");
    peer.run_for(millis(9_500));
    peer.queue();
    let (handshake, first) = (peer.take_handshake(), peer.message());
    let behind = peer.take_metadata();
    peer.accept_handshake(&handshake);
    peer.accept(&first, 10_000);
    peer.respond(&behind, |out| out.extend([0; 8]));
    assert!(peer.connection.may_send() && peer.down.is_none());
}

#[test]
fn requests_wait_for_the_response_to_a_token() {
    let mut peer = Peer::with_session("OAUTHBEARER");
    peer.run_for(millis(9_500));
    let (handshake, (header, _)) = (peer.take_handshake(), peer.message());
    peer.accept_handshake(&handshake);
    assert!(!peer.connection.may_send());
    peer.answer(&header, b"{\"status\":\"invalid_token\"}", 0);
    assert_eq!(peer.message().1, b"\x01");
    assert!(!peer.connection.may_send(), "the broker does not expect a request");
}

#[test]
fn first_authentication_waits_for_the_mechanisms_of_the_broker() {
    let mut peer = Peer::new("PLAIN");
    peer.ask(&super::authenticating::NEW);
    peer.take_handshake();
    assert!(peer.written.is_empty());
}

#[test]
fn broker_that_fails_during_a_re_authentication_gets_single_steps() {
    let mut peer = Peer::with_session("PLAIN");
    peer.run_for(millis(9_500));
    peer.connection.handle_closed(peer.now, "reset");
    peer.settle();
    assert_eq!(peer.down.take().map(|error| error.kind()), Some(ErrorKind::Disconnected));
    peer.connection.want(peer.now);
    peer.run_for(millis(200));
    let first = peer.handshake();
    peer.accept(&first, 10_000);
    peer.run_for(millis(9_500));
    let handshake = peer.take_handshake();
    assert!(peer.written.is_empty() && !peer.connection.may_send());
    peer.accept_handshake(&handshake);
    let first = peer.message();
    peer.accept(&first, 10_000);
    assert!(peer.connection.may_send() && peer.down.is_none());
}

#[test]
fn authentication_has_time_for_the_requests_before_it() {
    let mut peer = Peer::with_session("PLAIN");
    let (api, tag) = (ApiKey::Metadata, RequestTag::Cluster(1));
    peer.connection.send(peer.now, api, 0, tag, Duration::from_secs(300), |_| Ok(())).unwrap();
    peer.settle();
    let before = peer.take_metadata();
    peer.run_for(Duration::from_secs(290));
    assert!(peer.down.is_none(), "the broker still handles the request before");
    let (handshake, first) = (peer.take_handshake(), peer.message());
    peer.respond(&before, |out| out.extend([0; 8]));
    peer.accept_handshake(&handshake);
    peer.accept(&first, 10_000);
    assert!(peer.connection.may_send() && peer.down.is_none());
    peer.run_for(millis(9_500));
    peer.run_for(Duration::from_secs(31));
    let down = peer.down.take().expect("nothing is before this one");
    assert_eq!(down.kind(), ErrorKind::RequestTimedOut);
}

#[test]
fn session_is_counted_from_the_last_message() {
    let mut peer = Peer::new("PLAIN");
    let first = peer.handshake();
    peer.run_for(millis(3_000));
    peer.accept(&first, 10_000);
    peer.run_for(millis(5_400));
    assert!(peer.written.is_empty());
    peer.run_for(millis(1_100));
    let handshake = peer.take_handshake();
    let again = peer.message();
    peer.accept_handshake(&handshake);
    peer.accept(&again, 10_000);
    // Behind a request that takes long, the broker handles the message later, and allows the next one after a second.
    peer.run_for(millis(8_000));
    peer.queue();
    let before = peer.take_metadata();
    peer.run_for(millis(15_000));
    let handshake = peer.take_handshake();
    let again = peer.message();
    peer.respond(&before, |out| out.extend([0; 8]));
    peer.accept_handshake(&handshake);
    peer.accept(&again, 10_000);
    peer.run_for(millis(999));
    assert!(peer.written.is_empty());
    peer.run_for(millis(1));
    peer.take_handshake();
}

#[test]
fn session_is_not_renewed_during_a_throttle_time() {
    let mut peer = Peer::new("PLAIN");
    let (header, _) = peer.handshake();
    peer.answer(&header, b"", 1_000);
    peer.connection.throttle(peer.now, millis(5_000));
    peer.run_for(millis(4_999));
    assert!(peer.written.is_empty());
    peer.run_for(millis(1));
    peer.accept_mechanism();
}

#[test]
fn later_messages_of_an_authentication_wait_for_a_throttle_time() {
    let mut peer = Peer::with_session("SCRAM-SHA-256");
    peer.run_for(millis(9_500));
    let (handshake, (header, first)) = (peer.take_handshake(), peer.message());
    peer.accept_handshake(&handshake);
    // As of the response to a request that was in flight before.
    peer.connection.throttle(peer.now, millis(2_000));
    let challenge = format!("r={}more,{CHALLENGE}", nonce(&first));
    peer.answer(&header, challenge.as_bytes(), 0);
    peer.run_for(millis(1_999));
    assert!(peer.written.is_empty() && !peer.connection.may_send());
    peer.run_for(millis(1));
    let (header, last) = peer.message();
    let last = String::from_utf8(last).unwrap();
    let (without_proof, _) = last.split_once(",p=").expect("a proof");
    peer.sign(
        &header,
        &[&first[3..], challenge.as_bytes(), without_proof.as_bytes()].join(&b","[..]),
        10_000,
    );
    assert!(peer.connection.may_send() && peer.down.is_none());
}

#[test]
fn refusal_of_a_re_authentication_ends_the_connection() {
    let mut peer = Peer::new("PLAIN");
    let (header, _) = peer.handshake();
    peer.answer(&header, b"", 1_000);
    peer.run_for(millis(950));
    let (header, _) = peer.accept_mechanism();
    let response = SaslAuthenticateResponse {
        error_code: ErrorCode::SASL_AUTHENTICATION_FAILED,
        error_message: Some("gone".into()),
        ..Default::default()
    };
    peer.respond(&header, |out| response.encode(2, out).unwrap());
    let down = peer.down.take().unwrap();
    assert_eq!(down.kind(), ErrorKind::Authentication);
}

#[test]
fn session_that_ends_with_its_token_waits_for_the_next_token() {
    let mut peer = Peer::new("OAUTHBEARER");
    peer.set_token(10_000);
    let (header, _) = peer.handshake();
    peer.answer(&header, b"", 10_000);
    peer.run_for(millis(9_700));
    assert!(peer.connection.may_send(), "the same token would buy nothing");
    peer.set_token(60_000);
    peer.run_for(millis(0));
    assert!(!peer.connection.may_send());
    let (header, _) = peer.accept_mechanism();
    peer.answer(&header, b"", 60_000);
    assert!(peer.connection.may_send());
}

#[test]
fn session_that_ends_without_a_new_token_ends_its_connection() {
    let mut peer = Peer::new("OAUTHBEARER");
    peer.set_token(10_000);
    let (header, _) = peer.handshake();
    peer.answer(&header, b"", 10_000);
    peer.run_for(millis(9_990));
    assert!(peer.connection.may_send());
    peer.run_for(millis(10));
    let down = peer.down.take().expect("the session has ended");
    assert_eq!(down.kind(), ErrorKind::Authentication, "{down}");
    peer.connection.want(peer.now);
    peer.run_for(Duration::from_secs(10));
    assert_eq!(peer.connects, 1, "it waits for a token");
}

#[test]
fn unused_connection_is_closed_when_its_session_ends() {
    let settings = ConnectionSettings { max_idle: Some(Duration::from_secs(60)), ..Default::default() };
    let mut peer = Peer::with("PLAIN", settings);
    let (header, _) = peer.handshake();
    peer.answer(&header, b"", 10_000);
    peer.run_for(millis(9_600));
    assert!(!peer.connection.is_ready() && peer.down.is_none());
}
