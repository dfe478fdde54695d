//! `ottla rdkafka_performance`: librdkafka's benchmark program, on Ottla's C library.

use std::ffi::OsString;

use clap::Args;

pub use crate::platform::rdkafka_performance as run;

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
