//! The measured clients: how they are built and called.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    Result,
    case::{Case, Kind, PartKind, SHARE_POLL},
    folder, machine,
    measure::{self, Used},
    ping,
    server::Server,
    tree::Tree,
    wheel,
};

/// A client, or a mode of a client.
pub struct Peer {
    pub name: &'static str,
    pub what: &'static str,
    made: Made,
    /// The kinds of work that it takes part in.
    kinds: &'static [Kind],
    /// Additional arguments for producing.
    producing: &'static [&'static str],
    /// Additional arguments for consuming.
    consuming: &'static [&'static str],
    /// Additional arguments for sending one message at a time.
    one_at_a_time: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Cargo(&'static str),
    Go,
    Java,
    /// `peers/c/peer.c`, linked to Ottla's C library.
    COfOttla,
    /// The same, linked to the librdkafka of the Python wheel.
    COfWheel,
    /// The harness itself.
    Here,
}

impl Made {
    /// True for peers that run only the cases of the C interface.
    fn is_the_c_program(self) -> bool {
        matches!(self, Self::COfOttla | Self::COfWheel | Self::Cargo("peer-c-librdkafka"))
    }
}

/// The peers that take part in cases of transactions, beside the C program.
const TRANSACTIONAL: [&str; 6] =
    ["ottla", "librdkafka", "librdkafka-group", "librdkafka-batch", "franz-go", "java"];
const ALL: &[Kind] = &[Kind::Produce, Kind::Consume, Kind::Latency];
const SENDING: &[Kind] = &[Kind::Produce, Kind::Latency];
const LINGER_0: &[&str] = &["--set", "linger.ms=0"];
/// The Java client and its descendants have batches of 16 KiB by default; librdkafka, franz-go and Ottla have a
/// megabyte. With large batches they use less CPU, so they are compared with this setting.
const LARGE_BATCHES: &[&str] = &["--set", "batch.size=1000000"];

/// All peers: Ottla first, then by age.
pub const PEERS: [Peer; 16] = [
    Peer {
        name: "ottla",
        what: "Ottla, the Rust API",
        made: Made::Cargo("peer-ottla"),
        kinds: ALL,
        producing: &[],
        consuming: &[],
        one_at_a_time: &["--set", "linger.ms=0", "--set", "broker.linger.ms=0"],
    },
    Peer {
        name: "ottla-batch",
        what: "Ottla, the Rust API: send_batch, 100 at a time",
        made: Made::Cargo("peer-ottla"),
        kinds: &[Kind::Produce],
        producing: &["--mode", "batch"],
        consuming: &[],
        one_at_a_time: &[],
    },
    Peer {
        name: "librdkafka",
        what: "librdkafka: rd_kafka_produce with F_COPY and a delivery report callback",
        made: Made::Cargo("peer-librdkafka"),
        kinds: SENDING,
        producing: &[],
        consuming: &[],
        one_at_a_time: LINGER_0,
    },
    Peer {
        name: "librdkafka-group",
        what: "librdkafka: rd_kafka_consumer_poll, its group consumer, with partitions assigned by hand",
        made: Made::Cargo("peer-librdkafka"),
        kinds: &[Kind::Consume],
        producing: &[],
        consuming: &["--mode", "group"],
        one_at_a_time: &[],
    },
    Peer {
        name: "librdkafka-callback",
        what: "librdkafka: rd_kafka_consume_callback_queue",
        made: Made::Cargo("peer-librdkafka"),
        kinds: &[Kind::Consume],
        producing: &[],
        consuming: &["--mode", "callback"],
        one_at_a_time: &[],
    },
    Peer {
        name: "librdkafka-batch",
        what: "librdkafka: rd_kafka_consume_batch_queue, 1000 at a time",
        made: Made::Cargo("peer-librdkafka"),
        kinds: &[Kind::Consume],
        producing: &[],
        consuming: &["--mode", "batch"],
        one_at_a_time: &[],
    },
    Peer {
        name: "franz-go",
        what: "franz-go, Go: Produce with a promise and pooled records; PollFetches",
        made: Made::Go,
        kinds: ALL,
        producing: &[],
        consuming: &[],
        one_at_a_time: &[],
    },
    Peer {
        name: "ottla-member",
        what: "Ottla, the Rust API: a member of a group, which subscribes",
        made: Made::Cargo("peer-ottla"),
        kinds: &[Kind::Consume],
        producing: &[],
        consuming: &["--mode", "member"],
        one_at_a_time: &[],
    },
    Peer {
        name: "franz-go-member",
        what: "franz-go: a member of a group",
        made: Made::Go,
        kinds: &[Kind::Consume],
        producing: &[],
        consuming: &["--mode", "member"],
        one_at_a_time: &[],
    },
    Peer {
        name: "java",
        what: "kafka-clients, Java: send with a callback, batch.size=1000000; poll",
        made: Made::Java,
        kinds: ALL,
        producing: LARGE_BATCHES,
        consuming: &[],
        one_at_a_time: &[],
    },
    Peer {
        name: "confluent-kafka",
        what: "the crate confluent-kafka: send with a callback, batch.size=1000000; poll",
        made: Made::Cargo("peer-confluent-kafka"),
        kinds: ALL,
        producing: LARGE_BATCHES,
        consuming: &[],
        one_at_a_time: LINGER_0,
    },
    Peer {
        name: "krafka",
        what: "the crate krafka: enqueue, batch_size(1000000); poll",
        made: Made::Cargo("peer-krafka"),
        kinds: ALL,
        producing: &["--set", "batch_size=1000000"],
        consuming: &[],
        one_at_a_time: &["--set", "linger_ms=0"],
    },
    Peer {
        name: "ottla-c",
        what: "a C program linked to Ottla's librdkafka.a",
        made: Made::COfOttla,
        kinds: ALL,
        producing: &[],
        consuming: &[],
        one_at_a_time: LINGER_0,
    },
    Peer {
        name: "librdkafka-c",
        what: "the same C program linked to librdkafka",
        made: Made::Cargo("peer-c-librdkafka"),
        kinds: ALL,
        producing: &[],
        consuming: &[],
        one_at_a_time: LINGER_0,
    },
    Peer {
        name: "librdkafka-2.16-c",
        what: "the same C program linked to librdkafka 2.16.0 of its vendor's Python wheel",
        made: Made::COfWheel,
        kinds: ALL,
        producing: &[],
        consuming: &[],
        one_at_a_time: LINGER_0,
    },
    Peer {
        name: "tcp",
        what: "no Kafka: requests and responses of the same sizes over one TCP connection, the lower bound of the latency case",
        made: Made::Here,
        kinds: &[Kind::Latency],
        producing: &[],
        consuming: &[],
        one_at_a_time: &[],
    },
];

