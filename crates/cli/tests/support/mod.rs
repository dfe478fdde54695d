//! Common helpers of the tests.

#![allow(dead_code)]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

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

/// Runs a program to its end.
pub fn call(program: &str, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(program)
        .args(arguments)
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

/// Starts an embedded cluster.
pub fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::start(ClusterOptions::default()).unwrap()
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

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
