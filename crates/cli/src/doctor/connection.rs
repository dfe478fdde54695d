//! A connection that blocks, with a deadline: requests go out, responses come in, one at a time.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use ottla_core::connection::versions::{self, Versions};
use ottla_net::{Secret, TlsFailure, TlsProbe};
use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::api_versions::{ApiVersionsRequest, ApiVersionsResponse},
    header::{RequestHeader, ResponseHeader},
    message::{Message, Request},
    primitive::Reader,
};

/// The largest response that is read.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Why a request has no response.
#[derive(Debug)]
pub enum Broken {
    /// The peer closed the connection.
    Closed(String),
    /// There was no response in time.
    Silent,
    /// The TLS session failed.
    Tls(Box<TlsFailure>),
    /// The response is not Kafka's.
    NotKafka(Spoken),
    /// The response can't be decoded.
    Malformed(String),
    /// The broker does not have the API.
    Unsupported(ApiKey),
}

/// The protocol of a peer that is not a Kafka broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    Tls,
    Http,
    Other,
}

/// A TCP stream on which every operation ends at a deadline.
#[derive(Debug)]
pub struct Timed {
    stream: TcpStream,
    until: Instant,
}

impl Timed {
    pub fn new(stream: TcpStream, until: Instant) -> Self {
        Self { stream, until }
    }

    /// Returns the stream.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Timed {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(space).map_err(timed_out)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The system reports a timeout of a socket as `WouldBlock`.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

/// The bytes of a connection, encrypted or not.
#[derive(Debug)]
pub enum Link {
    Plain(Timed),
    Tls(Box<TlsProbe<Timed>>),
}

impl Link {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Returns true if the peer answers a request of HTTP.
    pub fn answers_http(&mut self) -> bool {
        let mut start = [0; 5];
        let asked = self.write_all(b"GET / HTTP/1.0\r\n\r\n");
        asked.and_then(|()| self.reader().read_exact(&mut start)).is_ok() && &start == b"HTTP/"
    }

    fn reader(&mut self) -> &mut dyn Read {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &mut **stream,
        }
    }

    fn broken(&self, error: &io::Error) -> Broken {
        if let Self::Tls(stream) = self
            && let Some(failure) = stream.explain(error)
        {
            return Broken::Tls(Box::new(failure));
        }
        match error.kind() {
            io::ErrorKind::TimedOut => Broken::Silent,
            io::ErrorKind::UnexpectedEof => Broken::Closed("closed by the peer".to_owned()),
            _ => Broken::Closed(error.to_string()),
        }
    }
}

/// A connection to a broker whose API versions are known.
#[derive(Debug)]
pub struct Connection {
    link: Link,
    pub versions: Versions,
    /// The broker's response to ApiVersions.
    pub offered: ApiVersionsResponse,
    pub address: SocketAddr,
    client_id: String,
    next_id: i32,
}

impl Connection {
    /// Asks the broker for its API versions, as the first request of a connection.
    pub fn greet(link: Link, address: SocketAddr, client_id: &str) -> Result<Self, Broken> {
        let mut connection = Self {
            link,
            versions: Versions::default(),
            offered: ApiVersionsResponse::default(),
            address,
            client_id: client_id.to_owned(),
            next_id: 1,
        };
        let request = ApiVersionsRequest {
            client_software_name: "ottla-doctor".to_owned(),
            client_software_version: env!("CARGO_PKG_VERSION").to_owned(),
            ..ApiVersionsRequest::default()
        };
        let mut version = *ApiKey::ApiVersions.versions().end();
        loop {
            let body =
                connection.exchange(ApiKey::ApiVersions, version, |out| request.encode(version, out))?;
            let code = body.first_chunk::<2>().map(|bytes| ErrorCode(i16::from_be_bytes(*bytes)));
            if code == Some(ErrorCode::UNSUPPORTED_VERSION) && version > 0 {
                version = 0;
                continue;
            }
            let malformed = |why: String| match version {
                _ if code == Some(ErrorCode::NONE) => Broken::Malformed(why),
                _ => Broken::NotKafka(Spoken::Other),
            };
            let response = ApiVersionsResponse::decode(&mut Reader::new(&body), version)
                .map_err(|error| malformed(error.to_string()))?;
            if response.error_code.is_error() {
                return Err(Broken::Malformed(format!("ApiVersions: {}", response.error_code.name())));
            }
            let rows = response.api_keys.iter().map(|row| (row.api_key, row.min_version, row.max_version));
            versions::check(rows.clone()).map_err(malformed)?;
            connection.versions = Versions::new(rows);
            connection.offered = response;
            return Ok(connection);
        }
    }

