//! The settings of tokens that the library gets from an identity provider: `sasl.oauthbearer.method=oidc`.
//!
//! ```text
//!   client_credentials   client ID and secret, or an assertion ─┐
//!   jwt-bearer           an assertion: a file, or signed ───────┼─► POST token endpoint ─► token
//!   azure_imds           the identity of the machine ───────────┘   (azure_imds: GET)
//! ```
//!
//! `ottla-net` carries out the exchange, on a thread of its own.

use std::{fmt, time::Duration};

use super::{extensions::check_extensions, jaas::JaasConfig};
use crate::{
    config::{ConfigError, ConfigErrorKind, EffectiveConfig},
    secret::Secret,
};

/// The address of Azure's metadata service for tokens.
const AZURE_ENDPOINT: &str = "http://169.254.169.254/metadata/identity/oauth2/token";

/// The source of tokens, and how failures are retried.
#[derive(Clone, Debug, PartialEq)]
pub struct OidcSettings {
    /// The token endpoint.
    pub endpoint: Endpoint,
    /// The credentials that the client presents to get a token.
    pub grant: Grant,
    /// `sasl.oauthbearer.scope`.
    pub scope: String,
    /// `sasl.oauthbearer.extensions`.
    pub extensions: Vec<(String, String)>,
    /// `sasl.oauthbearer.sub.claim.name`.
    pub subject_claim: String,
    /// `https.ca.location`.
    pub ca_location: Option<String>,
    /// `https.ca.pem`.
    pub ca_pem: Option<String>,
    /// `sasl.login.connect.timeout.ms`.
    pub connect_timeout: Duration,
    /// `sasl.login.read.timeout.ms`: the time of a whole exchange.
    pub exchange_timeout: Duration,
    /// `sasl.login.retry.backoff.ms` and `sasl.login.retry.backoff.max.ms`.
    pub backoff: (Duration, Duration),
}

/// The credentials that the client presents to get a token.
#[derive(Clone, Debug, PartialEq)]
pub enum Grant {
    /// `client_credentials`: the ID and the secret of the client, in the header `Authorization`.
    ClientCredentials {
        /// `sasl.oauthbearer.client.id`.
        id: String,
        /// `sasl.oauthbearer.client.secret`.
        secret: Secret,
        /// `sasl.oauthbearer.header.urlencode` (KIP-1025).
        is_encoded: bool,
    },
    /// `client_credentials` with an assertion instead of a secret (KIP-1258, RFC 7523).
    ClientAssertion {
        /// `sasl.oauthbearer.client.id`; the assertion may name the client.
        id: Option<String>,
        /// The assertion.
        assertion: Assertion,
    },
    /// `urn:ietf:params:oauth:grant-type:jwt-bearer` (RFC 7523).
    JwtBearer(Assertion),
    /// The metadata service of Azure, with this query.
    AzureImds(Option<String>),
}

/// Where an assertion comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Assertion {
    /// A file, which is read for each token.
    File(String),
    /// The client signs it.
    Signed(Box<AssertionSettings>),
}

/// The properties of a signed assertion: `sasl.oauthbearer.assertion.*`.
#[derive(Clone, Debug, PartialEq)]
pub struct AssertionSettings {
    /// `algorithm`.
    pub algorithm: Algorithm,
    /// `private.key.file` or `private.key.pem`.
    pub key: AssertionKey,
    /// `private.key.passphrase`.
    pub passphrase: Option<Secret>,
    /// `jwt.template.file`.
    pub template: Option<String>,
    /// `claim.aud`.
    pub audience: Option<String>,
    /// `claim.iss`.
    pub issuer: Option<String>,
    /// `claim.sub`.
    pub subject: Option<String>,
    /// `claim.exp.seconds`.
    pub life_seconds: i64,
    /// `claim.nbf.seconds`.
    pub valid_before_seconds: i64,
    /// `claim.jti.include`.
    pub has_id: bool,
}

/// How an assertion is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA with PKCS#1 and SHA-256.
    Rs256,
    /// ECDSA with P-256 and SHA-256.
    Es256,
}

