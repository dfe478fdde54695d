//! Handshakes with scripted proxies: bytes in, bytes out.

use std::{
    io::{self, Read, Write},
    sync::Arc,
};

use ottla_core::{
    config::ProxyUrl,
    error::{Culprit, Error, ErrorKind},
};

use super::{Handshake, open_tunnel};

const HOST: &str = "kafka.internal";

fn handshake(url: &str, host: &str) -> Result<Handshake, Error> {
    Handshake::new(&Arc::new(ProxyUrl::parse(url).unwrap()), host, 9092)
}

/// Takes what the client has for the proxy.
fn sent(handshake: &mut Handshake) -> Vec<u8> {
    let bytes = handshake.outgoing().to_vec();
    handshake.written(bytes.len());
    bytes
}

/// Passes bytes as a driver does, at most as many as are wanted, in pieces of at most `piece` bytes. Returns whether the tunnel
/// is open, and the number of bytes that were taken.
fn answer(handshake: &mut Handshake, mut bytes: &[u8], piece: usize) -> Result<(bool, usize), Error> {
    let total = bytes.len();
    while !bytes.is_empty() {
        let (part, rest) = bytes.split_at(handshake.wanted().min(piece).min(bytes.len()));
        bytes = rest;
        if handshake.receive(part)? {
            return Ok((true, total - bytes.len()));
        }
    }
    Ok((false, total))
}

/// Returns the error after these answers, each to what the client has sent.
fn refused(url: &str, answers: &[&[u8]]) -> String {
    let mut machine = handshake(url, HOST).unwrap();
    for bytes in answers {
        sent(&mut machine);
        if let Err(error) = answer(&mut machine, bytes, 1) {
            assert_eq!((error.kind(), error.culprit()), (ErrorKind::Proxy, Culprit::Proxy));
            let text = error.to_string();
            let port = url.rsplit(':').next().unwrap();
            assert!(text.contains(&format!("proxy p:{port}")) && !text.contains("hunter2"), "{text}");
            return text;
        }
    }
    panic!("{url} accepts {answers:?}");
}

#[test]
fn socks5_proxy_gets_the_name_and_bytes_behind_its_reply_stay() {
    for piece in [1, 3, 100] {
        let mut machine = handshake("socks5://p:1080", HOST).unwrap();
        assert_eq!(sent(&mut machine), [5, 1, 0]);
        assert_eq!(answer(&mut machine, &[5, 0], piece).unwrap(), (false, 2));
        let mut expected = vec![5, 1, 0, 3, 14];
        expected.extend_from_slice(HOST.as_bytes());
        expected.extend_from_slice(&9092_u16.to_be_bytes());
        assert_eq!(sent(&mut machine), expected);
        // The proxy's own address is a name, and bytes of the tunnel follow.
        let reply = [&[5, 0, 0, 3, 2, b'm', b'e', 0, 1][..], b"tunnel"].concat();
        assert_eq!(answer(&mut machine, &reply, piece).unwrap(), (true, 9));
    }
}

