//! One connection with TLS for a diagnosis: it blocks, and keeps what both sides show in the handshake.
//!
//! The clients' connections ([`super::socket`]) know only that a handshake failed, and why. A diagnosis also shows the
//! broker's chain, and whether the broker asked for a client certificate.
//!
//! # Pitfalls
//!
//! - In TLS 1.3 the client's handshake is complete before the broker has checked the client's certificate, so that its
//!   refusal arrives with the first bytes that are read
//!   (`broker_that_wants_a_client_certificate_is_recognized`).

use std::{
    fmt,
    io::{self, Read, Write},
    sync::Arc,
};

use ottla_core::{
    error::{Error, ErrorKind},
    lock::Mutex,
};
use rustls::{
    ClientConnection, DigitallySignedStruct, ProtocolVersion, SignatureScheme,
    client::{
        ResolvesClientCert, Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    sign::CertifiedKey,
};

use super::{
    TlsContext,
    failure::{self, TlsProblem},
    identity::Resolver,
    verify::{Broker, Verifier},
};
use crate::credentials::x509::{self, Certificate};

/// The messages that the peers exchanged in a handshake.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The protocol version, such as `TLS 1.3`.
    pub version: Option<&'static str>,
    /// The cipher suite.
    pub suite: Option<String>,
    /// The broker's certificates, its own first; those that can't be read are left out.
    pub chain: Vec<Certificate>,
    /// The outcome for the client's certificate.
    pub client: ClientCertificate,
}

/// The outcome for the client's certificate in a handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificate {
    /// The broker did not ask for one.
    #[default]
    NotRequested,
    /// The broker asked for one and got it.
    Presented,
    /// The broker asked for one and got none; it accepts those of these issuers, or of any if there are none.
    Missing(Vec<String>),
}

/// A handshake that failed.
#[derive(Debug)]
pub struct TlsFailure {
    /// The kind of the failure.
    pub problem: TlsProblem,
    /// The failure in words.
    pub error: Error,
    /// What was shown until then.
    pub shown: Shown,
}

/// A connection with TLS that blocks. Reading and writing transfer decrypted bytes.
pub struct TlsProbe<S> {
    session: ClientConnection,
    stream: Observed<S>,
    shown: Arc<Mutex<Shown>>,
}

impl TlsContext {
    /// Performs a handshake on a connected stream that blocks.
    pub fn probe<S: Read + Write>(
        &self,
        host: &str,
        port: u16,
        stream: S,
    ) -> Result<TlsProbe<S>, Box<TlsFailure>> {
        let shown = Arc::new(Mutex::new(Shown::default()));
        let fail = |detail: String| {
            let (problem, error) = (TlsProblem::Other, Error::new(ErrorKind::Tls, detail));
            Box::new(TlsFailure { problem, error, shown: Shown::default() })
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| fail("the host is neither a name nor an address that TLS can check".to_owned()))?;
        let broker = Broker { address: format!("{host}:{port}"), node_id: None };
        let (mut config, verifier, identity) = self.parts_for(broker);
        let presents = identity.map(Resolver);
        config.client_auth_cert_resolver = Arc::new(Presenter { presents, shown: Arc::clone(&shown) });
        config
            .dangerous()
            .set_certificate_verifier(Arc::new(Recorder { verifier, shown: Arc::clone(&shown) }));
        config.resumption = Resumption::disabled();
        let session = ClientConnection::new(Arc::new(config), name)
            .map_err(|error| fail(format!("can't start a session: {error}")))?;
        let mut probe = TlsProbe { session, stream: Observed { stream, first: Vec::new() }, shown };
        match probe.shake() {
            Ok(()) => Ok(probe),
            Err(error) => Err(Box::new(probe.failure(&error))),
        }
    }
}