/// Where the key of an assertion is.
#[derive(Clone, Debug, PartialEq)]
pub enum AssertionKey {
    /// A file, which is read for each token.
    File(String),
    /// PEM text.
    Pem(Secret),
}

impl Algorithm {
    /// Returns the name in the header of a token.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
        }
    }
}

impl Grant {
    /// Returns the assertion, if the client presents one.
    pub const fn assertion(&self) -> Option<&Assertion> {
        match self {
            Self::ClientAssertion { assertion, .. } | Self::JwtBearer(assertion) => Some(assertion),
            Self::ClientCredentials { .. } | Self::AzureImds(_) => None,
        }
    }

    /// Returns the secrets that a text from a peer may contain and an error must not.
    pub const fn secret(&self) -> Option<&Secret> {
        match self {
            Self::ClientCredentials { secret, .. } => Some(secret),
            _ => None,
        }
    }
}

impl OidcSettings {
    /// Reads the settings; `None` if `sasl.oauthbearer.method` is not `oidc`. Error: the properties that are missing, or
    /// contradict each other.
    pub fn new(config: &EffectiveConfig<'_>, jaas: &JaasConfig) -> Result<Option<Self>, ConfigError> {
        if config.text("sasl.oauthbearer.method") != "oidc" {
            return Ok(None);
        }
        if config.boolean("enable.sasl.oauthbearer.unsecure.jwt") {
            return Err(conflict(
                "enable.sasl.oauthbearer.unsecure.jwt",
                "sasl.oauthbearer.method",
                "`enable.sasl.oauthbearer.unsecure.jwt` and `sasl.oauthbearer.method=oidc` are mutually exclusive",
            ));
        }
        let (ca_location, ca_pem) = (config.non_empty("https.ca.location"), config.non_empty("https.ca.pem"));
        if ca_location.is_some() && ca_pem.is_some() {
            return Err(conflict(
                "https.ca.pem",
                "https.ca.location",
                "`https.ca.location` and `https.ca.pem` are mutually exclusive",
            ));
        }
        let (endpoint, grant) = match config.text("sasl.oauthbearer.metadata.authentication.type") {
            "azure_imds" => azure(config)?,
            "aws_iam" => {
                let name = "sasl.oauthbearer.metadata.authentication.type";
                let reason = "AWS's metadata service issues no tokens for brokers without a callback of the application; set \
                              one, or use sasl.mechanisms=AWS_MSK_IAM for Amazon MSK";
                let value = "aws_iam".to_owned();
                return Err(ConfigError::new(name, ConfigErrorKind::Refused { value, reason }));
            }
            _ => (endpoint(config, jaas)?, grant(config, jaas)?),
        };
        let mut extensions = jaas.extensions.clone();
        if let Some(list) = config.non_empty("sasl.oauthbearer.extensions") {
            extensions = parse_extensions(&list)
                .map_err(|why| malformed("sasl.oauthbearer.extensions", &list, why))?;
        }
        check_extensions(&extensions).map_err(|why| malformed("sasl.oauthbearer.extensions", "", why))?;
        Ok(Some(Self {
            endpoint,
            grant,
            scope: config
                .non_empty("sasl.oauthbearer.scope")
                .or_else(|| jaas.scope.clone())
                .unwrap_or_default(),
            extensions,
            subject_claim: config.text("sasl.oauthbearer.sub.claim.name").to_owned(),
            ca_location,
            ca_pem,
            connect_timeout: config.millis("sasl.login.connect.timeout.ms"),
            exchange_timeout: config.millis("sasl.login.read.timeout.ms"),
            backoff: (
                config.millis("sasl.login.retry.backoff.ms"),
                config.millis("sasl.login.retry.backoff.max.ms"),
            ),
        }))
    }
}

const ENDPOINT: &str = "sasl.oauthbearer.token.endpoint.url";

