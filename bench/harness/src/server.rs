//! The servers of a measurement, in separate processes: Ottla's embedded broker, or Apache Kafka.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use crate::{
    Result,
    case::{Against, Case, Kind},
    certificates, folder, peer,
};

/// A running cluster, which is stopped when this value is dropped.
pub struct Server {
    against: Against,
    bootstrap: String,
    /// The file with the CA that signed the brokers' certificate, if clients have to encrypt.
    authority: Option<PathBuf>,
    running: Running,
    /// The number of topics created so far, for their names.
    topics: AtomicUsize,
}

enum Running {
    /// A program with all brokers, which ends when its standard input does.
    Program(Child),
    Kafka(PathBuf),
}

impl Server {
    /// Makes sure that the server of this case runs, and no other one.
    pub fn prepare(current: &mut Option<Self>, case: &Case) -> Result<()> {
        // The embedded broker stores records in memory, so every case starts a new one.
        let fits = |server: &Self| {
            server.against == case.against
                && server.authority.is_some() == case.tls
                && case.against != Against::Embedded
        };
        if !current.as_ref().is_some_and(fits) {
            *current = None;
            *current =
                Some(if case.tls { Self::start_tls(case.against)? } else { Self::start(case.against)? });
        }
        Ok(())
    }

    /// Starts a cluster.
    pub fn start(against: Against) -> Result<Self> {
        Self::start_with(against, false)
    }

    /// Starts a cluster whose clients encrypt.
    fn start_tls(against: Against) -> Result<Self> {
        Self::start_with(against, true)
    }

    fn start_with(against: Against, tls: bool) -> Result<Self> {
        let mut authority = None;
        let (running, bootstrap) = match against {
            Against::Kafka { brokers: 1 } if tls => {
                let data = scratch().join(format!("ottla-bench-kafka-{}", std::process::id()));
                let (file, bootstrap) = start_kafka_with_tls(&data)?;
                authority = Some(file);
                (Running::Kafka(data), bootstrap)
            }
            Against::Kafka { .. } | Against::QuickFollowers { .. } if tls => {
                return Err("cases over TLS have one broker of Kafka".into());
            }
            Against::Kafka { brokers } | Against::QuickFollowers { brokers } => {
                let data = scratch().join(format!("ottla-bench-kafka-{}", std::process::id()));
                let brokers = brokers.to_string();
                let mut start = vec!["start", &brokers, "--heap", "1g"];
                if matches!(against, Against::QuickFollowers { .. }) {
                    start.extend(["--set", "replica.fetch.backoff.ms=10"]);
                }
                kafka(&data, &start)?;
                let bootstrap = kafka(&data, &["bootstrap"])?;
                (Running::Kafka(data), bootstrap.trim().to_owned())
            }
            Against::Null
            | Against::Discard
            | Against::Embedded
            | Against::Prompt
            | Against::Lagging { .. } => {
                let mut program = program(against);
                if tls {
                    program.arg("tls");
                }
                let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
                let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
                let mut line = || lines.next().unwrap_or_else(|| Ok(String::new()));
                let bootstrap = line()?;
                if tls {
                    authority = Some(PathBuf::from(line()?));
                }
                (Running::Program(child), bootstrap)
            }
        };
        Ok(Self { against, bootstrap, authority, running, topics: AtomicUsize::new(0) })
    }

    pub fn bootstrap(&self) -> String {
        self.bootstrap.clone()
    }

    pub fn authority(&self) -> Option<&Path> {
        self.authority.as_deref()
    }

    /// Moves the leadership of every partition of the topic to its next replica. The metadata of embedded brokers names
    /// the old leaders for another `lag_ms`; real brokers need their own time.
    pub fn rotate(&self, topic: &str, partitions: usize, lag_ms: u64) -> Result<()> {
        match &self.running {
            Running::Program(child) => {
                Ok(writeln!(child.stdin.as_ref().ok_or("no stdin")?, "rotate {lag_ms}")?)
            }
            Running::Kafka(_) => peer::topic("rotate", self, topic, partitions, 0),
        }
    }

    /// Delays every response of one embedded broker by `millis` milliseconds.
    pub fn slow(&self, broker: i32, millis: u64) -> Result<()> {
        match &self.running {
            Running::Program(child) => {
                Ok(writeln!(child.stdin.as_ref().ok_or("no stdin")?, "slow {broker} {millis}")?)
            }
            Running::Kafka(_) => Err("only embedded brokers can be slowed down".into()),
        }
    }

    /// Creates and fills the topic of a consuming case.
    pub fn fill(&self, case: &Case) -> Result<()> {
        if case.kind == Kind::Consume {
            peer::topic("create", self, &case.name, case.partitions, case.replicas)?;
            peer::fill(case, self, &case.name)?;
        }
        Ok(())
    }

