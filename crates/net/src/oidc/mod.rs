//! Gets tokens of an identity provider: one HTTP exchange per token, on a thread that may block.
//!
//! ```text
//!   OidcSettings ─► TokenClient::fetch ─► request: form, assertion ─► http ─► answer ─► IssuedToken
//! ```
//!
//! | file | content |
//! |---|---|
//! | [`http`](mod@http) | one exchange, bounded in time and size |
//! | [`form`] | parameters of a request, percent-encoded |
//! | [`assertion`] | signed assertions |
//! | [`answer`] | the response of the token endpoint |
//!
//! # Pitfalls
//!
//! - A JSON Web Signature with ES256 is the two numbers as 64 bytes, and not the DER that TLS libraries make
//!   (`es256_signature_is_two_numbers_of_32_bytes`).
//! - The response of an endpoint may repeat the secret that it was sent, so that no error quotes a response that contains it
//!   (`secret_in_a_description_is_not_quoted`).
//! - The CA of an endpoint may be replaced while the client runs, and no broker is involved: the file is read again for each
//!   token, and the former certificates stay in use if it can't be (`ca_of_an_endpoint_is_read_again_for_each_token`).
//! - A redirect would pass the client's secret to another server: it is an error (`hostile_endpoints_are_bounded_errors`).

mod answer;
mod assertion;
mod form;
pub(crate) mod http;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    fmt,
    time::{SystemTime, UNIX_EPOCH},
};

pub use answer::token as read_answer;
pub(crate) use form::Form;
pub use http::Answer;
use http::{Http, Method, Request};
use ottla_core::{
    base64::{self, Alphabet},
    config::sasl::oidc::{Assertion, Grant, OidcSettings},
    error::Error,
    lock::Mutex,
    secret::Secret,
};

use crate::tls;

/// A token as the identity provider issued it.
#[derive(Clone, Debug)]
pub struct IssuedToken {
    /// The text.
    pub value: Secret,
    /// The end of its life, in milliseconds since 1970.
    pub expires_ms: i64,
    /// The name that it stands for.
    pub principal: String,
    /// Extensions for the broker (KIP-342).
    pub extensions: Vec<(String, String)>,
}

/// Error: no token was issued.
#[derive(Clone, Debug)]
pub struct TokenFailure {
    /// The endpoint, what failed and what to do, without secrets.
    pub reason: String,
    /// True if the same request may succeed soon.
    pub is_transient: bool,
}

impl TokenFailure {
    pub(crate) fn permanent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_transient: false }
    }

    pub(crate) fn transient(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_transient: true }
    }
}

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The type of an assertion that identifies the client (RFC 7523).
const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The longest assertion in a file.
const MAX_ASSERTION_BYTES: usize = 1 << 20;

/// The client of a token endpoint.
pub struct TokenClient {
    settings: OidcSettings,
    trusting: Mutex<Trusting>,
}

/// The HTTP client, and the certificates that it trusts.
struct Trusting {
    roots: Vec<Vec<u8>>,
    http: Http,
}

impl TokenClient {
    /// Creates the client. Reads the trusted certificates, and signs an assertion to check the key. Error: what is wrong
    /// with which property.
    pub fn new(settings: OidcSettings) -> Result<Self, Error> {
        if let Some(Assertion::Signed(assertion)) = settings.grant.assertion() {
            assertion::sign(assertion, 0).map_err(|why| tls::invalid("sasl.oauthbearer.assertion", why))?;
        }
        let location = settings.ca_location.as_deref();
        let is_used = settings.endpoint.is_https() || location.is_some() || settings.ca_pem.is_some();
        let roots =
            if is_used { tls::https_roots(location, settings.ca_pem.as_deref())? } else { Vec::new() };
        let http = http(&settings, &roots);
        Ok(Self { settings, trusting: Mutex::new(Trusting { roots, http }) })
    }

    /// Returns the HTTP client with the certificates that `https.ca.location` has now, or with the former ones and the
    /// reason why they are still in use.
    fn http(&self) -> (Http, Option<String>) {
        let mut trusting = self.trusting.lock();
        let OidcSettings { ca_location, ca_pem, .. } = &self.settings;
        let read = match ca_location {
            None => return (trusting.http.clone(), None),
            Some(location) => tls::https_roots(Some(location), ca_pem.as_deref()),
        };
        match read {
            Ok(roots) if roots.is_empty() => {
                let empty = "https.ca.location has no certificate any more; the former ones are in use";
                (trusting.http.clone(), Some(empty.to_owned()))
            }
            Ok(roots) => {
                if roots != trusting.roots {
                    *trusting = Trusting { http: http(&self.settings, &roots), roots };
                }
                (trusting.http.clone(), None)
            }
            Err(error) => {
                let text = format!("{}; the former certificates are in use", error.context().detail);
                (trusting.http.clone(), Some(text))
            }
        }
    }

