//! `ottla rdkafka_performance`: the benchmark program of librdkafka's users, through the C library.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::Args;
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

/// The name by which the program is called, too.
pub const NAME: &str = "rdkafka_performance";

/// Measure with the flags of librdkafka's rdkafka_performance, through the C library; without flags it lists them
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct RdkafkaPerformanceOptions {
    /// Its own flags
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    pub flags: Vec<OsString>,
}

/// Runs it; the first argument is the program's name.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    // No argument that a program got holds a zero byte.
    let arguments =
        arguments.into_iter().filter_map(|argument| CString::new(argument.into_vec()).ok()).collect();
    // The published measurement has two brokers and a topic with two partitions.
    let own_brokers = || {
        static CLUSTER: OnceLock<EmbeddedCluster> = OnceLock::new();
        let options = ClusterOptions { brokers: 2, partitions: 2, ..ClusterOptions::default() };
        let cluster = EmbeddedCluster::start(options).map_err(|error| error.to_string())?;
        Ok(CLUSTER.get_or_init(|| cluster).bootstrap_servers())
    };
    let code = ottla_rdkafka_performance::run(arguments, Box::new(own_brokers));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
