//! `cargo xtask fuzz [FRAMES]`: runs the fuzz tests of the decoders with this number of frames; with `--coverage` the targets of
//! `fuzz/` under libFuzzer ([`coverage`]).

mod coverage;
mod packed;

use std::{process::ExitCode, time::Duration};

use crate::{
    Result,
    shell::{self, cargo},
};

/// Feeds damaged and invented bytes to whatever reads bytes.
///
/// Without options: frames to every decoder. Each must give a value or a typed error: no panic, no endless loop, and no allocation
/// beyond 16 times the bytes received. `cargo test` runs the same tests with fewer frames.
///
/// With --coverage: libFuzzer looks for inputs that reach new code of a target, and for those that break its guarantees.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The number of frames, such as 100_000_000.
    #[arg(default_value = "10_000_000", value_parser = number)]
    frames: u64,

    /// Run this target under libFuzzer, or `all`, one after the other.
    #[arg(long, value_name = "TARGET")]
    coverage: Option<String>,

    /// The time for each target.
    #[arg(long, value_name = "N", default_value_t = 1.0, requires = "coverage")]
    minutes: f64,

    /// Also begin with the files in this folder.
    #[arg(long, value_name = "FOLDER", requires = "coverage")]
    seeds: Option<std::path::PathBuf>,

    /// List the targets, with their inputs.
    #[arg(long)]
    list: bool,
}

/// Parses a number in which `,` and `_` may separate groups of digits.
pub fn number(text: &str) -> std::result::Result<u64, String> {
    text.replace([',', '_'], "").parse().map_err(|_| format!("`{text}` is not a number"))
}

pub fn main(options: &Options) -> Result<ExitCode> {
    if options.list {
        return coverage::list();
    }
    if let Some(target) = &options.coverage {
        let time = Duration::from_secs_f64(options.minutes.clamp(0.0, 100_000.0) * 60.0);
        return coverage::run(target, time, options.seeds.as_deref());
    }
    let frames = options.frames;
    let mut test = cargo();
    test.args(["test", "--release", "--package", "ottla-protocol", "--", "fuzz", "--nocapture"]);
    test.env("OTTLA_FUZZ_FRAMES", frames.to_string());
    let done = shell::run(&mut test, Duration::from_secs(24 * 3600), true)?;
    Ok(if done.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
