//! Connections through a proxy (`proxy.url`): the handshake between TCP and TLS.
//!
//! | file | content |
//! |---|---|
//! | [`socks5`] | SOCKS version 5 with a user name and a password |
//! | [`http`] | the method CONNECT of HTTP/1.1 |
//! | [`tunnel`] | a handshake on a stream that blocks, for a diagnosis |
//!
//! A [`Handshake`] is a machine without I/O: bytes go in and out as slices, and everything that it keeps is bounded. Its time is
//! that of the connection: the state `Tunnelling` of the core ends at `socket.connection.setup.timeout.ms`. The proxy gets the
//! broker's name, not its address.
//!
//! # Pitfalls
//!
//! - Nothing may follow the proxy's answer before the client has sent something: neither TLS nor Kafka lets the broker begin.
//!   Bytes that follow are not the answer of a tunnel (`http_answers_are_understood_or_refused_with_advice`).
//! - A broker's name comes from the cluster's metadata. With a line break in it, it would be a header of a request to the proxy
//!   (`name_that_is_no_host_never_reaches_the_proxy`).

mod http;
mod socks5;
#[cfg(test)]
mod tests;
mod tunnel;

use std::sync::Arc;

use ottla_core::{
    config::{ProxyProtocol, ProxyUrl},
    error::{Error, ErrorKind},
    secret::Secret,
};

pub use self::tunnel::open_tunnel;
use self::{http::Http, socks5::Socks5};

/// The longest host name that a proxy gets, as SOCKS limits it.
const HOST_BYTES: usize = 255;

/// The handshake of one connection with a proxy.
#[derive(Debug)]
pub struct Handshake {
    context: Context,
    stage: Stage,
    /// The bytes for the proxy, of which the first `written` are sent.
    outgoing: Secret,
    written: usize,
    /// The received bytes that are not processed.
    incoming: Vec<u8>,
}

#[derive(Debug)]
enum Stage {
    Socks5(Socks5),
    Http(Http),
}

/// What the errors of a handshake name.
#[derive(Debug)]
struct Context {
    proxy: Arc<ProxyUrl>,
    host: String,
    port: u16,
}

impl Handshake {
    /// Starts the handshake for a connection to a broker. Error: the name can't be one of a host.
    pub fn new(proxy: &Arc<ProxyUrl>, host: &str, port: u16) -> Result<Self, Error> {
        let context = Context { proxy: Arc::clone(proxy), host: host.to_owned(), port };
        if host.is_empty() || host.len() > HOST_BYTES || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
            let shown: String = host.chars().take(100).collect();
            return Err(context.error(&format!(
                "was not asked for \"{}\", which is not a host name; check advertised.listeners of the broker",
                shown.escape_debug()
            )));
        }
        let (stage, outgoing) = match proxy.protocol {
            ProxyProtocol::Socks5 => {
                let (stage, greeting) = Socks5::new(&context);
                (Stage::Socks5(stage), greeting)
            }
            ProxyProtocol::Http => (Stage::Http(Http), http::request(&context)),
        };
        Ok(Self { context, stage, outgoing, written: 0, incoming: Vec::new() })
    }

    /// Returns the bytes for the proxy.
    pub fn outgoing(&self) -> &[u8] {
        &self.outgoing.expose()[self.written..]
    }

    /// Records that the first `n` of these bytes were written.
    pub fn written(&mut self, n: usize) {
        self.written = (self.written + n).min(self.outgoing.len());
    }

    /// Returns the largest number of bytes to read next; bytes of the tunnel are never among them.
    pub fn wanted(&self) -> usize {
        match &self.stage {
            Stage::Socks5(socks) => socks.needs() - self.incoming.len(),
            Stage::Http(_) => http::CHUNK_BYTES,
        }
    }

    /// Processes received bytes, at most [`Handshake::wanted`]. Returns true once the tunnel is open.
    ///
    /// # Errors
    ///
    /// The proxy refuses, or does not speak the protocol; the error names it.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        self.incoming.extend_from_slice(bytes);
        match &mut self.stage {
            Stage::Http(http) => http.receive(&self.context, &mut self.incoming),
            Stage::Socks5(socks) => {
                if self.incoming.len() < socks.needs() {
                    // The first byte tells another protocol, whose peer may not send more.
                    socks.check_start(&self.context, &self.incoming)?;
                    return Ok(false);
                }
                let step = socks.receive(&self.context, &self.incoming)?;
                self.incoming.clear();
                match step {
                    socks5::Step::Send(bytes) => {
                        self.outgoing = Secret::concat(&[self.outgoing(), bytes.expose()]);
                        self.written = 0;
                    }
                    socks5::Step::Read => {}
                    socks5::Step::Open => return Ok(true),
                }
                Ok(false)
            }
        }
    }

    /// Returns the error if the proxy closed the connection in the handshake.
    pub fn closed(&self, reason: &str) -> Error {
        let Context { host, port, .. } = &self.context;
        self.context.error(&format!(
            "ended the connection instead of connecting to {host}:{port} ({reason}); see the proxy's log, and check proxy.url"
        ))
    }
}

impl Context {
    /// Returns an error that begins with the name of the proxy.
    fn error(&self, rest: &str) -> Error {
        Error::new(ErrorKind::Proxy, format!("the {} {rest}", self.proxy))
    }

    /// Returns the error if the proxy demands a user name and a password, or refuses those that it got.
    fn refused_credentials(&self) -> Error {
        self.error(match self.proxy.credentials {
            Some(_) => "refuses the user name and the password; check them in proxy.url, where % and two hexadecimal digits stand for \
                        characters such as @ and :",
            None => "demands a user name and a password; add them to proxy.url: scheme://user:password@host:port",
        })
    }
}