impl<S: Read + Write> TlsProbe<S> {
    fn shake(&mut self) -> io::Result<()> {
        while self.session.is_handshaking() {
            if let (0, 0) = self.session.complete_io(&mut self.stream)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        // The last message of the handshake.
        while self.session.wants_write() {
            self.session.write_tls(&mut self.stream)?;
        }
        let mut shown = self.shown.lock();
        shown.version = self.session.protocol_version().map(|version| match version {
            ProtocolVersion::TLSv1_3 => "TLS 1.3",
            _ => "TLS 1.2",
        });
        let suite = self.session.negotiated_cipher_suite();
        shown.suite =
            suite.and_then(|suite| suite.suite().as_str()).map(|name| name.replace("TLS13_", "TLS_"));
        Ok(())
    }

    /// Returns the stream below, to set its deadline.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.stream.stream
    }

    /// Returns what was shown in the handshake.
    pub fn shown(&self) -> Shown {
        self.shown.lock().clone()
    }

    /// Explains an error of reading or writing, if it is one of TLS.
    pub fn explain(&self, error: &io::Error) -> Option<TlsFailure> {
        error.get_ref()?.downcast_ref::<rustls::Error>()?;
        Some(self.failure(error))
    }

    fn failure(&self, error: &io::Error) -> TlsFailure {
        let shown = self.shown();
        let first = self.stream.first.first_chunk().copied();
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let (problem, error) = match inner {
            Some(inner) => {
                let presented = shown.client == ClientCertificate::Presented;
                let is_open = !self.session.is_handshaking();
                (failure::problem(inner, presented), failure::explain(inner, first, is_open))
            }
            None => {
                let (problem, detail) = match error.kind() {
                    io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                        (TlsProblem::Silent, "the peer does not respond to the TLS handshake".to_owned())
                    }
                    _ => (
                        TlsProblem::Closed,
                        format!("the peer closed the connection during the TLS handshake ({error})"),
                    ),
                };
                (problem, Error::new(ErrorKind::Tls, detail))
            }
        };
        TlsFailure { problem, error, shown }
    }
}

impl<S: Read + Write> Read for TlsProbe<S> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.session, &mut self.stream).read(space)
    }
}

impl<S: Read + Write> Write for TlsProbe<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.session, &mut self.stream).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        rustls::Stream::new(&mut self.session, &mut self.stream).flush()
    }
}

impl<S> fmt::Debug for TlsProbe<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsProbe").field("shown", &self.shown).finish_non_exhaustive()
    }
}

/// Keeps the first bytes that the peer sent: they show what it speaks.
struct Observed<S> {
    stream: S,
    first: Vec<u8>,
}

impl<S: Read> Read for Observed<S> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let n = self.stream.read(space)?;
        let missing = 5usize.saturating_sub(self.first.len()).min(n);
        self.first.extend_from_slice(&space[..missing]);
        Ok(n)
    }
}

impl<S: Write> Write for Observed<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Keeps the broker's chain, and checks it as a client does.
#[derive(Debug)]
struct Recorder {
    verifier: Arc<Verifier>,
    shown: Arc<Mutex<Shown>>,
}

impl ServerCertVerifier for Recorder {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = std::iter::once(leaf).chain(intermediates);
        self.shown.lock().chain = chain.filter_map(|der| Certificate::parse(der).ok()).collect();
        self.verifier.verify_server_cert(leaf, intermediates, host, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, leaf, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Presents the client's certificate as a client does, and notes that the broker asked for it.
#[derive(Debug)]
struct Presenter {
    presents: Option<Resolver>,
    shown: Arc<Mutex<Shown>>,
}

impl ResolvesClientCert for Presenter {
    fn resolve(&self, accepted: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let key = self.presents.as_ref().and_then(|resolver| resolver.resolve(accepted, schemes));
        self.shown.lock().client = match key {
            Some(_) => ClientCertificate::Presented,
            None => ClientCertificate::Missing(
                accepted.iter().take(20).map(|name| x509::distinguished_name(name)).collect(),
            ),
        };
        key
    }

    fn has_certs(&self) -> bool {
        true
    }
}
