//! Linux, macOS and other systems with POSIX.

use std::{
    ffi::{CString, OsString},
    fs::{DirBuilder, OpenOptions},
    os::unix::{
        ffi::OsStringExt,
        fs::{DirBuilderExt, OpenOptionsExt},
    },
    process::ExitCode,
    sync::OnceLock,
    time::Duration,
};

use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

/// Lets only this user read a folder that will be created.
pub fn make_private(builder: &mut DirBuilder) {
    builder.mode(0o700);
}

/// Lets only this user read a file that will be created.
pub fn make_file_private(options: &mut OpenOptions) {
    options.mode(0o600);
}

/// Returns the CPU time of this process so far.
pub fn cpu_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

/// Runs librdkafka's benchmark program; the first argument is its name.
pub fn rdkafka_performance(arguments: Vec<OsString>) -> ExitCode {
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
