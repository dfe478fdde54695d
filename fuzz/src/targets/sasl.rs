//! A broker's messages in an authentication: one byte for the mechanism, then messages behind their lengths. In a message the
//! byte 1 stands for the client's nonce.

use std::sync::{Arc, LazyLock};

use ottla_core::{
    config::{EffectiveConfig, Profile, RawConfig},
    machine::Instant,
    sasl::{SaslSettings, SaslShared, Token, exchange::Exchange, scram::Progress},
};
use ottla_protocol::error_code::ErrorCode;

use super::bytes::Bytes;

const MECHANISMS: [&str; 4] = ["SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "PLAIN"];
const PASSWORD: &str = "correct-horse-battery";
const NOW: Instant = Instant::from_nanos(1_000_000_000);

static SETTINGS: LazyLock<Vec<SaslSettings>> = LazyLock::new(|| MECHANISMS.map(settings).to_vec());

fn settings(mechanism: &str) -> SaslSettings {
    let mut config = RawConfig::new(Profile::Rust);
    let properties = [
        ("bootstrap.servers", "localhost:1"),
        ("security.protocol", "sasl_plaintext"),
        ("sasl.mechanisms", mechanism),
        ("sasl.username", "alice"),
        ("sasl.password", PASSWORD),
        // Two slices of work.
        ("sasl.scram.max.iterations", "5000"),
    ];
    for (name, value) in properties {
        if !(mechanism == "OAUTHBEARER" && ["sasl.username", "sasl.password"].contains(&name)) {
            config.set(name, value).expect("the property is valid");
        }
    }
    let effective = EffectiveConfig::producer(&config).expect("the properties agree");
    SaslSettings::new(&effective).expect("there is SASL")
}

/// Runs the target.
pub fn run(input: &[u8]) {
    let mut input = Bytes::new(input);
    let which = input.below(MECHANISMS.len());
    let shared = Arc::new(SaslShared::new(SETTINGS[which].clone(), PASSWORD.into()));
    let token =
        Token::new(NOW, 0, "a.b.c".into(), 3_600_000, "alice", Vec::new()).expect("the token is valid");
    shared.set_token(token);
    // The second authentication knows the salted password of the first.
    for _ in 0..2 {
        authenticate(&shared, &mut input);
    }
}

fn authenticate(shared: &Arc<SaslShared>, input: &mut Bytes<'_>) {
    let mut exchange = Exchange::new(Arc::clone(shared), "broker", false);
    let offered = String::from_utf8_lossy(input.piece()).into_owned();
    if let Err(error) = exchange.check_handshake(ErrorCode(i16::from(input.byte())), &[offered], false) {
        check(&error.to_string());
    }
    let Ok(Progress::Send(first)) = exchange.begin(NOW) else { return };
    let first = String::from_utf8_lossy(first.expose()).into_owned();
    let nonce = first.split("r=").nth(1).unwrap_or_default().split(',').next().unwrap_or_default();
    for _ in 0..4 {
        let message = String::from_utf8_lossy(input.piece()).replace('\u{1}', nonce);
        match exchange.handle(message.as_bytes()) {
            Ok(Progress::Derive) => while exchange.is_deriving() && exchange.derive().is_none() {},
            Ok(Progress::Send(_)) => {}
            Ok(Progress::Done) => {
                let proves = exchange.mechanism().name().starts_with("SCRAM");
                assert!(!proves, "a broker without the password proved that it knows it: {message}");
                return;
            }
            Err(error) => {
                check(&error.to_string());
                check(&exchange.refused(ErrorCode::SASL_AUTHENTICATION_FAILED, Some(&message)).to_string());
                return;
            }
        }
    }
}

fn check(error: &str) {
    assert!(error.len() < 10_000 && !error.contains(PASSWORD), "{error}");
}
