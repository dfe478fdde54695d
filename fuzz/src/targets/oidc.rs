//! The response of a token endpoint: one byte for the status, one for the kind of grant, then the body.

use std::sync::LazyLock;

use ottla_core::{
    config::{EffectiveConfig, Profile, RawConfig, sasl::jaas::JaasConfig, sasl::oidc::OidcSettings},
    machine::Instant,
    sasl::Token,
    secret::Secret,
};
use ottla_net::{Answer, read_answer};

use super::bytes::Bytes;

const STATUSES: [u16; 8] = [200, 200, 200, 301, 400, 401, 404, 503];
const SECRET: &str = "correct+horse battery";
/// A Tuesday in 2023.
const NOW_MS: i64 = 1_700_000_000_000;

static SETTINGS: LazyLock<[OidcSettings; 2]> = LazyLock::new(|| {
    [
        settings(&[
            ("sasl.oauthbearer.client.id", "client"),
            ("sasl.oauthbearer.client.secret", SECRET),
            ("sasl.oauthbearer.token.endpoint.url", "https://issuer.test/token"),
        ]),
        settings(&[
            ("sasl.oauthbearer.grant.type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("sasl.oauthbearer.assertion.file", "/run/assertion"),
            ("sasl.oauthbearer.token.endpoint.url", "https://issuer.test/token"),
        ]),
    ]
});

fn settings(properties: &[(&str, &str)]) -> OidcSettings {
    let mut config = RawConfig::new(Profile::Rust);
    let of_sasl = [
        ("bootstrap.servers", "localhost:1"),
        ("security.protocol", "sasl_ssl"),
        ("sasl.mechanisms", "OAUTHBEARER"),
        ("sasl.oauthbearer.method", "oidc"),
    ];
    for (name, value) in of_sasl.iter().chain(properties) {
        config.set(name, value).expect("the property is valid");
    }
    let effective = EffectiveConfig::producer(&config).expect("the properties agree");
    let settings = OidcSettings::new(&effective, &JaasConfig::default());
    settings.expect("the settings are valid").expect("the method is oidc")
}

/// Runs the target.
pub fn run(input: &[u8]) {
    let mut input = Bytes::new(input);
    let status = STATUSES[input.below(STATUSES.len())];
    let settings = &SETTINGS[input.below(SETTINGS.len())];
    let answer = Answer {
        status,
        content_type: "application/json".to_owned(),
        location: (status == 301).then(|| "https://other.test/".to_owned()),
        body: Secret::new(input.rest().to_vec()),
    };
    match read_answer(&answer, settings, NOW_MS) {
        Ok(token) => {
            assert!(token.expires_ms > NOW_MS, "{token:?}");
            assert!(!format!("{token:?}").contains(&*String::from_utf8_lossy(token.value.expose())));
            let principal = token.principal.clone();
            let now = Instant::from_nanos(1);
            // The client checks the characters and the length.
            let _ = Token::new(now, NOW_MS, token.value, token.expires_ms, &principal, token.extensions);
        }
        Err(failure) => {
            let reason = &failure.reason;
            assert!(reason.len() < 2000 && !reason.contains(char::is_control), "{reason:?}");
            assert!(!reason.contains(SECRET), "{reason}");
        }
    }
}
