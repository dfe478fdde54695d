//! `cargo xtask fuzz [FRAMES]`: runs the fuzz tests of the decoders with this number of frames.

use std::{process::ExitCode, time::Duration};

use crate::{
    Result,
    shell::{self, cargo},
};

const HELP: &str = "\
cargo xtask fuzz [FRAMES]

Feeds FRAMES (default 10,000,000) damaged and invented frames to every decoder. Each must give a value or a typed
error: no panic, no endless loop, and no allocation beyond 16 times the bytes received. `cargo test` runs the same
tests with fewer frames.
";

pub fn main(args: &[String]) -> Result<ExitCode> {
    let frames: u64 = match args {
        [] => 10_000_000,
        [flag] if flag == "--help" || flag == "-h" => {
            print!("{HELP}");
            return Ok(ExitCode::SUCCESS);
        }
        [frames] => {
            frames.replace([',', '_'], "").parse().map_err(|_| format!("{frames} is no number\n\n{HELP}"))?
        }
        _ => return Err(HELP.into()),
    };
    let mut test = cargo();
    test.args(["test", "--release", "--package", "ottla-protocol", "--", "fuzz", "--nocapture"]);
    test.env("OTTLA_FUZZ_FRAMES", frames.to_string());
    let done = shell::run(&mut test, Duration::from_secs(24 * 3600), true)?;
    Ok(if done.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
