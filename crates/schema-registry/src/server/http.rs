//! The HTTP server.

use std::{
    io::{self, Read as _},
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
};

use tiny_http::{Header, Response, Server};

use super::{
    refusal::Refusal,
    registry::Registry,
    routes::{Request, answer},
    storage::Storage,
};

/// The largest body of a request.
const MAX_BODY_BYTES: u64 = 16 << 20;
/// The number of requests that are read and written at the same time.
const WORKERS: usize = 4;
const MEDIA_TYPE: &str = "application/vnd.schemaregistry.v1+json";

/// A running registry, which stops when it is dropped.
pub struct EmbeddedRegistry {
    shared: Arc<Shared>,
    address: SocketAddr,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    server: Server,
    registry: Mutex<Registry>,
    requests: AtomicUsize,
    is_stopping: AtomicBool,
}

impl std::fmt::Debug for EmbeddedRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EmbeddedRegistry({})", self.address)
    }
}

impl EmbeddedRegistry {
    /// Starts a registry that listens on `HOST:PORT`; port 0 chooses a free one.
    ///
    /// # Errors
    ///
    /// It can't listen there, or its storage can't be read.
    pub fn start(address: &str, storage: impl Storage + 'static) -> io::Result<Self> {
        let registry = Registry::load(Box::new(storage)).map_err(io::Error::other)?;
        let server = Server::http(address).map_err(|error| io::Error::other(error.to_string()))?;
        let address =
            server.server_addr().to_ip().ok_or_else(|| io::Error::other("the address is not one of IP"))?;
        let shared = Arc::new(Shared {
            server,
            registry: Mutex::new(registry),
            requests: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
        });
        let mut workers = Vec::with_capacity(WORKERS);
        for number in 0..WORKERS {
            let shared = Arc::clone(&shared);
            let work = move || shared.serve();
            workers.push(std::thread::Builder::new().name(format!("registry-{number}")).spawn(work)?);
        }
        Ok(Self { shared, address, workers })
    }

    /// The address of the registry, for example `http://127.0.0.1:8081`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The number of requests that were answered.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }
}

impl Drop for EmbeddedRegistry {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            // Each call wakes one worker.
            while !worker.is_finished() {
                self.shared.server.unblock();
                std::thread::yield_now();
            }
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn serve(&self) {
        while !self.is_stopping.load(Ordering::SeqCst) {
            match self.server.recv() {
                Ok(request) => self.respond(request),
                Err(_) if self.is_stopping.load(Ordering::SeqCst) => return,
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    fn respond(&self, mut request: tiny_http::Request) {
        let outcome = read(&mut request).and_then(|request| {
            answer(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner), request)
        });
        let (status, body) = match &outcome {
            Ok(value) => (200, value.to_string()),
            Err(refusal) => (refusal.status(), refusal.to_json().to_string()),
        };
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mut response = Response::from_string(body).with_status_code(status);
        if let Ok(header) = Header::from_bytes("Content-Type", MEDIA_TYPE) {
            response.add_header(header);
        }
        // The client may be gone.
        let _ = request.respond(response);
    }
}

fn read(request: &mut tiny_http::Request) -> Result<Request, Refusal> {
    let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
    let parts = path.split('/').filter(|it| !it.is_empty()).map(decoded).collect();
    let pairs = query.split('&').filter(|it| !it.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key), decoded(&value.replace('+', " ")))
    });
    let mut read = Request {
        method: request.method().to_string(),
        path: parts,
        query: pairs.collect(),
        body: Vec::new(),
    };
    let limited = request.as_reader().take(MAX_BODY_BYTES + 1).read_to_end(&mut read.body);
    match limited {
        Ok(size) if size as u64 > MAX_BODY_BYTES => {
            Err(Refusal::new(413, "HTTP 413 Request Entity Too Large"))
        }
        Ok(_) => Ok(read),
        Err(error) => Err(Refusal::new(400, format!("the body can't be read: {error}"))),
    }
}

fn decoded(text: &str) -> String {
    crate::percent::decoded(text)
}
