//! A broker's TCP socket, without blocking.

use std::{
    io::{self, IoSlice, Read, Write},
    net::SocketAddr,
    sync::Arc,
};

use mio::{Interest, Registry, Token, net::TcpStream};
use ottla_core::broker::BrokerCore;
use ottla_core::machine::Instant;
use socket2::{SockRef, TcpKeepalive};

use crate::{runtime::SocketSettings, transport::Transport};

/// A socket that is connecting or connected.
#[derive(Debug)]
pub struct Socket {
    /// There until the socket is closed.
    stream: Option<TcpStream>,
    transport: Arc<dyn Transport>,
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
        broker: &str,
        settings: &SocketSettings,
        transport: &Arc<dyn Transport>,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let stream = transport.open(address)?;
        let started = prepare(&stream, settings)
            .and_then(|()| transport.connect(&stream, address, broker))
            // Whoever connects in our place may have made it blocking.
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

    /// What the system calls it.
    pub fn number(&self) -> Option<i32> {
        #[cfg(unix)]
        return self.stream.as_ref().map(std::os::fd::AsRawFd::as_raw_fd);
        #[cfg(not(unix))]
        None
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
            // The end of what has not begun: whoever was to connect the socket did not.
            Err(error) if error.kind() == io::ErrorKind::NotConnected && self.ending => {
                Some(Err(io::Error::new(error.kind(), "nobody connects the socket")))
            }
            Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                // The kernel says so again when it is connected.
                (self.readable, self.writable) = (false, false);
                None
            }
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
        let Some(stream) = &mut self.stream else { return Turn::Waiting };
        while self.readable {
            if total >= READ_TURN_BYTES {
                return Turn::More;
            }
            let space = core.read_space();
            let wanted = space.len();
            match stream.read(space) {
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
        let Some(stream) = &mut self.stream else { return Turn::Waiting };
        while self.connected && self.writable {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = core.unsent(&mut slices);
            if filled == 0 {
                break;
            }
            let wanted: usize = slices[..filled].iter().map(|slice| slice.len()).sum();
            match stream.write_vectored(&slices[..filled]) {
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

    /// A quick, orderly end.
    pub fn shut_down(&self) {
        if let Some(stream) = &self.stream {
            // The peer may be gone already.
            let _ = SockRef::from(stream).shutdown(std::net::Shutdown::Both);
        }
    }

    /// Stops hearing of it and closes it.
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
