//! The properties of SASL.

use super::shared::Credentials;
use crate::{
    config::{
        EffectiveConfig,
        sasl::{
            aws::AwsSettings, jaas::JaasConfig, kerberos::KerberosSettings, mechanism::Mechanism,
            oidc::OidcSettings, unsecured::UnsecuredToken,
        },
    },
    secret::Secret,
};

/// The properties of SASL, for `security.protocol=sasl_plaintext` and `sasl_ssl`.
#[derive(Clone, Debug)]
pub struct SaslSettings {
    /// `sasl.mechanisms`.
    pub mechanism: Mechanism,
    /// `sasl.username`, `sasl.password` and `sasl.delegation.token`, or those of `sasl.jaas.config`.
    pub credentials: Credentials,
    /// `sasl.scram.max.iterations`.
    pub max_iterations: u32,
    /// `sasl.oauthbearer.config`, if `enable.sasl.oauthbearer.unsecure.jwt` is set, or the claim in `sasl.jaas.config`.
    pub unsecured: Option<UnsecuredToken>,
    /// The identity provider, if `sasl.oauthbearer.method` is `oidc`.
    pub oidc: Option<OidcSettings>,
    /// The keys of AWS_MSK_IAM, if it is the mechanism.
    pub aws: Option<AwsSettings>,
    /// Kerberos, if it is the mechanism.
    pub kerberos: Option<KerberosSettings>,
}

impl SaslSettings {
    /// Reads the settings from the configuration; `None` if `security.protocol` has no SASL.
    pub fn new(config: &EffectiveConfig<'_>) -> Option<Self> {
        if !config.text("security.protocol").starts_with("sasl_") {
            return None;
        }
        // The rules between properties have checked the name and the texts.
        let mechanism = Mechanism::parse(config.text("sasl.mechanisms")).ok()?;
        let jaas = JaasConfig::parse(config.text("sasl.jaas.config"), mechanism).unwrap_or_default();
        let oidc = match mechanism {
            Mechanism::OauthBearer => OidcSettings::new(config, &jaas).ok().flatten(),
            _ => None,
        };
        let username = config.non_empty("sasl.username").or(jaas.username).unwrap_or_default();
        let password = config.non_empty("sasl.password").map(|password| Secret::new(password.into_bytes()));
        let is_unsecured = config.boolean("enable.sasl.oauthbearer.unsecure.jwt");
        Some(Self {
            mechanism,
            credentials: Credentials {
                username,
                password: password.or(jaas.password).unwrap_or_default(),
                is_delegation_token: config.boolean("sasl.delegation.token") || jaas.is_delegation_token,
            },
            max_iterations: config.size("sasl.scram.max.iterations") as u32,
            unsecured: match (mechanism, is_unsecured, jaas.unsecured_principal) {
                (Mechanism::OauthBearer, true, _) => {
                    UnsecuredToken::parse(config.text("sasl.oauthbearer.config")).ok()
                }
                (Mechanism::OauthBearer, false, Some(principal)) if oidc.is_none() => {
                    Some(UnsecuredToken::of(principal))
                }
                _ => None,
            },
            oidc,
            kerberos: (mechanism == Mechanism::Gssapi)
                .then(|| KerberosSettings::new(config, &jaas.kerberos).ok())
                .flatten(),
            aws: (mechanism == Mechanism::AwsMskIam).then(|| {
                let settings = AwsSettings::new(config).unwrap_or_default();
                AwsSettings { profile: settings.profile.clone().or(jaas.aws_profile), ..settings }
            }),
        })
    }
}

impl Default for SaslSettings {
    /// PLAIN with empty credentials.
    fn default() -> Self {
        Self {
            mechanism: Mechanism::Plain,
            credentials: Credentials::new("", Secret::default()),
            max_iterations: 1_000_000,
            unsecured: None,
            oidc: None,
            aws: None,
            kerberos: None,
        }
    }
}
