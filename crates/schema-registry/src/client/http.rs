//! One exchange over HTTP: bounded in time and size, without redirects.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ureq::{
    Agent, Proxy,
    tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem},
};

use super::config::{Secret, Tls};
use crate::{Error, Result, error::shortened};

/// The largest answer: the largest schema, and what JSON needs to quote it.
pub const MAX_BODY_BYTES: u64 = 16 << 20;
const MAX_HEADER_BYTES: usize = 32 << 10;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    pub const fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// A request.
#[derive(Debug)]
pub struct Request {
    pub method: Method,
    pub url: String,
    pub headers: Vec<(String, Secret)>,
    pub body: Option<Vec<u8>>,
    pub timeout: Duration,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    pub location: Option<String>,
    pub body: Vec<u8>,
}

/// Sends requests, and has the time.
pub trait Exchange: Send + Sync + std::fmt::Debug {
    /// Sends a request and waits for its answer. The error says why there is none.
    fn exchange(&self, request: &Request) -> Result<Answer, String>;

    /// Returns the time.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Waits before a request is repeated.
    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Sends requests with ureq.
#[derive(Debug)]
pub struct Http {
    agent: Agent,
}

impl Http {
    /// Creates a client that trusts these certificates.
    pub fn new(tls: &Tls) -> Result<Self> {
        let tls_config = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(roots(tls)?)
            .client_cert(client_certificate(tls)?)
            .build();
        let agent = Agent::config_builder()
            .tls_config(tls_config)
            .proxy(Proxy::try_from_env())
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_response_header_size(MAX_HEADER_BYTES)
            .input_buffer_size(2 * MAX_HEADER_BYTES)
            .user_agent(concat!("ottla-schema-registry/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Ok(Self { agent })
    }

    fn run(&self, request: &Request) -> Result<Answer, ureq::Error> {
        let mut builder = ureq::http::Request::builder().method(request.method.name()).uri(&request.url);
        for (name, value) in &request.headers {
            builder = builder.header(name, value.expose());
        }
        let mut response = match &request.body {
            Some(body) => {
                let built = builder.body(body.as_slice())?;
                self.agent
                    .run(self.agent.configure_request(built).timeout_global(Some(request.timeout)).build())?
            }
            None => {
                let built = builder.body(())?;
                self.agent
                    .run(self.agent.configure_request(built).timeout_global(Some(request.timeout)).build())?
            }
        };
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let (location, content_type) = (header("location"), header("content-type").unwrap_or_default());
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MAX_BODY_BYTES).read_to_vec()?;
        Ok(Answer { status, content_type, location, body })
    }
}

impl Exchange for Http {
    fn exchange(&self, request: &Request) -> Result<Answer, String> {
        self.run(request).map_err(|error| {
            let seconds = request.timeout.as_secs_f64();
            match error {
                ureq::Error::Timeout(_) => format!("no complete answer within {seconds:.1} s"),
                ureq::Error::HostNotFound => "the host name can't be resolved".to_owned(),
                ureq::Error::BodyExceedsLimit(_) => {
                    format!("the answer has more than {MAX_BODY_BYTES} bytes")
                }
                ureq::Error::LargeResponseHeader(..) => {
                    format!("the header of the answer has more than {MAX_HEADER_BYTES} bytes")
                }
                other => shortened(&other.to_string()),
            }
        })
    }
}

fn roots(tls: &Tls) -> Result<RootCerts> {
    let found: Vec<Certificate<'static>> = match &tls.ca {
        Some(pem) => certificates(pem, "the CA's certificate")?,
        None => {
            let native = rustls_native_certs::load_native_certs();
            native.certs.iter().map(|der| Certificate::from_der(der).to_owned()).collect()
        }
    };
    Ok(RootCerts::from(found.into_iter()))
}

fn certificates(pem: &str, what: &str) -> Result<Vec<Certificate<'static>>> {
    let items = parse_pem(pem.as_bytes()).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let found: Vec<_> = items.collect();
    match found.is_empty() {
        true => Err(Error::config(format!("{what} is not a certificate in PEM"))),
        false => Ok(found),
    }
}

fn client_certificate(tls: &Tls) -> Result<Option<ClientCert>> {
    match (&tls.certificate, &tls.key) {
        (None, None) => Ok(None),
        (Some(chain), Some(key)) => {
            let chain = certificates(chain, "the client's certificate")?;
            let key = PrivateKey::from_pem(key.expose().as_bytes())
                .map_err(|_| Error::config("the client's private key is not an unencrypted key in PEM"))?;
            Ok(Some(ClientCert::new_with_certs(&chain, key)))
        }
        _ => Err(Error::config("a client's certificate and its private key are only of use together")),
    }
}