/// The result of a successful run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub version: String,
    pub cpu_nanoseconds_per_message: f64,
    pub messages_per_second: Option<f64>,
    pub max_resident_mib: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    /// Microseconds: median, 99th, 99.9th percentile.
    pub latency: Option<[f64; 3]>,
    pub messages: u64,
}

impl Peer {
    pub fn does(&self, case: &Case) -> bool {
        self.kinds.contains(&case.kind)
            && self.made.is_the_c_program() == case.calls.is_some()
            && (self.made != Made::Cargo("peer-c-librdkafka")
                || case.calls.as_ref().is_none_or(|calls| calls.mode != SHARE_POLL))
            && (case.parts.is_none() || self.made.is_the_c_program() || TRANSACTIONAL.contains(&self.name))
    }

    /// Does the work of the case once.
    pub fn run(&self, case: &Case, server: &Server, topic: &str) -> Result<Outcome> {
        if self.made == Made::Here {
            return self.outcome(case, &ping::run(case.messages)?);
        }
        Ok(self.run_program(self.program()?, case, server, topic)?.0)
    }

    /// Does the work of the case once, by this program instead of the peer's own: another build of it, for example.
    pub fn run_program(
        &self,
        program: Command,
        case: &Case,
        server: &Server,
        topic: &str,
    ) -> Result<(Outcome, Used)> {
        let used = measure::run(&mut self.command(program, case, server, topic)?)?;
        Ok((self.outcome(case, &used)?, used))
    }

    /// Reads what the finished process printed; an error if it did not do all of its work.
    fn outcome(&self, case: &Case, used: &Used) -> Result<Outcome> {
        let messages = case.messages;
        let last = used.stdout.lines().last().unwrap_or_default();
        let said: Value = serde_json::from_str(last).unwrap_or(Value::Null);
        if !used.success || said.is_null() {
            let reason =
                used.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no error output");
            return Err(format!("failed: {reason}").into());
        }
        let (done, errors) = (said["messages"].as_u64().unwrap_or(0), said["errors"].as_u64().unwrap_or(0));
        if errors > 0 || done < messages {
            return Err(format!("{done} of {messages} messages, {errors} errors").into());
        }
        let sent = if case.kind == Kind::Latency { messages + messages / 10 } else { done };
        let bytes = said["bytes"].as_u64().unwrap_or(0);
        if case.kind == Kind::Consume && bytes != done * case.size as u64 {
            return Err(format!("{bytes} bytes in {done} messages").into());
        }
        let percentile = |name: &str| said[name].as_f64();
        Ok(Outcome {
            version: said["version"].as_str().unwrap_or("unknown").to_owned(),
            cpu_nanoseconds_per_message: (used.user + used.system) * 1e9 / sent as f64,
            messages_per_second: said["seconds"].as_f64().map(|seconds| done as f64 / seconds),
            max_resident_mib: used.max_resident as f64 / 1024.0,
            user_seconds: used.user,
            system_seconds: used.system,
            latency: percentile("p50_us")
                .and_then(|p50| Some([p50, percentile("p99_us")?, percentile("p999_us")?])),
            messages: done,
        })
    }

