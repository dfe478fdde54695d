//! `--metrics-port`: what a client counted, as text for Prometheus, over the little of HTTP/1.1 that this takes.
//!
//! One request after the other, on a thread of its own; a request that is too long or too slow is answered with an error.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ottla::Statistics;

use crate::failure::{Failure, Outcome};

/// The longest request that is read.
const MAX_REQUEST_BYTES: usize = 8192;
/// Whoever asks has so long to do it, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves until it is dropped.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Serves on this port of this machine, or not at all without one; 0 takes any free port, which is printed.
    pub fn start(
        port: Option<u16>,
        read: impl Fn() -> ottla::Result<Statistics> + Send + 'static,
    ) -> Outcome<Option<Self>> {
        let Some(port) = port else { return Ok(None) };
        let failed = |error: io::Error| Failure::Failed(format!("--metrics-port {port}: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        eprintln!("metrics at http://{address}/metrics");
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let serve = move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(stream) = stream {
                    // Whoever hangs up does not need an answer.
                    let _ = answer(stream, &read);
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
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, read: &impl Fn() -> ottla::Result<Statistics>) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
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

/// Reads up to the empty line; answers the first line, or what is wrong.
fn request_line(stream: &mut TcpStream) -> io::Result<Result<String, &'static str>> {
    let deadline = Instant::now() + PATIENCE;
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
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn a_scrape_is_answered_and_nonsense_is_answered_with_what_is_wrong() {
        let server = MetricsServer::start(Some(0), || Ok(Statistics::default())).unwrap().unwrap();
        let good = ask(server.address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(good.starts_with("HTTP/1.1 200 OK\r\n"), "{good}");
        assert!(good.contains("\r\n\r\n# HELP ottla_ts_total "), "{good}");
        for (request, status) in [
            (&b"GET /other HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\x16\x03\x01\x02\x00\n\n", "400"),
            (b"GET /metrics", "400"),
            (&vec![b'a'; 9000], "431"),
        ] {
            let answer = ask(server.address, request);
            // A request that was not read to its end may cost its asker the answer; the next one is served all the same.
            assert!(answer.is_empty() || answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        }
        assert!(ask(server.address, b"GET / HTTP/1.0\n\n").starts_with("HTTP/1.1 200 OK\r\n"));
    }
}
