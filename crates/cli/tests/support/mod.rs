//! Common helpers of the tests.

#![allow(dead_code)]

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};
use socket2::{Domain, Socket, Type};

/// The result of a call of the binary.
pub struct Output {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs the binary without input.
pub fn ottla(arguments: &[&str]) -> Output {
    ottla_with_input(arguments, b"")
}

/// Runs the binary with this standard input.
pub fn ottla_with_input(arguments: &[&str], input: &[u8]) -> Output {
    call(env!("CARGO_BIN_EXE_ottla"), arguments, input)
}

/// Runs a program to its end, without the profiles and the variables of the user who runs the tests.
pub fn call(program: &str, arguments: &[&str], input: &[u8]) -> Output {
    call_with(program, arguments, &[("OTTLA_CONFIG", "/nonexistent/ottla")], input)
}

/// Runs the binary with variables of the environment.
pub fn ottla_with(variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    call_with(env!("CARGO_BIN_EXE_ottla"), arguments, variables, b"")
}

fn call_with(program: &str, arguments: &[&str], variables: &[(&str, &str)], input: &[u8]) -> Output {
    let mut child = Command::new(program)
        .args(arguments)
        .env_remove("OTTLA_BOOTSTRAP")
        .env_remove("OTTLA_PROFILE")
        .env_remove("SCHEMA_REGISTRY_URL")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its options does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Says that something was not checked, and why. The line is counted: it is also appended to the file that the environment
/// variable `OTTLA_NOT_CHECKED` names.
pub fn not_checked(what: &str, why: &str) {
    let line = format!("NOT CHECKED: {what}, because {why}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("OTTLA_NOT_CHECKED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
    }
}

/// Starts an embedded cluster.
pub fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::start(ClusterOptions::default()).unwrap()
}

/// A port at which connections are refused until the test itself listens there.
///
/// The socket is bound but does not listen. So the operating system gives the port to nobody who asks for any port,
/// and a listener with `SO_REUSEADDR` can still take it.
pub struct ReservedPort {
    address: SocketAddr,
    _socket: Socket,
}

impl ReservedPort {
    pub fn new() -> ReservedPort {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        ReservedPort { address, _socket: socket }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the address for `bootstrap.servers`.
    pub fn servers(&self) -> String {
        self.address.to_string()
    }
}

/// A folder that is removed at the end of the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ottla-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that is killed at the end of the test.
pub struct Running(pub Child);

impl Running {
    /// Starts `ottla broker` on a free port with these arguments; returns what it prints behind each of these names.
    pub fn broker<const N: usize>(arguments: &[&str], names: [&str; N]) -> (Running, [String; N]) {
        let child = Command::new(env!("CARGO_BIN_EXE_ottla"))
            .args(["broker", "--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut running = Running(child.unwrap());
        let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
        let values = names.map(|name| {
            let mut values = lines.by_ref().map(Result::unwrap);
            values.find_map(|line| line.strip_prefix(name).map(str::to_owned)).unwrap()
        });
        (running, values)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
