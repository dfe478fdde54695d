//! The sources of tokens that the library asks by itself: identity providers, and the places of AWS's keys.

use std::fmt;

use ottla_core::{
    error::Error,
    sasl::{SaslSettings, Token},
};

use crate::{AwsClient, FoundKeys, IssuedToken, TokenClient, TokenFailure, sasl};

/// Gets tokens for OAUTHBEARER, or keys for AWS_MSK_IAM. Its calls block.
pub enum Issuer {
    /// An identity provider.
    Oidc(Box<TokenClient>),
    /// The keys of an AWS identity.
    Aws(AwsClient),
}

impl Issuer {
    /// Creates the issuer that the configuration describes, if it describes one. Error: what is wrong with which property.
    pub fn of(settings: &SaslSettings) -> Result<Option<Self>, Error> {
        if let Some(aws) = &settings.aws {
            return Ok(Some(Self::Aws(AwsClient::new(aws.clone()))));
        }
        let client = settings.oidc.clone().map(TokenClient::new).transpose()?;
        Ok(client.map(|client| Self::Oidc(Box::new(client))))
    }

    /// Gets a token. Blocks for a bounded time, as [`TokenClient::fetch`] and [`AwsClient::fetch`] say.
    pub fn token(&self) -> Result<Token, TokenFailure> {
        match self {
            Self::Oidc(client) => {
                let IssuedToken { value, expires_ms, principal, extensions } = client.fetch()?;
                sasl::token(value, expires_ms, &principal, extensions).map_err(TokenFailure::permanent)
            }
            Self::Aws(client) => {
                let FoundKeys { keys, expires_ms } = client.fetch()?;
                Ok(sasl::token_of_keys(keys, expires_ms))
            }
        }
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Oidc(_) => "Issuer(Oidc)",
            Self::Aws(_) => "Issuer(Aws)",
        })
    }
}
