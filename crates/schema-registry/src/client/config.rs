//! The configuration of a client.

use std::{fmt, time::Duration};

use super::auth::{Auth, OAuth};
use crate::{Error, Result};

/// Text that `Debug` does not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

/// Certificates, in PEM.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The authorities to trust instead of those of the system.
    pub ca: Option<String>,
    /// The client's certificate, with those of its issuers.
    pub certificate: Option<String>,
    /// The private key of the client's certificate.
    pub key: Option<Secret>,
}

/// The configuration of a [`Client`](super::Client).
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses of one registry, for example `https://registry:8081`; each is tried if those before fail.
    pub addresses: Vec<String>,
    /// Who the client is.
    pub auth: Auth,
    /// Certificates.
    pub tls: Tls,
    /// The context in which all subjects and IDs are, for example `.staging`.
    pub context: Option<String>,
    /// Further headers of each request.
    pub headers: Vec<(String, String)>,
    /// The time for one request at one address; 10 s by default.
    pub request_timeout: Duration,
    /// The time for a call with all its addresses and repetitions; 30 s by default.
    pub timeout: Duration,
    /// How many times all addresses are tried again after failures that may pass; 2 by default.
    pub retries: u32,
    /// The pause before the first repetition, which doubles with each further one; 200 ms by default.
    pub backoff: Duration,
    /// The number of schemas that are remembered, per kind of question; 1,000 by default.
    pub cache_capacity: usize,
    /// How long the latest version of a subject is believed; 60 s by default.
    pub latest_ttl: Duration,
}

impl Config {
    /// Returns a configuration for addresses that are separated by commas.
    #[must_use]
    pub fn new(addresses: &str) -> Self {
        Self {
            addresses: addresses
                .split(',')
                .map(|it| it.trim().to_owned())
                .filter(|it| !it.is_empty())
                .collect(),
            auth: Auth::None,
            tls: Tls::default(),
            context: None,
            headers: Vec::new(),
            request_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
            retries: 2,
            backoff: Duration::from_millis(200),
            cache_capacity: 1000,
            latest_ttl: Duration::from_secs(60),
        }
    }

    /// Sets who the client is.
    #[must_use]
    pub fn with_auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// Sets the context.
    #[must_use]
    pub fn in_context(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// Reads the properties that Confluent's clients have: `schema.registry.url` or `url`, `basic.auth.user.info`,
    /// `bearer.auth.*`, `ssl.ca.location`, `ssl.certificate.location`, `ssl.key.location`, `timeout` in seconds,
    /// `max.retries`, `cache.capacity`.
    ///
    /// # Errors
    ///
    /// A property is unknown, its value is wrong, or a file can't be read.
    pub fn from_properties<'a>(properties: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let mut config = Self::new("");
        let mut oauth = OAuth::default();
        for (key, value) in properties {
            let number = || {
                value.parse::<u32>().map_err(|_| Error::config(format!("{key}: {value:?} is not a number")))
            };
            let file = || {
                std::fs::read_to_string(value)
                    .map_err(|error| Error::config(format!("{key}: {value}: {error}")))
            };
            match key {
                "schema.registry.url" | "url" => config.addresses = Self::new(value).addresses,
                "basic.auth.user.info" | "schema.registry.basic.auth.user.info" => {
                    let (user, password) = value
                        .split_once(':')
                        .ok_or_else(|| Error::config(format!("{key}: write USER:PASSWORD")))?;
                    config.auth = Auth::Basic { user: user.to_owned(), password: password.into() };
                }
                "basic.auth.credentials.source" if matches!(value, "USER_INFO" | "URL") => {}
                "bearer.auth.token" => config.auth = Auth::Bearer(value.into()),
                "bearer.auth.credentials.source" if matches!(value, "OAUTHBEARER" | "STATIC_TOKEN") => {}
                "bearer.auth.issuer.endpoint.url" => oauth.token_endpoint = value.to_owned(),
                "bearer.auth.client.id" => oauth.client_id = value.to_owned(),
                "bearer.auth.client.secret" => oauth.client_secret = value.into(),
                "bearer.auth.scope" => oauth.scope = Some(value.to_owned()),
                "bearer.auth.logical.cluster" => oauth.logical_cluster = Some(value.to_owned()),
                "bearer.auth.identity.pool.id" => oauth.identity_pool = Some(value.to_owned()),
                "ssl.ca.location" => config.tls.ca = Some(file()?),
                "ssl.certificate.location" => config.tls.certificate = Some(file()?),
                "ssl.key.location" => config.tls.key = Some(file()?.into()),
                "timeout" => config.request_timeout = Duration::from_secs(number()?.max(1).into()),
                "max.retries" => config.retries = number()?,
                "cache.capacity" => config.cache_capacity = number()?.max(1) as usize,
                "context" => config.context = Some(value.to_owned()),
                _ => return Err(Error::config(format!("unknown property {key:?}"))),
            }
        }
        if !oauth.token_endpoint.is_empty() {
            config.auth = Auth::OAuth(oauth);
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_of_other_clients_are_read() {
        let config = Config::from_properties([
            ("schema.registry.url", "http://a:8081, http://b:8081"),
            ("basic.auth.user.info", "alice:se:cret"),
            ("basic.auth.credentials.source", "USER_INFO"),
            ("max.retries", "5"),
        ])
        .unwrap();
        assert_eq!(config.addresses, ["http://a:8081", "http://b:8081"]);
        assert_eq!(config.auth, Auth::Basic { user: "alice".to_owned(), password: "se:cret".into() });
        assert_eq!(config.retries, 5);
        assert!(!format!("{config:?}").contains("se:cret"));
        let error = Config::from_properties([("max.retries", "many")]).unwrap_err().to_string();
        assert!(error.contains("max.retries: \"many\" is not a number"), "{error}");
        assert!(Config::from_properties([("urls", "x")]).is_err());
    }
}
