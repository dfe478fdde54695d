//! `cargo xtask kafka`: runs Apache Kafka on this machine, from its jars on Maven Central.
//!
//! A [`Cluster`] is a folder: `cluster.json` lists the nodes and their ports, and each node has a folder `node-N` with
//! its configuration, data, log and process ID. Therefore later commands find the cluster again, and a killed node
//! restarts with its data. The protocol is KRaft: node 1 is broker and controller, the others are brokers (more
//! controllers with `--controllers`).

pub mod classes;

use std::{
    env, fs,
    net::TcpListener,
    ops::Range,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    Result, install,
    shell::{self, Reaper, cache},
};

const HELP: &str = "\
cargo xtask kafka [--data FOLDER] COMMAND

  start [N] [--port P] [--controllers C] [--heap 512m] [--brief] [--set name=value]...
                     start N brokers (default 1), or the existing cluster again; waits until all are ready;
                     --brief: for minutes of tests, less work for the JVM at the start, and slower afterwards
  stop [ID...]       shut all (or these) brokers down in order
  kill ID...         kill these brokers at once, as a power cut would
  restart ID...      stop these brokers if they run, and start them on their old data
  status             a line per broker: id, address, process, memory
  bootstrap          print the value for bootstrap.servers
  run CLASS ARGS...  run a class of the distribution, e.g. org.apache.kafka.tools.TopicCommand --list --bootstrap-server ...
  destroy            kill all, and delete the data
  torture            kill and restart three brokers of its own in turn while 2 million records are produced with
                     idempotence; counts them with Kafka's own tools (two to five minutes, 1.5 GB of memory)
  fetch              only download the jars (55 MB, once, into the cache folder); prints their folder

The cluster lives in FOLDER: --data, or OTTLA_KAFKA_DATA, or a folder of the temporary directory. Ports are chosen
among the free ones, or P, P+1, ... for the brokers and the next C for the controllers. The version is 4.4.0, or that
of OTTLA_KAFKA_VERSION (4.3.1, 3.9.1).
";

/// The version of Apache Kafka for all tests and measurements, unless `OTTLA_KAFKA_VERSION` names another one.
const VERSION: &str = "4.4.0";
const LOG4J: &str = "2.25.4";

/// The options of a JVM that ends after minutes: no collector with threads of its own, only the quick compiler.
const BRIEF: [&str; 2] = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
/// The same of one that lasts.
const LASTING: [&str; 2] = ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"];

