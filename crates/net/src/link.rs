//! A broker's connection below the frames: TCP alone, or TCP and TLS.

use std::{io, net::SocketAddr, sync::Arc};

use mio::{Registry, Token};
use ottla_core::{
    broker::BrokerCore,
    error::{Error, ErrorKind},
    machine::Instant,
};

use crate::{
    runtime::SocketSettings,
    socket::{Socket, Turn},
    tls::{TlsContext, TlsSocket},
    transport::Transport,
};

/// A connection that is being made or is open.
#[derive(Debug)]
pub enum Link {
    /// TCP alone.
    Plain(Socket),
    /// TCP and TLS.
    Tls(Box<TlsSocket>),
}

impl Link {
    /// Starts to connect to the broker of an actor; with `tls`, the handshake follows.
    pub fn connect(
        address: SocketAddr,
        core: &BrokerCore,
        tls: Option<&TlsContext>,
        settings: &SocketSettings,
        transport: &Arc<dyn Transport>,
        registry: &Registry,
        token: Token,
    ) -> Result<Self, Error> {
        let session = tls.map(|tls| tls.session(core.peer())).transpose()?;
        let socket = Socket::connect(address, &core.name(), settings, transport, registry, token)
            .map_err(|error| Error::new(ErrorKind::Connect, error.to_string()))?;
        Ok(match session {
            None => Self::Plain(socket),
            Some(session) => Self::Tls(Box::new(TlsSocket::new(socket, session))),
        })
    }

    const fn socket(&self) -> &Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &tls.socket,
        }
    }

    const fn socket_mut(&mut self) -> &mut Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &mut tls.socket,
        }
    }

    /// Returns the socket's file descriptor.
    pub fn number(&self) -> Option<i32> {
        self.socket().number()
    }

    /// Records the kernel's event for the socket.
    pub fn note(&mut self, readable: bool, writable: bool, ending: bool) {
        self.socket_mut().note(readable, writable, ending);
    }

    /// Returns true if the socket must be read or its state checked.
    pub const fn has_news(&self) -> bool {
        self.socket().has_news()
    }

    /// Checks whether TCP is connected; `None` while it is undecided. Reports an established connection to the core,
    /// unless a handshake follows.
    pub fn finish_connecting(&mut self, now: Instant, core: &mut BrokerCore) -> Option<io::Result<()>> {
        if self.socket().is_connected() {
            return Some(Ok(()));
        }
        let finished = self.socket_mut().finish_connecting();
        if let Some(Ok(())) = finished {
            match self {
                Self::Plain(_) => core.handle_connected(now),
                Self::Tls(_) => core.handle_securing(now),
            }
        }
        finished
    }

    /// Reads the available bytes, up to a fair share.
    pub fn read(&mut self, now: Instant, core: &mut BrokerCore) -> Turn {
        match self {
            Self::Plain(socket) => socket.read(now, core),
            Self::Tls(tls) => tls.read(now, core),
        }
    }

    /// Writes the pending bytes, as far as the kernel accepts them.
    pub fn write(&mut self, now: Instant, core: &mut BrokerCore) -> Turn {
        match self {
            Self::Plain(socket) => socket.write(now, core),
            Self::Tls(tls) => tls.write(now, core),
        }
    }

    /// Shuts the connection down in both directions.
    pub fn shut_down(&mut self) {
        if let Self::Tls(tls) = self {
            tls.say_goodbye();
        }
        self.socket().shut_down();
    }

    /// Deregisters the socket and closes it.
    pub fn close(self, registry: &Registry) {
        match self {
            Self::Plain(socket) => socket.close(registry),
            Self::Tls(tls) => tls.socket.close(registry),
        }
    }
}