fn endpoint(config: &EffectiveConfig<'_>, jaas: &JaasConfig) -> Result<Endpoint, ConfigError> {
    let url = config.non_empty(ENDPOINT).or_else(|| jaas.token_endpoint.clone()).ok_or_else(|| {
        missing(
            ENDPOINT,
            "`sasl.oauthbearer.method=oidc` needs the URL of the identity provider's token endpoint",
        )
    })?;
    let endpoint = parse_endpoint(&url)?;
    if endpoint.is_link_local() {
        let reason = "it is the address of a cloud's metadata service; set \
                      sasl.oauthbearer.metadata.authentication.type to use that";
        return Err(ConfigError::new(ENDPOINT, ConfigErrorKind::Refused { value: endpoint.shown, reason }));
    }
    Ok(endpoint)
}

fn parse_endpoint(url: &str) -> Result<Endpoint, ConfigError> {
    Endpoint::parse(url).map_err(|reason| {
        // The URL may have a password.
        ConfigError::new(ENDPOINT, ConfigErrorKind::Refused { value: String::new(), reason })
    })
}

fn azure(config: &EffectiveConfig<'_>) -> Result<(Endpoint, Grant), ConfigError> {
    let fields = config.text("sasl.oauthbearer.config");
    let query = fields.split([',', ' ']).find_map(|field| field.strip_prefix("query=")).map(str::to_owned);
    if query
        .as_ref()
        .is_some_and(|query| query.chars().any(|letter| !letter.is_ascii_graphic() || letter == '#'))
    {
        let why = "a query of printable ASCII characters, with others percent-encoded".to_owned();
        return Err(malformed("sasl.oauthbearer.config", "", why));
    }
    let url = config.non_empty(ENDPOINT);
    if query.is_none() && url.is_none() {
        return Err(missing(
            "sasl.oauthbearer.config",
            "`azure_imds` needs `query=api-version=2018-02-01&resource=...` there, or a whole \
             `sasl.oauthbearer.token.endpoint.url`",
        ));
    }
    Ok((parse_endpoint(url.as_deref().unwrap_or(AZURE_ENDPOINT))?, Grant::AzureImds(query)))
}

fn grant(config: &EffectiveConfig<'_>, jaas: &JaasConfig) -> Result<Grant, ConfigError> {
    if config.text("sasl.oauthbearer.grant.type") != "client_credentials" {
        return Ok(Grant::JwtBearer(assertion(config)?));
    }
    client_credentials(config, jaas)
}

/// The properties that name an assertion.
const OF_ASSERTIONS: [&str; 3] = [
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.pem",
];

/// Returns the ID and the assertion or the secret of the client. As in the Java client an assertion goes first; the C library
/// uses a secret that is set.
fn client_credentials(config: &EffectiveConfig<'_>, jaas: &JaasConfig) -> Result<Grant, ConfigError> {
    let id = config.non_empty("sasl.oauthbearer.client.id").or_else(|| jaas.client_id.clone());
    let secret = config.non_empty("sasl.oauthbearer.client.secret");
    let secret = secret.map(|secret| Secret::new(secret.into_bytes())).or_else(|| jaas.client_secret.clone());
    let has_assertion = OF_ASSERTIONS.into_iter().any(|name| !config.text(name).is_empty());
    if has_assertion && (secret.is_none() || !config.is_librdkafka()) {
        return Ok(Grant::ClientAssertion { id, assertion: assertion(config)? });
    }
    let purpose = "the grant type `client_credentials` of `sasl.oauthbearer.method=oidc` needs a client ID and a secret, or \
                   an assertion";
    Ok(Grant::ClientCredentials {
        id: id.ok_or_else(|| missing("sasl.oauthbearer.client.id", purpose))?,
        secret: secret.ok_or_else(|| missing("sasl.oauthbearer.client.secret", purpose))?,
        is_encoded: config.boolean("sasl.oauthbearer.header.urlencode"),
    })
}

