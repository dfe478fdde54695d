//! The method CONNECT of HTTP/1.1 (RFC 9110), with basic authentication (RFC 7617).

use ottla_core::{
    base64::{Alphabet, encode},
    error::Error,
    secret::Secret,
};

use super::Context;

/// The number of bytes that are read at once.
pub const CHUNK_BYTES: usize = 1024;
/// The limit of all headers of the answers.
const HEADER_BYTES: usize = 16 * 1024;
/// The longest part of the proxy's texts that an error shows.
const SHOWN_CHARS: usize = 80;

/// The answer to CONNECT, whose headers are incomplete.
#[derive(Clone, Copy, Debug)]
pub struct Http;

/// Returns the request.
pub fn request(context: &Context) -> Secret {
    let Context { host, port, proxy } = context;
    let target = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    let Some((user, password)) = &proxy.credentials else {
        return Secret::concat(&[head.as_bytes(), b"\r\n"]);
    };
    let both = Secret::concat(&[user.expose(), b":", password.expose()]);
    let encoded = Secret::new(encode(Alphabet::Standard, both.expose()).into_bytes());
    Secret::concat(&[head.as_bytes(), b"Proxy-Authorization: Basic ", encoded.expose(), b"\r\n\r\n"])
}

impl Http {
    /// Processes the received bytes. Returns true once the tunnel is open.
    pub fn receive(&mut self, context: &Context, incoming: &mut Vec<u8>) -> Result<bool, Error> {
        loop {
            check_start(context, incoming)?;
            let Some(end) = end_of_headers(incoming) else {
                if incoming.len() > HEADER_BYTES {
                    let text = format!(
                        "sent more than {HEADER_BYTES} bytes of headers; check that it is an HTTP proxy"
                    );
                    return Err(context.error(&text));
                }
                return Ok(false);
            };
            let head = String::from_utf8_lossy(&incoming[..end]).into_owned();
            let mut lines = head.lines();
            let status_line = lines.next().unwrap_or_default();
            let status = status_line.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
            match status {
                Some(200..=299) if incoming.len() > end => {
                    return Err(context.error(
                        "sent more than its answer before the tunnel was used; check that it is an HTTP proxy that supports CONNECT",
                    ));
                }
                Some(200..=299) => {
                    incoming.clear();
                    return Ok(true);
                }
                // An interim answer; the final one follows.
                Some(100 | 102..=199) => {
                    incoming.drain(..end);
                }
                Some(status) => return Err(refusal(context, status, status_line, lines)),
                None => return Err(not_http(context, status_line)),
            }
        }
    }
}

/// Returns the position behind the empty line that ends the headers.
fn end_of_headers(bytes: &[u8]) -> Option<usize> {
    let crlf = bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
    let lf = bytes.windows(2).position(|window| window == b"\n\n").map(|at| at + 2);
    match (crlf, lf) {
        (Some(crlf), Some(lf)) => Some(crlf.min(lf)),
        (crlf, lf) => crlf.or(lf),
    }
}

/// Checks that the bytes begin as an answer of HTTP/1 does. The peer may not send more of another protocol.
fn check_start(context: &Context, bytes: &[u8]) -> Result<(), Error> {
    const START: &[u8] = b"HTTP/1.";
    let length = bytes.len().min(START.len());
    match bytes.first() {
        _ if bytes[..length] == START[..length] => Ok(()),
        Some(0x15 | 0x16) => {
            Err(context.error("answers with TLS and not with HTTP; use a port of the proxy without TLS"))
        }
        Some(4 | 5) => {
            Err(context.error("answers with SOCKS and not with HTTP; write socks5:// in proxy.url"))
        }
        _ => Err(not_http(context, &String::from_utf8_lossy(bytes))),
    }
}

fn not_http(context: &Context, text: &str) -> Error {
    let shown = shown(text.lines().next().unwrap_or_default());
    context.error(&format!(
        "answers \"{shown}\", which is not an answer of an HTTP proxy; check host, port and scheme in proxy.url"
    ))
}

/// Returns the error of a response that refuses the connection.
fn refusal<'a>(
    context: &Context,
    status: u16,
    status_line: &str,
    headers: impl Iterator<Item = &'a str>,
) -> Error {
    let Context { host, port, proxy } = context;
    if status == 407 {
        let schemes: Vec<&str> = headers
            .filter_map(|line| line.split_once(':'))
            .filter(|(name, _)| name.trim().eq_ignore_ascii_case("proxy-authenticate"))
            .filter_map(|(_, value)| value.split_whitespace().next())
            .collect();
        if schemes.is_empty() || schemes.iter().any(|scheme| scheme.eq_ignore_ascii_case("basic")) {
            return context.refused_credentials();
        }
        let schemes = shown(&schemes.join(", "));
        return context.error(&format!(
            "demands an authentication that is not supported ({schemes}); permit Basic at the proxy, or connections of this host \
             without authentication{}",
            if proxy.credentials.is_some() { ", and check the password in proxy.url" } else { "" }
        ));
    }
    let advice = match status {
        400 | 405 | 501 => "check that it is a proxy that supports CONNECT, and not a web server",
        401 | 403 => "permit CONNECT to this host and port in the proxy's rules",
        404 | 502 | 503 => "check that the proxy can resolve the name and reach the broker, and see its log",
        408 | 504 => "the broker does not answer the proxy: check that it runs, and the network between them",
        429 => "the proxy limits connections: raise its limit",
        300..=399 => "it is a web server that redirects and not a proxy: check host and port in proxy.url",
        _ => "see the proxy's log",
    };
    let answer = shown(status_line);
    context.error(&format!("refuses to connect to {host}:{port}: \"{answer}\"; {advice}"))
}

/// Returns a text of the proxy for an error: short, and without control characters.
fn shown(text: &str) -> String {
    let text: String = text.chars().take(SHOWN_CHARS).collect();
    text.escape_debug().to_string()
}
