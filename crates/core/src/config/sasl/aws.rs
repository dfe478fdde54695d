//! The properties of AWS_MSK_IAM.

use crate::{config::EffectiveConfig, secret::Secret};

/// The properties of AWS's keys. Without keys and profile, `ottla-net` looks for them where AWS's tools do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AwsSettings {
    /// `sasl.aws.region`.
    pub region: Option<String>,
    /// `sasl.aws.profile`.
    pub profile: Option<String>,
    /// `sasl.aws.access.key.id`, `sasl.aws.secret.access.key` and `sasl.aws.session.token`.
    pub keys: Option<AwsKeys>,
}

/// The keys of an AWS identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsKeys {
    /// The ID of the access key.
    pub access_key: String,
    /// The secret access key.
    pub secret_key: Secret,
    /// The session token of temporary keys.
    pub session_token: Option<Secret>,
    /// The region, if it is configured; otherwise it is that of the broker's name.
    pub region: Option<String>,
}

impl AwsSettings {
    /// Reads the settings. Error: the property that is missing.
    pub fn new(config: &EffectiveConfig<'_>) -> Result<Self, &'static str> {
        let region = config.non_empty("sasl.aws.region");
        let access_key = config.non_empty("sasl.aws.access.key.id");
        let secret_key = config.non_empty("sasl.aws.secret.access.key");
        let session_token = config.non_empty("sasl.aws.session.token");
        let secret = |text: String| Secret::new(text.into_bytes());
        let keys = match (access_key, secret_key) {
            (Some(access_key), Some(secret_key)) => Some(AwsKeys {
                access_key,
                secret_key: secret(secret_key),
                session_token: session_token.map(secret),
                region: region.clone(),
            }),
            (None, None) if session_token.is_none() => None,
            (None, _) => return Err("sasl.aws.access.key.id"),
            (_, None) => return Err("sasl.aws.secret.access.key"),
        };
        Ok(Self { region, profile: config.non_empty("sasl.aws.profile"), keys })
    }
}
