//! A broker's TCP socket, without blocking.

use std::{
    io::{self, IoSlice, Read, Write},
    net::SocketAddr,
};

use mio::{Interest, Registry, Token, net::TcpStream};
use ottla_core::broker::BrokerCore;
use ottla_core::machine::Instant;
use socket2::{Domain, Protocol, SockRef, Socket as RawSocket, TcpKeepalive, Type};

use crate::runtime::SocketSettings;

/// A socket that is connecting or connected.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    connected: bool,
    readable: bool,
    writable: bool,
    /// The peer sends no more than what is there: the end is to be read, too, for no edge comes for it again.
    ending: bool,
}

/// What became of a turn at the socket.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing more to do until the kernel says so.
    Waiting,
    /// There is more to read; others go first.
    More,
    /// The connection is over.
    Closed(String),
}

/// A socket that keeps delivering yields to the others after so many bytes.
const READ_TURN_BYTES: usize = 4 << 20;
/// Slices handed to one `writev`: 64 chunks are 1 MiB.
const SLICES: usize = 64;

impl Socket {
    /// Starts to connect.
    pub fn connect(
        address: SocketAddr,
        settings: &SocketSettings,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let raw = RawSocket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        raw.set_nonblocking(true)?;
        if settings.no_delay {
            raw.set_tcp_nodelay(true)?;
        }
        if settings.keepalive {
            raw.set_tcp_keepalive(&TcpKeepalive::new())?;
        }
        if let Some(bytes) = settings.send_buffer_bytes {
            raw.set_send_buffer_size(bytes)?;
        }
        if let Some(bytes) = settings.receive_buffer_bytes {
            raw.set_recv_buffer_size(bytes)?;
        }
        match raw.connect(&address.into()) {
            Ok(()) => {}
            Err(error) if is_in_progress(&error) => {}
            Err(error) => return Err(error),
        }
        let mut stream = TcpStream::from_std(raw.into());
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self { stream, connected: false, readable: false, writable: false, ending: false })
    }

    /// The kernel says something about the socket.
    pub fn note(&mut self, readable: bool, writable: bool, ending: bool) {
        self.readable |= readable || ending;
        self.writable |= writable;
        self.ending |= ending;
    }

    /// True if there is something to read or to find out.
    pub const fn has_news(&self) -> bool {
        self.readable || (!self.connected && self.writable)
    }

    /// Finds out whether the connection stands; `None` if it is not decided yet.
    pub fn finish_connecting(&mut self) -> Option<io::Result<()>> {
        if self.connected {
            return Some(Ok(()));
        }
        match self.stream.take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Some(Err(error)),
        }
        match self.stream.peer_addr() {
            Ok(_) => {
                self.connected = true;
                Some(Ok(()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotConnected => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// True once connected.
    pub const fn is_connected(&self) -> bool {
        self.connected
    }

    /// Reads what there is, up to a fair share.
    pub fn read(&mut self, now: Instant, core: &mut BrokerCore) -> Turn {
        let mut total = 0;
        while self.readable {
            if total >= READ_TURN_BYTES {
                return Turn::More;
            }
            let space = core.read_space();
            let wanted = space.len();
            match self.stream.read(space) {
                Ok(0) => return Turn::Closed("closed by the peer".to_owned()),
                Ok(n) => {
                    total += n;
                    // A short read says that the kernel's buffer was empty; the edge comes again with the next byte.
                    self.readable = n == wanted || self.ending;
                    core.handle_read(now, n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Turn::Closed(error.to_string()),
            }
        }
        Turn::Waiting
    }

    /// Writes what is waiting, as far as the kernel takes it.
    pub fn write(&mut self, now: Instant, core: &mut BrokerCore) -> Turn {
        while self.connected && self.writable {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = core.unsent(&mut slices);
            if filled == 0 {
                break;
            }
            let wanted: usize = slices[..filled].iter().map(|slice| slice.len()).sum();
            match self.stream.write_vectored(&slices[..filled]) {
                Ok(n) => {
                    self.writable = n == wanted;
                    core.handle_written(now, n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Turn::Closed(error.to_string()),
            }
        }
        Turn::Waiting
    }

    /// Stops hearing of it; dropping it closes it.
    pub fn deregister(&mut self, registry: &Registry) {
        // The file descriptor is closed right after, which deregisters it in any case.
        let _ = registry.deregister(&mut self.stream);
    }

    /// A quick, orderly end.
    pub fn shut_down(&self) {
        // The peer may be gone already.
        let _ = SockRef::from(&self.stream).shutdown(std::net::Shutdown::Both);
    }
}

fn is_in_progress(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(IN_PROGRESS)
}

/// EINPROGRESS on Linux; other systems report it as [`io::ErrorKind::InProgress`] or this number too.
#[cfg(target_os = "linux")]
const IN_PROGRESS: i32 = 115;
#[cfg(not(target_os = "linux"))]
const IN_PROGRESS: i32 = 36;