fn assertion(config: &EffectiveConfig<'_>) -> Result<Assertion, ConfigError> {
    let key_file = config.non_empty("sasl.oauthbearer.assertion.private.key.file");
    let key_pem = config.non_empty("sasl.oauthbearer.assertion.private.key.pem");
    if let Some(file) = config.non_empty("sasl.oauthbearer.assertion.file") {
        const OF_SIGNED: [&str; 8] = [
            "sasl.oauthbearer.assertion.private.key.file",
            "sasl.oauthbearer.assertion.private.key.pem",
            "sasl.oauthbearer.assertion.private.key.passphrase",
            "sasl.oauthbearer.assertion.jwt.template.file",
            "sasl.oauthbearer.assertion.claim.aud",
            "sasl.oauthbearer.assertion.claim.iss",
            "sasl.oauthbearer.assertion.claim.sub",
            "sasl.oauthbearer.assertion.claim.jti.include",
        ];
        if let Some(other) = OF_SIGNED.into_iter().find(|name| config.is_modified(name)) {
            let sentence = format!(
                "`sasl.oauthbearer.assertion.file` has a complete assertion, so that `{other}` would have no effect"
            );
            return Err(conflict("sasl.oauthbearer.assertion.file", other, &sentence));
        }
        return Ok(Assertion::File(file));
    }
    let key = match (key_file, key_pem) {
        (Some(_), Some(_)) => {
            return Err(conflict(
                "sasl.oauthbearer.assertion.private.key.pem",
                "sasl.oauthbearer.assertion.private.key.file",
                "`sasl.oauthbearer.assertion.private.key.file` and `sasl.oauthbearer.assertion.private.key.pem` are mutually \
                 exclusive",
            ));
        }
        (Some(file), None) => AssertionKey::File(file),
        (None, Some(pem)) => AssertionKey::Pem(Secret::new(pem.into_bytes())),
        (None, None) => {
            return Err(missing(
                "sasl.oauthbearer.assertion.private.key.file",
                "an assertion needs a key that signs assertions (also as \
                 `sasl.oauthbearer.assertion.private.key.pem`), or `sasl.oauthbearer.assertion.file`",
            ));
        }
    };
    let passphrase = config.non_empty("sasl.oauthbearer.assertion.private.key.passphrase");
    Ok(Assertion::Signed(Box::new(AssertionSettings {
        algorithm: match config.text("sasl.oauthbearer.assertion.algorithm") {
            "ES256" => Algorithm::Es256,
            _ => Algorithm::Rs256,
        },
        key,
        passphrase: passphrase.map(|text| Secret::new(text.into_bytes())),
        template: config.non_empty("sasl.oauthbearer.assertion.jwt.template.file"),
        audience: config.non_empty("sasl.oauthbearer.assertion.claim.aud"),
        issuer: config.non_empty("sasl.oauthbearer.assertion.claim.iss"),
        subject: config.non_empty("sasl.oauthbearer.assertion.claim.sub"),
        life_seconds: config.integer("sasl.oauthbearer.assertion.claim.exp.seconds"),
        valid_before_seconds: config.integer("sasl.oauthbearer.assertion.claim.nbf.seconds"),
        has_id: config.boolean("sasl.oauthbearer.assertion.claim.jti.include"),
    })))
}

/// Parses `key=value,key=value`.
fn parse_extensions(list: &str) -> Result<Vec<(String, String)>, String> {
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let parse = |entry: &str| {
        let (key, value) = entry.split_once('=').ok_or("extensions as key=value, separated by commas")?;
        Ok((key.to_owned(), value.to_owned()))
    };
    entries.map(parse).collect()
}

fn missing(property: &'static str, purpose: &'static str) -> ConfigError {
    ConfigError::new(property, ConfigErrorKind::Missing { purpose })
}

fn malformed(property: &'static str, value: &str, expected: String) -> ConfigError {
    let value = value.chars().take(100).collect();
    ConfigError::new(property, ConfigErrorKind::Malformed { value, expected })
}

fn conflict(property: &'static str, other: &str, sentence: &str) -> ConfigError {
    let (other, sentence) = (other.to_owned(), sentence.to_owned());
    ConfigError::new(property, ConfigErrorKind::Conflict { other, sentence })
}

