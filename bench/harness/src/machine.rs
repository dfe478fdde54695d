//! The machine on which a measurement ran.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::{Result, folder, server};

/// Returns the facts about the machine that a reader needs to interpret the figures.
pub fn describe() -> Value {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap_or("unknown");
    json!({
        "cpu": model.trim_start_matches(['\t', ':', ' ']),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": memory.trim(),
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "rustc": said("rustc", &["--version"]),
        "go": said("go", &["version"]),
        "java": said("java", &["--version"]).lines().next().unwrap_or_default(),
    })
}

/// Returns the 1-minute load average.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(-1.0)
}

/// Returns the commit, and whether there are uncommitted changes other than runs and results.
pub fn commit() -> (String, bool) {
    let commit = said("git", &["rev-parse", "--short=12", "HEAD"]);
    let changed = said(
        "git",
        &[
            "status",
            "--porcelain",
            "--",
            ".",
            ":!/bench/runs",
            ":!/bench/measured.json",
            ":!/bench/RESULTS.md",
            ":!/bench/*.svg",
        ],
    );
    (commit, !changed.is_empty())
}

/// The abbreviated hash of a commit of this repository.
pub fn abbreviated(commit: &str) -> Result<String> {
    let hash =
        said("git", &["rev-parse", "--verify", "--quiet", "--short=12", &format!("{commit}^{{commit}}")]);
    if hash.is_empty() {
        Err(format!("{commit} is not a commit of this repository").into())
    } else {
        Ok(hash)
    }
}

/// Returns the folder of Kafka's jars.
pub fn kafka_jars() -> Result<String> {
    Ok(server::kafka(Path::new("."), &["fetch"])?.lines().last().unwrap_or_default().to_owned())
}

fn said(program: &str, args: &[&str]) -> String {
    let done = Command::new(program).args(args).current_dir(folder().join("..")).output();
    done.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned()).unwrap_or_default()
}