    /// The topic for the next run: the filled one, or a new one. Older ones are deleted, so that disks don't fill up.
    pub fn topic(&self, case: &Case) -> Result<String> {
        if case.kind == Kind::Consume {
            return Ok(case.name.clone());
        }
        self.empty(case)?;
        let number = self.topics.load(Relaxed) + 1;
        self.topics.store(number, Relaxed);
        let topic = format!("{}-{number}", case.name);
        peer::topic("create", self, &topic, case.partitions, case.replicas)?;
        Ok(topic)
    }

    /// Deletes the case's last topic.
    pub fn empty(&self, case: &Case) -> Result<()> {
        let topic = match (case.kind, self.topics.load(Relaxed)) {
            (Kind::Consume, _) => case.name.clone(),
            (_, 0) => return Ok(()),
            (_, number) => format!("{}-{number}", case.name),
        };
        peer::topic("delete", self, &topic, 0, 0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match &mut self.running {
            Running::Program(child) => {
                drop(child.stdin.take());
                let _ = child.wait();
            }
            Running::Kafka(data) => {
                let _ = kafka(data, &["destroy"]);
            }
        }
    }
}

/// Returns the program that runs these brokers, which are not Apache Kafka's.
fn program(against: Against) -> Command {
    if against == Against::Null {
        let mut program = Command::new(peer::target().join("franz-go"));
        program.arg("null");
        return program;
    }
    let mut program = Command::new(own_target().join("release/examples/serve"));
    let brokers = if let Against::Lagging { brokers } = against { brokers } else { 3 };
    program.args([&brokers.to_string(), "0"]);
    match against {
        Against::Discard => program.arg("discard"),
        Against::Prompt => program.arg("prompt"),
        _ => &mut program,
    };
    program
}

/// Starts a broker of Apache Kafka with a TLS listener. Returns the file with the CA, and the address.
fn start_kafka_with_tls(data: &Path) -> Result<(PathBuf, String)> {
    let folder = data.join("tls");
    certificates::make(&folder)?;
    // Three ports in a row that are free now: of the plaintext listener, the controller and the TLS listener.
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut candidates = (24_000..32_000).step_by(3).skip(std::process::id() as usize % 1000);
    let port = candidates.find(|port| (*port..port + 3).all(is_free)).ok_or("no free ports")?;
    let listeners = format!("PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{}", port + 2);
    let broker = folder.join(certificates::BROKER);
    let mut start = ["start", "1", "--heap", "1g", "--port"].map(str::to_owned).to_vec();
    start.push(port.to_string());
    for setting in [
        format!("listeners={listeners},CONTROLLER://127.0.0.1:{}", port + 1),
        format!("advertised.listeners={listeners}"),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT".to_owned(),
        "ssl.keystore.type=PEM".to_owned(),
        format!("ssl.keystore.location={}", broker.display()),
    ] {
        // The last line of a property counts.
        start.extend(["--set".to_owned(), setting]);
    }
    kafka(data, &start.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok((folder.join(certificates::AUTHORITY), format!("127.0.0.1:{}", port + 2)))
}

/// Builds the embedded broker's server, with the settings of Ottla's own release build.
pub fn build() -> Result<()> {
    let mut build = peer::cargo_command();
    build.args(["build", "--quiet", "--release", "--package", "ottla-embedded-broker", "--example", "serve"]);
    let status = build.current_dir(repository()).env("CARGO_TARGET_DIR", own_target()).status()?;
    if status.success() { Ok(()) } else { Err("the embedded broker can't be built".into()) }
}

/// Builds a package of ours, with the settings of its release.
pub fn build_package(package: &str) -> Result<()> {
    let mut build = peer::cargo_command();
    build.args(["build", "--quiet", "--release", "--package", package]);
    let status = build.current_dir(repository()).env("CARGO_TARGET_DIR", own_target()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{package} can't be built").into()) }
}

/// `cargo xtask kafka`.
pub fn kafka(data: &Path, args: &[&str]) -> Result<String> {
    let mut xtask = peer::cargo_command();
    xtask.args(["run", "--quiet", "--package", "xtask", "--", "kafka", "--data"]).arg(data).args(args);
    xtask.current_dir(repository()).env("CARGO_TARGET_DIR", own_target());
    let done = xtask.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !done.status.success() {
        return Err(format!("cargo xtask kafka {}: {}", args.join(" "), done.status).into());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Returns the folder for the brokers' logs: in memory if possible, because new leaders write a file per partition and
/// sync it, which would measure the disk.
fn scratch() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { env::temp_dir() }
}

fn repository() -> PathBuf {
    folder().join("..")
}

/// The two workspaces don't share a target folder, which would build everything twice over.
pub fn own_target() -> PathBuf {
    env::var_os("OTTLA_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}
