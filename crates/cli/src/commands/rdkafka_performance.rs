//! `ottla rdkafka_performance`: librdkafka's benchmark program, on Ottla's C library.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::Args;
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

/// The name of the subcommand, and of the program if it is called by this name.
pub const NAME: &str = "rdkafka_performance";

/// Run benchmarks with the flags of librdkafka's rdkafka_performance, on the C library; without flags it lists them
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct RdkafkaPerformanceOptions {
    /// The flags of rdkafka_performance
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    pub flags: Vec<OsString>,
}

/// Runs the program; the first argument is its name.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    // The arguments of a process contain no zero bytes.
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
