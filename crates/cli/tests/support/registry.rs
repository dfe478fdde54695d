//! `ottla broker --schema-registry`, for tests with `mod support`.

#![allow(dead_code)]

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use crate::support::{Output, ottla_with_input};

/// A broker with a registry, which ends with the test.
pub struct Registry {
    child: Child,
    properties: Vec<(String, String)>,
}

impl Registry {
    /// Starts it with options of `ottla broker`.
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ottla"));
        command.args(["broker", "--port", "0", "--schema-registry", "127.0.0.1:0"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut properties = Vec::new();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        for line in lines {
            let (name, value) = line.split_once('=').unwrap();
            properties.push((name.to_owned(), value.to_owned()));
            if name == "schema.registry.url" {
                break;
            }
        }
        Self { child, properties }
    }

    /// A line that it printed.
    pub fn property(&self, name: &str) -> &str {
        &self.properties.iter().find(|(it, _)| it == name).unwrap().1
    }

    /// Runs `ottla schema`.
    pub fn schema(&self, arguments: &[&str], input: &str) -> Output {
        let mut all = vec!["schema", "--registry", self.property("schema.registry.url")];
        all.extend(arguments);
        ottla_with_input(&all, input.as_bytes())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
