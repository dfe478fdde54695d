//! SOCKS version 5 (RFC 1928), with user name and password (RFC 1929).
//!
//! ```text
//!   client: versions and methods ──► proxy: method ──► [user name, password ──► status] ──► CONNECT ──► reply
//! ```

use std::net::IpAddr;

use ottla_core::{error::Error, secret::Secret};

use super::Context;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The part of the proxy's answers that is read next.
#[derive(Clone, Copy, Debug)]
pub enum Socks5 {
    /// The version and the chosen method.
    Method,
    /// The version and the status of the authentication.
    Status,
    /// The version and the result of CONNECT.
    Reply,
    /// A reserved byte and the type of the proxy's own address, which is of no use.
    AddressType,
    /// The length of a name.
    NameLength,
    /// So many bytes of an address with its port.
    Address(usize),
}

/// What to do after a part of an answer.
#[derive(Debug)]
pub enum Step {
    /// Send these bytes.
    Send(Secret),
    /// Read the next part.
    Read,
    /// The tunnel is open.
    Open,
}

impl Socks5 {
    /// Returns the first stage and the greeting.
    pub fn new(context: &Context) -> (Self, Secret) {
        let greeting = match context.proxy.credentials {
            Some(_) => vec![VERSION, 2, NO_AUTHENTICATION, PASSWORD],
            None => vec![VERSION, 1, NO_AUTHENTICATION],
        };
        (Self::Method, Secret::new(greeting))
    }

    /// Returns the number of bytes of the next part.
    pub const fn needs(&self) -> usize {
        match self {
            Self::Method | Self::Status | Self::Reply | Self::AddressType => 2,
            Self::NameLength => 1,
            Self::Address(bytes) => *bytes,
        }
    }

    /// Checks the first bytes of a part that is incomplete.
    pub fn check_start(&self, context: &Context, part: &[u8]) -> Result<(), Error> {
        match self {
            Self::Method | Self::Reply => check_version(context, part),
            _ => Ok(()),
        }
    }

    /// Processes a part, which has exactly the needed number of bytes.
    pub fn receive(&mut self, context: &Context, part: &[u8]) -> Result<Step, Error> {
        let (first, last) = (part.first().copied().unwrap_or(0), part.last().copied().unwrap_or(0));
        match self {
            Self::Method => {
                check_version(context, part)?;
                self.choose(context, last)
            }
            Self::Status if last != 0 => Err(context.refused_credentials()),
            Self::Status => Ok(self.connect(context)),
            Self::Reply => {
                check_version(context, part)?;
                if last != 0 {
                    return Err(refusal(context, last));
                }
                *self = Self::AddressType;
                Ok(Step::Read)
            }
            Self::AddressType => {
                *self = match last {
                    IPV4 => Self::Address(4 + 2),
                    IPV6 => Self::Address(16 + 2),
                    NAME => Self::NameLength,
                    _ => {
                        let text = format!(
                            "sent an address of the unknown type {last}; check that it speaks SOCKS5"
                        );
                        return Err(context.error(&text));
                    }
                };
                Ok(Step::Read)
            }
            Self::NameLength => {
                *self = Self::Address(usize::from(first) + 2);
                Ok(Step::Read)
            }
            Self::Address(_) => Ok(Step::Open),
        }
    }

    fn choose(&mut self, context: &Context, method: u8) -> Result<Step, Error> {
        match (method, &context.proxy.credentials) {
            (NO_AUTHENTICATION, _) => Ok(self.connect(context)),
            (PASSWORD, Some((user, password))) => {
                *self = Self::Status;
                let length = |secret: &Secret| [u8::try_from(secret.len()).unwrap_or(u8::MAX)];
                let parts = [&[1], &length(user)[..], user.expose(), &length(password), password.expose()];
                Ok(Step::Send(Secret::concat(&parts)))
            }
            (NO_METHOD, None) => Err(context.refused_credentials()),
            (NO_METHOD, Some(_)) => Err(context.error(
                "accepts neither user name and password nor connections without authentication; permit one of these methods at the \
                 proxy, which may demand GSSAPI",
            )),
            (other, _) => {
                let text = format!("chose the authentication method {other}, which was not offered; check that it speaks SOCKS5");
                Err(context.error(&text))
            }
        }
    }

    /// Asks for the connection. A name stays a name, so that the proxy resolves it.
    fn connect(&mut self, context: &Context) -> Step {
        *self = Self::Reply;
        let head = [VERSION, CONNECT, 0];
        let port = context.port.to_be_bytes();
        Step::Send(match context.host.parse() {
            Ok(IpAddr::V4(address)) => Secret::concat(&[&head, &[IPV4], &address.octets(), &port]),
            Ok(IpAddr::V6(address)) => Secret::concat(&[&head, &[IPV6], &address.octets(), &port]),
            Err(_) => {
                let length = u8::try_from(context.host.len()).unwrap_or(u8::MAX);
                Secret::concat(&[&head, &[NAME, length], context.host.as_bytes(), &port])
            }
        })
    }
}

/// Checks the first byte of an answer, and recognizes what proxies of other kinds send.
fn check_version(context: &Context, part: &[u8]) -> Result<(), Error> {
    let text = match part.first() {
        None | Some(&VERSION) => return Ok(()),
        Some(b'H' | b'<') => {
            "answers with HTTP and not with SOCKS5; write http:// in proxy.url, or check the port".to_owned()
        }
        Some(0 | 4) => {
            "speaks SOCKS version 4; use a proxy with version 5, or http:// in proxy.url".to_owned()
        }
        Some(0x15 | 0x16) => {
            "answers with TLS and not with SOCKS5; use a port of the proxy without TLS".to_owned()
        }
        Some(other) => {
            format!(
                "answers with the byte {other:#04x} and not with SOCKS5; check host, port and scheme in proxy.url"
            )
        }
    };
    Err(context.error(&text))
}

/// Returns the error of a CONNECT that the proxy refuses.
fn refusal(context: &Context, code: u8) -> Error {
    let (reason, advice) = match code {
        1 => ("general SOCKS server failure", "see the proxy's log"),
        2 => ("not allowed by its rules", "permit this host and port in the proxy's rules"),
        3 => ("network unreachable", "check the proxy's network and routes"),
        4 => ("host unreachable", "check that the proxy can resolve the name, and that the host runs"),
        5 => ("connection refused", "check that the broker runs and listens on this port"),
        6 => ("TTL expired", "check the proxy's network, and that the host runs"),
        7 => ("command not supported", "use a proxy that supports CONNECT"),
        8 => (
            "address type not supported",
            "use a proxy that resolves names, or a listener whose address it supports",
        ),
        _ => ("unknown reply", "see the proxy's log"),
    };
    let Context { host, port, .. } = context;
    context.error(&format!("refuses to connect to {host}:{port}: {reason} (reply {code}); {advice}"))
}
