//! The users of `ottla broker --sasl`.

use std::{fs, time::Duration};

use ottla_embedded_broker::{SaslListener, SaslMechanism, ScramHash};

use super::broker::BrokerOptions;
use crate::failure::{Failure, Outcome};

/// The mechanisms and users of the brokers.
pub struct Sasl {
    /// The SASL of the listeners.
    pub listener: SaslListener,
    /// The properties for clients, besides the protocol: the first mechanism and the first user.
    pub properties: String,
}

impl Sasl {
    /// Reads the options; `None` without `--sasl`.
    pub fn new(options: &BrokerOptions) -> Outcome<Option<Self>> {
        let mechanisms: Vec<_> = options.sasl.iter().map(|name| mechanism(name)).collect();
        let Some(first) = mechanisms.first() else { return Ok(None) };
        let mut listener = SaslListener::new(&mechanisms);
        let mut properties = format!("sasl.mechanisms={}\n", first.name());
        let has_tokens = |one: &SaslMechanism| {
            matches!(one, SaslMechanism::OauthBearerUnsecured | SaslMechanism::OauthBearer)
        };
        if mechanisms.contains(&SaslMechanism::OauthBearer) {
            listener = with_keys(listener, options)?;
        }
        if *first == SaslMechanism::OauthBearerUnsecured {
            properties.push_str(
                "enable.sasl.oauthbearer.unsecure.jwt=true\nsasl.oauthbearer.config=principal=client\n",
            );
        }
        let has_passwords = mechanisms.iter().any(|one| !has_tokens(one));
        if has_passwords && options.sasl_user.is_empty() {
            return Err(Failure::Usage(
                "--sasl: PLAIN and SCRAM need at least one --sasl-user NAME:PASSWORD".to_owned(),
            ));
        }
        for (index, user) in options.sasl_user.iter().enumerate() {
            let (name, password) = user
                .split_once(':')
                .filter(|(name, password)| !name.is_empty() && !password.is_empty())
                .ok_or_else(|| Failure::Usage("--sasl-user: write NAME:PASSWORD".to_owned()))?;
            listener = listener.user(name, password);
            if index == 0 && !has_tokens(first) {
                properties.push_str(&format!("sasl.username={name}\nsasl.password={password}\n"));
            }
        }
        if let Some(millis) = options.sasl_max_session {
            listener = listener.max_session(Duration::from_millis(millis));
        }
        Ok(Some(Self { listener, properties }))
    }
}

/// Adds the keys of the identity provider.
fn with_keys(listener: SaslListener, options: &BrokerOptions) -> Outcome<SaslListener> {
    let usage = |text: String| Failure::Usage(format!("--sasl-jwks: {text}"));
    let file = options.sasl_jwks.as_ref();
    let file =
        file.ok_or_else(|| usage("--sasl oauthbearer needs the keys of the identity provider".to_owned()))?;
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| usage(format!("{shown}: {error}")))?;
    let mut listener = listener.jwks(&text).map_err(|why| usage(format!("{shown}: {why}")))?;
    if let Some(issuer) = &options.sasl_issuer {
        listener = listener.expected_issuer(issuer);
    }
    if let Some(audience) = &options.sasl_audience {
        listener = listener.expected_audience(audience);
    }
    Ok(listener)
}

/// Returns the mechanism of an option's value, which clap has checked.
fn mechanism(name: &str) -> SaslMechanism {
    match name {
        "plain" => SaslMechanism::Plain,
        "scram-sha-256" => SaslMechanism::Scram(ScramHash::Sha256),
        "scram-sha-512" => SaslMechanism::Scram(ScramHash::Sha512),
        "oauthbearer" => SaslMechanism::OauthBearer,
        _ => SaslMechanism::OauthBearerUnsecured,
    }
}
