//! A broker's non-blocking TCP socket.
//!
//! # Pitfalls
//!
//! - A socket that a `Transport` was to connect and did not is writable and at its end from the start. Treated as
//!   connecting, it kept an I/O thread busy until the setup time-out
//!   (`socket_is_closed_at_once_when_the_transport_does_not_connect_it`).

use std::{
    io::{self, IoSlice, Read},
    net::SocketAddr,
    sync::Arc,
};

use mio::{Interest, Registry, Token, net::TcpStream};
use ottla_core::broker::BrokerCore;
use ottla_core::error::Error;
use ottla_core::machine::Instant;
use socket2::{SockRef, TcpKeepalive};

use crate::{platform, runtime::SocketSettings, transport::Transport};

/// A socket that is connecting or connected.
#[derive(Debug)]
pub struct Socket {
    /// The stream, until the socket is closed.
    stream: Option<TcpStream>,
    transport: Arc<dyn Transport>,
    connected: bool,
    readable: bool,
    writable: bool,
    /// True if the peer closed its side: the end must be read, too, because no further edge reports it.
    ending: bool,
}

/// The result of one pass over a socket.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing to do until the kernel reports the next event.
    Waiting,
    /// More bytes can be read; other sockets go first.
    More,
    /// The connection has ended, for this reason.
    Closed(String),
    /// The connection can't be used, for this reason.
    Failed(Error),
}

/// The result of one attempt to read bytes.
#[derive(Debug)]
pub enum Received {
    /// This many bytes were read.
    Bytes(usize),
    /// No byte is available until the kernel reports the next event.
    Nothing,
    /// The connection has ended, for this reason.
    Closed(String),
}

/// The number of bytes after which a busy socket yields to the others.
const READ_TURN_BYTES: usize = 4 << 20;
/// Slices passed to one `sendmsg`: 64 chunks are 1 MiB.
const SLICES: usize = 64;

/// The flags of each `sendmsg`. Without `MSG_NOSIGNAL` writing to a connection that the peer reset would end the
/// process by SIGPIPE, because a library must not change how its process handles signals. Apple's systems have a socket
/// option instead.
#[cfg(all(unix, not(target_vendor = "apple")))]
const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL;
#[cfg(not(all(unix, not(target_vendor = "apple"))))]
const SEND_FLAGS: i32 = 0;

/// Whether the kernel reports the next byte, or the next room, after a read or write of less than was asked for. On Windows it does so
/// only after an attempt that found nothing.
const EDGES_FOLLOW: bool = cfg!(not(windows));