pub fn main(args: &[String]) -> Result<ExitCode> {
    let mut args = args.to_vec();
    let folder = take_option(&mut args, "--data")?.map(PathBuf::from).unwrap_or_else(default_folder);
    let is_help = |arg: &String| ["--help", "-h"].contains(&arg.as_str());
    // All arguments of `run` belong to the tool.
    let asks_for_help = args.first().is_some_and(|command| command == "help")
        || args.iter().take_while(|arg| *arg != "run").any(is_help);
    if args.is_empty() || asks_for_help {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let command = args.remove(0);
    match command.as_str() {
        "fetch" => println!("{}", fetch()?.display()),
        "run" => {
            let (class, args) = args.split_first().ok_or("`run` needs the name of a class")?;
            let status = tool(class)?.args(args).status()?;
            return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        "start" => start(&folder, args)?,
        "torture" if args.is_empty() => return torture(),
        "torture" => {
            return Err(format!("torture takes no arguments, but there is {}", args.join(" ")).into());
        }
        "destroy" if !folder.exists() => println!("there is no cluster in {}", folder.display()),
        _ => {
            let cluster = Cluster::open(&folder)?;
            let chosen = args.iter().map(|id| cluster.node(id)).collect::<Result<Vec<_>>>()?;
            let all: Vec<u32> = cluster.nodes.iter().map(|node| node.id).collect();
            let named =
                || if chosen.is_empty() { Err(format!("{command} which broker?")) } else { Ok(&chosen) };
            match command.as_str() {
                "stop" => cluster.stop(if chosen.is_empty() { &all } else { &chosen })?,
                "kill" => cluster.kill(named()?),
                "restart" => {
                    cluster.stop(named()?)?;
                    cluster.start(&chosen)?;
                }
                "status" => return Ok(cluster.status()),
                "bootstrap" => println!("{}", cluster.bootstrap()),
                "destroy" => cluster.destroy()?,
                other => return Err(format!("there is no command `kafka {other}`\n\n{HELP}").into()),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn start(folder: &Path, mut args: Vec<String>) -> Result<()> {
    let mut options = Options::default();
    if let Some(port) = take_option(&mut args, "--port")? {
        options.port = Some(port.parse().map_err(|_| format!("{port} is not a port"))?);
    }
    if let Some(count) = take_option(&mut args, "--controllers")? {
        options.controllers = count.parse().map_err(|_| format!("{count} is not a number of controllers"))?;
    }
    if let Some(heap) = take_option(&mut args, "--heap")? {
        options.heap = heap;
    }
    if let Some(place) = args.iter().position(|arg| arg == "--brief") {
        args.remove(place);
        options.is_brief = true;
    }
    while let Some(setting) = take_option(&mut args, "--set")? {
        options.settings.push(setting);
    }
    let count =
        args.first().map(|count| count.parse().map_err(|_| format!("{count} is not a number of brokers")));
    if options.is_brief {
        classes::prepare()?;
    }
    let cluster = match (Cluster::open(folder), count.transpose()?) {
        (Ok(cluster), None) => cluster,
        (Ok(cluster), Some(count)) if cluster.nodes.len() == count => cluster,
        (Ok(cluster), Some(_)) => {
            let nodes = cluster.nodes.len();
            return Err(
                format!("there is a cluster of {nodes} in {}: destroy it first", folder.display()).into()
            );
        }
        (Err(_), count) => Cluster::create(folder, count.unwrap_or(1), &options)?,
    };
    let began = Instant::now();
    cluster.start(&cluster.nodes.iter().map(|node| node.id).collect::<Vec<_>>())?;
    println!(
        "{} (ready in {:.1} s, {})",
        cluster.bootstrap(),
        began.elapsed().as_secs_f64(),
        folder.display()
    );
    Ok(())
}

/// Runs the tests that take too long for `cargo xtask test`, on separate brokers.
fn torture() -> Result<ExitCode> {
    let ottla = match env::var_os("OTTLA") {
        Some(program) => PathBuf::from(program),
        None => crate::library::ottla("release")?,
    };
    let folder = env::temp_dir().join(format!("ottla-torture-{}", std::process::id()));
    let options = Options { controllers: 3, ..Options::default() };
    let cluster = Cluster::create(&folder, 3, &options)?;
    let script = cluster.start(&[1, 2, 3]).and_then(|()| {
        let mut script = Command::new("bash");
        script.arg("tests/kafka/by_command/brokers_are_killed_in_turn.sh").current_dir(shell::root());
        script
            .env("OTTLA", &ottla)
            .env("OTTLA_KAFKA_DATA", &folder)
            .env("OTTLA_BOOTSTRAP", cluster.bootstrap());
        script.env("OTTLA_XTASK", env::current_exe()?);
        Ok(script.status()?)
    });
    cluster.destroy()?;
    Ok(if script?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn take_option(args: &mut Vec<String>, name: &str) -> Result<Option<String>> {
    let Some(at) = args.iter().position(|arg| arg == name) else { return Ok(None) };
    if at + 1 == args.len() {
        return Err(format!("{name} needs a value").into());
    }
    args.remove(at);
    Ok(Some(args.remove(at)))
}

fn default_folder() -> PathBuf {
    env::var_os("OTTLA_KAFKA_DATA").map_or_else(|| env::temp_dir().join("ottla-kafka"), PathBuf::from)
}

/// The options of a new cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// The first broker's port; `None` chooses free ports.
    pub port: Option<u16>,
    /// The number of nodes that are also controllers.
    pub controllers: usize,
    /// The heap size of each node.
    pub heap: String,
    /// The brokers run for minutes: it does not pay to compile their code well.
    pub is_brief: bool,
    /// Additional lines of server.properties.
    pub settings: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { port: None, controllers: 1, heap: "512m".to_owned(), is_brief: false, settings: Vec::new() }
    }
}

/// A cluster of Apache Kafka brokers in a folder.
#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    heap: String,
    is_brief: bool,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    id: u32,
    port: u16,
}

impl Cluster {
    /// Writes the configuration of a new cluster and formats its storage.
    pub fn create(folder: &Path, brokers: usize, options: &Options) -> Result<Self> {
        let controllers = options.controllers.clamp(1, brokers.max(1));
        let ports = match options.port {
            Some(first) => (first..).take(brokers + controllers).collect(),
            None => free_ports(brokers + controllers)?,
        };
        if brokers == 0 || ports.len() < brokers + controllers {
            return Err(format!("{brokers} brokers do not fit on these ports: the last port is 65535").into());
        }
        let (broker_ports, controller_ports) = ports.split_at(brokers);
        let nodes: Vec<Node> = (1..).zip(broker_ports).map(|(id, &port)| Node { id, port }).collect();
        let Options { heap, is_brief, .. } = options.clone();
        let cluster = Self { folder: folder.to_path_buf(), heap, is_brief, nodes };
        fetch()?;
        for node in &cluster.nodes {
            fs::create_dir_all(cluster.of(node.id))?;
            let text = cluster.properties(*node, controller_ports, &options.settings);
            fs::write(cluster.of(node.id).join("server.properties"), text)?;
            fs::write(cluster.of(node.id).join("log4j2.properties"), log4j(Some(&cluster.log(node.id))))?;
        }
        cluster.format()?;
        let nodes: Vec<Value> =
            cluster.nodes.iter().map(|node| json!({"id": node.id, "port": node.port})).collect();
        let state =
            json!({"version": version(), "heap": cluster.heap, "brief": cluster.is_brief, "nodes": nodes});
        fs::write(folder.join("cluster.json"), format!("{state:#}\n"))?;
        Ok(cluster)
    }

    /// Opens the cluster in this folder.
    pub fn open(folder: &Path) -> Result<Self> {
        let text = fs::read_to_string(folder.join("cluster.json"))
            .map_err(|_| format!("there is no cluster in {}: start one", folder.display()))?;
        let state: Value = serde_json::from_str(&text)?;
        let node = |value: &Value| {
            Some(Node {
                id: value["id"].as_u64()?.try_into().ok()?,
                port: value["port"].as_u64()?.try_into().ok()?,
            })
        };
        let nodes =
            state["nodes"].as_array().and_then(|nodes| nodes.iter().map(node).collect::<Option<Vec<_>>>());
        let nodes = nodes.ok_or_else(|| format!("{}/cluster.json is damaged", folder.display()))?;
        let heap = state["heap"].as_str().unwrap_or("512m").to_owned();
        let is_brief = state["brief"].as_bool().unwrap_or_default();
        Ok(Self { folder: folder.to_path_buf(), heap, is_brief, nodes })
    }

    /// Returns the value for `bootstrap.servers`.
    pub fn bootstrap(&self) -> String {
        let servers: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        servers.join(",")
    }

    /// Starts these nodes and waits until all of them are ready.
    pub fn start(&self, ids: &[u32]) -> Result<()> {
        self.start_with(ids, &classes::options())
    }

    /// The same with these options for the JVM.
    fn start_with(&self, ids: &[u32], java: &[String]) -> Result<()> {
        let mut started = Vec::new();
        for &id in ids {
            if self.process(id).is_none() {
                started.push((id, self.launch(id, java)?));
            }
        }
        let end = Instant::now() + Duration::from_secs(240);
        for (id, mut child) in started {
            while !fs::read_to_string(self.log(id)).is_ok_and(|log| log.contains("Kafka Server started")) {
                if let Some(status) = child.try_wait()? {
                    let log = fs::read_to_string(self.log(id)).unwrap_or_default();
                    let said = fs::read_to_string(self.of(id).join("stdout.log")).unwrap_or_default();
                    return Err(
                        format!("broker {id} ended: {status}\n{}\n{}", tail(&log), tail(&said)).into()
                    );
                }
                if Instant::now() > end {
                    return Err(format!(
                        "broker {id} is not ready after 240 s, see {}",
                        self.log(id).display()
                    )
                    .into());
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// Shuts these nodes down in order, and kills the remaining ones after 30 seconds. Controllers are last, because a
    /// broker can't hand over its partitions without one.
    pub fn stop(&self, ids: &[u32]) -> Result<()> {
        let mut ids = ids.to_vec();
        ids.sort_by_key(|&id| (id == 1, id));
        for wave in ids.chunk_by(|_, &next| next != 1) {
            let running: Vec<u32> = wave.iter().copied().filter(|&id| self.process(id).is_some()).collect();
            for &id in &running {
                self.signal("TERM", id);
            }
            let end = Instant::now() + Duration::from_secs(30);
            while running.iter().any(|&id| self.process(id).is_some()) && Instant::now() < end {
                thread::sleep(Duration::from_millis(50));
            }
            self.kill(&running);
        }
        Ok(())
    }

    /// Kills these nodes with SIGKILL and waits until they have ended.
    pub fn kill(&self, ids: &[u32]) {
        for &id in ids {
            self.signal("KILL", id);
            while self.process(id).is_some() {
                thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// Kills all nodes and deletes their data.
    pub fn destroy(&self) -> Result<()> {
        self.kill(&self.nodes.iter().map(|node| node.id).collect::<Vec<_>>());
        fs::remove_dir_all(&self.folder)?;
        Ok(())
    }

    /// Kills the running nodes if this process ends without stopping them.
    pub fn guard(&self) -> Result<Reaper> {
        let running: Vec<u32> = self.nodes.iter().filter_map(|node| self.process(node.id)).collect();
        Reaper::of_processes(&running)
    }

    fn status(&self) -> ExitCode {
        let mut all = true;
        for node in &self.nodes {
            let state = match self.process(node.id) {
                Some(process) => {
                    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
                    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
                    format!("process {process}, {}", resident.unwrap_or("memory unknown").trim())
                }
                None => {
                    all = false;
                    "down".to_owned()
                }
            };
            println!("{} 127.0.0.1:{} {state}", node.id, node.port);
        }
        if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn node(&self, id: &str) -> Result<u32> {
        let found = self.nodes.iter().find(|node| node.id.to_string() == id);
        found.map(|node| node.id).ok_or_else(|| format!("there is no broker {id}").into())
    }

    fn of(&self, id: u32) -> PathBuf {
        self.folder.join(format!("node-{id}"))
    }

    fn log(&self, id: u32) -> PathBuf {
        self.of(id).join("server.log")
    }

    fn properties(&self, node: Node, controller_ports: &[u16], settings: &[String]) -> String {
        let replicas = self.nodes.len().min(3);
        let voters: Vec<_> =
            (1..).zip(controller_ports).map(|(id, port)| format!("{id}@127.0.0.1:{port}")).collect();
        let own = controller_ports.get(node.id as usize - 1);
        let (roles, controller) = match own {
            Some(port) => ("broker,controller", format!(",CONTROLLER://127.0.0.1:{port}")),
            None => ("broker", String::new()),
        };
        let mut lines = vec![
            format!("node.id={}", node.id),
            format!("process.roles={roles}"),
            format!("controller.quorum.voters={}", voters.join(",")),
            "controller.listener.names=CONTROLLER".to_owned(),
            format!("listeners=PLAINTEXT://127.0.0.1:{}{controller}", node.port),
            format!("advertised.listeners=PLAINTEXT://127.0.0.1:{}", node.port),
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT".to_owned(),
            "inter.broker.listener.name=PLAINTEXT".to_owned(),
            format!("log.dirs={}", self.of(node.id).join("data").display()),
            "num.partitions=4".to_owned(),
            format!("default.replication.factor={replicas}"),
            "group.initial.rebalance.delay.ms=0".to_owned(),
            // Small, so that several brokers fit into the memory of a small machine.
            "num.network.threads=2".to_owned(),
            "num.io.threads=4".to_owned(),
            "log.cleaner.dedupe.buffer.size=8388608".to_owned(),
            // Kafka 4.4 stores descriptions of topologies by this; older versions know no such setting.
            format!(
                "group.streams.topology.description.plugin.class={}",
                "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
            ),
        ];
        for topic in ["offsets.topic", "transaction.state.log", "share.coordinator.state.topic"] {
            lines.push(format!("{topic}.replication.factor={replicas}"));
            lines.push(format!("{topic}.num.partitions=4"));
        }
        for topic in ["transaction.state.log", "share.coordinator.state.topic"] {
            lines.push(format!("{topic}.min.isr=1"));
        }
        if self.is_brief {
            // Brokers that idle, as they do most of the time, use a third less CPU.
            lines.push("metadata.max.idle.interval.ms=0".to_owned());
            lines.push("replica.fetch.wait.max.ms=5000".to_owned());
        }
        lines.extend(settings.iter().cloned());
        lines.join("\n") + "\n"
    }

    fn format(&self) -> Result<()> {
        // 16 bytes in URL-safe base64: 21 free characters, and a last one with four zero bits at its end.
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        let cluster_id = format!("ottla{:016x}A", now as u64);
        let mut running = Vec::new();
        for node in &self.nodes {
            let folder = self.of(node.id);
            let mut format = tool("kafka.tools.StorageTool")?;
            format.args(["format", "-t", &cluster_id, "-c"]).arg(folder.join("server.properties"));
            let log = fs::File::create(folder.join("format.log"))?;
            format.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
            running.push((folder, format.spawn()?));
        }
        for (folder, mut child) in running {
            let status = child.wait()?;
            if !status.success() {
                let said = fs::read_to_string(folder.join("format.log")).unwrap_or_default();
                return Err(format!("formatting {}: {status}\n{said}", folder.display()).into());
            }
        }
        Ok(())
    }

    fn launch(&self, id: u32, java: &[String]) -> Result<Child> {
        use std::os::unix::process::CommandExt as _;
        let folder = self.of(id);
        if self.log(id).exists() {
            fs::rename(self.log(id), folder.join("server.previous.log"))?;
        }
        let said = fs::File::create(folder.join("stdout.log"))?;
        let child = Command::new("java")
            .arg(format!("-Xms{}", self.heap))
            .arg(format!("-Xmx{}", self.heap))
            .args(if self.is_brief { BRIEF } else { LASTING })
            .args(java)
            .arg("-Djava.awt.headless=true")
            .arg(format!("-Dlog4j2.configurationFile={}", folder.join("log4j2.properties").display()))
            .arg("-cp")
            .arg(class_path())
            .arg("kafka.Kafka")
            .arg(folder.join("server.properties"))
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said)
            .process_group(0)
            .spawn()?;
        fs::write(folder.join("pid"), child.id().to_string())?;
        Ok(child)
    }

    /// Returns the process of this node, if it runs. A process ID alone proves nothing: the process must be the Kafka
    /// of this folder, and not a zombie, whose command line is empty.
    fn process(&self, id: u32) -> Option<u32> {
        let process: u32 = fs::read_to_string(self.of(id).join("pid")).ok()?.trim().parse().ok()?;
        let line = fs::read(format!("/proc/{process}/cmdline")).ok()?;
        let properties = self.of(id).join("server.properties").display().to_string();
        String::from_utf8_lossy(&line).contains(&properties).then_some(process)
    }

    fn signal(&self, signal: &str, id: u32) {
        if let Some(process) = self.process(id) {
            let _ = Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status();
        }
    }
}

/// Downloads the jars of the broker and its tools through Maven at the first call; returns their folder.
pub fn fetch() -> Result<PathBuf> {
    let folder = libraries();
    let complete = folder.join("complete");
    if complete.exists() {
        return Ok(folder);
    }
    install::java()?;
    fs::create_dir_all(&folder)?;
    let version = version();
    let artifacts = [
        ("org.apache.kafka", "kafka_2.13", version.as_str()),
        ("org.apache.kafka", "kafka-tools", version.as_str()),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J),
        ("org.apache.logging.log4j", "log4j-core", LOG4J),
    ];
    let mut dependencies = String::new();
    for (group, artifact, version) in artifacts {
        dependencies += &format!(
            "    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
             <version>{version}</version></dependency>\n"
        );
    }
    let project = format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n  \
         <groupId>ottla</groupId><artifactId>kafka-jars</artifactId><version>1</version><packaging>pom</packaging>\n  \
         <dependencies>\n{dependencies}  </dependencies>\n</project>\n"
    );
    fs::write(folder.join("pom.xml"), project)?;
    println!("fetching Apache Kafka {version} into {}", folder.display());
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--no-transfer-progress", "--quiet", "dependency:copy-dependencies"]);
    maven.args(["-DincludeScope=runtime", "-DoutputDirectory=.", "-f", "pom.xml"]).current_dir(&folder);
    let done = shell::run(&mut maven, Duration::from_secs(900), false)?;
    if !done.success {
        return Err(format!("{}\n{}", done.output, done.ending).into());
    }
    // Versions before 4.0 have another library for logs, which would be used instead: without settings it writes nothing.
    for file in fs::read_dir(&folder)? {
        let path = file?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("slf4j-reload4j")) {
            fs::remove_file(path)?;
        }
    }
    fs::write(complete, "")?;
    Ok(folder)
}

/// Returns a command that runs a class of the distribution, with little memory and a fast start.
pub fn tool(class: &str) -> Result<Command> {
    let folder = fetch()?;
    let logging = folder.join("tools-log4j2.properties");
    if !logging.exists() {
        fs::write(&logging, log4j(None))?;
    }
    let mut command = Command::new("java");
    command.arg("-Xmx256m").args(BRIEF).args(classes::options());
    command.arg(format!("-Dlog4j2.configurationFile={}", logging.display()));
    command.arg("-cp").arg(class_path()).arg(class);
    Ok(command)
}

/// Returns the version of Apache Kafka that this process runs.
fn version() -> String {
    env::var("OTTLA_KAFKA_VERSION")
        .ok()
        .filter(|version| !version.is_empty())
        .unwrap_or_else(|| VERSION.to_owned())
}

fn libraries() -> PathBuf {
    cache().join(format!("kafka-{}", version()))
}

fn class_path() -> String {
    format!("{}/*", libraries().display())
}

/// The logs of a node go to its file, the warnings of a tool to standard error.
fn log4j(file: Option<&Path>) -> String {
    let (level, target) = match file {
        Some(file) => ("INFO", format!("appender.a.type = File\nappender.a.fileName = {}\n", file.display())),
        None => ("WARN", "appender.a.type = Console\nappender.a.target = SYSTEM_ERR\n".to_owned()),
    };
    format!(
        "status = error\n{target}appender.a.name = A\nappender.a.layout.type = PatternLayout\n\
         appender.a.layout.pattern = %d %p %c: %m%n\nrootLogger.level = {level}\nrootLogger.appenderRef.a.ref = A\n"
    )
}

/// Returns adjacent free ports for brokers. Below 32768, so that no outgoing connection can take the port of a broker that was
/// killed and restarts.
fn free_ports(count: usize) -> Result<Vec<u16>> {
    adjacent(count, 20_000..30_000)
}

/// Returns a free port for another program. No outgoing connection or listener takes it before that program does, as it may with one
/// that the system has just chosen, nor does a broker of Kafka.
pub fn free_port() -> Result<u16> {
    Ok(adjacent(1, 30_000..32_000)?[0])
}

/// Returns adjacent free ports of a range. Where the search begins depends on the process.
fn adjacent(count: usize, range: Range<u16>) -> Result<Vec<u16>> {
    const STEP: usize = 10;
    let mut starts: Vec<u16> = range.clone().step_by(STEP).collect();
    let first = std::process::id() as usize % starts.len();
    starts.rotate_left(first);
    let mut groups = starts.into_iter().map(|start| (start..).take(count).collect::<Vec<u16>>());
    let are_free =
        |ports: &Vec<u16>| ports.iter().all(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok());
    let Range { start, end } = range;
    groups
        .find(are_free)
        .ok_or_else(|| format!("other programs listen on the ports from {start} to {end}").into())
}

fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_nodes_are_controllers_and_known_to_all() {
        let nodes = vec![Node { id: 1, port: 9092 }, Node { id: 2, port: 9093 }];
        let cluster = Cluster { folder: "/data".into(), heap: "1g".into(), is_brief: false, nodes };
        let first = cluster.properties(cluster.nodes[0], &[9094], &["a=b".to_owned()]);
        assert!(first.contains("process.roles=broker,controller\n"));
        assert!(first.contains("listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9094\n"));
        assert!(first.ends_with("a=b\n"));
        let second = cluster.properties(cluster.nodes[1], &[9094], &[]);
        assert!(second.contains("process.roles=broker\n"));
        assert!(second.contains("controller.quorum.voters=1@127.0.0.1:9094\n"));
        assert_eq!(cluster.bootstrap(), "127.0.0.1:9092,127.0.0.1:9093");
    }

    #[test]
    fn options_are_removed_from_the_arguments() {
        let mut args: Vec<String> = ["start", "--port", "9092", "3"].map(str::to_owned).into();
        assert_eq!(take_option(&mut args, "--port").unwrap().as_deref(), Some("9092"));
        assert_eq!(args, ["start", "3"]);
        assert!(take_option(&mut args, "--port").unwrap().is_none());
        assert!(take_option(&mut args, "3").is_err());
    }

    #[test]
    fn missing_cluster_error_says_how_to_start_one() {
        let error = Cluster::open(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.contains("start one"), "{error}");
    }
}