    fn command(&self, mut command: Command, case: &Case, server: &Server, topic: &str) -> Result<Command> {
        let job = match case.kind {
            Kind::Produce => "produce",
            Kind::Consume => "consume",
            Kind::Latency => "latency",
        };
        command.arg(job).args(["--bootstrap", &server.bootstrap(), "--topic", topic]);
        command.args([
            "--messages",
            &case.messages.to_string(),
            "--partitions",
            &case.partitions.to_string(),
        ]);
        command.args(["--size", &case.size.to_string(), "--codec", case.codec, "--acks", case.acks]);
        command.arg("--payloads").arg(payloads(case.size)?);
        command.args(["--spread", if case.round_robin { "round-robin" } else { "own" }]);
        if let (Some(calls), true) = (&case.calls, self.made.is_the_c_program()) {
            command.args(["--mode", calls.mode, "--threads", &calls.threads.to_string()]);
            command.args(["--reports", if calls.reports { "yes" } else { "no" }]);
        }
        if let (Some(parts), Kind::Produce) = (&case.parts, case.kind) {
            let size = if parts.kind == PartKind::Flushed { "--flush" } else { "--transaction" };
            command.args([size, &parts.size.to_string()]);
            if parts.kind == PartKind::HalfAborted {
                command.args(["--aborts", "yes"]);
            }
        }
        if let Some(level) = case.isolation {
            command.args(["--isolation", level]);
        }
        if let Some(authority) = server.authority() {
            self.encrypt(&mut command, authority);
        }
        command.args(match case.kind {
            Kind::Produce => self.producing,
            Kind::Consume => self.consuming,
            Kind::Latency => self.one_at_a_time,
        });
        Ok(command)
    }

    /// Makes the client trust this CA and encrypt.
    fn encrypt(&self, command: &mut Command, authority: &Path) {
        let authority = authority.display();
        match self.made {
            Made::Go => command.args(["--ca", &authority.to_string()]),
            Made::Java => command
                .args(["--set", "security.protocol=SSL", "--set", "ssl.truststore.type=PEM"])
                .args(["--set", &format!("ssl.truststore.location={authority}")]),
            _ => command
                .args(["--set", "security.protocol=ssl"])
                .args(["--set", &format!("ssl.ca.location={authority}")]),
        };
    }

    /// The program that does this peer's jobs.
    pub fn program(&self) -> Result<Command> {
        Ok(match self.made {
            Made::Cargo(package) => Command::new(target().join("release").join(package)),
            Made::Go => Command::new(target().join("franz-go")),
            Made::Java => {
                let mut java = Command::new("java");
                let class_path = format!("{}:{}/*", target().join("java").display(), machine::kafka_jars()?);
                java.arg("-cp").arg(class_path).arg("Peer");
                java
            }
            Made::COfOttla => Command::new(Tree::here().c_program()),
            Made::COfWheel => Command::new(wheel::program()),
            Made::Here => return Err("the harness does this itself".into()),
        })
    }
}

/// Creates or deletes a topic, with the quickest program that can.
pub fn topic(job: &str, server: &Server, topic: &str, partitions: usize, replicas: usize) -> Result<()> {
    let mut command = Command::new(target().join("franz-go"));
    command.args([job, "--bootstrap", &server.bootstrap(), "--topic", topic]);
    if let Some(authority) = server.authority() {
        command.arg("--ca").arg(authority);
    }
    command.args(["--partitions", &partitions.to_string(), "--replicas", &replicas.to_string()]);
    let used = measure::run(&mut command)?;
    if used.success { Ok(()) } else { Err(format!("cannot {job} topic {topic}: {}", used.stderr).into()) }
}

/// Produces the records that a consumer is going to be measured with.
pub fn fill(case: &Case, server: &Server, topic: &str) -> Result<()> {
    // Only Ottla's program aborts transactions.
    let name = if case.parts.is_some() { "ottla" } else { "librdkafka" };
    let by = PEERS.iter().find(|peer| peer.name == name).ok_or(format!("{name} is not a peer any more"))?;
    let acks = "all";
    by.run(&Case { kind: Kind::Produce, acks, ..case.clone() }, server, topic)?;
    Ok(())
}

