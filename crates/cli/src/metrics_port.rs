//! `--metrics-port`: the statistics of a client in Prometheus format, over a minimal subset of HTTP/1.1.
//!
//! A separate thread serves one request after the other, and responds with an error to a request that is too long or
//! too slow.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ottla::Statistics;

use crate::failure::{Failure, Outcome};
use crate::standard_error::note;

/// The maximum size of a request.
const MAX_REQUEST_BYTES: usize = 8192;
/// The timeout for reading a request and for sending its response.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Starts a server on this port of the loopback address, or none if `port` is `None`; 0 chooses a free port. Prints
    /// the address.
    pub fn start(
        port: Option<u16>,
        read: impl Fn() -> ottla::Result<Statistics> + Send + 'static,
    ) -> Outcome<Option<Self>> {
        let Some(port) = port else { return Ok(None) };
        let failed = |error: io::Error| Failure::Failed(format!("--metrics-port {port}: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        note!("metrics at http://{address}/metrics");
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let serve = move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(stream) = stream {
                    // A scraper that hangs up does not need a response.
                    let _ = respond(stream, &read);
                }
            }
        };
        let thread = thread::Builder::new().name("metrics".into()).spawn(serve).map_err(failed)?;
        Ok(Some(Self { address, stopping, thread: Some(thread) }))
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection; if that fails, it ends with the process.
        if TcpStream::connect_timeout(&self.address, TIMEOUT).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn respond(mut stream: TcpStream, read: &impl Fn() -> ottla::Result<Statistics>) -> io::Result<()> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    let (status, body) = match request_line(&mut stream)? {
        Err(status) => (status, String::new()),
        Ok(line) => {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("GET"), Some("/" | "/metrics"), Some(version)) if version.starts_with("HTTP/1.") => {
                    match read() {
                        Ok(statistics) => ("200 OK", statistics.to_prometheus()),
                        Err(error) => ("503 Service Unavailable", format!("{error}\n")),
                    }
                }
                (Some("GET"), Some(_), Some(version)) if version.starts_with("HTTP/1.") => {
                    ("404 Not Found", "it is at /metrics\n".to_owned())
                }
                (Some(_), Some(_), Some(version)) if version.starts_with("HTTP/1.") => {
                    ("405 Method Not Allowed", String::new())
                }
                _ => ("400 Bad Request", String::new()),
            }
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

/// Reads the request up to the empty line. Returns the first line, or the status of the error.
fn request_line(stream: &mut TcpStream) -> io::Result<Result<String, &'static str>> {
    let deadline = Instant::now() + TIMEOUT;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Err("408 Request Timeout"));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => return Ok(Err("400 Bad Request")),
            Ok(n) => request.extend_from_slice(&piece[..n]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(Err("408 Request Timeout"));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if request.windows(4).any(|end| end == b"\r\n\r\n") || request.windows(2).any(|end| end == b"\n\n") {
            let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
            return Ok(Ok(String::from_utf8_lossy(line).trim_end().to_owned()));
        }
        if request.len() > MAX_REQUEST_BYTES {
            return Ok(Err("431 Request Header Fields Too Large"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let _ = stream.shutdown(Shutdown::Write);
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        String::from_utf8_lossy(&response).into_owned()
    }

    #[test]
    fn scrape_returns_metrics_and_bad_request_returns_its_error() {
        let server = MetricsServer::start(Some(0), || Ok(Statistics::default())).unwrap().unwrap();
        let good = ask(server.address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(good.starts_with("HTTP/1.1 200 OK\r\n"), "{good}");
        assert!(good.contains("\r\n\r\n# HELP ottla_ts "), "{good}");
        for (request, status) in [
            (&b"GET /other HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\x16\x03\x01\x02\x00\n\n", "400"),
            (b"GET /metrics", "400"),
            (&vec![b'a'; 9000], "431"),
        ] {
            let response = ask(server.address, request);
            // Closing with unread bytes may lose this scraper's response; the next one is served regardless.
            assert!(
                response.is_empty() || response.starts_with(&format!("HTTP/1.1 {status} ")),
                "{response}"
            );
        }
        assert!(ask(server.address, b"GET / HTTP/1.0\n\n").starts_with("HTTP/1.1 200 OK\r\n"));
    }
}
