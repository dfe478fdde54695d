//! How a connection comes about: the calls of the system that an application may put its own in place of.

use std::{
    fmt, io,
    net::{SocketAddr, TcpStream, ToSocketAddrs},
};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Makes, connects and closes sockets, and finds the addresses of hosts. What an implementation does not say is done as
/// the system does it.
///
/// Sockets are handled on I/O threads, which all clients of the process share: nothing but [`Transport::resolve`], which
/// runs on the resolver's thread, may block. An error's text is what the client's errors say of the attempt.
pub trait Transport: fmt::Debug + Send + Sync {
    /// A new socket for a TCP connection to this address, not connected.
    fn open(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        Ok(socket.into())
    }

    /// Starts to connect a socket, which does not block. `broker` is the broker's name in errors and logs.
    fn connect(&self, socket: &TcpStream, address: SocketAddr, broker: &str) -> io::Result<()> {
        let _ = broker;
        match SockRef::from(socket).connect(&address.into()) {
            Err(error) if !is_in_progress(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Closes a socket.
    fn close(&self, socket: TcpStream) {
        drop(socket);
    }

    /// The addresses of a host.
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        (host, port).to_socket_addrs().map(Iterator::collect)
    }

    /// True if [`Transport::resolve`] is to be asked about hosts that are addresses already, too.
    fn resolves_addresses(&self) -> bool {
        false
    }
}

/// The system's own calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemTransport;

impl Transport for SystemTransport {}

/// True for what a system answers when connecting goes on behind the call.
fn is_in_progress(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(IN_PROGRESS)
}

/// EINPROGRESS.
#[cfg(target_os = "linux")]
const IN_PROGRESS: i32 = 115;
#[cfg(not(target_os = "linux"))]
const IN_PROGRESS: i32 = 36;