/// The URL of a token endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: String,
    /// The URL without its query, for errors and logs.
    shown: String,
    host: String,
    is_https: bool,
}

impl Endpoint {
    /// Parses a URL. Error: why it can't be used.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        if url.len() > 8192 || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a URL has at most 8,192 printable ASCII characters, with others percent-encoded");
        }
        let scheme = "only https and http URLs are possible: https://host/path";
        let (protocol, rest) = url.split_once("://").ok_or(scheme)?;
        let is_https = match &*protocol.to_ascii_lowercase() {
            "https" => true,
            "http" => false,
            _ => return Err(scheme),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(
                "a user name and a password in the URL are not supported; use sasl.oauthbearer.client.id and \
                        sasl.oauthbearer.client.secret",
            );
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(literal) => {
                literal.split_once(']').ok_or("the IPv6 address in the URL has no closing bracket")?
            }
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let is_port = |digits: &str| digits.parse::<u16>().is_ok_and(|port| port > 0);
        if host.is_empty() || !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
            return Err("the URL has no host, or its port is not a number from 1 to 65535");
        }
        let end = url.find(['?', '#']).unwrap_or(url.len());
        Ok(Self { url: url.to_owned(), shown: url[..end].to_owned(), host: host.to_owned(), is_https })
    }

    /// Returns the URL with this query, or with its own one if the query is missing.
    pub fn url(&self, query: Option<&str>) -> String {
        match query {
            Some(query) => format!("{}?{query}", self.shown),
            None => self.url.clone(),
        }
    }

    /// Returns the host's name or address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns whether the exchange is encrypted.
    pub const fn is_https(&self) -> bool {
        self.is_https
    }

    /// Returns whether the exchange stays on this machine.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        address.map_or_else(|_| self.host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
    }

    /// Returns whether the host is an address of a network without routers, such as 169.254.169.254.
    fn is_link_local(&self) -> bool {
        self.host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_link_local())
            || self.host.to_ascii_lowercase().starts_with("fe80:")
    }
}