    /// Sends a request in the highest version that both sides have, and waits for the response.
    pub fn call<R: Request>(&mut self, request: &R) -> Result<R::Response, Broken> {
        let api = R::API_KEY;
        let version = self.versions.pick_any(api).ok_or(Broken::Unsupported(api))?;
        self.call_in(version, request)
    }

    /// Sends a request in a version, and waits for the response.
    pub fn call_in<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response, Broken> {
        let api = R::API_KEY;
        let body = self.exchange(api, version, |out| request.encode(version, out))?;
        R::Response::decode(&mut Reader::new(&body), version)
            .map_err(|error| Broken::Malformed(format!("{api}: {error}")))
    }

    /// Sends a message of SASL without a header, and waits for the response.
    pub fn exchange_raw(&mut self, message: &[u8]) -> Result<Vec<u8>, Broken> {
        self.send_raw(message)?;
        self.read_frame()
    }

    /// Sends a message of SASL without a header, to which there is no response.
    pub fn send_raw(&mut self, message: &[u8]) -> Result<(), Broken> {
        let length = (message.len() as u32).to_be_bytes();
        self.write(Secret::concat(&[&length, message]).expose())
    }

    /// Sets the end of the time for the following requests.
    pub fn set_deadline(&mut self, until: Instant) {
        if let Link::Plain(stream) = &mut self.link {
            stream.until = until;
        } else if let Link::Tls(stream) = &mut self.link {
            stream.get_mut().until = until;
        }
    }

    fn exchange<E: std::fmt::Display>(
        &mut self,
        api: ApiKey,
        version: i16,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Vec<u8>, Broken> {
        let header = RequestHeader {
            api_key: api.as_i16(),
            api_version: version,
            correlation_id: self.next_id,
            client_id: Some(self.client_id.clone()),
        };
        self.next_id += 1;
        let mut bytes = vec![0; 4];
        let impossible = |why: String| Broken::Malformed(format!("{api} can't be encoded: {why}"));
        header.encode(&mut bytes).map_err(|error| impossible(error.to_string()))?;
        encode(&mut bytes).map_err(|error| impossible(error.to_string()))?;
        let length = (bytes.len() as u32 - 4).to_be_bytes();
        bytes[..4].copy_from_slice(&length);
        self.write(&bytes)?;
        let mut frame = self.read_frame()?;
        let mut reader = Reader::new(&frame);
        let answer =
            ResponseHeader::decode(&mut reader, api, version).map_err(|_| Broken::NotKafka(Spoken::Other))?;
        if answer.correlation_id != header.correlation_id {
            return Err(Broken::NotKafka(Spoken::Other));
        }
        let start = reader.position();
        Ok(frame.split_off(start))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.link.write_all(bytes).map_err(|error| self.link.broken(&error))
    }

    fn read_frame(&mut self) -> Result<Vec<u8>, Broken> {
        let mut length = [0; 4];
        if let Err(error) = self.link.reader().read_exact(&mut length) {
            return Err(self.link.broken(&error));
        }
        let size = match length {
            // An alert or a handshake record of TLS, and what Java's and OpenSSL's servers send to plaintext.
            [0x15 | 0x16, 3, 0..=4, _] => return Err(Broken::NotKafka(Spoken::Tls)),
            [b'H', b'T', b'T', b'P'] => return Err(Broken::NotKafka(Spoken::Http)),
            _ => u32::from_be_bytes(length) as usize,
        };
        if size > MAX_RESPONSE_BYTES {
            return Err(Broken::NotKafka(Spoken::Other));
        }
        let mut frame = Vec::new();
        match self.link.reader().take(size as u64).read_to_end(&mut frame) {
            Ok(n) if n == size => Ok(frame),
            Ok(_) => Err(Broken::Closed("closed by the peer within a response".to_owned())),
            Err(error) => Err(self.link.broken(&error)),
        }
    }
}
