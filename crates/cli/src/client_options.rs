//! The options that every command with a client has: servers, properties, files of properties.

use std::path::{Path, PathBuf};

use clap::Args;
use ottla::Config;

use crate::failure::{Failure, Outcome};

/// `-b`, `-X`, `-F`.
#[derive(Args, Clone, Debug, Default)]
pub struct ClientOptions {
    /// Brokers to ask first: host:port,host:port
    #[arg(
        short = 'b',
        long = "bootstrap-server",
        visible_alias = "bootstrap-servers",
        value_name = "SERVERS"
    )]
    pub bootstrap_server: Option<String>,

    /// Set a property of the client; `-X list` prints all of them
    #[arg(short = 'X', value_name = "NAME=VALUE")]
    pub property: Vec<String>,

    /// Read properties from a file of name=value lines
    #[arg(short = 'F', value_name = "FILE")]
    pub file: Option<PathBuf>,
}

impl ClientOptions {
    /// The configuration: the file first, then -X, then -b.
    pub fn config(&self) -> Outcome<Config> {
        let mut config = Config::new();
        self.add_to(&mut config)?;
        Ok(config)
    }

    /// Whether only the list of properties is wanted.
    pub fn wants_list(&self) -> bool {
        self.property.iter().any(|property| property == "list")
    }

    fn add_to(&self, config: &mut Config) -> Outcome {
        if let Some(file) = &self.file {
            load(config, file)?;
        }
        for property in &self.property {
            set_pair(config, property)?;
        }
        if let Some(servers) = &self.bootstrap_server {
            config.set("bootstrap.servers", servers)?;
        }
        Ok(())
    }
}

/// Sets `name=value`.
pub fn set_pair(config: &mut Config, pair: &str) -> Outcome {
    let (name, value) = pair
        .split_once('=')
        .ok_or_else(|| Failure::Usage(format!("\"{pair}\" is no property; write name=value")))?;
    config.set(name.trim(), value)?;
    Ok(())
}

/// Sets the properties of a file.
pub fn load(config: &mut Config, file: &Path) -> Outcome {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    config.raw_mut().load(&name, &text)?;
    Ok(())
}

/// Without a server there is nobody to talk to.
pub fn require_servers(config: &Config) -> Outcome {
    match config.get("bootstrap.servers").is_none_or(|servers| servers.is_empty()) {
        true => Err(Failure::Usage("no broker is named: give one with -b host:port".into())),
        false => Ok(()),
    }
}

/// Prints what the configuration is odd about.
pub fn print_warnings(warnings: &[String]) {
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
}