/// Builds the peers; returns those that could be built.
pub fn build(wanted: &[&'static Peer]) -> Result<Vec<&'static Peer>> {
    // These are always needed: one creates topics, the others fill them.
    let needed = [Made::Go, Made::Cargo("peer-librdkafka"), Made::Cargo("peer-ottla")];
    let mut all: Vec<Made> = Vec::new();
    for made in wanted.iter().map(|peer| peer.made).chain(needed) {
        if !all.contains(&made) {
            all.push(made);
        }
    }
    let crates: Vec<&str> = all
        .iter()
        .filter_map(|made| if let Made::Cargo(package) = made { Some(*package) } else { None })
        .collect();
    // All in one command: separate commands would build shared dependencies again for different features.
    let together = cargo(&crates).is_ok();
    let mut failed = Vec::new();
    for made in all {
        let answer = match made {
            Made::Cargo(_) if together => Ok(()),
            Made::Cargo(package) => cargo(&[package]),
            Made::Go => go(),
            Made::Java => java(),
            Made::COfOttla => Tree::here().build_c_program(),
            Made::COfWheel => wheel::build(),
            Made::Here => Ok(()),
        };
        if let Err(error) = answer {
            println!("SKIPPED, because the build failed: {made:?}: {error}");
            failed.push(made);
        }
    }
    if needed.iter().any(|made| failed.contains(made)) {
        return Err("without franz-go, librdkafka and Ottla there are neither topics nor records".into());
    }
    Ok(wanted.iter().copied().filter(|peer| !failed.contains(&peer.made)).collect())
}

/// Those that are there already.
pub fn built(wanted: &[&'static Peer]) -> Vec<&'static Peer> {
    let there = |peer: &&'static Peer| match peer.made {
        Made::Cargo(package) => target().join("release").join(package).exists(),
        Made::Go => target().join("franz-go").exists(),
        Made::Java => target().join("java/Peer.class").exists(),
        Made::COfOttla => Tree::here().c_program().exists(),
        Made::COfWheel => wheel::program().exists(),
        Made::Here => true,
    };
    wanted.iter().copied().filter(there).collect()
}

/// Returns the cargo that runs this program, without the variables that say so: a build script that reads them would run again
/// after each call of cargo from a shell.
pub fn cargo_command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

/// Builds packages of this workspace.
pub fn cargo(packages: &[&str]) -> Result<()> {
    let mut build = cargo_command();
    build.args(["build", "--quiet", "--release"]).current_dir(folder());
    for package in packages {
        build.args(["--package", package]);
    }
    succeed(&mut build)
}

fn go() -> Result<()> {
    let mut build = Command::new("go");
    build.args(["build", "-trimpath", "-o"]).arg(target().join("franz-go")).arg(".");
    succeed(build.current_dir(folder().join("peers/franz-go")))
}

fn java() -> Result<()> {
    let mut compile = Command::new("javac");
    compile.arg("-cp").arg(format!("{}/*", machine::kafka_jars()?)).arg("-d").arg(target().join("java"));
    succeed(compile.arg(folder().join("peers/java/Peer.java")))
}

/// Runs a command to its end; an error if it fails.
pub fn succeed(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{program}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program}: {status}").into()) }
}

/// Returns the folder in which the peers are built.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder().join("target"), PathBuf::from)
}

/// Returns a file of 2 MiB with payloads of this size: JSON that resembles events, with distinct numbers. It is longer
/// than a batch, so that no payload repeats within a batch and no codec profits from that.
pub fn payloads(size: usize) -> Result<PathBuf> {
    let path = target().join(format!("payloads-{size}"));
    if !path.exists() {
        fs::create_dir_all(target())?;
        fs::write(&path, payload_text(size, (2 << 20) / size))?;
    }
    Ok(Path::new(&path).to_path_buf())
}

fn payload_text(size: usize, count: usize) -> Vec<u8> {
    const KINDS: [&str; 8] = ["order", "payment", "refund", "login", "logout", "search", "view", "shipment"];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        // xorshift64: the same file on every machine.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = Vec::with_capacity(size * count);
    for _ in 0..count {
        let mut payload = String::new();
        while payload.len() < size {
            let kind = KINDS[(random() % 8) as usize];
            payload += &format!(
                "{{\"type\":\"{kind}\",\"user\":{},\"amount\":{}.{:02},\"session\":\"{:08x}\",\"ok\":{}}}",
                random() % 1_000_000,
                random() % 1_000,
                random() % 100,
                random() as u32,
                random() % 10 != 0
            );
        }
        payload.truncate(size);
        text.extend_from_slice(payload.as_bytes());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_have_their_size_and_differ() {
        let text = payload_text(100, 50);
        assert_eq!(text.len(), 5000);
        let payloads: std::collections::BTreeSet<_> = text.chunks(100).collect();
        assert_eq!(payloads.len(), 50);
    }
}