#[test]
fn socks5_proxy_gets_addresses_as_addresses() {
    for (host, expected, reply) in [
        ("10.1.2.3", &[1, 10, 1, 2, 3][..], &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0][..]),
        (
            "::1",
            &[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            &[5, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
    ] {
        let mut machine = handshake("socks5h://p:1080", host).unwrap();
        sent(&mut machine);
        answer(&mut machine, &[5, 0], 2).unwrap();
        let request = sent(&mut machine);
        assert_eq!(request[3..request.len() - 2], *expected);
        assert_eq!(answer(&mut machine, reply, 7).unwrap(), (true, reply.len()));
    }
}

#[test]
fn socks5_proxy_gets_user_name_and_password() {
    let mut machine = handshake("socks5://al:hunter2@p:1080", HOST).unwrap();
    assert_eq!(sent(&mut machine), [5, 2, 0, 2]);
    answer(&mut machine, &[5, 2], 1).unwrap();
    assert_eq!(sent(&mut machine), b"\x01\x02al\x07hunter2");
    answer(&mut machine, &[1, 0], 1).unwrap();
    assert_eq!(sent(&mut machine)[..4], [5, 1, 0, 3]);
    assert!(!format!("{machine:?}").contains("hunter2"));
    // A proxy that does not want them does not get them.
    let mut machine = handshake("socks5://al:hunter2@p:1080", HOST).unwrap();
    sent(&mut machine);
    answer(&mut machine, &[5, 0], 1).unwrap();
    assert_eq!(sent(&mut machine)[..4], [5, 1, 0, 3]);
}

#[test]
fn socks5_refusals_have_their_reason_and_advice() {
    let (open, locked) = ("socks5://p:1080", "socks5://al:hunter2@p:1080");
    for (reply, reason) in [
        (1, "general SOCKS server failure"),
        (2, "permit this host and port in the proxy's rules"),
        (3, "network unreachable"),
        (4, "check that the proxy can resolve the name"),
        (5, "connection refused (reply 5); check that the broker runs"),
        (6, "TTL expired"),
        (7, "command not supported"),
        (8, "address type not supported"),
        (200, "unknown reply (reply 200)"),
    ] {
        let text = refused(open, &[&[5, 0], &[5, reply]]);
        assert!(text.contains(reason) && text.contains("kafka.internal:9092"), "{text}");
    }
    for (url, answers, reason) in [
        (open, &[&[5, 0xff][..]][..], "demands a user name and a password; add them to proxy.url"),
        (locked, &[&[5, 2], &[1, 1]], "refuses the user name and the password"),
        (locked, &[&[5, 0xff]], "accepts neither user name and password nor"),
        (open, &[&[5, 2]], "chose the authentication method 2, which was not offered"),
        (locked, &[&[5, 1]], "chose the authentication method 1, which was not offered"),
        (open, &[&[4, 0]], "speaks SOCKS version 4"),
        (open, &[b"HTTP/1.1 400 Bad Request\r\n\r\n"], "answers with HTTP and not with SOCKS5"),
        (open, &[b"<"], "answers with HTTP and not with SOCKS5"),
        (open, &[&[0x15, 3]], "answers with TLS and not with SOCKS5"),
        (open, &[b"SSH-2.0"], "answers with the byte 0x53 and not with SOCKS5"),
        (open, &[&[5, 0], &[5, 0, 0, 9]], "an address of the unknown type 9"),
    ] {
        let text = refused(url, answers);
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn http_proxy_gets_connect_with_credentials() {
    let mut machine = handshake("http://p:3128", HOST).unwrap();
    let plain = "CONNECT kafka.internal:9092 HTTP/1.1\r\nHost: kafka.internal:9092\r\n";
    assert_eq!(String::from_utf8(sent(&mut machine)).unwrap(), format!("{plain}\r\n"));
    let mut machine = handshake("http://Aladdin:open%20sesame@p:3128", HOST).unwrap();
    let expected = format!("{plain}Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n");
    assert_eq!(String::from_utf8(sent(&mut machine)).unwrap(), expected);
    let mut machine = handshake("http://p:3128", "::1").unwrap();
    assert!(sent(&mut machine).starts_with(b"CONNECT [::1]:9092 HTTP/1.1\r\nHost: [::1]:9092\r\n"));
}

#[test]
fn http_answers_are_understood_or_refused_with_advice() {
    for accepted in [
        "HTTP/1.1 200 Connection established\r\n\r\n",
        "HTTP/1.0 200\n\n",
        "HTTP/1.1 204 x\r\nVia: a\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ] {
        for piece in [1, 7, 1024] {
            let mut machine = handshake("http://p:3128", HOST).unwrap();
            let opened = answer(&mut machine, accepted.as_bytes(), piece).unwrap();
            assert_eq!(opened, (true, accepted.len()), "{accepted}");
        }
    }
    let (open, locked) = ("http://p:3128", "http://al:hunter2@p:3128");
    let basic = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n";
    let ntlm =
        "HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM\r\nproxy-authenticate: Negotiate abc\r\n\r\n<html>";
    for (url, bytes, reason) in [
        (open, basic, "demands a user name and a password; add them to proxy.url"),
        (locked, basic, "refuses the user name and the password"),
        (open, ntlm, "demands an authentication that is not supported (NTLM, Negotiate)"),
        (
            open,
            "HTTP/1.1 403 Forbidden\r\n\r\n",
            "\"HTTP/1.1 403 Forbidden\"; permit CONNECT to this host and port",
        ),
        (open, "HTTP/1.1 405 Method Not Allowed\r\n\r\n", "check that it is a proxy that supports CONNECT"),
        (open, "HTTP/1.1 502 Bad Gateway\r\n\r\n", "check that the proxy can resolve the name"),
        (open, "HTTP/1.1 504 Gateway Timeout\r\n\r\n", "the broker does not answer the proxy"),
        (open, "HTTP/1.1 429 Too Many Requests\r\n\r\n", "raise its limit"),
        (open, "HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n", "a web server that redirects"),
        (open, "HTTP/1.1 101 Switching Protocols\r\n\r\n", "101 Switching Protocols"),
        (open, "HTTP/1.1 999 \u{1b}[31m\r\n\r\n", "\\u{1b}[31m"),
        (open, "HTTP/1.1 maybe\r\n\r\n", "which is not an answer of an HTTP proxy"),
        (open, "<!DOCTYPE html><html>", "answers \"<\", which is not an answer of an HTTP proxy"),
        (open, "SSH-2.0-OpenSSH", "which is not an answer of an HTTP proxy"),
        (open, "\u{5}\u{0}", "answers with SOCKS and not with HTTP; write socks5:// in proxy.url"),
        (open, "\u{15}\u{3}", "answers with TLS"),
    ] {
        let text = refused(url, &[bytes.as_bytes()]);
        assert!(text.contains(reason), "{text}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(10_000));
    assert!(refused(open, &[endless.as_bytes()]).contains("more than 16384 bytes of headers"));
    // Interim answers without end are bounded as each is; a body in the same read as the headers is not a tunnel.
    let mut machine = handshake(open, HOST).unwrap();
    let error = answer(&mut machine, b"HTTP/1.1 200 OK\r\n\r\n<html>", 1024).unwrap_err();
    assert!(error.to_string().contains("sent more than its answer"), "{error}");
}

#[test]
fn name_that_is_no_host_never_reaches_the_proxy() {
    let long = "x".repeat(256);
    for host in ["", "a b", "a\r\nX: y", "\u{0}", "ü", &long] {
        for url in ["socks5://p:1080", "http://p:3128"] {
            let error = handshake(url, host).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Proxy);
            assert!(
                error.to_string().contains("is not a host name") && error.to_string().len() < 500,
                "{error}"
            );
        }
    }
    assert!(handshake("socks5://p:1080", &long[..255]).is_ok());
}

/// A proxy on a stream that blocks, with all its answers ready.
struct Ready(io::Cursor<Vec<u8>>, Vec<u8>);

impl Read for Ready {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.0.read(space)
    }
}

impl Write for Ready {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn tunnel_on_a_blocking_stream_leaves_the_brokers_bytes() {
    let proxy = Arc::new(ProxyUrl::parse("socks5://p:1080").unwrap());
    let answers = [&[5, 0, 5, 0, 0, 1, 1, 2, 3, 4, 0, 9][..], b"broker"].concat();
    let mut stream = Ready(io::Cursor::new(answers), Vec::new());
    open_tunnel(&mut stream, &proxy, HOST, 9092).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "broker");
    let mut closing = Ready(io::Cursor::new(vec![5, 0]), Vec::new());
    let error = open_tunnel(&mut closing, &proxy, HOST, 9092).unwrap_err().to_string();
    assert!(error.contains("ended the connection instead of connecting to kafka.internal:9092"), "{error}");
}
