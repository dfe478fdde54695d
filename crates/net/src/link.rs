//! A broker's connection below the frames: TCP alone, or TCP and TLS, through a proxy or not.
//!
//! Through a proxy, its handshake comes first. TLS and frames do not know of it.

use std::{io, net::SocketAddr, sync::Arc};

use mio::{Registry, Token};
use ottla_core::{
    broker::BrokerCore,
    error::{Error, ErrorKind},
    machine::Instant,
};

use crate::{
    proxy::Handshake,
    runtime::SocketSettings,
    socket::{Received, Socket, Turn},
    tls::{TlsContext, TlsSocket},
    transport::Transport,
};

/// A connection that is being made or is open.
#[derive(Debug)]
pub struct Link {
    layers: Layers,
    /// The handshake with the proxy, until the proxy has connected to the broker.
    tunnel: Option<Box<Handshake>>,
}

#[derive(Debug)]
enum Layers {
    /// TCP alone.
    Plain(Socket),
    /// TCP and TLS.
    Tls(Box<TlsSocket>),
}

/// The bytes of the handshake with a proxy that are read at once.
const TUNNEL_BYTES: usize = 1024;

impl Layers {
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
        let tunnel = match core.proxy() {
            Some(proxy) => {
                let peer = core.peer();
                Some(Box::new(Handshake::new(proxy, peer.host, peer.port)?))
            }
            None => None,
        };
        let socket = Socket::connect(address, &core.name(), settings, transport, registry, token)
            .map_err(|error| Error::new(ErrorKind::Connect, error.to_string()))?;
        let layers = match session {
            None => Layers::Plain(socket),
            Some(session) => Layers::Tls(Box::new(TlsSocket::new(socket, session))),
        };
        Ok(Self { layers, tunnel })
    }

    const fn socket(&self) -> &Socket {
        self.layers.socket()
    }

    const fn socket_mut(&mut self) -> &mut Socket {
        self.layers.socket_mut()
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
            match self.tunnel {
                Some(_) => core.handle_tunnelling(now),
                None => self.report_connected(now, core),
            }
        }
        finished
    }

    /// Reports that the peer of the next layer is the broker.
    fn report_connected(&self, now: Instant, core: &mut BrokerCore) {
        match &self.layers {
            Layers::Plain(_) => core.handle_connected(now),
            Layers::Tls(_) => core.handle_securing(now),
        }
    }

    /// Advances the handshake with the proxy. Returns `None` if there is none or it is complete.
    fn advance_tunnel(&mut self, now: Instant, core: &mut BrokerCore) -> Option<Turn> {
        let Self { layers, tunnel } = self;
        let handshake = tunnel.as_mut()?;
        let socket = layers.socket_mut();
        let mut space = [0; TUNNEL_BYTES];
        loop {
            while !handshake.outgoing().is_empty() {
                match socket.transmit(handshake.outgoing()) {
                    Ok(0) => break,
                    Ok(n) => handshake.written(n),
                    Err(reason) => return Some(Turn::Failed(handshake.closed(&reason))),
                }
            }
            let wanted = handshake.wanted().min(space.len());
            match socket.receive(&mut space[..wanted]) {
                Received::Bytes(n) => match handshake.receive(&space[..n]) {
                    Ok(false) => {}
                    Ok(true) => break,
                    Err(error) => return Some(Turn::Failed(error)),
                },
                Received::Nothing => return Some(Turn::Waiting),
                Received::Closed(reason) => return Some(Turn::Failed(handshake.closed(&reason))),
            }
        }
        self.tunnel = None;
        self.report_connected(now, core);
        None
    }

    /// Reads the available bytes, up to a fair share.
    pub fn read(&mut self, now: Instant, core: &mut BrokerCore) -> Turn {
        if let Some(turn) = self.advance_tunnel(now, core) {
            return turn;
        }
        match &mut self.layers {
            Layers::Plain(socket) => socket.read(now, core),
            Layers::Tls(tls) => tls.read(now, core),
        }
    }

    /// Writes the pending bytes, as far as the kernel accepts them.
    pub fn write(&mut self, now: Instant, core: &mut BrokerCore) -> Turn {
        if let Some(turn) = self.advance_tunnel(now, core) {
            return turn;
        }
        match &mut self.layers {
            Layers::Plain(socket) => socket.write(now, core),
            Layers::Tls(tls) => tls.write(now, core),
        }
    }

    /// Shuts the connection down in both directions.
    pub fn shut_down(&mut self) {
        if let Layers::Tls(tls) = &mut self.layers {
            tls.say_goodbye();
        }
        self.socket().shut_down();
    }

    /// Deregisters the socket and closes it.
    pub fn close(self, registry: &Registry) {
        match self.layers {
            Layers::Plain(socket) => socket.close(registry),
            Layers::Tls(tls) => tls.socket.close(registry),
        }
    }
}
