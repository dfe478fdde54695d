//! The system calls behind a connection, which an application may replace.

use std::{
    fmt, io,
    net::{SocketAddr, TcpStream, ToSocketAddrs},
};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::platform;

/// Creates, connects and closes sockets, and resolves hosts. The default methods use the system's calls.
///
/// All methods except [`Transport::resolve`], which runs on the resolver's thread, run on I/O threads that all clients
/// of the process share, and must not block. The client's errors contain the text of a returned error.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Creates an unconnected socket for a TCP connection to this address.
    fn open(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        Ok(socket.into())
    }

    /// Starts to connect a socket without blocking. `broker` is the broker's name in errors and logs.
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

    /// Returns the addresses of a host.
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        (host, port).to_socket_addrs().map(Iterator::collect)
    }

    /// Returns true if [`Transport::resolve`] should also be called for hosts that are addresses already.
    fn resolves_addresses(&self) -> bool {
        false
    }
}

/// The system's own calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemTransport;

impl Transport for SystemTransport {}

/// Returns true for the errors with which a system reports a connect that continues in the background.
fn is_in_progress(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(platform::IN_PROGRESS)
}
