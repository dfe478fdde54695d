//! TLS of the brokers' listeners.
//!
//! A listener has one [`TlsListener`]; each connection has a [`Session`] between its socket and the cluster.

use std::{
    fmt,
    io::{self, IoSlice, Read, Write},
    sync::Arc,
};

use mio::net::TcpStream;
use rustls::{
    RootCertStore, ServerConfig, ServerConnection,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
};
use socket2::SockRef;

use crate::{principal, principal_mapping::PrincipalMapping, socket::SEND_FLAGS};

/// The certificate of a listener, and whose clients it accepts. Cheap to clone.
#[derive(Clone)]
pub struct TlsListener {
    config: Arc<ServerConfig>,
    /// Makes principals of the subjects of client certificates.
    mapping: Option<Arc<PrincipalMapping>>,
}

/// The requirement of a listener on its clients (`ssl.client.auth`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// No certificate.
    None,
    /// A certificate of one of these CAs (in DER), if the client has one.
    Requested(Vec<Vec<u8>>),
    /// A certificate of one of these CAs (in DER).
    Required(Vec<Vec<u8>>),
}

impl TlsListener {
    /// Creates a listener's TLS from a certificate chain and a private key in DER. Error: the reason why they are
    /// invalid.
    pub fn new(chain: &[Vec<u8>], key: &[u8], clients: &ClientAuthentication) -> Result<Self, String> {
        let provider = Arc::new(ottla_p521::provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match clients {
            ClientAuthentication::None => builder.with_no_client_auth(),
            ClientAuthentication::Requested(authorities) | ClientAuthentication::Required(authorities) => {
                let mut roots = RootCertStore::empty();
                for der in authorities {
                    roots
                        .add(CertificateDer::from(der.clone()))
                        .map_err(|error| format!("client CA: {error}"))?;
                }
                let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                if matches!(clients, ClientAuthentication::Requested(_)) {
                    verifier = verifier.allow_unauthenticated();
                }
                builder.with_client_cert_verifier(
                    verifier.build().map_err(|error| format!("client CA: {error}"))?,
                )
            }
        };
        let chain = chain.iter().map(|der| CertificateDer::from(der.clone())).collect();
        let key = PrivateKeyDer::try_from(key.to_vec()).map_err(|why| format!("private key: {why}"))?;
        let config = builder.with_single_cert(chain, key).map_err(|error| error.to_string())?;
        Ok(Self { config: Arc::new(config), mapping: None })
    }

    /// Sets how subjects of client certificates become principals (`ssl.principal.mapping.rules`). A client that no rule
    /// matches is refused. Without rules the principal is the subject.
    pub fn principal_mapping(mut self, mapping: PrincipalMapping) -> Self {
        self.mapping = Some(Arc::new(mapping));
        self
    }

    pub(crate) fn session(&self) -> Option<Box<Session>> {
        let mut connection = ServerConnection::new(Arc::clone(&self.config)).ok()?;
        connection.set_buffer_limit(Some(BUFFER_LIMIT));
        Some(Box::new(Session { connection, mapping: self.mapping.clone(), is_named: false }))
    }
}

impl fmt::Debug for TlsListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsListener")
    }
}

/// The encrypted bytes that may wait for the socket.
const BUFFER_LIMIT: usize = 256 << 10;

/// The TLS of one connection.
pub(crate) struct Session {
    connection: ServerConnection,
    mapping: Option<Arc<PrincipalMapping>>,
    is_named: bool,
}

impl Session {
    /// Reads decrypted bytes. `Ok(0)` is the end of the stream.
    pub fn read(&mut self, stream: &mut TcpStream, space: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(space) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Clients often end without a closing alert.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                result => return result,
            }
            if self.connection.read_tls(stream)? == 0 {
                return Ok(0);
            }
            if let Err(error) = self.connection.process_new_packets() {
                // The alert contains the reason for the client.
                let _ = self.flush(stream);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            self.flush(stream)?;
        }
    }

    /// Encrypts bytes. Returns how many, which is zero while too many encrypted bytes wait.
    pub fn encrypt(&mut self, bytes: &[u8]) -> usize {
        if self.connection.is_handshaking() {
            return 0;
        }
        self.connection.writer().write(bytes).unwrap_or(0)
    }

    /// Writes encrypted bytes until the system accepts no more. Returns true if all are written.
    pub fn flush(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Quiet(stream)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Returns true if encrypted bytes wait for the socket.
    pub fn is_waiting(&self) -> bool {
        self.connection.wants_write()
    }

    /// Queues the alert that ends the session.
    pub fn end(&mut self) {
        self.connection.send_close_notify();
    }

    /// Returns the client's principal once, when the handshake is complete: the name that the rules make of the subject of
    /// its certificate, or `ANONYMOUS`. Error: no rule matches.
    pub fn take_principal(&mut self) -> Option<Result<String, NoRule>> {
        if self.is_named || self.connection.is_handshaking() {
            return None;
        }
        self.is_named = true;
        let certificate = self.connection.peer_certificates().and_then(|chain| chain.first());
        let Some(subject) = certificate.and_then(|der| principal::of_certificate(der)) else {
            return Some(Ok("ANONYMOUS".to_owned()));
        };
        Some(match &self.mapping {
            Some(mapping) => mapping.principal(&subject).ok_or(NoRule),
            None => Ok(subject),
        })
    }
}

/// No rule makes a principal of the subject of the client's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRule;

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// Writes to a socket without SIGPIPE.
struct Quiet<'a>(&'a mut TcpStream);

impl Write for Quiet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let stream = &*self.0;
        stream.try_io(|| SockRef::from(stream).send_vectored_with_flags(slices, SEND_FLAGS))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
