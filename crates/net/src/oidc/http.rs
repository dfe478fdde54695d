//! One exchange over HTTP: bounded in time and size, without redirects.

use std::{io, sync::Arc, time::Duration};

use ottla_core::{config::sasl::oidc::Endpoint, secret::Secret, shown::quoted};
use ureq::{
    Agent, Proxy,
    tls::{Certificate, RootCerts, TlsConfig},
};

use super::TokenFailure;
use crate::tls;

/// The largest response: twice the largest token.
pub const MAX_BODY_BYTES: u64 = 1 << 20;
const MAX_HEADER_BYTES: usize = 32 << 10;

/// Sends requests.
#[derive(Clone)]
pub struct Http {
    agent: Agent,
    timeout: Duration,
}

/// A request.
pub struct Request<'a> {
    pub url: &'a str,
    pub header: (&'a str, &'a str),
    /// The body, with POST.
    pub form: Option<&'a Secret>,
    pub method: Method,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    /// Without a body.
    Put,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header `Content-Type`, or nothing.
    pub content_type: String,
    /// The header `Location`, without the query.
    pub location: Option<String>,
    /// The body.
    pub body: Secret,
}

impl Http {
    /// Creates a client for one endpoint, which trusts these certificates.
    pub fn new(
        roots: &[Vec<u8>],
        endpoint: &Endpoint,
        has_proxy: bool,
        connect_timeout: Duration,
        timeout: Duration,
    ) -> Self {
        let roots = roots.iter().map(|der| Certificate::from_der(der).to_owned());
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(tls::default_provider()))
            .root_certs(RootCerts::from(roots))
            .build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .proxy(if has_proxy && !endpoint.is_loopback() { Proxy::try_from_env() } else { None })
            .http_status_as_error(false)
            .https_only(endpoint.is_https())
            .max_redirects(0)
            .max_idle_connections(0)
            .max_response_header_size(MAX_HEADER_BYTES)
            .input_buffer_size(2 * MAX_HEADER_BYTES)
            .output_buffer_size(MAX_HEADER_BYTES)
            .timeout_global(Some(timeout))
            .timeout_connect(Some(connect_timeout.min(timeout)))
            .user_agent(concat!("ottla/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .build()
            .new_agent();
        Self { agent, timeout }
    }

    /// Sends a request and waits for the response.
    pub fn send(&self, request: Request<'_>) -> Result<Answer, TokenFailure> {
        self.exchange(request).map_err(|error| failure(error, self.timeout))
    }

    fn exchange(&self, request: Request<'_>) -> Result<Answer, ureq::Error> {
        let (name, value) = request.header;
        let mut response = match request.method {
            Method::Post => self
                .agent
                .post(request.url)
                .header("Content-Type", "application/x-www-form-urlencoded")
                .header(name, value)
                .send(request.form.map_or(&[][..], Secret::expose))?,
            Method::Get => self.agent.get(request.url).header(name, value).call()?,
            Method::Put => self.agent.put(request.url).header(name, value).send_empty()?,
        };
        let header = |name: &str| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(quoted(value))
        };
        let location =
            header("location").map(|url| url.split(['?', '#']).next().unwrap_or_default().to_owned());
        let (status, content_type) = (response.status().as_u16(), header("content-type").unwrap_or_default());
        let body = response.body_mut().with_config().limit(MAX_BODY_BYTES).read_to_vec()?;
        Ok(Answer { status, content_type, location, body: Secret::new(body) })
    }
}

/// Puts an error into words.
fn failure(error: ureq::Error, timeout: Duration) -> TokenFailure {
    let tls = |error: &rustls::Error| {
        TokenFailure::permanent(format!(
            "TLS: {error}; the certificate's host must be that of sasl.oauthbearer.token.endpoint.url, and its issuer \
             among those of https.ca.location or the system"
        ))
    };
    match error {
        ureq::Error::Timeout(_) => TokenFailure::transient(format!(
            "no complete response within {} ms (sasl.login.read.timeout.ms, sasl.login.connect.timeout.ms)",
            timeout.as_millis()
        )),
        ureq::Error::HostNotFound => TokenFailure::transient(
            "the host name can't be resolved; check sasl.oauthbearer.token.endpoint.url",
        ),
        ureq::Error::BodyExceedsLimit(_) => TokenFailure::permanent(format!(
            "the response has more than {MAX_BODY_BYTES} bytes; is it the token endpoint?"
        )),
        ureq::Error::LargeResponseHeader(..) => TokenFailure::permanent(format!(
            "the header of the response has more than {MAX_HEADER_BYTES} bytes; is it the token endpoint?"
        )),
        ureq::Error::Rustls(error) => tls(&error),
        ureq::Error::Io(error) => match rustls_error(&error) {
            Some(error) => tls(error),
            None => TokenFailure::transient(format!("the connection failed: {}", quoted(&error.to_string()))),
        },
        ureq::Error::ConnectionFailed => TokenFailure::transient("the connection failed"),
        ureq::Error::ConnectProxyFailed(why) => TokenFailure::transient(format!(
            "the proxy (HTTPS_PROXY) refused the connection: {}",
            quoted(&why)
        )),
        ureq::Error::Protocol(why) => {
            TokenFailure::permanent(format!("the response is not valid HTTP: {}", quoted(&why.to_string())))
        }
        other => TokenFailure::permanent(quoted(&other.to_string())),
    }
}

fn rustls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    inner.downcast_ref().or_else(|| inner.source()?.downcast_ref())
}