impl Socket {
    /// Starts to connect.
    pub fn connect(
        address: SocketAddr,
        broker: &str,
        settings: &SocketSettings,
        transport: &Arc<dyn Transport>,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let stream = transport.open(address)?;
        let started = prepare(&stream, settings)
            .and_then(|()| transport.connect(&stream, address, broker))
            // An application's connect function may have made the socket blocking.
            .and_then(|()| stream.set_nonblocking(true));
        if let Err(error) = started {
            transport.close(stream);
            return Err(error);
        }
        let mut stream = TcpStream::from_std(stream);
        if let Err(error) = registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE) {
            transport.close(stream.into());
            return Err(error);
        }
        let transport = Arc::clone(transport);
        let stream = Some(stream);
        Ok(Self { stream, transport, connected: false, readable: false, writable: false, ending: false })
    }

    /// Returns the socket's file descriptor.
    pub fn number(&self) -> Option<i32> {
        self.stream.as_ref().and_then(platform::descriptor)
    }

    /// Records the kernel's event for the socket.
    pub fn note(&mut self, readable: bool, writable: bool, ending: bool) {
        self.readable |= readable || ending;
        self.writable |= writable;
        self.ending |= ending;
    }

    /// Returns true if the socket must be read or its state checked.
    pub const fn has_news(&self) -> bool {
        self.readable || (!self.connected && self.writable)
    }

    /// Checks whether the connection is established; `None` while it is undecided.
    pub fn finish_connecting(&mut self) -> Option<io::Result<()>> {
        if self.connected {
            return Some(Ok(()));
        }
        let stream = self.stream.as_ref()?;
        match stream.take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Some(Err(error)),
        }
        match stream.peer_addr() {
            Ok(_) => {
                self.connected = true;
                Some(Ok(()))
            }
            // The event is the hang-up of a socket on which no connect was started.
            Err(error) if error.kind() == io::ErrorKind::NotConnected && self.ending => {
                Some(Err(io::Error::new(error.kind(), "the transport did not connect the socket")))
            }
            Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                // The kernel reports it again once connected.
                (self.readable, self.writable) = (false, false);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Returns true once connected.
    pub const fn is_connected(&self) -> bool {
        self.connected
    }

    /// Reads the available bytes, up to a fair share.
    pub fn read(&mut self, now: Instant, core: &mut BrokerCore) -> Turn {
        let mut total = 0;
        let Some(stream) = &mut self.stream else { return Turn::Waiting };
        while self.readable {
            if total >= READ_TURN_BYTES {
                return Turn::More;
            }
            let space = core.read_space();
            let requested = space.len();
            match stream.read(space) {
                Ok(0) => return Turn::Closed("closed by the peer".to_owned()),
                Ok(n) => {
                    total += n;
                    // A short read means that the kernel's buffer was empty; the next byte triggers a new edge.
                    self.readable = n == requested || self.ending || !EDGES_FOLLOW;
                    core.handle_read(now, n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Turn::Closed(error.to_string()),
            }
        }
        Turn::Waiting
    }

    /// Writes the pending bytes, as far as the kernel accepts them.
    pub fn write(&mut self, now: Instant, core: &mut BrokerCore) -> Turn {
        let Some(stream) = &mut self.stream else { return Turn::Waiting };
        while self.connected && self.writable {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = core.unsent(&mut slices);
            if filled == 0 {
                break;
            }
            let requested: usize = slices[..filled].iter().map(|slice| slice.len()).sum();
            let slices = &slices[..filled];
            match stream.try_io(|| SockRef::from(&*stream).send_vectored_with_flags(slices, SEND_FLAGS)) {
                Ok(n) => {
                    self.writable = n == requested || !EDGES_FOLLOW;
                    core.handle_written(now, n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Turn::Closed(error.to_string()),
            }
        }
        Turn::Waiting
    }

    /// Reads bytes below TLS.
    pub fn receive(&mut self, space: &mut [u8]) -> Received {
        let Some(stream) = &mut self.stream else { return Received::Nothing };
        while self.connected && self.readable {
            match stream.read(space) {
                Ok(0) => return Received::Closed("closed by the peer".to_owned()),
                Ok(n) => {
                    self.readable = n == space.len() || self.ending || !EDGES_FOLLOW;
                    return Received::Bytes(n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Received::Closed(error.to_string()),
            }
        }
        Received::Nothing
    }

    /// Writes bytes below TLS. Returns how many the kernel accepted; zero until it reports the next event.
    pub fn transmit(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let Some(stream) = &mut self.stream else { return Ok(0) };
        while self.connected && self.writable {
            match stream.try_io(|| SockRef::from(&*stream).send_with_flags(bytes, SEND_FLAGS)) {
                Ok(n) => {
                    self.writable = n == bytes.len() || !EDGES_FOLLOW;
                    return Ok(n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(0)
    }

    /// Shuts the connection down in both directions.
    pub fn shut_down(&self) {
        if let Some(stream) = &self.stream {
            // The peer may be gone already.
            let _ = SockRef::from(stream).shutdown(std::net::Shutdown::Both);
        }
    }

    /// Deregisters the socket and closes it.
    pub fn close(mut self, registry: &Registry) {
        if let Some(stream) = &mut self.stream {
            // The file descriptor is closed right after, which deregisters it in any case.
            let _ = registry.deregister(stream);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.transport.close(stream.into());
        }
    }
}

fn prepare(stream: &std::net::TcpStream, settings: &SocketSettings) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let options = SockRef::from(stream);
    #[cfg(target_vendor = "apple")]
    options.set_nosigpipe(true)?;
    if settings.no_delay {
        options.set_tcp_nodelay(true)?;
    }
    if settings.keepalive {
        options.set_tcp_keepalive(&TcpKeepalive::new())?;
    }
    if let Some(bytes) = settings.send_buffer_bytes {
        options.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = settings.receive_buffer_bytes {
        options.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}