/// Shows the URL without its query, which may have secrets.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Profile, RawConfig};

    fn settings(pairs: &[(&str, &str)]) -> Result<OidcSettings, String> {
        let mut raw = RawConfig::new(Profile::Rust);
        let base = [
            ("security.protocol", "sasl_ssl"),
            ("sasl.mechanisms", "OAUTHBEARER"),
            ("sasl.oauthbearer.method", "oidc"),
        ];
        base.iter().chain(pairs).for_each(|(name, value)| raw.set(name, value).unwrap());
        let config = EffectiveConfig::producer(&raw).map_err(|error| error.to_string())?;
        let settings = OidcSettings::new(&config, &JaasConfig::default());
        settings.map(Option::unwrap).map_err(|error| error.to_string())
    }

    const URL: (&str, &str) = ("sasl.oauthbearer.token.endpoint.url", "https://idp.test/token?x=1");
    const ID: (&str, &str) = ("sasl.oauthbearer.client.id", "me");
    const SECRET: (&str, &str) = ("sasl.oauthbearer.client.secret", "hunter2");
    const JWT: (&str, &str) = ("sasl.oauthbearer.grant.type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
    const KEY: (&str, &str) = ("sasl.oauthbearer.assertion.private.key.file", "/key.pem");

    #[test]
    fn each_grant_has_its_properties() {
        let extensions = ("sasl.oauthbearer.extensions", "logicalCluster=lkc-1, identityPoolId=pool");
        let found = settings(&[URL, ID, SECRET, extensions]).unwrap();
        assert_eq!(found.extensions[1], ("identityPoolId".to_owned(), "pool".to_owned()));
        assert!(matches!(found.grant, Grant::ClientCredentials { is_encoded: false, .. }));
        assert!(!format!("{found:?}").contains("hunter2"));
        let found = settings(&[URL, JWT, KEY, ("sasl.oauthbearer.assertion.algorithm", "ES256")]).unwrap();
        let Grant::JwtBearer(Assertion::Signed(assertion)) = found.grant else { panic!("{found:?}") };
        assert_eq!((assertion.algorithm, assertion.life_seconds), (Algorithm::Es256, 300));
        let found = settings(&[URL, JWT, ("sasl.oauthbearer.assertion.file", "/jwt")]).unwrap();
        let of_file = Assertion::File("/jwt".to_owned());
        assert_eq!(found.grant, Grant::JwtBearer(of_file.clone()));
        let file = ("sasl.oauthbearer.assertion.file", "/jwt");
        for (pairs, id) in [(&[URL, file][..], None), (&[URL, ID, SECRET, file], Some(ID.1.to_owned()))] {
            let grant = settings(pairs).unwrap().grant;
            assert_eq!(grant, Grant::ClientAssertion { id, assertion: of_file.clone() });
        }
        let found = settings(&[URL, KEY]).unwrap();
        assert!(matches!(found.grant, Grant::ClientAssertion { id: None, assertion: Assertion::Signed(_) }));
        let azure = ("sasl.oauthbearer.metadata.authentication.type", "azure_imds");
        let query = ("sasl.oauthbearer.config", "query=api-version=1&resource=api://x");
        let found = settings(&[azure, query]).unwrap();
        let Grant::AzureImds(query) = &found.grant else { panic!("{found:?}") };
        assert!(
            found.endpoint.url(query.as_deref()).ends_with("/oauth2/token?api-version=1&resource=api://x")
        );
    }

    #[test]
    fn missing_and_contradicting_properties_are_refused() {
        let azure = ("sasl.oauthbearer.metadata.authentication.type", "azure_imds");
        let link_local = (URL.0, "http://169.254.169.254/latest/meta-data");
        for (pairs, part) in [
            (&[][..], "token.endpoint.url"),
            (&[URL], "client.id"),
            (&[URL, ID], "client.secret"),
            (&[URL, JWT], "private.key.file"),
            (&[URL, JWT, KEY, ("sasl.oauthbearer.assertion.private.key.pem", "x")], "mutually exclusive"),
            (&[URL, JWT, KEY, ("sasl.oauthbearer.assertion.file", "x")], "complete assertion"),
            (&[URL, ID, SECRET, ("https.ca.pem", "x"), ("https.ca.location", "y")], "mutually exclusive"),
            (&[URL, ID, SECRET, ("sasl.oauthbearer.extensions", "auth=x")], "auth"),
            (&[URL, ID, SECRET, ("sasl.oauthbearer.extensions", "x")], "key=value"),
            (&[URL, ID, SECRET, ("enable.sasl.oauthbearer.unsecure.jwt", "true")], "mutually exclusive"),
            (&[azure], "query="),
            (&[azure, ("sasl.oauthbearer.config", "query=a\u{1}b")], "percent-encoded"),
            (&[link_local, ID, SECRET], "metadata service"),
            (&[("sasl.oauthbearer.metadata.authentication.type", "aws_iam")], "AWS_MSK_IAM"),
        ] {
            let error = settings(pairs).unwrap_err();
            assert!(error.contains(part) && !error.contains("hunter2"), "{pairs:?}: {error}");
        }
    }

    #[test]
    fn endpoints_are_https_or_http_urls() {
        for (url, host, is_loopback) in [
            ("https://idp.test/token", "idp.test", false),
            ("HTTPS://idp.test:8443", "idp.test", false),
            ("http://localhost:80/x?secret=1", "localhost", true),
            ("http://[::1]:80/", "::1", true),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!((&*endpoint.host, endpoint.is_loopback()), (host, is_loopback), "{url}");
            assert!(!endpoint.to_string().contains("secret"));
        }
        for url in [
            "",
            "idp.test/token",
            "file:///etc/passwd",
            "https://",
            "https:///token",
            "https://user:hunter2@idp.test/",
            "https://idp.test:0/",
            "https://idp.test:99999/",
            "https://idp.test:x/",
            "https://[::1/",
            "https://idp.test/a b",
            "https://idp.test/\r\nX: y",
        ] {
            assert!(Endpoint::parse(url).is_err(), "{url}");
        }
    }
}
