//! From the name of a host to an authenticated connection.

use std::{
    io,
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use ottla_core::{
    config::{EffectiveConfig, ProxyUrl},
    sasl::{SaslSettings, SaslShared},
};
use ottla_net::{KerberosThread, PassedCredentials, TlsContext, TlsSettings, open_tunnel};
use ottla_protocol::api::ApiKey;

use super::{
    connection::{Broken, Connection, Link, Spoken, Timed},
    diagnosis::{Finding, Problem, Sink, Step, Stepped, step},
    limits::Limits,
    listener, sasl, tls,
};

/// Examines a cluster with the configuration of a client.
pub struct Doctor {
    pub(super) protocol: String,
    pub(super) client_id: String,
    pub(super) tls: Option<TlsContext>,
    pub(super) sasl: Option<Arc<SaslShared>>,
    pub(super) limits: Limits,
    proxy: Option<Arc<ProxyUrl>>,
    family: String,
}

impl Doctor {
    /// Reads the configuration and the files that it names, as the step `config`. `None` if they can't be used.
    /// `timeout` is the time for the whole examination.
    pub fn new(config: &EffectiveConfig<'_>, timeout: Option<Duration>, sink: &mut dyn Sink) -> Option<Self> {
        step(sink, "configuration", Step::Config, || Self::prepare(config, timeout))
    }

    fn prepare(config: &EffectiveConfig<'_>, timeout: Option<Duration>) -> Stepped<Self> {
        let limits = Limits::new(timeout);
        let protocol = config.text("security.protocol").to_owned();
        let bad = |error: ottla::Error| {
            let context = error.context();
            let text = if context.detail.is_empty() { error.to_string() } else { context.detail.clone() };
            Finding::failed(Problem::BadConfiguration, text)
        };
        let context = TlsSettings::new(config, PassedCredentials::default()).map(TlsContext::new);
        let tls = context.transpose().map_err(bad)?;
        let sasl = SaslSettings::new(config).map(|settings| {
            ottla_net::sasl::random_key().map(|key| Arc::new(SaslShared::new(settings, key)))
        });
        let sasl = sasl.transpose().map_err(|error| {
            Finding::failed(Problem::BadConfiguration, format!("the system has no random numbers: {error}"))
        })?;
        if let Some((sasl, kerberos)) =
            sasl.as_ref().and_then(|sasl| Some((sasl, sasl.settings().kerberos.clone()?)))
        {
            // The doctor asks for replies itself.
            let thread = KerberosThread::start(kerberos, Box::new(|| {})).map_err(bad)?;
            sasl.set_kerberos(Box::new(thread));
        }
        let mut finding = Finding::passed(match &sasl {
            Some(sasl) => format!("security.protocol={protocol}, {}", sasl::described(sasl)),
            None => format!("security.protocol={protocol}"),
        });
        for warning in config.warnings() {
            finding = finding.note(format!("warning: {warning}"));
        }
        finding = finding.with("security_protocol", protocol.as_str());
        if let Some(tls) = &tls {
            finding = tls::check_own_certificate(tls, finding)?;
        }
        let doctor = Self {
            protocol,
            client_id: config.text("client.id").to_owned(),
            tls,
            sasl,
            limits,
            proxy: ProxyUrl::parse(config.text("proxy.url")).ok().map(Arc::new),
            family: config.text("broker.address.family").to_owned(),
        };
        Ok((doctor, finding))
    }

    /// Begins one of `parts` parts of the examination that share the rest of the time.
    pub fn share_time(&self, parts: usize) {
        self.limits.share(parts);
    }

    /// Connects step by step. `None` if a step failed.
    pub fn connect(&self, host: &str, port: u16, sink: &mut dyn Sink) -> Option<Connection> {
        let target = shown(host, port);
        let contact =
            self.proxy.as_ref().map_or((host, port), |proxy| (&*proxy.server.host, proxy.server.port));
        let addresses = step(sink, &target, Step::Dns, || self.resolve(contact.0, contact.1))?;
        let mut stream = step(sink, &target, Step::Tcp, || self.dial(&addresses))?;
        if let Some(proxy) = &self.proxy {
            stream = step(sink, &target, Step::Proxy, || self.tunnel(stream, proxy, (host, port)))?;
        }
        let address = stream.peer_addr().unwrap_or(addresses[0]);
        let link = match &self.tls {
            Some(context) => step(sink, &target, Step::Tls, || {
                tls::shake(self, context, (host, port), address, self.timed(stream))
            })?,
            None => Link::Plain(self.timed(stream)),
        };
        let mut connection = step(sink, &target, Step::Api, || self.greet(link, (host, port), address))?;
        if let Some(sasl) = &self.sasl {
            step(sink, &target, Step::Sasl, || sasl::authenticate(self, &mut connection, sasl, host))?;
        }
        Some(connection)
    }

    /// Returns a stream on which the next operations end in time.
    pub(super) fn timed(&self, stream: TcpStream) -> Timed {
        Timed::new(stream, self.deadline())
    }

    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.limits.wait()
    }

    fn resolve(&self, host: &str, port: u16) -> Stepped<Vec<SocketAddr>> {
        let found = look_up(host, port, self.limits.wait()).map_err(|error| {
            Finding::failed(Problem::UnknownHost, format!("\"{host}\" has no address: {error}"))
                .advise("check the spelling of the host")
                .advise(format!("ask this machine's resolver: getent hosts {host}"))
                .advise(
                    "a name that only the brokers' network knows needs a public one in advertised.listeners",
                )
        })?;
        let mut addresses: Vec<_> = found
            .into_iter()
            .filter(|address| match &*self.family {
                "v4" => address.is_ipv4(),
                "v6" => address.is_ipv6(),
                _ => true,
            })
            .collect();
        addresses.dedup();
        if addresses.is_empty() {
            let text = format!("\"{host}\" has no address of broker.address.family={}", self.family);
            return Err(Finding::failed(Problem::UnknownHost, text).advise("set broker.address.family=any"));
        }
        let list: Vec<_> = addresses.iter().map(|address| address.ip().to_string()).collect();
        Ok((addresses, Finding::passed(list.join(", ")).with("addresses", list)))
    }

    /// Asks the proxy for a connection to the broker.
    fn tunnel(&self, stream: TcpStream, proxy: &Arc<ProxyUrl>, server: (&str, u16)) -> Stepped<TcpStream> {
        let mut timed = self.timed(stream);
        match open_tunnel(&mut timed, proxy, server.0, server.1) {
            Ok(()) => Ok((timed.into_stream(), Finding::passed(format!("connected by the {proxy}")))),
            Err(error) => {
                let advice = "`proxy.url` has the proxy; without it brokers are connected to directly";
                Err(Finding::failed(Problem::ProxyFailed, error.context().detail.clone()).advise(advice))
            }
        }
    }

    /// Connects once more to an address that accepted, to examine what listens there. `None` behind a proxy, which is what
    /// listens there.
    pub(super) fn dial_again(&self, address: SocketAddr) -> Option<TcpStream> {
        match self.proxy {
            Some(_) => None,
            None => self.dial(&[address]).ok().map(|(stream, _)| stream),
        }
    }

    /// Connects to the first address that accepts.
    fn dial(&self, addresses: &[SocketAddr]) -> Stepped<TcpStream> {
        let mut failures = Vec::new();
        let mut problem = Problem::Unreachable;
        let deadline = self.deadline();
        for (index, address) in addresses.iter().enumerate() {
            // The addresses share the time.
            let left = deadline.saturating_duration_since(Instant::now()) / (addresses.len() - index) as u32;
            let wait = left.max(Duration::from_millis(1));
            match TcpStream::connect_timeout(address, wait) {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true);
                    let mut finding = Finding::passed(format!("connected to {address}"));
                    for failure in failures {
                        finding = finding.note(format!("warning: {failure}"));
                    }
                    return Ok((stream, finding.with("address", address.to_string())));
                }
                Err(error) => {
                    if error.kind() == std::io::ErrorKind::ConnectionRefused {
                        problem = Problem::ConnectionRefused;
                    }
                    let why = match error.kind() {
                        std::io::ErrorKind::TimedOut => format!("no response within {wait:.1?}"),
                        _ => error.to_string(),
                    };
                    failures.push(format!("{address}: {why}"));
                }
            }
        }
        let finding = Finding::failed(problem, failures.join("; "));
        Err(match problem {
            Problem::ConnectionRefused => finding
                .advise("no process listens on this port: check the port, and that the broker is running")
                .advise("on the broker, `listeners` has the ports; 127.0.0.1 there accepts connections of that machine only"),
            _ => finding
                .advise("a firewall or a security group may drop the packets, or the address is wrong")
                .advise("--timeout gives a slow network more time"),
        })
    }

    /// Asks the broker for its API versions.
    fn greet(&self, link: Link, server: (&str, u16), address: SocketAddr) -> Stepped<Connection> {
        match Connection::greet(link, address, &self.client_id) {
            Ok(connection) => {
                let finding = describe_apis(&connection)?;
                Ok((connection, finding))
            }
            Err(broken) => Err(self.explain_greeting(broken, server, address)),
        }
    }

    fn explain_greeting(&self, broken: Broken, server: (&str, u16), address: SocketAddr) -> Finding {
        let is_tls = self.tls.is_some();
        match broken {
            Broken::NotKafka(Spoken::Tls) if !is_tls => listener::speaks_tls(self, server, address),
            Broken::Closed(_) | Broken::Silent | Broken::NotKafka(Spoken::Other)
                if !is_tls && listener::has_tls(self, server, address) =>
            {
                listener::speaks_tls(self, server, address)
            }
            Broken::Closed(_) | Broken::Silent | Broken::NotKafka(Spoken::Other)
                if !is_tls && listener::speaks_http(self, address) =>
            {
                self.explain(Broken::NotKafka(Spoken::Http))
            }
            other => self.explain(other),
        }
    }

    /// Explains why a request has no response.
    pub(super) fn explain(&self, broken: Broken) -> Finding {
        match broken {
            Broken::Tls(failure) => tls::explain(self, *failure),
            Broken::NotKafka(Spoken::Http) => {
                Finding::failed(Problem::HttpServer, "the port belongs to an HTTP server and not to a Kafka broker")
                    .advise("use the port of a broker's listener: 8081, 8082 and 8083 are the REST services of Kafka's ecosystem")
            }
            Broken::NotKafka(_) => {
                Finding::failed(Problem::NotKafka, "the peer does not respond in Kafka's protocol")
                    .advise("check host and port, and security.protocol")
            }
            Broken::Silent => {
                let text = "the peer accepts connections but does not respond in time";
                Finding::failed(Problem::Silent, text)
                    .advise("check that a Kafka broker listens on this port, and that it is not overloaded or paused")
                    .advise("--timeout gives a slow broker more time")
            }
            Broken::Closed(why) => {
                Finding::failed(Problem::Closed, format!("the peer closed the connection without a response ({why})"))
                    .advise("check security.protocol, and the broker's log at this time")
                    .advise("brokers before 0.10 do not know the first request: set broker.version.fallback")
            }
            Broken::Malformed(why) => {
                Finding::failed(Problem::BadResponse, format!("the response can't be understood: {why}"))
                    .advise("check that the port belongs to Kafka's brokers themselves, and not to a proxy or another product")
            }
            Broken::Unsupported(api) => {
                Finding::failed(Problem::BadResponse, format!("the broker has no usable version of {api}"))
                    .advise("use brokers of Kafka 0.10 or newer")
            }
        }
    }
}

