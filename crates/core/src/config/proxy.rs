//! `proxy.url`: the proxy between the client and its brokers.

use std::fmt;

use super::servers::ServerAddress;
use crate::secret::Secret;

/// The proxy through which a client connects to its brokers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUrl {
    /// The protocol that the proxy speaks.
    pub protocol: ProxyProtocol,
    /// The proxy's own address.
    pub server: ServerAddress,
    /// The user name and the password.
    pub credentials: Option<(Secret, Secret)>,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// SOCKS version 5 (RFC 1928), with user name and password (RFC 1929).
    Socks5,
    /// The method CONNECT of HTTP/1.1 (RFC 9110), with basic authentication (RFC 7617).
    Http,
}

/// What a valid value looks like.
const EXPECTED: &str = "socks5://[user:password@]host:port or http://[user:password@]host:port";
/// The longest user name and the longest password of a SOCKS5 proxy.
const SOCKS5_CREDENTIAL_BYTES: usize = 255;
/// The same for an HTTP proxy, which has to fit them into one header.
const HTTP_CREDENTIAL_BYTES: usize = 2048;

impl ProxyUrl {
    /// Parses `scheme://[user:password@]host:port`; characters of user name and password may be percent-encoded. Error: what
    /// is expected, without any part of the value, which may contain a password.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.trim().split_once("://").ok_or(EXPECTED)?;
        let protocol = match &*scheme.to_ascii_lowercase() {
            "socks5" | "socks5h" => ProxyProtocol::Socks5,
            "http" => ProxyProtocol::Http,
            "https" => return Err(format!("{EXPECTED}; TLS to the proxy itself is not supported")),
            "socks4" | "socks4a" | "socks" => {
                return Err(format!("{EXPECTED}; SOCKS version 4 is not supported"));
            }
            _ => return Err(EXPECTED.to_owned()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (userinfo, address) = match rest.rsplit_once('@') {
            Some((userinfo, address)) => (Some(userinfo), address),
            None => (None, rest),
        };
        let server = ServerAddress::parse(address).map_err(|_| EXPECTED)?;
        if address.contains("://")
            || !address.ends_with(&format!(":{}", server.port))
            || server.is_bare(address)
        {
            return Err(format!("{EXPECTED}; the port is missing or wrong"));
        }
        let credentials = userinfo.map(|userinfo| credentials(protocol, userinfo)).transpose()?;
        Ok(Self { protocol, server, credentials })
    }
}

impl ServerAddress {
    /// Returns true for an IPv6 address without brackets, whose end is not a port.
    fn is_bare(&self, address: &str) -> bool {
        self.host.contains(':') && !address.starts_with('[')
    }
}

/// Returns the user name and the password of `user:password`.
fn credentials(protocol: ProxyProtocol, userinfo: &str) -> Result<(Secret, Secret), String> {
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let decoded =
        |text| decode(text).ok_or("an URL whose percent signs are followed by two hexadecimal digits");
    let (user, password) = (decoded(user)?, decoded(password)?);
    let limit = match protocol {
        ProxyProtocol::Socks5 => SOCKS5_CREDENTIAL_BYTES,
        ProxyProtocol::Http => HTTP_CREDENTIAL_BYTES,
    };
    if user.is_empty() || user.len() > limit || password.len() > limit {
        return Err(format!(
            "{EXPECTED}; user name and password have at most {limit} bytes, the user name at least one"
        ));
    }
    if protocol == ProxyProtocol::Http && user.expose().contains(&b':') {
        return Err(format!("{EXPECTED}; the user name for an HTTP proxy has no colon"));
    }
    Ok((user, password))
}

/// Replaces `%XX` by its byte; `None` if two hexadecimal digits do not follow.
fn decode(text: &str) -> Option<Secret> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || (rest.next()? as char).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push((high << 4 | low) as u8);
    }
    Some(Secret::new(bytes))
}

/// Names the proxy in errors, without its credentials.
impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            ProxyProtocol::Socks5 => "SOCKS5",
            ProxyProtocol::Http => "HTTP",
        };
        write!(f, "{protocol} proxy {}", self.server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> (String, Option<(String, String)>) {
        let proxy = ProxyUrl::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        let text = |secret: &Secret| String::from_utf8_lossy(secret.expose()).into_owned();
        let credentials = proxy.credentials.as_ref().map(|(user, password)| (text(user), text(password)));
        (proxy.to_string(), credentials)
    }

    #[test]
    fn every_form_of_a_proxy_url_is_understood() {
        for (url, shown, credentials) in [
            ("socks5://proxy:1080", "SOCKS5 proxy proxy:1080", None),
            ("SOCKS5H://proxy:1080/", "SOCKS5 proxy proxy:1080", None),
            ("http://[::1]:3128", "HTTP proxy [::1]:3128", None),
            (" socks5://a:b@10.0.0.1:1 ", "SOCKS5 proxy 10.0.0.1:1", Some(("a", "b"))),
            ("http://a@p:1", "HTTP proxy p:1", Some(("a", ""))),
            ("socks5://a%3ab:p%40ss@w%2F@p:1", "SOCKS5 proxy p:1", Some(("a:b", "p@ss@w/"))),
        ] {
            let credentials = credentials.map(|(user, password)| (user.to_owned(), password.to_owned()));
            assert_eq!(parsed(url), (shown.to_owned(), credentials));
        }
    }

    #[test]
    fn refused_proxy_url_is_explained_without_its_password() {
        let long = format!("socks5://hunter2:{}@p:1", "x".repeat(256));
        for url in [
            "proxy:1080",
            "ftp://hunter2@p:1",
            "https://a:hunter2@p:1",
            "socks4://hunter2@p:1",
            "socks5://a:hunter2@p",
            "socks5://a:hunter2@p:0",
            "socks5://a:hunter2@p:99999",
            "socks5://a:hunter2@::1",
            "socks5://a:hunter2@::1:80",
            "socks5://a:hunter2@",
            "socks5://a:hunter2@p:1/path",
            "socks5://hunter2",
            "socks5://:hunter2@p:1",
            "socks5://a:hunter2%zz@p:1",
            "socks5://a:hunter2%4",
            "http://a%3a:hunter2@p:1",
            "http://a:hunter2@PLAINTEXT://p:1",
            &long,
        ] {
            let error = ProxyUrl::parse(url).expect_err(url);
            assert!(!error.contains("hunter2") && !error.is_empty(), "{error}");
        }
        let shown = format!("{:?}", ProxyUrl::parse("socks5://user:hunter2@p:1").unwrap());
        assert!(!shown.contains("hunter2") && !shown.contains("user"), "{shown}");
    }
}