    /// Gets a token. Blocks for at most `sasl.login.read.timeout.ms`.
    pub fn fetch(&self) -> Result<IssuedToken, TokenFailure> {
        let now_ms = unix_ms();
        let endpoint = &self.settings.endpoint;
        let (http, outdated) = self.http();
        let answer = match &self.settings.grant {
            Grant::AzureImds(query) => {
                let url = endpoint.url(query.as_deref());
                http.send(Request {
                    url: &url,
                    header: ("Metadata", "true"),
                    form: None,
                    method: Method::Get,
                })
            }
            Grant::ClientCredentials { id, secret, is_encoded } => {
                let authorization = basic(id, secret, *is_encoded);
                let value = String::from_utf8_lossy(authorization.expose());
                let form = Form::new("client_credentials").add("scope", self.settings.scope.as_bytes());
                let header = ("Authorization", &*value);
                http.send(Request {
                    url: &endpoint.url(None),
                    header,
                    form: Some(&form.finish()),
                    method: Method::Post,
                })
            }
            Grant::JwtBearer(assertion) | Grant::ClientAssertion { assertion, .. } => {
                let text = read_assertion(assertion, now_ms / 1000).map_err(TokenFailure::permanent)?;
                let form = match &self.settings.grant {
                    Grant::ClientAssertion { id, .. } => {
                        let form = Form::new("client_credentials")
                            .add("client_assertion_type", CLIENT_ASSERTION.as_bytes())
                            .add("client_assertion", text.expose());
                        id.iter().fold(form, |form, id| form.add("client_id", id.as_bytes()))
                    }
                    _ => Form::new(JWT_BEARER).add("assertion", text.expose()),
                };
                let form = form.add("scope", self.settings.scope.as_bytes());
                let header = ("Accept", "application/json");
                http.send(Request {
                    url: &endpoint.url(None),
                    header,
                    form: Some(&form.finish()),
                    method: Method::Post,
                })
            }
        };
        let at_endpoint = |failure: TokenFailure| {
            let outdated = outdated.map_or_else(String::new, |outdated| format!("; {outdated}"));
            TokenFailure { reason: format!("{endpoint}: {}{outdated}", failure.reason), ..failure }
        };
        answer.and_then(|answer| answer::token(&answer, &self.settings, now_ms)).map_err(at_endpoint)
    }
}

/// Signs an assertion, or reads it from its file. The error is the reason for the user.
fn read_assertion(assertion: &Assertion, now_seconds: i64) -> Result<Secret, String> {
    match assertion {
        Assertion::Signed(settings) => assertion::sign(settings, now_seconds),
        Assertion::File(path) => {
            let name = "sasl.oauthbearer.assertion.file";
            let bytes = tls::read_file(name, path).map_err(|error| error.context().detail.clone())?;
            let text = bytes.expose().trim_ascii();
            if text.is_empty() || text.len() > MAX_ASSERTION_BYTES || !text.iter().all(u8::is_ascii_graphic) {
                let expected = "one line of at most 1 MiB";
                return Err(format!("{name}: \"{path}\" does not contain an assertion: {expected}"));
            }
            Ok(Secret::new(text.to_vec()))
        }
    }
}

/// Creates the HTTP client for an endpoint.
fn http(settings: &OidcSettings, roots: &[Vec<u8>]) -> Http {
    // A metadata service is on the same machine, and its tokens are not for proxies.
    let has_proxy = !matches!(settings.grant, Grant::AzureImds(_));
    Http::new(roots, &settings.endpoint, has_proxy, settings.connect_timeout, settings.exchange_timeout)
}

/// Returns the value of `Authorization` with ID and secret.
fn basic(id: &str, secret: &Secret, is_encoded: bool) -> Secret {
    let pair = if is_encoded {
        Secret::concat(&[form::encode(id.as_bytes()).expose(), b":", form::encode(secret.expose()).expose()])
    } else {
        Secret::concat(&[id.as_bytes(), b":", secret.expose()])
    };
    let encoded = Secret::new(base64::encode(Alphabet::Standard, pair.expose()).into_bytes());
    Secret::concat(&[b"Basic ", encoded.expose()])
}

pub(crate) fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64)
}

impl fmt::Debug for TokenClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenClient").field("endpoint", &self.settings.endpoint).finish_non_exhaustive()
    }
}