/// Asks the system's resolver, which has no timeout of its own that a caller could set.
fn look_up(host: &str, port: u16, wait: Duration) -> io::Result<Vec<SocketAddr>> {
    let (sender, found) = mpsc::channel();
    let name = host.to_owned();
    thread::spawn(move || {
        let addresses = (name.as_str(), port).to_socket_addrs().map(Iterator::collect);
        // Nobody waits after the timeout.
        let _ = sender.send(addresses);
    });
    found.recv_timeout(wait).unwrap_or_else(|_| {
        let text = format!("the resolver did not respond within {wait:.1?}");
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    })
}

/// Describes what the broker offers. Error: it is not a broker for clients.
fn describe_apis(connection: &Connection) -> Result<Finding, Finding> {
    let count = connection.offered.api_keys.len();
    if connection.versions.pick_any(ApiKey::Metadata).is_none() {
        return Err(Finding::failed(
            Problem::ControllerListener,
            "the server speaks Kafka's protocol but has no Metadata: this is the listener of a KRaft controller",
        )
        .advise("use the port of a broker's listener (`listeners` without `controller.listener.names`)"));
    }
    let level = connection.offered.finalized_features.iter().find(|it| it.name == "metadata.version");
    let level = level.map(|feature| feature.max_version_level);
    let shown = level.map_or(String::new(), |level| format!(", metadata.version {level}"));
    Ok(Finding::passed(format!("{count} APIs{shown}")).with("apis", count).with("metadata_version", level))
}

/// Returns `host:port`, with brackets around an IPv6 address.
pub fn shown(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
